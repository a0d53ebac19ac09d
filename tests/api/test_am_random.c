// SPDX-License-Identifier: MIT
// Random sequences of requests, cancellations, disconnections and new connections between two endpoints, while a thread
// of each calls the other without end. What must hold: every request that was begun has one entry; it succeeds, with
// the right bytes, unless it was cancelled or its connection has ended; requests are executed in their order; nothing
// is left at the end, and nothing hangs. ctest: quick timeout=120
#include "am_run.h"

#include "random_run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { ECHO = 1, ORDER = 2, HOST = 3, max_begun = 400, max_kept = 64 };
enum operation { CALL, BEGIN, QUIET, ASK_HOST, TAKE, ANSWER, CANCEL, FLUSH, DISCONNECT, CONNECT, operations };

typedef struct step {
    enum operation operation;
    uint32_t side, a, b;
} step;
static step steps[max_steps];
static int current = -1;

#define NEED(condition, one)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "step %d: %s (%lld)\n", current, #condition, (long long)(one));                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

typedef struct begun {
    bool is_over, was_cancelled, is_for_host;
    int link;
    uint32_t bytes, seed;
    unsigned char reply[300];
} begun;
typedef struct end { // of both sides
    side s;
    begun all[max_begun];
    int count;
    muster_am_request *kept[max_kept];
    int kept_count;
    uint64_t next_order;
    _Atomic uint64_t last_order; // of the other side, as its handler has seen it
    _Atomic bool out_of_order;
} end;
static end ends[2];
static int link_number; // the connection that is there now
static bool is_linked;
static _Atomic uint32_t peers[2]; // of it
static _Atomic bool stop;

static void fill(unsigned char *to, uint32_t bytes, uint32_t seed) {
    for (uint32_t i = 0; i < bytes; i++) to[i] = (unsigned char)(seed + i * 7);
}
static muster_status echo(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                          size_t *out_bytes) {
    (void)user, (void)peer, (void)capacity;
    if (bytes != 0) memcpy(reply, data, bytes);
    *out_bytes = bytes;
    return MUSTER_OK;
}

static muster_status order(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                           size_t *out_bytes) {
    (void)peer, (void)reply, (void)capacity, (void)out_bytes;
    end *const own = user;
    uint64_t number = 0;
    if (bytes != sizeof number) return MUSTER_E_ARG;
    memcpy(&number, data, sizeof number);
    if (number <= atomic_exchange(&own->last_order, number)) atomic_store(&own->out_of_order, true);
    return MUSTER_OK;
}
static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * second + at.tv_nsec;
}
static bool has_lost(muster_status status) {
    return status == MUSTER_E_PEER || status == MUSTER_E_ABORTED || status == MUSTER_E_CLOSED;
}

static void connect_both(void) {

    muster_stream *to[2];
    stream_between(ends[0].s.context, ends[1].s.context,
                   current % 2 ? "tcp://127.0.0.1:0" : "tcp://127.0.0.1:0?upgrade=no", &to[0], &to[1]);
    for (int i = 0; i < 2; i++) {
        NEED(muster_am_add_peer(ends[i].s.am, to[i], &ends[i].s.peer, NULL) == MUSTER_OK, i);
        atomic_store(&peers[i], ends[i].s.peer);
    }
    link_number++;
    is_linked = true;
}

static void take(end *own, bool waits) {
    muster_completion entry;
    const muster_status status = muster_queue_next(own->s.queue, waits ? 20 * second : 0, &entry, NULL);
    NEED(status == MUSTER_OK || (status == MUSTER_AGAIN && !waits), status);
    if (status != MUSTER_OK || entry.kind == MUSTER_EVENT_READY) return;
    if (entry.kind == MUSTER_REQUEST_AM) {
        if (own->kept_count == max_kept) muster_am_request_release(own->kept[--own->kept_count]);
        own->kept[own->kept_count++] = entry.object;
        return;
    }
    NEED(entry.kind == MUSTER_DONE_AM && entry.tag < (uint64_t)own->count, entry.kind);
    begun *const b = &own->all[entry.tag];
    NEED(!b->is_over, entry.tag); // one entry each
    b->is_over = true;
    if (entry.status == MUSTER_OK) {
        unsigned char expected[300];
        fill(expected, b->bytes, b->seed);
        NEED(entry.bytes == b->bytes && memcmp(expected, b->reply, b->bytes) == 0, entry.bytes);
        return;
    }
    const bool is_old = !is_linked || b->link != link_number;
    NEED((entry.status == MUSTER_E_CANCELED && (b->was_cancelled || b->is_for_host)) ||
             (is_old && has_lost(entry.status)),
         entry.status);
}
static void answer(end *own, bool drops) {
    if (own->kept_count == 0) return;
    muster_am_request *const request = own->kept[--own->kept_count];
    muster_am_request_info info;
    NEED(muster_am_request_get(request, &info) == MUSTER_OK, 0);
    if (!drops) {
        const muster_status status = muster_am_request_reply(request, MUSTER_OK, info.data, info.bytes);
        NEED(status == MUSTER_OK || status == MUSTER_E_PEER, status);
    }
    muster_am_request_release(request);
}
static void begin(end *own, const step *s, uint32_t handler) {
    if (own->count == max_begun) return;
    begun *const b = &own->all[own->count];
    *b = (begun){.link = link_number, .bytes = s->a % 300, .seed = s->b, .is_for_host = handler == HOST};
    unsigned char data[300];
    fill(data, b->bytes, b->seed);
    const muster_status status = muster_am_begin(own->s.am, own->s.peer, handler, data, b->bytes, b->reply,
                                                 sizeof b->reply, own->s.queue, (uint64_t)own->count);
    if (status == MUSTER_OK)
        own->count++;
    else
        NEED(status == MUSTER_AGAIN || (!is_linked && has_lost(status)), status);
}

static void one_step(const step *s) {
    end *const own = &ends[s->side];
    muster_status status;
    switch (s->operation) {
    case CALL: {
        unsigned char data[3000], back[3000];
        const uint32_t bytes = s->a % sizeof data;
        size_t got = 0;
        fill(data, bytes, s->b);
        status = muster_am_call(own->s.am, own->s.peer, ECHO, data, bytes, back, sizeof back, 20 * second, &got, NULL);
        NEED(status == MUSTER_OK ? got == bytes && memcmp(data, back, bytes) == 0 : !is_linked && has_lost(status),
             status);
        break;
    }
    case BEGIN:
    case ASK_HOST:
        begin(own, s, s->operation == BEGIN ? ECHO : HOST);
        break;
    case QUIET: {
        const uint64_t number = ++own->next_order;
        status = muster_am_begin(own->s.am, own->s.peer, ORDER, &number, sizeof number, NULL, 0, NULL, 0);
        NEED(status == MUSTER_OK || status == MUSTER_AGAIN || (!is_linked && has_lost(status)), status);
        break;
    }
    case TAKE:
        take(own, false);
        break;
    case ANSWER:
        answer(own, s->a % 4 == 0);
        break;
    case CANCEL:
        if (own->count == 0) break;
        own->all[s->a % (uint32_t)own->count].was_cancelled = true;
        muster_queue_cancel_operation(own->s.queue, s->a % (uint32_t)own->count); // it may be over
        break;
    case FLUSH:
        status = muster_am_flush(own->s.am, own->s.peer, 0);
        NEED(status == MUSTER_OK || status == MUSTER_AGAIN || (!is_linked && has_lost(status)), status);
        break;
    case DISCONNECT:
        NEED(muster_am_disconnect(own->s.am, own->s.peer, "a step of a test") == MUSTER_OK, 0);
        is_linked = false;
        break;
    default:
        if (!is_linked) connect_both();
    }
}

// Calls without end; what ends a connection ends a call.
static void *make_noise(void *argument) {
    end *const own = argument;
    const int number = own == &ends[0] ? 0 : 1;
    for (uint32_t i = 0; !atomic_load(&stop); i++) {
        unsigned char data[64], back[64];
        size_t got = 0;
        fill(data, sizeof data, i);
        const muster_status status = muster_am_call(own->s.am, atomic_load(&peers[number]), ECHO, data, sizeof data,
                                                    back, sizeof back, 20 * second, &got, NULL);
        NEED(status == MUSTER_OK ? got == sizeof data && memcmp(data, back, got) == 0 : has_lost(status), status);
        if (status != MUSTER_OK) sched_yield();
    }
    return NULL;
}

static void make(uint64_t *state, int at) {
    const uint64_t r = next_random(state);
    const uint32_t pick = (uint32_t)(r >> 8) % 100;
    steps[at] = (step){.operation = pick < 20   ? CALL
                                    : pick < 40 ? BEGIN
                                    : pick < 52 ? QUIET
                                    : pick < 62 ? ASK_HOST
                                    : pick < 80 ? TAKE
                                    : pick < 88 ? ANSWER
                                    : pick < 92 ? CANCEL
                                    : pick < 95 ? FLUSH
                                    : pick < 97 ? DISCONNECT
                                                : CONNECT,
                       .side = r & 1,
                       .a = (uint32_t)(r >> 16),
                       .b = (uint32_t)(r >> 40)};
}
static void print(int at) {
    static const char *const names[] = {"call",   "begin",  "quiet", "ask_host",   "take",
                                        "answer", "cancel", "flush", "disconnect", "connect"};
    fprintf(stderr, "%4d side %u: %s %u %u\n", at, steps[at].side, names[steps[at].operation], steps[at].a,
            steps[at].b);
}

static void run(int count, const bool *left_out) {
    pthread_t noise[2];
    for (int i = 0; i < 2; i++) {
        end *const own = &ends[i];
        own->s = make_side(
            &(muster_am_config){.max_requests = 64, .flags = steps[0].a % 3 == (uint32_t)i ? MUSTER_AM_NO_POLLING : 0});
        NEED(muster_am_set_handler(own->s.am, ECHO, echo, own) == MUSTER_OK, i);
        NEED(muster_am_set_handler(own->s.am, ORDER, order, own) == MUSTER_OK, i);
        NEED(muster_am_serve(own->s.am, HOST, own->s.queue, 0) == MUSTER_OK, i);
    }
    connect_both();
    for (int i = 0; i < 2; i++) pthread_create(&noise[i], NULL, make_noise, &ends[i]);
    for (current = 0; current < count; current++)
        if (!left_out[current]) one_step(&steps[current]);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) pthread_join(noise[i], NULL);
    // Each request gets its entry once the hosts have answered.
    for (bool is_left = true; is_left;) {
        is_left = false;
        for (int i = 0; i < 2; i++) {
            end *const own = &ends[i];
            take(own, false);
            answer(own, false);
            for (int k = 0; k < own->count; k++) is_left = is_left || !own->all[k].is_over;
        }
        if (is_left) sched_yield();
    }
    // Requests that were cancelled are over here, and may still wait for the other host. The end of a connection takes
    // a moment to arrive.
    const int64_t limit = now() + 20 * second;
    for (int i = 0; i < 2; i++) {
        muster_status status;
        while ((status = muster_am_flush(ends[i].s.am, UINT32_MAX, 0)) == MUSTER_AGAIN) {
            for (int k = 0; k < 2; k++) {
                take(&ends[k], false);
                answer(&ends[k], false);
            }
            NEED(now() < limit, status);
            sched_yield();
        }
        NEED(status == MUSTER_OK || has_lost(status), status);
        NEED(!ends[i].out_of_order, i);
        muster_am_peer peer;
        do NEED(muster_am_get_peer(ends[i].s.am, ends[i].s.peer, &peer, NULL) == MUSTER_OK, i);
        while (!is_linked && peer.status == MUSTER_OK && now() < limit && sched_yield() == 0);
        NEED(peer.requests == 0 && (peer.status == MUSTER_OK) == is_linked, peer.requests);
    }
    for (int i = 0; i < 2; i++) end_side(&ends[i].s);
}

static void test_requests_and_their_ends(void **state) {
    (void)state;
    const sequence s = {.name = "am", .count = 400, .make = make, .run = run, .print = print};
    assert_true(run_sequences(&s, 60));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests_and_their_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
