// SPDX-License-Identifier: MIT
// Taking from a queue: waiting, waking, dispatching.
#include "base/pause.hpp"
#include "base/uncancelled.hpp"
#include "context/host_call.hpp"
#include "queue/looks.hpp"
#include "queue/served.hpp"
#include "queue/state.hpp"

#include <cerrno>
#include <chrono>

namespace muster {

namespace {

constexpr int max_events = 64;
constexpr uint32_t look_every = 64;     // entries taken before the descriptors are polled again
constexpr uint32_t looks_per_turn = 16; // into the memory of sources, for each poll of the descriptors
constexpr int max_looks = 8;            // of a call that does not wait, while edges bring nothing

int wait_events(int fd, epoll_event *events, Deadline &deadline) noexcept {
    if (deadline.endless() || deadline.look_once())
        return uncancelled::wait_epoll(fd, events, max_events, deadline.endless() ? -1 : 0);
    const int64_t left = deadline.left();
    const timespec limit{left / 1'000'000'000, left % 1'000'000'000};
    const int n = uncancelled::wait_epoll(fd, events, max_events, limit);
    if (n >= 0 || errno != ENOSYS) return n;
    // Before Linux 5.11: milliseconds, rounded up; a day at most, after which the caller waits again.
    constexpr int64_t day_ms = 86'400'000;
    const auto ms = static_cast<int>(std::min((left + 999'999) / 1'000'000, day_ms));
    return uncancelled::wait_epoll(fd, events, max_events, ms);
}

} // namespace

void Queue::State::signal() noexcept {
    const uint64_t one = 1;
    signals.fetch_add(1, std::memory_order_relaxed);
    // The counter is never read: each write is an edge. It cannot fill in the life of a process.
    [[maybe_unused]] const ssize_t written = uncancelled::write(event_source.get(), &one, sizeof one);
}

// Polls before sleeping; 0: no descriptor had an event.
int Queue::State::look_awake(epoll_event *events, Deadline &deadline, uint32_t turns, Looks &looks) noexcept {
    const bool has_looks = looks.begin();
    if (has_looks) turns = (turns + 1) / 2; // a turn takes twice as long
    int n = 0;
    bool found = false;
    for (uint32_t i = 0; i < turns && n == 0 && !found; i++) {
        for (uint32_t k = 0; has_looks && k < looks_per_turn && !found; k++) {
            found = looks.look();
            if (!found) pause_cpu();
        }
        if (found || detaching.load(std::memory_order_relaxed) != 0) break;
        n = uncancelled::wait_epoll(inner.get(), events, max_events, 0);
        if (n == 0 && deadline.passed()) break;
    }
    looks.end();
    if (n > 0 || found) awake.paid();
    return n;
}

// Takes the edges of the descriptors and serves those of sources. Returns their number.
int Queue::State::harvest(std::unique_lock<std::mutex> &hold, Deadline *deadline) noexcept {
    Deadline now(0);
    epoll_event events[max_events];
    int n = 0;
    bool found = false;
    const uint32_t turns = deadline ? awake.turns() : 0;
    if (turns != 0) {
        Looks looks;
        looks.take(*this);
        hold.unlock();
        n = look_awake(events, *deadline, turns, looks);
        hold.lock();
        found = looks.give_back(*this, hold);
        if (n == 0 && !found) awake.did_not();
    }
    if (n == 0 && !found) {
        hold.unlock();
        n = wait_events(inner.get(), events, deadline ? *deadline : now);
        hold.lock();
    }
    taken_since_look = 0;
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == source_key) continue;
        if (events[i].data.u64 ==
            end_key) { // the engine has ended: waiting threads take the remaining entries, and then get MUSTER_E_CLOSED
            parking.closed = true;
            followed.notify_all();
        } else {
            serve_fd(hold, events[i].data.u64, events[i].events);
        }
    }
    return n;
}

// Unlocks.
void Queue::State::leave(bool harvested, std::unique_lock<std::mutex> &hold) noexcept {
    const Parking::Leave wanted = parking.leave(holds_any(), harvested);
    if (wanted.wake_follower) followed.notify_one();
    hold.unlock();
    if (wanted.signal) signal();
}

Status Queue::State::wait(Context &context, Deadline &deadline, Entry &out, bool tabled_only) noexcept {
    const bool blocking = !deadline.look_once();
    std::unique_lock hold(lock);
    const uint64_t cancels_seen = parking.cancels;
    bool harvested = false, timed_out = false;
    int looks = 0;
    Status status = MUSTER_AGAIN;
    for (;;) {
        if (taken_since_look >= look_every) harvested |= harvest(hold, nullptr) > 0;
        const Take got = take(out, tabled_only);
        if (got != Take::none) {
            status = got == Take::taken ? MUSTER_OK : MUSTER_E_UNSUPPORTED;
            break;
        }
        if (parking.closed) {
            status = MUSTER_E_CLOSED;
            break;
        }
        if (parking.cancels != cancels_seen) {
            status = MUSTER_E_CANCELED;
            break;
        }
        if (timed_out) {
            status = MUSTER_TIMEOUT;
            break;
        }
        if (!blocking) {
            if (context.external()) {
                hold.unlock();
                Deadline now(0);
                context.progress(now);
                hold.lock();
            }
            if (harvest(hold, nullptr) > 0 && ++looks < max_looks)
                harvested = true;
            else if (!holds_any() && !parking.closed)
                break;
        } else if (context.on_loop()) {
            status = MUSTER_E_WOULD_DEADLOCK;
            break;
        } else if (!parking.leader) {
            parking.lead(cancels_seen);
            int n;
            if (context.external()) {
                hold.unlock();
                timed_out = context.wait_fd(inner.get(), deadline) == MUSTER_TIMEOUT || deadline.passed();
                hold.lock();
                n = harvest(hold, nullptr);
            } else {
                context.leave_loop();
                n = harvest(hold, &deadline);
                timed_out = deadline.passed(); // however many edges brought nothing
            }
            parking.lead_no_more();
            harvested |= n > 0;
        } else {
            if (parking.follow(holds_any(), std::exchange(harvested, false))) signal();
            const Uncancelled guard;
            if (deadline.endless()) {
                followed.wait(hold);
            } else {
                const std::chrono::steady_clock::time_point at{std::chrono::nanoseconds(deadline.at())};
                timed_out = followed.wait_until(hold, at) == std::cv_status::timeout;
            }
            parking.follow_no_more();
        }
    }
    leave(harvested, hold);
    if (status == MUSTER_OK) {
        taker.store(pthread_self(), std::memory_order_relaxed);
        taker_known.store(true, std::memory_order_relaxed);
    }
    return status;
}

bool Queue::taken_ever() const noexcept {
    return state_->taker_known.load(std::memory_order_relaxed);
}

bool Queue::served_here(pthread_t registrant) noexcept {
    if (awaited()) return false; // another thread is about to serve
    if (taken_ever()) return taken_here();
    if (!pthread_equal(registrant, pthread_self())) return false;
    HostCall *const call = HostCall::here(*context_);
    if (call == nullptr) return true;
    call->await_servant(Ref<Object>(this), [](Object &object) noexcept {
        const auto &queue = static_cast<const Queue &>(object);
        return queue.taken_ever() || queue.awaited();
    });
    return false;
}

bool Queue::awaited() const noexcept {
    const std::lock_guard hold(state_->lock);
    return state_->parking.leader || state_->parking.followers != 0;
}

bool Queue::taken_here() const noexcept {
    return taken_ever() && pthread_equal(state_->taker.load(std::memory_order_relaxed), pthread_self());
}

Status Queue::next(Deadline &deadline, muster_completion *out, muster_error *error) noexcept {
    Entry entry;
    const Status status = state_->wait(*context_, deadline, entry, false);
    if (status != MUSTER_OK) return status;
    *out = entry.completion;
    entry.object.detach(); // the host's now
    const bool has_text = out->kind == MUSTER_EVENT_LOG || out->kind == MUSTER_EVENT_AGENT;
    if (error && (out->status != MUSTER_OK || has_text)) entry.error.give(*error);
    return MUSTER_OK;
}

Status Queue::dispatch(Deadline &deadline, muster_queue_handler_fn handler, void *user, uint64_t *out_count) {
    uint64_t count = 0;
    Deadline now(0);
    Status status;
    const Uncancelled guard; // the callbacks' own cancellation points would unwind these frames as well
    for (;;) {
        Entry entry;
        status = state_->wait(*context_, count == 0 ? deadline : now, entry, handler == nullptr);
        if (out_count) *out_count = count;
        if (status != MUSTER_OK) break;
        count++;
        if (out_count) *out_count = count; // true also if the callback throws
        if (entry.provider) {
            entry.provider->dispatch(entry.completion);
        } else {
            entry.object.detach();
            handler(user, &entry.completion, &entry.error);
        }
    }
    const bool drained = status == MUSTER_AGAIN || status == MUSTER_E_CLOSED;
    return count != 0 && drained ? MUSTER_OK : status;
}

void Queue::cancel() noexcept {
    State &s = *state_;
    bool should_signal;
    {
        const std::lock_guard hold(s.lock);
        s.parking.cancels++;
        s.followed.notify_all();
        should_signal = s.parking.leader;
    }
    if (should_signal) s.signal();
}

// The host begins to poll: the descriptor shows present and later entries.
void Queue::State::show_to_pollers(std::unique_lock<std::mutex> &hold) noexcept {
    const bool should_signal = parking.show(holds_any());
    hold.unlock();
    if (should_signal) signal();
}

Result<int> Queue::host_fd() noexcept {
    State &s = *state_;
    if (closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    auto fd = duplicate(s.inner.get(), "a queue");
    if (!fd) return fd;
    std::unique_lock hold(s.lock);
    s.show_to_pollers(hold);
    return fd;
}

Status Queue::set_wake(muster_wake_fn wake, void *user) {
    State &s = *state_;
    const std::lock_guard one_at_a_time(s.wake_lock);
    if (!wake) return s.wake ? s.wake->set(nullptr, nullptr).status() : MUSTER_OK;
    if (closed()) return MUSTER_E_CLOSED;
    if (!s.wake) s.wake = make_ref<WakeWatch>(context_->loop(), s.inner.get());
    if (auto done = s.wake->set(wake, user); !done) return done.status();
    std::unique_lock hold(s.lock);
    s.show_to_pollers(hold);
    return MUSTER_OK;
}

} // namespace muster
