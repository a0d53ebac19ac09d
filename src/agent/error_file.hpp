// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// What a worker wrote down about its failure, as torch elastic does: {"message": {"message": "ValueError: ...",
// "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "1668000000"}}}, or {"message": "...", "timestamp": ...}.
struct FailureReport {
    std::string message;     // empty: no report
    std::string callstack;   // empty: it has none
    int64_t timestamp_s = 0; // wall clock; 0: it has none
};

// A worker writes it: anything may be in it. What is no report of this kind is a message as it stands.
FailureReport parse_failure(std::string_view text);

// At most the first MiB is looked at. No file is no report.
FailureReport read_failure(const std::string &path);

} // namespace muster
