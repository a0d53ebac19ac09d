// SPDX-License-Identifier: MIT
// The connection to a store in another process: it comes, breaks, and comes again.
#include "store/client/client.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sodium.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace muster {

namespace {
constexpr int64_t address_timeout_ns = 1'000'000'000; // for one address while there are others
constexpr int max_reads = 4;                          // in a row: others have their turn, too
constexpr int max_invalid = 3; // connections in a row that break the protocol: one may be a fault of the network

// Others may be tried again.
bool is_final(Status why) noexcept {
    return why == MUSTER_E_AUTH || why == MUSTER_E_PROTOCOL || why == MUSTER_E_ADDRESS || why == MUSTER_E_ARG ||
           why == MUSTER_E_PERMISSION || why == MUSTER_E_CLOSED;
}
// For a moment, unless this is disabled. A socket that does not support it does not block.
void let_receive_block(int fd) noexcept {
    const timeval moment{0, StoreClient::deaf_ns / 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment) != 0) return;
    if (const int flags = fcntl(fd, F_GETFL); flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}
bool is_refusal(const Error &why) noexcept {
    return why.os_errno == ECONNREFUSED || why.os_errno == ENOENT;
}
// The store no longer exists: the errno distinguishes this from an unreachable one.
Error gone(Error why) noexcept {
    why.os_errno = ECONNREFUSED;
    return why;
}
} // namespace

class StoreClient::Dialing final : public Dial {
  public:
    explicit Dialing(StoreClient &client) noexcept : client_(&client) {}
    void done(Result<Ref<Stream>> result) noexcept override {
        if (!result) client_->dial_failed(result.error());
    }
    bool stop_by(Ref<Attempt> attempt) noexcept override {
        const std::lock_guard hold(client_->lock_);
        if (client_->state_ == State::lost) return false;
        client_->attempt_ = std::move(attempt);
        return true;
    }
    Context &context() noexcept override { return *client_->context_; }

  private:
    const Ref<StoreClient> client_;
};

// ---- connecting -----------------------------------------------------------------------------------------------------

void StoreClient::enter() noexcept {
    context_->on_closing(closing_);
    if (context_->closed()) return leave();
    dial();
}

// Also called when an address takes too long.
void StoreClient::dial() noexcept {
    if (left_) return;
    if (dialling_) return dial_failed(Error::make(MUSTER_E_UNREACHABLE, "%s: it does not answer", shown_.c_str()));
    const Address &address = addresses_[next_address_];
    dialling_ = true;
    // If packets are dropped silently the kernel would retry for minutes, at growing intervals.
    const int64_t now = now_ns();
    int64_t limit_ns = addresses_.size() > 1 ? address_timeout_ns + 2 * back_off_.current_ns()
                                             : 2 * context_->settings.handshake_timeout_ns;
    const int64_t lost_after_ns = lost_after_ns_.load(std::memory_order_relaxed);
    if (was_open_)
        limit_ns = std::clamp<int64_t>(lost_after_ns - (now - apart_since_ns_), 0, limit_ns);
    else if (once_ns_ != 0)
        limit_ns = once_ns_;
    hub_.start_timer(dial_timer_, now + limit_ns);
    try {
        auto transport = Registry::of(*context_).find(address.scheme);
        if (!transport) return dial_failed(transport.error());
        TransportOptions options;
        options.hello = store_hello_client;
        options.window_bytes = context_->settings.window_bytes;
        options.taker = this;
        (*transport)->dial(address, options, make_ref<Dialing>(*this));
    } catch (const std::bad_alloc &) {
        dial_failed(Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
}

// The next address, after a pause. A store in the memory of a process is lost when no process listens any more.
void StoreClient::dial_failed(const Error &why) noexcept {
    if (left_) return;
    const int64_t lost_after_ns = lost_after_ns_.load(std::memory_order_relaxed);
    bool expired = false;
    Ref<Attempt> attempt;
    {
        const std::lock_guard hold(lock_);
        if (state_ != State::apart) return; // an earlier attempt has succeeded
        attempt = std::move(attempt_);
        why_apart_ = why;
        expired = was_open_ && now_ns() - apart_since_ns_ >= lost_after_ns;
    }
    dialling_ = false;
    if (attempt) attempt->stop(); // if it is in progress
    if (!is_refusal(why)) nobody_listens_ = false;
    if (!was_open_ && (is_final(why.status) || once_ns_ != 0)) return lose(why);
    const bool round = ++tried_ >= addresses_.size();
    next_address_ = (next_address_ + 1) % addresses_.size();
    if (round) tried_ = 0;
    if (round && was_open_ && volatile_ && nobody_listens_)
        return lose(gone(Error::make(MUSTER_E_STORE_LOST, "%s: the process that kept the store is gone: %s",
                                     shown_.c_str(), why.message)));
    if (expired)
        return lose(Error::make(MUSTER_E_STORE_LOST, "%s: not reached for %.1f s: %s", shown_.c_str(),
                                static_cast<double>(lost_after_ns) * 1e-9, why.message));
    if (round) {
        nobody_listens_ = true;
    }
    hub_.start_timer(dial_timer_, now_ns() + (round ? back_off_.next_ns() : 0));
}

void StoreClient::take(ProvedSocket socket) noexcept {
    if (left_) return;
    if (socket.agreed.hello != store_hello_server)
        return dial_failed(Error::make(MUSTER_E_PROTOCOL, "%s: no store is served there", shown_.c_str()));
    {
        const std::lock_guard hold(lock_);
        if (state_ != State::apart) return;
    }
    dialling_ = false;
    hub_.stop_timer(dial_timer_);
    while (!receiver_.lock.try_lock()) sched_yield(); // there is no socket: the holder is about to unlock
    receiver_.lock.begin_check();
    const char *problem = "";
    try {
        const std::lock_guard hold(lock_);
        attempt_.reset();
        breakage_.store(Breakage::none, std::memory_order_seq_cst);
        reader_.start(socket.agreed);
        writer_.start(socket.agreed);
        // A server that received an earlier hello keeps its session although the welcome was lost; the session has no
        // requests.
        if (!was_open_) randombytes_buf(session_.data(), session_.size());
        put_hello(writer_.plain(), session_, was_open_);
        fd_ = std::move(socket.fd);
        let_receive_block(fd_.get());
        state_ = State::hello_sent;
        if (!receiver_.start(fd_.get(), true)) {
            fd_.reset();
            problem = "it could not be watched";
        }
        flush();
    } catch (const std::bad_alloc &) {
        problem = "out of memory";
    }
    const int64_t limit_ns = context_->settings.handshake_timeout_ns;
    int64_t hello = addresses_.size() == 1 ? limit_ns : std::min(limit_ns, 2 * address_timeout_ns);
    if (once_ns_ != 0) hello = std::min(hello, once_ns_);
    hub_.start_timer(hello_timer_, now_ns() + hello);
    if (*problem != '\0') broke(problem);
    leave_rx(false);
}

// Loop thread, rx lock held.
bool StoreClient::welcome(std::string_view body) {
    StoreWelcome welcome;
    if (!get_welcome(body, welcome)) return false;
    hub_.stop_timer(hello_timer_);
    if (was_open_ && welcome.instance != instance_) {
        if (addresses_.size() > 1) {
            broke("another store is served there now", Breakage::moved);
            return true;
        }
        lose(gone(Error::make(MUSTER_E_STORE_LOST,
                              "%s: the process that kept the store is gone: another store is served there now",
                              shown_.c_str())));
        return true;
    }
    const bool known = (welcome.flags & store_resumed) != 0;
    if (was_open_ && !known) session_is_new();
    instance_ = welcome.instance;
    volatile_ = (welcome.flags & store_is_volatile) != 0;
    hosted_.store((welcome.flags & store_is_hosted) != 0, std::memory_order_relaxed);
    was_open_ = true;
    if (opened_ns_ == 0 || now_ns() - opened_ns_ > 4 * back_off_.max_ns()) back_off_.reset();
    opened_ns_ = now_ns();
    nobody_listens_ = true;
    capabilities_.store(welcome.capabilities, std::memory_order_relaxed);
    {
        const std::lock_guard hold(lock_);
        state_ = State::open;
        next_to_send_ = pending_.first();
        why_apart_ = Error();
        send_more();
        flush();
    }
    context_->log(MUSTER_LOG_INFO, "%s: connected%s", shown_.c_str(), known ? " again" : "");
    context_->notify(opened_);
    return true;
}

// The session was unknown to the server: earlier requests may have been applied.
void StoreClient::session_is_new() {
    std::vector<Ref<StoreOperation>> unknown;
    {
        const std::lock_guard hold(lock_);
        unknown.reserve(pending_.size());
        for (const auto &[lease, ttl] : kept_) ended_.insert(lease);
        kept_.clear();
        for (StoreOperation *one = pending_.first(); one != nullptr;) {
            StoreOperation &operation = *std::exchange(one, PendingOperations::after(*one));
            if (operation.sending.withdrawn || (operation.sending.sent && operation.request.has_effect()))
                unknown.push_back(remove(operation));
            else
                operation.sending.sent = false;
        }
    }
    for (const Ref<StoreOperation> &operation : unknown)
        operation->finish({Error::make(MUSTER_E_PEER,
                                       "%s: the connection was lost for longer than the server remembers; it may "
                                       "have been applied",
                                       operation->request.name(0).c_str()),
                           {}});
}

// ---- it works -------------------------------------------------------------------------------------------------------

void StoreClient::on_events(uint32_t epoll_events) noexcept {
    const Ref<StoreClient> self(this);
    if (epoll_events & EPOLLOUT) {
        const std::lock_guard hold(lock_);
        receiver_.ignore_output();
        flush();
        try {
            send_more();
        } catch (const std::bad_alloc &) {
            broke("out of memory");
        }
        flush();
    }
    if (!receiver_.lock.acquire_or_request()) return;
    int got = 0;
    for (int i = 0; i < max_reads && fd_ && !is_broken(); i++) {
        got = receive_once(hub_.staging(), Hub::staging_bytes, MSG_DONTWAIT);
        if (got <= 0) break;
    }
    if (got > 0) receiver_.rearm(); // another edge if there are more bytes
    leave_rx(false);
}

void StoreClient::start_ticks() noexcept {
    int64_t beat;
    {
        const std::lock_guard hold(lock_);
        beat = beat_ns();
    }
    hub_.start_timer(tick_timer_, now_ns() + beat);
}

// Records are sent periodically while a request waits or a lease has to be renewed; otherwise both sides sleep.
void StoreClient::tick() noexcept {
    const int64_t now = now_ns();
    int64_t next = 0, dead = context_->settings.dead_ns;
    const int64_t silent = silent_ns_.load(std::memory_order_relaxed);
    if (silent >= 0) dead = dead < 0 ? silent : std::min(dead, silent);
    {
        const std::lock_guard hold(lock_);
        if (state_ == State::lost || (pending_.empty() && kept_.empty())) {
            ticking_.store(false, std::memory_order_release); // the next request starts it again
            return;
        }
        const int64_t beat = beat_ns(), said = said_ns_.load(std::memory_order_relaxed);
        if (state_ == State::open) {
            const int64_t other_may_serve = std::max(4 * beat, 3 * address_timeout_ns);
            if (addresses_.size() > 1) dead = dead < 0 ? other_may_serve : std::min(dead, other_may_serve);
            const int64_t silence = now - heard_ns_.load(std::memory_order_relaxed);
            if (now - said >= beat) send_record(StoreRecord::ping, 0, 0);
            if (dead >= 0 && silence > dead && now - ticked_ns_ < 2 * beat + 500'000'000)
                broke("no message for too long");
        }
        ticked_ns_ = now;
        next = std::max(said_ns_.load(std::memory_order_relaxed), now - beat + beat / 8) + beat;
    }
    hub_.start_timer(tick_timer_, next);
}

// ---- it breaks ------------------------------------------------------------------------------------------------------

void StoreClient::broke(const char *why, Breakage how) noexcept {
    Breakage before = breakage_.load(std::memory_order_seq_cst);
    while (before < how && !breakage_.compare_exchange_weak(before, how, std::memory_order_seq_cst)) {
    }
    if (before != Breakage::none) return; // the first call has done the rest
    broke_why_.store(why, std::memory_order_relaxed);
    wake_reader();
    part_.post(*context_);
}

void StoreClient::close_socket() noexcept {
    const Uncancelled guard;
    std::unique_lock hold(lock_);
    has_sent_.wait(hold, [this] { return !sends_; }); // it does not block
    if (!fd_) return;
    receiver_.stop();
    fd_.reset();
    writer_.clear();
    under_way_ = 0;
    for (StoreOperation *one = pending_.first(); one != nullptr; one = PendingOperations::after(*one))
        one->sending.under_way = false;
    if (state_ == State::lost) return;
    if (state_ == State::open || apart_since_ns_ == 0) apart_since_ns_ = now_ns();
    state_ = State::apart;
    why_apart_ = Error::make(MUSTER_E_PEER, "%s", broke_why_.load(std::memory_order_relaxed));
}

void StoreClient::part() noexcept {
    if (!is_broken()) return;
    if (!receiver_.lock.acquire_or_request()) return; // the holder posts this task again
    const bool had = static_cast<bool>(fd_);
    close_socket();
    receiver_.lock.unlock();
    hub_.stop_timer(hello_timer_);
    if (!had || left_) return;
    context_->log(MUSTER_LOG_WARN, "%s: %s", shown_.c_str(), broke_why_.load(std::memory_order_relaxed));
    const Breakage how = breakage_.load(std::memory_order_seq_cst);
    if (how == Breakage::stopped)
        return lose(gone(
            Error::make(MUSTER_E_STORE_LOST, "%s: the server has stopped, and the store with it", shown_.c_str())));
    // Reconnects: the session continues, so that no request is applied twice. A server that always answers like that is
    // invalid.
    if (how == Breakage::invalid &&
        (!was_open_ || invalid_count_.fetch_add(1, std::memory_order_relaxed) + 1 >= max_invalid))
        return lose(
            Error::make(MUSTER_E_PROTOCOL, "%s: %s", shown_.c_str(), broke_why_.load(std::memory_order_relaxed)));
    if (how == Breakage::moved)
        return dial_failed(
            Error::make(MUSTER_E_UNREACHABLE, "%s: %s", shown_.c_str(), broke_why_.load(std::memory_order_relaxed)));
    if (!was_open_ && once_ns_ != 0)
        return dial_failed(
            Error::make(MUSTER_E_UNREACHABLE, "%s: %s", shown_.c_str(), broke_why_.load(std::memory_order_relaxed)));
    nobody_listens_ = true;
    next_address_ = (next_address_ + 1) % addresses_.size(); // where it broke it is not sooner well again
    tried_ = 0;
    if (now_ns() - opened_ns_ > back_off_.max_ns()) return dial();
    hub_.start_timer(dial_timer_, now_ns() + back_off_.next_ns()); // for a connection that breaks again and again
}

void StoreClient::lose(const Error &why) noexcept {
    Ref<Attempt> attempt;
    {
        const std::lock_guard hold(lock_);
        if (state_ == State::lost) return;
        state_ = State::lost;
        why_lost_ = why;
        attempt = std::move(attempt_);
    }
    left_ = true;
    if (attempt) attempt->stop();
    hub_.stop_timer(dial_timer_);
    hub_.stop_timer(hello_timer_);
    receiver_.forget_host();
    hub_.stop_timer(tick_timer_);
    context_->forget_closing(closing_);
    broke("the store is lost");
    finish_all(why);
    context_->notify(opened_);
}

void StoreClient::leave() noexcept {
    const Ref<StoreClient> self(this);
    {
        const std::lock_guard hold(lock_);
        send_record(StoreRecord::bye, 0, 0);
    }
    lose(Error::make(MUSTER_E_CLOSED, "the context was closed"));
}

} // namespace muster
