/* Known work: argument k is the busy time of rank k in each of the rounds, ms; then the rank's own clocks are printed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int count, char **arguments) {
    int rank, size;
    MPI_Init(&count, &arguments);
    double began = now(), inside = 0, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 25; round++) {
        double start = now();
        while (now() - start < 1e-3 * atof(arguments[1 + rank % (count - 1)]));
        start = now();
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        inside += now() - start;
    }
    printf("%d %.9f %.9f\n", rank, now() - began, inside);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
