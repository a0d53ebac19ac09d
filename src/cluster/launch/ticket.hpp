// SPDX-License-Identifier: MIT
#pragma once
// The ticket that the launcher of a worker passes to it: one line of words `name=value`, in which a byte that is
// neither a letter, a digit nor one of -_.:/?&=@[]{} is written %XX.
#include "base/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// A value.
struct Ticket {
    uint64_t cluster = 0;
    uint32_t member = 0;
    std::string master{}; // the address to dial; empty: the master dials
    std::string listen{}; // where to listen; empty: nowhere
    std::vector<unsigned char> secret{};
    // In place of the secret: proves to the master that this process belongs to a launch, and fetches the rest; see
    // lifecycle/launch_keys.hpp.
    std::vector<unsigned char> key{};
    // A ticket for many workers that are started together: `member` is the first of them, `listen` has {} for the
    // number, and each finds its rank in the first of these variables that is set, separated by commas.
    uint32_t members = 1;
    std::string rank_variables{};

    Result<void> take_own();                            // becomes the ticket of this process alone
    std::string line() const;                           // its newline included
    static Result<Ticket> parse(std::string_view line); // without the newline
    std::string variable() const;                       // for the environment: some launchers stumble over a second =
    static Result<Ticket> parse_variable(std::string_view value);
};

constexpr size_t ticket_max_bytes = 16384;
constexpr char ticket_variable[] = "MUSTER_WORKER_TICKET";

// The line by which a worker reports to its launcher where it listens: `muster-worker ADDRESS MEMBER`.
struct WorkerReport {
    std::string address{};
    uint32_t member = 0; // 0: not reported

    std::string line() const; // its newline included
    static std::optional<WorkerReport> parse(std::string_view line);
};

constexpr std::string_view worker_report_begins = "muster-worker ";

std::string numbered(std::string text, uint32_t member); // with the number in place of each {}

// Reads up to the newline and no further. The descriptor stays open.
Result<Ticket> read_ticket(int fd);

} // namespace muster
