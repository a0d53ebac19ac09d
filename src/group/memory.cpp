// SPDX-License-Identifier: MIT
// How the members of a group on one host come to share memory: rank 0 makes it, and hands it to each of them. In the
// end all members use it, or none does.
#include "group/group.hpp"
#include "group/memory_offers.hpp"

namespace muster {

namespace {
constexpr char has_memory = 'y', has_none = 'n'; // answers of a member and of rank 0

Error did_not_answer(Group &group, uint32_t rank, Status status) noexcept {
    if (status < 0) return group.peer_ended(rank, status);
    Error why = Error::make(MUSTER_TIMEOUT, "rank %u did not answer in time", rank);
    why.rank = rank;
    return why;
}

Result<void> write_to(Group &group, uint32_t rank, std::string_view bytes, Deadline &deadline) {
    size_t moved = 0;
    const Status status = group.stream(rank).write(bytes.data(), bytes.size(), deadline, moved);
    return status == MUSTER_OK ? Result<void>() : did_not_answer(group, rank, status);
}

Result<void> read_from(Group &group, uint32_t rank, char *to, size_t size, Deadline &deadline) {
    size_t moved = 0;
    const Status status = group.stream(rank).read(to, size, size, deadline, moved);
    return status == MUSTER_OK ? Result<void>() : did_not_answer(group, rank, status);
}

// Rank 0: every member has mapped the memory, or the result is false.
Result<bool> hand_out(Group &group, const Segment &memory, Deadline &deadline) {
    MemoryOffers offers(group.context(), memory.memory.get(), group.size() - 1);
    bool good = memory.mapping != nullptr && offers.make();
    Result<void> done;
    for (uint32_t r = 1; r < group.size() && done; r++) {
        done = write_to(group, r, good ? offers.message(r - 1) : std::string(MemoryOffers::bytes, '\0'), deadline);
    }
    for (uint32_t r = 1; r < group.size() && done; r++) {
        char answer = has_none;
        done = read_from(group, r, &answer, 1, deadline);
        good = good && answer == has_memory;
    }
    const char verdict = good ? has_memory : has_none;
    for (uint32_t r = 1; r < group.size() && done; r++) done = write_to(group, r, {&verdict, 1}, deadline);
    if (!done) return done.error();
    return good;
}

// Any other rank.
Result<bool> take_over(Group &group, Segment &memory, size_t size, Deadline &deadline) {
    char message[MemoryOffers::bytes];
    if (auto got = read_from(group, 0, message, sizeof message, deadline); !got) return got.error();
    memory = MemoryOffers::fetch({message, sizeof message}, size, deadline);
    const char answer = memory.mapping != nullptr ? has_memory : has_none;
    if (auto sent = write_to(group, 0, {&answer, 1}, deadline); !sent) return sent.error();
    char verdict = has_none;
    if (auto got = read_from(group, 0, &verdict, 1, deadline); !got) return got.error();
    return verdict == has_memory && answer == has_memory;
}

} // namespace

Result<void> Group::agree_on_memory(bool wanted, Deadline &deadline) {
    if (!wanted || size() == 1) return {};
    const size_t bytes = Board::memory_bytes(size(), settings.slot_bytes);
    Segment memory;
    if (rank() == 0)
        if (auto made = make_segment(bytes)) memory = std::move(*made); // otherwise all use streams
    auto agreed = rank() == 0 ? hand_out(*this, memory, deadline) : take_over(*this, memory, bytes, deadline);
    if (!agreed) return fail(agreed.error());
    if (!*agreed) return {};
    memory.memory.reset();
    for (Fd &event : memory.events) event.reset();
    auto board = std::make_unique<Board>(std::move(memory), rank(), size(), settings.slot_bytes);
    Error before;
    {
        const std::lock_guard hold(lock_);
        board_ = std::move(board);
        if (failed_) before = failure_;
    }
    if (before.status == MUSTER_OK) return {};
    board_->fail(before.status, before.rank, before.message);
    return before;
}

} // namespace muster
