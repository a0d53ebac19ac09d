// SPDX-License-Identifier: MIT
// Doing what was worked out, once, whatever becomes of connections.
#include "task.hpp"

#include <set>

namespace etcd {

namespace {
constexpr size_t shown = SIZE_MAX - 1; // in place_: nothing is to be read any more
}

bool Task::can_be_direct() const {
    std::set<std::string_view> keys;
    for (const Op &op : ops_) {
        if (op.list()) continue;
        if (op.waits() || op.kind == MUSTER_STORE_ADD || op.kind == MUSTER_STORE_APPEND) return false;
        if (!keys.insert(op.key).second) return false;
    }
    return true;
}

void Task::session_ready() {
    commit();
}

// Nothing of the request itself has been sent.
void Task::session_failed(const Failure &why) {
    fail({why.status == MUSTER_E_PEER ? muster_status{MUSTER_E_UNREACHABLE} : why.status, why.text});
}

bool Task::may_have_been_applied() const noexcept {
    if (!writing_) return false;
    const bool first = call_ != nullptr && call_ == commit_;
    return !first || call_->doubt || call_->transfer != nullptr;
}

void Task::commit() {
    Session &session = store_.session();
    if (!session.ready()) return session.wait(*this);
    if (!slot_ || slot_lease_ != session.lease()) {
        slot_ = session.take_slot();
        slot_lease_ = session.lease();
    }
    Txn txn;
    txn.compare(slot_->key, "VERSION", "EQUAL", "version", std::to_string(slot_->writes));
    if (!write_down(txn)) return;
    txn.put(Txn::success, slot_->key, "", slot_lease_);
    for (const auto &[key, value] : snapshot_) txn.range(Txn::failure, range_of_key(key));
    txn.range(Txn::failure, range_of_key(slot_->key));
    writing_ = true;
    commit_ = call_ = store_.client().call("/v3/kv/txn", txn.text(), [this](Reply &reply) {
        call_ = commit_ = nullptr;
        committed(reply);
    });
}

// Each key is written once, by its last writing operation; lists are in between, in their order.
bool Task::write_down(Txn &txn) {
    std::map<std::string_view, size_t> last;
    for (size_t i = 0; i < ops_.size(); i++)
        if (ops_[i].writes()) last[ops_[i].key] = i;
    size_t count = 0;
    std::set<std::string_view> half_written;
    for (size_t i = 0; i < ops_.size(); i++) {
        const Op &op = ops_[i];
        place_[i] = SIZE_MAX;
        if (op.list()) {
            const std::string_view prefix(static_cast<const char *>(op.asked->key), op.asked->key_bytes);
            const Range range = store_.range_of(prefix);
            for (const std::string_view key : half_written)
                if (range.holds(std::string(key))) {
                    fail({MUSTER_E_UNSUPPORTED, "it stands between two changes of a key that it shows"},
                         static_cast<uint32_t>(i));
                    return false;
                }
            place_[i] = count++;
            txn.range(Txn::success, list_range(op));
            continue;
        }
        if (op.writes() && last[op.key] != i) half_written.insert(op.key);
        if (op.writes() && last[op.key] == i) half_written.erase(op.key);
        if (!direct_) {
            txn.compare_mod(op.key, snapshot_[op.key].mod);
            const auto written = op.writes() && last[op.key] == i ? writes_.find(op.key) : writes_.end();
            if (written == writes_.end()) continue;
            count++;
            if (written->second.there)
                txn.put(Txn::success, op.key, written->second.bytes, written->second.lease);
            else if (snapshot_[op.key].there)
                txn.remove(Txn::success, op.key);
            else
                count--; // made and deleted at one moment
            continue;
        }
        const muster_store_op &asked = *op.asked;
        if (op.condition == MUSTER_STORE_IF_ABSENT) txn.compare_mod(op.key, 0);
        if (op.condition == MUSTER_STORE_IF_PRESENT) txn.compare(op.key, "CREATE", "GREATER", "create_revision", "0");
        if (op.condition == MUSTER_STORE_IF_VERSION) txn.compare_mod(op.key, asked.version);
        if (op.condition == MUSTER_STORE_IF_VALUE)
            txn.compare(op.key, "VALUE", "EQUAL", "value",
                        base64({static_cast<const char *>(asked.expected), asked.expected_bytes}));
        place_[i] = count++;
        if (op.kind == MUSTER_STORE_SET)
            txn.put(Txn::success, op.key, {static_cast<const char *>(asked.value), asked.value_bytes}, asked.lease);
        else if (op.kind == MUSTER_STORE_DELETE)
            txn.remove(Txn::success, op.key);
        else
            txn.range(Txn::success, range_of_key(op.key));
    }
    return true;
}

void Task::committed(Reply &reply) {
    constexpr int lease_not_found = 5;
    if (reply.code == lease_not_found) return lease_is_missing(reply.doubt);
    if (!reply.ok()) {
        if (reply.doubt) reply.failure = {MUSTER_E_PEER, reply.failure.text + "; it may have been applied"};
        return fail(reply.failure, 0); // the slot is not used again
    }
    const auto succeeded = reply.body.find("succeeded");
    if (succeeded != reply.body.end() && succeeded->is_boolean() && succeeded->get<bool>()) {
        slot_->writes++;
        store_.session().give_back(std::move(slot_), slot_lease_);
        return done_at(revision_in(reply.body), reply.body);
    }
    const Value mark = first_in(response(reply.body, snapshot_.size(), "response_range"));
    if (mark.version == slot_->writes + 1) { // an earlier attempt was applied, whose answer was lost
        slot_->writes++;
        store_.session().give_back(std::move(slot_), slot_lease_);
        return look_back(mark.mod);
    }
    if (mark.version != slot_->writes) return session_is_gone(reply.doubt);
    reply.doubt ? fence(std::move(reply.body)) : refused(reply.body);
}

// An attempt may still be in transit to etcd, and must not be applied after the request ended as not applied.
void Task::fence(Json body) {
    Txn txn;
    txn.compare(slot_->key, "VERSION", "EQUAL", "version", std::to_string(slot_->writes));
    txn.put(Txn::success, slot_->key, "", slot_lease_);
    txn.range(Txn::failure, range_of_key(slot_->key));
    call_ = store_.client().call("/v3/kv/txn", txn.text(), [this, body = std::move(body)](Reply &reply) {
        call_ = nullptr;
        if (!reply.ok()) {
            return fail({MUSTER_E_PEER, reply.failure.text + "; it may have been applied"}, 0);
        }
        const auto succeeded = reply.body.find("succeeded");
        const bool raised = succeeded != reply.body.end() && succeeded->is_boolean() && succeeded->get<bool>();
        const Value mark = first_in(response(reply.body, 0, "response_range"));
        if (!raised && mark.version != slot_->writes + 1) return session_is_gone(true);
        slot_->writes++;
        // The mark was incremented by this transaction, by the attempt that was in transit, or by this one with a lost
        // answer: in each case only the first of them has written keys as well.
        if (raised) return refused(body);
        fail({MUSTER_E_PEER, "the connection broke; it may have been applied"}, 0);
    });
}

void Task::refused(const Json &body) {
    size_t next = 0;
    for (auto &[key, value] : snapshot_) value = first_in(response(body, next++, "response_range"));
    revision_ = revision_in(body);
    direct_ = writing_ = false;
    work_out();
}

void Task::session_is_gone(bool doubt) {
    slot_.reset();
    store_.session().over();
    if (doubt) return fail({MUSTER_E_PEER, "the connection broke for too long; it may have been applied"}, 0);
    writing_ = false;
    commit();
}

// The request's own, or the session's?
void Task::lease_is_missing(bool doubt) {
    store_.session().look([this, request = request_, &store = store_, doubt](bool there) {
        Task *const alive = store.find(request);
        if (alive != this) return; // it was cancelled meanwhile
        if (!there) return session_is_gone(doubt);
        for (size_t i = 0; i < ops_.size(); i++)
            if (ops_[i].asked->lease != 0) return fail({MUSTER_E_STALE, "its lease is over"}, static_cast<uint32_t>(i));
        writing_ = false;
        again(); // a key went with its lease
    });
}

void Task::done_at(uint64_t revision, const Json &body) {
    for (size_t i = 0; i < ops_.size(); i++) {
        const Op &op = ops_[i];
        if (place_[i] == shown) continue;
        if (op.list()) {
            show_list(i, listed_in(response(body, place_[i], "response_range")));
        } else if (direct_ && op.kind == MUSTER_STORE_SET) {
            show(i, {true, {}, revision, 0, 0}, false);
        } else if (direct_ && op.kind == MUSTER_STORE_DELETE) {
            show(i, {}, false);
            if (number_in(response(body, place_[i], "response_delete_range"), "deleted") != 0)
                entries_[i][0].entry.flags = MUSTER_STORE_PRESENT;
        } else if (direct_) {
            show(i, first_in(response(body, place_[i], "response_range")), op.kind != MUSTER_STORE_CHECK);
        }
    }
    answer(MUSTER_OK, revision);
}

// It was applied at that revision, and the answer was lost: etcd still has the state of that revision.
void Task::look_back(uint64_t revision) {
    Txn txn;
    size_t count = 0;
    for (size_t i = 0; i < ops_.size(); i++) {
        const Op &op = ops_[i];
        place_[i] = SIZE_MAX;
        if (!op.list() && (!direct_ || op.kind == MUSTER_STORE_SET)) continue;
        place_[i] = count++;
        const bool before = op.kind == MUSTER_STORE_DELETE;
        txn.range(Txn::success, op.list() ? list_range(op, revision) : range_of_key(op.key, revision - before));
    }
    call_ = store_.client().call("/v3/kv/txn", txn.text(), [this, revision](Reply &reply) {
        call_ = nullptr;
        if (!reply.ok()) {
            return fail(
                {MUSTER_E_PEER, reply.failure.text + "; it was applied at revision " + std::to_string(revision)}, 0);
        }
        for (size_t i = 0; direct_ && i < ops_.size(); i++) {
            if (ops_[i].kind != MUSTER_STORE_DELETE) continue;
            show(i, first_in(response(reply.body, place_[i], "response_range")), false);
            entries_[i][0].entry.version = 0;
            place_[i] = shown;
        }
        done_at(revision, reply.body);
    });
}

} // namespace etcd
