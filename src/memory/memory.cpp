// SPDX-License-Identifier: MIT
// How the locales come to one memory, and the calls that all of them make.
#include "memory/memory.hpp"

#include "group/memory_offers.hpp"
#include "transport/hub.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace muster {

namespace {

// An operation of the group on bytes.
Result<void> exchange(Group &group, uint32_t kind, const void *input, void *output, uint64_t bytes,
                      Deadline &deadline) {
    muster_group_operation what{};
    what.struct_size = sizeof what;
    what.kind = kind;
    what.type = MUSTER_TYPE_U8;
    what.count = bytes;
    what.input = input;
    what.output = output;
    auto operation = group.read(what);
    if (!operation) return operation.error();
    return group.perform(*operation, deadline);
}

// Bytes that this process can allocate now: of the host, and of its control group. Beyond them the kernel would end a
// process rather than refuse.
uint64_t available_memory() noexcept {
    uint64_t found = UINT64_MAX;
    const auto read = [&](const char *path, const char *format, uint64_t unit) {
        std::FILE *const file = std::fopen(path, "re");
        if (file == nullptr) return;
        char line[128];
        unsigned long long value = 0;
        while (std::fgets(line, sizeof line, file) != nullptr)
            if (std::sscanf(line, format, &value) == 1) found = std::min<uint64_t>(found, value * unit);
        std::fclose(file);
    };
    read("/proc/meminfo", "MemAvailable: %llu kB", 1024);
    read("/sys/fs/cgroup/memory.max", "%llu", 1);
    return found;
}

// What each locale contributes: all of it has to be the same everywhere. Padding is none.
struct LocaleInfo {
    uint64_t locale_bits, max_tokens, max_pending, segment_bytes, symmetric_bytes;
    unsigned char boot[16];
    uint64_t net_namespace, user;
};
static_assert(sizeof(LocaleInfo) == 72);

LocaleInfo describe_locale(Group &group, const MemoryShape &shape) {
    const HostIdentity &host = Hub::of(group.context()).host;
    LocaleInfo info{};
    info.locale_bits = shape.locale_bits;
    info.max_tokens = shape.max_tokens;
    info.max_pending = shape.max_pending;
    info.segment_bytes = shape.segment_bytes;
    info.symmetric_bytes = shape.symmetric_bytes;
    std::memcpy(info.boot, host.boot.data(), sizeof info.boot);
    info.net_namespace = host.net_namespace;
    info.user = host.user;
    return info;
}

Error on_rank(uint32_t rank, Error why) noexcept {
    why.rank = rank;
    return why;
}

Result<void> compare_locales(Group &group, const MemoryShape &shape, Deadline &deadline) {
    const LocaleInfo own = describe_locale(group, shape);
    std::vector<LocaleInfo> all(group.size());
    if (auto done = exchange(group, MUSTER_GROUP_ALL_GATHER, &own, all.data(), sizeof own, deadline); !done)
        return done;
    for (uint32_t r = 0; r < all.size(); r++) {
        const LocaleInfo &one = all[r];
        if (std::memcmp(&one, &all[0], offsetof(LocaleInfo, boot)) != 0)
            return on_rank(r, Error::make(MUSTER_E_MISMATCH,
                                          "locale %u has segments of %llu bytes, %llu of them symmetric, and %llu bits "
                                          "for the locale; locale 0 has %llu, %llu, %llu",
                                          r, static_cast<unsigned long long>(one.segment_bytes),
                                          static_cast<unsigned long long>(one.symmetric_bytes),
                                          static_cast<unsigned long long>(one.locale_bits),
                                          static_cast<unsigned long long>(all[0].segment_bytes),
                                          static_cast<unsigned long long>(all[0].symmetric_bytes),
                                          static_cast<unsigned long long>(all[0].locale_bits)));
    }
    for (uint32_t r = 0; r < all.size(); r++)
        if (std::memcmp(all[r].boot, all[0].boot, sizeof(LocaleInfo) - offsetof(LocaleInfo, boot)) != 0)
            return on_rank(r, Error::make(MUSTER_E_UNSUPPORTED,
                                          "locale %u is on another host than locale 0, or belongs to another user", r));
    return {};
}

// The worst result of all locales, so that all of them return the same.
Result<void> agree(Group &group, const Error &own, Deadline &deadline) {
    std::vector<int32_t> all(group.size());
    const int32_t status = own.status;
    if (auto done = exchange(group, MUSTER_GROUP_ALL_GATHER, &status, all.data(), sizeof status, deadline); !done)
        return done;
    if (own.status != MUSTER_OK) return own;
    for (uint32_t r = 0; r < all.size(); r++)
        if (all[r] != MUSTER_OK) return on_rank(r, Error::make(all[r], "locale %u could not share memory", r));
    return {};
}

} // namespace

// Rank 0 makes the memory, and the others map it.
Result<Segment> Memory::share(Group &group, const MemoryShape &shape, Deadline &deadline) {
    Segment own;
    Error why;
    std::vector<unsigned char> messages(group.rank() == 0 ? group.size() * MemoryOffers::bytes : 0);
    std::optional<MemoryOffers> offers;
    if (group.rank() == 0) {
        const uint64_t available = available_memory();
        if (shape.bytes() > available) {
            why =
                Error::make(MUSTER_E_NOMEM, "the segments need %llu bytes, and %llu are available",
                            static_cast<unsigned long long>(shape.bytes()), static_cast<unsigned long long>(available));
        } else if (auto made = make_segment(shape.bytes()); !made) {
            why = made.error();
        } else {
            own = std::move(*made);
            offers.emplace(group.context(), own.memory.get(), group.size() - 1);
            if (!offers->make()) why = Error::make(MUSTER_E_LIMIT, "no descriptors for the other locales");
            for (uint32_t r = 1; r < group.size() && why.status == MUSTER_OK; r++)
                offers->message(r - 1).copy(reinterpret_cast<char *>(&messages[r * MemoryOffers::bytes]),
                                            MemoryOffers::bytes);
        }
    }
    char message[MemoryOffers::bytes] = {};
    if (auto done = exchange(group, MUSTER_GROUP_SCATTER, messages.data(), message, sizeof message, deadline); !done)
        return done.error();
    if (group.rank() != 0) {
        own = MemoryOffers::fetch({message, sizeof message}, shape.bytes(), deadline);
        if (own.mapping == nullptr)
            why = Error::make(MUSTER_E_NOMEM, "the memory of locale 0, %llu bytes, cannot be mapped",
                              static_cast<unsigned long long>(shape.bytes()));
    }
    if (auto agreed = agree(group, why, deadline); !agreed) return agreed.error();
    return own;
}

// Rank 0, before any other locale uses it.
Result<void> Memory::lay_out() {
    for (uint32_t r = 0; r < shape.locales; r++) heap(r).initialise();
    muster_epoch_config config{};
    config.struct_size = sizeof config;
    config.flags = MUSTER_EPOCH_SHARED;
    config.max_tokens = shape.max_tokens;
    config.max_pending = shape.max_pending;
    config.fd = mapped_.memory.get();
    config.offset = shape.epoch_at();
    muster_epoch *made = nullptr;
    muster_error detail;
    if (const Status status = muster_epoch_create(&config, &made, &detail); status != MUSTER_OK)
        return Error::make(status, "%s", detail.message);
    muster_epoch_release(made); // the memory keeps it
    return {};
}

Result<Ref<Memory>> Memory::open(Group &group, MemoryShape shape, Deadline &deadline) {
    shape.locales = group.size();
    if (auto same = compare_locales(group, shape, deadline); !same) return same.error();
    auto shared = share(group, shape, deadline);
    if (!shared) return shared.error();
    for (Fd &event : shared->events) event.reset();
    auto made = Ref<Memory>::adopt(new Memory(group, shape, std::move(*shared)));
    Error why;
    if (group.rank() == 0)
        if (auto done = made->lay_out(); !done) why = done.error();
    if (auto agreed = agree(group, why, deadline); !agreed) return agreed.error(); // also: it is laid out
    return made;
}

unsigned char *Memory::address(muster_gptr pointer, uint64_t bytes) const noexcept {
    const uint32_t locale = shape.locale_of(pointer);
    const uint64_t offset = shape.offset_of(pointer);
    if (offset == 0 || locale >= shape.locales || offset > shape.segment_bytes || bytes > shape.segment_bytes - offset)
        return nullptr;
    return reinterpret_cast<unsigned char *>(bases_[locale]) + offset;
}

Heap Memory::heap(uint32_t locale) const noexcept {
    auto *const heads = reinterpret_cast<SegmentHead *>(base() + shape.heads_at());
    return Heap(heads[locale], reinterpret_cast<unsigned char *>(bases_[locale]), shape.symmetric_bytes,
                shape.segment_bytes);
}

Result<uint64_t> Memory::allocate_symmetric(uint64_t bytes, uint64_t alignment, Deadline &deadline) {
    struct Request {
        uint64_t bytes, alignment, at;
    };
    const std::lock_guard hold(lock_);
    const uint64_t used = symmetric_used(), at = (used + alignment - 1) / alignment * alignment;
    const Request own{bytes, alignment, at};
    std::vector<Request> all(group_->size());
    if (auto done = exchange(*group_, MUSTER_GROUP_ALL_GATHER, &own, all.data(), sizeof own, deadline); !done)
        return done.error();
    for (uint32_t r = 0; r < all.size(); r++)
        if (std::memcmp(&all[r], &all[0], sizeof own) != 0)
            return on_rank(r, Error::make(MUSTER_E_MISMATCH,
                                          "locale %u allocates %llu bytes, aligned to %llu, and locale 0 %llu, to %llu",
                                          r, static_cast<unsigned long long>(all[r].bytes),
                                          static_cast<unsigned long long>(all[r].alignment),
                                          static_cast<unsigned long long>(all[0].bytes),
                                          static_cast<unsigned long long>(all[0].alignment)));
    if (at > shape.symmetric_bytes || bytes > shape.symmetric_bytes - at)
        return Error::make(MUSTER_E_LIMIT, "the symmetric part has %llu bytes, of which %llu are given out",
                           static_cast<unsigned long long>(shape.symmetric_bytes),
                           static_cast<unsigned long long>(used));
    symmetric_.store(at + bytes, std::memory_order_relaxed);
    return at;
}

Result<muster_epoch *> Memory::epoch() {
    const std::lock_guard hold(epoch_lock_);
    if (epoch_ != nullptr) return epoch_;
    muster_epoch_config config{};
    config.struct_size = sizeof config;
    config.flags = MUSTER_EPOCH_SHARED;
    config.fd = mapped_.memory.get();
    config.offset = shape.epoch_at();
    muster_error detail;
    if (const Status status = muster_epoch_open(&config, &epoch_, &detail); status != MUSTER_OK)
        return Error::make(status, "%s", detail.message);
    return epoch_;
}

} // namespace muster
