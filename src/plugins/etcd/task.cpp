// SPDX-License-Identifier: MIT
// Reading, waiting, and answers.
#include "task.hpp"

#include <algorithm>

namespace etcd {

namespace {
constexpr size_t max_list_bytes = 4 << 20;
constexpr int64_t default_count = 1000;
// etcd searches its history for new streams each 100 ms.
constexpr int64_t history_ns = 400 * ms;

std::string_view view(const void *data, uint64_t size) noexcept {
    return {static_cast<const char *>(data), size};
}
} // namespace

bool Task::Op::list() const noexcept {
    return kind == MUSTER_STORE_LIST || kind == MUSTER_STORE_KEYS || kind == MUSTER_STORE_COUNT;
}
bool Task::Op::writes() const noexcept {
    return kind == MUSTER_STORE_SET || kind == MUSTER_STORE_ADD || kind == MUSTER_STORE_APPEND ||
           kind == MUSTER_STORE_DELETE;
}
bool Task::Op::waits() const noexcept {
    return kind == MUSTER_STORE_GET || kind == MUSTER_STORE_WAIT;
}

Task::Task(Store &store, uint64_t request, const muster_store_request &what)
    : store_(store), request_(request), once_((what.flags & MUSTER_STORE_NO_WAIT) != 0) {
    for (uint64_t i = 0; i < what.op_count; i++) {
        const muster_store_op &asked = what.ops[i];
        Op op{asked.kind, asked.condition, store.root(), &asked};
        op.key.append(view(asked.key, asked.key_bytes));
        if (!op.list()) snapshot_[op.key];
        ops_.push_back(std::move(op));
    }
    entries_.resize(ops_.size());
    place_.resize(ops_.size(), SIZE_MAX);
}

Task::~Task() {
    store_.client().cancel(call_);
    store_.watches().leave(*this);
    store_.session().forget(*this);
    store_.host()->stop_timer(timer_);
}

void Task::start() {
    for (size_t i = 0; i < ops_.size(); i++)
        if (ops_[i].asked->key_bytes != 0 && view(ops_[i].asked->key, 1)[0] == '\0')
            return fail({MUSTER_E_UNSUPPORTED, "names that begin with a zero byte are the store's own"},
                        static_cast<uint32_t>(i));
    if (ops_[0].kind == MUSTER_STORE_WATCH) return watch_changes();
    direct_ = any(&Op::writes) && can_be_direct();
    direct_ ? commit() : read();
}

bool Task::any(bool (Op::*what)() const noexcept) const noexcept {
    return std::any_of(ops_.begin(), ops_.end(), [&](const Op &op) { return (op.*what)(); });
}

// ---- reading --------------------------------------------------------------------------------------------------------

std::string Task::list_range(const Op &op, uint64_t at_revision) const {
    const muster_store_op &asked = *op.asked;
    const std::string_view prefix = view(asked.key, asked.key_bytes), behind = view(asked.value, asked.value_bytes);
    Range range = store_.range_of(prefix);
    if (asked.value_bytes != 0 && behind >= prefix)
        range.begin = store_.root() + std::string(behind) + std::string(1, '\0');
    std::string text = "{\"key\":\"" + base64(range.begin) + "\",\"range_end\":\"" + base64(range.end) + "\"";
    if (at_revision != 0) text += ",\"revision\":\"" + std::to_string(at_revision) + "\"";
    if (op.kind == MUSTER_STORE_COUNT) return text + ",\"count_only\":true}";
    if (op.kind == MUSTER_STORE_KEYS) text += ",\"keys_only\":true";
    return text + ",\"limit\":\"" + std::to_string(asked.number != 0 ? asked.number : default_count) + "\"}";
}

// Lists of keys that are changed as well are read in the transaction that changes them.
void Task::read() {
    const bool lists = !any(&Op::writes);
    Txn txn;
    std::string only;
    size_t count = 0;
    const auto range = [&](const std::string &text) {
        txn.range(Txn::success, text);
        only = text;
        count++;
    };
    for (const auto &[key, value] : snapshot_) range(range_of_key(key));
    for (size_t i = 0; lists && i < ops_.size(); i++) {
        if (!ops_[i].list()) continue;
        place_[i] = count;
        range(list_range(ops_[i]));
    }
    const bool one = count == 1;
    call_ = store_.client().call(one ? "/v3/kv/range" : "/v3/kv/txn", one ? only : txn.text(),
                                 [this, one, lists](Reply &reply) {
                                     call_ = nullptr;
                                     if (!reply.ok()) return reading_failed(reply);
                                     const auto at = [&](size_t i) -> const Json & {
                                         return one ? reply.body : response(reply.body, i, "response_range");
                                     };
                                     size_t next = 0;
                                     for (auto &[key, value] : snapshot_) value = first_in(at(next++));
                                     for (size_t i = 0; lists && i < ops_.size(); i++)
                                         if (ops_[i].list()) show_list(i, listed_in(at(place_[i])));
                                     revision_ = revision_in(reply.body);
                                     work_out();
                                 });
}

// Whether it was done does not matter.
void Task::reading_failed(const Reply &reply) {
    Failure why = reply.failure;
    if (reply.doubt && why.status == MUSTER_E_PEER) why.status = MUSTER_E_UNREACHABLE;
    fail(why, 0);
}

void Task::show_list(size_t i, const Listed &listed) {
    std::vector<Entry> &entries = entries_[i];
    entries.clear();
    const auto op = static_cast<uint32_t>(i);
    if (ops_[i].kind == MUSTER_STORE_COUNT) {
        Entry &entry = entries.emplace_back();
        entry.entry.op = op;
        entry.entry.number = static_cast<int64_t>(listed.count);
        return;
    }
    size_t bytes = 0;
    bool more = listed.more;
    for (const auto &[key, value] : listed.keys) {
        bytes += key.size() + value.bytes.size();
        if (!entries.empty() && bytes > max_list_bytes) {
            more = true;
            break;
        }
        Entry &entry = entries.emplace_back();
        entry.entry.op = op;
        entry.entry.flags = MUSTER_STORE_PRESENT;
        entry.entry.version = value.mod;
        entry.key = key;
        entry.value = value.bytes;
    }
    if (more && !entries.empty()) entries.back().entry.flags |= MUSTER_STORE_MORE;
}

// ---- waiting --------------------------------------------------------------------------------------------------------

// For an absent key, from the revision at which it was absent.
void Task::wait_for(const std::string &key) {
    range = {key, key + std::string(1, '\0')};
    behind = revision_;
    begun_at_ = store_.watches().enter(*this).begun_at();
    changed();
}

void Task::changed() {
    if (ops_[0].kind == MUSTER_STORE_WATCH) {
        show_changes();
        return;
    }
    // A stream that has begun later reports the changes in between only after a while.
    if ((*stream).begun_at() > std::max(behind, begun_at_)) return again();
    for (const Change &change : (*stream).changes())
        if (change.revision > behind && change.there && change.key == range.begin) return again();
}

void Task::compacted(uint64_t first) {
    if (ops_[0].kind != MUSTER_STORE_WATCH) return again();
    fail({MUSTER_E_STALE, "changes behind revision " + std::to_string(behind) + " are asked for, those from " +
                              std::to_string(first) + " on are there"},
         0);
}

void Task::again() {
    store_.watches().leave(*this);
    read();
}

void Task::watch_changes() {
    range = store_.range_of(view(ops_[0].asked->key, ops_[0].asked->key_bytes));
    behind = ops_[0].asked->version;
    if (!once_ && behind <= store_.client().revision()) return watch_behind(0);
    const std::string any = "{\"key\":\"" + base64(range.begin) + "\",\"count_only\":true}";
    call_ = store_.client().call("/v3/kv/range", any, [this](Reply &reply) {
        call_ = nullptr;
        if (!reply.ok()) return reading_failed(reply);
        const uint64_t now = revision_in(reply.body);
        if (behind > now)
            return fail({MUSTER_E_STALE, "changes behind revision " + std::to_string(behind) +
                                             " are asked for, the last one was " + std::to_string(now)},
                        0);
        if (once_ && behind == now) return not_there();
        watch_behind(now);
    });
}

// `now`: the revision up to which a request that does not wait is checked.
void Task::watch_behind(uint64_t now) {
    const Watch &stream = store_.watches().enter(*this);
    if (show_changes() || !once_) return;
    if (stream.at() >= now) return not_there();
    const auto due = [](void *self) { static_cast<Task *>(self)->not_there(); };
    store_.host()->start_timer(store_.host(), history_ns, 0, due, this, &timer_);
}

// A revision is shown as a whole.
bool Task::show_changes() {
    const muster_store_op &asked = *ops_[0].asked;
    const auto most = static_cast<size_t>(asked.number != 0 ? asked.number : default_count);
    uint64_t up_to = (*stream).at();
    size_t bytes = 0;
    std::vector<Entry> &entries = entries_[0];
    for (const Change &change : (*stream).changes()) {
        if (change.revision <= behind || !range.holds(change.key)) continue;
        if ((entries.size() >= most || bytes > max_list_bytes) && entries.back().entry.version != change.revision) {
            up_to = entries.back().entry.version;
            break;
        }
        Entry &entry = entries.emplace_back();
        entry.entry.flags = change.there ? MUSTER_STORE_PRESENT : 0;
        entry.entry.version = change.revision;
        entry.key = change.key;
        entry.value = change.value;
        bytes += change.key.size() + change.value.size();
    }
    if (entries.empty()) return false;
    answer(MUSTER_OK, up_to);
    return true;
}

// ---- ends -----------------------------------------------------------------------------------------------------------

void Task::not_there() {
    store_.host()->store_failed(store_.host(), request_, MUSTER_AGAIN, UINT32_MAX, nullptr, 0);
    store_.drop(*this);
}

void Task::fail(const Failure &why, uint32_t op) {
    store_.fail(request_, why, op);
    store_.drop(*this);
}

void Task::answer(muster_status status, uint64_t revision) {
    std::vector<muster_store_entry> all;
    for (std::vector<Entry> &entries : entries_)
        for (Entry &entry : entries) {
            if (entry.entry.version == own) entry.entry.version = revision;
            if (!entry.key.empty()) {
                entry.entry.key = entry.key.data() + store_.root().size();
                entry.entry.key_bytes = entry.key.size() - store_.root().size();
            }
            entry.entry.value = entry.value.data();
            entry.entry.value_bytes = entry.value.size();
            all.push_back(entry.entry);
        }
    muster_error error{};
    if (store_.host()->store_done(store_.host(), request_, status, all.data(), all.size(), revision, &error) ==
        MUSTER_E_ARG)
        store_.host()->log(store_.host(), MUSTER_LOG_ERROR, error.message, error.message_bytes);
    store_.drop(*this);
}

} // namespace etcd
