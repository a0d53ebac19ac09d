// SPDX-License-Identifier: MIT
#include "store/server/session.hpp"

#include "base/uncancelled.hpp"
#include "store/server/server.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace muster {

namespace {
constexpr size_t pause_bytes = 1 << 20; // unread answers: no further requests are read
constexpr size_t send_bytes = 8 << 10;  // answers that are sent while further requests are processed
constexpr size_t max_unsent = 64 << 20; // waiting requests may still be answered, up to here
constexpr int max_reads = 4;            // in a row: others have their turn, too

// A client that has disappeared silently, and does not wait for anything, is detected by the kernel.
void watch_for_vanishing(int fd) noexcept {
    const int on = 1, idle_s = 60, between_s = 15, count = 4;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}
} // namespace

// ---- the session ----------------------------------------------------------------------------------------------------

void StoreSession::start_leaving(int64_t at_ns) noexcept {
    server_.hub().start_timer(leaving_, at_ns);
}
void StoreSession::stop_leaving() noexcept {
    server_.hub().stop_timer(leaving_);
}
void StoreSession::forgotten() noexcept {
    if (server_.serves()) return server_.forget(*this);
    start_leaving(now_ns() + 1'000'000'000); // later
}

// ---- the connection -------------------------------------------------------------------------------------------------

StoreConnection::StoreConnection(StoreServer &server, ProvedSocket socket)
    : server_(&server), fd_(std::move(socket.fd)), peer_(std::move(socket.peer)) {
    reader_.start(socket.agreed);
    writer_.start(socket.agreed);
}

void StoreConnection::start() noexcept {
    watch_for_vanishing(fd_.get());
    server_->hub().start_timer(hello_timer_, now_ns() + server_->context().settings.handshake_timeout_ns);
    if (auto added = server_->hub().add(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this); !added) {
        fd_.reset();
        shut("it could not be watched");
    }
}

void StoreConnection::shut(const char *why) noexcept {
    const Ref<StoreConnection> self(this);
    server_->hub().stop_timer(hello_timer_);
    if (fd_) {
        server_->hub().remove(fd_.get(), *this);
        fd_.reset();
    }
    writer_.clear();
    if (!List<StoreConnection>::holds(*this)) return;
    if (*why != '\0') server_->context().log(MUSTER_LOG_WARN, "store: %s: %s", peer_.c_str(), why);
    server_->lost(*this);
}

void StoreConnection::on_events(uint32_t epoll_events) noexcept {
    const Ref<StoreConnection> self(this);
    if (!fd_) return;
    if ((epoll_events & EPOLLOUT) && !writer_.empty()) send_all();
    if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true; // reported once
    if (over() || ((paused_ || server_->clogged()) && has_enough())) return;
    paused_ = false;
    read_some();
    server_->flush();
}

size_t StoreConnection::unsent() const noexcept {
    return writer_.unsent() + (session != nullptr ? session->held_bytes : 0);
}
bool StoreConnection::has_enough() const noexcept {
    return unsent() > pause_bytes || server_->clogged();
}
bool StoreConnection::drowns() noexcept {
    return drowned_ = drowned_ || unsent() > max_unsent;
}

void StoreConnection::look_again() noexcept {
    if (fd_) server_->hub().modify(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this);
}

void StoreConnection::read_some() noexcept {
    Hub &hub = server_->hub();
    for (int i = 0; i < max_reads; i++) {
        const bool rested = reader_.rests(); // bytes that were read before come first
        const ssize_t n = rested ? 0 : uncancelled::receive(fd_.get(), hub.staging(), Hub::staging_bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0 && !rested) return shut("");
        if (session != nullptr) session->heard_ns = now_ns();
        bool fine = false;
        try {
            fine = rested ? reader_.go_on(*this) : reader_.feed(hub.staging(), static_cast<size_t>(n), *this);
        } catch (const std::bad_alloc &) {
            return shut("out of memory for what it asks");
        }
        if (over()) return;
        if (!fine) {
            server_->count_refused();
            return shut(*reader_.why() != '\0' ? reader_.why() : "what it says makes no sense");
        }
        if (has_enough()) send_all();
        if (over()) return;
        if (has_enough()) {
            paused_ = true;
            return;
        }
        if (!rested && n < static_cast<ssize_t>(Hub::staging_bytes) && !hung_up_)
            return; // an edge follows if there are more bytes
    }
    hub.modify(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this);
}

bool StoreConnection::take_record(const StoreHead &head, std::string_view body) {
    const bool fine = server_->take(*this, head, body);
    if (session != nullptr && hello_timer_.running()) server_->hub().stop_timer(hello_timer_);
    if (fine && !over() && !stuck_ && writer_.unsent() > send_bytes) send_all();
    return fine && !over();
}

void StoreConnection::send_all() noexcept {
    if (!fd_) return;
    const int why = writer_.send(fd_.get());
    stuck_ = why == EAGAIN; // until there is room again
    if (drowned_) {
        server_->count_refused();
        return shut("it does not take its answers");
    }
    if (why != 0 && why != EAGAIN) return shut("");
    if (paused_ && !has_enough()) // an edge, to read on
        server_->hub().modify(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *this);
}

} // namespace muster
