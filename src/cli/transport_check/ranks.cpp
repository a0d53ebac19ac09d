// SPDX-License-Identifier: MIT
#include "transport_check/ranks.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace check {

namespace {

int control_socket(const std::string &path, sockaddr_un &where) {
    where = {};
    where.sun_family = AF_UNIX;
    if (path.size() >= sizeof where.sun_path) fail("the folder's name is too long: %s", path.c_str());
    memcpy(where.sun_path, path.c_str(), path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail("no socket");
    return fd;
}

void say(int fd, const std::string &text) {
    const std::string all = text + "\n";
    if (send(fd, all.data(), all.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(all.size()) && errno != EPIPE)
        fail("the control socket: %s", strerror(errno));
}

// Up to the end of a line; false: the other side is gone, or the time is over.
bool read_line(int fd, std::string &text, std::string &line, int64_t timeout) {
    const int64_t until = timeout < 0 ? -1 : now_ns() + timeout;
    for (;;) {
        if (const size_t end = text.find('\n'); end != std::string::npos) {
            line = text.substr(0, end);
            text.erase(0, end + 1);
            return true;
        }
        pollfd waiting{fd, POLLIN, 0};
        const int64_t left = until < 0 ? -1 : std::max<int64_t>(0, (until - now_ns()) / ms + 1);
        if (until >= 0 && now_ns() >= until) return false;
        if (poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
        char bytes[4096];
        const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        text.append(bytes, static_cast<size_t>(got));
    }
}

std::string hex(const std::string &bytes) {
    std::string out;
    for (const char c : bytes)
        for (const int half : {(c >> 4) & 15, c & 15}) out += "0123456789abcdef"[half];
    return out;
}

std::string unhex(const std::string &text) {
    std::string out;
    for (size_t i = 0; i + 1 < text.size(); i += 2) out += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    return out;
}

// Every thread of a process has stopped.
bool has_stopped(int pid) {
    std::error_code none;
    for (const auto &task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", none)) {
        std::ifstream file(task.path() / "stat");
        std::string text;
        std::getline(file, text);
        const size_t name_end = text.rfind(')');
        if (name_end == std::string::npos || name_end + 2 >= text.size() || text[name_end + 2] != 'T') return false;
    }
    return true;
}

} // namespace

// ---- the checker
// -----------------------------------------------------------------------------------------------------

class RankPeer final : public Peer {
  public:
    RankPeer(RankPool &pool, std::unique_ptr<RankPool::Rank> rank, const std::string &secret,
             const std::string &address)
        : pool_(pool), rank_(std::move(rank)) {
        say(rank_->fd, "serve " + hex(secret) + " " + address);
        const std::string answer = RankPool::line(*rank_, time_limit);
        if (!answer.starts_with("listening ")) {
            const int pid = rank_->pid;
            end_rank();
            fail("rank with process %d: %s", pid, answer.empty() ? "says nothing" : answer.c_str());
        }
        address_ = answer.substr(10);
    }
    ~RankPeer() override {
        if (!rank_) return;
        try {
            say(rank_->fd, "stop");
            if (!stopped_ && RankPool::line(*rank_, time_limit) == "idle")
                pool_.idle_.push_back(std::move(rank_));
            else
                end_rank();
        } catch (const Failed &) {
            end_rank();
        }
    }
    std::string address() const override { return address_; }
    void signal(int number) override {
        if (kill(rank_->pid, number) != 0) fail("signalling a rank: %s", strerror(errno));
        const int64_t until = now_ns() + time_limit;
        stopped_ = number == SIGSTOP;
        if (stopped_)
            while (!has_stopped(rank_->pid) && now_ns() < until) std::this_thread::yield();
        if (number == SIGKILL) end_rank();
    }
    bool separate() const override { return true; }

  private:
    void end_rank() {
        kill(rank_->pid, SIGKILL);
        while (!RankPool::line(*rank_, time_limit).empty()) {
        } // it hangs up: now it is dead
        ::close(rank_->fd);
        rank_.reset();
    }
    RankPool &pool_;
    std::unique_ptr<RankPool::Rank> rank_;
    std::string address_;
    bool stopped_ = false;
};

int RankPool::become_checker(const std::string &folder) {
    const std::string control = folder + "/control", own = folder + "/" + std::to_string(getpid());
    sockaddr_un where;
    const int fd = control_socket(own, where);
    if (bind(fd, reinterpret_cast<sockaddr *>(&where), sizeof where) != 0 || listen(fd, 1024) != 0)
        fail("listening in %s: %s", folder.c_str(), strerror(errno));
    // The first rank gets the name, whose socket listens already.
    const bool first = link(own.c_str(), control.c_str()) == 0;
    const int why = errno;
    unlink(own.c_str());
    if (first) return fd;
    ::close(fd);
    if (why != EEXIST) fail("%s: %s", control.c_str(), strerror(why));
    return -1;
}

RankPool::~RankPool() {
    for (const auto &rank : idle_) ::close(rank->fd); // then they end
    ::close(door_);
}

std::unique_ptr<RankPool::Rank> RankPool::take() {
    const int64_t until = now_ns() + (anybody_ ? 2 * second : time_limit);
    for (;;) {
        pollfd waiting{door_, POLLIN, 0};
        const bool found = !idle_.empty();
        const int64_t left = found ? 0 : std::max<int64_t>(0, (until - now_ns()) / ms);
        if (poll(&waiting, 1, static_cast<int>(left)) > 0) {
            auto rank = std::make_unique<Rank>();
            rank->fd = accept4(door_, nullptr, nullptr, SOCK_CLOEXEC);
            if (rank->fd < 0) continue;
            const std::string hello = line(*rank, time_limit);
            if (!hello.starts_with("rank ")) fail("no rank: %s", hello.c_str());
            rank->pid = std::stoi(hello.substr(5));
            idle_.push_back(std::move(rank));
            anybody_ = true;
        } else if (found) {
            auto rank = std::move(idle_.back());
            idle_.pop_back();
            return rank;
        } else if (now_ns() >= until) {
            skip("no rank is left for it; start more");
        }
    }
}

std::string RankPool::line(Rank &rank, int64_t timeout) {
    std::string text;
    return read_line(rank.fd, rank.text, text, timeout) ? text : std::string();
}

std::unique_ptr<Peer> RankPool::start(const std::string &secret, const std::string &address) {
    return std::make_unique<RankPeer>(*this, take(), secret, address);
}

// ---- a servant
// -------------------------------------------------------------------------------------------------------

namespace {
int serve_the_checker(const Options &options) {
    sockaddr_un where;
    const int fd = control_socket(options.ranks + "/control", where);
    if (connect(fd, reinterpret_cast<sockaddr *>(&where), sizeof where) != 0)
        fail("the checker cannot be reached: %s", strerror(errno));
    say(fd, "rank " + std::to_string(getpid()));
    std::string text, line;
    while (read_line(fd, text, line, -1)) {
        std::istringstream words(line);
        std::string what, secret, address;
        words >> what >> secret >> address;
        if (what != "serve") continue;
        try {
            Host host(options, unhex(secret));
            const std::unique_ptr<Listener> listener = host.listen(address);
            std::thread server([&] { serve(host, *listener); });
            say(fd, "listening " + listener->address());
            const bool told = read_line(fd, text, line, -1); // "stop", or the checker is gone
            muster_listener_close(listener->get());
            if (!told) muster_context_close(host.context(), 0); // its streams end with it
            server.join();
            if (!told) return 0;
        } catch (const Failed &failed) {
            say(fd, "failed " + failed.text);
            continue;
        }
        say(fd, "idle");
    }
    return 0;
}
} // namespace

int run_rank(Options options) {
    try {
        // In some jobs no rank proceeds before all ranks have loaded the transport.
        const Host first(options, "of a context that only loads it");
        const std::string scheme = options.address.substr(0, options.address.find("://"));
        muster_error error{};
        expect(muster_plugin_find(first.context(), scheme.data(), scheme.size(), &error), MUSTER_OK,
               "loading the transport", &error);
        const int door = RankPool::become_checker(options.ranks);
        if (door < 0) return serve_the_checker(options);
        int status = 0;
        {
            RankPool pool(door);
            options.pool = &pool;
            status = run_all(options);
        }
        // The launcher's own status reports that ranks were killed.
        std::ofstream(options.ranks + "/status") << status << "\n";
        return status;
    } catch (const Failed &why) {
        printf("Bail out! %s\n", why.text.c_str());
        return 2;
    }
}

} // namespace check
