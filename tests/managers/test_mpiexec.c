// SPDX-License-Identifier: MIT
// Workers that mpiexec starts; MPIEXEC names the one to be tested: they are no MPI programs, it only launches them.
#include "cluster_master.h"

#include <dirent.h>

static const char *options_of(const char *flags) {
    static char options[4300];
    snprintf(options, sizeof options, "mpiexec=%s; flags=%s %s", getenv("MPIEXEC"),
             getenv("MPIEXEC_FLAGS") ? getenv("MPIEXEC_FLAGS") : "", flags);
    return options;
}

static uint32_t add_by_mpiexec(fixture *f, uint32_t flags, const char *more, const char *mode, uint32_t count) {
    static const char *const variables[] = {"MUSTER_TEST=it's $HOME", NULL};
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "mpi";
    like.flags = flags;
    like.options = options_of(more);
    like.envp = variables;
    return add_like(f, &like, mode, count);
}

static pid_t pid_of(fixture *f, uint32_t member) {
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, member, &info), MUSTER_OK);
    return (pid_t)info.pid;
}

static void test_ranks_are_workers(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    assert_int_equal(add_by_mpiexec(f, 0, "", "worker", 4), 1);
    await_joined(f, 4);
    assert_talks(f, 1, 4);
    assert_string_equal(ask(f, 3, "self"), "3");
    // The ticket was taken out of the environment when it had been read.
    char path[64], environment[65536];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid_of(f, 2));
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    const size_t size = fread(environment, 1, sizeof environment, file);
    fclose(file);
    const char said[] = "MUSTER_TEST=it's $HOME", name[] = "MUSTER_WORKER_TICKET=";
    assert_non_null(memmem(environment, size, said, sizeof said));
    const char *const ticket = memmem(environment, size, name, strlen(name));
    assert_non_null(ticket);
    assert_int_equal(ticket[strlen(name)], '\0');
    assert_int_equal(add_by_mpiexec(f, 0, "", "worker", 2), 5);
    await_joined(f, 2);
    assert_talks(f, 6, 1);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    assert_no_children();
}

// What is left in the environments of mpiexec, its helpers and the ranks is of no use when all ranks have joined.
static void test_no_environment_lets_anybody_in(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_mpiexec(f, 0, "", "worker", 3);
    await_joined(f, 3);
    static char environment[1 << 20];
    const char name[] = "MUSTER_WORKER_TICKET=";
    int found = 0;
    muster_member_info master; // other tests may run beside this one
    assert_int_equal(muster_cluster_get_member(f->cluster, MUSTER_CLUSTER_MASTER, &master), MUSTER_OK);
    char ours[2 * sizeof master.address + 1] = "";
    for (size_t i = 0; master.address[i]; i++) snprintf(ours + 2 * i, 3, "%02x", (unsigned char)master.address[i]);
    DIR *const all = opendir("/proc");
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        FILE *const file = atoi(entry->d_name) > 0 ? fopen(path, "r") : NULL;
        if (file == NULL) continue;
        const size_t size = fread(environment, 1, sizeof environment - 1, file);
        fclose(file);
        environment[size] = '\0';
        const char *const at = memmem(environment, size, name, strlen(name));
        if (at == NULL || at[strlen(name)] == '\0') continue;
        const char *const ticket = at + strlen(name);
        if (strstr(ticket, ours) == NULL) continue;
        assert_null(strstr(ticket, "207365637265743d")); // " secret="
        assert_non_null(strstr(ticket, "206b65793d"));   // " key="
        found++;
        for (int rank = 0; rank < 3; rank++) {
            char number[16];
            muster_context *context = NULL;
            muster_error error;
            snprintf(number, sizeof number, "%d", rank);
            setenv("MUSTER_WORKER_TICKET", ticket, 1);
            setenv("PMI_RANK", number, 1);
            assert_int_equal(muster_worker_context(NULL, 0, &context, &error), MUSTER_E_AUTH);
            unsetenv("MUSTER_WORKER_TICKET");
            unsetenv("PMI_RANK");
        }
    }
    closedir(all);
    assert_true(found > 0); // mpiexec's own
    assert_talks(f, 1, 3);
}

static void test_the_master_dials_ranks_where_it_is_told_to(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_mpiexec(f, MUSTER_LAUNCH_MASTER_DIALS, "", "worker", 3);
    await_joined(f, 3);
    assert_talks(f, 3, 2);
}

static void test_ranks_leave_one_by_one(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_mpiexec(f, 0, "", "worker", 3);
    await_joined(f, 3);
    assert_int_equal(muster_cluster_remove(f->cluster, 2, -1), MUSTER_OK);
    assert_int_equal(await(f, MUSTER_CLUSTER_REMOVED).member, 2);
    assert_talks(f, 1, 3);
}

static void test_a_killed_rank_is_told_as_dead(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_mpiexec(f, 0, "", "worker", 3);
    await_joined(f, 3);
    assert_int_equal(kill(pid_of(f, 2), SIGKILL), 0);
    muster_cluster_event event = next(f); // mpiexec ends the others, too, unless an option disables that
    assert_int_equal(event.kind, MUSTER_CLUSTER_DEAD);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    assert_no_children();
}

static void test_who_does_not_leave_is_killed(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_mpiexec(f, 0, "", "stubborn", 2);
    await_joined(f, 2);
    const pid_t one = pid_of(f, 1);
    assert_int_equal(muster_cluster_close(f->cluster, second / 10), MUSTER_TIMEOUT);
    assert_no_children();
    for (int i = 0; i < 400 && kill(one, 0) == 0; i++) usleep(25000);
    assert_int_equal(kill(one, 0), -1);
}

static void test_what_went_wrong_is_said_as_mpiexec_says_it(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_mpiexec(f, 0, "--no-such-flag", "worker", 2);
    for (int i = 0; i < 2; i++) assert_says(await(f, MUSTER_CLUSTER_FAILED).text, "exit code");
    const char *const nothing[] = {"/nowhere/worker", NULL};
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "mpi";
    like.options = options_of("");
    like.argv = nothing;
    add_like(f, &like, "", 1);
    assert_says(await(f, MUSTER_CLUSTER_FAILED).text, "exit code");
    like.options = "mpiexec=/nowhere/mpiexec";
    add_like(f, &like, "", 1);
    assert_says(await(f, MUSTER_CLUSTER_FAILED).text, "/nowhere/mpiexec");
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    find_self();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ranks_are_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_environment_lets_anybody_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_master_dials_ranks_where_it_is_told_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranks_leave_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_killed_rank_is_told_as_dead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_does_not_leave_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_went_wrong_is_said_as_mpiexec_says_it, set_up, tear_down),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
