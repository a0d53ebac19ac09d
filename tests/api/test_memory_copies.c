// SPDX-License-Identifier: MIT
// Random sequences of puts and gets of all sizes on a locale that is elsewhere: called, begun, with limits of time that
// pass in their middle, with queues that are closed meanwhile. Two more threads copy without end, one of each locale,
// so that both directions are full. What must hold: the bytes are those of a model, a signal comes after its bytes, and
// memory that the library gave back is not used.
// ctest: quick timeout=180
#include "memory_run.h"
#include "random_run.h"
#include "thread_sanitizer.h"

enum { region = 12 << 20, symmetric_bytes = 3 * region + 65536, most_begun = 6 };
enum operation { PUT, GET, PUT_SOON, GET_SOON, BEGIN_PUT, BEGIN_GET, TAKE, CLOSE, SIGNAL, FETCH, operations };

typedef struct step {
    enum operation operation;
    uint32_t from, bytes, value;
} step;
static step steps[max_steps];
static const bool *left_out;
static int count_of_steps, current = -1;

// A copy that was begun: its place, and its own memory.
typedef struct begun {
    bool is_put, is_under_way;
    uint32_t from, bytes;
    unsigned char *memory;
} begun;

typedef struct model {
    muster_memory *memory;
    muster_context *context;
    muster_queue *queue;
    muster_gptr region, signal, counter;
    unsigned char *shadow;
    bool *unknown; // by page of 4096 bytes: a copy to it did not end
    begun begun[most_begun];
    uint64_t signals, sum;
    _Atomic uint64_t *own_signal;
} model;

#define NEED(condition, one, two)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "step %d: %s (%llu, %llu)\n", current, #condition, (unsigned long long)(one),              \
                    (unsigned long long)(two));                                                                        \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

// At the owner, a thread of its own writes the reply to a large get. That it has read the bytes before a later put
// arrives follows from the stream, which ThreadSanitizer does not see.
static uint32_t max_get_bytes(void) {
    return UNDER_THREAD_SANITIZER ? 200000 : region;
}

static void fill(unsigned char *to, uint32_t bytes, uint32_t value) {
    for (uint32_t i = 0; i < bytes; i++) to[i] = (unsigned char)(value + i * 7 + (i >> 9));
}
static muster_memory_operation copy_of(const model *m, bool is_put, uint32_t from, uint32_t bytes, void *local) {
    return (muster_memory_operation){.struct_size = sizeof(muster_memory_operation),
                                     .kind = is_put ? MUSTER_MEMORY_PUT : MUSTER_MEMORY_GET,
                                     .target = m->region + from,
                                     .local = local,
                                     .bytes = bytes};
}
static void set_unknown(model *m, uint32_t from, uint32_t bytes, bool is_unknown) {
    for (uint32_t page = from / 4096; page <= (from + bytes - 1) / 4096; page++)
        if (is_unknown || (from <= page * 4096 && from + bytes >= (page + 1) * 4096)) m->unknown[page] = is_unknown;
}
static void compare(const model *m, const unsigned char *with, uint32_t from, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++)
        if (!m->unknown[(from + i) / 4096]) NEED(with[i] == m->shadow[from + i], from + i, bytes);
}
static bool overlaps_begun(const model *m, uint32_t from, uint32_t bytes) {
    for (int i = 0; i < most_begun; i++) {
        const begun *const b = &m->begun[i];
        if (b->is_under_way && from < b->from + b->bytes && b->from < from + bytes) return true;
    }
    return false;
}

static void put_now(model *m, const step *s, int64_t timeout_ns) {
    unsigned char *const data = malloc(s->bytes);
    fill(data, s->bytes, s->value);
    const muster_memory_operation put = copy_of(m, true, s->from, s->bytes, data);
    const muster_status status = muster_memory_run(m->memory, &put, timeout_ns, NULL);
    NEED(status == MUSTER_OK || (status == MUSTER_TIMEOUT && timeout_ns >= 0), status, s->bytes);
    if (status == MUSTER_OK) memcpy(m->shadow + s->from, data, s->bytes);
    set_unknown(m, s->from, s->bytes, status != MUSTER_OK);
    memset(data, 0xee, s->bytes);
    free(data);
}
static void get_now(model *m, const step *s, int64_t timeout_ns) {
    unsigned char *const data = malloc(s->bytes);
    memset(data, 0xdd, s->bytes);
    const muster_memory_operation get = copy_of(m, false, s->from, s->bytes, data);
    const muster_status status = muster_memory_run(m->memory, &get, timeout_ns, NULL);
    NEED(status == MUSTER_OK || (status == MUSTER_TIMEOUT && timeout_ns >= 0), status, s->bytes);
    if (status == MUSTER_OK) compare(m, data, s->from, s->bytes);
    if (status != MUSTER_OK) {
        memset(data, 0xcc, s->bytes);
        sched_yield();
        for (uint32_t i = 0; i < s->bytes; i += 64) NEED(data[i] == 0xcc, i, data[i]); // it is not written any more
    }
    free(data);
}
static void begin(model *m, const step *s, bool is_put) {
    begun *free_one = NULL;
    for (int i = 0; i < most_begun; i++)
        if (!m->begun[i].is_under_way) free_one = &m->begun[i];
    if (free_one == NULL) return;
    unsigned char *const data = malloc(s->bytes);
    if (is_put) fill(data, s->bytes, s->value);
    const muster_memory_operation copy = copy_of(m, is_put, s->from, s->bytes, data);
    const muster_status status = muster_memory_begin(m->memory, &copy, NULL, m->queue, (uint64_t)(free_one - m->begun));
    NEED(status == MUSTER_OK || status == MUSTER_AGAIN, status, s->bytes);
    if (status == MUSTER_OK)
        *free_one = (begun){is_put, true, s->from, s->bytes, data};
    else
        free(data);
}
static void take_all(model *m) {
    for (int i = 0; i < most_begun; i++) {
        bool any = false;
        for (int k = 0; k < most_begun; k++) any = any || m->begun[k].is_under_way;
        if (!any) return;
        muster_completion entry;
        NEED(muster_queue_next(m->queue, 60 * second, &entry, NULL) == MUSTER_OK, i, 0);
        NEED(entry.kind == MUSTER_DONE_MEMORY && entry.status == MUSTER_OK, entry.kind, entry.status);
        begun *const b = &m->begun[entry.tag];
        NEED(b->is_under_way && entry.bytes == b->bytes, entry.tag, entry.bytes);
        if (b->is_put) {
            memcpy(m->shadow + b->from, b->memory, b->bytes);
            set_unknown(m, b->from, b->bytes, false);
        } else {
            compare(m, b->memory, b->from, b->bytes);
        }
        free(b->memory);
        b->is_under_way = false;
    }
}
static void close_queue(model *m) {
    muster_queue_release(m->queue);
    for (int i = 0; i < most_begun; i++) {
        begun *const b = &m->begun[i];
        if (!b->is_under_way) continue;
        if (b->is_put) set_unknown(m, b->from, b->bytes, true);
        memset(b->memory, 0xbb, b->bytes);
        free(b->memory);
        b->is_under_way = false;
    }
    NEED(muster_queue_create(m->context, NULL, &m->queue, NULL) == MUSTER_OK, 0, 0);
}

static void one_step(model *m, const step *s) {
    if (s->operation == TAKE) take_all(m);
    if (s->operation == CLOSE) close_queue(m);
    if (s->operation == TAKE || s->operation == CLOSE) return;
    if (s->operation == FETCH) {
        muster_memory_result seen = {0};
        const muster_memory_operation add = {
            .kind = MUSTER_MEMORY_FETCH, .target = m->counter, .operation = MUSTER_ATOMIC_ADD, .value = s->value};
        NEED(run_one(m->memory, add, &seen) == MUSTER_OK && seen.value == m->sum, seen.value, m->sum);
        m->sum += s->value;
        return;
    }
    // What is under way may come before or after another copy of the same bytes.
    if (overlaps_begun(m, s->from, s->bytes)) return;
    if (s->operation == PUT) put_now(m, s, -1);
    if (s->operation == GET) get_now(m, s, -1);
    if (s->operation == PUT_SOON) put_now(m, s, s->value * 1000);
    if (s->operation == GET_SOON) get_now(m, s, s->value * 1000);
    if (s->operation == BEGIN_PUT || s->operation == BEGIN_GET) begin(m, s, s->operation == BEGIN_PUT);
    if (s->operation == SIGNAL) {
        unsigned char *const data = malloc(s->bytes);
        fill(data, s->bytes, s->value);
        muster_memory_operation put = copy_of(m, true, s->from, s->bytes, data);
        put.signal = m->signal, put.value = 1;
        NEED(muster_memory_run(m->memory, &put, -1, NULL) == MUSTER_OK, s->from, s->bytes);
        m->signals++;
        NEED(atomic_load(m->own_signal) == m->signals, *m->own_signal, m->signals);
        memcpy(m->shadow + s->from, data, s->bytes);
        set_unknown(m, s->from, s->bytes, false);
        free(data);
    }
}

// ---- the two other threads: each has a region of its own at the other locale

typedef struct load {
    muster_memory *memory;
    muster_gptr region;
    atomic_bool ends;
    pthread_t thread;
} load;

static void *copy_without_end(void *argument) {
    load *const l = argument;
    unsigned char *const data = malloc(region), *const back = malloc(region);
    uint64_t state = l->region;
    while (!atomic_load(&l->ends)) {
        const uint32_t bytes =
            1 + (uint32_t)(next_random(&state) %
                           (next_random(&state) % 8 ? next_random(&state) % 2 ? 40000 : region / 4 : region));
        fill(data, bytes, (uint32_t)next_random(&state));
        put_bytes(l->memory, l->region, data, bytes);
        const uint32_t got = bytes < max_get_bytes() ? bytes : max_get_bytes();
        get_bytes(l->memory, l->region, back, got);
        CHECK(memcmp(data, back, got) == 0);
    }
    free(data), free(back);
    return NULL;
}
static void start_load(load *l, muster_memory *memory, muster_gptr at) {
    l->memory = memory, l->region = at;
    atomic_store(&l->ends, false);
    CHECK(pthread_create(&l->thread, NULL, copy_without_end, l) == 0);
}
static void end_load(load *l) {
    atomic_store(&l->ends, true);
    pthread_join(l->thread, NULL);
}

static _Atomic(void *) signal_of_owner; // both locales are in this process

static void meet(member *me) {
    CHECK(muster_group_barrier(me->group, 100 * second, NULL) == MUSTER_OK); // as long as a sequence may take
}

static void body(member *me) {
    const uint32_t other = 1 - me->rank;
    muster_memory *const memory = open_memory(me, &(muster_memory_config){.struct_size = sizeof(muster_memory_config),
                                                                          .segment_bytes = symmetric_bytes + 65536,
                                                                          .symmetric_bytes = symmetric_bytes});
    const uint64_t regions = symmetric(memory, 3 * region, 4096), words = symmetric(memory, 64, 64);
    load background = {0};
    start_load(&background, memory, at(memory, other, regions + (1 + me->rank) * (uint64_t)region));
    if (me->rank == 1) {
        void *address = NULL;
        CHECK(muster_memory_address(memory, at(memory, 1, words), 8, &address) == MUSTER_OK);
        atomic_store(&signal_of_owner, address);
    }
    meet(me);
    if (me->rank == 0) {
        model m = {.memory = memory,
                   .context = me->context,
                   .region = at(memory, other, regions),
                   .signal = at(memory, other, words),
                   .counter = at(memory, other, words + 8)};
        m.shadow = calloc(1, region);
        m.unknown = calloc(1, region / 4096 + 1);
        CHECK(muster_queue_create(me->context, NULL, &m.queue, NULL) == MUSTER_OK);
        m.own_signal = atomic_load(&signal_of_owner);
        for (current = 0; current < count_of_steps; current++)
            if (!left_out[current]) one_step(&m, &steps[current]);
        take_all(&m);
        for (uint32_t from = 0; from < region; from += max_get_bytes()) {
            const uint32_t left = region - from;
            get_now(&m, &(step){.from = from, .bytes = left < max_get_bytes() ? left : max_get_bytes()}, -1);
        }
        muster_queue_release(m.queue);
        free(m.shadow), free(m.unknown);
    }
    meet(me);
    end_load(&background);
    meet(me);
    muster_memory_release(memory);
}

static void run(int count, const bool *without) {
    count_of_steps = count, left_out = without;
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(2, &(member){.listen = steps[0].value % 2 ? "tcp://127.0.0.1:0?upgrade=no" : "tcp://127.0.0.1:0"},
                body);
}

static void make_step(uint64_t *state, int i) {
    static const enum operation often[] = {PUT,       PUT,       GET,  GET,   PUT_SOON, GET_SOON, BEGIN_PUT,
                                           BEGIN_PUT, BEGIN_GET, TAKE, CLOSE, SIGNAL,   FETCH};
    step *const s = &steps[i];
    s->operation = often[next_random(state) % (sizeof often / sizeof *often)];
    static const uint32_t sizes[] = {16, 4096, 20000, 70000, 300000, 1500000, 1500000, region};
    s->bytes = 1 + (uint32_t)(next_random(state) % sizes[next_random(state) % (sizeof sizes / sizeof *sizes)]);
    const bool is_get = s->operation == GET || s->operation == GET_SOON || s->operation == BEGIN_GET;
    if (is_get && s->bytes > max_get_bytes()) s->bytes = max_get_bytes();
    s->from = (uint32_t)(next_random(state) % (region - s->bytes + 1));
    if (next_random(state) % 2) s->from &= ~63U;
    s->value = (uint32_t)(next_random(state) % 1000);
}

static void print_step(int i) {
    static const char *const names[operations] = {
        "put",       "get",  "put with a limit", "get with a limit", "begin put",
        "begin get", "take", "close the queue",  "signal",           "fetch"};
    fprintf(stderr, "  %d: %s from %u bytes %u value %u\n", i, names[steps[i].operation], steps[i].from, steps[i].bytes,
            steps[i].value);
}

// One locale copies without end while the other releases its memory: calls end with a failure of the peer, and nothing
// is read from or written to a segment that is gone.
static atomic_int copies_done;
static void leave_during_copies(member *me) {
    muster_memory *const memory = open_memory(me, &(muster_memory_config){.struct_size = sizeof(muster_memory_config),
                                                                          .segment_bytes = symmetric_bytes + 65536,
                                                                          .symmetric_bytes = symmetric_bytes});
    const uint64_t regions = symmetric(memory, 3 * region, 4096);
    if (me->rank == 0) atomic_store(&copies_done, 0);
    meet(me);
    if (me->rank == 1) {
        const int wanted = steps[0].value % 20;
        while (atomic_load(&copies_done) < wanted) sched_yield();
    } else {
        unsigned char *const data = calloc(1, region);
        uint64_t state = steps[0].value;
        const int kind = next_random(&state) % 2 ? MUSTER_MEMORY_PUT : MUSTER_MEMORY_GET;
        muster_status status = MUSTER_OK;
        while (status == MUSTER_OK) {
            muster_memory_operation copy = {.struct_size = sizeof copy,
                                            .kind = kind,
                                            .target = at(memory, 1, regions),
                                            .local = data,
                                            .bytes = 1 + next_random(&state) % region};
            status = muster_memory_run(memory, &copy, -1, NULL);
            atomic_fetch_add(&copies_done, 1);
        }
        CHECK(status == MUSTER_E_PEER || status == MUSTER_E_ABORTED);
        free(data);
    }
    muster_memory_release(memory);
}

// More copies that were begun than the library has threads for them, of both locales at the same time: the threads of
// each wait for the other one.
static void begin_many(member *me) {
    enum { many = 24, bytes = 3 << 20 };
    muster_memory *const memory = open_memory(me, &(muster_memory_config){.struct_size = sizeof(muster_memory_config),
                                                                          .segment_bytes = 8 << 20,
                                                                          .symmetric_bytes = 4 << 20});
    const uint64_t at_all = symmetric(memory, bytes, 4096);
    muster_queue *queue;
    CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    unsigned char *const data = calloc(many, bytes);
    meet(me);
    for (int i = 0; i < many; i++) {
        muster_memory_operation copy = {.struct_size = sizeof copy,
                                        .kind = me->rank ? MUSTER_MEMORY_PUT : MUSTER_MEMORY_GET,
                                        .target = at(memory, 1 - me->rank, at_all),
                                        .local = data + (size_t)i * bytes,
                                        .bytes = bytes};
        CHECK(muster_memory_begin(memory, &copy, NULL, queue, (uint64_t)i) == MUSTER_OK);
    }
    for (int i = 0; i < many; i++) {
        muster_completion entry;
        CHECK(muster_queue_next(queue, 60 * second, &entry, NULL) == MUSTER_OK);
        CHECK(entry.status == MUSTER_OK && entry.bytes == bytes);
    }
    meet(me);
    muster_queue_release(queue);
    free(data);
    muster_memory_release(memory);
}
static void test_more_copies_than_threads(void **state) {
    (void)state;
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(2, &(member){.listen = "tcp://127.0.0.1:0?upgrade=no"}, begin_many);
    run_members(2, &(member){.listen = "tcp://127.0.0.1:0"}, begin_many);
}

static void test_owner_leaves_during_copies(void **state) {
    (void)state;
    static const char *const listen[] = {"tcp://127.0.0.1:0?upgrade=no", "tcp://127.0.0.1:0"};
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    uint64_t random = 1;
    for (int i = 0; i < 40; i++) {
        steps[0].value = (uint32_t)(next_random(&random) % 1000);
        run_members(2, &(member){.listen = listen[i % 2]}, leave_during_copies);
    }
}

// A put whose queue is released before it was made does not overwrite what is put there afterwards. Large puts of
// another thread keep the stream full, so that it often waits for room.
static void *put_without_end(void *argument) {
    load *const l = argument;
    unsigned char *const data = calloc(1, region);
    while (!atomic_load(&l->ends)) put_bytes(l->memory, l->region, data, region);
    free(data);
    return NULL;
}
static void release_queues(member *me) {
    enum { rounds = 170, bytes = 70000 };
    muster_memory *const memory = open_memory(me, &(muster_memory_config){.struct_size = sizeof(muster_memory_config),
                                                                          .segment_bytes = symmetric_bytes + 65536,
                                                                          .symmetric_bytes = symmetric_bytes});
    const uint64_t regions = symmetric(memory, 3 * region, 4096);
    const muster_gptr here = at(memory, 1 - me->rank, regions);
    if (me->rank == 0) {
        load background = {.memory = memory, .region = at(memory, 1, regions + region)};
        CHECK(pthread_create(&background.thread, NULL, put_without_end, &background) == 0);
        unsigned char *const data = malloc(bytes), *const back = malloc(bytes);
        uint64_t random = 1;
        for (int i = 0; i < rounds; i++) {
            muster_queue *queue;
            CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
            memset(data, 'a', bytes);
            const muster_memory_operation put = {.struct_size = sizeof put,
                                                 .kind = MUSTER_MEMORY_PUT,
                                                 .target = here + (uint64_t)i * bytes,
                                                 .local = data,
                                                 .bytes = bytes};
            CHECK(muster_memory_begin(memory, &put, NULL, queue, 0) == MUSTER_OK);
            const struct timespec moment = {0,
                                            (long)(next_random(&random) % 300000)}; // in which the put begins, or not
            nanosleep(&moment, NULL);
            muster_queue_release(queue);
            memset(data, 'b', bytes);
            put_bytes(memory, put.target, data, 16);
            put_bytes(memory, put.target + bytes - 16, data, 16);
        }
        end_load(&background);
        for (int i = 0; i < rounds; i++) {
            get_bytes(memory, here + (uint64_t)i * bytes, back, bytes);
            CHECK(memcmp(back, data, 16) == 0 && memcmp(back + bytes - 16, data, 16) == 0);
        }
        free(data), free(back);
    }
    meet(me);
    muster_memory_release(memory);
}
static void test_puts_of_released_queues(void **state) {
    (void)state;
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(2, &(member){.listen = "tcp://127.0.0.1:0?upgrade=no"}, release_queues);
    run_members(2, &(member){.listen = "tcp://127.0.0.1:0"}, release_queues);
}

static void test_copies_elsewhere(void **state) {
    (void)state;
    const sequence all = {.name = "copies", .count = 150, .make = make_step, .run = run, .print = print_step};
    if (!run_sequences(&all, 16)) fail_msg("see above");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_elsewhere), cmocka_unit_test(test_more_copies_than_threads),
        cmocka_unit_test(test_puts_of_released_queues), cmocka_unit_test(test_owner_leaves_during_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
