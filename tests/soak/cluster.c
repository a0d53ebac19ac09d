// SPDX-License-Identifier: MIT
// A cluster of four workers, one of which is killed each second and replaced. The first worker is never killed, so that
// what a member keeps of others that are gone shows, too. MUSTER_SOAK_SECONDS: how long (600).
#include "cluster_master.h"

#include "soak.h"

enum { workers = 4 };

static void wait_until(double at) {
    const double left = at - soak_now();
    if (left <= 0) return;
    const struct timespec pause = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    nanosleep(&pause, NULL);
}

static long pid_of(fixture *f, uint32_t member) {
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, member, &info), MUSTER_OK);
    assert_true(info.pid > 0);
    return (long)info.pid;
}

// Each pair talks, the master with all of them.
static void expect_all_talk(fixture *f, const uint32_t *members) {
    for (int i = 0; i < workers; i++) {
        const char *const wrong = talk_to(f->cluster, members[i]);
        if (wrong != NULL) fail_msg("member %u: %s", members[i], wrong);
        assert_talks(f, members[i], members[(i + 1) % workers]);
    }
}

static void soak(void **state) {
    fixture *const f = *state;
    static soak_series master = {.name = "master"}, survivor = {.name = "first worker"};
    const double length = soak_seconds();
    uint32_t members[workers];
    open_with(f, 0, NULL, 0);
    for (int i = 0; i < workers; i++) members[i] = add(f, 1);
    await_joined(f, workers);
    const double from = soak_now();
    double slowest = 0;
    int kills = 0;
    unsigned seed = 1;
    while (soak_now() - from < length) {
        wait_until(from + kills + 1);
        const double begun = soak_now();
        const int which = 1 + rand_r(&seed) % (workers - 1);
        assert_int_equal(kill((pid_t)pid_of(f, members[which]), SIGKILL), 0);
        kills++;
        const muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
        assert_int_equal(event.member, members[which]);
        members[which] = add(f, 1);
        await_joined(f, 1);
        expect_all_talk(f, members);
        const double took = soak_now() - begun;
        if (took > slowest) slowest = took;
        soak_look(&master, from, getpid());
        soak_look(&survivor, from, pid_of(f, members[0]));
    }
    printf("%d kills; the slowest replacement took %.2f s\n", kills, slowest);
    const bool master_settled = soak_settled(&master), survivor_settled = soak_settled(&survivor);
    assert_true(master_settled && survivor_settled);
    assert_true(kills > length / 4); // it kept up
    assert_int_equal(muster_cluster_close(f->cluster, 20 * second), MUSTER_OK);
    assert_no_children();
    soak_series end = {.name = "end"};
    soak_look(&end, from, getpid());
    assert_int_equal(end.all[0].processes, 2); // this one, and the first of the namespace
    assert_int_equal(end.all[0].files, 0);
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    soak_enter();
    find_self();
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(soak, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
