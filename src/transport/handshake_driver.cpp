// SPDX-License-Identifier: MIT
#include "transport/handshake_driver.hpp"

#include "transport/descriptor_channel.hpp"
#include "transport/link.hpp"
#include "transport/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace muster {

namespace {
constexpr int64_t out_of_band_timeout_ns = 2'000'000'000; // then the link stays on its socket
constexpr int64_t refusal_linger_ns = 1'000'000'000;      // for a refusal to be read
constexpr size_t max_drained_bytes = 64 * 1024;           // maximum bytes that are read from a refused side
} // namespace

HandshakeDriver::HandshakeDriver(Hub &hub, Fd fd, HandshakeConfig config, HandshakeSetup setup, HandshakeOwner &owner)
    : hub_(hub), context_(&hub.context()), fd_(std::move(fd)), owner_(&owner), owner_alive_(&owner.owner_object()),
      config_(with_callbacks(std::move(config))), handshake_(config_), setup_(std::move(setup)), since_(now_ns()) {}

HandshakeConfig HandshakeDriver::with_callbacks(HandshakeConfig config) {
    if (config.dialer) return config;
    config.admit = [this] { return admitted_ = owner_->admit(); };
    config.offer = [this](DescriptorOffer &out) { return DescriptorChannel::of(hub_).offer(*this, out); };
    return config;
}

void HandshakeDriver::start() noexcept {
    hub_.start_timer(limit_, since_ + hub_.context().settings.handshake_timeout_ns);
    context_->on_closing(closing_);
    if (auto added = hub_.add(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this); !added) return fail(added.error());
    registered_ = true;
    on_events(0);
}

// Without memory this connection ends, and no other.
template <class Step>
void HandshakeDriver::guarded(Step &&step) noexcept {
    const Ref<HandshakeDriver> self(this);
    try {
        step();
    } catch (const std::bad_alloc &) {
        fail(Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
}

void HandshakeDriver::on_events(uint32_t) noexcept {
    guarded([this] { progress(); });
}

void HandshakeDriver::too_late() noexcept {
    const int64_t limit = hub_.context().settings.handshake_timeout_ns;
    fail(Error::make(MUSTER_E_PEER, "the other side did not prove itself within %lld ms",
                     static_cast<long long>(limit / 1'000'000)));
}

// ---- moving on ------------------------------------------------------------------------------------------------------

void HandshakeDriver::progress() {
    while (fd_) {
        if (lingers()) return drain();
        if (!send_output()) return;
        if (status_ < 0) return fail(handshake_.error());
        if (status_ == MUSTER_OK) return complete();
        if (handshake_.want_send_segment() && !segment_sent_ && handshake_.agreement().pairing == Passing::in_band) {
            if (!send_segment()) return;
            continue;
        }
        if (handshake_.want_segment()) {
            if (handshake_.agreement().pairing == Passing::out_of_band && !std::exchange(fetch_begun_, true))
                begin_fetch();
            if (handshake_.want_segment()) receive_segment_message();
            if (handshake_.want_segment()) return;
            continue;
        }
        if (receive() <= 0) return;
    }
}

// True: nothing is left to be sent.
bool HandshakeDriver::send_output() {
    output_ += handshake_.take_output();
    if (status_ < 0 && !config_.dialer && !output_.empty()) refuses_ = true;
    while (!output_.empty()) {
        const ssize_t n = send(fd_.get(), output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n < 0) {
            // Messages that the other side has sent before it closed the connection may have the reason.
            if (status_ < 0)
                fail(handshake_.error());
            else if (errno == EPIPE || errno == ECONNRESET)
                output_.clear(), send_broken_ = true;
            else
                fail(Error::from_errno(errno, MUSTER_OK, "send the handshake"));
            return fd_.get() >= 0;
        }
        output_.erase(0, static_cast<size_t>(n));
    }
    return true;
}

// One message at most, so that no bytes after the handshake are read. Number of bytes; 0 or less: not now, or over.
ssize_t HandshakeDriver::receive() {
    unsigned char buffer[4608];
    const size_t wants = std::min(handshake_.wants(), sizeof buffer);
    const ssize_t n = recv(fd_.get(), buffer, wants, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) return 1;
    const bool is_empty = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (is_empty && !send_broken_) {
        handshake_.prepare();
        return 0;
    }
    if (n < 0) { // or what was not sent is never answered
        const int why = is_empty ? EPIPE : errno;
        fail(Error::from_errno(why, MUSTER_E_PEER, "the connection broke during the handshake"));
        return -1;
    }
    if (n == 0) {
        fail(Error::make(MUSTER_E_PEER, "the other side hung up during the handshake"));
        return -1;
    }
    size_t used = 0;
    status_ = handshake_.feed(buffer, static_cast<size_t>(n), used);
    return n;
}

// ---- shared memory --------------------------------------------------------------------------------------------------

bool HandshakeDriver::make_own_segment() noexcept {
    const uint64_t window = handshake_.agreement().shared_window;
    auto made = make_segment(Duplex::shared_bytes(window));
    if (made) segment_ = std::move(*made);
    return lay_out(made.error(), window, true);
}

bool HandshakeDriver::lay_out(const Error &why, uint64_t window, bool fresh) noexcept {
    Error problem = why;
    if (segment_.mapping != nullptr) {
        auto made = segment_duplex(segment_, window, config_.dialer ? 0 : 1, fresh);
        if (made) shared_ = std::move(*made);
        problem = made.error();
    }
    if (!shared_) hub_.context().log(MUSTER_LOG_WARN, "%s: %s", setup_.what.c_str(), problem.message);
    return static_cast<bool>(shared_);
}

// The listener, on a Unix socket. True: sent.
bool HandshakeDriver::send_segment() {
    if (!shared_ && !make_own_segment()) {
        segment_sent_ = true;
        output_ += Handshake::segment_message(0);
        return true;
    }
    const ssize_t n =
        muster::send_segment(fd_.get(), Handshake::segment_message(handshake_.agreement().shared_window), segment_);
    if (n == -EAGAIN) return false;
    segment_sent_ = true;
    if (n < 0) {
        fail(Error::from_errno(static_cast<int>(-n), MUSTER_E_PEER, "the connection broke during the handshake"));
        return false;
    }
    // A Unix socket accepts so few bytes completely.
    return true;
}

void HandshakeDriver::token_shown(Fd socket) noexcept {
    if (!handshake_.want_send_segment() || std::exchange(segment_sent_, true) || !make_own_segment()) return;
    muster::send_segment(socket.get(), Handshake::segment_message(handshake_.agreement().shared_window), segment_);
}

// For a dialer whose connection cannot pass descriptors: fetches them from the Unix socket that the listener has named.
void HandshakeDriver::begin_fetch() {
    const DescriptorOffer &offer = handshake_.agreement().offer;
    hub_.start_timer(fetch_limit_, now_ns() + out_of_band_timeout_ns);
    Fd fd = DescriptorChannel::connect(offer, config_.host.user);
    if (!fd || !hub_.add(fd.get(), EPOLLIN | EPOLLRDHUP, *this)) return segment_taken(false);
    fetch_socket_ = std::move(fd);
}

void HandshakeDriver::fetch_too_late() noexcept {
    if (!fd_ || !handshake_.want_segment()) return;
    guarded([this] {
        segment_taken(false);
        progress();
    });
}

void HandshakeDriver::segment_taken(bool ok) {
    if (fetch_socket_) hub_.remove(fetch_socket_.get(), *this);
    fetch_socket_.reset();
    status_ = handshake_.paired(ok);
}

// The dialer: the message with the descriptors, or none.
void HandshakeDriver::receive_segment_message() {
    const int socket = fetch_socket_ ? fetch_socket_.get() : fd_.get();
    while (segment_text_.size() < Handshake::segment_message_bytes()) {
        unsigned char buffer[64];
        const ssize_t n = DescriptorChannel::receive(
            socket, buffer, Handshake::segment_message_bytes() - segment_text_.size(), fds_, segment_descriptors);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            if (!fetch_socket_) return fail(Error::make(MUSTER_E_PEER, "the other side hung up during the handshake"));
            break; // it does not share memory after all
        }
        segment_text_.append(reinterpret_cast<char *>(buffer), static_cast<size_t>(n));
    }
    uint64_t window = 0;
    const auto *text = reinterpret_cast<const unsigned char *>(segment_text_.data());
    bool ok = segment_text_.size() == Handshake::segment_message_bytes() &&
              Handshake::read_segment_message(text, window) && window == handshake_.agreement().shared_window;
    if (ok) {
        auto taken = take_segment(fds_, Duplex::shared_bytes(window));
        if (taken) segment_ = std::move(*taken);
        ok = lay_out(taken.error(), window, false);
    }
    segment_taken(ok);
}

// ---- the end --------------------------------------------------------------------------------------------------------

void HandshakeDriver::complete() {
    const Agreement &agreed = handshake_.agreement();
    if (setup_.bare) return hand_over();
    Ref<Duplex> duplex;
    const int side = agreed.paired && !config_.dialer ? 1 : 0;
    if (agreed.paired) {
        if (!shared_) return fail(Error::make(MUSTER_E_PROTOCOL, "the other side says it shares memory, and does not"));
        duplex = std::move(shared_);
    } else {
        duplex = Duplex::make_private(setup_.window);
    }
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    if (setup_.unix_socket) take_descriptors(fd_.get(), false);
    auto link = make_ref<Link>(hub_, std::move(duplex), side, agreed, setup_.window, setup_.peer, std::move(fd_));
    Ref<Stream> stream = link->make_stream(agreed.hello);
    link->begin();
    ContextCounters &counters = hub_.context().counters;
    counters.handshakes_ok.fetch_add(1, std::memory_order_relaxed);
    counters.handshake_time.observe(now_ns() - since_);
    if (agreed.paired && !config_.shared) counters.upgrades.fetch_add(1, std::memory_order_relaxed);
    hub_.context().log(MUSTER_LOG_INFO, "%s: linked%s%s", setup_.peer.c_str(), agreed.sealed ? ", sealed" : "",
                       agreed.paired ? ", by shared memory" : "");
    finish(std::move(stream));
}

void HandshakeDriver::hand_over() {
    ProvedSocket socket{{}, handshake_.agreement(), setup_.peer};
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    socket.fd = std::move(fd_);
    hub_.context().counters.handshakes_ok.fetch_add(1, std::memory_order_relaxed);
    hub_.context().counters.handshake_time.observe(now_ns() - since_);
    const Ref<HandshakeDriver> self(this);
    HandshakeOwner *const owner = std::exchange(owner_, nullptr);
    const Ref<Object> alive = std::move(owner_alive_);
    stop();
    if (owner != nullptr) owner->proved(*this, std::move(socket));
}

void HandshakeDriver::fail(const Error &why) noexcept {
    if (owner_ == nullptr) return;
    if (lingers()) return finish(why_not_);
    Error full = Error::make(why.status, "%s: %s", setup_.what.c_str(), why.message);
    full.os_errno = why.os_errno;
    if (why.status != MUSTER_E_CANCELED) {
        hub_.context().counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
        if (!displaced_) hub_.context().log(MUSTER_LOG_WARN, "%s", full.message); // the listener reports those together
    }
    if (!refuses_ || !output_.empty()) return finish(full);
    why_not_ = full;
    linger();
}

// When a socket is closed with unread bytes, the kernel resets the connection, and the peer loses the refusal if it has
// not read it yet. So the bytes are read until the peer hangs up.
void HandshakeDriver::linger() noexcept {
    shutdown(fd_.get(), SHUT_WR);
    hub_.start_timer(limit_, now_ns() + refusal_linger_ns);
    drain();
}

void HandshakeDriver::drain() noexcept {
    unsigned char buffer[4096];
    for (;;) {
        const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n > 0) drained_ += static_cast<size_t>(n);
        if (n <= 0 || drained_ > max_drained_bytes) return finish(why_not_);
    }
}

// The received bytes are read and dropped, so that closing the socket does not discard the refusal.
void HandshakeDriver::displace() noexcept {
    if (output_.empty() && !lingers()) {
        unsigned char buffer[1024];
        [[maybe_unused]] ssize_t n = recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        const std::string text = Handshake::refusal_message(Refusal::busy); // so short that it needs no memory
        n = send(fd_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    displaced_ = true;
    fail(Error::make(MUSTER_E_LIMIT, "made place for a newer connection: too many have not proved themselves"));
}

void HandshakeDriver::finish(Result<Ref<Stream>> result) noexcept {
    const Ref<HandshakeDriver> self(this);
    HandshakeOwner *const owner = std::exchange(owner_, nullptr);
    const Ref<Object> alive = std::move(owner_alive_);
    stop();
    if (owner != nullptr) owner->handshake_ended(*this, std::move(result));
}

void HandshakeDriver::stop() noexcept {
    owner_ = nullptr;
    const Ref<Object> alive = std::move(owner_alive_); // callers hold a reference to this
    hub_.stop_timer(limit_);
    hub_.stop_timer(fetch_limit_);
    context_->forget_closing(closing_);
    if (!config_.dialer && handshake_.agreement().pairing == Passing::out_of_band)
        DescriptorChannel::of(hub_).withdraw(handshake_.agreement().offer);
    if (fetch_socket_) hub_.remove(fetch_socket_.get(), *this);
    fetch_socket_.reset();
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    fd_.reset();
}

} // namespace muster
