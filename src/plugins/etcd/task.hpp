// SPDX-License-Identifier: MIT
#pragma once
// One request to a store: it reads the values that it needs, computes its changes from them, and applies these if the
// values have not changed meanwhile; otherwise the answer has the new values, and it computes them again. Requests that
// set, delete and check, each key once, are applied at once instead.
#include "store.hpp"
#include "txn.hpp"

namespace etcd {

class Task final : public Watcher {
  public:
    Task(Store &store, uint64_t request, const muster_store_request &what);
    ~Task() override;
    Task(const Task &) = delete;
    Task &operator=(const Task &) = delete;

    void start();
    void session_ready();
    void session_failed(const Failure &why);
    // etcd may have received the transaction that changes something, and its answer has not arrived.
    bool may_have_been_applied() const noexcept;
    void end_soon() noexcept { store_.client().end_soon(call_); } // it is not sent again
    uint64_t request() const noexcept { return request_; }

  private:
    struct Op {
        uint32_t kind, condition;
        std::string key; // with the store's root
        const muster_store_op *asked;
        bool list() const noexcept;
        bool writes() const noexcept;
        bool waits() const noexcept;
    };
    struct Entry {
        muster_store_entry entry{};
        std::string key, value;
    };
    static constexpr uint64_t own = UINT64_MAX; // a version: that of this request

    // Reading.
    void read();
    void reading_failed(const Reply &reply);
    std::string list_range(const Op &op, uint64_t at_revision = 0) const;
    bool any(bool (Op::*what)() const noexcept) const noexcept;
    // Working out.
    void work_out();
    bool holds(const Op &op, const Value &value) const noexcept;
    bool answer_if_changed();
    bool run(size_t i, std::map<std::string, Value> &state); // false: it has failed
    bool grow(size_t i, Value &value);                       // ADD, APPEND
    void show(size_t i, const Value &value, bool with_value);
    void show_list(size_t i, const Listed &listed);
    // Doing.
    bool can_be_direct() const;
    void commit();
    bool write_down(Txn &txn); // the changes and their conditions; false: not possible
    void committed(Reply &reply);
    void done_at(uint64_t revision, const Json &body);
    void refused(const Json &body);
    void fence(Json body);
    void lease_is_missing(bool doubt);
    void session_is_gone(bool doubt);
    void look_back(uint64_t revision);
    // Waiting.
    void wait_for(const std::string &key);
    void watch_changes();
    void watch_behind(uint64_t now);
    bool show_changes();
    void changed() override;
    void compacted(uint64_t first) override;
    void unreachable(const Failure &why) override { fail(why, 0); }
    // Ends.
    void again();
    void answer(muster_status status, uint64_t revision);
    void not_there();
    void fail(const Failure &why, uint32_t op = UINT32_MAX);

    Store &store_;
    const uint64_t request_;
    const bool once_;
    std::vector<Op> ops_;
    std::map<std::string, Value> snapshot_;
    std::map<std::string, Value> writes_;
    std::vector<std::vector<Entry>> entries_; // by operation
    std::vector<size_t> place_;               // indexes of operations in the answer of a transaction; SIZE_MAX: none
    uint64_t revision_ = 0;                   // of the snapshot
    uint64_t begun_at_ = 0;                   // of the stream, as it was entered
    bool direct_ = false;
    bool writing_ = false;   // commit() has begun; it has not been refused
    Call *commit_ = nullptr; // its first call
    std::unique_ptr<Slot> slot_;
    uint64_t slot_lease_ = 0;
    Call *call_ = nullptr;
    muster_timer *timer_ = nullptr;
};

} // namespace etcd
