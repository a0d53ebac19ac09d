// SPDX-License-Identifier: MIT
// A store that is another store: each request to it is begun there, and the completion is the answer.
#include "store_check/harness.hpp"

#include <cstring>
#include <future>
#include <map>

namespace store_check {

struct Relay::Self {
    struct Asked {
        uint64_t store = 0, number = 0; // 0: the other store names none
        bool alone = false;             // one operation
    };
    muster_context *context = nullptr;
    muster_queue *queue = nullptr; // requests, and completions of the other store: one thread serves both
    std::thread server;
    std::map<uint64_t, muster_store *> stores; // by the requests that have opened them
    std::map<uint64_t, Asked> asked;           // requests that the other store has not answered
    std::map<uint64_t, muster_lease *> leases; // by the library's numbers

    void serve_pulled();
    void serve_dispatched();
    void take(const muster_completion &entry, const muster_error &error);
    void asked_for(uint64_t request, const muster_store_request &what);
    void open(uint64_t request, const muster_store_request &what);
    void run(uint64_t request, const muster_store_request &what);
    void lease(uint64_t request, const muster_store_request &what);
    void answered(uint64_t request, muster_store_result *result, muster_status status, const muster_error &error);
    void refuse(uint64_t request, muster_status status, const char *text, bool alone = false) const {
        // The other store has named the operation by its index in the forwarded request.
        const char *const behind = alone ? strstr(text, "\": ") : nullptr;
        if (behind != nullptr) text = behind + 3;
        muster_store_request_fail(queue, request, status, behind != nullptr ? 0 : UINT32_MAX, text, strnlen(text, 200));
    }
    void cancelled(uint64_t request) {
        const auto found = asked.find(request);
        if (found != asked.end()) muster_store_cancel(stores[found->second.store], found->second.number);
    }
    void closed(uint64_t store) {
        const auto found = stores.find(store);
        if (found == stores.end()) return;
        muster_store_release(found->second);
        stores.erase(found);
    }
};

Relay::Relay(muster_context *context, bool pulled) : self_(std::make_unique<Self>()) {
    Self &self = *self_;
    self.context = context;
    muster_error error{};
    check::expect(muster_queue_create(context, nullptr, &self.queue, &error), MUSTER_OK, "queue", &error);
    std::promise<muster_status> registered;
    self.server = std::thread([&self, &registered, &error, pulled] { // by the thread that serves
        muster_store_host_ops ops{};
        ops.struct_size = sizeof ops;
        ops.request = [](void *me, uint64_t request, const muster_store_request *what) {
            static_cast<Self *>(me)->asked_for(request, *what);
        };
        ops.cancel = [](void *me, uint64_t request) { static_cast<Self *>(me)->cancelled(request); };
        ops.close = [](void *me, uint64_t store) { static_cast<Self *>(me)->closed(store); };
        const muster_status status =
            pulled ? muster_store_serve(self.context, "relay", 5, self.queue, 0, &error)
                   : muster_store_serve_ops(self.context, "relay", 5, &ops, &self, self.queue, &error);
        registered.set_value(status);
        if (status == MUSTER_OK) pulled ? self.serve_pulled() : self.serve_dispatched();
    });
    const muster_status status = registered.get_future().get();
    if (status == MUSTER_OK) return;
    self.server.join();
    check::expect(status, MUSTER_OK, "serve", &error);
}

Relay::~Relay() {
    muster_queue_close(self_->queue);
    self_->server.join();
    for (const auto &[number, lease] : self_->leases) muster_lease_release(lease);
    for (const auto &[number, store] : self_->stores) muster_store_release(store);
    muster_queue_release(self_->queue);
}

void Relay::Self::serve_dispatched() {
    const auto other = [](void *self, const muster_completion *entry, const muster_error *error) {
        static_cast<Self *>(self)->take(*entry, *error);
    };
    while (muster_queue_dispatch(queue, -1, other, this, nullptr) == MUSTER_OK) {
    }
}

void Relay::Self::serve_pulled() {
    muster_completion entry;
    muster_error error{};
    while (muster_queue_next(queue, -1, &entry, &error) == MUSTER_OK) {
        if (entry.kind == MUSTER_REQUEST_STORE) {
            muster_store_request what{};
            what.struct_size = sizeof what;
            if (muster_store_request_read(queue, entry.request, &what) == MUSTER_OK) asked_for(entry.request, what);
        } else if (entry.kind == MUSTER_REQUEST_CANCEL) {
            cancelled(entry.request);
        } else if (entry.kind == MUSTER_REQUEST_CLOSE) {
            closed(entry.request);
        } else {
            take(entry, error);
        }
        error = {};
    }
}

void Relay::Self::asked_for(uint64_t request, const muster_store_request &what) {
    if (what.kind == MUSTER_STORE_REQUEST_OPEN) return open(request, what);
    if (what.kind == MUSTER_STORE_REQUEST_DO) return run(request, what);
    lease(request, what);
}

void Relay::Self::open(uint64_t request, const muster_store_request &what) {
    muster_store *store = nullptr;
    muster_error error{};
    const muster_status status =
        muster_store_open(context, what.url + 6, what.url_bytes - 6, nullptr, time_limit, &store,
                          &error); // after relay:
    if (status != MUSTER_OK) return refuse(request, status, error.message);
    muster_store_traits traits{};
    traits.struct_size = sizeof traits;
    traits.flags = MUSTER_STORE_IS_REMOTE | MUSTER_STORE_ANSWERS_CANCEL;
    traits.capabilities = muster_store_capabilities(store);
    if (muster_store_request_open(queue, request, &traits, nullptr) == MUSTER_OK)
        stores[request] = store;
    else
        muster_store_release(store);
}

void Relay::Self::run(uint64_t request, const muster_store_request &what) {
    std::vector<muster_store_op> ops(what.ops, what.ops + what.op_count);
    for (muster_store_op &op : ops)
        if (op.lease != 0) op.lease = leases.count(op.lease) != 0 ? muster_lease_id(leases[op.lease]) : UINT64_MAX;
    Asked &line = asked[request];
    line.store = what.store;
    line.alone = ops.size() == 1;
    muster_error error{};
    if (what.flags & MUSTER_STORE_NO_WAIT) {
        muster_store_result *result = nullptr;
        const muster_status status = muster_store_do(stores[what.store], ops.data(), ops.size(), 0, &result, &error);
        return answered(request, result, status, error);
    }
    const muster_status status =
        muster_store_begin(stores[what.store], ops.data(), ops.size(), -1, queue, request, &line.number, &error);
    if (status != MUSTER_OK) answered(request, nullptr, status == MUSTER_AGAIN ? MUSTER_E_LIMIT : status, error);
}

void Relay::Self::lease(uint64_t request, const muster_store_request &what) {
    muster_error error{};
    muster_status status = MUSTER_E_STALE;
    if (what.kind == MUSTER_STORE_REQUEST_GRANT) {
        status = muster_store_lease(stores[what.store], what.ttl_ns, MUSTER_LEASE_MANUAL, time_limit,
                                    &leases[what.lease], &error);
    } else if (leases.count(what.lease) != 0) {
        const bool keep = what.kind == MUSTER_STORE_REQUEST_KEEP;
        status =
            keep ? muster_lease_keep(leases[what.lease]) : muster_lease_end(leases[what.lease], time_limit, &error);
    }
    if (status == MUSTER_OK)
        muster_store_request_done(queue, request, MUSTER_OK, nullptr, 0, 0, nullptr);
    else
        refuse(request, status < 0 ? status : MUSTER_E_UNREACHABLE, error.message);
}

void Relay::Self::take(const muster_completion &entry, const muster_error &error) {
    answered(entry.tag, static_cast<muster_store_result *>(entry.object), entry.status, error);
}

void Relay::Self::answered(uint64_t request, muster_store_result *result, muster_status status,
                           const muster_error &error) {
    const bool alone = asked[request].alone;
    asked.erase(request);
    if (result != nullptr) {
        std::vector<muster_store_entry> entries(muster_store_result_count(result));
        for (size_t i = 0; i < entries.size(); i++) muster_store_result_entry(result, i, &entries[i]);
        muster_error wrong{};
        if (muster_store_request_done(queue, request, status, entries.data(), entries.size(),
                                      muster_store_result_revision(result), &wrong) == MUSTER_E_ARG)
            fprintf(stderr, "relay: %s\n", wrong.message);
        muster_store_result_release(result);
    } else if (status == MUSTER_AGAIN) {
        muster_store_request_fail(queue, request, status, UINT32_MAX, nullptr, 0);
    } else {
        refuse(request, status < 0 ? status : MUSTER_E_UNREACHABLE, error.message, alone);
    }
}

} // namespace store_check
