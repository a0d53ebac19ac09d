// SPDX-License-Identifier: MIT
#pragma once
// How a member that fails names the cause to the others: by the code and the text with which it aborts its streams.
#include "stream/stream.hpp"

namespace muster {

// `why.rank`: the cause; UINT32_MAX: this member, `own_rank`.
void abort_with_cause(Stream &stream, const Error &why, uint32_t own_rank) noexcept;

// The cause that the member at the other side, `rank` of `size`, has named. OK: none, for instance since it has died.
Error cause_of_abort(Stream &stream, uint32_t rank, uint32_t size) noexcept;

// How the failure of another member looks here: its own time limits and resources are not those of this member.
Status status_elsewhere(Status status) noexcept;

} // namespace muster
