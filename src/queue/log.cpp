// SPDX-License-Identifier: MIT
// Log records of a context end in a queue; this is the part of Context that knows queues.
#include "context/engine.hpp"
#include "queue/queue.hpp"

#include <cstdio>

namespace muster {

void Context::log(int32_t level, const char *format, ...) noexcept {
    if (!logs(level)) return;
    char text[sizeof Error::message];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    LogTarget &target = engine_->log;
    Ref<Queue> queue;
    Entry entry;
    {
        const std::lock_guard hold(target.lock);
        if (!target.queue || !target.queue->try_retain()) return;
        queue = Ref<Queue>::adopt(target.queue);
        entry.completion.tag = target.tag;
    }
    entry.completion.kind = MUSTER_EVENT_LOG;
    entry.completion.status = level;
    entry.error = Error::make(level, "%s", text);
    queue->try_post(std::move(entry));
}

void Context::set_log(int32_t level, Queue *queue, uint64_t tag) noexcept {
    LogTarget &target = engine_->log;
    const std::lock_guard hold(target.lock);
    target.queue = queue;
    target.tag = tag;
    target.level.store(queue ? level : MUSTER_LOG_OFF, std::memory_order_relaxed);
}

void Context::leave_log(Queue &queue) noexcept {
    LogTarget &target = engine_->log;
    const std::lock_guard hold(target.lock);
    if (target.queue != &queue) return;
    target.queue = nullptr;
    target.level.store(MUSTER_LOG_OFF, std::memory_order_relaxed);
}

} // namespace muster
