// SPDX-License-Identifier: MIT
#include "transport/segment.hpp"

#include "transport/descriptor_channel.hpp"

#include <cstring>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace muster {

namespace {
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// By its name. A kernel without names is no reason to refuse: the test by writing shows nearly as much.
bool called_eventfd(int fd) noexcept {
    char path[40], name[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, name, sizeof name);
    return n < 0 || std::string_view(name, static_cast<size_t>(n)) == "anon_inode:[eventfd]";
}
} // namespace

Result<void> check_shared_memory(int memory, size_t size) noexcept {
    struct stat about {};
    const int seals = fcntl(memory, F_GET_SEALS); // -1 for memory that cannot be sealed: all bits are set in that, too
    if (seals < 0 || (seals & wanted_seals) != wanted_seals)
        return Error::make(MUSTER_E_PROTOCOL, "the shared memory of the peer is not sealed");
    if (fstat(memory, &about) != 0 || about.st_size != static_cast<off_t>(size) ||
        static_cast<uint64_t>(about.st_blocks) * 512 < size)
        return Error::make(MUSTER_E_PROTOCOL, "the shared memory of the peer has another size");
    return {};
}

Result<void> check_events(int one, int other) noexcept {
    const int events[] = {one, other};
    const uint64_t rung = 2; // a semaphore would return one of the two
    bool good = true;
    for (const int notifier : events) {
        struct stat kind {};
        const int flags = fcntl(notifier, F_GETFL);
        // An anonymous inode: neither a pipe, nor a socket, nor a file.
        good = good && flags >= 0 && fstat(notifier, &kind) == 0 && (kind.st_mode & S_IFMT) == 0 &&
               called_eventfd(notifier) && fcntl(notifier, F_SETFL, flags | O_NONBLOCK) == 0;
    }
    for (const int notifier : events)
        good = good && uncancelled::write(notifier, &rung, sizeof rung) == static_cast<ssize_t>(sizeof rung);
    for (const int notifier : events) {
        uint64_t count = 0;
        good = good && uncancelled::read(notifier, &count, sizeof count) == static_cast<ssize_t>(sizeof count) &&
               count == rung;
    }
    if (!good) return Error::make(MUSTER_E_PROTOCOL, "the doorbell of the peer is none");
    return {};
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
    if (const Result<void> memory = check_shared_memory(s.memory.get(), size); !memory) return memory.error();
    if (const Result<void> events = check_events(s.events[0].get(), s.events[1].get()); !events) return events.error();
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

ssize_t send_segment(int socket, std::string_view bytes, const Segment &segment) noexcept {
    const int descriptors[segment_descriptors] = {segment.memory.get(), segment.events[0].get(),
                                                  segment.events[1].get()};
    return DescriptorChannel::send(socket, bytes, descriptors, segment_descriptors);
}

} // namespace muster
