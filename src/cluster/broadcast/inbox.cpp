// SPDX-License-Identifier: MIT
#include "cluster/broadcast/inbox.hpp"

#include "base/codec.hpp"
#include "transport/descriptor_channel.hpp"

#include <algorithm>
#include <cstring>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace muster {

namespace {

constexpr std::string_view prefix = "@muster-inbox-";
constexpr size_t secret_bytes = 16;

SocketAddress socket_address(const InboxAddress &inbox) noexcept {
    char name[prefix.size() + 16];
    prefix.copy(name, prefix.size());
    memcpy(name + prefix.size(), inbox.name.data(), 16);
    return unix_socket_address({name, sizeof name});
}

// In a time that does not depend on where they differ.
bool same(const std::array<unsigned char, secret_bytes> &secret, std::string_view shown) noexcept {
    unsigned char differs = 0;
    for (size_t i = 0; i < secret.size(); i++)
        differs |= static_cast<unsigned char>(secret[i] ^ static_cast<unsigned char>(shown[i]));
    return differs == 0;
}

} // namespace

InboxAddress InboxAddress::parse(std::string_view bytes) {
    ByteReader reader(bytes);
    InboxAddress inbox;
    inbox.host.boot = reader.array<16>();
    inbox.host.net_namespace = reader.number<uint64_t>();
    inbox.host.user = reader.number<uint32_t>();
    inbox.name = reader.array<16>();
    inbox.secret = reader.array<16>();
    return reader.is_complete() ? inbox : InboxAddress();
}

std::string InboxAddress::bytes() const {
    std::string to;
    ByteWriter(to).bytes(host.boot).number(host.net_namespace).number(host.user).bytes(name).bytes(secret);
    return to;
}

Result<Ref<MemoryInbox>> MemoryInbox::make(const HostIdentity &host) {
    InboxAddress address;
    address.host = host;
    memcpy(address.name.data(), DescriptorChannel::random_digits(16).data(), 16);
    if (getrandom(address.secret.data(), 16, 0) != 16)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "make a random name");
    Fd made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1; // so that the kernel reports the sender of each datagram
    const SocketAddress at = socket_address(address);
    if (!made || setsockopt(made.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        bind(made.get(), at.get(), at.size) != 0)
        return Error::from_errno(errno, MUSTER_OK, "a socket for shared memory");
    return Ref<MemoryInbox>::adopt(new MemoryInbox(std::move(made), address));
}

Result<void> MemoryInbox::watch(Queue &queue, uint64_t number) {
    queue_ = Ref<Queue>(&queue);
    queue_->attach(*this, number);
    return queue_->add_fd(*this, socket_.get(), EPOLLIN);
}

void MemoryInbox::leave() noexcept {
    if (!queue_) return;
    queue_->remove_fd(*this, socket_.get());
    queue_->detach(*this);
    queue_.reset();
}

Status MemoryInbox::put(const InboxAddress &to, std::string_view words, int memory) noexcept {
    // One more than the other side accepts: a truncated datagram is refused.
    char bytes[secret_bytes + max_memory_head_bytes + 1];
    memcpy(bytes, to.secret.data(), secret_bytes);
    const size_t size = secret_bytes + words.copy(bytes + secret_bytes, max_memory_head_bytes + 1);
    const SocketAddress at = socket_address(to);
    const ssize_t sent = DescriptorChannel::send(socket_.get(), {bytes, size}, &memory, 1, &at);
    if (sent >= 0) return MUSTER_OK;
    // Its queue is full, or too many descriptors are in transit.
    if (sent == -EAGAIN || sent == -ENOBUFS || sent == -ENOMEM || sent == -ETOOMANYREFS) return MUSTER_AGAIN;
    return MUSTER_E_UNREACHABLE;
}

bool MemoryInbox::take(ReceivedMemory &out) {
    for (int reads = 0; reads < 256; reads++) {
        char bytes[secret_bytes + max_memory_head_bytes + 1]; // one more than a whole message has
        Fd memory;
        uint32_t user = UINT32_MAX;
        const ssize_t got = DescriptorChannel::receive(socket_.get(), bytes, sizeof bytes, &memory, 1, &user);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false; // nothing more: the watch is armed
        const std::string_view all(bytes, static_cast<size_t>(got));
        if (!memory || user != geteuid() || all.size() < secret_bytes || all.size() == sizeof bytes ||
            !same(address_.secret, all))
            continue; // an unauthenticated peer's
        out.head = all.substr(secret_bytes);
        out.memory = std::move(memory);
        return true;
    }
    queue_->modify_fd(*this, socket_.get(), EPOLLIN); // other events have to be served, too; the rest in the next turn
    return false;
}

} // namespace muster
