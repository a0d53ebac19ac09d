// SPDX-License-Identifier: MIT
// stream.h, over a pair, over a socket and over shared memory.
#include "connect.hpp"

#include <cstring>

using namespace faults;

namespace {

struct Ends {
    Context context;
    Queue queue;
    Link link; // of a pair, without a listener
};

void make_pair(Ends &e) {
    create(e.context);
    const Paused guard;
    OK(muster_queue_create, e.context, nullptr, e.queue.out(), &error);
    OK(muster_stream_pair, e.context, nullptr, e.link.dialled.out(), e.link.accepted.out(), &error);
}

// Both ends are there before any call fails; faults in the library's thread may end them all the same.
void make_link(Ends &e, const char *scheme, const char *options) {
    create(e.context);
    const Paused guard;
    OK(muster_queue_create, e.context, nullptr, e.queue.out(), &error);
    connect(e.context, e.queue, address_of(scheme) + options, e.link);
}

char data[200'000], place[sizeof data];

void calls_that_wait(Ends &e) {
    muster_stream *const one = e.link.dialled, *const other = e.link.accepted;
    size_t bytes = 0;
    OR_END(muster_stream_write, one, data, 1000, patience, &bytes);
    OR_END(muster_stream_read, other, place, 600, patience, &bytes);
    const void *shown = nullptr;
    OR_END(muster_stream_peek, other, 1000 - bytes, patience, &shown, &bytes);
    OR_END(muster_stream_consume, other, bytes);
    void *room = nullptr;
    OR_END(muster_stream_reserve, one, 500, patience, &room, &bytes);
    memset(room, 3, 500);
    OR_END(muster_stream_commit, one, 500);
    OR_END(muster_stream_flush, one, patience);
    OR_END(muster_stream_read_into, other, place, 500, 0, patience, &bytes);
    EXPECT(place[499] == 3);
    muster_stream *const both[] = {one, other};
    muster_status statuses[2];
    size_t counts[2];
    OR_END(muster_stream_write_many, both, 2, data, sizeof data, patience, statuses, counts);
    OR_END(muster_stream_read_into, other, place, sizeof place, 0, patience, &bytes);
    OR_END(muster_stream_read_into, one, place, sizeof place, 0, patience, &bytes);
    EXPECT(memcmp(data, place, sizeof data) == 0);
    muster_stream_stats stats{};
    OK(muster_stream_get_stats, one, &stats);
    EXPECT(CALL(muster_stream_reason, one, nullptr, &error) <= 0);
    char text[256];
    OK(muster_stream_peer, one, text, sizeof text, &bytes);
    const muster_status own = CALL(muster_stream_local_address, one, text, sizeof text, &bytes);
    EXPECT(own == MUSTER_OK || own == MUSTER_E_UNSUPPORTED || has_fired());
    const muster_status status = CALL(muster_stream_exit_with_peer, one, -1);
    EXPECT(status == MUSTER_OK || status == MUSTER_E_UNSUPPORTED);
    OK(muster_stream_abort, one, 42, "enough", 6);
    const muster_status end = CALL(muster_stream_read, other, place, 1, patience, &bytes);
    EXPECT(end < 0 && (end == MUSTER_E_ABORTED || has_fired()));
    CALL(muster_stream_close, other, patience);
}

void begun(Ends &e) {
    muster_stream *const one = e.link.dialled, *const other = e.link.accepted;
    muster_queue *const queue = e.queue;
    memset(place, 0, sizeof place);
    OK(muster_stream_read_begin, other, place, sizeof place, 0, queue, 1);
    if (const muster_status status = CALL(muster_stream_write_owned, one, data, sizeof data, queue, 2)) {
        expect_fault("muster_stream_write_owned", status);
        // It was not taken; the stream is as it was, or over.
        if (status == MUSTER_E_NOMEM)
            OK(muster_stream_write_owned, one, data, sizeof data, queue, 2);
        else
            ended();
    }
    bool is_read = false, is_released = false, is_whole = true;
    while (!is_read || !is_released) {
        muster_completion entry{};
        if (const muster_status status = CALL(muster_queue_next, queue, patience, &entry, &error))
            wrong("a completion of a stream did not appear: %s (read %d, released %d)", muster_status_name(status),
                  is_read, is_released);
        if (entry.kind == MUSTER_DONE_READ) is_read = true;
        if (entry.kind == MUSTER_DONE_RELEASED) is_released = true;
        if (entry.status != MUSTER_OK) {
            check_status(entry.kind == MUSTER_DONE_READ ? "muster_stream_read_into" : "muster_stream_write",
                         entry.status, "a completion");
            expect_fault("a completion", entry.status);
            is_whole = false;
            // The other operation ends with the stream.
            CALL(muster_stream_abort, one, 1, nullptr, 0);
            CALL(muster_stream_abort, other, 1, nullptr, 0);
        }
    }
    if (!is_whole) ended();
    EXPECT(memcmp(data, place, sizeof data) == 0);
    OK(muster_stream_flush_begin, one, patience, queue, 3, &error);
    take_ok(queue, MUSTER_DONE_CALL, 3, "muster_stream_flush");
    OK(muster_stream_watch, other, MUSTER_STREAM_READABLE, queue, 4);
    size_t bytes = 0;
    OR_END(muster_stream_write, one, data, 10, patience, &bytes);
    for (;;) {
        muster_completion entry{};
        if (const muster_status status = CALL(muster_queue_next, queue, patience, &entry, &error))
            wrong("the watched stream did not become ready: %s", muster_status_name(status));
        if (entry.kind == MUSTER_EVENT_READY && entry.tag == 4) break;
    }
    OK(muster_stream_watch, other, 0, nullptr, 0);
    OK(muster_stream_cancel, other, MUSTER_STREAM_READ | MUSTER_STREAM_WRITE);
    OK(muster_stream_close_begin, one, patience, queue, 5, &error);
    CALL(muster_stream_read, other, place, sizeof place, patience, &bytes);
    take_ok(queue, MUSTER_DONE_CALL, 5, "muster_stream_close");
}

void many(Ends &e) {
    muster_stream *const both[] = {e.link.dialled, e.link.accepted};
    muster_status statuses[2] = {1, 1};
    if (const muster_status status =
            CALL(muster_stream_write_owned_many, both, 2, data, sizeof data, e.queue, nullptr, statuses))
        expect_fault("muster_stream_write_owned_many", status);
    unsigned taken = (statuses[0] == MUSTER_OK) + (statuses[1] == MUSTER_OK);
    if (taken < 2 && !has_fired()) wrong("a stream did not take the buffer");
    if (statuses[0] == MUSTER_OK) {
        size_t bytes = 0;
        CALL(muster_stream_read_into, e.link.accepted, place, sizeof place, 0, patience, &bytes);
    }
    if (statuses[1] == MUSTER_OK) {
        size_t bytes = 0;
        CALL(muster_stream_read_into, e.link.dialled, place, sizeof place, 0, patience, &bytes);
    }
    for (; taken > 0; taken--) {
        muster_completion entry{};
        if (const muster_status status = CALL(muster_queue_next, e.queue, patience, &entry, &error))
            wrong("a release did not appear: %s", muster_status_name(status));
        EXPECT(entry.kind == MUSTER_DONE_RELEASED);
    }
}

} // namespace

SCENARIO(stream, pair) {
    Context context;
    create(context);
    muster_stream_config config{};
    config.struct_size = sizeof config;
    config.window_bytes = 1 << 16;
    Stream one, other;
    OK(muster_stream_pair, context, &config, one.out(), other.out(), &error);
}

#define OVER(name, make)                                                                                               \
    SCENARIO(stream, wait_##name) {                                                                                    \
        Ends e;                                                                                                        \
        make;                                                                                                          \
        calls_that_wait(e);                                                                                            \
    }                                                                                                                  \
    SCENARIO(stream, begin_##name) {                                                                                   \
        Ends e;                                                                                                        \
        make;                                                                                                          \
        begun(e);                                                                                                      \
    }                                                                                                                  \
    SCENARIO(stream, many_##name) {                                                                                    \
        Ends e;                                                                                                        \
        make;                                                                                                          \
        many(e);                                                                                                       \
    }
OVER(pair, make_pair(e))
OVER(tcp, make_link(e, "tcp", "?upgrade=no"))
OVER(shm, make_link(e, "shm", ""))
