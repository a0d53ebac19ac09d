// SPDX-License-Identifier: MIT
// Atomic cells: nanoseconds per operation of a thread, or of a process.
//   --over X --what W --threads N --scale PERCENT
// X: std-atomic, word-call, aba, aba-call, libatomic. W: mix (25 % each of read, write, compare-and-exchange and
// exchange: the first workload of the paper on the Chapel modules); remote (compare-and-exchange on a cell in shared
// memory while the process that has made it sleeps); contended (the same by two processes at once).
#include "threads.hpp"

#include <muster/inline/atomic.h>

#include <new>

namespace {

struct Word {
    std::atomic<uint64_t> cell;
    void turn(uint64_t i) {
        uint64_t expected = cell.load();
        cell.store(i);
        cell.compare_exchange_strong(expected, i + 1);
        cell.exchange(i);
    }
    bool change(uint64_t &seen, uint64_t i) { return cell.compare_exchange_strong(seen, i); }
};
struct WordByCall {
    alignas(8) uint64_t cell;
    void turn(uint64_t i) {
        uint64_t seen, before;
        muster_atomic_read64(&cell, MUSTER_ATOMIC_SEQ_CST, &seen);
        muster_atomic_write64(&cell, i, MUSTER_ATOMIC_SEQ_CST);
        muster_atomic_compare_exchange64(&cell, &seen, i + 1, MUSTER_ATOMIC_SEQ_CST);
        muster_atomic_exchange64(&cell, i, MUSTER_ATOMIC_SEQ_CST, &before);
    }
    bool change(uint64_t &seen, uint64_t i) {
        return muster_atomic_compare_exchange64(&cell, &seen, i, MUSTER_ATOMIC_SEQ_CST) == MUSTER_OK;
    }
};
struct Aba {
    muster_aba_cell cell;
    void turn(uint64_t i) {
        muster_aba seen = muster_aba_read_inline(&cell.now);
        muster_aba_exchange_inline(&cell.now, i);
        muster_aba_compare_exchange_inline(&cell.now, &seen, i + 1);
        muster_aba_exchange_inline(&cell.now, i);
    }
    bool change(muster_aba &seen, uint64_t i) { return muster_aba_compare_exchange_inline(&cell.now, &seen, i); }
};
struct AbaByCall {
    muster_aba_cell cell;
    void turn(uint64_t i) {
        muster_aba seen;
        muster_aba_read(&cell.now, &seen);
        muster_aba_write(&cell.now, i);
        muster_aba_compare_exchange(&cell.now, &seen, i + 1);
        muster_aba_exchange(&cell.now, i, nullptr);
    }
    bool change(muster_aba &seen, uint64_t i) { return muster_aba_compare_exchange(&cell.now, &seen, i) == MUSTER_OK; }
};
#ifdef BENCH_LIBATOMIC
struct Libatomic {
    struct alignas(16) Pair {
        uint64_t value, count;
    };
    std::atomic<Pair> cell;
    void turn(uint64_t i) {
        Pair seen = cell.load();
        Pair before = seen;
        while (!cell.compare_exchange_strong(before, Pair{i, before.count + 1})) {
        }
        cell.compare_exchange_strong(seen, Pair{i + 1, seen.count + 1});
        while (!cell.compare_exchange_strong(before, Pair{i, before.count + 1})) {
        }
    }
    bool change(Pair &seen, uint64_t i) { return cell.compare_exchange_strong(seen, Pair{i, seen.count + 1}); }
};
#endif

template <class Cell>
void mix() {
    static Cell cell{};
    const long turns = 2'000'000 * setting.scale / 100;
    printf("ns\t%.6g\n", run_threads(4 * turns, [&](int, auto &&wait) {
               wait();
               const double begun = now_us();
               for (long i = 0; i < turns; i++) cell.turn(static_cast<uint64_t>(i));
               return now_us() - begun;
           }));
}

struct Board {
    alignas(128) std::atomic<int> ready;
    std::atomic<int> done;
};

// What an attempt has seen is the expectation of the next one, as in a lock-free structure.
template <class Cell, class Seen>
double attempts(Cell &cell, Seen seen, long count) {
    const double begun = now_us();
    for (long i = 0; i < count; i++) cell.change(seen, static_cast<uint64_t>(i));
    return now_us() - begun;
}

// One process has made the cell; another one changes it, alone or together with it.
template <class Cell, class Seen>
void processes(bool both) {
    void *const memory = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die_errno("mmap");
    auto *const board = new (memory) Board{};
    auto *const cell = new (static_cast<char *>(memory) + 4096) Cell{};
    const long count = (both ? 2'000'000 : 10'000'000) * setting.scale / 100;
    const pid_t child = fork();
    if (child < 0) die_errno("fork");
    const bool is_child = child == 0;
    if (is_child) prctl(PR_SET_PDEATHSIG, SIGKILL);
    take_core(CORES_TWO, is_child);
    double took = 0;
    if (is_child || both) {
        board->ready++;
        while (both && board->ready != 2) sched_yield();
        took = attempts(*cell, Seen{}, count);
    }
    if (is_child) {
        printf("%s%.6g\n", both ? "other_ns\t" : "ns\t", took * 1e3 / static_cast<double>(count));
        fflush(stdout);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) die("the other process", "failed");
    if (both) printf("ns\t%.6g\n", took * 1e3 / static_cast<double>(count));
}

template <class Cell, class Seen>
void measure() {
    if (setting.what == "mix")
        mix<Cell>();
    else if (setting.what == "remote" || setting.what == "contended")
        processes<Cell, Seen>(setting.what == "contended");
    else
        die("--what", "unknown");
}

} // namespace

int main(int argc, char **argv) {
    read_setting(argc, argv);
    const std::string &over = setting.over;
    if (over == "std-atomic")
        measure<Word, uint64_t>();
    else if (over == "word-call")
        measure<WordByCall, uint64_t>();
    else if (over == "aba")
        measure<Aba, muster_aba>();
    else if (over == "aba-call")
        measure<AbaByCall, muster_aba>();
#ifdef BENCH_LIBATOMIC
    else if (over == "libatomic")
        measure<Libatomic, Libatomic::Pair>();
#endif
    else
        die("--over", "unknown, or not built");
    return 0;
}
