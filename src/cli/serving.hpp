// SPDX-License-Identifier: MIT
#pragma once
// What programs that serve until a signal comes have in common.
#include <muster/queue.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace serving {

// 1048576, 1024k, 1m. Empty: none of these.
std::optional<uint64_t> size_of(const std::string &text);
// off, error, warn, info, debug. Empty: none of these.
std::optional<int32_t> log_level_of(const std::string &text);
// Sets the variable that names the file of a secret. Returns what is wrong with the file; empty: nothing.
std::string take_secret_file(const std::string &name, const char *variable = "MUSTER_SECRET_FILE");
bool has_secret(); // by file or environment

// What they can all be told.
struct Options {
    int32_t log_level = MUSTER_LOG_WARN;
    int ready_fd = -1;
    double stats_s = 0;
    // --secret-file f, --ready-fd r, --stats s, --log v. What is wrong with it; empty: nothing.
    std::string take(int which, const std::string &value);
};

void raise_limit();   // thousands of clients are thousands of descriptors
double resident_mb(); // of this process
int block_signals();  // a descriptor that tells of those that end the program, and of SIGUSR1
void print_log(const char *who, muster_queue *queue);
void tell_ready(const char *who, const std::string &address, int ready_fd);
// Until a signal asks to stop, or `print` says so; it is called at SIGUSR1, and every so many seconds (0: never).
void until_signal(const char *who, muster_queue *log, int log_fd, int signals, double every_s,
                  const std::function<bool(bool wanted)> &print, const std::function<void()> &on_usr2 = {});

} // namespace serving
