// SPDX-License-Identifier: MIT
#pragma once
// Objects that the host serves: transports, stores, rendezvous and managers. The library's calls to their providers
// become requests in the queue of the provider, answered by id; this is the one table of such requests.
//
// A request reserves two slots of the queue when it is sent: one for itself, one for its final notification (CANCEL or
// CLOSE). So neither is ever lost. If the callbacks run on the loop thread no slots are needed: notifications are nodes
// of a list there, and part of the request.
#include "base/list.hpp"
#include "context/task.hpp"
#include "queue/future.hpp"
#include "queue/queue.hpp"

#include <map>
#include <mutex>

namespace muster {

class ServedRequest;
class ServedRequests;

enum class ServedKind : uint8_t { transport, store, rendezvous, manager };

// A notification for the provider on the loop thread.
struct ServedNotification : Listed<ServedNotification> {
    ServedRequest *request = nullptr; // with a reference while it is in a list; none: the provider itself has ended
    int32_t kind = 0;
};

// The provider of one scheme or name: the host, with callbacks or by pulling requests from a queue, or a plug-in. It is
// added once and withdrawn once. Derive from Provided<Base>. Any thread.
class ServedProvider {
  public:
    // The callbacks that tables of all kinds have; each may be NULL.
    struct Callbacks {
        void (*close)(void *self, uint64_t request) = nullptr;
        void (*cancel)(void *self, uint64_t request) = nullptr;
        void (*destroy)(void *self) = nullptr;
    };
    struct Config {
        Context &context;
        ServedKind kind;
        std::string name;  // the scheme
        std::string shown; // for texts: "store mine"
        Queue *queue;      // NULL: a plug-in, whose callbacks run on the loop thread
        uint64_t tag = 0;
        void *self = nullptr;
        bool has_callbacks = false; // else requests are pulled
        bool is_on_loop = false;
        Callbacks callbacks{};
    };
    template <class Ops>
    static Callbacks callbacks_of(const Ops *ops) noexcept {
        if (ops == nullptr) return {};
        if constexpr (requires { ops->close; }) return {ops->close, ops->cancel, ops->destroy};
        if constexpr (!requires { ops->close; }) return {nullptr, ops->cancel, ops->destroy};
    }

    explicit ServedProvider(Config config)
        : config_(std::move(config)), queue_(config_.queue), registrant_(pthread_self()) {}
    Context &context() const noexcept { return config_.context; }
    ServedKind kind() const noexcept { return config_.kind; }
    const std::string &name() const noexcept { return config_.name; }
    const char *shown() const noexcept { return config_.shown.c_str(); }
    Queue *queue() const noexcept { return queue_.get(); }
    bool has_callbacks() const noexcept { return config_.has_callbacks; }
    // Would a wait for the provider end only by the calling thread? See Queue::served_here().
    bool would_deadlock() const noexcept { return !config_.is_on_loop && queue_->served_here(registrant_); }
    // Calls the callback for an entry of the queue, on the thread that dispatches.
    void dispatch(const muster_completion &entry) { call(entry.kind, entry.request); }

    virtual Object &provider_object() noexcept = 0;
    void retain() noexcept { provider_object().retain(); }
    bool try_retain() noexcept { return provider_object().try_retain(); }
    void release() noexcept { provider_object().release(); }

  protected:
    ~ServedProvider() = default;
    void *self() const noexcept { return config_.self; }
    virtual void call(int32_t kind, uint64_t id);
    virtual void call_for(ServedRequest &request) = 0; // the callback of the table for this request
    // It becomes known, or not any more. The table's lock is held during the first.
    virtual Result<void> publish() { return {}; }
    virtual void unpublish() noexcept {}
    virtual void ended() noexcept {} // it was withdrawn, and its last request has ended

  private:
    friend class ServedRequests;
    Result<void> reserve(int slots) noexcept;
    void unreserve(int slots) noexcept;
    // Into a slot that was reserved. `request` NULL: the end of the provider.
    void notify(int32_t kind, ServedRequest *request, ServedNotification &notification) noexcept;
    void deliver() noexcept; // loop thread
    void stop() noexcept;    // loop thread: delivers pending notifications; later ones are dropped

    const Config config_;
    const Ref<Queue> queue_;
    const pthread_t registrant_;
    bool withdrawn_ = false;      // these two under the lock of ServedRequests
    uint64_t requests_count_ = 0; // those of which the provider may still be notified
    PostedTask<ServedProvider, &ServedProvider::deliver> deliver_{*this};
    std::mutex lock_; // guards the rest; a leaf
    List<ServedNotification> notifications_;
    ServedNotification end_;
    bool stopped_ = false;
};

// Makes a provider of a class of objects.
template <class Base>
class Provided : public Base, public ServedProvider {
  public:
    using Base::release;
    using Base::retain;
    using Base::try_retain;
    using ServedProvider::ServedProvider;

  private:
    Object &provider_object() noexcept final { return *this; }
};

// One request. Each kind of provider derives a class from it; its content does not change after it was sent.
class ServedRequest : public Object {
  public:
    ServedProvider &provider() const noexcept { return *provider_; }
    uint64_t id() const noexcept { return id_; }

  protected:
    // `kind`: of the completion, MUSTER_REQUEST_OPEN and others.
    ServedRequest(ServedProvider &provider, int32_t kind);
    // The provider was withdrawn: no answer is accepted any more. `answered`: it was answered before, and kept.
    virtual void withdrawn(const Error &why, bool answered) noexcept = 0;
    // Does it then remain in the table until ServedRequests::end()?
    virtual bool outlives_withdrawal() const noexcept { return false; }

  private:
    friend class ServedProvider;
    friend class ServedRequests;
    bool is_open() const noexcept { return !answered_ && !withdrawn_; }
    const Ref<ServedProvider> provider_;
    const uint64_t id_;
    ServedNotification first_, last_; // under the provider's lock
    // Under the lock of ServedRequests.
    bool answered_ = false;
    bool seen_ = false;      // its callback has run, or it was answered
    bool cancelled_ = false; // CANCEL was sent, and the answer is awaited
    bool withdrawn_ = false;
};

// The providers of a context and their requests. Any thread, unless a member says otherwise.
class ServedRequests final : public ContextPart {
  public:
    static ServedRequests &of(Context &context);
    explicit ServedRequests(Context &context) : context_(context) {}
    static Error stale(uint64_t id) noexcept;

    // --- providers
    Result<void> add(ServedProvider &provider);
    // `shown`: for the text if the host gives none: "store mine".
    Result<void> withdraw(ServedKind kind, const std::string &name, const char *shown);
    // Unanswered requests fail, those that were answered and kept are closed. Nothing, if it was not added.
    void withdraw(ServedProvider &provider) noexcept;
    template <class Provider>
    Ref<Provider> find(const std::string &name) {
        const Ref<ServedProvider> found = find(Provider::served_kind, name);
        return Ref<Provider>(static_cast<Provider *>(found.get()));
    }

    // --- the requesting side
    Result<void> send(ServedRequest &request) noexcept;
    // A request that the provider itself has begun: answered from the start. It has only its final notification.
    Result<void> enter(ServedRequest &request) noexcept;
    // The answer is no longer needed: CANCEL. False: it was answered.
    bool drop(uint64_t id) noexcept { return cancel(id, false) != Cancelled::over; }
    // `wants_answer`: a request that the provider has seen stays, and the provider still answers it.
    enum class Cancelled { over, unseen, seen };
    Cancelled cancel(uint64_t id, bool wants_answer) noexcept;
    void end(uint64_t id) noexcept; // CLOSE if it was answered, else CANCEL
    bool is_unanswered(uint64_t id) noexcept;

    // --- the provider's side; `queue`: that of its requests, NULL for a plug-in
    template <class Request>
    Result<Ref<Request>> find(const Queue *queue, uint64_t id, bool answered = false) {
        const Ref<ServedRequest> found = find(Request::served_kind, queue, id, answered);
        if (!found) return stale(id);
        return Ref<Request>(static_cast<Request *>(found.get()));
    }
    // It is answered now, and over. False: it was answered before, or is not needed any more.
    bool answer(ServedRequest &request) noexcept { return answer(request, false); }
    // The same, but it is kept until end().
    bool answer_and_keep(ServedRequest &request) noexcept { return answer(request, true); }
    bool is_cancelled(const ServedRequest &request) noexcept;

    // A walk during which requests may be added and removed: the next one after an id, 0 to begin; or none.
    template <class Request>
    Ref<Request> next(uint64_t after, const ServedProvider *provider = nullptr) noexcept {
        const std::lock_guard hold(lock_);
        return Ref<Request>(static_cast<Request *>(next_locked(after, Request::served_kind, provider)));
    }

    void close() noexcept override;
    void stop() noexcept override; // more than once: plug-ins call it before they stop

  private:
    friend class ServedProvider;
    friend class ServedRequest;
    friend class Queue;
    using Name = std::pair<ServedKind, std::string>;
    Ref<ServedProvider> find(ServedKind kind, const std::string &name);
    Ref<ServedRequest> find(ServedKind kind, const Queue *queue, uint64_t id, bool answered) noexcept;
    ServedRequest *next_locked(uint64_t after, ServedKind kind, const ServedProvider *provider) noexcept;
    Result<void> enter(ServedRequest &request, int slots) noexcept;
    bool answer(ServedRequest &request, bool keep) noexcept;
    Ref<ServedRequest> see(uint64_t id) noexcept; // its callback is about to run; empty: it is over
    // The final notification of a request that is no longer in the table; 0: none.
    void retire(ServedRequest &request, int32_t notification) noexcept;
    void leave(ServedProvider &provider) noexcept; // one request fewer; after the last one it may end
    void destroyed(ServedProvider &provider) noexcept;
    template <class Which>
    void withdraw_all(const Which &which) noexcept;
    void queue_released(Queue &queue) noexcept;

    Context &context_;
    std::atomic<uint64_t> next_id_{1};                // relaxed: ids only have to differ
    std::mutex lock_;                                 // guards the rest
    std::map<uint64_t, Ref<ServedRequest>> requests_; // unanswered, and those that were kept
    std::map<Name, Ref<ServedProvider>> providers_;
    std::map<ServedProvider *, Ref<ServedProvider>> on_loop_; // until their tables are destroyed
};

// An answer that a thread waits for. Any thread.
template <class T>
class ServedAnswer final : public Object {
  public:
    void set(Context &context, Result<T> answer) noexcept { answer_.complete(context, std::move(answer)); }
    // The request is dropped at the deadline.
    Result<T> wait(Context &context, Deadline &deadline, uint64_t request) {
        if (const Status status = answer_.wait(context, deadline); status != MUSTER_OK) {
            if (ServedRequests::of(context).drop(request))
                return Error::make(status == MUSTER_AGAIN ? MUSTER_TIMEOUT : status, "no answer in time");
            Deadline endless(-1);
            while (answer_.wait(context, endless) != MUSTER_OK) {
            } // it is being answered
        }
        return std::move(answer_.value());
    }

  private:
    Future<Result<T>> answer_;
};

} // namespace muster
