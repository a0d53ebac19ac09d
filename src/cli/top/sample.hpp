// SPDX-License-Identifier: MIT
#pragma once
// What the processes of a job have published (muster/metrics.h), read from a store.
#include <muster/store.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace top {

// The numbers of one process at one moment. Texts come from other processes: what is not in the format is left out.
struct Sample {
    struct Line {
        std::map<std::string, std::string> labels;
        double value;
    };
    std::map<std::string, std::vector<Line>, std::less<>> lines; // by the name of the metric

    bool has(std::string_view name) const { return lines.find(name) != lines.end(); }
    // The sum over all objects, and over the lines with that label.
    double sum(std::string_view name, std::string_view label = {}, std::string_view text = {}) const;
    double largest(std::string_view name) const; // of all lines; 0: there is none
    double at() const { return sum("muster_sample_time_seconds"); }
};

Sample parse_sample(std::string_view text);

// The samples of all processes, the last two of each.
struct Process {
    Sample now, before;
    // Change per second of a counter; empty: there is one sample only.
    std::optional<double> rate(std::string_view name, std::string_view label = {}, std::string_view text = {}) const;
    std::string text; // as it was published
    uint64_t version = 0;
    unsigned repeated = 0; // how often it was read again without a change
};

struct Job {
    std::map<std::string, Process> processes; // by name
    std::vector<std::string> changes;         // what has happened, with the time; the last ones
    unsigned reads = 0;

    // Lists what is published now. The status of the store, and `why` if it is a failure.
    muster_status read(muster_store *store, int64_t timeout_ns, muster_error &why);

  private:
    void note(const std::string &what);
    void note_differences(const std::string &name, const Process &process);
};

} // namespace top
