// SPDX-License-Identifier: MIT
#include "socket/socket_config.hpp"

#include "base/config.hpp"

namespace muster {

namespace {
constexpr uint64_t default_message_bytes = uint64_t{1} << 30, default_queued_bytes = uint64_t{64} << 20,
                   default_loaned_bytes = uint64_t{256} << 20;
}

Result<Socket::Settings> read_socket_config(Context &context, const muster_socket_config *given) {
    muster_socket_config config;
    if (auto done = read_config(given, config, "muster_socket_config"); !done) return done.error();
    if ((config.flags & ~uint32_t{MUSTER_SOCKET_LOANS}) != 0)
        return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
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
    if (config.flags & MUSTER_SOCKET_LOANS)
        settings.max_loaned_bytes = config.max_loaned_bytes != 0 ? config.max_loaned_bytes : default_loaned_bytes;
    settings.queue = Ref<Queue>(queue);
    settings.tag = config.tag;
    return settings;
}

} // namespace muster
