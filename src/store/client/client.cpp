// SPDX-License-Identifier: MIT
// What is asked of a store in another process, until it is answered.
#include "store/client/client.hpp"

#include <algorithm>
#include <netdb.h>
#include <sodium.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace muster {

namespace {
constexpr size_t max_under_way = 16384; // requests that are sent, and not answered
constexpr size_t send_bytes = 8 << 10;  // requests that are begun in a row are sent when they have so many bytes
constexpr int send_turns = 8;           // of one thread, while others begin requests
constexpr size_t max_unsent = 8 << 20;  // bytes of requests that the socket does not accept: further requests wait
} // namespace

StoreClient::StoreClient(Context &context, std::string shown, std::vector<Address> addresses, int64_t lost_after_ns,
                         int64_t once_ns)
    : context_(&context), hub_(Hub::of(context)), shown_(std::move(shown)), addresses_(std::move(addresses)),
      once_ns_(once_ns), lost_after_ns_(lost_after_ns) {
    randombytes_buf(session_.data(), session_.size());
}

void StoreClient::watch_closely(int64_t silent_ns, int64_t lost_after_ns) noexcept {
    silent_ns_.store(silent_ns, std::memory_order_relaxed);
    lost_after_ns_.store(lost_after_ns, std::memory_order_relaxed);
}

std::string StoreClient::local_host() noexcept {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char host[NI_MAXHOST] = "";
    const std::lock_guard hold(lock_);
    if (!fd_ || getsockname(fd_.get(), reinterpret_cast<sockaddr *>(&own), &size) != 0) return {};
    if (getnameinfo(reinterpret_cast<sockaddr *>(&own), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
        return {};
    return host;
}

Result<void> StoreClient::connect(Deadline &deadline) {
    if (!enter_.post(*context_)) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    for (;;) {
        const uint32_t seen = opened_.seen();
        {
            const std::lock_guard hold(lock_);
            if (state_ == State::open) return {};
            if (state_ == State::lost) return why_lost_;
        }
        const Status status = context_->sleep(opened_, seen, deadline);
        if (status == MUSTER_OK) continue;
        const std::lock_guard hold(lock_);
        if (status != MUSTER_TIMEOUT) return Error::make(status, "%s", apart_text().c_str());
        return Error::make(why_apart_.status < 0 ? why_apart_.status : MUSTER_E_UNREACHABLE, "not in time: %s",
                           apart_text().c_str());
    }
}

bool StoreClient::submit(StoreOperation &operation) noexcept {
    StoreAnswer failed;
    bool later = false;
    {
        std::unique_lock hold(lock_);
        bool at_once = false;
        if (state_ == State::lost) {
            failed.error = why_lost_;
        } else {
            bool added = false;
            try {
                pending_.add(operation, next_number_);
                added = true;
                next_number_++;
                if (next_to_send_ == nullptr) next_to_send_ = &operation;
                if (state_ == State::open && next_to_send_ == &operation && has_room()) {
                    if (operation.awaited()) claim_socket();
                    send_ask(operation);
                    // A request after which others wait is sent at once; many that are begun in a row are sent
                    // together.
                    later =
                        !operation.awaited() && under_way_ > 1 && (receiver_.watches_output() || unsent() < send_bytes);
                    at_once = !later;
                }
            } catch (const std::bad_alloc &) {
                if (added) remove(operation);
                failed.error = Error::make(MUSTER_E_NOMEM, "out of memory");
            }
        }
        if (at_once && pending_.size() == 1)
            flush(); // no other thread begins one now
        else if (at_once)
            flush(hold);
    }
    if (failed.error.status < 0) {
        operation.finish(std::move(failed));
        return true;
    }
    if (later) flush_soon_.post(*context_);
    if (!ticking_.load(std::memory_order_relaxed) && !ticking_.exchange(true, std::memory_order_acq_rel))
        start_ticks_.post(*context_);
    return false;
}

// The answer is for the calling thread, which will sleep on the socket; the loop need not be woken for it, too.
void StoreClient::claim_socket() noexcept {
    if (pending_.size() != 1 || context_->external() || context_->on_loop()) return;
    if (receiver_.take_from_loop()) receiver_.expect_host();
}

// Requests that were begun in a row, and those that waited for room.
void StoreClient::send_gathered() noexcept {
    std::unique_lock hold(lock_);
    try {
        send_more();
    } catch (const std::bad_alloc &) {
        broke("out of memory");
    }
    flush(hold);
}

bool StoreClient::has_room() const noexcept {
    return under_way_ < max_under_way && unsent() < max_unsent;
}

// While a thread sends only what has been added since.
size_t StoreClient::unsent() const noexcept {
    return sends_ ? writer_.plain().size() : writer_.unsent();
}

// The server has to answer whether a request was applied that is not needed any more and was sent on an earlier
// connection.
void StoreClient::send_ask(StoreOperation &operation) {
    const uint64_t number = PendingOperations::number(operation);
    const uint64_t floor = pending_.floor(number);
    if (operation.sending.withdrawn)
        put_record(writer_.plain(), {0, StoreRecord::withdraw, 0, number});
    else
        put_ask(writer_.plain(), number, floor, operation.looks_once(), operation.request);
    operation.sending.sent = operation.sending.under_way = true;
    under_way_++;
    next_to_send_ = PendingOperations::after(operation);
}

// Requests that had to wait for a connection, or for others.
void StoreClient::send_more() {
    if (state_ != State::open) return;
    while (next_to_send_ != nullptr && has_room()) send_ask(*next_to_send_);
}

Ref<StoreOperation> StoreClient::remove(StoreOperation &operation) noexcept {
    if (next_to_send_ == &operation) next_to_send_ = PendingOperations::after(operation);
    if (operation.sending.under_way) under_way_--;
    return pending_.take(operation);
}

void StoreClient::send_record(StoreRecord type, uint8_t flags, uint64_t number) noexcept {
    if (state_ != State::open) return;
    try {
        put_record(writer_.plain(), {0, type, flags, number});
    } catch (const std::bad_alloc &) {
        return broke("out of memory");
    }
    flush();
}

void StoreClient::flush() noexcept {
    if (!fd_ || sends_ || writer_.empty()) return; // a thread that sends takes the rest, too
    sent(writer_.send(fd_.get()));
}

// At the end of what needs the lock: it is released during the system call, so that other threads can begin requests.
void StoreClient::flush(std::unique_lock<std::mutex> &hold) noexcept {
    if (!fd_ || sends_ || writer_.empty()) return;
    sends_ = true;
    int why, turns = 0;
    do {
        why = writer_.prepare();
        const int fd = fd_.get(); // close_socket() waits
        hold.unlock();
        if (why == 0) why = writer_.send_prepared(fd);
        hold.lock();
        writer_.shrink();
        sent(why);
    } while (why == 0 && !writer_.empty() && ++turns < send_turns);
    sends_ = false;
    if (why == 0 && !writer_.empty()) flush_soon_.post(*context_); // others begin more and more
    has_sent_.notify_all();
}

void StoreClient::sent(int why) noexcept {
    said_ns_.store(now_ns(), std::memory_order_relaxed);
    if (why == EAGAIN)
        receiver_.watch_output();
    else if (why != 0)
        broke("the connection broke");
}

std::string StoreClient::apart_text() const {
    if (state_ == State::lost) return why_lost_.message;
    std::string text = shown_;
    if (state_ == State::open) return text;
    text += ": not connected";
    if (apart_since_ns_ != 0) {
        char since[32];
        snprintf(since, sizeof since, " since %.3f s", static_cast<double>(now_ns() - apart_since_ns_) * 1e-9);
        text += since;
    }
    if (why_apart_.status < 0) text += std::string(": ") + why_apart_.message;
    return text;
}

// Requests that were not sent, or that change nothing, end here. For the rest the server has to answer whether they
// were applied.
Withdrawn StoreClient::withdraw(StoreOperation &operation, std::string &missing) noexcept {
    const std::lock_guard hold(lock_);
    if (!pending_.holds(operation)) return Withdrawn::over;
    const StoreRequest &request = operation.request;
    if (operation.sending.under_way) send_record(StoreRecord::withdraw, 0, PendingOperations::number(operation));
    if (operation.sending.sent && request.has_effect()) {
        operation.sending.withdrawn = true;
        return Withdrawn::asked;
    }
    try {
        if (operation.sending.under_way && request.waits())
            missing = request.names_of_waits();
        else
            missing = request.name(0) + ": " + apart_text();
    } catch (const std::bad_alloc &) { // then the text does without
    }
    if (operation.sending.sent && request.grants())
        operation.sending.withdrawn = true; // kept until its answer has arrived: the lease has to expire
    else
        remove(operation);
    return Withdrawn::yes;
}

bool StoreClient::forget(StoreOperation &operation) noexcept {
    const std::lock_guard hold(lock_);
    if (!pending_.holds(operation)) return false;
    remove(operation);
    return true;
}

void StoreClient::finish_all(const Error &why) noexcept {
    for (;;) {
        Ref<StoreOperation> operation;
        bool doubt = false;
        {
            const std::lock_guard hold(lock_);
            if (pending_.empty()) return;
            operation = remove(*pending_.first());
            doubt = operation->sending.sent && operation->request.has_effect();
        }
        // These two do not mean that it was not applied.
        if (doubt && why.status != MUSTER_E_STORE_LOST && why.status != MUSTER_E_CLOSED)
            operation->finish(
                {Error::make(MUSTER_E_PEER, "%s; it may have been applied", std::string(why.message).c_str()), {}});
        else
            operation->finish({why, {}});
    }
}

// ---- leases ---------------------------------------------------------------------------------------------------------

Status StoreClient::keep(uint64_t lease) noexcept {
    const std::lock_guard hold(lock_);
    if (state_ == State::lost || ended_.count(lease) != 0) return MUSTER_E_STALE;
    send_record(StoreRecord::keep, 0, lease);
    return MUSTER_OK;
}

void StoreClient::abandon(uint64_t lease) noexcept {
    const std::lock_guard hold(lock_);
    ended_.erase(lease);
    if (kept_.erase(lease) != 0) send_record(StoreRecord::keep, 1, lease);
}

// Interval of the records that are sent while a request waits or a lease is renewed.
int64_t StoreClient::beat_ns() const noexcept {
    int64_t beat = context_->settings.heartbeat_ns;
    for (const auto &[lease, ttl] : kept_) beat = std::min(beat, ttl / 3);
    return std::max<int64_t>(beat, 1'000'000);
}

} // namespace muster
