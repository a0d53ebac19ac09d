// SPDX-License-Identifier: MIT
#include "server.hpp"

#include "keys.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace star {

namespace {

constexpr uint64_t listener_tag = Server::own_tags;
constexpr uint64_t min_route = uint64_t{1} << 32; // lower numbers are tags
constexpr int max_events = 64, max_accepts = 64, backlog = 4096;
constexpr uint64_t flushed_at = 512 * 1024;
constexpr int64_t pause_ns = 500'000'000; // before descriptors are tried again

void set_option(int fd, int level, int option, int value) noexcept {
    setsockopt(fd, level, option, &value, sizeof value);
}

muster_status status_of(int number) noexcept {
    switch (number) {
    case EADDRINUSE:
        return MUSTER_E_EXISTS;
    case EACCES:
        return MUSTER_E_PERMISSION;
    case EADDRNOTAVAIL:
    case ENODEV:
        return MUSTER_E_UNREACHABLE;
    case EINVAL:
        return MUSTER_E_ADDRESS;
    case EMFILE:
    case ENFILE:
        return MUSTER_E_LIMIT;
    default:
        return MUSTER_E_SYSTEM;
    }
}

int listen_at(const addrinfo &at) noexcept {
    const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (at.ai_family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(fd, at.ai_addr, at.ai_addrlen) == 0 && listen(fd, backlog) == 0) return fd;
    const int number = errno;
    close(fd);
    errno = number;
    return -1;
}

// Room for `more` further elements; it grows by doubling, as push_back() does.
void make_room(std::vector<Route> &list, size_t more) {
    if (list.capacity() - list.size() >= more) return;
    list.reserve(std::max(2 * list.capacity(), list.size() + more));
}

} // namespace

Server::~Server() {
    connections_.clear();
    free_reserve();
    if (listener_ >= 0) close(listener_);
    if (epoll_ >= 0) close(epoll_);
}

muster_status Server::listen(const std::string &place, ServerConfig config, std::string &why) {
    config_ = std::move(config);
    const size_t colon = place.rfind(':');
    std::string host = place.substr(0, colon);
    const std::string port = place.substr(colon + 1);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const bool everywhere = host == "*";
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    const int failed = getaddrinfo(everywhere ? nullptr : host.c_str(), port.c_str(), &hints, &found);
    if (failed != 0) {
        errno = ENODEV;
        why = "listen at " + place + ": " + gai_strerror(failed);
        return MUSTER_E_UNREACHABLE;
    }
    errno = ENODEV;
    for (const int family : {AF_INET6, AF_INET}) // everywhere: one socket for both, where there is IPv6
        for (const addrinfo *at = found; at != nullptr && listener_ < 0; at = at->ai_next)
            if (!everywhere || at->ai_family == family) listener_ = listen_at(*at);
    const int number = errno;
    freeaddrinfo(found);
    if (listener_ < 0) {
        why = "listen at " + place + ": " + strerror(number);
        errno = number;
        return status_of(number);
    }
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    if (getsockname(listener_, reinterpret_cast<sockaddr *>(&own), &bytes) != 0) {
        why = "listen at " + place + ": its port: " + strerror(errno);
        return status_of(errno);
    }
    port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(own).sin6_port
                                            : reinterpret_cast<sockaddr_in &>(own).sin_port);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0 || !take_reserve()) {
        why = "descriptors ran out";
        return MUSTER_E_LIMIT;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = listener_tag;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event) != 0) { // no connection would be accepted
        why = "listen at " + place + ": watch the socket: " + strerror(errno);
        return status_of(errno);
    }
    return MUSTER_OK;
}

bool Server::watch(int fd, uint32_t tag, bool writable) noexcept {
    epoll_event event{};
    event.events = EPOLLIN | (writable ? EPOLLOUT : 0U);
    event.data.u64 = tag;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0 ||
           (errno == EEXIST && epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) == 0);
}

uint32_t Server::wait(int timeout_ms) noexcept {
    flush();
    close_pending();
    epoll_event ready[max_events];
    const int count = epoll_wait(epoll_, ready, max_events, timeout_ms);
    now_ns_ = now_ns();
    uint32_t tags = 0;
    for (int i = 0; i < count; i++) {
        const uint64_t tag = ready[i].data.u64;
        if (tag < listener_tag) tags |= static_cast<uint32_t>(tag);
        if (tag == listener_tag) accept_connections();
        if (tag < min_route) continue;
        const auto found = connections_.find(tag);
        if (found != connections_.end() && !found->second.is_closing) serve(found->second, ready[i].events);
        if (dirty_bytes_ >= flushed_at) flush();
    }
    flush();
    close_pending();
    return tags;
}

void Server::serve(Held &held, uint32_t events) noexcept {
    if ((events & EPOLLOUT) != 0) write(held);
    if (held.is_closing || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    if (!held.connection->read(scratch_, owner_)) close_later(held);
    if (held.connection->waiting()) write(held); // the answers of the handshake
}

// ---- accepting ------------------------------------------------------------------------------------------------------

void Server::accept_connections() noexcept {
    for (int taken = 0; taken < max_accepts; taken++) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            add(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            on_no_descriptors(errno);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

void Server::add(int fd) noexcept {
    if (full_ && reserve_[0] < 0 && early_.empty()) {
        if (!take_reserve()) { // this connection has a descriptor of the reserve, and the process has no others
            close(fd);
            return;
        }
        full_ = false;
    }
    if ((early_.size() >= config_.max_unauthenticated || connections_.size() >= config_.max_connections) &&
        !displace()) {
        close(fd);
        return;
    }
    tune_connection(fd);
    try {
        Held &held = hold(fd);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = held.connection->route();
        if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return close_later(held);
        write(held);
    } catch (const std::bad_alloc &) { // the peer connects again
    }
}

// Owns the descriptor, also if it throws.
Server::Held &Server::hold(int fd) {
    struct Descriptor {
        int fd;
        ~Descriptor() {
            if (fd >= 0) close(fd);
        }
    } descriptor{fd};
    Route route = 0;
    while (route < min_route || route == UINT64_MAX || connections_.count(route) != 0) route = random_u64();
    make_room(dirty_, connections_.size() + 1);
    make_room(closing_, connections_.size() + 1);
    Held held;
    std::unique_ptr<Curve> curve;
    if (config_.keys) curve = std::make_unique<CurveServer>(*config_.keys);
    held.connection = std::make_unique<Connection>(fd, route, ZmtpSide::server, std::move(curve), now_ns_);
    descriptor.fd = -1;
    Listed listed{route};
    held.place = listed.begin();
    Held &kept = connections_.emplace(route, std::move(held)).first->second;
    early_.splice(early_.end(), listed);
    return kept;
}

// Closes the oldest connection that is not admitted.
bool Server::displace() noexcept {
    if (early_.empty()) return false;
    close_one(early_.front());
    return true;
}

// A connection that cannot be accepted stays in the backlog, and epoll reports it again and again. So some descriptors
// are reserved, and released now to accept what waits; then the oldest silent connections are closed for new ones.
void Server::on_no_descriptors(int number) noexcept {
    failed_ns_ = now_ns_;
    if (!std::exchange(full_, true)) owner_.accept_failed(strerror(number));
    if (!displace()) free_reserve();
}

bool Server::take_reserve() noexcept {
    for (int &fd : reserve_) {
        if (fd < 0) fd = fcntl(epoll_, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) return free_reserve(), false;
    }
    return true;
}

void Server::free_reserve() noexcept {
    for (int &fd : reserve_)
        if (const int kept = std::exchange(fd, -1); kept >= 0) close(kept);
}

void Server::tick(int64_t now) noexcept {
    now_ns_ = now;
    if (full_ && now - failed_ns_ >= pause_ns && take_reserve()) full_ = false;
    while (!early_.empty()) {
        const Held &first = connections_.find(early_.front())->second;
        if (now - first.connection->since_ns < join_timeout_ns) break;
        close_one(early_.front());
    }
}

void Server::admit(Route route) noexcept {
    const auto found = connections_.find(route);
    if (found == connections_.end()) return;
    Held &held = found->second;
    held.connection->admit();
    if (std::exchange(held.is_early, false)) admitted_.splice(admitted_.end(), early_, held.place);
}

// Until it has ended, the connection counts among those that are not admitted.
void Server::hang_up(Route route) noexcept {
    const auto found = connections_.find(route);
    if (found == connections_.end()) return;
    Held &held = found->second;
    if (held.connection->queued_bytes() > max_unsent_bytes) return close_later(held); // it does not read
    held.connection->hang_up();
    held.connection->since_ns = now_ns_;
    early_.splice(early_.end(), std::exchange(held.is_early, true) ? early_ : admitted_, held.place);
    mark_dirty(*held.connection);
}

void Server::cut(Route route) noexcept {
    const auto found = connections_.find(route);
    if (found != connections_.end()) close_later(found->second);
}

Queued Server::queued(Route route) const noexcept {
    const auto found = connections_.find(route);
    if (found == connections_.end()) return {};
    const uint64_t words = found->second.connection->queued_control();
    return {found->second.connection->queued_bytes() - words, words};
}

// ---- writing --------------------------------------------------------------------------------------------------------

bool Server::send(Route route, Message &message) noexcept {
    const auto found = connections_.find(route);
    if (found == connections_.end() || found->second.is_closing) return false;
    Connection &to = *found->second.connection;
    const size_t bytes = message.size();
    try {
        to.send(message);
    } catch (const std::bad_alloc &) { // the peer would wait for it: the end of the connection is noticed
        return close_later(found->second), false;
    }
    dirty_bytes_ += bytes;
    if (to.queued_bytes() > config_.max_queue_bytes) return close_later(found->second), false;
    mark_dirty(to);
    return true;
}

void Server::mark_dirty(Connection &connection) noexcept {
    if (!std::exchange(connection.dirty, true)) dirty_.push_back(connection.route());
}

void Server::flush() noexcept {
    for (size_t i = 0; i < dirty_.size(); i++) {
        const auto found = connections_.find(dirty_[i]);
        if (found == connections_.end()) continue;
        found->second.connection->dirty = false;
        // Where the kernel's buffer was full, EPOLLOUT comes first.
        if (!found->second.is_closing && !found->second.connection->wants_out) write(found->second);
    }
    dirty_.clear();
    dirty_bytes_ = 0;
}

void Server::write(Held &held) noexcept {
    Connection &to = *held.connection;
    if (held.is_closing) return;
    if (!to.write(scratch_)) return close_later(held);
    if (to.waiting() == to.wants_out) return;
    to.wants_out = !to.wants_out;
    epoll_event event{};
    event.events = to.wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = to.route();
    if (epoll_ctl(epoll_, EPOLL_CTL_MOD, to.fd(), &event) != 0) close_later(held);
}

void Server::close_later(Held &held) noexcept {
    if (!std::exchange(held.is_closing, true)) closing_.push_back(held.connection->route());
}

void Server::close_pending() noexcept {
    for (size_t i = 0; i < closing_.size(); i++) close_one(closing_[i]); // the owner's callbacks may close others
    closing_.clear();
}

void Server::close_one(Route route) noexcept {
    const auto found = connections_.find(route);
    if (found == connections_.end()) return;
    (found->second.is_early ? early_ : admitted_).erase(found->second.place);
    const std::unique_ptr<Connection> connection = std::move(found->second.connection);
    connections_.erase(found);
    if (!connection->handshaken()) owner_.rejected();
    if (connection->spoke) owner_.gone(route);
}

void Server::drain(int64_t limit_ns) noexcept {
    const int64_t end = now_ns() + limit_ns;
    flush();
    const auto unwritten = [](const Held &held) {
        return !held.is_closing && held.connection->handshaken() && held.connection->waiting();
    };
    for (auto &[route, held] : connections_) { // nothing is read any more
        epoll_event event{};
        event.events = unwritten(held) ? EPOLLOUT : 0U;
        event.data.u64 = route;
        epoll_ctl(epoll_, event.events != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, held.connection->fd(), &event);
    }
    epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
    for (;;) {
        const int64_t left = end - now_ns();
        const bool waiting = std::any_of(connections_.begin(), connections_.end(),
                                         [&](const auto &one) { return unwritten(one.second); });
        if (!waiting || left <= 0) return;
        epoll_event ready[max_events];
        const int count = epoll_wait(epoll_, ready, max_events, static_cast<int>(left / 1'000'000 + 1));
        for (int i = 0; i < count; i++) {
            const auto found = connections_.find(ready[i].data.u64);
            if (found == connections_.end() || found->second.is_closing) continue;
            if (!found->second.connection->write(scratch_)) close_later(found->second);
            if (unwritten(found->second)) continue;
            epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.connection->fd(), nullptr);
        }
    }
}

} // namespace star
