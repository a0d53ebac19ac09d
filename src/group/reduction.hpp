// SPDX-License-Identifier: MIT
#pragma once
// Reductions: one array out of several, element by element, in the order of the arrays.
#include <muster/group.h>

#include <cstddef>
#include <cstdint>

namespace muster {

size_t bytes_of_type(uint32_t type) noexcept; // 0: there is no such type, or it has no size of its own
const char *name_of_type(uint32_t type) noexcept;
const char *name_of_reduction(uint32_t reduction) noexcept;

// A value. `combine`: a reduction of the host, of elements of `element_bytes`.
struct Reduction {
    uint32_t type = 0, number = 0;
    uint32_t element_bytes = 0;
    muster_reduce_fn combine = nullptr;
    void *user = nullptr;

    // Does this reduction exist for this type?
    bool is_valid() const noexcept;
    // out[i] = rows[0][i] op rows[1][i] op ..., from the left. Rows and `out` need no alignment; `out` may be one of
    // the rows, and may overlap them in no other way.
    void reduce(const void *const *rows, size_t row_count, void *out, uint64_t count) const noexcept;
};

} // namespace muster
