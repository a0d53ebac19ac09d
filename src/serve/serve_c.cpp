// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "serve/served_calls.hpp"
#include "serve/transport.hpp"

#include <cstring>

using namespace muster;

namespace {

constexpr uint32_t known_flags =
    MUSTER_TRANSPORT_ANY_THREAD | MUSTER_TRANSPORT_LOCAL | MUSTER_TRANSPORT_SEALS | MUSTER_TRANSPORT_NO_LISTEN;

Result<void> serve(muster_context *context, const char *scheme, size_t scheme_bytes, uint32_t flags,
                   const muster_transport_ops *ops, void *self, muster_queue *requests, uint64_t tag) {
    if (auto valid = check_serve(context, scheme, scheme_bytes, requests); !valid) return valid;
    const auto transport = make_ref<ServedTransport>(*unwrap(context), std::string(scheme, scheme_bytes),
                                                     *unwrap(requests), flags, ops, self, tag);
    return transport->requests().add(*transport);
}

bool readable(const char *text, size_t bytes, size_t most) noexcept {
    return bytes <= most && (text != nullptr || bytes == 0);
}

} // namespace

extern "C" muster_status muster_transport_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                uint32_t flags, muster_queue *requests, uint64_t tag,
                                                muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if ((flags & ~(known_flags & ~uint32_t{MUSTER_TRANSPORT_ANY_THREAD})) != 0)
            return Error::make(MUSTER_E_ARG, "serve: flags has unknown bits, or those of a table: 0x%x", flags);
        return serve(context, scheme, scheme_bytes, flags, nullptr, nullptr, requests, tag);
    });
}

extern "C" muster_status muster_transport_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                    const muster_transport_ops *ops, void *self, muster_queue *requests,
                                                    muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_transport_ops table;
        if (Result<void> read = read_config(ops, table, "muster_transport_ops"); !read) return read;
        if (table.open == nullptr || (table.flags & ~known_flags) != 0)
            return Error::make(MUSTER_E_ARG, "serve: the table has no open, or unknown flags");
        return serve(context, scheme, scheme_bytes, table.flags, &table, self, requests, tag_of(self));
    });
}

extern "C" muster_status muster_transport_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes) {
    return boundary(nullptr,
                    [&] { return withdraw_served(ServedKind::transport, "transport", context, scheme, scheme_bytes); });
}

extern "C" muster_status muster_request_address(muster_queue *requests, uint64_t request, char *out_text,
                                                size_t capacity, size_t *out_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (requests == nullptr || out_bytes == nullptr) return Error::from_status(MUSTER_E_ARG);
        Queue &queue = *unwrap(requests);
        if (queue.context().forked()) return Error::from_status(MUSTER_E_FORKED);
        Result<std::string> text = ServedTransport::address(queue, request);
        if (!text) return text.error();
        *out_bytes = text->size();
        if (out_text == nullptr) return {};
        if (capacity <= text->size()) return Error::from_status(MUSTER_E_LIMIT);
        memcpy(out_text, text->c_str(), text->size() + 1);
        return {};
    });
}

extern "C" muster_status muster_request_stream(muster_queue *requests, uint64_t request, muster_stream **out_pump,
                                               muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (out_pump == nullptr) return Error::make(MUSTER_E_ARG, "answer: no place for the pump");
        *out_pump = nullptr;
        if (requests == nullptr) return Error::make(MUSTER_E_ARG, "answer: no queue");
        Queue &queue = *unwrap(requests);
        if (queue.context().forked()) return Error::from_status(MUSTER_E_FORKED);
        Result<Ref<Stream>> end = ServedTransport::answer_stream(queue, request);
        if (!end) return end.error();
        *out_pump = wrap(end->detach());
        return {};
    });
}

extern "C" muster_status muster_request_listening(muster_queue *requests, uint64_t request, const char *address,
                                                  size_t address_bytes, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (requests == nullptr) return Error::make(MUSTER_E_ARG, "answer: no queue");
        if (!readable(address, address_bytes, 4096))
            return Error::make(MUSTER_E_ARG, "answer: an address above 4096 bytes");
        Queue &queue = *unwrap(requests);
        if (queue.context().forked()) return Error::from_status(MUSTER_E_FORKED);
        const std::string_view text =
            address == nullptr ? std::string_view() : std::string_view(address, address_bytes);
        return ServedTransport::answer_listening(queue, request, text);
    });
}

extern "C" muster_status muster_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                             const char *text, size_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (requests == nullptr || status >= 0 || !readable(text, text_bytes, 200))
            return Error::from_status(MUSTER_E_ARG);
        Queue &queue = *unwrap(requests);
        if (queue.context().forked()) return Error::from_status(MUSTER_E_FORKED);
        const bool has_text = text != nullptr && text_bytes != 0;
        return ServedTransport::fail(queue, request,
                                     Error::make(status, "%.*s", has_text ? static_cast<int>(text_bytes) : 200,
                                                 has_text ? text : muster_status_text(status)));
    });
}

extern "C" muster_status muster_transport_incoming(muster_queue *requests, uint64_t listen_request, const char *peer,
                                                   size_t peer_bytes, uint64_t *out_request, muster_stream **out_pump,
                                                   muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (out_pump == nullptr) return Error::make(MUSTER_E_ARG, "incoming: no place for the pump");
        *out_pump = nullptr;
        if (requests == nullptr || !readable(peer, peer_bytes, 200))
            return Error::make(MUSTER_E_ARG, "incoming: no queue, or a text above 200 bytes");
        Queue &queue = *unwrap(requests);
        if (queue.context().forked()) return Error::from_status(MUSTER_E_FORKED);
        uint64_t id = 0;
        const std::string_view from = peer == nullptr ? std::string_view() : std::string_view(peer, peer_bytes);
        Result<Ref<Stream>> end = ServedTransport::accept(queue, listen_request, from, id);
        if (!end) return end.error();
        if (out_request != nullptr) *out_request = id;
        *out_pump = wrap(end->detach());
        return {};
    });
}
