// SPDX-License-Identifier: MIT
#pragma once
// Memory of rank 0 for the other members of a group on its host: an offer for each of them, which they get as a message
// of fixed size and exchange for a descriptor.
#include "context/context.hpp"
#include "transport/descriptor_channel.hpp"
#include "transport/segment.hpp"

#include <deque>
#include <string>

namespace muster {

class MemoryOffers {
  public:
    static constexpr size_t bytes = 128; // of a message: size of the name, name, token; or zeros: there is no offer

    // The offers end with this object: the channel refers to them.
    MemoryOffers(Context &context, int memory, uint32_t count);
    MemoryOffers(const MemoryOffers &) = delete;
    MemoryOffers &operator=(const MemoryOffers &) = delete;
    ~MemoryOffers();
    bool make() noexcept; // false: not all could be made
    std::string message(uint32_t index) const;

    // The other side: maps the memory, which has this size. Empty: not possible. The descriptor stays in the segment.
    static Segment fetch(std::string_view message, size_t size, Deadline &deadline) noexcept;

  private:
    // Loop thread.
    class Offer final : public DescriptorChannel::Owner {
      public:
        explicit Offer(int memory) noexcept : memory_(memory) {}
        void token_shown(Fd socket) noexcept override;
        DescriptorOffer offer;

      private:
        const int memory_;
    };

    Context &context_;
    std::deque<Offer> offers_;
};

} // namespace muster
