// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "plugin/plugins.hpp"
#include "plugin/session_address.hpp"

#include <muster/plugin.h>

#include <cstring>

using namespace muster;

extern "C" muster_status muster_plugin_load(muster_context *context, const char *path, size_t path_bytes,
                                            muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "load a plug-in: no context");
        if (path == nullptr || path_bytes == 0 || path_bytes > 4095 || memchr(path, '\0', path_bytes) != nullptr)
            return Error::make(MUSTER_E_ARG, "load a plug-in: no path, or one above 4095 bytes");
        Context &owner = *unwrap(context);
        if (owner.forked()) return Error::from_status(MUSTER_E_FORKED);
        return Plugins::of(owner).load(std::string(path, path_bytes));
    });
}

extern "C" muster_status muster_plugin_find(muster_context *context, const char *scheme, size_t scheme_bytes,
                                            muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "find a plug-in: no context");
        if (scheme == nullptr || !valid_scheme({scheme, scheme_bytes}))
            return Error::make(MUSTER_E_ARG, "find a plug-in: a scheme is 1 to 31 of a-z 0-9 + . -, a letter first");
        Context &owner = *unwrap(context);
        if (owner.forked()) return Error::from_status(MUSTER_E_FORKED);
        if (owner.closed()) return Error::make(MUSTER_E_CLOSED, "find a plug-in: the context is closed");
        const std::string name(scheme, scheme_bytes);
        const auto found = Registry::of(owner).find(name);
        return found || Plugins::of(owner).brings_store(name) ? Result<void>{} : found.error();
    });
}
