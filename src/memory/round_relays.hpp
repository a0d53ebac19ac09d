// SPDX-License-Identifier: MIT
#pragma once
// Requests of rounds of epochs that this node passes on to those below it. No thread waits for them: with as many
// rounds at once as there are nodes, threads of several nodes could wait for each other.
#include "am/active_messages.hpp"
#include "memory/round_request.hpp"

#include <map>

namespace muster {

class Memory;

class RoundRelays final : public Object {
  public:
    static Result<Ref<RoundRelays>> make(Memory &memory);
    // Loop thread. Replies to this request once all nodes of the part have.
    void begin(const RoundRequest &what, AmPeer &peer, uint64_t id, uint64_t epoch) noexcept;
    // Any thread, but the loop's while it is in here. Afterwards the memory is not used.
    void stop() noexcept;

  private:
    struct Child {
        uint32_t locale = 0;
        unsigned char reply[RoundRequest::reply_bytes] = {};
    };
    struct Relay {
        Ref<AmPeer> peer;
        uint64_t id = 0, epoch = 0;
        Status worst = MUSTER_OK;
        std::vector<Child> children; // stays as it is: their replies are read to it
        uint32_t missing = 0;
    };
    RoundRelays(Memory &memory, Ref<Queue> replies) noexcept : memory_(memory), replies_(std::move(replies)) {}
    ~RoundRelays() override = default;
    void turn() noexcept;
    void end(Relay &relay) noexcept;
    static void add(Relay &relay, Status status) noexcept;

    Memory &memory_;
    const Ref<Queue> replies_;
    const Ref<Context> context_{&replies_->context()};
    std::mutex lock_; // guards the rest
    bool stopped_ = false;
    uint32_t next_ = 0;
    std::map<uint32_t, Relay> relays_;
    PostedTask<RoundRelays, &RoundRelays::turn> turn_task_{*this};
};

} // namespace muster
