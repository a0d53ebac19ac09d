// SPDX-License-Identifier: MIT
#pragma once
// One member of a run, of any kind of rendezvous: its settings, its calls, its events.
#include "rendezvous/machine/event.hpp"
#include "rendezvous/machine/membership.hpp"
#include "rendezvous/member/operation.hpp"

#include <deque>

namespace muster {

struct RendezvousSettings {
    std::string run_id, address, order_key, url; // url: of a rendezvous that is served
    uint32_t min = 0, max = 0, rank = 0, flags = 0;
    int64_t keep_alive_ns = 0, last_call_ns = 0; // how long a member lasts unheard of; negative: no last call
    int64_t majority_timeout_ns = 0;             // as in the config
    std::string state_dir;                       // empty: there is none
    Ref<Queue> queue;
    uint64_t tag = 0;

    static Result<RendezvousSettings> read(const muster_rendezvous_config &config);
    std::string name() const { return "rendezvous \"" + run_id + "\""; }
};

// Any thread.
class Member : public Object, private Source {
  public:
    Member(Context &context, RendezvousSettings what) : settings(std::move(what)), context_(&context) {
        state_.missing = settings.min;
        state_.last_call_remaining_ns = -1;
    }
    const RendezvousSettings settings;
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }

    // The operation is finished once, perhaps before it returns.
    virtual void start(Ref<RendezvousOperation> operation) noexcept = 0;
    // Finishes this one if it is in progress.
    virtual void stop(RendezvousOperation &operation, Status why) noexcept = 0;
    virtual void released() noexcept = 0; // by the host
    virtual Result<std::string> list(int64_t timeout_ns) = 0;
    virtual bool would_deadlock() const noexcept { return false; } // a wait on this thread would wait for itself

    bool enlist(RendezvousOperation &operation) noexcept;
    void delist(RendezvousOperation &operation) noexcept;
    void cancel() noexcept;
    Status next_event(Deadline &deadline, muster_rendezvous_event &out) noexcept;
    muster_rendezvous_state state() noexcept;

    void open_events() noexcept; // once
    void close_events() noexcept;
    void leave_queue() noexcept; // no more notifications there

  protected:
    ~Member() override { leave_queue(); }
    void emit(const muster_rendezvous_event &event) noexcept;
    void set_state(const muster_rendezvous_state &state) noexcept;

  private:
    Object &owner() noexcept override { return *this; }

    const Ref<Context> context_;
    Signal signal_;
    std::mutex lock_; // guards the rest
    std::vector<Ref<RendezvousOperation>> operations_;
    std::deque<muster_rendezvous_event> events_;
    bool over_ = false; // no events follow any more
    uint64_t cancels_ = 0;
    muster_rendezvous_state state_{};
    int64_t state_ns_ = 0; // when it was so
};

// The handle of the host.
class Rendezvous final : public Object {
  public:
    explicit Rendezvous(Ref<Member> member) noexcept : member_(std::move(member)) {}
    static Result<Ref<Rendezvous>> open(Context &context, const muster_rendezvous_config &config, Deadline &deadline);
    Member &member() const noexcept { return *member_; }
    Context &context() const noexcept { return member_->context(); }
    // The handle of an agent's rendezvous, in addition to that of the agent. False: there are more.
    void add_handle() noexcept {
        retain();
        handles_.fetch_add(1, std::memory_order_relaxed);
    }
    bool drop_handle() noexcept { return handles_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  private:
    static Ref<Rendezvous> of(const Ref<Member> &member); // that was opened; without memory it is released
    ~Rendezvous() override {
        if (member_->forked()) return;
        member_->leave_queue();
        member_->released();
    }
    const Ref<Member> member_;
    std::atomic<uint32_t> handles_{1}; // acq_rel: the last one sees that no other thread is about to call
};

// `url`: of the store; empty if it is the caller's.
Result<Ref<Member>> open_dynamic_member(Context &context, RendezvousSettings settings, const Store &store,
                                        std::string_view url, std::optional<MembershipFile> file, Deadline &deadline);
// Of a run that the state file names. NULL: that run has ended, and the file is empty now.
Result<Ref<Member>> open_restarted_member(Context &context, const RendezvousSettings &settings, MembershipFile &file,
                                          std::string_view url, Deadline &deadline);
// `store`: empty if there is none.
Result<Ref<Member>> open_static_member(Context &context, RendezvousSettings settings, Ref<Store> store);

inline Rendezvous *unwrap(muster_rendezvous *handle) noexcept {
    return reinterpret_cast<Rendezvous *>(handle);
}
inline muster_rendezvous *wrap(Rendezvous *object) noexcept {
    return reinterpret_cast<muster_rendezvous *>(object);
}

} // namespace muster
