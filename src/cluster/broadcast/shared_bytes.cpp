// SPDX-License-Identifier: MIT
#include "cluster/broadcast/shared_bytes.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <sys/stat.h>

namespace muster {

namespace {

constexpr int wanted_seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
constexpr size_t write_at_once = 1 << 30; // the kernel accepts no more than 2 GiB

} // namespace

Result<Ref<BroadcastBytes>> BroadcastBytes::make(uint64_t size, bool read_here) {
    if (size > uint64_t{INT64_MAX}) return Error::make(MUSTER_E_LIMIT, "no memory has 2^63 bytes");
    Fd memory(memfd_create("muster-broadcast", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory || ftruncate(memory.get(), static_cast<off_t>(size)) != 0)
        return Error::from_errno(errno, MUSTER_OK, "memory for a broadcast");
    const auto bytes = Ref<BroadcastBytes>::adopt(new BroadcastBytes(std::move(memory), size));
    if (!read_here) return bytes;
    if (auto mapped = bytes->map(); !mapped) return mapped.error();
    return bytes;
}

Result<Ref<BroadcastBytes>> BroadcastBytes::take(Fd memory, uint64_t size) {
    struct stat about {};
    const int seals = fcntl(memory.get(), F_GET_SEALS); // -1 for memory that cannot be sealed
    if (seals < 0 || (seals & wanted_seals) != wanted_seals)
        return Error::make(MUSTER_E_PROTOCOL, "the memory of the broadcast is not sealed");
    // All its pages are allocated: a missing one would be allocated when it is read, which could fail then.
    if (fstat(memory.get(), &about) != 0 || static_cast<uint64_t>(about.st_size) != size ||
        static_cast<uint64_t>(about.st_blocks) * 512 < size)
        return Error::make(MUSTER_E_PROTOCOL, "the memory of the broadcast has another size");
    const auto bytes = Ref<BroadcastBytes>::adopt(new BroadcastBytes(std::move(memory), size));
    bytes->filled_ = size;
    if (auto mapped = bytes->map(); !mapped) return mapped.error();
    return bytes;
}

BroadcastBytes::~BroadcastBytes() {
    if (data_ != nullptr) munmap(const_cast<unsigned char *>(data_), size_);
}

// Private, though nothing is written there: a shared mapping of a writable descriptor prevents the seal, and kernels
// before 6.7 refuse such a mapping when the seal exists. The pages are the same.
Result<void> BroadcastBytes::map() noexcept {
    if (size_ == 0) return {};
    void *const at = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, memory_.get(), 0);
    if (at == MAP_FAILED) return Error::from_errno(errno, MUSTER_E_NOMEM, "map a broadcast");
    data_ = static_cast<const unsigned char *>(at);
    return {};
}

// Written, not copied into a mapping: a page that is not available is a status here and a SIGBUS there.
Result<void> BroadcastBytes::append(const void *data, size_t size) noexcept {
    const auto *from = static_cast<const unsigned char *>(data);
    while (size != 0) {
        const ssize_t wrote = pwrite(memory_.get(), from, std::min(size, write_at_once), static_cast<off_t>(filled_));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return Error::from_errno(errno, MUSTER_E_NOMEM, "memory for a broadcast");
        from += wrote;
        size -= static_cast<size_t>(wrote);
        filled_ += static_cast<uint64_t>(wrote);
    }
    return {};
}

Result<void> BroadcastBytes::seal() noexcept {
    if (fcntl(memory_.get(), F_ADD_SEALS, wanted_seals) != 0)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "seal a broadcast");
    return {};
}

} // namespace muster
