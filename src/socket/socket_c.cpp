// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "socket/socket_config.hpp"

using namespace muster;

namespace {

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
        auto settings = read_socket_config(*unwrap(context), config);
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

muster_status muster_socket_loan_frame(muster_socket *socket, muster_message *message, size_t bytes, void **out_data,
                                       muster_error *error) {
    if (out_data != nullptr) *out_data = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (socket == nullptr) return Error::make(MUSTER_E_ARG, "no socket");
        if (message == nullptr) return Error::make(MUSTER_E_ARG, "no message");
        if (out_data == nullptr) return Error::make(MUSTER_E_ARG, "no place for the frame");
        if (unwrap(socket)->forked()) return Error::from_status(MUSTER_E_FORKED);
        unsigned char *data = nullptr;
        auto loaned = Ref<Socket>(unwrap(socket))->loan_frame(*unwrap(message), bytes, data);
        *out_data = data;
        return loaned;
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
