// SPDX-License-Identifier: MIT
// Operations of a group whose members share memory; see board.hpp for the rules of slots and steps.
#include "group/group.hpp"
#include "stream/copy.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr uint64_t line = 64;

struct Span { // of an array, in bytes
    uint64_t at = 0, size = 0;
};
// Part `index` of `count` parts of nearly the same size, on the boundaries of cache lines and elements.
Span part_of(uint64_t bytes, uint64_t element, uint32_t index, uint32_t count) noexcept {
    const uint64_t unit = element >= line ? element : line % element == 0 ? line : line * element;
    const uint64_t each = (bytes / count + unit) / unit * unit;
    const uint64_t at = std::min(bytes, index * each);
    return {at, std::min(each, bytes - at)};
}
// Piece `step` of an array that is moved in pieces of at most `piece` bytes; empty after its end.
Span piece_of(uint64_t bytes, uint64_t piece, uint64_t step) noexcept {
    const uint64_t at = std::min(bytes, step * piece);
    return {at, std::min(piece, bytes - at)};
}

class BoardRun {
  public:
    BoardRun(Group &group, const GroupOperation &operation, const Fingerprint &fingerprint, Deadline &deadline)
        : group_(group), board_(group.board()), op_(operation), fingerprint_(fingerprint), deadline_(deadline),
          me_(group.rank()), size_(group.size()), rows_(operation.reduces() ? group.size() : 0) {}

    Result<void> run();
    Result<void> agree() { return meet(); } // on the operation, which is performed in another way

  private:
    // The barrier; the first one of the operation compares the fingerprints.
    Result<void> meet();
    Result<void> failed(Status status); // what the board has returned
    Result<void> compare();
    uint64_t steps(uint64_t bytes, uint64_t piece) const noexcept {
        return bytes == 0 ? 1 : (bytes - 1) / piece + 1; // members meet once at least
    }
    uint64_t whole_elements(uint64_t bytes) const noexcept { return bytes / op_.element_bytes() * op_.element_bytes(); }
    uint64_t longest_block() const noexcept;
    // The output of this member has so many bytes, which take_out() fills piece by piece.
    void begin_output(uint64_t bytes) noexcept { past_cache_ = goes_past_cache(op_.output, bytes); }
    void take_out(const Span &span, uint64_t offset, const unsigned char *from) noexcept {
        if (span.size != 0) copy_out(op_.output + offset + span.at, from, span.size, past_cache_);
    }
    // Reduces what ranks first to last - 1 have put into their slots, at `offset`, in the last step.
    void reduce_slots(uint32_t first, uint32_t last, uint64_t offset, uint64_t bytes, unsigned char *to);

    Result<void> broadcast();
    Result<void> broadcast_small();
    Result<void> reduce_together(bool is_for_all); // in parts, each by one member
    Result<void> reduce_alone(bool is_for_me);
    Result<void> reduce_scatter();
    Result<void> scan();
    Result<void> gather();
    Result<void> scatter();
    Result<void> all_to_all();

    Group &group_;
    Board &board_;
    const GroupOperation &op_;
    Fingerprint fingerprint_;
    Deadline &deadline_;
    const uint32_t me_, size_;
    std::vector<const void *> rows_;
    bool has_met_ = false, past_cache_ = false;
};

Result<void> BoardRun::meet() {
    if (!has_met_) board_.publish(fingerprint_);
    if (const Status status = board_.meet(deadline_); status != MUSTER_OK) return failed(status);
    if (std::exchange(has_met_, true)) return {};
    return compare();
}

Result<void> BoardRun::failed(Status status) {
    if (status != MUSTER_E_MISMATCH) return group_.board_failed(status);
    uint32_t rank = 0;
    Fingerprint other;
    if (board_.find_other(fingerprint_, rank, other)) return make_mismatch(me_, fingerprint_, rank, other);
    return Error::make(MUSTER_E_MISMATCH, "rank %u performs %s, and another member something else", me_,
                       describe(fingerprint_).c_str());
}

Result<void> BoardRun::compare() {
    for (uint32_t r = 0; r < size_; r++)
        if (const Fingerprint other = board_.published_before(r); !(other == fingerprint_))
            return make_mismatch(me_, fingerprint_, r, other);
    return {};
}

uint64_t BoardRun::longest_block() const noexcept {
    uint64_t longest = op_.count;
    for (const uint64_t one : op_.counts) longest = std::max(longest, one);
    return longest * op_.element_bytes();
}

void BoardRun::reduce_slots(uint32_t first, uint32_t last, uint64_t offset, uint64_t bytes, unsigned char *to) {
    for (uint32_t r = first; r < last; r++) rows_[r - first] = board_.slot_before(r) + offset;
    op_.reduction.reduce(rows_.data(), last - first, to, bytes / op_.element_bytes());
}

Result<void> BoardRun::run() {
    switch (op_.kind) {
    case MUSTER_GROUP_BROADCAST:
        return broadcast();
    case MUSTER_GROUP_REDUCE:
    case MUSTER_GROUP_ALL_REDUCE: {
        const bool is_for_me = op_.kind == MUSTER_GROUP_ALL_REDUCE || op_.root == me_;
        if (op_.count * op_.element_bytes() <= std::min(board_.slot_bytes(), reduce_alone_bytes))
            return reduce_alone(is_for_me);
        return reduce_together(is_for_me);
    }
    case MUSTER_GROUP_REDUCE_SCATTER:
        return reduce_scatter();
    case MUSTER_GROUP_SCAN:
        return scan();
    case MUSTER_GROUP_GATHER:
    case MUSTER_GROUP_ALL_GATHER:
        return gather();
    case MUSTER_GROUP_SCATTER:
        return scatter();
    case MUSTER_GROUP_ALL_TO_ALL:
        return all_to_all();
    default: // a barrier, a close
        return meet();
    }
}

// Without a barrier: the root does not wait for the others.
Result<void> BoardRun::broadcast_small() {
    const uint64_t bytes = op_.count * op_.element_bytes();
    if (me_ == op_.root) {
        const Status status = board_.announce(fingerprint_, op_.output, bytes, deadline_);
        return status == MUSTER_OK ? Result<void>() : failed(status);
    }
    Announced announced;
    if (const Status status = board_.receive(fingerprint_, op_.root, deadline_, announced); status != MUSTER_OK)
        return failed(status);
    if (!(announced.fingerprint == fingerprint_))
        return make_mismatch(me_, fingerprint_, op_.root, announced.fingerprint);
    if (bytes != 0) memcpy(op_.output, announced.data, bytes);
    return {};
}

// The root is one step ahead of the others.
Result<void> BoardRun::broadcast() {
    const uint64_t bytes = op_.count * op_.element_bytes(), piece = board_.slot_bytes();
    if (board_.is_announced(bytes)) return broadcast_small();
    const uint64_t count = steps(bytes, piece);
    const bool is_root = me_ == op_.root;
    if (!is_root) begin_output(bytes);
    for (uint64_t step = 0; step <= count; step++) {
        if (is_root && step < count) {
            const Span span = piece_of(bytes, piece, step);
            if (span.size != 0) memcpy(board_.slot(me_), op_.output + span.at, span.size);
        }
        if (!is_root && step != 0) take_out(piece_of(bytes, piece, step - 1), 0, board_.slot_before(op_.root));
        if (step == count) break;
        if (auto met = meet(); !met) return met;
    }
    return {};
}

Result<void> BoardRun::reduce_alone(bool is_for_me) {
    const uint64_t bytes = op_.count * op_.element_bytes();
    if (bytes != 0) memcpy(board_.slot(me_), op_.input, bytes);
    if (auto met = meet(); !met) return met;
    if (is_for_me) reduce_slots(0, size_, 0, bytes, op_.output);
    return {};
}

// Three stages, each one step after the one before it: the input goes into the slots; each member reduces its part of
// all slots into the common result; the result is copied out.
Result<void> BoardRun::reduce_together(bool is_for_me) {
    const uint64_t bytes = op_.count * op_.element_bytes(), piece = whole_elements(board_.slot_bytes());
    const uint64_t count = steps(bytes, piece);
    if (is_for_me) begin_output(bytes);
    for (uint64_t step = 0; step < count + 2; step++) {
        if (step < count) {
            const Span span = piece_of(bytes, piece, step);
            memcpy(board_.slot(me_), op_.input + span.at, span.size);
        }
        if (step >= 1 && step <= count) {
            const Span part = part_of(piece_of(bytes, piece, step - 1).size, op_.element_bytes(), me_, size_);
            if (part.size != 0) reduce_slots(0, size_, part.at, part.size, board_.result() + part.at);
        }
        if (step >= 2 && is_for_me) take_out(piece_of(bytes, piece, step - 2), 0, board_.result_before());
        if (step == count + 1) break;
        if (auto met = meet(); !met) return met;
    }
    return {};
}

Result<void> BoardRun::reduce_scatter() {
    const uint64_t piece = whole_elements(board_.slot_bytes() / size_), longest = longest_block();
    std::vector<unsigned char> own; // where the result would overwrite inputs that are still to be read
    if (op_.in_place) own.resize(op_.block_bytes(me_));
    unsigned char *const to = op_.in_place ? own.data() : op_.output;
    const uint64_t count = steps(longest, piece);
    for (uint64_t step = 0; step <= count; step++) {
        if (step < count) {
            for (uint32_t r = 0; r < size_; r++) {
                const Span span = piece_of(op_.block_bytes(r), piece, step);
                if (span.size != 0)
                    memcpy(board_.slot(me_) + r * piece, op_.input + op_.offset_bytes(r) + span.at, span.size);
            }
        }
        if (step != 0) {
            const Span span = piece_of(op_.block_bytes(me_), piece, step - 1);
            if (span.size != 0) reduce_slots(0, size_, me_ * piece, span.size, to + span.at);
        }
        if (step == count) break;
        if (auto met = meet(); !met) return met;
    }
    if (!own.empty()) copy_whole(op_.output, own.data(), own.size());
    return {};
}

Result<void> BoardRun::scan() {
    const uint64_t bytes = op_.count * op_.element_bytes(), piece = whole_elements(board_.slot_bytes());
    const uint64_t count = steps(bytes, piece);
    const uint32_t last = op_.flags & MUSTER_GROUP_EXCLUSIVE ? me_ : me_ + 1;
    for (uint64_t step = 0; step <= count; step++) {
        if (step < count) {
            const Span span = piece_of(bytes, piece, step);
            if (span.size != 0) memcpy(board_.slot(me_), op_.input + span.at, span.size);
        }
        if (step != 0 && last != 0) {
            const Span span = piece_of(bytes, piece, step - 1);
            if (span.size != 0) reduce_slots(0, last, 0, span.size, op_.output + span.at);
        }
        if (step == count) break;
        if (auto met = meet(); !met) return met;
    }
    return {};
}

// Also all-gather: then every member reads.
Result<void> BoardRun::gather() {
    const uint64_t piece = board_.slot_bytes();
    const uint64_t count = steps(longest_block(), piece);
    const bool reads = op_.kind == MUSTER_GROUP_ALL_GATHER || me_ == op_.root;
    if (reads) begin_output(op_.offset_bytes(size_));
    for (uint64_t step = 0; step <= count; step++) {
        if (step < count) {
            const Span span = piece_of(op_.block_bytes(me_), piece, step);
            if (span.size != 0) memcpy(board_.slot(me_), op_.input + span.at, span.size);
        }
        for (uint32_t r = 0; reads && step != 0 && r < size_; r++) {
            const Span span = piece_of(op_.block_bytes(r), piece, step - 1);
            if (r != me_ || !op_.in_place) take_out(span, op_.offset_bytes(r), board_.slot_before(r));
        }
        if (step == count) break;
        if (auto met = meet(); !met) return met;
    }
    return {};
}

// The root fills the slots of all.
Result<void> BoardRun::scatter() {
    const uint64_t piece = board_.slot_bytes();
    const uint64_t count = steps(longest_block(), piece);
    const bool reads = me_ != op_.root || !op_.in_place;
    if (reads) begin_output(op_.block_bytes(me_));
    for (uint64_t step = 0; step <= count; step++) {
        for (uint32_t r = 0; me_ == op_.root && step < count && r < size_; r++) {
            const Span span = piece_of(op_.block_bytes(r), piece, step);
            if (span.size == 0 || (r == me_ && op_.in_place)) continue;
            memcpy(board_.slot(r), op_.input + op_.offset_bytes(r) + span.at, span.size);
        }
        if (step != 0 && reads) take_out(piece_of(op_.block_bytes(me_), piece, step - 1), 0, board_.slot_before(me_));
        if (step == count) break;
        if (auto met = meet(); !met) return met;
    }
    return {};
}

// A slot has one piece for each member.
Result<void> BoardRun::all_to_all() {
    const uint64_t piece = board_.slot_bytes() / size_, element = op_.element_bytes();
    uint64_t longest = longest_block();
    std::vector<unsigned char> copy; // of the input, whose places receive the output
    const unsigned char *input = op_.input;
    if (op_.in_place && op_.offsets[size_] != 0) {
        copy.assign(op_.input, op_.input + op_.offsets[size_] * element);
        input = copy.data();
    }
    if (!op_.counts.empty()) { // the first step: the counts of each member
        fingerprint_.own = longest;
        memcpy(board_.slot(me_), op_.counts.data(), size_ * sizeof(uint64_t));
        if (auto met = meet(); !met) return met;
        for (uint32_t r = 0; r < size_; r++) {
            uint64_t sent = 0;
            memcpy(&sent, board_.slot_before(r) + me_ * sizeof sent, sizeof sent);
            longest = std::max(longest, board_.published_before(r).own);
            if (sent == op_.source(r)) continue;
            Error why = Error::make(
                MUSTER_E_MISMATCH, "rank %u sends %llu elements to rank %u, which expects %llu: all-to-all %llu", r,
                static_cast<unsigned long long>(sent), me_, static_cast<unsigned long long>(op_.source(r)),
                static_cast<unsigned long long>(fingerprint_.word[0]));
            why.rank = r;
            return why;
        }
    }
    const uint64_t count = steps(longest, piece);
    uint64_t received = 0;
    for (uint32_t r = 0; r < size_; r++) received += op_.source(r) * element;
    begin_output(received);
    for (uint64_t step = 0; step <= count; step++) {
        for (uint32_t r = 0; step < count && r < size_; r++) {
            const Span span = piece_of(op_.block_bytes(r), piece, step);
            if (span.size != 0) memcpy(board_.slot(me_) + r * piece, input + op_.offset_bytes(r) + span.at, span.size);
        }
        uint64_t at = 0; // of the block of rank r in the output
        for (uint32_t r = 0; step != 0 && r < size_; r++) {
            const uint64_t bytes = op_.source(r) * element;
            take_out(piece_of(bytes, piece, step - 1), at, board_.slot_before(r) + me_ * piece);
            at += bytes;
        }
        if (step == count) break;
        if (auto met = meet(); !met) return met;
    }
    return {};
}

} // namespace

Result<void> run_on_board(Group &group, const GroupOperation &operation, const Fingerprint &fingerprint,
                          Deadline &deadline) {
    const bool fits = operation.kind != MUSTER_GROUP_REDUCE_SCATTER ||
                      operation.element_bytes() <= group.board().slot_bytes() / group.size();
    BoardRun on_board(group, operation, fingerprint, deadline);
    if (fits) return on_board.run();
    if (auto agreed = on_board.agree(); !agreed) return agreed; // a member on the board would wait for this one
    return run_on_streams(group, operation, fingerprint, deadline);
}

} // namespace muster
