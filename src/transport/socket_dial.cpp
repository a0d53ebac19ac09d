// SPDX-License-Identifier: MIT
#include "transport/socket_dial.hpp"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr int64_t address_timeout_ns = 2'000'000'000; // with one address while others are left
constexpr int64_t full_pause_ns = 5'000'000;          // a Unix listener's backlog is full
} // namespace

Result<bool> yes_or_no(const Address &address, const char *option, bool otherwise) {
    const std::string_view value = address.option(option);
    if (value.empty() && address.options.count(option) == 0) return otherwise;
    if (value == "yes") return true;
    if (value == "no") return false;
    return Error::make(MUSTER_E_ADDRESS, "address %s: option '%s' is neither yes nor no", address.text.c_str(), option);
}

Result<HandshakeConfig> handshake_config_for(Hub &hub, const Address &address, const TransportOptions &options,
                                             bool dialer) {
    const ContextSettings &settings = hub.context().settings;
    HandshakeConfig config;
    config.dialer = dialer;
    if (const std::string_view auth = address.option("auth"); auth == "none")
        config.auth = false;
    else if (address.options.count("auth") != 0)
        return Error::make(MUSTER_E_ADDRESS, "address %s: option 'auth' can only be none", address.text.c_str());
    config.secret = hub.secret;
    if (settings.flags & MUSTER_CONTEXT_NO_SEAL) config.seal = SealPolicy::never;
    if (settings.flags & MUSTER_CONTEXT_SEAL_ALWAYS) config.seal = SealPolicy::always;
    if (address.options.count("seal") != 0) {
        auto seal = yes_or_no(address, "seal", false);
        if (!seal) return seal.error();
        config.seal = *seal ? SealPolicy::always : SealPolicy::never;
    }
    auto upgrade = yes_or_no(address, "upgrade", (settings.flags & MUSTER_CONTEXT_NO_UPGRADE) == 0);
    if (!upgrade) return upgrade.error();
    config.upgrade = *upgrade && config.seal != SealPolicy::always && options.taker == nullptr;
    config.external = hub.context().external();
    config.window = options.window_bytes;
    config.heartbeat_ns = settings.heartbeat_ns;
    config.host = hub.host;
    config.hello = options.hello;
    if (!dialer) config.other_keys = options.other_keys;
    return config;
}

SocketDial::SocketDial(Hub &hub, const Address &address, HandshakeConfig config, SocketTaker *taker, Ref<Dial> dial)
    : hub_(hub), text_(address.text), config_(std::move(config)), taker_(taker),
      taker_alive_(taker == nullptr ? nullptr : &taker->socket_taker()), dial_(std::move(dial)) {}

bool SocketDial::wanted() noexcept {
    return dial_ && dial_->stop_by(Ref<Attempt>(this));
}

// Without memory this dial fails.
template <class Step>
void SocketDial::guarded(Step &&step) noexcept {
    const Ref<SocketDial> self(this);
    try {
        step();
    } catch (const std::bad_alloc &) {
        fail(Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
}

void SocketDial::start(std::vector<SocketAddress> addresses) noexcept {
    addresses_ = std::move(addresses);
    guarded([this] { try_next(); });
}

// The dial belongs to the loop; stop() may be called by any thread.
void SocketDial::stop() noexcept {
    if (!stop_.post(hub_.context())) dial_.reset();
}

void SocketDial::stop_here() noexcept {
    dial_.reset();
    leave_socket();
    if (const Ref<HandshakeDriver> driver = std::move(handshake_); driver) driver->stop();
}

void SocketDial::leave_socket() noexcept {
    hub_.stop_timer(timer_);
    paused_ = false;
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    fd_.reset();
}

void SocketDial::fail(const Error &why) noexcept {
    const Ref<SocketDial> self(this);
    const Ref<Dial> dial = std::move(dial_);
    leave_socket();
    if (const Ref<HandshakeDriver> driver = std::move(handshake_); driver) driver->stop();
    if (!dial) return;
    if (strncmp(why.message, "dial ", 5) == 0) return dial->done(why);
    Error full = Error::make(why.status, "dial %s: %s", text_.c_str(), why.message);
    full.os_errno = why.os_errno;
    dial->done(full);
}

void SocketDial::try_next() {
    while (dial_ && !fd_ && !handshake_ && !paused_) {
        if (next_ >= addresses_.size()) {
            Error why = Error::from_errno(last_errno_, MUSTER_OK, "dial %s", text_.c_str());
            if (last_errno_ == ENOENT) why.status = MUSTER_E_UNREACHABLE;
            return fail(why);
        }
        try_one(addresses_[next_++]);
    }
}

void SocketDial::next_turn() noexcept {
    if (!std::exchange(paused_, false)) not_this_one(ETIMEDOUT);
    guarded([this] { try_next(); });
}

void SocketDial::not_this_one(int why) noexcept {
    last_errno_ = why;
    leave_socket();
}

void SocketDial::try_one(const SocketAddress &address) {
    auto fd = open_socket(address.family());
    if (!fd) return not_this_one(fd.error().os_errno);
    fd_ = std::move(*fd);
    if (address.family() == AF_UNIX) take_descriptors(fd_.get(), true); // those of the shared memory
    int rc;
    do rc = connect(fd_.get(), address.get(), address.size);
    while (rc != 0 && errno == EINTR);
    if (rc == 0) return connected();
    if (errno == EAGAIN) { // a Unix listener with a full backlog: no event reports room
        fd_.reset();
        next_--;
        paused_ = true;
        hub_.start_timer(timer_, now_ns() + full_pause_ns);
        return;
    }
    if (errno != EINPROGRESS) return not_this_one(errno);
    if (auto added = hub_.add(fd_.get(), EPOLLOUT, *this); !added) return not_this_one(added.error().os_errno);
    registered_ = true;
    if (next_ < addresses_.size()) hub_.start_timer(timer_, now_ns() + address_timeout_ns);
}

void SocketDial::on_events(uint32_t) noexcept {
    if (!fd_ || !registered_) return;
    const Ref<SocketDial> self(this);
    int why = 0;
    socklen_t size = sizeof why;
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &why, &size) != 0) why = errno;
    const SocketAddress here = local_address(fd_.get()), there = peer_address(fd_.get());
    if (why == 0 && there.size == 0) {
        if (errno == ENOTCONN) return; // not yet
        why = errno;
    }
    // Dialling a free local port may meet itself.
    if (why == 0 && there.size == here.size && memcmp(&here.storage, &there.storage, here.size) == 0)
        why = ECONNREFUSED;
    guarded([&] {
        if (why == 0) return connected();
        not_this_one(why);
        try_next();
    });
}

void SocketDial::connected() {
    hub_.stop_timer(timer_);
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    HandshakeConfig config = config_;
    HandshakeSetup setup;
    setup.what = "dial " + text_;
    setup.peer = text_;
    setup.window = config.window;
    setup.bare = taker_ != nullptr;
    config.local = stays_on_host(fd_.get());
    if (config.local && config.upgrade) config.passing = Passing::out_of_band;
    if (peer_address(fd_.get()).family() == AF_UNIX) {
        setup.unix_socket = true;
        int32_t process = 0;
        const uint32_t user = peer_user(fd_.get(), process);
        config.passing = user == config.host.user ? Passing::in_band : Passing::none;
        if (config.shared && config.passing == Passing::none)
            return fail(Error::make(MUSTER_E_PERMISSION, "it belongs to a process of user %u", user));
    }
    handshake_ = make_ref<HandshakeDriver>(hub_, std::move(fd_), std::move(config), std::move(setup),
                                           static_cast<HandshakeOwner &>(*this));
    const Ref<HandshakeDriver> driver = handshake_;
    driver->start();
}

// The listener has displaced this connection for a newer one, as it is flooded: dial again, after a growing pause, for
// as long as the handshake could have taken.
bool SocketDial::dial_again() noexcept {
    const int64_t now = now_ns();
    if (busy_since_ == 0) busy_since_ = now;
    if (now - busy_since_ > hub_.context().settings.handshake_timeout_ns || !dial_) return false;
    handshake_.reset();
    next_--;
    paused_ = true;
    hub_.start_timer(timer_, now + back_off_.next_ns());
    return true;
}

void SocketDial::handshake_ended(HandshakeDriver &driver, Result<Ref<Stream>> result) noexcept {
    const Ref<SocketDial> self(this);
    if (!result && driver.was_busy() && dial_again()) return;
    if (!result) return fail(result.error());
    handshake_.reset();
    const Ref<Dial> dial = std::move(dial_);
    if (dial) dial->done(std::move(result));
}

void SocketDial::proved(HandshakeDriver &, ProvedSocket socket) noexcept {
    handshake_.reset();
    if (const Ref<Dial> dial = std::move(dial_); dial) taker_->take(std::move(socket));
}

} // namespace muster
