/* Preloaded into a process: its wall clock is off by the seconds in a mapped file, from the moment they are written there.
 *
 * libfaketime does more than that: it takes over sleeping and waiting, too, and a worker that waits for a lock with
 * sem_clockwait sleeps for good. Here CLOCK_MONOTONIC, every sleep and every deadline are left as they are, which is what
 * a step of the real clock leaves.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int clock_reader(clockid_t, struct timespec *);

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("STEPPED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        offset_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static clock_reader *real;
    if (!real)
        real = (clock_reader *)dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && offset_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset_s;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone; /* obsolete, and nobody here asks for it */
    struct timespec read;
    int failed = clock_gettime(CLOCK_REALTIME, &read);
    if (!failed) {
        now->tv_sec = read.tv_sec;
        now->tv_usec = read.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *now)
{
    struct timespec read;
    if (clock_gettime(CLOCK_REALTIME, &read))
        return -1;
    if (now)
        *now = read.tv_sec;
    return read.tv_sec;
}
