// SPDX-License-Identifier: MIT
#pragma once
// Rendezvous served by the host: what members want becomes requests, answered by id.
//
// A request has a slot of the queue for itself and one for its last word (CLOSE or CANCEL), reserved when it is made,
// so none of them is ever lost. That of an OPEN stays, as the member, until it is released.
#include "rendezvous/member.hpp"

#include <muster/rendezvous_serve.h>

#include <map>

namespace muster {

class ServedMember;

// Somebody waits on their thread for an OPEN or a LIST.
class ServedWait final : public Object {
  public:
    void done(Context &context, const Error &how, std::string text = {}) noexcept;
    // Drops the request `id` when the time is over.
    Result<std::string> wait(Context &context, Deadline &deadline, uint64_t id);

  private:
    Signal signal_;
    std::mutex lock_; // guards the rest
    bool over_ = false;
    Error how_;
    std::string text_;
};

// One scheme. Any thread.
class RendezvousScheme final : public Object, public RequestTable {
  public:
    // `ops` NULL: requests are pulled.
    RendezvousScheme(Context &context, std::string name, Queue &queue, const muster_rendezvous_ops *ops, void *self,
                     uint64_t tag);
    Context &context() const noexcept { return context_; }
    const std::string &name() const noexcept { return name_; }
    Queue &queue() const noexcept { return *queue_; }
    bool has_table() const noexcept { return with_ops_; }
    bool would_deadlock() const noexcept;
    bool reserve(int slots) noexcept;
    Error why_refused() const; // after a false of reserve()
    void unreserve(int slots) noexcept;
    // Into a slot that was reserved. `about` NULL: the end of the table.
    void say(int32_t kind, class RendezvousRequest *about) noexcept;

  private:
    friend class ServedRendezvous;
    void serve(const muster_completion &entry) override;

    Context &context_;
    const std::string name_;
    const Ref<Queue> queue_;
    muster_rendezvous_ops ops_{};
    const bool with_ops_;
    void *const self_;
    const uint64_t tag_;
    const pthread_t registrant_;
    bool withdrawn_ = false; // these two under the lock of ServedRendezvous
    uint64_t under_way_ = 0; // requests that the host may still hear of
};

// What it asks is not changed any more once others know it; the rest is under the lock of ServedRendezvous.
class RendezvousRequest final : public Object {
  public:
    RendezvousRequest(RendezvousScheme &to, uint32_t what) : kind(what), scheme_(&to) {}
    RendezvousScheme &scheme() const noexcept { return *scheme_; }
    void tell(muster_rendezvous_request &out) const noexcept;
    void end(const Error &why) noexcept; // whoever asked is told; once

    const uint32_t kind;
    uint64_t id = 0, member = 0;
    int64_t timeout_ns = -1;
    std::string reason;
    std::optional<RendezvousSettings> settings; // OPEN: of the member
    Ref<ServedWait> waits;                      // OPEN, LIST
    Ref<RendezvousOperation> operation;         // the others
    Ref<ServedMember> asker;                    // of those

  private:
    friend class ServedRendezvous;
    friend class ServedMember;
    const Ref<RendezvousScheme> scheme_;
    muster_rendezvous_config config_{};
    ServedMember *home_ = nullptr;         // OPEN: the member, until it is released
    bool answered_ = false, seen_ = false; // seen: its callback has run
};

// The schemes and open requests of a context. Any thread.
class ServedRendezvous final : public ContextPart, private QueueServer {
  public:
    static ServedRendezvous &of(Context &context);
    explicit ServedRendezvous(Context &context) : context_(context) {}

    Result<void> add(Ref<RendezvousScheme> scheme);
    Result<void> withdraw(const std::string &scheme);
    Ref<RendezvousScheme> find(const std::string &scheme);
    Result<void> send(RendezvousRequest &request);
    // Nobody wants it any more. False: it was answered.
    bool drop(uint64_t id) noexcept;
    void close_member(RendezvousRequest &open) noexcept;

    // --- the host's words ---
    Result<void> read(Queue &queue, uint64_t id, muster_rendezvous_request &out);
    Result<void> round(Queue &queue, uint64_t id, const muster_rendezvous_assignment &place);
    Result<void> done(Queue &queue, uint64_t id, std::string_view text);
    Result<void> fail(Queue &queue, uint64_t id, Status status, std::string_view text);
    Result<void> tell(Queue &queue, uint64_t member, const muster_rendezvous_event &event);

  private:
    friend class RendezvousScheme;
    Ref<RendezvousRequest> heard(uint64_t id) noexcept;
    Result<Ref<RendezvousRequest>> look(Queue &queue, uint64_t id);
    bool take(RendezvousRequest &request) noexcept;
    Ref<ServedMember> home_of(RendezvousRequest &open) noexcept;            // with the lock
    void part_with(RendezvousRequest &request, int32_t last_word) noexcept; // 0: none
    void withdraw(RendezvousScheme &scheme) noexcept;
    void leave(RendezvousScheme &scheme) noexcept;
    void queue_released(Queue &queue) noexcept override;
    void close() noexcept override;

    Context &context_;
    std::mutex lock_;                                     // guards the rest
    std::map<uint64_t, Ref<RendezvousRequest>> requests_; // unanswered, and those of members
    std::map<std::string, Ref<RendezvousScheme>> schemes_;
    uint64_t next_ = uint64_t{3} << 61; // away from the numbers of transports' and stores' requests
};

// Any thread.
class ServedMember final : public Member {
  public:
    ServedMember(Context &context, RendezvousSettings what, Ref<RendezvousScheme> scheme)
        : Member(context, std::move(what)), scheme_(std::move(scheme)) {}
    Error open(Deadline &deadline);

    void start(Ref<RendezvousOperation> operation) noexcept override;
    void stop(RendezvousOperation &operation, Status why) noexcept override;
    void released() noexcept override;
    Result<std::string> list(int64_t timeout_ns) override;
    bool would_deadlock() const noexcept override { return scheme_->would_deadlock(); }

    // --- what the host says ---
    Result<void> check(const muster_rendezvous_assignment &place);
    Result<Ref<Round>> make_round(const muster_rendezvous_assignment &place);
    void joined(RendezvousOperation &operation, Ref<Round> round) noexcept;
    void finished(RendezvousOperation &operation, const Error &how) noexcept;
    Result<void> told(const muster_rendezvous_event &event);
    void lose(Status status, const char *why) noexcept; // nobody serves it any more

  private:
    struct Asked {
        Ref<RendezvousOperation> operation;
        uint64_t id; // 0: on its way
    };
    Error words(uint32_t what, Status status, std::string_view why) const noexcept;
    const char *refuses(uint32_t what, Status &status) const noexcept; // with the lock
    void send(const Ref<RendezvousOperation> &operation);
    void end_round(std::string_view why) noexcept; // its store view, and who waits for its exit
    void end_calls(bool exits_alone, Status status, std::string_view why) noexcept;
    void forget(RendezvousOperation &operation) noexcept; // with the lock
    void show() noexcept;                                 // with the lock

    const Ref<RendezvousScheme> scheme_;
    Ref<RendezvousRequest> home_; // set once, before anybody else knows the member
    std::mutex lock_;             // guards the rest
    std::vector<Asked> asked_;
    Ref<StoreGuard> guard_; // of the round it is in, where that has a store
    muster_rendezvous_state shown_{};
    uint32_t rank_ = 0, world_ = 0;
    uint64_t number_ = 0;
    bool over_ = false;
};

// Empty: no such scheme is served.
Ref<RendezvousScheme> served_rendezvous(Context &context, std::string_view url);
Result<Ref<Member>> open_served_member(Context &context, RendezvousSettings settings, Ref<RendezvousScheme> scheme,
                                       Deadline &deadline);

} // namespace muster
