// SPDX-License-Identifier: MIT
// The ticket that mpiexec passes on: what is in the environment lets nobody in but the ranks of the launch, each once.
// In place of mpiexec a program that only sleeps; this process takes the part of the ranks.
// ctest: quick timeout=120
#include "cluster_worker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

static const char secret[] = "the secret of the cluster, which stays here";
static const char name[] = "MUSTER_WORKER_TICKET=";
static char launcher[64];

static muster_context *context;
static muster_cluster *cluster;

static int set_up(void **state) {
    (void)state;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = secret;
    config.secret_bytes = sizeof secret;
    return muster_context_create(&config, &context, NULL) != MUSTER_OK ||
           muster_cluster_open(context, NULL, &cluster, NULL) != MUSTER_OK;
}

static int tear_down(void **state) {
    (void)state;
    muster_cluster_close(cluster, 2 * second);
    muster_cluster_release(cluster);
    const muster_status closed = muster_context_close(context, 10 * second);
    muster_context_release(context);
    return closed != MUSTER_OK;
}

// A launch of `count` workers by a program that starts none.
static void launch(uint32_t count) {
    char options[128];
    snprintf(options, sizeof options, "mpiexec=%s", launcher);
    const char *const argv[] = {"/bin/true", NULL};
    muster_launch what;
    muster_config_init(&what, sizeof what);
    what.manager = "mpi";
    what.options = options;
    what.argv = argv;
    what.count = count;
    muster_error error;
    if (muster_cluster_add(cluster, &what, NULL, &error) != MUSTER_OK) fail_msg("%s", error.message);
}

// The environment of a child that has a ticket; 0 bytes: there is none.
static size_t environment_of_launcher(char *out, size_t room, pid_t *out_pid) {
    DIR *const all = opendir("/proc");
    size_t size = 0;
    for (const struct dirent *entry; size == 0 && (entry = readdir(all)) != NULL;) {
        char path[300], line[256];
        const pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || pid == getpid()) continue;
        snprintf(path, sizeof path, "/proc/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        int parent = 0;
        while (file && fgets(line, sizeof line, file))
            if (sscanf(line, "PPid: %d", &parent) == 1) break;
        if (file) fclose(file);
        if (parent != getpid()) continue;
        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        if ((file = fopen(path, "r")) == NULL) continue;
        size = fread(out, 1, room, file);
        fclose(file);
        if (memmem(out, size, name, strlen(name)) == NULL) size = 0;
        if (out_pid) *out_pid = pid;
    }
    closedir(all);
    return size;
}

// What the environment of the launcher has after the variable's name; and that the secret is not there.
static void find_ticket(char *out, size_t room, pid_t *out_pid) {
    static char environment[1 << 20];
    size_t size = 0;
    for (int turns = 0; size == 0; turns++) {
        assert_true(turns < 1000);
        size = environment_of_launcher(environment, sizeof environment, out_pid);
        if (size == 0) usleep(10000);
    }
    const char *const at = memmem(environment, size, name, strlen(name));
    snprintf(out, room, "%s", at + strlen(name));
    char hex[2 * sizeof secret + 1];
    for (size_t i = 0; i < sizeof secret; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)secret[i]);
    char line[4096] = "", twice[2 * sizeof line];
    for (size_t i = 0; out[2 * i] && i + 1 < sizeof line; i++) {
        unsigned byte = 0;
        assert_int_equal(sscanf(out + 2 * i, "%2x", &byte), 1);
        line[i] = (char)byte;
        line[i + 1] = '\0';
    }
    assert_non_null(strstr(line, " key="));
    assert_null(strstr(line, " secret="));
    assert_null(strstr(line, hex));
    for (size_t i = 0; i < strlen(hex); i++) snprintf(twice + 2 * i, 3, "%02x", (unsigned char)hex[i]);
    assert_null(memmem(environment, size, hex, strlen(hex)));
    assert_null(memmem(environment, size, twice, strlen(twice)));
    assert_null(memmem(environment, size, secret, strlen(secret)));
}

// This process as a rank.
static muster_status come_as(int rank, const char *ticket, muster_context **out, muster_error *error) {
    char number[16];
    snprintf(number, sizeof number, "%d", rank);
    setenv("MUSTER_WORKER_TICKET", ticket, 1);
    setenv("OMPI_COMM_WORLD_RANK", number, 1);
    const muster_status status = muster_worker_context(NULL, 0, out, error);
    assert_string_equal(getenv("MUSTER_WORKER_TICKET"), ""); // children inherit nothing
    unsetenv("MUSTER_WORKER_TICKET");
    return status;
}

static muster_cluster_event next(void) {
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(cluster, 20 * second, &event), MUSTER_OK);
    return event;
}

static void await(uint32_t kind, int count) {
    while (count > 0) count -= next().kind == kind;
}

static void key_of(const char *ticket, unsigned char key[32]) {
    char line[4096] = "";
    for (size_t i = 0; ticket[2 * i] && i + 1 < sizeof line; i++) {
        unsigned byte = 0;
        sscanf(ticket + 2 * i, "%2x", &byte);
        line[i] = (char)byte;
    }
    const char *const at = strstr(line, " key=") + 5;
    for (int i = 0; i < 32; i++) {
        unsigned byte = 0;
        assert_int_equal(sscanf(at + 2 * i, "%2x", &byte), 1);
        key[i] = (unsigned char)byte;
    }
}

static void test_each_rank_fetches_its_ticket_once_until_all_have_joined(void **state) {
    (void)state;
    char ticket[8192];
    muster_error error;
    muster_context *ranks[2], *other = NULL;
    launch(2);
    find_ticket(ticket, sizeof ticket, NULL);
    for (int i = 0; i < 2; i++)
        if (come_as(i, ticket, &ranks[i], &error) != MUSTER_OK) fail_msg("rank %d: %s", i, error.message);
    assert_int_equal(come_as(0, ticket, &other, &error), MUSTER_E_EXISTS); // a second one
    assert_int_equal(come_as(2, ticket, &other, &error), MUSTER_E_PROTOCOL);
    muster_cluster *workers[2];
    for (int i = 0; i < 2; i++)
        if (muster_worker_start(ranks[i], NULL, 20 * second, &workers[i], &error) != MUSTER_OK)
            fail_msg("rank %d: %s", i, error.message);
    await(MUSTER_CLUSTER_JOINED, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(come_as(i, ticket, &other, &error), MUSTER_E_AUTH);
    assert_null(other);
    muster_stream *stream; // they have what they need for all else
    assert_int_equal(muster_cluster_dial(workers[0], 2, "x", 1, 20 * second, &stream, &error), MUSTER_OK);
    muster_stream_release(stream);
    for (int i = 0; i < 2; i++) {
        muster_cluster_release(workers[i]);
        muster_context_release(ranks[i]);
    }
}

static void test_the_key_is_good_for_nothing_else(void **state) {
    (void)state;
    char ticket[8192];
    muster_error error;
    muster_member_info master;
    launch(1);
    find_ticket(ticket, sizeof ticket, NULL);
    assert_int_equal(muster_cluster_get_member(cluster, MUSTER_CLUSTER_MASTER, &master), MUSTER_OK);
    unsigned char key[32];
    key_of(ticket, key);
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = key;
    config.secret_bytes = sizeof key;
    muster_context *thief;
    assert_int_equal(muster_context_create(&config, &thief, NULL), MUSTER_OK);
    // A worker that comes by itself; in the clear not even the handshake holds.
    muster_worker_config worker;
    muster_config_init(&worker, sizeof worker);
    worker.master = master.address;
    muster_cluster *in = NULL;
    assert_int_equal(muster_worker_start(thief, &worker, 20 * second, &in, &error), MUSTER_E_AUTH);
    char address[1100];
    snprintf(address, sizeof address, "%s?seal=yes", master.address);
    worker.master = address;
    assert_true(muster_worker_start(thief, &worker, 20 * second, &in, &error) < 0);
    assert_null(in);
    muster_stream *stream;
    char byte;
    size_t moved;
    assert_int_equal(muster_transport_dial(thief, address, strlen(address), NULL, 20 * second, &stream, &error),
                     MUSTER_OK); // with no greeting: it is cut
    assert_true(muster_stream_read(stream, &byte, 1, 20 * second, &moved) < 0);
    muster_stream_release(stream);
    muster_context_release(thief);
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(cluster, 0, &event), MUSTER_AGAIN); // no worker has joined
}

static void test_the_key_ends_with_the_launch(void **state) {
    (void)state;
    char ticket[8192];
    muster_error error;
    muster_context *other = NULL;
    pid_t pid = 0;
    launch(2);
    find_ticket(ticket, sizeof ticket, &pid);
    assert_int_equal(kill(pid, SIGKILL), 0);
    await(MUSTER_CLUSTER_FAILED, 2);
    assert_int_equal(come_as(0, ticket, &other, &error), MUSTER_E_AUTH);
    assert_null(other);
}

int main(void) {
    snprintf(launcher, sizeof launcher, "/tmp/muster-launcher-%d", (int)getpid());
    const int fd = open(launcher, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0700);
    static const char script[] = "#!/bin/sh\nexec sleep 100\n";
    if (fd < 0 || write(fd, script, sizeof script - 1) != sizeof script - 1) return 1;
    close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_rank_fetches_its_ticket_once_until_all_have_joined, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_the_key_is_good_for_nothing_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_key_ends_with_the_launch, set_up, tear_down),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(launcher);
    return failed;
}
