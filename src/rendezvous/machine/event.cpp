// SPDX-License-Identifier: MIT
#include "rendezvous/machine/event.hpp"

#include "base/result.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

muster_rendezvous_event make_event(uint32_t kind, uint64_t round, uint32_t rank, uint32_t count,
                                   std::string_view text) {
    muster_rendezvous_event event{};
    event.kind = kind;
    event.round = round;
    event.rank = rank;
    event.count = count;
    static_assert(sizeof event.text == sizeof Error().message);
    const Error cut =
        Error::make(MUSTER_OK, "%.*s", static_cast<int>(std::min<size_t>(text.size(), 1024)), text.data());
    event.text_bytes = cut.message_bytes;
    std::memcpy(event.text, cut.message, sizeof event.text);
    return event;
}

} // namespace muster
