// SPDX-License-Identifier: MIT
#include "group/abort.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <string_view>

namespace muster {

namespace {
constexpr size_t max_abort_text = 200;
}

void abort_with_cause(Stream &stream, const Error &why, uint32_t own_rank) noexcept {
    const uint32_t cause = why.rank != UINT32_MAX ? why.rank : own_rank;
    const std::string_view text(why.message, std::min<size_t>(why.message_bytes, max_abort_text));
    stream.abort(uint64_t{static_cast<uint32_t>(why.status)} << 32 | cause, text);
}

Error cause_of_abort(Stream &stream, uint32_t rank, uint32_t size) noexcept {
    uint64_t code = 0;
    Error why;
    if (stream.reason(&code, &why) != MUSTER_E_ABORTED || code == 0) return {};
    const auto cause = static_cast<uint32_t>(code);
    // The text of the other member follows the names that the stream has put before it.
    std::string_view text(why.message, why.message_bytes);
    for (const std::string_view name : {std::string_view(stream.peer()), std::string_view("aborted by the peer")})
        if (!name.empty() && text.size() > name.size() + 2 && text.substr(0, name.size()) == name)
            text.remove_prefix(name.size() + 2);
    Error reported = Error::make(status_elsewhere(static_cast<Status>(static_cast<uint32_t>(code >> 32))), "%.*s",
                                 static_cast<int>(text.size()), text.data());
    reported.rank = cause < size ? cause : rank;
    make_printable(reported.message, reported.message_bytes);
    return reported;
}

Status status_elsewhere(Status status) noexcept {
    return status == MUSTER_E_PEER || status == MUSTER_E_MISMATCH || status == MUSTER_E_PROTOCOL ? status
                                                                                                 : MUSTER_E_ABORTED;
}

} // namespace muster
