// SPDX-License-Identifier: MIT
#pragma once
// The contents of a store and the effect of requests on them: keys, queues, and waiting requests. It has no threads, no
// clock and no connections; its owner provides these.
//
// A waiting request is attached to one key or queue that it misses. When that appears, the request is tried again, and
// is applied or attached to the next one. Requests at one place are tried in the order of their arrival.
#include "base/list.hpp"
#include "store/table/history.hpp"
#include "store/table/request.hpp"

#include <list>
#include <map>
#include <set>
#include <unordered_map>

namespace muster {

// A request in the table. Its creator keeps it alive until it has ended or was withdrawn.
class StoreWaiter : public Listed<StoreWaiter> {
  public:
    explicit StoreWaiter(StoreRequest what) noexcept : request(std::move(what)) {}
    StoreRequest request;   // does not change until it is over
    StoreAnswer answer;     // once it is over
    Ref<StoreResult> spare; // an empty result for its answer, or none
    bool hangs() const noexcept { return at_ != nullptr; }

  protected:
    ~StoreWaiter() = default;

  private:
    friend class StoreTable;
    struct StorePlace *at_ = nullptr; // where it hangs
};

// A key or queue that requests wait for.
struct StorePlace {
    std::string name; // after a byte: 'k' a key, 'q' a queue, 'w' all keys with this prefix, 'b' a barrier
    List<StoreWaiter> waiters;
    uint32_t members = 0;       // of a barrier
    std::set<uint64_t> arrived; // their ranks
};

// One user at a time.
class StoreTable {
  public:
    explicit StoreTable(uint64_t max_bytes) : max_bytes_(max_bytes) {}
    StoreTable(const StoreTable &) = delete;
    StoreTable &operator=(const StoreTable &) = delete;

    // Tries a request: it ends, or waits. Requests that end are appended to `over`, others that continue included.
    void submit(StoreWaiter &who, List<StoreWaiter> &over) noexcept;
    // The same for a request that may not wait. False: it would have to, and nothing was done. No other request waits.
    bool do_now(StoreWaiter &who) noexcept;
    // Forgets a request that hangs. False: it is over.
    bool withdraw(StoreWaiter &who) noexcept;
    // Keys are deleted with their lease. Times are of one monotonic clock; INT64_MAX: never.
    uint64_t grant(int64_t until_ns);
    bool keep(uint64_t lease, int64_t until_ns) noexcept; // false: it is over
    // `why`: one of the MUSTER_STORE_LEASE_ flags, or 0 where that is not known. False: it was over.
    bool end_lease(uint64_t lease, uint32_t why, List<StoreWaiter> &over) noexcept;
    void end_leases(int64_t now_ns, List<StoreWaiter> &over) noexcept;
    int64_t next_end_ns() const noexcept;  // of a lease; INT64_MAX: none
    uint64_t next_to_end() const noexcept; // the lease that ends then; 0: none
    size_t leases() const noexcept { return leases_.size(); }

    // The contents without leases and waiting requests, for an empty table. Values are shared.
    struct Image {
        struct Key {
            std::string key;
            Ref<Blob> value;
            uint64_t version = 0, lease = 0;
        };
        uint64_t revision = 0, last_lease = 0;
        std::vector<Key> keys;
        std::vector<std::pair<std::string, Ref<Blob>>> queued; // those of one queue in their order
    };
    Image image() const;
    void put_back(uint64_t revision, uint64_t last_lease);
    void clear() noexcept; // no request waits
    void put_back(Image::Key key);
    void put_back(const std::string &queue, Ref<Blob> value);
    void put_back_lease(uint64_t lease, int64_t until_ns); // before its keys
    void limit(uint64_t max_bytes) noexcept { max_bytes_ = max_bytes; }

    // The missing values of the request, for people: `"a", "b" and 3 more`.
    std::string missing(const StoreRequest &request) const;

    uint64_t revision() const noexcept { return revision_; }
    uint64_t bytes() const noexcept { return bytes_; }
    size_t keys() const noexcept { return keys_.size(); }

  private:
    struct Record {
        Ref<Blob> value;
        uint64_t version = 0, lease = 0;
    };
    struct Lease {
        int64_t until_ns = 0;
        std::set<std::string> keys; // that were set with it; perhaps they are no more, or have left it
    };
    // A key is shared with the records of its changes.
    struct KeyLess {
        using is_transparent = void;
        static std::string_view text(const Ref<Blob> &key) noexcept { return key->bytes(); }
        static std::string_view text(std::string_view key) noexcept { return key; }
        bool operator()(const auto &a, const auto &b) const noexcept { return text(a) < text(b); }
    };
    using Keys = std::map<Ref<Blob>, Record, KeyLess>;
    using Queue = std::list<Ref<Blob>>;
    using Queues = std::map<std::string, Queue, std::less<>>;
    class Changes;
    // The data to undo one change.
    struct Undo {
        enum What { fresh, value, removed, pushed, popped } what;
        const Blob *key = nullptr; // these two stay where they are as long as the key's node lives
        Record *record = nullptr;
        Record before = {};
        Keys::node_type node = {};
        Queues::iterator queue = {};
        Queue taken = {};
    };

    static std::string place_name(const StoreOp &op);
    static std::string place_name(char kind, std::string_view name);
    // The operation that cannot be done yet; NULL: it is over.
    const StoreOp *attempt(StoreWaiter &who, std::vector<std::string> &came);
    Ref<StoreResult> conditions(const StoreRequest &request) const; // empty: they hold
    bool holds(const StoreOp &op) const noexcept;
    bool lacks(const StoreOp &op) const noexcept;                                         // by itself
    std::vector<const StoreOp *> lacking(const StoreRequest &request, size_t most) const; // all of it together
    Error run(const StoreRequest &request, size_t i, Changes &changes, StoreResult &result);
    Error change(const StoreRequest &request, size_t i, Changes &changes, StoreEntry &entry);
    Error use_queue(const StoreRequest &request, size_t i, Changes &changes, StoreEntry &entry);
    void show(const StoreOp &op, bool value, StoreEntry &entry) const;
    bool unchanged(std::string_view prefix, uint64_t since) const noexcept; // false: perhaps not
    bool watch(StoreWaiter &who) const;                                     // false: nothing has changed
    void list(const StoreOp &op, size_t i, StoreResult &result) const;
    bool hang(StoreWaiter &who, const StoreOp &op) noexcept; // false: no memory
    void take_down(StoreWaiter &who) noexcept;
    void end_watches(List<StoreWaiter> &over) noexcept;     // changes could not be written down
    bool arrive(StoreWaiter &who, List<StoreWaiter> &over); // false: others are missing
    std::string missing_at_barrier(const StoreOp &op) const;
    void let_go_on(std::vector<std::string> &came, List<StoreWaiter> &over) noexcept;
    const Record *find(std::string_view key) const noexcept;
    void note_change(std::string_view key, bool fresh, std::vector<std::string> &came) const;
    StorePlace &place(const std::string &name);
    void drop_place(StorePlace &empty) noexcept;

    uint64_t max_bytes_;
    uint64_t revision_ = 0, bytes_ = 0;
    uint64_t seen_before_ = 0; // while requests continue: the revision before the change
    Keys keys_;
    Queues queues_; // none is empty
    StoreLog log_;
    std::unordered_map<uint64_t, Lease> leases_;
    std::set<std::pair<int64_t, uint64_t>> ends_; // when, and which; INT64_MAX: never
    uint64_t last_lease_ = 0;
    std::unordered_map<std::string, std::unique_ptr<StorePlace>> places_;
    std::vector<Undo> spare_undo_;     // empty: room for the next request's
    std::map<size_t, size_t> watched_; // number of places of watches, by the length of the watched prefix
};

} // namespace muster
