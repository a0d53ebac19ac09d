// SPDX-License-Identifier: MIT
// Answers of a store in another process.
#include "base/uncancelled.hpp"
#include "store/client.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr size_t stack_bytes = 16 * 1024; // what a host's thread receives into
} // namespace

// 1: bytes came; 0: there are none; -1: the connection is no more.
int StoreClient::receive_once(unsigned char *staging, size_t size, int flags) noexcept {
    const ssize_t n = uncancelled::receive(fd_.get(), staging, size, flags);
    drained_ = n < static_cast<ssize_t>(size);
    if (n < 0 && errno == EINTR) return 1;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (n <= 0) {
        broke(n == 0 ? "the server hung up" : "the connection broke");
        return -1;
    }
    heard_ns_.store(now_ns(), std::memory_order_relaxed);
    try {
        if (reader_.feed(staging, static_cast<size_t>(n), *this)) return 1;
        nonsense_.store(true, std::memory_order_relaxed);
        broke(*reader_.why() != '\0' ? reader_.why() : "the server says what makes no sense");
    } catch (const std::bad_alloc &) {
        broke("out of memory for an answer");
    }
    return -1;
}

bool StoreClient::take_record(const StoreHead &head, std::string_view body) {
    switch (head.type) {
    case StoreRecord::welcome:
        return context_->on_loop() && welcome(body);
    case StoreRecord::answer:
        return take_answer(head, body);
    case StoreRecord::ended: {
        const std::lock_guard hold(lock_);
        ended_.insert(head.number);
        kept_.erase(head.number);
        return body.empty();
    }
    case StoreRecord::pong:
        return body.empty();
    case StoreRecord::elsewhere:
        elsewhere_.store(true, std::memory_order_relaxed);
        broke("it stands by: another server keeps the store");
        return body.empty();
    case StoreRecord::bye:
        for_good_.store((head.flags & store_bye_for_good) != 0, std::memory_order_relaxed);
        broke("the server has stopped");
        return body.empty();
    default:
        return false;
    }
}

// What needs memory comes before the operation is removed: where there is none, the connection is made again, and the
// request is asked again in the same session, whose answer the server has kept.
bool StoreClient::take_answer(const StoreHead &head, std::string_view body) {
    StoreAnswer answer;
    if (!get_answer(body, answer)) return false;
    if (answer.error.status == MUSTER_AGAIN)
        answer.error = Error::make(MUSTER_AGAIN, "%s: not there", std::string(answer.error.message).c_str());
    nonsenses_.store(0, std::memory_order_relaxed);
    Ref<StoreOperation> operation;
    bool withdrawn = false;
    {
        const std::lock_guard hold(lock_);
        StoreOperation *const found = pending_.find(head.number);
        if (found == nullptr) return true; // nobody waits for it any more
        withdrawn = found->sending.withdrawn && answer.error.status == MUSTER_E_CANCELED;
        const bool withdrawn_grant = found->sending.withdrawn && found->request.grants();
        const StoreOp &op = found->request.ops().front();
        if (op.kind == store_grant && answer.error.status == MUSTER_OK) {
            if (!answer.result || answer.result->entries.size() != 1)
                answer = {Error::make(MUSTER_E_PROTOCOL, "the server granted a lease without a number"), {}};
            else if (withdrawn_grant)
                send_record(StoreRecord::keep, 1, static_cast<uint64_t>(answer.result->entries[0].number));
            else if ((op.version & MUSTER_LEASE_MANUAL) == 0)
                kept_.emplace(static_cast<uint64_t>(answer.result->entries[0].number), op.number);
            start_ticks_.post(*context_); // perhaps in a shorter time than before
        }
        operation = remove(*found);
        if (op.kind == store_end_lease) kept_.erase(op.lease);
        try {
            send_more();
        } catch (const std::bad_alloc &) {
            broke("out of memory");
        }
        flush();
    }
    if (withdrawn) {
        operation->withdrawn(answer.error.message);
    } else {
        if (answer.result) answer.result->prefix_bytes = operation->request.prefix_bytes();
        operation->finish(std::move(answer));
    }
    return true;
}

// ---- threads of the host --------------------------------------------------------------------------------------------

Status StoreClient::sleep(StoreOperation &operation, Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
    if (context_->external() || context_->on_loop()) return context_->sleep(signal, seen, deadline);
    if (rx_.try_lock()) {
        rx_.looked();
        Status status = MUSTER_AGAIN;
        if (fd_ && !broken_.load(std::memory_order_seq_cst)) status = sleep_on_socket(signal, seen, deadline);
        leave_rx(true);
        if (status != MUSTER_AGAIN) return status;
        return context_->sleep(signal, seen, deadline);
    }
    {
        const std::lock_guard hold(lock_);
        try {
            sleepers_.push_back(&operation);
        } catch (const std::bad_alloc &) { // the loop receives for it, later
        }
    }
    rx_.wish(); // whoever has it sees to it that somebody receives
    if (rx_.try_lock()) leave_rx(false);
    const Status status = context_->sleep(signal, seen, deadline);
    const std::lock_guard hold(lock_);
    std::erase(sleepers_, &operation);
    return status;
}

Status StoreClient::sleep_on_socket(Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (state_ != State::open) return MUSTER_AGAIN;
        if (interest_in_) set_interest(false, interest_out_);
    }
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    unsigned char staging[stack_bytes];
    // An answer is mostly on its way: one system call, in which nothing but the connection is heard of for a moment.
    for (int got = 1; got > 0 && signal.seen() == seen && !broken_.load(std::memory_order_seq_cst);) {
        const int64_t left = deadline.left();
        if (left >= 0 && left < deaf_ns) break;
        got = receive_once(staging, sizeof staging, 0);
        if (got < 0) return MUSTER_OK;
    }
    if (signal.seen() != seen || broken_.load(std::memory_order_seq_cst)) return MUSTER_OK;
    return sleep_on_bell(signal, seen, deadline, staging);
}

// Until something comes, or what wake_reader() tells of.
Status StoreClient::sleep_on_bell(Signal &signal, uint32_t seen, Deadline &deadline, unsigned char *staging) noexcept {
    if (bell_.event < 0) {
        auto bell = hub_.take_bell();
        epoll_event wanted{};
        wanted.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
        if (!bell) return MUSTER_AGAIN;
        if (epoll_ctl(bell->epoll, EPOLL_CTL_ADD, fd_.get(), &wanted) != 0) {
            hub_.give_bell(*bell);
            return MUSTER_AGAIN;
        }
        bell_ = *bell;
        hung_up_ = drained_ = false;
    }
    bool look = !drained_ || hung_up_; // else what comes raises an edge
    for (;;) {
        for (int got = 1; look && got > 0 && signal.seen() == seen; look = !drained_ || hung_up_) {
            got = receive_once(staging, stack_bytes, MSG_DONTWAIT);
            if (got < 0) return MUSTER_OK;
        }
        if (signal.seen() != seen) return MUSTER_OK;
        // seq_cst: pairs with wake_reader(), which comes behind the change of the signal; one of us sees the other.
        bell_event_.store(bell_.event, std::memory_order_seq_cst);
        bool in_time = true;
        if (signal.seen() == seen && !broken_.load(std::memory_order_seq_cst)) {
            const int64_t left = deadline.left();
            const int ms = left < 0 ? -1 : static_cast<int>(std::min<int64_t>((left + 999'999) / 1'000'000, INT_MAX));
            epoll_event event{};
            in_time = uncancelled::wait_epoll(bell_.epoll, &event, 1, ms) != 0;
            if (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true;
        }
        bell_event_.store(-1, std::memory_order_relaxed);
        if (broken_.load(std::memory_order_seq_cst) || signal.seen() != seen) return MUSTER_OK;
        if (!in_time) return MUSTER_TIMEOUT;
        look = true;
    }
}

void StoreClient::wake_reader() noexcept {
    const int event = bell_event_.load(std::memory_order_seq_cst);
    if (event < 0) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(event, &one, sizeof one);
}

// Somebody else who sleeps receives from now on, or the loop, if there is something to come; else the socket stays with
// the host's threads for a moment.
void StoreClient::leave_rx(bool host) noexcept {
    for (;;) {
        bool loop = false;
        {
            const std::lock_guard hold(lock_);
            if (state_ != State::open || !host || context_->external()) {
                loop = true;
            } else if (!sleepers_.empty()) {
                sleepers_.back()->wake();
            } else if (!pending_.empty()) {
                loop = true;
            }
            if (loop && fd_ && !interest_in_) {
                set_interest(true, interest_out_);
                if (bell_.event >= 0) {
                    epoll_ctl(bell_.epoll, EPOLL_CTL_DEL, fd_.get(), nullptr);
                    hub_.give_bell(std::exchange(bell_, {}));
                }
            }
        }
        if (!loop) begin_near();
        const bool again = rx_.unlock();
        if (broken_.load(std::memory_order_seq_cst)) part_.post(*context_);
        if (!again || !rx_.try_lock()) return;
        rx_.looked();
    }
}

void StoreClient::begin_near() noexcept {
    if (!near_.exchange(true, std::memory_order_acq_rel)) start_near_.post(*context_);
}

void StoreClient::start_near() noexcept {
    near_back_off_.reset();
    hub_.start_timer(near_timer_, now_ns() + near_back_off_.next_ns());
}

// The loop takes over when no thread has slept on the socket for a while. That it may take some time does no harm: what
// was begun is received by the loop at once, and of the end of a connection it hears in any case.
void StoreClient::look_near() noexcept {
    const uint32_t visits = visits_.load(std::memory_order_relaxed);
    if (visits == visits_seen_ && rx_.try_lock()) {
        rx_.looked();
        near_.store(false, std::memory_order_release);
        return leave_rx(false);
    }
    visits_seen_ = visits;
    hub_.start_timer(near_timer_, now_ns() + near_back_off_.next_ns());
}

} // namespace muster
