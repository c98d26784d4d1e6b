/* A program of known truth: known NAME=VALUE ... Every rank does what the values say, round after round, measures it by its own clocks,
   and rank 0 prints the means over the ranks. Times are in ms per round; n is the number of ranks.

   rounds      number of rounds
   work        CPU time of every rank          work_more    as much more for each further rank
   total       CPU time that the ranks share   skew         rank 0 works so many times as long as the others, at the same mean
   touch       MB of new memory, written       touch_more   as much more for each further rank
   nap         sleep of every rank             nap_more     as much more for each further rank
   late        sleep of rank 0, times n - 1
   pipe        blocking read from a slow pipe  pipe_more    as much more for each further rank
   writes      writes of 4 KiB with fsync      writes_more  as many more for each further rank
   serial      1: the ranks work one after another
   laps        times that a small message travels around the ring, polled for
   bytes       message to the right neighbour
   meet        1: an allreduce of 8 bytes ends the round */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMPUTING, RUN_DELAY, BLOCKED, OUTSIDE, IN_MPI, IN_MPI_CPU, MEETING, LOOP, MESSAGES, BYTES, SPENT };
static const char *names[SPENT] = {"computing_s", "run_delay_s", "blocked_s", "outside_s", "mpi_s",
                                   "mpi_cpu_s",   "meeting_s",   "loop_s",    "messages",  "payload_bytes"};
static double spent[SPENT];
static int rank, size, count;
static char **words;

static double clock_s(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static double now(void) { return clock_s(CLOCK_MONOTONIC); }
static double cpu(void) { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

static double run_delay(void) {
    double on_cpu = 0, waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file && fscanf(file, "%lf %lf", &on_cpu, &waited) != 2) waited = 0;
    if (file) fclose(file);
    return 1e-9 * waited;
}

static double value(const char *name) {
    size_t length = strlen(name);
    for (int i = 1; i < count; i++)
        if (!strncmp(words[i], name, length) && words[i][length] == '=') return atof(words[i] + length + 1);
    return 0;
}

static double growing(const char *name) {
    char more[32];
    snprintf(more, sizeof more, "%s_more", name);
    return value(name) + (size - 1) * value(more);
}

static double share_of_rank(double skew) {
    if (skew == 0 || size == 1) return 1;
    return (rank == 0 ? skew : 1) * size / (skew + size - 1);
}

static void compute(double seconds) {
    static volatile double sum;
    for (double until = cpu() + seconds; cpu() < until;)
        for (int i = 0; i < 20000; i++) sum += 1e-9 * i;
}

static void touch(double megabytes) {
    size_t bytes = megabytes * 1e6;
    if (!bytes) return;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
    memset(memory, rank + 1, bytes);
    munmap(memory, bytes);
}

static void work(void) {
    double delay = run_delay(), began = now(), used = cpu();
    compute(1e-3 * (growing("work") + value("total") / size) * share_of_rank(value("skew")));
    touch(growing("touch"));
    spent[COMPUTING] += cpu() - used;
    spent[OUTSIDE] += now() - began;
    spent[RUN_DELAY] += run_delay() - delay;
}

/* A rank that wakes up may still wait for a core: that is run delay. */
static void blocked_since(double began, double delay) {
    double seconds = now() - began, waited = run_delay() - delay;
    spent[BLOCKED] += seconds - waited;
    spent[RUN_DELAY] += waited;
    spent[OUTSIDE] += seconds;
}

static void rest(double ms) {
    if (ms <= 0) return;
    double delay = run_delay(), began = now();
    usleep(1e3 * ms);
    blocked_since(began, delay);
}

/* Another process writes the pipe's byte after so many ms: the rank blocks in read(), as on a slow file system. */
static void read_slowly(double ms) {
    static int ask[2], answer[2], feeder = 0;
    if (ms <= 0) return;
    if (!feeder) {
        if (pipe(ask) || pipe(answer)) MPI_Abort(MPI_COMM_WORLD, 4);
        feeder = fork();
        if (!feeder) {
            double wait;
            close(ask[1]);
            while (read(ask[0], &wait, sizeof wait) == sizeof wait) {
                usleep(1e3 * wait);
                if (write(answer[1], "x", 1) != 1) break;
            }
            _exit(0);
        }
        close(ask[0]);
    }
    double delay = run_delay(), began = now();
    char byte;
    if (write(ask[1], &ms, sizeof ms) != sizeof ms || read(answer[0], &byte, 1) != 1) MPI_Abort(MPI_COMM_WORLD, 5);
    blocked_since(began, delay);
}

static void write_files(int writes) {
    static int file = -1;
    static char page[4096];
    if (!writes) return;
    if (file < 0) {
        snprintf(page, sizeof page, "written-by-%d", rank);
        file = open(page, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    }
    double delay = run_delay(), began = now();
    for (int i = 0; i < writes; i++)
        if (write(file, page, sizeof page) != sizeof page || fsync(file)) MPI_Abort(MPI_COMM_WORLD, 6);
    blocked_since(began, delay);
}

static void sent(double messages, double bytes) { spent[MESSAGES] += messages, spent[BYTES] += messages * bytes; }

/* A token goes around the ring; every rank polls for it with MPI_Test. */
static void lap(void) {
    int token = 0, there = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request request;
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Irecv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
    while (!there) MPI_Test(&request, &there, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    sent(1, sizeof token);
}

static void communicate(char *out, char *in, int bytes) {
    double began = now(), used = cpu(), one = 1, sum;
    if (size > 1) {
        int right = (rank + 1) % size, left = (rank + size - 1) % size;
        for (int i = value("laps"); i > 0; i--) lap();
        if (bytes) {
            MPI_Sendrecv(out, bytes, MPI_BYTE, right, 2, in, bytes, MPI_BYTE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sent(1, bytes);
        }
    }
    if (value("meet")) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    spent[IN_MPI] += now() - began;
    spent[IN_MPI_CPU] += cpu() - used;
}

static void pass_turn(int arriving) {
    double began = now(), used = cpu();
    int token = 0;
    if (arriving && rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!arriving && rank < size - 1) {
        MPI_Send(&token, 1, MPI_INT, rank + 1, 3, MPI_COMM_WORLD);
        sent(1, sizeof token);
    }
    spent[IN_MPI] += now() - began;
    spent[IN_MPI_CPU] += cpu() - used;
}

/* Means over the ranks, totals of messages and bytes, and all of the busiest rank, which is the longest outside MPI. */
static void report(const double *all) {
    const double *busiest = all;
    for (const double *one = all; one < all + size * SPENT; one += SPENT)
        if (one[OUTSIDE] > busiest[OUTSIDE]) busiest = one;
    for (int i = 0; i < SPENT; i++) {
        double sum = 0;
        for (int one = 0; one < size; one++) sum += all[one * SPENT + i];
        printf("%s %.9g\n", names[i], i < MESSAGES ? sum / size : sum);
        if (i <= OUTSIDE) printf("busiest_%s %.9g\n", names[i], busiest[i]);
    }
}

int main(int given, char **arguments) {
    count = given, words = arguments;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bytes = value("bytes"), serial = value("serial");
    char *out = calloc(1, bytes + 1), *in = calloc(1, bytes + 1);
    double began = now();
    MPI_Barrier(MPI_COMM_WORLD);
    spent[MEETING] = now() - began; /* the ranks start one after another */
    began = now();
    for (int round = value("rounds"); round > 0; round--) {
        if (serial) pass_turn(1);
        work();
        rest(growing("nap") + (rank == 0 ? (size - 1) * value("late") : 0));
        read_slowly(growing("pipe"));
        write_files(growing("writes"));
        if (serial) pass_turn(0);
        communicate(out, in, bytes);
    }
    spent[LOOP] = now() - began;
    double *all = calloc(size * SPENT, sizeof *all);
    MPI_Gather(spent, SPENT, MPI_DOUBLE, all, SPENT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) report(all);
    MPI_Finalize();
    return 0;
}
