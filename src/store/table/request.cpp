// SPDX-License-Identifier: MIT
#include "store/table/request.hpp"

#include "base/text.hpp"

#include <cstring>

namespace muster {

namespace {

struct Kind {
    const char *name;
    bool keyless, conditions, value, number, version, lease; // fields and conditions that it may have
};
// By the numbers of muster_store_op_kind.
constexpr Kind kinds[] = {
    // name          keyless conditions value number version lease
    {"condition on", false, true, false, false, false, false}, {"get", false, true, false, false, false, false},
    {"read", false, true, false, false, false, false},         {"set", false, true, true, false, false, true},
    {"add to", false, true, false, true, false, true},         {"append to", false, true, true, false, false, true},
    {"delete", false, true, false, false, false, false},       {"check", false, true, false, false, false, false},
    {"wait for", false, true, false, false, false, false},     {"count", true, false, false, false, false, false},
    {"list", true, false, true, true, false, false},           {"keys of", true, false, true, true, false, false},
    {"push to", false, false, true, true, false, false},       {"pop from", false, false, false, false, false, false},
    {"pop from", false, false, false, false, false, false},    {"length of", false, false, false, false, false, false},
    {"watch", true, false, false, true, true, false},          {"barrier", false, false, false, false, false, false},
    {"clear", true, false, false, true, false, false},
};
constexpr size_t kind_count = sizeof kinds / sizeof kinds[0];
static_assert(kind_count == MUSTER_STORE_CLEAR + 1);

std::string_view view(const void *data, uint64_t size) noexcept {
    return {static_cast<const char *>(data), size};
}

// The error in the form of one operation, or NULL.
const char *wrong(const muster_store_op &op, const Kind &kind) noexcept {
    if ((op.key_bytes != 0 && op.key == nullptr) || (op.value_bytes != 0 && op.value == nullptr) ||
        (op.expected_bytes != 0 && op.expected == nullptr))
        return "bytes without a place";
    if (op.condition > MUSTER_STORE_IF_VERSION) return "an unknown condition";
    if (op.condition != MUSTER_STORE_ALWAYS && !kind.conditions) return "it has no conditions";
    if (op.expected_bytes != 0 && op.condition != MUSTER_STORE_IF_VALUE) return "an expected value without a condition";
    if (op.version != 0 && op.condition != MUSTER_STORE_IF_VERSION && !kind.version)
        return "a version without a condition";
    if (op.value_bytes != 0 && !kind.value) return "it takes no value";
    if (op.number != 0 && !kind.number) return "it takes no number";
    if (op.number < 0 && op.kind != MUSTER_STORE_ADD) return "a negative number";
    if (op.lease != 0 && !kind.lease) return "it takes no lease";
    if ((op.count != 0 || op.rank != 0) && op.kind != MUSTER_STORE_BARRIER) return "it takes no count and no rank";
    if (op.key_bytes == 0 && !kind.keyless) return "it has no key";
    return nullptr;
}

} // namespace

bool StoreOp::of_queue() const noexcept {
    return (kind >= MUSTER_STORE_PUSH && kind <= MUSTER_STORE_LENGTH) || kind == MUSTER_STORE_CLEAR;
}

bool StoreOp::changes() const noexcept {
    switch (kind) {
    case MUSTER_STORE_NONE:
    case MUSTER_STORE_GET:
    case MUSTER_STORE_READ:
    case MUSTER_STORE_CHECK:
    case MUSTER_STORE_WAIT:
    case MUSTER_STORE_LENGTH:
        return false;
    default:
        return !of_many();
    }
}

bool StoreRequest::changes() const noexcept {
    for (const StoreOp &op : ops())
        if (op.changes()) return true;
    return false;
}

bool StoreOp::of_many() const noexcept {
    return kind == MUSTER_STORE_COUNT || kind == MUSTER_STORE_LIST || kind == MUSTER_STORE_KEYS ||
           kind == MUSTER_STORE_WATCH;
}

StoreRequest StoreRequest::make(size_t count, size_t bytes, StoreRequest *before) {
    static_assert(std::is_trivially_destructible_v<StoreOp>);
    StoreRequest request;
    request.room_ = count * sizeof(StoreOp) + bytes;
    if (before != nullptr && before->room_ >= request.room_) {
        request.room_ = before->room_;
        request.memory_ = std::move(before->memory_);
        before->room_ = before->count_ = 0;
    } else {
        request.memory_.reset(new char[request.room_]); // every byte is written
    }
    request.ops_ = reinterpret_cast<StoreOp *>(request.memory_.get());
    for (size_t i = 0; i < count; i++) new (request.ops_ + i) StoreOp();
    request.count_ = count;
    request.size_ = bytes;
    return request;
}

Result<StoreRequest> StoreRequest::read(const muster_store_op *ops, size_t count, std::string_view prefix,
                                        std::span<const StoreCondition> conditions, StoreRequest *before) {
    if (ops == nullptr || count == 0) return Error::make(MUSTER_E_ARG, "no operations");
    // An operation that must be the only one has no conditions; it nevertheless ends with the guard.
    const bool alone = ops[0].kind == MUSTER_STORE_WATCH || ops[0].kind == MUSTER_STORE_BARRIER;
    if (alone) conditions = {};
    const size_t guards = conditions.size();
    if (count > store_ops_max - guards)
        return Error::make(MUSTER_E_ARG, "%zu operations, at most %zu are one request", count, store_ops_max - guards);
    size_t total = 0, queue_ops = 0;
    bool clears = false;
    for (const StoreCondition &condition : conditions) total += condition.key.size() + condition.value.size();
    for (size_t i = 0; i < count; i++) {
        const muster_store_op &op = ops[i];
        if (op.kind >= kind_count) return Error::make(MUSTER_E_ARG, "operation %zu: unknown kind %u", i, op.kind);
        if ((op.kind == MUSTER_STORE_WATCH || op.kind == MUSTER_STORE_BARRIER) && count != 1)
            return Error::make(MUSTER_E_ARG, "operation %zu (%s): it is not alone", i, kinds[op.kind].name);
        queue_ops += (op.kind >= MUSTER_STORE_PUSH && op.kind <= MUSTER_STORE_LENGTH) || op.kind == MUSTER_STORE_CLEAR;
        clears = clears || op.kind == MUSTER_STORE_CLEAR;
        if (clears && queue_ops > 1)
            return Error::make(MUSTER_E_ARG, "operation %zu (%s): clear is not the only one on queues", i,
                               kinds[op.kind].name);
        if (op.kind == MUSTER_STORE_BARRIER && (op.count < 1 || op.count > store_members_max || op.rank >= op.count))
            return Error::make(MUSTER_E_ARG, "operation %zu (barrier): rank %u of %u members", i, op.rank, op.count);
        if (const char *const why = wrong(op, kinds[op.kind]))
            return Error::make(MUSTER_E_ARG, "operation %zu (%s): %s", i, kinds[op.kind].name, why);
        const bool behind = op.value_bytes != 0 && (op.kind == MUSTER_STORE_LIST || op.kind == MUSTER_STORE_KEYS);
        if (op.key_bytes + prefix.size() > store_key_max || (behind && op.value_bytes + prefix.size() > store_key_max))
            return Error::make(MUSTER_E_LIMIT, "operation %zu (%s): a key of more than %zu bytes", i,
                               kinds[op.kind].name, store_key_max);
        if (op.value_bytes > store_value_max || op.expected_bytes > store_value_max)
            return Error::make(MUSTER_E_LIMIT, "operation %zu (%s): a value of more than %zu bytes", i,
                               kinds[op.kind].name, store_value_max);
        total += op.key_bytes + prefix.size() + op.value_bytes + (behind ? prefix.size() : 0) + op.expected_bytes;
        if (total > store_request_max)
            return Error::make(MUSTER_E_LIMIT, "a request of more than %zu bytes", store_request_max);
    }
    StoreRequest request = make(count + guards, total, before);
    request.prefix_bytes_ = prefix.size();
    request.guards_ = guards;
    char *to = reinterpret_cast<char *>(request.ops_ + count + guards);
    const auto keep = [&](std::string_view front, std::string_view bytes) {
        char *const begin = to;
        if (!front.empty()) std::memcpy(to, front.data(), front.size());
        if (!bytes.empty()) std::memcpy(to + front.size(), bytes.data(), bytes.size());
        to += front.size() + bytes.size();
        return std::string_view(begin, static_cast<size_t>(to - begin));
    };
    for (size_t i = 0; i < count; i++) {
        StoreOp &op = request.ops_[i];
        op.kind = ops[i].kind;
        op.condition = ops[i].condition;
        op.version = ops[i].version;
        op.number = ops[i].number;
        op.lease = ops[i].lease;
        op.count = ops[i].count;
        op.rank = ops[i].rank;
        op.key = keep(prefix, view(ops[i].key, ops[i].key_bytes));
        const bool behind = op.of_many() && ops[i].value_bytes != 0;
        op.value = keep(behind ? prefix : std::string_view(), view(ops[i].value, ops[i].value_bytes));
        op.expected = keep({}, view(ops[i].expected, ops[i].expected_bytes));
    }
    for (size_t i = 0; i < guards; i++) {
        StoreOp &op = request.ops_[count + i];
        op.condition = MUSTER_STORE_IF_VALUE;
        op.key = keep({}, conditions[i].key);
        op.expected = keep({}, conditions[i].value);
    }
    return request;
}

StoreRequest StoreRequest::grant(int64_t ttl_ns, uint32_t flags) {
    StoreRequest request = make(1, 0);
    StoreOp &op = *request.ops_;
    op.kind = store_grant;
    op.number = ttl_ns;
    op.version = flags;
    return request;
}

StoreRequest StoreRequest::end_lease(uint64_t lease) {
    StoreRequest request = make(1, 0);
    StoreOp &op = *request.ops_;
    op.kind = store_end_lease;
    op.lease = lease;
    return request;
}

std::string StoreRequest::name(size_t op) const {
    if (of_lease()) return ops_[op].kind == store_grant ? "lease" : "end of a lease";
    constexpr size_t most = 64;
    std::string_view key = ops_[op].key;
    if (op < count_ - guards_ && key.size() >= prefix_bytes_) key.remove_prefix(prefix_bytes_);
    std::string shown(key.substr(0, most));
    make_printable(shown.data(), shown.size());
    return std::string(kinds[ops_[op].kind].name) + " \"" + shown + (key.size() > most ? "...\"" : "\"");
}

std::string StoreRequest::names_of_waits() const {
    constexpr size_t most = 4;
    std::string text;
    size_t count = 0;
    for (size_t i = 0; i < count_; i++) {
        if (!ops_[i].waits() && ops_[i].kind != MUSTER_STORE_BARRIER) continue;
        if (++count > most) continue;
        if (count > 1) text += ", ";
        text += name(i);
    }
    if (count > most) text += " and " + std::to_string(count - most) + " more";
    return text;
}

std::string StoreRequest::what_does_not_hold(const StoreResult &instead) const {
    for (const StoreEntry &entry : instead.entries)
        if (entry.flags & MUSTER_STORE_FAILED)
            return name(entry.op) + ": the condition does not hold, " +
                   (entry.version == 0 ? "it is absent" : "its version is " + std::to_string(entry.version));
    return "a condition does not hold";
}

bool StoreRequest::waits() const noexcept {
    for (const StoreOp &op : ops())
        if (op.waits() || op.kind == MUSTER_STORE_BARRIER) return true;
    return false;
}

} // namespace muster
