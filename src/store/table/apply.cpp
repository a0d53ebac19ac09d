// SPDX-License-Identifier: MIT
// What each kind of operation does.
#include "store/table/changes.hpp"
#include "store/table/table.hpp"

#include <algorithm>
#include <charconv>

namespace muster {

const StoreTable::Record *StoreTable::find(std::string_view key) const noexcept {
    const auto found = keys_.find(key);
    return found == keys_.end() ? nullptr : &found->second;
}

// All of it, or nothing.
const StoreOp *StoreTable::attempt(StoreWaiter &who, std::vector<std::string> &came) {
    const StoreRequest &request = who.request;
    if (request.ops().front().kind == MUSTER_STORE_WATCH) return watch(who) ? nullptr : &request.ops().front();
    if (request.ops().size() == 1) {
        if (lacks(request.ops().front())) return &request.ops().front();
    } else if (const auto first = lacking(request, 1); !first.empty()) {
        return first.front();
    }
    if (Ref<StoreResult> instead = conditions(request)) {
        who.answer.error = Error::make(MUSTER_E_CHANGED, "%s", request.what_does_not_hold(*instead).c_str());
        who.answer.result = std::move(instead);
        who.answer.changed = false;
        return nullptr;
    }
    auto result = who.spare ? std::move(who.spare) : make_ref<StoreResult>();
    result->entries.reserve(request.ops().size());
    Changes changes(*this);
    size_t shown = 0, bytes = 0;
    for (size_t i = 0; i < request.ops().size(); i++) {
        Error error = run(request, i, changes, *result);
        for (; shown < result->entries.size(); shown++) bytes += result->entries[shown].bytes();
        if (error.status == MUSTER_OK && bytes > store_result_max)
            error = Error::make(MUSTER_E_LIMIT, "%s: the result would have more than %zu bytes",
                                request.name(i).c_str(), store_result_max);
        if (error.status == MUSTER_OK) continue;
        who.answer = {error, {}};
        return nullptr;
    }
    if (!changes.fits()) {
        who.answer = {Error::make(MUSTER_E_LIMIT, "%s: the store is full: it holds %llu of %llu bytes",
                                  request.name(0).c_str(), static_cast<unsigned long long>(bytes_),
                                  static_cast<unsigned long long>(max_bytes_)),
                      {}};
        return nullptr;
    }
    changes.keep(came);
    result->revision = revision_;
    result->prefix_bytes = request.prefix_bytes();
    who.answer.error = Error();
    who.answer.result = std::move(result);
    who.answer.changed = changes.any();
    return nullptr;
}

bool StoreTable::lacks(const StoreOp &op) const noexcept {
    if (op.kind == MUSTER_STORE_POP) return queues_.find(op.key) == queues_.end();
    return op.kind == MUSTER_STORE_WATCH || (op.waits() && find(op.key) == nullptr);
}

// A queue has to have a value for each POP; values that the request itself pushes do not count.
std::vector<const StoreOp *> StoreTable::lacking(const StoreRequest &request, size_t most) const {
    std::vector<const StoreOp *> found;
    std::map<std::string_view, size_t> left;
    for (const StoreOp &op : request.ops()) {
        bool lacks_it = lacks(op);
        if (op.takes() && request.ops().size() > 1) {
            const auto [at, fresh] = left.try_emplace(op.key, 0);
            const auto queue = fresh ? queues_.find(op.key) : queues_.end();
            if (queue != queues_.end()) at->second = queue->second.size();
            lacks_it = op.waits() && at->second == 0;
            if (at->second != 0) at->second--;
        }
        if (!lacks_it) continue;
        found.push_back(&op);
        if (found.size() == most) break;
    }
    return found;
}

bool StoreTable::holds(const StoreOp &op) const noexcept {
    const Record *const there = op.condition == MUSTER_STORE_ALWAYS ? nullptr : find(op.key);
    switch (op.condition) {
    case MUSTER_STORE_IF_ABSENT:
        return there == nullptr;
    case MUSTER_STORE_IF_PRESENT:
        return there != nullptr;
    case MUSTER_STORE_IF_VALUE:
        return there != nullptr && there->value->bytes() == op.expected;
    case MUSTER_STORE_IF_VERSION:
        return (there == nullptr ? 0 : there->version) == op.version;
    default:
        return true;
    }
}

Ref<StoreResult> StoreTable::conditions(const StoreRequest &request) const {
    bool all = true;
    for (const StoreOp &op : request.ops()) all = all && holds(op);
    if (all) return {};
    auto result = make_ref<StoreResult>();
    result->entries.resize(request.ops().size());
    size_t bytes = 0;
    for (size_t i = 0; i < request.ops().size(); i++) {
        const StoreOp &op = request.ops()[i];
        StoreEntry &entry = result->entries[i];
        entry.op = static_cast<uint32_t>(i);
        if (!op.of_queue() && !op.of_many()) show(op, true, entry);
        bytes += entry.bytes();
        if (bytes > store_result_max) entry.value.reset();
        if (!holds(op)) entry.flags |= MUSTER_STORE_FAILED;
    }
    result->revision = revision_;
    result->prefix_bytes = request.prefix_bytes();
    return result;
}

void StoreTable::show(const StoreOp &op, bool value, StoreEntry &entry) const {
    const Record *const there = find(op.key);
    if (there == nullptr) return;
    entry.flags |= MUSTER_STORE_PRESENT;
    entry.version = there->version;
    if (value) entry.value = there->value;
}

Error StoreTable::run(const StoreRequest &request, size_t i, Changes &changes, StoreResult &result) {
    const StoreOp &op = request.ops()[i];
    if (op.kind == MUSTER_STORE_LIST || op.kind == MUSTER_STORE_KEYS) {
        list(op, i, result);
        return {};
    }
    StoreEntry &entry = result.entries.emplace_back();
    entry.op = static_cast<uint32_t>(i);
    switch (op.kind) {
    case MUSTER_STORE_NONE:
    case MUSTER_STORE_GET:
    case MUSTER_STORE_READ:
        show(op, true, entry);
        return {};
    case MUSTER_STORE_CHECK:
    case MUSTER_STORE_WAIT:
        show(op, false, entry);
        return {};
    case MUSTER_STORE_COUNT:
        for (auto at = keys_.lower_bound(op.key); at != keys_.end() && at->first->bytes().starts_with(op.key); ++at)
            entry.number++;
        return {};
    default:
        return op.of_queue() ? use_queue(request, i, changes, entry) : change(request, i, changes, entry);
    }
}

Error StoreTable::change(const StoreRequest &request, size_t i, Changes &changes, StoreEntry &entry) {
    const StoreOp &op = request.ops()[i];
    const Record *const there = find(op.key);
    const std::string_view before = there == nullptr ? std::string_view() : there->value->bytes();
    if (op.kind == MUSTER_STORE_DELETE) {
        if (there == nullptr) return {};
        entry.flags |= MUSTER_STORE_PRESENT;
        changes.remove(keys_.find(op.key));
        return {};
    }
    if (op.lease != 0 && leases_.find(op.lease) == leases_.end())
        return Error::make(MUSTER_E_STALE, "%s: its lease is over", request.name(i).c_str());
    const uint64_t lease = op.lease != 0 || op.kind == MUSTER_STORE_SET || there == nullptr ? op.lease : there->lease;
    if (op.kind == MUSTER_STORE_SET) {
        changes.set(op.key, Blob::make(op.value), lease);
    } else if (op.kind == MUSTER_STORE_APPEND) {
        if (before.size() + op.value.size() > store_value_max)
            return Error::make(MUSTER_E_LIMIT, "%s: a value of more than %zu bytes", request.name(i).c_str(),
                               store_value_max);
        entry.number = static_cast<int64_t>(before.size() + op.value.size());
        changes.set(op.key, Blob::make(before, op.value), lease);
    } else { // MUSTER_STORE_ADD
        int64_t sum = 0;
        const auto [end, wrong] = std::from_chars(before.data(), before.data() + before.size(), sum);
        if (there != nullptr && (wrong != std::errc() || end != before.data() + before.size()))
            return Error::make(MUSTER_E_ARG, "%s: its value is no decimal number of 64 bits", request.name(i).c_str());
        if (__builtin_add_overflow(sum, op.number, &sum))
            return Error::make(MUSTER_E_ARG, "%s: the sum does not fit in 64 bits", request.name(i).c_str());
        char text[24];
        const auto written = std::to_chars(text, text + sizeof text, sum);
        entry.number = sum;
        changes.set(op.key, Blob::make({text, static_cast<size_t>(written.ptr - text)}), lease);
    }
    entry.flags |= MUSTER_STORE_PRESENT;
    entry.version = changes.version();
    return {};
}

Error StoreTable::use_queue(const StoreRequest &request, size_t i, Changes &changes, StoreEntry &entry) {
    const StoreOp &op = request.ops()[i];
    const auto found = queues_.find(op.key);
    const size_t length = found == queues_.end() ? 0 : found->second.size();
    if (op.kind == MUSTER_STORE_PUSH) {
        const auto most = static_cast<size_t>(op.number == 0 ? store_queue_default : op.number);
        if (length >= most)
            return Error::make(MUSTER_E_LIMIT, "%s: the queue is full: it has %zu values", request.name(i).c_str(),
                               length);
        entry.number = static_cast<int64_t>(changes.push(op.key, Blob::make(op.value)));
        return {};
    }
    if (op.kind == MUSTER_STORE_CLEAR) {
        const int64_t most = op.number == 0 ? store_list_default : op.number;
        auto at = queues_.lower_bound(op.key);
        for (; at != queues_.end() && at->first.starts_with(op.key) && entry.number < most; ++at, entry.number++)
            changes.clear(at);
        if (at != queues_.end() && at->first.starts_with(op.key)) entry.flags |= MUSTER_STORE_MORE;
        return {};
    }
    if (op.kind == MUSTER_STORE_LENGTH) {
        entry.number = static_cast<int64_t>(length);
        return {};
    }
    if (length == 0) return {}; // TRY_POP: a POP does not get here then
    entry.flags |= MUSTER_STORE_PRESENT;
    entry.value = changes.pop(found);
    return {};
}

// Is it certain, without a search through the changes since? Thousands of members that watch a few keys each, and watch
// again whenever one of these has changed, would search through the changes of all others.
bool StoreTable::unchanged(std::string_view prefix, uint64_t since) const noexcept {
    size_t most = log_.count_behind(since);
    for (auto at = keys_.lower_bound(prefix); at != keys_.end() && at->first->bytes().starts_with(prefix); ++at)
        if (at->second.version > since || most-- == 0) return false;
    return !log_.has_removed(prefix, since);
}

// A revision is shown as a whole.
bool StoreTable::watch(StoreWaiter &who) const {
    const StoreOp &op = who.request.ops().front();
    // A hanging request has seen the changes before those that let it continue: it does not search through them again.
    const uint64_t since = std::max(op.version, who.at_ == nullptr ? 0 : seen_before_);
    if (since < log_.floor() || op.version > revision_) {
        const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
        who.answer = {
            Error::make(MUSTER_E_STALE, "%s: changes behind revision %llu are asked for, %llu to %llu are there",
                        who.request.name(0).c_str(), number(op.version), number(log_.floor() + 1), number(revision_)),
            {}};
        return true;
    }
    if (unchanged(op.key, since)) return false;
    const auto most = static_cast<size_t>(op.number == 0 ? store_list_default : op.number);
    auto result = make_ref<StoreResult>();
    result->revision = revision_;
    result->prefix_bytes = who.request.prefix_bytes();
    size_t bytes = 0;
    for (auto at = log_.behind(since); at != log_.changes().end(); ++at) {
        if (!at->key->bytes().starts_with(op.key)) continue;
        const bool enough = result->entries.size() >= most || bytes > store_list_bytes;
        if (enough && result->entries.back().version != at->revision) {
            result->revision = result->entries.back().version;
            break;
        }
        StoreEntry &entry = result->entries.emplace_back();
        entry.flags = at->value ? uint32_t{MUSTER_STORE_PRESENT} : at->lease_flags;
        entry.version = at->revision;
        entry.key = at->key;
        entry.value = at->value;
        bytes += at->key->size() + (at->value ? at->value->size() : 0) + StoreEntry::about_bytes;
    }
    if (result->entries.empty()) return false;
    who.answer = {Error(), std::move(result)};
    return true;
}

void StoreTable::list(const StoreOp &op, size_t i, StoreResult &result) const {
    const int64_t most = op.number == 0 ? store_list_default : op.number;
    int64_t count = 0;
    size_t bytes = 0;
    auto at = !op.value.empty() && op.value >= op.key ? keys_.upper_bound(op.value) : keys_.lower_bound(op.key);
    for (; at != keys_.end() && at->first->bytes().starts_with(op.key); ++at) {
        const bool with_value = op.kind == MUSTER_STORE_LIST;
        bytes += at->first->size() + (with_value ? at->second.value->size() : 0) + StoreEntry::about_bytes;
        if (count == most || (count != 0 && bytes > store_list_bytes)) {
            result.entries.back().flags |= MUSTER_STORE_MORE;
            return;
        }
        count++;
        StoreEntry &entry = result.entries.emplace_back();
        entry.op = static_cast<uint32_t>(i);
        entry.flags = MUSTER_STORE_PRESENT;
        entry.version = at->second.version;
        entry.key = at->first;
        if (with_value) entry.value = at->second.value;
    }
}

} // namespace muster
