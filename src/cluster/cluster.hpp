// SPDX-License-Identifier: MIT
#pragma once
// What a master and a worker have in common: a thread of its own, events for the host, streams to other members.
#include "base/list.hpp"
#include "cluster/broadcast_bytes.hpp"
#include "cluster/broadcast_shelf.hpp"
#include "cluster/connections.hpp"
#include "cluster/control.hpp"
#include "cluster/greeting.hpp"
#include "context/running.hpp"
#include "queue/queue.hpp"
#include "transport/listener.hpp"

#include <muster/cluster.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace muster {

constexpr uint32_t most_cluster_workers = 65536;

class ClusterManager;

struct ReleaseListener {
    void operator()(muster_listener *listener) const noexcept {
        muster_listener_close(listener);
        muster_listener_release(listener);
    }
};
using ListenerHandle = std::unique_ptr<muster_listener, ReleaseListener>;

// A stream that the host wants to another member. Any thread; fields without a comment are the cluster thread's.
class ClusterDial final : public Object, private QueueUser {
  public:
    ClusterDial(Context &context, uint32_t member, std::string label, int64_t timeout_ns);
    Result<void> begin(Queue &queue, uint64_t tag); // before it is started: a completion is to come
    void give_up() noexcept;                        // it was not started: none
    Result<StreamHandle> wait();                    // of one without a queue
    void finish(StreamHandle stream) noexcept;      // this one and the next: the first counts
    void fail(const Error &why) noexcept;
    bool waited_for() const noexcept { return !queue_ && !own; }
    bool over() noexcept;

    const uint32_t member;
    const std::string label;
    const int64_t deadline_ns; // INT64_MAX: none

    std::function<void(StreamHandle, const Error &)> own; // for the cluster itself: told this, on its thread
    uint64_t number = 0, alarm = 0;
    std::string address;   // where it was tried
    Error tried;           // how that went
    bool can_call = false; // the other side can be asked to dial
    Ref<Object> place;     // among the connections of this process
    StreamHandle stream;   // it is there, and the other side has not said whether it takes it
    std::string word;      // what it says
    uint64_t watch = 0;

  private:
    void end(StreamHandle stream, const Error &why) noexcept;
    void end_operations() noexcept override { fail(Error::make(MUSTER_E_CLOSED, "the queue is closed")); }
    bool cancel_operation(uint64_t tag) noexcept override;
    Object &owner() noexcept override { return *this; }
    Context &context_;
    Ref<Queue> queue_; // set by begin(); a slot is reserved
    uint64_t tag_ = 0;
    Signal signal_;
    std::mutex lock_; // guards the rest
    bool over_ = false;
    StreamHandle stream_;
    Error why_;
};

// Any thread, unless a member says otherwise.
class Cluster : public Object, private Source, public Listed<Cluster> {
    friend class Broadcasts;
    friend class ClusterHandle;

  public:
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }
    // What the host holds, to name the cluster in requests: null once it is released. Never dereferenced here.
    class ClusterHandle *handle() const noexcept {
        return handle_.load(std::memory_order_acquire);
    }
    uint64_t tag() const noexcept { return events_tag_; }
    uint32_t self() const noexcept { return self_.load(std::memory_order_acquire); } // pairs with set_self()

    Status next_event(Deadline &deadline, muster_cluster_event &out) noexcept;
    void cancel() noexcept;
    Result<void> start_dial(Ref<ClusterDial> dial);
    Result<void> start_broadcast(Ref<class ClusterBroadcast> broadcast);
    void end_broadcast(Ref<class ClusterBroadcast> broadcast, const Error &why) noexcept; // soon
    virtual bool knows_all() const noexcept = 0; // its members can be named by naming none
    // Ends it; MUSTER_TIMEOUT: some had to be killed. `timeout_ns` negative: the usual time.
    Status close(int64_t timeout_ns) noexcept;
    Status await_end() noexcept; // the second half of close()
    void close_soon(int64_t timeout_ns) noexcept;
    void context_closes() noexcept { close_soon(-1); }
    void leave_queue() noexcept; // the host has let go of it: nothing is told there any more

    virtual Status member(uint32_t member, muster_member_info &out) noexcept = 0;

  protected:
    Cluster(Context &context, Ref<Queue> inbox, Ref<Queue> events, uint64_t events_tag);
    ~Cluster() override;
    Result<void> start_thread_of(bool events); // the thread holds a reference. `events`: open_events() first
    Status wait_for_self() noexcept;           // until self() is known; MUSTER_E_CLOSED: it is over
    void open_events() noexcept;

    // Runs on the cluster's thread; false: it is over. Any thread.
    bool post(std::function<void()> work);
    void tell(uint32_t kind, uint32_t member, const Error &why, std::string_view text);
    void tell_stream(uint32_t from, const std::string &label, StreamHandle stream);
    bool tell_broadcast(uint32_t from, const std::string &label, Ref<BroadcastBytes> bytes); // false: too many wait
    bool over() noexcept;
    void set_self(uint32_t member) noexcept;

    // ---- from here on: the cluster's thread ----
    virtual void begin() {}                              // its first act
    virtual void end_soon(int64_t timeout_ns) = 0;       // close() was called, or called again
    virtual bool ended() const noexcept = 0;             // nothing is left to do
    virtual void thread_ends() noexcept {}               // its last act
    virtual void abandon() noexcept = 0;                 // the context is over: nothing can be heard any more
    virtual void find(const Ref<ClusterDial> &dial) = 0; // calls found(), or fails the dial
    // The other side is to dial this one with the number of `dial`, if there is a way to tell it.
    virtual bool call(ClusterDial &dial) = 0;
    virtual void accepted(const ClusterGreeting &greeting, StreamHandle stream) = 0; // a control link
    // Of the listener, or none; and one that has come by one of them.
    virtual std::shared_ptr<OtherKeys> other_keys() { return {}; }
    virtual void hand_ticket(uint64_t key, uint32_t member, StreamHandle stream) {
        (void)key, (void)member, (void)stream;
    }
    virtual bool accepts() const noexcept { return true; } // else who dials has to wait until watch_listener()
    using FoundShelf = std::function<void(const Error &, const std::string &shelf)>;
    virtual void find_shelf(uint32_t member, FoundShelf then) = 0; // waits until the member has joined
    virtual bool say(uint32_t to, ControlMessage message) = 0;     // by the master, if it is not this one
    virtual std::vector<uint32_t> everybody() { return {}; }
    virtual bool members_hand_on() const noexcept { return true; } // may they have streams with each other?

    // What the running step works on. Where the step finds no memory, that ends with MUSTER_E_NOMEM, at once; a step
    // that names nothing is made again a moment later.
    struct Concern {
        Ref<ClusterDial> dial{};
        Ref<Object> broadcast{}; // of this member's
        uint64_t inflow = 0;     // of another's broadcast
        bool link = false;       // of a worker to its master, or of the master to this member
        uint32_t member = UINT32_MAX;
    };
    void concerns(Concern what) noexcept { concern_ = std::move(what); }
    void concerns(const Ref<ClusterDial> &dial) noexcept { concerns(Concern{dial, {}, 0, false, UINT32_MAX}); }
    void concerns_link(uint32_t member) noexcept { concerns(Concern{{}, {}, 0, true, member}); }
    virtual bool link_fails(const Concern &concern, const Error &why) = 0; // false: the step is to be made again
    template <class Step>
    bool try_step(const Step &step) noexcept { // false: it is to be made again
        concern_ = {};
        try {
            step();
        } catch (const std::bad_alloc &) {
            return give_up_step();
        } catch (const std::exception &failed) {
            context_->log(MUSTER_LOG_ERROR, "cluster: unexpected exception: %s", failed.what());
        }
        return true;
    }

    // What comes in the inbox with the number is given to `take`, until forget().
    using Taker = std::function<void(const muster_completion &, const Error &)>;
    uint64_t on(Taker take); // it lives until it returns, even if it forgets itself
    uint64_t next_number() noexcept { return ++numbers_; }
    void forget(uint64_t number) noexcept { takers_.erase(number); }
    // The end of this worker waits for the manager, which was asked to kill it; empty: not any more.
    void waits_for(uint32_t member, Ref<ClusterManager> manager) noexcept;
    uint64_t at(int64_t when_ns, std::function<void()> ring);
    void silence(uint64_t &alarm) noexcept; // and sets it to 0

    Error listen(const std::string &address, Listener::Opening opening = Listener::Opening::awaited);
    // `then` gets the result of a listen that was begun.
    void when_listening(std::function<void(const Error &)> then);
    void look_whether_listening(const std::function<void(const Error &)> &then);
    void watch_listener();
    void stop_listening() noexcept { listener_.reset(); }
    void expect_connections(uint32_t count) noexcept; // as many more than strangers may be there without a proof
    std::string listener_address() const;
    // Dials; `done` gets the stream, or why there is none.
    using Dialled = std::function<void(StreamHandle, const Error &)>;
    void dial(const std::string &address, const ClusterGreeting &greeting, int64_t timeout_ns, Dialled done);

    void found(const Ref<ClusterDial> &dial, std::string address, bool can_call);
    void call_failed(uint64_t number, uint32_t member, const Error &why);
    // Dials back to whoever has called; `failed` tells them when that is in vain.
    Ref<Object> take_place() { return bound_->take(links()); }
    bool has_place() const noexcept { return bound_->room(links()); }
    Error no_place() const noexcept;
    virtual size_t links() const noexcept = 0; // connections that are there for the control of the cluster, or will be
    void answer_call(uint32_t from, uint64_t number, const std::string &label, const std::string &address,
                     bool broadcast, std::function<void(const Error &)> failed);
    void fail_dials(const Error &why, uint32_t member = UINT32_MAX); // to all, or to one
    void finish_thread() noexcept;                                   // no streams come or go any more

    uint64_t id_ = 0; // of the cluster
    bool closing_ = false, had_to_kill_ = false;
    const Ref<Queue> inbox_;
    std::unique_ptr<class Broadcasts> broadcasts_;
    // Before the thread is there: connections, and bytes that may wait to be taken, 0: the usual number; and where it
    // takes memory of others of this host, unless `listen` wants none shared.
    void bound_connections(uint32_t most) { bound_ = make_ref<ConnectionBound>(most); }
    uint32_t most_links() const noexcept { return bound_->given() ? bound_->most() : UINT32_MAX; }
    void limit_broadcasts(uint64_t bytes) noexcept { broadcast_limit_ = bytes != 0 ? bytes : uint64_t{1} << 30; }
    void make_shelf(const std::string &listen);
    std::string shelf() const; // as it is told; empty: it has none

  private:
    struct Event {
        muster_cluster_event told;
        StreamHandle stream;
        Ref<BroadcastBytes> broadcast;
    };
    struct Waker final : Source { // of the inbox, for what is posted: needs no memory
        explicit Waker(Cluster &cluster) noexcept : cluster_(cluster) {}
        Object &owner() noexcept override { return cluster_; }

      private:
        Cluster &cluster_;
    };
    static void *body(void *self);
    void run() noexcept;
    void pump() noexcept;
    void take_entry(const muster_completion &entry, const muster_error &detail) noexcept;
    void ring_alarms() noexcept;
    void run_posted() noexcept;
    void wake() noexcept;
    void cancel_waited_for();
    bool give_up_step() noexcept;
    void accept_all();
    void take_stream(StreamHandle stream);
    void await_word(const Ref<ClusterDial> &dial, StreamHandle stream);
    void hear_word(const Ref<ClusterDial> &dial);
    bool say_whether_taken(muster_stream *stream); // a stream that was accepted
    void tried(const Ref<ClusterDial> &dial, StreamHandle stream, const Error &why);
    void end_dial(ClusterDial &dial) noexcept;
    bool push(Event event) noexcept;
    Result<void> check_it_is_in() const noexcept;
    void dial_now(const Ref<ClusterDial> &dial);
    uint64_t untaken_bytes() const noexcept { return untaken_bytes_.load(std::memory_order_relaxed); }
    Object &owner() noexcept override { return *this; }

    const Ref<Context> context_;
    const Ref<Queue> events_queue_; // of the host's; or none
    const uint64_t events_tag_;
    std::atomic<uint32_t> self_{UINT32_MAX};
    std::atomic<ClusterHandle *> handle_{nullptr}; // release/acquire: the host may compare what it points to
    std::atomic<uint64_t> untaken_bytes_{0};       // relaxed: of broadcasts that the host has been told of

    // The cluster's thread.
    Ref<Shelf> shelf_;
    Ref<ConnectionBound> bound_;
    uint64_t broadcast_limit_ = 0;
    ListenerHandle listener_;
    std::unordered_map<uint64_t, std::shared_ptr<const Taker>> takers_;
    std::multimap<int64_t, std::pair<uint64_t, std::function<void()>>> alarms_;
    std::unordered_map<uint64_t, std::multimap<int64_t, std::pair<uint64_t, std::function<void()>>>::iterator> alarm_;
    std::map<uint64_t, Ref<ClusterDial>> dials_;    // under way
    std::unordered_map<uint32_t, int> only_called_; // members whom to dial was in vain before
    uint64_t numbers_ = 0;
    uint32_t answering_ = 0; // calls to which it dials back
    bool deaf_ = false;      // the inbox gives nothing any more
    Concern concern_;
    std::list<std::function<void()>> working_; // was posted, and is not done
    bool cancels_now_ = false, ends_now_ = false;
    int64_t end_timeout_ns_ = 0;
    Waker waker_{*this};

    Signal signal_;   // of events, and of the end
    std::mutex lock_; // guards the rest
    std::list<std::function<void()>> posted_;
    std::list<Event> events_, spare_events_;  // spare: for when there is no memory
    uint64_t cancels_ = 0, cancels_seen_ = 0; // seen: by the cluster's thread
    bool end_wanted_ = false;
    int64_t wanted_timeout_ns_ = 0;
    bool refuses_ = false, over_ = false, killed_ = false; // refuses_: nothing can be posted any more
    std::map<uint32_t, Ref<ClusterManager>> waited_for_;   // by the ends of these workers
};

// What the host holds: the cluster goes on without it, but only to its end. Any thread.
class ClusterHandle final : public Object {
  public:
    // Made before its cluster, which runs from its beginning, and would run on without a handle.
    void hold(Ref<Cluster> cluster) noexcept {
        cluster_ = std::move(cluster);
        cluster_->handle_.store(this, std::memory_order_release);
    }
    Cluster &cluster() const noexcept { return *cluster_; }
    Context &context() const noexcept { return cluster_->context(); }

  private:
    ~ClusterHandle() override {
        if (!cluster_ || cluster_->forked()) return; // the parent's
        cluster_->handle_.store(nullptr, std::memory_order_release);
        cluster_->leave_queue();
        cluster_->close_soon(-1);
    }
    Ref<Cluster> cluster_;
};

inline ClusterHandle *unwrap(muster_cluster *handle) noexcept {
    return reinterpret_cast<ClusterHandle *>(handle);
}
inline muster_cluster *wrap(ClusterHandle *object) noexcept {
    return reinterpret_cast<muster_cluster *>(object);
}

// Says on a stream that it is not taken, in place of a zero: the length of the text (1), the status (4), the text.
std::string refusal_word(const Error &why);

// A number nobody can guess.
Result<uint64_t> random_number();

} // namespace muster
