// SPDX-License-Identifier: MIT
// How the members of a group on one host come to share memory: rank 0 makes it, and hands it to each of them. In the
// end all members use it, or none does.
#include "base/codec.hpp"
#include "group/group.hpp"
#include "plugin/plugins.hpp"
#include "plugin/session_address.hpp"
#include "transport/descriptor_channel.hpp"

#include <deque>
#include <poll.h>
#include <sys/mman.h>

namespace muster {

namespace {
constexpr size_t offer_bytes = 128;                          // the message of rank 0: size of the name, name, token
constexpr int64_t fetch_timeout_ns = 5'000'000'000;          // of rank 0's answer to a token
constexpr char has_memory = 'y', has_none = 'n', mark = 'm'; // answers of a member and of rank 0; with the descriptor

// An offer of rank 0 to one member. Loop thread.
class MemoryOffer final : public DescriptorChannel::Owner {
  public:
    explicit MemoryOffer(int memory) noexcept : memory_(memory) {}
    void token_shown(Fd socket) noexcept override {
        DescriptorChannel::send(socket.get(), std::string_view(&mark, 1), &memory_, 1);
    }
    DescriptorOffer offer;

  private:
    const int memory_;
};

Segment fetch_memory(const DescriptorOffer &offer, uint32_t user, size_t size, Deadline &deadline) noexcept {
    Segment segment;
    const Fd socket = DescriptorChannel::connect(offer, user);
    if (!socket) return segment;
    Deadline limit(deadline.endless() ? fetch_timeout_ns : std::min(fetch_timeout_ns, deadline.left()));
    for (;;) {
        pollfd wait{socket.get(), POLLIN, 0};
        const int64_t left = limit.left();
        if (left == 0) return segment;
        if (poll(&wait, 1, static_cast<int>(left / 1'000'000 + 1)) <= 0) continue;
        char byte = 0;
        Fd memory;
        const ssize_t got = DescriptorChannel::receive(socket.get(), &byte, 1, &memory, 1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got != 1 || byte != mark || !memory || !check_shared_memory(memory.get(), size)) return segment;
        void *const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
        if (at == MAP_FAILED) return segment;
        segment.mapping = at;
        segment.size = size;
        return segment;
    }
}

Error while_opening(uint32_t rank, Status status) noexcept {
    Error why = status > 0 ? Error::make(MUSTER_TIMEOUT, "rank %u did not answer in time", rank)
                           : Error::make(MUSTER_E_PEER, "rank %u has ended during the call", rank);
    why.rank = rank;
    return why;
}

Result<void> write_to(Group &group, uint32_t rank, std::string_view bytes, Deadline &deadline) {
    size_t moved = 0;
    const Status status = group.stream(rank).write(bytes.data(), bytes.size(), deadline, moved);
    return status == MUSTER_OK ? Result<void>() : while_opening(rank, status);
}

Result<void> read_from(Group &group, uint32_t rank, char *to, size_t size, Deadline &deadline) {
    size_t moved = 0;
    const Status status = group.stream(rank).read(to, size, size, deadline, moved);
    return status == MUSTER_OK ? Result<void>() : while_opening(rank, status);
}

// The offers of rank 0 to all other members, which end with this object: the channel refers to them.
class MemoryOffers {
  public:
    MemoryOffers(Context &context, int memory, uint32_t count) : context_(context) {
        Plugins::of(context); // run_on_loop() uses it, and must not make it
        for (uint32_t i = 0; i < count; i++) offers_.emplace_back(memory);
    }
    MemoryOffers(const MemoryOffers &) = delete;
    MemoryOffers &operator=(const MemoryOffers &) = delete;
    ~MemoryOffers() {
        // If the engine has stopped, its channel serves nothing any more.
        (void)run_on_loop(context_, [this]() -> Result<void> {
            for (MemoryOffer &one : offers_)
                if (!one.offer.name.empty()) DescriptorChannel::of(Hub::of(context_)).withdraw(one.offer);
            return {};
        });
    }
    // False: not all could be made.
    bool make() noexcept {
        const auto made = run_on_loop(context_, [this]() -> Result<void> {
            bool good = true;
            for (MemoryOffer &one : offers_)
                good = good && DescriptorChannel::of(Hub::of(context_)).offer(one, one.offer);
            return good ? Result<void>() : Error::from_status(MUSTER_E_LIMIT);
        });
        return bool(made);
    }
    const DescriptorOffer &to(uint32_t index) const noexcept { return offers_[index].offer; }

  private:
    Context &context_;
    std::deque<MemoryOffer> offers_;
};

// Rank 0: every member has mapped the memory, or the result is false.
Result<bool> hand_out(Group &group, const Segment &memory, Deadline &deadline) {
    MemoryOffers offers(group.context(), memory.memory.get(), group.size() - 1);
    bool good = memory.mapping != nullptr && offers.make();
    Result<void> done;
    for (uint32_t r = 1; r < group.size() && done; r++) {
        const DescriptorOffer &offer = offers.to(r - 1);
        std::string message(offer_bytes, '\0');
        if (good && offer.name.size() < offer_bytes - 1 - offer.token.size()) {
            message[0] = static_cast<char>(offer.name.size());
            offer.name.copy(&message[1], offer.name.size());
            memcpy(&message[offer_bytes - offer.token.size()], offer.token.data(), offer.token.size());
        }
        done = write_to(group, r, message, deadline);
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
    char message[offer_bytes];
    if (auto got = read_from(group, 0, message, sizeof message, deadline); !got) return got.error();
    DescriptorOffer offer;
    const auto length = static_cast<unsigned char>(message[0]);
    if (length != 0 && length < offer_bytes - offer.token.size()) {
        offer.name.assign(message + 1, length);
        memcpy(offer.token.data(), message + offer_bytes - offer.token.size(), offer.token.size());
        memory = fetch_memory(offer, geteuid(), size, deadline);
    }
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
