// SPDX-License-Identifier: MIT
#pragma once
// State that a link and each stream of a session have in common: the credit of both directions, their half-close, the
// reason of an abort; and for how long the peer has been silent.
#include "base/text.hpp"
#include "stream/duplex.hpp"
#include "transport/frame.hpp"
#include "transport/peer_timeouts.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>

namespace muster {

// The maximum time in which a closed stream may send the rest.
constexpr int64_t linger_ns = 10'000'000'000;

// Any thread unless a member says otherwise.
class StreamState {
  public:
    // `peer_window`: the credit at the beginning, and its maximum.
    StreamState(uint64_t own_window, uint64_t peer_window) noexcept
        : window_(own_window), granted_(own_window), max_credit_(peer_window), credit_(peer_window) {}

    // --- to the peer ---
    // acquire: pairs with add_credit().
    uint64_t credit() const noexcept { return credit_.load(std::memory_order_acquire); }
    // relaxed: by the one thread that sends, and before the peer can answer with a grant.
    void use_credit(uint64_t bytes) noexcept { credit_.fetch_sub(bytes, std::memory_order_relaxed); }
    void return_credit(uint64_t bytes) noexcept { credit_.fetch_add(bytes, std::memory_order_relaxed); }
    // From the peer: false if it is more than its window. One thread at a time.
    bool add_credit(uint64_t bytes) noexcept {
        const uint64_t before = credit_.load(std::memory_order_relaxed);
        if (bytes == 0 || bytes > max_credit_ || before > max_credit_ - bytes) return false;
        // seq_cst: pairs with a sender that finds no credit, sets a mark, and checks once more.
        credit_.fetch_add(bytes, std::memory_order_seq_cst);
        return true;
    }
    bool finish_sent = false; // the sender's own

    // --- from the peer ---
    // Counts bytes that came in: false if they are more than was granted. One thread at a time.
    bool count_received(size_t size) noexcept {
        // relaxed: written by this thread only.
        const uint64_t all = received_.load(std::memory_order_relaxed) + size;
        received_.store(all, std::memory_order_relaxed);
        // acquire: pairs with grant(). The peer learned of a grant after it was made.
        return all <= granted_.load(std::memory_order_acquire);
    }
    uint64_t received() const noexcept { return received_.load(std::memory_order_relaxed); }
    // The reading host has consumed so many bytes in all. True: the peer is granted more, and a credit frame is due.
    bool grant(uint64_t consumed) noexcept {
        const uint64_t granted = granted_.load(std::memory_order_relaxed); // written by this thread only
        const uint64_t more = consumed + window_ - granted;
        if (more < window_ / 4) return false;                      // not worth a frame yet
        granted_.store(granted + more, std::memory_order_release); // before the peer can use it
        owed_.fetch_add(more, std::memory_order_acq_rel);
        return true;
    }
    // The credit of the next credit frame. acq_rel: pairs with grant(); owed credit is granted once.
    uint64_t owed() const noexcept { return owed_.load(std::memory_order_acquire); }
    void note_granted(uint64_t bytes) noexcept { owed_.fetch_sub(bytes, std::memory_order_acq_rel); }
    bool finish_received = false; // the receiver's own

    // --- abort by the host ---
    void set_abort(uint64_t reason, std::string_view text) noexcept {
        const std::lock_guard hold(abort_lock_);
        put_u64(abort_, reason);
        const size_t size = std::min(text.size(), frame_text_max);
        if (size != 0) memcpy(abort_ + 8, text.data(), size);
        abort_bytes_ = 8 + size;
    }
    // The payload of the frame: its size, 0 if there is none to send.
    size_t get_abort(unsigned char (&to)[frame_control_max]) noexcept {
        const std::lock_guard hold(abort_lock_);
        memcpy(to, abort_, abort_bytes_);
        return abort_bytes_;
    }

  private:
    const uint64_t window_;
    std::atomic<uint64_t> received_{0}, granted_, owed_{0};
    const uint64_t max_credit_;
    std::atomic<uint64_t> credit_;
    std::mutex abort_lock_; // guards the rest
    size_t abort_bytes_ = 0;
    unsigned char abort_[frame_control_max];
};

// The content of an abort frame, as the end of a stream.
inline Ending aborted_by_peer(const unsigned char *payload, size_t size) noexcept {
    char text[frame_text_max];
    const size_t text_bytes = size - 8;
    if (text_bytes != 0) memcpy(text, payload + 8, text_bytes);
    make_printable(text, text_bytes);
    return {Error::make(MUSTER_E_ABORTED, "aborted by the peer%s%.*s", text_bytes == 0 ? "" : ": ",
                        static_cast<int>(text_bytes), text),
            get_u64(payload)};
}

// For how long nothing was received. Loop thread, but for last_received_ns().
class PeerSilence {
  public:
    enum class Change : uint8_t { none, silent, dead };

    void set_timeouts(const PeerTimeouts &timeouts) noexcept { timeouts_ = timeouts; }
    // True: the peer had been silent and is back.
    bool on_received(int64_t now) noexcept {
        excuse(now);
        return std::exchange(silent_, false);
    }
    void excuse(int64_t now) noexcept { last_.store(now, std::memory_order_relaxed); } // this process was late itself
    int64_t duration_ns(int64_t now) const noexcept { return now - last_received_ns(); }
    int64_t last_received_ns() const noexcept { return last_.load(std::memory_order_relaxed); } // any thread
    Change check(int64_t now) noexcept {
        const int64_t quiet = duration_ns(now);
        if (timeouts_.dead_ns >= 0 && quiet >= timeouts_.dead_ns) return Change::dead;
        if (quiet < timeouts_.silent_ns || std::exchange(silent_, true)) return Change::none;
        return Change::silent;
    }

  private:
    PeerTimeouts timeouts_;
    bool silent_ = false;
    std::atomic<int64_t> last_{0}; // relaxed: a counter
};

} // namespace muster
