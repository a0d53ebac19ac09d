// SPDX-License-Identifier: MIT
#include "control_socket.hpp"

#include "error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace mpi {

namespace {
constexpr size_t control_bytes = 16;
constexpr int silence_s = 30;
constexpr int64_t pause_ns = 100'000'000; // of a listener when no descriptors are left
} // namespace

bool same_user(int fd) {
    ucred who{};
    socklen_t bytes = sizeof who;
    sockaddr_storage name{};
    socklen_t name_bytes = sizeof name;
    if (getsockname(fd, reinterpret_cast<sockaddr *>(&name), &name_bytes) != 0) return false;
    if (name.ss_family != AF_UNIX) return true;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == geteuid();
}

void tune_tcp(int fd) {
    const auto set = [fd](int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); };
    set(IPPROTO_TCP, TCP_NODELAY, 1); // these have no effect on a Unix socket
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, silence_s / 3);
    set(IPPROTO_TCP, TCP_KEEPINTVL, silence_s / 6);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, silence_s * 1000);
}

muster_status ControlSocket::connect(std::vector<SocketName> names, muster_error *error) {
    std::reverse(names.begin(), names.end());
    names_ = std::move(names);
    return try_next(error);
}

muster_status ControlSocket::try_next(muster_error *error) {
    int why = ENETUNREACH;
    for (; !names_.empty(); close()) {
        const SocketName name = names_.back();
        names_.pop_back();
        fd_ = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd_ < 0) return refuse(error, MUSTER_E_LIMIT, "no socket: %s", strerror(errno));
        if (name.any.sa_family != AF_UNIX) tune_tcp(fd_);
        connecting_ = ::connect(fd_, &name.any, name.bytes) != 0;
        if (connecting_ && errno != EINPROGRESS) {
            why = errno;
            continue;
        }
        if (!connecting_ && !same_user(fd_)) {
            why = EACCES;
            continue;
        }
        return watch();
    }
    if (error != nullptr) error->os_errno = why;
    return refuse(error, MUSTER_E_UNREACHABLE, "%s", strerror(why));
}

muster_status ControlSocket::adopt(int fd) {
    fd_ = fd;
    const muster_status status = watch();
    if (status != MUSTER_OK) close();
    return status;
}

muster_status ControlSocket::watch() {
    write_wanted_ = connecting_;
    return host_->watch_fd(host_, fd_, MUSTER_PLUGIN_READABLE | (write_wanted_ ? MUSTER_PLUGIN_WRITABLE : 0), ready,
                           this, &watch_);
}

void ControlSocket::close() {
    life_++;
    host_->unwatch_fd(watch_);
    watch_ = nullptr;
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void ControlSocket::send_hello(const Hello &hello) {
    hello_.assign(reinterpret_cast<const char *>(&hello), sizeof hello); // repeated at the next address
    out_ = hello_;
    write();
}

void ControlSocket::send(Control word, uint64_t value) {
    values_[static_cast<int>(word)] = value;
    due_ |= 1u << static_cast<int>(word);
    write();
}

// read() notices failures.
void ControlSocket::write() {
    if (fd_ < 0 || connecting_) return;
    for (;;) {
        if (out_.empty() && !hello_.empty()) {
            for (uint32_t word = 0; word < static_cast<uint32_t>(Control::count); word++) {
                if (!(due_ & 1u << word)) continue;
                unsigned char bytes[control_bytes] = {};
                memcpy(bytes, &word, sizeof word);
                memcpy(bytes + 8, &values_[word], 8);
                out_.append(reinterpret_cast<char *>(bytes), sizeof bytes);
            }
            due_ = 0;
        }
        if (out_.empty()) break;
        const ssize_t sent = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break;
        out_.erase(0, static_cast<size_t>(sent));
    }
    const bool wanted = !out_.empty();
    if (wanted == write_wanted_) return;
    write_wanted_ = wanted;
    host_->change_fd(watch_, MUSTER_PLUGIN_READABLE | (wanted ? MUSTER_PLUGIN_WRITABLE : 0));
}

void ControlSocket::ready(void *self, uint32_t events) {
    ControlSocket &control = *static_cast<ControlSocket *>(self);
    if (control.connecting_) {
        int why = 0;
        socklen_t bytes = sizeof why;
        if (getsockopt(control.fd_, SOL_SOCKET, SO_ERROR, &why, &bytes) != 0) why = errno;
        if (why != 0) {
            control.close();
            if (control.try_next(nullptr) != MUSTER_OK) return control.owner_.on_closed(why);
            control.out_ = control.hello_;
            return control.write();
        }
        if (!(events & MUSTER_PLUGIN_WRITABLE)) return;
        control.connecting_ = false;
        control.write_wanted_ = false;
        control.host_->change_fd(control.watch_, MUSTER_PLUGIN_READABLE);
    }
    const unsigned life = control.life_;
    if (events & MUSTER_PLUGIN_WRITABLE) control.write();
    if (life == control.life_ && (events & (MUSTER_PLUGIN_READABLE | MUSTER_PLUGIN_HANGUP))) control.read();
}

void ControlSocket::receive() {
    if (fd_ >= 0 && !connecting_) read();
    if (fd_ >= 0 && !connecting_) read(); // an end that follows the last message
}

void ControlSocket::read() {
    const unsigned life = life_;
    for (int round = 0; round < 16; round++) { // bounded, for the other descriptors of the loop
        unsigned char bytes[1024];
        const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) return owner_.on_closed(got < 0 ? errno : 0);
        for (size_t at = 0; at < static_cast<size_t>(got);) {
            const size_t whole = hello_received_ ? control_bytes : sizeof(Hello);
            const size_t bytes_now = std::min(whole - have_, static_cast<size_t>(got) - at);
            memcpy(in_ + have_, bytes + at, bytes_now);
            have_ += bytes_now, at += bytes_now;
            if (have_ < whole) break;
            have_ = 0;
            if (!hello_received_) {
                Hello hello;
                memcpy(&hello, in_, sizeof hello);
                hello_received_ = true;
                owner_.on_hello(hello);
            } else {
                uint32_t word;
                uint64_t value;
                memcpy(&word, in_, sizeof word);
                memcpy(&value, in_ + 8, sizeof value);
                if (word >= static_cast<uint32_t>(Control::count)) return owner_.on_closed(EPROTO);
                owner_.on_control(static_cast<Control>(word), value);
            }
            if (life != life_) return; // closed by the owner
        }
        if (static_cast<size_t>(got) < sizeof bytes) return; // an end makes it readable again
    }
}

// ---- listeners ------------------------------------------------------------------------------------------------------

muster_status ControlListener::open(const SocketName &name, muster_error *error) {
    const int fd = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return refuse(error, MUSTER_E_LIMIT, "no socket: %s", strerror(errno));
    if (bind(fd, &name.any, name.bytes) != 0) {
        const int why = errno;
        ::close(fd);
        return refuse(error, MUSTER_E_SYSTEM, "bind: %s", strerror(why));
    }
    return open(fd, error);
}

muster_status ControlListener::open(int bound_socket, muster_error *error) {
    fd_ = bound_socket;
    if (listen(fd_, 1024) == 0 &&
        host_->watch_fd(host_, fd_, MUSTER_PLUGIN_READABLE, ready, this, &watch_) == MUSTER_OK)
        return MUSTER_OK;
    const int why = errno;
    close();
    return refuse(error, MUSTER_E_SYSTEM, "listen: %s", strerror(why));
}

void ControlListener::close() {
    host_->stop_timer(std::exchange(pause_, nullptr));
    host_->unwatch_fd(watch_);
    watch_ = nullptr;
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

// Connections wait in the backlog, and would make the socket readable all the time.
void ControlListener::pause() {
    const auto over = [](void *self) {
        ControlListener &listener = *static_cast<ControlListener *>(self);
        listener.host_->stop_timer(std::exchange(listener.pause_, nullptr));
        listener.host_->change_fd(listener.watch_, MUSTER_PLUGIN_READABLE);
    };
    if (host_->start_timer(host_, pause_ns, 0, over, this, &pause_) == MUSTER_OK) host_->change_fd(watch_, 0);
}

void ControlListener::ready(void *self, uint32_t) {
    ControlListener &listener = *static_cast<ControlListener *>(self);
    for (int round = 0; round < 16 && listener.fd_ >= 0; round++) {
        const int fd = accept4(listener.fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            return listener.pause();
        if (fd < 0) return;
        tune_tcp(fd);
        if (same_user(fd))
            listener.on_accept_(listener.self_, fd);
        else
            ::close(fd);
    }
}

} // namespace mpi
