// SPDX-License-Identifier: MIT
#include "error.hpp"

#include <cstdarg>
#include <cstdio>
#include <mpi.h>

namespace mpi {

muster_status refuse(muster_error *error, muster_status status, const char *format, ...) {
    if (error == nullptr) return status;
    va_list values;
    va_start(values, format);
    vsnprintf(error->message, sizeof error->message, format, values);
    va_end(values);
    return status;
}

std::string mpi_text(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS || length <= 0) return "MPI error " + std::to_string(code);
    return {text, static_cast<size_t>(length)};
}

void log(const muster_host *host, int32_t level, const char *format, ...) {
    char text[256];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (length > 0)
        host->log(host, level, text, static_cast<uint64_t>(length) < sizeof text ? length : sizeof text - 1);
}

} // namespace mpi
