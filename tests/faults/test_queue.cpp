// SPDX-License-Identifier: MIT
// queue.h.
#include "scenario.hpp"

#include <unistd.h>

using namespace faults;

static int raise_event(void *user) {
    static_cast<Event *>(user)->raise();
    return 0;
}

static void handle(void *user, const muster_completion *entry, const muster_error *) {
    *static_cast<uint64_t *>(user) += entry->bytes;
}

SCENARIO(queue, lifecycle) {
    Context context;
    create(context);
    Queue queue;
    muster_queue_config config{};
    config.struct_size = sizeof config;
    config.capacity = 16;
    OK(muster_queue_create, context, &config, queue.out(), &error);
    int32_t fd = -1;
    OK(muster_queue_fd, queue, &fd);
    ::close(fd);
    for (uint64_t i = 0; i < 4; i++) OK(muster_queue_post, queue, 1, i);
    for (uint64_t i = 0; i < 4; i++) EXPECT(take_ok(queue, MUSTER_DONE_USER, 1, "muster_queue_next").bytes == i);
    muster_completion entry{};
    EXPECT(CALL(muster_queue_next, queue, 0, &entry, &error) == MUSTER_AGAIN);
    EXPECT(CALL(muster_queue_next, queue, ms, &entry, &error) == MUSTER_TIMEOUT);
    OK(muster_queue_post, queue, 1, 7);
    uint64_t count = 0, sum = 0;
    OK(muster_queue_dispatch, queue, second, handle, &sum, &count);
    EXPECT(count == 1 && sum == 7);
    muster_queue_stats stats{};
    OK(muster_queue_get_stats, queue, &stats);
    OK(muster_queue_cancel, queue);
    EXPECT(CALL(muster_queue_cancel_operation, queue, 9) == MUSTER_E_STALE);
    OK(muster_queue_close, queue);
}

SCENARIO(queue, wake) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    Event woken;
    OK(muster_queue_set_wake, queue, raise_event, &woken);
    OK(muster_queue_post, queue, 1, 2);
    take_ok(queue, MUSTER_DONE_USER, 1, "muster_queue_next");
    woken.await("the wake function was not called");
    OK(muster_queue_set_wake, queue, nullptr, nullptr);
    OK(muster_queue_close, queue);
}

SCENARIO(queue, external_wait) {
    Context context;
    create(context, MUSTER_CONTEXT_EXTERNAL);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    muster_completion entry{};
    EXPECT(CALL(muster_queue_next, queue, ms, &entry, &error) == MUSTER_TIMEOUT);
    OK(muster_queue_post, queue, 1, 2);
    take_ok(queue, MUSTER_DONE_USER, 1, "muster_queue_next");
}

SCENARIO(queue, descriptor) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    int ends[2];
    EXPECT(pipe(ends) == 0);
    const muster_status first = CALL(muster_queue_watch_fd, queue, ends[1], MUSTER_QUEUE_FD_WRITABLE, 7, &error);
    if (first != MUSTER_OK) {
        expect_fault("muster_queue_watch_fd", first);
        OK(muster_queue_watch_fd, queue, ends[1], MUSTER_QUEUE_FD_WRITABLE, 7, &error);
    }
    muster_completion entry{};
    OK(muster_queue_next, queue, patience, &entry, &error);
    EXPECT(entry.kind == MUSTER_EVENT_READY && entry.tag == 7);
    OK(muster_queue_watch_fd, queue, ends[1], MUSTER_QUEUE_FD_WRITABLE, 8, &error);
    OK(muster_queue_unwatch_fd, queue, ends[1]);
    close(ends[0]);
    close(ends[1]);
}
