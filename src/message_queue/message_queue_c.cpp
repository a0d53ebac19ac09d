// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "message_queue/message_queue.hpp"

using namespace muster;

namespace {

// Calls keep the queue alive while they are in it: another thread may release it meanwhile.
template <class Body>
Status in_message_queue(muster_message_queue *queue, Body &&body) noexcept {
    if (queue == nullptr) return MUSTER_E_ARG;
    if (unwrap(queue)->forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<MessageQueue> self(unwrap(queue));
        const HostCall call(self->context(), self.get());
        return body(*self);
    });
}

Result<MessageQueue::Settings> read_message_queue_config(Context &context, const muster_message_queue_config *given) {
    muster_message_queue_config config{};
    config.struct_size = sizeof config;
    if (given != nullptr)
        if (auto done = read_config(given, config, "muster_message_queue_config"); !done) return done.error();
    if (config.flags != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.reserved != 0) return Error::make(MUSTER_E_ARG, "reserved is not zero");
    Queue *const queue = unwrap(config.queue);
    if (queue != nullptr && &queue->context() != &context)
        return Error::make(MUSTER_E_ARG, "the queue belongs to another context");
    if (queue != nullptr && queue->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    MessageQueue::Settings settings;
    if (config.max_messages != 0) settings.max_messages = config.max_messages;
    if (config.max_bytes != 0) settings.max_bytes = config.max_bytes;
    settings.queue = Ref<Queue>(queue);
    settings.tag = config.tag;
    return settings;
}

} // namespace

extern "C" {

muster_status muster_message_queue_create(muster_context *context, const muster_message_queue_config *config,
                                          muster_message_queue **out_queue, muster_error *error) {
    if (out_queue != nullptr) *out_queue = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
        if (out_queue == nullptr) return Error::make(MUSTER_E_ARG, "no place for the message queue");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        auto settings = read_message_queue_config(*unwrap(context), config);
        if (!settings) return settings.error();
        auto made = MessageQueue::make(*unwrap(context), std::move(*settings));
        if (!made) return made.error();
        *out_queue = wrap(made->detach());
        return {};
    });
}

muster_status muster_message_queue_push(muster_message_queue *queue, muster_message *message, int64_t timeout_ns) {
    if (message == nullptr) return MUSTER_E_ARG;
    return in_message_queue(queue, [&](MessageQueue &self) {
        Deadline deadline(timeout_ns);
        return self.push(*unwrap(message), deadline);
    });
}

muster_status muster_message_queue_pop(muster_message_queue *queue, int64_t timeout_ns, muster_message **out_message) {
    if (out_message == nullptr) return MUSTER_E_ARG;
    *out_message = nullptr;
    return in_message_queue(queue, [&](MessageQueue &self) {
        Deadline deadline(timeout_ns);
        Ref<Message> message;
        const Status status = self.pop(deadline, message);
        if (status == MUSTER_OK) *out_message = wrap(message.detach());
        return status;
    });
}

muster_status muster_message_queue_get_stats(muster_message_queue *queue, muster_message_queue_stats *out_stats) {
    if (out_stats == nullptr) return MUSTER_E_ARG;
    return in_message_queue(queue, [&](MessageQueue &self) {
        self.stats(*out_stats);
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_queue_cancel(muster_message_queue *queue) {
    return in_message_queue(queue, [&](MessageQueue &self) {
        self.cancel();
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_queue_close(muster_message_queue *queue) {
    return in_message_queue(queue, [&](MessageQueue &self) {
        self.close();
        return Status{MUSTER_OK};
    });
}

void muster_message_queue_release(muster_message_queue *queue) {
    if (queue != nullptr) unwrap(queue)->host_release();
}

} // extern "C"
