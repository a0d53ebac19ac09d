// SPDX-License-Identifier: MIT
// Active messages: handlers of the library and of the host, over every transport of two contexts; limits, order, ends.
// ctest: quick timeout=120
#include "am_run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ADD = 1, ECHO = 2, REFUSE = 3, HOLD = 4, HOST = 5, BIG = 6, ORDER = 7, NESTED = 8, WRONG = 9 };

typedef struct server {
    _Atomic uint64_t sum, calls;
    uint64_t last;
    _Atomic bool out_of_order;
    pthread_mutex_t hold;
    muster_am *am;
    _Atomic int nested;
} server;

static muster_status add(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                         size_t *out_bytes) {
    (void)peer, (void)capacity;
    server *s = user;
    uint64_t value = 0;
    if (bytes != sizeof value) return MUSTER_E_ARG;
    memcpy(&value, data, sizeof value);
    const uint64_t before = atomic_fetch_add(&s->sum, value);
    memcpy(reply, &before, sizeof before);
    *out_bytes = sizeof before;
    return MUSTER_OK;
}
static muster_status echo(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                          size_t *out_bytes) {
    (void)user, (void)peer;
    if (bytes > capacity) return MUSTER_E_LIMIT;
    if (bytes != 0) memcpy(reply, data, bytes);
    *out_bytes = bytes;
    return MUSTER_OK;
}
static muster_status refuse(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                            size_t *out_bytes) {
    (void)user, (void)peer, (void)data, (void)reply, (void)capacity, (void)out_bytes;
    return bytes == 0 ? MUSTER_E_PERMISSION : MUSTER_AGAIN;
}
static muster_status hold(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                          size_t *out_bytes) {
    (void)peer, (void)data, (void)bytes, (void)reply, (void)capacity, (void)out_bytes;
    server *s = user;
    atomic_fetch_add(&s->calls, 1);
    pthread_mutex_lock(&s->hold);
    pthread_mutex_unlock(&s->hold);
    return MUSTER_OK;
}
static muster_status big(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                         size_t *out_bytes) {
    (void)user, (void)peer, (void)data, (void)bytes;
    memset(reply, 'b', capacity);
    *out_bytes = capacity;
    return MUSTER_OK;
}
static muster_status order(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                           size_t *out_bytes) {
    (void)peer, (void)bytes, (void)reply, (void)capacity, (void)out_bytes;
    server *s = user;
    uint64_t value = 0;
    memcpy(&value, data, sizeof value);
    if (value != s->last + 1) atomic_store(&s->out_of_order, true);
    s->last = value;
    return MUSTER_OK;
}
// A handler must not wait; it may begin a request.
static muster_status nested(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                            size_t *out_bytes) {
    (void)reply, (void)capacity, (void)out_bytes;
    server *s = user;
    assert_int_equal(muster_am_call(s->am, peer, ECHO, data, bytes, NULL, 0, -1, NULL, NULL), MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(muster_am_flush(s->am, peer, -1), MUSTER_OK); /* nothing is begun */
    atomic_fetch_add(&s->nested, 1);
    return muster_am_begin(s->am, peer, ADD, data, bytes, NULL, 0, NULL, 0);
}
static muster_status wrong(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                           size_t *out_bytes) {
    (void)user, (void)peer, (void)data, (void)reply;
    if (bytes == 0) *out_bytes = capacity + 1;
    return bytes == 0 ? MUSTER_OK : MUSTER_TIMEOUT; /* no status of a reply */
}

static void set_handlers(side *s, server *of) {
    pthread_mutex_init(&of->hold, NULL);
    of->am = s->am;
    const muster_am_fn all[] = {[ADD] = add, [ECHO] = echo,   [REFUSE] = refuse, [HOLD] = hold,
                                [BIG] = big, [ORDER] = order, [NESTED] = nested, [WRONG] = wrong};
    for (uint32_t i = 1; i <= WRONG; i++)
        if (i != HOST) assert_int_equal(muster_am_set_handler(s->am, i, all[i], of), MUSTER_OK);
    assert_int_equal(muster_am_serve(s->am, HOST, s->queue, 55), MUSTER_OK);
    assert_int_equal(muster_am_set_handler(s->am, ADD, add, of), MUSTER_E_EXISTS);
    assert_int_equal(muster_am_set_handler(s->am, MUSTER_AM_MAX_HANDLER + 1, add, of), MUSTER_E_ARG);
}
static muster_status call_u64(side *s, uint32_t handler, uint64_t value, uint64_t *out) {
    size_t got = 0;
    const muster_status status =
        muster_am_call(s->am, s->peer, handler, &value, sizeof value, out, sizeof *out, 20 * second, &got, NULL);
    if (status == MUSTER_OK) assert_int_equal(got, sizeof *out);
    return status;
}

static void use_both(const char *address, const muster_am_config *of_b) {
    side a = make_side(NULL), b = make_side(of_b);
    server at_a = {0}, at_b = {0};
    set_handlers(&a, &at_a);
    set_handlers(&b, &at_b);
    join_sides(&a, &b, address);
    uint64_t before = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(call_u64(&a, ADD, 1, &before), MUSTER_OK);
        assert_int_equal(before, i);
    }
    assert_int_equal(call_u64(&b, ADD, 5, &before), MUSTER_OK);
    assert_int_equal(at_a.sum, 5);
    // The largest request and reply; one byte more is refused, and nothing is lost.
    muster_am_peer state;
    assert_int_equal(muster_am_get_peer(a.am, a.peer, &state, NULL), MUSTER_OK);
    assert_int_equal(state.status, MUSTER_OK);
    assert_int_equal(state.sent, 1000);
    const size_t most = state.max_bytes;
    assert_int_equal(most, of_b != NULL && of_b->max_bytes == 4096 ? 4096 : 65536); /* the smaller one */
    unsigned char *data = malloc(most + 1), *back = calloc(1, most + 1);
    for (size_t i = 0; i <= most; i++) data[i] = (unsigned char)(i * 7 + (i >> 8));
    size_t got = 0;
    muster_error error = {0};
    for (int i = 0; i < 50; i++) {
        const size_t bytes = i == 0 ? most : most / (size_t)(i * i * 3);
        memset(back, 0, most);
        assert_int_equal(muster_am_call(a.am, a.peer, ECHO, data, bytes, back, most, 20 * second, &got, &error),
                         MUSTER_OK);
        assert_int_equal(got, bytes);
        assert_memory_equal(back, data, bytes);
    }
    assert_int_equal(muster_am_call(a.am, a.peer, ECHO, data, most + 1, back, most, 20 * second, &got, &error),
                     MUSTER_E_ARG);
    assert_non_null(strstr(error.message, "bytes"));
    assert_int_equal(muster_am_call(a.am, a.peer, ECHO, data, 100, back, 10, 20 * second, &got, NULL), MUSTER_E_LIMIT);
    assert_int_equal(got, 100);
    assert_int_equal(muster_am_call(a.am, a.peer, ECHO, data, 100, NULL, 0, 20 * second, &got, NULL), MUSTER_OK);
    // What a handler returns, and what it must not.
    assert_int_equal(muster_am_call(a.am, a.peer, REFUSE, NULL, 0, NULL, 0, 20 * second, NULL, NULL),
                     MUSTER_E_PERMISSION);
    assert_int_equal(muster_am_call(a.am, a.peer, REFUSE, data, 1, NULL, 0, 20 * second, NULL, NULL), MUSTER_AGAIN);
    assert_int_equal(muster_am_call(a.am, a.peer, WRONG, NULL, 0, NULL, 0, 20 * second, NULL, NULL), MUSTER_E_INTERNAL);
    assert_int_equal(muster_am_call(a.am, a.peer, WRONG, data, 1, NULL, 0, 20 * second, NULL, NULL), MUSTER_E_INTERNAL);
    assert_int_equal(muster_am_call(a.am, a.peer, 200, NULL, 0, NULL, 0, 20 * second, NULL, NULL),
                     MUSTER_E_UNSUPPORTED);
    // Order; a handler that begins a request.
    for (uint64_t i = 1; i <= 2000; i++) {
        muster_status status;
        while ((status = muster_am_begin(a.am, a.peer, ORDER, &i, sizeof i, NULL, 0, NULL, 0)) == MUSTER_AGAIN)
            assert_true(muster_am_flush(a.am, a.peer, 20 * second) == MUSTER_OK);
        assert_int_equal(status, MUSTER_OK);
    }
    assert_int_equal(muster_am_flush(a.am, UINT32_MAX, 20 * second), MUSTER_OK);
    assert_int_equal(at_b.last, 2000);
    assert_false(at_b.out_of_order);
    const uint64_t sum = at_a.sum, one = 1;
    assert_int_equal(muster_am_call(a.am, a.peer, NESTED, &one, sizeof one, NULL, 0, 20 * second, NULL, NULL),
                     MUSTER_OK);
    assert_int_equal(muster_am_flush(b.am, b.peer, 20 * second), MUSTER_OK);
    assert_int_equal(at_a.sum, sum + 1);
    // The host answers, in another order.
    uint64_t replies[3] = {0};
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(
            muster_am_begin(a.am, a.peer, HOST, &i, sizeof i, &replies[i], sizeof replies[i], a.queue, 100 + i),
            MUSTER_OK);
    muster_am_request *requests[3];
    for (uint64_t i = 0; i < 3; i++) {
        const muster_completion entry = next_of(b.queue);
        assert_int_equal(entry.kind, MUSTER_REQUEST_AM);
        assert_int_equal(entry.tag, 55);
        requests[i] = entry.object;
        muster_am_request_info info;
        assert_int_equal(muster_am_request_get(requests[i], &info), MUSTER_OK);
        assert_int_equal(info.handler, HOST);
        assert_int_equal(info.peer, b.peer);
        assert_int_equal(info.bytes, sizeof i);
        assert_memory_equal(info.data, &i, sizeof i);
    }
    assert_int_equal(muster_am_request_reply(requests[0], MUSTER_OK, data, most + 1), MUSTER_E_ARG);
    assert_int_equal(muster_am_request_reply(requests[0], MUSTER_TIMEOUT, NULL, 0), MUSTER_E_ARG);
    for (int i = 2; i > 0; i--) {
        const uint64_t value = 40 + (uint64_t)i;
        assert_int_equal(muster_am_request_reply(requests[i], MUSTER_OK, &value, sizeof value), MUSTER_OK);
        assert_int_equal(muster_am_request_reply(requests[i], MUSTER_OK, &value, sizeof value), MUSTER_E_STALE);
        const muster_completion entry = next_of(a.queue);
        assert_int_equal(entry.kind, MUSTER_DONE_AM);
        assert_int_equal(entry.status, MUSTER_OK);
        assert_int_equal(entry.tag, 100 + i);
        assert_int_equal(entry.bytes, sizeof value);
        assert_int_equal(replies[i], value);
    }
    for (int i = 0; i < 3; i++) muster_am_request_release(requests[i]);
    assert_int_equal(next_of(a.queue).status, MUSTER_E_CANCELED); /* it was released without an answer */
    free(data), free(back);
    end_side(&a);
    end_side(&b);
}
static void work_over_every_transport(void **state) {
    (void)state;
    char at[64];
    use_both("tcp://127.0.0.1:0", NULL);
    use_both("tcp://127.0.0.1:0", &(muster_am_config){.max_bytes = 4096, .max_requests = 16});
    use_both("tcp://127.0.0.1:0?upgrade=no", &(muster_am_config){.max_bytes = 1 << 20});
    use_both("tcp://127.0.0.1:0", &(muster_am_config){.flags = MUSTER_AM_NO_POLLING});
    snprintf(at, sizeof at, "shm://am-%d", (int)getpid());
    use_both(at, NULL);
}

// ---- limits

static void limits_and_cancels(void **state) {
    (void)state;
    side a = make_side(&(muster_am_config){.max_requests = 16}), b = make_side(NULL);
    const muster_am_config wrong = {.struct_size = sizeof wrong, .flags = 2};
    muster_am *none = b.am;
    assert_int_equal(muster_am_create(b.context, &wrong, &none, NULL), MUSTER_E_ARG);
    assert_null(none);
    server at_b = {0};
    set_handlers(&b, &at_b);
    join_sides(&a, &b, "tcp://127.0.0.1:0");
    assert_int_equal(muster_am_call(a.am, a.peer, ECHO, NULL, 0, NULL, 0, 20 * second, NULL, NULL), MUSTER_OK);
    pthread_mutex_lock(&at_b.hold);
    uint64_t reply = 1;
    for (uint64_t i = 0; i < 16; i++)
        assert_int_equal(muster_am_begin(a.am, a.peer, i == 0 ? HOLD : BIG, NULL, 0, i == 0 ? NULL : &reply,
                                         i == 0 ? 0 : sizeof reply, a.queue, i),
                         MUSTER_OK);
    assert_int_equal(muster_am_begin(a.am, a.peer, ECHO, NULL, 0, NULL, 0, a.queue, 16), MUSTER_AGAIN);
    muster_error error = {0};
    assert_int_equal(muster_am_call(a.am, a.peer, ECHO, NULL, 0, NULL, 0, 10000000, NULL, &error), MUSTER_TIMEOUT);
    assert_int_equal(muster_am_flush(a.am, a.peer, 0), MUSTER_AGAIN);
    assert_int_equal(muster_am_flush(a.am, a.peer, 1000000), MUSTER_TIMEOUT);
    // Cancelled: its memory is the host's again, and its reply is ignored when it arrives.
    assert_int_equal(muster_queue_cancel_operation(a.queue, 3), MUSTER_OK);
    muster_completion entry = next_of(a.queue);
    assert_int_equal(entry.tag, 3);
    assert_int_equal(entry.status, MUSTER_E_CANCELED);
    assert_int_equal(muster_am_begin(a.am, a.peer, ECHO, NULL, 0, NULL, 0, a.queue, 17), MUSTER_AGAIN);
    pthread_mutex_unlock(&at_b.hold);
    for (int i = 0; i < 15; i++) {
        entry = next_of(a.queue);
        assert_int_equal(entry.status, entry.tag == 0 ? MUSTER_OK : MUSTER_E_LIMIT); /* of BIG: room for 8 bytes */
    }
    assert_int_equal(muster_am_flush(a.am, a.peer, 20 * second), MUSTER_OK);
    // A failure of a request without an entry.
    assert_int_equal(muster_am_begin(a.am, a.peer, REFUSE, NULL, 0, NULL, 0, NULL, 0), MUSTER_OK);
    assert_int_equal(muster_am_flush(a.am, UINT32_MAX, 20 * second), MUSTER_E_PERMISSION);
    assert_int_equal(muster_am_flush(a.am, UINT32_MAX, 20 * second), MUSTER_OK);
    // The queue is closed during a request: its reply goes nowhere.
    pthread_mutex_lock(&at_b.hold);
    muster_queue *soon;
    assert_int_equal(muster_queue_create(a.context, NULL, &soon, NULL), MUSTER_OK);
    assert_int_equal(muster_am_begin(a.am, a.peer, HOLD, NULL, 0, &reply, sizeof reply, soon, 0), MUSTER_OK);
    muster_queue_release(soon);
    pthread_mutex_unlock(&at_b.hold);
    assert_int_equal(muster_am_flush(a.am, a.peer, 20 * second), MUSTER_OK);
    end_side(&a);
    end_side(&b);
}

// ---- ends

static void *call_hold(void *argument) {
    side *s = argument;
    return (void *)(intptr_t)muster_am_call(s->am, s->peer, HOLD, NULL, 0, NULL, 0, -1, NULL, NULL);
}
static void a_peer_ends(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        side a = make_side(NULL), b = make_side(NULL);
        server at_b = {0};
        set_handlers(&b, &at_b);
        join_sides(&a, &b, "tcp://127.0.0.1:0");
        pthread_mutex_lock(&at_b.hold);
        pthread_t caller;
        pthread_create(&caller, NULL, call_hold, &a);
        while (atomic_load(&at_b.calls) == 0) sched_yield();
        muster_status expected = MUSTER_E_ABORTED;
        if (way == 0) assert_int_equal(muster_am_disconnect(b.am, b.peer, "enough"), MUSTER_OK);
        if (way == 1) {
            assert_int_equal(muster_am_disconnect(a.am, a.peer, NULL), MUSTER_OK);
            expected = MUSTER_E_CLOSED;
        }
        if (way == 2) {
            assert_int_equal(muster_am_close(a.am), MUSTER_OK);
            expected = MUSTER_E_CLOSED;
        }
        if (way == 3) {
            pthread_mutex_unlock(&at_b.hold); /* a close waits for the handler */
            assert_int_equal(muster_am_close(b.am), MUSTER_OK);
        }
        void *result;
        pthread_join(caller, &result);
        if (way != 3) assert_int_equal((intptr_t)result, expected);
        if (way == 3) assert_true((intptr_t)result == MUSTER_E_ABORTED || (intptr_t)result == MUSTER_OK);
        if (way != 3) pthread_mutex_unlock(&at_b.hold);
        if (way != 2) {
            const muster_completion entry = next_of(a.queue);
            assert_int_equal(entry.kind, MUSTER_EVENT_READY);
            assert_int_equal(entry.events, MUSTER_AM_PEER_ENDED);
            assert_int_equal(entry.tag, 77);
        }
        muster_am_peer peer;
        muster_error why = {0};
        assert_int_equal(muster_am_get_peer(a.am, a.peer, &peer, &why), MUSTER_OK);
        assert_int_equal(peer.status, expected);
        if (way == 0) assert_non_null(strstr(why.message, "enough"));
        assert_int_equal(muster_am_begin(a.am, a.peer, ECHO, NULL, 0, NULL, 0, a.queue, 0), expected);
        assert_int_equal(muster_am_call(a.am, a.peer, ECHO, NULL, 0, NULL, 0, -1, NULL, NULL), expected);
        end_side(&a);
        end_side(&b);
    }
}

// ---- a hostile peer: a stream with an endpoint at one end only

static void put_u32(unsigned char *to, uint32_t value) {
    memcpy(to, &value, sizeof value);
}
static size_t frame(unsigned char *to, uint8_t kind, uint16_t handler, uint64_t id, int32_t status, uint32_t bytes) {
    memset(to, 0, 24);
    put_u32(to, bytes);
    to[4] = kind;
    memcpy(to + 6, &handler, sizeof handler);
    memcpy(to + 8, &id, sizeof id);
    put_u32(to + 16, (uint32_t)status);
    return 24;
}
static size_t hello(unsigned char *to, uint32_t max_bytes, uint32_t max_requests) {
    frame(to, 1, 0, 0, 0, 20);
    put_u32(to + 24, 0x326d616d);
    put_u32(to + 28, max_bytes);
    put_u32(to + 32, max_requests);
    memset(to + 36, 7, 8);
    return 44;
}
// An endpoint, and the other end of a stream to it.
static side side_of_stranger(server *of_a, muster_context **out_context, muster_stream **out_stream) {
    side a = make_side(&(muster_am_config){.max_bytes = 4096, .max_requests = 16});
    muster_stream *to_b;
    set_handlers(&a, of_a);
    assert_int_equal(muster_context_create(NULL, out_context, NULL), MUSTER_OK);
    stream_between(a.context, *out_context, "tcp://127.0.0.1:0", &to_b, out_stream);
    assert_int_equal(muster_am_add_peer(a.am, to_b, &a.peer, NULL), MUSTER_OK);
    return a;
}
static void end_stranger(side *a, muster_context *context, muster_stream *stream) {
    muster_stream_release(stream);
    assert_int_equal(muster_context_close(context, 20 * second), MUSTER_OK);
    muster_context_release(context);
    end_side(a);
}
static void send_bytes(const char *what, const unsigned char *bytes, size_t size, size_t piece) {
    server at_a = {0};
    muster_context *context;
    muster_stream *to_a;
    side a = side_of_stranger(&at_a, &context, &to_a);
    for (size_t done = 0; done < size;) {
        size_t moved = 0;
        const size_t part = size - done < piece ? size - done : piece;
        if (muster_stream_write(to_a, bytes + done, part, 20 * second, &moved) != MUSTER_OK) break; /* it is refused */
        done += moved;
    }
    muster_am_peer peer = {0};
    muster_error why = {0};
    const muster_completion entry = next_of(a.queue);
    assert_int_equal(entry.kind == MUSTER_REQUEST_AM ? 0 : (int)entry.events, (int)MUSTER_AM_PEER_ENDED);
    assert_int_equal(muster_am_get_peer(a.am, a.peer, &peer, &why), MUSTER_OK);
    if (peer.status != MUSTER_E_PROTOCOL) fail_msg("%s: %d %s", what, peer.status, why.message);
    end_stranger(&a, context, to_a);
}
static void hostile_peers(void **state) {
    (void)state;
    static unsigned char bytes[1 << 20];
    for (size_t piece = 1; piece <= sizeof bytes; piece *= 1024) {
        size_t n = frame(bytes, 2, ECHO, 1, 0, 0);
        send_bytes("no hello", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += hello(bytes + n, 65536, 16);
        send_bytes("two hellos", bytes, n, piece);
        n = hello(bytes, 100, 16);
        send_bytes("a hello with a small limit", bytes, n, piece);
        n = hello(bytes, 65536, 1 << 30);
        send_bytes("a hello with a large limit", bytes, n, piece);
        n = hello(bytes, 65536, 16), bytes[24]++;
        send_bytes("another program", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += frame(bytes + n, 2, ECHO, 1, 0, 4097);
        send_bytes("a large request", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += frame(bytes + n, 2, ECHO, 1, 0, UINT32_MAX);
        send_bytes("a huge request", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += frame(bytes + n, 2, 512, 1, 0, 0);
        send_bytes("a large handler", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += frame(bytes + n, 7, ECHO, 1, 0, 0);
        send_bytes("an unknown kind", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += frame(bytes + n, 3, 0, 1, 0, 0);
        send_bytes("a reply to nothing", bytes, n, piece);
        n = hello(bytes, 65536, 16), n += frame(bytes + n, 3, 0, 1, 12345, 0);
        send_bytes("a strange status", bytes, n, piece);
    }
    size_t n = hello(bytes, 65536, 65536);
    for (int i = 0; i < 17; i++) n += frame(bytes + n, 2, HOST, (uint64_t)i, 0, 0);
    // All requests of the host are refused when the peer ends; 17 of them are more than 16.
    server at_a = {0};
    muster_context *context;
    muster_stream *to_a;
    side a = side_of_stranger(&at_a, &context, &to_a);
    size_t moved = 0;
    muster_stream_write(to_a, bytes, n, 20 * second, &moved);
    uint32_t requests = 0;
    muster_am_request *kept[17];
    for (;;) {
        const muster_completion entry = next_of(a.queue);
        if (entry.kind != MUSTER_REQUEST_AM) break;
        assert_in_range(requests, 0, 15);
        kept[requests++] = entry.object;
    }
    for (uint32_t i = 0; i < requests; i++) {
        assert_int_equal(muster_am_request_reply(kept[i], MUSTER_OK, NULL, 0), MUSTER_E_PEER);
        muster_am_request_release(kept[i]);
    }
    muster_am_peer peer;
    assert_int_equal(muster_am_get_peer(a.am, a.peer, &peer, NULL), MUSTER_OK);
    assert_int_equal(peer.status, MUSTER_E_PROTOCOL);
    end_stranger(&a, context, to_a);
}

// ---- a peer that is killed

static void a_killed_peer(void **state) {
    (void)state;
    setenv("MUSTER_SECRET", "the secret of a test", 1);
    char at[64];
    snprintf(at, sizeof at, "unix:///tmp/muster-am-%d", (int)getpid());
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        side b = make_side(NULL);
        server at_b = {0};
        set_handlers(&b, &at_b);
        pthread_mutex_lock(&at_b.hold);
        muster_listener *listener;
        muster_stream *stream;
        if (muster_transport_listen(b.context, at, strlen(at), NULL, &listener, NULL) != MUSTER_OK) _exit(1);
        if (write(ready[1], "!", 1) != 1 || muster_listener_accept(listener, -1, &stream, NULL) != MUSTER_OK) _exit(1);
        if (muster_am_add_peer(b.am, stream, &b.peer, NULL) != MUSTER_OK) _exit(1);
        while (atomic_load(&at_b.calls) == 0) sched_yield();
        raise(SIGKILL);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    side a = make_side(NULL);
    muster_stream *stream;
    assert_int_equal(muster_transport_dial(a.context, at, strlen(at), NULL, 20 * second, &stream, NULL), MUSTER_OK);
    assert_int_equal(muster_am_add_peer(a.am, stream, &a.peer, NULL), MUSTER_OK);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(muster_am_begin(a.am, a.peer, HOLD, NULL, 0, NULL, 0, i % 2 ? a.queue : NULL, i), MUSTER_OK);
    int ended = 0;
    for (int i = 0; i < 6; i++) {
        const muster_completion entry = next_of(a.queue);
        if (entry.kind == MUSTER_DONE_AM) assert_int_equal(entry.status, MUSTER_E_PEER), ended++;
    }
    assert_int_equal(ended, 5);
    assert_int_equal(muster_am_flush(a.am, a.peer, 20 * second), MUSTER_E_PEER);
    assert_int_equal(waitpid(child, NULL, 0), child);
    unlink(at + 7);
    end_side(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_peer), // first: it forks
        cmocka_unit_test(work_over_every_transport),
        cmocka_unit_test(limits_and_cancels),
        cmocka_unit_test(a_peer_ends),
        cmocka_unit_test(hostile_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
