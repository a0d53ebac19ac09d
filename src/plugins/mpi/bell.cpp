// SPDX-License-Identifier: MIT
#include "bell.hpp"

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
constexpr size_t word_bytes = 16;
constexpr int silence_s = 30;
constexpr int64_t pause_ns = 100'000'000; // of a door, without descriptors
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
    set(IPPROTO_TCP, TCP_NODELAY, 1); // (all of them do nothing on a Unix socket)
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, silence_s / 3);
    set(IPPROTO_TCP, TCP_KEEPINTVL, silence_s / 6);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, silence_s * 1000);
}

muster_status Bell::connect(std::vector<Where> places, muster_error *error) {
    std::reverse(places.begin(), places.end());
    places_ = std::move(places);
    return try_next(error);
}

muster_status Bell::try_next(muster_error *error) {
    int why = ENETUNREACH;
    for (; !places_.empty(); close()) {
        const Where where = places_.back();
        places_.pop_back();
        fd_ = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd_ < 0) return refuse(error, MUSTER_E_LIMIT, "no socket: %s", strerror(errno));
        if (where.any.sa_family != AF_UNIX) tune_tcp(fd_);
        connecting_ = ::connect(fd_, &where.any, where.bytes) != 0;
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

muster_status Bell::adopt(int fd) {
    fd_ = fd;
    const muster_status status = watch();
    if (status != MUSTER_OK) close();
    return status;
}

muster_status Bell::watch() {
    write_wanted_ = connecting_;
    return host_->watch_fd(host_, fd_, MUSTER_PLUGIN_READABLE | (write_wanted_ ? MUSTER_PLUGIN_WRITABLE : 0), ready,
                           this, &watch_);
}

void Bell::close() {
    life_++;
    host_->unwatch_fd(watch_);
    watch_ = nullptr;
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Bell::greet(const Greeting &greeting) {
    greeting_.assign(reinterpret_cast<const char *>(&greeting), sizeof greeting); // for the next place, too
    out_ = greeting_;
    write();
}

void Bell::say(Word word, uint64_t value) {
    values_[static_cast<int>(word)] = value;
    due_ |= 1u << static_cast<int>(word);
    write();
}

// What fails here is noticed by reading.
void Bell::write() {
    if (fd_ < 0 || connecting_) return;
    for (;;) {
        if (out_.empty() && !greeting_.empty()) {
            for (uint32_t word = 0; word < static_cast<uint32_t>(Word::count); word++) {
                if (!(due_ & 1u << word)) continue;
                unsigned char bytes[word_bytes] = {};
                memcpy(bytes, &word, sizeof word);
                memcpy(bytes + 8, &values_[word], 8);
                out_.append(reinterpret_cast<char *>(bytes), sizeof bytes);
            }
            due_ = 0;
        }
        if (out_.empty()) break;
        const ssize_t sent = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break;
        out_.erase(0, static_cast<size_t>(sent));
    }
    const bool wanted = !out_.empty();
    if (wanted == write_wanted_) return;
    write_wanted_ = wanted;
    host_->change_fd(watch_, MUSTER_PLUGIN_READABLE | (wanted ? MUSTER_PLUGIN_WRITABLE : 0));
}

void Bell::ready(void *self, uint32_t events) {
    Bell &bell = *static_cast<Bell *>(self);
    if (bell.connecting_) {
        int why = 0;
        socklen_t bytes = sizeof why;
        if (getsockopt(bell.fd_, SOL_SOCKET, SO_ERROR, &why, &bytes) != 0) why = errno;
        if (why != 0) {
            bell.close();
            if (bell.try_next(nullptr) != MUSTER_OK) return bell.owner_.hung_up(why);
            bell.out_ = bell.greeting_;
            return bell.write();
        }
        if (!(events & MUSTER_PLUGIN_WRITABLE)) return;
        bell.connecting_ = false;
        bell.write_wanted_ = false;
        bell.host_->change_fd(bell.watch_, MUSTER_PLUGIN_READABLE);
    }
    const unsigned life = bell.life_;
    if (events & MUSTER_PLUGIN_WRITABLE) bell.write();
    if (life == bell.life_ && (events & (MUSTER_PLUGIN_READABLE | MUSTER_PLUGIN_HANGUP))) bell.read();
}

void Bell::look() {
    if (fd_ >= 0 && !connecting_) read();
    if (fd_ >= 0 && !connecting_) read(); // a hang-up behind the last word
}

void Bell::read() {
    const unsigned life = life_;
    for (int round = 0; round < 16; round++) { // others have their turn, too
        unsigned char bytes[1024];
        const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) return owner_.hung_up(got < 0 ? errno : 0);
        for (size_t at = 0; at < static_cast<size_t>(got);) {
            const size_t whole = greeted_ ? word_bytes : sizeof(Greeting);
            const size_t bytes_now = std::min(whole - have_, static_cast<size_t>(got) - at);
            memcpy(in_ + have_, bytes + at, bytes_now);
            have_ += bytes_now, at += bytes_now;
            if (have_ < whole) break;
            have_ = 0;
            if (!greeted_) {
                Greeting greeting;
                memcpy(&greeting, in_, sizeof greeting);
                greeted_ = true;
                owner_.greeted(greeting);
            } else {
                uint32_t word;
                uint64_t value;
                memcpy(&word, in_, sizeof word);
                memcpy(&value, in_ + 8, sizeof value);
                if (word >= static_cast<uint32_t>(Word::count)) return owner_.hung_up(EPROTO);
                owner_.heard(static_cast<Word>(word), value);
            }
            if (life != life_) return; // the owner has closed it
        }
        if (static_cast<size_t>(got) < sizeof bytes) return; // a hang-up makes it readable again
    }
}

// ---- doors
// -----------------------------------------------------------------------------------------------------------

muster_status Door::open(const Where &where, muster_error *error) {
    const int fd = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return refuse(error, MUSTER_E_LIMIT, "no socket: %s", strerror(errno));
    if (bind(fd, &where.any, where.bytes) != 0) {
        const int why = errno;
        ::close(fd);
        return refuse(error, MUSTER_E_SYSTEM, "bind: %s", strerror(why));
    }
    return open(fd, error);
}

muster_status Door::open(int bound_socket, muster_error *error) {
    fd_ = bound_socket;
    if (listen(fd_, 1024) == 0 &&
        host_->watch_fd(host_, fd_, MUSTER_PLUGIN_READABLE, ready, this, &watch_) == MUSTER_OK)
        return MUSTER_OK;
    const int why = errno;
    close();
    return refuse(error, MUSTER_E_SYSTEM, "listen: %s", strerror(why));
}

void Door::close() {
    host_->stop_timer(std::exchange(pause_, nullptr));
    host_->unwatch_fd(watch_);
    watch_ = nullptr;
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

// Whoever waits stays there, and would make the socket readable all the time.
void Door::pause() {
    const auto over = [](void *self) {
        Door &door = *static_cast<Door *>(self);
        door.host_->stop_timer(std::exchange(door.pause_, nullptr));
        door.host_->change_fd(door.watch_, MUSTER_PLUGIN_READABLE);
    };
    if (host_->start_timer(host_, pause_ns, 0, over, this, &pause_) == MUSTER_OK) host_->change_fd(watch_, 0);
}

void Door::ready(void *self, uint32_t) {
    Door &door = *static_cast<Door *>(self);
    for (int round = 0; round < 16 && door.fd_ >= 0; round++) {
        const int fd = accept4(door.fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) return door.pause();
        if (fd < 0) return;
        tune_tcp(fd);
        if (same_user(fd))
            door.visitor_(door.self_, fd);
        else
            ::close(fd);
    }
}

} // namespace mpi
