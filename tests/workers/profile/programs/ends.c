/* Programs that do not behave: the first argument says how. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

static void *talk(void *number) {
    int tag = *(int *)number, flag = rank;
    for (int i = 0; i < 1000; i++)
        MPI_Sendrecv_replace(&flag, 1, MPI_INT, rank ^ 1, tag, rank ^ 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void threads(void) {
    pthread_t others[2];
    int tags[3] = {1, 2, 3};
    for (int i = 0; i < 2; i++) pthread_create(&others[i], NULL, talk, &tags[i]);
    talk(&tags[2]);
    for (int i = 0; i < 2; i++) pthread_join(others[i], NULL);
}

static void forks(void) {
    int status;
    pid_t child = fork();
    if (!child) {
        int there;
        for (int i = 0; i < 100; i++) MPI_Initialized(&there);
        execlp("true", "true", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    if (status) exit(9);
}

int main(int count, char **arguments) {
    const char *how = arguments[1];
    int provided = 0;
    if (!strcmp(how, "no mpi")) return 0;
    if (!strcmp(how, "late")) usleep(300000);
    if (!strcmp(how, "exec") && count == 2) return execl(arguments[0], arguments[0], how, "again", NULL);
    MPI_Init_thread(&count, &arguments, !strcmp(how, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "threads")) {
        if (provided == MPI_THREAD_MULTIPLE) threads();
        else puts("no threads");
    }
    if (!strcmp(how, "fork")) forks();
    if (!strcmp(how, "quiet")) {
        MPI_Pcontrol(0);
        for (int i = 0; i < 50; i++) MPI_Barrier(MPI_COMM_WORLD);
        usleep(200000);
        MPI_Pcontrol(1);
    }
    if (!strcmp(how, "crash") && rank == 1) usleep(100000), raise(SIGSEGV);
    if (!strcmp(how, "abort") && rank == 1) usleep(100000), MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(how, "crash") || !strcmp(how, "abort")) MPI_Recv(&provided, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "exit")) usleep(100000), _exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
