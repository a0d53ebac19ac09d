// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "forwarder/forwarder.hpp"
#include "socket/socket_config.hpp"

using namespace muster;

namespace {

constexpr uint32_t default_hops = 16, default_waiting = 1024, max_waiting_messages = 1 << 20;

template <class Body>
Status in_forwarder(muster_forwarder *forwarder, Body &&body) noexcept {
    if (forwarder == nullptr) return MUSTER_E_ARG;
    if (unwrap(forwarder)->forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<Forwarder> self(unwrap(forwarder));
        const HostCall call(self->context(), self.get());
        return body(*self);
    });
}

struct ForwarderOptions {
    Forwarder::Settings forwarder;
    Socket::Settings socket;
};

Result<ForwarderOptions> read_forwarder_config(Context &context, const muster_forwarder_config *given) {
    muster_forwarder_config config{};
    config.struct_size = sizeof config;
    if (given != nullptr)
        if (auto done = read_config(given, config, "muster_forwarder_config"); !done) return done.error();
    if (config.flags != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.reserved != 0) return Error::make(MUSTER_E_ARG, "reserved is not zero");
    if (config.max_hops > 255) return Error::make(MUSTER_E_ARG, "max_hops is %u, at most 255", config.max_hops);
    if (config.max_waiting > max_waiting_messages)
        return Error::make(MUSTER_E_ARG, "max_waiting is %u, at most 2^20", config.max_waiting);
    MessageQueue *const inbox = unwrap(config.inbox);
    if (inbox != nullptr && &inbox->context() != &context)
        return Error::make(MUSTER_E_ARG, "the inbox belongs to another context");
    muster_socket_config router{};
    router.struct_size = sizeof router;
    router.kind = MUSTER_SOCKET_ROUTER;
    router.address = config.address;
    router.max_peers = config.max_peers;
    router.max_message_bytes = config.max_message_bytes;
    router.max_queued_bytes = config.max_queued_bytes;
    router.max_queued_messages = config.max_queued_messages;
    router.max_unrouted_messages = config.max_unrouted_messages;
    router.queue = config.queue;
    auto socket = read_socket_config(context, &router);
    if (!socket) return socket.error();
    ForwarderOptions options{{}, std::move(*socket)};
    options.forwarder.max_hops = config.max_hops != 0 ? config.max_hops : default_hops;
    options.forwarder.max_waiting = config.max_waiting != 0 ? config.max_waiting : default_waiting;
    options.forwarder.inbox = Ref<MessageQueue>(inbox);
    options.forwarder.queue = options.socket.queue;
    options.forwarder.tag = config.tag;
    return options;
}

} // namespace

extern "C" {

muster_status muster_forwarder_create(muster_context *context, const muster_forwarder_config *config,
                                      muster_forwarder **out_forwarder, muster_error *error) {
    if (out_forwarder != nullptr) *out_forwarder = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
        if (out_forwarder == nullptr) return Error::make(MUSTER_E_ARG, "no place for the forwarder");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        auto options = read_forwarder_config(*unwrap(context), config);
        if (!options) return options.error();
        auto made = Forwarder::make(*unwrap(context), std::move(options->forwarder), std::move(options->socket));
        if (!made) return made.error();
        *out_forwarder = wrap(made->detach());
        return {};
    });
}

muster_socket *muster_forwarder_socket(muster_forwarder *forwarder) {
    return forwarder == nullptr ? nullptr : wrap(&unwrap(forwarder)->socket());
}

muster_status muster_forwarder_add_route(muster_forwarder *forwarder, uint64_t pattern, uint64_t next_hop) {
    return in_forwarder(forwarder, [&](Forwarder &self) { return self.add_route(pattern, next_hop); });
}

muster_status muster_forwarder_remove_route(muster_forwarder *forwarder, uint64_t pattern) {
    return in_forwarder(forwarder, [&](Forwarder &self) { return self.remove_route(pattern); });
}

muster_status muster_forwarder_set_hook(muster_forwarder *forwarder, uint32_t type, muster_message_queue *into) {
    return in_forwarder(forwarder, [&](Forwarder &self) { return self.set_hook(type, unwrap(into)); });
}

muster_status muster_forwarder_send(muster_forwarder *forwarder, muster_message *message, int64_t timeout_ns,
                                    muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (forwarder == nullptr) return Error::make(MUSTER_E_ARG, "no forwarder");
        if (message == nullptr) return Error::make(MUSTER_E_ARG, "no message");
        if (unwrap(forwarder)->forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<Forwarder> self(unwrap(forwarder));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        return self->send(*unwrap(message), deadline);
    });
}

muster_status muster_forwarder_get_stats(muster_forwarder *forwarder, muster_forwarder_stats *out_stats) {
    if (out_stats == nullptr) return MUSTER_E_ARG;
    return in_forwarder(forwarder, [&](Forwarder &self) {
        self.stats(*out_stats);
        return Status{MUSTER_OK};
    });
}

muster_status muster_forwarder_close(muster_forwarder *forwarder, int64_t timeout_ns) {
    return in_forwarder(forwarder, [&](Forwarder &self) {
        Deadline deadline(timeout_ns);
        return self.close(deadline);
    });
}

void muster_forwarder_release(muster_forwarder *forwarder) {
    if (forwarder != nullptr) unwrap(forwarder)->host_release();
}

} // extern "C"
