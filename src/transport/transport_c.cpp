// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/trace.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"
#include "transport/dial.hpp"
#include "transport/listener.hpp"

#include <cstring>

using namespace muster;

namespace {

Result<void> check_context(muster_context *context) {
    if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
    if (unwrap(context)->forked()) return Error::make(MUSTER_E_FORKED, "the context belongs to the parent process");
    return {};
}

Result<TransportOptions> read_options(Context &context, const muster_transport_config *given) {
    muster_transport_config config;
    if (auto done = read_config(given, config, "muster_transport_config"); !done) return done.error();
    if (config.flags != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.reserved != 0) return Error::make(MUSTER_E_ARG, "reserved is %u, not 0", config.reserved);
    if (config.hello_bytes > hello_max_bytes)
        return Error::make(MUSTER_E_ARG, "hello_bytes is %llu, at most %zu",
                           static_cast<unsigned long long>(config.hello_bytes), hello_max_bytes);
    if (config.hello == nullptr && config.hello_bytes != 0)
        return Error::make(MUSTER_E_ARG, "hello_bytes is set, but there is no hello");
    const uint64_t window = config.window_bytes;
    if (window != 0 && (window < 4096 || window > (uint64_t{1} << 30) || (window & (window - 1)) != 0))
        return Error::make(MUSTER_E_ARG, "window_bytes is %llu, not a power of two from 4096 to 1073741824",
                           static_cast<unsigned long long>(window));
    if (config.retry_ns < 0)
        return Error::make(MUSTER_E_ARG, "retry_ns is %lld", static_cast<long long>(config.retry_ns));
    TransportOptions options;
    if (config.hello_bytes != 0) options.hello.assign(static_cast<const char *>(config.hello), config.hello_bytes);
    options.window_bytes = window != 0 ? window : context.settings.window_bytes;
    if (config.backlog != 0) options.backlog = config.backlog;
    options.retry_ns = config.retry_ns;
    if (config.listen_timeout_ns != 0) options.listen_timeout_ns = config.listen_timeout_ns;
    return options;
}

Result<Ref<HostDial>> make_dial(muster_context *context, const char *address, size_t address_bytes,
                                const muster_transport_config *config, int64_t timeout_ns) {
    if (auto ok = check_context(context); !ok) return ok.error();
    if (address == nullptr) return Error::make(MUSTER_E_ARG, "no address");
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: a connection takes time");
    auto options = read_options(*unwrap(context), config);
    if (!options) return options.error();
    return HostDial::make(*unwrap(context), {address, address_bytes}, *options, timeout_ns);
}

Status check_listener(muster_listener *listener) noexcept {
    if (listener == nullptr) return MUSTER_E_ARG;
    return unwrap(listener)->context().forked() ? MUSTER_E_FORKED : MUSTER_OK;
}

} // namespace

extern "C" {

muster_status muster_transport_dial(muster_context *context, const char *address, size_t address_bytes,
                                    const muster_transport_config *config, int64_t timeout_ns,
                                    muster_stream **out_stream, muster_error *error) {
    if (out_stream) *out_stream = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!out_stream) return Error::make(MUSTER_E_ARG, "no place for the stream");
        auto dial = make_dial(context, address, address_bytes, config, timeout_ns);
        if (!dial) return dial.error();
        const HostCall call(*unwrap(context), nullptr, HostCall::EndedBy::context_too);
        const TraceSpan span("stream", "dial", {address, address_bytes});
        auto stream = (*dial)->wait();
        if (!stream) return stream.error();
        *out_stream = wrap(stream->detach());
        return {};
    });
}

muster_status muster_transport_dial_begin(muster_context *context, const char *address, size_t address_bytes,
                                          const muster_transport_config *config, int64_t timeout_ns,
                                          muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check_context(context); !ok) return ok;
        if (!queue) return Error::make(MUSTER_E_ARG, "no queue");
        if (&unwrap(queue)->context() != unwrap(context))
            return Error::make(MUSTER_E_ARG, "the queue belongs to another context");
        auto dial = make_dial(context, address, address_bytes, config, timeout_ns);
        if (!dial) return dial.error();
        return (*dial)->begin(*unwrap(queue), tag);
    });
}

muster_status muster_transport_listen(muster_context *context, const char *address, size_t address_bytes,
                                      const muster_transport_config *config, muster_listener **out_listener,
                                      muster_error *error) {
    if (out_listener) *out_listener = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check_context(context); !ok) return ok;
        if (!address) return Error::make(MUSTER_E_ARG, "no address");
        if (!out_listener) return Error::make(MUSTER_E_ARG, "no place for the listener");
        auto options = read_options(*unwrap(context), config);
        if (!options) return options.error();
        const HostCall call(*unwrap(context), nullptr, HostCall::EndedBy::context_too);
        auto listener = Listener::open(*unwrap(context), {address, address_bytes}, *options);
        if (!listener) return listener.error();
        *out_listener = wrap(listener->detach());
        return {};
    });
}

muster_status muster_transport_listen_begin(muster_context *context, const char *address, size_t address_bytes,
                                            const muster_transport_config *config, muster_queue *queue, uint64_t tag,
                                            muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check_context(context); !ok) return ok;
        if (!address) return Error::make(MUSTER_E_ARG, "no address");
        auto options = read_options(*unwrap(context), config);
        if (!options) return options.error();
        if (auto parsed = parse_address({address, address_bytes}); !parsed) return parsed.error();
        const auto listen = [&in = *unwrap(context), text = std::string(address, address_bytes),
                             options = std::move(*options)] {
            BegunCall::Outcome outcome;
            auto listener = Listener::open(in, text, options);
            if (!listener) {
                outcome.why = listener.error();
                return outcome;
            }
            outcome.handle = wrap(listener->get());
            outcome.object = std::move(*listener);
            return outcome;
        };
        return BegunCall::begin({*unwrap(context), MUSTER_DONE_LISTEN, listen}, queue, tag);
    });
}

muster_status muster_listener_accept(muster_listener *listener, int64_t timeout_ns, muster_stream **out_stream,
                                     muster_error *error) {
    if (out_stream) *out_stream = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!listener) return Error::make(MUSTER_E_ARG, "no listener");
        if (!out_stream) return Error::make(MUSTER_E_ARG, "no place for the stream");
        if (const Status status = check_listener(listener); status < 0) return Error::from_status(status);
        Deadline deadline(timeout_ns);
        Ref<Stream> stream;
        Error why;
        const Ref<Listener> self(unwrap(listener)); // another thread may release it meanwhile
        const HostCall call(self->context(), self.get());
        const Status status = self->accept(deadline, stream, why);
        if (status < 0) return why;
        *out_stream = wrap(stream.detach());
        return Result<void>::positive(status);
    });
}

muster_status muster_listener_watch(muster_listener *listener, muster_queue *queue, uint64_t tag) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_listener(listener); status < 0) return status;
        if (queue && &unwrap(queue)->context() != &unwrap(listener)->context()) return Status{MUSTER_E_ARG};
        return unwrap(listener)->watch(unwrap(queue), tag);
    });
}

muster_status muster_listener_address(muster_listener *listener, char *out_text, size_t capacity, size_t *out_bytes) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_listener(listener); status < 0) return status;
        if (!out_bytes) return Status{MUSTER_E_ARG};
        const std::string text = unwrap(listener)->address();
        *out_bytes = text.size();
        if (!out_text) return Status{MUSTER_OK};
        if (capacity < text.size() + 1) return Status{MUSTER_E_LIMIT};
        memcpy(out_text, text.c_str(), text.size() + 1);
        return Status{MUSTER_OK};
    });
}

muster_status muster_listener_cancel(muster_listener *listener) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_listener(listener); status < 0) return status;
        unwrap(listener)->cancel();
        return Status{MUSTER_OK};
    });
}

muster_status muster_listener_close(muster_listener *listener) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_listener(listener); status < 0) return status;
        unwrap(listener)->close();
        return Status{MUSTER_OK};
    });
}

muster_status muster_listener_close_begin(muster_listener *listener, muster_queue *queue, uint64_t tag,
                                          muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (const Status status = check_listener(listener); status < 0) return Error::from_status(status);
        const auto close = [self = Ref<Listener>(unwrap(listener))] {
            self->close();
            return BegunCall::Outcome();
        };
        return BegunCall::begin({unwrap(listener)->context(), MUSTER_DONE_CALL, close}, queue, tag);
    });
}

void muster_listener_release(muster_listener *listener) {
    if (listener) release_handle(*unwrap(listener));
}

muster_status muster_transport_hello(muster_stream *stream, void *out_data, size_t capacity, size_t *out_bytes) {
    return boundary([&] {
        const Uncancelled guard;
        if (stream == nullptr || out_bytes == nullptr) return Status{MUSTER_E_ARG};
        if (unwrap(stream)->forked()) return Status{MUSTER_E_FORKED};
        const std::string &hello = unwrap(stream)->hello();
        *out_bytes = hello.size();
        if (out_data == nullptr) return Status{MUSTER_OK};
        if (capacity < hello.size()) return Status{MUSTER_E_LIMIT};
        memcpy(out_data, hello.data(), hello.size());
        return Status{MUSTER_OK};
    });
}

} // extern "C"
