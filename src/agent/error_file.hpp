// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// The report of a worker about its failure, as torch elastic writes it: {"message": {"message": "ValueError: ...",
// "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "1668000000"}}}, or {"message": "...", "timestamp": ...}.
struct FailureReport {
    std::string message;     // empty: no report
    std::string callstack;   // empty: it has none
    int64_t timestamp_s = 0; // wall clock; 0: it has none
};

// A worker writes it, so it may contain anything. A file that is not such a report is itself the message.
FailureReport parse_failure(std::string_view text);

// Reads at most the first MiB. Without a file there is no report.
FailureReport read_failure(const std::string &path);

} // namespace muster
