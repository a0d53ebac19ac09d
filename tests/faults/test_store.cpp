// SPDX-License-Identifier: MIT
// store.h and store_server.h: in memory, in a file, and elsewhere over a socket.
#include "scenario.hpp"

#include <cstring>
#include <dirent.h>
#include <sys/stat.h>

using namespace faults;

namespace {

muster_store_op op(uint32_t kind, const char *key, const char *value = nullptr, int64_t number = 0) {
    muster_store_op made{};
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    made.value = value;
    made.value_bytes = value != nullptr ? strlen(value) : 0;
    made.number = number;
    return made;
}

// A folder that goes at the end, with its files.
class Folder {
  public:
    Folder() { EXPECT(mkdtemp(name_) != nullptr); }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() { remove(name_); }
    std::string name() const { return name_; }

  private:
    static void remove(const std::string &folder) {
        if (DIR *open = opendir(folder.c_str())) {
            while (const dirent *entry = readdir(open)) {
                const std::string name = entry->d_name;
                if (name == "." || name == "..") continue;
                remove(folder + "/" + name);
            }
            closedir(open);
            rmdir(folder.c_str());
        } else {
            unlink(folder.c_str());
        }
    }
    char name_[32] = "/tmp/muster-fault-XXXXXX";
};

void open_store(muster_context *context, const std::string &url, Store &store) {
    OK(muster_store_open, context, url.data(), url.size(), nullptr, patience, store.out(), &error);
}

// A request that changes something may have been done although its answer was lost; one made again must succeed.
void use(muster_context *context, muster_queue *queue, muster_store *store) {
    const uint32_t can = DO(muster_store_capabilities, store);
    StoreResult result;
    const muster_store_op set = op(MUSTER_STORE_SET, "key", "value");
    OK(muster_store_do, store, &set, 1, patience, result.out(), &error);
    const muster_store_op three[] = {op(MUSTER_STORE_GET, "key"), op(MUSTER_STORE_SET, "other", "thing"),
                                     op(MUSTER_STORE_LIST, "")};
    OK(muster_store_do, store, three, can & MUSTER_STORE_CAN_TRANSACT ? 3 : 1, patience, result.out(), &error);
    EXPECT(DO(muster_store_result_count, result) >= 1);
    EXPECT(DO(muster_store_result_revision, result) > 0);
    muster_store_entry entry{};
    OK(muster_store_result_entry, result, 0, &entry);
    EXPECT(entry.value_bytes == 5 && memcmp(entry.value, "value", 5) == 0);

    Store view;
    OK(muster_store_view, store, "under/", 6, view.out(), &error);
    const muster_store_op add = op(MUSTER_STORE_ADD, "count", nullptr, 3);
    uint64_t request = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_store_begin, view, &add, 1, patience, queue, 8, &request, &error);
        const muster_completion done = take(queue, MUSTER_DONE_STORE, 8, "muster_store_do");
        const StoreResult sum(done.object);
        if (done.status == MUSTER_OK) break;
        expect_fault("muster_store_begin", done.status);
        EXPECT(attempt == 0);
    }
    if ((can & MUSTER_STORE_CAN_WAIT) != 0) {
        const muster_store_op wait = op(MUSTER_STORE_GET, "never");
        OK(muster_store_begin, store, &wait, 1, patience, queue, 9, &request, &error);
        const muster_status cancelled = CALL(muster_store_cancel, store, request);
        EXPECT(cancelled == MUSTER_OK || has_fired());
        const muster_completion ended = take(queue, MUSTER_DONE_STORE, 9, "muster_store_do");
        EXPECT(ended.status == MUSTER_E_CANCELED || has_fired());
    }
    if ((can & MUSTER_STORE_CAN_LEASE) == 0) return;
    Lease lease;
    OK(muster_store_lease, store, 2 * second, MUSTER_LEASE_MANUAL, patience, lease.out(), &error);
    EXPECT(DO(muster_lease_id, lease) != 0);
    OK(muster_lease_keep, lease);
    const muster_status end = CALL(muster_lease_end, lease, patience, &error);
    if (end != MUSTER_OK) expect_fault("muster_lease_end", end);
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_store_lease_begin, store, 2 * second, 0, patience, queue, 10, &request, &error);
        const muster_completion made = take(queue, MUSTER_DONE_LEASE, 10, "muster_store_lease");
        Lease second_lease(made.object);
        if (made.status != MUSTER_OK) {
            expect_fault("muster_store_lease_begin", made.status);
            EXPECT(attempt == 0);
            continue;
        }
        OK(muster_lease_end_begin, second_lease, patience, queue, 11, &error);
        const muster_completion over = take(queue, MUSTER_DONE_STORE, 11, "muster_lease_end");
        EXPECT(over.object == nullptr);
        if (over.status != MUSTER_OK) expect_fault("muster_lease_end_begin", over.status);
        break;
    }
    (void)context;
}

void make_queue(muster_context *context, Queue &queue) {
    const Paused guard;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
}

std::string serve(muster_context *context, const char *url, const std::string &folder, StoreServer &server) {
    muster_store_server_config config{};
    config.struct_size = sizeof config;
    config.data_dir = folder.empty() ? nullptr : folder.data();
    config.data_dir_bytes = folder.size();
    OK(muster_store_server_open, context, url, strlen(url), &config, server.out(), &error);
    char address[256];
    size_t bytes = 0;
    OK(muster_store_server_address, server, address, sizeof address, &bytes);
    return std::string(address, bytes);
}

void use_served(const char *url, bool durable) {
    Folder folder;
    Context context;
    create(context);
    Queue queue;
    make_queue(context, queue);
    StoreServer server;
    const std::string address = serve(context, url, durable ? folder.name() + "/data" : "", server);
    // A disk that fails stops the server; nothing else does.
    const Mortal mortal([&server] {
        muster_store_server_stats stats{};
        OK(muster_store_server_get_stats, server, &stats);
        EXPECT(stats.failed == 0 || strcmp(fault_kind(), "fsync") == 0);
        return stats.failed != 0;
    });
    {
        Store store;
        open_store(context, address, store);
        use(context, queue, store);
    }
    muster_store_server_stats stats{};
    OK(muster_store_server_get_stats, server, &stats);
    const muster_status alone = CALL(muster_store_server_force_standalone, server);
    EXPECT(alone == MUSTER_OK);
    const muster_status closed = CALL(muster_store_server_close, server, patience);
    if (closed != MUSTER_OK) expect_fault("muster_store_server_close", closed);
}

} // namespace

SCENARIO(store, memory) {
    Context context;
    create(context);
    Queue queue;
    make_queue(context, queue);
    Store store;
    open_store(context, "memory:", store);
    use(context, queue, store);
}

SCENARIO(store, file) {
    Folder folder;
    Context context;
    create(context);
    Queue queue;
    make_queue(context, queue);
    Store store;
    open_store(context, "file://" + folder.name() + "/store", store);
    use(context, queue, store);
}

SCENARIO(store, opened_by_begin) {
    Context context;
    create(context);
    Queue queue;
    make_queue(context, queue);
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_store_open_begin, context, "memory:", 7, nullptr, patience, queue, 3, &error);
        const muster_completion opened = take(queue, MUSTER_DONE_OPEN, 3, "muster_store_open");
        const Store store(opened.object);
        if (opened.status == MUSTER_OK) break;
        expect_fault("muster_store_open", opened.status);
        EXPECT(attempt == 0);
    }
}

SCENARIO(store_server, tcp) {
    use_served("tcp://127.0.0.1:0", false);
}

SCENARIO(store_server, durable) {
    use_served("tcp://127.0.0.1:0", true);
}

SCENARIO(store_server, closed_by_begin) {
    Context context;
    create(context);
    Queue queue;
    make_queue(context, queue);
    StoreServer server;
    serve(context, "tcp://127.0.0.1:0", "", server);
    OK(muster_store_server_close_begin, server, patience, queue, 4, &error);
    take_ok(queue, MUSTER_DONE_CALL, 4, "muster_store_server_close");
}
