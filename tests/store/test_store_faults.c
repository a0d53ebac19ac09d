// SPDX-License-Identifier: MIT
// Stores that fail in the middle of a write: what the status says is so. MUSTER_FAULT_SEED and MUSTER_FAULT_SEEDS say
// which seeds, MUSTER_FAULT_STEPS how many steps each has.
// ctest: full timeout=300
#include "fault_driver.h"
#include "fault_relay.h"
#include "store_pair.h"

#include <dlfcn.h>

static fault_world w;

static long from_environment(const char *name, long usual) {
    const char *const text = getenv(name);
    return text != NULL ? atol(text) : usual;
}

static void open_world(const char *name, const char *faulty_url, const char *direct_url) {
    memset(&w, 0, sizeof w);
    w.name = name;
    muster_store_config config = {.struct_size = sizeof config, .lost_after_ns = 60 * SECOND};
    assert_int_equal(muster_context_create(NULL, &w.context, &why), MUSTER_OK);
    assert_int_equal(muster_queue_create(w.context, NULL, &w.queue, &why), MUSTER_OK);
    if (faulty_url == NULL) return;
    if (muster_store_open(w.context, faulty_url, strlen(faulty_url), &config, 20 * SECOND, &w.faulty, &why) !=
        MUSTER_OK)
        fail_msg("%s", why.message);
    if (muster_store_open(w.context, direct_url, strlen(direct_url), &config, 20 * SECOND, &w.direct, &why) !=
        MUSTER_OK)
        fail_msg("%s", why.message);
}
static void close_world(void) {
    muster_store_release(w.faulty);
    muster_store_release(w.direct);
    muster_queue_release(w.queue);
    assert_int_equal(muster_context_close(w.context, 10 * SECOND), MUSTER_OK);
    muster_context_release(w.context);
}

static int verdicts[3];

static void drive(uint64_t seed, int steps) {
    fault_drive(&w, seed, steps);
    for (int i = 0; i < 3; i++) verdicts[i] += w.verdicts[i];
}
static void expect_all_verdicts(const char *name, bool doubt) {
    printf("%s: %d not applied, %d applied, %d in doubt\n", name, verdicts[0], verdicts[1], verdicts[2]);
    assert_true(verdicts[fault_not_applied] > 0 && verdicts[fault_applied] > 0);
    assert_int_equal(verdicts[fault_in_doubt] > 0, doubt);
    memset(verdicts, 0, sizeof verdicts);
}

// ---- a server that is killed, stopped, and cut off ------------------------------------------------------------------

typedef struct served {
    program server;
    fault_relay relay;
    char data[300], url[300];
    bool killed, stopped;
} served;

static void launch(served *s) {
    s->server = start_server("--listen", s->url, "--data-dir", s->data, NULL);
    await_ready(&s->server);
}
static void kill_served(void *self) { // the relay's thread
    served *const s = self;
    muster_process_kill(s->server.process, SIGKILL);
    s->killed = true;
}
static void arm_served(void *self, int fault, int point) {
    served *const s = self;
    (void)point;
    if (fault == relay_stop_server) {
        stop_program(&s->server);
        s->stopped = true;
    } else {
        relay_arm(&s->relay, fault);
    }
}
static void heal_served(void *self) {
    served *const s = self;
    pthread_mutex_lock(&s->relay.lock);
    const bool killed = s->killed;
    s->killed = false;
    s->relay.fault = relay_none;
    pthread_mutex_unlock(&s->relay.lock);
    if (killed) {
        end_program(&s->server, 0);
        launch(s);
    }
    if (s->stopped) assert_int_equal(muster_process_kill(s->server.process, SIGCONT), MUSTER_OK);
    s->stopped = false;
    relay_heal(&s->relay);
}

static void test_a_served_store(void **state) {
    (void)state;
    const long seed = from_environment("MUSTER_FAULT_SEED", 1), seeds = from_environment("MUSTER_FAULT_SEEDS", 4);
    const int steps = (int)from_environment("MUSTER_FAULT_STEPS", 60);
    static served s;
    for (long i = seed; i < seed + seeds; i++) {
        memset(&s, 0, sizeof s);
        snprintf(s.data, sizeof s.data, "%s/data%ld", folder, i);
        snprintf(s.url, sizeof s.url, "tcp://127.0.0.1:0");
        launch(&s);
        snprintf(s.url, sizeof s.url, "%s", s.server.url);
        relay_start(&s.relay, atoi(strrchr(s.url, ':') + 1));
        s.relay.kill = kill_served;
        s.relay.self = &s;
        char through[64];
        snprintf(through, sizeof through, "tcp://127.0.0.1:%d", s.relay.port);
        open_world("served store", through, s.url);
        w.self = &s;
        w.arm = arm_served;
        w.heal = heal_served;
        w.faults = relay_fault_count;
        w.fault_names = relay_fault_names;
        drive((uint64_t)i, steps);
        close_world();
        relay_end(&s.relay);
        end_program(&s.server, SIGKILL);
    }
    expect_all_verdicts("served store", true);
}

// ---- a server with a standby ----------------------------------------------------------------------------------------

typedef struct pair {
    member members[2];
    int serves, point; // which one; when it is killed
    bool killed;
    pthread_t killer;
} pair;
static const char *const pair_faults[] = {"none", "kill"};

static void *kill_soon(void *argument) {
    const pair *const p = argument;
    const struct timespec moment = {0, (long)p->point * 50000};
    nanosleep(&moment, NULL);
    muster_process_kill(p->members[p->serves].p.process, SIGKILL);
    return NULL;
}
static void arm_pair(void *self, int fault, int point) {
    pair *const p = self;
    if (fault == 0) return;
    p->point = point;
    p->killed = true;
    assert_int_equal(pthread_create(&p->killer, NULL, kill_soon, p), 0);
}
// The one that was killed stands by for the other.
static void heal_pair(void *self) {
    pair *const p = self;
    if (!p->killed) return;
    p->killed = false;
    pthread_join(p->killer, NULL);
    member *const old = &p->members[p->serves], *const other = &p->members[1 - p->serves];
    end_program(&old->p, 0);
    start_member(old, other, "20");
    await_role(old, "standby");
    await_role(other, "paired");
    p->serves = 1 - p->serves;
}

static void test_a_store_with_a_standby(void **state) {
    (void)state;
    const long seed = from_environment("MUSTER_FAULT_SEED", 1), seeds = from_environment("MUSTER_FAULT_SEEDS", 2);
    const int steps = (int)from_environment("MUSTER_FAULT_STEPS", 40);
    for (long i = seed; i < seed + seeds; i++) {
        static pair p;
        memset(&p, 0, sizeof p);
        char url[620];
        make_pair(&p.members[0], &p.members[1], NULL, "20", url, sizeof url);
        open_world("store with a standby", url, url);
        w.self = &p;
        w.arm = arm_pair;
        w.heal = heal_pair;
        w.faults = 2;
        w.points = 40;
        w.fault_names = pair_faults;
        drive((uint64_t)i, steps);
        close_world();
        for (int k = 0; k < 2; k++) end_program(&p.members[k].p, SIGKILL);
    }
    printf("store with a standby: %d not applied, %d applied, %d in doubt\n", verdicts[0], verdicts[1], verdicts[2]);
    memset(verdicts, 0, sizeof verdicts);
}

// ---- a file whose disk fails ----------------------------------------------------------------------------------------

// The library calls these, since this program comes before libc. Counts down; at 0 calls of the kind fail.
enum { call_write, call_sync, call_truncate };
static atomic_int fail_in = -1, fail_kinds, fail_errno, fail_times;

static bool fails(int kind) {
    if (fail_in < 0 || (fail_kinds >> kind & 1) == 0 || fail_in-- > 0) return false;
    fail_in = --fail_times > 0 ? 0 : -1;
    errno = fail_errno;
    return true;
}
// The functions of libc that the ones below stand for.
static void find_next(void *place, const char *name) {
    void *const found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    memcpy(place, &found, sizeof found);
}
static ssize_t write_or_fail(const char *name, int file, const void *bytes, size_t size, off_t at) {
    ssize_t (*next)(int, const void *, size_t, off_t);
    find_next(&next, name);
    if (!fails(call_write)) return next(file, bytes, size, at);
    const int why_not = errno;
    if (size > 1) next(file, bytes, size / 2, at); // a part of it is there
    errno = why_not;
    return -1;
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    return write_or_fail("pwrite", file, bytes, size, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    return write_or_fail("pwrite64", file, bytes, size, at);
}
static int sync_or_fail(const char *name, int file) { // what could not be synced was written
    int (*next)(int);
    find_next(&next, name);
    return fails(call_sync) ? -1 : next(file);
}
int fdatasync(int file) {
    return sync_or_fail("fdatasync", file);
}
static int truncate_or_fail(const char *name, int file, off_t size) {
    int (*next)(int, off_t);
    find_next(&next, name);
    return fails(call_truncate) ? -1 : next(file, size);
}
int ftruncate(int file, off_t size) {
    return truncate_or_fail("ftruncate", file, size);
}
int ftruncate64(int file, off64_t size) {
    return truncate_or_fail("ftruncate64", file, size);
}

enum { file_none, file_full, file_error, file_sync, file_all, file_locked, file_faults };
static const char *const file_fault_names[] = {"none",       "disk full", "write fails",
                                               "sync fails", "all fails", "locked by another"};
typedef struct filed {
    char path[300];
    int lock;
} filed;
static void arm_file(void *self, int fault, int point) {
    static const int kinds[] = {0, 1, 1, 2, 7, 0}, errors[] = {0, ENOSPC, EIO, EIO, EIO, 0};
    filed *const f = self;
    fail_kinds = kinds[fault];
    fail_errno = errors[fault];
    fail_times = fault == file_all ? 100 : 1;
    if (fault == file_locked) {
        f->lock = open(f->path, O_RDWR | O_CLOEXEC);
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        assert_int_equal(fcntl(f->lock, F_OFD_SETLKW, &whole), 0); // after what is still under way
    } else if (fault != file_none) {
        fail_in = point;
    }
}
static void heal_file(void *self) {
    filed *const f = self;
    fail_in = -1;
    if (f->lock >= 0) close(f->lock);
    f->lock = -1;
}

static void test_a_file(void **state) {
    (void)state;
    const long seed = from_environment("MUSTER_FAULT_SEED", 1), seeds = from_environment("MUSTER_FAULT_SEEDS", 4);
    const int steps = (int)from_environment("MUSTER_FAULT_STEPS", 100);
    for (long i = seed; i < seed + seeds; i++) {
        filed f = {.lock = -1};
        snprintf(f.path, sizeof f.path, "%s/store%ld", folder, i);
        char url[320];
        snprintf(url, sizeof url, "file://%s", f.path);
        open_world("file", url, url);
        w.self = &f;
        w.arm = arm_file;
        w.heal = heal_file;
        w.faults = file_faults;
        w.points = 2;
        w.fault_names = file_fault_names;
        drive((uint64_t)i, steps);
        close_world();
    }
    expect_all_verdicts("file", true);
}

// ---- a host that forwards requests ----------------------------------------------------------------------------------

// It has a store of its own in memory. What it does with the next request that changes something is the fault.
enum { host_none, host_late, host_mute, host_holds, host_loses, host_faults };
static const char *const host_fault_names[] = {"none", "applies and answers late", "applies and does not answer",
                                               "applies late", "does not apply"};
typedef struct forwarding {
    muster_queue *queue;
    muster_store *inner;
    uint32_t flags;
    pthread_t thread;
    pthread_mutex_t lock; // guards the rest
    int fault;
    uint64_t held; // the request, and what is to become of it
    int held_for;
} forwarding;

static void apply_for(forwarding *h, uint64_t request, bool answer) {
    muster_store_request what = {.struct_size = sizeof what};
    if (muster_store_request_read(h->queue, request, &what) != MUSTER_OK) return;
    muster_store_result *result = NULL;
    muster_error error = {0};
    muster_store_entry entries[8];
    const muster_status status = muster_store_do(h->inner, what.ops, what.op_count, 0, &result, &error);
    const size_t count = (size_t)muster_store_result_count(result);
    for (size_t i = 0; i < count && i < 8; i++) muster_store_result_entry(result, i, &entries[i]);
    if (!answer) {
    } else if (result != NULL) {
        muster_store_request_done(h->queue, request, status, entries, count, muster_store_result_revision(result),
                                  NULL);
    } else {
        muster_store_request_fail(h->queue, request, status, UINT32_MAX, NULL, 0);
    }
    muster_store_result_release(result);
}

static void *forward(void *argument) {
    forwarding *const h = argument;
    muster_completion entry;
    while (muster_queue_next(h->queue, -1, &entry, NULL) == MUSTER_OK) {
        muster_store_request what = {.struct_size = sizeof what};
        pthread_mutex_lock(&h->lock);
        if (entry.kind == MUSTER_REQUEST_CANCEL && entry.request == h->held) {
            // What was held is not applied any more. What was lost is not known, or was not applied.
            const bool applied = h->held_for == host_late || h->held_for == host_mute;
            muster_store_request_fail(h->queue, entry.request, applied ? MUSTER_E_PEER : MUSTER_E_CANCELED, UINT32_MAX,
                                      NULL, 0);
            if (h->flags & MUSTER_STORE_ANSWERS_CANCEL) h->held = 0;
        }
        if (entry.kind == MUSTER_REQUEST_STORE &&
            muster_store_request_read(h->queue, entry.request, &what) == MUSTER_OK) {
            if (what.kind == MUSTER_STORE_REQUEST_OPEN) {
                const muster_store_traits traits = {.struct_size = sizeof traits,
                                                    .flags = h->flags,
                                                    .capabilities = MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_QUEUE};
                muster_store_request_open(h->queue, entry.request, &traits, NULL);
            } else if (h->fault == host_none) {
                apply_for(h, entry.request, true);
            } else {
                h->held = entry.request;
                h->held_for = h->fault;
                if (h->fault == host_late || h->fault == host_mute) apply_for(h, entry.request, false);
                h->fault = host_none;
            }
        }
        pthread_mutex_unlock(&h->lock);
    }
    return NULL;
}
static void arm_host(void *self, int fault, int point) {
    forwarding *const h = self;
    (void)point;
    pthread_mutex_lock(&h->lock);
    h->fault = fault;
    h->held = 0;
    pthread_mutex_unlock(&h->lock);
}
static void heal_host(void *self) {
    forwarding *const h = self;
    pthread_mutex_lock(&h->lock);
    if (h->held != 0 && h->held_for == host_holds) apply_for(h, h->held, true);
    if (h->held != 0 && h->held_for != host_holds)
        muster_store_request_fail(h->queue, h->held, h->held_for == host_loses ? MUSTER_E_UNREACHABLE : MUSTER_E_PEER,
                                  UINT32_MAX, "it is late", 10);
    h->held = 0;
    h->fault = host_none;
    pthread_mutex_unlock(&h->lock);
}

static void check_host(const char *name, uint32_t flags) {
    const long seed = from_environment("MUSTER_FAULT_SEED", 1), seeds = from_environment("MUSTER_FAULT_SEEDS", 2);
    const int steps = (int)from_environment("MUSTER_FAULT_STEPS", 60);
    for (long i = seed; i < seed + seeds; i++) {
        open_world(name, NULL, NULL);
        forwarding h = {.flags = flags, .lock = PTHREAD_MUTEX_INITIALIZER};
        assert_int_equal(muster_store_open(w.context, "memory:", 7, NULL, SECOND, &h.inner, &why), MUSTER_OK);
        assert_int_equal(muster_queue_create(w.context, NULL, &h.queue, &why), MUSTER_OK);
        assert_int_equal(muster_store_serve(w.context, "forward", 7, h.queue, 0, &why), MUSTER_OK);
        assert_int_equal(pthread_create(&h.thread, NULL, forward, &h), 0);
        assert_int_equal(muster_store_open(w.context, "forward:x", 9, NULL, 10 * SECOND, &w.faulty, &why), MUSTER_OK);
        assert_int_equal(muster_store_view(h.inner, "", 0, &w.direct, &why), MUSTER_OK);
        w.self = &h;
        w.arm = arm_host;
        w.heal = heal_host;
        w.faults = host_faults;
        w.fault_names = host_fault_names;
        drive((uint64_t)i, steps);
        muster_queue_close(h.queue);
        pthread_join(h.thread, NULL);
        muster_queue_release(h.queue);
        muster_store_release(h.inner);
        close_world();
    }
    expect_all_verdicts(name, true);
}
static void test_a_host_that_forwards(void **state) {
    (void)state;
    check_host("host", MUSTER_STORE_IS_REMOTE);
    check_host("host that answers after a cancel", MUSTER_STORE_IS_REMOTE | MUSTER_STORE_ANSWERS_CANCEL);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

static const char *const no_faults[] = {"none"};
static void arm_nothing(void *self, int fault, int point) {
    (void)self, (void)fault, (void)point;
}
static void heal_nothing(void *self) {
    (void)self;
}

// Deadlines, cancels and values that come at the same time.
static void test_memory(void **state) {
    (void)state;
    const long seed = from_environment("MUSTER_FAULT_SEED", 1), seeds = from_environment("MUSTER_FAULT_SEEDS", 4);
    const int steps = (int)from_environment("MUSTER_FAULT_STEPS", 100);
    for (long i = seed; i < seed + seeds; i++) {
        open_world("memory", "memory:faults", "memory:faults");
        w.arm = arm_nothing;
        w.heal = heal_nothing;
        w.faults = 1;
        w.fault_names = no_faults;
        drive((uint64_t)i, steps);
        close_world();
    }
    expect_all_verdicts("memory", false);
}

int main(int argc, char **argv) {
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    if (!make_folder()) return 2;
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_served_store), cmocka_unit_test(test_a_store_with_a_standby),
        cmocka_unit_test(test_a_file),         cmocka_unit_test(test_a_host_that_forwards),
        cmocka_unit_test(test_memory),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tear_down() ? failed : 2;
}
