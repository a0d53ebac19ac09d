// SPDX-License-Identifier: MIT
#pragma once
// Metrics over HTTP, for Prometheus: an address of the loopback interface answers requests that have a token.
#include "arguments.hpp"

#include <muster/metrics.h>

struct MHD_Connection;
struct MHD_Daemon;

namespace serving {

class Scraping {
  public:
    Scraping() = default;
    ~Scraping() { end(); }
    Scraping(const Scraping &) = delete;
    Scraping &operator=(const Scraping &) = delete;

    // --metrics-listen and --metrics-token-file, after `known`.
    std::vector<cli::Option> options(std::vector<cli::Option> known);
    // The error of the combination of options, empty: none. Reads the token.
    std::string check();
    // If an address was given: answers from now on, until end(). An address that is taken is an error, which is
    // returned: its absence would be noticed only when the metrics are needed.
    std::string begin(const char *program, muster_context *context);
    void end();

  private:
    friend struct ScrapingAnswers;
    std::string listen_, token_file_, token_;
    muster_context *context_ = nullptr;
    MHD_Daemon *daemon_ = nullptr;
};

} // namespace serving
