// SPDX-License-Identifier: MIT
#include "am/active_messages.hpp"
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"

using namespace muster;

namespace {

constexpr uint32_t default_max_bytes = 64 * 1024, default_max_requests = 256;

Result<ActiveMessages::Settings> read_am_config(const Context &context, const muster_am_config *given) {
    muster_am_config config;
    if (auto read = read_config(given, config, "muster_am_config"); !read) return read.error();
    ActiveMessages::Settings settings;
    settings.limits = {config.max_bytes == 0 ? default_max_bytes : config.max_bytes,
                       config.max_requests == 0 ? default_max_requests : config.max_requests};
    if (settings.limits.max_bytes < am_least_bytes || settings.limits.max_bytes > am_most_bytes)
        return Error::make(MUSTER_E_ARG, "max_bytes is %u, outside of %u to %u", config.max_bytes, am_least_bytes,
                           am_most_bytes);
    if (settings.limits.max_requests < am_least_requests || settings.limits.max_requests > am_most_requests)
        return Error::make(MUSTER_E_ARG, "max_requests is %u, outside of %u to %u", config.max_requests,
                           am_least_requests, am_most_requests);
    if ((config.flags & ~MUSTER_AM_NO_POLLING) != 0)
        return Error::make(MUSTER_E_ARG, "flags is %u, with a flag that does not exist", config.flags);
    settings.polls = (config.flags & MUSTER_AM_NO_POLLING) == 0;
    if (config.queue != nullptr && &unwrap(config.queue)->context() != &context)
        return Error::make(MUSTER_E_ARG, "the queue belongs to another context");
    settings.queue = Ref<Queue>(config.queue == nullptr ? nullptr : unwrap(config.queue));
    settings.tag = config.tag;
    return settings;
}

Result<void> check_am(muster_am *am) {
    if (am == nullptr) return Error::make(MUSTER_E_ARG, "no endpoint");
    if (unwrap(am)->forked()) return Error::from_status(MUSTER_E_FORKED);
    return {};
}

Result<void> check_am_request(muster_am *am, uint32_t handler, const void *data, size_t bytes, const void *reply,
                              size_t capacity) {
    if (auto good = check_am(am); !good) return good;
    if (handler > MUSTER_AM_MAX_HANDLER)
        return Error::make(MUSTER_E_ARG, "handler is %u, and the maximum %u", handler, MUSTER_AM_MAX_HANDLER);
    if (data == nullptr && bytes != 0) return Error::make(MUSTER_E_ARG, "no bytes of the request");
    if (reply == nullptr && capacity != 0) return Error::make(MUSTER_E_ARG, "no place for the reply");
    return {};
}

template <class Body>
Status with_peer(muster_am *am, uint32_t peer, Body &&body) noexcept {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto good = check_am(am); !good) return good;
        const Ref<ActiveMessages> self(unwrap(am));
        AmPeer *const one = self->peer(peer);
        if (one == nullptr) return Error::from_status(MUSTER_E_ARG);
        return body(*self, *one);
    });
}

Status set_am_handler(muster_am *am, uint32_t handler, ActiveMessages::Handler what) noexcept {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto good = check_am(am); !good) return good;
        if (handler > MUSTER_AM_MAX_HANDLER) return Error::from_status(MUSTER_E_ARG);
        return Error::from_status(unwrap(am)->set_handler(handler, std::move(what)));
    });
}

} // namespace

extern "C" {

muster_status muster_am_create(muster_context *context, const muster_am_config *config, muster_am **out_am,
                               muster_error *error) {
    if (out_am != nullptr) *out_am = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
        if (out_am == nullptr) return Error::make(MUSTER_E_ARG, "no place for the endpoint");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        auto settings = read_am_config(*unwrap(context), config);
        if (!settings) return settings.error();
        auto made = ActiveMessages::make(*unwrap(context), std::move(*settings));
        if (!made) return made.error();
        *out_am = wrap(made->detach());
        return {};
    });
}

muster_status muster_am_set_handler(muster_am *am, uint32_t handler, muster_am_fn function, void *user) {
    if (function == nullptr) return MUSTER_E_ARG;
    ActiveMessages::Handler what;
    what.function = function;
    what.user = user;
    return set_am_handler(am, handler, std::move(what));
}

muster_status muster_am_serve(muster_am *am, uint32_t handler, muster_queue *queue, uint64_t tag) {
    if (am == nullptr || queue == nullptr || &unwrap(queue)->context() != &unwrap(am)->context()) return MUSTER_E_ARG;
    ActiveMessages::Handler what;
    what.queue = Ref<Queue>(unwrap(queue));
    what.tag = tag;
    return set_am_handler(am, handler, std::move(what));
}

muster_status muster_am_add_peer(muster_am *am, muster_stream *stream, uint32_t *out_peer, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto good = check_am(am); !good) return good;
        if (stream == nullptr) return Error::make(MUSTER_E_ARG, "no stream");
        if (out_peer == nullptr) return Error::make(MUSTER_E_ARG, "no place for the number of the peer");
        const Ref<ActiveMessages> self(unwrap(am));
        if (&unwrap(stream)->context() != &self->context())
            return Error::make(MUSTER_E_ARG, "the stream belongs to another context");
        auto added = self->add_peer(*unwrap(stream));
        if (!added) return added.error();
        *out_peer = *added;
        return {};
    });
}

muster_status muster_am_call(muster_am *am, uint32_t peer, uint32_t handler, const void *data, size_t bytes,
                             void *out_reply, size_t capacity, int64_t timeout_ns, size_t *out_bytes,
                             muster_error *error) {
    if (out_bytes != nullptr) *out_bytes = 0;
    return boundary(error, [&]() -> Result<void> {
        if (auto good = check_am_request(am, handler, data, bytes, out_reply, capacity); !good) return good;
        const Ref<ActiveMessages> self(unwrap(am));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        auto outcome = self->call({peer, handler, data, bytes, out_reply, capacity}, deadline);
        if (out_bytes != nullptr) *out_bytes = outcome.bytes;
        if (outcome.why.status == MUSTER_AGAIN) return Result<void>::positive(MUSTER_AGAIN);
        return outcome.why;
    });
}

muster_status muster_am_begin(muster_am *am, uint32_t peer, uint32_t handler, const void *data, size_t bytes,
                              void *out_reply, size_t capacity, muster_queue *queue, uint64_t tag) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto good = check_am_request(am, handler, data, bytes, out_reply, capacity); !good) return good;
        const Ref<ActiveMessages> self(unwrap(am));
        if (queue != nullptr && &unwrap(queue)->context() != &self->context()) return Error::from_status(MUSTER_E_ARG);
        return self->begin({peer, handler, data, bytes, out_reply, capacity},
                           queue == nullptr ? nullptr : unwrap(queue), tag);
    });
}

muster_status muster_am_flush(muster_am *am, uint32_t peer, int64_t timeout_ns) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto good = check_am(am); !good) return good;
        const Ref<ActiveMessages> self(unwrap(am));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        const Status status = self->flush(peer, deadline);
        return status == MUSTER_AGAIN ? Result<void>::positive(status) : Error::from_status(status);
    });
}

muster_status muster_am_get_peer(muster_am *am, uint32_t peer, muster_am_peer *out_peer, muster_error *error) {
    if (out_peer == nullptr) return MUSTER_E_ARG;
    return with_peer(am, peer, [&](ActiveMessages &, AmPeer &one) -> Result<void> {
        Error why;
        one.get(*out_peer, why);
        if (error != nullptr && why.status != MUSTER_OK) why.give(*error);
        return {};
    });
}

muster_status muster_am_disconnect(muster_am *am, uint32_t peer, const char *text) {
    return with_peer(am, peer, [&](ActiveMessages &self, AmPeer &one) -> Result<void> {
        self.disconnect(one, Error::make(MUSTER_E_CLOSED, "this endpoint has disconnected the peer"),
                        text == nullptr ? "disconnected" : text);
        return {};
    });
}

muster_status muster_am_request_get(const muster_am_request *request, muster_am_request_info *out_info) {
    if (request == nullptr || out_info == nullptr) return MUSTER_E_ARG;
    unwrap(request)->get(*out_info);
    return MUSTER_OK;
}

muster_status muster_am_request_reply(muster_am_request *request, muster_status status, const void *data,
                                      size_t bytes) {
    if (request == nullptr || (status > 0 && status != MUSTER_AGAIN) || (data == nullptr && bytes != 0))
        return MUSTER_E_ARG;
    const Uncancelled guard;
    return unwrap(request)->reply(status, data, bytes);
}

void muster_am_request_release(muster_am_request *request) {
    if (request != nullptr) unwrap(request)->release();
}

muster_status muster_am_close(muster_am *am) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto good = check_am(am); !good) return good;
        unwrap(am)->close();
        return {};
    });
}

void muster_am_release(muster_am *am) {
    if (am != nullptr) unwrap(am)->host_release();
}

} // extern "C"
