// SPDX-License-Identifier: MIT
#include "base/status.hpp"

#include <cstring>

using namespace muster;

extern "C" const char *muster_status_name(muster_status status) {
    return status_name(status);
}

extern "C" const char *muster_status_text(muster_status status) {
    return status_text(status);
}

extern "C" const char *muster_version(uint32_t *out_major, uint32_t *out_minor, uint32_t *out_patch) {
    if (out_major) *out_major = MUSTER_VERSION_MAJOR;
    if (out_minor) *out_minor = MUSTER_VERSION_MINOR;
    if (out_patch) *out_patch = MUSTER_VERSION_PATCH;
    return MUSTER_VERSION_STRING;
}

extern "C" muster_status muster_config_init(void *config, uint32_t struct_size) {
    if (config == nullptr || struct_size < sizeof struct_size || struct_size > 65536) return MUSTER_E_ARG;
    std::memset(config, 0, struct_size);
    std::memcpy(config, &struct_size, sizeof struct_size);
    return MUSTER_OK;
}
