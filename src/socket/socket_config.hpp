// SPDX-License-Identifier: MIT
#pragma once
// The settings of a socket, read from the configuration of the host.
#include "socket/socket.hpp"

namespace muster {

Result<Socket::Settings> read_socket_config(Context &context, const muster_socket_config *given);

} // namespace muster
