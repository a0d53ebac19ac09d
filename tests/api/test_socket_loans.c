// SPDX-License-Identifier: MIT
// Loaned frames: read in place by another process, used again when they are released, given up with a peer that ends.
// ctest: quick timeout=120
#include "socket_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static const char secret[] = "a secret of this test, 32 bytes..";
enum { large = 1 << 20 };

static fixture set_up_shared(void) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = secret;
    config.secret_bytes = sizeof secret - 1;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    return f;
}
static muster_socket *loaner(const fixture *f, uint64_t address, uint64_t max_loaned_bytes) {
    return make_socket(f, &(muster_socket_config){.kind = MUSTER_SOCKET_ROUTER,
                                                  .flags = MUSTER_SOCKET_LOANS,
                                                  .address = address,
                                                  .max_loaned_bytes = max_loaned_bytes,
                                                  .queue = f->queue});
}
static unsigned char *loan(muster_socket *socket, muster_message *message, size_t bytes) {
    void *data;
    muster_error error;
    const muster_status status = muster_socket_loan_frame(socket, message, bytes, &data, &error);
    if (status != MUSTER_OK) fail_msg("%s: %s", muster_status_name(status), error.message);
    return data;
}
static void fill(unsigned char *data, size_t bytes, uint32_t number) {
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(number * 13 + i + (i >> 9));
}
static int is_filled(const unsigned char *data, size_t bytes, uint32_t number) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(number * 13 + i + (i >> 9))) return 0;
    return 1;
}
/* Is the frame in shared memory of another process? It cannot be written there. */
static int is_read_only(const void *at) {
    unsigned long first, last, wanted = (unsigned long)at;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &first, &last, rights) == 3 && first <= wanted && wanted < last)
            found = strcmp(rights, "r--s") == 0 && strstr(line, "memfd:muster") != NULL;
    fclose(maps);
    return found;
}

/* A process that answers each message with its type, and whether frame 1 was right (1) and in place (2). It keeps as
 * many messages as the target says. */
static void answer_all(const char *address, uint64_t own) {
    fixture f = set_up_shared();
    muster_socket *d = dealer(&f, own);
    connect_to(d, address);
    muster_message *kept[100];
    int count = 0;
    for (muster_message *got; muster_socket_receive(d, -1, &got) == MUSTER_OK;) {
        const muster_message_header header = header_of(got);
        muster_buffer frame = {0};
        int64_t answer = 0;
        if (muster_message_frame(got, 1, &frame) == MUSTER_OK)
            answer = is_filled(frame.data, frame.bytes, header.type) + 2 * is_read_only(frame.data);
        muster_message *back = message_to(0, header.type, "answer", 6);
        muster_message_header to = header_of(back);
        to.target_version = answer;
        muster_message_set_header(back, &to);
        if (count < (int)header.target)
            kept[count++] = got;
        else
            muster_message_release(got);
        for (; header.target == 0 && count > 0; count--) muster_message_release(kept[count - 1]);
        if (muster_socket_send(d, back, -1, NULL) != MUSTER_OK) break;
    }
    _exit(0);
}

/* Sends frames of which the second is loaned; returns what the child says about it. */
static int64_t ask(muster_socket *r, uint64_t to, uint32_t type, size_t bytes, uint64_t keep) {
    muster_message *message = message_to(to, type, "first", 5);
    fill(loan(r, message, bytes), bytes, type);
    assert_int_equal(muster_message_add_frame(message, "last", 4), MUSTER_OK);
    muster_message_header header = header_of(message);
    header.target = keep;
    muster_message_set_header(message, &header);
    muster_error error;
    assert_int_equal(muster_socket_send(r, message, 20 * second, &error), MUSTER_OK);
    muster_message *got = receive_one(r);
    const muster_message_header answer = header_of(got);
    assert_int_equal(answer.type, type);
    muster_message_release(got);
    return answer.target_version;
}

/* A child has mapped the directory once it was connected; it says so a moment later than this side may look. */
static void ask_until_loaned(muster_socket *r, uint64_t child) {
    const time_t until = time(NULL) + 30;
    int64_t said = 1;
    for (uint32_t i = 0; said == 1 && time(NULL) < until; i++) said = ask(r, child, 300 + i % 1000, large, 0);
    assert_int_equal(said, 3);
}

static child one, two; /* forked before there is a context */

static void with_children(const char *at) {
    one = fork_child(answer_all, 11);
    two = fork_child(answer_all, 12);
    fixture f = set_up_shared();
    muster_socket *r = loaner(&f, 1, 8 << 20);
    char where[256];
    bind_at(r, at, where);
    begin_child(&one, where);
    wait_for_peers(r, 1);
    ask_until_loaned(r, 11);
    /* sizes of every class; each is used again, so there are no more than four buffers */
    static const size_t sizes[] = {1, 4095, 4096, 65536, 65537, 300000, large, 3 * large};
    for (uint32_t i = 0; i < 200; i++) assert_int_equal(ask(r, 11, 2000 + i, sizes[i % 8], 0), 3);
    /* The child keeps messages: their memory is not used again until it releases them. */
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(ask(r, 11, 3000 + i, large, 5), 3);
    void *data;
    muster_error error;
    muster_message *message = message_to(11, 300, NULL, 0), *more[8];
    int count = 0;
    while (muster_socket_loan_frame(r, message, large, &data, &error) == MUSTER_OK) count++;
    assert_int_equal(count, 8 - 5);
    muster_message_release(message);
    /* A second peer shares the loans of a message that is copied. */
    begin_child(&two, where);
    wait_for_peers(r, 2);
    ask_until_loaned(r, 12);
    message = message_to(11, 4000, "first", 5);
    fill(loan(r, message, large), large, 4000);
    assert_int_equal(muster_message_copy(message, &more[0]), MUSTER_OK);
    muster_message_header header = header_of(more[0]);
    header.destination = 12;
    muster_message_set_header(more[0], &header);
    assert_int_equal(muster_socket_send(r, message, 20 * second, &error), MUSTER_OK);
    assert_int_equal(muster_socket_send(r, more[0], 20 * second, &error), MUSTER_OK);
    for (int i = 0; i < 2; i++) {
        muster_message *got = receive_one(r);
        assert_int_equal(header_of(got).target_version, 3);
        muster_message_release(got);
    }
    /* The first child released what it had with this message (target 0); it keeps some more, and is killed. */
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(ask(r, 11, 5000 + i, large, 5), 3);
    end_child(&one, SIGKILL);
    event_of(r, MUSTER_SOCKET_LOST);
    message = message_to(12, 300, NULL, 0);
    for (count = 0; muster_socket_loan_frame(r, message, large, &data, &error) == MUSTER_OK; count++) {
    }
    assert_int_equal(count, 8); /* its memory was given up */
    muster_message_release(message);
    for (uint32_t i = 0; i < 20; i++) assert_int_equal(ask(r, 12, 6000 + i, large, 0), 3);
    end_child(&two, SIGKILL);
    muster_socket_release(r);
    tear_down(&f);
}

static void test_tcp(void **state) {
    (void)state;
    with_children("tcp://127.0.0.1:0?upgrade=no");
}
static void test_shm(void **state) {
    (void)state;
    char at[64];
    snprintf(at, sizeof at, "shm://loans-%d", getpid());
    with_children(at);
}

/* In one process the frame is read in place, too; without a socket that loans nothing can be loaned. */
static void test_in_one_process_and_bad_arguments(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *r = loaner(&f, 1, 1 << 20), *d = dealer(&f, 2);
    char where[256];
    bind_at(r, "inproc://loans", where);
    connect_to(d, where);
    wait_for_peers(r, 1);
    wait_for_peers(d, 1);
    muster_message *message = message_to(2, 300, NULL, 0);
    unsigned char *data = loan(r, message, large);
    fill(data, large, 1);
    muster_error error;
    assert_int_equal(muster_socket_send(r, message, 20 * second, &error), MUSTER_OK);
    muster_message *got = receive_one(d);
    muster_buffer frame;
    assert_int_equal(muster_message_frame(got, 0, &frame), MUSTER_OK);
    assert_int_equal(frame.bytes, large);
    assert_true(is_filled(frame.data, large, 1));
    assert_true(is_read_only(frame.data));
    /* a received frame that is sent on is copied, and outlives the loan */
    assert_int_equal(muster_message_swap_addresses(got), MUSTER_OK);
    assert_int_equal(muster_socket_send(d, got, 20 * second, &error), MUSTER_OK);
    got = receive_one(r);
    assert_int_equal(muster_message_frame(got, 0, &frame), MUSTER_OK);
    assert_true(is_filled(frame.data, large, 1));
    assert_false(is_read_only(frame.data));
    muster_message_release(got);

    void *at = &f;
    message = message_to(2, 300, NULL, 0);
    assert_int_equal(muster_socket_loan_frame(NULL, message, 1, &at, &error), MUSTER_E_ARG);
    assert_null(at);
    assert_int_equal(muster_socket_loan_frame(r, NULL, 1, &at, &error), MUSTER_E_ARG);
    assert_int_equal(muster_socket_loan_frame(r, message, 1, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_socket_loan_frame(r, message, 0, &at, &error), MUSTER_E_ARG);
    assert_int_equal(muster_socket_loan_frame(r, message, (1 << 20) + 1, &at, &error), MUSTER_E_LIMIT);
    assert_int_equal(muster_socket_loan_frame(d, message, 1, &at, &error), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_message_frame_count(message), 0);
    /* the loan of another socket is an ordinary frame here */
    loan(r, message, 100)[0] = 'x';
    assert_int_equal(muster_socket_send(d, message, 20 * second, &error), MUSTER_OK);
    got = receive_one(r);
    assert_int_equal(muster_message_frame(got, 0, &frame), MUSTER_OK);
    assert_int_equal(frame.bytes, 100);
    assert_false(is_read_only(frame.data));
    muster_message_release(got);
    muster_socket_release(d);
    muster_socket_release(r);
    tear_down(&f);
}

/* A message that refers to loans of a sender that has none, or to a slot that does not exist. */
static void test_a_wrong_reference_ends_the_connection(void **state) {
    (void)state;
    static const uint32_t slots[] = {0, 63, 64, 64 << 16, UINT32_MAX}; /* and sheets */
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        fixture f = set_up(0);
        muster_socket *r = router(&f, 1);
        char where[256];
        bind_at(r, "tcp://127.0.0.1:0?upgrade=no", where);
        unsigned char hello[22] = {'M', 'S', 'S', 'K', 1, 1, 9},
                      message[56 + 8 + 8] = {'M', 'S', 'T', 'M', 1, 2 | 4, 1};
        hello[14] = 5;    /* incarnation */
        message[46] = 1;  /* one reference */
        message[48] = 10; /* bytes */
        message[56] = 10;
        message[63] = 0x80;
        memcpy(message + 64, &slots[i], 4);
        muster_transport_config config = {.struct_size = sizeof config, .hello = hello, .hello_bytes = sizeof hello};
        muster_stream *stream;
        muster_error error;
        if (muster_transport_dial(f.context, where, strlen(where), &config, 20 * second, &stream, &error) != MUSTER_OK)
            fail_msg("%s", error.message);
        size_t moved;
        assert_int_equal(muster_stream_write(stream, message, sizeof message, second, &moved), MUSTER_OK);
        muster_message *got;
        assert_int_equal(muster_socket_receive(r, second, &got), MUSTER_TIMEOUT);
        const muster_socket_event event = event_of(r, MUSTER_SOCKET_LOST);
        assert_string_equal(event.text, "a reference to a missing frame");
        muster_stream_release(stream);
        muster_socket_release(r);
        tear_down(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_shm),
        cmocka_unit_test(test_in_one_process_and_bad_arguments),
        cmocka_unit_test(test_a_wrong_reference_ends_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
