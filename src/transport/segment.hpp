// SPDX-License-Identifier: MIT
#pragma once
// Memory shared by two processes: a memfd, filled before it is sealed against any change of size, and a doorbell each.
#include "base/fd.hpp"
#include "stream/duplex.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace muster {

// Owns its descriptors. `events[i]` wakes side i; the dialer is side 0.
struct Segment {
    Fd memory, events[2];
    void *mapping = nullptr;
    size_t size = 0;

    Segment() noexcept = default;
    Segment(Segment &&other) noexcept;
    Segment &operator=(Segment &&other) noexcept;
    ~Segment();
};

constexpr int segment_descriptors = 3;

Result<Segment> make_segment(size_t size) noexcept;
// Can it be mapped safely: is it sealed against any change of size, of this size, with its pages allocated?
Result<void> check_shared_memory(int memory, size_t size) noexcept;
// Are they two eventfds that were not rung yet? A ring must neither block, nor leave anything else to be read, nor
// raise a signal. They cannot block from then on, and stay as they are.
Result<void> check_events(int one, int other) noexcept;
// Checks descriptors of a peer, and takes them over.
Result<Segment> take_segment(Fd (&fds)[segment_descriptors], size_t size) noexcept;
// The duplex of side `own` over its mapping, which is the duplex's from now on; the descriptors stay. `fresh`: this
// process made the segment, and lays it out before it sends it.
Result<Ref<Duplex>> segment_duplex(Segment &segment, uint64_t window, int own, bool fresh) noexcept;

// Sends bytes with the descriptors of a segment on a Unix socket: how many bytes, or -errno.
ssize_t send_segment(int socket, std::string_view bytes, const Segment &segment) noexcept;

} // namespace muster
