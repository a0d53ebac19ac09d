// SPDX-License-Identifier: MIT
#pragma once
// What a store holds, and what requests do to it: keys, queues, and who waits for them. It has no threads, no clock and
// no connections; whoever keeps it brings these.
//
// A request that waits hangs at one key or queue that it lacks. When that comes, the request is tried again, and is
// done or hangs at the next. Those that hang at one place are tried in the order they came.
#include "base/list.hpp"
#include "store/request.hpp"

#include <list>
#include <map>
#include <unordered_map>

namespace muster {

// A request as the table knows it. Whoever made it keeps it alive until it is over or withdrawn.
class StoreWaiter : public Listed<StoreWaiter> {
  public:
    explicit StoreWaiter(StoreRequest what) noexcept : request(std::move(what)) {}
    const StoreRequest request;
    StoreAnswer answer; // once it is over

  protected:
    ~StoreWaiter() = default;

  private:
    friend class StoreTable;
    struct StorePlace *at_ = nullptr; // where it hangs
};

// A key or queue that somebody waits for.
struct StorePlace {
    std::string name; // of a queue or a key: the first byte tells which
    List<StoreWaiter> waiters;
};

// One user at a time.
class StoreTable {
  public:
    explicit StoreTable(uint64_t most_bytes) noexcept : most_bytes_(most_bytes) {}
    StoreTable(const StoreTable &) = delete;
    StoreTable &operator=(const StoreTable &) = delete;

    // Tries a request: it is over, or hangs. `over` gets it, and those it has let go on.
    void submit(StoreWaiter &who, List<StoreWaiter> &over) noexcept;
    // Forgets a request that hangs. False: it is over.
    bool withdraw(StoreWaiter &who) noexcept;
    // What the request lacks, for people: `"a", "b" and 3 more`.
    std::string missing(const StoreRequest &request) const;

    uint64_t revision() const noexcept { return revision_; }
    uint64_t bytes() const noexcept { return bytes_; }
    size_t keys() const noexcept { return keys_.size(); }

  private:
    struct Record {
        Ref<Blob> value;
        uint64_t version = 0;
    };
    using Keys = std::map<std::string, Record, std::less<>>;
    using Queue = std::list<Ref<Blob>>;
    using Queues = std::map<std::string, Queue, std::less<>>;
    class Changes;

    static std::string place_name(std::string_view name, bool queue);
    const StoreOp *attempt(StoreWaiter &who, std::vector<std::string> &came); // what it lacks; NULL: it is over
    Ref<StoreResult> conditions(const StoreRequest &request) const;           // empty: they hold
    static std::string status_text_of_changed(const StoreRequest &request, const StoreResult &instead);
    bool holds(const StoreOp &op) const noexcept;
    bool lacks(const StoreOp &op) const noexcept;
    Error run(const StoreRequest &request, size_t i, Changes &changes, StoreResult &result);
    Error change(const StoreRequest &request, size_t i, Changes &changes, StoreEntry &entry);
    Error use_queue(const StoreRequest &request, size_t i, Changes &changes, StoreEntry &entry);
    void show(const StoreOp &op, bool value, StoreEntry &entry) const;
    void list(const StoreOp &op, size_t i, StoreResult &result) const;
    bool hang(StoreWaiter &who, const StoreOp &op) noexcept; // false: no memory
    void take_down(StoreWaiter &who) noexcept;
    void let_go_on(std::vector<std::string> &came, List<StoreWaiter> &over) noexcept;
    const Record *find(std::string_view key) const noexcept;

    const uint64_t most_bytes_;
    uint64_t revision_ = 0, bytes_ = 0;
    Keys keys_;
    Queues queues_; // none is empty
    std::unordered_map<std::string, std::unique_ptr<StorePlace>> places_;
};

} // namespace muster
