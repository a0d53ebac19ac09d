// SPDX-License-Identifier: MIT
#pragma once
// Errors and log records.
#include <muster/plugin.h>

#include <string>

namespace mpi {

// Fills the error if there is one, and returns the status.
[[gnu::format(printf, 3, 4)]] muster_status refuse(muster_error *error, muster_status status, const char *format, ...);
// MPI's text for an error code.
std::string mpi_text(int code);
[[gnu::format(printf, 3, 4)]] void log(const muster_host *host, int32_t level, const char *format, ...);

} // namespace mpi
