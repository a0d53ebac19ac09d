// SPDX-License-Identifier: MIT
#pragma once
// Memory shared with a proved peer on the same host, for a plug-in's own use.
//
// The asking side makes a sealed memfd and two eventfds, listens on an abstract Unix socket with a random name, and
// says both name and a random token inside the session. The other side connects, shows the token, and gets the
// descriptors; each checks that the other belongs to the same user.
#include "base/fd.hpp"
#include "base/object.hpp"
#include "base/result.hpp"
#include "context/loop_watch.hpp"

#include <muster/plugin.h>

#include <array>
#include <memory>
#include <string>

namespace muster {

class Session;

// A mapping and the two doorbells. Immutable after construction; what is mapped is the plug-in's business.
class SharedSegment final : public Object {
  public:
    static Result<Ref<SharedSegment>> make(size_t bytes);                             // side 0
    static Result<Ref<SharedSegment>> take(Fd memory, size_t bytes, Fd own, Fd peer); // side 1
    const muster_segment &table() const noexcept { return table_; }
    int memory() const noexcept { return memory_.get(); }
    static size_t rounded(size_t bytes) noexcept { return (bytes + 4095) & ~size_t{4095}; }

  private:
    SharedSegment(Fd memory, void *data, size_t bytes, Fd own, Fd peer, uint32_t side) noexcept;
    ~SharedSegment() override;
    Fd memory_, own_, peer_;
    muster_segment table_{};
};

// One exchange. Loop thread only; ends when destroyed.
class Pairing {
  public:
    static std::unique_ptr<Pairing> offer(Session &session, size_t bytes);
    // An offer or an answer of the peer came in. False: it makes no sense.
    Status early() const noexcept { return early_; } // negative: it could not even begin
    bool asked_here() const noexcept { return asked_here_; }
    static bool take(Session &session, std::unique_ptr<Pairing> &current, bool is_offer, const unsigned char *payload,
                     size_t size);
    ~Pairing();

  private:
    explicit Pairing(Session &session);
    static bool take_offer(Session &session, std::unique_ptr<Pairing> &current, const unsigned char *payload,
                           size_t size);
    void watch(int fd, void (Pairing::*ready)());
    void accept_one();
    void hand_over();
    void fetch();
    void finish(Ref<SharedSegment> segment, Status status) noexcept;
    void finish_soon(Status status);

    Session &session_;
    Status early_ = MUSTER_OK;
    bool asked_here_ = false, waits_for_answer_ = false;
    size_t bytes_ = 0;
    std::array<unsigned char, 32> token_{}, shown_{};
    size_t shown_bytes_ = 0;
    Fd listener_, connection_;
    Ref<SharedSegment> segment_;
    LoopTimer timer_;
    std::unique_ptr<LoopWatch> watch_;
};

} // namespace muster
