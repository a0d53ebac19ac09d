// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"
#include "store/server/server.hpp"

#include <cstring>

using namespace muster;

namespace {
constexpr int64_t shortest_lease_ns = 100'000'000, longest_lease_ns = 3'600'000'000'000;
constexpr int64_t shortest_session_ns = 1'000'000'000, longest_session_ns = 86'400'000'000'000;

Result<void> read_settings(const muster_store_server_config &config, StoreServerSettings &settings) {
    if (config.reserved_field != 0)
        return Error::make(MUSTER_E_ARG, "muster_store_server_config: what is reserved is zero");
    constexpr uint32_t known =
        MUSTER_STORE_SERVER_NO_SYNC | MUSTER_STORE_SERVER_FORCE_STANDALONE | MUSTER_STORE_SERVER_REFUSED_IS_DEAD;
    if ((config.flags & ~known) != 0)
        return Error::make(MUSTER_E_ARG, "muster_store_server_config: unknown flags %u", config.flags);
    if (config.data_dir_bytes > 4000 || (config.data_dir == nullptr && config.data_dir_bytes != 0))
        return Error::make(MUSTER_E_ARG, "muster_store_server_config: data_dir of %llu bytes",
                           static_cast<unsigned long long>(config.data_dir_bytes));
    if (config.data_dir != nullptr) settings.data_dir.assign(config.data_dir, config.data_dir_bytes);
    settings.sync = (config.flags & MUSTER_STORE_SERVER_NO_SYNC) == 0;
    if (config.session_ns != 0 && (config.session_ns < shortest_session_ns || config.session_ns > longest_session_ns))
        return Error::make(MUSTER_E_ARG, "muster_store_server_config: session_ns is %lld, it is 1 s to 24 hours",
                           static_cast<long long>(config.session_ns));
    if (config.standby_of_bytes > 4096 || (config.standby_of == nullptr && config.standby_of_bytes != 0))
        return Error::make(MUSTER_E_ARG, "muster_store_server_config: standby_of of %llu bytes",
                           static_cast<unsigned long long>(config.standby_of_bytes));
    if (config.pair_lease_ns != 0 &&
        (config.pair_lease_ns < shortest_lease_ns || config.pair_lease_ns > longest_lease_ns))
        return Error::make(MUSTER_E_ARG, "muster_store_server_config: pair_lease_ns is %lld, it is 0.1 s to 1 hour",
                           static_cast<long long>(config.pair_lease_ns));
    settings.pair.alone = (config.flags & MUSTER_STORE_SERVER_FORCE_STANDALONE) != 0;
    settings.pair.refused_is_dead = (config.flags & MUSTER_STORE_SERVER_REFUSED_IS_DEAD) != 0;
    if (settings.pair.alone && settings.data_dir.empty())
        return Error::make(MUSTER_E_ARG,
                           "muster_store_server_config: there is nothing to serve alone without data_dir");
    if (config.standby_of != nullptr) settings.pair.standby_of.assign(config.standby_of, config.standby_of_bytes);
    if (config.pair_lease_ns != 0) settings.pair.lease_ns = config.pair_lease_ns;
    if (config.max_clients != 0) settings.max_clients = config.max_clients;
    if (config.max_bytes != 0) settings.max_bytes = config.max_bytes;
    if (config.session_ns != 0) settings.session_ns = config.session_ns;
    return {};
}
} // namespace

extern "C" muster_status muster_store_server_open(muster_context *context, const char *url, size_t url_bytes,
                                                  const muster_store_server_config *given,
                                                  muster_store_server **out_server, muster_error *error) {
    if (out_server) *out_server = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (!out_server) return Error::make(MUSTER_E_ARG, "no place for the server");
        if (!url || url_bytes == 0 || url_bytes > 4096)
            return Error::make(MUSTER_E_ARG, "a URL of %zu bytes, it has 1 to 4096", url ? url_bytes : 0);
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        muster_store_server_config config;
        if (auto done = read_config(given, config, "muster_store_server_config"); !done) return done;
        StoreServerSettings settings;
        settings.url.assign(url, url_bytes);
        if (auto done = read_settings(config, settings); !done) return done;
        auto server = StoreServer::open(*unwrap(context), std::move(settings));
        if (!server) return server.error();
        *out_server = wrap(server->detach());
        return {};
    });
}

extern "C" muster_status muster_store_server_address(muster_store_server *server, char *out_text, size_t capacity,
                                                     size_t *out_bytes) {
    if (!server || !out_bytes) return MUSTER_E_ARG;
    if (unwrap(server)->server().context().forked()) return MUSTER_E_FORKED;
    return boundary([&]() -> Status {
        const std::string &text = unwrap(server)->server().address();
        *out_bytes = text.size();
        if (!out_text) return MUSTER_OK;
        if (capacity <= text.size()) return MUSTER_E_LIMIT;
        std::memcpy(out_text, text.c_str(), text.size() + 1);
        return MUSTER_OK;
    });
}

extern "C" muster_status muster_store_server_get_stats(muster_store_server *server,
                                                       muster_store_server_stats *out_stats) {
    if (!server || !out_stats) return MUSTER_E_ARG;
    if (unwrap(server)->server().context().forked()) return MUSTER_E_FORKED;
    unwrap(server)->server().get_stats(*out_stats);
    return MUSTER_OK;
}

extern "C" muster_status muster_store_server_force_standalone(muster_store_server *server) {
    if (!server) return MUSTER_E_ARG;
    if (unwrap(server)->server().context().forked()) return MUSTER_E_FORKED;
    return unwrap(server)->server().go_alone();
}

extern "C" muster_status muster_store_server_close(muster_store_server *server, int64_t timeout_ns) {
    if (!server) return MUSTER_E_ARG;
    if (unwrap(server)->server().context().forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    const Ref<StoreServerHandle> handle(unwrap(server)); // another thread may release it meanwhile
    const HostCall call(handle->context(), handle.get(), HostCall::EndedBy::context_too);
    Deadline deadline(timeout_ns);
    return handle->server().close(deadline);
}

extern "C" muster_status muster_store_server_close_begin(muster_store_server *server, int64_t timeout_ns,
                                                         muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!server) return Error::make(MUSTER_E_ARG, "no server");
        const Ref<StoreServer> self(&unwrap(server)->server());
        if (self->context().forked()) return Error::from_status(MUSTER_E_FORKED);
        const auto close = [self, deadline = Deadline(timeout_ns)]() mutable {
            BegunCall::Outcome outcome;
            if (const Status status = self->close(deadline); status != MUSTER_OK)
                outcome.why = Error::from_status(status);
            return outcome;
        };
        return BegunCall::begin({self->context(), MUSTER_DONE_CALL, close}, queue, tag);
    });
}

extern "C" void muster_store_server_release(muster_store_server *server) {
    if (server) release_handle(*unwrap(server));
}
