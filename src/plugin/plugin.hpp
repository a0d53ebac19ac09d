// SPDX-License-Identifier: MIT
#pragma once
// One plug-in in one context: its host table, its watches and timers, the schemes it has registered.
#include "context/loop_watch.hpp"
#include "plugin/call_watch.hpp"
#include "plugin/plugin_store.hpp"
#include "plugin/plugins.hpp"

#include <muster/plugin.h>

#include <set>

struct muster_watch;
struct muster_timer;

namespace muster {

class Plugin final {
  public:
    Plugin(Context &context, Plugins &plugins, std::string path);
    ~Plugin();
    Plugin(const Plugin &) = delete;
    Plugin &operator=(const Plugin &) = delete;

    // Calls muster_plugin_v1 and registers the schemes that it requests, or none. The thread that loads; once.
    Result<void> enter(muster_plugin_v1_fn entry);
    void hand_over(bool end_at_once) noexcept;
    void disown() noexcept; // it declined: known by no path, serves no scheme
    void stop() noexcept;   // loop thread: ends watches and timers
    bool brings_store(const std::string &scheme) const noexcept;

    const std::string &path() const noexcept { return path_; }
    const char *name() const noexcept { return name_.c_str(); } // the file name alone, for texts
    Context &context() const noexcept { return context_; }
    Plugins &plugins() const noexcept { return plugins_; }
    CallMark &mark() noexcept { return mark_; }

    static Plugin &of(const muster_host *host) noexcept { return *static_cast<Plugin *>(host->library); }

  private:
    Result<void> publish(size_t &added);

    friend struct HostFunctions; // the target of the table
    friend struct ::muster_watch;
    friend struct ::muster_timer;
    Context &context_;
    Plugins &plugins_;
    std::string path_;
    std::string name_;
    CallMark mark_{context_, name_.c_str()};
    muster_host table_{};
    bool entering_ = false; // the loading thread is inside muster_plugin_v1
    bool polls_ = false;    // one of its fabrics can be polled
    struct Scheme {
        std::string name;
        Ref<Transport> transport;
        SessionTransport *session_transport;
    };
    std::vector<Scheme> schemes_;
    std::vector<Ref<PluginStore>> stores_;
    std::set<muster_watch *> watches_; // loop thread only
    std::set<muster_timer *> timers_;  // loop thread only
};

// An error that a plug-in has reported, with its subject, and never with a successful status.
Error plugin_error(const Plugin &plugin, const Error &error, Status status, const char *what,
                   const std::string &address);

} // namespace muster
