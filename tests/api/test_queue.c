// SPDX-License-Identifier: MIT
#include "asleep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <muster/queue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static const int64_t ms = 1000000;

// Each test runs with a threaded and with an external context.
typedef struct fixture {
    uint32_t flags;
    muster_context *context;
    muster_queue *queue;
} fixture;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 * ms + t.tv_nsec;
}

static fixture *set_up(void **state) {
    fixture *f = *state;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = f->flags;
    assert_int_equal(muster_context_create(&config, &f->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->queue, NULL), MUSTER_OK);
    return f;
}

static void tear_down(fixture *f) {
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    muster_context_release(f->context);
}

static void test_entries_come_in_order(void **state) {
    fixture *f = set_up(state);
    for (uint64_t i = 0; i < 1000; i++) assert_int_equal(muster_queue_post(f->queue, i, i * i), MUSTER_OK);
    muster_completion entry;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_OK);
        assert_int_equal(entry.kind, MUSTER_DONE_USER);
        assert_int_equal(entry.status, MUSTER_OK);
        assert_int_equal(entry.tag, i);
        assert_int_equal(entry.bytes, i * i);
        assert_null(entry.object);
    }
    assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_AGAIN);
    tear_down(f);
}

static void test_waiting_ends_at_the_deadline(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    const int64_t begin = now_ns();
    assert_int_equal(muster_queue_next(f->queue, 30 * ms, &entry, NULL), MUSTER_TIMEOUT);
    assert_true(now_ns() - begin >= 30 * ms);
    tear_down(f);
}

static void *post_one(void *queue) {
    return (void *)(intptr_t)muster_queue_post(queue, 4, 2);
}

static void test_a_post_wakes_a_waiting_thread(void **state) {
    fixture *f = set_up(state);
    for (int round = 0; round < 50; round++) {
        pthread_t poster;
        pthread_create(&poster, NULL, post_one, f->queue);
        muster_completion entry;
        assert_int_equal(muster_queue_next(f->queue, -1, &entry, NULL), MUSTER_OK);
        assert_int_equal(entry.tag, 4);
        pthread_join(poster, NULL);
    }
    tear_down(f);
}

static void test_capacity_is_kept(void **state) {
    fixture *f = set_up(state);
    muster_queue_config config;
    muster_config_init(&config, sizeof config);
    config.capacity = 3;
    muster_queue *small = NULL;
    assert_int_equal(muster_queue_create(f->context, &config, &small, NULL), MUSTER_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(muster_queue_post(small, 0, 0), MUSTER_OK);
    assert_int_equal(muster_queue_post(small, 0, 0), MUSTER_AGAIN);
    muster_completion entry;
    assert_int_equal(muster_queue_next(small, 0, &entry, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_post(small, 0, 0), MUSTER_OK);
    assert_int_equal(muster_queue_post(small, 0, 0), MUSTER_AGAIN);
    muster_queue_stats stats;
    assert_int_equal(muster_queue_get_stats(small, &stats), MUSTER_OK);
    assert_int_equal(stats.depth, 3);
    assert_int_equal(stats.taken, 1);
    assert_int_equal(stats.outstanding, 0);
    muster_queue_release(small); // with entries inside
    tear_down(f);
}

static void test_wrong_arguments_are_refused(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    muster_error error;
    muster_queue *queue = f->queue;
    assert_int_equal(muster_queue_create(NULL, NULL, &queue, &error), MUSTER_E_ARG);
    assert_null(queue);
    assert_int_equal(muster_queue_create(f->context, NULL, NULL, &error), MUSTER_E_ARG);
    muster_queue_config config;
    muster_config_init(&config, sizeof config);
    config.flags = 4;
    assert_int_equal(muster_queue_create(f->context, &config, &queue, &error), MUSTER_E_ARG);
    config.flags = 0;
    config.capacity = UINT32_MAX;
    assert_int_equal(muster_queue_create(f->context, &config, &queue, &error), MUSTER_E_ARG);
    config.struct_size = 3;
    assert_int_equal(muster_queue_create(f->context, &config, &queue, &error), MUSTER_E_ABI);
    assert_int_equal(muster_queue_next(NULL, 0, &entry, &error), MUSTER_E_ARG);
    assert_int_equal(muster_queue_next(f->queue, 0, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_queue_dispatch(NULL, 0, NULL, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_queue_cancel(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_queue_post(NULL, 0, 0), MUSTER_E_ARG);
    assert_int_equal(muster_queue_fd(NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_queue_fd(f->queue, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_queue_set_wake(NULL, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_queue_close(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_queue_get_stats(f->queue, NULL), MUSTER_E_ARG);
    muster_queue_release(NULL);
    tear_down(f);
}

static int readable(int fd, int timeout_ms) {
    struct pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, timeout_ms);
}

static void test_descriptor_is_readable_until_drained(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    int32_t fd = -1;
    assert_int_equal(muster_queue_fd(f->queue, &fd), MUSTER_OK);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(readable(fd, 0), 0);
    for (int round = 0; round < 100; round++) {
        assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
        assert_int_equal(muster_queue_post(f->queue, 2, 0), MUSTER_OK);
        assert_int_equal(readable(fd, 0), 1);
        assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_OK);
        assert_int_equal(readable(fd, 0), 1);
        assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_OK);
        assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_AGAIN);
        assert_int_equal(readable(fd, 0), 0);
    }
    close(fd);
    tear_down(f);
}

static void test_descriptor_asked_for_late_shows_what_is_there(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    assert_int_equal(muster_queue_post(f->queue, 2, 0), MUSTER_OK);
    assert_int_equal(muster_queue_next(f->queue, -1, &entry, NULL), MUSTER_OK);
    int32_t fd = -1;
    assert_int_equal(muster_queue_fd(f->queue, &fd), MUSTER_OK);
    assert_int_equal(readable(fd, 0), 1);
    close(fd);
    tear_down(f);
}

static void test_waiting_and_polling_may_be_mixed(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    int32_t fd = -1;
    assert_int_equal(muster_queue_fd(f->queue, &fd), MUSTER_OK);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
        assert_int_equal(muster_queue_next(f->queue, -1, &entry, NULL), MUSTER_OK); // never drained
        assert_int_equal(muster_queue_post(f->queue, 2, 0), MUSTER_OK);
        assert_int_equal(readable(fd, 0), 1);
        assert_int_equal(muster_queue_next(f->queue, 1000 * ms, &entry, NULL), MUSTER_OK);
        assert_int_equal(entry.tag, 2);
    }
    close(fd);
    tear_down(f);
}

static void test_nobody_is_woken_where_nobody_sleeps(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    muster_queue_stats stats;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
        assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_OK);
        assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_AGAIN);
    }
    assert_int_equal(muster_queue_get_stats(f->queue, &stats), MUSTER_OK);
    assert_in_range(stats.wakeups, 0, 1);
    tear_down(f);
}

static void test_wakeups_merge(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    int32_t fd;
    assert_int_equal(muster_queue_fd(f->queue, &fd), MUSTER_OK);
    for (int i = 0; i < 10000; i++) assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    muster_queue_stats stats;
    assert_int_equal(muster_queue_get_stats(f->queue, &stats), MUSTER_OK);
    assert_int_equal(stats.wakeups, 1);
    while (muster_queue_next(f->queue, 0, &entry, NULL) == MUSTER_OK) {
    }
    assert_int_equal(muster_queue_get_stats(f->queue, &stats), MUSTER_OK);
    const uint64_t drained = stats.wakeups;
    assert_in_range(drained, 1, 10000 / 50); // a few while descriptors are looked at in between
    for (int i = 0; i < 100; i++) assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    assert_int_equal(muster_queue_get_stats(f->queue, &stats), MUSTER_OK);
    assert_int_equal(stats.wakeups, drained + 1);
    close(fd);
    tear_down(f);
}

static int count_wake(void *user) {
    atomic_fetch_add((atomic_int *)user, 1);
    return 0;
}

// Lets an external engine work until the counter moves.
static void wait_wake(fixture *f, atomic_int *count, int at_least) {
    const int64_t end = now_ns() + 10000 * ms;
    while (atomic_load(count) < at_least) {
        if (f->flags & MUSTER_CONTEXT_EXTERNAL) muster_context_progress(f->context, ms);
        sched_yield();
        if (now_ns() > end) fail_msg("no wake-up: %d of %d", atomic_load(count), at_least);
    }
}

static void test_wake_function_is_called_once_per_drain(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    atomic_int count = 0;
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &count), MUSTER_OK);
    for (int round = 1; round <= 50; round++) {
        for (int i = 0; i < 20; i++) assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
        wait_wake(f, &count, round);
        assert_int_equal(atomic_load(&count), round);
        while (muster_queue_next(f->queue, 0, &entry, NULL) == MUSTER_OK) {
        }
    }
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    tear_down(f);
}

static void test_wake_function_set_late_is_called_at_once(void **state) {
    fixture *f = set_up(state);
    atomic_int first = 0, second = 0;
    assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &first), MUSTER_OK);
    wait_wake(f, &first, 1);
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &second), MUSTER_OK);
    wait_wake(f, &second, 1);
    assert_int_equal(muster_queue_set_wake(f->queue, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    assert_int_equal(muster_queue_set_wake(f->queue, NULL, NULL), MUSTER_OK); // twice is harmless
    tear_down(f);
}

static void test_setting_and_taking_wake_functions_is_cheap(void **state) {
    fixture *f = set_up(state);
    atomic_int count = 0;
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &count), MUSTER_OK);
        assert_int_equal(muster_queue_set_wake(f->queue, NULL, NULL), MUSTER_OK);
    }
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &count), MUSTER_OK);
    const int before = atomic_load(&count);
    assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    wait_wake(f, &count, before + 1);
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    tear_down(f);
}

// The system lets epoll descriptors watch each other only so deep; a host's loop and one around it must still fit.
static void test_descriptors_fit_into_a_host_loop_inside_another(void **state) {
    fixture *f = set_up(state);
    atomic_int count = 0;
    int32_t fds[2] = {-1, -1};
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &count), MUSTER_OK);
    assert_int_equal(muster_queue_fd(f->queue, &fds[0]), MUSTER_OK);
    if (f->flags) {
        while (muster_context_progress(f->context, 0) == MUSTER_OK) {
        }
        assert_int_equal(muster_context_fd(f->context, &fds[1]), MUSTER_OK);
    }
    const int inside = epoll_create1(0), around = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; i < (f->flags ? 2 : 1); i++) assert_int_equal(epoll_ctl(inside, EPOLL_CTL_ADD, fds[i], &event), 0);
    assert_int_equal(epoll_ctl(around, EPOLL_CTL_ADD, inside, &event), 0);
    assert_int_equal(readable(around, 0), 0);
    assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    assert_int_equal(readable(around, 10000), 1);
    close(inside);
    close(around);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0) close(fds[i]);
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    tear_down(f);
}

static void test_closed_queue_calls_no_wake_function(void **state) {
    fixture *f = set_up(state);
    atomic_int count = 0;
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &count), MUSTER_OK);
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    const int before = atomic_load(&count);
    assert_int_equal(muster_queue_post(f->queue, 0, 0), MUSTER_E_CLOSED);
    assert_int_equal(muster_queue_set_wake(f->queue, count_wake, &count), MUSTER_E_CLOSED);
    assert_int_equal(muster_queue_set_wake(f->queue, NULL, NULL), MUSTER_OK);
    tear_down(f);
    assert_int_equal(atomic_load(&count), before);
}

static void test_closed_queue_can_still_be_drained(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    muster_error error;
    int32_t fd;
    assert_int_equal(muster_queue_post(f->queue, 7, 0), MUSTER_OK);
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    assert_int_equal(muster_queue_fd(f->queue, &fd), MUSTER_E_CLOSED);
    assert_int_equal(muster_queue_next(f->queue, -1, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.tag, 7);
    assert_int_equal(muster_queue_next(f->queue, -1, &entry, &error), MUSTER_E_CLOSED);
    assert_int_equal(error.status, MUSTER_E_CLOSED);
    assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_E_CLOSED);
    tear_down(f);
}

typedef struct waiter {
    muster_queue *queue;
    atomic_int *inside;
    muster_status status;
} waiter;

static void *wait_endlessly(void *argument) {
    waiter *w = argument;
    muster_completion entry;
    atomic_fetch_add(w->inside, 1);
    w->status = muster_queue_next(w->queue, -1, &entry, NULL);
    return NULL;
}

// Ends the wait of eight threads by `end`, which may have to be called again for those not yet asleep.
static void expect_all_end(fixture *f, muster_status (*end)(muster_queue *), muster_status status) {
    enum { count = 8 };
    atomic_int inside = 0;
    waiter waiters[count];
    pthread_t threads[count];
    for (int i = 0; i < count; i++) {
        waiters[i] = (waiter){f->queue, &inside, MUSTER_OK};
        pthread_create(&threads[i], NULL, wait_endlessly, &waiters[i]);
    }
    while (atomic_load(&inside) < count) sched_yield();
    struct timespec soon = {0, 5000000};
    for (int i = 0; i < count; i++) {
        struct timespec at;
        do {
            end(f->queue);
            clock_gettime(CLOCK_REALTIME, &at);
            at.tv_nsec += soon.tv_nsec;
            if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
        } while (pthread_timedjoin_np(threads[i], NULL, &at) != 0);
        assert_int_equal(waiters[i].status, status);
    }
}

static void test_cancel_ends_every_wait(void **state) {
    fixture *f = set_up(state);
    expect_all_end(f, muster_queue_cancel, MUSTER_E_CANCELED);
    muster_completion entry; // later waits are not meant
    assert_int_equal(muster_queue_next(f->queue, ms, &entry, NULL), MUSTER_TIMEOUT);
    tear_down(f);
}

static void test_close_ends_every_wait(void **state) {
    fixture *f = set_up(state);
    expect_all_end(f, muster_queue_close, MUSTER_E_CLOSED);
    tear_down(f);
}

static muster_context *context_to_close;

static muster_status close_the_context(muster_queue *queue) {
    (void)queue;
    return muster_context_close(context_to_close, 0);
}

static void test_closing_the_context_ends_every_wait(void **state) {
    fixture *f = set_up(state);
    context_to_close = f->context;
    expect_all_end(f, close_the_context, MUSTER_E_CLOSED);
    tear_down(f);
}

// What came before the context closed is taken first, and the host may still post.
static void test_a_queue_outlives_its_context_until_it_is_drained(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    int32_t fd;
    assert_int_equal(muster_queue_fd(f->queue, &fd), MUSTER_OK);
    assert_int_equal(muster_queue_post(f->queue, 1, 0), MUSTER_OK);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    assert_int_equal(muster_queue_post(f->queue, 2, 0), MUSTER_OK);
    struct pollfd one = {fd, POLLIN, 0};
    assert_int_equal(poll(&one, 1, 0), 1);
    for (uint64_t tag = 1; tag <= 2; tag++) {
        assert_int_equal(muster_queue_next(f->queue, -1, &entry, NULL), MUSTER_OK);
        assert_int_equal(entry.tag, tag);
    }
    assert_int_equal(muster_queue_next(f->queue, -1, &entry, NULL), MUSTER_E_CLOSED);
    assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_E_CLOSED);
    close(fd);
    tear_down(f);
}

typedef struct collected {
    muster_queue *queue;
    uint64_t tags[16];
    int count;
} collected;

static void collect(void *user, const muster_completion *entry, const muster_error *error) {
    collected *c = user;
    assert_non_null(error);
    c->tags[c->count++] = entry->tag;
    if (entry->tag == 1) muster_queue_post(c->queue, 10, 0); // a handler may call Muster
}

static void test_dispatch_drains_through_the_handler(void **state) {
    fixture *f = set_up(state);
    collected c = {f->queue, {0}, 0};
    uint64_t count = 99;
    assert_int_equal(muster_queue_dispatch(f->queue, 0, collect, &c, &count), MUSTER_AGAIN);
    assert_int_equal(count, 0);
    assert_int_equal(muster_queue_dispatch(f->queue, ms, collect, &c, NULL), MUSTER_TIMEOUT);
    for (uint64_t i = 0; i < 3; i++) muster_queue_post(f->queue, i, 0);
    assert_int_equal(muster_queue_dispatch(f->queue, -1, collect, &c, &count), MUSTER_OK);
    assert_int_equal(count, 4);
    assert_int_equal(c.count, 4);
    const uint64_t expected[] = {0, 1, 2, 10};
    assert_memory_equal(c.tags, expected, sizeof expected);
    tear_down(f);
}

static void test_dispatch_without_handler_leaves_entries_alone(void **state) {
    fixture *f = set_up(state);
    muster_completion entry;
    uint64_t count = 99;
    muster_queue_post(f->queue, 3, 0);
    assert_int_equal(muster_queue_dispatch(f->queue, -1, NULL, NULL, &count), MUSTER_E_UNSUPPORTED);
    assert_int_equal(count, 0);
    assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.tag, 3);
    tear_down(f);
}

static void test_dispatch_ends_with_a_closed_queue(void **state) {
    fixture *f = set_up(state);
    collected c = {f->queue, {0}, 0};
    muster_queue_post(f->queue, 3, 0);
    muster_queue_close(f->queue);
    assert_int_equal(muster_queue_dispatch(f->queue, -1, collect, &c, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_dispatch(f->queue, -1, collect, &c, NULL), MUSTER_E_CLOSED);
    tear_down(f);
}

static void *release_soon(void *argument) {
    waiter *w = argument;
    atomic_int never = 0;
    until_asleep(atomic_load(w->inside), &never); // the other thread, which waits without end
    muster_queue_release(w->queue);
    return NULL;
}

static void test_queue_may_be_released_while_another_thread_waits(void **state) {
    fixture *f = set_up(state);
    for (int round = 0; round < 20; round++) {
        atomic_int inside = gettid();
        muster_queue *queue = NULL;
        assert_int_equal(muster_queue_create(f->context, NULL, &queue, NULL), MUSTER_OK);
        waiter w = {queue, &inside, MUSTER_OK};
        pthread_t thread;
        pthread_create(&thread, NULL, release_soon, &w);
        muster_completion entry;
        assert_int_equal(muster_queue_next(queue, -1, &entry, NULL), MUSTER_E_CLOSED);
        pthread_join(thread, NULL);
    }
    tear_down(f);
}

static void test_log_of_another_context_is_refused(void **state) {
    fixture *f = set_up(state);
    muster_context *other = NULL;
    assert_int_equal(muster_context_create(NULL, &other, NULL), MUSTER_OK);
    assert_int_equal(muster_context_log(other, MUSTER_LOG_INFO, f->queue, 0), MUSTER_E_ARG);
    assert_int_equal(muster_context_log(f->context, 5, f->queue, 0), MUSTER_E_ARG);
    assert_int_equal(muster_context_log(f->context, MUSTER_LOG_DEBUG, f->queue, 9), MUSTER_OK);
    muster_context_release(other);
    tear_down(f); // the log does not keep the queue
}

#define both(test)                                                                                                     \
    {#test " threaded", test, NULL, NULL, &threaded}, {                                                                \
#test " external", test, NULL, NULL, &external                                                                 \
    }

// ---- descriptors of the host

static muster_completion next_ready(fixture *f, int64_t timeout_ns) {
    muster_completion entry = {0};
    if (muster_queue_next(f->queue, timeout_ns, &entry, NULL) != MUSTER_OK) entry.kind = 0;
    return entry;
}

static void test_a_descriptor_is_reported_once_for_each_watch(void **state) {
    fixture *f = set_up(state);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[0], MUSTER_QUEUE_FD_READABLE, 5, NULL), MUSTER_OK);
    assert_int_equal(next_ready(f, 0).kind, 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    const muster_completion entry = next_ready(f, 1000 * ms);
    assert_int_equal(entry.kind, MUSTER_EVENT_READY);
    assert_int_equal(entry.tag, 5);
    assert_int_equal(entry.events, MUSTER_QUEUE_FD_READABLE);
    assert_int_equal(write(ends[1], "y", 1), 1);
    assert_int_equal(next_ready(f, 0).kind, 0); // not watched any more
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[0], MUSTER_QUEUE_FD_READABLE, 6, NULL), MUSTER_OK);
    assert_int_equal(next_ready(f, 1000 * ms).tag, 6); // what is there already is reported
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[0], MUSTER_QUEUE_FD_READABLE, 7, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_unwatch_fd(f->queue, ends[0]), MUSTER_OK);
    assert_int_equal(next_ready(f, 0).kind, 0);
    assert_int_equal(muster_queue_unwatch_fd(f->queue, ends[0]), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[1], MUSTER_QUEUE_FD_WRITABLE, 8, NULL), MUSTER_OK);
    assert_int_equal(next_ready(f, 1000 * ms).events, MUSTER_QUEUE_FD_WRITABLE);
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[1], MUSTER_QUEUE_FD_WRITABLE, 9, NULL), MUSTER_OK);
    assert_int_equal(next_ready(f, 1000 * ms).tag, 9);
    close(ends[0]);
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[1], MUSTER_QUEUE_FD_WRITABLE, 10, NULL), MUSTER_OK);
    assert_true(next_ready(f, 1000 * ms).events & MUSTER_QUEUE_FD_ENDED);
    assert_int_equal(muster_queue_unwatch_fd(f->queue, ends[1]), MUSTER_OK);
    close(ends[1]);
    tear_down(f);
}

static void test_a_number_that_is_used_again_is_another_descriptor(void **state) {
    fixture *f = set_up(state);
    int ends[2], others[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[0], MUSTER_QUEUE_FD_READABLE, 1, NULL), MUSTER_OK);
    close(ends[0]); // without unwatch
    close(ends[1]);
    assert_int_equal(pipe(others), 0);
    const int same = fcntl(others[0], F_DUPFD_CLOEXEC, ends[0]);
    const int in = others[0] == ends[0] ? others[0] : same;
    assert_int_equal(in, ends[0]);
    assert_int_equal(muster_queue_watch_fd(f->queue, in, MUSTER_QUEUE_FD_READABLE, 2, NULL), MUSTER_OK);
    assert_int_equal(write(others[1], "x", 1), 1);
    assert_int_equal(next_ready(f, 1000 * ms).tag, 2);
    assert_int_equal(muster_queue_unwatch_fd(f->queue, in), MUSTER_OK);
    if (same >= 0) close(same);
    close(others[0]);
    close(others[1]);
    tear_down(f);
}

typedef struct writing {
    int fd, waiting; // the number of the thread that waits
    atomic_int never;
} writing;
static void *write_when_asleep(void *argument) {
    writing *const w = argument;
    until_asleep(w->waiting, &w->never);
    return (void *)(intptr_t)write(w->fd, "x", 1);
}
static void test_a_descriptor_wakes_the_thread_that_waits(void **state) {
    fixture *f = set_up(state);
    int ends[2];
    pthread_t thread;
    void *written;
    assert_int_equal(pipe(ends), 0);
    writing w = {.fd = ends[1], .waiting = gettid()};
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[0], MUSTER_QUEUE_FD_READABLE, 3, NULL), MUSTER_OK);
    assert_int_equal(pthread_create(&thread, NULL, write_when_asleep, &w), 0);
    assert_int_equal(next_ready(f, 10000 * ms).tag, 3);
    pthread_join(thread, &written);
    assert_ptr_equal(written, (void *)(intptr_t)1);
    assert_int_equal(muster_queue_close(f->queue), MUSTER_OK);
    muster_error error;
    assert_int_equal(muster_queue_watch_fd(f->queue, ends[0], MUSTER_QUEUE_FD_READABLE, 3, &error), MUSTER_E_CLOSED);
    close(ends[0]);
    close(ends[1]);
    tear_down(f);
}

static void test_what_cannot_be_watched_is_refused(void **state) {
    fixture *f = set_up(state);
    muster_error error;
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(muster_queue_watch_fd(NULL, 0, 1, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_queue_watch_fd(f->queue, -1, 1, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_queue_watch_fd(f->queue, file, 0, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_queue_watch_fd(f->queue, file, 8, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_queue_watch_fd(f->queue, 1000000, 1, 0, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "descriptor 1000000 is not open");
    assert_int_equal(muster_queue_watch_fd(f->queue, file, 1, 0, &error), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_queue_unwatch_fd(f->queue, file), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_queue_unwatch_fd(NULL, file), MUSTER_E_ARG);
    close(file);
    tear_down(f);
}

int main(void) {
    static fixture threaded = {0, NULL, NULL}, external = {MUSTER_CONTEXT_EXTERNAL, NULL, NULL};
    const struct CMUnitTest tests[] = {
        both(test_entries_come_in_order),
        both(test_a_descriptor_is_reported_once_for_each_watch),
        both(test_a_number_that_is_used_again_is_another_descriptor),
        both(test_a_descriptor_wakes_the_thread_that_waits),
        both(test_what_cannot_be_watched_is_refused),
        both(test_waiting_ends_at_the_deadline),
        both(test_a_post_wakes_a_waiting_thread),
        both(test_capacity_is_kept),
        both(test_wrong_arguments_are_refused),
        both(test_descriptor_is_readable_until_drained),
        both(test_descriptor_asked_for_late_shows_what_is_there),
        both(test_waiting_and_polling_may_be_mixed),
        both(test_nobody_is_woken_where_nobody_sleeps),
        both(test_wakeups_merge),
        both(test_wake_function_is_called_once_per_drain),
        both(test_wake_function_set_late_is_called_at_once),
        both(test_setting_and_taking_wake_functions_is_cheap),
        both(test_descriptors_fit_into_a_host_loop_inside_another),
        both(test_closed_queue_calls_no_wake_function),
        both(test_closed_queue_can_still_be_drained),
        both(test_cancel_ends_every_wait),
        both(test_close_ends_every_wait),
        both(test_closing_the_context_ends_every_wait),
        both(test_a_queue_outlives_its_context_until_it_is_drained),
        both(test_dispatch_drains_through_the_handler),
        both(test_dispatch_without_handler_leaves_entries_alone),
        both(test_dispatch_ends_with_a_closed_queue),
        both(test_queue_may_be_released_while_another_thread_waits),
        both(test_log_of_another_context_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
