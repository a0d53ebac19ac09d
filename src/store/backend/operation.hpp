// SPDX-License-Identifier: MIT
#pragma once
// A request of the host: its deadline, its cancellation, and the destination of its result.
#include "queue/queue.hpp"
#include "store/table/table.hpp"

#include <mutex>

namespace muster {

class Store;
class StoreBackend;
class StoreLease;

// Receives the result inside the library, in place of a queue. The operation keeps it alive.
class StoreListener {
  public:
    virtual void answered(uint64_t tag, StoreAnswer answer) noexcept = 0; // any thread, no lock held
    virtual Object &listener_object() noexcept = 0;

  protected:
    ~StoreListener() = default;
};

// Any thread.
class StoreOperation final : public Object,
                             public StoreWaiter,
                             public Listed<StoreOperation, class PendingOperations>,
                             private QueueUser {
  public:
    static Ref<StoreOperation> make(Store &store, StoreRequest what, int64_t timeout_ns);
    static Ref<StoreOperation> make(const Ref<StoreLease> &lease, int64_t timeout_ns); // is to make the lease

    // muster_store_do and others: waits for the end.
    StoreAnswer wait();
    // muster_store_begin. False: the queue is full, and nothing was begun.
    bool begin(Queue &queue, uint64_t tag, uint64_t *out_request);
    // For other modules of the library.
    void begin(StoreListener &listener, uint64_t tag);
    // False: it is over.
    bool cancel() noexcept { return end(MUSTER_E_CANCELED, "cancelled"); }
    bool awaited() const noexcept { return awaited_; } // by a thread
    bool looks_once() const noexcept { return looks_once_; }
    bool awaited_with(const Store &store) const noexcept { return awaited_ && store_.get() == &store; }
    // Ends it if it waits and its guard is over.
    void look_at_guard() noexcept;

    // From the backend, once, no lock held.
    void finish(StoreAnswer last) noexcept;
    std::atomic<uint64_t> place{0}; // an identifier of the backend; relaxed: the backend has a lock
    struct {
        bool sent = false;      // perhaps it was done
        bool under_way = false; // sent on this connection
        bool withdrawn = false; // not needed any more; the server has to answer whether it was applied
        StoreOperation *next_in_chain = nullptr;
    } sending; // for a backend that sends it away, under its lock
    // Instead of finish(), after Withdrawn::asked: it was not applied.
    void withdrawn(const char *missing) noexcept;
    void wake() noexcept; // a thread in the backend's sleep() checks again

  private:
    friend class StoreEndings;

    StoreOperation(Store &store, StoreRequest what, int64_t timeout_ns) noexcept;
    StoreOperation(const Ref<StoreLease> &lease, int64_t timeout_ns);
    ~StoreOperation() override;
    void last_reference_gone() noexcept override;
    bool is_looked_after() noexcept;
    void look_after() noexcept; // loop thread
    void tidy() noexcept;       // loop thread
    bool submit() noexcept;     // as that of the backend
    Status sleep(uint32_t seen, Deadline &deadline) noexcept;
    int64_t next_limit_ns() noexcept; // with the lock: when limit_reached() is due; INT64_MAX: never
    void limit_reached() noexcept;
    void give_up() noexcept; // the backend was asked to end it, and has not answered in time
    void ended_in_doubt() noexcept;
    Error why_ended(const char *missing) noexcept;
    bool guarded() const noexcept;
    bool conclude(StoreAnswer &&last) noexcept;
    Entry entry() noexcept;
    void tidy_up() noexcept;
    void enlist();
    void look_behind_guard(StoreAnswer &answer) const noexcept;
    void context_closes() noexcept { end(MUSTER_E_CLOSED, "the context was closed"); }
    bool end(Status status, const char *why = nullptr) noexcept; // from outside
    void end_operations() noexcept override;
    bool cancel_operation(uint64_t tag) noexcept override { return tag == tag_ && cancel(); }
    Object &owner() noexcept override { return *this; }

    const Ref<StoreLease> lease_; // to be made, or empty
    const Ref<Store> store_;
    StoreBackend &backend_;
    Context &context_;
    const bool looks_once_;
    Deadline deadline_;
    const int64_t begun_ns_;
    // These are written before another thread has the object.
    uint64_t number_ = 0;  // by which find() finds it; 0: not enlisted
    bool awaited_ = false; // by a thread of the host
    Ref<Queue> queue_;
    StoreListener *listener_ = nullptr;
    uint64_t tag_ = 0;
    PostedTask<StoreOperation, &StoreOperation::look_after> look_after_{*this};
    PostedTask<StoreOperation, &StoreOperation::tidy> tidy_{*this};
    Timer<StoreOperation, &StoreOperation::limit_reached> limit_{*this};
    Closing<StoreOperation, &StoreOperation::context_closes> closing_{*this};

    Signal signal_;
    std::mutex lock_; // guards the rest, and the answer once it is over
    bool finished_ = false, looked_after_ = false, enlisted_ = false;
    bool delists_ = false;          // the thread that has set `finished_` reads it without the lock
    bool ends_at_deadline_ = false; // it was withdrawn before its deadline, and was not applied: `answer` says so
    Status ending_ = MUSTER_OK;     // how it is to end, once the backend agrees
    const char *ending_why_ = nullptr;
    int64_t give_up_at_ns_ = 0; // once `ending_` is set
};

// Operations that end one after the other: those of one queue take its lock once for many. One thread.
class StoreEndings final : private QueueEndings {
  public:
    StoreEndings() = default;
    StoreEndings(const StoreEndings &) = delete;
    StoreEndings &operator=(const StoreEndings &) = delete;
    ~StoreEndings() { deliver(); }
    void add(Ref<StoreOperation> &&operation, StoreAnswer &&last) noexcept; // as finish(), no lock held

  private:
    void deliver() noexcept;
    QueueUser *user(size_t n) noexcept override;
    Entry entry(size_t n) noexcept override;

    // Of one queue, with a reference each. Not set to zero: most calls add none.
    static constexpr size_t most = 32;
    StoreOperation *ended_[most];
    size_t count_ = 0;
};

} // namespace muster
