// SPDX-License-Identifier: MIT
#include "transport/segment.hpp"

#include <cstring>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace muster {

namespace {
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}

Segment::Segment(Segment &&other) noexcept
    : memory(std::move(other.memory)), events{std::move(other.events[0]), std::move(other.events[1])},
      mapping(std::exchange(other.mapping, nullptr)), size(std::exchange(other.size, 0)) {}

Segment &Segment::operator=(Segment &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(events[0], other.events[0]);
    std::swap(events[1], other.events[1]);
    std::swap(mapping, other.mapping);
    std::swap(size, other.size);
    return *this;
}

Segment::~Segment() {
    if (mapping != nullptr) munmap(mapping, size);
}

Result<Segment> make_segment(size_t size) noexcept {
    Segment s;
    s.size = size;
    s.memory = Fd(memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    for (Fd &event : s.events) event = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!s.memory || !s.events[0] || !s.events[1]) return Error::from_errno(errno, MUSTER_OK, "shared memory");
    // Allocated now: a page that could not be had later would be a SIGBUS in the host.
    if (ftruncate(s.memory.get(), static_cast<off_t>(size)) != 0)
        return Error::from_errno(errno, MUSTER_OK, "shared memory of %zu bytes", size);
    if (const int rc = posix_fallocate(s.memory.get(), 0, static_cast<off_t>(size)); rc != 0)
        return Error::from_errno(rc, MUSTER_E_NOMEM, "shared memory of %zu bytes", size);
    if (fcntl(s.memory.get(), F_ADD_SEALS, wanted_seals) != 0)
        return Error::from_errno(errno, MUSTER_OK, "seal shared memory");
    void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, s.memory.get(), 0);
    if (mapping == MAP_FAILED) return Error::from_errno(errno, MUSTER_E_NOMEM, "map %zu shared bytes", size);
    s.mapping = mapping;
    return s;
}

Result<Segment> take_segment(Fd (&fds)[segment_descriptors], size_t size) noexcept {
    Segment s;
    s.size = size;
    s.memory = std::move(fds[0]);
    s.events[0] = std::move(fds[1]);
    s.events[1] = std::move(fds[2]);
    struct stat about {};
    const int seals = fcntl(s.memory.get(), F_GET_SEALS);
    if (seals < 0 || (seals & wanted_seals) != wanted_seals)
        return Error::make(MUSTER_E_PROTOCOL, "the shared memory of the peer is not sealed");
    if (fstat(s.memory.get(), &about) != 0 || about.st_size != static_cast<off_t>(size) ||
        static_cast<uint64_t>(about.st_blocks) * 512 < size)
        return Error::make(MUSTER_E_PROTOCOL, "the shared memory of the peer has another size");
    for (Fd &event : s.events) {
        struct stat kind {};
        // Neither a pipe that could fill up nor a file: an anonymous inode that can be written without waiting.
        if (fstat(event.get(), &kind) != 0 || (kind.st_mode & S_IFMT) != 0 ||
            fcntl(event.get(), F_SETFL, O_NONBLOCK) != 0)
            return Error::make(MUSTER_E_PROTOCOL, "the doorbell of the peer is none");
    }
    void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, s.memory.get(), 0);
    if (mapping == MAP_FAILED) return Error::from_errno(errno, MUSTER_E_NOMEM, "map %zu shared bytes", size);
    s.mapping = mapping;
    return s;
}

Result<Ref<Duplex>> segment_duplex(Segment &segment, uint64_t window, int own, bool fresh) noexcept {
    auto own_event = duplicate(segment.events[own].get(), "a doorbell");
    if (!own_event) return own_event.error();
    auto peer_event = duplicate(segment.events[1 - own].get(), "a doorbell");
    if (!peer_event) {
        ::close(*own_event);
        return peer_event.error();
    }
    return Duplex::make_shared(std::exchange(segment.mapping, nullptr), window, own, *own_event, *peer_event, fresh);
}

ssize_t send_segment(int socket, const std::string &bytes, const Segment &segment) noexcept {
    iovec span{const_cast<char *>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * segment_descriptors)] = {};
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * segment_descriptors);
    const int fds[segment_descriptors] = {segment.memory.get(), segment.events[0].get(), segment.events[1].get()};
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    const ssize_t n = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

ssize_t receive_segment(int socket, void *data, size_t size, Fd (&fds)[segment_descriptors]) noexcept {
    iovec span{data, size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * segment_descriptors)];
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return n;
    for (cmsghdr *head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (i < segment_descriptors)
                fds[i] = Fd(fd);
            else
                ::close(fd);
        }
    }
    return n;
}

} // namespace muster
