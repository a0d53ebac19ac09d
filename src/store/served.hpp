// SPDX-License-Identifier: MIT
#pragma once
// Stores served by the host or by a plug-in: what they are asked becomes requests, answered by id.
//
// A request has a slot of the queue for itself and one for its last word (CLOSE or CANCEL), reserved when it is made,
// so none of them is ever lost. Where callbacks run on the loop both are words in a list for it instead.
#include "plugin/plugins.hpp"
#include "queue/queue.hpp"
#include "store/store.hpp"

#include <muster/store_serve.h>

#include <map>

namespace muster {

class Plugin;
class ServedScheme;
class ServedStore;
class ServedLease;
class ServedLeases;
class ServedOpening;

// What the loop is to tell a table; part of what it is about, so that saying it needs no memory.
struct ServedWord : Listed<ServedWord> {
    class ServedRequest *about = nullptr; // with a reference while it is in a list; none: the table's own end
    int32_t kind = 0;
};

// One request to whoever serves a scheme. What it asks is not changed any more once others know it; the rest is under
// the lock of ServedStores.
class ServedRequest final : public Object {
  public:
    ServedRequest(ServedScheme &to, uint32_t kind);
    ServedScheme &scheme() const noexcept { return *scheme_; }
    void ask_for(StoreOperation &operation, uint64_t store);
    void tell(muster_store_request &out) const noexcept;
    void end(const Error &why) noexcept; // whoever asked is told; once
    Result<void> lease_done();
    bool answered() const noexcept { return state_ == State::answered; }

    const uint32_t kind;
    uint64_t id = 0, store = 0, lease = 0;
    int64_t ttl_ns = 0;
    uint32_t flags = 0;
    std::string url;               // OPEN
    Ref<StoreOperation> operation; // DO, GRANT, END
    Ref<ServedOpening> opening;    // OPEN
    Ref<ServedLease> keeper;       // GRANT, KEEP
    Ref<ServedLeases> leases;      // GRANT
    ServedWord first, last;        // under the scheme's lock

  private:
    friend class ServedStores;
    friend class ServedScheme;
    enum class State { waiting, answered };
    const Ref<ServedScheme> scheme_;
    std::vector<muster_store_op> ops_;
    State state_ = State::waiting;
    bool seen_ = false;      // its callback has run
    bool cancelled_ = false; // CANCEL was said, and its answer is waited for
};

// One scheme. Any thread.
class ServedScheme final : public Object, public RequestTable {
  public:
    // With a queue; `ops` NULL: requests are pulled.
    ServedScheme(Context &context, std::string name, Queue *queue, const muster_store_host_ops *ops, void *self,
                 uint64_t tag = 0);
    Context &context() const noexcept { return context_; }
    const std::string &name() const noexcept { return name_; }
    Queue *queue() const noexcept { return queue_.get(); }
    bool would_deadlock() const noexcept;
    bool reserve(int slots) noexcept;
    Error why_refused() const; // after a false of reserve()
    void unreserve(int slots) noexcept;
    bool has_table() const noexcept { return with_ops_; }
    bool on_loop() const noexcept { return on_loop_; }
    void set_plugin(Plugin &plugin) noexcept { plugin_ = &plugin; } // whose callbacks these are
    void say_first(ServedRequest &request) noexcept { say(MUSTER_REQUEST_STORE, &request, request.first); }
    void say_last(int32_t kind, ServedRequest &request) noexcept { say(kind, &request, request.last); }
    void say_end() noexcept; // of the table, once
    void stop() noexcept;    // loop thread: nothing is said any more

  private:
    friend class ServedStores;
    void say(int32_t kind, ServedRequest *request, ServedWord &word) noexcept;
    void serve_words() noexcept; // loop thread
    void serve(const muster_completion &entry) override { serve(entry.kind, entry.request); }
    void serve(int32_t kind, uint64_t id);
    void call(int32_t kind, uint64_t id);

    Context &context_;
    const std::string name_;
    const Ref<Queue> queue_; // none: of a plug-in
    muster_store_host_ops ops_{};
    const bool with_ops_, on_loop_;
    void *const self_;
    const uint64_t tag_;
    Plugin *plugin_ = nullptr; // or none
    const pthread_t registrant_;
    bool withdrawn_ = false; // these two under the lock of ServedStores
    uint64_t under_way_ = 0; // requests that the host may still hear of
    PostedTask<ServedScheme, &ServedScheme::serve_words> serve_words_{*this};
    std::mutex lock_; // guards what follows; a leaf
    List<ServedWord> words_;
    ServedWord end_word_;
    bool stopped_ = false;
};

// The schemes and open requests of a context. Any thread, unless a member says otherwise.
class ServedStores final : public ContextPart, private QueueServer {
  public:
    static ServedStores &of(Context &context);
    explicit ServedStores(Context &context) : context_(context) {
        Plugins::of(context); // ends behind this one, which may serve a plug-in's stores
    }

    Result<void> add(Ref<ServedScheme> scheme);
    Result<void> withdraw(const std::string &scheme);
    void withdraw(ServedScheme &scheme) noexcept; // one that add() has taken, or not
    Ref<ServedScheme> find(const std::string &scheme);

    // Sends a request; ServedRequest::scheme() has nothing reserved for it yet.
    Result<void> send(ServedRequest &request);
    // Its answer is not wanted any more. False: it was answered.
    bool drop(uint64_t id) noexcept;
    // The same, of a request that changes something in a store elsewhere. `answers`: the host answers it all the same.
    Withdrawn cancel(uint64_t id, bool answers) noexcept;
    bool is_open(uint64_t id) noexcept; // not answered yet
    void close_store(ServedRequest &open) noexcept;

    // --- answers; `queue` NULL: from a plug-in ---
    Result<void> read(Queue *queue, uint64_t id, muster_store_request &out);
    Result<void> opened(Queue *queue, uint64_t id, const muster_store_traits &traits);
    Result<void> done(Queue *queue, uint64_t id, Status status, const muster_store_entry *entries, size_t count,
                      uint64_t revision);
    Result<void> fail(Queue *queue, uint64_t id, Status status, uint32_t op, std::string_view text);

  private:
    friend class ServedScheme;
    Ref<ServedRequest> heard(uint64_t id) noexcept;
    void table_gone(ServedScheme &scheme) noexcept;
    Result<Ref<ServedRequest>> look(Queue *queue, uint64_t id);
    bool take(ServedRequest &request) noexcept;
    void part_with(ServedRequest &request, int32_t last_word) noexcept; // 0: none
    void one_less(ServedScheme &scheme) noexcept;                       // under way; the last one ends it
    void queue_released(Queue &queue) noexcept override;
    void close() noexcept override;
    void stop() noexcept override;

    Context &context_;
    std::mutex lock_;                                 // guards the rest
    std::map<uint64_t, Ref<ServedRequest>> requests_; // unanswered, and those of open stores
    std::map<std::string, Ref<ServedScheme>> schemes_;
    std::map<ServedScheme *, Ref<ServedScheme>> looped_; // whose callbacks run on the loop, until the last of them
    uint64_t next_ = uint64_t{1} << 62;                  // away from the numbers of transports' requests
};

// Somebody waits for a store to be opened.
class ServedOpening final : public Object {
  public:
    void done(Context &context, const Result<muster_store_traits> &how) noexcept;
    Result<muster_store_traits> wait(Context &context, Deadline &deadline, uint64_t id);

  private:
    Signal signal_;
    std::mutex lock_; // guards the rest
    bool over_ = false;
    Result<muster_store_traits> how_{Error()};
};

// The leases of one store that are kept, by number. Any thread.
class ServedLeases final : public Object {
  public:
    void add(uint64_t number, Ref<class ServedLease> lease);
    Ref<ServedLease> find(uint64_t number);
    void remove(uint64_t number) noexcept; // with its timer
    void remove_all() noexcept;

  private:
    std::mutex lock_; // guards the rest
    std::map<uint64_t, Ref<ServedLease>> leases_;
};

// A lease until it has ended, as far as is known here, or nobody keeps it any more. The library keeps it, or looks
// whether a MANUAL one is kept.
class ServedLease final : public Object {
  public:
    ServedLease(Ref<ServedRequest> home, Ref<ServedLeases> all, uint64_t number, int64_t ttl_ns, bool manual) noexcept
        : home_(std::move(home)), all_(std::move(all)), number_(number), ttl_ns_(ttl_ns), manual_(manual) {}
    void begin() noexcept { arm_.post(context()); } // anew
    void leave() noexcept;
    bool left() const noexcept { return left_.load(std::memory_order_relaxed); }
    Status keep();
    void kept(Status status) noexcept; // the answer to one KEEP

  private:
    ~ServedLease() override = default;
    Context &context() const noexcept { return home_->scheme().context(); }
    void arm() noexcept; // loop thread
    void due() noexcept; // loop thread
    const Ref<ServedRequest> home_;
    const Ref<ServedLeases> all_;
    const uint64_t number_;
    const int64_t ttl_ns_;
    const bool manual_;
    std::atomic<bool> left_{false}, keeping_{false}; // relaxed: each says one thing by itself
    PostedTask<ServedLease, &ServedLease::arm> arm_{*this};
    Timer<ServedLease, &ServedLease::due> timer_{*this};
};

// One that was opened. Any thread.
class ServedStore final : public StoreBackend {
  public:
    ServedStore(const StoreOpening &opening, Ref<ServedRequest> home, const muster_store_traits &traits)
        : StoreBackend(opening.context, opening.config.grace_ns), shown_("store " + opening.shown),
          home_(std::move(home)), traits_(traits), leases_(make_ref<ServedLeases>()) {}
    uint32_t capabilities() const noexcept override { return traits_.capabilities; }
    bool answers_later() const noexcept override { return true; }
    bool withdraws_ahead(const StoreRequest &request) const noexcept override {
        return answers_cancel() && request.has_effect();
    }
    const char *shown() const noexcept override { return shown_.c_str(); }
    int64_t min_lease_ns() const noexcept override { return traits_.min_lease_ns; }
    bool would_deadlock() const noexcept override { return home_->scheme().would_deadlock(); }
    Result<void> allows(const StoreRequest &request) const override;
    bool submit(StoreOperation &operation) noexcept override;
    Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept override;
    bool forget(StoreOperation &operation) noexcept override;
    Status keep(uint64_t lease, int64_t ttl_ns) noexcept override;
    void abandon(uint64_t lease, int64_t ttl_ns) noexcept override;

  private:
    ~ServedStore() override;
    bool is_elsewhere() const noexcept { return (traits_.flags & MUSTER_STORE_IS_REMOTE) != 0; }
    bool answers_cancel() const noexcept {
        return is_elsewhere() && (traits_.flags & MUSTER_STORE_ANSWERS_CANCEL) != 0;
    }
    Ref<ServedRequest> request_for(StoreOperation &operation);
    const std::string shown_;
    const Ref<ServedRequest> home_;
    const muster_store_traits traits_;
    const Ref<ServedLeases> leases_;
};

// What a host says a DO has found, looked at and copied.
Result<Ref<StoreResult>> read_answer(const StoreRequest &request, Status status, const muster_store_entry *entries,
                                     size_t count, uint64_t revision);

} // namespace muster
