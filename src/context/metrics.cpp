// SPDX-License-Identifier: MIT
#include "context/metrics.hpp"

#include "base/text.hpp"
#include "context/context.hpp"
#include "context/histogram.hpp"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

namespace muster {

namespace {

constexpr Metric sample_time{"muster_sample_time_seconds", Metric::gauge, "Unix time at which the numbers were read."};
constexpr Metric resident{"muster_process_resident_bytes", Metric::gauge, "Memory of the process that is in use."};
constexpr Metric processor{"muster_process_cpu_seconds_total", Metric::counter, "Processor time of the process."};
constexpr Metric descriptors{"muster_process_open_descriptors", Metric::gauge, "Open descriptors of the process."};
constexpr Metric wakeups{"muster_context_wakeups_total", Metric::counter, "Times the engine woke up."};
constexpr Metric tasks{"muster_context_tasks_total", Metric::counter, "Tasks posted to the engine."};
constexpr Metric streams{"muster_streams", Metric::gauge, "Streams that exist."};
constexpr Metric streams_made{"muster_streams_made_total", Metric::counter, "Streams that were made."};
constexpr Metric handshakes{"muster_handshakes_total", Metric::counter,
                            "Connections that have proved the secret, or were refused."};
constexpr Metric read_bytes{"muster_read_bytes_total", Metric::counter, "Bytes that the host has read from streams."};
constexpr Metric written_bytes{"muster_written_bytes_total", Metric::counter,
                               "Bytes that streams have accepted from the host."};
constexpr Metric handshake_time{"muster_handshake_seconds", Metric::histogram,
                                "Time from the connection to the proof of the secret, of both sides' connections."};
constexpr Metric store_time{
    "muster_store_request_seconds", Metric::histogram,
    "Time of requests to stores for which a thread has waited, without those that wait for a value."};
constexpr Metric round_time{"muster_rendezvous_round_seconds", Metric::histogram,
                            "Time from joining a rendezvous to the round with the ranks."};
constexpr Metric upgrades{"muster_links_upgraded_total", Metric::counter, "Links that were moved to shared memory."};

void write_process(MetricsWriter &writer) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    writer.add(sample_time, static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
    // Files are closed before memory may run out.
    long pages = 0, used = 0;
    bool has_size = false;
    if (std::FILE *const file = std::fopen("/proc/self/statm", "re")) {
        has_size = std::fscanf(file, "%ld %ld", &pages, &used) == 2;
        std::fclose(file);
    }
    if (has_size) writer.add(resident, static_cast<double>(used) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0)
        writer.add(processor, static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                  static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
    double count = -3; // without itself, and the two links to folders
    if (DIR *const folder = ::opendir("/proc/self/fd")) {
        while (::readdir(folder) != nullptr) count++;
        ::closedir(folder);
        writer.add(descriptors, count);
    }
}

void write_context(MetricsWriter &writer, Context &context) {
    const auto add = [&](const Metric &metric, const std::atomic<uint64_t> &counter, std::string_view labels = {}) {
        writer.add(metric, static_cast<double>(counter.load(std::memory_order_relaxed)), labels);
    };
    const ContextCounters &counters = context.counters;
    writer.add(wakeups, static_cast<double>(context.loop().turns()));
    writer.add(tasks, static_cast<double>(context.loop().posts()));
    add(streams, counters.streams_open);
    add(streams_made, counters.streams_made);
    add(handshakes, counters.handshakes_ok, "result=\"proved\"");
    add(handshakes, counters.handshakes_failed, "result=\"refused\"");
    add(read_bytes, counters.bytes_in);
    add(written_bytes, counters.bytes_out);
    add(upgrades, counters.upgrades);
    writer.add(handshake_time, counters.handshake_time);
    writer.add(store_time, counters.store_time);
    writer.add(round_time, counters.round_time);
}

} // namespace

std::string metric_label(std::string_view name, std::string_view text) {
    std::string shown(text), label(name);
    make_printable(shown.data(), shown.size());
    label += "=\"";
    for (const char c : shown) {
        if (c == '"' || c == '\\') label += '\\';
        label += c;
    }
    return label += '"';
}

std::string &MetricsWriter::lines_of(const Metric &metric) {
    auto [at, is_new] = samples_.try_emplace(metric.name);
    if (is_new) order_.push_back(&metric);
    return at->second;
}

void MetricsWriter::add(const Metric &metric, double value, std::string_view more_labels) {
    add_line(lines_of(metric), metric.name, "", value, more_labels);
}

// Each bucket counts what took at most as long as its limit `le`.
void MetricsWriter::add(const Metric &metric, const Histogram &histogram, std::string_view more_labels) {
    std::string &lines = lines_of(metric);
    const std::string separator = more_labels.empty() ? "" : ",";
    uint64_t count = 0;
    for (size_t i = 0; i <= Histogram::buckets; i++) {
        count += histogram.count_in(i);
        char limit[40] = "+Inf";
        if (i < Histogram::buckets)
            std::snprintf(limit, sizeof limit, "%.10g", static_cast<double>(Histogram::limit_ns(i)) * 1e-9);
        add_line(lines, metric.name, "_bucket", static_cast<double>(count),
                 std::string(more_labels) + separator + "le=\"" + limit + '"');
    }
    add_line(lines, metric.name, "_sum", histogram.seconds(), more_labels);
    add_line(lines, metric.name, "_count", static_cast<double>(count), more_labels);
}

void MetricsWriter::add_line(std::string &lines, const char *name, const char *suffix, double value,
                             std::string_view more_labels) {
    lines += name;
    lines += suffix;
    if (!labels_.empty() || !more_labels.empty()) {
        lines += '{';
        lines += labels_;
        if (!labels_.empty() && !more_labels.empty()) lines += ',';
        lines += more_labels;
        lines += '}';
    }
    char number[40];
    // Numbers up to 2^53 are whole: they are shown as they are.
    const bool is_whole = value == std::floor(value) && std::fabs(value) < 9007199254740992.0;
    std::snprintf(number, sizeof number, is_whole ? " %.0f\n" : " %.15g\n", value);
    lines += number;
}

std::string MetricsWriter::text() const {
    std::string all;
    for (const Metric *const metric : order_) {
        all += std::string("# HELP ") + metric->name + " " + metric->help + "\n# TYPE " + metric->name +
               (metric->kind == Metric::counter ? " counter\n"
                : metric->kind == Metric::gauge ? " gauge\n"
                                                : " histogram\n");
        all += samples_.at(metric->name);
    }
    return all;
}

void MetricsNodes::add(MetricsNodeBase &node) noexcept {
    const std::lock_guard hold(lock_);
    node.number_ = ++last_number_;
    list_.push_back(node);
}

void MetricsNodes::add_part(MetricsNodeBase &node) noexcept {
    const std::lock_guard hold(lock_);
    list_.push_back(node);
}

void MetricsNodes::remove(MetricsNodeBase &node) noexcept {
    const std::lock_guard hold(lock_);
    if (List<MetricsNodeBase>::holds(node)) list_.remove(node);
}

void MetricsNodes::write(MetricsWriter &writer) {
    const std::lock_guard hold(lock_);
    for (MetricsNodeBase *node = list_.first(); node != nullptr; node = List<MetricsNodeBase>::after(*node)) {
        writer.set_labels(node->number_ != 0 ? "object=\"" + std::to_string(node->number_) + '"' : std::string());
        node->write(writer);
    }
}

std::string metrics_text(Context &context) {
    MetricsWriter writer;
    write_process(writer);
    write_context(writer, context);
    context.metrics.write(writer);
    return writer.text();
}

} // namespace muster
