/* Wires between pairs of TAP devices that delay, lose and space frames. For kernels without netem; run by relay.py.

   A frame is due when it was read plus its delay, never before the frame in front of it. A way with a rate spaces what
   it hands over: a relay that waited for a core lets nothing out faster than the link, it only is behind for a while.
   The rate itself is kept in front (tbf), where a sender is held back; so here it may be caught up, by CATCH_UP. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_FRAME 65536
#define READ_AT_ONCE 16 /* then look whether something is due */
#define EARLY_NS 20000  /* what is due this soon goes along: a core is not left and taken again for each frame */
#define CATCH_UP 1.10
#define AT_ONCE_NS 60000 /* at most so much of the rate leaves at once, after a wait */

struct frame {
    struct frame *next;
    int64_t due_ns;
    size_t length;
    unsigned char bytes[];
};

struct way {
    double delay_ns, jitter_ns, loss, loss_burst, rate_bps;
    int normal, losing, source, target;
    uint64_t chance;
    int64_t last_due_ns, free_ns, spaced_ns;
    struct frame *first, *last;
};

static double chance(struct way *way) { /* xorshift64*: below 1 */
    way->chance ^= way->chance >> 12;
    way->chance ^= way->chance << 25;
    way->chance ^= way->chance >> 27;
    return (double)((way->chance * 0x2545F4914F6CDD1DULL) >> 11) / 9007199254740992.0;
}

/* A direction of a wire; rate_bps 0: what is read is not spaced. NULL: no memory. */
struct way *relay_way(double delay_s, double jitter_s, int normal, double loss, double loss_burst, double rate_bps,
                      uint64_t seed) {
    struct way *way = calloc(1, sizeof *way);
    if (!way) return NULL;
    *way = (struct way){.delay_ns = 1e9 * delay_s, .jitter_ns = 1e9 * jitter_s, .normal = normal, .loss = loss,
                        .loss_burst = loss_burst, .rate_bps = rate_bps, .chance = seed | 1};
    way->losing = chance(way) < loss;
    return way;
}

/* The next frame's delay: within +- jitter, or with jitter as the standard deviation. */
int64_t relay_delay_ns(struct way *way) {
    double delay = way->delay_ns;
    if (way->jitter_ns > 0 && !way->normal) {
        delay += (2 * chance(way) - 1) * way->jitter_ns;
    } else if (way->jitter_ns > 0) {
        double length = sqrt(-2 * log(1 - chance(way))), angle = 2 * M_PI * chance(way);
        delay += length * cos(angle) * way->jitter_ns;
    }
    return delay > 0 ? (int64_t)(delay + 0.5) : 0;
}

/* Whether the next frame is lost: at random, or in bursts (Gilbert's model). */
int relay_loses(struct way *way) {
    if (way->loss <= 0) return 0;
    if (way->loss_burst <= 1) return chance(way) < way->loss;
    double leave = 1 / way->loss_burst, enter = leave * way->loss / (1 - way->loss);
    way->losing = way->losing ? chance(way) >= leave : chance(way) < enter;
    return way->losing;
}

/* When a frame that was read now is due. */
int64_t relay_due_ns(struct way *way, int64_t now_ns) {
    int64_t due_ns = now_ns + relay_delay_ns(way);
    if (due_ns > way->last_due_ns) way->last_due_ns = due_ns;
    return way->last_due_ns;
}

/* When the first frame that waits may go at the earliest. The line takes it when it is due and the frame in front has
   passed (free_ns), as if nobody were ever late; a relay that was late follows this at CATCH_UP times the rate (spaced_ns). */
int64_t relay_leaves_ns(const struct way *way, int64_t due_ns) {
    int64_t leaves_ns = due_ns > way->free_ns ? due_ns : way->free_ns;
    return leaves_ns > way->spaced_ns ? leaves_ns : way->spaced_ns;
}

/* A frame that was due goes now: how long it occupies the line. */
void relay_went(struct way *way, int64_t due_ns, int64_t now_ns, size_t length) {
    if (way->rate_bps <= 0) return;
    double length_ns = 8e9 * (double)length / way->rate_bps;
    int64_t begins_ns = due_ns > way->free_ns ? due_ns : way->free_ns;
    int64_t spaced_ns = way->spaced_ns > now_ns - AT_ONCE_NS ? way->spaced_ns : now_ns - AT_ONCE_NS;
    way->free_ns = begins_ns + (int64_t)length_ns;
    way->spaced_ns = spaced_ns + (int64_t)(length_ns / CATCH_UP);
}

static int64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* An error means that the device is down: a cut wire loses what is sent. */
static void hand_over(const struct way *way, const unsigned char *bytes, size_t length) {
    ssize_t written = write(way->target, bytes, length);
    (void)written;
}

static void take(struct way *way) {
    static unsigned char bytes[LONGEST_FRAME];
    for (int count = 0; count < READ_AT_ONCE; count++) {
        ssize_t length = read(way->source, bytes, sizeof bytes);
        if (length <= 0) return;
        if (relay_loses(way)) continue;
        int64_t now_ns = clock_ns(), due_ns = relay_due_ns(way, now_ns);
        if (!way->first && relay_leaves_ns(way, due_ns) <= now_ns) { /* nothing to wait for */
            relay_went(way, due_ns, now_ns, (size_t)length);
            hand_over(way, bytes, (size_t)length);
            continue;
        }
        struct frame *frame = malloc(sizeof *frame + (size_t)length);
        if (!frame) continue; /* as on a full queue */
        *frame = (struct frame){.due_ns = due_ns, .length = (size_t)length};
        memcpy(frame->bytes, bytes, (size_t)length);
        if (way->last) way->last->next = frame; else way->first = frame;
        way->last = frame;
    }
}

static void give(struct way *way) {
    while (way->first) {
        int64_t now_ns = clock_ns();
        struct frame *frame = way->first;
        if (relay_leaves_ns(way, frame->due_ns) > now_ns + EARLY_NS) return;
        relay_went(way, frame->due_ns, now_ns, frame->length);
        hand_over(way, frame->bytes, frame->length);
        way->first = frame->next;
        if (!way->first) way->last = NULL;
        free(frame);
    }
}

static int attach(const char *name) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0 || ioctl(descriptor, TUNSETIFF, &request) < 0) return -errno;
    return descriptor;
}

/* Attach to `count` devices and relay from devices[k] what ways[k] says to devices[k ^ 1]; returns only an error number. */
int relay_run(int count, const char **devices, struct way **ways) {
    struct pollfd *polled = calloc((size_t)count, sizeof *polled);
    if (!polled) return ENOMEM;
    for (int index = 0; index < count; index++) {
        int descriptor = attach(devices[index]);
        if (descriptor < 0) return -descriptor;
        polled[index] = (struct pollfd){.fd = descriptor, .events = POLLIN};
    }
    for (int index = 0; index < count; index++) {
        ways[index]->source = polled[index].fd;
        ways[index]->target = polled[index ^ 1].fd;
        ways[index]->first = ways[index]->last = NULL;
    }
    for (;;) {
        int64_t next_ns = INT64_MAX;
        for (int index = 0; index < count; index++) {
            if (!ways[index]->first) continue;
            int64_t leaves_ns = relay_leaves_ns(ways[index], ways[index]->first->due_ns);
            if (leaves_ns < next_ns) next_ns = leaves_ns;
        }
        struct timespec left, *timeout = NULL;
        if (next_ns != INT64_MAX) {
            int64_t left_ns = next_ns - clock_ns();
            if (left_ns < 0) left_ns = 0;
            left = (struct timespec){left_ns / 1000000000, left_ns % 1000000000};
            timeout = &left;
        }
        if (ppoll(polled, (nfds_t)count, timeout, NULL) < 0 && errno != EINTR) return errno;
        for (int index = 0; index < count; index++)
            if (polled[index].revents & (POLLERR | POLLHUP | POLLNVAL)) return EIO;
        for (int index = 0; index < count; index++)
            if (polled[index].revents & POLLIN) take(ways[index]);
        for (int index = 0; index < count; index++) give(ways[index]);
    }
}
