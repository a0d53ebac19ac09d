// SPDX-License-Identifier: MIT
#pragma once
// A transport makes streams from an address. Built-ins, loaded plug-ins and transports that the host serves implement
// this interface; the registry of a context maps schemes to them.
#include "base/fd.hpp"
#include "stream/stream.hpp"
#include "transport/address.hpp"
#include "transport/handshake.hpp"

#include <muster/transport.h>

#include <map>
#include <memory>
#include <mutex>

struct muster_broker_ops; // <muster/plugin.h>

namespace muster {

// A connected socket whose other end is authenticated.
struct ProvedSocket {
    Fd fd;
    Agreement agreed;
    std::string peer; // for people
};

// Takes authenticated sockets, for a protocol of its own instead of that of streams. Loop thread.
class SocketTaker {
  public:
    virtual bool admit() noexcept { return true; } // listener: there is a place for one more
    virtual void take(ProvedSocket socket) noexcept = 0;
    virtual Object &socket_taker() noexcept = 0; // kept alive by the listener or dial

  protected:
    ~SocketTaker() = default;
};

struct TransportOptions {
    std::string hello;
    uint64_t window_bytes = 0; // resolved: never 0
    uint32_t backlog = 1024;
    int64_t retry_ns = 0;
    int64_t listen_timeout_ns = 60'000'000'000;
    std::shared_ptr<OtherKeys> other_keys; // listeners of tcp and unix: or none
    SocketTaker *taker = nullptr;          // tcp and unix: gets the sockets, and no stream is made
};

class ListenerCore; // transport/listener.hpp: receives the authenticated connections

// The state of a transport for one dial, until it calls Dial::done().
class Attempt : public Object {
  public:
    // The dial is not needed any more (timeout, context closing); done() need not be called then. Any thread, once.
    virtual void stop() noexcept = 0;
};

// A dial in progress; made by dial.hpp. Held by the waiting thread and by the transport. Any thread.
class Dial : public Object {
  public:
    // The transport reports the result, once per Transport::dial(). A stream that no thread waits for any more is
    // dropped.
    virtual void done(Result<Ref<Stream>> result) noexcept = 0;
    // In place of it: the listener is flooded and has refused this dial for now.
    virtual void busy(const Error &why) noexcept { done(why); }
    // The object to stop when the dial is given up. False: it was given up already.
    virtual bool stop_by(Ref<Attempt> attempt) noexcept = 0;
    virtual Context &context() noexcept = 0;
};

// The half of a listener a transport implements.
class TransportListener : public Object {
  public:
    virtual std::string address() = 0; // the address that peers dial: actual port, advertised host
    virtual void close() noexcept = 0; // releases the socket before it returns; any thread, more than once
};

class Transport : public Object {
  public:
    // Begins to connect; must not block. Loop thread. May call dial->done() before it returns. An exception becomes the
    // result of the dial.
    virtual void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) = 0;
    // The calling thread of muster_transport_listen(). Connections are passed to core->offer().
    virtual Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                                  Ref<ListenerCore> core) = 0;
    // The transport's broker, if it has one, and the argument of its functions.
    virtual const muster_broker_ops *broker(void *&self) noexcept {
        self = nullptr;
        return nullptr;
    }
    // Must the calling thread itself serve this transport? Then it must not wait for it.
    virtual bool would_deadlock() noexcept { return false; }
};

// Schemes of one context. Any thread.
class Registry final : public ContextPart {
  public:
    static Registry &of(Context &context);
    // E_EXISTS if the scheme is in use; built-in schemes are in use from the start.
    Result<void> add(const std::string &scheme, Ref<Transport> transport);
    // Removes a scheme; its streams continue. False: not known.
    bool remove(const std::string &scheme);
    // Looks the scheme up; if it is unknown, the provider may add it.
    Result<Ref<Transport>> find(const std::string &scheme);
    // Adds a transport for a scheme that is unknown in a context: the plug-in loader, which is above this module and
    // sets itself when the library is loaded.
    using Provider = Result<void> (*)(Context &context, const std::string &scheme);
    static bool set_provider(Provider provider) noexcept;
    Ref<Transport> known(const std::string &scheme); // without the loader; empty if there is none

    explicit Registry(Context &context);

  private:
    Context &context_;
    std::mutex lock_; // guards transports_; not held while a plug-in is loaded
    std::map<std::string, Ref<Transport>> transports_;
};

} // namespace muster
