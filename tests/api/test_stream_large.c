/* SPDX-License-Identifier: MIT */
// ctest: long timeout=900
/* More than 2 GiB in one call: written, read and handed over, by every way the bytes can go. The bytes to send are one
 * piece of a file in memory mapped again and again, so that one target of 2.5 GiB is all that is resident. */
#include "transport_pair.h"

#include <sys/mman.h>

#define WHOLE (INT64_C(5) << 29) /* 2.5 GiB */
#define PIECE (INT64_C(64) << 20)

static unsigned char *sent;

/* The byte at each place: pattern() of its place in the piece. One per page is looked at, and all of the first and the
 * last page. */
static int right(const unsigned char *data) {
    for (int64_t at = 0; at < WHOLE; at += at < 4096 || at >= WHOLE - 4096 ? 1 : 4093) {
        if (data[at] != pattern((uint64_t)(at % PIECE))) {
            fprintf(stderr, "wrong at %lld\n", (long long)at);
            return 0;
        }
    }
    return 1;
}

static int map_what_is_sent(void) {
    const int memory = memfd_create("muster-test", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, PIECE) != 0) return -1;
    sent = mmap(NULL, WHOLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sent == MAP_FAILED) return -1;
    for (int64_t at = 0; at < WHOLE; at += PIECE)
        if (mmap(sent + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == MAP_FAILED) return -1;
    close(memory);
    for (int64_t at = 0; at < PIECE; at++) sent[at] = pattern((uint64_t)at);
    return 0;
}

typedef struct reader {
    muster_stream *stream;
    muster_status status;
    size_t bytes;
    int right;
} reader;

static void *read_all(void *arg) {
    reader *r = arg;
    unsigned char *target =
        mmap(NULL, WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (target == MAP_FAILED) return NULL;
    r->status = muster_stream_read_into(r->stream, target, WHOLE, 0, 400 * SECOND, &r->bytes);
    r->right = right(target);
    munmap(target, WHOLE);
    return NULL;
}

static void carry(const char *what, muster_context *context, muster_stream *from, muster_stream *to) {
    for (int owned = 0; owned < 2; owned++) {
        reader r = {.stream = to, .status = MUSTER_E_ARG};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
        if (owned) {
            muster_queue *queue = NULL;
            muster_completion c;
            assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
            assert_int_equal(muster_stream_write_owned(from, sent, WHOLE, queue, 7), MUSTER_OK);
            assert_int_equal(muster_queue_next(queue, 400 * SECOND, &c, NULL), MUSTER_OK);
            assert_int_equal(c.kind, MUSTER_DONE_RELEASED);
            assert_int_equal(c.status, MUSTER_OK);
            assert_int_equal(c.bytes, WHOLE);
            muster_queue_release(queue);
        } else {
            size_t bytes = 0;
            assert_int_equal(muster_stream_write(from, sent, WHOLE, 400 * SECOND, &bytes), MUSTER_OK);
            assert_int_equal(bytes, WHOLE);
        }
        pthread_join(thread, NULL);
        if (r.status != MUSTER_OK || r.bytes != WHOLE || !r.right)
            fail_msg("%s%s: status %d, %zu bytes, %s", what, owned ? ", handed over" : "", r.status, r.bytes,
                     r.right ? "right" : "wrong");
    }
}

static void test_more_than_two_gibibytes_in_a_pair(void **state) {
    (void)state;
    muster_context *context = make_context(0, SECRET);
    muster_stream *first, *second;
    assert_int_equal(muster_stream_pair(context, NULL, &first, &second, NULL), MUSTER_OK);
    carry("pair", context, first, second);
    muster_stream_release(first);
    muster_stream_release(second);
    assert_int_equal(muster_context_close(context, 5 * SECOND), MUSTER_OK);
    muster_context_release(context);
}

static void test_more_than_two_gibibytes_by_transports(void **state) {
    (void)state;
    static const char *const names[] = {"tcp", "unix", "shm"};
    for (int i = 0; i < way_count; i++) {
        int wanted = 0;
        for (int k = 0; k < 3; k++) wanted |= strcmp(ways[i].name, names[k]) == 0;
        if (!wanted) continue;
        pair p = {0};
        connect_pair(&p, &ways[i]);
        carry(ways[i].name, p.client, p.near, p.far);
        drop_pair(&p);
    }
}

static int setup(void **state) {
    return make_folder(state) || map_what_is_sent();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_two_gibibytes_in_a_pair),
        cmocka_unit_test(test_more_than_two_gibibytes_by_transports),
    };
    return cmocka_run_group_tests(tests, setup, drop_folder);
}
