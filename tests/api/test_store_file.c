// SPDX-License-Identifier: MIT
// Stores in a file: several processes, some of them killed, files that are cut off, damaged, full, written anew.
// ctest: quick timeout=100
#include "store_file.h"

static void test_it_is_there_for_the_next(void **state) {
    (void)state;
    fixture f = set_up();
    const uint64_t version = run(f.store, op(MUSTER_STORE_SET, "a", "1")).version;
    run(f.store, op(MUSTER_STORE_APPEND, "a", "2"));
    run(f.store, op(MUSTER_STORE_SET, "b", "x"));
    run(f.store, op(MUSTER_STORE_DELETE, "b", ""));
    const uint64_t revision = muster_store_result_revision(last);
    let_go(&f);
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    open_it(&f);
    expect_holds(f.store, "a", "12");
    assert_int_equal(muster_store_result_revision(last), revision);
    assert_true(version < revision);
    /* Two who have it open see each other. */
    muster_store *other = NULL, *first = f.store;
    open_it(&f);
    other = f.store, f.store = first;
    run(other, op(MUSTER_STORE_SET, "c", "from the other"));
    expect_holds(f.store, "c", "from the other");
    assert_int_equal(run(other, add("n", 1)).number, 1);
    assert_int_equal(run(f.store, add("n", 1)).number, 2);
    assert_int_equal(run(other, add("n", 1)).number, 3);
    muster_store_release(other);
    tear_down(&f);
}

/* A process of its own: adds until it is killed, and says after each that it was done. */
static int add_for_ever(const char *url) {
    fixture own = {{0}, {0}, NULL, NULL};
    if (muster_context_create(NULL, &own.context, NULL) != MUSTER_OK) return 1;
    if (try_open(&own, url) != MUSTER_OK) return 2;
    for (;;) {
        const muster_store_op ops[] = {add("sum", 1), op(MUSTER_STORE_APPEND, "marks", "m")};
        if (muster_store_do(own.store, ops, 2, -1, NULL, NULL) != MUSTER_OK) return 3;
        if (write(STDOUT_FILENO, "x", 1) != 1) return 4;
    }
}

static void test_writers_that_are_killed(void **state) {
    (void)state;
    fixture f = set_up();
    int64_t told = 0;
    enum { rounds = 8, writers = 2 };
    for (int round = 0; round < rounds; round++) {
        int ends[2];
        pid_t children[writers];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        fflush(NULL);
        for (int i = 0; i < writers; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                dup2(ends[1], STDOUT_FILENO);
                execl("/proc/self/exe", "writer", "write", f.url, (char *)NULL);
                _exit(5);
            }
        }
        close(ends[1]);
        char piece[1024];
        for (int64_t enough = told + 20 * (round + 1); told < enough;) {
            const ssize_t n = read(ends[0], piece, sizeof piece);
            assert_true(n > 0);
            told += n;
        }
        for (int i = 0; i < writers; i++) kill(children[i], SIGKILL);
        for (int i = 0; i < writers; i++) {
            int status;
            waitpid(children[i], &status, 0);
            assert_true(WIFSIGNALED(status));
        }
        for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) told += n;
        close(ends[0]);
        /* Each may have done one that it could not tell any more. */
        const int64_t sum = run(f.store, add("sum", 0)).number;
        if (sum < told || sum > told + writers * (round + 1))
            fail_msg("%lld were done, and the sum is %lld", (long long)told, (long long)sum);
        assert_int_equal(run(f.store, op(MUSTER_STORE_READ, "marks", "")).value_bytes, sum); /* both or neither */
    }
    tear_down(&f);
}

static void test_a_record_that_was_cut_off(void **state) {
    (void)state;
    fixture f = set_up();
    run(f.store, op(MUSTER_STORE_SET, "a", "whole"));
    const off_t before = size_of(&f);
    run(f.store, op(MUSTER_STORE_SET, "b", "a value that is cut off somewhere"));
    const off_t after = size_of(&f);
    muster_store_release(f.store);
    for (off_t size = before + 1; size < after; size += 5) { /* in its head, in its middle, at its end */
        assert_int_equal(truncate(f.path, size), 0);
        open_it(&f);
        expect_holds(f.store, "a", "whole");
        assert_int_equal(run(f.store, op(MUSTER_STORE_READ, "b", "")).flags, 0);
        assert_int_equal(size_of(&f), before); /* it was taken away */
        run(f.store, op(MUSTER_STORE_SET, "b", "a value that is cut off somewhere"));
        assert_int_equal(size_of(&f), after);
        muster_store_release(f.store);
    }
    open_it(&f);
    tear_down(&f);
}

static void test_files_that_are_no_stores(void **state) {
    (void)state;
    fixture f = set_up();
    run(f.store, op(MUSTER_STORE_SET, "a", "1"));
    const off_t middle = size_of(&f) - 3;
    run(f.store, op(MUSTER_STORE_SET, "b", "2"));
    muster_store *first = f.store;
    /* Damage in the middle is no writer that was killed: nothing is thrown away. */
    int file = open(f.path, O_RDWR | O_CLOEXEC);
    char byte;
    assert_int_equal(pread(file, &byte, 1, middle), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, middle), 1);
    open_it(&f);
    const off_t size = size_of(&f);
    assert_int_equal(request(f.store, op(MUSTER_STORE_READ, "a", ""), second), MUSTER_E_PROTOCOL);
    assert_non_null(strstr(why.message, "is damaged at byte"));
    assert_int_equal(request(f.store, op(MUSTER_STORE_SET, "a", "3"), second), MUSTER_E_PROTOCOL);
    assert_int_equal(size_of(&f), size);
    muster_store_release(f.store);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, middle), 1);
    expect_holds(first, "b", "2");
    assert_int_equal(pwrite(file, "something else", 14, 0), 14);
    close(file);
    assert_int_equal(try_open(&f, f.url), MUSTER_E_PROTOCOL);
    assert_non_null(strstr(why.message, "that is no store"));
    assert_int_equal(try_open(&f, "file:///"), MUSTER_E_ADDRESS);
    assert_int_equal(try_open(&f, "file://relative"), MUSTER_E_ADDRESS);
    assert_int_equal(try_open(&f, "file:///tmp/x?colour=red"), MUSTER_E_ADDRESS);
    assert_int_equal(try_open(&f, "file:///no/such/folder/x"), MUSTER_E_NOT_FOUND);
    assert_int_equal(try_open(&f, "file:///dev/null"), MUSTER_E_PROTOCOL);
    f.store = first;
    tear_down(&f);
}

static void test_history_is_written_anew(void **state) {
    (void)state;
    fixture f = set_up();
    muster_store *other, *first = f.store;
    open_it(&f);
    other = f.store, f.store = first;
    static char value[60001];
    memset(value, 'v', sizeof value - 1);
    run(f.store, op(MUSTER_STORE_SET, "stays", "1"));
    const uint64_t version = run(f.store, op(MUSTER_STORE_READ, "stays", "")).version;
    off_t largest = 0;
    for (int i = 0; i < 300; i++) {
        run(i % 2 ? f.store : other, op(MUSTER_STORE_SET, "k", value));
        if (size_of(&f) > largest) largest = size_of(&f);
    }
    assert_true(largest < 8 << 20); /* of the 18 MB that were written */
    const uint64_t revision = muster_store_result_revision(last);
    assert_int_equal(run(other, op(MUSTER_STORE_READ, "stays", "")).version, version);
    assert_int_equal(muster_store_result_revision(last), revision);
    muster_store_op careful = op(MUSTER_STORE_SET, "stays", "2");
    careful.condition = MUSTER_STORE_IF_VERSION;
    careful.version = version;
    assert_int_equal(run(f.store, careful).version, revision + 1);
    expect_holds(other, "stays", "2");
    muster_store_release(other);
    tear_down(&f);
}

static void test_a_full_disk(void **state) {
    (void)state;
    fixture f = set_up();
    run(f.store, op(MUSTER_STORE_SET, "a", "1"));
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = (rlim_t)size_of(&f) + 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    static char value[1001];
    memset(value, 'v', sizeof value - 1);
    const muster_status status = request(f.store, op(MUSTER_STORE_SET, "a", value), 10 * second);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, MUSTER_E_LIMIT);
    expect_holds(f.store, "a", "1"); /* and not what could not be written */
    run(f.store, op(MUSTER_STORE_SET, "a", "2"));
    expect_holds(f.store, "a", "2");
    tear_down(&f);
}

static void test_somebody_keeps_the_lock(void **state) {
    (void)state;
    fixture f = set_up();
    run(f.store, op(MUSTER_STORE_SET, "a", "1"));
    const int file = open(f.path, O_RDWR | O_CLOEXEC);
    struct flock whole;
    memset(&whole, 0, sizeof whole);
    whole.l_type = F_WRLCK;
    assert_int_equal(fcntl(file, F_OFD_SETLK, &whole), 0);
    assert_int_equal(request(f.store, op(MUSTER_STORE_SET, "a", "2"), 30 * ms), MUSTER_TIMEOUT);
    assert_non_null(strstr(why.message, "set \"a\": no answer after 0.0"));
    close(file);
    expect_holds(f.store, "a", "1"); /* nothing of it was done */
    /* A context does not wait for the lock either. */
    const int again = open(f.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(again, F_OFD_SETLK, &whole), 0);
    muster_queue *queue;
    assert_int_equal(muster_queue_create(f.context, NULL, &queue, NULL), MUSTER_OK);
    const muster_store_op set = op(MUSTER_STORE_SET, "a", "3");
    assert_int_equal(muster_store_begin(f.store, &set, 1, -1, queue, 1, NULL, NULL), MUSTER_OK);
    muster_store_release(f.store), f.store = NULL;
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    muster_completion done;
    assert_int_equal(muster_queue_next(queue, second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.status, MUSTER_E_CLOSED);
    muster_queue_release(queue);
    muster_context_release(f.context);
    close(again);
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    open_it(&f);
    expect_holds(f.store, "a", "1");
    tear_down(&f);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "write") == 0) return add_for_ever(argv[2]);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_there_for_the_next),  cmocka_unit_test(test_writers_that_are_killed),
        cmocka_unit_test(test_a_record_that_was_cut_off), cmocka_unit_test(test_files_that_are_no_stores),
        cmocka_unit_test(test_history_is_written_anew),   cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_somebody_keeps_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
