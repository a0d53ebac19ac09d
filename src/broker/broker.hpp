// SPDX-License-Identifier: MIT
#pragma once
// A broker of a plug-in, run for the host. The context stops it before the plug-in is stopped.
#include "base/list.hpp"
#include "context/task.hpp"
#include "transport/transport.hpp"

#include <muster/broker.h>
#include <muster/plugin.h>

#include <mutex>

namespace muster {

// The running broker: held by the host's handle, and by the context until it is closed. Any thread.
class OpenBroker final : public Object, public Listed<OpenBroker> {
  public:
    explicit OpenBroker(Context &context, Ref<Transport> transport) noexcept
        : context_(context), transport_(std::move(transport)) {}
    Result<void> open(const Address &address, const muster_broker_config &config);
    const std::string &address() const noexcept { return address_; }
    void stats(muster_broker_stats &out) noexcept;
    void show_metrics() noexcept { context_.metrics.add(metrics_); } // until it is closed
    void close(int64_t timeout_ns) noexcept;                         // waits
    void close_soon() noexcept { close_.post(context_); }            // does not

  private:
    void write_metrics(MetricsWriter &writer);
    void close_here() noexcept { close(0); }

    Context &context_;
    const Ref<Transport> transport_; // keeps the table
    const muster_broker_ops *ops_ = nullptr;
    std::string address_; // written before another thread has the object
    PostedTask<OpenBroker, &OpenBroker::close_here> close_{*this};
    MetricsNode<OpenBroker, &OpenBroker::write_metrics> metrics_{*this};
    std::mutex lock_; // guards the rest
    void *broker_ = nullptr;
    muster_broker_stats last_{};
};

// The open brokers of a context. Any thread; stop() on the loop thread.
class Brokers final : public ContextPart {
  public:
    static Brokers &of(Context &context);
    bool add(OpenBroker &broker) noexcept; // false: the context has stopped
    void remove(OpenBroker &broker) noexcept;
    void stop() noexcept override;

  private:
    std::mutex lock_; // guards the rest
    bool stopped_ = false;
    List<OpenBroker> list_;
};

// The handle of the host. Any thread.
class Broker final : public Object {
  public:
    static Result<Ref<Broker>> open(Context &context, std::string_view address, const muster_broker_config &config);
    Broker(Context &context, Ref<OpenBroker> open) noexcept : context_(&context), open_(std::move(open)) {}
    Context &context() const noexcept { return *context_; }
    OpenBroker &running() const noexcept { return *open_; }

  private:
    void last_reference_gone() noexcept override;

    const Ref<Context> context_;
    const Ref<OpenBroker> open_;
};

inline Broker *unwrap(muster_broker *handle) noexcept {
    return reinterpret_cast<Broker *>(handle);
}
inline muster_broker *wrap(Broker *object) noexcept {
    return reinterpret_cast<muster_broker *>(object);
}

} // namespace muster
