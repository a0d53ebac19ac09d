/* SPDX-License-Identifier: MIT */
/** @file
 * For authors of plug-ins: fills the errors that operations return. */
#ifndef MUSTER_INLINE_PLUGIN_H
#define MUSTER_INLINE_PLUGIN_H

#include <muster/plugin.h>

/** Fills an error.
 * @param[out] error     Error; or NULL.
 * @param[in]  status    What the operation returns.
 * @param[in]  os_errno  Value of errno, whose text the library adds; or 0.
 * @param[in]  text      What failed, with its values: a sentence without a final period. Text beyond the capacity of
 *                       muster_error::message is left out.
 * @return The status. */
static inline muster_status muster_plugin_fail_inline(muster_error *error, muster_status status, int32_t os_errno,
                                                      const char *text) {
    if (error == 0) return status;
    uint32_t size = 0;
    for (; text[size] != '\0' && size + 1 < sizeof error->message; size++) error->message[size] = text[size];
    error->message[size] = '\0';
    error->message_bytes = size;
    error->os_errno = os_errno;
    error->status = status;
    return status;
}

#endif
