/* Time inside MPI, counted in the rank's own process: loaded before the MPI library, it stands in for every function of the table.

   Other tools that stand in for MPI functions run as without it: a call is passed on to the next MPI_ function, which is a tool's if there
   is one. A tool before it, as one that is linked into the program, calls PMPI_ functions: those are counted then.

   No mpi.h: a call is passed on as machine words, as it came. What is counted lies in a mapped file that is whole at every moment,
   so that a killed rank loses nothing. Nothing is printed, no signal is caught, no memory of the program is touched, and where anything
   is missing the calls are passed on and nothing is counted. wrappers.h is made of the table (workers/profile/source.py). */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef long word;
typedef void (*anything)(void);

#include "layout.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ALWAYS inline __attribute__((always_inline))
#define OWN static __thread __attribute__((tls_model("initial-exec")))
#define MISSING 16 /* MPI_ERR_INTERN of both families: a function that this library does not have */
#define PIECES_PER_READING 200 /* the processor clock costs a system call: it is read after pieces so much longer than that */
#define LEAST_PIECE_NS 20000
#define LEAST_CORE_PIECE_NS 100000
#define CALLS_IN_ROW 32
#define NS 1000000000ull

static struct page *page; /* NULL: nothing is counted */
static struct slot *slots;
static struct event *ring;
static char path[4096];
static int traced, open_mpi;
static word world, no_comm;
static u64 last, piece, unread[2], first_tick, first_ns, bin_began;
static u64 read_tick, read_ns, read_cpu;
static u64 core_piece, read_delay = NOT_KNOWN, without_core[2]; /* before the call that is counted, and within it */
static double ns_per_tick;

OWN char *outermost; /* frame of the call that is being counted */
OWN int is_main;

struct call {
    u64 began;
    int counted, function;
};

/* Clocks */

static u64 nanoseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

static int counter_is_clock; /* the kernel itself trusts the processor's counter */

static inline u64 ticks(void) {
#if defined(__x86_64__)
    if (LIKELY(counter_is_clock)) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    u64 value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
    return nanoseconds(CLOCK_MONOTONIC);
}

static void choose_clock(void) {
    char name[8] = "";
    int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    counter_is_clock = read(file, name, sizeof name - 1) >= 3 && !memcmp(name, "tsc", 3);
    close(file);
}

/* Both clocks at one moment: this rank may lose its core between two readings, which would move all times of its calls. */
static void read_both(clockid_t clock, u64 *tick, u64 *ns) {
    static u64 narrowest = ~0ull;
    u64 narrow = ~0ull;
    for (int attempt = 0; attempt < 4 && (!attempt || narrow / 2 > narrowest); attempt++) {
        u64 before = ticks(), there = nanoseconds(clock), width = ticks() - before;
        if (width < narrow) narrow = width, *tick = before + width / 2, *ns = there;
    }
    if (narrow < narrowest) narrowest = narrow;
}

static u64 real_offset(void) {
    u64 width = ~0ull, offset = 0;
    for (int attempt = 0; attempt < 4; attempt++) {
        u64 before = nanoseconds(CLOCK_MONOTONIC), there = nanoseconds(CLOCK_REALTIME), after = nanoseconds(CLOCK_MONOTONIC);
        if (after - before < width) width = after - before, offset = there - before - width / 2;
    }
    return offset;
}

/* The library behind us */

struct names {
    int count;
    char *of[512];
};

static int note_object(struct dl_phdr_info *object, size_t size, void *to) {
    struct names *names = to;
    (void)size;
    if (object->dlpi_name && *object->dlpi_name && names->count < 512) names->of[names->count++] = strdup(object->dlpi_name);
    return 0;
}

extern char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
static int is_ours(anything function) { return (char *)function >= __ehdr_start && (char *)function < _end; }

/* A library that was loaded for one module alone is in no global scope: ask the objects for what they depend on. */
static anything find_in_objects(const char *name) {
    struct names *names = calloc(1, sizeof *names);
    anything found = NULL;
    if (!names) return NULL;
    dl_iterate_phdr(note_object, names);
    for (int i = 0; i < names->count; i++) {
        void *object = found ? NULL : dlopen(names->of[i], RTLD_LAZY | RTLD_NOLOAD);
        if (object) {
            found = (anything)dlsym(object, name);
            if (is_ours(found)) found = NULL;
            dlclose(object);
        }
        free(names->of[i]);
    }
    free(names);
    return found;
}

/* `name` begins with P: the name shift comes first in Fortran too. */
static anything find(const char *name) {
    anything found = (anything)dlsym(RTLD_NEXT, name);
    return found ? found : find_in_objects(name);
}

/* What the program would have called: the function without the P, of another tool or of the library. */
static anything find_next(const char *name) {
    anything found = find(name + 1);
    return found ? found : find(name);
}

#define KEPT_IN_PLACE(find_it) ({ static anything real_; if (UNLIKELY(!real_)) real_ = find_it; real_; })
#define REAL(name) KEPT_IN_PLACE(find(name))
#define NEXT(name) KEPT_IN_PLACE(find_next(name))

/* The program's calls of a function come to another one than ours, which comes first in the order of loading. */
static int is_passed_by(const char *const *names) {
    for (; *names; names++) {
        anything first = (anything)dlsym(RTLD_DEFAULT, *names);
        if (first && !is_ours(first)) return 1;
    }
    return 0;
}

static int all_passed_by; /* MPI began without a call of ours */
OWN int beginning;

#define PASSED_BY(C_NAME, FORTRAN_NAME) ({                                                                             \
    static int state_;                                                                                                 \
    if (UNLIKELY(!state_))                                                                                             \
        state_ = 1 + is_passed_by((const char *const[]){"MPI_" #C_NAME, "mpi_" #FORTRAN_NAME "_", "mpi_" #FORTRAN_NAME "_f08_", NULL}); \
    UNLIKELY(all_passed_by || state_ == 2); })

/* Readings of the processor clock: what of a stretch was not on a processor. Each notes the CPU that the thread is on. */

#define MOST_CPUS 8192
static u64 ran_on[MOST_CPUS / 64];

static void note_cpu(void) {
    int cpu = sched_getcpu();
    if (cpu >= 0 && cpu < MOST_CPUS) ran_on[cpu / 64] |= 1ull << cpu % 64;
}

static void read_clocks(int inside, u64 now, u64 length) {
    u64 ns = nanoseconds(CLOCK_MONOTONIC), cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID), wall = ns - read_ns;
    double scale = now > read_tick ? (double)wall / (double)(now - read_tick) : 0.0;
    double long_ns = length * scale, off = wall > cpu - read_cpu ? (double)(wall - (cpu - read_cpu)) : 0.0;
    double short_ns[2] = {unread[0] * scale, unread[1] * scale}, both = short_ns[0] + short_ns[1];
    double off_long = off < long_ns ? off : long_ns, off_short = off - off_long;
    double part = both > 0 ? off_short / both : 0.0;
    if (part > 1) part = 1;
    page->off_ns[0] += (u64)(short_ns[0] * part + (inside ? 0 : off_long));
    page->off_ns[1] += (u64)(short_ns[1] * part + (inside ? off_long : 0));
    page->read_ns[0] += (u64)(short_ns[0] + (inside ? 0 : long_ns));
    page->read_ns[1] += (u64)(short_ns[1] + (inside ? long_ns : 0));
    unread[0] = unread[1] = 0;
    read_ns = ns, read_tick = now, read_cpu = cpu;
    note_cpu();
    u64 at, there;
    read_both(CLOCK_MONOTONIC, &at, &there);
    page->clock[1].tick = at, page->clock[1].ns = there;
}

/* The run delay of this thread: how long it was runnable without a processor, of all its time. Kernels that do not count it print
   zeros: a thread that runs has been on a processor. The file is opened each time: the program may have closed a kept descriptor
   and opened a file of its own under the number. */
static u64 runnable_ns(void) {
    char text[64] = "";
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return NOT_KNOWN;
    long length = syscall(SYS_read, file, text, sizeof text - 1);
    close(file);
    unsigned long long ran, delay;
    return length > 0 && sscanf(text, "%llu %llu", &ran, &delay) == 2 && ran ? delay : NOT_KNOWN;
}

/* A thread that loses its processor has a long piece, which holds the delay; the rest is of the short pieces before it. */
static void read_core(int inside, u64 length) {
    u64 delay = runnable_ns();
    if (delay == NOT_KNOWN) return;
    u64 more = delay > read_delay ? delay - read_delay : 0, of_piece = length * ns_per_tick;
    if (of_piece > more) of_piece = more;
    page->delay_ns[inside] += of_piece;
    page->delay_ns[2] += more - of_piece;
    without_core[inside] += more;
    read_delay = delay;
}

static inline void pass(int inside, u64 now, u64 length) {
    if (UNLIKELY(length >= core_piece)) read_core(inside, length);
    if (UNLIKELY(length >= piece)) read_clocks(inside, now, length);
    else unread[inside] += length;
}

#include "counters.h"

/* Time inside MPI over the run: when the last bin is full, two become one in the other half, which is then shown. */

static void widen(void) {
    u64 shown = page->bins_shown, which = shown & 1, shift = shown >> 1;
    for (int i = 0; i < BINS; i++)
        page->bins[!which][i] = 2 * i + 1 < BINS ? page->bins[which][2 * i] + page->bins[which][2 * i + 1] : 0;
    __atomic_store_n(&page->bins_shown, (shift + 1) << 1 | !which, __ATOMIC_RELEASE);
}

static inline void spread(u64 from, u64 to) {
    from -= bin_began, to -= bin_began;
    while (UNLIKELY(to >> (page->bins_shown >> 1) >= BINS)) widen();
    u64 shift = page->bins_shown >> 1, *bins = page->bins[page->bins_shown & 1];
    while (UNLIKELY(from >> shift != to >> shift)) {
        u64 edge = ((from >> shift) + 1) << shift;
        bins[from >> shift] += edge - from;
        from = edge;
    }
    bins[from >> shift] += to - from;
}

/* A call */

static inline void enter(struct call *call, int function) {
    char *frame = __builtin_frame_address(0);
    call->counted = 0;
    if (!page || page->paused_since || page->ended) return;
    if (outermost && frame < outermost) return; /* the library calls itself */
    outermost = frame;
    call->counted = 1;
    call->function = function;
    u64 now = ticks();
    if (LIKELY(is_main)) {
        page->entered = now;
        page->inside = function + 1;
        end_piece(now);
        pass(0, now, now - last);
    }
    call->began = now;
}

static inline void leave(struct call *call) {
    if (!call->counted) return;
    u64 now = ticks(), length = now - call->began;
    outermost = NULL;
    if (LIKELY(is_main)) {
        pass(1, now, length);
        u64 read = length; /* a reading may cost the core: to the program that is time in the call */
        for (int turn = 0; UNLIKELY(read >= piece) && turn < 8; turn++) {
            u64 later = ticks();
            read = later - now;
            pass(1, later, read);
            length += read;
            now = later;
        }
    }
    if (traced) {
        struct event *event = &ring[__atomic_fetch_add(&page->events, 1, __ATOMIC_RELAXED) % page->ring];
        int told = is_main && read_delay != NOT_KNOWN;
        *event = (struct event){
            .began = call->began, .ended = now, .function = call->function, .peer = -1, .source = -1,
            .no_core_before = told ? without_core[0] : NOT_KNOWN, .no_core_within = told ? without_core[1] : NOT_KNOWN};
        if (is_main) without_core[0] = without_core[1] = 0;
    }
    if (LIKELY(is_main)) {
        if (start_piece(now, call->function)) {
            u64 later = ticks();
            length += later - now;
            now = later;
        }
        struct row *row = &slots[0].rows[call->function];
        row->calls++;
        row->ticks += length;
        if (length > row->longest) row->longest = length;
        page->mpi += length;
        page->last = last = now;
        page->inside = 0;
        spread(call->began, now);
    } else {
        struct row *row = &slots[1].rows[call->function];
        __atomic_fetch_add(&row->calls, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&row->ticks, length, __ATOMIC_RELAXED);
        if (length > row->longest) row->longest = length;
    }
}

static inline void add(u64 *to, u64 what) {
    if (LIKELY(is_main)) *to += what;
    else __atomic_fetch_add(to, what, __ATOMIC_RELAXED);
}

/* What a call carried. `C` and `F`: the language's way to hand over a number, a handle and a list. */

enum { C, F };

static inline word handle(word value) { return open_mpi ? value : (word)(int)value; }

static word c_handle(const char *converter, anything *kept, word fortran) {
    if (!open_mpi) return (word) * (int *)fortran;
    if (!*kept) *kept = find(converter);
    return *kept ? ((word(*)(word))*kept)((word) * (int *)fortran) : 0;
}

static inline word number(int language, word value) { return language == C ? (word)(int)value : (word) * (int *)value; }

static inline word type_of(int language, word value) {
    static anything converter;
    return language == C ? handle(value) : c_handle("PMPI_Type_f2c", &converter, value);
}

static inline word comm_of(int language, word value) {
    static anything converter;
    return language == C ? handle(value) : c_handle("PMPI_Comm_f2c", &converter, value);
}

static inline u64 type_bytes(word type) {
    int size = 0;
    anything ask = REAL("PMPI_Type_size");
    if (!ask || ((int (*)(word, int *))ask)(type, &size) || size < 0) return 0;
    return size;
}

static int comm_number(anything ask, word comm) {
    int value = 0;
    return ask && !((int (*)(word, int *))ask)(comm, &value) ? value : 0;
}

static int size_of(word comm) { return comm_number(REAL("PMPI_Comm_size"), comm); }
static int rank_in(word comm) { return comm_number(REAL("PMPI_Comm_rank"), comm); }

static int in_place(int language, word buffer) {
    static void *fortran;
    if (language == C) return open_mpi ? buffer == 1 : buffer == -1;
    if (!fortran) fortran = dlsym(RTLD_DEFAULT, "mpi_fortran_in_place_");
    return fortran && (void *)buffer == fortran;
}

/* World ranks of a communicator's members, of the last ones used, and what all of them call it: a number made of these ranks, and of how
   many communicators of the same ranks had been made before, which is in all of them the same; the lowest bits tell how many they are. */

#define KEPT 64
#define NUMBERED 1024
#define SIZE_BITS 24
static struct {
    word comm;
    int size, *world;
    u64 identity;
} kept[KEPT];
static struct {
    word comm; /* 0: empty; -1: was freed */
    u64 number;
} numbered[NUMBERED];
static struct {
    u64 members, made;
} alike[NUMBERED];
static u64 world_identity, frees;
static int busy;

static void lock(void) { while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)); }
static void unlock(void) { __atomic_clear(&busy, __ATOMIC_RELEASE); }

static u64 mixed(u64 sum, u64 next) {
    sum = (sum ^ next) * 0x9E3779B97F4A7C15ull;
    return sum ^ sum >> 29;
}

static u64 hash_of(const int *ranks, int size) {
    u64 sum = size;
    for (int i = 0; i < size; i++) sum = mixed(sum, (u64)ranks[i] + 1);
    return sum;
}

/* Of a group with a bridge to another one both sides say the same, and no number of members. */
static u64 identity_of(u64 members, u64 number, int size) {
    return mixed(members, number) >> 1 >> SIZE_BITS << SIZE_BITS | (size < 1 << SIZE_BITS ? size : 0);
}

static int place_for(u64 key) { return key * 0x9E3779B97F4A7C15ull >> 54; }

static u64 number_of(word comm) {
    for (int i = 0, place = place_for(comm); i < NUMBERED && numbered[place].comm; i++, place = (place + 1) % NUMBERED)
        if (numbered[place].comm == comm) return numbered[place].number;
    return 0;
}

static int ranks_of(const char *which, word comm, int **ranks) {
    word group = 0, all = 0;
    int size = 0, *own, *there;
    anything members_of = find(which), size_of_group = REAL("PMPI_Group_size"), between = REAL("PMPI_Group_translate_ranks");
    anything drop = REAL("PMPI_Group_free");
    if (!members_of || !size_of_group || !between || !drop) return 0;
    ((int (*)(word, word *))members_of)(comm, &group);
    ((int (*)(word, word *))REAL("PMPI_Comm_group"))(world, &all);
    ((int (*)(word, int *))size_of_group)(group, &size);
    own = malloc(size * sizeof *own), there = malloc(size * sizeof *there);
    if (own && there) {
        for (int i = 0; i < size; i++) own[i] = i;
        ((int (*)(word, int, int *, word, int *))between)(group, size, own, all, there);
    }
    ((int (*)(word *))drop)(&group);
    ((int (*)(word *))drop)(&all);
    free(own);
    *ranks = there;
    return there ? size : 0;
}

/* Under the lock. Of a communicator with two groups the other one's ranks are those that messages go to. */
static int keep(word comm) {
    int place = (u64)(comm * 0x9E3779B97F4A7C15ull) >> 58;
    if (kept[place].comm == comm) return place;
    free(kept[place].world);
    kept[place].world = NULL;
    int two = comm_number(REAL("PMPI_Comm_test_inter"), comm);
    int size = kept[place].size = ranks_of(two ? "PMPI_Comm_remote_group" : "PMPI_Comm_group", comm, &kept[place].world);
    u64 members = hash_of(kept[place].world, size);
    if (two) {
        int *own = NULL, mine = ranks_of("PMPI_Comm_group", comm, &own);
        members += hash_of(own, mine);
        free(own);
    }
    kept[place].identity = identity_of(members, number_of(comm), two ? 0 : size);
    kept[place].comm = comm;
    return place;
}

static int world_rank(word comm, int rank) {
    if (comm == world || rank < 0) return rank;
    lock();
    int place = keep(comm), answer = rank < kept[place].size ? kept[place].world[rank] : -1;
    unlock();
    return answer;
}

static u64 identity(word comm) {
    if (comm == world) return world_identity;
    lock();
    u64 answer = kept[keep(comm)].identity;
    unlock();
    return answer;
}

static void identify_world(int size) {
    int *ranks = malloc(size * sizeof *ranks);
    for (int i = 0; ranks && i < size; i++) ranks[i] = i;
    world_identity = ranks ? identity_of(hash_of(ranks, size), 0, size) : 0;
    free(ranks);
}

static word comm_at(int language, word at) {
    return language == C ? (open_mpi ? *(word *)at : (word) * (int *)at) : comm_of(language, at);
}

/* A communicator has been made: it is one more of its members. */
static void made(struct call *call, int language, word at) {
    (void)call;
    if (!traced || !no_comm) return;
    word comm = comm_at(language, at);
    if (comm == no_comm) return; /* this rank is in none of the parts */
    lock();
    int entry = keep(comm), place;
    u64 members = hash_of(kept[entry].world, kept[entry].size), number = 1;
    kept[entry].comm = 0;
    for (int i = (place = place_for(members), 0); i < NUMBERED; i++, place = (place + 1) % NUMBERED)
        if (!alike[place].made || alike[place].members == members) {
            alike[place].members = members;
            number = ++alike[place].made;
            break;
        }
    for (int i = (place = place_for(comm), 0); i < NUMBERED; i++, place = (place + 1) % NUMBERED)
        if (!numbered[place].comm || numbered[place].comm == -1) {
            numbered[place].comm = comm, numbered[place].number = number;
            break;
        }
    unlock();
}

/* Its handle may be given to another one. */
static void release(int language, word at) {
    word comm = traced ? comm_at(language, at) : 0;
    lock();
    for (int i = 0; i < KEPT; i++) kept[i].comm = 0;
    for (int i = 0, place = place_for(comm); traced && i < NUMBERED && numbered[place].comm; i++, place = (place + 1) % NUMBERED)
        if (numbered[place].comm == comm) numbered[place].comm = -1;
    frees++;
    unlock();
}

static inline int bin_of(u64 bytes) { return bytes ? 64 - __builtin_clzll(bytes) : 0; }

/* The row of a call in the trace; NULL where another thread's came after it. */
static struct event *row_of(struct call *call) {
    struct event *event = &ring[(__atomic_load_n(&page->events, __ATOMIC_RELAXED) - 1) % page->ring];
    return event->began == call->began && event->function == (u64)call->function ? event : NULL;
}

static void tell(struct call *call, int peer, u64 bytes, word comm) {
    struct event *event = traced ? row_of(call) : NULL;
    if (!event) return;
    event->peer = peer, event->bytes = bytes;
    if (comm) event->comm = identity(comm);
}

static void carried(struct call *call, u64 bytes, int kind) {
    struct slot *slot = &slots[!is_main];
    add(&slot->rows[call->function].bytes, bytes);
    if (kind >= 0) add(&slot->sizes[kind][bin_of(bytes)], 1);
}

static void sent(struct call *call, u64 bytes, int peer, word comm) {
    struct slot *slot = &slots[!is_main];
    carried(call, bytes, 0);
    if (peer >= 0 && (u64)peer < page->peers) {
        struct peer *to = (struct peer *)((char *)page + page->peers_at) + (is_main ? 0 : page->peers) + peer;
        add(&to->messages, 1);
        add(&to->bytes, bytes);
    } else add(&slot->unplaced, 1);
    tell(call, peer, bytes, comm);
}

static void message(struct call *call, int language, word count, word type, word to, word comm) {
    int rank = number(language, to);
    if (rank < 0) return; /* MPI_PROC_NULL */
    comm = comm_of(language, comm);
    sent(call, number(language, count) * type_bytes(type_of(language, type)), world_rank(comm, rank), comm);
}

/* Whom a receive waits for: a world rank, or */
enum { ANYONE = -1, NO_ONE = -2 };

static int sender_of(word comm, int rank) {
    if (rank >= 0) return world_rank(comm, rank);
    return rank == (open_mpi ? -1 : -2) ? ANYONE : NO_ONE;
}

static void received(struct call *call, int language, word from, word comm) {
    if (!traced) return;
    comm = comm_of(language, comm);
    int source = sender_of(comm, number(language, from));
    tell(call, source, 0, comm);
    struct event *event = row_of(call);
    if (event) event->source = source;
}

/* A status tells whom a receive of anyone took, and is needed also where the program wants none. */

#define STATUS_BYTES (open_mpi ? 24 : 20)
typedef struct { word words[4]; } status_room;

static int is_ignored(word status) { return status == (open_mpi ? 0 : 1); }
static int source_in(word status) { return *(int *)(status + (open_mpi ? 0 : 8)); }

static inline word status_for(word status, word from, status_room *room) {
    return traced && (int)from < 0 && is_ignored(status) ? (word)room : status;
}

/* `status`: 0 where it is not known. */
static void took(struct call *call, int language, word from, word comm, word status) {
    struct event *event = traced ? row_of(call) : NULL;
    if (!event) return;
    comm = comm_of(language, comm);
    int source = sender_of(comm, number(language, from));
    if (source == ANYONE && status && !is_ignored(status)) source = sender_of(comm, source_in(status));
    event->source = source;
    event->comm = identity(comm);
}

/* In which communicator a collective was. */
static void met(struct call *call, int language, word comm) {
    struct event *event = traced ? row_of(call) : NULL;
    if (event) event->comm = identity(comm_of(language, comm));
}

static void all_of(struct call *call, u64 bytes, word comm) {
    carried(call, bytes, call->function >= FIRST_COLLECTIVE && call->function < AFTER_COLLECTIVE ? 1 : -1);
    tell(call, -1, bytes, comm);
}

static void block(struct call *call, int language, word count, word type) {
    all_of(call, number(language, count) * type_bytes(type_of(language, type)), 0);
}

static void each(struct call *call, int language, word count, word type, word comm) {
    comm = comm_of(language, comm);
    all_of(call, number(language, count) * type_bytes(type_of(language, type)) * size_of(comm), comm);
}

static void vector(struct call *call, int language, word counts, word type, word comm) {
    comm = comm_of(language, comm);
    u64 sum = 0;
    for (int i = 0, size = size_of(comm); i < size; i++) sum += ((int *)counts)[i];
    all_of(call, sum * type_bytes(type_of(language, type)), comm);
}

static void types(struct call *call, int language, word counts, word list, word comm) {
    comm = comm_of(language, comm);
    u64 sum = 0;
    for (int i = 0, size = size_of(comm); i < size; i++) {
        word type = language == C ? (open_mpi ? ((word *)list)[i] : (word)((int *)list)[i]) : (word)&((int *)list)[i];
        sum += ((int *)counts)[i] * type_bytes(type_of(language, type));
    }
    all_of(call, sum, comm);
}

static int is_root(int language, word root, word comm) {
    int rank = number(language, root);
    return rank >= 0 && rank == rank_in(comm_of(language, comm));
}

/* Persistent requests: what Start sends was said when they were made. */

#define PROMISED 1024
static struct {
    word request, comm;
    u64 bytes;
    int peer;
} promised[PROMISED];

static word request_at(int language, word at) { return language == C && open_mpi ? *(word *)at : (word) * (int *)at; }
static int place_of(word request) { return (u64)(request * 0x9E3779B97F4A7C15ull) >> 54; }

static void persistent(struct call *call, int language, word count, word type, word to, word comm, word request) {
    int rank = number(language, to);
    if (rank < 0) return;
    word key = request_at(language, request), c = comm_of(language, comm);
    u64 bytes = number(language, count) * type_bytes(type_of(language, type));
    int peer = world_rank(c, rank);
    (void)call;
    lock();
    for (int i = 0, place = place_of(key); i < PROMISED; i++, place = (place + 1) % PROMISED)
        if (!promised[place].request || promised[place].request == key || promised[place].request == -1) {
            promised[place].request = key, promised[place].comm = c;
            promised[place].bytes = bytes, promised[place].peer = peer;
            break;
        }
    unlock();
}

static int look_up(word key) {
    for (int i = 0, place = place_of(key); i < PROMISED && promised[place].request; i++, place = (place + 1) % PROMISED)
        if (promised[place].request == key) return place;
    return -1;
}

static void start_keyed(struct call *call, word key) {
    lock();
    int place = look_up(key), peer = place < 0 ? 0 : promised[place].peer;
    word comm = place < 0 ? 0 : promised[place].comm;
    u64 bytes = place < 0 ? 0 : promised[place].bytes;
    unlock();
    if (place >= 0) sent(call, bytes, peer, comm);
}

static void startall(struct call *call, int language, word count, word requests) {
    for (word i = 0, n = number(language, count); i < n; i++)
        start_keyed(call, request_at(language, requests + i * (language == C && open_mpi ? sizeof(word) : sizeof(int))));
}

static void forget(word key) {
    lock();
    int place = look_up(key);
    if (place >= 0) promised[place].request = -1;
    unlock();
}

/* Receives of anyone that are under way: whom they took is known when they are waited for. Only in C: the places are those of its
   statuses. What ends otherwise, by a test or as one of some, stays unknown. */

static struct {
    word request, comm;
    u64 number, began, frees;
} awaited[PROMISED];
static int awaited_count;

static void awaiting(struct call *call, word from, word comm, word request) {
    struct event *event = traced && (int)from < 0 && sender_of(world, (int)from) == ANYONE ? row_of(call) : NULL;
    if (!event) return;
    word key = request_at(C, request);
    u64 number = __atomic_load_n(&page->events, __ATOMIC_RELAXED) - 1;
    lock();
    for (int i = 0; i < PROMISED; i++)
        if (!awaited[i].request || awaited[i].request == key) {
            awaited_count += !awaited[i].request;
            awaited[i].request = key, awaited[i].comm = comm_of(C, comm);
            awaited[i].number = number, awaited[i].began = call->began, awaited[i].frees = frees;
            break;
        }
    unlock();
}

static int awaited_at(word key) {
    for (int i = 0; key && i < PROMISED && awaited_count; i++)
        if (awaited[i].request == key) return i;
    return -1;
}

static void settle(int place, word status) {
    word comm = awaited[place].comm;
    struct event *event = &ring[awaited[place].number % page->ring];
    int there = page->events - awaited[place].number < page->ring && event->began == awaited[place].began;
    if (there && awaited[place].frees == frees && status) event->source = sender_of(comm, source_in(status));
    lock();
    awaited_count -= awaited[place].request != 0;
    awaited[place].request = 0;
    unlock();
}

static void give_up(void) {
    if (LIKELY(!awaited_count)) return;
    lock();
    for (int i = 0; i < PROMISED; i++) awaited[i].request = 0;
    awaited_count = 0;
    unlock();
}

/* Of a wait for many: where each stands among those that are awaited, and room for statuses that the program does not want. */
struct gathered {
    int count, *places;
    char *own;
};

static void gather(struct gathered *all, word count, word requests, word *statuses) {
    *all = (struct gathered){0};
    if (LIKELY(!awaited_count) || (int)count <= 0) return;
    all->count = (int)count;
    all->places = malloc(all->count * sizeof *all->places);
    for (int i = 0; all->places && i < all->count; i++)
        all->places[i] = awaited_at(request_at(C, requests + i * (open_mpi ? sizeof(word) : sizeof(int))));
    if (all->places && is_ignored(*statuses) && (all->own = malloc(all->count * STATUS_BYTES))) *statuses = (word)all->own;
}

static void settle_all(struct gathered *all, word statuses, int known) {
    known &= !is_ignored(statuses);
    for (int i = 0; all->places && i < all->count; i++)
        if (all->places[i] >= 0) settle(all->places[i], known ? statuses + i * STATUS_BYTES : 0);
    free(all->places);
    free(all->own);
}

/* MPICH before 4.2 over UCX's TCP waits for ever in its end where a rank comes later than its peers (pmodels/mpich#6596): they read
   from their launcher until all have come, and answer nobody meanwhile. This reading answers. */

#define MOST_WORKERS 16
#define WAIT_MS 1

static void *workers[MOST_WORKERS];
static int worker_count;
static ssize_t (*real_read)(int, void *, size_t);
OWN int ending; /* this thread is in MPI_Finalize */

int ucp_worker_create(void *context, const void *parameters, void **worker) {
    anything real = REAL("ucp_worker_create");
    if (!real) return -1;
    int answer = ((int (*)(void *, const void *, void **))real)(context, parameters, worker);
    if (!answer && worker_count < MOST_WORKERS) workers[worker_count++] = *worker;
    return answer;
}

void ucp_worker_destroy(void *worker) {
    anything real = REAL("ucp_worker_destroy");
    worker_count = 0;
    if (real) ((void (*)(void *))real)(worker);
}

static void answer_until_readable(int file) {
    unsigned (*progress)(void *) = (unsigned (*)(void *))find("ucp_worker_progress");
    struct pollfd awaited = {file, POLLIN, 0};
    while (progress && !poll(&awaited, 1, WAIT_MS))
        for (int i = 0; i < worker_count; i++) progress(workers[i]);
}

ssize_t read(int file, void *into, size_t size) {
    if (UNLIKELY(ending && worker_count)) answer_until_readable(file);
    return LIKELY(real_read) ? real_read(file, into, size) : syscall(SYS_read, file, into, size);
}

/* Beginning and end */

static int room_for(size_t size) {
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > size);
}

static struct page *map_file(size_t size) {
    int file = room_for(size) ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644) : -1;
    if (file < 0) return NULL;
    void *there = MAP_FAILED;
    if (!posix_fallocate(file, 0, size)) there = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    else unlink(path);
    close(file);
    return there == MAP_FAILED ? NULL : there;
}

/* The least of some rows of calls: one in which this rank loses its core tells of the others on the machine. */
static void measure_cost(void) {
    struct call call;
    u64 began = nanoseconds(CLOCK_THREAD_CPUTIME_ID), ended = nanoseconds(CLOCK_THREAD_CPUTIME_ID), least = ~0ull;
    piece = core_piece = ~0ull;
    last = bin_began = ticks();
    for (int row = 0; row < CALIBRATED / CALLS_IN_ROW; row++) {
        u64 now = ticks();
        for (int i = 0; i < CALLS_IN_ROW; i++) enter(&call, 0), leave(&call);
        u64 taken = ticks() - now;
        if (taken < least) least = taken;
    }
    page->call_cost = least * (CALIBRATED / CALLS_IN_ROW);
    page->reading_ns = ended - began;
    memset(slots, 0, 2 * sizeof *slots);
    memset(page->bins, 0, sizeof page->bins);
    page->mpi = page->events = unread[0] = unread[1] = 0;
}

/* A reading takes some microseconds, so only pieces that are long against that are followed by one. */
static void watch_core(double ticks_per_ns) {
    ns_per_tick = 1 / ticks_per_ns;
    page->delay_ns[2] = NOT_KNOWN;
    u64 before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    if (runnable_ns() == NOT_KNOWN || (read_delay = runnable_ns()) == NOT_KNOWN) return;
    u64 cost = (nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before) / 2 * PIECES_PER_READING;
    core_piece = (cost > LEAST_CORE_PIECE_NS ? cost : LEAST_CORE_PIECE_NS) * ticks_per_ns;
    without_core[0] = without_core[1] = 0;
    page->delay_ns[2] = 0;
}

static const char *const all_names[FUNCTIONS];

/* Objects whose functions stand before the library's, ours excluded: "libdarshan.so:libmpiP.so". */
static void note_tool(anything function, anything library) {
    Dl_info object, of_library;
    if (!function || !library || function == library || is_ours(function)) return;
    if (!dladdr((void *)function, &object) || !dladdr((void *)library, &of_library) || of_library.dli_fbase == object.dli_fbase) return;
    const char *slash = strrchr(object.dli_fname, '/'), *name = slash ? slash + 1 : object.dli_fname;
    size_t there = strlen(page->tools);
    if (!strstr(page->tools, name) && there + strlen(name) + 2 < sizeof page->tools)
        sprintf(page->tools + there, "%s%s", there ? ":" : "", name);
}

static void note_tools(void) {
    static const char *const of_fortran[] = {"pmpi_init_", "pmpi_send_", "pmpi_finalize_", "pmpi_init_f08_", "pmpi_send_f08_", "pmpi_finalize_f08_"};
    for (size_t i = 0; i < FUNCTIONS + sizeof of_fortran / sizeof *of_fortran; i++) {
        const char *name = i < FUNCTIONS ? all_names[i] : of_fortran[i - FUNCTIONS];
        anything library = (anything)dlsym(RTLD_NEXT, name);
        note_tool((anything)dlsym(RTLD_NEXT, name + 1), library);
        note_tool((anything)dlsym(RTLD_DEFAULT, name + 1), library);
    }
}

/* What this process held at its end, as text: analysis/mpi/ways.py reads it. The lines of /proc/self/maps with a device, shared
   memory or a component of the library; device files; TCP connections with their bytes: "tcp LOCAL PORT PEER PORT ACKED"; and
   where the thread that began MPI ran, then and at its end: "placed CPU NODE SOCKET CORE ALLOWED"; between: "ran CPUS". */

static char placed_first[512], placed_last[512];

static int topology(unsigned cpu, const char *what) {
    char name[128];
    int value = -1;
    snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, what);
    FILE *from = fopen(name, "re");
    if (from && fscanf(from, "%d", &value) != 1) value = -1;
    if (from) fclose(from);
    return value;
}

static void note_place(char *text, size_t size) {
    char line[512], allowed[256] = "?";
    unsigned cpu = 0, node = 0;
    int error = errno;
    FILE *status = syscall(SYS_getcpu, &cpu, &node, NULL) ? NULL : fopen("/proc/thread-self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Cpus_allowed_list: %255s", allowed) == 1) break;
    if (status) {
        fclose(status);
        int socket = topology(cpu, "physical_package_id"), core = topology(cpu, "core_id");
        snprintf(text, size, "placed %u %u %d %d %s\n", cpu, node, socket, core, allowed);
    }
    errno = error;
}

static void note_ran(FILE *to) {
    const char *before = "ran ";
    for (int first = 0, next; first < MOST_CPUS; first = next + 1) {
        for (next = first; next < MOST_CPUS && ran_on[next / 64] >> next % 64 & 1; next++) {}
        if (next == first) continue;
        fprintf(to, next - first > 1 ? "%s%d-%d" : "%s%d", before, first, next - 1);
        before = ",";
    }
    fputs(*before == ',' ? "\n" : "", to);
}

static int endpoint(int file, int peer, char *text, size_t size) {
    union { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; } at;
    socklen_t length = sizeof at;
    char address[INET6_ADDRSTRLEN];
    if ((peer ? getpeername : getsockname)(file, &at.any, &length)) return 0;
    int is_four = at.any.sa_family == AF_INET;
    if (!is_four && at.any.sa_family != AF_INET6) return 0;
    inet_ntop(at.any.sa_family, is_four ? (void *)&at.four.sin_addr : (void *)&at.six.sin6_addr, address, sizeof address);
    return snprintf(text, size, "%s %d", address, ntohs(is_four ? at.four.sin_port : at.six.sin6_port)) > 0;
}

static void note_files(FILE *to) {
    DIR *files = opendir("/proc/self/fd");
    if (!files) return;
    for (struct dirent *entry; (entry = readdir(files));) {
        char local[64], peer[64], name[256];
        struct tcp_info info;
        socklen_t length = sizeof info;
        int file = atoi(entry->d_name);
        ssize_t size = readlinkat(dirfd(files), entry->d_name, name, sizeof name - 1);
        if (size <= 0) continue;
        name[size] = 0;
        memset(&info, 0, sizeof info);
        if (!strncmp(name, "/dev/", 5)) fprintf(to, "%s\n", name);
        else if (!strncmp(name, "socket:", 7) && !getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &length)
                 && endpoint(file, 0, local, sizeof local) && endpoint(file, 1, peer, sizeof peer))
            fprintf(to, "tcp %s %s %llu\n", local, peer, (unsigned long long)info.tcpi_bytes_acked);
    }
    closedir(files);
}

static void note_ways(void) {
    static char name[sizeof path + 8], line[4400], before[sizeof line];
    int error = errno;
    snprintf(name, sizeof name, "%s.ways", path);
    FILE *to = room_for(1 << 20) ? fopen(name, "wxe") : NULL, *maps = to ? fopen("/proc/self/maps", "re") : NULL;
    while (maps && fgets(line, sizeof line, maps)) {
        char *file = strchr(line, '/');
        if (!file || !strcmp(file, before)) continue;
        strcpy(before, file);
        if (!strncmp(file, "/dev/", 5) || !strncmp(file, "/SYSV", 5) || strstr(file, "/mca_")) fputs(file, to);
    }
    if (maps) fclose(maps);
    if (is_main) note_place(placed_last, sizeof placed_last);
    if (to) fputs(placed_first, to), fputs(placed_last, to), note_ran(to), note_files(to), fclose(to);
    errno = error;
}

static void begin(u64 called) {
    if (page || !*path) return;
    void *known = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world"); /* a program may hold a copy of its own, which is the one that counts */
    world = known ? (word)known : (word)find("ompi_mpi_comm_world");
    open_mpi = world != 0;
    if (!open_mpi) world = 0x44000000;
    known = open_mpi ? dlsym(RTLD_DEFAULT, "ompi_mpi_comm_null") : NULL;
    no_comm = open_mpi ? (known ? (word)known : (word)find("ompi_mpi_comm_null")) : 0x04000000;
    int rank = rank_in(world), size = size_of(world), peers = size < MOST_PEERS ? size : MOST_PEERS;
    size_t at_peers = sizeof(struct page) + 2 * sizeof(struct slot), at_ring = at_peers + 2 * peers * sizeof(struct peer);
    size_t at_counters = at_ring + (traced ? RING : 0) * sizeof(struct event), whole = at_counters + sizeof(struct counters);
    struct page *made = map_file(whole);
    if (!made) return;
    slots = (struct slot *)(made + 1);
    ring = (struct event *)((char *)made + at_ring);
    made->bytes = whole, made->functions = FUNCTIONS, made->bin_count = BINS, made->ring = traced ? RING : 0;
    made->peers = peers, made->peers_at = at_peers, made->ring_at = at_ring;
    made->rank = rank, made->size = size, made->process = getpid(), made->table = TABLE;
    made->bins_shown = FIRST_SHIFT << 1;
    made->called = called;
    is_main = 1;
    page = made;
    measure_cost();
    made->clock[0].tick = first_tick, made->clock[0].ns = first_ns;
    made->real_offset_ns = real_offset();
    read_both(CLOCK_MONOTONIC, &read_tick, &read_ns);
    read_cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    made->clock[1].tick = read_tick, made->clock[1].ns = read_ns;
    piece = made->reading_ns * PIECES_PER_READING > LEAST_PIECE_NS ? made->reading_ns * PIECES_PER_READING : LEAST_PIECE_NS;
    piece = (u64)(piece * ((double)(read_tick - first_tick) / (double)(read_ns - first_ns + 1)));
    if (traced) identify_world(size);
    note_tools();
    note_place(placed_first, sizeof placed_first);
    watch_core((double)(read_tick - first_tick) / (double)(read_ns - first_ns + 1));
    open_counters((struct counters *)((char *)made + at_counters));
    made->began = made->last = last = bin_began = ticks();
    start_piece(last, FUNCTIONS);
    __atomic_store_n(&made->magic, MAGIC, __ATOMIC_RELEASE);
}

static void end(u64 now, u64 how) {
    if (!page || page->ended) return;
    if (is_main && !page->inside) {
        end_piece(now);
        pass(0, now, now - last), read_clocks(0, now, 0);
        if (read_delay != NOT_KNOWN) read_core(0, 0);
    }
    page->how = how;
    __atomic_store_n(&page->ended, now, __ATOMIC_RELEASE);
    note_ways();
}

static word init_with(anything real, word a0, word a1, word a2, word a3) {
    u64 called = ticks();
    if (!real) return MISSING;
    beginning++;
    word answer = ((word(*)(word, word, word, word))real)(a0, a1, a2, a3);
    beginning--;
    if ((int)answer == 0) begin(called);
    return answer;
}

int MPI_Init(word a0, word a1) { return init_with(NEXT("PMPI_Init"), a0, a1, 0, 0); }
int MPI_Init_thread(word a0, word a1, word a2, word a3) { return init_with(NEXT("PMPI_Init_thread"), a0, a1, a2, a3); }
int PMPI_Init(word a0, word a1) {
    all_passed_by |= !beginning;
    return init_with(REAL("PMPI_Init"), a0, a1, 0, 0);
}
int PMPI_Init_thread(word a0, word a1, word a2, word a3) {
    all_passed_by |= !beginning;
    return init_with(REAL("PMPI_Init_thread"), a0, a1, a2, a3);
}

static int finalize_with(anything real) {
    end(ticks(), BY_FINALIZE);
    ending++;
    int answer = real ? ((int (*)(void))real)() : MISSING;
    ending--;
    if (page) page->finalized = ticks();
    return answer;
}

int MPI_Finalize(void) { return finalize_with(NEXT("PMPI_Finalize")); }
int PMPI_Finalize(void) { return finalize_with(REAL("PMPI_Finalize")); }

static int abort_with(anything real, word comm, word code) {
    end(ticks(), BY_ABORT);
    return real ? ((int (*)(word, word))real)(comm, code) : MISSING;
}

int MPI_Abort(word comm, word code) { return abort_with(NEXT("PMPI_Abort"), comm, code); }
int PMPI_Abort(word comm, word code) { return abort_with(REAL("PMPI_Abort"), comm, code); }

int MPI_Pcontrol(int level, word a1, word a2, word a3, word a4) {
    anything real = NEXT("PMPI_Pcontrol"); /* tools have arguments of their own, which come in registers */
    if (page && is_main && !page->ended) {
        u64 now = ticks();
        if (level == 0 && !page->paused_since) {
            end_piece(now);
            pass(0, now, now - last);
            page->paused_since = now;
        } else if (level && page->paused_since) {
            u64 ns = nanoseconds(CLOCK_MONOTONIC);
            page->paused += now - page->paused_since;
            page->paused_since = 0;
            page->last = last = read_tick = now, read_ns = ns, read_cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
            unread[0] = unread[1] = 0;
            if (read_delay != NOT_KNOWN) read_delay = runnable_ns();
            without_core[0] = without_core[1] = 0;
            start_piece(now, FUNCTIONS);
        }
    }
    return real ? ((int (*)(int, ...))real)(level, a1, a2, a3, a4) : 0;
}

/* Fortran of Open MPI does not pass by the functions of C; that of MPICH does, and is counted there. */

#define FORTRAN_LIFE(suffix)                                                                                        \
    void mpi_init##suffix(word error) {                                                                             \
        u64 called = ticks();                                                                                       \
        anything real = NEXT("pmpi_init" #suffix);                                                                  \
        beginning++;                                                                                                \
        if (real) ((void (*)(word))real)(error);                                                                    \
        beginning--;                                                                                                \
        begin(called);                                                                                              \
    }                                                                                                               \
    void mpi_init_thread##suffix(word wanted, word given, word error) {                                             \
        u64 called = ticks();                                                                                       \
        anything real = NEXT("pmpi_init_thread" #suffix);                                                           \
        beginning++;                                                                                                \
        if (real) ((void (*)(word, word, word))real)(wanted, given, error);                                         \
        beginning--;                                                                                                \
        begin(called);                                                                                              \
    }                                                                                                               \
    void mpi_finalize##suffix(word error) {                                                                         \
        anything real = NEXT("pmpi_finalize" #suffix);                                                              \
        end(ticks(), BY_FINALIZE);                                                                                  \
        if (real) ((void (*)(word))real)(error);                                                                    \
        if (page) page->finalized = ticks();                                                                        \
    }                                                                                                               \
    void mpi_abort##suffix(word comm, word code, word error) {                                                      \
        anything real = NEXT("pmpi_abort" #suffix);                                                                 \
        end(ticks(), BY_ABORT);                                                                                     \
        if (real) ((void (*)(word, word, word))real)(comm, code, error);                                            \
    }

FORTRAN_LIFE(_)
FORTRAN_LIFE(_f08_)

#include "wrappers.h"

/* A child has the map of its parent until it executes another program. */
static void in_child(void) { page = NULL; path[0] = 0; }

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));

__attribute__((constructor)) static void prepare(void) {
    real_read = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    const char *told = getenv("RANKWIRE_MPI_PROFILE"), *colon = told ? strchr(told, ':') : NULL;
    if (!colon || strlen(colon) > sizeof path - 1) return;
    traced = !strncmp(told, "trace:", 6);
    strcpy(path, colon + 1);
    choose_clock();
    read_both(CLOCK_MONOTONIC, &first_tick, &first_ns);
    if (__register_atfork) __register_atfork(NULL, NULL, in_child, NULL);
}

__attribute__((destructor)) static void finish(void) { end(ticks(), BY_EXIT); }
