// SPDX-License-Identifier: MIT
#pragma once
// The epoch of a memory with several nodes: each node has a manager of epochs in its memory, and these rounds advance
// all of them together. docs/adr/0020-*.md has the protocol, tests/models/distributed_epoch.pml checks it.
//
// Pins and deferred objects touch the memory of the node alone. A poll that finds nothing to free asks for a round; the
// first process of a node that does takes its lease, and the others return at once, without a message. A round of
// another node takes the lease, too. Its end only keeps two processes from doing the same work: two rounds at a time
// are safe, and if the process of a round dies, the next one begins when the lease ends.
//
// A round reaches the other nodes by a tree: the node of the round asks a few, and each of them those below it, before
// it answers for all of them (round_relays.hpp).
//
// A locale that has ended is asked for nothing. Before that, all others disconnect it, so that a locale
// that only this process cannot reach does not read what is freed from now on.
#include "am/active_messages.hpp"
#include "epoch/epoch.hpp"
#include "memory/round_relays.hpp"
#include "queue/call_threads.hpp"

#include <vector>

namespace muster {

class Memory;
struct NodeHead;

// Any thread.
class EpochRounds final : public CallTask, public EpochLeader {
  public:
    static constexpr int64_t lease_ns = 100'000'000;
    EpochRounds(Memory &memory, NodeHead &node, Ref<Epoch> epoch, Ref<RoundRelays> relays) noexcept
        : memory_(memory), node_(node), epoch_(std::move(epoch)), relays_(std::move(relays)) {
        epoch_->set_leader(this);
    }
    void advance_soon() noexcept override;
    void stop() noexcept { // the memory is released
        epoch_->set_leader(nullptr);
        relays_->stop();
    }

    // ---- the loop thread: what another locale asks for
    Status answer(const unsigned char *data, size_t bytes, unsigned char *reply, size_t &out_bytes) noexcept;
    // True: it is asked for nodes below this one, too, and will reply.
    bool relay(AmPeer &peer, uint64_t id, const unsigned char *data, size_t bytes) noexcept;

  private:
    struct Ask { // one request of a round to one node
        RoundRequest::Part part;
        uint32_t next = 0; // of the locales of that node
        ActiveMessages::Started started;
        unsigned char reply[8] = {};
        ~Ask() { // of a round that ends early: the reply has no place any more
            if (started.call) started.call->end(Error::from_status(MUSTER_E_CANCELED));
        }
    };
    bool begin_round() noexcept;
    void run() noexcept override;
    bool round();
    Status perform(const RoundRequest &what) noexcept;
    uint32_t fan_out() const noexcept { return asks_itself_ ? UINT32_MAX : RoundRequest::fan_out; }
    static void end_all(Memory &memory, RoundRequest what, uint32_t fan_out);
    Status ask_all(RoundRequest what, uint64_t &out_epoch);
    void begin_ask(RoundRequest what, Ask &ask, Deadline &deadline);
    Status finish_ask(RoundRequest what, Ask &ask, Deadline &deadline, uint64_t &out_epoch);
    void exclude_ended(uint32_t node);

    Memory &memory_; // kept while a round is under way
    NodeHead &node_;
    const Ref<Epoch> epoch_;
    std::atomic<bool> is_busy_{false}; // a round of this process waits for a thread, or is under way
    // Since a locale has ended, which a node below this one cannot exclude: this one asks all nodes itself.
    bool asks_itself_ = false;
    std::vector<bool> excluded_; // locales
    const Ref<RoundRelays> relays_;
};

} // namespace muster
