// SPDX-License-Identifier: MIT
#pragma once
// The primitives of our sources, on relacy: atomics whose loads may be as old as their orders permit, mutexes,
// futexes, bytes that may not be used by two threads at once. A thread here is a fiber; relacy decides at each step
// which one continues.
#include <muster/base.h>
#include <muster/queue.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string_view>
#include <sys/uio.h>
#include <utility>
#include <vector>

#include <relacy/relacy.hpp>

#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef errno
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

namespace model {

// ---- which memory order is weakened in this run, and how far
// ----------------------------------------------------------

struct Mutant {
    int order = 0; // its number in orders.txt; 0: none
    rl::memory_order weakened = rl::mo_relaxed;
};
inline Mutant mutant;

inline rl::memory_order order(int number, rl::memory_order written) noexcept {
    return number == mutant.order ? mutant.weakened : written;
}

// ---- atomics
// ----------------------------------------------------------------------------------------------------------

// Where in the sources a step was made, for relacy's account of a run that fails.
using Place = rl::debug_info;
inline Place place(const char *function = __builtin_FUNCTION(), const char *file = __builtin_FILE(),
                   unsigned line = __builtin_LINE()) noexcept {
    return {function, file, line};
}

template <class T>
class atomic {
  public:
    atomic(T value = T()) noexcept : is_(value) {}
    T load(rl::memory_order order, Place at = place()) const noexcept {
        return is_.load(order == rl::mo_acq_rel ? rl::mo_acquire : order, at);
    }
    void store(T value, rl::memory_order order, Place at = place()) noexcept {
        is_.store(value, order == rl::mo_acq_rel ? rl::mo_release : order, at);
    }
    T exchange(T value, rl::memory_order order, Place at = place()) noexcept { return is_.exchange(value, order, at); }
    bool compare_exchange_strong(T &expected, T desired, rl::memory_order order, Place at = place()) noexcept {
        return is_.compare_exchange(rl::bool_t<false>(), expected, desired, order, at);
    }
    bool compare_exchange_weak(T &expected, T desired, rl::memory_order order, rl::memory_order failed,
                               Place at = place()) noexcept {
        return is_.compare_exchange(rl::bool_t<true>(), expected, desired, order, failed, at);
    }
    T fetch_add(T value, rl::memory_order order, Place at = place()) noexcept {
        return is_.fetch_add(value, order, at);
    }
    T fetch_sub(T value, rl::memory_order order, Place at = place()) noexcept {
        return is_.fetch_sub(value, order, at);
    }

    // As the kernel does: compares the newest value and falls asleep in one step. The wake-up itself publishes nothing:
    // the earlier writes of the waking thread are seen only by the orders of the sources.
    void wait(T expected, Place at = place()) noexcept {
        if (is_.fetch_or(0, rl::mo_relaxed, at) != expected) return;
        sleepers_.push_back(rl::ctx().threadx_->index_);
        rl::ctx().park_current_thread(false, false, false, at);
    }
    void wake(int count, Place at = place()) noexcept {
        rl::ctx().sched(); // the system call comes later than the store before it
        for (; count > 0 && !sleepers_.empty(); count--) {
            const rl::thread_id_t sleeper = sleepers_.back();
            sleepers_.pop_back();
            rl::ctx().unpark_thread(sleeper, false, at);
        }
    }

  private:
    mutable rl::atomic<T> is_;
    std::vector<rl::thread_id_t> sleepers_;
};

// A plain variable that threads hand to each other.
template <class T>
class var {
  public:
    var(T value = T()) noexcept : is_(value) {}
    operator T() const noexcept { return is_($).load(); }
    void operator=(T value) noexcept { is_($).store(value); }
    void operator=(const var &other) noexcept { *this = static_cast<T>(other); }
    void operator+=(T value) noexcept { is_($).store(is_($).load() + value); }

  private:
    mutable rl::var<T> is_;
};

class mutex {
  public:
    void lock() noexcept { is_.lock($); }
    void unlock() noexcept { is_.unlock($); }

  private:
    rl::mutex is_;
};

class recursive_mutex {
  public:
    void lock() noexcept { is_.lock($); }
    void unlock() noexcept { is_.unlock($); }

  private:
    rl::recursive_mutex is_;
};

inline void yield() noexcept {
    rl::ctx().yield(1, $);
}

// ---- bytes: rings, and the buffers a host hands over
// ------------------------------------------------------------------

// Each address is used once in a run, so that a look at memory that was given back is seen.
class Bytes {
  public:
    unsigned char *make(size_t size) {
        RL_ASSERT(used_ + size <= most);
        for (size_t i = used_; i < used_ + size; i++) cells_[i].emplace(static_cast<unsigned char>(0));
        sizes_[used_] = size;
        used_ += size;
        return &addresses_[used_ - size];
    }
    void end(unsigned char *first) {
        if (first == nullptr) return;
        const size_t from = first - addresses_;
        for (size_t i = from; i < from + sizes_[from]; i++) {
            *cells_[i] = 0; // a write: no other thread may be reading
            cells_[i].reset();
        }
    }
    // NULL: not ours, a thread's own memory.
    var<unsigned char> *at(const unsigned char *address) {
        if (address < addresses_ || address >= addresses_ + most) return nullptr;
        std::optional<var<unsigned char>> &cell = cells_[address - addresses_];
        RL_ASSERT(cell.has_value()); // given back already
        return &*cell;
    }

  private:
    static constexpr size_t most = 256;
    unsigned char addresses_[most];
    std::optional<var<unsigned char>> cells_[most];
    size_t sizes_[most] = {};
    size_t used_ = 0;
};

// A descriptor whose counter a thread waits on; kernel's, so nothing is learned by it.
class Event {
  public:
    void signal() {
        rl::ctx().sched();
        signalled_ = true;
        if (sleeper_) rl::ctx().unpark_thread(*std::exchange(sleeper_, std::nullopt), false, $);
    }
    void wait() {
        rl::ctx().sched();
        if (!signalled_) {
            sleeper_ = rl::ctx().threadx_->index_;
            rl::ctx().park_current_thread(false, false, false, $);
        }
        signalled_ = false;
    }

  private:
    bool signalled_ = false;
    std::optional<rl::thread_id_t> sleeper_;
};

// Of this run; the scenario makes it.
struct World {
    Bytes bytes;
    Event events[2]; // descriptors 0 and 1
    World() { now = this; }
    ~World() { now = nullptr; }
    static inline World *now = nullptr;
};

inline unsigned char *make_bytes(size_t size) {
    return World::now->bytes.make(size);
}
inline void end_bytes(unsigned char *first) {
    World::now->bytes.end(first);
}
inline long write(int descriptor, const void *, size_t size) {
    World::now->events[descriptor].signal();
    return static_cast<long>(size);
}
inline void copy(void *to, const void *from, size_t size) {
    auto *target = static_cast<unsigned char *>(to);
    const auto *source = static_cast<const unsigned char *>(from);
    for (size_t i = 0; i < size; i++) {
        var<unsigned char> *in = World::now->bytes.at(target + i), *out = World::now->bytes.at(source + i);
        const unsigned char value = out != nullptr ? static_cast<unsigned char>(*out) : source[i];
        if (in != nullptr)
            *in = value;
        else
            target[i] = value;
    }
}

} // namespace model

namespace muster {

using Status = muster_status;

inline void futex_wake(model::atomic<uint32_t> &word, int count, bool) noexcept {
    word.wake(count);
}
inline void copy_out(void *to, const void *from, size_t size, bool) noexcept {
    model::copy(to, from, size);
}

// Where buffers are returned. A thread that takes one off may use its bytes again.
struct Entry {
    muster_completion completion{};
};
class Queue {
  public:
    void complete(Entry &&entry) noexcept {
        const std::lock_guard guard(lock_);
        came_.push_back(entry.completion);
    }
    template <class From>
    void raise(From &, uint32_t) noexcept {}
    bool take(muster_completion &out) {
        const std::lock_guard guard(lock_);
        if (came_.empty()) return false;
        out = came_.back();
        came_.pop_back();
        return true;
    }

  private:
    model::mutex lock_;
    std::vector<muster_completion> came_;
};
// Memory that is lent: given back once.
struct Object {
    unsigned char *bytes = nullptr;
    bool back = false;
    void end() noexcept {
        RL_ASSERT(!back);
        back = true;
        model::end_bytes(bytes);
    }
};
template <class T>
class Ref {
  public:
    Ref(T *object = nullptr) noexcept : object_(object) {}
    T *get() const noexcept { return object_; }
    T *operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    void reset() noexcept {
        if constexpr (std::is_same_v<T, Object>)
            if (object_ != nullptr) object_->end();
        object_ = nullptr;
    }

  private:
    T *object_;
};

} // namespace muster

// ---- running

namespace model {

// relacy's words, kept where no allocation is needed: operator new is its own during a run.
class Words : public std::streambuf {
  public:
    Words() { setp(text_, text_ + sizeof text_); }
    std::string_view text() const { return {text_, static_cast<size_t>(pptr() - text_)}; }

  private:
    static inline char text_[1 << 20];
};

template <class Suite>
bool holds(const char *name, uint64_t runs) {
    Words words;
    std::ostream output(&words);
    rl::test_params params;
    params.iteration_count = runs;
    params.execution_depth_limit = 20'000;
    params.output_stream = params.progress_stream = &output;
    const bool good = rl::simulate<Suite>(params);
    if (mutant.order == 0) {
        std::printf("%s: %s\n", name, good ? "holds" : "BROKEN");
        if (!good) std::printf("%.*s\n", static_cast<int>(words.text().size()), words.text().data());
    } else if (!good) {
        std::printf("%s", name);
    }
    return good;
}

// <program> <runs> [<number of an order> acq_rel|relaxed]
inline int run_all(int count, char **arguments, bool (*all_hold)(uint64_t)) {
    const uint64_t runs = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 5000;
    if (count > 3) mutant = {std::atoi(arguments[2]), arguments[3][0] == 'a' ? rl::mo_acq_rel : rl::mo_relaxed};
    // A mutant is mostly caught soon, but not by the first scenario.
    for (uint64_t few = 200; mutant.order != 0 && few < runs; few *= 10)
        if (!all_hold(few)) return 1;
    return all_hold(runs) ? 0 : 1;
}

} // namespace model
