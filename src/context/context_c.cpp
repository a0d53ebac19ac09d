// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "context/host_call.hpp"
#include "context/settings.hpp"

#include <atomic>
#include <cstring>

using namespace muster;

extern "C" muster_status muster_context_create(const muster_context_config *config, muster_context **out_context,
                                               muster_error *error) {
    if (out_context) *out_context = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!out_context) return Error::make(MUSTER_E_ARG, "no place for the context");
        ContextSettings settings;
        const WipeAtEnd wiped(settings.secret);
        if (auto done = read_settings(config, settings); !done) return done;
        auto context = Context::create(settings);
        if (!context) return context.error();
        *out_context = wrap(context->detach());
        return {};
    });
}

extern "C" muster_status muster_context_default(muster_context **out_context, muster_error *error) {
    // release, acquire: the context is complete. Never freed.
    static std::atomic<Context *> shared{nullptr};
    if (out_context) *out_context = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!out_context) return Error::make(MUSTER_E_ARG, "no place for the context");
        Context *found = shared.load(std::memory_order_acquire);
        while (found == nullptr || found->forked()) {
            ContextSettings settings;
            const WipeAtEnd wiped(settings.secret);
            if (auto done = read_settings(nullptr, settings); !done) return done;
            auto context = Context::create(settings);
            if (!context) return context.error();
            Ref<Context> made = std::move(*context);
            if (shared.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
                found = made.detach(); // that of a parent process is left to it
                break;
            }
            made.detach()->host_release(); // another thread was faster
        }
        found->retain(); // for the caller
        *out_context = wrap(found);
        return {};
    });
}

extern "C" muster_status muster_context_close(muster_context *context, int64_t timeout_ns) {
    return boundary([&] {
        const Uncancelled guard;
        if (!context) return Status{MUSTER_E_ARG};
        if (unwrap(context)->forked()) return Status{MUSTER_E_FORKED};
        Deadline deadline(timeout_ns);
        return unwrap(context)->close(deadline);
    });
}

extern "C" muster_status muster_context_cancel(muster_context *context) {
    if (!context) return MUSTER_E_ARG;
    if (unwrap(context)->forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    unwrap(context)->host_calls().cancel_all();
    return MUSTER_OK;
}

extern "C" void muster_context_release(muster_context *context) {
    if (context) unwrap(context)->host_release();
}

extern "C" muster_status muster_context_fd(muster_context *context, int32_t *out_fd) {
    return boundary([&] {
        const Uncancelled guard;
        if (!context || !out_fd) return Status{MUSTER_E_ARG};
        if (unwrap(context)->forked()) return Status{MUSTER_E_FORKED};
        auto fd = unwrap(context)->external_fd();
        if (fd) *out_fd = *fd;
        return fd.error().status;
    });
}

extern "C" muster_status muster_context_progress(muster_context *context, int64_t timeout_ns) {
    return boundary([&] {
        const Uncancelled guard;
        if (!context) return Status{MUSTER_E_ARG};
        if (unwrap(context)->forked()) return Status{MUSTER_E_FORKED};
        Deadline deadline(timeout_ns);
        return unwrap(context)->progress(deadline);
    });
}

extern "C" muster_status muster_context_secret(muster_context *context, void *out_secret, size_t capacity,
                                               size_t *out_bytes) {
    if (!context || !out_bytes) return MUSTER_E_ARG;
    if (unwrap(context)->forked()) return MUSTER_E_FORKED;
    const auto &secret = unwrap(context)->settings.secret;
    *out_bytes = secret.size();
    if (!out_secret) return MUSTER_OK;
    if (capacity < secret.size()) return MUSTER_E_LIMIT;
    std::memcpy(out_secret, secret.data(), secret.size());
    return MUSTER_OK;
}

extern "C" muster_status muster_context_get_stats(muster_context *context, muster_context_stats *out_stats) {
    if (!context || !out_stats) return MUSTER_E_ARG;
    if (unwrap(context)->forked()) return MUSTER_E_FORKED;
    const ContextCounters &counters = unwrap(context)->counters;
    const auto get = [](const std::atomic<uint64_t> &counter) { return counter.load(std::memory_order_relaxed); };
    muster_context_stats stats{};
    stats.loop_wakeups = unwrap(context)->loop().turns();
    stats.mailbox_posts = unwrap(context)->loop().posts();
    stats.streams_open = get(counters.streams_open);
    stats.streams_made = get(counters.streams_made);
    stats.handshakes_ok = get(counters.handshakes_ok);
    stats.handshakes_failed = get(counters.handshakes_failed);
    stats.bytes_in = get(counters.bytes_in);
    stats.bytes_out = get(counters.bytes_out);
    stats.upgrades = get(counters.upgrades);
    *out_stats = stats;
    return MUSTER_OK;
}
