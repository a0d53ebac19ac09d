/* SPDX-License-Identifier: MIT */
/* What the machine allows:  --over memcpy|memcpy-cached|futex|eventfd|syscall|mapped|mapped-again|populated|copied
 * Hand-overs are half a round trip of one word between two threads that sleep in between; futex with --mode processes:
 * between two processes, whose switch takes longer. The last four: reading memory that another process has shared for
 * the first time, with all that comes before (mapped; populated: the pages are entered in one call; copied: into huge
 * pages of one's own), and for the second time. */
#include "bench.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

static struct options o;
struct side {
    _Alignas(128) atomic_uint word;
    int fd;
};
static struct side *side; /* two, which both processes share */
static int by_futex, private_flag;

static void put(int i, uint32_t turn) {
    if (by_futex) {
        atomic_store(&side[i].word, turn);
        syscall(SYS_futex, &side[i].word, FUTEX_WAKE | private_flag, 1, NULL, NULL, 0);
    } else {
        const uint64_t one = 1;
        if (write(side[i].fd, &one, sizeof one) != sizeof one) die_errno("write");
    }
}
static void get(int i, uint32_t turn) {
    uint64_t value;
    if (by_futex)
        while (atomic_load(&side[i].word) != turn)
            syscall(SYS_futex, &side[i].word, FUTEX_WAIT | private_flag, turn - 1, NULL, NULL, 0);
    else if (read(side[i].fd, &value, sizeof value) != sizeof value)
        die_errno("read");
}

enum { bunch = 16 };

static void answer(void *argument) {
    (void)argument;
    take_core(o.cores, 1);
    for (uint32_t turn = 1; turn <= (uint32_t)o.count; turn++) get(0, turn), put(1, turn);
}
static void *second(void *argument) {
    answer(argument);
    return NULL;
}

static void hand_over(void) {
    o.count = (o.count / bunch + 2) * bunch;
    side = mmap(NULL, 2 * sizeof *side, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (side == MAP_FAILED) die_errno("mmap");
    for (int i = 0; i < 2; i++) side[i].fd = eventfd(0, 0);
    const int processes = !strcmp(o.mode, "processes");
    private_flag = processes ? 0 : FUTEX_PRIVATE_FLAG;
    pthread_t thread;
    pid_t child = 0;
    if (processes)
        child = start_process(answer, NULL);
    else if (pthread_create(&thread, NULL, second, NULL) != 0)
        die("pthread_create", "failed");
    take_core(o.cores, 0);
    const long bunches = o.count / bunch, cold = bunches / 10;
    double *times = malloc(sizeof *times * (size_t)bunches);
    uint32_t turn = 0;
    for (long i = 0; i < bunches; i++) {
        const double begun = now_us();
        for (int k = 0; k < bunch; k++) turn++, put(0, turn), get(1, turn);
        times[i] = (now_us() - begun) / bunch / 2;
    }
    if (!processes) pthread_join(thread, NULL);
    if (processes) join_process(child);
    print_latency(median(times + cold, bunches - cold));
    free(times);
}

/* Copies over an arena larger than every cache, or within one that fits the nearest. */
static void copies(size_t arena) {
    const size_t slots = arena / o.size > 0 ? arena / o.size : 1;
    unsigned char *from = buffer(slots * o.size), *to = buffer(slots * o.size);
    const double begun = now_us();
    for (long i = 0; i < o.count; i++) {
        const size_t at = (size_t)i % slots * o.size;
        memcpy(to + at, from + at, o.size);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    print_rate(o.size, o.count, now_us() - begun);
}

/* The time until so many bytes of a file in memory have been added up. */
static void first_read(const char *how) {
    enum { runs = 7 };
    const size_t size = o.size, huge = (size_t)2 << 20;
    const int file = memfd_create("limits", MFD_CLOEXEC);
    unsigned char *const from = buffer(size);
    for (size_t at = 0; at < size;) {
        const ssize_t wrote = write(file, from + at, size - at);
        if (wrote <= 0) die_errno("write");
        at += (size_t)wrote;
    }
    const int copied = !strcmp(how, "copied"), again = !strcmp(how, "mapped-again");
    double times[runs];
    for (int run = 0; run < runs; run++) {
        double begun = now_us();
        const size_t whole = copied ? size + huge : size;
        unsigned char *const base =
            copied ? mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   : mmap(NULL, whole, PROT_READ, MAP_SHARED | (strcmp(how, "populated") ? 0 : MAP_POPULATE), file, 0);
        if (base == MAP_FAILED) die_errno("mmap");
        unsigned char *const data = copied ? base + (huge - (uintptr_t)base % huge) % huge : base;
        if (copied) {
            madvise(data, size, MADV_HUGEPAGE);
            for (size_t at = 0; at < size;) {
                const ssize_t got = pread(file, data + at, size - at, (off_t)at);
                if (got <= 0) die_errno("pread");
                at += (size_t)got;
            }
        }
        for (int k = 0; k <= again; k++) {
            if (k == 1) begun = now_us();
            uint64_t sum = 0;
            for (size_t i = 0; i < size / sizeof sum; i++) sum += ((const uint64_t *)data)[i];
            __asm__ volatile("" : : "r"(sum) : "memory");
        }
        times[run] = now_us() - begun;
        munmap(base, whole);
    }
    print_latency(median(times, runs));
}

int main(int argc, char **argv) {
    o = read_options(argc, argv);
    if (!strcmp(o.over, "memcpy"))
        copies((size_t)256 << 20);
    else if (!strcmp(o.over, "memcpy-cached"))
        copies((size_t)512 << 10);
    else if (!strcmp(o.over, "syscall")) {
        const long count = o.count * 25;
        const double begun = now_us();
        for (long i = 0; i < count; i++) syscall(SYS_getppid);
        print_latency((now_us() - begun) / (double)count);
    } else if (!strncmp(o.over, "mapped", 6) || !strcmp(o.over, "populated") || !strcmp(o.over, "copied")) {
        first_read(o.over);
    } else {
        by_futex = !strcmp(o.over, "futex");
        hand_over();
    }
    return 0;
}
