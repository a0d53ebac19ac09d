// SPDX-License-Identifier: MIT
#pragma once
// Connections between their authentication and the moment at which the host accepts them.
#include "transport/hub.hpp"
#include "transport/transport.hpp"

#include <atomic>
#include <list>
#include <mutex>

namespace muster {

// Transports add connections here and accept() removes them. Any thread.
class ListenerCore final : public Object, private Source {
  public:
    ListenerCore(Context &context, uint32_t backlog) : context_(&context), backlog_(backlog) {}

    Context &context() const noexcept { return *context_; }
    // Reserves a place in the backlog, before both sides have agreed; then exactly one of offer() and unreserve()
    // follows. False: there is none. Throws bad_alloc; the rest needs no memory.
    bool reserve();
    void unreserve() noexcept;
    void offer(Ref<Stream> stream) noexcept; // into a place reserved; dropped when the listener was closed meanwhile
    // So many connections are expected: the maximum of connections without a proof grows by that number.
    void expect(uint32_t count) noexcept { expected_.store(count, std::memory_order_relaxed); } // a limit, no more
    uint32_t max_unauthenticated() const noexcept {
        return context_->settings.max_unauthenticated + expected_.load(std::memory_order_relaxed);
    }
    // The transport can listen no more; waiting and later accepts fail with this.
    void fail(const Error &why) noexcept;
    // A transport that the host serves: its answer is awaited. opened() or fail() follows.
    void set_opening() noexcept;
    void opened() noexcept;
    // OK: it listens. AGAIN: it does not yet, and the timeout is 0; a watch is armed.
    Status await_opened(Deadline &deadline, Error &why) noexcept;

    Status accept(Deadline &deadline, Ref<Stream> &out, Error &why) noexcept;
    Status watch(Queue *queue, uint64_t tag);
    void cancel() noexcept;
    void close() noexcept; // waiters return, connections that were not accepted are dropped
    bool closed() noexcept;

  private:
    ~ListenerCore() override;
    Object &owner() noexcept override { return *this; }
    void changed(std::unique_lock<std::mutex> &hold) noexcept;

    const Ref<Context> context_;
    const uint32_t backlog_;
    std::atomic<uint32_t> expected_{0};
    Signal signal_;
    std::mutex lock_;                           // guards the rest
    std::list<Ref<Stream>> waiting_, reserved_; // the latter empty places
    uint32_t cancels_ = 0;
    Error failed_;
    bool closed_ = false, armed_ = false, opening_ = false;
    Ref<Queue> queue_;
};

// The listener itself: held by the host's handle, and by the hub until it is closed.
class OpenListener final : public Object {
  public:
    OpenListener(Context &context, const TransportOptions &options)
        : hub(Hub::of(context)), core(make_ref<ListenerCore>(context, options.backlog)) {}

    Hub &hub;
    const Ref<ListenerCore> core;
    Ref<Transport> transport; // these two are written before another thread has the object
    Ref<TransportListener> listener;
    std::string options; // that dialers have to give, too: auth=none&seal=no

    bool enter() noexcept { return enter_.post(hub.context()); } // false: the engine has stopped
    void close() noexcept;                                       // any thread, may wait
    void close_soon() noexcept;                                  // any thread, does not wait

  private:
    void end() noexcept {
        core->close();
        listener->close();
    }
    void enter_here() noexcept { hub.context().on_closing(closing_); } // these three: loop thread
    void leave_here() noexcept { hub.context().forget_closing(closing_); }
    void close_here() noexcept {
        end();
        leave_here();
    }
    PostedTask<OpenListener, &OpenListener::enter_here> enter_{*this};
    PostedTask<OpenListener, &OpenListener::leave_here> leave_{*this};
    PostedTask<OpenListener, &OpenListener::close_here> close_{*this};
    Closing<OpenListener, &OpenListener::end> closing_{*this};
};

// The handle of the host. Any thread.
class Listener final : public Object {
  public:
    explicit Listener(Ref<OpenListener> open) noexcept : open_(std::move(open)) {}

    // Opening::begun returns before a host that serves the transport has answered; await_opened() returns the result.
    enum class Opening { awaited, begun };
    static Result<Ref<Listener>> open(Context &context, std::string_view address, const TransportOptions &options,
                                      Opening opening = Opening::awaited);
    Status await_opened(Deadline &deadline, Error &why) noexcept { return open_->core->await_opened(deadline, why); }
    Context &context() const noexcept { return open_->core->context(); }
    Status accept(Deadline &deadline, Ref<Stream> &out, Error &why) noexcept;
    Status watch(Queue *queue, uint64_t tag) { return open_->core->watch(queue, tag); }
    std::string address(); // the address that peers dial, with the options of the library
    void expect(uint32_t count) noexcept { open_->core->expect(count); }
    void cancel() noexcept { open_->core->cancel(); }
    void close() noexcept { open_->close(); }

  private:
    void last_reference_gone() noexcept override;

    const Ref<OpenListener> open_;
};

inline Listener *unwrap(muster_listener *handle) noexcept {
    return reinterpret_cast<Listener *>(handle);
}
inline muster_listener *wrap(Listener *object) noexcept {
    return reinterpret_cast<muster_listener *>(object);
}

} // namespace muster
