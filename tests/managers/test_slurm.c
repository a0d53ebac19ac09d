// SPDX-License-Identifier: MIT
// Workers that srun starts, with a real Slurm of one node (with_slurm).
#include "cluster_master.h"

static uint32_t add_by_srun(fixture *f, uint32_t flags, const char *options, const char *mode, uint32_t count) {
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "slurm";
    like.flags = flags;
    like.options = options;
    return add_like(f, &like, mode, count);
}

static pid_t pid_of(fixture *f, uint32_t member) {
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, member, &info), MUSTER_OK);
    return (pid_t)info.pid;
}

// Nothing is left in Slurm's list, soon: it looks now and then.
static void await_no_jobs(void) {
    char line[256] = "";
    for (int i = 0; i < 300; i++) {
        FILE *const list = popen("squeue -h", "r");
        assert_non_null(list);
        const char *const some = fgets(line, sizeof line, list);
        pclose(list);
        if (!some) return;
        usleep(100000);
    }
    fail_msg("left: %s", line);
}

static void test_tasks_are_workers(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    assert_int_equal(add_by_srun(f, 0, "flags=--job-name='the test'", "worker", 4), 1);
    await_joined(f, 4);
    assert_talks(f, 1, 4);
    assert_string_equal(ask(f, 3, "self"), "3");
    assert_int_equal(add_by_srun(f, 0, NULL, "worker", 2), 5);
    await_joined(f, 2);
    assert_talks(f, 6, 1);
    assert_int_equal(muster_cluster_interrupt(f->cluster, 6), MUSTER_OK);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    await_no_jobs();
}

static void test_the_master_dials_tasks_where_it_is_told_to(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_srun(f, MUSTER_LAUNCH_MASTER_DIALS, NULL, "worker", 3);
    await_joined(f, 3);
    assert_talks(f, 3, 2);
}

static void test_one_task_dies_and_the_others_go_on(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_srun(f, 0, NULL, "worker", 3);
    await_joined(f, 3);
    assert_int_equal(kill(pid_of(f, 2), SIGKILL), 0);
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, 2);
    assert_talks(f, 1, 3);
}

static void test_who_does_not_leave_is_killed(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_srun(f, 0, NULL, "stubborn", 2);
    await_joined(f, 2);
    const pid_t one = pid_of(f, 1), two = pid_of(f, 2);
    assert_int_equal(muster_cluster_remove(f->cluster, 1, second / 10), MUSTER_OK);
    assert_int_equal(await(f, MUSTER_CLUSTER_REMOVED).member, 1);
    for (int i = 0; i < 400 && kill(one, 0) == 0; i++) usleep(25000); // Slurm has to see it
    assert_int_equal(kill(one, 0), -1);
    assert_string_equal(ask(f, 2, "self"), "2");
    assert_int_equal(muster_cluster_close(f->cluster, second / 10), MUSTER_TIMEOUT);
    for (int i = 0; i < 400 && kill(two, 0) == 0; i++) usleep(25000);
    assert_int_equal(kill(two, 0), -1);
    await_no_jobs();
}

static void assert_all_fail(fixture *f, uint32_t count, const char *part) {
    for (uint32_t i = 0; i < count; i++) {
        const muster_cluster_event event = await(f, MUSTER_CLUSTER_FAILED);
        assert_says(event.text, part);
    }
}

static void test_what_went_wrong_is_said_as_srun_says_it(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_srun(f, 0, "flags=--partition=nowhere", "worker", 2);
    assert_all_fail(f, 2, "Invalid partition name");
    add_by_srun(f, 0, "srun=/nowhere/srun", "worker", 1);
    assert_all_fail(f, 1, "/nowhere/srun");
    char down[4200];
    snprintf(down, sizeof down, "SLURM_CONF=%s", getenv("SLURM_DOWN"));
    const char *const variables[] = {down, NULL};
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "slurm";
    like.envp = variables;
    add_like(f, &like, "worker", 1);
    assert_all_fail(f, 1, "Unable to contact slurm controller");
    const char *const nothing[] = {"/nowhere/worker", NULL};
    muster_config_init(&like, sizeof like);
    like.manager = "slurm";
    like.argv = nothing;
    add_like(f, &like, "", 2);
    assert_all_fail(f, 2, "exit code");
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    await_no_jobs();
}

static void test_who_waits_for_room_too_long_is_given_up(void **state) {
    fixture *f = *state;
#ifdef MUSTER_SANITIZED
    const int limit_s = 20; // sixteen workers start slowly
#else
    const int limit_s = 2;
#endif
    char expected[40];
    snprintf(expected, sizeof expected, "did not join within %d s", limit_s);
    open_with(f, 0, NULL, limit_s * second);
    add_by_srun(f, 0, "flags=--exclusive", "worker", 16);
    await_joined(f, 16);
    add_by_srun(f, 0, NULL, "worker", 2); // all of the node is taken
    assert_all_fail(f, 2, expected);
    assert_talks(f, 16, 1);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    await_no_jobs();
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    find_self();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tasks_are_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_master_dials_tasks_where_it_is_told_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_task_dies_and_the_others_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_does_not_leave_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_went_wrong_is_said_as_srun_says_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_waits_for_room_too_long_is_given_up, set_up, tear_down),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
