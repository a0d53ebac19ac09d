// SPDX-License-Identifier: MIT
#pragma once
// Schemes of stores that a plug-in provides. The store module, which is above this one, implements them and sets itself
// here when the library is loaded.
#include "base/object.hpp"
#include "base/result.hpp"

#include <muster/plugin.h>

#include <string>

namespace muster {

class Plugin;

// Any thread.
class PluginStore : public Object {
  public:
    virtual const std::string &scheme() const noexcept = 0;
    virtual Result<void> publish() = 0;   // URLs of the scheme can be opened
    virtual void withdraw() noexcept = 0; // published or not: its table is destroyed, on the loop
};

struct PluginStores {
    // Checks the table.
    Result<Ref<PluginStore>> (*make)(Plugin &plugin, const std::string &scheme, const muster_store_host_ops *ops,
                                     void *self);
    void (*fill_functions)(muster_host &table) noexcept; // by which the plug-in answers

    static bool set(const PluginStores &stores) noexcept;
};

} // namespace muster
