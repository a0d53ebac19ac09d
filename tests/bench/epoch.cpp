// SPDX-License-Identifier: MIT
// Reclamation by epochs, and atomic cells: time per operation of a thread.
//   --over X --what W --threads N --scale PERCENT
// Reclamation: none, muster, muster-call (pins by the C call), muster-fenced, ck, urcu-memb, urcu-qsbr. W: pin (pin and
// unpin), batch (defer, and reclaim after every 1024), each (defer, and reclaim after each), stalled (defer and poll,
// while another token protects an object: objects that wait).
//
// Cells: std-atomic, word-call, aba, aba-call, libatomic. W: mix (25 % each of read, write, compare-and-exchange,
// exchange).
#include "bench.h"

#include <muster/epoch.h>
#include <muster/inline/atomic.h>
#include <muster/inline/epoch.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#ifdef BENCH_CK
extern "C" { // its headers have no guards for C++
#include <ck_epoch.h>
}
#endif
#ifdef BENCH_URCU
#define URCU_NO_COMPAT_IDENTIFIERS
#define _LGPL_SOURCE
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#endif

namespace {

struct Setting {
    std::string over = "muster", what = "pin";
    int threads = 1;
    long scale = 100;
} setting;

struct alignas(64) Thing { // of 64 bytes; peers that link their objects use `link`
    union {
        Thing *next;
#ifdef BENCH_CK
        ck_epoch_entry ck;
#endif
    } link;
    uint64_t payload[4];
};

template <bool fenced, bool by_call>
struct Muster {
    static inline muster_epoch *epoch = nullptr;
    muster_epoch_token *token = nullptr;
    static void start() {
        muster_epoch_config config{};
        config.struct_size = sizeof config;
        config.flags = fenced ? MUSTER_EPOCH_FENCED : 0;
        config.max_pending = 1U << 20;
        muster_error error;
        if (muster_epoch_create(&config, &epoch, &error) != MUSTER_OK) die("muster_epoch_create", error.message);
    }
    Muster() {
        if (muster_epoch_register(epoch, &token, nullptr) != MUSTER_OK) die("muster_epoch_register", "failed");
    }
    ~Muster() { muster_epoch_unregister(token); }
    static void pin(muster_epoch_token *token) {
        if (by_call)
            muster_epoch_pin(token);
        else
            muster_epoch_pin_inline(token);
    }
    static void unpin(muster_epoch_token *token) {
        if (by_call)
            muster_epoch_unpin(token);
        else
            muster_epoch_unpin_inline(token);
    }
    void pin() { pin(token); }
    void unpin() { unpin(token); }
    static void release(void *, void *thing) { free(thing); }
    void defer(Thing *thing) { muster_epoch_defer(token, release, nullptr, thing); }
    void each() { muster_epoch_poll(token, 0, 0, nullptr, 0, nullptr, nullptr); }
    void batch() {
        muster_epoch_try_reclaim(token, nullptr);
        muster_epoch_poll(token, UINT32_MAX, 0, nullptr, 0, nullptr, nullptr);
    }
    void finish() { muster_epoch_barrier(token, 1'000'000'000); }
    static uint64_t pending() {
        muster_epoch_stats stats;
        muster_epoch_get_stats(epoch, &stats);
        return stats.pending;
    }
};

struct None {
    static void start() {}
    void pin() {}
    void unpin() {}
    void defer(Thing *thing) { free(thing); }
    void each() {}
    void batch() {}
    void finish() {}
};

#ifdef BENCH_CK
struct Ck {
    static inline ck_epoch_t epoch;
    ck_epoch_record_t *record;
    static void start() { ck_epoch_init(&epoch); }
    Ck() : record(static_cast<ck_epoch_record_t *>(aligned_alloc(64, (sizeof *record + 63) / 64 * 64))) {
        ck_epoch_register(&epoch, record, nullptr);
    }
    void pin() { ck_epoch_begin(record, nullptr); }
    void unpin() { ck_epoch_end(record, nullptr); }
    static void release(ck_epoch_entry_t *entry) { free(entry); }
    void defer(Thing *thing) { ck_epoch_call(record, &thing->link.ck, release); }
    void each() { ck_epoch_poll(record); }
    void batch() { ck_epoch_poll(record); }
    void finish() { ck_epoch_barrier(record); }
};
#endif

#ifdef BENCH_URCU
// As its manual advises without call_rcu: a list that is freed after synchronize_rcu().
template <bool qsbr>
struct Urcu {
    Thing *first = nullptr;
    static void start() {}
    Urcu() {
        if (qsbr)
            urcu_qsbr_register_thread();
        else
            urcu_memb_register_thread();
    }
    ~Urcu() {
        if (qsbr)
            urcu_qsbr_unregister_thread();
        else
            urcu_memb_unregister_thread();
    }
    void pin() {
        if (qsbr)
            urcu_qsbr_read_lock();
        else
            urcu_memb_read_lock();
    }
    void unpin() {
        if (qsbr) {
            urcu_qsbr_read_unlock();
            urcu_qsbr_quiescent_state();
        } else {
            urcu_memb_read_unlock();
        }
    }
    void defer(Thing *thing) {
        thing->link.next = first;
        first = thing;
    }
    void each() { batch(); }
    void batch() {
        if (qsbr)
            urcu_qsbr_synchronize_rcu();
        else
            urcu_memb_synchronize_rcu();
        for (Thing *next; first != nullptr; first = next) {
            next = first->link.next;
            free(first);
        }
    }
    void finish() { batch(); }
};
#endif

void take(int i) {
    take_core(CORES_TWO, i % 2);
}

// Nanoseconds per operation of the slowest thread.
template <class Body>
double run_threads(long count, Body &&body) {
    std::atomic<int> ready{0};
    std::vector<double> took(static_cast<size_t>(setting.threads));
    std::vector<std::thread> threads;
    for (int i = 0; i < setting.threads; i++)
        threads.emplace_back([&, i] {
            take(i);
            took[static_cast<size_t>(i)] = body(i, [&] {
                ready++;
                while (ready != setting.threads) sched_yield();
            });
        });
    for (auto &thread : threads) thread.join();
    return *std::max_element(took.begin(), took.end()) * 1e3 / static_cast<double>(count);
}

template <class Peer>
void reclaim() {
    Peer::start();
    const bool pins = setting.what == "pin", each = setting.what == "each";
    const long count = (pins   ? 20'000'000
                        : each ? 100'000
                               : 400'000) *
                       setting.scale / 100 / (pins ? 1 : setting.threads);
    const double ns = run_threads(count, [&](int, auto &&wait) {
        Peer peer;
        std::vector<Thing *> things;
        if (!pins)
            for (long i = 0; i < count; i++) things.push_back(static_cast<Thing *>(aligned_alloc(64, sizeof(Thing))));
        wait();
        const double begun = now_us();
        if constexpr (requires { Peer::pin(peer.token); }) {
            auto *const token = peer.token; // as a local variable, in a register
            for (long i = 0; pins && i < count; i++) {
                Peer::pin(token);
                __asm__ volatile("" ::: "memory");
                Peer::unpin(token);
            }
            if (pins) return now_us() - begun;
        }
        if (pins) {
            for (long i = 0; i < count; i++) {
                peer.pin();
                __asm__ volatile("" ::: "memory");
                peer.unpin();
            }
            return now_us() - begun;
        }
        for (long i = 0; i < count; i++) {
            peer.pin();
            peer.defer(things[static_cast<size_t>(i)]);
            peer.unpin();
            if (each) peer.each();
            if (!each && (i + 1) % 1024 == 0) peer.batch();
        }
        const double took = now_us() - begun;
        peer.finish();
        return took;
    });
    printf("ns\t%.6g\n", ns);
}

// A reader that has been pinned, protects one object, and is unpinned for the rest: what waits meanwhile.
void stalled() {
    using Peer = Muster<false, false>;
    Peer::start();
    muster_epoch_token *reader;
    static Thing used;
    if (muster_epoch_register(Peer::epoch, &reader, nullptr) != MUSTER_OK) die("muster_epoch_register", "failed");
    muster_epoch_pin(reader);
    muster_epoch_protect(reader, 0, reinterpret_cast<uintptr_t>(&used));
    muster_epoch_unpin(reader);
    Peer peer;
    uint64_t most = 0;
    const long count = 400'000 * setting.scale / 100;
    const double begun = now_us();
    for (long i = 0; i < count; i++) {
        peer.pin();
        peer.defer(static_cast<Thing *>(aligned_alloc(64, sizeof(Thing))));
        peer.unpin();
        peer.each();
        if (i % 64 == 0) most = std::max(most, Peer::pending());
    }
    printf("ns\t%.6g\npending\t%llu\n", (now_us() - begun) * 1e3 / static_cast<double>(count),
           static_cast<unsigned long long>(most));
}

// The cells: each operation of the mix once per turn.
struct Word {
    static inline std::atomic<uint64_t> cell;
    static void turn(uint64_t i) {
        uint64_t expected = cell.load();
        cell.store(i);
        cell.compare_exchange_strong(expected, i + 1);
        cell.exchange(i);
    }
};
struct WordByCall {
    alignas(64) static inline uint64_t cell;
    static void turn(uint64_t i) {
        uint64_t seen, before;
        muster_atomic_read64(&cell, MUSTER_ATOMIC_SEQ_CST, &seen);
        muster_atomic_write64(&cell, i, MUSTER_ATOMIC_SEQ_CST);
        muster_atomic_compare_exchange64(&cell, &seen, i + 1, MUSTER_ATOMIC_SEQ_CST);
        muster_atomic_exchange64(&cell, i, MUSTER_ATOMIC_SEQ_CST, &before);
    }
};
struct Aba {
    static inline muster_aba_cell cell;
    static void turn(uint64_t i) {
        muster_aba seen = muster_aba_read_inline(&cell.now);
        muster_aba_exchange_inline(&cell.now, i);
        muster_aba_compare_exchange_inline(&cell.now, &seen, i + 1);
        muster_aba_exchange_inline(&cell.now, i);
    }
};
struct AbaByCall {
    static inline muster_aba_cell cell;
    static void turn(uint64_t i) {
        muster_aba seen;
        muster_aba_read(&cell.now, &seen);
        muster_aba_write(&cell.now, i);
        muster_aba_compare_exchange(&cell.now, &seen, i + 1);
        muster_aba_exchange(&cell.now, i, nullptr);
    }
};
#ifdef BENCH_LIBATOMIC
struct Libatomic {
    struct alignas(16) Pair {
        uint64_t value, count;
    };
    static inline std::atomic<Pair> cell;
    static void turn(uint64_t i) {
        Pair seen = cell.load();
        Pair before = seen;
        while (!cell.compare_exchange_strong(before, Pair{i, before.count + 1})) {
        }
        cell.compare_exchange_strong(seen, Pair{i + 1, seen.count + 1});
        while (!cell.compare_exchange_strong(before, Pair{i, before.count + 1})) {
        }
    }
};
#endif

template <class Cell>
void mix() {
    const long turns = 2'000'000 * setting.scale / 100;
    printf("ns\t%.6g\n", run_threads(4 * turns, [&](int, auto &&wait) {
               wait();
               const double begun = now_us();
               for (long i = 0; i < turns; i++) Cell::turn(static_cast<uint64_t>(i));
               return now_us() - begun;
           }));
}

} // namespace

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string key = argv[i];
        if (key == "--over")
            setting.over = argv[i + 1];
        else if (key == "--what")
            setting.what = argv[i + 1];
        else if (key == "--threads")
            setting.threads = std::atoi(argv[i + 1]);
        else if (key == "--scale")
            setting.scale = std::atol(argv[i + 1]);
        else
            die("unknown option", argv[i]);
    }
    const std::string &over = setting.over;
    if (setting.what == "mix") {
        if (over == "std-atomic")
            mix<Word>();
        else if (over == "word-call")
            mix<WordByCall>();
        else if (over == "aba")
            mix<Aba>();
        else if (over == "aba-call")
            mix<AbaByCall>();
#ifdef BENCH_LIBATOMIC
        else if (over == "libatomic")
            mix<Libatomic>();
#endif
        else
            die("--over", "unknown");
        return 0;
    }
    if (setting.what == "stalled")
        stalled();
    else if (over == "muster")
        reclaim<Muster<false, false>>();
    else if (over == "muster-call")
        reclaim<Muster<false, true>>();
    else if (over == "muster-fenced")
        reclaim<Muster<true, false>>();
    else if (over == "none")
        reclaim<None>();
#ifdef BENCH_CK
    else if (over == "ck")
        reclaim<Ck>();
#endif
#ifdef BENCH_URCU
    else if (over == "urcu-memb")
        reclaim<Urcu<false>>();
    else if (over == "urcu-qsbr")
        reclaim<Urcu<true>>();
#endif
    else
        die("--over", "unknown, or not built");
    return 0;
}
