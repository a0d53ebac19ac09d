// SPDX-License-Identifier: MIT
#pragma once
// The parts of an address that the library itself uses for a transport with sessions; the rest belongs to the
// transport.
#include "context/context.hpp"
#include "transport/address.hpp"
#include "transport/handshake.hpp"

namespace muster {

// A value.
struct SessionAddress {
    std::string text;      // for the transport: without the options below
    std::string full;      // the whole text, for people
    std::string authority; // before the first '/', for fabrics
    std::string service;   // after it
    bool auth = true;
    SealPolicy seal = SealPolicy::off_host;
    bool upgrade = true;
    std::string direct;          // as written
    std::string foreign;         // the first option that is not the library's own
    std::string foreign_options; // all of them: key=value&key=value
};

// auth=none; seal=yes|no; upgrade=no; where peers are introduced to each other direct=ADDRESS|no, too. Elsewhere
// upgrade=no has nothing to do.
Result<SessionAddress> session_address(const Context &context, const Address &address, bool upgrades = false);

bool valid_scheme(std::string_view scheme) noexcept;

// Runs on the loop thread and waits for it; MUSTER_E_CLOSED when the engine has stopped. Needs no memory of its own.
Result<void> call_on_loop(Context &context, Result<void> (*run)(void *body), void *body) noexcept;
template <class Body>
Result<void> run_on_loop(Context &context, Body body) noexcept {
    return call_on_loop(
        context, [](void *self) -> Result<void> { return (*static_cast<Body *>(self))(); }, &body);
}

} // namespace muster
