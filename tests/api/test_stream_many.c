/* SPDX-License-Identifier: MIT */
// ctest: full timeout=120
/* Ten thousand pairs, and a thousand connections over unix sockets, in one process: what each costs, and that all of
 * them work. Prints the figures that include/muster/stream.h names. */
#include "transport_pair.h"

#include <dirent.h>

enum { pair_count = 10000, link_count = 1000 };

typedef struct cost {
    long resident_bytes;
    long descriptors;
} cost;

static cost cost_now(void) {
    cost c = {0, 0};
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    c.resident_bytes = resident * sysconf(_SC_PAGESIZE);
    DIR *folder_of_fds = opendir("/proc/self/fd");
    assert_non_null(folder_of_fds);
    while (readdir(folder_of_fds)) c.descriptors++;
    closedir(folder_of_fds);
    return c;
}

static cost since(cost before, const char *what, int count) {
    cost c = cost_now();
    c.resident_bytes -= before.resident_bytes;
    c.descriptors -= before.descriptors;
    printf("%s: %ld bytes and %.2f descriptors each\n", what, c.resident_bytes / count, (double)c.descriptors / count);
    return c;
}

static void say_and_hear(muster_stream *from, muster_stream *to, int number) {
    int got = -1;
    size_t bytes = 0;
    assert_int_equal(muster_stream_write(from, &number, sizeof number, 5 * SECOND, &bytes), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(to, &got, sizeof got, 0, 5 * SECOND, &bytes), MUSTER_OK);
    assert_int_equal(got, number);
}

static void test_ten_thousand_pairs(void **state) {
    (void)state;
    static muster_stream *ends[pair_count][2];
    muster_context *context = make_context(0, SECRET);
    muster_stream *first[2];
    assert_int_equal(muster_stream_pair(context, NULL, &first[0], &first[1], NULL), MUSTER_OK); /* what is made once */
    memset(ends, 1, sizeof ends);
    const cost before = cost_now();
    for (int i = 0; i < pair_count; i++)
        assert_int_equal(muster_stream_pair(context, NULL, &ends[i][0], &ends[i][1], NULL), MUSTER_OK);
    const cost idle = since(before, "idle pair", pair_count);
    for (int i = 0; i < pair_count; i++) {
        say_and_hear(ends[i][0], ends[i][1], i);
        say_and_hear(ends[i][1], ends[i][0], -i);
    }
    const cost used = since(before, "pair used both ways", pair_count);
    for (int i = 0; i < pair_count; i++) {
        muster_stream_release(ends[i][0]);
        muster_stream_release(ends[i][1]);
    }
    muster_stream_release(first[0]);
    muster_stream_release(first[1]);
    assert_int_equal(muster_context_close(context, 5 * SECOND), MUSTER_OK);
    muster_context_release(context);
    assert_int_equal(idle.descriptors, 0);
    assert_int_equal(used.descriptors, 0);
#if !defined(MUSTER_SANITIZED)
    assert_true(idle.resident_bytes / pair_count < 6 * 1024);
    assert_true(used.resident_bytes / pair_count < 16 * 1024);
#endif
}

static void test_a_thousand_unix_connections(void **state) {
    (void)state;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 4 * link_count) skip();
    static muster_stream *near[link_count], *far[link_count];
    const way unix_alone = {"unix", "unix://%s/socket?upgrade=no", "?upgrade=no", 0};
    pair p = {0};
    connect_pair(&p, &unix_alone);
    memset(near, 1, sizeof near), memset(far, 1, sizeof far);
    const cost before = cost_now();
    for (int i = 0; i < link_count; i++) {
        muster_error error = {0};
        if (muster_transport_dial(p.client, p.address, strlen(p.address), NULL, 20 * SECOND, &near[i], &error) < 0 ||
            muster_listener_accept(p.listener, 20 * SECOND, &far[i], &error) != MUSTER_OK)
            fail_msg("connection %d: %s", i, error.message);
    }
    const cost idle = since(before, "unix connection, both ends", link_count);
    for (int i = 0; i < link_count; i++) {
        say_and_hear(near[i], far[i], i);
        say_and_hear(far[i], near[i], -i);
    }
    since(before, "unix connection used both ways, both ends", link_count);
    for (int i = 0; i < link_count; i++) {
        muster_stream_release(near[i]);
        muster_stream_release(far[i]);
    }
    drop_pair(&p);
    assert_int_equal(idle.descriptors, 2 * link_count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_thousand_pairs),
        cmocka_unit_test(test_a_thousand_unix_connections),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
