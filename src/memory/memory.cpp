// SPDX-License-Identifier: MIT
// How the locales come to one memory, and the calls that all of them make.
#include "memory/memory.hpp"

#include "group/memory_offers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace muster {

namespace {

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

Error on_rank(uint32_t rank, Error why) noexcept {
    why.rank = rank;
    return why;
}

} // namespace

// The first locale of each node makes its memory, and the others of that node map it.
Result<Segment> Memory::share(Group &group, const MemoryShape &shape, const MemoryNodes &nodes, Deadline &deadline) {
    Segment own;
    Error why;
    std::vector<char> messages(group.size() * MemoryOffers::bytes), received(messages.size());
    std::optional<MemoryOffers> offers;
    if (group.rank() == nodes.leader()) {
        const uint64_t available = available_memory();
        if (shape.bytes() > available) {
            why =
                Error::make(MUSTER_E_NOMEM, "the segments need %llu bytes, and %llu are available",
                            static_cast<unsigned long long>(shape.bytes()), static_cast<unsigned long long>(available));
        } else if (auto made = make_segment(shape.bytes()); !made) {
            why = made.error();
        } else {
            own = std::move(*made);
            offers.emplace(group.context(), own.memory.get(), static_cast<uint32_t>(nodes.here().size() - 1));
            if (!offers->make()) why = Error::make(MUSTER_E_LIMIT, "no descriptors for the other locales");
            for (uint32_t i = 1; i < nodes.here().size() && why.status == MUSTER_OK; i++)
                offers->message(i - 1).copy(&messages[nodes.here()[i] * MemoryOffers::bytes], MemoryOffers::bytes);
        }
    }
    if (auto done = exchange_bytes(group, MUSTER_GROUP_ALL_TO_ALL, messages.data(), received.data(),
                                   MemoryOffers::bytes, deadline);
        !done)
        return done.error();
    if (group.rank() != nodes.leader()) {
        own = MemoryOffers::fetch({&received[nodes.leader() * MemoryOffers::bytes], MemoryOffers::bytes}, shape.bytes(),
                                  deadline);
        if (own.mapping == nullptr)
            why = Error::make(MUSTER_E_NOMEM, "the memory of locale %u, %llu bytes, cannot be mapped", nodes.leader(),
                              static_cast<unsigned long long>(shape.bytes()));
    }
    if (auto agreed = agree_on_result(group, why, deadline); !agreed) return agreed.error();
    return own;
}

Memory::Memory(Group &group, const MemoryShape &what, MemoryNodes where, Segment mapped)
    : shape(what), nodes(std::move(where)), group_(&group), mapped_(std::move(mapped)), bases_(what.locales),
      view_bases_(what.locales), heads_(what.locales) {
    const uint64_t first = reinterpret_cast<uintptr_t>(base()) + what.segments_at(); // found once: it takes time
    auto *const heads = reinterpret_cast<SegmentHead *>(base() + what.heads_at());
    for (uint32_t i = 0; i < nodes.here().size(); i++) {
        bases_[nodes.here()[i]] = first + i * what.segment_bytes;
        view_bases_[nodes.here()[i]] = bases_[nodes.here()[i]] - what.first();
        heads_[nodes.here()[i]] = &heads[i];
    }
}

Memory::~Memory() {
    group_->context().metrics.remove(metrics_);
    if (kept_rounds_) kept_rounds_->stop();
    remote_.reset();
    muster_epoch_release(epoch_);
}

// The first locale of a node, before any other one uses it.
Result<void> Memory::lay_out() {
    for (const uint32_t locale : nodes.here()) heap(locale).initialise();
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
    if (nodes.nodes.size() != 1) unwrap(made)->lead();
    muster_epoch_release(made); // the memory keeps it
    return {};
}

Result<Ref<Memory>> Memory::open(Group &group, MemoryShape shape, Deadline &deadline) {
    shape.locales = group.size();
    auto nodes = find_nodes(group, shape, deadline);
    if (!nodes) return nodes.error();
    shape.here = static_cast<uint32_t>(nodes->here().size());
    shape.incarnation = nodes->incarnation_of(shape.incarnation_bits);
    auto shared = share(group, shape, *nodes, deadline);
    if (!shared) return shared.error();
    for (Fd &event : shared->events) event.reset();
    auto made = Ref<Memory>::adopt(new Memory(group, shape, std::move(*nodes), std::move(*shared)));
    Error why;
    if (group.rank() == made->nodes.leader())
        if (auto done = made->lay_out(); !done) why = done.error();
    // Also: it is laid out.
    if (auto agreed = agree_on_result(group, why, deadline); !agreed) return agreed.error();
    if (made->nodes.nodes.size() == 1) {
        group.context().metrics.add(made->metrics_);
        return made;
    }
    auto remote = RemoteLocales::open(*made, deadline);
    if (!remote) return remote.error();
    made->remote_ = std::move(*remote);
    // Rounds of other nodes need the manager, also if this host does not. If it cannot be opened they fail, and
    // muster_memory_epoch() says why.
    (void)made->epoch();
    group.context().metrics.add(made->metrics_);
    return made;
}

void Memory::write_metrics(MetricsWriter &writer) {
    static constexpr Metric used{"muster_memory_used_bytes", Metric::gauge,
                                 "Bytes in blocks of the heap of this locale."};
    static constexpr Metric blocks{"muster_memory_used_blocks", Metric::gauge, "Their number."};
    static constexpr Metric heap_bytes{"muster_memory_heap_bytes", Metric::gauge, "Size of the heap of this locale."};
    static constexpr Metric allocated{"muster_memory_allocated_total", Metric::counter, "Blocks that were allocated."};
    static constexpr Metric refused{"muster_memory_refused_total", Metric::counter,
                                    "Allocations for which there was no room."};
    muster_memory_stats now{};
    heap(locale()).stats(now);
    const std::string label = "locale=\"" + std::to_string(locale()) + '"';
    const auto add = [&](const Metric &metric, uint64_t value) {
        writer.add(metric, static_cast<double>(value), label);
    };
    add(used, now.used_bytes);
    add(blocks, now.used_blocks);
    add(heap_bytes, now.heap_bytes);
    add(allocated, now.allocated);
    add(refused, now.refused);
}

bool Memory::has(muster_gptr pointer, uint64_t bytes) const noexcept {
    const uint64_t offset = shape.offset_of(pointer);
    return offset != 0 && shape.locale_of(pointer) < shape.locales && offset <= shape.segment_bytes &&
           bytes <= shape.segment_bytes - offset;
}

unsigned char *Memory::address(muster_gptr pointer, uint64_t bytes) const noexcept {
    if (!has(pointer, bytes)) return nullptr;
    const uint64_t base = bases_[shape.locale_of(pointer)];
    return base == 0 ? nullptr : reinterpret_cast<unsigned char *>(base) + shape.offset_of(pointer);
}

Heap Memory::heap(uint32_t locale) const noexcept {
    return Heap(*heads_[locale], reinterpret_cast<unsigned char *>(bases_[locale]), shape.symmetric_bytes,
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
    if (auto done = exchange_bytes(*group_, MUSTER_GROUP_ALL_GATHER, &own, all.data(), sizeof own, deadline); !done)
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
    if (remote_) {
        auto relays = RoundRelays::make(*this);
        if (!relays) {
            muster_epoch_release(std::exchange(epoch_, nullptr));
            return relays.error();
        }
        kept_rounds_ = make_ref<EpochRounds>(*this, *reinterpret_cast<NodeHead *>(base()), Ref<Epoch>(unwrap(epoch_)),
                                             std::move(*relays));
        rounds_.store(kept_rounds_.get(), std::memory_order_release);
    }
    return epoch_;
}

// Other hosts cannot use the segment from now on, although a round may keep the memory for a moment.
void Memory::host_release() noexcept {
    if (!forked()) {
        if (kept_rounds_) kept_rounds_->stop();
        if (remote_) remote_->close();
    }
    release();
}

} // namespace muster
