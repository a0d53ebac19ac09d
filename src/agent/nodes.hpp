// SPDX-License-Identifier: MIT
#pragma once
// The other nodes, as the agent's thread sees them.
#include "agent/places.hpp"
#include "queue/queue.hpp"

#include <muster/rendezvous.h>

#include <memory>

namespace muster {

template <class Handle, void (*release)(Handle *)>
struct Releaser {
    void operator()(Handle *handle) const noexcept { release(handle); }
};
using RendezvousHandle = std::unique_ptr<muster_rendezvous, Releaser<muster_rendezvous, muster_rendezvous_release>>;
using RoundHandle = std::unique_ptr<muster_round, Releaser<muster_round, muster_round_release>>;
using StoreHandle = std::unique_ptr<muster_store, Releaser<muster_store, muster_store_release>>;
using ResultHandle = std::unique_ptr<muster_store_result, Releaser<muster_store_result, muster_store_result_release>>;

// Has at most one request in progress; its answer arrives in the agent's inbox, where the agent waits for all events.
// One thread.
class Nodes {
  public:
    Nodes(Context &context, Queue &inbox, const RendezvousPlan &plan) : context_(context), inbox_(inbox), plan_(plan) {}

    Result<void> open(int64_t timeout_ns); // one try of opening the rendezvous
    void close() noexcept;
    muster_rendezvous *rendezvous() const noexcept { return rendezvous_.get(); }

    Result<void> ask(uint32_t operation, const std::string &reason, int64_t timeout_ns);
    Result<void> ask_view(const std::vector<muster_store_op> &ops, int64_t timeout_ns);
    void cancel() noexcept; // the request; its answer follows soon
    bool answered() const noexcept { return !asking_; }
    const Error &answer() const noexcept { return answer_; }
    muster_store_result *result() const noexcept { return result_.get(); } // of ask_view()

    // Handles an entry of the inbox; events are passed to `on_event`. False: the entry is not one of the nodes.
    template <class OnEvent>
    bool take(const muster_completion &entry, const muster_error &detail, OnEvent &&on_event) {
        if (entry.kind == MUSTER_EVENT_READY) {
            muster_rendezvous_event event;
            while (rendezvous_ && muster_rendezvous_next_event(rendezvous_.get(), 0, &event) == MUSTER_OK)
                on_event(event);
            return true;
        }
        return take_answer(entry, detail);
    }

    // After a join that succeeded.
    const muster_round_info &round() const noexcept { return info_; }
    bool has_view() const noexcept { return static_cast<bool>(view_); }
    void forget_round() noexcept;

    bool closed() const noexcept; // the run
    uint32_t exiting() const noexcept;

  private:
    bool take_answer(const muster_completion &entry, const muster_error &detail) noexcept;
    Result<void> begun(Status status, const muster_error &error) noexcept;

    Context &context_;
    Queue &inbox_;
    const RendezvousPlan &plan_;
    RendezvousHandle rendezvous_;
    RoundHandle round_;
    StoreHandle view_;
    muster_round_info info_{};

    bool asking_ = false;
    uint64_t question_ = 0; // number of the request
    uint64_t request_ = 0;  // of the store view; 0: the request is one of the rendezvous
    Error answer_;
    ResultHandle result_;
};

} // namespace muster
