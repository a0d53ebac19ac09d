// SPDX-License-Identifier: MIT
// inproc://name: both ends in one context. They have the same secret, so nothing is to be proved.
#include "transport/builtin.hpp"
#include "transport/listener.hpp"

#include <algorithm>

namespace muster {
namespace {

class InprocTransport;

class InprocListener final : public TransportListener {
  public:
    InprocListener(Ref<InprocTransport> transport, std::string name, Ref<ListenerCore> core, TransportOptions options)
        : name(std::move(name)), core(std::move(core)), options(std::move(options)), transport_(std::move(transport)) {}
    std::string address() override { return "inproc://" + name; }
    void close() noexcept override;

    const std::string name;
    const Ref<ListenerCore> core;
    const TransportOptions options;

  private:
    const Ref<InprocTransport> transport_;
};

class InprocTransport final : public Transport {
  public:
    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override {
        if (auto ok = check_options(address, {"auth"}); !ok) return dial->done(ok.error());
        Ref<InprocListener> listener;
        {
            const std::lock_guard hold(lock_);
            const auto found = listeners_.find(address.path);
            if (found != listeners_.end()) listener = found->second;
        }
        if (!listener)
            return dial->done(Error::make(MUSTER_E_UNREACHABLE, "dial %s: no listener there", address.text.c_str()));
        // The place comes last: only offer() releases it.
        auto duplex = Duplex::make_private(std::min(options.window_bytes, listener->options.window_bytes));
        auto near = Stream::make(dial->context(), duplex, 0, {}, address.text, listener->options.hello);
        auto far = Stream::make(dial->context(), duplex, 1, {}, listener->address(), options.hello);
        if (!listener->core->reserve())
            return dial->done(Error::make(MUSTER_E_LIMIT, "dial %s: the listener takes no more", address.text.c_str()));
        dial->context().counters.handshakes_ok.fetch_add(1, std::memory_order_relaxed);
        listener->core->offer(std::move(far));
        dial->done(std::move(near));
    }

    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override {
        if (auto ok = check_options(address, {"auth"}); !ok) return ok.error();
        if (core->context().closed())
            return Error::make(MUSTER_E_CLOSED, "listen at %s: the context is closed", address.text.c_str());
        auto listener = make_ref<InprocListener>(Ref<InprocTransport>(this), address.path, std::move(core), options);
        const std::lock_guard hold(lock_);
        if (!listeners_.emplace(address.path, listener).second)
            return Error::make(MUSTER_E_EXISTS, "listen at %s: the name is taken", address.text.c_str());
        return Ref<TransportListener>(std::move(listener));
    }

    void forget(InprocListener &listener) noexcept {
        Ref<InprocListener> gone; // released without the lock
        const std::lock_guard hold(lock_);
        const auto found = listeners_.find(listener.name);
        if (found == listeners_.end() || found->second.get() != &listener) return;
        gone = std::move(found->second);
        listeners_.erase(found);
    }

  private:
    std::mutex lock_; // guards listeners_
    std::map<std::string, Ref<InprocListener>> listeners_;
};

void InprocListener::close() noexcept {
    transport_->forget(*this);
}

} // namespace

Ref<Transport> make_inproc_transport() {
    return make_ref<InprocTransport>();
}

} // namespace muster
