// SPDX-License-Identifier: MIT
#pragma once
// The common part of the transports of plug-ins.
#include "plugin/plugin.hpp"
#include "plugin/timed.hpp"
#include "transport/transport.hpp"

#include <initializer_list>

namespace muster {

// A scheme that a plug-in serves; the plug-in is started at the first use. Loop thread only.
class PluginTransport : public Transport, public SessionTransport {
  protected:
    enum class State { idle, started, failed, stopped };

    PluginTransport(Plugin &plugin, std::string scheme, void *self)
        : plugin_(plugin), context_(plugin.context()), scheme_(std::move(scheme)), self_(self) {}

    // Does the table of the plug-in have these operations, and no unknown flags?
    static Result<void> check_table(const Plugin &plugin, const std::string &scheme,
                                    std::initializer_list<std::pair<bool, const char *>> needed, uint32_t flags,
                                    uint32_t known_flags) {
        for (const auto &[present, name] : needed)
            if (!present)
                return Error::make(MUSTER_E_PLUGIN, "%s: %s:// has no %s", plugin.name(), scheme.c_str(), name);
        if ((flags & ~known_flags) != 0)
            return Error::make(MUSTER_E_ABI, "%s: %s:// has unknown flags %#x", plugin.name(), scheme.c_str(), flags);
        return {};
    }

    // `start`: calls the operation of the plug-in.
    template <class Start>
    Result<void> start_once(const Start &start) {
        if (closing_ || state_ == State::stopped) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        if (state_ == State::failed) return start_error_;
        if (state_ == State::started) return {};
        Error error;
        if (const Status status = timed(plugin_, "start", [&] { return start(error); }); status != MUSTER_OK) {
            state_ = State::failed;
            return start_error_ = plugin_error(plugin_, error, status, "start", scheme_ + "://");
        }
        state_ = State::started;
        return {};
    }

    Object &transport_object() noexcept override { return *this; }

    Plugin &plugin_;
    Context &context_;
    const std::string scheme_;
    void *const self_;
    State state_ = State::idle;
    Error start_error_;
    bool closing_ = false;
};

} // namespace muster
