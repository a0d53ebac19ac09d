// SPDX-License-Identifier: MIT
#pragma once
// Connections between the moment they have proved themselves and the moment the host takes them.
#include "transport/transport.hpp"

#include <deque>
#include <memory>
#include <mutex>

namespace muster {

// What a transport puts connections into and accept() takes them from. Any thread.
class ListenerCore final : public Object, private Source {
  public:
    ListenerCore(Context &context, uint32_t backlog) : context_(&context), backlog_(backlog) {}

    Context &context() const noexcept { return *context_; }
    // A place in the backlog, before both sides have agreed; then exactly one of offer() and unreserve().
    bool reserve() noexcept;
    void unreserve() noexcept;
    void offer(Ref<Stream> stream) noexcept; // into a place reserved; dropped when the listener was closed meanwhile
    // The transport can listen no more; waiting and later accepts fail with this.
    void fail(const Error &why) noexcept;

    Status accept(Deadline &deadline, Ref<Stream> &out, Error &why) noexcept;
    Status watch(Queue *queue, uint64_t tag);
    void cancel() noexcept;
    void close() noexcept; // waiters come out, connections nobody took are dropped
    bool closed() noexcept;

  private:
    ~ListenerCore() override;
    Object &owner() noexcept override { return *this; }
    void changed(std::unique_lock<std::mutex> &hold) noexcept;

    const Ref<Context> context_;
    const uint32_t backlog_;
    Signal signal_;
    std::mutex lock_; // guards the rest
    std::deque<Ref<Stream>> waiting_;
    uint32_t reserved_ = 0;
    uint32_t cancels_ = 0;
    Error failed_;
    bool closed_ = false, armed_ = false;
    Ref<Queue> queue_;
};

// The handle of the host. Any thread.
class Listener final : public Object {
  public:
    Listener(Ref<ListenerCore> core, Ref<Transport> transport, Ref<TransportListener> listener)
        : core_(std::move(core)), transport_(std::move(transport)), listener_(std::move(listener)) {}

    static Result<Ref<Listener>> open(Context &context, std::string_view address, const TransportOptions &options);
    Context &context() const noexcept { return core_->context(); }
    Status accept(Deadline &deadline, Ref<Stream> &out, Error &why);
    Status watch(Queue *queue, uint64_t tag) { return core_->watch(queue, tag); }
    std::string address() { return listener_->address(); }
    void cancel() noexcept { core_->cancel(); }
    void close() noexcept;

  private:
    void last_reference_gone() noexcept override;
    void leave() noexcept; // the list of what ends with the context

    const Ref<ListenerCore> core_;
    const Ref<Transport> transport_;
    const Ref<TransportListener> listener_;
    const std::shared_ptr<uint64_t> closing_id_ = std::make_shared<uint64_t>(0); // loop thread
};

inline Listener *unwrap(muster_listener *handle) noexcept {
    return reinterpret_cast<Listener *>(handle);
}
inline muster_listener *wrap(Listener *object) noexcept {
    return reinterpret_cast<muster_listener *>(object);
}

} // namespace muster
