// SPDX-License-Identifier: MIT
// A member of a served rendezvous: its calls, its state, and the events from the host.
#include "base/text.hpp"
#include "rendezvous/served/served.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr uint32_t world_max = 1 << 20;
constexpr size_t address_max = 1024;

const char *name_of(uint32_t what) noexcept {
    constexpr const char *names[] = {"", "join", "leave", "exit", "abort", "close"};
    return what < sizeof names / sizeof names[0] ? names[what] : "";
}

bool of_position(uint32_t what) noexcept {
    return what <= MUSTER_RENDEZVOUS_EXIT;
}

// A view ends when this member leaves its round; the other members are the host's concern.
class ServedGuard final : public StoreGuard {
  public:
    ServedGuard() : StoreGuard({}) {}
    Error broken(const StoreResult &, size_t) const noexcept override { return why(); }
};

std::map<uint32_t, Ref<Blob>> table_of(const muster_rendezvous_assignment &place) {
    std::map<uint32_t, Ref<Blob>> table;
    for (uint64_t first = 0; first < place.member_count; first += Round::default_page) {
        std::vector<std::string_view> addresses;
        for (uint64_t i = first; i < std::min(first + Round::default_page, place.member_count); i++)
            addresses.emplace_back(static_cast<const char *>(place.members[i].address), place.members[i].address_bytes);
        table.emplace(static_cast<uint32_t>(first / Round::default_page), Blob::make(write_page(addresses)));
    }
    return table;
}

} // namespace

// ---- opening --------------------------------------------------------------------------------------------------------

Ref<RendezvousProvider> served_rendezvous(Context &context, std::string_view url) {
    return ServedRequests::of(context).find<RendezvousProvider>(std::string(url.substr(0, url.find(':'))));
}

Result<Ref<Member>> open_served_member(Context &context, RendezvousSettings settings, Ref<RendezvousProvider> provider,
                                       Deadline &deadline) {
    const auto member = make_ref<ServedMember>(context, std::move(settings), std::move(provider));
    if (const Error error = member->open(deadline); error.status != MUSTER_OK) return error;
    return Ref<Member>(member);
}

Error ServedMember::open(Deadline &deadline) {
    const std::string name = settings.name();
    if (would_deadlock() || context().on_loop())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "%s: this thread has to serve it", name.c_str());
    opening_ = make_ref<RendezvousRequest>(*provider_, MUSTER_RENDEZVOUS_REQUEST_OPEN);
    opening_->set_settings(settings);
    opening_->answer = make_ref<ServedAnswer<std::string>>();
    opening_->timeout_ns = deadline.left();
    opening_->set_member(this);
    if (auto sent = ServedRequests::of(context()).send(*opening_); !sent) return sent.error();
    auto answer = opening_->answer->wait(context(), deadline, opening_->id());
    if (answer) return {};
    opening_->set_member(nullptr);
    return Error::make(answer.error().status, "%s: %s", name.c_str(), answer.error().message);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

Error ServedMember::make_error(uint32_t what, Status status, std::string_view why) const noexcept {
    return Error::make(status, "rendezvous \"%s\": %s: %.*s", settings.run_id.c_str(), name_of(what),
                       static_cast<int>(why.size()), why.data());
}

const char *ServedMember::find_refusal(uint32_t what, Status &status) const noexcept {
    status = MUSTER_E_CLOSED;
    if (is_over_) return "it is no longer served";
    status = MUSTER_E_BUSY;
    const auto busy = [](const PendingCall &call) { return of_position(call.operation->what); };
    if (of_position(what) && std::any_of(pending_.begin(), pending_.end(), busy))
        return "another join, leave or exit of the member is not finished";
    status = MUSTER_E_STALE;
    const bool needs_round = what == MUSTER_RENDEZVOUS_EXIT || what == MUSTER_RENDEZVOUS_ABORT;
    if (needs_round && state_.phase != MUSTER_RENDEZVOUS_PHASE_JOINED) return "this member is in no round";
    return nullptr;
}

void ServedMember::start(Ref<RendezvousOperation> operation) noexcept {
    const uint32_t what = operation->what;
    Status status = MUSTER_OK;
    const char *refusal = nullptr, *left = nullptr;
    try {
        {
            const std::lock_guard hold(lock_);
            refusal = find_refusal(what, status);
            if (refusal == nullptr && what == MUSTER_RENDEZVOUS_LEAVE && state_.phase == MUSTER_RENDEZVOUS_PHASE_IDLE)
                refusal = ""; // it is in no round
            if (refusal == nullptr) {
                pending_.push_back({operation, 0});
                const bool in = state_.phase == MUSTER_RENDEZVOUS_PHASE_JOINED;
                if (what == MUSTER_RENDEZVOUS_JOIN) {
                    state_.phase = MUSTER_RENDEZVOUS_PHASE_JOINING;
                    if (in) left = "this member joined again";
                } else if (what == MUSTER_RENDEZVOUS_LEAVE) {
                    state_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
                    if (in) left = "this member has left";
                }
                publish_state();
            }
        }
        if (refusal != nullptr)
            return operation->finish(*refusal == '\0' ? Error() : make_error(what, status, refusal));
        if (left != nullptr) end_round(left);
        send(operation);
    } catch (const std::bad_alloc &) {
        finished(*operation, Error::from_status(MUSTER_E_NOMEM));
    }
}

void ServedMember::send(const Ref<RendezvousOperation> &operation) {
    const auto request = make_ref<RendezvousRequest>(*provider_, operation->what + 1);
    request->member = opening_->id();
    request->timeout_ns = operation->timeout_ns;
    request->reason = operation->reason;
    request->operation = operation;
    request->caller = Ref<ServedMember>(this);
    if (auto sent = ServedRequests::of(context()).send(*request); !sent) return finished(*operation, sent.error());
    bool lost = false;
    {
        const std::lock_guard hold(lock_);
        for (PendingCall &call : pending_) // unless it was answered meanwhile
            if (call.operation.get() == operation.get()) call.id = request->id();
        lost = is_over_;
    }
    if (lost) end_calls(false, MUSTER_E_CLOSED, "it is no longer served");
}

void ServedMember::stop(RendezvousOperation &operation, Status why) noexcept {
    uint64_t id = 0;
    char there[64] = "no answer";
    {
        const std::lock_guard hold(lock_);
        for (const PendingCall &call : pending_)
            if (call.operation.get() == &operation) id = call.id;
        if (operation.what == MUSTER_RENDEZVOUS_JOIN && state_.joined != 0)
            std::snprintf(there, sizeof there, "%u of at least %u are there", state_.joined, settings.min);
    }
    if (id == 0 || !ServedRequests::of(context()).drop(id)) return; // it is over
    char text[128];
    std::snprintf(text, sizeof text, "%s after %.3f s%s", there, operation.seconds(),
                  why == MUSTER_E_CANCELED ? ", cancelled" : "");
    const Ref<RendezvousOperation> alive(&operation);
    finished(operation, Error::make(why, "%s", text));
}

void ServedMember::released() noexcept {
    end_calls(false, MUSTER_E_CLOSED, "the member was released");
    end_round("the member was released");
    opening_->set_member(nullptr);
    ServedRequests::of(context()).end(opening_->id());
    close_events();
}

Result<std::string> ServedMember::list(int64_t timeout_ns) {
    const auto request = make_ref<RendezvousRequest>(*provider_, MUSTER_RENDEZVOUS_REQUEST_LIST);
    request->member = opening_->id();
    request->timeout_ns = timeout_ns;
    request->answer = make_ref<ServedAnswer<std::string>>();
    if (auto sent = ServedRequests::of(context()).send(*request); !sent) return sent.error();
    Deadline deadline(timeout_ns);
    auto text = request->answer->wait(context(), deadline, request->id());
    if (!text) return Error::make(text.error().status, "%s: list: %s", settings.name().c_str(), text.error().message);
    for (size_t at = 0; at < text->size(); at++) { // line by line
        const size_t end = std::min(text->find('\n', at), text->size());
        make_printable(text->data() + at, end - at);
        at = end;
    }
    return text;
}

// ---- answers and events ---------------------------------------------------------------------------------------------

Result<void> ServedMember::check(const muster_rendezvous_assignment &place) {
    if (place.world == 0 || place.world > world_max || place.rank >= place.world)
        return Error::make(MUSTER_E_ARG, "rank %u of a world of %u", place.rank, place.world);
    if (place.world < settings.min || place.world > settings.max)
        return Error::make(MUSTER_E_ARG, "a world of %u, the member asked for %u to %u", place.world, settings.min,
                           settings.max);
    if (place.reserved != 0) return Error::make(MUSTER_E_ARG, "muster_rendezvous_assignment: reserved is zero");
    if (place.member_count != 0 && (place.member_count != place.world || place.members == nullptr))
        return Error::make(MUSTER_E_ARG, "a table of %llu members of a world of %u",
                           static_cast<unsigned long long>(place.member_count), place.world);
    for (uint64_t i = 0; i < place.member_count; i++)
        if (place.members[i].address_bytes > address_max ||
            (place.members[i].address == nullptr && place.members[i].address_bytes != 0))
            return Error::make(MUSTER_E_ARG, "member %llu: an address without a place, or of more than %zu bytes",
                               static_cast<unsigned long long>(i), address_max);
    if (const Store *const store = unwrap(place.store)) {
        if (&store->context() != &context()) return Error::make(MUSTER_E_ARG, "the store is of another context");
        if (store->guard() != nullptr) return Error::make(MUSTER_E_ARG, "the store is that of another round");
    }
    const std::lock_guard hold(lock_);
    if (place.number <= number_)
        return Error::make(MUSTER_E_ARG, "round %llu after round %llu", static_cast<unsigned long long>(place.number),
                           static_cast<unsigned long long>(number_));
    return {};
}

Result<Ref<Round>> ServedMember::make_round(const muster_rendezvous_assignment &place) {
    RoundFacts facts{place.number, place.rank, place.world, {}};
    std::memcpy(facts.digest.data(), place.digest, facts.digest.size());
    Ref<Store> view;
    if (const Store *const store = unwrap(place.store)) {
        auto made = store->view({}, make_ref<ServedGuard>());
        if (!made) return made.error();
        view = std::move(*made);
    }
    return make_ref<Round>(facts, std::move(view), table_of(place), Round::default_page);
}

void ServedMember::joined(RendezvousOperation &operation, Ref<Round> round) noexcept {
    const RoundFacts facts = round->facts();
    const Ref<RendezvousOperation> alive(&operation);
    bool lost = false;
    {
        const std::lock_guard hold(lock_);
        remove(operation);
        if (round->view()) guard_ = Ref<StoreGuard>(round->view()->guard());
        number_ = facts.number;
        rank_ = facts.rank;
        world_ = facts.world;
        state_.phase = MUSTER_RENDEZVOUS_PHASE_JOINED;
        state_.flags &= ~uint32_t{MUSTER_RENDEZVOUS_IS_LAST_CALL};
        state_.round = facts.number;
        state_.present = facts.world;
        state_.joined = state_.waiting = 0;
        lost = is_over_;
        publish_state();
    }
    operation.finish(Error(), std::move(round));
    if (lost) return end_round("it is no longer served");
    emit(make_event(MUSTER_RENDEZVOUS_COMPLETE, facts.number, facts.rank, facts.world, {}));
}

// Of any operation but a join that was answered with a round.
void ServedMember::finished(RendezvousOperation &operation, const Error &how) noexcept {
    const Ref<RendezvousOperation> alive(&operation);
    bool aborted = false;
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        remove(operation);
        if (operation.what == MUSTER_RENDEZVOUS_JOIN && state_.phase == MUSTER_RENDEZVOUS_PHASE_JOINING)
            state_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
        aborted = operation.what == MUSTER_RENDEZVOUS_ABORT && how.status == MUSTER_OK &&
                  state_.phase == MUSTER_RENDEZVOUS_PHASE_JOINED;
        number = number_;
        publish_state();
    }
    if (aborted) {
        const Error why = Error::make(MUSTER_OK, "aborted here: %s", operation.reason.c_str());
        end_round(why.message);
        emit(make_event(MUSTER_RENDEZVOUS_ABORTED, number, UINT32_MAX, 0, why.message));
    }
    operation.finish(
        how.status == MUSTER_OK ? Error() : make_error(operation.what, how.status, {how.message, how.message_bytes}));
}

Result<void> ServedMember::notify(const muster_rendezvous_event &event) {
    constexpr uint32_t no_rank = UINT32_MAX;
    const bool of_one = event.kind == MUSTER_RENDEZVOUS_LEFT || event.kind == MUSTER_RENDEZVOUS_DEAD;
    const bool ends = event.kind == MUSTER_RENDEZVOUS_ABORTED || event.kind == MUSTER_RENDEZVOUS_EXPELLED;
    if (event.kind < MUSTER_RENDEZVOUS_JOINED || event.kind > MUSTER_RENDEZVOUS_LOST)
        return Error::make(MUSTER_E_ARG, "there is no event %u", event.kind);
    if (event.kind == MUSTER_RENDEZVOUS_COMPLETE)
        return Error::make(MUSTER_E_ARG, "COMPLETE follows from the answer to the join");
    if (event.text_bytes >= sizeof event.text)
        return Error::make(MUSTER_E_ARG, "a text of %u bytes, at most %zu", event.text_bytes, sizeof event.text - 1);
    std::string text(event.text, event.text_bytes);
    make_printable(text.data(), text.size());
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        if (is_over_) return Error::make(MUSTER_E_STALE, "the member is over");
        number = number_;
        if ((of_one || ends) && state_.phase != MUSTER_RENDEZVOUS_PHASE_JOINED)
            return Error::make(MUSTER_E_STALE, "the member is in no round");
        if (of_one && event.rank != no_rank && event.rank >= world_)
            return Error::make(MUSTER_E_ARG, "rank %u of a world of %u", event.rank, world_);
        if (of_one) state_.present -= std::min(state_.present, event.rank == no_rank ? event.count : 1);
        if (event.kind == MUSTER_RENDEZVOUS_JOINED) state_.joined = event.count;
        if (event.kind == MUSTER_RENDEZVOUS_LAST_CALL) state_.flags |= MUSTER_RENDEZVOUS_IS_LAST_CALL;
        if (event.kind == MUSTER_RENDEZVOUS_WAITING) state_.waiting = event.count;
        if (event.kind == MUSTER_RENDEZVOUS_CLOSED) state_.flags |= MUSTER_RENDEZVOUS_IS_CLOSED;
        publish_state();
    }
    if (event.kind == MUSTER_RENDEZVOUS_LOST) {
        lose(MUSTER_E_PEER, text.c_str());
        return {};
    }
    if (ends) end_round(text); // before the event: a caller that takes the event finds the round over
    const bool counts_one = of_one && event.rank != no_rank;
    emit(make_event(event.kind, number, of_one ? event.rank : no_rank, counts_one ? 1 : event.count, text));
    return {};
}

void ServedMember::lose(Status status, const char *why) noexcept {
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(is_over_, true)) return;
        number = number_;
    }
    end_calls(false, status, why); // also those that wait for its exit
    end_round(why);
    emit(make_event(MUSTER_RENDEZVOUS_LOST, number, UINT32_MAX, 0, why));
    close_events();
}

// ---- its state ----------------------------------------------------------------------------------------------------

void ServedMember::end_round(std::string_view why) noexcept {
    Ref<StoreGuard> guard;
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        guard = std::move(guard_);
        number = number_;
        if (state_.phase == MUSTER_RENDEZVOUS_PHASE_JOINED) state_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
        state_.present = 0;
        publish_state();
    }
    if (guard)
        guard->end(Error::make(MUSTER_E_STALE, "rendezvous \"%s\": round %llu is over: %.*s", settings.run_id.c_str(),
                               static_cast<unsigned long long>(number), static_cast<int>(why.size()), why.data()));
    end_calls(true, MUSTER_E_STALE, why);
}

void ServedMember::end_calls(bool only_exits, Status status, std::string_view why) noexcept {
    for (;;) {
        PendingCall next{{}, 0};
        {
            const std::lock_guard hold(lock_);
            for (const PendingCall &call : pending_)
                if (call.id != 0 && (!only_exits || call.operation->what == MUSTER_RENDEZVOUS_EXIT)) next = call;
            if (next.id == 0) return;
            remove(*next.operation); // so that the loop sees it once
            if (next.operation->what == MUSTER_RENDEZVOUS_JOIN) state_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
            publish_state();
        }
        if (ServedRequests::of(context()).drop(next.id))
            next.operation->finish(make_error(next.operation->what, status, why)); // else it is being answered
    }
}

void ServedMember::remove(RendezvousOperation &operation) noexcept {
    std::erase_if(pending_, [&](const PendingCall &call) { return call.operation.get() == &operation; });
}

void ServedMember::publish_state() noexcept {
    state_.missing = settings.min - std::min(settings.min, state_.joined);
    state_.spares = state_.joined - std::min(state_.joined, state_.waiting);
    state_.last_call_remaining_ns = -1;
    set_state(state_);
}

} // namespace muster
