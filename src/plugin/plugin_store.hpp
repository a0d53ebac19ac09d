// SPDX-License-Identifier: MIT
#pragma once
// Schemes of stores that a plug-in brings. What becomes of them is the matter of the store room, some floors up, which
// defines these functions.
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
    virtual Result<void> publish() = 0;    // URLs of the scheme can be opened
    virtual void take_back() noexcept = 0; // published or not: its table is destroyed, on the loop
};

// Looks at the table.
Result<Ref<PluginStore>> make_plugin_store(Plugin &plugin, std::string scheme, const muster_store_host_ops *ops,
                                           void *self);
// The functions that answer.
void fill_store_functions(muster_host &table) noexcept;

} // namespace muster
