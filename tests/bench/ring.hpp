// SPDX-License-Identifier: MIT
// The bare thing that a stream is measured against: a single-producer single-consumer byte ring for two threads or two
// processes, without locks, ends, cancels, deadlines or figures. Waiting: spin, park at once (futex), or spin then
// park.
#pragma once
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

inline void pause_cpu() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

enum class Waiting { SPIN, PARK, HYBRID };

class Ring {
  public:
    static size_t bytes(uint64_t capacity) { return sizeof(Ring) + capacity; }
    // In zeroed memory of bytes(capacity).
    void init(uint64_t capacity, Waiting waiting, bool shared) {
        capacity_ = capacity;
        waiting_ = waiting;
        shared_ = shared;
    }

    // Publishes in pieces of a quarter of the ring, so that both copies overlap.
    void write(const void *data, size_t size) {
        const auto *from = static_cast<const unsigned char *>(data);
        uint64_t head = head_.load(std::memory_order_relaxed);
        while (size != 0) {
            const uint64_t piece = capacity_ / 4;
            if (capacity_ - (head - tail_seen_) < std::min<uint64_t>(size, piece)) {
                tail_seen_ = tail_.load(std::memory_order_acquire);
                if (capacity_ == head - tail_seen_)
                    wait(writer_,
                         [&] { return (tail_seen_ = tail_.load(std::memory_order_acquire)) != head - capacity_; });
            }
            const uint64_t room = capacity_ - (head - tail_seen_), k = std::min({uint64_t{size}, room, piece});
            const uint64_t at = head & (capacity_ - 1), first = std::min(k, capacity_ - at);
            memcpy(data_ + at, from, first);
            if (k > first) memcpy(data_, from + first, k - first);
            head += k, from += k, size -= k;
            head_.store(head, std::memory_order_release);
            wake(reader_);
        }
    }
    size_t read_some(void *data, size_t most) {
        const uint64_t tail = tail_.load(std::memory_order_relaxed);
        if (head_seen_ == tail) {
            head_seen_ = head_.load(std::memory_order_acquire);
            if (head_seen_ == tail)
                wait(reader_, [&] { return (head_seen_ = head_.load(std::memory_order_acquire)) != tail; });
        }
        const uint64_t k = std::min({uint64_t{most}, head_seen_ - tail, capacity_ / 4});
        const uint64_t at = tail & (capacity_ - 1), first = std::min(k, capacity_ - at);
        memcpy(data, data_ + at, first);
        if (k > first) memcpy(static_cast<unsigned char *>(data) + first, data_, k - first);
        tail_.store(tail + k, std::memory_order_release);
        wake(writer_);
        return k;
    }

  private:
    struct alignas(128) Sleeper {
        std::atomic<uint32_t> waiting, turns;
    };
    long futex(std::atomic<uint32_t> &word, int op, uint32_t value) {
        return syscall(SYS_futex, &word, shared_ ? op : op | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
    }
    template <class Ready>
    void wait(Sleeper &sleeper, Ready ready) {
        if (waiting_ == Waiting::SPIN) {
            while (!ready()) pause_cpu();
            return;
        }
        if (waiting_ == Waiting::HYBRID)
            for (int i = 0; i < 2000; i++) {
                if (ready()) return;
                pause_cpu();
            }
        for (;;) {
            const uint32_t turn = sleeper.turns.load(std::memory_order_acquire);
            sleeper.waiting.store(1, std::memory_order_seq_cst); // one of us sees the other: pairs with wake()
            std::atomic_thread_fence(std::memory_order_seq_cst);
            if (!ready()) futex(sleeper.turns, FUTEX_WAIT, turn);
            if (!ready()) continue;
            sleeper.waiting.store(0, std::memory_order_relaxed);
            return;
        }
    }
    void wake(Sleeper &sleeper) {
        if (waiting_ == Waiting::SPIN) return;
        std::atomic_thread_fence(std::memory_order_seq_cst); // pairs with wait()
        if (sleeper.waiting.load(std::memory_order_relaxed) == 0) return;
        sleeper.waiting.store(0, std::memory_order_relaxed);
        sleeper.turns.fetch_add(1, std::memory_order_release);
        futex(sleeper.turns, FUTEX_WAKE, 1);
    }

    alignas(128) std::atomic<uint64_t> head_; // written by the producer
    uint64_t tail_seen_;
    alignas(128) std::atomic<uint64_t> tail_; // written by the consumer
    uint64_t head_seen_;
    Sleeper reader_, writer_;
    alignas(128) uint64_t capacity_;
    Waiting waiting_;
    bool shared_;
    alignas(128) unsigned char data_[1];
};
