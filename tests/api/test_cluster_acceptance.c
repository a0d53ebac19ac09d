// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// The acceptance program of the bindings (tests/lua, bindings/rust, tests/julia) in C, over tcp, shared memory and a
// star.
#include "cluster_master.h"

#include <muster/broker.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>

enum { numbers = 100000, batch = 250, big_bytes = 80000000 };

static uint32_t checksum(const unsigned char *bytes, size_t size) {
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + bytes[i];
    return sum;
}

// ---- a worker: one thread for each stream, since a stream may stand still while another is wanted

typedef struct task {
    muster_cluster *cluster;
    muster_stream *stream;
    char label[256];
} task;

static void square_all(muster_stream *stream) {
    uint64_t list[batch];
    size_t moved;
    while (muster_stream_read_into(stream, list, sizeof list, 0, -1, &moved) == MUSTER_OK) {
        for (int i = 0; i < batch; i++) list[i] *= list[i];
        usleep(200); // it takes its time
        if (muster_stream_write(stream, list, sizeof list, -1, &moved) != MUSTER_OK) return;
    }
}

// The received numbers, followed by their sum.
static void send_back(muster_stream *stream) {
    unsigned char *const bytes = malloc(big_bytes);
    size_t moved;
    if (bytes && muster_stream_read_into(stream, bytes, big_bytes, 0, -1, &moved) == MUSTER_OK) {
        const uint32_t sum = checksum(bytes, big_bytes);
        muster_stream_write(stream, bytes, big_bytes, -1, &moved);
        muster_stream_write(stream, &sum, sizeof sum, -1, &moved);
    }
    free(bytes);
}

static void *do_task(void *argument) {
    task *const t = argument;
    if (strcmp(t->label, "square") == 0)
        square_all(t->stream);
    else if (strcmp(t->label, "back") == 0)
        send_back(t->stream);
    else
        do_as_told(t->cluster, t->stream, t->label);
    muster_stream_finish(t->stream);
    muster_stream_close(t->stream, 10 * second);
    muster_stream_release(t->stream);
    free(t);
    return NULL;
}

static int work_with_threads(void) {
    signal(SIGINT, count_interrupt);
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER | MUSTER_WORKER_RAISE_INTERRUPT;
    if (muster_worker_context(NULL, 0, &context, &error) != MUSTER_OK ||
        muster_worker_start(context, &config, 60 * second, &cluster, &error) != MUSTER_OK) {
        fprintf(stderr, "worker: %s\n", error.message);
        return 1;
    }
    muster_cluster_event event;
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        if (event.kind == MUSTER_CLUSTER_LEAVE) muster_cluster_close(cluster, -1);
        if (event.kind != MUSTER_CLUSTER_STREAM) continue;
        task *const t = malloc(sizeof *t);
        pthread_t thread;
        t->cluster = cluster;
        t->stream = event.stream;
        memcpy(t->label, event.label, sizeof t->label);
        if (pthread_create(&thread, NULL, do_task, t) == 0) pthread_detach(thread);
    }
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}

// ---- the master: a map, with what a worker had that died given to another

typedef struct map_job {
    muster_cluster *cluster;
    uint64_t results[numbers];
    int waiting[numbers / batch], waiting_count, done;
    pthread_mutex_t lock; // for the line before
} map_job;

typedef struct map_thread {
    map_job *job;
    uint32_t member;
    pthread_t thread;
} map_thread;

static int take_batch(map_job *job) {
    pthread_mutex_lock(&job->lock);
    const int first = job->waiting_count > 0 ? job->waiting[--job->waiting_count] : -1;
    pthread_mutex_unlock(&job->lock);
    return first;
}

static void put_back(map_job *job, int first, bool done) {
    pthread_mutex_lock(&job->lock);
    if (done)
        job->done++;
    else
        job->waiting[job->waiting_count++] = first;
    pthread_mutex_unlock(&job->lock);
}

static bool is_done(map_job *job) {
    pthread_mutex_lock(&job->lock);
    const bool done = job->done == numbers / batch;
    pthread_mutex_unlock(&job->lock);
    return done;
}

static void *map_with(void *argument) {
    map_thread *const self = argument;
    map_job *const job = self->job;
    muster_stream *stream = NULL;
    if (muster_cluster_dial(job->cluster, self->member, "square", 6, 20 * second, &stream, NULL) != MUSTER_OK)
        return NULL;
    while (!is_done(job)) {
        const int first = take_batch(job);
        if (first < 0) {
            usleep(1000); // what another has may come back
            continue;
        }
        uint64_t list[batch];
        size_t moved;
        for (int i = 0; i < batch; i++) list[i] = (uint64_t)(first + i);
        const bool right =
            muster_stream_write(stream, list, sizeof list, 20 * second, &moved) == MUSTER_OK &&
            muster_stream_read_into(stream, job->results + first, sizeof list, 0, 20 * second, &moved) == MUSTER_OK;
        put_back(job, first, right);
        if (!right) break;
    }
    hang_up(stream);
    return NULL;
}

static void square_with_a_death(fixture *f) {
    static map_job job;
    memset(&job, 0, sizeof job);
    pthread_mutex_init(&job.lock, NULL);
    job.cluster = f->cluster;
    for (int first = 0; first < numbers; first += batch) job.waiting[job.waiting_count++] = first;
    map_thread threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = (map_thread){.job = &job, .member = i + 1};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, map_with, &threads[i]), 0);
    }
    for (bool begun = false; !begun; usleep(1000)) { // in the middle
        pthread_mutex_lock(&job.lock);
        begun = job.done > 40;
        pthread_mutex_unlock(&job.lock);
    }
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 2, &info), MUSTER_OK);
    assert_int_equal(kill((pid_t)info.pid, SIGKILL), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
    assert_int_equal(job.done, numbers / batch);
    for (uint64_t i = 0; i < numbers; i++) assert_int_equal(job.results[i], i * i);
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, 2);
    assert_string_equal(event.text, "killed by signal 9 (Killed)");
    pthread_mutex_destroy(&job.lock);
}

typedef struct sending {
    muster_stream *stream;
    const unsigned char *bytes;
    muster_status status;
} sending;

static void *send_all(void *argument) {
    sending *const s = argument;
    size_t moved;
    s->status = muster_stream_write(s->stream, s->bytes, big_bytes, 60 * second, &moved);
    return NULL;
}

static void move_both_ways(fixture *f) {
    unsigned char *const sent = malloc(big_bytes), *const back = malloc(big_bytes);
    assert_true(sent && back);
    for (size_t i = 0; i < big_bytes; i++) sent[i] = (unsigned char)(i * 2654435761u >> 13);
    sending s = {dial(f, 1, "back"), sent, MUSTER_OK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_all, &s), 0);
    size_t moved;
    uint32_t sum = 0;
    assert_int_equal(muster_stream_read_into(s.stream, back, big_bytes, 0, 60 * second, &moved), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(s.stream, &sum, sizeof sum, 0, 60 * second, &moved), MUSTER_OK);
    pthread_join(thread, NULL);
    assert_int_equal(s.status, MUSTER_OK);
    assert_memory_equal(sent, back, big_bytes);
    assert_int_equal(sum, checksum(sent, big_bytes));
    hang_up(s.stream);
    free(sent);
    free(back);
}

static void interrupt_a_long_task(fixture *f) {
    muster_stream *const stream = dial(f, 3, "compute");
    char text[64];
    size_t moved;
    assert_int_equal(muster_stream_read_into(stream, text, strlen("computing"), 0, 20 * second, &moved), MUSTER_OK);
    assert_int_equal(muster_cluster_interrupt(f->cluster, 3), MUSTER_OK);
    assert_int_equal(muster_stream_read(stream, text, sizeof text, 20 * second, &moved), MUSTER_E_END); // it has ended
    hang_up(stream);
    assert_string_equal(ask(f, 3, "self"), "3");
}

static void refuse_another_secret(fixture *f) {
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = "another secret than theirs";
    config.secret_bytes = strlen(config.secret);
    muster_context *stranger = NULL;
    assert_int_equal(muster_context_create(&config, &stranger, NULL), MUSTER_OK);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    strcat(info.address, "?upgrade=no");
    muster_stream *stream = NULL;
    assert_int_equal(
        muster_transport_dial(stranger, info.address, strlen(info.address), NULL, 20 * second, &stream, NULL),
        MUSTER_E_AUTH);
    assert_int_equal(muster_context_close(stranger, second), MUSTER_OK);
    muster_context_release(stranger);
}

// ---- what this process holds of the machine

static int entries(const char *folder) {
    DIR *const all = opendir(folder);
    int count = 0;
    while (all && readdir(all)) count++;
    if (all) closedir(all);
    return count;
}

static int own_sockets(void) {
    char line[512], name[64];
    int count = 0;
    snprintf(name, sizeof name, "muster-accept-%d", (int)getpid());
    FILE *const file = fopen("/proc/net/unix", "r");
    while (file && fgets(line, sizeof line, file)) count += strstr(line, name) != NULL;
    if (file) fclose(file);
    return count;
}

// The tests beside this one use /dev/shm too; with a mount of its own, this one sees only what it left there itself.
static bool has_own_shared_memory;

static void mount_own_shared_memory(void) {
    has_own_shared_memory = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                            mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0;
    if (!has_own_shared_memory) puts("no mounts for this user: what is left in /dev/shm is not counted");
}

static void accept_over(const char *master, const char *worker, bool with_stranger, const char *broker_at) {
    const int descriptors = entries("/proc/self/fd"), shared = entries("/dev/shm");
    fixture f = {NULL, NULL};
    muster_broker *broker = NULL;
    char listens[2][400];
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    if (broker_at) {
        char at[300] = "";
        size_t size = 0;
        assert_int_equal(muster_broker_open(f.context, broker_at, strlen(broker_at), NULL, &broker, NULL), MUSTER_OK);
        assert_int_equal(muster_broker_address(broker, at, sizeof at, &size), MUSTER_OK);
        const int length = (int)strcspn(at + 6, "/");
        snprintf(listens[0], sizeof listens[0], "zmq://master@%.*s/accept", length, at + 6);
        snprintf(listens[1], sizeof listens[1], "zmq://w{}@%.*s/accept", length, at + 6);
        master = listens[0];
        worker = listens[1];
    }
    open_with(&f, 0, master, 0);
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.listen = worker;
    add_like(&f, &like, "threads", 4);
    await_joined(&f, 4);
    square_with_a_death(&f);
    move_both_ways(&f);
    assert_int_equal(add_like(&f, &like, "threads", 2), 5);
    await_joined(&f, 2);
    assert_talks(&f, 5, 6);
    interrupt_a_long_task(&f);
    if (with_stranger) refuse_another_secret(&f);
    assert_int_equal(muster_cluster_close(f.cluster, -1), MUSTER_OK);
    muster_cluster_release(f.cluster);
    if (broker) muster_broker_close(broker, second);
    muster_broker_release(broker);
    assert_int_equal(muster_context_close(f.context, 5 * second), MUSTER_OK);
    muster_context_release(f.context);
    assert_no_children();
    assert_int_equal(own_sockets(), 0);
    if (has_own_shared_memory) assert_int_equal(entries("/dev/shm"), shared);
    for (int i = 0; i < 100 && entries("/proc/self/fd") > descriptors; i++)
        usleep(50000); // a plug-in's library closes its own
    assert_in_range(entries("/proc/self/fd"), 0, descriptors);
}

static void test_over_tcp(void **state) {
    (void)state;
    accept_over("tcp://127.0.0.1:0?upgrade=no", "tcp://127.0.0.1:0?upgrade=no", true, NULL);
}

static void test_over_shared_memory(void **state) {
    (void)state;
    char master[64], worker[64];
    snprintf(master, sizeof master, "shm://muster-accept-%d-0", (int)getpid());
    snprintf(worker, sizeof worker, "shm://muster-accept-%d-{}", (int)getpid());
    accept_over(master, worker, false, NULL);
}

static void test_over_a_star(void **state) {
    (void)state;
    accept_over(NULL, NULL, false, "zmq://127.0.0.1:0/");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "threads") == 0) return work_with_threads();
    find_self();
    mount_own_shared_memory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_over_tcp), cmocka_unit_test(test_over_shared_memory),
                                       cmocka_unit_test(test_over_a_star)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
