// SPDX-License-Identifier: MIT
#pragma once
// Common functions of the programs that serve until a signal arrives.
#include "arguments.hpp"

#include <muster/metrics.h>
#include <muster/queue.h>

namespace serving {

// The options of all of them.
struct Options {
    int32_t log_level = MUSTER_LOG_WARN;
    int ready_fd = -1;
    int64_t stats_ns = 0;
    // --secret-file, --ready-fd, --stats, --log, after `own`.
    std::vector<cli::Option> known(std::vector<cli::Option> own);
};

// Publishes the metrics of a program in a store until it ends. A store that cannot be opened is reported on stderr, and
// the program goes on without.
class Publishing {
  public:
    Publishing() = default;
    ~Publishing() { end(); }
    Publishing(const Publishing &) = delete;
    Publishing &operator=(const Publishing &) = delete;
    void begin(const char *program, muster_context *context, const std::string &store_url);
    void end();

  private:
    muster_store *store_ = nullptr;
    muster_metrics *metrics_ = nullptr;
};

void raise_limit();   // thousands of clients are thousands of descriptors
double resident_mb(); // of this process
int block_signals();  // a descriptor that reports the signals that end the program, and SIGUSR1
void print_log(const char *who, muster_queue *queue);
void tell_ready(const char *who, const std::string &address, int ready_fd);
// Waits until a signal requests the end, or `print` does; `print` is called at SIGUSR1, and every so many seconds (0:
// never).
void until_signal(const char *who, muster_queue *log, int log_fd, int signals, int64_t every_ns,
                  const std::function<bool(bool wanted)> &print, const std::function<void()> &on_usr2 = {});

} // namespace serving
