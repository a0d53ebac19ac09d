// SPDX-License-Identifier: MIT
// Reclamation by epochs: nanoseconds per operation of a thread.
//   --over X --what W --threads N --scale PERCENT
// X: none, muster, muster-call (pins by the C call), muster-fenced, ck, urcu-memb, urcu-qsbr, cds-gpb (buffered RCU of
// libcds). W, of which the first four are workloads of the paper on the Chapel modules: pin (pin and unpin), batch
// (defer, and reclaim after every 1024), each (defer, and reclaim after each), end (defer, and reclaim at the end
// only), tail (as each: 99.9th percentile and mean of an operation, and how many objects wait), stalled (defer and
// poll, while another token protects an object: objects that wait).
#include "threads.hpp"

#include <muster/epoch.h>
#include <muster/inline/epoch.h>

#ifdef BENCH_CK
extern "C" { // its headers have no guards for C++
#include <ck_epoch.h>
}
#endif
#ifdef BENCH_CDS
#include <cds/init.h>
#include <cds/urcu/general_buffered.h>
#endif
#ifdef BENCH_URCU
#define URCU_NO_COMPAT_IDENTIFIERS
#define _LGPL_SOURCE
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#endif

namespace {

thread_local long waiting; // objects that this thread has deferred, less those that it has freed

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
    static void release(void *, void *thing) {
        waiting--;
        free(thing);
    }
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
    void defer(Thing *thing) {
        waiting--;
        free(thing);
    }
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
    static void release(ck_epoch_entry_t *entry) {
        waiting--;
        free(entry);
    }
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
            waiting--;
            free(first);
        }
    }
    void finish() { batch(); }
};
#endif

#ifdef BENCH_CDS
struct Cds {
    using Rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;
    static void start() {
        cds::Initialize();
        static Rcu rcu(4096); // capacity of its buffer, which it frees when it is full
    }
    Cds() { cds::threading::Manager::attachThread(); }
    ~Cds() { cds::threading::Manager::detachThread(); }
    void pin() { Rcu::access_lock(); }
    void unpin() { Rcu::access_unlock(); }
    static void release(void *thing) {
        waiting--;
        free(thing);
    }
    void defer(Thing *thing) { Rcu::retire_ptr(thing, release); }
    void each() { Rcu::synchronize(); }
    void batch() { Rcu::synchronize(); }
    void finish() { Rcu::synchronize(); }
};
#endif

// Each operation by itself. A clock has about 20 ns.
template <class Peer>
void tail() {
    Peer::start();
    const long count = 200'000 * setting.scale / 100;
    std::vector<std::vector<float>> took(static_cast<size_t>(setting.threads));
    std::vector<long> most(took.size());
    std::vector<double> sum(took.size());
    run_threads(count, [&](int thread, auto &&wait) {
        Peer peer;
        auto &mine = took[static_cast<size_t>(thread)];
        long peak = 0;
        double all = 0;
        mine.reserve(static_cast<size_t>(count));
        wait();
        for (long i = 0; i < count; i++) {
            auto *const thing = static_cast<Thing *>(aligned_alloc(64, sizeof(Thing)));
            const double begun = now_us();
            peer.pin();
            waiting++;
            peer.defer(thing);
            peer.unpin();
            peer.each();
            mine.push_back(static_cast<float>((now_us() - begun) * 1e3));
            peak = std::max(peak, waiting);
            all += static_cast<double>(waiting);
        }
        most[static_cast<size_t>(thread)] = peak;
        sum[static_cast<size_t>(thread)] = all;
        peer.finish();
        return 0.0;
    });
    std::vector<float> every;
    for (auto &of_one : took) every.insert(every.end(), of_one.begin(), of_one.end());
    const auto at = every.begin() + static_cast<std::ptrdiff_t>(every.size() * 999 / 1000);
    std::nth_element(every.begin(), at, every.end());
    double mean = 0, waits = 0;
    for (const float ns : every) mean += ns / static_cast<double>(every.size());
    for (const double s : sum) waits += s / static_cast<double>(every.size());
    printf("p999_ns\t%.6g\nns\t%.6g\npeak\t%ld\nmean_waiting\t%.6g\n", static_cast<double>(*at), mean,
           *std::max_element(most.begin(), most.end()), waits);
}

template <class Peer>
void reclaim() {
    if (setting.what == "tail") return tail<Peer>();
    Peer::start();
    const bool pins = setting.what == "pin", each = setting.what == "each", end = setting.what == "end";
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
            if (!each && !end && (i + 1) % 1024 == 0) peer.batch();
        }
        if (end) peer.finish();
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

} // namespace

int main(int argc, char **argv) {
    read_setting(argc, argv);
    const std::string &over = setting.over;
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
#ifdef BENCH_CDS
    else if (over == "cds-gpb")
        reclaim<Cds>();
#endif
    else
        die("--over", "unknown, or not built");
    return 0;
}
