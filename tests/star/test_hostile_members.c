// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// Members that speak the protocol and do not keep to it: what they make the broker hold is bounded, and honest members
// go on. They are raw sockets, so that nothing but the broker holds what they send.
#include "hostile.h"

enum { run_ms = 3000 };

static void bounded_under(const char *name, flood like, int readers) {
    broker b = {0};
    muster_error error = {0};
    const muster_broker_config config = {.struct_size = sizeof config,
                                         .flags = MUSTER_BROKER_OPEN | MUSTER_BROKER_NO_CURVE};
    if (try_configured_broker(&b, SECRET, "zmq://127.0.0.1:0/", &config, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    atomic_bool over = false;
    _Atomic uint64_t sent = 0;
    flood floods[hostile];
    pthread_t threads[hostile];
    for (int i = 0; i < hostile; i++) like.members[i] = come_in(&b);
    const long before = resident_kib();
    for (int i = 0; i < hostile; i++) {
        floods[i] = like;
        floods[i].b = &b, floods[i].self = i, floods[i].over = &over, floods[i].sent = &sent;
        floods[i].reads = i < readers;
        assert_int_equal(pthread_create(&threads[i], NULL, run_flood, &floods[i]), 0);
    }
    long most = 0;
    for (int t = 0; t < run_ms / 10; t++) {
        const struct timespec pause = {0, 10000000}; // between two looks at what is held
        nanosleep(&pause, NULL);
        const long now = resident_kib() - before;
        if (now > most) most = now;
    }
    // An honest pair is served meanwhile.
    member one = join_star(&b, "one", "/?upgrade=no&curve=no&auth=none"),
           two = join_star(&b, NULL, "/?upgrade=no&curve=no&auth=none");
    char dialled[600];
    snprintf(dialled, sizeof dialled, "%s%sauth=none", one.address, strchr(one.address, '?') ? "&" : "?");
    muster_stream *near = dial_member(&two, strstr(one.address, "auth=none") ? one.address : dialled);
    muster_stream *far = accept_one(&one);
    put(near, "hello");
    expect(far, "hello");
    atomic_store(&over, true);
    for (int i = 0; i < hostile; i++) pthread_join(threads[i], NULL);
    print_message("%s: %d members sent %llu MiB, the broker held at most %ld KiB more\n", name, hostile,
                  (unsigned long long)(atomic_load(&sent) >> 20), most);
#ifndef MUSTER_SANITIZED // AddressSanitizer keeps what was freed
    assert_true(most <= most_kib);
#endif
    muster_stream_release(near);
    muster_stream_release(far);
    leave_star(&one);
    leave_star(&two);
    for (int i = 0; i < hostile; i++) close(like.members[i].fd);
    AWAIT_FIGURE(&b, s.connections == 0);
    stop_broker(&b);
}

static void test_credit_with_a_payload(void **state) {
    (void)state;
    bounded_under("credit with a payload", (flood){.credits = true, .credit_word = 4096, .credit_payload = 200000}, 0);
}

static void test_credit_that_nobody_is_owed(void **state) {
    (void)state;
    bounded_under("credit for nothing", (flood){.credits = true, .credit_word = 4096}, 0);
}

static void test_credit_for_what_was_not_read(void **state) {
    (void)state;
    bounded_under("credit for what was not read",
                  (flood){.data = true, .data_payload = 3000, .credits = true, .credit_word = 4096}, 0);
}

static void test_credit_to_those_who_do_not_read(void **state) {
    (void)state;
    bounded_under("credit to those who do not read",
                  (flood){.data = true, .data_payload = 1000, .credits = true, .credit_word = 1024}, hostile / 2);
}

static void test_data_to_those_who_do_not_read(void **state) {
    (void)state;
    bounded_under("data to those who do not read", (flood){.data = true, .data_payload = 200000}, 0);
}

static int set_up(void **state) {
    return need_zmq(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_credit_with_a_payload),         cmocka_unit_test(test_credit_that_nobody_is_owed),
    cmocka_unit_test(test_credit_for_what_was_not_read),  cmocka_unit_test(test_credit_to_those_who_do_not_read),
    cmocka_unit_test(test_data_to_those_who_do_not_read),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, NULL);
}
