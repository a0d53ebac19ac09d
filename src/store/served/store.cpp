// SPDX-License-Identifier: MIT
// A served store as its users see it: opening, requests, leases that are kept.
#include "base/boundary.hpp"
#include "store/served/served.hpp"

#include <sodium.h>

namespace muster {

// ---- opening --------------------------------------------------------------------------------------------------------

// A registered provider, or the one of a plug-in.
static Result<Ref<StoreProvider>> find_provider(const StoreOpening &opening) {
    const std::string name(opening.url.substr(0, opening.url.find(':')));
    ServedRequests &requests = ServedRequests::of(opening.context);
    if (Ref<StoreProvider> known = requests.find<StoreProvider>(name)) return known;
    for (const char c : name)
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '.' && c != '-')
            return Error::make(MUSTER_E_NOT_FOUND, "store \"%s\": a scheme has a-z 0-9 + . -", opening.shown.c_str());
    if (Result<void> found = Plugins::of(opening.context).provide(name, "store"); !found) return found.error();
    if (Ref<StoreProvider> known = requests.find<StoreProvider>(name)) return known;
    return Error::make(MUSTER_E_NOT_FOUND, "store \"%s\": there is no such kind: %s:// carries streams",
                       opening.shown.c_str(), name.c_str());
}

Result<Ref<StoreBackend>> open_served_store(const StoreOpening &opening) {
    auto provider = find_provider(opening);
    if (!provider) return provider.error();
    if ((*provider)->would_deadlock() || opening.context.on_loop())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "store \"%s\": this thread has to serve it", opening.shown.c_str());
    ServedRequests &requests = ServedRequests::of(opening.context);
    const auto request = make_ref<StoreServedRequest>(**provider, MUSTER_STORE_REQUEST_OPEN);
    request->url = opening.url;
    request->opening = make_ref<ServedAnswer<muster_store_traits>>();
    if (Result<void> sent = requests.send(*request); !sent) return sent.error();
    auto traits = request->opening->wait(opening.context, opening.deadline, request->id());
    if (!traits) {
        const Status status = traits.error().status;
        return Error::make(status == MUSTER_TIMEOUT ? MUSTER_E_UNREACHABLE : status, "store \"%s\": %s",
                           opening.shown.c_str(), traits.error().message);
    }
    try {
        return Ref<StoreBackend>(make_ref<ServedStore>(opening, request, *traits));
    } catch (...) {
        requests.end(request->id());
        throw;
    }
}

ServedStore::~ServedStore() {
    leases_->remove_all();
    if (!context().forked()) ServedRequests::of(context()).end(home_->id());
}

// ---- requests -------------------------------------------------------------------------------------------------------

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

// Never finished for the caller: an operation that ends before submit() returns is found to have.
bool ServedStore::submit(StoreOperation &operation) noexcept {
    try {
        const Ref<StoreServedRequest> request = request_for(operation);
        operation.place.store(request->id(), std::memory_order_relaxed);
        if (Result<void> sent = ServedRequests::of(context()).send(*request); !sent)
            operation.finish({sent.error(), {}});
    } catch (const std::bad_alloc &) {
        operation.finish({Error::make(MUSTER_E_NOMEM, "out of memory"), {}});
    }
    return false;
}

Ref<StoreServedRequest> ServedStore::request_for(StoreOperation &operation) {
    auto &provider = static_cast<StoreProvider &>(home_->provider());
    const StoreOp &op = operation.request.ops().front();
    if (!operation.request.of_lease()) {
        auto request = make_ref<StoreServedRequest>(provider, MUSTER_STORE_REQUEST_DO);
        request->set_operation(operation, home_->id());
        const bool cannot_wait = (traits_.capabilities & MUSTER_STORE_CAN_WAIT) == 0;
        if (operation.looks_once() || cannot_wait) request->flags = MUSTER_STORE_NO_WAIT;
        return request;
    }
    const bool grant = op.kind == store_grant;
    auto request =
        make_ref<StoreServedRequest>(provider, grant ? MUSTER_STORE_REQUEST_GRANT : MUSTER_STORE_REQUEST_END);
    request->operation = Ref<StoreOperation>(&operation);
    request->store = home_->id();
    request->lease = op.lease;
    if (!grant) {
        leases_->remove(op.lease);
        return request;
    }
    while (request->lease == 0) { // random, so that no request is needed for one
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
    const bool is_in_doubt = is_elsewhere() && operation.request.has_effect();
    const bool wants_answer = is_in_doubt && answers_cancel();
    switch (ServedRequests::of(context()).cancel(id, wants_answer)) {
    case ServedRequests::Cancelled::over:
        return Withdrawn::over;
    case ServedRequests::Cancelled::unseen:
        return Withdrawn::yes;
    default:
        return wants_answer ? Withdrawn::asked : is_in_doubt ? Withdrawn::in_doubt : Withdrawn::yes;
    }
}

// A request whose CANCEL was sent remains until the host answers it: the host may be reading it.
bool ServedStore::forget(StoreOperation &operation) noexcept {
    return ServedRequests::of(context()).is_unanswered(operation.place.load(std::memory_order_relaxed));
}

// ---- leases ---------------------------------------------------------------------------------------------------------

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
    gone->abandon();
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
        return lease ? lease->renew() : Status{MUSTER_E_STALE};
    });
}

void ServedStore::abandon(uint64_t number, int64_t) noexcept {
    leases_->remove(number);
}

// While one KEEP is unanswered there is no second one: the provider itself retries for as long as it makes sense.
Status ServedLease::renew() {
    if (renewing_.exchange(true, std::memory_order_relaxed)) return MUSTER_OK;
    try {
        const auto request =
            make_ref<StoreServedRequest>(static_cast<StoreProvider &>(home_->provider()), MUSTER_STORE_REQUEST_KEEP);
        request->store = home_->id();
        request->lease = number_;
        request->ttl_ns = ttl_ns_;
        request->keeper = Ref<ServedLease>(this);
        const Result<void> sent = ServedRequests::of(context()).send(*request);
        if (!sent) renewing_.store(false, std::memory_order_relaxed);
        return sent.error().status;
    } catch (...) {
        renewing_.store(false, std::memory_order_relaxed);
        throw;
    }
}

void ServedLease::renewed(Status status) noexcept {
    renewing_.store(false, std::memory_order_relaxed);
    if (status == MUSTER_E_STALE) return all_->remove(number_);
    if (manual_ && status == MUSTER_OK) restart();
}

void ServedLease::abandon() noexcept {
    abandoned_.store(true, std::memory_order_relaxed);
    arm_.post(context()); // stops the timer
}

void ServedLease::arm() noexcept {
    Loop &loop = context().loop();
    if (is_abandoned()) return loop.stop_timer(timer_);
    loop.start_timer(timer_, now_ns() + (manual_ ? ttl_ns_ : ttl_ns_ / 3));
}

void ServedLease::due() noexcept {
    if (is_abandoned()) return;
    if (manual_) return all_->remove(number_); // the host has not renewed it
    boundary([&] { return renew(); });
    arm();
}

} // namespace muster
