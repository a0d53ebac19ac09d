// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "queue/queue.hpp"

using namespace muster;

namespace {

constexpr uint32_t default_capacity = 65536, max_capacity = 1u << 24;

// Calls keep the queue alive while they are in it: another thread may release it meanwhile.
template <class Body>
Status inside(muster_queue *queue, Body &&body) noexcept {
    if (!queue) return MUSTER_E_ARG;
    if (unwrap(queue)->context().forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Ref<Queue> self(unwrap(queue));
        return body(*self);
    });
}

} // namespace

extern "C" muster_status muster_queue_create(muster_context *context, const muster_queue_config *given,
                                             muster_queue **out_queue, muster_error *error) {
    if (out_queue) *out_queue = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (!out_queue) return Error::make(MUSTER_E_ARG, "no place for the queue");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        muster_queue_config config;
        if (auto done = read_config(given, config, "muster_queue_config"); !done) return done;
        if (config.flags) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
        if (config.reserved) return Error::make(MUSTER_E_ARG, "reserved is %u, not 0", config.reserved);
        if (config.capacity > max_capacity)
            return Error::make(MUSTER_E_ARG, "capacity is %u, more than %u", config.capacity, max_capacity);
        auto queue = Queue::create(*unwrap(context), config.capacity ? config.capacity : default_capacity);
        if (!queue) return queue.error();
        *out_queue = wrap(queue->detach());
        return {};
    });
}

extern "C" muster_status muster_queue_watch_fd(muster_queue *queue, int32_t fd, uint32_t events, uint64_t tag,
                                               muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!queue) return Error::make(MUSTER_E_ARG, "no queue");
        if (unwrap(queue)->context().forked()) return Error::from_status(MUSTER_E_FORKED);
        if (fd < 0) return Error::make(MUSTER_E_ARG, "fd is %d", fd);
        constexpr uint32_t known = MUSTER_QUEUE_FD_READABLE | MUSTER_QUEUE_FD_WRITABLE;
        if (events == 0 || (events & ~known))
            return Error::make(MUSTER_E_ARG, "events is 0x%x, of 0x%x", events, known);
        return Ref<Queue>(unwrap(queue))->watch_host_fd(fd, events, tag);
    });
}

extern "C" muster_status muster_queue_unwatch_fd(muster_queue *queue, int32_t fd) {
    return inside(queue, [&](Queue &self) { return self.unwatch_host_fd(fd) ? MUSTER_OK : MUSTER_E_NOT_FOUND; });
}

extern "C" muster_status muster_queue_next(muster_queue *queue, int64_t timeout_ns, muster_completion *out,
                                           muster_error *error) {
    return inside(queue, [&](Queue &self) {
        if (!out) return Status{MUSTER_E_ARG};
        Deadline deadline(timeout_ns);
        const Status status = self.next(deadline, out, error);
        return status < 0 ? report(error, Error::from_status(status)) : status;
    });
}

extern "C" muster_status muster_queue_dispatch(muster_queue *queue, int64_t timeout_ns, muster_queue_handler_fn handler,
                                               void *user, uint64_t *out_count) {
    if (out_count) *out_count = 0;
    return inside(queue, [&](Queue &self) {
        Deadline deadline(timeout_ns);
        return self.dispatch(deadline, handler, user, out_count);
    });
}

extern "C" muster_status muster_queue_cancel(muster_queue *queue) {
    return inside(queue, [](Queue &self) {
        self.cancel();
        return Status{MUSTER_OK};
    });
}

extern "C" muster_status muster_queue_cancel_operation(muster_queue *queue, uint64_t tag) {
    return inside(queue,
                  [&](Queue &self) { return self.cancel_operation(tag) ? Status{MUSTER_OK} : Status{MUSTER_E_STALE}; });
}

extern "C" muster_status muster_queue_post(muster_queue *queue, uint64_t tag, uint64_t value) {
    return inside(queue, [&](Queue &self) {
        if (self.closed()) return Status{MUSTER_E_CLOSED};
        Entry entry;
        entry.completion.kind = MUSTER_DONE_USER;
        entry.completion.tag = tag;
        entry.completion.bytes = value;
        if (self.try_post(std::move(entry))) return Status{MUSTER_OK};
        return Status{self.closed() ? MUSTER_E_CLOSED : MUSTER_AGAIN};
    });
}

extern "C" muster_status muster_queue_fd(muster_queue *queue, int32_t *out_fd) {
    return inside(queue, [&](Queue &self) {
        if (!out_fd) return Status{MUSTER_E_ARG};
        auto fd = self.host_fd();
        if (fd) *out_fd = *fd;
        return fd.error().status;
    });
}

extern "C" muster_status muster_queue_set_wake(muster_queue *queue, muster_wake_fn wake, void *user) {
    return inside(queue, [&](Queue &self) { return self.set_wake(wake, user); });
}

extern "C" muster_status muster_queue_close(muster_queue *queue) {
    return inside(queue, [](Queue &self) {
        self.close();
        return Status{MUSTER_OK};
    });
}

extern "C" void muster_queue_release(muster_queue *queue) {
    if (queue) unwrap(queue)->host_release();
}

extern "C" muster_status muster_queue_get_stats(muster_queue *queue, muster_queue_stats *out_stats) {
    return inside(queue, [&](Queue &self) {
        if (!out_stats) return Status{MUSTER_E_ARG};
        self.stats(*out_stats);
        return Status{MUSTER_OK};
    });
}

extern "C" muster_status muster_context_log(muster_context *context, int32_t level, muster_queue *queue, uint64_t tag) {
    if (!context || level < MUSTER_LOG_OFF || level > MUSTER_LOG_DEBUG) return MUSTER_E_ARG;
    if (unwrap(context)->forked()) return MUSTER_E_FORKED;
    if (queue && &unwrap(queue)->context() != unwrap(context)) return MUSTER_E_ARG; // it could outlive this context
    if (unwrap(context)->closed() || (queue && unwrap(queue)->closed())) return MUSTER_E_CLOSED;
    unwrap(context)->set_log(level, queue ? unwrap(queue) : nullptr, tag);
    return MUSTER_OK;
}
