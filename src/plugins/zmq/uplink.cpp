// SPDX-License-Identifier: MIT
#include "uplink.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace star {

Uplink::Uplink(UplinkConfig config, const Keys &keys, Scratch &scratch, UplinkOwner &owner)
    : config_(std::move(config)), keys_(keys), scratch_(scratch), owner_(owner) {}

Uplink::~Uplink() {
    if (watched_ >= 0) owner_.watch_uplink(-1, false);
    if (socket_ >= 0) close(socket_);
}

muster_status Uplink::open(int64_t now_ns) {
    since_ns_ = now_ns;
    lookup_ = Lookup::begin(config_.place);
    if (!lookup_) return MUSTER_E_LIMIT;
    state_ = State::resolving;
    if (lookup_->done()) {
        lookup_done();
        return MUSTER_OK;
    }
    const muster_status status = owner_.watch_uplink(lookup_->fd(), false);
    if (status == MUSTER_OK) watched_ = lookup_->fd();
    return status;
}

// ---- the connection -------------------------------------------------------------------------------------------------

void Uplink::lookup_done() {
    addresses_ = lookup_->take();
    std::reverse(addresses_.begin(), addresses_.end());
    if (addresses_.empty()) return lose(MUSTER_E_UNREACHABLE, "its host name cannot be resolved: " + lookup_->error());
    try_next();
    if (watched_ != lookup_->fd()) lookup_.reset();
}

void Uplink::try_next() {
    state_ = State::connecting;
    while (!addresses_.empty()) {
        const SocketAddress address = addresses_.back();
        addresses_.pop_back();
        if (socket_ >= 0) {
            if (watched_ == socket_) owner_.watch_uplink(watched_ = -1, false);
            close(socket_);
        }
        socket_ = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (socket_ < 0 && (errno == EMFILE || errno == ENFILE)) return lose(MUSTER_E_LIMIT, "no descriptors are left");
        if (socket_ < 0) continue;
        tune_connection(socket_);
        if (connect(socket_, reinterpret_cast<const sockaddr *>(&address.bytes), address.size) == 0 ||
            errno == EINPROGRESS)
            return watch_again();
    }
    lose(MUSTER_E_UNREACHABLE, "connection refused");
}

void Uplink::connected() {
    std::unique_ptr<Curve> curve;
    if (config_.curve) {
        CurveClientKeys keys;
        if (!key_of_z85(config_.curve->server_public, keys.server) ||
            !key_of_z85(config_.curve->client_public, keys.open) ||
            !key_of_z85(config_.curve->client_secret, keys.secret))
            return lose(MUSTER_E_AUTH, "malformed CURVE keys");
        curve = std::make_unique<CurveClient>(keys);
    }
    connection_ = std::make_unique<Connection>(socket_, 0, ZmtpSide::client, std::move(curve), since_ns_);
    socket_ = -1; // owned by the connection
    state_ = State::welcome;
    muster::ByteWriter hello;
    hello.number(static_cast<uint8_t>(config_.broker));
    if (config_.curve && config_.curve->from_secret && !config_.broker) {
        state_ = State::joining; // CURVE proves the secret
    } else {
        hello.bytes(nonce_ = make_nonce());
        if (config_.pinned && !config_.curve) hello.bytes(check_.emplace(*config_.pinned).challenge());
    }
    send(Head{Kind::hello, 0, 0, 0}, hello.take());
}

// Watches what the state needs. If the owner cannot, the uplink is lost.
void Uplink::watch_again() {
    if (state_ == State::lost || state_ == State::closed) return;
    const int fd = connection_ ? connection_->fd() : socket_ >= 0 ? socket_ : lookup_->fd();
    const bool writable = connection_ ? connection_->waiting() : socket_ >= 0;
    if (fd == watched_ && writable == watched_writable_) return;
    watched_ = fd;
    watched_writable_ = writable;
    if (const muster_status status = owner_.watch_uplink(fd, writable); status != MUSTER_OK) {
        watched_ = -1;
        lose(status, "its descriptor cannot be watched");
    }
}

void Uplink::process() {
    if (state_ == State::resolving && lookup_->done()) return lookup_done();
    if (state_ == State::connecting) {
        pollfd ready{socket_, POLLOUT, 0};
        if (poll(&ready, 1, 0) != 1) return;
        int why = 0;
        socklen_t size = sizeof why;
        if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &why, &size) != 0) why = errno;
        if (why == ECONNRESET || why == EPIPE)
            return lose(MUSTER_E_AUTH, why_no_handshake()); // a process was listening
        if (why != 0) return try_next();
        connected();
    }
    if (!connection_ || state_ == State::lost) return;
    read();
    write();
}

void Uplink::read() {
    reading_ = true;
    const bool going_on = connection_->read(scratch_, *this);
    reading_ = false;
    if (!going_on) report_end();
}

void Uplink::write() {
    if (!connection_ || state_ == State::lost) return;
    if (!connection_->write(scratch_)) report_end();
    watch_again();
}

// Reports why the connection has ended; what was received before has been processed.
void Uplink::report_end() {
    if (state_ == State::leaving) {
        state_ = State::lost;
        return;
    }
    if (connection_->end() == Connection::End::memory) return lose(MUSTER_E_NOMEM, "out of memory");
    if (connection_->handshaken()) {
        if (connection_->end() == Connection::End::protocol)
            return lose(MUSTER_E_PROTOCOL, "malformed message of the broker");
        if (state_ == State::ready) return lose(MUSTER_E_PEER, "the broker is gone");
        return lose(MUSTER_E_UNREACHABLE, "the process there closes the connection, and is no broker");
    }
    lose(MUSTER_E_AUTH, why_no_handshake());
}

void Uplink::tick(int64_t now_ns) {
    if (state_ == State::ready || state_ >= State::leaving || now_ns - since_ns_ <= join_timeout_ns) return;
    lose(MUSTER_E_UNREACHABLE, connection_ ? "the broker does not answer" : "no connection within 5 s");
}

void Uplink::lose(muster_status status, std::string_view why) {
    if (state_ == State::lost) return;
    const bool is_reported = state_ == State::leaving;
    state_ = State::lost;
    if (!is_reported) owner_.uplink_lost(status, why);
}

std::string Uplink::why_no_handshake() const {
    if (config_.curve && config_.pinned)
        return "the process there does not prove the broker key " + hex_of(*config_.pinned).substr(0, 8) +
               "..., has another secret, or no CURVE";
    return config_.curve ? "the broker has another secret, a key that the address lacks (?broker=KEY), or no CURVE"
                         : "the broker requires CURVE, or is no broker";
}

// ---- messages -------------------------------------------------------------------------------------------------------

bool Uplink::send(Message &message) {
    if (!connection_ || state_ >= State::leaving || connection_->end() != Connection::End::none) return false;
    const bool behind = connection_->waiting(); // written when there is room
    connection_->send(message);
    if (!reading_ && !config_.broker && !behind && connection_->handshaken()) {
        connection_->write(scratch_); // process() notices a failure, as the descriptor is ready then
        watch_again();
    }
    return true;
}

// The other side waits for such a message: without it, the connection ends.
bool Uplink::send(const Head &head, std::string_view payload) {
    try {
        Message message;
        if (message.make(head, payload.data(), payload.size())) return send(message);
    } catch (const std::exception &) { // as without the message
    }
    if (state_ < State::leaving) lose(MUSTER_E_NOMEM, "out of memory");
    return false;
}

void Uplink::received(Route, Message &message) {
    if (state_ >= State::leaving) return;
    Head head;
    if (!get_head(message.data(), message.size(), head))
        return lose(MUSTER_E_PROTOCOL, "malformed message of the broker");
    const std::string_view payload(reinterpret_cast<char *>(message.data()) + head_bytes, message.size() - head_bytes);
    if (head.kind == Kind::refused) {
        const auto status = static_cast<muster_status>(head.word);
        return lose(status < 0 ? status : MUSTER_E_AUTH, "the broker refuses: " + printable(payload));
    }
    if (state_ == State::ready) return owner_.uplink_message(head, message);
    if (state_ == State::welcome && head.kind == Kind::welcome) return welcome(payload);
    if (state_ == State::joining && head.kind == Kind::ready && payload.size() == 8) {
        id_ = head.to;
        state_ = State::ready;
        connection_->admit();
        return owner_.uplink_ready(id_, get_u64(reinterpret_cast<const unsigned char *>(payload.data())));
    }
    lose(MUSTER_E_PROTOCOL, "unexpected message of the broker");
}

void Uplink::welcome(std::string_view payload) {
    muster::ByteReader from(payload);
    const bool is_open = from.number<uint8_t>() != 0;
    const auto theirs = from.array<nonce_bytes>();
    const auto shown = from.array<proof_bytes>();
    if (!from.is_complete()) return lose(MUSTER_E_PROTOCOL, "welcome of impossible length");
    if (is_open && config_.curve) return lose(MUSTER_E_AUTH, "the broker is open, without proof of the secret");
    if (check_ && !check_->verify(shown, nonce_, theirs))
        return lose(MUSTER_E_AUTH, "the process there does not prove the broker key: the address names " +
                                       hex_of(*config_.pinned).substr(0, 8) + "...");
    if (!check_ && !is_open && !equal(shown.data(), keys_.proof(true, nonce_, theirs).data(), proof_bytes))
        return lose(MUSTER_E_AUTH, "the broker has another secret");
    muster::ByteWriter answer;
    if (config_.broker)
        answer.number(config_.prefix).bytes(config_.role->below(nonce_, theirs));
    else
        answer.bytes(keys_.proof(false, nonce_, theirs));
    state_ = State::joining;
    send(Head{Kind::proof, 0, 0, 0}, answer.take());
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Uplink::leave() {
    if (state_ == State::lost) return;
    if (!connection_ || state_ != State::ready || !send(Head{Kind::bye, 0, 0, 0})) {
        state_ = State::lost;
        return;
    }
    state_ = State::leaving;
    connection_->hang_up();
    write();
}

bool Uplink::drain(int64_t limit_ns) {
    constexpr int64_t farewell_ns = 100'000'000; // for the broker's end, after everything is written
    int64_t until = now_ns() + limit_ns;
    while (connection_ && state_ != State::lost && (connection_->waiting() || state_ == State::leaving)) {
        if (!connection_->waiting()) until = std::min(until, now_ns() + farewell_ns);
        const int64_t left = until - now_ns();
        if (left <= 0) return !connection_->waiting();
        const short wanted = connection_->waiting() ? POLLIN | POLLOUT : POLLIN;
        pollfd ready{connection_->fd(), wanted, 0};
        poll(&ready, 1, static_cast<int>((left + 999'999) / 1'000'000));
        read();
        if (state_ != State::lost) write();
    }
    return true;
}

} // namespace star
