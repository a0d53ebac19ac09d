// SPDX-License-Identifier: MIT
// Who may use a direction, and how a thread waits on one: awake for a moment, on the pipe's futex, or (external
// contexts) inside the engine.
#include "stream/stream.hpp"

#include "base/pause.hpp"

#include <algorithm>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr uint32_t min_back_off = 64; // turns: about 1.5 us
constexpr uint32_t max_back_off = 256;
constexpr uint32_t sleeps_between_back_offs = 512;
} // namespace

// ---- the lock of a direction
// -----------------------------------------------------------------------------------------

// Takes the lock without waiting, or leaves a recheck request with its holder, which serves it in do_later().
bool Stream::try_take(Direction &d, uint32_t later) noexcept {
    if (d.lock.enter_by_bias()) return true;
    const Ref<Stream> alive(this);
    while (!d.lock.try_lock()) {
        d.later.fetch_or(later, std::memory_order_seq_cst); // first the request, then the mark that the holder sees
        if (d.lock.mark()) return false;
    }
    return true;
}

// Another thread waits, or has left a request, or has released the stream: each may free it once the lock is free.
void Stream::give_contended(Direction &d) noexcept {
    const Ref<Stream> alive(this);
    if (d.lock.unlock_contended()) return do_later(d);
    // host_release() left the host's reference of the stream to this thread; no other enters, so this thread serves a
    // request.
    if (d.later.exchange(0, std::memory_order_seq_cst) & Direction::FINISH) finish_held();
    release();
}

Status Stream::take(Direction &d, Deadline &deadline, uint32_t cancels) noexcept {
    if (user_) [[unlikely]]
        user_->note();
    return d.lock.enter_by_bias() ? MUSTER_OK : take_slowly(d, deadline, cancels);
}

Status Stream::take_slowly(Direction &d, Deadline &deadline, uint32_t cancels) noexcept {
    const Ref<Stream> alive(this);
    if (d.lock.try_lock()) return MUSTER_OK;
    if (deadline.look_once()) {
        // The host gets AGAIN, so the watch is armed; first that, then the request to the thread inside to report the
        // change.
        armed_.fetch_or(interest_.load(std::memory_order_relaxed) & event_of(d), std::memory_order_seq_cst);
        if (try_take(d, Direction::NOTIFY)) return MUSTER_OK;
        return d.lock.orphaned() ? MUSTER_E_CLOSED : MUSTER_AGAIN;
    }
    if (context_->on_loop() && !context_->external()) return MUSTER_E_WOULD_DEADLOCK;
    for (;;) {
        if (d.lock.orphaned()) return MUSTER_E_CLOSED;
        if (d.cancels.load(std::memory_order_seq_cst) != cancels) return MUSTER_E_CANCELED;
        if (d.lock.try_lock_waited()) return MUSTER_OK;
        if (d.lock.sleep(deadline) == ETIMEDOUT) return MUSTER_TIMEOUT;
    }
}

// For calls without a timeout: waits while the holder moves bytes, not while it sleeps. AGAIN: it sleeps.
Status Stream::take_shortly(Direction &d, uint32_t cancels) noexcept {
    if (d.lock.try_lock()) return MUSTER_OK;
    while (!d.asleep.load(std::memory_order_relaxed)) {
        Deadline turn(1'000'000);
        if (const Status status = take(d, turn, cancels); status != MUSTER_TIMEOUT) return status;
    }
    Deadline once(0);
    return take(d, once, cancels);
}

// For a thread with an outstanding reservation or peek: no thread sleeps in the direction meanwhile, and no cancel ends
// this.
Status Stream::take_back(Direction &d) noexcept {
    for (;;) {
        Deadline endless(-1);
        const Status status = take(d, endless, d.cancels.load(std::memory_order_seq_cst));
        if (status != MUSTER_E_CANCELED) return status;
    }
}

void Stream::do_later(Direction &d) noexcept {
    // seq_cst: after the unlock; a thread that found the lock held or marked has left its request before.
    const uint32_t pending = d.later.exchange(0, std::memory_order_seq_cst);
    if (pending & Direction::FINISH) want_finish();
    if (pending & Direction::PUMP) post_pump();
    if (pending & Direction::NOTIFY) notify_events(event_of(d));
}

// Ends the waits of the holders of the direction until this thread has the lock: the way in of a cancelling thread.
// False: the stream was released, no thread gets the lock any more.
bool Stream::take_from_everyone(Direction &d) noexcept {
    for (;;) {
        const uint32_t cancels = d.cancels.fetch_add(1, std::memory_order_seq_cst) + 1;
        interrupt(&d == &read_ ? MUSTER_STREAM_READ : MUSTER_STREAM_WRITE);
        Deadline turn(10'000'000); // a thread that came after the interrupt is interrupted in the next turn
        const Status status = take(d, turn, cancels);
        if (status == MUSTER_OK) return true;
        if (status == MUSTER_E_CLOSED || status == MUSTER_E_WOULD_DEADLOCK) return false;
    }
}

void Stream::interrupt(uint32_t directions) noexcept {
    if (directions & MUSTER_STREAM_READ) {
        in_.unpark_reader();
        if (read_.lock.awaited()) read_.lock.wake(INT_MAX);
    }
    if (directions & MUSTER_STREAM_WRITE) {
        out_.unpark_writer();
        if (write_.lock.awaited()) write_.lock.wake(INT_MAX);
    }
    if (carrier_) carrier_->interrupt();
    if (context_->external()) context_->notify(signal_);
}

// seq_cst loads: a sleeper parks and then checks this; an interrupting thread sets first and unparks then.
bool Stream::interrupted(const Direction &d, uint32_t cancels) const noexcept {
    return closed_.load(std::memory_order_seq_cst) != 0 || d.cancels.load(std::memory_order_seq_cst) != cancels ||
           duplex_->is_ended();
}

// ---- waiting
// ---------------------------------------------------------------------------------------------------------

// OK: check again (bytes, room, or an interrupt). `park_as(state)` parks in the pipe; false: not necessary.
template <class ParkFn, class StopFn>
Status Stream::sleep(Direction &d, Park &park, ParkFn &&park_as, StopFn &&stop, Deadline &deadline) noexcept {
    if (context_->on_loop() && !context_->external()) return MUSTER_E_WOULD_DEADLOCK;
    if (carrier_ && carrier_->would_deadlock()) return MUSTER_E_WOULD_DEADLOCK;
    d.waits.add(1);
    context_->leave_loop();
    if (&d == &read_) in_.end_contention();
    d.lock.settle();
    const Ref<Stream> alive(this);
    const uint32_t seen = signal_.seen();
    if (context_->external() && duplex_->shared()) watch_event_fd();
    d.asleep.store(true, std::memory_order_relaxed);
    const Status status = park.sleep(context_->external() ? Park::FD : Park::FUTEX, park_as, stop, [&]() -> Status {
        if (context_->external()) return context_->sleep(signal_, seen, deadline);
        return futex_wait(park.state, Park::FUTEX, deadline, in_.shared()) == ETIMEDOUT ? MUSTER_TIMEOUT : MUSTER_OK;
    });
    d.asleep.store(false, std::memory_order_relaxed);
    rearm(event_of(d)); // also when nothing slept: the parking place was used
    return status;
}

void Stream::let_bytes_gather() noexcept {
    for (uint32_t k = 0; k < min_back_off; k++) pause_cpu();
    in_.gathered();
}

// One side has caught up with the other. Checking again and again would move the cache lines of the busy side back and
// forth, and sleeping costs it a system call; a short back-off lets bytes (or room) accumulate. Used as long as it is
// successful.
template <class Ready>
bool Stream::look_away(Direction &d, Ready &&ready) noexcept {
    if (d.back_off < min_back_off && ++d.sleeps_without >= sleeps_between_back_offs)
        d.back_off = min_back_off, d.sleeps_without = 0;
    for (uint32_t i = 0; i < d.back_off; i += min_back_off) {
        for (uint32_t k = 0; k < min_back_off; k++) pause_cpu();
        if (!ready()) continue;
        d.back_off = std::min(max_back_off, d.back_off * 2);
        return true;
    }
    d.back_off /= 2;
    return false;
}

// The same, and drives before it sleeps.
Status Stream::await_peek(size_t need, Deadline &deadline, uint32_t cancels) noexcept {
    const auto done = [&] { return in_.readable() >= need || in_.finished() || interrupted(read_, cancels); };
    if (drive_carrier(read_, deadline, done)) return MUSTER_OK;
    return await_bytes(need, deadline, cancels);
}

Status Stream::await_bytes(size_t need, Deadline &deadline, uint32_t cancels) noexcept {
    Direction &d = read_;
    if (need <= 4096 && wrote_since_wait_.load(std::memory_order_relaxed)) {
        wrote_since_wait_.store(false, std::memory_order_relaxed);
        const uint32_t turns = d.awake.turns();
        for (uint32_t i = 0; i < turns; i++) {
            if (in_.readable() >= need || in_.finished()) {
                d.spins_won.add(1);
                d.awake.paid();
                return MUSTER_OK;
            }
            pause_cpu();
        }
        if (turns != 0) {
            d.spins_lost.add(1);
            d.awake.did_not();
        }
    } else if (look_away(d, [&] { return in_.readable() >= need || in_.finished(); })) {
        return MUSTER_OK;
    }
    return sleep(
        d, in_.control().reader, [&](uint32_t state) { return in_.park_reader(state, need); },
        [&] { return interrupted(d, cancels); }, deadline);
}

// Instead of a sleep. False: sleep.
template <class Until>
bool Stream::drive_carrier(Direction &d, Deadline &deadline, const Until &until) noexcept {
    if (!carrier_drives_) return false;
    d.lock.settle();
    return carrier_->drive(deadline, Asks(until)) == MUSTER_OK;
}

// Between two pieces of a large read: bytes and credits are to flow while this thread copies.
void Stream::drive_between_pieces() noexcept {
    in_.publish_tail();
    carrier_->taken();
    Deadline once(0);
    read_.lock.settle();
    carrier_->drive(once, Asks([] { return false; }));
}

// A wait for room ends when this side writes no more, too.
Status Stream::await_room(size_t need, Deadline &deadline, uint32_t cancels) noexcept {
    if (look_away(write_, [&] { return out_.has_room(need); })) return MUSTER_OK;
    return sleep(
        write_, out_.control().writer, [&](uint32_t state) { return out_.park_writer(state, need); },
        [&] { return interrupted(write_, cancels) || finish_wanted_.load(std::memory_order_seq_cst) != 0; }, deadline);
}

// Waits until operations can proceed, or until everything has left: for the peer's side (drained), or this process.
Status Stream::await_flush(bool drained, Deadline &deadline, uint32_t cancels) noexcept {
    const auto left = [&] { return out_.drained() || interrupted(write_, cancels); };
    if (write_.waiting_operations.load(std::memory_order_relaxed) == 0 && !left() &&
        drive_carrier(write_, deadline, left))
        return MUSTER_OK;
    const auto park_as = [&](uint32_t state) {
        if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0)
            return out_.park_writer(state, out_.window() / 4);
        out_.park_flusher(state);
        const bool carried = !carrier_ || duplex_->shared() || carrier_->flush();
        return !(carried && (!drained || out_.drained() || out_.reader_gone()));
    };
    return sleep(
        write_, out_.control().writer, park_as, [&] { return interrupted(write_, cancels); }, deadline);
}

// ---- watching
// --------------------------------------------------------------------------------------------------------

// The host got AGAIN: the next change has to be reported. False: there is a change already, check again. Holder of the
// lock.
bool Stream::arm(uint32_t event, size_t need) noexcept {
    if (!(interest_.load(std::memory_order_relaxed) & event)) return true;
    if (need == 0) need = event == MUSTER_STREAM_READABLE ? 1 : std::min<size_t>(piece(), 4096);
    armed_.fetch_or(event, std::memory_order_seq_cst);
    const bool parked =
        event == MUSTER_STREAM_READABLE ? in_.park_reader(Park::FD, need) : out_.park_writer(Park::FD, need);
    if (parked && !duplex_->is_ended()) return true;
    armed_.fetch_and(~event, std::memory_order_seq_cst);
    return false;
}

// An event that is on its way already is reported as none (on_fd()), or finds nothing to read.
void Stream::disarm_reading() noexcept {
    Deadline once(0);
    if (take(read_, once, read_.cancels.load(std::memory_order_seq_cst)) != MUSTER_OK) return;
    armed_.fetch_and(~MUSTER_STREAM_READABLE, std::memory_order_seq_cst);
    // Then the peer sends no wake-up, unless it has seen the flag before.
    uint32_t armed = Park::FD;
    if (read_.waiting_operations.load(std::memory_order_seq_cst) == 0)
        in_.control().reader.state.compare_exchange_strong(armed, Park::AWAKE, std::memory_order_seq_cst);
    give(read_);
}

// A blocking wait has used the parking place of a watch that was armed: put the watch back. Holder of the lock.
void Stream::rearm(uint32_t event) noexcept {
    if (armed_.load(std::memory_order_seq_cst) & event)
        if (!arm(event)) {
            armed_.fetch_or(event, std::memory_order_seq_cst);
            notify_events(event);
        }
}

// Reports the armed ones of these events. Any thread.
void Stream::notify_events(uint32_t events) noexcept {
    const uint32_t told = armed_.fetch_and(~events, std::memory_order_seq_cst) & events;
    const uint32_t always = events & (MUSTER_STREAM_PEER_SILENT | MUSTER_STREAM_PEER_BACK | MUSTER_STREAM_ENDED);
    if ((told | always) == 0) return;
    const std::lock_guard guard(watch_lock_);
    if (queue_) queue_->raise(*this, told | always);
}

void Stream::wake_reader() noexcept {
    notify_events(MUSTER_STREAM_READABLE);
    if (context_->external()) context_->notify(signal_);
    if (read_.waiting_operations.load(std::memory_order_seq_cst) != 0) post_pump(); // last: it may destroy this
}

void Stream::wake_writer() noexcept {
    notify_events(MUSTER_STREAM_WRITABLE);
    if (context_->external()) context_->notify(signal_);
    if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) post_pump();
}

// A descriptor in the queue's epoll turned ready: our eventfd (shared memory), or the carrier's socket.
uint32_t Stream::on_fd(uint32_t epoll_events) noexcept {
    const uint32_t interest = interest_.load(std::memory_order_relaxed);
    if (carrier_watched_.load(std::memory_order_relaxed)) {
        const uint32_t events = carrier_->fd_ready(epoll_events);
        const uint32_t told = armed_.fetch_and(~events, std::memory_order_seq_cst) & events;
        return told | (events & ~interest & MUSTER_STREAM_ENDED);
    }
    uint32_t events = 0;
    // seq_cst: the peer clears the flag before it writes the eventfd.
    if (in_.control().reader.state.load(std::memory_order_seq_cst) == Park::AWAKE) events |= MUSTER_STREAM_READABLE;
    if (out_.control().writer.state.load(std::memory_order_seq_cst) == Park::AWAKE) events |= MUSTER_STREAM_WRITABLE;
    return armed_.fetch_and(~events, std::memory_order_seq_cst) & events;
}

// A queue's thread polls the ring, so the peer does not wake it. Only the thread that clears the flag of the parking
// place may report what it stands for: a thread that arms or waits later sets the flag again.
bool Stream::begin_look() noexcept {
    if (context_->external() || (carrier_ && !duplex_->shared())) return false;
    if (read_.waiting_operations.load(std::memory_order_relaxed) != 0) return false; // the place is theirs
    uint32_t armed = Park::FD;
    if (!in_.control().reader.state.compare_exchange_strong(armed, Park::AWAKE, std::memory_order_seq_cst))
        return false;
    // seq_cst: an operation that has come since counts itself and then sets the flag, which may be what was cleared.
    if (read_.waiting_operations.load(std::memory_order_seq_cst) != 0) post_pump();
    return true;
}

uint32_t Stream::look() noexcept {
    // relaxed: consumed bytes were published before the place was armed; an event of bytes that another thread has read
    // since finds nothing to read.
    const PipeControl &c = in_.control();
    const uint64_t there = c.head.load(std::memory_order_relaxed) - c.tail.load(std::memory_order_relaxed);
    if (there < c.reader.need.load(std::memory_order_relaxed) && c.finished.load(std::memory_order_relaxed) == 0)
        return 0;
    return armed_.fetch_and(~MUSTER_STREAM_READABLE, std::memory_order_seq_cst) & MUSTER_STREAM_READABLE;
}

uint32_t Stream::end_look() noexcept {
    if (!try_take(read_, Direction::NOTIFY)) return 0; // the holder reports the event when it unlocks
    uint32_t events = 0;
    // An operation that has come meanwhile has the place, too: it sets the flag again when it is moved on.
    const bool has_operations = read_.waiting_operations.load(std::memory_order_seq_cst) != 0;
    if ((armed_.load(std::memory_order_seq_cst) & MUSTER_STREAM_READABLE) != 0) {
        const size_t need = has_operations ? 1 : in_.control().reader.need.load(std::memory_order_relaxed);
        const bool parked = in_.park_reader(Park::FD, std::max<size_t>(need, 1));
        if (!parked || duplex_->is_ended())
            events = armed_.fetch_and(~MUSTER_STREAM_READABLE, std::memory_order_seq_cst) & MUSTER_STREAM_READABLE;
    }
    if (has_operations) post_pump();
    give(read_);
    return events;
}

Status Stream::watch(uint32_t interest, Queue *queue, uint64_t tag) {
    if (interest != 0 && (closed_.load(std::memory_order_relaxed) || queue->closed())) return MUSTER_E_CLOSED;
    const std::lock_guard one_at_a_time(watch_calls_);
    Ref<Queue> old;
    {
        const std::lock_guard guard(watch_lock_);
        old = std::move(queue_);
        queue_ = Ref<Queue>();
        interest_.store(0, std::memory_order_relaxed);
        armed_.store(0, std::memory_order_seq_cst);
    }
    if (old) {
        const bool watched = carrier_watched_.load(std::memory_order_relaxed);
        if (watched) carrier_->unwatch(*old, *this);
        if (duplex_->shared()) old->remove_fd(*this, duplex_->own_event());
        old->detach(*this);
        carrier_watched_.store(false, std::memory_order_relaxed);
    }
    if (interest == 0) return MUSTER_OK;
    queue->attach(*this, tag);
    if (duplex_->shared()) {
        if (auto added = queue->add_fd(*this, duplex_->own_event(), EPOLLIN | EPOLLET); !added) {
            queue->detach(*this);
            return added.status();
        }
    } else if (carrier_) {
        carrier_watched_.store(true, std::memory_order_relaxed); // an event may occur before watch() returns
        if (!carrier_->watch(*queue, *this)) carrier_watched_.store(false, std::memory_order_relaxed);
    }
    {
        const std::lock_guard guard(watch_lock_);
        queue_ = Ref<Queue>(queue);
        interest_.store(interest, std::memory_order_relaxed);
    }
    for (const uint32_t event : {MUSTER_STREAM_READABLE, MUSTER_STREAM_WRITABLE}) {
        if (!(interest & event)) continue;
        Direction &d = event == MUSTER_STREAM_READABLE ? read_ : write_;
        if (!try_take(d, Direction::NOTIFY)) {
            armed_.fetch_or(event, std::memory_order_seq_cst); // the holder reports it when it unlocks
            if (!try_take(d, Direction::NOTIFY)) continue;
        }
        // The bytes of a socket may be in the kernel: only a read finds out.
        const bool ask = carrier_watched_.load(std::memory_order_relaxed) && event == MUSTER_STREAM_READABLE;
        if (ask || !arm(event)) {
            armed_.fetch_or(event, std::memory_order_seq_cst);
            notify_events(event);
        }
        give(d);
    }
    if (duplex_->is_ended()) notify_events(MUSTER_STREAM_ENDED);
    return MUSTER_OK;
}

} // namespace muster
