// SPDX-License-Identifier: MIT
// Sleeping and waking of the two sides of a pipe.
#include "base/uncancelled.hpp"
#include "stream/pipe.hpp"

#include <algorithm>

namespace muster {

bool Pipe::wake(Park &park, int fd, Waker *&waker, WakeFn fn) noexcept {
    // seq_cst: of many wakers one clears the flag of the sleeper, and has to send the wake-up.
    switch (park.state.exchange(Park::AWAKE, std::memory_order_seq_cst)) {
    case Park::FUTEX:
        futex_wake(park.state, 1, shared_);
        return true;
    case Park::FD:
        break;
    default:
        return false;
    }
    if (fd >= 0) {
        const uint64_t one = 1;
        // Fails when the counter is full, and then the event is set already.
        [[maybe_unused]] const ssize_t written = uncancelled::write(fd, &one, sizeof one);
        return true;
    }
    const std::lock_guard guard(waker_lock_);
    if (waker != nullptr) (waker->*fn)();
    return true;
}

// Another process may have cleared the flag and died (or lied) before it sent the wake-up: of it the flag is no proof.
void Pipe::unpark(Park &park, int own_fd, Waker *&waker, WakeFn fn) noexcept {
    if (!shared_) {
        wake(park, own_fd, waker, fn);
        return;
    }
    park.state.store(Park::AWAKE, std::memory_order_seq_cst); // before the wake-up; pairs with the check after a park
    futex_wake(park.state, INT_MAX, true);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(own_fd, &one, sizeof one);
}

// Called after the index moved with seq_cst: pairs with the store of `state` in park_reader().
void Pipe::wake_reader_if(uint64_t have) noexcept {
    Park &park = control_->reader;
    if (park.state.load(std::memory_order_seq_cst) == Park::AWAKE) return;
    // relaxed: `need` was stored before the state that was just read.
    if (have < park.need.load(std::memory_order_relaxed)) return;
    if (wake(park, reader_fd_, reader_waker_, &Waker::wake_reader))
        wakeups_of_reader.store(wakeups_of_reader.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Pipe::wake_writer_if(uint64_t have) noexcept {
    Park &park = control_->writer;
    if (park.state.load(std::memory_order_seq_cst) == Park::AWAKE) return;
    if (have < park.need.load(std::memory_order_relaxed)) return;
    if (wake(park, writer_fd_, writer_waker_, &Waker::wake_writer))
        wakeups_of_writer.store(wakeups_of_writer.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

bool Pipe::park_reader(uint32_t state, size_t need) noexcept {
    Park &park = control_->reader;
    publish_tail();
    park.need.store(static_cast<uint32_t>(std::min<size_t>(need, UINT32_MAX)), std::memory_order_relaxed);
    park.state.store(state, std::memory_order_seq_cst); // pairs with wake_reader_if(): at least one side sees the other
    const uint64_t head = control_->head.load(std::memory_order_seq_cst);
    if (head - tail_ >= need || finished()) {
        park.state.store(Park::AWAKE, std::memory_order_relaxed); // as in Park::sleep()
        return false;
    }
    // If both sides slept, each waiting for more than the other can provide, they would wait forever: let the writer
    // check.
    wake_writer_if(UINT64_MAX);
    return true;
}

bool Pipe::park_writer(uint32_t state, size_t need) noexcept {
    Park &park = control_->writer;
    park.need.store(static_cast<uint32_t>(std::min<size_t>(need, UINT32_MAX)), std::memory_order_relaxed);
    park.state.store(state, std::memory_order_seq_cst); // pairs with wake_writer_if()
    const uint64_t tail = control_->tail.load(std::memory_order_seq_cst);
    if (free_of_window(head_, tail) >= need || reader_gone()) {
        park.state.store(Park::AWAKE, std::memory_order_relaxed); // as in Park::sleep()
        return false;
    }
    wake_reader_if(UINT64_MAX);
    return true;
}

void Pipe::park_flusher(uint32_t state) noexcept {
    Park &park = control_->writer;
    park.need.store(UINT32_MAX, std::memory_order_relaxed);
    park.state.store(state, std::memory_order_seq_cst); // pairs with publish_tail() and sent_all()
    wake_reader_if(UINT64_MAX);
}

void Pipe::set_reader_waker(Waker *waker) noexcept {
    const std::lock_guard guard(waker_lock_);
    reader_waker_ = waker;
}

void Pipe::set_writer_waker(Waker *waker) noexcept {
    const std::lock_guard guard(waker_lock_);
    writer_waker_ = waker;
}

} // namespace muster
