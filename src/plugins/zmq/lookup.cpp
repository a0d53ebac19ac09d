// SPDX-License-Identifier: MIT
#include "lookup.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <netdb.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace star {

std::shared_ptr<Lookup> Lookup::begin(const std::string &place) {
    std::shared_ptr<Lookup> lookup(new Lookup);
    const size_t colon = place.rfind(':');
    lookup->host_ = place.substr(0, colon);
    lookup->port_ = place.substr(colon + 1);
    std::string &host = lookup->host_;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if ((lookup->event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) return {};
    lookup->run(AI_NUMERICHOST);
    if (lookup->done()) return lookup;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &before); // inherited by the thread: signals are handled by the program's threads
    bool begun = true;
    try {
        std::thread([lookup] { lookup->run(0); }).detach();
    } catch (const std::exception &) { // no thread, or no memory for its start
        begun = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = EAGAIN;
    return begun ? lookup : nullptr;
}

Lookup::~Lookup() {
    if (event_ >= 0) close(event_);
}

void Lookup::run(int flags) noexcept {
    addrinfo wanted{}, *list = nullptr;
    wanted.ai_flags = flags | AI_NUMERICSERV;
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    const int code = getaddrinfo(host_.c_str(), port_.c_str(), &wanted, &list);
    if (code != 0 && flags != 0) return; // a name, not a number
    try {
        if (code != 0) error_ = code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code);
        for (const addrinfo *at = code == 0 ? list : nullptr; at != nullptr; at = at->ai_next) {
            if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
            SocketAddress address;
            memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
            address.size = at->ai_addrlen;
            found_.push_back(address);
        }
    } catch (const std::bad_alloc &) { // the ones found so far
    }
    if (list != nullptr) freeaddrinfo(list);
    done_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    while (write(event_, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

} // namespace star
