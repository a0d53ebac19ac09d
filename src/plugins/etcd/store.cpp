// SPDX-License-Identifier: MIT
#include "store.hpp"

#include "task.hpp"

#include <algorithm>

namespace etcd {

namespace {
constexpr int lease_already_exists = 9, lease_not_found = 5; // codes of gRPC
// A transaction of etcd's has 128 operations; one of them is the session's mark.
constexpr uint32_t max_ops = 127;
constexpr int64_t min_lease_ns = 2 * second; // etcd's own: it follows the time of an election
constexpr int64_t longest_goodbye_ns = second;

std::string id_in(uint64_t lease) {
    return "\"ID\":\"" + std::to_string(lease) + "\"";
}
} // namespace

Store::Store(Plugin &plugin, uint64_t open_request, Url url)
    : plugin_(plugin), id_(open_request), client_(plugin.host(), std::move(url)), watches_(client_, range_of("")),
      session_(client_, root() + std::string(1, '\0') + "muster/") {
    open();
}

Store::~Store() {
    tasks_.clear();
    host()->stop_timer(leaving_);
}

Range Store::range_of(std::string_view prefix) const {
    const std::string full = root() + std::string(prefix);
    return {prefix.empty() ? full + '\1' : full, behind_all(full)};
}

// Checks that an etcd answers, has this version of the interface, and admits this user.
void Store::open() {
    const Range all = range_of("");
    const std::string body =
        "{\"key\":\"" + base64(all.begin) + "\",\"range_end\":\"" + base64(all.end) + "\",\"count_only\":true}";
    client_.call("/v3/kv/range", body, [this](Reply &reply) {
        muster_status taken = MUSTER_E_STALE;
        if (reply.ok()) {
            muster_store_traits traits{};
            traits.struct_size = sizeof traits;
            traits.flags = MUSTER_STORE_IS_REMOTE | MUSTER_STORE_ANSWERS_CANCEL;
            traits.capabilities =
                MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_WATCH | MUSTER_STORE_CAN_LEASE;
            traits.max_ops = max_ops;
            traits.min_lease_ns = min_lease_ns;
            taken = host()->store_opened(host(), id_, &traits, nullptr);
        } else {
            fail(id_, reply.failure);
        }
        if (taken != MUSTER_OK) leave(); // the store has no handle any more
    });
}

void Store::fail(uint64_t request, const Failure &why, uint32_t op) const noexcept {
    const muster_status status = why.status < 0 ? why.status : MUSTER_E_PROTOCOL;
    host()->store_failed(host(), request, status, op, why.text.data(), std::min<size_t>(why.text.size(), 200));
}

void Store::request(uint64_t request, const muster_store_request &what) {
    switch (what.kind) {
    case MUSTER_STORE_REQUEST_DO: {
        auto made = std::make_unique<Task>(*this, request, what);
        Task &task = *made;
        tasks_.emplace(request, std::move(made));
        return task.start();
    }
    case MUSTER_STORE_REQUEST_GRANT:
        return grant(request, what.lease, what.ttl_ns);
    case MUSTER_STORE_REQUEST_KEEP:
        return keep(request, what.lease);
    case MUSTER_STORE_REQUEST_END:
        return end(request, what.lease);
    default:
        fail(request, {MUSTER_E_UNSUPPORTED, "an unknown request"});
    }
}

Task *Store::find(uint64_t request) noexcept {
    const auto found = tasks_.find(request);
    return found == tasks_.end() ? nullptr : found->second.get();
}

// A request that may have been applied continues until its answer has arrived, but is not sent again.
void Store::cancel(uint64_t request) noexcept {
    Task *const task = find(request);
    if (task == nullptr || task->may_have_been_applied()) return task == nullptr ? void() : task->end_soon();
    host()->store_failed(host(), request, MUSTER_E_CANCELED, UINT32_MAX, nullptr, 0);
    tasks_.erase(request);
}

void Store::drop(Task &task) noexcept {
    tasks_.erase(task.request());
}

// ---- leases ---------------------------------------------------------------------------------------------------------

void Store::grant(uint64_t request, uint64_t lease, int64_t ttl_ns) {
    const std::string body =
        "{\"TTL\":\"" + std::to_string((ttl_ns + second - 1) / second) + "\"," + id_in(lease) + "}";
    client_.call("/v3/lease/grant", body, [this, request](Reply &reply) {
        if (reply.ok() || (reply.code == lease_already_exists && reply.doubt))
            host()->store_done(host(), request, MUSTER_OK, nullptr, 0, 0, nullptr);
        else
            fail(request, reply.failure);
    });
}

void Store::keep(uint64_t request, uint64_t lease) {
    client_.call("/v3/lease/keepalive", std::string("{").append(id_in(lease)).append("}"),
                 [this, request](Reply &reply) {
                     if (!reply.ok()) return fail(request, reply.failure);
                     const auto result = reply.body.find("result");
                     if (result == reply.body.end() || number_in(*result, "TTL") == 0) // no time left is not named
                         return fail(request, {MUSTER_E_STALE, "the lease is over"});
                     host()->store_done(host(), request, MUSTER_OK, nullptr, 0, 0, nullptr);
                 });
}

void Store::end(uint64_t request, uint64_t lease) {
    client_.call("/v3/lease/revoke", std::string("{").append(id_in(lease)).append("}"), [this, request](Reply &reply) {
        if (reply.ok() || (reply.code == lease_not_found && reply.doubt))
            return static_cast<void>(host()->store_done(host(), request, MUSTER_OK, nullptr, 0, 0, nullptr));
        if (reply.doubt) reply.failure.status = MUSTER_E_PEER;
        fail(request, reply.failure);
    });
}

// ---- the end --------------------------------------------------------------------------------------------------------

// The marks are deleted with the lease of the session.
void Store::close() noexcept {
    tasks_.clear();
    const auto due = [](void *self) {
        Store &store = *static_cast<Store *>(self);
        store.plugin_.drop(store.id_);
    };
    if (leaving_ != nullptr) return;
    host()->start_timer(host(), longest_goodbye_ns, 0, due, this, &leaving_);
    session_.end([this] { leave(); });
}

// Not inside a call of its own client.
void Store::leave() noexcept {
    const auto due = [](void *self) {
        Store &store = *static_cast<Store *>(self);
        store.plugin_.drop(store.id_);
    };
    host()->stop_timer(leaving_);
    leaving_ = nullptr;
    host()->start_timer(host(), 0, 0, due, this, &leaving_);
}

} // namespace etcd
