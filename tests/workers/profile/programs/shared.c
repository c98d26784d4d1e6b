/* A problem of 16000 pages that the ranks divide; with "repeat" each of them does all of it. Other words are what pmu.c shares. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES 16000
#define PAGE 4096
#define PIECE 800 /* pages between two calls */

static void touch(int pages) {
    volatile char *there = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)there, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    for (int i = 0; i < pages; i++) there[i * PAGE] = 1;
    munmap((void *)there, (size_t)pages * PAGE);
}

int main(int count, char **arguments) {
    int rank, ranks, is_repeated = count > 1 && !strcmp(arguments[1], "repeat");
    if (count > 1) setenv("PMU", arguments[1], 1);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int pieces = PAGES / PIECE / (is_repeated ? 1 : ranks);
    double began = MPI_Wtime();
    for (int i = 0; i < pieces; i++) {
        touch(PIECE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - began);
    MPI_Finalize();
    return 0;
}
