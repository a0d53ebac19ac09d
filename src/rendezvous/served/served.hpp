// SPDX-License-Identifier: MIT
#pragma once
// Rendezvous served by the host: the calls of members become requests, answered by id.
#include "queue/served.hpp"
#include "rendezvous/member/member.hpp"

#include <muster/rendezvous_serve.h>

namespace muster {

class ServedMember;

// One scheme. Any thread.
class RendezvousProvider final : public Provided<Object> {
  public:
    static constexpr ServedKind served_kind = ServedKind::rendezvous;
    // `ops` NULL: requests are pulled.
    RendezvousProvider(Context &context, const std::string &scheme, Queue &queue, const muster_rendezvous_ops *ops,
                       void *self, uint64_t tag);

    // --- the host's answers
    static Result<void> read(Queue &queue, uint64_t id, muster_rendezvous_request &out);
    static Result<void> round(Queue &queue, uint64_t id, const muster_rendezvous_assignment &place);
    static Result<void> done(Queue &queue, uint64_t id, std::string_view text);
    static Result<void> fail(Queue &queue, uint64_t id, Status status, std::string_view text);
    static Result<void> notify(Queue &queue, uint64_t member, const muster_rendezvous_event &event);

  private:
    void call_for(ServedRequest &request) override;
    const muster_rendezvous_ops ops_;
};

// One request to the provider. That of an OPEN is kept as the member until the member is released. Any thread.
class RendezvousRequest final : public ServedRequest {
  public:
    static constexpr ServedKind served_kind = ServedKind::rendezvous;
    RendezvousRequest(RendezvousProvider &provider, uint32_t what)
        : ServedRequest(provider, MUSTER_REQUEST_RENDEZVOUS), kind(what) {}
    void set_settings(const RendezvousSettings &settings); // OPEN: of the member
    void write(muster_rendezvous_request &out) const noexcept;
    void end(const Error &why) noexcept; // ends the waiting thread or the operation with this status; once
    void set_member(ServedMember *member) noexcept;
    Ref<ServedMember> opened_member() noexcept;

    const uint32_t kind; // MUSTER_RENDEZVOUS_REQUEST_OPEN and others
    uint64_t member = 0;
    int64_t timeout_ns = -1;
    std::string reason;
    Ref<ServedAnswer<std::string>> answer; // OPEN, LIST
    Ref<RendezvousOperation> operation;    // the others,
    Ref<ServedMember> caller;              // and its member

  private:
    void withdrawn(const Error &why, bool answered) noexcept override;
    std::optional<RendezvousSettings> settings_;
    muster_rendezvous_config config_{};
    std::mutex lock_;                // guards the rest
    ServedMember *opened_ = nullptr; // OPEN: until the member is released
};

// Any thread.
class ServedMember final : public Member {
  public:
    ServedMember(Context &context, RendezvousSettings what, Ref<RendezvousProvider> provider)
        : Member(context, std::move(what)), provider_(std::move(provider)) {}
    Error open(Deadline &deadline);

    void start(Ref<RendezvousOperation> operation) noexcept override;
    void stop(RendezvousOperation &operation, Status why) noexcept override;
    void released() noexcept override;
    Result<std::string> list(int64_t timeout_ns) override;
    bool would_deadlock() const noexcept override { return provider_->would_deadlock(); }

    // --- the host's answers and events
    Result<void> check(const muster_rendezvous_assignment &place);
    Result<Ref<Round>> make_round(const muster_rendezvous_assignment &place);
    void joined(RendezvousOperation &operation, Ref<Round> round) noexcept;
    void finished(RendezvousOperation &operation, const Error &how) noexcept;
    Result<void> notify(const muster_rendezvous_event &event);
    void lose(Status status, const char *why) noexcept; // it is no longer served

  private:
    struct PendingCall {
        Ref<RendezvousOperation> operation;
        uint64_t id; // of its request; 0: about to be sent
    };
    ~ServedMember() override {
        if (opening_) opening_->set_member(nullptr); // where open() threw
    }
    Error make_error(uint32_t what, Status status, std::string_view why) const noexcept;
    const char *find_refusal(uint32_t what, Status &status) const noexcept; // with the lock
    void send(const Ref<RendezvousOperation> &operation);
    void end_round(std::string_view why) noexcept; // its store view ends, and so do calls that wait for its exit
    void end_calls(bool only_exits, Status status, std::string_view why) noexcept;
    void remove(RendezvousOperation &operation) noexcept; // with the lock
    void publish_state() noexcept;                        // with the lock

    const Ref<RendezvousProvider> provider_;
    Ref<RendezvousRequest> opening_; // set once, before others know the member
    std::mutex lock_;                // guards the rest
    std::vector<PendingCall> pending_;
    Ref<StoreGuard> guard_; // of its current round, where that has a store
    muster_rendezvous_state state_{};
    uint32_t rank_ = 0, world_ = 0;
    uint64_t number_ = 0;
    bool is_over_ = false;
};

// Empty: no such scheme is served.
Ref<RendezvousProvider> served_rendezvous(Context &context, std::string_view url);
Result<Ref<Member>> open_served_member(Context &context, RendezvousSettings settings, Ref<RendezvousProvider> provider,
                                       Deadline &deadline);

} // namespace muster
