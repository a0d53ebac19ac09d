// SPDX-License-Identifier: MIT
#pragma once
// The plug-ins of one context: finding and loading their files, and the end of everything they carry.
#include "context/context.hpp"
#include "plugin/pool.hpp"
#include "transport/transport.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace muster {

class Plugin;

// A transport whose streams run in sessions: of a plug-in, or served by the host. What it does at the end of a context.
// Loop thread only.
class SessionTransport {
  public:
    virtual void context_closes() noexcept = 0; // no new work; sessions leave as their streams end
    virtual bool context_drained() noexcept = 0;
    virtual void context_stops() noexcept = 0; // end everything now

  protected:
    ~SessionTransport() = default;
};

// Any thread, unless a member says otherwise.
class Plugins final : public ContextPart {
  public:
    static Plugins &of(Context &context);
    explicit Plugins(Context &context);
    ~Plugins() override;

    // Loads a file and registers its schemes; nothing if this context has it already.
    Result<void> load(const std::string &path);
    // Finds, loads and starts the plug-in for a scheme that the registry does not know.
    Result<void> provide(const std::string &scheme);

    // Loop thread only. A transport is known from its first use on.
    SegmentPool pool;
    void add(Ref<Object> owner, SessionTransport &transport);

    void close() noexcept override;
    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    Result<void> load_locked(const std::string &path);

    Context &context_;
    std::mutex lock_; // one load at a time; guards plugins_
    std::vector<std::unique_ptr<Plugin>> plugins_;
    std::vector<std::pair<Ref<Object>, SessionTransport *>> transports_; // loop thread only
    bool stopped_ = false;                                               // loop thread only
};

} // namespace muster
