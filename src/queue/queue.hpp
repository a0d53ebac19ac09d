// SPDX-License-Identifier: MIT
#pragma once
// The completion queue. Inside it is one epoll descriptor (the one the host polls) over its own eventfd and the
// descriptors of watched streams, all edge-triggered: nothing is ever read off them, one write is one wake-up.
#include "context/context.hpp"

#include <muster/queue.h>

#include <pthread.h>
#include <string>

namespace muster {

// One entry with its detail. A value.
struct Entry {
    Entry() noexcept {} // not `= default`: see Result<void>. NOLINT(modernize-use-equals-default)
    muster_completion completion{};
    Error error;        // when completion.status < 0, or a log text
    Ref<Object> object; // the target of completion.object; passed to the host, or released with the queue
    class ServedProvider *provider = nullptr; // requests: that has callbacks (muster_queue_dispatch); else NULL
    Ref<Object> asker;                        // requests: keeps the provider and the request alive
};

// The tag of the requests to a table of callbacks.
inline uint64_t tag_of(const void *self) noexcept {
    return reinterpret_cast<uintptr_t>(self);
}

// The node of a watch at a queue: one coalesced set of event bits, embedded in the watched object. Lifecycle: attach()
// once, raise() any number of times, detach() once; all through the queue.
class Source {
  public:
    virtual ~Source() = default;
    // The descriptor added by Queue::add_fd() became ready (EPOLLIN, EPOLLOUT, EPOLLHUP bits): returns the READY
    // events to report, 0 for none. Runs inside muster_queue_next() on a host thread, with no queue lock held.
    virtual uint32_t on_fd(uint32_t epoll_events) noexcept {
        (void)epoll_events;
        return 0;
    }
    // For a thread that polls before it sleeps, with no queue lock held. begin_look(): no descriptor shows any more
    // what was armed, look() does; false: nothing is armed, or a descriptor is about to show it. look(): the READY
    // events to report, which end it. end_look(): descriptors show events again; returns those that occurred meanwhile.
    virtual bool begin_look() noexcept { return false; }
    virtual uint32_t look() noexcept { return 0; }
    virtual uint32_t end_look() noexcept { return 0; }
    // The queue keeps the owner of the source alive while an event is in flight.
    virtual Object &owner() noexcept = 0;

  private:
    friend class Queue;
    // All under the queue's lock.
    uint64_t tag_ = 0, order_ = 0;
    uint32_t pending_ = 0, busy_ = 0; // busy: threads inside on_fd(), or that look
    bool attached_ = false;
    Source *next_ = nullptr, *prev_ = nullptr;
};

// An object with operations in progress, whose buffers close() must return. Embedded in its owner (one for each queue
// in use): enlist() before the first operation, delist() after the last.
class QueueUser {
  public:
    virtual ~QueueUser() = default;
    // The queue is closing: end every operation with a slot of this queue; after return none of their buffers is
    // touched. Runs on the thread that closes, once, no queue lock held; need not delist.
    virtual void end_operations() noexcept = 0;
    // muster_queue_cancel_operation(): ends the operations that were begun with this tag with MUSTER_E_CANCELED, soon.
    // False: there is none. As end_operations(), but the queue stays open.
    virtual bool cancel_operation(uint64_t tag) noexcept {
        (void)tag;
        return false;
    }
    virtual Object &owner() noexcept = 0; // kept alive during the call

  private:
    friend class Queue;
    bool enlisted_ = false;
    uint64_t visit_ = 0; // of the last walk that visited it
    QueueUser *next_ = nullptr, *prev_ = nullptr;
};

// Operations of one queue that end together. Called with the lock of the queue.
class QueueEndings {
  public:
    virtual QueueUser *user(size_t n) noexcept = 0; // as of complete()
    virtual Entry entry(size_t n) noexcept = 0;

  protected:
    ~QueueEndings() = default;
};

class ServedRequests;

// Any thread.
class Queue final : public Object {
  public:
    static Result<Ref<Queue>> create(Context &context, uint32_t capacity);
    Context &context() const noexcept { return *context_; }
    bool closed() const noexcept;

    // Operations: reserve a slot when submitting (false: MUSTER_AGAIN), then exactly one of complete() or unreserve().
    // For a user that has one operation: it is enlisted with it.
    bool reserve(QueueUser *user = nullptr) noexcept;
    void unreserve() noexcept;
    // Uses a reserved slot; cannot fail. On a closed queue the entry is dropped and its object released. The user that
    // it was reserved for is delisted.
    void complete(Entry &&entry, QueueUser *user = nullptr) noexcept;
    // The same for several operations, under one lock. On a closed queue they keep their entries.
    void complete(QueueEndings &operations, size_t count) noexcept;
    void unreserve(QueueUser &user) noexcept; // and delists it
    // Without a reservation; false when full or closed (log records, posts, requests).
    bool try_post(Entry &&entry) noexcept;

    // False: the queue is closed. Both wait for an end_operations() of it in another thread.
    bool enlist(QueueUser &user) noexcept;
    void delist(QueueUser &user) noexcept;

    // Readiness. raise() from any thread, also before the host has taken the last one: bits merge.
    void attach(Source &source, uint64_t tag) noexcept;
    void raise(Source &source, uint32_t events) noexcept;
    void detach(
        Source &source) noexcept; // after return no event of it will be taken; waits for an on_fd() in another thread
    // Adds a descriptor (eventfd, socket) whose edges are the source's wake-ups. Call with the source attached.
    Result<void> add_fd(Source &source, int fd, uint32_t epoll_events) noexcept;
    // Also re-raises the edge if it is ready. False: it is not watched, or was closed.
    bool modify_fd(Source &source, int fd, uint32_t epoll_events) noexcept;
    void remove_fd(Source &source, int fd) noexcept; // call before closing the fd

    // Has an entry been taken, and was the calling thread the last one to do so; does a thread wait for one now? On the
    // thread that serves this queue, a wait that only an entry of the queue can end would be endless.
    bool taken_ever() const noexcept;
    bool taken_here() const noexcept;
    bool awaited() const noexcept;
    // Would a wait for something that this queue serves end only by the calling thread? `registrant` registered it. If
    // no thread has taken an entry yet, another one may be about to begin: then false, and a call of the host fails
    // later with MUSTER_E_WOULD_DEADLOCK unless one has.
    bool served_here(pthread_t registrant) noexcept;

    // Descriptors of the host: armed for one event by each call.
    Result<void> watch_host_fd(int fd, uint32_t events, uint64_t tag);
    bool unwatch_host_fd(int fd) noexcept; // false: it is not watched

    Status next(Deadline &deadline, muster_completion *out, muster_error *error) noexcept;
    Status dispatch(Deadline &deadline, muster_queue_handler_fn handler, void *user, uint64_t *out_count);
    void cancel() noexcept;
    bool cancel_operation(uint64_t tag) noexcept; // false: there is none
    Result<int> host_fd() noexcept;               // dup of the epoll descriptor
    Status set_wake(muster_wake_fn wake, void *user);
    void close() noexcept;
    void host_release() noexcept; // releases the handle of the host: ends as by close()
    // Requests of the context's providers are in this queue: they are withdrawn when the host releases it.
    void set_served(ServedRequests &requests) noexcept { served_.store(&requests, std::memory_order_release); }
    void stats(muster_queue_stats &out) noexcept;

  private:
    struct State;
    class Looks;
    Queue(Context &context, std::unique_ptr<State> state) noexcept;
    ~Queue() override;
    void last_reference_gone() noexcept override;
    void end_operations() noexcept;
    void forget_host_fds() noexcept;
    Ref<Context> context_;
    std::unique_ptr<State> state_;
    std::atomic<ServedRequests *> served_{nullptr}; // release, acquire: for the object that it points to
};

inline Queue *unwrap(muster_queue *handle) noexcept {
    return reinterpret_cast<Queue *>(handle);
}
inline muster_queue *wrap(Queue *object) noexcept {
    return reinterpret_cast<muster_queue *>(object);
}

} // namespace muster
