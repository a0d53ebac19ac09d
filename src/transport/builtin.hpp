// SPDX-License-Identifier: MIT
#pragma once
// The transports every context has.
#include "transport/transport.hpp"

namespace muster {

Ref<Transport> make_inproc_transport();
Ref<Transport> make_tcp_transport();
Ref<Transport> make_unix_transport();
Ref<Transport> make_shm_transport();

} // namespace muster
