// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// A master and its workers on this host: this program, started again.
#include "cluster_master.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>

static const char *const worker_words[] = {"/proc/self/exe", "worker", NULL};

static void test_workers_are_launched_connected_and_join_in_this_order(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    assert_int_equal(muster_cluster_self(f->cluster), MUSTER_CLUSTER_MASTER);
    assert_int_equal(add(f, 3), 1);
    uint32_t seen[4] = {0};
    for (int i = 0; i < 9; i++) {
        const muster_cluster_event event = next(f);
        assert_in_range(event.member, 1, 3);
        assert_int_equal(event.kind, ++seen[event.member]);
        assert_int_equal(event.status, MUSTER_OK);
    }
    uint32_t members[3];
    size_t count = 0;
    assert_int_equal(muster_cluster_list(f->cluster, members, 3, &count), MUSTER_OK);
    assert_int_equal(count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        muster_member_info info;
        assert_int_equal(members[i], i + 1);
        assert_int_equal(muster_cluster_get_member(f->cluster, i + 1, &info), MUSTER_OK);
        assert_int_equal(info.state, MUSTER_MEMBER_JOINED);
        assert_int_equal(kill((pid_t)info.pid, 0), 0);
        assert_true(strlen(info.host) > 0 && strncmp(info.address, "tcp://127.0.0.1:", 16) == 0);
        char number[8];
        snprintf(number, sizeof number, "%u", i + 1);
        assert_string_equal(ask(f, i + 1, "self"), number);
    }
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(next(f).kind, MUSTER_CLUSTER_REMOVED);
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(f->cluster, -1, &event), MUSTER_E_CLOSED);
}

static void test_more_workers_than_the_master_greets_at_once_come_in(void **state) {
    fixture *f = *state;
    muster_context_release(f->context);
    const muster_context_config config = {.struct_size = sizeof config, .max_unauthenticated = 1};
    assert_int_equal(muster_context_create(&config, &f->context, NULL), MUSTER_OK);
    open_with(f, 0, NULL, 0);
    add(f, 24);
    await_joined(f, 24);
}

static void test_any_two_members_have_streams_over_each_transport(void **state) {
    fixture *f = *state;
    char unix_listen[64], unix_worker[64], shm_listen[64], shm_worker[64];
    snprintf(unix_listen, sizeof unix_listen, "unix://@muster-cluster-%d-0", (int)getpid());
    snprintf(unix_worker, sizeof unix_worker, "unix://@muster-cluster-%d-{}", (int)getpid());
    snprintf(shm_listen, sizeof shm_listen, "shm://cluster-%d-0", (int)getpid());
    snprintf(shm_worker, sizeof shm_worker, "shm://cluster-%d-{}", (int)getpid());
    const struct {
        const char *master, *worker;
    } ways[] = {{"tcp://127.0.0.1:0?upgrade=no", "tcp://127.0.0.1:0?upgrade=no"},
                {NULL, NULL},
                {unix_listen, unix_worker},
                {shm_listen, shm_worker}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        open_with(f, 0, ways[i].master, 0);
        const muster_launch like = {.struct_size = sizeof like, .listen = ways[i].worker};
        const uint32_t first = add_like(f, &like, "worker", 2);
        await_joined(f, 2);
        assert_null(talk_to(f->cluster, first));
        assert_talks(f, first, first + 1);
        assert_talks(f, first + 1, first);
        assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
        muster_cluster_release(f->cluster);
        f->cluster = NULL;
    }
}

static void test_a_worker_dials_the_master(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 1);
    await_joined(f, 1);
    muster_stream *const order = dial(f, 1, "talk 0");
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_STREAM);
    assert_int_equal(event.member, 1);
    assert_int_equal(event.label_bytes, 4);
    assert_string_equal(event.label, "echo");
    echo(event.stream);
    hang_up(event.stream);
    char text[64];
    hear(order, text, sizeof text);
    assert_string_equal(text, "done");
    hang_up(order);
}

static void test_where_only_the_master_can_dial_it_does(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    const muster_launch like = {.struct_size = sizeof like, .flags = MUSTER_LAUNCH_MASTER_DIALS};
    add_like(f, &like, "worker", 2);
    await_joined(f, 2);
    assert_null(talk_to(f->cluster, 1));
    assert_talks(f, 1, 2);
}

static void test_who_does_not_listen_dials_back(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    const muster_launch like = {.struct_size = sizeof like, .flags = MUSTER_LAUNCH_NO_LISTEN};
    add_like(f, &like, "worker", 2); // 1 and 2
    add(f, 1);                       // 3
    await_joined(f, 3);
    assert_null(talk_to(f->cluster, 1));
    assert_null(talk_to(f->cluster, 2));
    assert_talks(f, 3, 1); // by way of a call through the master
    assert_talks(f, 1, 3);
    const char *const wrong = ask(f, 1, "talk 2");
    assert_says(wrong, "MUSTER_E_UNREACHABLE");
    assert_says(wrong, "member 2");
}

static void test_topologies_say_who_may_have_a_stream(void **state) {
    fixture *f = *state;
    const char *const refused = "MUSTER_E_PERMISSION: the topology has no way between members 1 and 2";
    open_with(f, MUSTER_CLUSTER_MASTER_WORKER, NULL, 0);
    add(f, 2);
    await_joined(f, 2);
    assert_null(talk_to(f->cluster, 2));
    assert_string_equal(ask(f, 1, "talk 2"), refused);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    muster_cluster_release(f->cluster);

    open_with(f, MUSTER_CLUSTER_TREE, NULL, 0);
    add(f, 3);
    await_joined(f, 3);
    assert_talks(f, 1, 3);
    assert_string_equal(ask(f, 1, "talk 2"), refused);
    assert_says(talk_to(f->cluster, 3), "MUSTER_E_PERMISSION");
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    muster_cluster_release(f->cluster);

    open_with(f, MUSTER_CLUSTER_CUSTOM, NULL, 0);
    const muster_launch one = {.struct_size = sizeof one, .ident = "calc-{}", .connect_idents = "store,calc-9"};
    add_like(f, &one, "worker", 2);
    const muster_launch two = {.struct_size = sizeof two, .ident = "store"};
    add_like(f, &two, "worker", 1);
    await_joined(f, 3);
    assert_talks(f, 1, 3);
    assert_talks(f, 3, 2);
    assert_string_equal(ask(f, 1, "talk 2"), refused);
}

static void test_a_killed_worker_is_dead_at_once_and_its_partners_are_told(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 3);
    await_joined(f, 3);
    assert_talks(f, 1, 2);
    muster_stream *const news = dial(f, 1, "next");
    muster_stream *const cut = dial(f, 2, "echo");
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 2, &info), MUSTER_OK);
    assert_int_equal(kill((pid_t)info.pid, SIGKILL), 0);
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, 2);
    assert_int_equal(event.status, MUSTER_E_PEER);
    assert_string_equal(event.text, "killed by signal 9 (Killed)");
    char text[200];
    size_t moved;
    assert_int_equal(muster_stream_read(cut, text, sizeof text, 20 * second, &moved), MUSTER_E_PEER);
    hang_up(cut);
    hear(news, text, sizeof text);
    assert_string_equal(text, "5 of 2: killed by signal 9 (Killed)");
    hang_up(news);
    assert_null(talk_to(f->cluster, 3));
    muster_error error;
    muster_stream *stream;
    assert_int_equal(muster_cluster_dial(f->cluster, 2, NULL, 0, second, &stream, &error), MUSTER_E_STALE);
    assert_null(stream);
    assert_says(ask(f, 1, "talk 2"), "MUSTER_E_STALE");
    assert_int_equal(muster_cluster_get_member(f->cluster, 2, &info), MUSTER_OK);
    assert_int_equal(info.state, MUSTER_MEMBER_GONE);
    assert_int_equal(muster_cluster_remove(f->cluster, 2, 0), MUSTER_E_STALE);
    assert_int_equal(add(f, 1), 4); // no number is used twice
    await_joined(f, 1);
}

static void test_a_worker_that_exits_is_dead_with_its_code(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 1);
    await_joined(f, 1);
    end_worker(f, 1, "exit 7");
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
    assert_string_equal(event.text, "exit code 7");
}

static void test_those_that_do_not_come_have_failed_with_the_reason(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 2 * second);
    const char *const nothing[] = {"/no/such/program", NULL}, *const ends[] = {"/bin/sh", "-c", "exit 7", NULL},
                      *const sleeps[] = {"/bin/sleep", "1000", NULL};
    const char *const dialled[] = {"/bin/sh", "-c", "echo hello >&4; sleep 1000", NULL};
    muster_launch like = {.struct_size = sizeof like, .argv = nothing};
    add_like(f, &like, "", 1);
    muster_cluster_event event = await(f, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.status, MUSTER_E_NOT_FOUND);
    assert_says(event.text, "/no/such/program");
    like.argv = ends;
    add_like(f, &like, "", 1);
    event = await(f, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, 2);
    assert_string_equal(event.text, "exit code 7");
    like.argv = sleeps;
    add_like(f, &like, "", 1);
    event = await(f, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.status, MUSTER_TIMEOUT);
    assert_string_equal(event.text, "it did not join within 2 s");
    like.flags = MUSTER_LAUNCH_MASTER_DIALS;
    add_like(f, &like, "", 1); // it returns no address
    event = await(f, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.status, MUSTER_TIMEOUT);
    like.argv = dialled;
    add_like(f, &like, "", 1); // it returns an invalid address
    event = await(f, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.status, MUSTER_E_PROTOCOL);
    assert_says(event.text, "hello");
    like.flags = 0;
    like.argv = worker_words;
    like.directory = "/no/such/folder";
    add_like(f, &like, "", 1);
    event = await(f, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.status, MUSTER_E_NOT_FOUND);
    size_t count = 9;
    assert_int_equal(muster_cluster_list(f->cluster, NULL, 0, &count), MUSTER_OK);
    assert_int_equal(count, 0);
    assert_int_equal(muster_cluster_close(f->cluster, 5 * second), MUSTER_OK);
}

static void test_a_thousand_launches_that_all_fail_leave_nothing(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    const char *const nothing[] = {"/no/such/program", NULL};
    const muster_launch like = {.struct_size = sizeof like, .argv = nothing};
    assert_int_equal(add_like(f, &like, "", 1000), 1);
    for (uint32_t i = 1; i <= 1000; i++) assert_int_equal(await(f, MUSTER_CLUSTER_FAILED).member, i);
    assert_int_equal(add(f, 1), 1001);
    await_joined(f, 1);
    assert_null(talk_to(f->cluster, 1001));
}

static void test_removed_workers_leave_or_are_killed(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 2);
    add_like(f, NULL, "stubborn", 2);
    await_joined(f, 4);
    assert_int_equal(muster_cluster_remove(f->cluster, 1, -1), MUSTER_OK);
    muster_cluster_event event = await(f, MUSTER_CLUSTER_REMOVED);
    assert_int_equal(event.member, 1);
    assert_string_equal(event.text, "exit code 0");
    assert_int_equal(muster_cluster_remove(f->cluster, 3, 100 * ms), MUSTER_OK);
    event = await(f, MUSTER_CLUSTER_REMOVED);
    assert_int_equal(event.member, 3);
    assert_string_equal(event.text, "killed by signal 9 (Killed)");
    assert_int_equal(muster_cluster_remove(f->cluster, 4, 1000 * second), MUSTER_OK);
    assert_int_equal(muster_cluster_remove(f->cluster, 4, 0), MUSTER_OK); // the last call counts
    assert_int_equal(await(f, MUSTER_CLUSTER_REMOVED).member, 4);
    assert_null(talk_to(f->cluster, 2));
    const uint32_t late = add_like(f, NULL, "worker", 8); // on their way
    for (uint32_t i = 0; i < 8; i++) assert_int_equal(muster_cluster_remove(f->cluster, late + i, 0), MUSTER_OK);
    for (int i = 0; i < 8; i++) assert_in_range(await(f, MUSTER_CLUSTER_REMOVED).member, late, late + 7);
    assert_int_equal(muster_cluster_remove(f->cluster, 0, 0), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_remove(f->cluster, 1000, 0), MUSTER_E_NOT_FOUND);
}

static void test_an_interrupt_reaches_a_worker_that_computes(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 1);
    await_joined(f, 1);
    assert_string_equal(ask(f, 1, "compute"), "computing");
    assert_int_equal(muster_cluster_interrupt(f->cluster, 1), MUSTER_OK);
    assert_null(talk_to(f->cluster, 1)); // it is back
    assert_int_equal(muster_cluster_interrupt(f->cluster, 2), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_cluster_interrupt(f->cluster, 0), MUSTER_E_ARG);
}

static void test_workers_are_added_and_removed_while_others_stream(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 1);
    await_joined(f, 1);
    muster_stream *const busy = dial(f, 1, "echo");
    static char out[1 << 16], back[1 << 16];
    for (int round = 0; round < 8; round++) {
        const uint32_t more = add(f, 2);
        await_joined(f, 2);
        memset(out, 'a' + round, sizeof out);
        size_t moved;
        assert_int_equal(muster_stream_write(busy, out, sizeof out, 20 * second, &moved), MUSTER_OK);
        assert_int_equal(muster_stream_read_into(busy, back, sizeof back, 0, 20 * second, &moved), MUSTER_OK);
        assert_memory_equal(out, back, sizeof out);
        assert_talks(f, more, more + 1);
        assert_int_equal(muster_cluster_remove(f->cluster, more, -1), MUSTER_OK);
        await(f, MUSTER_CLUSTER_REMOVED);
    }
    hang_up(busy);
}

static void test_close_kills_who_computes_for_ever(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 2);
    await_joined(f, 2);
    assert_string_equal(ask(f, 1, "forever"), "computing");
    assert_int_equal(muster_cluster_close(f->cluster, 300 * ms), MUSTER_TIMEOUT);
    for (int i = 0; i < 2; i++) assert_int_equal(next(f).kind, MUSTER_CLUSTER_REMOVED);
    muster_error error;
    muster_stream *stream;
    const muster_launch launch = {.struct_size = sizeof launch, .argv = worker_words, .count = 1};
    assert_int_equal(muster_cluster_dial(f->cluster, 1, NULL, 0, second, &stream, &error), MUSTER_E_CLOSED);
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_CLOSED);
}

// One more process in between, which is killed: its workers end, one of them in the middle of a computation.
static void test_workers_end_when_their_master_was_killed(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t master = fork();
    if (master == 0) { // without cmocka
        execl(self_path, self_path, "master", (char *)NULL);
        _exit(99);
    }
    close(ends[0]);
    close(ends[1]);
    int how = 0;
    assert_int_equal(waitpid(master, &how, 0), master);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

// "master": starts a master that is killed, and waits for the end of all that it has started.
static int be_killed(void) {
    int ends[2]; // held by each of them: its end is theirs
    if (pipe(ends) != 0) return 1;
    const pid_t killed = fork();
    if (killed == 0) {
        close(ends[0]);
        static fixture f;
        muster_context_create(NULL, &f.context, NULL);
        muster_cluster_open(f.context, NULL, &f.cluster, NULL);
        const char *const words[] = {self_path, "worker", NULL};
        const muster_launch launch = {.struct_size = sizeof launch, .argv = words, .count = 3};
        muster_cluster_add(f.cluster, &launch, NULL, NULL);
        muster_cluster_event event;
        for (int joined = 0; joined < 3; joined += event.kind == MUSTER_CLUSTER_JOINED)
            if (muster_cluster_next_event(f.cluster, 20 * second, &event) != MUSTER_OK) _exit(1);
        muster_stream *stream = NULL;
        char text[32] = "";
        if (muster_cluster_dial(f.cluster, 2, "forever", 7, 20 * second, &stream, NULL) != MUSTER_OK) _exit(1);
        hear(stream, text, sizeof text);
        for (uint32_t i = 1; i <= 3; i++) { // the processes to search for
            muster_member_info info;
            muster_cluster_get_member(f.cluster, i, &info);
            const int32_t pid = (int32_t)info.pid;
            if (write(ends[1], &pid, sizeof pid) != sizeof pid) _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    close(ends[1]);
    int how = 0;
    waitpid(killed, &how, 0);
    if (!WIFSIGNALED(how)) return 2;
    int32_t pids[3];
    if (read(ends[0], pids, sizeof pids) != sizeof pids) return 3;
    for (int i = 0; i < 3; i++)
        for (int tries = 0; kill(pids[i], 0) == 0; tries++) { // they are not children of this process
            char path[64], line[256] = "";
            snprintf(path, sizeof path, "/proc/%d/stat", pids[i]);
            FILE *const file = fopen(path, "r");
            if (file && fgets(line, sizeof line, file) && strstr(line, ") Z")) tries = 1000; // it is not reaped
            if (file) fclose(file);
            if (tries >= 1000 && strstr(line, ") Z")) break;
            if (tries == 1000) return 4;
            usleep(10000);
        }
    return 0;
}

static void test_releasing_the_handle_ends_the_cluster(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add(f, 2);
    await_joined(f, 2);
    muster_cluster_release(f->cluster);
    f->cluster = NULL; // tear_down() waits for it, and it is quick: both leave
}

static void test_a_host_loop_is_told_by_its_queue(void **state) {
    fixture *f = *state;
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(f->context, NULL, &queue, NULL), MUSTER_OK);
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.queue = queue;
    config.tag = 77;
    assert_int_equal(muster_cluster_open(f->context, &config, &f->cluster, NULL), MUSTER_OK);
    add(f, 1);
    bool joined = false, dialled = false;
    muster_stream *stream = NULL;
    while (!dialled) {
        muster_completion entry;
        muster_error error;
        assert_int_equal(muster_queue_next(queue, 20 * second, &entry, &error), MUSTER_OK);
        if (entry.kind == MUSTER_EVENT_READY) {
            assert_int_equal(entry.tag, 77);
            muster_cluster_event event;
            while (muster_cluster_next_event(f->cluster, 0, &event) == MUSTER_OK)
                if (event.kind == MUSTER_CLUSTER_JOINED) {
                    joined = true;
                    assert_int_equal(muster_cluster_dial_begin(f->cluster, 1, "self", 4, 20 * second, queue, 5, &error),
                                     MUSTER_OK);
                }
        } else {
            assert_int_equal(entry.kind, MUSTER_DONE_DIAL);
            assert_int_equal(entry.tag, 5);
            assert_int_equal(entry.status, MUSTER_OK);
            stream = entry.object;
            dialled = true;
        }
    }
    assert_true(joined);
    char text[16];
    hear(stream, text, sizeof text);
    assert_string_equal(text, "1");
    hang_up(stream);
    muster_error error;
    assert_int_equal(muster_cluster_dial_begin(f->cluster, 9, NULL, 0, second, queue, 6, &error), MUSTER_OK);
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 20 * second, &entry, &error), MUSTER_OK);
    assert_int_equal(entry.status, MUSTER_E_NOT_FOUND);
    assert_null(entry.object);
    assert_says(error.message, "member 9");
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    muster_queue_release(queue);
}

static void test_waits_can_be_cancelled(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(f->cluster, 0, &event), MUSTER_AGAIN);
    assert_int_equal(muster_cluster_next_event(f->cluster, ms, &event), MUSTER_TIMEOUT);
    const char *const sleeps[] = {"/bin/sleep", "1000", NULL};
    const muster_launch like = {.struct_size = sizeof like, .argv = sleeps};
    add_like(f, &like, "", 1);
    muster_stream *stream;
    muster_error error;
    // It waits for the worker to join.
    assert_int_equal(muster_cluster_dial(f->cluster, 1, NULL, 0, 50 * ms, &stream, &error), MUSTER_TIMEOUT);
    assert_says(error.message, "member 1");
    assert_int_equal(muster_cluster_cancel(f->cluster), MUSTER_OK);
}

static void test_a_ticket_is_good_for_one_worker(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    // The shell copies its ticket for two programs: one of them comes too late.
    char script[5000];
    snprintf(script, sizeof script,
             "read -r t <&3; unset MUSTER_WORKER_FD; for i in 1 2; do"
             " echo \"$t\" | MUSTER_WORKER_FD=0 %s worker 2>/dev/null & done; wait",
             self_path);
    const char *const words[] = {"/bin/sh", "-c", script, NULL};
    const muster_launch like = {.struct_size = sizeof like, .argv = words};
    add_like(f, &like, "", 1);
    await_joined(f, 1);
    assert_null(talk_to(f->cluster, 1));
    assert_int_equal(muster_cluster_remove(f->cluster, 1, -1), MUSTER_OK);
    assert_int_equal(await(f, MUSTER_CLUSTER_REMOVED).member, 1);
}

static void test_what_is_no_ticket_is_refused(void **state) {
    (void)state;
    const struct {
        const char *text;
        muster_status status;
    } cases[] = {{"", MUSTER_E_PROTOCOL},
                 {"hello\n", MUSTER_E_PROTOCOL},
                 {"muster-worker-ticket 2 cluster=1\n", MUSTER_E_PROTOCOL},
                 {"muster-worker-ticket 1 cluster=1 member=1 master=x listen=y\n", MUSTER_E_PROTOCOL},
                 {"muster-worker-ticket 1 cluster=1 member=0 master=x listen=y secret="
                  "00000000000000000000000000000000\n",
                  MUSTER_E_PROTOCOL},
                 {"muster-worker-ticket 1 cluster=1 member=1 master=%4 listen= secret="
                  "00000000000000000000000000000000\n",
                  MUSTER_E_PROTOCOL},
                 {"muster-worker-ticket 1 cluster=1 member=1 member=1 master= listen= secret="
                  "00000000000000000000000000000000\n",
                  MUSTER_E_PROTOCOL},
                 {"muster-worker-ticket 1 cluster=1 member=1 master= listen= secret=00\n", MUSTER_E_PROTOCOL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], cases[i].text, strlen(cases[i].text)), strlen(cases[i].text));
        close(ends[1]);
        muster_context *context = (muster_context *)8;
        muster_error error;
        assert_int_equal(muster_worker_context(NULL, ends[0] + 1, &context, &error), cases[i].status);
        assert_null(context);
        close(ends[0]);
    }
    muster_context *context;
    muster_error error;
    unsetenv("MUSTER_WORKER_FD");
    assert_int_equal(muster_worker_context(NULL, 0, &context, &error), MUSTER_E_NOT_FOUND);
    setenv("MUSTER_WORKER_FD", "999", 1);
    assert_int_equal(muster_worker_context(NULL, 0, &context, &error), MUSTER_E_NOT_FOUND);
    unsetenv("MUSTER_WORKER_FD");
}

static void test_wrong_arguments_change_nothing(void **state) {
    fixture *f = *state;
    muster_error error;
    muster_cluster *cluster;
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.topology = 9;
    assert_int_equal(muster_cluster_open(f->context, &config, &cluster, &error), MUSTER_E_ARG);
    assert_says(error.message, "topology 9");
    config.topology = 0;
    config.listen = "nonsense";
    config.listen_bytes = 8;
    assert_int_equal(muster_cluster_open(f->context, &config, &cluster, &error), MUSTER_E_ADDRESS);
    assert_int_equal(muster_cluster_open(NULL, NULL, &cluster, &error), MUSTER_E_ARG);
    open_with(f, 0, NULL, 0);
    muster_launch launch = {.struct_size = sizeof launch, .argv = worker_words};
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_ARG);
    assert_says(error.message, "count is 0");
    launch.count = 65537;
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_ARG);
    launch.count = 1;
    launch.manager = "nobody";
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_NOT_FOUND);
    launch.manager = NULL;
    launch.flags = MUSTER_LAUNCH_MASTER_DIALS | MUSTER_LAUNCH_NO_LISTEN;
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_ARG);
    launch.flags = 0;
    launch.argv = NULL;
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_ARG);
    const char *const bad[] = {"NOT A VARIABLE", NULL};
    launch.argv = worker_words;
    launch.envp = bad;
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_add(f->cluster, NULL, NULL, &error), MUSTER_E_ARG);
    muster_stream *stream;
    assert_int_equal(muster_cluster_dial(f->cluster, 0, NULL, 0, second, &stream, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_dial(f->cluster, 5, NULL, 0, second, &stream, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_cluster_dial(f->cluster, 5, NULL, 0, 0, &stream, &error), MUSTER_E_ARG);
    static const char long_label[300];
    assert_int_equal(muster_cluster_dial(f->cluster, 5, long_label, sizeof long_label, second, &stream, &error),
                     MUSTER_E_ARG);
    size_t count = 9;
    assert_int_equal(muster_cluster_list(f->cluster, NULL, 0, &count), MUSTER_OK);
    assert_int_equal(count, 0);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 5, &info), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_cluster_get_member(f->cluster, 0, &info), MUSTER_OK);
    assert_int_equal(muster_cluster_self(NULL), UINT32_MAX);
    assert_int_equal(muster_worker_start(f->context, NULL, second, &cluster, &error), MUSTER_E_ARG);
    assert_says(error.message, "ticket");
    muster_cluster_release(NULL);
}

static int check_nothing_is_left(void **state) {
    const int status = tear_down(state);
    assert_no_children();
    return status;
}

int main(int argc, char **argv) {
    find_self();
    const int worked = work_if_asked(argc, argv);
    if (worked >= 0) return worked;
    if (argc > 1 && strcmp(argv[1], "master") == 0) return be_killed();
#define with_cluster(test) cmocka_unit_test_setup_teardown(test, set_up, check_nothing_is_left)
    const struct CMUnitTest tests[] = {
        with_cluster(test_workers_are_launched_connected_and_join_in_this_order),
        with_cluster(test_more_workers_than_the_master_greets_at_once_come_in),
        with_cluster(test_any_two_members_have_streams_over_each_transport),
        with_cluster(test_a_worker_dials_the_master),
        with_cluster(test_where_only_the_master_can_dial_it_does),
        with_cluster(test_who_does_not_listen_dials_back),
        with_cluster(test_topologies_say_who_may_have_a_stream),
        with_cluster(test_a_killed_worker_is_dead_at_once_and_its_partners_are_told),
        with_cluster(test_a_worker_that_exits_is_dead_with_its_code),
        with_cluster(test_those_that_do_not_come_have_failed_with_the_reason),
        with_cluster(test_a_thousand_launches_that_all_fail_leave_nothing),
        with_cluster(test_removed_workers_leave_or_are_killed),
        with_cluster(test_an_interrupt_reaches_a_worker_that_computes),
        with_cluster(test_workers_are_added_and_removed_while_others_stream),
        with_cluster(test_close_kills_who_computes_for_ever),
        cmocka_unit_test(test_workers_end_when_their_master_was_killed),
        with_cluster(test_releasing_the_handle_ends_the_cluster),
        with_cluster(test_a_host_loop_is_told_by_its_queue),
        with_cluster(test_waits_can_be_cancelled),
        with_cluster(test_a_ticket_is_good_for_one_worker),
        cmocka_unit_test(test_what_is_no_ticket_is_refused),
        with_cluster(test_wrong_arguments_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
