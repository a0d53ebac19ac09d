// SPDX-License-Identifier: MIT
// cluster.h and manager.h: a master and a worker of one process, workers of the built-in local manager, and managers of
// the program, pulled and as callbacks.
#include "scenario.hpp"

#include <muster/manager.h>
#include <muster/worker.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace faults;

namespace {

std::string self_path() {
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, size > 0 ? static_cast<size_t>(size) : 0);
}

void open_cluster(muster_context *context, muster_queue *queue, Cluster &cluster) {
    muster_cluster_config config{};
    config.struct_size = sizeof config;
    config.queue = queue;
    config.tag = 50;
    config.join_timeout_ns = patience / 2; // a worker that fails before it joins is reported then
    config.leave_timeout_ns = second;
    OK(muster_cluster_open, context, &config, cluster.out(), &error);
}

// The next event of one of these kinds. Others are skipped; FAILED and DEAD are the fault's.
muster_cluster_event await(muster_cluster *cluster, uint32_t kind) {
    for (;;) {
        muster_cluster_event event{};
        const muster_status status = CALL(muster_cluster_next_event, cluster, patience, &event);
        if (status != MUSTER_OK) {
            if (status == MUSTER_TIMEOUT || !has_fired())
                wrong("no event of kind %u: %s", kind, muster_status_name(status));
            ended();
        }
        if (event.kind == kind) return event;
        const Stream stream(event.stream);
        const Broadcast broadcast(event.broadcast);
        if (event.kind == MUSTER_CLUSTER_FAILED || event.kind == MUSTER_CLUSTER_DEAD ||
            event.kind == MUSTER_CLUSTER_MASTER_GONE || event.kind == MUSTER_CLUSTER_REMOVED) {
            if (!has_fired()) wrong("event %u of member %u: %s", event.kind, event.member, event.text);
            if (event.text_bytes == 0) wrong("event %u of member %u has no text", event.kind, event.member);
            ended();
        }
    }
}

void close_cluster(Cluster &cluster) {
    const muster_status status = CALL(muster_cluster_close, cluster, patience);
    if (status != MUSTER_OK) expect_fault("muster_cluster_close", status);
}

struct Place {
    Context context, worker_context;
    Queue queue, worker_queue;
    Cluster cluster, worker;
    ~Place() { // a worker that has not left delays the end of its master
        if (worker != nullptr) CALL(muster_cluster_close, worker, second);
        if (cluster != nullptr) CALL(muster_cluster_close, cluster, second);
    }
};

// A worker that comes by itself, in the process of its master.
void come_together(Place &p, bool by_begin) {
    create(p.context);
    create(p.worker_context);
    {
        const Paused guard;
        OK(muster_queue_create, p.context, nullptr, p.queue.out(), &error);
        OK(muster_queue_create, p.worker_context, nullptr, p.worker_queue.out(), &error);
    }
    open_cluster(p.context, p.queue, p.cluster);
    muster_launch launch{};
    launch.struct_size = sizeof launch;
    launch.manager = "elastic";
    launch.count = 2;
    OK(muster_cluster_add, p.cluster, &launch, nullptr, &error);
    muster_member_info info{};
    OK(muster_cluster_get_member, p.cluster, MUSTER_CLUSTER_MASTER, &info);
    muster_worker_config config{};
    config.struct_size = sizeof config;
    config.master = info.address;
    config.queue = p.worker_queue;
    if (by_begin) {
        OK(muster_worker_start_begin, p.worker_context, &config, patience, p.worker.out(), &error);
        await(p.worker, MUSTER_CLUSTER_JOINED);
    } else {
        const muster_status status =
            CALL(muster_worker_start, p.worker_context, &config, patience, p.worker.out(), &error);
        if (status != MUSTER_OK) {
            expect_fault("muster_worker_start", status);
            OK(muster_worker_start, p.worker_context, &config, patience, p.worker.out(), &error);
        }
    }
}

} // namespace

SCENARIO(cluster, streams) {
    Place p;
    come_together(p, false);
    const uint32_t member = DO(muster_cluster_self, p.worker);
    for (int attempt = 0; attempt < 2; attempt++) {
        Stream stream;
        const muster_status status =
            CALL(muster_cluster_dial, p.cluster, member, "one", 3, patience, stream.out(), &error);
        if (status == MUSTER_OK) {
            const muster_cluster_event event = await(p.worker, MUSTER_CLUSTER_STREAM);
            const Stream other(event.stream);
            size_t bytes = 0;
            OR_END(muster_stream_write, stream, "hello", 5, patience, &bytes);
            char text[5];
            OR_END(muster_stream_read_into, other, text, 5, 0, patience, &bytes);
            break;
        }
        expect_fault("muster_cluster_dial", status);
        if (status == MUSTER_E_STALE || status == MUSTER_E_CLOSED) ended();
        EXPECT(attempt == 0);
    }
    const muster_status begun =
        CALL(muster_cluster_dial_begin, p.worker, MUSTER_CLUSTER_MASTER, "two", 3, patience, p.worker_queue, 8, &error);
    if (begun != MUSTER_OK) {
        expect_fault("muster_cluster_dial_begin", begun);
        ended();
    }
    const Stream stream(take_ok(p.worker_queue, MUSTER_DONE_DIAL, 8, "muster_cluster_dial").object);
    const Stream other(await(p.cluster, MUSTER_CLUSTER_STREAM).stream);
    close_cluster(p.worker);
    close_cluster(p.cluster);
}

SCENARIO(cluster, store) {
    Place p;
    come_together(p, false);
    Store first;
    const muster_status status = CALL(muster_cluster_store, p.worker, patience, first.out(), &error);
    if (status != MUSTER_OK) {
        expect_fault("muster_cluster_store", status);
        ended();
    }
    const muster_status begun = CALL(muster_cluster_store_begin, p.cluster, patience, p.queue, 9, &error);
    if (begun != MUSTER_OK) {
        expect_fault("muster_cluster_store_begin", begun);
        ended();
    }
    void *const opened = take_ok(p.queue, MUSTER_DONE_OPEN, 9, "muster_cluster_store").object;
    const Store other(static_cast<muster_store *>(opened));
    muster_store_op set{};
    set.kind = MUSTER_STORE_SET;
    set.key = "a";
    set.key_bytes = 1;
    StoreResult result;
    OK(muster_store_do, first, &set, 1, patience, result.out(), &error);
}

SCENARIO(cluster, broadcast) {
    Place p;
    come_together(p, true);
    static const char data[100'000] = {};
    muster_status statuses[1] = {};
    muster_status status =
        CALL(muster_cluster_broadcast, p.cluster, nullptr, 0, "b", 1, data, sizeof data, patience, nullptr, &error);
    if (status != MUSTER_OK) {
        expect_fault("muster_cluster_broadcast", status);
        ended();
    }
    {
        const muster_cluster_event event = await(p.worker, MUSTER_CLUSTER_BROADCAST);
        const Broadcast bytes(event.broadcast);
        EXPECT(event.size_bytes == sizeof data);
    }
    const uint32_t member = DO(muster_cluster_self, p.worker);
    status = CALL(muster_cluster_broadcast_begin, p.cluster, &member, 1, "c", 1, data, sizeof data, patience, statuses,
                  p.queue, 9, &error);
    if (status != MUSTER_OK) {
        expect_fault("muster_cluster_broadcast_begin", status);
        ended();
    }
    take_ok(p.queue, MUSTER_DONE_BROADCAST, 9, "muster_cluster_broadcast");
    const Broadcast bytes(await(p.worker, MUSTER_CLUSTER_BROADCAST).broadcast);
    OK(muster_cluster_cancel, p.worker);
}

SCENARIO(cluster, local_workers) {
    Context context;
    create(context);
    Queue queue;
    {
        const Paused guard;
        OK(muster_queue_create, context, nullptr, queue.out(), &error);
    }
    Cluster cluster;
    open_cluster(context, queue, cluster);
    const std::string path = self_path();
    const char *const argv[] = {path.c_str(), "--worker", nullptr};
    muster_launch launch{};
    launch.struct_size = sizeof launch;
    launch.count = 1;
    launch.argv = argv;
    uint32_t first = 0;
    OK(muster_cluster_add, cluster, &launch, &first, &error);
    try {
        await(cluster, MUSTER_CLUSTER_JOINED);
        uint32_t members[8];
        size_t count = 0;
        OK(muster_cluster_list, cluster, members, 8, &count);
        muster_status status = CALL(muster_cluster_interrupt, cluster, first);
        if (status != MUSTER_OK) expect_fault("muster_cluster_interrupt", status);
        status = CALL(muster_cluster_remove, cluster, first, second);
        if (status != MUSTER_OK)
            expect_fault("muster_cluster_remove", status);
        else
            await(cluster, MUSTER_CLUSTER_REMOVED);
    } catch (const Ended &) {
    }
    OK(muster_cluster_close_begin, cluster, patience, queue, 6, &error);
    take_ok(queue, MUSTER_DONE_CALL, 6, "muster_cluster_close");
}

// ---- managers of the program ---------------------------------------------------------------------------------------

namespace {

struct Manager {
    Context context;
    Queue queue;
    Cluster cluster;
    Process worker;
    uint32_t member = 0;
    bool is_destroyed = false;
};

void launch_worker(Manager &m, uint64_t request, uint32_t member) {
    char ticket[4096];
    size_t size = 0;
    OK(muster_manager_ticket, m.queue, request, member, ticket, sizeof ticket, &size);
    int ends[2];
    EXPECT(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], ticket, size) == static_cast<ssize_t>(size));
    ::close(ends[1]);
    const std::string path = self_path();
    const char *const argv[] = {path.c_str(), "--worker", nullptr};
    const muster_process_fd fds[] = {{ends[0], 3}};
    muster_process_config config{};
    config.struct_size = sizeof config;
    config.argv = argv;
    config.fds = fds;
    config.fd_count = 1;
    OK(muster_process_spawn, m.context, &config, m.worker.out(), &error);
    ::close(ends[0]);
    m.member = member;
}

void answer(Manager &m, uint64_t request) {
    muster_manager_request what{};
    what.struct_size = sizeof what;
    const muster_status status = CALL(muster_manager_request_read, m.queue, request, &what);
    if (status == MUSTER_E_STALE) return; // it was cancelled
    EXPECT(status == MUSTER_OK);
    switch (what.operation) {
    case MUSTER_MANAGER_LAUNCH:
        launch_worker(m, request, what.member);
        if (what.count > 1)
            OK(muster_manager_worker_failed, m.queue, request, what.member + 1, MUSTER_E_LIMIT, "one is enough", 13,
               &error);
        OK(muster_manager_worker_ready, m.queue, request, what.member, nullptr, 0, 7, &error);
        break;
    case MUSTER_MANAGER_INTERRUPT: { // the end of the worker may cancel it meanwhile
        muster_status failed = CALL(muster_manager_request_fail, m.queue, request, MUSTER_E_UNSUPPORTED, nullptr, 0);
        if (failed == MUSTER_E_NOMEM)
            failed = CALL(muster_manager_request_fail, m.queue, request, MUSTER_E_UNSUPPORTED, nullptr, 0);
        EXPECT(failed == MUSTER_OK || failed == MUSTER_E_STALE);
        break;
    }
    case MUSTER_MANAGER_KILL:
        if (m.worker != nullptr) CALL(muster_process_kill, m.worker, SIGKILL);
        [[fallthrough]];
    default: {
        const muster_status done = CALL(muster_manager_request_done, m.queue, request, nullptr, 0, &error);
        if (done == MUSTER_E_NOMEM)
            OK(muster_manager_request_done, m.queue, request, nullptr, 0, &error);
        else
            EXPECT(done == MUSTER_OK || done == MUSTER_E_STALE);
    }
    }
}

void on_request(void *self, uint64_t request, const muster_manager_request *) {
    answer(*static_cast<Manager *>(self), request);
}

void on_destroy(void *self) {
    static_cast<Manager *>(self)->is_destroyed = true;
}

// Serves until the cluster has this event.
void serve_until(Manager &m, uint32_t kind, bool by_callbacks) {
    for (int i = 0; i < 8000; i++) {
        if (by_callbacks) {
            uint64_t count = 0;
            const muster_status status = CALL(
                muster_queue_dispatch, m.queue, ms, [](void *, const muster_completion *, const muster_error *) {},
                nullptr, &count);
            EXPECT(status >= 0);
        } else {
            muster_completion entry{};
            const muster_status status = CALL(muster_queue_next, m.queue, ms, &entry, &error);
            if (status == MUSTER_OK && entry.kind == MUSTER_REQUEST_MANAGER) answer(m, entry.request);
        }
        muster_cluster_event event{};
        const muster_status status = CALL(muster_cluster_next_event, m.cluster, 0, &event);
        if (status == MUSTER_E_CLOSED) ended();
        if (status != MUSTER_OK) continue;
        if (event.kind == kind) return;
        if (event.kind == MUSTER_CLUSTER_FAILED || event.kind == MUSTER_CLUSTER_DEAD ||
            event.kind == MUSTER_CLUSTER_REMOVED) {
            if (event.member == m.member && !has_fired()) wrong("event %u: %s", event.kind, event.text);
            if (event.member == m.member) ended();
        }
    }
    wrong("no event of kind %u", kind);
}

void end(Manager &m) {
    if (m.cluster != nullptr) {
        const muster_status status = CALL(muster_cluster_close, m.cluster, 0);
        EXPECT(status >= 0 || status == MUSTER_E_WOULD_DEADLOCK || has_fired());
    }
    if (m.worker == nullptr) return;
    CALL(muster_process_kill, m.worker, SIGKILL);
    OK(muster_process_wait, m.worker, patience, nullptr);
}

void manage(bool by_callbacks) {
    Manager m;
    create(m.context);
    {
        const Paused guard;
        OK(muster_queue_create, m.context, nullptr, m.queue.out(), &error);
    }
    muster_manager_ops ops{};
    ops.struct_size = sizeof ops;
    ops.launch = ops.manage = ops.kill = on_request;
    ops.destroy = on_destroy;
    if (by_callbacks)
        OK(muster_manager_serve_ops, m.context, "mine", 4, &ops, &m, m.queue, &error);
    else
        OK(muster_manager_serve, m.context, "mine", 4, 0xfe & ~MUSTER_MANAGER_CONNECT & ~MUSTER_MANAGER_CONNECT_WORKER,
           m.queue, 5, &error);
    open_cluster(m.context, nullptr, m.cluster);
    muster_launch launch{};
    launch.struct_size = sizeof launch;
    launch.manager = "mine";
    launch.count = 2;
    uint32_t first = 0;
    OK(muster_cluster_add, m.cluster, &launch, &first, &error);
    m.member = first;
    try {
        serve_until(m, MUSTER_CLUSTER_JOINED, by_callbacks);
        muster_status status = CALL(muster_cluster_interrupt, m.cluster, first);
        if (status != MUSTER_OK) expect_fault("muster_cluster_interrupt", status);
        CALL(muster_process_kill, m.worker, SIGKILL);
        status = CALL(muster_manager_worker_ended, m.queue, m.cluster, first, "it was ended", 12, &error);
        if (status == MUSTER_E_NOMEM)
            OK(muster_manager_worker_ended, m.queue, m.cluster, first, "it was ended", 12, &error);
        serve_until(m, MUSTER_CLUSTER_DEAD, by_callbacks);
        OK(muster_manager_withdraw, m.context, "mine", 4);
        for (int i = 0; by_callbacks && !m.is_destroyed && i < 1000; i++) {
            uint64_t count = 0;
            CALL(
                muster_queue_dispatch, m.queue, ms, [](void *, const muster_completion *, const muster_error *) {},
                nullptr, &count);
        }
        EXPECT(!by_callbacks || m.is_destroyed);
    } catch (const Ended &) {
    }
    end(m);
}

} // namespace

SCENARIO(manager, pulled) {
    manage(false);
}
SCENARIO(manager, callbacks) {
    manage(true);
}

// The ticket of a worker, in this process.
SCENARIO(cluster, worker_of_a_ticket) {
    unsetenv("MUSTER_WORKER_FD");
    Context none;
    EXPECT(CALL(muster_worker_context, nullptr, 0, none.out(), &error) < 0);
}

namespace faults {

// The workers of these scenarios join, and leave on request.
int be_worker() {
    muster_context *context = nullptr;
    muster_cluster *cluster = nullptr;
    const char *const given = getenv("MUSTER_WORKER_FD");
    if (muster_worker_context(nullptr, given == nullptr ? 4 : 0, &context, nullptr) != MUSTER_OK) return 1;
    muster_worker_config config{};
    config.struct_size = sizeof config;
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER;
    if (muster_worker_start(context, &config, patience, &cluster, nullptr) != MUSTER_OK) return 1;
    muster_cluster_event event;
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        if (event.kind == MUSTER_CLUSTER_STREAM) muster_stream_release(event.stream);
        if (event.kind == MUSTER_CLUSTER_BROADCAST) muster_broadcast_release(event.broadcast);
        if (event.kind == MUSTER_CLUSTER_LEAVE || event.kind == MUSTER_CLUSTER_MASTER_GONE) break;
    }
    muster_cluster_close(cluster, second);
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}

} // namespace faults

// The forms that do not block; in the end the caller adds a place for workers that join by themselves.
SCENARIO(cluster, opened_by_begin) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    muster_cluster_config config{};
    config.struct_size = sizeof config;
    OK(muster_cluster_open_begin, context, &config, queue, 3, &error);
    Cluster cluster(take_ok(queue, MUSTER_DONE_OPEN, 3, "muster_cluster_open").object);
    muster_launch launch{};
    launch.struct_size = sizeof launch;
    launch.manager = "elastic";
    launch.count = 2;
    OK(muster_cluster_add_begin, cluster, &launch, queue, 4, &error);
    const muster_completion added = take(queue, MUSTER_DONE_CALL, 4, "muster_cluster_add");
    EXPECT(added.status == MUSTER_OK || has_fired());
    OK(muster_cluster_close_begin, cluster, patience, queue, 5, &error);
    take_ok(queue, MUSTER_DONE_CALL, 5, "muster_cluster_close");
}
