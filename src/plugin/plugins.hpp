// SPDX-License-Identifier: MIT
#pragma once
// The plug-ins of one context: finding and loading their files, and the end of everything they carry.
#include "base/list.hpp"
#include "context/task.hpp"
#include "plugin/pool.hpp"
#include "queue/served.hpp"
#include "transport/transport.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace muster {

class Plugin;

// A transport whose streams run in sessions: of a plug-in, or served by the host. Its actions at the end of a context.
// Loop thread only, unless a member says otherwise.
class SessionTransport : public Listed<SessionTransport> {
  public:
    virtual void context_closes() noexcept = 0; // no new work; sessions leave as their streams end
    virtual bool context_drained() noexcept = 0;
    virtual void context_stops() noexcept = 0; // end everything now
    virtual Object &transport_object() noexcept = 0;

    // Any thread: from now on the context ends it with itself, or at once. Plugins::of(context) was made before.
    void enter(Context &context, bool end_at_once) noexcept;
    // Loop thread: nothing is left that the context would have to end.
    void leave() noexcept;

  protected:
    SessionTransport() noexcept = default;
    ~SessionTransport() = default;

  private:
    class Entering final : public PostedTaskNode {
      public:
        explicit Entering(SessionTransport &transport) noexcept : transport_(transport) {}

      private:
        bool keep() noexcept override { return transport_.transport_object().try_retain(); }
        void let_go() noexcept override { transport_.transport_object().release(); }
        void call() noexcept override { transport_.enter_here(); }
        SessionTransport &transport_;
    };
    void enter_here() noexcept;
    Entering entering_{*this};
    Context *context_ = nullptr; // these two are written before it is posted
    bool end_at_once_ = false;
};

// Any thread, unless a member says otherwise.
class Plugins final : public ContextPart {
  public:
    static Plugins &of(Context &context);
    explicit Plugins(Context &context);
    ~Plugins() override;

    // Loads a file and registers its schemes; nothing if this context has it already.
    Result<void> load(const std::string &path);
    // Finds, loads and starts the plug-in for a scheme that is not registered yet; `what`, for texts: a transport, a
    // store.
    Result<void> provide(const std::string &scheme, const char *what = "transport");
    bool brings_store(const std::string &scheme) noexcept;

    Signal called; // raised for threads in call_on_loop()

    const Ref<SegmentPool> pool = make_ref<SegmentPool>(); // lent segments may outlive the context

    // Loop thread only. A transport is known from its first use on.
    void add(SessionTransport &transport) noexcept;
    void remove(SessionTransport &transport) noexcept;

    void close() noexcept override;
    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    Result<void> load_locked(const std::string &path);

    Context &context_;
    ServedRequests &served_;
    std::mutex lock_; // one load at a time; guards plugins_
    std::vector<std::unique_ptr<Plugin>> plugins_;
    List<SessionTransport> transports_; // each with a reference; loop thread only
    bool stopped_ = false;              // loop thread only
};

} // namespace muster
