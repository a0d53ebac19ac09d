// SPDX-License-Identifier: MIT
// Operations of a group whose members are connected by streams.
//
// Each message between two members is a head, which has the fingerprint of the operation, and payload of a size that
// the receiver knows. Large arrays are exchanged directly, each block between its owner and its reader (as in
// Rabenseifner's reduce-scatter and all-gather); small ones are gathered at every reader; a broadcast follows a
// binomial tree; a barrier is the dissemination barrier of Hensgen, Finkel and Manber (1988).
#include "base/codec.hpp"
#include "group/group.hpp"
#include "stream/copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace muster {

namespace {

constexpr size_t head_bytes = GroupMessageHead::bytes;
// Messages up to this size are written before any is read: those of one operation fit into the window of each stream.
constexpr uint64_t small_bytes = 16 * 1024;
constexpr uint64_t piece_bytes = 256 * 1024; // of one block in one exchange
using Head = std::array<char, head_bytes>;

struct Outgoing {
    uint32_t rank;
    const void *data;
    uint64_t bytes;
};
struct Incoming {
    uint32_t rank;
    void *data;
    uint64_t bytes;
};

class StreamRun {
  public:
    StreamRun(Group &group, const GroupOperation &operation, const Fingerprint &fingerprint, Deadline &deadline)
        : group_(group), op_(operation), fingerprint_(fingerprint), deadline_(deadline), me_(group.rank()),
          size_(group.size()), element_(operation.element_bytes()) {}

    Result<void> run();

  private:
    // ---- messages
    void put_head(char *to, uint64_t bytes) const noexcept;
    Result<void> check_head(uint32_t rank, const Head &head, uint64_t bytes);
    Result<void> write(uint32_t rank, const void *data, uint64_t bytes);
    Result<void> read(uint32_t rank, void *data, uint64_t bytes);
    Result<void> send(const Outgoing &message);
    Result<void> receive(const Incoming &message);
    // Sends and receives these, at most one of each with each member.
    Result<void> exchange();
    Result<void> exchange_by_reads();
    Result<void> begin_reads(std::vector<Head> &heads, size_t &begun);
    Result<void> end_reads(const std::vector<Head> &heads, size_t begun, Result<void> so_far);

    // ---- operations
    Result<void> barrier();
    Result<void> broadcast();
    Result<void> gather();
    Result<void> scatter();
    Result<void> all_to_all();
    Result<void> scan();
    Result<void> reduce();
    Result<void> reduce_from_all(bool is_for_me, bool is_for_all); // small
    // Exchanges blocks of the input, at `offsets` (elements; one more than blocks), and reduces the own one to `to`.
    Result<void> reduce_blocks(const std::vector<uint64_t> &offsets, unsigned char *to);
    std::vector<uint64_t> even_blocks() const;

    Group &group_;
    const GroupOperation &op_;
    const Fingerprint fingerprint_;
    Deadline &deadline_;
    const uint32_t me_, size_;
    const uint64_t element_;
    std::vector<Outgoing> out_;
    std::vector<Incoming> in_;
};

// ---- messages -------------------------------------------------------------------------------------------------------

void StreamRun::put_head(char *to, uint64_t bytes) const noexcept {
    GroupMessageHead{fingerprint_, bytes}.put(to);
}

Result<void> StreamRun::check_head(uint32_t rank, const Head &head, uint64_t bytes) {
    const auto read = GroupMessageHead::read({head.data(), head.size()});
    if (!read) {
        Error why = Error::make(MUSTER_E_PROTOCOL, "rank %u sent bytes that are no message of a group", rank);
        why.rank = rank;
        return why;
    }
    const Fingerprint &other = read->fingerprint;
    const uint64_t size = read->payload_bytes;
    group_.set_seen(rank, other);
    if (!(other == fingerprint_)) return make_mismatch(me_, fingerprint_, rank, other);
    if (size == bytes) return {};
    Error why = Error::make(MUSTER_E_MISMATCH, "rank %u sends %llu bytes to rank %u, which expects %llu: %s %llu", rank,
                            static_cast<unsigned long long>(size), me_, static_cast<unsigned long long>(bytes),
                            name_of_kind(op_.kind), static_cast<unsigned long long>(fingerprint_.word[0]));
    why.rank = rank;
    return why;
}

Result<void> StreamRun::write(uint32_t rank, const void *data, uint64_t bytes) {
    Stream &stream = group_.stream(rank);
    if (stream.write_quickly(data, bytes)) return {};
    size_t moved = 0;
    const Status status = stream.write(data, bytes, deadline_, moved);
    if (status == MUSTER_OK) return {};
    return status > 0 ? Error::from_status(MUSTER_TIMEOUT) : group_.peer_ended(rank, status);
}

Result<void> StreamRun::read(uint32_t rank, void *data, uint64_t bytes) {
    if (bytes == 0) return {};
    Stream &stream = group_.stream(rank);
    size_t moved = stream.read_quickly(data, bytes, bytes);
    if (moved == bytes) return {};
    const Status status =
        stream.read(static_cast<char *>(data) + moved, bytes - moved, bytes - moved, deadline_, moved);
    if (status == MUSTER_OK) return {};
    return status > 0 ? Error::from_status(MUSTER_TIMEOUT) : group_.peer_ended(rank, status);
}

Result<void> StreamRun::send(const Outgoing &message) {
    char joined[head_bytes + small_bytes];
    put_head(joined, message.bytes);
    if (message.bytes <= small_bytes) {
        if (message.bytes != 0) memcpy(joined + head_bytes, message.data, message.bytes);
        return write(message.rank, joined, head_bytes + message.bytes);
    }
    if (auto done = write(message.rank, joined, head_bytes); !done) return done;
    return write(message.rank, message.data, message.bytes);
}

Result<void> StreamRun::receive(const Incoming &message) {
    Head head;
    if (auto done = read(message.rank, head.data(), head.size()); !done) return done;
    if (auto good = check_head(message.rank, head, message.bytes); !good) return good;
    return read(message.rank, message.data, message.bytes);
}

Result<void> StreamRun::exchange() {
    // A function of the host that was not called has failed the group: what it should have combined is not sent.
    if (op_.reduction.combine != nullptr)
        if (Error why = group_.failure(); why.status != MUSTER_OK) return why;
    bool is_small = true;
    for (const Outgoing &message : out_) is_small = is_small && message.bytes <= small_bytes;
    // With nothing to send, or nothing to receive, no two members can wait for each other to read.
    if (!is_small && !in_.empty() && !out_.empty()) return exchange_by_reads();
    for (const Outgoing &message : out_)
        if (auto done = send(message); !done) return done;
    for (const Incoming &message : in_)
        if (auto done = receive(message); !done) return done;
    return {};
}

// The engine receives into the arrays while this thread writes, so that members which send to each other make progress.
Result<void> StreamRun::exchange_by_reads() {
    std::vector<Head> heads(in_.size());
    size_t begun = 0;
    Result<void> done = begin_reads(heads, begun);
    for (size_t i = 0; done && i < out_.size(); i++) done = send(out_[i]);
    return end_reads(heads, begun, done);
}

Result<void> StreamRun::begin_reads(std::vector<Head> &heads, size_t &begun) {
    for (size_t i = 0; i < in_.size(); i++) {
        Stream &stream = group_.stream(in_[i].rank);
        Status status = stream.read_begin(heads[i].data(), head_bytes, group_.reads(), 2 * i);
        if (status == MUSTER_OK) begun++;
        if (status == MUSTER_OK && in_[i].bytes != 0) {
            status = stream.read_begin(in_[i].data, in_[i].bytes, group_.reads(), 2 * i + 1);
            if (status == MUSTER_OK) begun++;
        }
        // The queue has places for all reads of an operation, so there is no memory for one of them.
        if (status == MUSTER_AGAIN) return Error::make(MUSTER_E_NOMEM, "out of memory");
        if (status != MUSTER_OK) return group_.peer_ended(in_[i].rank, status);
    }
    return {};
}

// Memory is lent to the reads until each has completed: after a failure the streams are aborted, which ends them.
Result<void> StreamRun::end_reads(const std::vector<Head> &heads, size_t begun, Result<void> so_far) {
    Deadline none(-1);
    while (begun != 0) {
        if (!so_far) group_.fail(failure_of_group(me_, op_.kind, fingerprint_.word[0], so_far.error()));
        muster_completion entry;
        Error why;
        const Status status = group_.reads().next(so_far ? deadline_ : none, &entry, &why);
        if (status != MUSTER_OK) {
            if (!so_far) return so_far; // the queue is closed: its reads have ended
            so_far = Error::from_status(status > 0 ? Status{MUSTER_TIMEOUT} : status);
            continue;
        }
        if (entry.kind != MUSTER_DONE_READ) continue;
        begun--;
        if (!so_far) continue;
        const Incoming &message = in_[entry.tag / 2];
        if (entry.status != MUSTER_OK)
            so_far = group_.peer_ended(message.rank, entry.status);
        else if (entry.tag % 2 == 0)
            so_far = check_head(message.rank, heads[entry.tag / 2], message.bytes);
    }
    return so_far;
}

// ---- operations -----------------------------------------------------------------------------------------------------

Result<void> StreamRun::run() {
    switch (op_.kind) {
    case MUSTER_GROUP_BROADCAST:
        return broadcast();
    case MUSTER_GROUP_REDUCE:
    case MUSTER_GROUP_ALL_REDUCE:
        return reduce();
    case MUSTER_GROUP_REDUCE_SCATTER: {
        std::vector<unsigned char> own; // where the result would overwrite inputs that are still to be sent
        if (op_.in_place) own.resize(op_.block_bytes(me_));
        if (auto done = reduce_blocks(op_.offsets, op_.in_place ? own.data() : op_.output); !done) return done;
        if (!own.empty()) copy_whole(op_.output, own.data(), own.size());
        return {};
    }
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
        return barrier();
    }
}

Result<void> StreamRun::barrier() {
    for (uint32_t distance = 1; distance < size_; distance *= 2) {
        if (auto done = send({(me_ + distance) % size_, nullptr, 0}); !done) return done;
        if (auto done = receive({(me_ + size_ - distance) % size_, nullptr, 0}); !done) return done;
    }
    return {};
}

// A binomial tree: a member passes each piece on before it reads the next one.
Result<void> StreamRun::broadcast() {
    const uint64_t bytes = op_.count * element_;
    const uint32_t place = (me_ + size_ - op_.root) % size_; // in the tree, whose root is at 0
    const auto rank_at = [&](uint32_t at) { return (at + op_.root) % size_; };
    uint32_t bit = 1;
    while (bit < size_ && !(place & bit)) bit *= 2;
    if (place != 0) {
        Head head;
        if (auto done = read(rank_at(place - bit), head.data(), head.size()); !done) return done;
        if (auto good = check_head(rank_at(place - bit), head, bytes); !good) return good;
    }
    std::vector<uint32_t> children;
    for (uint32_t child = bit / 2; child != 0; child /= 2)
        if (place + child < size_) children.push_back(rank_at(place + child));
    char head[head_bytes];
    put_head(head, bytes);
    for (const uint32_t child : children)
        if (auto done = write(child, head, sizeof head); !done) return done;
    for (uint64_t at = 0; at < bytes; at += piece_bytes) {
        const uint64_t piece = std::min(piece_bytes, bytes - at);
        if (place != 0)
            if (auto done = read(rank_at(place - bit), op_.output + at, piece); !done) return done;
        for (const uint32_t child : children)
            if (auto done = write(child, op_.output + at, piece); !done) return done;
    }
    return {};
}

// Also all-gather: then every member is a root.
Result<void> StreamRun::gather() {
    const bool for_all = op_.kind == MUSTER_GROUP_ALL_GATHER, is_root = for_all || me_ == op_.root;
    const uint64_t own = op_.block_bytes(me_);
    for (uint32_t i = 1; i < size_; i++) { // each begins with another one
        const uint32_t to = (me_ + i) % size_, from = (me_ + size_ - i) % size_;
        if (for_all || to == op_.root) out_.push_back({to, op_.input, own});
        if (is_root) in_.push_back({from, op_.output + op_.offset_bytes(from), op_.block_bytes(from)});
    }
    if (is_root && !op_.in_place && own != 0) copy_whole(op_.output + op_.offset_bytes(me_), op_.input, own);
    return exchange();
}

Result<void> StreamRun::scatter() {
    const bool is_root = me_ == op_.root;
    for (uint32_t i = 1; is_root && i < size_; i++) {
        const uint32_t to = (me_ + i) % size_;
        out_.push_back({to, op_.input + op_.offset_bytes(to), op_.block_bytes(to)});
    }
    if (!is_root) in_.push_back({op_.root, op_.output, op_.block_bytes(me_)});
    if (is_root && !op_.in_place && op_.block_bytes(me_) != 0)
        copy_whole(op_.output, op_.input + op_.offset_bytes(me_), op_.block_bytes(me_));
    return exchange();
}

Result<void> StreamRun::all_to_all() {
    std::vector<unsigned char> copy; // of the input, whose places receive the output
    const unsigned char *input = op_.input;
    if (op_.in_place && op_.offsets[size_] != 0) {
        copy.assign(op_.input, op_.input + op_.offsets[size_] * element_);
        input = copy.data();
    }
    std::vector<uint64_t> at(size_ + size_t{1}); // of the block of each rank in the output
    for (uint32_t r = 0; r < size_; r++) at[r + 1] = at[r] + op_.source(r) * element_;
    for (uint32_t i = 1; i < size_; i++) {
        const uint32_t to = (me_ + i) % size_, from = (me_ + size_ - i) % size_;
        out_.push_back({to, input + op_.offset_bytes(to), op_.block_bytes(to)});
        in_.push_back({from, op_.output + at[from], at[from + 1] - at[from]});
    }
    const uint64_t own = op_.block_bytes(me_);
    if (own != at[me_ + 1] - at[me_])
        return Error::make(MUSTER_E_MISMATCH, "rank %u sends %llu elements to itself, and expects %llu", me_,
                           static_cast<unsigned long long>(op_.block(me_)),
                           static_cast<unsigned long long>(op_.source(me_)));
    if (own != 0) copy_whole(op_.output + at[me_], input + op_.offset_bytes(me_), own);
    return exchange();
}

// In pieces, so that memory for the inputs of the others is limited.
Result<void> StreamRun::scan() {
    const uint64_t bytes = op_.count * element_;
    const uint64_t piece = std::max<uint64_t>(1, piece_bytes / element_) * element_;
    const uint32_t last = op_.flags & MUSTER_GROUP_EXCLUSIVE ? me_ : me_ + 1;
    std::vector<unsigned char> others(me_ * std::min(piece, bytes));
    std::vector<const void *> rows(last);
    uint64_t at = 0;
    do { // once at least
        const uint64_t size = std::min(piece, bytes - at);
        out_.clear(), in_.clear();
        for (uint32_t r = me_ + 1; r < size_; r++) out_.push_back({r, op_.input + at, size});
        for (uint32_t r = 0; r < me_; r++) in_.push_back({r, others.data() + r * size, size});
        if (auto done = exchange(); !done) return done;
        for (uint32_t r = 0; r < last; r++) rows[r] = r == me_ ? op_.input + at : others.data() + r * size;
        if (last != 0 && size != 0) op_.reduction.reduce(rows.data(), last, op_.output + at, size / element_);
        at += size;
    } while (at < bytes);
    return {};
}

std::vector<uint64_t> StreamRun::even_blocks() const {
    std::vector<uint64_t> offsets(size_ + size_t{1});
    const uint64_t each = op_.count / size_, more = op_.count % size_;
    for (uint32_t r = 0; r < size_; r++) offsets[r + 1] = offsets[r] + each + (r < more ? 1 : 0);
    return offsets;
}

Result<void> StreamRun::reduce_blocks(const std::vector<uint64_t> &offsets, unsigned char *to) {
    const uint64_t piece = std::max<uint64_t>(1, piece_bytes / element_);
    const auto elements = [&](uint32_t rank, uint64_t at) {
        const uint64_t block = offsets[rank + 1] - offsets[rank];
        return at < block ? std::min(piece, block - at) : 0;
    };
    uint64_t longest = 0;
    for (uint32_t r = 0; r < size_; r++) longest = std::max(longest, offsets[r + 1] - offsets[r]);
    std::vector<unsigned char> others(size_ * elements(me_, 0) * element_);
    std::vector<const void *> rows(size_);
    uint64_t at = 0;
    do { // once at least
        const uint64_t own = elements(me_, at);
        out_.clear(), in_.clear();
        for (uint32_t i = 1; i < size_; i++) {
            const uint32_t r = (me_ + i) % size_, from = (me_ + size_ - i) % size_;
            out_.push_back({r, op_.input + (offsets[r] + at) * element_, elements(r, at) * element_});
            in_.push_back({from, others.data() + from * own * element_, own * element_});
        }
        if (auto done = exchange(); !done) return done;
        for (uint32_t r = 0; r < size_; r++)
            rows[r] = r == me_ ? op_.input + (offsets[me_] + at) * element_ : others.data() + r * own * element_;
        op_.reduction.reduce(rows.data(), size_, to + at * element_, own);
        at += piece;
    } while (at < longest);
    return {};
}

Result<void> StreamRun::reduce_from_all(bool is_for_me, bool is_for_all) {
    const uint64_t bytes = op_.count * element_;
    std::vector<unsigned char> others(is_for_me ? size_ * bytes : 0);
    for (uint32_t i = 1; i < size_; i++) {
        const uint32_t to = (me_ + i) % size_, from = (me_ + size_ - i) % size_;
        if (is_for_all || to == op_.root) out_.push_back({to, op_.input, bytes});
        if (is_for_me) in_.push_back({from, others.data() + from * bytes, bytes});
    }
    if (auto done = exchange(); !done || !is_for_me) return done;
    std::vector<const void *> rows(size_);
    for (uint32_t r = 0; r < size_; r++) rows[r] = r == me_ ? op_.input : others.data() + r * bytes;
    op_.reduction.reduce(rows.data(), size_, op_.output, op_.count);
    return {};
}

// Also all-reduce.
Result<void> StreamRun::reduce() {
    const bool is_for_all = op_.kind == MUSTER_GROUP_ALL_REDUCE, is_for_me = is_for_all || me_ == op_.root;
    if (op_.count * element_ <= reduce_alone_bytes) return reduce_from_all(is_for_me, is_for_all);
    const std::vector<uint64_t> offsets = even_blocks();
    std::vector<unsigned char> own(is_for_me ? 0 : (offsets[me_ + 1] - offsets[me_]) * element_);
    // The place of the own block in the output is not read before it is written: it was sent to no other member.
    unsigned char *const to = is_for_me ? op_.output + offsets[me_] * element_ : own.data();
    if (auto done = reduce_blocks(offsets, to); !done) return done;
    out_.clear(), in_.clear();
    const auto bytes_of = [&](uint32_t rank) { return (offsets[rank + 1] - offsets[rank]) * element_; };
    for (uint32_t i = 1; i < size_; i++) {
        const uint32_t r = (me_ + i) % size_, from = (me_ + size_ - i) % size_;
        if (is_for_all || r == op_.root) out_.push_back({r, to, bytes_of(me_)});
        if (is_for_me) in_.push_back({from, op_.output + offsets[from] * element_, bytes_of(from)});
    }
    return exchange();
}

} // namespace

Result<void> run_on_streams(Group &group, const GroupOperation &operation, const Fingerprint &fingerprint,
                            Deadline &deadline) {
    return StreamRun(group, operation, fingerprint, deadline).run();
}

} // namespace muster
