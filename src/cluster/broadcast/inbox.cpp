// SPDX-License-Identifier: MIT
#include "cluster/broadcast/inbox.hpp"

#include "base/codec.hpp"
#include "base/uncancelled.hpp"

#include <algorithm>
#include <cstring>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace muster {

namespace {

constexpr std::string_view prefix = "muster-inbox-";
constexpr size_t secret_bytes = 16;
constexpr size_t address_bytes = 16 + 8 + 4 + 16 + 16;

sockaddr_un abstract_address(const InboxAddress &inbox, socklen_t &length) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    char *const name = address.sun_path + 1; // behind the zero that makes it abstract
    memcpy(name, prefix.data(), prefix.size());
    memcpy(name + prefix.size(), inbox.name.data(), inbox.name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + prefix.size() + inbox.name.size());
    return address;
}

// In a time that tells nothing of where they differ.
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
    static constexpr char digits[] = "0123456789abcdef";
    InboxAddress address;
    address.host = host;
    if (getrandom(address.name.data(), 16, 0) != 16 || getrandom(address.secret.data(), 16, 0) != 16)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "make a random name");
    for (unsigned char &c : address.name) c = static_cast<unsigned char>(digits[c & 15]);
    Fd made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1; // so that the kernel says who has sent what
    socklen_t length = 0;
    const sockaddr_un at = abstract_address(address, length);
    if (!made || setsockopt(made.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        bind(made.get(), reinterpret_cast<const sockaddr *>(&at), length) != 0)
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
    socklen_t length = 0;
    sockaddr_un at = abstract_address(to, length);
    iovec spans[2] = {{const_cast<unsigned char *>(to.secret.data()), to.secret.size()},
                      {const_cast<char *>(words.data()), words.size()}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof memory)] = {};
    msghdr message{};
    message.msg_name = &at;
    message.msg_namelen = length;
    message.msg_iov = spans;
    message.msg_iovlen = 2;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof memory);
    memcpy(CMSG_DATA(head), &memory, sizeof memory);
    for (;;) {
        if (sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return MUSTER_OK;
        if (errno == EINTR) continue;
        // Its queue is full, or too many descriptors are on their way.
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS) return MUSTER_AGAIN;
        return MUSTER_E_UNREACHABLE;
    }
}

bool MemoryInbox::take(ReceivedMemory &out) {
    for (int strangers = 0; strangers < 256; strangers++) {
        char bytes[secret_bytes + max_memory_head_bytes];
        iovec span{bytes, sizeof bytes};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
        msghdr message{};
        message.msg_iov = &span;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false; // nothing more: the watch is armed
        Fd memory;
        bool same_user = false;
        for (cmsghdr *head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
            if (head->cmsg_level != SOL_SOCKET) continue;
            if (head->cmsg_type == SCM_RIGHTS) {
                for (size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                    int fd = -1;
                    memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
                    memory = Fd(fd);
                }
            } else if (head->cmsg_type == SCM_CREDENTIALS) {
                ucred sender{};
                memcpy(&sender, CMSG_DATA(head), sizeof sender);
                same_user = sender.uid == geteuid();
            }
        }
        const std::string_view all(bytes, static_cast<size_t>(got));
        if (!memory || !same_user || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || all.size() < secret_bytes ||
            !same(address_.secret, all))
            continue; // an unauthenticated peer's
        out.head = all.substr(secret_bytes);
        out.memory = std::move(memory);
        return true;
    }
    queue_->modify_fd(*this, socket_.get(), EPOLLIN); // there is other work, too; the rest in the next turn
    return false;
}

} // namespace muster
