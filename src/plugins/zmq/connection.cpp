// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace star {

namespace {

constexpr size_t greeting_bytes = 64, mechanism_at = 12, mechanism_bytes = 20;
constexpr unsigned char more_flag = 1, long_flag = 2, command_flag = 4;
constexpr int max_reads = 4, max_gathered = 32;
constexpr size_t sealed_at_once = 128 * 1024, kept_out_bytes = 4096;
constexpr size_t max_pongs = 64; // messages queued before a heartbeat is left unanswered

// The beginning of a frame; its length.
size_t put_begin(unsigned char *to, unsigned char flags, size_t size) noexcept {
    if (size < 256) {
        to[0] = flags;
        to[1] = static_cast<unsigned char>(size);
        return 2;
    }
    to[0] = flags | long_flag;
    for (int i = 8; i > 0; i--, size >>= 8) to[i] = static_cast<unsigned char>(size);
    return 9;
}

constexpr char mechanisms[2][mechanism_bytes] = {"NULL", "CURVE"}; // filled up with zeros

bool would_block() noexcept {
    return errno == EAGAIN || errno == EWOULDBLOCK;
}

} // namespace

// The kernel notices a vanished host within a minute. A stopped process is not dead; the heartbeats of sessions report
// it.
void tune_connection(int fd) noexcept {
    const auto set = [fd](int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

Connection::Connection(int fd, Route route, ZmtpSide side, std::unique_ptr<Curve> curve, int64_t now_ns)
    : since_ns(now_ns), fd_(fd), route_(route), side_(side), curve_(std::move(curve)) {
    out_.assign(greeting_bytes, 0);
    out_[0] = 0xFF;
    out_[8] = 1;
    out_[9] = 0x7F;
    out_[10] = 3; // version 3.0
    memcpy(&out_[mechanism_at], mechanisms[curve_ != nullptr], mechanism_bytes);
    out_[mechanism_at + mechanism_bytes] = curve_ != nullptr && side_ == ZmtpSide::server;
}

Connection::~Connection() {
    close(fd_);
}

bool Connection::over(End end) noexcept {
    if (end_ == End::none) end_ = end;
    return false;
}

bool Connection::read(Scratch &scratch, ConnectionOwner &owner) noexcept {
    try {
        return read_some(scratch, owner);
    } catch (const std::exception &) {
        return over(End::memory);
    }
}

bool Connection::read_some(Scratch &scratch, ConnectionOwner &owner) {
    for (int i = 0; i < max_reads; i++) {
        const size_t missing = in_body_ ? body_size_ - begin_size_ : 0;
        iovec parts[2] = {{in_body_ && missing != 0 ? body_.data() + begin_size_ : nullptr, missing},
                          {scratch.in.get(), Scratch::in_bytes}};
        const ssize_t got = readv(fd_, parts, 2);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && would_block()) return true;
        if (got <= 0) return over(End::peer);
        if (hung_up_) continue;
        auto rest = static_cast<size_t>(got);
        const bool all = rest < missing + Scratch::in_bytes;
        if (missing != 0) {
            const size_t taken = std::min(missing, rest);
            begin_size_ += taken;
            rest -= taken;
            if (taken == missing) {
                in_body_ = false;
                begin_size_ = 0;
                if (!frame(body_.data(), body_size_, &body_, owner)) return false;
            }
        }
        if (rest != 0 && !parse(scratch.in.get(), rest, owner)) return false;
        if (all && !in_body_) return true;
    }
    return true;
}

bool Connection::parse(unsigned char *data, size_t size, ConnectionOwner &owner) {
    while (size != 0 && !hung_up_) {
        if (state_ == State::greeting) {
            const size_t taken = std::min(size, greeting_bytes - begin_size_);
            memcpy(begin_ + begin_size_, data, taken);
            begin_size_ += taken;
            data += taken;
            size -= taken;
            if (!greeted()) return false;
            continue;
        }
        begin_[begin_size_++] = *data++;
        size--;
        flags_ = begin_[0];
        if ((flags_ & ~(more_flag | long_flag | command_flag)) != 0) return over(End::protocol);
        if (begin_size_ < ((flags_ & long_flag) != 0 ? 9U : 2U)) continue;
        uint64_t length = 0;
        for (size_t i = 1; i < begin_size_; i++) length = length << 8 | begin_[i];
        if (length > frame_limit_ + (curve_ ? Curve::overhead : 0)) return over(End::protocol);
        begin_size_ = 0;
        body_size_ = static_cast<size_t>(length);
        if (body_size_ <= size) {
            unsigned char *const body = data;
            data += body_size_;
            size -= body_size_;
            if (!frame(body, body_size_, nullptr, owner)) return false;
            continue;
        }
        if (!body_.make(body_size_)) return over(End::memory);
        memcpy(body_.data(), data, size);
        begin_size_ = size;
        in_body_ = true;
        return true;
    }
    return true;
}

// The first wrong byte ends the connection.
bool Connection::greeted() {
    if (begin_[0] != 0xFF || (begin_size_ > 9 && (begin_[9] & 1) == 0)) return over(End::protocol);
    if (begin_size_ > 10 && begin_[10] < 3) return over(End::protocol);
    if (begin_size_ < greeting_bytes) return true;
    begin_size_ = 0;
    if (memcmp(begin_ + mechanism_at, mechanisms[curve_ != nullptr], mechanism_bytes) != 0) return over(End::protocol);
    state_ = State::handshake;
    if (!curve_) put_command("\5READY" + socket_metadata(side_));
    if (!curve_ || side_ == ZmtpSide::server) return true;
    const std::string first = curve_->first();
    if (first.empty()) return over(End::unauthenticated);
    put_command(first);
    return true;
}

void Connection::put_command(std::string_view body) {
    unsigned char begin[9];
    const size_t size = put_begin(begin, command_flag, body.size());
    out_.insert(out_.end(), begin, begin + size);
    out_.insert(out_.end(), body.begin(), body.end());
}

// `holder`: the message that owns these bytes; NULL: they are in the scratch memory.
bool Connection::frame(unsigned char *data, size_t size, Message *holder, ConnectionOwner &owner) {
    const std::string_view body(reinterpret_cast<char *>(data), size);
    if (state_ == State::handshake) return (flags_ & command_flag) != 0 ? handshake(body) : over(End::protocol);
    if (!curve_) {
        if ((flags_ & command_flag) != 0) return command(body);
        return deliver(flags_ & more_flag, body, holder, owner);
    }
    unsigned char flags = 0;
    std::string_view payload;
    if (!curve_->open(data, size, flags, payload)) return over(End::protocol);
    if ((flags & Curve::command) != 0) return command(payload);
    return deliver(flags & Curve::more, payload, nullptr, owner);
}

bool Connection::handshake(std::string_view body) {
    std::string metadata;
    if (curve_) {
        std::string reply;
        const Curve::Step step = curve_->take(body, reply, metadata);
        if (step == Curve::Step::broken) return over(End::protocol);
        if (step == Curve::Step::done && !is_valid_metadata(metadata, side_)) return over(End::protocol);
        if (!reply.empty()) put_command(reply);
        if (step == Curve::Step::unauthenticated) {
            flush_out();
            return over(End::unauthenticated);
        }
        if (step == Curve::Step::done) state_ = State::traffic;
        return true;
    }
    if (body.substr(0, 6) == "\5ERROR") return over(End::unauthenticated);
    if (body.substr(0, 6) != "\5READY" || !is_valid_metadata(body.substr(6), side_)) return over(End::protocol);
    state_ = State::traffic;
    return true;
}

// Answers the heartbeats of libzmq; other commands are ignored.
bool Connection::command(std::string_view body) {
    if (body.size() < 7 || body.substr(0, 5) != "\4PING" || queue_.size() >= max_pongs) return true;
    const std::string_view context = body.substr(7, 16);
    queue_.emplace_back();
    Outgoing &pong = queue_.back();
    pong.command = true;
    if (!pong.message.make(5 + context.size())) return over(End::memory);
    memcpy(pong.message.data(), "\4PONG", 5);
    memcpy(pong.message.data() + 5, context.data(), context.size());
    queued_ += cost(pong.message.size());
    return true;
}

bool Connection::deliver(unsigned char more, std::string_view payload, Message *holder, ConnectionOwner &owner) {
    Message message;
    if (more != 0) payload = {}; // a message of a star has one part
    if (holder != nullptr && more == 0) {
        message.take(*holder);
    } else {
        if (!message.make(payload.size())) return over(End::memory);
        if (!payload.empty()) memcpy(message.data(), payload.data(), payload.size());
    }
    spoke = true;
    owner.received(route_, message);
    return true;
}

void Connection::send(Message &message) {
    if (hung_up_) return;
    queue_.emplace_back();
    Outgoing &last = queue_.back();
    last.message.take(message);
    Head head;
    last.control = !get_head(last.message.data(), last.message.size(), head) ||
                   (head.kind != Kind::data && head.kind != Kind::group);
    queued_ += cost(last.message.size());
    if (last.control) queued_control_ += cost(last.message.size());
}

void Connection::hang_up() {
    hung_up_ = true;
    in_body_ = false;
    begin_size_ = 0;
}

bool Connection::write(Scratch &scratch) noexcept {
    if (!flush_out()) return end_ == End::none;
    if (state_ == State::traffic && !(curve_ ? flush_sealed(scratch) : flush_plain())) return end_ == End::none;
    if (hung_up_ && !waiting() && !std::exchange(shut_, true)) shutdown(fd_, SHUT_WR);
    return true;
}

// After ENOBUFS, say, the connection itself is intact and its descriptor not ready: the reader would never notice.
bool Connection::write_failed() {
    shutdown(fd_, SHUT_RDWR);
    return over(End::peer);
}

// Sealed bytes wait until there is room. Without memory for them the connection ends, as a frame has begun. False.
bool Connection::keep_out(const unsigned char *bytes, size_t size) {
    try {
        out_.assign(bytes, bytes + size);
        return false;
    } catch (const std::bad_alloc &) {
        over(End::memory);
        return write_failed();
    }
}

// These return true when everything has been written.
bool Connection::flush_out() {
    while (out_at_ < out_.size()) {
        const ssize_t put = ::send(fd_, out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return would_block() ? false : write_failed();
        out_at_ += static_cast<size_t>(put);
    }
    out_at_ = 0;
    out_.clear();
    if (out_.capacity() > kept_out_bytes) out_.shrink_to_fit();
    return true;
}

void Connection::written_one() {
    queued_ -= cost(queue_.front().message.size());
    if (queue_.front().control) queued_control_ -= cost(queue_.front().message.size());
    queue_.pop_front();
    first_at_ = 0;
}

bool Connection::flush_plain() {
    while (!queue_.empty()) {
        unsigned char begins[max_gathered][9];
        iovec parts[2 * max_gathered];
        size_t sizes[max_gathered];
        size_t count = 0, skip = first_at_;
        for (auto it = queue_.begin(); it != queue_.end() && count < max_gathered; ++it, count++) {
            const size_t size = it->message.size();
            const size_t begin = put_begin(begins[count], it->command ? command_flag : 0, size);
            sizes[count] = begin + size;
            const size_t of_begin = std::min(skip, begin), of_body = skip - of_begin;
            parts[2 * count] = {begins[count] + of_begin, begin - of_begin};
            parts[2 * count + 1] = {it->message.data() + of_body, size - of_body};
            skip = 0;
        }
        msghdr all{};
        all.msg_iov = parts;
        all.msg_iovlen = 2 * count;
        const ssize_t put = sendmsg(fd_, &all, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return would_block() ? false : write_failed();
        first_at_ += static_cast<size_t>(put);
        for (size_t i = 0; i < count && first_at_ >= sizes[i]; i++) {
            const size_t left = first_at_ - sizes[i];
            written_one();
            first_at_ = left;
        }
    }
    return true;
}

bool Connection::flush_sealed(Scratch &scratch) {
    while (!queue_.empty()) {
        unsigned char *const to = scratch.out.get();
        size_t size = 0;
        while (!queue_.empty() && size < sealed_at_once) {
            Outgoing &first = queue_.front();
            const size_t plain = first.message.size();
            if (size + plain + Curve::overhead + 9 > Scratch::out_bytes) {
                if (size != 0) break;
                return over(End::protocol); // longer than any message
            }
            size += put_begin(to + size, 0, plain + Curve::overhead);
            curve_->seal(first.command ? Curve::command : 0, {reinterpret_cast<char *>(first.message.data()), plain},
                         to + size);
            size += plain + Curve::overhead;
            written_one();
        }
        size_t done = 0;
        while (done < size) {
            const ssize_t put = ::send(fd_, to + done, size - done, MSG_NOSIGNAL);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0 && !would_block()) return write_failed();
            if (put < 0) return keep_out(to + done, size - done);
            done += static_cast<size_t>(put);
        }
    }
    return true;
}

} // namespace star
