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
// A locale that has ended is asked for nothing. Before that, all others disconnect it, so that a locale
// that only this process cannot reach does not read what is freed from now on.
#include "am/active_messages.hpp"
#include "epoch/epoch.hpp"
#include "queue/call_threads.hpp"

#include <vector>

namespace muster {

class Memory;
struct NodeHead;

// Any thread.
class EpochRounds final : public CallTask, public EpochLeader {
  public:
    static constexpr int64_t lease_ns = 100'000'000;
    EpochRounds(Memory &memory, NodeHead &node, Ref<Epoch> epoch) noexcept
        : memory_(memory), node_(node), epoch_(std::move(epoch)) {
        epoch_->set_leader(this);
    }
    void advance_soon() noexcept override;
    void stop() noexcept { epoch_->set_leader(nullptr); } // the memory is released

    // ---- the loop thread: what another locale asks for
    Status answer(const unsigned char *data, size_t bytes, unsigned char *reply, size_t &out_bytes) noexcept;

  private:
    struct Ask { // one request of a round to one node
        uint32_t locale = 0;
        ActiveMessages::Started started;
        unsigned char reply[8] = {};
        ~Ask() { // of a round that ends early: the reply has no place any more
            if (started.call) started.call->end(Error::from_status(MUSTER_E_CANCELED));
        }
    };
    bool begin_round() noexcept;
    void run() noexcept override;
    bool round();
    bool ask_all(uint32_t what, uint64_t first, uint64_t second, uint64_t &out_epoch);
    void exclude_ended(uint32_t node);

    Memory &memory_; // kept while a round is under way
    NodeHead &node_;
    const Ref<Epoch> epoch_;
    std::atomic<bool> is_busy_{false}; // a round of this process waits for a thread, or is under way
    std::vector<bool> excluded_;       // locales
};

} // namespace muster
