// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "socket/socket.hpp"

using namespace muster;

namespace {

constexpr uint64_t default_message_bytes = uint64_t{1} << 30, default_queued_bytes = uint64_t{64} << 20;

// Calls keep the socket alive while they are in it: another thread may release it meanwhile.
template <class Body>
Status inside(muster_socket *socket, Body &&body) noexcept {
    if (socket == nullptr) return MUSTER_E_ARG;
    if (unwrap(socket)->forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<Socket> self(unwrap(socket));
        const HostCall call(self->context(), self.get());
        return body(*self);
    });
}

Result<Socket::Settings> read_settings(Context &context, const muster_socket_config *given) {
    muster_socket_config config;
    if (auto done = read_config(given, config, "muster_socket_config"); !done) return done.error();
    if (config.flags != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.kind != MUSTER_SOCKET_DEALER && config.kind != MUSTER_SOCKET_ROUTER)
        return Error::make(MUSTER_E_ARG, "kind is %u: a dealer is 1, a router 2", config.kind);
    if (config.max_peers > 1u << 20)
        return Error::make(MUSTER_E_ARG, "max_peers is %u, at most 2^20", config.max_peers);
    if (config.max_message_bytes > Message::max_bytes)
        return Error::make(MUSTER_E_ARG, "max_message_bytes is %llu, at most 2^62",
                           static_cast<unsigned long long>(config.max_message_bytes));
    int64_t group = 0, id = 0, kind = 0;
    muster_message_address_parts(config.address, &group, &id, &kind);
    if (group == MUSTER_MESSAGE_ANY || id == MUSTER_MESSAGE_ANY || kind == MUSTER_MESSAGE_ANY)
        return Error::make(MUSTER_E_ARG, "address is 0x%llx, which has a wildcard",
                           static_cast<unsigned long long>(config.address));
    Queue *const queue = unwrap(config.queue);
    if (queue != nullptr && &queue->context() != &context)
        return Error::make(MUSTER_E_ARG, "the queue belongs to another context");
    if (queue != nullptr && queue->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    Socket::Settings settings;
    settings.hello.kind = static_cast<uint8_t>(config.kind);
    settings.hello.address = config.address;
    settings.max_peers = config.max_peers != 0 ? config.max_peers : 65536;
    settings.max_message_bytes = config.max_message_bytes != 0 ? config.max_message_bytes : default_message_bytes;
    settings.max_queued_bytes = config.max_queued_bytes != 0 ? config.max_queued_bytes : default_queued_bytes;
    settings.max_queued_messages = config.max_queued_messages != 0 ? config.max_queued_messages : 65536;
    settings.max_unrouted_messages = config.max_unrouted_messages != 0 ? config.max_unrouted_messages : 1024;
    settings.queue = Ref<Queue>(queue);
    settings.tag = config.tag;
    return settings;
}

Result<void> check(muster_socket *socket, const char *address) {
    if (socket == nullptr) return Error::make(MUSTER_E_ARG, "no socket");
    if (unwrap(socket)->forked()) return Error::from_status(MUSTER_E_FORKED);
    if (address == nullptr) return Error::make(MUSTER_E_ARG, "no address");
    return {};
}

} // namespace

extern "C" {

muster_status muster_socket_create(muster_context *context, const muster_socket_config *config,
                                   muster_socket **out_socket, muster_error *error) {
    if (out_socket != nullptr) *out_socket = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
        if (out_socket == nullptr) return Error::make(MUSTER_E_ARG, "no place for the socket");
        if (config == nullptr) return Error::make(MUSTER_E_ARG, "no configuration");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        auto settings = read_settings(*unwrap(context), config);
        if (!settings) return settings.error();
        auto made = Socket::make(*unwrap(context), std::move(*settings));
        if (!made) return made.error();
        *out_socket = wrap(made->detach());
        return {};
    });
}

uint64_t muster_socket_address(const muster_socket *socket) {
    return socket == nullptr ? 0 : unwrap(socket)->settings.hello.address;
}

muster_status muster_socket_bind(muster_socket *socket, const char *address, size_t address_bytes, char *out_text,
                                 size_t capacity, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(socket, address); !ok) return ok;
        const Ref<Socket> self(unwrap(socket));
        const HostCall call(self->context(), self.get(), HostCall::EndedBy::context_too);
        auto text = self->bind({address, address_bytes}, out_text != nullptr ? std::max<size_t>(capacity, 1) : 0);
        if (!text) return text.error();
        if (out_text != nullptr) memcpy(out_text, text->c_str(), text->size() + 1);
        return {};
    });
}

muster_status muster_socket_connect(muster_socket *socket, const char *address, size_t address_bytes,
                                    muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(socket, address); !ok) return ok;
        return Ref<Socket>(unwrap(socket))->connect({address, address_bytes});
    });
}

muster_status muster_socket_wait_peers(muster_socket *socket, uint32_t count, int64_t timeout_ns, uint32_t *out_count) {
    if (out_count != nullptr) *out_count = 0;
    return inside(socket, [&](Socket &self) {
        Deadline deadline(timeout_ns);
        uint32_t there = 0;
        const Status status = self.wait_peers(count, deadline, there);
        if (out_count != nullptr) *out_count = there;
        return status;
    });
}

muster_status muster_socket_send(muster_socket *socket, muster_message *message, int64_t timeout_ns,
                                 muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (socket == nullptr) return Error::make(MUSTER_E_ARG, "no socket");
        if (message == nullptr) return Error::make(MUSTER_E_ARG, "no message");
        if (unwrap(socket)->forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<Socket> self(unwrap(socket));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        return self->send(*unwrap(message), deadline);
    });
}

muster_status muster_socket_receive(muster_socket *socket, int64_t timeout_ns, muster_message **out_message) {
    if (out_message == nullptr) return MUSTER_E_ARG;
    *out_message = nullptr;
    return inside(socket, [&](Socket &self) {
        Deadline deadline(timeout_ns);
        Ref<Message> message;
        const Status status = self.receive(deadline, message);
        if (status == MUSTER_OK) *out_message = wrap(message.detach());
        return status;
    });
}

muster_status muster_socket_next_event(muster_socket *socket, int64_t timeout_ns, muster_socket_event *out_event) {
    if (out_event == nullptr) return MUSTER_E_ARG;
    return inside(socket, [&](Socket &self) {
        Deadline deadline(timeout_ns);
        return self.next_event(deadline, *out_event);
    });
}

muster_status muster_socket_get_stats(muster_socket *socket, muster_socket_stats *out_stats) {
    if (out_stats == nullptr) return MUSTER_E_ARG;
    return inside(socket, [&](Socket &self) {
        self.stats(*out_stats);
        return Status{MUSTER_OK};
    });
}

muster_status muster_socket_cancel(muster_socket *socket) {
    return inside(socket, [&](Socket &self) {
        self.cancel();
        return Status{MUSTER_OK};
    });
}

muster_status muster_socket_close(muster_socket *socket, int64_t timeout_ns) {
    return inside(socket, [&](Socket &self) {
        Deadline deadline(timeout_ns);
        return self.close(deadline);
    });
}

void muster_socket_release(muster_socket *socket) {
    if (socket != nullptr) unwrap(socket)->host_release();
}

} // extern "C"
