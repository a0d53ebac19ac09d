// SPDX-License-Identifier: MIT
#pragma once
// The two ends of a measured stream. The first end sends orders; the second one carries them out: it sends messages
// back, or takes them and confirms the last one.
#include <muster/stream.h>

#include <cstdint>
#include <string>

namespace bench {

struct Figures {
    double half_us = 0, half_99_us = 0; // half of a round trip of 64 bytes: the median, the 99th percentile
    double rate = 0;                    // messages of 64 bytes per second, one way
    double bytes_64k = 0, bytes_1m = 0, bytes_64m = 0; // bytes per second in messages of these sizes, one way
};

// Measures, for so many seconds each. Returns an error text, empty: none.
std::string measure(muster_stream *stream, double seconds, Figures &out);

// The second end, until the stream ends. Orders that no first end gives abort the stream.
void answer(muster_stream *stream);

} // namespace bench
