// SPDX-License-Identifier: MIT
#pragma once
// From the host's configuration to settings that were checked, the secret found.
#include "context/context.hpp"

namespace muster {

// Wipes a secret when the scope ends.
class WipeAtEnd {
  public:
    explicit WipeAtEnd(std::vector<unsigned char> &secret) noexcept : secret_(secret) {}
    WipeAtEnd(const WipeAtEnd &) = delete;
    WipeAtEnd &operator=(const WipeAtEnd &) = delete;
    ~WipeAtEnd();

  private:
    std::vector<unsigned char> &secret_;
};

// Reads secret_fd to its end and closes it, also on failure.
Result<void> read_settings(const muster_context_config *config, ContextSettings &settings);

// The secret that only brokers have: the given bytes, or else the secret of MUSTER_BROKER_SECRET_FILE or
// MUSTER_BROKER_SECRET. Empty: none is set.
Result<void> read_broker_secret(const void *given, uint64_t bytes, std::vector<unsigned char> &secret);

} // namespace muster
