/* Known work, then the rank's own clocks are printed. Argument k is the busy time of rank k in each of the rounds, ms; after the word
   "turns" one rank at a time is busy, after "volume" all add up 8 MB in each round. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 1000000

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int count, char **arguments) {
    int rank, size;
    MPI_Init(&count, &arguments);
    double began = now(), inside = 0, *sums = calloc(MOST, sizeof *sums);
    int turns = !strcmp(arguments[1], "turns"), volume = !strcmp(arguments[1], "volume"), worded = turns || volume;
    arguments += worded, count -= worded;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 25; round++) {
        double start = now();
        while ((!turns || round % size == rank) && now() - start < 1e-3 * atof(arguments[1 + rank % (count - 1)]));
        start = now();
        MPI_Allreduce(MPI_IN_PLACE, sums, volume ? MOST : 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        inside += now() - start;
    }
    printf("%d %.9f %.9f\n", rank, now() - began, inside);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
