// SPDX-License-Identifier: MIT
// A served store as its users see it: opening, requests, leases that are kept.
#include "base/boundary.hpp"
#include "store/served.hpp"

#include <sodium.h>

namespace muster {

// ---- opening
// ---------------------------------------------------------------------------------------------------------

void ServedOpening::done(Context &context, const Result<muster_store_traits> &how) noexcept {
    {
        const std::lock_guard hold(lock_);
        over_ = true;
        how_ = how;
    }
    context.notify(signal_);
}

Result<muster_store_traits> ServedOpening::wait(Context &context, Deadline &deadline, uint64_t id) {
    Deadline endless(-1);
    Deadline *limit = &deadline;
    for (;;) {
        const uint32_t seen = signal_.seen();
        {
            const std::lock_guard hold(lock_);
            if (over_) return how_;
        }
        const Status status = context.sleep(signal_, seen, *limit);
        if (status == MUSTER_OK) continue;
        if (ServedStores::of(context).drop(id))
            return Error::make(status == MUSTER_TIMEOUT ? MUSTER_E_UNREACHABLE : status, "no answer in time");
        limit = &endless; // it is being answered
    }
}

// A scheme that is known, or that a plug-in brings.
static Result<Ref<ServedScheme>> scheme_of(const StoreOpening &opening) {
    const std::string name(opening.url.substr(0, opening.url.find(':')));
    ServedStores &stores = ServedStores::of(opening.context);
    if (Ref<ServedScheme> known = stores.find(name)) return known;
    for (const char c : name)
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '.' && c != '-')
            return Error::make(MUSTER_E_NOT_FOUND, "store \"%s\": a scheme has a-z 0-9 + . -", opening.shown.c_str());
    if (Result<void> found = Plugins::of(opening.context).provide(name, "store"); !found) return found.error();
    if (Ref<ServedScheme> known = stores.find(name)) return known;
    return Error::make(MUSTER_E_NOT_FOUND, "store \"%s\": there is no such kind: %s:// carries streams",
                       opening.shown.c_str(), name.c_str());
}

Result<Ref<StoreBackend>> open_served_store(const StoreOpening &opening) {
    auto scheme = scheme_of(opening);
    if (!scheme) return scheme.error();
    if ((*scheme)->would_deadlock() || opening.context.on_loop())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "store \"%s\": this thread has to serve it", opening.shown.c_str());
    ServedStores &stores = ServedStores::of(opening.context);
    const auto request = make_ref<ServedRequest>(**scheme, MUSTER_STORE_REQUEST_OPEN);
    request->url = opening.url;
    request->opening = make_ref<ServedOpening>();
    if (Result<void> sent = stores.send(*request); !sent) return sent.error();
    auto traits = request->opening->wait(opening.context, opening.deadline, request->id);
    if (!traits)
        return Error::make(traits.error().status, "store \"%s\": %s", opening.shown.c_str(), traits.error().message);
    try {
        return Ref<StoreBackend>(make_ref<ServedStore>(opening, request, *traits));
    } catch (...) {
        stores.close_store(*request);
        throw;
    }
}

ServedStore::~ServedStore() {
    leases_->remove_all();
    if (!context().forked()) ServedStores::of(context()).close_store(*home_);
}

// ---- requests
// --------------------------------------------------------------------------------------------------------

Result<void> ServedStore::allows(const StoreRequest &request) const {
    const size_t max_ops = traits_.max_ops != 0 ? traits_.max_ops : store_ops_max;
    if (request.ops().size() > max_ops)
        return Error::make(MUSTER_E_LIMIT, "a request of %zu operations, this store takes %zu", request.ops().size(),
                           max_ops);
    if (traits_.max_request_bytes != 0 && request.bytes() > traits_.max_request_bytes)
        return Error::make(MUSTER_E_LIMIT, "a request of %zu bytes, this store takes %llu", request.bytes(),
                           static_cast<unsigned long long>(traits_.max_request_bytes));
    return StoreBackend::allows(request);
}

// Never over at once: what has ended before it returns is found so.
bool ServedStore::submit(StoreOperation &operation) noexcept {
    try {
        const Ref<ServedRequest> request = request_for(operation);
        if (Result<void> sent = ServedStores::of(context()).send(*request); !sent) operation.finish({sent.error(), {}});
    } catch (const std::bad_alloc &) {
        operation.finish({Error::make(MUSTER_E_NOMEM, "out of memory"), {}});
    }
    return false;
}

Ref<ServedRequest> ServedStore::request_for(StoreOperation &operation) {
    const StoreOp &op = operation.request.ops().front();
    if (!operation.request.of_lease()) {
        auto request = make_ref<ServedRequest>(home_->scheme(), MUSTER_STORE_REQUEST_DO);
        request->ask_for(operation, home_->id);
        const bool cannot_wait = (traits_.capabilities & MUSTER_STORE_CAN_WAIT) == 0;
        if (operation.looks_once() || cannot_wait) request->flags = MUSTER_STORE_NO_WAIT;
        return request;
    }
    const bool grant = op.kind == store_grant;
    auto request =
        make_ref<ServedRequest>(home_->scheme(), grant ? MUSTER_STORE_REQUEST_GRANT : MUSTER_STORE_REQUEST_END);
    request->operation = Ref<StoreOperation>(&operation);
    request->store = home_->id;
    request->lease = op.lease;
    if (!grant) {
        leases_->remove(op.lease);
        return request;
    }
    while (request->lease == 0) { // random: so nobody has to be asked for one
        randombytes_buf(&request->lease, sizeof request->lease);
        request->lease >>= 1; // etcd's are signed
    }
    request->ttl_ns = op.number;
    request->leases = leases_;
    request->keeper =
        make_ref<ServedLease>(home_, leases_, request->lease, op.number, (op.version & MUSTER_LEASE_MANUAL) != 0);
    return request;
}

Withdrawn ServedStore::withdraw(StoreOperation &operation, std::string &missing) noexcept {
    try {
        missing = operation.request.waits() ? operation.request.names_of_waits() : operation.request.name(0);
    } catch (const std::bad_alloc &) { // then the text does without
    }
    const uint64_t id = operation.place.load(std::memory_order_relaxed);
    ServedStores &stores = ServedStores::of(context());
    if (id == 0) return Withdrawn::over;
    if (is_elsewhere() && operation.request.has_effect()) return stores.cancel(id, answers_cancel());
    return stores.drop(id) ? Withdrawn::yes : Withdrawn::over;
}

// What the host was told to cancel stays until the host answers it: what the host looks at must not vanish.
bool ServedStore::forget(StoreOperation &operation) noexcept {
    return ServedStores::of(context()).is_open(operation.place.load(std::memory_order_relaxed));
}

// ---- leases
// ----------------------------------------------------------------------------------------------------------

void ServedLeases::add(uint64_t number, Ref<ServedLease> lease) {
    const std::lock_guard hold(lock_);
    leases_.emplace(number, std::move(lease));
}

Ref<ServedLease> ServedLeases::find(uint64_t number) {
    const std::lock_guard hold(lock_);
    const auto found = leases_.find(number);
    return found == leases_.end() ? Ref<ServedLease>() : found->second;
}

void ServedLeases::remove(uint64_t number) noexcept {
    Ref<ServedLease> gone;
    {
        const std::lock_guard hold(lock_);
        const auto found = leases_.find(number);
        if (found == leases_.end()) return;
        gone = std::move(found->second);
        leases_.erase(found);
    }
    gone->leave();
}

void ServedLeases::remove_all() noexcept {
    for (;;) {
        uint64_t number = 0;
        {
            const std::lock_guard hold(lock_);
            if (leases_.empty()) return;
            number = leases_.begin()->first;
        }
        remove(number);
    }
}

Status ServedStore::keep(uint64_t number, int64_t) noexcept {
    return boundary([&]() -> Status {
        const Ref<ServedLease> lease = leases_->find(number);
        return lease ? lease->keep() : Status{MUSTER_E_STALE};
    });
}

void ServedStore::abandon(uint64_t number, int64_t) noexcept {
    leases_->remove(number);
}

// One that is not answered is not asked again: whoever serves it tries as long as it makes sense.
Status ServedLease::keep() {
    if (keeping_.exchange(true, std::memory_order_relaxed)) return MUSTER_OK;
    try {
        const auto request = make_ref<ServedRequest>(home_->scheme(), MUSTER_STORE_REQUEST_KEEP);
        request->store = home_->id;
        request->lease = number_;
        request->ttl_ns = ttl_ns_;
        request->keeper = Ref<ServedLease>(this);
        const Result<void> sent = ServedStores::of(context()).send(*request);
        if (!sent) keeping_.store(false, std::memory_order_relaxed);
        return sent.error().status;
    } catch (...) {
        keeping_.store(false, std::memory_order_relaxed);
        throw;
    }
}

void ServedLease::kept(Status status) noexcept {
    keeping_.store(false, std::memory_order_relaxed);
    if (status == MUSTER_E_STALE) return all_->remove(number_);
    if (manual_ && status == MUSTER_OK) begin();
}

void ServedLease::leave() noexcept {
    left_.store(true, std::memory_order_relaxed);
    arm_.post(context()); // stops the timer
}

void ServedLease::arm() noexcept {
    Loop &loop = context().loop();
    if (left()) return loop.stop_timer(timer_);
    loop.start_timer(timer_, now_ns() + (manual_ ? ttl_ns_ : ttl_ns_ / 3));
}

void ServedLease::due() noexcept {
    if (left()) return;
    if (manual_) return all_->remove(number_); // nobody has kept it
    boundary([&] { return keep(); });
    arm();
}

} // namespace muster
