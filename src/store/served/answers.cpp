// SPDX-License-Identifier: MIT
// Answers of providers, and their checks.
#include "store/served/served.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr uint32_t every_capability = MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_QUEUE | MUSTER_STORE_CAN_WAIT |
                                      MUSTER_STORE_CAN_WATCH | MUSTER_STORE_CAN_LEASE | MUSTER_STORE_CAN_BARRIER;

bool shows_value(const StoreOp &op, bool changed) noexcept {
    switch (op.kind) {
    case MUSTER_STORE_NONE:
    case MUSTER_STORE_GET:
    case MUSTER_STORE_READ:
    case MUSTER_STORE_LIST:
    case MUSTER_STORE_WATCH:
    case MUSTER_STORE_POP:
    case MUSTER_STORE_TRY_POP:
        return true;
    default:
        return changed;
    }
}

bool may_be_many(const StoreOp &op) noexcept {
    return op.of_many() && op.kind != MUSTER_STORE_COUNT;
}

std::string_view view(const void *data, uint64_t size) noexcept {
    return {static_cast<const char *>(data), size};
}

// The error of one entry of many, after `before` of the same operation; or NULL.
const char *wrong_in_list(const StoreOp &op, const muster_store_entry &entry, const muster_store_entry *before,
                          uint64_t revision) noexcept {
    const std::string_view key = view(entry.key, entry.key_bytes);
    if (entry.key == nullptr || key.empty() || key.size() > store_key_max) return "no key, or a long one";
    if (!key.starts_with(op.key)) return "a key that does not begin as was asked";
    if (op.kind == MUSTER_STORE_WATCH) {
        if (entry.version <= op.version || entry.version > revision) return "a change at another time";
        if (before != nullptr && before->version > entry.version) return "changes that are not in order";
        return nullptr;
    }
    if ((entry.flags & MUSTER_STORE_PRESENT) == 0) return "an entry without a key";
    if (!op.value.empty() && key <= op.value) return "a key in front of what was asked";
    if (before != nullptr && view(before->key, before->key_bytes) >= key) return "keys that are not in order";
    return nullptr;
}

const char *wrong_entry(const StoreOp &op, const muster_store_entry &entry, bool changed) noexcept {
    uint32_t known = MUSTER_STORE_PRESENT | MUSTER_STORE_FAILED | MUSTER_STORE_MORE;
    if (op.kind == MUSTER_STORE_WATCH && (entry.flags & MUSTER_STORE_PRESENT) == 0)
        known |= MUSTER_STORE_LEASE_ENDED | MUSTER_STORE_LEASE_SILENT | MUSTER_STORE_LEASE_BROKEN;
    if ((entry.flags & ~known) != 0) return "unknown flags";
    if (!changed && (entry.flags & MUSTER_STORE_FAILED) != 0) return "a condition that failed in what is done";
    if ((entry.flags & MUSTER_STORE_FAILED) != 0 && op.condition == MUSTER_STORE_ALWAYS)
        return "a condition that failed and was not asked for";
    if (entry.value_bytes > store_value_max || (entry.value_bytes != 0 && entry.value == nullptr))
        return "a value without a place, or a long one";
    if (op.of_queue() || may_be_many(op) || op.kind == MUSTER_STORE_COUNT || op.kind == MUSTER_STORE_BARRIER)
        return nullptr;
    const bool present = (entry.flags & MUSTER_STORE_PRESENT) != 0;
    if (op.kind != MUSTER_STORE_DELETE && present != (entry.version != 0))
        return "a key with no version, or without it";
    if (changed) return nullptr;
    if (!present &&
        (op.waits() || op.kind == MUSTER_STORE_SET || op.kind == MUSTER_STORE_ADD || op.kind == MUSTER_STORE_APPEND))
        return "a key that has to be there is not";
    return nullptr;
}

} // namespace

Result<Ref<StoreResult>> read_answer(const StoreRequest &request, Status status, const muster_store_entry *entries,
                                     size_t count, uint64_t revision) {
    const bool changed = status == MUSTER_E_CHANGED;
    const auto wrong = [&](size_t at, const char *why) {
        return Error::make(MUSTER_E_ARG, "entry %zu of %zu: %s", at, count, why);
    };
    if (entries == nullptr && count != 0) return Error::make(MUSTER_E_ARG, "entries without a place");
    auto result = make_ref<StoreResult>();
    result->revision = revision;
    result->prefix_bytes = request.prefix_bytes();
    result->entries.reserve(count);
    const std::span<const StoreOp> ops = request.ops();
    size_t at = 0;
    bool failed = false;
    for (size_t i = 0; i < ops.size(); i++) {
        const StoreOp &op = ops[i];
        const bool many = may_be_many(op) && !changed;
        const size_t begin = at;
        for (; at < count && entries[at].op == i && (many || at == begin); at++) {
            const muster_store_entry &from = entries[at];
            if (const char *const why = wrong_entry(op, from, changed)) return wrong(at, why);
            if (many)
                if (const char *const why = wrong_in_list(op, from, at == begin ? nullptr : &entries[at - 1], revision))
                    return wrong(at, why);
            failed = failed || (from.flags & MUSTER_STORE_FAILED) != 0;
            StoreEntry &entry = result->entries.emplace_back();
            entry.op = from.op;
            entry.flags = from.flags;
            entry.version = from.version;
            entry.number = from.number;
            if (many) entry.key = Blob::make(view(from.key, from.key_bytes));
            const bool present = (from.flags & MUSTER_STORE_PRESENT) != 0;
            if (present && shows_value(op, changed)) entry.value = Blob::make(view(from.value, from.value_bytes));
        }
        if (!many && at == begin)
            return Error::make(MUSTER_E_ARG, "operation %zu has no entry, or they are not in order", i);
        if (op.kind == MUSTER_STORE_WATCH && at == begin) return Error::make(MUSTER_E_ARG, "a WATCH without a change");
    }
    if (at != count) return wrong(at, "it is too much, or of another operation");
    if (changed && !failed) return Error::make(MUSTER_E_ARG, "no condition failed");
    return result;
}

namespace {
// The values for which the request waits, or its operations.
std::string names_of(const StoreRequest &request) {
    return request.waits() ? request.names_of_waits() : request.name(0);
}
} // namespace

// With a failure, its own or that of its provider.
void StoreServedRequest::end(const Error &why) noexcept {
    if (operation) return operation->finish({why, {}});
    if (opening) return opening->set(provider().context(), why);
    if (keeper) keeper->renewed(why.status);
}

// GRANT, KEEP or END.
void StoreServedRequest::lease_done() noexcept {
    if (kind == MUSTER_STORE_REQUEST_KEEP) return keeper->renewed(MUSTER_OK);
    try {
        auto result = make_ref<StoreResult>();
        result->entries.resize(1);
        result->entries[0].number = static_cast<int64_t>(lease);
        if (kind == MUSTER_STORE_REQUEST_GRANT) {
            leases->add(lease, keeper);
            keeper->restart();
        }
        operation->finish({Error(), std::move(result)});
    } catch (const std::bad_alloc &) { // it is not renewed, and ends by itself
        operation->finish({Error::make(MUSTER_E_NOMEM, "out of memory"), {}});
    }
}

Result<void> StoreProvider::read(Context &context, Queue *queue, uint64_t id, muster_store_request &out) {
    auto request = ServedRequests::of(context).find<StoreServedRequest>(queue, id);
    if (!request) return request.error();
    (*request)->write(out);
    return {};
}

Result<void> StoreProvider::opened(Context &context, Queue *queue, uint64_t id, const muster_store_traits &traits) {
    constexpr uint32_t known_flags = MUSTER_STORE_IS_REMOTE | MUSTER_STORE_ANSWERS_CANCEL;
    if ((traits.flags & ~known_flags) != 0 || (traits.capabilities & ~every_capability) != 0)
        return Error::make(MUSTER_E_ARG, "traits: unknown flags %u or capabilities %u", traits.flags,
                           traits.capabilities);
    if (traits.max_ops > store_ops_max || traits.max_request_bytes > store_request_max || traits.min_lease_ns < 0)
        return Error::make(MUSTER_E_ARG,
                           "traits: max_ops %u, max_request_bytes %llu or min_lease_ns %lld is out "
                           "of range",
                           traits.max_ops, static_cast<unsigned long long>(traits.max_request_bytes),
                           static_cast<long long>(traits.min_lease_ns));
    ServedRequests &requests = ServedRequests::of(context);
    auto request = requests.find<StoreServedRequest>(queue, id);
    if (!request) return request.error();
    if ((*request)->kind != MUSTER_STORE_REQUEST_OPEN)
        return Error::make(MUSTER_E_ARG, "request %llu does not ask to open a store",
                           static_cast<unsigned long long>(id));
    if (!requests.answer_and_keep(**request)) return requests.stale(id); // it is kept, as the store
    (*request)->opening->set(context, traits);
    return {};
}

Result<void> StoreProvider::done(Context &context, Queue *queue, uint64_t id, Status status,
                                 const muster_store_entry *entries, size_t count, uint64_t revision) {
    ServedRequests &requests = ServedRequests::of(context);
    auto found = requests.find<StoreServedRequest>(queue, id);
    if (!found) return found.error();
    StoreServedRequest &request = **found;
    if (request.kind == MUSTER_STORE_REQUEST_OPEN)
        return Error::make(MUSTER_E_ARG, "request %llu asks to open a store", static_cast<unsigned long long>(id));
    const bool is_do = request.kind == MUSTER_STORE_REQUEST_DO;
    if (status != MUSTER_OK && (!is_do || status != MUSTER_E_CHANGED))
        return Error::make(MUSTER_E_ARG, "status %d is for muster_store_request_fail()", status);
    if (!is_do) {
        if (!requests.answer(request)) return requests.stale(id);
        request.lease_done();
        return {};
    }
    const StoreRequest &what = request.operation->request;
    Result<Ref<StoreResult>> result = read_answer(what, status, entries, count, revision);
    if (!result) {
        if (!requests.answer(request)) return requests.stale(id);
        request.end(Error::make(MUSTER_E_PLUGIN, "%s: store %s answers wrongly: %s", what.name(0).c_str(),
                                request.provider().name().c_str(), result.error().message));
        return result.error();
    }
    Error how;
    if (status == MUSTER_E_CHANGED) how = Error::make(status, "%s", what.what_does_not_hold(**result).c_str());
    if (!requests.answer(request)) return requests.stale(id);
    request.operation->finish({how, std::move(*result)});
    return {};
}

Result<void> StoreProvider::fail(Context &context, Queue *queue, uint64_t id, Status status, uint32_t op,
                                 std::string_view text) {
    ServedRequests &requests = ServedRequests::of(context);
    auto found = requests.find<StoreServedRequest>(queue, id);
    if (!found) return found.error();
    StoreServedRequest &request = **found;
    const bool is_do = request.kind == MUSTER_STORE_REQUEST_DO;
    if (op != UINT32_MAX && (!is_do || op >= request.operation->request.ops().size()))
        return Error::make(MUSTER_E_ARG, "there is no operation %u", op);
    if (status == MUSTER_AGAIN && !(request.flags & MUSTER_STORE_NO_WAIT))
        return Error::make(MUSTER_E_ARG, "request %llu may be waited for", static_cast<unsigned long long>(id));
    const std::string_view said = text.empty() ? std::string_view(muster_status_text(status)) : text;
    const auto length = static_cast<int>(said.size());
    Error why;
    if (status == MUSTER_AGAIN) {
        const StoreRequest &what = request.operation->request;
        const std::string names = what.names_of_waits();
        // LOOK_ONCE was set because the store cannot wait, not because of the deadline.
        why = request.operation->looks_once()
                  ? Error::make(MUSTER_AGAIN, "%s: absent", names.c_str())
                  : Error::make(MUSTER_E_UNSUPPORTED, "%s: absent, and the store cannot wait", names.c_str());
    } else if (op != UINT32_MAX) {
        why = Error::make(status, "%s: %.*s", request.operation->request.name(op).c_str(), length, said.data());
    } else if (is_do && text.empty()) {
        why = Error::make(status, "%s: %.*s", request.operation->request.name(0).c_str(), length, said.data());
    } else {
        why = Error::make(status, "%.*s", length, said.data());
    }
    const bool not_applied = requests.is_cancelled(request) && status == MUSTER_E_CANCELED;
    const std::string missing = not_applied ? names_of(request.operation->request) : std::string();
    if (!requests.answer(request)) return requests.stale(id);
    if (not_applied)
        request.operation->withdrawn(missing.c_str());
    else
        request.end(why);
    return {};
}

} // namespace muster
