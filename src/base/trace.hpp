// SPDX-License-Identifier: MIT
#pragma once
// What threads do and when, in a ring for each thread; trace.h is its interface, and trace_file.cpp writes it.
#include "base/result.hpp"
#include "base/time.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

// One word in memory of the process is read where events could be written; the rest happens while a trace is on.
class Trace {
  public:
    enum class Kind : uint8_t { begin = 1, end = 2, mark = 3, span = 4 /* whole; only in a ring */ };
    static constexpr size_t text_bytes = 31, text_bytes_with_flow = 24;
    static bool is_on() noexcept { return on_.load(std::memory_order_relaxed); } // relaxed: an event more or less
    struct Event {
        Kind kind;
        const char *category; // of static storage, like the name
        const char *name;     // null: the text is the name
        std::string_view text = {};
        uint64_t flow = 0;  // events of all processes with the same number are connected by arrows; 0: none
        int64_t at_ns = 0;  // 0: now
        int64_t for_ns = 0; // of a span
    };
    // Any thread, without a lock.
    static void write(const Event &event) noexcept;
    static void mark(const char *category, const char *name, std::string_view text = {}, uint64_t flow = 0) noexcept {
        if (is_on()) write({Kind::mark, category, name, text, flow});
    }
    // The number of a flow between two processes, which both can compute: of the direction of a connection, and of what
    // is sent there. Never 0.
    static uint64_t flow_of(uint64_t direction, uint64_t number) noexcept;
    static uint64_t fresh_number() noexcept; // not 0, and with all likelihood no other process has it
    static uint64_t id() noexcept;           // of the trace that is on, in the messages of this process

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
        : category_(Trace::is_on() ? category : nullptr), name_(name) {
        if (category_ != nullptr) Trace::write({Trace::Kind::begin, category_, name, text});
    }
    // Its begin is written by begun(), which the caller calls once it has nothing to do but to wait.
    struct Later {};
    TraceSpan(Later, const char *category, const char *name) noexcept
        : category_(Trace::is_on() ? category : nullptr), name_(name), from_ns_(category_ != nullptr ? now_ns() : 0) {}
    bool is_written() const noexcept { return category_ != nullptr; }
    void begun(uint64_t flow) noexcept {
        if (category_ != nullptr && from_ns_ != 0)
            Trace::write({Trace::Kind::begin, category_, name_, {}, flow, std::exchange(from_ns_, 0)});
    }
    TraceSpan(const TraceSpan &) = delete;
    TraceSpan &operator=(const TraceSpan &) = delete;
    ~TraceSpan() {
        begun(0);
        if (category_ != nullptr) Trace::write({Trace::Kind::end, category_, ""});
    }

  private:
    const char *const category_, *const name_;
    int64_t from_ns_ = 0; // of a begin that is not written yet
};

} // namespace muster
