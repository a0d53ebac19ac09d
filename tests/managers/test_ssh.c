// SPDX-License-Identifier: MIT
// Workers that ssh starts, with a real server on a loopback port (with_sshd).
#include "cluster_master.h"
#include "stopped.h"

#include <dirent.h>
#include <stdbool.h>

static char options[4096];

static const char *over(const char *hosts, const char *more) {
    snprintf(options, sizeof options, "hosts=%s; flags=-F '%s'; %s", hosts, getenv("SSH_CONFIG"), more);
    return options;
}

static uint32_t add_by_ssh(fixture *f, const char *with, const char *mode, uint32_t count) {
    static char library[4200], plugins[4200];
    snprintf(library, sizeof library, "MUSTER_PLUGIN_PATH=%s", getenv("MUSTER_PLUGIN_PATH"));
    snprintf(plugins, sizeof plugins, "TSAN_OPTIONS=%s", getenv("TSAN_OPTIONS") ? getenv("TSAN_OPTIONS") : "");
    const char *const variables[] = {library, plugins, "MUSTER_TEST=it's $HOME", NULL};
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "ssh";
    like.options = with;
    like.envp = variables;
    return add_like(f, &like, mode, count);
}

// Processes whose command line has this in it.
static int processes_with(const char *part) {
    int count = 0;
    DIR *const all = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(all));) {
        char path[300], line[8192];
        snprintf(path, sizeof path, "/proc/%.200s/cmdline", entry->d_name);
        FILE *const file = fopen(path, "r");
        if (!file) continue;
        const size_t size = fread(line, 1, sizeof line - 1, file);
        fclose(file);
        line[size] = '\0';
        for (size_t i = 0; i < size; i++)
            if (line[i] == '\0') line[i] = ' ';
        count += strstr(line, part) != NULL;
    }
    closedir(all);
    return count;
}

static void await_none_with(const char *part) {
    for (int i = 0; i < 400 && processes_with(part) != 0; i++)
        usleep(25000); // what the server has started ends by itself
    assert_int_equal(processes_with(part), 0);
}

static void test_workers_come_through_a_tunnel_and_leave(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    assert_int_equal(add_by_ssh(f, over("2*node,node", ""), "worker", 4), 1);
    await_joined(f, 4);
    assert_talks(f, 1, 4);
    assert_string_equal(ask(f, 3, "self"), "3");
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 1, &info), MUSTER_OK);
    char path[64], environment[16384];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)info.pid);
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    const size_t size = fread(environment, 1, sizeof environment, file);
    fclose(file);
    const char said[] = "MUSTER_TEST=it's $HOME";
    assert_non_null(memmem(environment, size, said, sizeof said));
    assert_non_null(memmem(environment, size, "SSH_CONNECTION=", 15));
    assert_int_equal(processes_with("secret="), 0);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    await_none_with(getenv("SSH_CONFIG"));
}

static void test_without_a_tunnel_the_master_is_dialled(void **state) {
    fixture *f = *state;
    open_with(f, 0, "tcp://0.0.0.0:0?advertise=127.0.0.1", 0);
    add_by_ssh(f, over("node", "tunnel=no"), "worker", 2);
    await_joined(f, 2);
    assert_talks(f, 2, 1);
    assert_int_equal(muster_cluster_interrupt(f->cluster, 1), MUSTER_OK);
}

static void test_the_master_dials_where_it_is_told_to(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "ssh";
    like.flags = MUSTER_LAUNCH_MASTER_DIALS;
    like.options = over("node", "");
    like.directory = getenv("SSH_FOLDER");
    add_like(f, &like, "worker", 1);
    await_joined(f, 1);
    assert_string_equal(ask(f, 1, "self"), "1");
    muster_member_info info;
    char path[64], folder[4096];
    assert_int_equal(muster_cluster_get_member(f->cluster, 1, &info), MUSTER_OK);
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)info.pid);
    const ssize_t size = readlink(path, folder, sizeof folder - 1);
    assert_true(size > 0);
    folder[size] = '\0';
    assert_string_equal(folder, getenv("SSH_FOLDER"));
}

static void test_how_a_worker_ended_there_is_told(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_ssh(f, over("node", ""), "worker", 2);
    await_joined(f, 2);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 1, &info), MUSTER_OK);
    assert_int_equal(kill((pid_t)info.pid, SIGKILL), 0);
    muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, 1);
    assert_string_equal(event.text, "killed by signal 9 (Killed)");
    muster_stream *stream = NULL; // it may have ended before the dial is answered
    if (muster_cluster_dial(f->cluster, 2, "exit 7", 6, 20 * second, &stream, NULL) == MUSTER_OK) hang_up(stream);
    event = await(f, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, 2);
    assert_string_equal(event.text, "exit code 7");
}

static void test_a_worker_that_does_not_leave_is_killed_there(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_ssh(f, over("node", ""), "stubborn", 1);
    await_joined(f, 1);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 1, &info), MUSTER_OK);
    stop_process((pid_t)info.pid); // nor receives
    assert_int_equal(muster_cluster_remove(f->cluster, 1, second / 10), MUSTER_OK);
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_REMOVED);
    assert_int_equal(event.member, 1);
    for (int i = 0; i < 400 && kill((pid_t)info.pid, 0) == 0; i++) usleep(25000); // its parent there has to see it
    assert_int_equal(kill((pid_t)info.pid, 0), -1);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    await_none_with(getenv("SSH_CONFIG"));
}

// The client is only how it was started, unless bytes go through it.
static void test_a_worker_outlives_the_client_that_started_it(void **state) {
    fixture *f = *state;
    open_with(f, 0, "tcp://0.0.0.0:0?advertise=127.0.0.1", 0);
    add_by_ssh(f, over("node", "tunnel=no"), "worker", 1);
    await_joined(f, 1);
    char command[5000];
    snprintf(command, sizeof command, "pkill -KILL -f -- '^ssh .*%s'", getenv("SSH_CONFIG"));
    assert_int_equal(system(command), 0);
    assert_string_equal(ask(f, 1, "self"), "1");
    assert_int_equal(muster_cluster_remove(f->cluster, 1, -1), MUSTER_OK);
    assert_int_equal(await(f, MUSTER_CLUSTER_REMOVED).member, 1);
}

static void assert_fails(fixture *f, const char *with, const char *const *words, muster_status status,
                         const char *part) {
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "ssh";
    like.options = with;
    like.argv = words;
    const uint32_t member = add_like(f, &like, "worker", 1);
    muster_cluster_event event = next(f);
    while (event.kind == MUSTER_CLUSTER_LAUNCHED) event = next(f);
    assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, member);
    assert_says(event.text, part);
    assert_int_equal(event.status, status);
}

static void test_what_went_wrong_is_said_as_ssh_and_the_shell_say_it(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 20 * second);
    assert_fails(f, over("nokey", ""), NULL, MUSTER_E_UNREACHABLE, "Permission denied");
    assert_fails(f, over("node:1", "tunnel=no"), NULL, MUSTER_E_UNREACHABLE, "Connection refused");
    assert_fails(f, over("node", "ssh=/nowhere/ssh"), NULL, MUSTER_E_NOT_FOUND, "/nowhere/ssh");
    const char *const nothing[] = {"/nowhere/worker", NULL};
    assert_fails(f, over("node", ""), nothing, MUSTER_E_PEER, "/nowhere/worker: not found");
    const char *const fails[] = {"sh", "-c", "exit 3", NULL};
    assert_fails(f, over("node", ""), fails, MUSTER_E_PEER, "exit code 3");
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "ssh";
    like.options = over("node", "");
    like.directory = "/nowhere/folder";
    add_like(f, &like, "worker", 1);
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_FAILED);
    assert_says(event.text, "/nowhere/folder");
}

static void test_options_that_make_no_sense_are_refused_at_once(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    const char *const bad[][2] = {{NULL, "hosts"},
                                  {"hosts=", "hosts"},
                                  {"hosts=0*node", "0*node"},
                                  {"hosts=4294967295*node,1*node", "4294967295*node"},
                                  {"hosts=node:0", "node:0"},
                                  {"hosts=node:99999", "node:99999"},
                                  {"hosts=-oProxyCommand=id", "-oProxyCommand=id"},
                                  {"hosts=no de", "no de"},
                                  {"hosts=node; port=3", "there is no \"port\""},
                                  {"hosts=node; hosts=node", "twice"},
                                  {"hosts=node; tunnel=perhaps", "perhaps"},
                                  {"hosts=node; parallel=0", "parallel"},
                                  {"hosts=node; flags='-F", "not closed"},
                                  {"words", "name=value"}};
    const char *const words[] = {"true", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        muster_launch like;
        muster_config_init(&like, sizeof like);
        like.manager = "ssh";
        like.options = bad[i][0];
        like.argv = words;
        like.count = 1;
        muster_error error = {0};
        assert_int_equal(muster_cluster_add(f->cluster, &like, NULL, &error), MUSTER_E_ARG);
        assert_says(error.message, bad[i][1]);
    }
    // Names reach the shell on the other host as they are.
    const char *const names[] = {"a b=1", "A;id>/tmp/x;B=1", "$(id)=1", "1A=1", "\xc3\xa4=1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const environment[] = {names[i], NULL};
        muster_launch like;
        muster_config_init(&like, sizeof like);
        like.manager = "ssh";
        like.options = "hosts=node";
        like.argv = words;
        like.envp = environment;
        like.count = 1;
        muster_error error = {0};
        assert_int_equal(muster_cluster_add(f->cluster, &like, NULL, &error), MUSTER_E_ARG);
        assert_says(error.message, "is no name of a variable");
    }
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    find_self();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_workers_come_through_a_tunnel_and_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_a_tunnel_the_master_is_dialled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_master_dials_where_it_is_told_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_a_worker_ended_there_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_worker_that_does_not_leave_is_killed_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_worker_outlives_the_client_that_started_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_went_wrong_is_said_as_ssh_and_the_shell_say_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_options_that_make_no_sense_are_refused_at_once, set_up, tear_down),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
