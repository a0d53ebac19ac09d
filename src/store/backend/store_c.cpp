// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/trace.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"
#include "store/backend/store.hpp"

using namespace muster;

namespace {

// The result of a waiting call.
Result<void> ended(const StoreAnswer &answer, muster_error *error) noexcept {
    if (answer.error.status <= 0) return answer.error;
    report(error, answer.error);
    return Result<void>::positive(answer.error.status);
}

Result<void> can_begin(muster_store *store, muster_queue *queue, int64_t timeout_ns) {
    if (!store) return Error::make(MUSTER_E_ARG, "no store");
    if (!queue) return Error::make(MUSTER_E_ARG, "no queue");
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: what is begun ends later");
    const Store &self = *unwrap(store);
    if (self.forked()) return Error::from_status(MUSTER_E_FORKED);
    if (&unwrap(queue)->context() != &self.context())
        return Error::make(MUSTER_E_ARG, "the queue is of another context");
    if (self.context().closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    if (unwrap(queue)->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    return {};
}

Result<void> begin(StoreOperation &operation, Queue &queue, uint64_t tag, uint64_t *out_request) {
    if (operation.begin(queue, tag, out_request)) return {};
    if (queue.closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    return Result<void>::positive(MUSTER_AGAIN);
}

} // namespace

// Without grace_ns, which was added later.
static constexpr size_t first_config_bytes = sizeof(muster_store_config) - sizeof(int64_t);

static Result<void> check_open(muster_context *context, const char *url, size_t url_bytes,
                               const muster_store_config *given, int64_t timeout_ns, muster_store_config &config) {
    if (!context) return Error::make(MUSTER_E_ARG, "no context");
    if (!url || url_bytes == 0 || url_bytes > 4096)
        return Error::make(MUSTER_E_ARG, "a URL of %zu bytes, it has 1 to 4096", url ? url_bytes : 0);
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: opening may have to wait");
    if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
    if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    if (auto done = read_config(given, config, "muster_store_config", first_config_bytes); !done) return done;
    if (config.flags != 0 || config.reserved != 0)
        return Error::make(MUSTER_E_ARG, "muster_store_config: flags and reserved are zero");
    if (config.grace_ns < 0) return Error::make(MUSTER_E_ARG, "muster_store_config: grace_ns is negative");
    return {};
}

extern "C" muster_status muster_store_open(muster_context *context, const char *url, size_t url_bytes,
                                           const muster_store_config *given, int64_t timeout_ns,
                                           muster_store **out_store, muster_error *error) {
    if (out_store) *out_store = nullptr;
    return boundary(error, [&]() -> Result<void> {
        muster_store_config config;
        if (auto fine = check_open(context, url, url_bytes, given, timeout_ns, config); !fine) return fine;
        if (!out_store) return Error::make(MUSTER_E_ARG, "no place for the store");
        const HostCall call(*unwrap(context), nullptr, HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        auto store = Store::open(*unwrap(context), {url, url_bytes}, config, deadline);
        if (!store) return store.error();
        *out_store = wrap(store->detach());
        return {};
    });
}

extern "C" muster_status muster_store_open_begin(muster_context *context, const char *url, size_t url_bytes,
                                                 const muster_store_config *given, int64_t timeout_ns,
                                                 muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_store_config config;
        if (auto fine = check_open(context, url, url_bytes, given, timeout_ns, config); !fine) return fine;
        Context &self = *unwrap(context);
        Deadline deadline(timeout_ns);
        if (!deadline.endless()) deadline.at(); // time runs from here
        const auto open = [&self, text = std::string(url, url_bytes), config, deadline]() mutable {
            BegunCall::Outcome outcome;
            auto store = Store::open(self, text, config, deadline);
            if (!store) return outcome.why = store.error(), outcome;
            outcome.handle = wrap(store->get());
            outcome.object = std::move(*store);
            return outcome;
        };
        return BegunCall::begin({self, MUSTER_DONE_OPEN, open}, queue, tag);
    });
}

extern "C" muster_status muster_store_view(muster_store *store, const void *prefix, size_t prefix_bytes,
                                           muster_store **out_view, muster_error *error) {
    if (out_view) *out_view = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!store) return Error::make(MUSTER_E_ARG, "no store");
        if (!out_view) return Error::make(MUSTER_E_ARG, "no place for the view");
        if (!prefix && prefix_bytes != 0) return Error::make(MUSTER_E_ARG, "no prefix");
        if (unwrap(store)->forked()) return Error::from_status(MUSTER_E_FORKED);
        auto view = unwrap(store)->view({static_cast<const char *>(prefix), prefix_bytes});
        if (!view) return view.error();
        *out_view = wrap(view->detach());
        return {};
    });
}

extern "C" uint32_t muster_store_capabilities(const muster_store *store) {
    return store ? unwrap(store)->backend().capabilities() : 0;
}

extern "C" muster_status muster_store_do(muster_store *store, const muster_store_op *ops, size_t op_count,
                                         int64_t timeout_ns, muster_store_result **out_result, muster_error *error) {
    if (out_result) *out_result = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!store) return Error::make(MUSTER_E_ARG, "no store");
        if (unwrap(store)->forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<Store> self(unwrap(store));
        if (self->context().closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        auto request = StoreRequest::read(ops, op_count, self->prefix(), self->conditions());
        if (!request) return request.error();
        const HostCall call(self->context(), self.get());
        const size_t key_bytes = op_count != 0 ? ops->key_bytes : 0;
        const TraceSpan span("store", "request",
                             {key_bytes != 0 ? static_cast<const char *>(ops->key) : "", key_bytes});
        const int64_t begun_ns = request->waits() ? 0 : now_ns();
        StoreAnswer answer = StoreOperation::make(*self, std::move(*request), timeout_ns)->wait();
        if (begun_ns != 0) self->context().counters.store_time.observe(now_ns() - begun_ns);
        if (out_result && answer.result) *out_result = wrap(answer.result.detach());
        return ended(answer, error);
    });
}

extern "C" muster_status muster_store_begin(muster_store *store, const muster_store_op *ops, size_t op_count,
                                            int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                            uint64_t *out_request, muster_error *error) {
    if (out_request) *out_request = 0;
    return boundary(error, [&]() -> Result<void> {
        if (auto fine = can_begin(store, queue, timeout_ns); !fine) return fine;
        auto request = StoreRequest::read(ops, op_count, unwrap(store)->prefix(), unwrap(store)->conditions());
        if (!request) return request.error();
        if (auto allowed = unwrap(store)->backend().allows(*request); !allowed) return allowed;
        const auto operation = StoreOperation::make(*unwrap(store), std::move(*request), timeout_ns);
        return begin(*operation, *unwrap(queue), tag, out_request);
    });
}

extern "C" muster_status muster_store_cancel(muster_store *store, uint64_t request) {
    if (!store) return MUSTER_E_ARG;
    if (unwrap(store)->forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<Store> self(unwrap(store));
        if (request == 0) {
            for (const Ref<StoreOperation> &operation : self->backend().awaited_with(*self)) operation->cancel();
            return Status{MUSTER_OK};
        }
        const Ref<StoreOperation> operation = self->backend().find(request);
        return operation && operation->cancel() ? Status{MUSTER_OK} : Status{MUSTER_E_STALE};
    });
}

extern "C" muster_status muster_store_lease(muster_store *store, int64_t ttl_ns, uint32_t flags, int64_t timeout_ns,
                                            muster_lease **out_lease, muster_error *error) {
    if (out_lease) *out_lease = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!store) return Error::make(MUSTER_E_ARG, "no store");
        if (!out_lease) return Error::make(MUSTER_E_ARG, "no place for the lease");
        if (unwrap(store)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(store)->context().closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        if (auto fine = StoreLease::check(*unwrap(store), ttl_ns, flags); !fine) return fine;
        auto lease = make_ref<StoreLease>(*unwrap(store), ttl_ns, flags);
        const Ref<Store> self(unwrap(store)); // another thread may release it meanwhile
        const HostCall call(self->context(), self.get());
        const StoreAnswer answer = StoreOperation::make(lease, timeout_ns)->wait();
        if (answer.error.status == MUSTER_OK) *out_lease = wrap(lease.detach());
        return ended(answer, error);
    });
}

extern "C" muster_status muster_store_lease_begin(muster_store *store, int64_t ttl_ns, uint32_t flags,
                                                  int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                  uint64_t *out_request, muster_error *error) {
    if (out_request) *out_request = 0;
    return boundary(error, [&]() -> Result<void> {
        if (auto fine = can_begin(store, queue, timeout_ns); !fine) return fine;
        if (auto fine = StoreLease::check(*unwrap(store), ttl_ns, flags); !fine) return fine;
        auto lease = make_ref<StoreLease>(*unwrap(store), ttl_ns, flags);
        const auto operation = StoreOperation::make(lease, timeout_ns);
        return begin(*operation, *unwrap(queue), tag, out_request);
    });
}

extern "C" uint64_t muster_lease_id(const muster_lease *lease) {
    return lease ? unwrap(lease)->number() : 0;
}

extern "C" muster_status muster_lease_keep(muster_lease *lease) {
    if (!lease) return MUSTER_E_ARG;
    if (unwrap(lease)->forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    return unwrap(lease)->keep();
}

extern "C" muster_status muster_lease_end(muster_lease *lease, int64_t timeout_ns, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!lease) return Error::make(MUSTER_E_ARG, "no lease");
        if (unwrap(lease)->forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<StoreLease> self(unwrap(lease)); // another thread may release it meanwhile
        Store &store = self->store();
        if (store.context().closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        auto request = StoreRequest::end_lease(self->number());
        const HostCall call(store.context(), self.get(), HostCall::EndedBy::context_too);
        return ended(StoreOperation::make(store, std::move(request), timeout_ns)->wait(), error);
    });
}

extern "C" muster_status muster_lease_end_begin(muster_lease *lease, int64_t timeout_ns, muster_queue *queue,
                                                uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!lease) return Error::make(MUSTER_E_ARG, "no lease");
        Store &store = unwrap(lease)->store();
        if (auto fine = can_begin(wrap(&store), queue, timeout_ns); !fine) return fine;
        auto request = StoreRequest::end_lease(unwrap(lease)->number());
        const auto operation = StoreOperation::make(store, std::move(request), timeout_ns);
        return begin(*operation, *unwrap(queue), tag, nullptr);
    });
}

extern "C" void muster_lease_release(muster_lease *lease) {
    if (lease) release_handle(*unwrap(lease));
}

extern "C" void muster_store_release(muster_store *store) {
    if (store) release_handle(*unwrap(store));
}

extern "C" uint64_t muster_store_result_count(const muster_store_result *result) {
    return result ? unwrap(result)->entries.size() : 0;
}

extern "C" muster_status muster_store_result_entry(const muster_store_result *result, uint64_t index,
                                                   muster_store_entry *out_entry) {
    if (!result || !out_entry) return MUSTER_E_ARG;
    const StoreResult &self = *unwrap(result);
    if (index >= self.entries.size()) return MUSTER_E_NOT_FOUND;
    const StoreEntry &from = self.entries[index];
    muster_store_entry entry{};
    entry.op = from.op;
    entry.flags = from.flags;
    entry.version = from.version;
    entry.number = from.number;
    if (from.key) {
        const std::string_view key = from.key->bytes().substr(self.prefix_bytes);
        entry.key = key.data();
        entry.key_bytes = key.size();
    }
    if (from.value) {
        entry.value = from.value->bytes().data();
        entry.value_bytes = from.value->size();
    }
    *out_entry = entry;
    return MUSTER_OK;
}

extern "C" uint64_t muster_store_result_revision(const muster_store_result *result) {
    return result ? unwrap(result)->revision : 0;
}

extern "C" void muster_store_result_release(muster_store_result *result) {
    if (result) unwrap(result)->release();
}
