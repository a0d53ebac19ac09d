// SPDX-License-Identifier: MIT
#include "serving.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace serving {

std::optional<uint64_t> size_of(const std::string &text) {
    char *end = nullptr;
    errno = 0;
    const uint64_t number = strtoull(text.c_str(), &end, 10);
    if (end == text.c_str() || errno != 0 || text[0] == '-') return {};
    const std::string unit = end;
    if (unit.empty()) return number;
    if (unit == "k") return number << 10;
    if (unit == "m") return number << 20;
    return {};
}

std::optional<int32_t> log_level_of(const std::string &text) {
    static const char *const levels[] = {"off", "error", "warn", "info", "debug"};
    for (int32_t level = 0; level < 5; level++)
        if (text == levels[level]) return level;
    return {};
}

std::string take_secret_file(const std::string &name, const char *variable) {
    if (access(name.c_str(), R_OK) != 0) return name + ": " + strerror(errno);
    setenv(variable, name.c_str(), 1);
    return {};
}

bool has_secret() {
    return getenv("MUSTER_SECRET_FILE") != nullptr || getenv("MUSTER_SECRET") != nullptr;
}

std::string Options::take(int which, const std::string &value) {
    const std::string bad = "it cannot be set to " + value;
    if (which == 'f') return take_secret_file(value);
    if (which == 'r') {
        const auto number = size_of(value);
        if (!number || *number > INT32_MAX) return bad;
        ready_fd = static_cast<int>(*number);
    } else if (which == 's') {
        stats_s = strtod(value.c_str(), nullptr);
        if (!(stats_s >= 0.1 && stats_s <= 86400)) return bad + ", only to 0.1 to 86400 seconds";
    } else {
        const auto level = log_level_of(value);
        if (!level) return bad;
        log_level = *level;
    }
    return {};
}

void raise_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

double resident_mb() {
    long pages = 0, resident = 0;
    FILE *const file = fopen("/proc/self/statm", "re");
    if (file == nullptr) return 0;
    const bool read = fscanf(file, "%ld %ld", &pages, &resident) == 2;
    fclose(file);
    return read ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6 : 0;
}

int block_signals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&wanted, number);
    sigprocmask(SIG_BLOCK, &wanted, nullptr);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

void print_log(const char *who, muster_queue *queue) {
    for (;;) {
        muster_completion completion;
        muster_error record;
        if (muster_queue_next(queue, 0, &completion, &record) != MUSTER_OK) return;
        fprintf(stderr, "%s: %s\n", who, record.message);
    }
}

void tell_ready(const char *who, const std::string &address, int ready_fd) {
    printf("listening %s\n", address.c_str());
    fflush(stdout);
    if (ready_fd < 0) return;
    const std::string line = address + "\n";
    if (write(ready_fd, line.data(), line.size()) < 0)
        fprintf(stderr, "%s: --ready-fd %d: %s\n", who, ready_fd, strerror(errno));
    close(ready_fd);
}

void until_signal(const char *who, muster_queue *log, int log_fd, int signals, double every_s,
                  const std::function<bool(bool wanted)> &print, const std::function<void()> &on_usr2) {
    const int wait_ms = every_s > 0 ? static_cast<int>(every_s * 1000) : -1;
    for (;;) {
        pollfd fds[2] = {{signals, POLLIN, 0}, {log_fd, POLLIN, 0}};
        const int ready = poll(fds, 2, wait_ms);
        print_log(who, log);
        if (!print(ready == 0)) return;
        signalfd_siginfo signal{};
        if (ready <= 0 || (fds[0].revents & POLLIN) == 0 || read(signals, &signal, sizeof signal) != sizeof signal)
            continue;
        if (signal.ssi_signo == SIGUSR2) {
            if (on_usr2) on_usr2();
        } else if (signal.ssi_signo == SIGUSR1) {
            print(true);
        } else {
            return;
        }
    }
}

} // namespace serving
