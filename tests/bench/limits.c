/* SPDX-License-Identifier: MIT */
/* What the machine allows:  --over memcpy|memcpy-cached|futex|eventfd|syscall
 * Hand-overs are half a round trip of one word between two threads that sleep in between. */
#include "bench.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

static struct options o;
static struct {
    _Alignas(128) atomic_uint word;
    int fd;
} side[2];
static int by_futex;

static void put(int i, uint32_t turn) {
    if (by_futex) {
        atomic_store(&side[i].word, turn);
        syscall(SYS_futex, &side[i].word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    } else {
        const uint64_t one = 1;
        if (write(side[i].fd, &one, sizeof one) != sizeof one) die_errno("write");
    }
}
static void get(int i, uint32_t turn) {
    uint64_t value;
    if (by_futex)
        while (atomic_load(&side[i].word) != turn)
            syscall(SYS_futex, &side[i].word, FUTEX_WAIT_PRIVATE, turn - 1, NULL, NULL, 0);
    else if (read(side[i].fd, &value, sizeof value) != sizeof value)
        die_errno("read");
}

enum { bunch = 16 };

static void *second(void *argument) {
    (void)argument;
    take_core(o.cores, 1);
    for (uint32_t turn = 1; turn <= (uint32_t)o.count; turn++) get(0, turn), put(1, turn);
    return NULL;
}

static void hand_over(void) {
    o.count = (o.count / bunch + 2) * bunch;
    for (int i = 0; i < 2; i++) side[i].fd = eventfd(0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, second, NULL) != 0) die("pthread_create", "failed");
    take_core(o.cores, 0);
    const long bunches = o.count / bunch, cold = bunches / 10;
    double *times = malloc(sizeof *times * (size_t)bunches);
    uint32_t turn = 0;
    for (long i = 0; i < bunches; i++) {
        const double begun = now_us();
        for (int k = 0; k < bunch; k++) turn++, put(0, turn), get(1, turn);
        times[i] = (now_us() - begun) / bunch / 2;
    }
    pthread_join(thread, NULL);
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
    } else {
        by_futex = !strcmp(o.over, "futex");
        hand_over();
    }
    return 0;
}
