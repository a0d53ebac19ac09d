// SPDX-License-Identifier: MIT
// durable FOLDER [KEYS]: what a store on a disk costs, done in three ways: the log of the data folder, SQLite and LMDB.
// Each holds KEYS keys (a million), of 16 bytes with values of 64. The figures: durable writes of one writer and of 64
// whose writes go to the disk together, bytes on the disk, and how long it takes until all is in memory again.
#include "store/journal/journal.hpp"

#include <muster/muster.h>
#include <muster/store_server.h>

#include <lmdb.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <unordered_map>

namespace {

using namespace muster;
namespace files = std::filesystem;

constexpr int64_t second = 1'000'000'000;
constexpr size_t value_bytes = 64, load_at_a_time = 10'000;
size_t key_count = 1'000'000;

int64_t now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * second + t.tv_nsec;
}

[[noreturn]] void die(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

std::string key(size_t i) {
    char text[32];
    snprintf(text, sizeof text, "key/%012zu", i);
    return text;
}

uint64_t bytes_in(const std::string &folder) { // as the disk counts them
    uint64_t sum = 0;
    for (const auto &entry : files::recursive_directory_iterator(folder)) {
        struct stat about {};
        if (stat(entry.path().c_str(), &about) == 0 && entry.is_regular_file()) sum += uint64_t(about.st_blocks) * 512;
    }
    return sum;
}

void row(const char *way, const char *what, double figure, const char *unit) {
    printf("%s\t%s\t%.4g\t%s\n", way, what, figure, unit);
    fflush(stdout);
}

// A way to keep keys, open: makes so many writes durable.
struct Way {
    const char *name;
    std::function<void(size_t batch)> commit;
    std::function<void()> close;
};

std::string next_key() {
    static std::mt19937_64 random(1);
    return key(random() % key_count);
}

// By turns, since others use the disk, too: the median of nine rounds.
void measure_writes(const std::vector<Way> &ways, size_t batch) {
    constexpr int rounds = 9;
    std::vector<std::vector<double>> rates(ways.size());
    for (int round = 0; round < rounds; round++)
        for (size_t way = 0; way < ways.size(); way++) {
            uint64_t done = 0;
            const int64_t from = now();
            int64_t took = 0;
            for (; took < second / 2; took = now() - from, done += batch) ways[way].commit(batch);
            rates[way].push_back(double(done) * second / double(took));
        }
    for (size_t way = 0; way < ways.size(); way++) {
        std::sort(rates[way].begin(), rates[way].end());
        row(ways[way].name, batch == 1 ? "writes of 1" : "writes of 64", rates[way][rounds / 2], "per s");
        row(ways[way].name, batch == 1 ? "writes of 1, best" : "writes of 64, best", rates[way].back(), "per s");
    }
}

// ---- the log --------------------------------------------------------------------------------------------------------

struct Open {
    muster_context *context = nullptr;
    muster_store_server *server = nullptr;
    muster_store *store = nullptr;
    Open(const std::string &folder, uint32_t flags) {
        muster_store_server_config config{};
        config.struct_size = sizeof config;
        config.flags = flags;
        config.data_dir = folder.c_str();
        config.data_dir_bytes = folder.size();
        char url[100];
        size_t size = 0;
        muster_error why{};
        if (muster_context_create(nullptr, &context, &why) != MUSTER_OK ||
            muster_store_server_open(context, "tcp://127.0.0.1:0", 17, &config, &server, &why) != MUSTER_OK ||
            muster_store_server_address(server, url, sizeof url, &size) != MUSTER_OK ||
            muster_store_open(context, url, size, nullptr, 60 * second, &store, &why) != MUSTER_OK)
            die(why.message);
    }
    Open(const Open &) = delete;
    Open &operator=(const Open &) = delete;
    ~Open() {
        muster_store_release(store);
        muster_store_server_close(server, -1);
        muster_store_server_release(server);
        muster_context_close(context, -1);
        muster_context_release(context);
    }
};

Way log(const std::string &folder) {
    {
        Open open(folder, MUSTER_STORE_SERVER_NO_SYNC);
        const std::string value(value_bytes, 'v');
        std::vector<std::string> keys(1000);
        std::vector<muster_store_op> ops(keys.size());
        for (size_t i = 0; i < key_count; i += keys.size()) {
            for (size_t k = 0; k < keys.size(); k++) {
                keys[k] = key(i + k);
                ops[k] = {};
                ops[k].kind = MUSTER_STORE_SET;
                ops[k].key = keys[k].data();
                ops[k].key_bytes = keys[k].size();
                ops[k].value = value.data();
                ops[k].value_bytes = value.size();
            }
            if (muster_store_do(open.store, ops.data(), ops.size(), -1, nullptr, nullptr) != MUSTER_OK) die("load");
        }
    }
    row("log", "bytes on disk", double(bytes_in(folder)), "bytes");
    const int64_t from = now();
    { const Open open(folder, 0); }
    row("log", "restart", double(now() - from) * 1e-9, "s");

    // Writes as the server makes them: one record for each, on the disk when the thread of the journal says so.
    struct Journal {
        std::mutex lock;
        std::condition_variable moved;
        std::unique_ptr<StoreJournal> journal;
    };
    const auto all = std::make_shared<Journal>();
    auto journal = StoreJournal::open(folder + ".writes", true, [](std::string_view) { return true; });
    if (!journal) die(journal.error().message);
    all->journal = std::move(*journal);
    all->journal->start([all = all.get()] {
        const std::lock_guard hold(all->lock);
        all->moved.notify_one();
    });
    return {"log",
            [all](size_t batch) {
                for (size_t i = 0; i < batch; i++)
                    all->journal->append(std::string(45, 'h') + next_key() + std::string(value_bytes, 'w'));
                std::unique_lock hold(all->lock);
                all->moved.wait(hold, [&] { return all->journal->durable() >= all->journal->appended(); });
            },
            [all] { all->journal.reset(); }};
}

// ---- SQLite ---------------------------------------------------------------------------------------------------------

void check(sqlite3 *db, int code, int wanted = SQLITE_OK) {
    if (code != wanted) die(sqlite3_errmsg(db));
}

Way sqlite(const std::string &folder) {
    files::create_directory(folder);
    static sqlite3 *db = nullptr;
    static sqlite3_stmt *set = nullptr, *all = nullptr;
    const auto open = [folder] {
        check(db, sqlite3_open((folder + "/db").c_str(), &db));
        check(db, sqlite3_exec(db,
                               "pragma journal_mode=wal; pragma synchronous=full; create table if not exists kv "
                               "(key blob primary key, value blob) without rowid",
                               nullptr, nullptr, nullptr));
        check(db, sqlite3_prepare_v2(db, "insert or replace into kv values (?, ?)", -1, &set, nullptr));
        check(db, sqlite3_prepare_v2(db, "select key, value from kv", -1, &all, nullptr));
    };
    const auto close = [] {
        sqlite3_finalize(set);
        sqlite3_finalize(all);
        sqlite3_close(db);
    };
    const auto put = [](const std::string &name, const std::string &value) {
        sqlite3_bind_blob(set, 1, name.data(), int(name.size()), SQLITE_STATIC);
        sqlite3_bind_blob(set, 2, value.data(), int(value.size()), SQLITE_STATIC);
        check(db, sqlite3_step(set), SQLITE_DONE);
        sqlite3_reset(set);
    };
    const auto begin = [] { check(db, sqlite3_exec(db, "begin", nullptr, nullptr, nullptr)); };
    const auto commit = [] { check(db, sqlite3_exec(db, "commit", nullptr, nullptr, nullptr)); };
    open();
    const std::string value(value_bytes, 'v');
    for (size_t i = 0; i < key_count; i += load_at_a_time) {
        begin();
        for (size_t k = 0; k < load_at_a_time; k++) put(key(i + k), value);
        commit();
    }
    close();
    row("sqlite", "bytes on disk", double(bytes_in(folder)), "bytes");
    const int64_t from = now();
    open();
    std::unordered_map<std::string, std::string> memory;
    while (sqlite3_step(all) == SQLITE_ROW)
        memory.emplace(std::string(static_cast<const char *>(sqlite3_column_blob(all, 0)), 16),
                       std::string(static_cast<const char *>(sqlite3_column_blob(all, 1)), value_bytes));
    sqlite3_reset(all);
    if (memory.size() != key_count) die("sqlite has lost something");
    row("sqlite", "restart", double(now() - from) * 1e-9, "s");
    return {"sqlite",
            [=](size_t batch) {
                begin();
                for (size_t i = 0; i < batch; i++) put(next_key(), std::string(value_bytes, 'w'));
                commit();
            },
            close};
}

// ---- LMDB -----------------------------------------------------------------------------------------------------------

void check(int code) {
    if (code != 0) die(mdb_strerror(code));
}

Way lmdb(const std::string &folder) {
    files::create_directory(folder);
    static MDB_env *env = nullptr;
    static MDB_dbi db = 0;
    static MDB_txn *txn = nullptr;
    const auto open = [folder] {
        check(mdb_env_create(&env));
        check(mdb_env_set_mapsize(env, size_t{4} << 30));
        check(mdb_env_open(env, folder.c_str(), 0, 0600));
        check(mdb_txn_begin(env, nullptr, 0, &txn));
        check(mdb_dbi_open(txn, nullptr, 0, &db));
        check(mdb_txn_commit(txn));
    };
    const auto put = [](std::string name, const std::string &value) {
        MDB_val k{name.size(), name.data()}, v{value.size(), const_cast<char *>(value.data())};
        check(mdb_put(txn, db, &k, &v, 0));
    };
    open();
    const std::string value(value_bytes, 'v');
    for (size_t i = 0; i < key_count; i += load_at_a_time) {
        check(mdb_txn_begin(env, nullptr, 0, &txn));
        for (size_t k = 0; k < load_at_a_time; k++) put(key(i + k), value);
        check(mdb_txn_commit(txn));
    }
    mdb_env_close(env);
    row("lmdb", "bytes on disk", double(bytes_in(folder)), "bytes");
    const int64_t from = now();
    open();
    std::unordered_map<std::string, std::string> memory;
    MDB_cursor *cursor = nullptr;
    check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn));
    check(mdb_cursor_open(txn, db, &cursor));
    for (MDB_val k, v; mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0;)
        memory.emplace(std::string(static_cast<char *>(k.mv_data), k.mv_size),
                       std::string(static_cast<char *>(v.mv_data), v.mv_size));
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    if (memory.size() != key_count) die("lmdb has lost something");
    row("lmdb", "restart", double(now() - from) * 1e-9, "s");
    return {"lmdb",
            [=](size_t batch) {
                check(mdb_txn_begin(env, nullptr, 0, &txn));
                for (size_t i = 0; i < batch; i++) put(next_key(), std::string(value_bytes, 'w'));
                check(mdb_txn_commit(txn));
            },
            [] { mdb_env_close(env); }};
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2) die("durable FOLDER [KEYS]");
    if (argc > 2) key_count = strtoull(argv[2], nullptr, 10) / load_at_a_time * load_at_a_time;
    if (key_count == 0) die("at least 10000 keys");
    const std::string folder = argv[1];
    files::create_directories(folder);
    const std::vector<Way> ways = {log(folder + "/log"), sqlite(folder + "/sqlite"), lmdb(folder + "/lmdb")};
    for (const size_t batch : {1, 64}) measure_writes(ways, batch);
    for (const Way &way : ways) way.close();
    return 0;
}
