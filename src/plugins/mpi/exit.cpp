// SPDX-License-Identifier: MIT
#include "exit.hpp"

#include "control_socket.hpp"
#include "node.hpp"
#include "vendor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace mpi {

namespace {
Node *exiting_node;          // set once, before atexit()
pid_t owner;                 // a forked child has nothing to finalise
int listeners[2] = {-1, -1}; // rank 0: for this host and for others
int line = -1;               // the others: to rank 0
std::vector<int> lines;      // rank 0: to the others, when all have arrived
constexpr char here = 'E', go = 'G', done = 'D';
constexpr int settle_ms = 10'000;
constexpr size_t token_bytes = sizeof RankInfo::token;

bool write_all(int fd, const void *data, size_t bytes) {
    const auto *at = static_cast<const char *>(data);
    while (bytes != 0) {
        const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent, bytes -= static_cast<size_t>(sent);
    }
    return true;
}

bool send_all(char word) {
    bool well = true;
    for (const int fd : lines) well = write_all(fd, &word, 1) && well;
    return well;
}
} // namespace

void ExitBarrier::begin(Node &node) {
    exiting_node = &node;
    owner = getpid();
    atexit(at_exit);
}

void ExitBarrier::open(Node &node) {
    if (!node.ours_ || node.rank_ != 0) return;
    const SocketName name = node.own_name("exit");
    listeners[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listeners[0] >= 0 &&
        (bind(listeners[0], &name.any, name.bytes) != 0 || listen(listeners[0], node.size_) != 0)) {
        ::close(listeners[0]);
        listeners[0] = -1;
    }
}

void ExitBarrier::ranks_known(Node &node) {
    if (node.rank_ == 0) {
        listeners[1] = node.exit_socket_;
        return;
    }
    const bool near = node.is_local(0);
    for (const SocketName &name : node.exit_names()) {
        line = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (line < 0) continue;
        if (!near) tune_tcp(line);
        unsigned char words[token_bytes + 1];
        memcpy(words, node.info(0).token, token_bytes);
        if (connect(line, &name.any, name.bytes) == 0 && write_all(line, words, token_bytes)) return;
        ::close(line);
        line = -1;
    }
}

// True: all ranks are here.
bool ExitBarrier::meet(Node &node) {
    if (node.rank_ == 0) return gather(node);
    char answer = 0;
    if (line < 0 || !write_all(line, &here, 1)) return false;
    ssize_t got = 0;
    do got = recv(line, &answer, 1, 0);
    while (got < 0 && errno == EINTR);
    return got == 1 && answer == go;
}

bool ExitBarrier::gather(Node &node) {
    struct Visitor {
        unsigned char words[token_bytes + 1];
        size_t have = 0;
    };
    std::vector<pollfd> fds;
    std::vector<Visitor> visitors;
    for (const int listener : listeners)
        if (listener >= 0) fds.push_back({listener, POLLIN, 0}), visitors.emplace_back();
    const size_t listener_count = fds.size();
    int arrived = 1;
    while (arrived < node.size_) {
        if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return false;
        for (size_t i = 0, count = fds.size(); i < count; i++) {
            if (fds[i].revents == 0) continue;
            if (i < listener_count) {
                const int fd = accept4(fds[i].fd, nullptr, nullptr, SOCK_CLOEXEC);
                if (fd >= 0 && same_user(fd))
                    fds.push_back({fd, POLLIN, 0}), visitors.emplace_back();
                else if (fd >= 0)
                    ::close(fd);
                continue;
            }
            Visitor &visitor = visitors[i];
            const ssize_t got = recv(fds[i].fd, visitor.words + visitor.have, sizeof visitor.words - visitor.have, 0);
            const bool known = visitor.have >= token_bytes;
            if (got > 0) visitor.have += static_cast<size_t>(got);
            if (visitor.have >= token_bytes && memcmp(visitor.words, node.own_token(), token_bytes) != 0) {
                fds[i].fd = -1; // no rank
                continue;
            }
            if (got <= 0 && known) return false; // it has died; closing the connections notifies the others
            if (got <= 0 || visitor.have == sizeof visitor.words) {
                if (got > 0) arrived += visitor.words[token_bytes] == here;
                if (got > 0) fds[i].events = 0;
                if (got <= 0) fds[i].fd = -1;
            }
        }
    }
    for (size_t i = listener_count; i < fds.size(); i++)
        if (fds[i].fd >= 0) lines.push_back(fds[i].fd);
    return send_all(go);
}

// All ranks have arrived and send nothing new. True: all messages in transit have arrived.
bool ExitBarrier::settle(Node &node) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(settle_ms);
    bool sent = false, well = true;
    size_t others = 0;
    std::vector<pollfd> fds;
    if (node.rank_ == 0)
        for (const int fd : lines) fds.push_back({fd, POLLIN, 0});
    else
        fds.push_back({line, POLLIN, 0});
    while (std::chrono::steady_clock::now() < until) {
        const bool mine = node.receive_rest();
        if (mine && !sent && node.rank_ != 0) sent = write_all(line, &done, 1);
        if (::poll(fds.data(), fds.size(), 0) > 0)
            for (const pollfd &one : fds) {
                char word = 0;
                if (one.revents == 0) continue;
                if (recv(one.fd, &word, 1, 0) != 1) well = false;
                if (node.rank_ != 0 && word == go) return true;
                others += word == done;
            }
        if (!well) return false;
        if (node.rank_ == 0 && mine && others == lines.size()) return send_all(go);
        sched_yield();
    }
    return false;
}

void ExitBarrier::at_exit() {
    if (getpid() != owner) return;
    Node &node = *exiting_node;
    int finalised = 0;
    MPI_Finalized(&finalised);
    if (finalised) return;
    const bool ready = node.ready(), well = node.failure().empty();
    // No thread of the library calls MPI from here on. A thread that hangs in MPI has the lock; then nothing can be
    // done.
#ifdef MUSTER_TSAN // that of clang 14 does not see a lock that is taken by the other clock
    if (!node.lock_.try_lock_until(std::chrono::system_clock::now() + std::chrono::seconds(2))) return;
#else
    if (!node.lock_.try_lock_for(std::chrono::seconds(2))) return;
#endif
    node.fail("the process ends");
    node.lock_.unlock();
    const bool all_ours = ready && std::all_of(node.rank_infos_.begin(), node.rank_infos_.end(),
                                               [](const RankInfo &info) { return info.ours != 0; });
    if (all_ours) {
        if (!meet(node) || !well || !settle(node)) {
            lines.push_back(line); // the others need not wait either
            for (const int fd : lines)
                if (fd >= 0) ::close(fd);
            for (const int fd : listeners)
                if (fd >= 0) ::close(fd);
            return;
        }
    } else if (job_survives_deaths() || !well) {
        return; // it cannot be known which ranks are still alive
    }
    MPI_Finalize();
}

} // namespace mpi
