/* SPDX-License-Identifier: MIT */
/** @file
 * Addresses of global pointers as an inline function, unchecked: the pointer is one of this memory, not nil, and its
 * segment is mapped. Another language adds the offset to the base of the locale in the same way. */
#ifndef MUSTER_INLINE_MEMORY_H
#define MUSTER_INLINE_MEMORY_H

#include <muster/memory.h>

/** Returns the address of a place in this process.
 * @param[in] view     Of muster_memory_get_view().
 * @param[in] pointer  The place.
 * @return Its address. */
static inline void *muster_memory_at_inline(const muster_memory_view *view, muster_gptr pointer) {
    const uint64_t offset = pointer & (((uint64_t)1 << view->offset_bits) - 1);
    return (void *)(uintptr_t)(view->bases[pointer >> view->offset_bits] + offset);
}

#endif
