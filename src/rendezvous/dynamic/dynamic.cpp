// SPDX-License-Identifier: MIT
#include "rendezvous/dynamic/dynamic.hpp"

#include "base/text.hpp"

#include <sodium.h>

namespace muster {

namespace {

// The conditions of a request to the view of a round: the round is the current one, and the member has its place in it.
class RoundGuard final : public StoreGuard {
  public:
    RoundGuard(std::vector<StoreCondition> conditions_of, std::string name, uint64_t number)
        : StoreGuard(std::move(conditions_of)), name_(std::move(name)), number_(number) {}

    Error broken(const StoreResult &instead, size_t first) const noexcept override {
        const auto number = static_cast<unsigned long long>(number_);
        try {
            const StoreEntry &entry = instead.entries[first];
            if ((entry.flags & MUSTER_STORE_FAILED) == 0)
                return Error::make(MUSTER_E_STALE, "%s: round %llu is over: this member was taken for dead",
                                   name_.c_str(), number);
            const auto round = entry.value ? RoundRecord::read(entry.value->bytes()) : std::nullopt;
            if (round && round->attempt.number != number_)
                return Error::make(MUSTER_E_STALE, "%s: round %llu is over: round %llu is under way", name_.c_str(),
                                   number, static_cast<unsigned long long>(round->attempt.number));
            if (round)
                return Error::make(MUSTER_E_STALE, "%s: round %llu is over: %s", name_.c_str(), number,
                                   round->abort_text().c_str());
        } catch (const std::bad_alloc &) {
        }
        return Error::make(MUSTER_E_STALE, "%s: round %llu is over", name_.c_str(), number);
    }

  private:
    const std::string name_;
    const uint64_t number_;
};

} // namespace

DynamicMember::DynamicMember(Context &context, RendezvousSettings what, Ref<Store> store, std::optional<Peers> peers,
                             std::optional<MembershipFile> file, MachineSettings machine)
    : Member(context, std::move(what)), store_(std::move(store)), machine_(std::move(machine)),
      peers_(std::move(peers)), file_(std::move(file)),
      file_released_(file_ ? file_->released() : MembershipFile::Released()) {}

Ref<Store> DynamicMember::store() noexcept {
    const std::lock_guard hold(lock_);
    return store_;
}

// ---- any thread -----------------------------------------------------------------------------------------------------

bool DynamicMember::put(Input input) noexcept {
    try {
        const std::lock_guard hold(lock_);
        inbox_.push_back(std::move(input));
    } catch (const std::bad_alloc &) {
        return false;
    }
    return turn_.post(context());
}

void DynamicMember::start(Ref<RendezvousOperation> operation) noexcept {
    if (!put({.kind = Input::call, .operation = operation}))
        operation->finish(Error::make(MUSTER_E_CLOSED, "the context is closed, or no memory is left"));
}

void DynamicMember::stop(RendezvousOperation &operation, Status why) noexcept {
    if (!put({.kind = Input::stop, .operation = Ref<RendezvousOperation>(&operation), .why = why}))
        operation.finish(Error::from_status(why));
}

void DynamicMember::released() noexcept {
    if (file_released_) file_released_->store(true, std::memory_order_release); // pairs with the wait for the file
    if (!put({.kind = Input::release})) starve();
}

void DynamicMember::answered(uint64_t tag, StoreAnswer answer) noexcept {
    if (tag == 0) return;
    if (!put({.kind = Input::answer, .tag = tag, .answer_ = std::move(answer)})) starve();
}

// An input is lost, and the machine would wait for it: the member ends.
void DynamicMember::starve() noexcept {
    starved_.store(true, std::memory_order_release);
    turn_.post(context());
}

Result<std::string> DynamicMember::list(int64_t timeout_ns) {
    AskOp members{MUSTER_STORE_LIST, std::string(keys::members)}, places{MUSTER_STORE_LIST, std::string(keys::places)};
    members.number = places.number = 1000;
    const Ref<Store> here = store();
    auto request = make_request({members, places, {MUSTER_STORE_READ, keys::round}}, here->prefix());
    if (!request) return request.error();
    const StoreAnswer answer = StoreOperation::make(*here, std::move(*request), timeout_ns)->wait();
    if (answer.error.status != MUSTER_OK) return answer.error;
    const StoreEntry &last = answer.result->entries.back();
    const auto round = last.value ? RoundRecord::read(last.value->bytes()) : std::nullopt;
    std::map<std::string, MemberRecord, std::less<>> seeking;
    for (const StoreEntry &entry : answer.result->entries) {
        if (!entry.key) continue;
        const std::string_view key = entry.key->bytes().substr(answer.result->prefix_bytes);
        if (entry.op == 0) {
            auto record = MemberRecord::read(entry.value->bytes());
            if (record && record->state == MemberRecord::seeking)
                seeking.emplace(key.substr(keys::members.size()), std::move(*record));
        } else if (entry.op == 1 && round && !round->aborted) {
            const auto place = RoundPlace::read(entry.value->bytes());
            const auto found = seeking.find(key.substr(keys::places.size()));
            if (place && found != seeking.end() && place->attempt == round->attempt &&
                place->ticket == found->second.ticket)
                seeking.erase(found);
        }
    }
    std::string text;
    for (auto &[id, record] : seeking) {
        make_printable(record.address.data(), record.address.size());
        text.append(record.address).push_back('\n');
    }
    return text;
}

// ---- loop thread ----------------------------------------------------------------------------------------------------

void DynamicMember::turn() noexcept {
    const Ref<DynamicMember> self(this);
    if (!begun_) {
        begun_ = true;
        context().on_closing(closing_);
        if (context().closed()) context_closes();
    }
    std::vector<Input> inputs;
    try {
        if (starved_.exchange(false, std::memory_order_acquire)) throw std::bad_alloc();
        for (;;) {
            inputs.clear();
            {
                const std::lock_guard hold(lock_);
                inputs.swap(inbox_);
            }
            if (inputs.empty()) break;
            for (Input &input : inputs) {
                feed(input);
                perform();
            }
        }
    } catch (const std::bad_alloc &) {
        end(MUSTER_E_NOMEM);
        for (Input &input : inputs) // inputs that the machine may not have seen
            if (input.kind == Input::call && input.operation)
                input.operation->finish(Error::from_status(MUSTER_E_NOMEM));
    }
    after();
}

void DynamicMember::feed(Input &input) {
    // While it is in progress.
    const auto id = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(input.operation.get()));
    switch (input.kind) {
    case Input::call:
        if (ended_)
            return input.operation->finish(Error::make(MUSTER_E_CLOSED, "%s: it has ended", settings.name().c_str()));
        calls_[id] = input.operation;
        return machine_.call(id, input.operation->what, input.operation->reason, now_ns());
    case Input::stop:
        if (calls_.count(id) != 0) machine_.stop(id, input.why, input.operation->seconds(), now_ns());
        return;
    case Input::answer: {
        const auto made = granting_.find(input.tag);
        if (made != granting_.end()) {
            if (input.answer_.error.status == MUSTER_OK) leases_[made->second->number()] = made->second;
            granting_.erase(made);
        }
        asked_.erase(input.tag);
        if (ended_) return;
        return machine_.answer(input.tag, input.answer_, now_ns());
    }
    case Input::release:
        if (!ended_) machine_.release(now_ns());
        perform();
        return end(MUSTER_E_CLOSED);
    }
}

void DynamicMember::perform() {
    set_state(machine_.state(now_ns())); // a caller that is notified of the end of a call sees the resulting state
    for (Action &action : machine_.take_actions()) {
        switch (action.kind) {
        case Action::ask:
            ask(action.tag, *store_, action.ops);
            break;
        case Action::lease:
            make_lease(action.tag, action.ttl_ns, action.manual);
            break;
        case Action::end_lease:
            end_lease(action.number);
            break;
        case Action::withdraw:
            withdraw(action.tag);
            break;
        case Action::finish:
            if (const auto found = calls_.find(action.tag); found != calls_.end()) {
                const Ref<RendezvousOperation> operation = std::move(found->second);
                calls_.erase(found);
                operation->finish(action.error);
            }
            break;
        case Action::begin:
            begin_round(action.tag, action.place);
            break;
        case Action::over:
            end_round(action.error);
            break;
        case Action::emit:
            emit(action.event);
            break;
        case Action::visit:
            visit(action.address);
            break;
        case Action::dial:
            dial(action.tag, action.address);
            break;
        case Action::own:
            do_own(action.ops);
            break;
        case Action::save:
            save(action.tag, std::move(action.membership));
            break;
        case Action::discard:
            discard();
            break;
        case Action::point:
            point(std::move(action.ops));
            break;
        case Action::announce:
            announce(action.tag, action.address, action.ops);
            break;
        }
    }
}

void DynamicMember::ask(uint64_t tag, Store &store, const AskOps &ops) {
    auto request = make_request(ops, store.prefix());
    if (!request) return answered(tag, {request.error(), {}});
    const auto operation = StoreOperation::make(store, std::move(*request), -1);
    if (tag != 0) asked_[tag] = operation;
    operation->begin(*this, tag);
}

void DynamicMember::make_lease(uint64_t tag, int64_t ttl_ns, bool manual) {
    const uint32_t flags = manual ? MUSTER_LEASE_MANUAL : MUSTER_LEASE_CONNECTED;
    if (auto fine = StoreLease::check(*store_, ttl_ns, flags); !fine) return answered(tag, {fine.error(), {}});
    const auto lease = make_ref<StoreLease>(*store_, ttl_ns, flags);
    const auto operation = StoreOperation::make(lease, -1);
    if (!manual) granting_[tag] = lease;
    asked_[tag] = operation;
    operation->begin(*this, tag);
}

void DynamicMember::end_lease(uint64_t number) {
    StoreOperation::make(*store_, StoreRequest::end_lease(number), -1)->begin(*this, 0);
    leases_.erase(number);
}

void DynamicMember::withdraw(uint64_t tag) {
    granting_.erase(tag); // a lease that is still granted expires by itself
    const auto found = asked_.find(tag);
    if (found == asked_.end()) return;
    const Ref<StoreOperation> operation = std::move(found->second);
    asked_.erase(found);
    operation->cancel();
}

void DynamicMember::begin_round(uint64_t call, const RoundPlace &place) {
    const std::string prefix = keys::of_round(place.attempt.number);
    const std::string &run = store_->prefix();
    guard_ = make_ref<RoundGuard>(std::vector<StoreCondition>{{run + keys::round, place.round().write()},
                                                              {run + keys::place(machine_.id()), place.write()}},
                                  settings.name(), place.attempt.number);
    auto view = store_->view(prefix + "v/", guard_), pages = store_->view(prefix + "t/", guard_);
    const auto found = calls_.find(call);
    if (found == calls_.end()) return;
    Ref<Round> round;
    if (view && pages) { // before the call is removed: without memory it is ended with the others
        const RoundFacts facts{place.attempt.number, place.rank, place.world, place.digest};
        round = make_ref<Round>(facts, std::move(*view), std::move(*pages), Round::default_page);
    }
    const Ref<RendezvousOperation> operation = std::move(found->second);
    calls_.erase(found);
    if (!round) return operation->finish(view ? pages.error() : view.error());
    operation->finish(Error(), std::move(round));
}

void DynamicMember::end_round(const Error &why) {
    if (const Ref<StoreGuard> guard = std::move(guard_)) guard->end(why);
}

void DynamicMember::due() noexcept {
    const Ref<DynamicMember> self(this);
    try {
        machine_.wake(now_ns());
        perform();
    } catch (const std::bad_alloc &) {
        end(MUSTER_E_NOMEM);
    }
    after();
}

void DynamicMember::after() noexcept {
    set_state(machine_.state(now_ns()));
    const int64_t at = ended_ ? INT64_MAX : machine_.wake_at_ns();
    if (at == INT64_MAX)
        context().loop().stop_timer(timer_);
    else
        context().loop().start_timer(timer_, at);
}

void DynamicMember::context_closes() noexcept {
    const Ref<DynamicMember> self(this);
    try {
        if (!ended_) machine_.release(now_ns());
        perform();
    } catch (const std::bad_alloc &) {
    }
    end(MUSTER_E_CLOSED);
    after();
}

// The end: the host has released the member, the context closes, or memory ran out.
void DynamicMember::end(Status why) noexcept {
    ended_ = true;
    context().forget_closing(closing_);
    for (auto &[id, operation] : std::exchange(calls_, {})) operation->finish(Error::from_status(why));
    if (guard_) guard_->end(Error::make(MUSTER_E_STALE, "%s: the member has ended", settings.run_id.c_str()));
    granting_.clear();
    leases_.clear(); // they end by themselves
    asked_.clear();
    own_.reset();
    const Ref<DynamicMember> self(this);
    try { // after the calls in progress there
        aside_->add([self] {
            self->peers_.reset();
            self->file_.reset();
        });
    } catch (const std::bad_alloc &) { // they end with this member
    }
    close_events();
}

// ---- opening --------------------------------------------------------------------------------------------------------

namespace {

std::string random_id() {
    unsigned char bytes[16];
    randombytes_buf(bytes, sizeof bytes);
    char text[2 * sizeof bytes + 1];
    sodium_bin2hex(text, sizeof text, bytes, sizeof bytes);
    return text;
}

Result<StoreAnswer> ask_and_wait(Store &store, const AskOps &ops, Deadline &deadline) {
    auto request = make_request(ops, store.prefix());
    if (!request) return request.error();
    StoreAnswer answer = StoreOperation::make(store, std::move(*request), deadline.left())->wait();
    if (answer.error.status == MUSTER_OK || answer.error.status == MUSTER_E_CHANGED) return answer;
    if (answer.error.status == MUSTER_AGAIN) return Error::from_status(MUSTER_TIMEOUT);
    // Whether it was applied does not matter: the next opener writes the same again.
    if (answer.error.status == MUSTER_E_PEER && deadline.passed())
        return Error::make(MUSTER_TIMEOUT, "%s", Error(answer.error).message);
    return answer.error;
}

RunIdentity random_identity() {
    RunIdentity identity;
    randombytes_buf(identity.data(), identity.size());
    return identity;
}

// The first member of a run generates its identity; `config` then has that of the run.
Result<void> agree(Store &store, const RendezvousSettings &settings, RunConfig &config, Deadline &deadline) {
    const std::string name = settings.name();
    config.identity = random_identity();
    auto first = ask_and_wait(
        store, {AskOp{MUSTER_STORE_SET, keys::config, config.write()}.if_absent(), {MUSTER_STORE_READ, keys::closed}},
        deadline);
    if (!first) return first.error();
    const auto &entries = first->result->entries;
    const bool closed = entries[1].version != 0, reopens = (settings.flags & MUSTER_RENDEZVOUS_REOPEN) != 0;
    const bool fresh = first->error.status == MUSTER_OK;
    const auto there = fresh              ? std::optional(config)
                       : entries[0].value ? RunConfig::read(entries[0].value->bytes())
                                          : std::nullopt;
    if (!there && !reopens)
        return Error::make(MUSTER_E_PROTOCOL, "%s: what the store has under this run cannot be understood",
                           name.c_str());
    const bool same = there && there->same_limits(config);
    if (there) config.identity = there->identity;
    if (!same && !reopens)
        return Error::make(MUSTER_E_ARG, "%s: the run has %s; here %s", name.c_str(), there->text().c_str(),
                           config.text().c_str());
    if (same && !(closed && reopens)) return {};
    auto counted = ask_and_wait(
        store, {{MUSTER_STORE_COUNT, std::string(keys::members)}, {MUSTER_STORE_READ, keys::round}}, deadline);
    if (!counted) return counted.error();
    const Error busy = Error::make(MUSTER_E_BUSY, "%s: it cannot be reopened while it has members", name.c_str());
    if (counted->result->entries[0].number != 0) return busy;
    AskOps ops{AskOp{MUSTER_STORE_NONE, keys::leader}.if_absent(),
               {MUSTER_STORE_SET, keys::config, config.write()},
               {MUSTER_STORE_DELETE, keys::closed},
               {MUSTER_STORE_DELETE, keys::called},
               {MUSTER_STORE_DELETE, keys::last_call}};
    // The promises of the last round's members are not waited for: the REOPEN flag replaces them.
    const Ref<Blob> &last = counted->result->entries[1].value;
    if (const auto round = last ? RoundRecord::read(last->bytes()) : std::nullopt)
        ops.push_back({MUSTER_STORE_SET, keys::promise_of_all(round->attempt.number), std::string(Promises::given)});
    auto reopened = ask_and_wait(store, ops, deadline);
    if (!reopened) return reopened.error();
    return reopened->error.status == MUSTER_OK ? Error() : busy;
}

} // namespace

namespace {

MachineSettings machine_settings(const RendezvousSettings &settings) {
    MachineSettings machine;
    machine.run = settings.name();
    machine.id = random_id();
    machine.address = settings.address;
    machine.order_key = settings.order_key;
    if ((settings.flags & MUSTER_RENDEZVOUS_HAS_RANK) != 0) machine.preferred = settings.rank;
    machine.config = {settings.min, settings.max, settings.last_call_ns, {}};
    machine.keep_alive_ns = settings.keep_alive_ns;
    machine.majority_ns = settings.majority_timeout_ns;
    return machine;
}

std::string prefix_of(const RendezvousSettings &settings) {
    return "muster/rdzv/" + settings.run_id + "/";
}

// The process before has left the run in order. If the processes of all members that it knew have ended, too, the run
// is over, and a new one may begin.
bool run_is_over(Context &context, const Peers &peers, const Membership &former, Deadline &deadline) {
    if (former.say != Membership::left) return false;
    for (const std::string &peer : former.peers)
        if (!peer.empty() && !peers.refused(context, peer, deadline)) return false;
    return true;
}

} // namespace

Result<Ref<Member>> open_restarted_member(Context &context, const RendezvousSettings &settings, MembershipFile &file,
                                          std::string_view url, Deadline &deadline) {
    const Membership former = *file.former();
    auto peers = Peers::open_again(context, url, former.own_host, settings.keep_alive_ns);
    if (!peers) return peers.error();
    if (run_is_over(context, *peers, former, deadline)) {
        file.discard();
        return Ref<Member>();
    }
    MachineSettings machine = machine_settings(settings);
    if (!former.config.same_limits(machine.config) && (settings.flags & MUSTER_RENDEZVOUS_REOPEN) == 0)
        return Error::make(MUSTER_E_ARG, "%s: the run has %s; here %s", settings.name().c_str(),
                           former.config.text().c_str(), machine.config.text().c_str());
    machine.queues = true;
    machine.hosted = machine.keeps_state = true;
    machine.former = former;
    machine.peer = peers->own();
    machine.origin = peers->origin();
    auto store = peers->reach(context, former.home, prefix_of(settings));
    if (!store) return store.error();
    context.log(MUSTER_LOG_INFO,
                "%s: %s: a process of this host was rank %u of round %llu: the run is looked for at %s",
                settings.name().c_str(), file.path().c_str(), former.place.rank,
                static_cast<unsigned long long>(former.place.attempt.number), former.home.c_str());
    return Ref<Member>(make_ref<DynamicMember>(context, settings, std::move(*store), std::move(*peers), std::move(file),
                                               std::move(machine)));
}

Result<Ref<Member>> open_dynamic_member(Context &context, RendezvousSettings settings, const Store &store,
                                        std::string_view url, std::optional<MembershipFile> file, Deadline &deadline) {
    constexpr uint32_t needed =
        MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_WATCH | MUSTER_STORE_CAN_LEASE;
    if ((store.backend().capabilities() & needed) != needed)
        return Error::make(MUSTER_E_UNSUPPORTED,
                           "%s: the store cannot do all of it: transactions, waits, watches, leases",
                           settings.name().c_str());
    auto keys_of_run = store.view(prefix_of(settings), {});
    if (!keys_of_run) return keys_of_run.error();
    MachineSettings machine = machine_settings(settings);
    machine.queues = (store.backend().capabilities() & MUSTER_STORE_CAN_QUEUE) != 0;
    if (auto done = agree(**keys_of_run, settings, machine.config, deadline); !done) return done.error();
    auto peers = Peers::open(context, url, **keys_of_run, settings.keep_alive_ns);
    if (!peers) return peers.error();
    machine.hosted = store.backend().hosted();
    if (*peers) {
        machine.peer = (*peers)->own();
        machine.home = machine.origin = (*peers)->origin();
        machine.serves = store.backend().served_here();
        machine.keeps_state = file.has_value();
    }
    if (!machine.keeps_state) file.reset();
    return Ref<Member>(make_ref<DynamicMember>(context, std::move(settings), std::move(*keys_of_run), std::move(*peers),
                                               std::move(file), std::move(machine)));
}

} // namespace muster
