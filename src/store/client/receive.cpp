// SPDX-License-Identifier: MIT
// Answers of a store in another process.
#include "store/client/client.hpp"

#include <algorithm>
#include <utility>

namespace muster {

namespace {
constexpr size_t stack_bytes = 16 * 1024; // receive buffer of a thread of the host
constexpr size_t most_answered = 64;
} // namespace

// 1: bytes were received; 0: none available; -1: the connection has ended.
int StoreClient::receive_once(unsigned char *staging, size_t size, int flags) noexcept {
    const ssize_t n = receiver_.receive(staging, size, flags);
    if (n == 0) return 0;
    if (n < 0) {
        broke(receiver_.end_errno() == 0 ? "the server hung up" : "the connection broke");
        return -1;
    }
    heard_ns_.store(now_ns(), std::memory_order_relaxed);
    const char *why = nullptr;
    auto how = Breakage::lost;
    try {
        if (!reader_.feed(staging, static_cast<size_t>(n), *this)) {
            why = *reader_.why() != '\0' ? reader_.why() : "the server broke the protocol";
            how = Breakage::invalid;
        }
    } catch (const std::bad_alloc &) {
        why = "out of memory for an answer";
    }
    end_answered();
    if (why != nullptr) broke(why, how);
    return why == nullptr ? 1 : -1;
}

bool StoreClient::take_record(const StoreHead &head, std::string_view body) {
    if (head.type != StoreRecord::answer) end_answered(); // these were first
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
        broke("it stands by: another server keeps the store", Breakage::moved);
        return body.empty();
    case StoreRecord::bye:
        broke("the server has stopped", (head.flags & store_bye_for_good) != 0 ? Breakage::stopped : Breakage::lost);
        return body.empty();
    default:
        return false;
    }
}

bool StoreClient::take_answer(const StoreHead &head, std::string_view body) {
    Answered one{head.number, {}, {}};
    if (!get_answer(body, one.answer)) return false;
    if (one.answer.error.status == MUSTER_AGAIN)
        one.answer.error = Error::make(MUSTER_AGAIN, "%s: absent", std::string(one.answer.error.message).c_str());
    invalid_count_.store(0, std::memory_order_relaxed);
    if (answered_.empty()) {
        std::unique_lock hold(lock_);
        if (pending_.size() <= 1) { // no other answer can follow
            one.operation = take_answered(one);
            hold.unlock();
            if (one.operation && !ends_as_withdrawn(one)) one.operation->finish(std::move(one.answer));
            return true;
        }
    }
    if (answered_.size() == most_answered) end_answered();
    answered_.push_back(std::move(one));
    return true;
}

// Ends the requests whose answers were received, under one lock for many, and sends what had to wait for room or was
// begun meanwhile. A lock and a send for each answer would hinder the threads that begin requests.
void StoreClient::end_answered() noexcept {
    if (answered_.empty()) return;
    bool is_idle = false;
    {
        std::unique_lock hold(lock_);
        try {
            for (Answered &one : answered_) one.operation = take_answered(one);
            send_more();
        } catch (const std::bad_alloc &) { // those that were not removed are repeated in the same session
            broke("out of memory for an answer");
        }
        flush(hold);
        is_idle = pending_.empty();
    }
    StoreEndings endings;
    for (Answered &one : answered_)
        if (one.operation && !ends_as_withdrawn(one)) endings.add(std::move(one.operation), std::move(one.answer));
    answered_.clear();
    if (is_idle) answered_.shrink_to_fit();
}

bool StoreClient::ends_as_withdrawn(Answered &one) noexcept {
    if (one.operation->sending.withdrawn && one.answer.error.status == MUSTER_E_CANCELED) {
        one.operation->withdrawn(one.answer.error.message);
        return true;
    }
    if (one.answer.result) one.answer.result->prefix_bytes = one.operation->request.prefix_bytes();
    return false;
}

// With the lock. Empty: the request was withdrawn. Memory is allocated before the operation is removed: if there is
// none, the connection is established again, and the request is repeated; the server has kept its answer.
Ref<StoreOperation> StoreClient::take_answered(Answered &one) {
    StoreOperation *const found = pending_.find(one.number);
    if (found == nullptr) return {};
    StoreAnswer &answer = one.answer;
    const StoreOp &op = found->request.ops().front();
    if (op.kind == store_grant && answer.error.status == MUSTER_OK) {
        if (!answer.result || answer.result->entries.size() != 1)
            answer = {Error::make(MUSTER_E_PROTOCOL, "the server granted a lease without a number"), {}};
        else if (found->sending.withdrawn)
            send_record(StoreRecord::keep, 1, static_cast<uint64_t>(answer.result->entries[0].number));
        else if ((op.version & MUSTER_LEASE_MANUAL) == 0)
            kept_.emplace(static_cast<uint64_t>(answer.result->entries[0].number), op.number);
        start_ticks_.post(*context_); // perhaps in a shorter time than before
    }
    if (op.kind == store_end_lease) kept_.erase(op.lease);
    return remove(*found);
}

// ---- threads of the host --------------------------------------------------------------------------------------------

Status StoreClient::sleep(StoreOperation &operation, Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
    if (context_->external() || context_->on_loop()) return context_->sleep(signal, seen, deadline);
    if (receiver_.lock.try_lock()) {
        receiver_.lock.begin_check();
        Status status = MUSTER_AGAIN;
        if (fd_ && !is_broken()) status = sleep_on_socket(signal, seen, deadline);
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
    receiver_.lock.request_recheck(); // the holder then passes the receiving on
    if (receiver_.lock.try_lock()) leave_rx(false);
    const Status status = context_->sleep(signal, seen, deadline);
    const std::lock_guard hold(lock_);
    std::erase(sleepers_, &operation);
    return status;
}

Status StoreClient::sleep_on_socket(Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (state_ != State::open) return MUSTER_AGAIN;
    }
    receiver_.take_from_loop();
    receiver_.count_visit();
    unsigned char staging[stack_bytes];
    // An answer is usually in transit: one system call, during which only events of the connection are noticed for a
    // moment.
    for (int got = 1; got > 0 && signal.seen() == seen && !is_broken();) {
        const int64_t left = deadline.left();
        if (left >= 0 && left < deaf_ns) break;
        got = receive_once(staging, sizeof staging, 0);
        if (got < 0) return MUSTER_OK;
    }
    // seq_cst: pairs with wake_reader(), which follows the change of the signal.
    const auto is_over = [&] { return signal.seen() != seen || is_broken(); };
    for (bool look = !receiver_.is_drained();; look = true) {
        for (int got = 1; look && got > 0 && !is_over(); look = !receiver_.is_drained()) {
            got = receive_once(staging, sizeof staging, MSG_DONTWAIT);
            if (got < 0) return MUSTER_OK;
        }
        if (is_over()) return MUSTER_OK;
        const Receiver::Sleep slept = receiver_.sleep(deadline, is_over);
        if (slept == Receiver::Sleep::no_descriptor) return MUSTER_AGAIN;
        if (is_over()) return MUSTER_OK;
        if (slept == Receiver::Sleep::timeout) return MUSTER_TIMEOUT;
    }
}

// Another sleeping thread receives from now on, or the loop, if an answer is expected; otherwise the socket stays with
// the threads of the host for a moment. It is harmless that the loop takes over later: operations that were begun are
// received by the loop at once, and the loop is notified of the end of a connection in any case.
void StoreClient::leave_rx(bool host) noexcept {
    for (;;) {
        bool loop = false;
        {
            const std::lock_guard hold(lock_);
            const bool hosts_receive = state_ == State::open && host && !context_->external();
            if (hosts_receive && !sleepers_.empty())
                sleepers_.back()->wake();
            else
                loop = !hosts_receive || !pending_.empty();
            if (loop && fd_ && !receiver_.loop_receives()) {
                receiver_.return_to_loop();
                receiver_.watch_input();
            }
        }
        const bool again = receiver_.lock.unlock();
        if (!loop) receiver_.expect_host();
        if (is_broken()) part_.post(*context_);
        if (!again || !receiver_.lock.try_lock()) return;
        receiver_.lock.begin_check();
    }
}

} // namespace muster
