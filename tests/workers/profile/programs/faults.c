/* Known page faults outside of MPI, 20 times 200 pages, and as many inside: rank 1 receives into new memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef C_ALONE /* MPICH without its headers, as in mpich.c */
#define MPI_COMM_WORLD 0x44000000
#define MPI_CHAR 0x4c000101
#define MPI_ANY_SOURCE -2
#define MPI_STATUS_IGNORE (void *)1
#define MPI_THREAD_FUNNELED 1
int MPI_Init_thread(int *, char ***, int, int *);
int MPI_Comm_rank(int, int *);
int MPI_Send(const void *, int, int, int, int, int);
int MPI_Recv(void *, int, int, int, int, int, void *);
int MPI_Iprobe(int, int, int, int *, void *);
int MPI_Barrier(int);
int MPI_Finalize(void);
#else
#include <mpi.h>
#endif

#define PAGES 200
#define PAGE 4096
#define FIRST 900 /* of the numbers that files of the profile have */
#define LAST 1023

static char *memory(void) {
    char *there = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(there, PAGES * PAGE, MADV_NOHUGEPAGE);
    return there;
}

static void *touch(void *nothing) {
    volatile char *there = memory();
    for (int i = 0; i < PAGES; i++) there[i * PAGE] = 1;
    munmap((void *)there, PAGES * PAGE);
    return nothing;
}

static void touch_in_thread(void) {
    pthread_t other;
    pthread_create(&other, NULL, touch, NULL);
    pthread_join(other, NULL);
}

static void touch_in_child(void) {
    pid_t child = fork();
    if (!child) _exit(touch(NULL) != NULL);
    waitpid(child, NULL, 0);
}

/* The program's file under every number: its place in the file shows what was read from it. */
static int replace_files(void) {
    char name[] = "file-XXXXXX";
    int file = mkstemp(name);
    if (ftruncate(file, 100000)) return -1;
    for (int number = FIRST; number <= LAST; number++) dup2(file, number);
    return file;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    int rank, provided, file = -1, there;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *sent = memory();
    for (int round = 0; round < 20; round++) {
        touch(NULL);
        if (!strcmp(how, "thread")) touch_in_thread();
        if (!strcmp(how, "child")) touch_in_child();
        if (!strcmp(how, "files") && round == 10) file = replace_files();
        char *received = memory();
        if (rank == 0) MPI_Send(sent, PAGES * PAGE, MPI_CHAR, 1, round, MPI_COMM_WORLD);
        else MPI_Recv(received, PAGES * PAGE, MPI_CHAR, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        munmap(received, PAGES * PAGE);
        for (int i = 0; i < 2 && !strcmp(how, "again"); i++) MPI_Barrier(MPI_COMM_WORLD); /* a short piece, then the long one */
        for (int i = 0; i < 20000 && !strcmp(how, "calls"); i++)
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    }
    if (rank == 0) printf("rounds 20\n"), fflush(stdout);
    if (file >= 0) printf("at %ld\n", (long)lseek(file, 0, SEEK_CUR)), fflush(stdout);
    if (!strcmp(how, "exit")) usleep(500000), MPI_Barrier(MPI_COMM_WORLD), _exit(0);
    MPI_Finalize();
    return 0;
}
