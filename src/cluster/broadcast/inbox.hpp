// SPDX-License-Identifier: MIT
#pragma once
// Where a member receives memory from other members on its host: a datagram socket with an abstract Unix address. Its
// random name and a secret travel on the links of the cluster only; a sender has to show the secret, and to be the same
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

    static InboxAddress parse(std::string_view bytes); // malformed: an address that is unknown
    std::string bytes() const;
    std::string host_key() const { return bytes().substr(0, 28); } // the same for all members of a host
    bool known() const noexcept { return name[0] != 0; }
    bool same_host(const InboxAddress &other) const noexcept {
        return known() && other.known() && host.same_place(other.host);
    }
};

constexpr size_t max_memory_head_bytes = 512;

// A received descriptor, and the bytes sent with it. A value.
struct ReceivedMemory {
    std::string head;
    Fd memory;
};

// The cluster's thread, once that runs.
class MemoryInbox final : public Object, private Source {
  public:
    static Result<Ref<MemoryInbox>> make(const HostIdentity &host);
    Result<void> watch(Queue &queue, uint64_t number); // leave() ends it
    void leave() noexcept;
    const InboxAddress &address() const noexcept { return address_; }

    // OK; AGAIN: there is no room now; otherwise no member receives there.
    Status put(const InboxAddress &to, std::string_view words, int memory) noexcept;
    bool take(ReceivedMemory &out); // false: nothing has arrived, and the watch is armed

  private:
    MemoryInbox(Fd socket, const InboxAddress &address) noexcept : socket_(std::move(socket)), address_(address) {}
    uint32_t on_fd(uint32_t) noexcept override { return 1; }
    Object &owner() noexcept override { return *this; }

    const Fd socket_;
    const InboxAddress address_;
    Ref<Queue> queue_;
};

} // namespace muster
