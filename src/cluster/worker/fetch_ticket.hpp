// SPDX-License-Identifier: MIT
#pragma once
#include "cluster/launch/ticket.hpp"

namespace muster {

// The worker's side of LaunchKeys: returns the ticket of this process for one that has a key. Waits, at most a minute.
Result<Ticket> fetch_ticket(const Ticket &with_key);

} // namespace muster
