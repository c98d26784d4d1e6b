/* MPICH without its headers: handles are numbers of its stable interface. With an argument it speaks Fortran. */
typedef int handle;
int MPI_Init(int *, char ***);
int MPI_Comm_rank(handle, int *);
int MPI_Comm_split(handle, int, int, handle *);
int MPI_Send(const void *, int, handle, int, int, handle);
int MPI_Recv(void *, int, handle, int, int, handle, void *);
int MPI_Allreduce(const void *, void *, int, handle, handle, handle);
int MPI_Finalize(void);
void mpi_send_(const void *, int *, handle *, int *, int *, handle *, int *);

int main(int count, char **words) {
    handle world = 0x44000000, integer = 0x4c000405, sum = 0x58000003, turned;
    int rank, one = 1, zero = 0, tag = 7, error, values[20] = {0}, total[20], length = 20;
    void *ignored = (void *)1;
    MPI_Init(&count, &words);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_split(world, 0, -rank, &turned); /* rank 0 of the world is the last one here */
    if (rank == 0) {
        if (count > 1) mpi_send_(values, &length, &integer, &zero, &tag, &turned, &error);
        else MPI_Send(values, length, integer, zero, tag, turned);
    } else {
        MPI_Recv(values, length, integer, one, tag, turned, ignored);
    }
    MPI_Allreduce((void *)-1, total, 20, integer, sum, world);
    return MPI_Finalize();
}
