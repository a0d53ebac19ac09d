// SPDX-License-Identifier: MIT
// muster trace: joins the files of traces, and sums up what is in them.
#include "serving.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>

namespace {

constexpr char help[] =
    "usage: muster trace [--join <file>] <trace>...\n"
    "\n"
    "Shows which spans each process of the traces has, how many and how long. Traces are written by\n"
    "muster_trace_save(), or into the folder MUSTER_TRACE by programs that have it in their environment.\n"
    "\n"
    "  --join <file>   write all of them into one file, for https://ui.perfetto.dev\n"
    "Status 0: shown, and written. 1: a file cannot be read or written, or is no trace. 2: wrong arguments.\n";

// A message of protocol buffers, field by field. Ends at what is malformed.
class Fields {
  public:
    explicit Fields(std::string_view bytes) noexcept : left_(bytes) {}
    bool next() noexcept {
        uint64_t key = 0;
        if (left_.empty() || !varint(key)) return false;
        number = static_cast<uint32_t>(key >> 3);
        text = {};
        switch (key & 7) {
        case 0:
            return varint(value);
        case 1:
            if (left_.size() >= 8) memcpy(&value, left_.data(), 8);
            return take(8);
        case 2:
            return varint(value) && take(value);
        case 5:
            return take(4);
        default:
            is_malformed = true;
            return false;
        }
    }
    uint32_t number = 0;
    uint64_t value = 0;
    std::string_view text;
    bool is_malformed = false;

  private:
    bool varint(uint64_t &out) noexcept {
        out = 0;
        for (int shift = 0; shift < 70 && !left_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(left_.front());
            left_.remove_prefix(1);
            if (shift < 64) out |= uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) return true;
        }
        is_malformed = true;
        return false;
    }
    bool take(uint64_t size) noexcept {
        if (size > left_.size()) {
            is_malformed = true;
            return false;
        }
        text = left_.substr(0, size);
        left_.remove_prefix(size);
        return true;
    }
    std::string_view left_;
};

struct Span {
    uint64_t count = 0, total_ns = 0, longest_ns = 0;
};
struct Step { // of a flow
    uint64_t at_ns = 0, process = 0;
    std::string name;
};
struct Thread {
    uint64_t process = 0;
    std::vector<std::pair<std::string, uint64_t>> open; // name and begin
};
struct Process {
    std::string name;
    uint64_t pid = 0, threads = 0, events = 0;
    std::map<std::string, Span> spans;
};
struct Summary {
    std::map<uint64_t, Process> processes; // by track
    std::map<uint64_t, Thread> threads;
    std::unordered_map<uint64_t, std::vector<Step>> flows;
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
};

// The numbers of the fields are in src/base/trace_file.cpp.
bool read_descriptor(std::string_view bytes, Summary &summary) {
    uint64_t uuid = 0, parent = 0;
    std::string_view process, thread;
    Fields field(bytes);
    while (field.next()) {
        if (field.number == 1) uuid = field.value;
        if (field.number == 3) process = field.text;
        if (field.number == 4) thread = field.text;
        if (field.number == 5) parent = field.value;
    }
    if (!process.empty()) {
        Process &found = summary.processes[uuid];
        Fields part(process);
        while (part.next()) {
            if (part.number == 1) found.pid = part.value;
            if (part.number == 6) found.name = part.text;
        }
    }
    if (!thread.empty()) {
        summary.threads[uuid].process = parent;
        summary.processes[parent].threads++;
    }
    return !field.is_malformed;
}

bool read_event(std::string_view bytes, uint64_t at_ns, Summary &summary) {
    uint64_t type = 0, track = 0, flow = 0;
    std::string category, name;
    Fields field(bytes);
    while (field.next()) {
        if (field.number == 9) type = field.value;
        if (field.number == 11) track = field.value;
        if (field.number == 22) category = field.text;
        if (field.number == 23) name = field.text;
        if (field.number == 47) flow = field.value;
    }
    const auto thread = summary.threads.find(track);
    if (field.is_malformed || thread == summary.threads.end()) return false;
    Process &process = summary.processes[thread->second.process];
    auto &open = thread->second.open;
    process.events++;
    if (flow != 0) summary.flows[flow].push_back({at_ns, thread->second.process, category + ' ' + name});
    summary.first_ns = std::min(summary.first_ns, at_ns);
    summary.last_ns = std::max(summary.last_ns, at_ns);
    if (type == 1) {
        open.emplace_back(category + ' ' + name, at_ns);
    } else if (type == 2 && !open.empty()) {
        Span &span = process.spans[open.back().first];
        const uint64_t took = at_ns - std::min(at_ns, open.back().second);
        span.count++;
        span.total_ns += took;
        span.longest_ns = std::max(span.longest_ns, took);
        open.pop_back();
    } else if (type == 3) {
        process.spans[category + ' ' + name].count++;
    }
    return true;
}

bool read_trace(std::string_view bytes, Summary &summary) {
    Fields packet(bytes);
    while (packet.next()) {
        uint64_t at_ns = 0;
        std::string_view event;
        Fields field(packet.text);
        while (field.next()) {
            if (field.number == 8) at_ns = field.value;
            if (field.number == 11) event = field.text;
            if (field.number == 60 && !read_descriptor(field.text, summary)) return false;
        }
        if (packet.number != 1 || field.is_malformed) return false;
        if (!event.empty() && !read_event(event, at_ns, summary)) return false;
    }
    return !packet.is_malformed && !bytes.empty();
}

// How long what one process sends takes to arrive in another one, as their clocks show it.
void print_arrows(const Summary &summary) {
    std::map<std::string, std::vector<uint64_t>> arrows; // by the names of both ends
    for (const auto &[flow, steps] : summary.flows) {
        std::vector<Step> ordered = steps;
        std::stable_sort(ordered.begin(), ordered.end(),
                         [](const Step &a, const Step &b) { return a.at_ns < b.at_ns; });
        for (size_t i = 1; i < ordered.size(); i++)
            if (ordered[i - 1].process != ordered[i].process)
                arrows[ordered[i - 1].name + " -> " + ordered[i].name].push_back(ordered[i].at_ns -
                                                                                 ordered[i - 1].at_ns);
    }
    if (!arrows.empty()) std::printf("\nfrom process to process\n");
    for (auto &[name, ns] : arrows) {
        std::sort(ns.begin(), ns.end());
        std::printf("  %-40s %10zu times, median %10.3f ms, the longest %10.3f ms\n", name.c_str(), ns.size(),
                    static_cast<double>(ns[ns.size() / 2]) * 1e-6, static_cast<double>(ns.back()) * 1e-6);
    }
}

void print(const Summary &summary) {
    if (summary.last_ns >= summary.first_ns)
        std::printf("%.3f ms from the first event to the last\n",
                    static_cast<double>(summary.last_ns - summary.first_ns) * 1e-6);
    for (const auto &[track, process] : summary.processes) {
        std::printf("\n%s, process %llu: %llu threads, %llu events\n", process.name.c_str(),
                    static_cast<unsigned long long>(process.pid), static_cast<unsigned long long>(process.threads),
                    static_cast<unsigned long long>(process.events));
        std::vector<std::pair<std::string, Span>> spans(process.spans.begin(), process.spans.end());
        std::stable_sort(spans.begin(), spans.end(),
                         [](const auto &a, const auto &b) { return a.second.total_ns > b.second.total_ns; });
        for (const auto &[name, span] : spans)
            std::printf("  %-40s %10llu times %12.3f ms, the longest %10.3f ms\n", name.c_str(),
                        static_cast<unsigned long long>(span.count), static_cast<double>(span.total_ns) * 1e-6,
                        static_cast<double>(span.longest_ns) * 1e-6);
    }
}

} // namespace

int trace_command(const Arguments &arguments) {
    const cli::Command command{"muster trace", help};
    std::vector<std::string> files;
    std::string join;
    if (const auto status = cli::read_options(command, arguments, {cli::text("join", join)}, files)) return *status;
    if (files.empty()) return cli::reject(command, "which traces?");
    std::string all;
    Summary summary;
    for (const std::string &name : files) {
        std::ifstream file(name, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        if (!file) return std::fprintf(stderr, "muster trace: cannot read %s: %s\n", name.c_str(), strerror(errno)), 1;
        if (!read_trace(bytes, summary))
            return std::fprintf(stderr, "muster trace: %s is no trace of Muster, or not whole\n", name.c_str()), 1;
        all += bytes;
    }
    print(summary);
    print_arrows(summary);
    if (join.empty()) return 0;
    std::ofstream file(join, std::ios::binary | std::ios::trunc);
    file << all;
    file.close();
    if (file) return 0;
    return std::fprintf(stderr, "muster trace: cannot write %s: %s\n", join.c_str(), strerror(errno)), 1;
}
