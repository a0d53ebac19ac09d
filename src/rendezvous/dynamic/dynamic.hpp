// SPDX-License-Identifier: MIT
#pragma once
// A member of a dynamic run: its state machine, driven with a store. The driver begins the machine's requests at the
// store, and feeds answers, calls and time to it on the loop thread, one after the other.
#include "queue/call_threads.hpp"
#include "rendezvous/dynamic/peers.hpp"
#include "rendezvous/machine/machine.hpp"
#include "rendezvous/member/member.hpp"

#include <atomic>

namespace muster {

// Any thread.
class DynamicMember final : public Member, private StoreListener {
  public:
    // `store`: the keys of the run.
    DynamicMember(Context &context, RendezvousSettings what, Ref<Store> store, std::optional<Peers> peers,
                  std::optional<MembershipFile> file, MachineSettings machine);

    void start(Ref<RendezvousOperation> operation) noexcept override;
    void stop(RendezvousOperation &operation, Status why) noexcept override;
    void released() noexcept override;
    Result<std::string> list(int64_t timeout_ns) override;

  private:
    void starve() noexcept;
    struct Input {
        enum Kind { call, stop, answer, release } kind;
        Ref<RendezvousOperation> operation = {};
        Status why = MUSTER_OK;
        uint64_t tag = 0;
        StoreAnswer answer_ = {};
    };
    ~DynamicMember() override { close_events(); }
    bool put(Input input) noexcept;
    void answered(uint64_t tag, StoreAnswer answer) noexcept override;
    Object &listener_object() noexcept override { return *this; }

    // loop thread
    void turn() noexcept;
    void due() noexcept;
    void context_closes() noexcept;
    void feed(Input &input);
    void perform();
    void ask(uint64_t tag, Store &store, const AskOps &ops);
    void visit(const std::string &address);
    void dial(uint64_t tag, const std::string &address);
    void do_own(const AskOps &ops);
    void save(uint64_t tag, Membership membership);
    void discard();
    void point(AskOps ops);
    void announce(uint64_t tag, const std::string &address, const AskOps &ops);
    Ref<Store> store() noexcept;
    void make_lease(uint64_t tag, int64_t ttl_ns, bool manual);
    void end_lease(uint64_t number);
    void withdraw(uint64_t tag);
    void begin_round(uint64_t call, const RoundPlace &place);
    void end_round(const Error &why);
    void after() noexcept; // each turn
    void end(Status why) noexcept;

    PostedTask<DynamicMember, &DynamicMember::turn> turn_{*this};
    Timer<DynamicMember, &DynamicMember::due> timer_{*this};
    Closing<DynamicMember, &DynamicMember::context_closes> closing_{*this};

    std::mutex lock_; // guards the inbox, and the store, which only the loop changes
    std::vector<Input> inbox_;
    std::atomic<bool> starved_{false}; // an input found no memory
    Ref<Store> store_;

    // loop thread
    Machine machine_;
    std::optional<Peers> peers_; // where the store may be lost with a member
    Ref<Store> own_;             // the keys of the run at this member's own store
    // For calls that may block: the file, and a listener at the origin.
    const Ref<CallSequence> aside_ = make_ref<CallSequence>();
    std::optional<MembershipFile> file_; // used there
    const MembershipFile::Released file_released_;
    bool begun_ = false, ended_ = false;
    std::map<uint64_t, Ref<RendezvousOperation>> calls_;
    std::map<uint64_t, Ref<StoreOperation>> asked_;
    std::map<uint64_t, Ref<StoreLease>> granting_, leases_; // by tag; by number
    Ref<StoreGuard> guard_;                                 // of the round the member is in
};

} // namespace muster
