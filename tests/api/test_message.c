// SPDX-License-Identifier: MIT
// Messages: addresses, frames, cursor, buffers, format frames.
// ctest: quick
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <muster/message.h>

static muster_message *make(void) {
    muster_message *message;
    assert_int_equal(muster_message_create(&message), MUSTER_OK);
    return message;
}
static void frame_is(const muster_message *message, uint32_t index, const char *text) {
    muster_buffer frame;
    assert_int_equal(muster_message_frame(message, index, &frame), MUSTER_OK);
    assert_int_equal(frame.bytes, strlen(text));
    if (frame.bytes != 0) assert_string_equal((const char *)frame.data, text); /* a zero byte follows */
}
static muster_message_header header_of(const muster_message *message) {
    muster_message_header header = {.struct_size = sizeof header};
    assert_int_equal(muster_message_get_header(message, &header), MUSTER_OK);
    return header;
}

static void test_addresses_are_checked(void **state) {
    (void)state;
    uint64_t a, b;
    int64_t group, id, kind;
    assert_int_equal(muster_message_address(5, 300, 1, &a), MUSTER_OK);
    assert_int_equal(muster_message_address_parts(a, &group, &id, &kind), MUSTER_OK);
    assert_int_equal(group, 5);
    assert_int_equal(id, 300);
    assert_int_equal(kind, 1);
    static const int64_t wrong[][3] = {{-2, 0, 1}, {4294967295, 0, 1}, {0, -2, 1}, {0, 1048575, 1},
                                       {0, 0, 0},  {0, 0, 4095},       {0, 0, -2}, {1LL << 40, 0, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(muster_message_address(wrong[i][0], wrong[i][1], wrong[i][2], &b), MUSTER_E_ARG);
    assert_int_equal(muster_message_address(0, 0, 1, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_message_address(MUSTER_MESSAGE_ANY, 300, MUSTER_MESSAGE_ANY, &b), MUSTER_OK);
    assert_int_equal(muster_message_address_matches(b, a), 1);
    assert_int_equal(muster_message_address_parts(b, &group, &id, &kind), MUSTER_OK);
    assert_int_equal(group, MUSTER_MESSAGE_ANY);
    assert_int_equal(kind, MUSTER_MESSAGE_ANY);
    assert_int_equal(muster_message_address(MUSTER_MESSAGE_ANY, 301, MUSTER_MESSAGE_ANY, &b), MUSTER_OK);
    assert_int_equal(muster_message_address_matches(b, a), 0);
    /* what SINGA truncated: Addr(0, 256, 2), Addr(5, 300, 1), type 256, group 40000 */
    assert_int_equal(muster_message_address_singa(0, 256, 2, &a), MUSTER_E_ARG);
    assert_int_equal(muster_message_address_singa(5, 300, 1, &a), MUSTER_E_ARG);
    assert_int_equal(muster_message_address_singa(0, 0, 256, &a), MUSTER_E_ARG);
    assert_int_equal(muster_message_address_singa(40000, 0, 0, &a), MUSTER_E_ARG);
    assert_int_equal(muster_message_address_singa(-1, -1, 2, &b), MUSTER_OK);
    assert_int_equal(muster_message_address_singa(3, 7, 2, &a), MUSTER_OK);
    assert_int_equal(muster_message_address_matches(b, a), 1);
    assert_true(muster_message_target(7, 2) == (7ULL << 32 | 2));
}

static int freed;
static void count_free(void *data) {
    freed++;
    free(data);
}

static void test_frames_are_copied_lent_and_taken_over(void **state) {
    (void)state;
    muster_context *context;
    muster_queue *queue;
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    const muster_queue_config small = {.struct_size = sizeof small, .capacity = 1};
    assert_int_equal(muster_queue_create(context, &small, &queue, NULL), MUSTER_OK);
    muster_message *message = make(), *copy;
    muster_completion done;
    char lent[] = "lent", *taken = strdup("taken over"), large[1000];
    memset(large, 'x', sizeof large);
    freed = 0;
    assert_int_equal(muster_message_add_frame(message, "copied", 6), MUSTER_OK);
    assert_int_equal(muster_message_lend_frame(message, lent, 4, queue, 9), MUSTER_OK);
    assert_int_equal(muster_message_lend_frame(message, lent, 4, queue, 10), MUSTER_AGAIN);
    assert_int_equal(muster_message_take_frame(message, taken, 10, count_free), MUSTER_OK);
    assert_int_equal(muster_message_add_frame(message, large, sizeof large), MUSTER_OK);
    assert_int_equal(muster_message_add_frame(message, NULL, 0), MUSTER_OK);
    assert_int_equal(muster_message_frame_count(message), 5);
    frame_is(message, 0, "copied");
    frame_is(message, 1, "lent");
    frame_is(message, 2, "taken over");
    frame_is(message, 4, "");
    uint64_t payload, total;
    assert_int_equal(muster_message_bytes(message, &payload, &total), MUSTER_OK);
    assert_int_equal(payload, 6 + 4 + 10 + 1000);
    assert_int_equal(total, payload + 56 + 5 * 4);
    assert_int_equal(muster_message_copy(message, &copy), MUSTER_OK);
    muster_message_release(message);
    assert_int_equal(freed, 0);
    assert_int_equal(muster_queue_next(queue, 0, &done, NULL), MUSTER_AGAIN); /* the copy has them */
    frame_is(copy, 0, "copied");
    frame_is(copy, 2, "taken over");
    muster_message_release(copy);
    assert_int_equal(freed, 1);
    assert_int_equal(muster_queue_next(queue, 0, &done, NULL), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_RELEASED);
    assert_int_equal(done.tag, 9);
    assert_int_equal(done.bytes, 4);
    message = make();
    assert_int_equal(muster_message_add_frame(message, NULL, 1), MUSTER_E_ARG);
    assert_int_equal(muster_message_add_frame(message, "x", (size_t)1 << 63), MUSTER_E_LIMIT);
    assert_int_equal(muster_message_lend_frame(message, lent, 0, queue, 0), MUSTER_E_ARG);
    assert_int_equal(muster_message_take_frame(message, lent, 4, NULL), MUSTER_E_ARG);
    for (int i = 0; i < 65535; i++) assert_int_equal(muster_message_add_frame(message, "", 0), MUSTER_OK);
    assert_int_equal(muster_message_add_frame(message, "", 0), MUSTER_E_LIMIT);
    assert_int_equal(muster_queue_close(queue), MUSTER_OK);
    muster_message_release(message);
    message = make();
    assert_int_equal(muster_message_lend_frame(message, lent, 4, queue, 1), MUSTER_E_CLOSED);
    muster_message_release(message);
    muster_queue_release(queue);
    assert_int_equal(muster_context_close(context, 1000000000), MUSTER_OK);
    muster_context_release(context);
}

static void test_the_cursor_stays_at_the_last_frame(void **state) {
    (void)state;
    muster_message *message = make();
    muster_buffer frame;
    assert_int_equal(muster_message_next(message, &frame), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_message_last(message, &frame), MUSTER_E_NOT_FOUND);
    for (char c = 'a'; c < 'd'; c++) assert_int_equal(muster_message_add_frame(message, &c, 1), MUSTER_OK);
    for (char c = 'a'; c < 'd'; c++) {
        assert_int_equal(muster_message_next(message, &frame), MUSTER_OK);
        assert_int_equal(*(const char *)frame.data, c);
    }
    assert_int_equal(muster_message_next(message, &frame), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_message_first(message, &frame), MUSTER_OK);
    assert_int_equal(*(const char *)frame.data, 'a');
    assert_int_equal(muster_message_next(message, &frame), MUSTER_OK);
    assert_int_equal(*(const char *)frame.data, 'b');
    assert_int_equal(muster_message_last(message, &frame), MUSTER_OK);
    assert_int_equal(*(const char *)frame.data, 'c');
    muster_message_release(message);
}

static void test_header_and_buffers(void **state) {
    (void)state;
    muster_message *message = make(), *back;
    muster_message_header header = {.struct_size = sizeof header,
                                    .type = MUSTER_MESSAGE_USER + 3,
                                    .source = 11,
                                    .destination = 22,
                                    .target = 33,
                                    .target_version = -4,
                                    .trace_id = {1, 2},
                                    .span_id = 3,
                                    .trace_flags = 1,
                                    .hops = 9};
    assert_int_equal(muster_message_set_header(message, &header), MUSTER_OK);
    assert_int_equal(header_of(message).hops, 0);
    assert_int_equal(muster_message_swap_addresses(message), MUSTER_OK);
    assert_int_equal(header_of(message).source, 22);
    assert_int_equal(header_of(message).destination, 11);
    assert_int_equal(muster_message_add_frame(message, "one", 3), MUSTER_OK);
    assert_int_equal(muster_message_add_frame(message, "", 0), MUSTER_OK);
    muster_buffer buffers[3];
    uint32_t count;
    muster_error error;
    assert_int_equal(muster_message_to_buffers(message, NULL, 0, &count), MUSTER_OK);
    assert_int_equal(count, 3);
    assert_int_equal(muster_message_to_buffers(message, buffers, 2, &count), MUSTER_E_LIMIT);
    assert_int_equal(muster_message_to_buffers(message, buffers, 3, &count), MUSTER_OK);
    assert_int_equal(muster_message_from_buffers(buffers, 3, &back, &error), MUSTER_OK);
    frame_is(back, 0, "one");
    const muster_message_header other = header_of(back);
    assert_int_equal(other.type, MUSTER_MESSAGE_USER + 3);
    assert_int_equal(other.target, 33);
    assert_int_equal(other.target_version, -4);
    assert_int_equal(other.trace_id[1], 2);
    assert_int_equal(other.trace_flags, 1);
    muster_message_release(back);
    assert_int_equal(muster_message_from_buffers(buffers, 2, &back, &error), MUSTER_E_PROTOCOL);
    assert_null(back);
    assert_non_null(strstr(error.message, "2 frames, there are 1"));
    buffers[1].bytes = 2;
    assert_int_equal(muster_message_from_buffers(buffers, 3, &back, &error), MUSTER_E_PROTOCOL);
    assert_non_null(strstr(error.message, "frame 0 has 2 bytes, the metadata say 3"));
    /* every other byte of the fixed part, and every shorter length */
    unsigned char bytes[128];
    const size_t whole = buffers[0].bytes;
    buffers[1].bytes = 3;
    for (size_t i = 0; i < whole; i++) {
        memcpy(bytes, buffers[0].data, whole);
        bytes[i] ^= 0x5a;
        const muster_buffer changed[3] = {{bytes, whole}, buffers[1], buffers[2]};
        const muster_buffer shorter[3] = {{bytes, i}, buffers[1], buffers[2]};
        if (muster_message_from_buffers(changed, 3, &back, NULL) == MUSTER_OK) muster_message_release(back);
        bytes[i] ^= 0x5a;
        assert_int_equal(muster_message_from_buffers(shorter, 3, &back, NULL), MUSTER_E_PROTOCOL);
    }
    muster_message_release(message);
}

static void test_format_frames_have_types(void **state) {
    (void)state;
    muster_message *message = make();
    muster_error error;
    const muster_value values[] = {{.integer = -5},
                                   {.integer = INT64_MIN},
                                   {.integer = 255},
                                   {.integer = 65535},
                                   {.integer = 4294967295},
                                   {.integer = -1},
                                   {.real = 1.5},
                                   {.real = 2.25},
                                   {.data = "text", .bytes = 4},
                                   {.data = NULL, .bytes = 0}};
    assert_int_equal(muster_message_add_values(message, "iq1248fdsb", values, 10, &error), MUSTER_OK);
    muster_value got[10];
    char picture[11];
    uint32_t count;
    assert_int_equal(muster_message_get_values(message, 0, NULL, NULL, NULL, 0, &count, NULL), MUSTER_OK);
    assert_int_equal(count, 10);
    assert_int_equal(muster_message_get_values(message, 0, "iq1248fdsb", picture, got, 10, &count, &error), MUSTER_OK);
    assert_string_equal(picture, "iq1248fdsb");
    for (int i = 0; i < 6; i++) assert_true(got[i].integer == values[i].integer);
    assert_true(got[6].real == 1.5 && got[7].real == 2.25);
    assert_int_equal(got[8].bytes, 4);
    assert_memory_equal(got[8].data, "text", 4);
    assert_int_equal(got[9].bytes, 0);
    assert_int_equal(muster_message_get_values(message, 0, "iq1248fdss", picture, got, 10, &count, &error),
                     MUSTER_E_PROTOCOL);
    assert_string_equal(error.message, "value 9 is 'b', expected was 's'");
    assert_int_equal(muster_message_get_values(message, 0, "iq", picture, got, 10, &count, &error), MUSTER_E_PROTOCOL);
    assert_int_equal(muster_message_get_values(message, 0, NULL, picture, got, 9, &count, &error), MUSTER_E_LIMIT);
    assert_int_equal(muster_message_get_values(message, 1, NULL, picture, got, 9, &count, &error), MUSTER_E_NOT_FOUND);
    /* out of range, unknown, too short: nothing is added */
    static const struct {
        char picture[3];
        muster_value value;
        const char *why;
    } wrong[] = {{"i", {.integer = 1LL << 31}, "value 0 is 2147483648"},
                 {"1", {.integer = 256}, "out of range for '1'"},
                 {"1", {.integer = -1}, "out of range"},
                 {"4", {.integer = 1LL << 32}, "out of range"},
                 {"f", {.real = 1e300}, "out of range for 'f'"},
                 {"z", {.integer = 0}, "character 0 is 0x7a"},
                 {"s", {.data = NULL, .bytes = 3}, "3 bytes, but no data"},
                 {"ii", {.integer = 0}, "the picture has not 1 characters"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(muster_message_add_values(message, wrong[i].picture, &wrong[i].value, 1, &error),
                         MUSTER_E_ARG);
        if (strstr(error.message, wrong[i].why) == NULL) fail_msg("%s", error.message);
    }
    assert_int_equal(muster_message_frame_count(message), 1);
    /* a text longer than SINGA's buffer of 2048 bytes */
    char *text = malloc(100000);
    memset(text, 'y', 100000);
    const muster_value longer = {.data = text, .bytes = 100000};
    assert_int_equal(muster_message_add_values(message, "s", &longer, 1, NULL), MUSTER_OK);
    assert_int_equal(muster_message_get_values(message, 1, "s", NULL, got, 10, &count, &error), MUSTER_OK);
    assert_int_equal(got[0].bytes, 100000);
    assert_memory_equal(got[0].data, text, 100000);
    free(text);
    /* frames that are not format frames, or cut short */
    muster_buffer whole;
    assert_int_equal(muster_message_frame(message, 0, &whole), MUSTER_OK);
    unsigned char bytes[256];
    memcpy(bytes, whole.data, whole.bytes);
    for (uint32_t i = 0; i < whole.bytes; i++) {
        muster_message *other = make();
        assert_int_equal(muster_message_add_frame(other, bytes, i), MUSTER_OK);
        assert_int_equal(muster_message_get_values(other, 0, NULL, NULL, NULL, 0, &count, &error), MUSTER_E_PROTOCOL);
        muster_message_release(other);
    }
    muster_message_release(message);
    /* a pointer stays in the process */
    message = make();
    const muster_value pointer = {.integer = (int64_t)(intptr_t)&count};
    assert_int_equal(muster_message_add_values(message, "p", &pointer, 1, &error), MUSTER_OK);
    assert_int_equal(muster_message_get_values(message, 0, "p", NULL, got, 10, &count, &error), MUSTER_OK);
    assert_true(got[0].integer == pointer.integer);
    muster_buffer buffers[2];
    assert_int_equal(muster_message_to_buffers(message, buffers, 2, &count), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_message_frame(message, 0, &whole), MUSTER_OK);
    muster_message *other = make();
    assert_int_equal(muster_message_add_frame(other, whole.data, whole.bytes), MUSTER_OK);
    assert_int_equal(muster_message_get_values(other, 0, NULL, NULL, got, 10, &count, &error), MUSTER_E_PROTOCOL);
    muster_message_release(other);
    muster_message_release(message);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_checked),
        cmocka_unit_test(test_frames_are_copied_lent_and_taken_over),
        cmocka_unit_test(test_the_cursor_stays_at_the_last_frame),
        cmocka_unit_test(test_header_and_buffers),
        cmocka_unit_test(test_format_frames_have_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
