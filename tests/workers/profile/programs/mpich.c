/* MPICH without its headers: handles are numbers of its stable interface, which Intel MPI and MVAPICH2 have too. With an argument
   it speaks Fortran, unless it was built as C_ALONE. */
typedef int handle;
int puts(const char *);
int MPI_Init(int *, char ***);
int MPI_Comm_rank(handle, int *);
int MPI_Get_library_version(char *, int *);
int MPI_Comm_split(handle, int, int, handle *);
int MPI_Send(const void *, int, handle, int, int, handle);
int MPI_Recv(void *, int, handle, int, int, handle, void *);
int MPI_Allreduce(const void *, void *, int, handle, handle, handle);
int MPI_Finalize(void);
#ifdef C_ALONE
#define mpi_send_(...)
#else
void mpi_send_(const void *, int *, handle *, int *, int *, handle *, int *);
#endif

int main(int count, char **words) {
    handle world = 0x44000000, integer = 0x4c000405, sum = 0x58000003, turned;
    int rank, anyone = -2, zero = 0, tag = 7, error, values[20] = {0}, total[20], length = 20;
    static char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING */
    void *ignored = (void *)1;
    MPI_Init(&count, &words);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_split(world, 0, -rank, &turned); /* rank 0 of the world is the last one here */
    if (rank == 0) {
        MPI_Get_library_version(version, &error);
        puts(version);
        if (count > 1) mpi_send_(values, &length, &integer, &zero, &tag, &turned, &error);
        else MPI_Send(values, length, integer, zero, tag, turned);
    } else {
        MPI_Recv(values, length, integer, anyone, tag, turned, ignored);
    }
    MPI_Allreduce((void *)-1, total, 20, integer, sum, world);
    return MPI_Finalize();
}
