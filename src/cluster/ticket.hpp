// SPDX-License-Identifier: MIT
#pragma once
// What whoever launches a worker hands to it: one line of words `name=value`, in which a byte that is neither a letter,
// a digit nor one of -_.:/?&=@[]{} is written %XX.
#include "base/result.hpp"

#include <string>
#include <vector>

namespace muster {

// A value.
struct Ticket {
    uint64_t cluster = 0;
    uint32_t member = 0;
    std::string master{}; // whom to dial; empty: the master dials
    std::string listen{}; // where to listen; empty: nowhere
    std::vector<unsigned char> secret{};

    std::string line() const;                           // its newline included
    static Result<Ticket> parse(std::string_view line); // without the newline
};

constexpr size_t ticket_max_bytes = 16384;

// Reads up to the newline and no further. The descriptor stays open.
Result<Ticket> read_ticket(int fd);

} // namespace muster
