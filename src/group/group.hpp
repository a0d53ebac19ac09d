// SPDX-License-Identifier: MIT
#pragma once
// A group: its members, the order of its operations, and its failure.
#include "base/list.hpp"
#include "group/operation.hpp"
#include "queue/call_threads.hpp"
#include "queue/queue.hpp"
#include "stream/stream.hpp"
#include "transport/hub.hpp"

#include <muster/group.h>

#include <deque>
#include <memory>
#include <mutex>

namespace muster {

// Threads. Operations are performed one at a time, in the order of their tickets, each on the thread of its call; that
// thread reads and writes the streams and the board. The loop thread notices that a stream has ended. Any thread calls
// the rest.
// Failure: the first one counts. It aborts all streams with its status and rank, by which the other members learn of
// it, and wakes this member's threads and, through the board, those of the others.
class Group final : public Object {
  public:
    struct Settings {
        uint32_t rank = 0, size = 0, flags = 0;
        uint64_t slot_bytes = 0;
        std::string name, listen;
    };
    // Streams to all other members, by rank, and a second one for messages, or none; the group owns the handles.
    struct Streams {
        std::vector<Ref<Stream>> operations, messages;
        Streams() = default;
        static Streams of_one(); // member
        Streams(Streams &&other) noexcept = default;
        Streams &operator=(Streams &&other) = delete;
        ~Streams();
    };
    static Result<Ref<Group>> make(Context &context, Settings settings, Streams streams);

    const Settings settings;
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }
    uint32_t rank() const noexcept { return settings.rank; }
    uint32_t size() const noexcept { return settings.size; }

    // Agrees with the other members on shared memory; before the first operation, and the same at all members.
    Result<void> agree_on_memory(bool wanted, Deadline &deadline);

    Result<void> read(const muster_group_operation &given, GroupOperation &to); // a new one
    Result<uint32_t> add_reduction(uint32_t element_bytes, muster_reduce_fn combine, void *user);
    // The turn of an operation. If it ends without having been performed, the group fails: the member is out of step.
    class Ticket {
      public:
        enum class Use { at_once, begun, close };
        // Throws Failure: the group has failed, or is closed. `begun`: another thread performs the operation; the
        // caller holds ticket_lock_. Otherwise this thread performs it, and the turn begins now if no earlier
        // operation is left.
        Ticket(Group &group, Use use);
        Ticket(const Ticket &) = delete;
        Ticket &operator=(const Ticket &) = delete;
        ~Ticket();

      private:
        friend class Group;
        Group &group_; // outlives it
        uint64_t number_ = 0;
        bool performed_ = false, has_turn_ = false;
    };
    // Begins the operation with a queue, on a thread of the library.
    Result<void> begin(GroupOperation operation, Deadline deadline, muster_queue *queue, uint64_t tag);
    // Waits until done() is true, which is called with the lock held; or ABORTED: the group has failed. notify_change()
    // follows each change.
    template <class Done>
    Status wait_unless_failed(Deadline &deadline, Done &&done) noexcept {
        return context_->wait(turn_signal_, deadline, lock_, [&]() -> Status {
            if (failed_) return MUSTER_E_ABORTED;
            return done() ? MUSTER_OK : MUSTER_AGAIN;
        });
    }
    void notify_change() noexcept { context_->notify(turn_signal_); }
    Result<void> perform(Ticket &ticket, const GroupOperation &operation, Deadline &deadline);
    Result<void> perform(const GroupOperation &operation, Deadline &deadline);
    Result<void> send(uint32_t to, const void *data, uint64_t bytes, Deadline &deadline);
    Result<void> receive(uint32_t from, void *data, uint64_t capacity, Deadline &deadline, uint64_t &out_bytes);
    Result<void> close(Deadline &deadline);
    void get_status(uint32_t rank, muster_group_status &out) noexcept;
    // The first failure is kept, and returned: also if it is an earlier one.
    Error fail(const Error &why) noexcept;
    Error failure() noexcept; // of the group; OK: it has not failed
    void cancel() noexcept;   // the operation that is performed; it uses no memory of the host after that
    // Closes the queue when the group fails: for a thread that waits there for the other members. Any thread.
    class ClosedOnFailure : public Listed<ClosedOnFailure> {
      public:
        ClosedOnFailure(Group &group, Queue &queue) noexcept;
        ClosedOnFailure(const ClosedOnFailure &) = delete;
        ClosedOnFailure &operator=(const ClosedOnFailure &) = delete;
        ~ClosedOnFailure();

      private:
        friend class Group;
        const Ref<Group> group_;
        const Ref<Queue> queue_;
    };
    Error could_not_connect(const Error &why) noexcept; // this member, to all others once more
    void host_release() noexcept;

    // ---- for the thread that performs an operation (stream_path.cpp, board_path.cpp)
    Stream &stream(uint32_t rank) noexcept { return *peers_[rank].stream; }
    Board &board() noexcept { return *board_; }
    Queue &reads() noexcept { return *reads_; }
    void set_seen(uint32_t rank, const Fingerprint &fingerprint) noexcept;
    // A stream to this member has ended, or cannot be used.
    Error peer_ended(uint32_t rank, Status status) noexcept { return stream_ended(*peers_[rank].stream, rank, status); }
    Error board_failed(Status status) noexcept; // meet() has failed

  private:
    struct Peer {
        Stream *stream = nullptr;      // the group has the handle; NULL: this member itself
        std::atomic<uint64_t> seen{0}; // relaxed: sequence and kind of its last operation, for people
        // Messages: the stream for them, or NULL; held by the call that sends, and by the one that receives.
        Stream *messages = nullptr;
        std::timed_mutex sends, receives;
        bool has_head = false; // of a message that did not fit, and has `bytes`; under `receives`
        uint64_t bytes = 0;
    };
    Group(Context &context, Settings what, Ref<Queue> events, Ref<Queue> reads);
    ~Group() override;
    void enter() noexcept;
    void turn() noexcept;
    void end_at_loop() noexcept;
    void context_closes() noexcept;
    Error stream_ended(Stream &stream, uint32_t rank, Status status) noexcept;
    Result<Peer *> peer_for_messages(uint32_t rank);
    Result<void> message_failed(Peer &peer, uint32_t rank, Status status, const char *what);
    Result<void> wait_turn(uint64_t number, Deadline &deadline) noexcept;
    Result<void> run(const GroupOperation &operation, uint64_t sequence, Deadline &deadline);
    bool has_begun_close(uint32_t rank) noexcept;

    const Ref<Context> context_;
    const Ref<Queue> events_, reads_; // ends of streams, for the loop thread; reads that were begun
    std::vector<Peer> peers_;
    std::unique_ptr<Board> board_;
    const Ref<CallSequence> begun_ = make_ref<CallSequence>(); // performs the operations that were begun

    struct Begun; // an operation that was begun
    struct BeginEnds;
    std::mutex ticket_lock_; // held while an operation is begun; before lock_
    std::mutex lock_;        // guards the rest
    Signal turn_signal_;
    std::deque<Reduction> reductions_; // only ever added
    uint64_t tickets_ = 0, turn_ = 0;  // number of the next ticket, and of the one that is performed
    bool failed_ = false, closing_ = false, closed_ = false, ended_ = false;
    uint64_t close_sequence_ = 0;
    bool performs_ = false; // an operation uses memory of the host
    bool begins_ = false;   // an operation is being begun: the last ticket may be given back
    Error failure_;
    List<ClosedOnFailure> closed_on_failure_;

    PostedTask<Group, &Group::enter> enter_{*this};
    PostedTask<Group, &Group::turn> turn_task_{*this};
    PostedTask<Group, &Group::end_at_loop> end_{*this};
    Closing<Group, &Group::context_closes> closing_node_{*this};
};

// The two ways of an operation; on the thread that performs it. The failure is not yet that of the group.
Result<void> run_on_board(Group &group, const GroupOperation &operation, const Fingerprint &fingerprint,
                          Deadline &deadline);
Result<void> run_on_streams(Group &group, const GroupOperation &operation, const Fingerprint &fingerprint,
                            Deadline &deadline);

// Finds the other members and connects to them.
Result<Ref<Group>> open_group(Context &context, const muster_group_config &config, Deadline &deadline);
// The same within a group, which fails if a member cannot connect. All members make the call.
Result<Ref<Group>> split_group(Group &group, int64_t color, int64_t key, Deadline &deadline); // empty: no color
// A new stream to each other member, by rank, of which the caller has the handles.
Result<std::vector<Ref<Stream>>> connect_members(Group &group, Deadline &deadline);

inline Group *unwrap(muster_group *handle) noexcept {
    return reinterpret_cast<Group *>(handle);
}
inline const Group *unwrap(const muster_group *handle) noexcept {
    return reinterpret_cast<const Group *>(handle);
}
inline muster_group *wrap(Group *object) noexcept {
    return reinterpret_cast<muster_group *>(object);
}

} // namespace muster
