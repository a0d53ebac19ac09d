// SPDX-License-Identifier: MIT
#pragma once
// Where a member is handed memory by others of its host: an abstract Unix socket, which takes datagrams. Its random
// name and a secret are told on the links of the cluster only; whoever sends has to show the secret, and to be the same
// user.
#include "base/fd.hpp"
#include "queue/queue.hpp"
#include "transport/handshake.hpp"

#include <array>
#include <string_view>

namespace muster {

// A value.
struct InboxAddress {
    HostIdentity host{};
    std::array<unsigned char, 16> name{}, secret{};

    static InboxAddress parse(std::string_view bytes); // of what is none: one that is near nobody
    std::string bytes() const;
    std::string place() const { return bytes().substr(0, 28); } // the same for all that are near each other
    bool known() const noexcept { return name[0] != 0; }
    bool near(const InboxAddress &other) const noexcept {
        return known() && other.known() && host.same_place(other.host);
    }
};

// What somebody has put there. A value.
constexpr size_t max_memory_head_bytes = 512;

struct Parcel {
    std::string words;
    Fd memory;
};

// The cluster's thread, once it is there.
class MemoryInbox final : public Object, private Source {
  public:
    static Result<Ref<MemoryInbox>> make(const HostIdentity &host);
    Result<void> watch(Queue &queue, uint64_t number); // leave() ends it
    void leave() noexcept;
    const InboxAddress &address() const noexcept { return address_; }

    // OK; AGAIN: there is no room now; else nobody takes it there.
    Status put(const InboxAddress &to, std::string_view words, int memory) noexcept;
    bool take(Parcel &out); // false: nothing is there, and the watch is armed

  private:
    MemoryInbox(Fd socket, const InboxAddress &address) noexcept : socket_(std::move(socket)), address_(address) {}
    uint32_t on_fd(uint32_t) noexcept override { return 1; }
    Object &owner() noexcept override { return *this; }

    const Fd socket_;
    const InboxAddress address_;
    Ref<Queue> queue_;
};

} // namespace muster
