/* Events of the processor and the kernel outside of MPI, of the thread that began MPI: in user mode alone, which the kernel permits to
   every user (kernel.perf_event_paranoid of 2), without threads and children, so that they are of the same time as the split.

   One group is read as a call begins and as it ends: what the library does, polling above all, is not counted. A reading is two
   system calls, many times what a short message takes. They may take 1 % of the time outside MPI after each function, so that short
   pieces between calls of one kind are skipped while long ones after another kind are counted. */

#define READ_SHARE 100
#define FREE_PIECES 10 /* after each function, for which a run need not be long yet */
#define LEAST_FILE 960 /* numbers that programs hardly use, of 1024 */
#define GROUP_FORMAT (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

struct reading {
    u64 count, enabled, running, values[COUNTED];
};

static struct counters *counters;
static int group = -1, events[COUNTED], event_count, is_counting; /* is_counting: `piece_start` is of this piece */
static u64 group_id, piece_tick, free_ticks;
static struct { u64 outside, reading; } after[FUNCTIONS + 1], *previous; /* ticks after each function; the last one is no call */
static struct reading piece_start;

/* The program may have closed the file and opened one of its own under the number, of which nothing may be read. */
static int read_group(struct reading *to) {
    int error = errno;
    u64 id;
    if (!ioctl(group, PERF_EVENT_IOC_ID, &id) && id == group_id && syscall(SYS_read, group, to, sizeof *to) > 0) return 1;
    for (int i = 0; i < event_count; i++) counters->errors[events[i]] = EBADF;
    group = -1;
    errno = error;
    return 0;
}

static inline int start_piece(u64 now, int function) {
    if (group < 0) return 0;
    piece_tick = now;
    previous = &after[function];
    is_counting = (previous->reading + 2 * counters->reading) * READ_SHARE <= previous->outside + free_ticks;
    if (!is_counting) counters->skipped++;
    else is_counting = read_group(&piece_start);
    return is_counting;
}

static void count_piece(u64 now) {
    struct reading ended;
    is_counting = 0;
    if (!read_group(&ended)) return;
    for (int i = 0; i < event_count; i++) counters->values[events[i]] += ended.values[i] - piece_start.values[i];
    counters->enabled += ended.enabled - piece_start.enabled;
    counters->running += ended.running - piece_start.running;
    counters->counted += now - piece_tick;
    counters->readings += 2;
    previous->reading += 2 * counters->reading;
}

static inline void end_piece(u64 now) {
    if (previous) previous->outside += now - piece_tick;
    if (UNLIKELY(is_counting)) count_piece(now);
}

static void note_level(void) {
    FILE *from = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int level;
    if (from && fscanf(from, "%d", &level) == 1 && level >= -1) counters->level = level + 2;
    if (from) fclose(from);
}

/* The first that can be opened leads. It starts when all are open: the kernel adds those of another kind late to a group that runs. */
static void open_event(int number) {
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    struct perf_event_attr attributes = {
        .type = counted_events[number].type, .config = counted_events[number].config, .size = PERF_ATTR_SIZE_VER0,
        .read_format = GROUP_FORMAT, .disabled = group < 0, .exclude_kernel = 1, .exclude_hv = 1};
    int file = syscall(SYS_perf_event_open, &attributes, 0, -1, group, 0);
    int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, limit.rlim_cur > LEAST_FILE + COUNTED ? LEAST_FILE : (int)limit.rlim_cur / 2);
    if (moved < 0) counters->errors[number] = errno;
    else events[event_count++] = number;
    if (file >= 0) close(file);
    if (group < 0) group = moved;
}

static void open_counters(struct counters *to) {
    int error = errno;
    counters = to;
    counters->version = COUNTERS_VERSION;
    note_level();
    for (int i = 0; i < COUNTED; i++) open_event(i);
    if (group >= 0 && (ioctl(group, PERF_EVENT_IOC_ID, &group_id) || ioctl(group, PERF_EVENT_IOC_ENABLE, 0))) group = -1;
    counters->reading = ~0ull;
    for (int i = 0; group >= 0 && i < CALLS_IN_ROW; i++) {
        u64 before = ticks();
        read_group(&piece_start);
        u64 taken = ticks() - before;
        if (taken < counters->reading) counters->reading = taken;
    }
    free_ticks = FREE_PIECES * 2 * counters->reading * READ_SHARE;
    errno = error;
}
