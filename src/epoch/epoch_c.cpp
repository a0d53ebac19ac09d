// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "epoch/epoch.hpp"

#include <muster/inline/epoch.h>

using namespace muster;

namespace {

// What is wrong with a token that is not registered by this process.
[[gnu::noinline, gnu::cold]] Status why_not(muster_epoch_token *token) noexcept {
    if (token == nullptr) return MUSTER_E_ARG;
    const auto &slot = *reinterpret_cast<EpochSlot *>(token);
    Epoch *const manager = kind_of(token->state) == MUSTER_EPOCH_TOKEN_IN_USE ? Epoch::manager_of(slot) : nullptr;
    return manager != nullptr && manager->forked() ? MUSTER_E_FORKED : MUSTER_E_STALE;
}

// A token that this process has registered keeps its manager, so its state alone says that it can be used.
bool is_usable(muster_epoch_token *token) noexcept {
    if (token == nullptr) return false;
    const uint64_t state = reinterpret_cast<EpochSlot *>(token)->state().load(std::memory_order_relaxed);
    return kind_of(state) == MUSTER_EPOCH_TOKEN_IN_USE &&
           process_of(state) == own_process_id.load(std::memory_order_relaxed);
}

// Pins need no manager.
template <class Body>
Status with_slot(muster_epoch_token *token, Body &&body) noexcept {
    if (!is_usable(token)) [[unlikely]]
        return why_not(token);
    return body(*reinterpret_cast<EpochSlot *>(token));
}

// No body below allocates or throws, except functions of the host, which must not.
template <class Body>
Status with_token(muster_epoch_token *token, Body &&body) noexcept {
    return with_slot(token, [&](EpochSlot &slot) { return body(*Epoch::manager_of(slot), slot); });
}

template <class Body>
Status with_manager(muster_epoch *epoch, Body &&body) noexcept {
    Epoch *const manager = unwrap(epoch);
    if (manager == nullptr) return MUSTER_E_STALE;
    if (manager->forked()) return MUSTER_E_FORKED;
    const Ref<Epoch> alive(manager);
    return body(*manager);
}

bool is_pinned(EpochSlot &slot) noexcept {
    return slot.epoch().load(std::memory_order_relaxed) != 0;
}

Status repin(EpochSlot &slot) noexcept {
    if (!is_pinned(slot)) return MUSTER_E_ARG;
    if (slot.token.depth != 0) return MUSTER_AGAIN;
    muster_epoch_unpin_inline(&slot.token);
    muster_epoch_pin_inline(&slot.token);
    return MUSTER_OK;
}

Result<Epoch::Settings> read_epoch_config(const muster_epoch_config *given, bool opens) {
    muster_epoch_config config{};
    config.struct_size = sizeof config;
    if (given != nullptr)
        if (auto done = read_config(given, config, "muster_epoch_config"); !done) return done.error();
    const uint32_t known = MUSTER_EPOCH_FENCED | MUSTER_EPOCH_SHARED | MUSTER_EPOCH_THREAD_BOUND;
    if ((config.flags & ~known) != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.reserved != 0) return Error::make(MUSTER_E_ARG, "reserved is not zero");
    Epoch::Settings settings;
    settings.flags = config.flags;
    settings.max_tokens = epoch_tokens(config.max_tokens);
    settings.capacity = epoch_capacity(config.max_pending);
    if (settings.max_tokens == 0)
        return Error::make(MUSTER_E_ARG, "max_tokens is %u, and the maximum is 65536", config.max_tokens);
    if (settings.capacity == 0)
        return Error::make(MUSTER_E_ARG, "max_pending is %u, and the maximum is %u", config.max_pending, 1U << 26);
    if ((config.flags & MUSTER_EPOCH_SHARED) == 0) {
        if (opens) return Error::make(MUSTER_E_ARG, "only a manager in shared memory can be opened");
        if (config.fd != 0 || config.offset != 0)
            return Error::make(MUSTER_E_ARG, "fd and offset need MUSTER_EPOCH_SHARED");
    } else {
        if (config.fd < 0) return Error::make(MUSTER_E_ARG, "fd is %d", config.fd);
        if (config.offset % epoch_page != 0 || config.offset > INT64_MAX)
            return Error::make(MUSTER_E_ARG, "offset is %llu, and has to be a multiple of the page size",
                               static_cast<unsigned long long>(config.offset));
    }
    if (opens && (config.max_tokens != 0 || config.max_pending != 0 || config.flags != MUSTER_EPOCH_SHARED))
        return Error::make(MUSTER_E_ARG, "limits and flags are those of the creator of the manager");
    Queue *const queue = unwrap(config.queue);
    if (queue != nullptr && queue->context().forked()) return Error::from_status(MUSTER_E_FORKED);
    if (queue != nullptr && queue->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    settings.fd = config.fd;
    settings.offset = config.offset;
    settings.queue = Ref<Queue>(queue);
    settings.tag = config.tag;
    return settings;
}

Status make_epoch(const muster_epoch_config *config, bool opens, muster_epoch **out, muster_error *error) noexcept {
    if (out != nullptr) *out = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out == nullptr) return Error::make(MUSTER_E_ARG, "no place for the manager");
        auto settings = read_epoch_config(config, opens);
        if (!settings) return settings.error();
        auto made = opens ? Epoch::open(std::move(*settings)) : Epoch::make(std::move(*settings));
        if (!made) return made.error();
        *out = made->detach()->handle();
        return {};
    });
}

} // namespace

extern "C" {

uint64_t muster_epoch_size(uint32_t max_tokens, uint32_t max_pending) {
    const uint64_t tokens = epoch_tokens(max_tokens), capacity = epoch_capacity(max_pending);
    return tokens == 0 || capacity == 0 ? 0 : epoch_bytes(tokens, capacity);
}

muster_status muster_epoch_create(const muster_epoch_config *config, muster_epoch **out_epoch, muster_error *error) {
    return make_epoch(config, false, out_epoch, error);
}

muster_status muster_epoch_open(const muster_epoch_config *config, muster_epoch **out_epoch, muster_error *error) {
    return make_epoch(config, true, out_epoch, error);
}

void muster_epoch_release(muster_epoch *epoch) {
    if (Epoch *const manager = unwrap(epoch)) manager->host_release();
}

muster_status muster_epoch_register(muster_epoch *epoch, muster_epoch_token **out_token, muster_error *error) {
    if (out_token != nullptr) *out_token = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out_token == nullptr) return Error::make(MUSTER_E_ARG, "no place for the token");
        Epoch *const manager = unwrap(epoch);
        if (manager == nullptr) return Error::make(MUSTER_E_STALE, "the manager was released");
        if (manager->forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<Epoch> alive(manager);
        auto made = manager->register_token();
        if (!made) return made.error();
        *out_token = &(*made)->token;
        return {};
    });
}

muster_status muster_epoch_unregister(muster_epoch_token *token) {
    return with_token(token, [](Epoch &manager, EpochSlot &slot) { return manager.unregister_token(slot); });
}

muster_status muster_epoch_pin(muster_epoch_token *token) {
    return with_slot(token, [](EpochSlot &slot) {
        muster_epoch_pin_inline(&slot.token);
        return MUSTER_OK;
    });
}

muster_status muster_epoch_unpin(muster_epoch_token *token) {
    return with_slot(token, [](EpochSlot &slot) {
        if (!is_pinned(slot)) return MUSTER_E_ARG;
        muster_epoch_unpin_inline(&slot.token);
        return MUSTER_OK;
    });
}

muster_status muster_epoch_repin(muster_epoch_token *token) {
    return with_slot(token, [](EpochSlot &slot) { return repin(slot); });
}

muster_status muster_epoch_online(muster_epoch_token *token) {
    return with_slot(token, [](EpochSlot &slot) {
        if (is_pinned(slot)) return MUSTER_E_ARG;
        muster_epoch_pin_inline(&slot.token);
        return MUSTER_OK;
    });
}

muster_status muster_epoch_quiescent(muster_epoch_token *token) {
    return with_slot(token, [](EpochSlot &slot) { return repin(slot); });
}

muster_status muster_epoch_offline(muster_epoch_token *token) {
    return with_slot(token, [](EpochSlot &slot) {
        if (!is_pinned(slot) || slot.token.depth != 0) return MUSTER_E_ARG;
        muster_epoch_unpin_inline(&slot.token);
        return MUSTER_OK;
    });
}

muster_status muster_epoch_protect(muster_epoch_token *token, uint32_t slot, uint64_t object) {
    return with_token(token, [=](Epoch &manager, EpochSlot &own) {
        if (slot >= hazard_slots || (object != 0 && !is_pinned(own))) return MUSTER_E_ARG;
        manager.protect(own, slot, object);
        return MUSTER_OK;
    });
}

muster_status muster_epoch_defer(muster_epoch_token *token, muster_epoch_free_fn free, void *user, void *object) {
    return with_token(token, [=](Epoch &manager, EpochSlot &slot) -> Status {
        if (free == nullptr || object == nullptr) return MUSTER_E_ARG;
        if (manager.is_shared()) return MUSTER_E_UNSUPPORTED;
        return manager.defer(slot, {free, user, reinterpret_cast<uintptr_t>(object)});
    });
}

muster_status muster_epoch_retire(muster_epoch_token *token, uint64_t object) {
    return with_token(token, [=](Epoch &manager, EpochSlot &slot) -> Status {
        return object == 0 ? MUSTER_E_ARG : manager.defer(slot, {nullptr, nullptr, object});
    });
}

muster_status muster_epoch_try_reclaim(muster_epoch_token *token, muster_epoch_attempt *out) {
    return with_token(token, [=](Epoch &manager, EpochSlot &slot) {
        muster_epoch_attempt attempt;
        manager.seal(slot);
        const Status status = manager.advance(attempt);
        if (out != nullptr) *out = attempt;
        return status;
    });
}

muster_status muster_epoch_advance(muster_epoch *epoch, muster_epoch_attempt *out) {
    return with_manager(epoch, [=](Epoch &manager) {
        muster_epoch_attempt attempt;
        const Status status = manager.advance(attempt);
        if (out != nullptr) *out = attempt;
        return status;
    });
}

muster_status muster_epoch_poll(muster_epoch_token *token, uint32_t max_objects, uint64_t max_ns, uint64_t *out_objects,
                                uint32_t out_capacity, uint32_t *out_count, uint32_t *out_freed) {
    return with_token(token, [=](Epoch &manager, EpochSlot &slot) {
        Poll poll;
        poll.max_objects = max_objects == 0 ? 8 : max_objects;
        if (max_ns != 0) {
            const int64_t now = now_ns();
            poll.until_ns = max_ns > static_cast<uint64_t>(INT64_MAX - now) ? 0 : now + static_cast<int64_t>(max_ns);
        }
        poll.objects = out_objects;
        poll.capacity = out_objects == nullptr ? 0 : out_capacity;
        const Status status = manager.poll(slot, poll);
        if (out_count != nullptr) *out_count = poll.count;
        if (out_freed != nullptr) *out_freed = poll.freed;
        return status;
    });
}

muster_status muster_epoch_synchronize(muster_epoch_token *token, int64_t timeout_ns, muster_epoch_attempt *out) {
    return with_token(token, [=](Epoch &manager, EpochSlot &slot) {
        const Uncancelled guard;
        muster_epoch_attempt attempt{};
        Deadline deadline(timeout_ns);
        const Status status = manager.synchronize(slot, deadline, attempt);
        if (out != nullptr) *out = attempt;
        return status;
    });
}

muster_status muster_epoch_barrier(muster_epoch_token *token, int64_t timeout_ns) {
    return with_token(token, [=](Epoch &manager, EpochSlot &slot) {
        const Uncancelled guard;
        Deadline deadline(timeout_ns);
        return manager.barrier(slot, deadline);
    });
}

muster_status muster_epoch_clear(muster_epoch *epoch, uint64_t *out_freed) {
    return with_manager(epoch, [=](Epoch &manager) -> Status {
        if (manager.is_shared()) return MUSTER_E_UNSUPPORTED;
        uint64_t freed = 0;
        const Status status = manager.clear(freed);
        if (status == MUSTER_OK && out_freed != nullptr) *out_freed = freed;
        return status;
    });
}

muster_status muster_epoch_get_stats(muster_epoch *epoch, muster_epoch_stats *out_stats) {
    if (out_stats == nullptr) return MUSTER_E_ARG;
    return with_manager(epoch, [=](Epoch &manager) {
        manager.stats(*out_stats);
        return MUSTER_OK;
    });
}

} // extern "C"
