// SPDX-License-Identifier: MIT
// What the operations do, worked out on what was read.
#include "task.hpp"

#include <charconv>

namespace etcd {

namespace {
constexpr size_t max_value = 8 << 20;
}

void Task::work_out() {
    for (const Op &op : ops_) {
        if (!op.waits() || snapshot_[op.key].there) continue;
        return once_ ? not_there() : wait_for(op.key);
    }
    if (answer_if_changed()) return;
    writes_.clear();
    std::map<std::string, Value> state = snapshot_;
    for (size_t i = 0; i < ops_.size(); i++)
        if (!run(i, state)) return;
    const bool lists_are_missing = any(&Op::writes) && any(&Op::list);
    writes_.empty() && !lists_are_missing ? answer(MUSTER_OK, revision_) : commit();
}

bool Task::holds(const Op &op, const Value &value) const noexcept {
    switch (op.condition) {
    case MUSTER_STORE_IF_ABSENT:
        return !value.there;
    case MUSTER_STORE_IF_PRESENT:
        return value.there;
    case MUSTER_STORE_IF_VALUE:
        return value.there &&
               value.bytes == std::string_view(static_cast<const char *>(op.asked->expected), op.asked->expected_bytes);
    case MUSTER_STORE_IF_VERSION:
        return value.mod == op.asked->version;
    default:
        return true;
    }
}

bool Task::answer_if_changed() {
    bool all = true;
    for (const Op &op : ops_) all = all && (op.list() || holds(op, snapshot_[op.key]));
    if (all) return false;
    for (size_t i = 0; i < ops_.size(); i++) {
        if (ops_[i].list()) {
            entries_[i].assign(1, Entry());
            entries_[i][0].entry.op = static_cast<uint32_t>(i);
            continue;
        }
        const Value &value = snapshot_[ops_[i].key];
        show(i, value, true);
        if (!holds(ops_[i], value)) entries_[i][0].entry.flags |= MUSTER_STORE_FAILED;
    }
    answer(MUSTER_E_CHANGED, revision_);
    return true;
}

void Task::show(size_t i, const Value &value, bool with_value) {
    entries_[i].assign(1, Entry());
    Entry &entry = entries_[i][0];
    entry.entry.op = static_cast<uint32_t>(i);
    if (!value.there) return;
    entry.entry.flags = MUSTER_STORE_PRESENT;
    entry.entry.version = value.mod;
    if (with_value) entry.value = value.bytes;
}

bool Task::run(size_t i, std::map<std::string, Value> &state) {
    const Op &op = ops_[i];
    if (op.list()) return true; // was read, or is when it is done
    Value &value = state[op.key];
    switch (op.kind) {
    case MUSTER_STORE_CHECK:
    case MUSTER_STORE_WAIT:
        show(i, value, false);
        return true;
    case MUSTER_STORE_SET:
        value.lease = op.asked->lease;
        value.bytes.assign(static_cast<const char *>(op.asked->value), op.asked->value_bytes);
        break;
    case MUSTER_STORE_DELETE:
        show(i, value, false);
        entries_[i][0].entry.version = 0;
        if (!value.there) return true;
        value = {};
        writes_[op.key] = value;
        return true;
    case MUSTER_STORE_ADD:
    case MUSTER_STORE_APPEND:
        if (op.asked->lease != 0) value.lease = op.asked->lease;
        if (!grow(i, value)) return false;
        break;
    default:
        show(i, value, true);
        return true;
    }
    const int64_t number = op.kind == MUSTER_STORE_SET ? 0 : entries_[i][0].entry.number;
    value.there = true;
    value.mod = own;
    writes_[op.key] = value;
    show(i, value, false);
    entries_[i][0].entry.number = number;
    return true;
}

bool Task::grow(size_t i, Value &value) {
    const Op &op = ops_[i];
    const auto at = static_cast<uint32_t>(i);
    entries_[i].assign(1, Entry());
    if (op.kind == MUSTER_STORE_APPEND) {
        if (value.bytes.size() + op.asked->value_bytes > max_value) {
            fail({MUSTER_E_LIMIT, "a value of more than " + std::to_string(max_value) + " bytes"}, at);
            return false;
        }
        value.bytes.append(static_cast<const char *>(op.asked->value), op.asked->value_bytes);
        entries_[i][0].entry.number = static_cast<int64_t>(value.bytes.size());
        return true;
    }
    int64_t sum = 0;
    const char *const text_end = value.bytes.data() + value.bytes.size();
    const auto [end, wrong] = std::from_chars(value.bytes.data(), text_end, sum);
    if (value.there && (wrong != std::errc() || end != text_end)) {
        fail({MUSTER_E_ARG, "its value is no decimal number of 64 bits"}, at);
        return false;
    }
    if (__builtin_add_overflow(sum, op.asked->number, &sum)) {
        fail({MUSTER_E_ARG, "the sum does not fit in 64 bits"}, at);
        return false;
    }
    value.bytes = std::to_string(sum);
    entries_[i][0].entry.number = sum;
    return true;
}

} // namespace etcd
