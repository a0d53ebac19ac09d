/* SPDX-License-Identifier: MIT */
// ctest: full timeout=120
/* Brokers and the members around them: who is in under which name, and how the bytes go. */
#include "star.h"

static void test_wrong_arguments_are_told(void **state) {
    (void)state;
    muster_context *context = make_context(0, SECRET);
    muster_broker *out = (muster_broker *)1;
    muster_error error = {0};
    const char *at = "zmq://127.0.0.1:0/";
    assert_int_equal(muster_broker_open(NULL, at, strlen(at), NULL, &out, &error), MUSTER_E_ARG);
    assert_null(out);
    assert_int_equal(muster_broker_open(context, NULL, 0, NULL, &out, &error), MUSTER_E_ARG);
    assert_int_equal(muster_broker_open(context, at, strlen(at), NULL, NULL, &error), MUSTER_E_ARG);
    static const struct {
        const char *address;
        muster_status status;
    } wrong[] = {
        {"nothing", MUSTER_E_ADDRESS},
        {"zmq://", MUSTER_E_ADDRESS},
        {"zmq://127.0.0.1:99999/", MUSTER_E_ADDRESS},
        {"zmq://127.0.0.1:12x/", MUSTER_E_ADDRESS},
        {"zmq://name@127.0.0.1:0/", MUSTER_E_ADDRESS},
        {"zmq://127.0.0.1:0/service", MUSTER_E_ADDRESS},
        {"zmq://127.0.0.1:0/?curve=no", MUSTER_E_ADDRESS},
        {"zmq://192.0.2.1:0/", MUSTER_E_UNREACHABLE},
        {"tcp://127.0.0.1:0", MUSTER_E_UNSUPPORTED},
        {"nosuchscheme://x/", MUSTER_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *address = wrong[i].address;
        const muster_status status = muster_broker_open(context, address, strlen(address), NULL, &out, &error);
        if (status != wrong[i].status) fail_msg("%s: %s %s", address, muster_status_name(status), error.message);
    }
    static const muster_broker_config bad[] = {
        {.struct_size = sizeof bad[0], .flags = 4},
        {.struct_size = sizeof bad[0], .reserved = 1},
        {.struct_size = sizeof bad[0], .window_bytes = 1000},
        {.struct_size = sizeof bad[0], .window_bytes = UINT64_C(1) << 31},
        {.struct_size = sizeof bad[0], .parent_bytes = 3},
        {.struct_size = sizeof bad[0], .parent = "tcp://127.0.0.1:1", .parent_bytes = 17},
        {.struct_size = sizeof bad[0], .broker_secret_bytes = 20},
        {.struct_size = sizeof bad[0], .broker_secret = "fifteen bytes..", .broker_secret_bytes = 15},
        {.struct_size = sizeof bad[0], .parent = "zmq://a@b:1/", .parent_bytes = 12},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const muster_status status = muster_broker_open(context, at, strlen(at), &bad[i], &out, &error);
        if (status != (bad[i].parent ? MUSTER_E_ADDRESS : MUSTER_E_ARG)) fail_msg("config %zu: %d", i, status);
    }
    size_t bytes;
    muster_broker_stats stats;
    assert_int_equal(muster_broker_address(NULL, NULL, 0, &bytes), MUSTER_E_ARG);
    assert_int_equal(muster_broker_get_stats(NULL, &stats), MUSTER_E_ARG);
    assert_int_equal(muster_broker_close(NULL, 0), MUSTER_E_ARG);
    muster_broker_release(NULL);
    muster_context_release(context);
}

static void test_a_port_is_taken_once_and_free_after_close(void **state) {
    (void)state;
    broker first = start_broker(0), second = {0};
    char small[4];
    size_t bytes;
    muster_error error = {0};
    assert_int_equal(try_broker(&second, SECRET, first.address, 0, NULL, &error), MUSTER_E_EXISTS);
    assert_int_equal(muster_broker_address(first.broker, small, sizeof small, &bytes), MUSTER_E_LIMIT);
    assert_int_equal(bytes, strlen(first.address));
    char at[256];
    snprintf(at, sizeof at, "%s", first.address);
    stop_broker(&first);
    second = start_broker_at(at, 0, NULL);
    assert_string_equal(second.address, at);
    stop_broker(&second);
}

static void test_members_find_each_other_by_name(void **state) {
    (void)state;
    broker b = start_broker(0);
    member one = join_star(&b, "1", "/"), ten = join_star(&b, "10", "/"), nobody = join_star(&b, NULL, "/service");
    char address[512];
    snprintf(address, sizeof address, "zmq://1@%s", b.place);
    assert_string_equal(one.address, address);
    // "1" and "10" are two, and each gets only its own.
    between to_one = connect_members(&nobody, &one), to_ten = connect_members(&one, &ten);
    put(to_one.near, "for one");
    put(to_ten.near, "for ten");
    expect(to_ten.far, "for ten");
    expect(to_one.far, "for one");
    assert_int_equal(read_one(to_one.far, 0), MUSTER_AGAIN);
    between back = connect_members(&ten, &nobody);
    AWAIT_FIGURE(&b, s.members == 3 && s.names == 3 && s.connections == 3);
    drop_between(&to_one);
    drop_between(&to_ten);
    drop_between(&back);
    leave_star(&nobody);
    AWAIT_FIGURE(&b, s.members == 2 && s.names == 2 && s.lost == 0);
    leave_star(&one);
    leave_star(&ten);
    stop_broker(&b);
}

static void test_a_name_has_one_owner(void **state) {
    (void)state;
    broker b = start_broker(0);
    member first = join_star(&b, "same", "/"), second = {.context = make_context(0, SECRET)};
    char where[256];
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://same@%s/", b.place);
    assert_int_equal(try_listen(&second, where, 0, &error), MUSTER_E_EXISTS);
    assert_non_null(strstr(error.message, "same"));
    // Another service of the same process has the name along with the first.
    member more = {.context = first.context};
    snprintf(where, sizeof where, "zmq://same@%s/more", b.place);
    assert_int_equal(try_listen(&more, where, 0, &error), MUSTER_OK);
    assert_int_equal(muster_listener_close(first.listener), MUSTER_OK);
    between still = connect_members(&second, &more);
    drop_between(&still);
    // With the last one it is free.
    assert_int_equal(muster_listener_close(more.listener), MUSTER_OK);
    muster_listener_release(more.listener);
    snprintf(where, sizeof where, "zmq://same@%s/", b.place);
    assert_int_equal(try_listen(&second, where, 0, &error), MUSTER_OK);
    leave_star(&first);
    leave_star(&second);
    stop_broker(&b);
}

static void test_wrong_addresses_are_told(void **state) {
    (void)state;
    broker b = start_broker(0);
    member m = join_star(&b, "m", "/");
    static const struct {
        const char *form;
        muster_status status;
        const char *word;
    } wrong[] = {
        {"zmq://nobody@%s/", MUSTER_E_UNREACHABLE, "nobody"},
        {"zmq://m@%s/other", MUSTER_E_UNREACHABLE, ""},
        {"zmq://%s/", MUSTER_E_ADDRESS, "has no name"},
        {"zmq://a b@%s/", MUSTER_E_ADDRESS, "name"},
        {"zmq://m@%s/?curve=maybe", MUSTER_E_ADDRESS, "curve=maybe"},
        {"zmq://m@%s/?upgrade=maybe", MUSTER_E_ADDRESS, "upgrade"},
        {"zmq://m@%s/?direct=127.0.0.1", MUSTER_E_ADDRESS, "direct"},
        {"zmq://m@127.0.0.1:1/", MUSTER_E_UNREACHABLE, "refused"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char address[512];
        muster_stream *stream = NULL;
        muster_error error = {0};
        snprintf(address, sizeof address, wrong[i].form, b.place);
        const muster_status status = try_dial(&m, address, 0, &stream, &error);
        if (status != wrong[i].status || strstr(error.message, wrong[i].word) == NULL)
            fail_msg("%s: %s: %s", address, muster_status_name(status), error.message);
    }
    leave_star(&m);
    stop_broker(&b);
}

static uint64_t upgrades(const member *m) {
    muster_context_stats stats;
    assert_int_equal(muster_context_get_stats(m->context, &stats), MUSTER_OK);
    return stats.upgrades;
}

// Two processes of one user on one host: the broker introduces them, and then has nothing to carry.
static void test_members_of_one_host_share_memory(void **state) {
    (void)state;
    enum { total = 10000000 };
    static const char *const rests[] = {"/", "/?upgrade=no"};
    for (int i = 0; i < 2; i++) {
        broker b = start_broker(0);
        member one = join_star(&b, "one", rests[i]), two = join_star(&b, "two", "/");
        between s = connect_members(&two, &one);
        transfer(s.near, s.far, total);
        transfer(s.far, s.near, total);
        assert_int_equal(upgrades(&two), i == 0);
        if (i == 0)
            assert_true(figures(&b).bytes < 100000);
        else
            AWAIT_FIGURE(&b, s.bytes >= 2 * total);
        drop_between(&s);
        leave_star(&one);
        leave_star(&two);
        stop_broker(&b);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_wrong_arguments_are_told),
    cmocka_unit_test(test_a_port_is_taken_once_and_free_after_close),
    cmocka_unit_test(test_members_find_each_other_by_name),
    cmocka_unit_test(test_a_name_has_one_owner),
    cmocka_unit_test(test_wrong_addresses_are_told),
    cmocka_unit_test(test_members_of_one_host_share_memory),
};

int main(void) {
    return cmocka_run_group_tests(tests, need_zmq, NULL);
}
