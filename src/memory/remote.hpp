// SPDX-License-Identifier: MIT
#pragma once
// Locales whose memory is not mapped here: their library performs the operations, as active messages.
#include "am/active_messages.hpp"
#include "memory/nodes.hpp"

namespace muster {

class Memory;

// Internal handlers of active messages.
enum class MemoryHandler : uint32_t { run = am_first_internal_handler, allocate, release, stats, epoch };
inline uint32_t number_of(MemoryHandler handler) noexcept {
    return static_cast<uint32_t>(handler);
}

// Any thread.
class RemoteLocales {
  public:
    static constexpr size_t stats_words = sizeof(muster_memory_stats) / sizeof(uint64_t); // of a reply
    static constexpr size_t begun_bytes = 64 * 1024;       // a larger copy that is begun takes a thread
    static constexpr size_t piece_bytes = 8 * 1024 * 1024; // of a put or get; larger ones are cut
    // Connects to the locales of other nodes. All locales make the call; handlers are executed from then on.
    static Result<std::unique_ptr<RemoteLocales>> open(Memory &memory, Deadline &deadline);
    ~RemoteLocales();
    void close() noexcept { am_->close(); } // no handler is executed after it

    ActiveMessages &am() noexcept { return *am_; }
    uint32_t peer_of(uint32_t locale) const noexcept { return peers_[locale]; }
    bool has_ended(uint32_t locale, Error *why) noexcept;
    // It has ended for another locale, so for all of them.
    void exclude(uint32_t locale) noexcept {
        const Error why = Error::make(MUSTER_E_PEER, "another locale cannot reach this one");
        if (AmPeer *const peer = am_->peer(peers_[locale])) am_->disconnect(*peer, why, why.message);
    }
    uint32_t requests(uint32_t locale) noexcept { return am_->peer(peers_[locale])->outstanding(); }

    // The target's locale is remote, and what the caller has given is well-formed.
    Status run(const muster_memory_operation &what, Deadline &deadline, muster_memory_result &out) noexcept;
    // `out`, which may be NULL, is lent until the entry; no queue: flush() reports a failure.
    Status begin(const muster_memory_operation &what, muster_memory_result *out, Queue *queue, uint64_t tag);
    Status allocate(uint32_t locale, uint64_t bytes, Deadline &deadline, uint64_t &out_offset) noexcept;
    Status release(uint32_t locale, const uint64_t *offsets, uint32_t count, Deadline &deadline) noexcept;
    // Without waiting, neither for a reply nor for room: what is not sent now follows with send_freed(). AGAIN: there
    // was no room for all; E_NOMEM. Those of a locale that has ended are dropped.
    Status release_later(uint32_t locale, const uint64_t *offsets, size_t count) noexcept;
    Status send_freed(uint32_t locale = UINT32_MAX) noexcept; // UINT32_MAX: to all
    uint64_t dropped(uint32_t locale) noexcept;
    Status stats(uint32_t locale, Deadline &deadline, muster_memory_stats &out) noexcept;
    Status flush(uint32_t locale, Deadline &deadline) noexcept; // UINT32_MAX: all

  private:
    RemoteLocales(Memory &memory, Ref<ActiveMessages> am, uint32_t locales)
        : memory_(memory), am_(std::move(am)), peers_(locales, UINT32_MAX), freed_(locales) {}
    static void set_handlers(ActiveMessages &am, Memory &memory); // served.cpp
    struct Lent;
    Status copy(const muster_memory_operation &what, Deadline &deadline, Lent *lent = nullptr);

    Memory &memory_;
    const Ref<ActiveMessages> am_;
    std::vector<uint32_t> peers_; // by locale; UINT32_MAX: of this node
    struct Freed {
        std::vector<uint64_t> unsent; // offsets of blocks that were freed here
        uint64_t dropped = 0;
    };
    Status send_freed_of(Freed &freed, uint32_t peer) noexcept;
    std::mutex freed_lock_;
    std::vector<Freed> freed_; // by locale
};

} // namespace muster
