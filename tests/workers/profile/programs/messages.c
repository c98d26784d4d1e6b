/* Every way to send a message, to ranks that have other numbers in a communicator of their own; with an argument fewer ways. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char data[200000], space[300000];

static void ways(MPI_Comm comm, int bytes) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request in, out;
    for (int way = 0; way < 5; way++) {
        MPI_Irecv(data, sizeof data, MPI_CHAR, from, way, comm, &in);
        if (way == 0) MPI_Send(data, bytes, MPI_CHAR, to, way, comm);
        if (way == 1) MPI_Rsend(data, bytes, MPI_CHAR, to, way, comm);
        if (way == 2) MPI_Bsend(data, bytes, MPI_CHAR, to, way, comm);
        if (way == 3) MPI_Isend(data, bytes, MPI_CHAR, to, way, comm, &out), MPI_Wait(&out, MPI_STATUS_IGNORE);
        if (way == 4) MPI_Issend(data, bytes, MPI_CHAR, to, way, comm, &out), MPI_Wait(&out, MPI_STATUS_IGNORE);
        MPI_Wait(&in, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
    }
    MPI_Sendrecv(data, bytes / 8, MPI_DOUBLE, to, 7, space, sizeof space / 8, MPI_DOUBLE, from, 7, comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(data, bytes, MPI_CHAR, to, 8, from, 8, comm, MPI_STATUS_IGNORE);
    MPI_Send(data, bytes, MPI_CHAR, MPI_PROC_NULL, 9, comm);
}

static void again_and_again(int rank, int size) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, bytes = 700;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request both[2];
    MPI_Recv_init(space, sizeof space, MPI_CHAR, from, 10, comm, &both[0]);
    MPI_Send_init(data, bytes, MPI_CHAR, to, 10, comm, &both[1]);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Start(&both[0]), MPI_Start(&both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Request_free(&both[0]), MPI_Request_free(&both[1]);
}

static void to_the_other_half(int rank) {
    MPI_Comm half, across;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 5, &across);
    if (rank % 2 == 0) MPI_Send(data, 300, MPI_CHAR, rank / 2, 1, across);
    else MPI_Recv(data, 300, MPI_CHAR, rank / 2, 1, across, MPI_STATUS_IGNORE);
}

static void plain(int rank, int size) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int bytes = 0; bytes < 150000; bytes = 3 * bytes + 1)
        MPI_Sendrecv(data, bytes, MPI_CHAR, to, 1, space, sizeof space, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int count, char **arguments) {
    int rank, size, length, whole[64];
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Comm turned, pairs;
    MPI_Datatype gaps;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    if (rank == 0) puts(version);
    if (count > 1) {
        if (!strcmp(arguments[1], "plain")) plain(rank, size);
        if (!strcmp(arguments[1], "persistent")) again_and_again(rank, size);
        if (!strcmp(arguments[1], "across")) to_the_other_half(rank);
        MPI_Finalize();
        return 0;
    }
    MPI_Buffer_attach(space + 150000, 150000);
    ways(MPI_COMM_WORLD, 0);
    ways(MPI_COMM_WORLD, 1000);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    ways(turned, 64);
    MPI_Comm_free(&turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pairs);
    ways(pairs, 100000);
    MPI_Type_vector(10, 2, 5, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    if (rank == 0) MPI_Send(data, 3, gaps, size - 1, 2, MPI_COMM_WORLD);
    if (rank == size - 1) MPI_Recv(data, 3, gaps, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, whole, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(whole, 64, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Alltoall(data, 16, MPI_CHAR, space, 16, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
