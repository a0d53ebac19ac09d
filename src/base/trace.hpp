// SPDX-License-Identifier: MIT
#pragma once
// What threads do and when, in a ring for each thread; trace.h is its interface, and trace_file.cpp writes it.
#include "base/result.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// One word in memory of the process is read where events could be written; the rest happens while a trace is on.
class Trace {
  public:
    enum class Kind : uint8_t { begin = 1, end = 2, mark = 3 };
    static constexpr size_t text_bytes = 31;
    static bool is_on() noexcept { return on_.load(std::memory_order_relaxed); } // relaxed: an event more or less
    // `category` and `name`: of static storage; no name: the text is the name. Any thread, without a lock.
    static void write(Kind kind, const char *category, const char *name, std::string_view text = {}) noexcept;
    static void mark(const char *category, const char *name, std::string_view text = {}) noexcept {
        if (is_on()) write(Kind::mark, category, name, text);
    }

    struct State {
        uint64_t events = 0, threads = 0;
        int64_t offset_ns = 0, offset_error_ns = -1;
        bool is_on = false;
    };
    static Result<void> start(std::string_view name, uint32_t events);
    static void stop() noexcept { on_.store(false, std::memory_order_relaxed); }
    static State state() noexcept;
    static void set_offset(int64_t offset_ns, int64_t error_ns) noexcept;
    static Result<void> save(const std::string &path);
    // Once for a process that has MUSTER_TRACE in its environment: starts, and saves when the process exits.
    static void start_by_environment() noexcept;

  private:
    static std::atomic<bool> on_;
};

// A span of a call. Nothing, unless a trace is on at its begin.
class TraceSpan {
  public:
    explicit TraceSpan(const char *category, const char *name, std::string_view text = {}) noexcept
        : category_(Trace::is_on() ? category : nullptr) {
        if (category_ != nullptr) Trace::write(Trace::Kind::begin, category_, name, text);
    }
    TraceSpan(const TraceSpan &) = delete;
    TraceSpan &operator=(const TraceSpan &) = delete;
    ~TraceSpan() {
        if (category_ != nullptr) Trace::write(Trace::Kind::end, category_, "");
    }

  private:
    const char *const category_;
};

} // namespace muster
