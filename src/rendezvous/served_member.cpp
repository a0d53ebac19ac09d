// SPDX-License-Identifier: MIT
// A member of a served rendezvous: its calls, where it is, and what it is told.
#include "base/text.hpp"
#include "rendezvous/served.hpp"

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

// A view is over when this member is out of its round; what the others do is the host's to see to.
class ServedGuard final : public StoreGuard {
  public:
    ServedGuard() : StoreGuard({}) {}
    Error broken(const StoreResult &, size_t) const noexcept override { return why(); }
};

std::map<uint32_t, Ref<Blob>> table_of(const muster_rendezvous_assignment &place) {
    std::map<uint32_t, Ref<Blob>> table;
    for (uint64_t first = 0; first < place.member_count; first += Round::usual_page) {
        std::vector<std::string_view> addresses;
        for (uint64_t i = first; i < std::min(first + Round::usual_page, place.member_count); i++)
            addresses.emplace_back(static_cast<const char *>(place.members[i].address), place.members[i].address_bytes);
        table.emplace(static_cast<uint32_t>(first / Round::usual_page), Blob::make(write_page(addresses)));
    }
    return table;
}

} // namespace

// ---- opening --------------------------------------------------------------------------------------------------------

Ref<RendezvousScheme> served_rendezvous(Context &context, std::string_view url) {
    return ServedRendezvous::of(context).find(std::string(url.substr(0, url.find(':'))));
}

Result<Ref<Member>> open_served_member(Context &context, RendezvousSettings settings, Ref<RendezvousScheme> scheme,
                                       Deadline &deadline) {
    const auto member = make_ref<ServedMember>(context, std::move(settings), std::move(scheme));
    if (const Error error = member->open(deadline); error.status != MUSTER_OK) return error;
    return Ref<Member>(member);
}

Error ServedMember::open(Deadline &deadline) {
    const std::string name = settings.name();
    if (would_deadlock() || context().on_loop())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "%s: this thread has to serve it", name.c_str());
    ServedRendezvous &all = ServedRendezvous::of(context());
    home_ = make_ref<RendezvousRequest>(*scheme_, MUSTER_RENDEZVOUS_REQUEST_OPEN);
    home_->settings = settings;
    home_->settings->queue.reset();
    home_->waits = make_ref<ServedWait>();
    home_->timeout_ns = deadline.left();
    home_->home_ = this;
    if (auto sent = all.send(*home_); !sent) return sent.error();
    auto answer = home_->waits->wait(context(), deadline, home_->id);
    if (answer) return {};
    all.close_member(*home_);
    return Error::make(answer.error().status, "%s: %s", name.c_str(), answer.error().message);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

Error ServedMember::words(uint32_t what, Status status, std::string_view why) const noexcept {
    return Error::make(status, "rendezvous \"%s\": %s: %.*s", settings.run_id.c_str(), name_of(what),
                       static_cast<int>(why.size()), why.data());
}

const char *ServedMember::refuses(uint32_t what, Status &status) const noexcept {
    status = MUSTER_E_CLOSED;
    if (over_) return "nobody serves it any more";
    status = MUSTER_E_BUSY;
    const auto busy = [](const Asked &asked) { return of_position(asked.operation->what); };
    if (of_position(what) && std::any_of(asked_.begin(), asked_.end(), busy))
        return "the member joins, leaves or exits already";
    status = MUSTER_E_STALE;
    const bool needs_round = what == MUSTER_RENDEZVOUS_EXIT || what == MUSTER_RENDEZVOUS_ABORT;
    if (needs_round && shown_.phase != MUSTER_RENDEZVOUS_PHASE_JOINED) return "this member is in no round";
    return nullptr;
}

void ServedMember::start(Ref<RendezvousOperation> operation) noexcept {
    const uint32_t what = operation->what;
    Status status = MUSTER_OK;
    const char *refusal = nullptr, *left = nullptr;
    try {
        {
            const std::lock_guard hold(lock_);
            refusal = refuses(what, status);
            if (refusal == nullptr && what == MUSTER_RENDEZVOUS_LEAVE && shown_.phase == MUSTER_RENDEZVOUS_PHASE_IDLE)
                refusal = ""; // it was not in
            if (refusal == nullptr) {
                asked_.push_back({operation, 0});
                const bool in = shown_.phase == MUSTER_RENDEZVOUS_PHASE_JOINED;
                if (what == MUSTER_RENDEZVOUS_JOIN) {
                    shown_.phase = MUSTER_RENDEZVOUS_PHASE_JOINING;
                    if (in) left = "this member joined again";
                } else if (what == MUSTER_RENDEZVOUS_LEAVE) {
                    shown_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
                    if (in) left = "this member has left";
                }
                show();
            }
        }
        if (refusal != nullptr) return operation->finish(*refusal == '\0' ? Error() : words(what, status, refusal));
        if (left != nullptr) end_round(left);
        send(operation);
    } catch (const std::bad_alloc &) {
        finished(*operation, Error::from_status(MUSTER_E_NOMEM));
    }
}

void ServedMember::send(const Ref<RendezvousOperation> &operation) {
    const auto request = make_ref<RendezvousRequest>(*scheme_, operation->what + 1);
    request->member = home_->id;
    request->timeout_ns = operation->timeout_ns;
    request->reason = operation->reason;
    request->operation = operation;
    request->asker = Ref<ServedMember>(this);
    if (auto sent = ServedRendezvous::of(context()).send(*request); !sent) return finished(*operation, sent.error());
    bool lost = false;
    {
        const std::lock_guard hold(lock_);
        for (Asked &asked : asked_) // unless it was answered meanwhile
            if (asked.operation.get() == operation.get()) asked.id = request->id;
        lost = over_;
    }
    if (lost) end_calls(false, MUSTER_E_CLOSED, "nobody serves it any more");
}

void ServedMember::stop(RendezvousOperation &operation, Status why) noexcept {
    uint64_t id = 0;
    char there[64] = "no answer";
    {
        const std::lock_guard hold(lock_);
        for (const Asked &asked : asked_)
            if (asked.operation.get() == &operation) id = asked.id;
        if (operation.what == MUSTER_RENDEZVOUS_JOIN && shown_.joined != 0)
            std::snprintf(there, sizeof there, "%u of at least %u are there", shown_.joined, settings.min);
    }
    if (id == 0 || !ServedRendezvous::of(context()).drop(id)) return; // it is over
    char text[128];
    std::snprintf(text, sizeof text, "%s after %.3f s%s", there, operation.seconds(),
                  why == MUSTER_E_CANCELED ? ", cancelled" : "");
    const Ref<RendezvousOperation> alive(&operation);
    finished(operation, Error::make(why, "%s", text));
}

void ServedMember::released() noexcept {
    end_calls(false, MUSTER_E_CLOSED, "the member was released");
    end_round("the member was released");
    ServedRendezvous::of(context()).close_member(*home_);
    close_events();
}

Result<std::string> ServedMember::list(int64_t timeout_ns) {
    const auto request = make_ref<RendezvousRequest>(*scheme_, MUSTER_RENDEZVOUS_REQUEST_LIST);
    request->member = home_->id;
    request->timeout_ns = timeout_ns;
    request->waits = make_ref<ServedWait>();
    if (auto sent = ServedRendezvous::of(context()).send(*request); !sent) return sent.error();
    Deadline deadline(timeout_ns);
    auto text = request->waits->wait(context(), deadline, request->id);
    if (!text) return Error::make(text.error().status, "%s: list: %s", settings.name().c_str(), text.error().message);
    for (size_t at = 0; at < text->size(); at++) { // line by line
        const size_t end = std::min(text->find('\n', at), text->size());
        make_printable(text->data() + at, end - at);
        at = end;
    }
    return text;
}

// ---- what the host says ---------------------------------------------------------------------------------------------

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
    return make_ref<Round>(facts, std::move(view), table_of(place), Round::usual_page);
}

void ServedMember::joined(RendezvousOperation &operation, Ref<Round> round) noexcept {
    const RoundFacts facts = round->facts();
    const Ref<RendezvousOperation> alive(&operation);
    bool lost = false;
    {
        const std::lock_guard hold(lock_);
        forget(operation);
        if (round->view()) guard_ = Ref<StoreGuard>(round->view()->guard());
        number_ = facts.number;
        rank_ = facts.rank;
        world_ = facts.world;
        shown_.phase = MUSTER_RENDEZVOUS_PHASE_JOINED;
        shown_.flags &= ~uint32_t{MUSTER_RENDEZVOUS_IS_LAST_CALL};
        shown_.round = facts.number;
        shown_.present = facts.world;
        shown_.joined = shown_.waiting = 0;
        lost = over_;
        show();
    }
    operation.finish(Error(), std::move(round));
    if (lost) return end_round("nobody serves it any more");
    tell(make_event(MUSTER_RENDEZVOUS_COMPLETE, facts.number, facts.rank, facts.world, {}));
}

// Anything but a join that was answered with a round.
void ServedMember::finished(RendezvousOperation &operation, const Error &how) noexcept {
    const Ref<RendezvousOperation> alive(&operation);
    bool aborted = false;
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        forget(operation);
        if (operation.what == MUSTER_RENDEZVOUS_JOIN && shown_.phase == MUSTER_RENDEZVOUS_PHASE_JOINING)
            shown_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
        aborted = operation.what == MUSTER_RENDEZVOUS_ABORT && how.status == MUSTER_OK &&
                  shown_.phase == MUSTER_RENDEZVOUS_PHASE_JOINED;
        number = number_;
        show();
    }
    if (aborted) {
        const Error why = Error::make(MUSTER_OK, "aborted here: %s", operation.reason.c_str());
        end_round(why.message);
        tell(make_event(MUSTER_RENDEZVOUS_ABORTED, number, UINT32_MAX, 0, why.message));
    }
    operation.finish(how.status == MUSTER_OK ? Error()
                                             : words(operation.what, how.status, {how.message, how.message_bytes}));
}

Result<void> ServedMember::told(const muster_rendezvous_event &event) {
    constexpr uint32_t anybody = UINT32_MAX;
    const bool of_one = event.kind == MUSTER_RENDEZVOUS_LEFT || event.kind == MUSTER_RENDEZVOUS_DEAD;
    const bool ends = event.kind == MUSTER_RENDEZVOUS_ABORTED || event.kind == MUSTER_RENDEZVOUS_EXPELLED;
    if (event.kind < MUSTER_RENDEZVOUS_JOINED || event.kind > MUSTER_RENDEZVOUS_LOST)
        return Error::make(MUSTER_E_ARG, "there is no event %u", event.kind);
    if (event.kind == MUSTER_RENDEZVOUS_COMPLETE)
        return Error::make(MUSTER_E_ARG, "that a round is complete is told by the answer to the join");
    if (event.text_bytes >= sizeof event.text)
        return Error::make(MUSTER_E_ARG, "a text of %u bytes, at most %zu", event.text_bytes, sizeof event.text - 1);
    std::string text(event.text, event.text_bytes);
    make_printable(text.data(), text.size());
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        if (over_) return Error::make(MUSTER_E_STALE, "the member is over");
        number = number_;
        if ((of_one || ends) && shown_.phase != MUSTER_RENDEZVOUS_PHASE_JOINED)
            return Error::make(MUSTER_E_STALE, "the member is in no round");
        if (of_one && event.rank != anybody && event.rank >= world_)
            return Error::make(MUSTER_E_ARG, "rank %u of a world of %u", event.rank, world_);
        if (of_one) shown_.present -= std::min(shown_.present, event.rank == anybody ? event.count : 1);
        if (event.kind == MUSTER_RENDEZVOUS_JOINED) shown_.joined = event.count;
        if (event.kind == MUSTER_RENDEZVOUS_LAST_CALL) shown_.flags |= MUSTER_RENDEZVOUS_IS_LAST_CALL;
        if (event.kind == MUSTER_RENDEZVOUS_WAITING) shown_.waiting = event.count;
        if (event.kind == MUSTER_RENDEZVOUS_CLOSED) shown_.flags |= MUSTER_RENDEZVOUS_IS_CLOSED;
        show();
    }
    if (event.kind == MUSTER_RENDEZVOUS_LOST) {
        lose(MUSTER_E_PEER, text.c_str());
        return {};
    }
    if (ends) end_round(text); // first: whoever hears of it finds it so
    const bool counts_one = of_one && event.rank != anybody;
    tell(make_event(event.kind, number, of_one ? event.rank : anybody, counts_one ? 1 : event.count, text));
    return {};
}

void ServedMember::lose(Status status, const char *why) noexcept {
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(over_, true)) return;
        number = number_;
    }
    end_calls(false, status, why); // those who wait for its exit, too
    end_round(why);
    tell(make_event(MUSTER_RENDEZVOUS_LOST, number, UINT32_MAX, 0, why));
    close_events();
}

// ---- where it is ----------------------------------------------------------------------------------------------------

void ServedMember::end_round(std::string_view why) noexcept {
    Ref<StoreGuard> guard;
    uint64_t number = 0;
    {
        const std::lock_guard hold(lock_);
        guard = std::move(guard_);
        number = number_;
        if (shown_.phase == MUSTER_RENDEZVOUS_PHASE_JOINED) shown_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
        shown_.present = 0;
        show();
    }
    if (guard)
        guard->end(Error::make(MUSTER_E_STALE, "rendezvous \"%s\": round %llu is over: %.*s", settings.run_id.c_str(),
                               static_cast<unsigned long long>(number), static_cast<int>(why.size()), why.data()));
    end_calls(true, MUSTER_E_STALE, why);
}

void ServedMember::end_calls(bool exits_alone, Status status, std::string_view why) noexcept {
    for (;;) {
        Asked next{{}, 0};
        {
            const std::lock_guard hold(lock_);
            for (const Asked &asked : asked_)
                if (asked.id != 0 && (!exits_alone || asked.operation->what == MUSTER_RENDEZVOUS_EXIT)) next = asked;
            if (next.id == 0) return;
            forget(*next.operation); // so it is looked at once
            if (next.operation->what == MUSTER_RENDEZVOUS_JOIN) shown_.phase = MUSTER_RENDEZVOUS_PHASE_IDLE;
            show();
        }
        if (ServedRendezvous::of(context()).drop(next.id))
            next.operation->finish(words(next.operation->what, status, why)); // else it is being answered
    }
}

void ServedMember::forget(RendezvousOperation &operation) noexcept {
    std::erase_if(asked_, [&](const Asked &asked) { return asked.operation.get() == &operation; });
}

void ServedMember::show() noexcept {
    shown_.missing = settings.min - std::min(settings.min, shown_.joined);
    shown_.spares = shown_.joined - std::min(shown_.joined, shown_.waiting);
    shown_.last_call_remaining_ns = -1;
    set_state(shown_);
}

} // namespace muster
