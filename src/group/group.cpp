// SPDX-License-Identifier: MIT
#include "group/abort.hpp"
#include "group/host_reduction.hpp"

#include "base/boundary.hpp"
#include "base/text.hpp"
#include "base/trace.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace muster {

namespace {
constexpr uint32_t first_of_host = 256; // number of a reduction
constexpr size_t max_reductions = 256;
constexpr uint32_t queue_spare = 16;
constexpr int64_t reason_timeout_ns = 1'000'000'000;
constexpr int64_t cause_timeout_ns = 300'000'000;

Error cancelled(uint32_t rank) noexcept {
    return Error::make(MUSTER_E_CANCELED, "rank %u: an operation was cancelled", rank);
}
} // namespace

Group::Group(Context &context, Settings what, Ref<Queue> events, Ref<Queue> reads)
    : settings(std::move(what)), context_(&context), events_(std::move(events)), reads_(std::move(reads)),
      peers_(settings.size) {}

Group::~Group() {
    for (Peer &peer : peers_)
        for (Stream *const stream : {peer.stream, peer.messages})
            if (stream != nullptr) stream->host_release();
}

Group::Streams::~Streams() {
    for (std::vector<Ref<Stream>> *const all : {&operations, &messages})
        for (Ref<Stream> &stream : *all)
            if (stream) stream.detach()->host_release();
}

Group::Streams Group::Streams::of_one() {
    Streams streams;
    streams.operations.resize(1);
    return streams;
}

Result<Ref<Group>> Group::make(Context &context, Settings settings, Streams streams) {
    const uint32_t size = settings.size;
    auto events = Queue::create(context, queue_spare);
    if (!events) return events.error();
    auto reads = Queue::create(context, 2 * size + queue_spare);
    if (!reads) return reads.error();
    auto made = Ref<Group>::adopt(new Group(context, std::move(settings), std::move(*events), std::move(*reads)));
    const auto wake = [](void *self) noexcept -> int {
        static_cast<Group *>(self)->turn_task_.post(static_cast<Group *>(self)->context());
        return 0;
    };
    if (const Status status = made->events_->set_wake(wake, made.get()); status != MUSTER_OK)
        return Error::from_status(status);
    for (uint32_t r = 0; r < size; r++) {
        made->peers_[r].stream = streams.operations[r].detach();
        if (!streams.messages.empty()) made->peers_[r].messages = streams.messages[r].detach();
    }
    Status watched = MUSTER_OK;
    for (uint32_t r = 0; r < size; r++)
        for (Stream *const stream : {made->peers_[r].stream, made->peers_[r].messages})
            if (stream != nullptr && watched == MUSTER_OK)
                watched = stream->watch(MUSTER_STREAM_ENDED, made->events_.get(), r);
    if (watched == MUSTER_OK && made->enter_.post(context)) return made;
    made->events_->set_wake(nullptr, nullptr);
    return watched != MUSTER_OK ? Error::from_status(watched) : Error::make(MUSTER_E_CLOSED, "the context is closed");
}

// ---- the loop thread ------------------------------------------------------------------------------------------------

// From now on the close of the context ends the group.
void Group::enter() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (ended_) return;
    }
    context_->on_closing(closing_node_);
    if (context_->closed()) context_closes(); // the list may have been notified before
}

void Group::turn() noexcept {
    const Ref<Group> self(this);
    for (;;) {
        muster_completion entry;
        Error error;
        Deadline once(0);
        if (events_->next(once, &entry, &error) != MUSTER_OK) return; // it is armed again
        if (entry.kind != MUSTER_EVENT_READY || !(entry.events & MUSTER_STREAM_ENDED)) continue;
        const auto rank = static_cast<uint32_t>(entry.tag);
        if (rank >= size() || !peers_[rank].stream) continue;
        // A member whose close has ended is gone. On streams, a read of what it sent before finds out whether it was
        // needed; on the board, it has arrived or it has died.
        if (has_begun_close(rank)) continue;
        peer_ended(rank, MUSTER_E_PEER);
    }
}

bool Group::has_begun_close(uint32_t rank) noexcept {
    uint64_t sequence = 0, code = 0;
    {
        const std::lock_guard hold(lock_);
        if (!closing_) return false;
        sequence = close_sequence_;
    }
    Error why;
    if (peers_[rank].stream->reason(&code, &why) == MUSTER_E_ABORTED) return false;
    if (!board_) return true;
    uint64_t seen = 0;
    uint32_t kind = 0;
    bool is_active = false;
    board_->progress(rank, seen, kind, is_active);
    return seen >= sequence;
}

void Group::context_closes() noexcept {
    const Ref<Group> self(this);
    fail(Error::make(MUSTER_E_CLOSED, "rank %u: its context was closed", rank()));
}

void Group::end_at_loop() noexcept {
    const Ref<Group> self(this);
    events_->set_wake(nullptr, nullptr);
    context_->forget_closing(closing_node_);
    events_->close();
    reads_->close();
}

// ---- failure --------------------------------------------------------------------------------------------------------

Error Group::fail(const Error &why) noexcept {
    Board *board = nullptr;
    {
        const std::lock_guard hold(lock_);
        if (failed_) return failure_;
        failed_ = true;
        failure_ = why;
        if (failure_.rank == UINT32_MAX) failure_.rank = rank();
        board = board_.get();
    }
    // failure_ does not change any more.
    if (board != nullptr) board->fail(failure_.status, failure_.rank, failure_.message);
    for (Peer &peer : peers_)
        for (Stream *const stream : {peer.stream, peer.messages})
            if (stream != nullptr) abort_with_cause(*stream, failure_, rank());
    context_->notify(turn_signal_);
    for (;;) {
        Ref<Queue> queue;
        {
            const std::lock_guard hold(lock_);
            ClosedOnFailure *const first = closed_on_failure_.pop_front();
            if (first == nullptr) return failure_;
            queue = first->queue_;
        }
        queue->close();
    }
}

Group::ClosedOnFailure::ClosedOnFailure(Group &group, Queue &queue) noexcept : group_(&group), queue_(&queue) {
    bool failed = false;
    {
        const std::lock_guard hold(group.lock_);
        failed = group.failed_;
        if (!failed) group.closed_on_failure_.push_back(*this);
    }
    if (failed) queue.close();
}

Group::ClosedOnFailure::~ClosedOnFailure() {
    const std::lock_guard hold(group_->lock_);
    if (group_->closed_on_failure_.holds(*this)) group_->closed_on_failure_.remove(*this);
}

// The other members wait for this one, so the group fails. Returns the result of the call.
Error Group::could_not_connect(const Error &why) noexcept {
    const bool is_own = why.status == MUSTER_TIMEOUT || why.status == MUSTER_E_NOMEM ||
                        why.status == MUSTER_E_CANCELED || (why.status == MUSTER_E_LIMIT && why.os_errno != 0);
    if (!is_own) {
        // If a member has died, or could not connect, its streams of this group end, too, and show which one.
        Deadline soon(cause_timeout_ns);
        context_->wait(turn_signal_, soon, lock_, [&]() -> Status { return failed_ ? MUSTER_OK : MUSTER_AGAIN; });
    }
    Error shown = Error::make(MUSTER_E_ABORTED, "rank %u could not connect to the others: %s", rank(), why.message);
    shown.rank = rank();
    const Error first = fail(shown);
    return first.status != MUSTER_E_ABORTED || first.rank != rank() ? first : why;
}

Error Group::failure() noexcept {
    const std::lock_guard hold(lock_);
    return failed_ ? failure_ : Error();
}

Error Group::stream_ended(Stream &stream, uint32_t rank, Status status) noexcept {
    if (Error before = failure(); before.status != MUSTER_OK) return before;
    if (status == MUSTER_E_CANCELED) return fail(cancelled(this->rank())); // the call of this member
    Error why;
    if (stream.reason(nullptr, &why) == MUSTER_OK) {
        // Over shared memory this thread can notice the end before the loop has received the reason. Not so between two
        // ends in one context, where a stream that was closed in order has none.
        Deadline soon(reason_timeout_ns);
        const auto waited =
            context_->wait(turn_signal_, soon, lock_, [&]() -> Status { return failed_ ? MUSTER_OK : MUSTER_AGAIN; });
        if (Error before = failure(); before.status != MUSTER_OK) return before;
        if (waited == MUSTER_E_CANCELED) return fail(cancelled(this->rank())); // not because of that member
        stream.reason(nullptr, &why);
    }
    if (const Error cause = cause_of_abort(stream, rank, size()); cause.status != MUSTER_OK) return fail(cause);
    Error died = Error::make(MUSTER_E_PEER, "rank %u has ended: %s", rank,
                             why.status != MUSTER_OK ? why.message : muster_status_text(status));
    if (status == MUSTER_E_NOMEM || status == MUSTER_E_LIMIT || status == MUSTER_E_WOULD_DEADLOCK) {
        died = Error::make(status, "the stream to rank %u: %s", rank, muster_status_text(status));
        died.rank = this->rank();
        return fail(died);
    }
    died.rank = rank;
    return fail(died);
}

Error Group::board_failed(Status status) noexcept {
    if (status == MUSTER_TIMEOUT) return Error::from_status(status);
    if (Error before = failure(); before.status != MUSTER_OK) return before;
    Error reported;
    if (!board_->failure(reported)) return Error::from_status(MUSTER_E_INTERNAL);
    make_printable(reported.message, reported.message_bytes);
    if (reported.rank >= size()) reported.rank = rank();
    reported.status = status_elsewhere(reported.status);
    return fail(reported);
}

void Group::cancel() noexcept {
    fail(cancelled(rank()));
    // The loop thread, which ends the operation's reads, cannot wait for it, nor a function that the operation calls.
    if (context_->on_loop() || HostReduction::is_inside(*this)) return;
    Deadline none(-1);
    context_->wait(turn_signal_, none, lock_, [&]() -> Status { return performs_ ? MUSTER_AGAIN : MUSTER_OK; });
}

// ---- operations -----------------------------------------------------------------------------------------------------

Group::Ticket::Ticket(Group &group, Use use) : group_(group) {
    std::unique_lock hold(group.lock_);
    while (group.begins_) {
        hold.unlock();
        const std::lock_guard until_it_is_begun(group.ticket_lock_);
        hold.lock();
    }
    if (group.failed_) throw Failure(group.failure_);
    if (group.closing_) throw Failure(Error::make(MUSTER_E_CLOSED, "the group is closed"));
    number_ = group.tickets_++;
    if (use == Use::begun) {
        group.begins_ = true;
        return;
    }
    has_turn_ = group.turn_ == number_;
    if (has_turn_) group.performs_ = true;
    if (use != Use::close) return;
    group.closing_ = true;
    group.close_sequence_ = number_ + 1;
}

Group::Ticket::~Ticket() {
    if (!performed_)
        group_.fail(Error::make(MUSTER_E_CANCELED, "rank %u: operation %llu was cancelled before it began",
                                group_.rank(), static_cast<unsigned long long>(number_) + 1));
}

Result<void> Group::wait_turn(uint64_t number, Deadline &deadline) noexcept {
    const Status status = context_->wait(turn_signal_, deadline, lock_, [&]() -> Status {
        if (failed_) return failure_.status;
        if (turn_ != number) return MUSTER_AGAIN;
        performs_ = true;
        return MUSTER_OK;
    });
    if (status == MUSTER_OK) return {};
    const Error why = failure();
    return why.status != MUSTER_OK ? why : Error::from_status(status);
}

Result<void> Group::perform(Ticket &ticket, const GroupOperation &operation, Deadline &deadline) {
    ticket.performed_ = true;
    auto done = ticket.has_turn_ ? Result<void>() : wait_turn(ticket.number_, deadline);
    if (done) {
        try {
            done = run(operation, ticket.number_ + 1, deadline);
        } catch (const std::bad_alloc &) {
            done = Error::make(MUSTER_E_NOMEM, "out of memory");
        }
        bool is_awaited = false; // by the next operation, or by a cancel
        {
            const std::lock_guard hold(lock_);
            performs_ = false;
            if (done) turn_++;
            is_awaited = tickets_ != turn_ || failed_;
        }
        if (is_awaited) context_->notify(turn_signal_);
    }
    if (!done) {
        // The member is out of step with the others. The call itself returns why; later ones return that it has failed.
        const Status status = done.error().status;
        const Error why = failure_of_group(rank(), operation.kind, ticket.number_ + 1, done.error());
        const Error first = fail(why);
        if (first.status != MUSTER_E_ABORTED || first.rank != rank()) return first;
        if (status != MUSTER_E_ABORTED) return Error::make(status, "%s", first.message);
        return first;
    }
    return {};
}

Result<void> Group::perform(const GroupOperation &operation, Deadline &deadline) {
    if (context_->on_loop() && !context_->external())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "an operation of a group inside a callback of the engine");
    Ticket ticket(*this, Ticket::Use::at_once);
    return perform(ticket, operation, deadline);
}

// Later tickets can be taken again.
struct Group::BeginEnds {
    explicit BeginEnds(Group &of) noexcept : group(of) {}
    BeginEnds(const BeginEnds &) = delete;
    BeginEnds &operator=(const BeginEnds &) = delete;
    ~BeginEnds() {
        const std::lock_guard hold(group.lock_);
        group.begins_ = false;
    }
    Group &group;
};

struct Group::Begun {
    Begun(Group &of, GroupOperation what) : group(&of), ticket(of, Ticket::Use::begun), operation(std::move(what)) {}
    const Ref<Group> group;
    Ticket ticket;
    const GroupOperation operation;
};

Result<void> Group::begin(GroupOperation operation, Deadline deadline, muster_queue *queue, uint64_t tag) {
    const std::lock_guard hold(ticket_lock_);
    Ref<HostReduction> reduction;
    if (operation.reduction.combine != nullptr && queue != nullptr && &unwrap(queue)->context() == context_.get()) {
        auto made = HostReduction::make(*this, *unwrap(queue), operation.reduction, deadline);
        if (!made) return made.error();
        reduction = std::move(*made);
        operation.reduction = reduction->reduction();
    }
    const BeginEnds end(*this);
    const auto what = std::make_shared<Begun>(*this, std::move(operation));
    const auto body = [what, deadline, reduction]() mutable {
        Group &self = *what->group;
        BegunCall::Outcome outcome;
        if (const auto done = self.perform(what->ticket, what->operation, deadline); !done) outcome.why = done.error();
        if (outcome.why.status == MUSTER_OK && reduction && reduction->status() != MUSTER_OK)
            outcome.why = self.failure(); // nothing was left to do that would have noticed it
        if (reduction && reduction->status() == MUSTER_TIMEOUT) outcome.why.status = MUSTER_TIMEOUT;
        return outcome;
    };
    const auto cancel = [self = Ref<Group>(this)] { self->cancel(); };
    auto begun = BegunCall::begin({context(), MUSTER_DONE_CALL, body, cancel, begun_.get()}, queue, tag);
    if (begun && begun.status() == MUSTER_OK) return begun;
    what->ticket.performed_ = true; // it was not begun, and no later ticket was taken
    const std::lock_guard hold_group(lock_);
    tickets_--;
    return begun;
}

Result<void> Group::run(const GroupOperation &operation, uint64_t sequence, Deadline &deadline) {
    const TraceSpan span("group", name_of_kind(operation.kind), settings.name);
    const Fingerprint fingerprint = operation.fingerprint(sequence);
    set_seen(rank(), fingerprint);
    if (board_) board_->set_progress(sequence, operation.kind, true);
    auto done = board_ ? run_on_board(*this, operation, fingerprint, deadline)
                       : run_on_streams(*this, operation, fingerprint, deadline);
    if (board_) board_->set_progress(sequence, operation.kind, false);
    return done;
}

Result<void> Group::read(const muster_group_operation &given, GroupOperation &to) {
    const auto find = [](void *of, uint32_t number) -> const Reduction * {
        Group &self = *static_cast<Group *>(of);
        const std::lock_guard hold(self.lock_);
        const size_t index = number - first_of_host;
        return index < self.reductions_.size() ? &self.reductions_[index] : nullptr;
    };
    return to.read(given, rank(), size(), find, this);
}

Result<uint32_t> Group::add_reduction(uint32_t element_bytes, muster_reduce_fn combine, void *user) {
    const std::lock_guard hold(lock_);
    if (reductions_.size() >= max_reductions)
        return Error::make(MUSTER_E_LIMIT, "the group has %zu reductions of the host", max_reductions);
    const auto number = first_of_host + static_cast<uint32_t>(reductions_.size());
    reductions_.push_back({MUSTER_TYPE_OF_REDUCTION, number, element_bytes, combine, user});
    return number;
}

// ---- progress -------------------------------------------------------------------------------------------------------

void Group::set_seen(uint32_t rank, const Fingerprint &fingerprint) noexcept {
    peers_[rank].seen.store(fingerprint.word[0] << 8 | (fingerprint.word[1] & 0xFF), std::memory_order_relaxed);
}

void Group::get_status(uint32_t rank, muster_group_status &out) noexcept {
    out = {};
    uint32_t own_kind = 0;
    bool own_active = false, is_active = false;
    uint64_t own = 0;
    {
        const std::lock_guard hold(lock_);
        own = turn_ + 1;
        own_active = tickets_ > turn_;
    }
    const uint64_t seen = peers_[rank].seen.load(std::memory_order_relaxed);
    out.sequence = seen >> 8;
    out.kind = seen & 0xFF;
    is_active = own_active && out.sequence == own;
    if (board_) {
        uint64_t now = 0;
        out.shares_memory = 1;
        board_->progress(this->rank(), now, own_kind, own_active);
        if (own_active) own = now;
        board_->progress(rank, out.sequence, out.kind, is_active);
    }
    out.state = is_active ? MUSTER_GROUP_MEMBER_ACTIVE : MUSTER_GROUP_MEMBER_IDLE;
    if (own_active && out.sequence < own) out.state = MUSTER_GROUP_MEMBER_MISSING;
    if (const Error why = failure(); why.status != MUSTER_OK && why.rank == rank)
        out.state = MUSTER_GROUP_MEMBER_FAILED;
}

// ---- the end --------------------------------------------------------------------------------------------------------

Result<void> Group::close(Deadline &deadline) {
    if (context_->on_loop() && !context_->external())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "the close of a group inside a callback of the engine");
    const Ref<Group> self(this);
    Ticket ticket(*this, Ticket::Use::close);
    GroupOperation operation;
    operation.kind = group_close_kind;
    if (auto done = perform(ticket, operation, deadline); !done) return done;
    {
        const std::lock_guard hold(lock_);
        closed_ = true;
    }
    Deadline none(0);
    for (Peer &peer : peers_)
        for (Stream *const stream : {peer.stream, peer.messages})
            if (stream != nullptr) stream->close(none); // what was written last leaves in the background
    return {};
}

void Group::host_release() noexcept {
    if (forked()) return release();
    context_->host_calls().end_all_on(*this);
    bool closed = false;
    {
        const std::lock_guard hold(lock_);
        closed = closed_;
        ended_ = true;
    }
    if (!closed) fail(Error::make(MUSTER_E_CLOSED, "rank %u has released the group", rank()));
    if (!end_.post(*context_)) end_at_loop();
    release();
}

} // namespace muster
