// SPDX-License-Identifier: MIT
#pragma once
// A context for tests of what is inside of one. Before it: <csetjmp>, <cstdarg> and cmocka.h.
#include "context/context.hpp"

inline muster::Ref<muster::Context> make_context(uint32_t flags = 0) {
    muster::ContextSettings settings;
    settings.flags = flags;
    settings.secret.assign(32, 7);
    auto made = muster::Context::create(settings);
    if (!made) fail_msg("%s", made.error().message);
    return std::move(*made);
}
