// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "memory/memory.hpp"

#include <algorithm>
#include <bit>

using namespace muster;

namespace {

constexpr uint64_t least_segment = 65536, default_segment = uint64_t{16} << 20;
constexpr uint32_t max_incarnation_bits = 16, default_incarnation_bits = 8;

Result<MemoryShape> read_memory_config(const muster_memory_config *given, uint32_t locales) {
    muster_memory_config config;
    if (auto done = read_config(given, config, "muster_memory_config"); !done) return done.error();
    MemoryShape shape;
    shape.locale_bits = config.locale_bits == 0 ? 16 : config.locale_bits;
    if (shape.locale_bits > 32)
        return Error::make(MUSTER_E_ARG, "locale_bits is %u, and the maximum is 32", config.locale_bits);
    if (locales > uint64_t{1} << shape.locale_bits)
        return Error::make(MUSTER_E_ARG, "%u locales need more than %u bits of a global pointer", locales,
                           shape.locale_bits);
    shape.incarnation_bits = config.incarnation_bits;
    if (config.incarnation_bits == 1 || config.incarnation_bits > max_incarnation_bits)
        return Error::make(MUSTER_E_ARG, "incarnation_bits is %u: 0, or 2 to %u", config.incarnation_bits,
                           max_incarnation_bits);
    const uint64_t most = uint64_t{1} << (shape.offset_bits() - shape.incarnation_bits);
    const uint64_t wanted = config.segment_bytes == 0 ? default_segment : config.segment_bytes;
    if (wanted < least_segment || wanted > most - memory_page || wanted > INT64_MAX / 2 / locales)
        return Error::make(MUSTER_E_ARG, "segment_bytes is %llu, outside of %llu to %llu",
                           static_cast<unsigned long long>(config.segment_bytes),
                           static_cast<unsigned long long>(least_segment),
                           static_cast<unsigned long long>(most - memory_page));
    shape.segment_bytes = to_pages(wanted);
    if (config.incarnation_bits == 0) {
        const auto needed = static_cast<uint32_t>(std::bit_width(shape.segment_bytes + memory_page - 1));
        const uint32_t left = shape.offset_bits() - std::min(needed, shape.offset_bits());
        shape.incarnation_bits = left < 2 ? 0 : std::min(left, default_incarnation_bits);
    }
    if (config.symmetric_bytes > shape.segment_bytes)
        return Error::make(MUSTER_E_ARG, "symmetric_bytes is %llu, and segment_bytes %llu",
                           static_cast<unsigned long long>(config.symmetric_bytes),
                           static_cast<unsigned long long>(shape.segment_bytes));
    shape.symmetric_bytes = to_pages(config.symmetric_bytes == 0 ? shape.segment_bytes / 4 : config.symmetric_bytes);
    if ((config.flags & ~uint32_t{MUSTER_MEMORY_NO_SHARED_MEMORY}) != 0)
        return Error::make(MUSTER_E_ARG, "flags is 0x%x: unknown bits", config.flags);
    shape.flags = config.flags;
    shape.max_tokens = config.max_tokens != 0 ? config.max_tokens : std::min(std::max(16U, 4 * locales), 65536U);
    shape.max_pending = config.max_pending != 0 ? config.max_pending : 4096;
    if (muster_epoch_size(shape.max_tokens, shape.max_pending) == 0)
        return Error::make(MUSTER_E_ARG,
                           "max_tokens is %u, and the maximum 65536; max_pending is %u, and the maximum %u",
                           config.max_tokens, config.max_pending, 1U << 26);
    return shape;
}

bool has_locale(const muster_memory *memory, uint32_t locale) noexcept {
    return memory != nullptr && locale < unwrap(memory)->shape.locales;
}

// A request to a locale of another node.
template <class Body>
Status elsewhere(Memory &memory, int64_t timeout_ns, Body &&body) noexcept {
    if (memory.forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    const HostCall call(memory.group().context(), &memory);
    Deadline deadline(timeout_ns);
    return body(deadline);
}

} // namespace

extern "C" {

muster_status muster_memory_open(muster_group *group, const muster_memory_config *config, int64_t timeout_ns,
                                 muster_memory **out_memory, muster_error *error) {
    if (out_memory != nullptr) *out_memory = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (group == nullptr) return Error::make(MUSTER_E_ARG, "no group");
        if (out_memory == nullptr) return Error::make(MUSTER_E_ARG, "no place for the memory");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: at least 1, or -1");
        const Ref<Group> self(unwrap(group));
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        auto shape = read_memory_config(config, self->size());
        if (!shape) return shape.error();
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        auto opened = Memory::open(*self, *shape, deadline);
        if (!opened) return opened.error();
        *out_memory = wrap(opened->detach());
        return {};
    });
}

void muster_memory_release(muster_memory *memory) {
    if (memory != nullptr) unwrap(memory)->host_release();
}

uint32_t muster_memory_locale(const muster_memory *memory) {
    return memory == nullptr ? UINT32_MAX : unwrap(memory)->locale();
}

uint32_t muster_memory_locales(const muster_memory *memory) {
    return memory == nullptr ? 0 : unwrap(memory)->shape.locales;
}

muster_status muster_memory_pointer(const muster_memory *memory, uint32_t locale, uint64_t offset, muster_gptr *out) {
    if (!has_locale(memory, locale) || out == nullptr) return MUSTER_E_ARG;
    const MemoryShape &shape = unwrap(memory)->shape;
    if (offset == 0 || offset >= shape.segment_bytes) return MUSTER_E_ARG;
    *out = shape.pointer(locale, offset);
    return MUSTER_OK;
}

muster_status muster_memory_parts(const muster_memory *memory, muster_gptr pointer, uint32_t *out_locale,
                                  uint64_t *out_offset) {
    if (memory == nullptr) return MUSTER_E_ARG;
    if (!unwrap(memory)->has(pointer, 1)) return unwrap(memory)->shape.why_refused(pointer);
    const MemoryShape &shape = unwrap(memory)->shape;
    if (out_locale != nullptr) *out_locale = shape.locale_of(pointer);
    if (out_offset != nullptr) *out_offset = shape.offset_of(pointer);
    return MUSTER_OK;
}

muster_status muster_memory_address(const muster_memory *memory, muster_gptr pointer, uint64_t bytes,
                                    void **out_address) {
    if (memory == nullptr || out_address == nullptr) return MUSTER_E_ARG;
    if (!unwrap(memory)->has(pointer, bytes)) return unwrap(memory)->shape.why_refused(pointer);
    unsigned char *const at = unwrap(memory)->address(pointer, bytes);
    if (at == nullptr) return MUSTER_E_UNSUPPORTED;
    *out_address = at;
    return MUSTER_OK;
}

muster_status muster_memory_get_view(const muster_memory *memory, muster_memory_view *out_view) {
    if (memory == nullptr || out_view == nullptr) return MUSTER_E_ARG;
    const Memory &self = *unwrap(memory);
    *out_view = {self.view_bases(), self.shape.segment_bytes, self.shape.locales, self.shape.offset_bits()};
    return MUSTER_OK;
}

muster_status muster_memory_symmetric(muster_memory *memory, uint64_t bytes, uint64_t alignment, int64_t timeout_ns,
                                      uint64_t *out_offset, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (memory == nullptr) return Error::make(MUSTER_E_ARG, "no memory");
        if (out_offset == nullptr) return Error::make(MUSTER_E_ARG, "no place for the offset");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: at least 1, or -1");
        if (bytes == 0) return Error::make(MUSTER_E_ARG, "bytes is 0");
        if (alignment > memory_page || (alignment & (alignment - 1)) != 0)
            return Error::make(MUSTER_E_ARG, "alignment is %llu: not a power of two up to 4096",
                               static_cast<unsigned long long>(alignment));
        const Ref<Memory> self(unwrap(memory));
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        const HostCall call(self->group().context(), &self->group());
        Deadline deadline(timeout_ns);
        auto at = self->allocate_symmetric(bytes, alignment == 0 ? 16 : alignment, deadline);
        if (!at) return at.error();
        *out_offset = *at;
        return {};
    });
}

muster_status muster_memory_allocate(muster_memory *memory, uint32_t locale, uint64_t bytes, int64_t timeout_ns,
                                     muster_gptr *out) {
    if (!has_locale(memory, locale) || bytes == 0 || out == nullptr) return MUSTER_E_ARG;
    Memory &self = *unwrap(memory);
    uint64_t offset = 0;
    const Status status = self.is_here(locale) ? self.heap(locale).allocate(bytes, offset)
                                               : elsewhere(self, timeout_ns, [&](Deadline &deadline) {
                                                     return self.remote().allocate(locale, bytes, deadline, offset);
                                                 });
    if (status == MUSTER_OK) *out = self.shape.pointer(locale, offset);
    return status;
}

muster_status muster_memory_free(muster_memory *memory, muster_gptr block, int64_t timeout_ns) {
    if (memory == nullptr) return MUSTER_E_ARG;
    if (block == 0) return MUSTER_OK;
    Memory &self = *unwrap(memory);
    if (!self.has(block, 1)) return self.shape.why_refused(block);
    const uint32_t locale = self.shape.locale_of(block);
    const uint64_t offset = self.shape.offset_of(block);
    if (self.is_here(locale)) return self.heap(locale).release(offset);
    return elsewhere(self, timeout_ns,
                     [&](Deadline &deadline) { return self.remote().release(locale, &offset, 1, deadline); });
}

muster_status muster_memory_run(muster_memory *memory, const muster_memory_operation *operation, int64_t timeout_ns,
                                muster_memory_result *out) {
    if (memory == nullptr || operation == nullptr) return MUSTER_E_ARG;
    muster_memory_result ignored;
    muster_memory_operation read;
    const bool is_current = operation->struct_size == sizeof read; // as it mostly is: then it is not copied
    if (!is_current && !read_config(operation, read, "muster_memory_operation")) return MUSTER_E_ABI;
    const muster_memory_operation *const what = is_current ? operation : &read;
    // In place: a copy would wait for its stores.
    return unwrap(memory)->run(*what, timeout_ns, out != nullptr ? *out : ignored);
}

muster_status muster_memory_begin(muster_memory *memory, const muster_memory_operation *operation,
                                  muster_memory_result *out, muster_queue *queue, uint64_t tag) {
    return boundary([&]() -> Status {
        if (memory == nullptr || operation == nullptr) return MUSTER_E_ARG;
        const Uncancelled guard;
        Memory &self = *unwrap(memory);
        if (self.forked()) return MUSTER_E_FORKED;
        if (queue != nullptr && &unwrap(queue)->context() != &self.group().context()) return MUSTER_E_ARG;
        muster_memory_operation read;
        if (auto good = read_config(operation, read, "muster_memory_operation"); !good) return MUSTER_E_ABI;
        return self.begin(read, out, queue == nullptr ? nullptr : unwrap(queue), tag);
    });
}

muster_status muster_memory_flush(muster_memory *memory, uint32_t locale, int64_t timeout_ns) {
    if (memory == nullptr || (locale != UINT32_MAX && !has_locale(memory, locale))) return MUSTER_E_ARG;
    Memory &self = *unwrap(memory);
    if (self.forked()) return MUSTER_E_FORKED;
    if (!self.has_remote() || (locale != UINT32_MAX && self.is_here(locale))) return MUSTER_OK;
    return elsewhere(self, timeout_ns, [&](Deadline &deadline) { return self.remote().flush(locale, deadline); });
}

muster_status muster_memory_get_locale(muster_memory *memory, uint32_t locale, muster_memory_locale_info *out_info,
                                       muster_error *error) {
    if (!has_locale(memory, locale) || out_info == nullptr) return MUSTER_E_ARG;
    Memory &self = *unwrap(memory);
    if (self.forked()) return MUSTER_E_FORKED;
    *out_info = {};
    out_info->node = self.nodes.node_of[locale];
    out_info->is_mapped = self.is_here(locale);
    if (self.is_here(locale)) return MUSTER_OK;
    Error why;
    out_info->requests = self.remote().requests(locale);
    out_info->dropped = self.remote().dropped(locale);
    if (self.remote().has_ended(locale, &why)) {
        out_info->status = why.status;
        if (error != nullptr) why.give(*error);
    }
    return MUSTER_OK;
}

muster_status muster_memory_epoch(muster_memory *memory, muster_epoch **out_epoch) {
    if (out_epoch != nullptr) *out_epoch = nullptr;
    return boundary(nullptr, [&]() -> Result<void> {
        if (memory == nullptr || out_epoch == nullptr) return Error::from_status(MUSTER_E_ARG);
        const Ref<Memory> self(unwrap(memory));
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        auto opened = self->epoch();
        if (!opened) return opened.error();
        *out_epoch = *opened;
        return {};
    });
}

muster_status muster_memory_reclaim(muster_memory *memory, muster_epoch_token *token, uint32_t max_objects,
                                    uint64_t max_ns, uint32_t *out_freed) {
    uint32_t freed = 0;
    if (out_freed != nullptr) *out_freed = 0;
    if (memory == nullptr || token == nullptr) return MUSTER_E_ARG;
    if (unwrap(memory)->forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    const Status status = unwrap(memory)->reclaim(token, max_objects, max_ns, freed);
    if (out_freed != nullptr) *out_freed = freed;
    return status;
}

muster_status muster_memory_clear(muster_memory *memory, muster_epoch_token *token, int64_t timeout_ns,
                                  uint64_t *out_freed) {
    uint64_t freed = 0;
    if (out_freed != nullptr) *out_freed = 0;
    if (memory == nullptr || token == nullptr) return MUSTER_E_ARG;
    Memory &self = *unwrap(memory);
    if (self.forked()) return MUSTER_E_FORKED;
    const Status status =
        elsewhere(self, timeout_ns, [&](Deadline &deadline) { return self.clear(token, deadline, freed); });
    if (out_freed != nullptr) *out_freed = freed;
    return status;
}

muster_status muster_memory_get_stats(muster_memory *memory, uint32_t locale, int64_t timeout_ns,
                                      muster_memory_stats *out_stats) {
    if (!has_locale(memory, locale) || out_stats == nullptr) return MUSTER_E_ARG;
    Memory &self = *unwrap(memory);
    if (self.forked()) return MUSTER_E_FORKED;
    *out_stats = {};
    Status status = MUSTER_OK;
    if (self.is_here(locale))
        self.heap(locale).stats(*out_stats);
    else
        status = elsewhere(self, timeout_ns,
                           [&](Deadline &deadline) { return self.remote().stats(locale, deadline, *out_stats); });
    out_stats->symmetric_bytes = self.symmetric_used() - memory_first_offset;
    return status;
}

} // extern "C"
