// SPDX-License-Identifier: MIT
// A broker with eight members that do not keep to the protocol, in turns of a few seconds, and two honest members that
// are served meanwhile. MUSTER_SOAK_SECONDS: how long (600).
#include "hostile.h"

#include "soak.h"

enum { turn_ms = 4000, sample_ms = 20 };

static const struct {
    const char *name;
    flood like;
    int readers;
} turns[] = {
    {"credit with a payload", {.credits = true, .credit_word = 4096, .credit_payload = 200000}, 0},
    {"credit for nothing", {.credits = true, .credit_word = 4096}, 0},
    {"credit for what was not read", {.data = true, .data_payload = 3000, .credits = true, .credit_word = 4096}, 0},
    {"credit to members that do not read",
     {.data = true, .data_payload = 1000, .credits = true, .credit_word = 1024},
     hostile / 2},
    {"data to members that do not read", {.data = true, .data_payload = 200000}, 0},
};
enum { turn_count = sizeof turns / sizeof *turns };

static void serve_honest_members(const broker *b) {
    member one = join_star(b, "one", "/?upgrade=no&curve=no&auth=none"),
           two = join_star(b, NULL, "/?upgrade=no&curve=no&auth=none");
    char dialled[600];
    const bool named = strstr(one.address, "auth=none") != NULL;
    snprintf(dialled, sizeof dialled, "%s%s", one.address,
             named                      ? ""
             : strchr(one.address, '?') ? "&auth=none"
                                        : "?auth=none");
    muster_stream *const near = dial_member(&two, dialled), *const far = accept_one(&one);
    transfer(near, far, 1000000);
    muster_stream_release(near);
    muster_stream_release(far);
    leave_star(&one);
    leave_star(&two);
}

static void soak(void **state) {
    (void)state;
    static soak_series quiet = {.name = "broker and members between two turns"};
    broker b = {0};
    muster_error error = {0};
    const muster_broker_config config = {.struct_size = sizeof config,
                                         .flags = MUSTER_BROKER_OPEN | MUSTER_BROKER_NO_CURVE};
    if (try_configured_broker(&b, SECRET, "zmq://127.0.0.1:0/", &config, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    const double from = soak_now(), length = soak_seconds();
    const long before = resident_kib();
    _Atomic uint64_t sent = 0;
    long most = 0, served = 0;
    double slowest = 0;
    for (int turn = 0; soak_now() - from < length; turn++) {
        atomic_bool over = false;
        flood floods[hostile], like = turns[turn % turn_count].like;
        pthread_t threads[hostile];
        for (int i = 0; i < hostile; i++) like.members[i] = come_in(&b);
        for (int i = 0; i < hostile; i++) {
            floods[i] = like;
            floods[i].b = &b, floods[i].self = i, floods[i].over = &over, floods[i].sent = &sent;
            floods[i].reads = i < turns[turn % turn_count].readers;
            assert_int_equal(pthread_create(&threads[i], NULL, run_flood, &floods[i]), 0);
        }
        const double begun = soak_now();
        while (soak_now() - begun < turn_ms * 1e-3) {
            const double asked = soak_now();
            serve_honest_members(&b);
            served++;
            if (soak_now() - asked > slowest) slowest = soak_now() - asked;
            for (int i = 0; i < 10; i++) {
                const struct timespec pause = {0, sample_ms * 1000000L}; // between two looks at what is held
                nanosleep(&pause, NULL);
                const long now = resident_kib() - before;
                if (now > most) most = now;
            }
        }
        atomic_store(&over, true);
        for (int i = 0; i < hostile; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < hostile; i++) close(like.members[i].fd);
        AWAIT_FIGURE(&b, s.connections == 0);
        soak_look(&quiet, from, getpid());
    }
    printf("%d turns; %llu MiB sent by hostile members, at most %ld KiB more held; %ld honest transfers of 1 MB, the "
           "slowest took %.2f s\n",
           quiet.count, (unsigned long long)(atomic_load(&sent) >> 20), most, served, slowest);
    assert_true(soak_settled(&quiet));
    assert_true(most <= most_kib + 16 * 1024); // and what two honest members and eight threads need
    stop_broker(&b);
}

int main(void) {
    soak_enter();
    need_zmq(NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(soak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
