// SPDX-License-Identifier: MIT
#pragma once
// What scenarios are written with. A scenario uses a part of the API in working order; it runs once for each site, with
// that site's call failing, and every call of the API checks what came out of it.
#include "injector.hpp"

#include <muster/broker.h>
#include <muster/muster.h>
#include <muster/plugin.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace faults {

constexpr int64_t ms = 1'000'000, second = 1'000'000'000;
constexpr int64_t patience = 8 * second; // what takes longer has been lost

// A scenario, and the header that it belongs to. Scenarios register themselves.
struct Scenario {
    const char *header, *name;
    void (*run)();
};
const std::vector<Scenario> &scenarios();
struct Registered {
    Registered(const char *header, const char *name, void (*run)());
};
#define SCENARIO(header, name)                                                                                         \
    static void scenario_##header##_##name();                                                                          \
    static const Registered registered_##header##_##name(#header, #name, scenario_##header##_##name);                  \
    static void scenario_##header##_##name()

// Ends the run: the library has done something wrong.
[[noreturn]] void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Ends the run in order: the fault has ended what the scenario works on, and a status has reported it.
struct Ended {};
[[noreturn]] void ended();

// Detail of the last call; every call that takes a muster_error is given this one.
extern thread_local muster_error error;

// The outcome of a call: checked against the documentation of the function.
uint32_t function_index(const char *name);
void begin_call(uint32_t function);
muster_status end_call(uint32_t function, muster_status status);
void end_plain_call();
// After a failure: only the injected fault may be its reason. Where that has ended for good what the scenario works on,
// as the headers say of it, the scenario ends.
void expect_fault(const char *function, muster_status status);
class Mortal {
  public:
    explicit Mortal(std::function<bool()> is_over);
    Mortal(const Mortal &) = delete;
    Mortal &operator=(const Mortal &) = delete;
    ~Mortal();
};

// A handle: NULL after a failed call, given back at the end.
void note_handle(void **handle);
template <class T, void (*give_back)(T *)>
class Handle {
  public:
    Handle() = default;
    explicit Handle(void *object) : object_(static_cast<T *>(object)) {}
    Handle(Handle &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() { reset(); }
    void reset() {
        if (object_ != nullptr) give_back(std::exchange(object_, nullptr));
    }
    T **out() {
        reset();
        note_handle(reinterpret_cast<void **>(&object_));
        return &object_;
    }
    void leave() { object_ = nullptr; }      // it belongs to something else now
    operator T *() const { return object_; } // NOLINT: as the C API takes it

  private:
    T *object_ = nullptr;
};

// CALL(f, arguments...) gives the status, DO(f, arguments...) the value of a function that cannot fail.
#define CALL(f, ...)                                                                                                   \
    [&]() -> muster_status {                                                                                           \
        static const uint32_t index_ = ::faults::function_index(#f);                                                   \
        ::faults::begin_call(index_);                                                                                  \
        return ::faults::end_call(index_, f(__VA_ARGS__));                                                             \
    }()
#define DO(f, ...)                                                                                                     \
    [&] {                                                                                                              \
        static const uint32_t index_ = ::faults::function_index(#f);                                                   \
        struct End {                                                                                                   \
            ~End() { ::faults::end_plain_call(); }                                                                     \
        } end_;                                                                                                        \
        ::faults::begin_call(index_);                                                                                  \
        return f(__VA_ARGS__);                                                                                         \
    }()
// The call succeeds; or it fails because of the fault, and succeeds when it is made again.
#define OK(f, ...)                                                                                                     \
    do {                                                                                                               \
        if (const muster_status first_ = CALL(f, __VA_ARGS__)) {                                                       \
            ::faults::expect_fault(#f, first_);                                                                        \
            if (const muster_status again_ = CALL(f, __VA_ARGS__))                                                     \
                ::faults::wrong("%s gave %s; called again without a fault, it gives %s: %s", #f,                       \
                                muster_status_name(first_), muster_status_name(again_), ::faults::error.message);      \
        }                                                                                                              \
    } while (0)
// The call succeeds; or it fails because of the fault, and that ends what the scenario works on.
#define OR_END(f, ...)                                                                                                 \
    do {                                                                                                               \
        if (const muster_status first_ = CALL(f, __VA_ARGS__)) {                                                       \
            ::faults::expect_fault(#f, first_);                                                                        \
            ::faults::ended();                                                                                         \
        }                                                                                                              \
    } while (0)
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) ::faults::wrong("%s:%d: %s is false", __FILE__, __LINE__, #condition);                       \
    } while (0)

// Checks a status that came by a completion or an event against what `function` documents.
void check_status(const char *function, muster_status status, const char *where);
// Takes the next entry of this kind, skipping READY and LOG; its status is checked against the list of `function`, the
// form of the operation that waits.
muster_completion take(muster_queue *queue, int32_t kind, uint64_t tag, const char *function);
// The same; ends the scenario when the operation has failed because of the fault.
muster_completion take_ok(muster_queue *queue, int32_t kind, uint64_t tag, const char *function);

#define HANDLE(Name, type, f)                                                                                          \
    inline void give_back_##type(type *object) {                                                                       \
        DO(f, object);                                                                                                 \
    }                                                                                                                  \
    using Name = Handle<type, give_back_##type>;
HANDLE(Queue, muster_queue, muster_queue_release)
HANDLE(Process, muster_process, muster_process_release)
HANDLE(Stream, muster_stream, muster_stream_release)
HANDLE(Listener, muster_listener, muster_listener_release)
HANDLE(Broker, muster_broker, muster_broker_release)
HANDLE(Store, muster_store, muster_store_release)
HANDLE(Lease, muster_lease, muster_lease_release)
HANDLE(StoreResult, muster_store_result, muster_store_result_release)
HANDLE(StoreServer, muster_store_server, muster_store_server_release)
HANDLE(Rendezvous, muster_rendezvous, muster_rendezvous_release)
HANDLE(Round, muster_round, muster_round_release)
HANDLE(Agent, muster_agent, muster_agent_release)
HANDLE(Cluster, muster_cluster, muster_cluster_release)
HANDLE(Broadcast, muster_broadcast, muster_broadcast_release)

// A context is closed before it is released, so that nothing of it goes on afterwards.
inline void give_back_context(muster_context *context) {
    const muster_status status = CALL(muster_context_close, context, patience);
    if (status == MUSTER_TIMEOUT && !has_fired()) wrong("muster_context_close had to abort streams");
    DO(muster_context_release, context);
}
using Context = Handle<muster_context, give_back_context>;

// Raised by a thread of the library.
class Event {
  public:
    void raise() {
        const std::lock_guard hold(lock_);
        is_raised_ = true;
        raised_.notify_all();
    }
    void await(const char *otherwise) {
        std::unique_lock hold(lock_);
        if (!raised_.wait_for(hold, std::chrono::nanoseconds(patience), [this] { return is_raised_; }))
            wrong("%s", otherwise);
    }

  private:
    std::mutex lock_; // guards the rest
    std::condition_variable raised_;
    bool is_raised_ = false;
};

// No call of this thread fails meanwhile: for what other scenarios test.
class Paused {
  public:
    Paused() { pause(true); }
    Paused(const Paused &) = delete;
    Paused &operator=(const Paused &) = delete;
    ~Paused() { pause(false); }
};

// Most scenarios begin with these.
constexpr char secret[] = "a secret of the fault tests";
muster_context_config context_config();
void create(Context &context, uint32_t flags = 0);

} // namespace faults
