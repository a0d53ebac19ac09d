// SPDX-License-Identifier: MIT
#pragma once
// One direction of a sealed link: libsodium's secretstream, so that frames can be neither read, changed, dropped,
// repeated nor reordered in transit. The first 24 bytes of the direction are its prefix, followed by frames.
#include <cstddef>
#include <memory>

namespace muster {

constexpr size_t seal_key_bytes = 32;
constexpr size_t seal_prefix_bytes = 24;
constexpr size_t seal_overhead_bytes = 17;
constexpr size_t seal_lead_bytes = 1; // of the overhead, the part before the payload

// Initialises libsodium and ensures that the kernel has random bytes: without them libsodium would abort the process of
// the host. Once per context.
bool start_crypto() noexcept;

// One user at a time.
class Sealer {
  public:
    explicit Sealer(const unsigned char *key);
    ~Sealer();
    const unsigned char *prefix() const noexcept { return prefix_; }
    // `frame`: header (8), one free byte, `size` bytes of payload, 16 free bytes. Seals in place.
    void seal(unsigned char *frame, size_t size) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
    unsigned char prefix_[seal_prefix_bytes];
};

// One user at a time.
class Opener {
  public:
    explicit Opener(const unsigned char *key);
    ~Opener();
    bool ready() const noexcept { return prefix_have_ == seal_prefix_bytes; }
    // Removes bytes of the prefix from the front of received bytes. False: it is not a prefix.
    bool take_prefix(const unsigned char *&data, size_t &size) noexcept;
    // Opens the bytes after a header in place: `size` bytes, of which the payload starts at seal_lead_bytes. False:
    // they were not sealed by the peer, or are out of order.
    bool open(unsigned char *sealed, size_t size, const unsigned char *header) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
    unsigned char key_[seal_key_bytes];
    unsigned char prefix_[seal_prefix_bytes];
    size_t prefix_have_ = 0;
};

} // namespace muster
