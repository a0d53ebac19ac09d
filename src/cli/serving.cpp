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
#include <utility>

namespace serving {

std::vector<cli::Option> Options::known(std::vector<cli::Option> own) {
    own.push_back(cli::secret_file());
    own.push_back(cli::number("ready-fd", ready_fd, 0, INT32_MAX));
    own.push_back(cli::seconds("stats", stats_ns, 0.1, 86400));
    own.push_back(cli::log_level(log_level));
    return own;
}

void Publishing::begin(const char *program, muster_context *context, const std::string &store_url) {
    muster_error error{};
    if (muster_store_open(context, store_url.data(), store_url.size(), nullptr, 3'000'000'000, &store_, &error) !=
            MUSTER_OK ||
        muster_metrics_publish(context, store_, nullptr, &metrics_, &error) != MUSTER_OK)
        fprintf(stderr, "%s: metrics are not published: %s\n", program, error.message);
}

void Publishing::end() {
    muster_metrics_release(std::exchange(metrics_, nullptr));
    muster_store_release(std::exchange(store_, nullptr));
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

void until_signal(const char *who, muster_queue *log, int log_fd, int signals, int64_t every_ns,
                  const std::function<bool(bool wanted)> &print, const std::function<void()> &on_usr2) {
    const int wait_ms = every_ns > 0 ? static_cast<int>(every_ns / 1'000'000) : -1;
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
