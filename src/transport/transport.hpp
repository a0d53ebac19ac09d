// SPDX-License-Identifier: MIT
#pragma once
// What a transport is inside: something that turns an address into streams. Built-ins, loaded plug-ins and transports
// served by the host all stand behind this one interface; the registry of a context maps schemes to them.
#include "stream/stream.hpp"
#include "transport/address.hpp"

#include <muster/transport.h>

#include <functional>
#include <memory>

namespace muster {

struct TransportOptions {
    std::string greeting;
    uint64_t window_bytes = 0; // resolved: never 0
    uint32_t backlog = 1024;
    int64_t retry_ns = 0;
};

// A dial under way. The transport calls done() exactly once, on any thread, unless cancel() came first and returned
// true. Held by whoever waits and by the transport.
class Dial : public Object {
  public:
    virtual void done(Result<Ref<Stream>> result) noexcept = 0;
    // Set by the transport if it can stop early (timeout, context closing). Called at most once, on any thread.
    std::function<void()> on_cancel;
};

// What accept() takes from. The transport calls offer() for each connection that has proved itself.
class ListenerCore; // transport/listener.hpp

// The half of a listener a transport implements.
class TransportListener : public Object {
  public:
    virtual std::string address() = 0; // what peers dial: real port, advertised host
    virtual void close() noexcept = 0; // lets go of the socket before it returns (any thread but not the loop)
};

class Transport : public Object {
  public:
    // Begins to connect; must not block. May call dial->done() before it returns.
    virtual void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) = 0;
    virtual Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                                  Ref<ListenerCore> core) = 0;
    // Threads that serve it: a blocking call on this queue's last reader would deadlock; NULL for built-ins.
    virtual Queue *served_by() noexcept { return nullptr; }
};

// Schemes of one context. Any thread.
class Registry final : public ContextPart {
  public:
    static Registry &of(Context &context);
    // E_EXISTS if taken; built-in schemes are taken from the start.
    Result<void> add(const std::string &scheme, Ref<Transport> transport);
    // Looks the scheme up; if unknown, asks the plug-in loader (src/plugin) to find and start one.
    Result<Ref<Transport>> find(const std::string &scheme);
};

} // namespace muster
