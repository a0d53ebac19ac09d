// SPDX-License-Identifier: MIT
#pragma once
// One block that was handed over to many streams of a fabric: it is sent once, piece by piece, in messages for all.
//
// Each stream has a piece of the block in its pipe, so that order, aborts and releases are handled by the pipes. A
// stream whose session reaches its piece joins. When all streams with a remaining piece have joined, as many bytes as
// all have credit for are copied into a segment, count as sent by each, and are sent in one message. Streams that
// cannot take part (sealed, or a second one of the same peer), and all of them when one has delayed the others,
// continue separately.
#include "context/task.hpp"
#include "stream/pipe.hpp"

#include <vector>

namespace muster {

class Fabric;
class FabricSession;
class SegmentPool;
class Session;
class SessionStream;

// Loop thread only, unless a member says otherwise.
class Broadcast final : public SharedPiece {
  public:
    Broadcast(Fabric &fabric, uint32_t count, const void *data, size_t size); // any thread
    void piece_over() noexcept override;                                      // any thread

    // From the session's turn: the stream has reached its piece. False: it has to send the piece separately.
    bool join(SessionStream &stream);
    void leave(SessionStream &stream) noexcept;
    void look() noexcept; // sends as much as possible now
    void tick(int64_t now_ns) noexcept;

  private:
    static FabricSession &channel_of(const SessionStream &stream) noexcept;
    SegmentPool &pool() const noexcept;
    void let_go(SessionStream &stream) noexcept;
    void let_all_go() noexcept;
    void drop_revoked() noexcept;
    size_t ready() const noexcept;
    bool stage(size_t size) noexcept;
    bool send() noexcept;
    bool send_to_each() noexcept;

    const Ref<Fabric> fabric_;
    Context &context_;
    const unsigned char *const data_;
    const size_t size_;
    // Pieces that are not over. Lowered by the thread that ends one, release; acquire by the loop: only a count.
    std::atomic<uint32_t> outstanding_;
    size_t done_ = 0;                      // bytes that have left the pipes
    std::vector<SessionStream *> members_; // each has a reference to this object
    std::vector<uint64_t> peers_;          // of the message; room for all members
    unsigned char *segment_ = nullptr;     // `staged_` bytes at `staged_at_`, for all members
    size_t staged_at_ = 0, staged_ = 0;
    bool to_each_ = false; // the fabric has declined
    bool looking_ = false;
    int64_t progress_ns_ = 0;
    PostedTask<Broadcast, &Broadcast::look> look_{*this};
};

} // namespace muster
