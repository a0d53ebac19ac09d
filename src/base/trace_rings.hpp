// SPDX-License-Identifier: MIT
#pragma once
// The rings of a trace. Each has one writer, its thread, and readers that copy it meanwhile.
#include "base/fork.hpp"
#include "base/trace.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace muster {

struct TraceEvent {
    int64_t at_ns = 0;
    Trace::Kind kind = Trace::Kind::mark;
    const char *category = nullptr, *name = nullptr;
    std::string text;
    uint64_t flow = 0;
    int64_t for_ns = 0; // of a span
};

struct TraceRing {
    static constexpr size_t words_per_event = 8;
    // Events that were written. The writer stores release after an event, and a fence release before the next one; a
    // reader that has seen a word of that sees a head, after its fence acquire, by which it discards the event.
    std::atomic<uint64_t> head{0};
    std::atomic<uint64_t> generation{0};    // of the trace; written by the thread, under the lock of the rings
    std::atomic<bool> is_used{false};       // by a thread that has not ended
    TraceRing *next = nullptr;              // of all
    uint64_t capacity = 0;                  // the rest is of the generation
    std::atomic<uint64_t> *words = nullptr; // whose pages exist once they are written
    int tid = 0;
    char thread_name[16] = {};

    void write(const Trace::Event &event) noexcept;
    std::vector<TraceEvent> read() const; // under the lock of the rings
};

struct TraceRings {
    static constexpr size_t max_threads = 1024; // others write nothing
    std::mutex lock;                            // guards the rest
    TraceRing *first = nullptr;                 // of all; they are kept for later threads
    size_t count = 0;
    uint32_t events = 8192;
    std::string name;
    int64_t offset_ns = 0, offset_error_ns = -1;
    ForkMark process;
    std::atomic<uint64_t> id{0};         // random
    std::atomic<uint64_t> generation{0}; // 0: there was no trace

    static TraceRings &get() noexcept; // never destroyed: threads may write until the process is gone
};

} // namespace muster
