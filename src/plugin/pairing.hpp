// SPDX-License-Identifier: MIT
#pragma once
// Memory shared with an authenticated peer on the same host, for the plug-in's own use.
//
// The requesting side makes the segment and offers it through the descriptor channel; the session carries the offer to
// the other side, and the answer back.
#include "context/loop_watch.hpp"
#include "transport/descriptor_channel.hpp"
#include "transport/segment.hpp"

#include <muster/plugin.h>

#include <memory>

namespace muster {

class Session;

// A segment for a plug-in. Immutable after construction; the contents of the mapping are the plug-in's.
class SharedSegment final : public Object {
  public:
    SharedSegment(Segment segment, uint32_t side) noexcept;
    const muster_segment &table() const noexcept { return table_; }
    const Segment &segment() const noexcept { return segment_; }

  private:
    const Segment segment_;
    muster_segment table_{};
};

// One exchange. Loop thread only; ends when destroyed.
class Pairing final : private DescriptorChannel::Owner {
  public:
    static std::unique_ptr<Pairing> offer(Session &session, size_t bytes);
    // Handles an offer or an answer of the peer. False: it is invalid.
    Status early() const noexcept { return early_; } // negative: it could not even begin
    bool asked_here() const noexcept { return asked_here_; }
    static bool take(Session &session, std::unique_ptr<Pairing> &current, bool is_offer, const unsigned char *payload,
                     size_t size);
    ~Pairing();

  private:
    explicit Pairing(Session &session);
    static bool take_offer(Session &session, std::unique_ptr<Pairing> &current, const unsigned char *payload,
                           size_t size);
    DescriptorChannel &channel() const;
    void watch(int fd);
    void token_shown(Fd socket) noexcept override;
    void fetch();
    void finish(Ref<SharedSegment> segment, Status status) noexcept;
    void finish_soon(Status status);

    Session &session_;
    Status early_ = MUSTER_OK;
    bool asked_here_ = false, waits_for_answer_ = false;
    size_t bytes_ = 0;
    DescriptorOffer offer_;
    Fd connection_; // to the side that offers
    Ref<SharedSegment> segment_;
    LoopTimer timer_;
    std::unique_ptr<LoopWatch> watch_;
};

} // namespace muster
