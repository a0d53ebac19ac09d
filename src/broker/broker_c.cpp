// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "broker/broker.hpp"
#include "context/settings.hpp"
#include "queue/begun_call.hpp"

#include <cstring>

using namespace muster;

namespace {

constexpr uint64_t window_min = 64 * 1024, window_max = uint64_t{1} << 30;

Result<void> check(const muster_broker_config &config) {
    constexpr uint32_t known = MUSTER_BROKER_OPEN | MUSTER_BROKER_NO_CURVE;
    if ((config.flags & ~known) != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.reserved != 0) return Error::make(MUSTER_E_ARG, "reserved is %u, not 0", config.reserved);
    if (config.window_bytes != 0 && (config.window_bytes < window_min || config.window_bytes > window_max))
        return Error::make(MUSTER_E_ARG, "window_bytes is %llu, not from 65536 to 1073741824",
                           static_cast<unsigned long long>(config.window_bytes));
    if (config.parent == nullptr && config.parent_bytes != 0)
        return Error::make(MUSTER_E_ARG, "parent_bytes is set, but there is no parent");
    if (config.curve_file == nullptr && config.curve_file_bytes != 0)
        return Error::make(MUSTER_E_ARG, "curve_file_bytes is set, but there is no curve_file");
    if (config.curve_file_bytes > 4095) return Error::make(MUSTER_E_ARG, "curve_file is longer than 4095 bytes");
    if (config.curve_file_bytes != 0 && (config.flags & (MUSTER_BROKER_OPEN | MUSTER_BROKER_NO_CURVE)) != 0)
        return Error::make(MUSTER_E_ARG, "curve_file is set, but the flags do without CURVE");
    return {};
}

Status check_handle(muster_broker *broker) noexcept {
    if (broker == nullptr) return MUSTER_E_ARG;
    return unwrap(broker)->context().forked() ? MUSTER_E_FORKED : MUSTER_OK;
}

} // namespace

extern "C" {

muster_status muster_broker_open(muster_context *context, const char *address, size_t address_bytes,
                                 const muster_broker_config *config, muster_broker **out_broker, muster_error *error) {
    if (out_broker) *out_broker = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (unwrap(context)->forked()) return Error::make(MUSTER_E_FORKED, "the context belongs to the parent process");
        if (!address) return Error::make(MUSTER_E_ARG, "no address");
        if (!out_broker) return Error::make(MUSTER_E_ARG, "no place for the broker");
        muster_broker_config read;
        if (auto done = read_config(config, read, "muster_broker_config"); !done) return done;
        if (auto done = check(read); !done) return done;
        std::vector<unsigned char> secret;
        const WipeAtEnd wipe(secret);
        if (auto done = read_broker_secret(read.broker_secret, read.broker_secret_bytes, secret); !done) return done;
        if (!secret.empty() && read.curve_file_bytes != 0)
            return Error::make(MUSTER_E_ARG, "curve_file and a broker secret exclude each other: the file has the key");
        read.broker_secret = secret.data();
        read.broker_secret_bytes = secret.size();
        auto broker = Broker::open(*unwrap(context), {address, address_bytes}, read);
        if (!broker) return broker.error();
        *out_broker = wrap(broker->detach());
        return {};
    });
}

muster_status muster_broker_address(muster_broker *broker, char *out_text, size_t capacity, size_t *out_bytes) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_handle(broker); status < 0) return status;
        if (!out_bytes) return Status{MUSTER_E_ARG};
        const std::string &text = unwrap(broker)->running().address();
        *out_bytes = text.size();
        if (!out_text) return Status{MUSTER_OK};
        if (capacity < text.size() + 1) return Status{MUSTER_E_LIMIT};
        memcpy(out_text, text.c_str(), text.size() + 1);
        return Status{MUSTER_OK};
    });
}

muster_status muster_broker_get_stats(muster_broker *broker, muster_broker_stats *out_stats) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_handle(broker); status < 0) return status;
        if (!out_stats) return Status{MUSTER_E_ARG};
        unwrap(broker)->running().stats(*out_stats);
        return Status{MUSTER_OK};
    });
}

muster_status muster_broker_close(muster_broker *broker, int64_t timeout_ns) {
    return boundary([&] {
        const Uncancelled guard;
        if (const Status status = check_handle(broker); status < 0) return status;
        const Ref<Broker> self(unwrap(broker)); // another thread may release it meanwhile
        self->running().close(timeout_ns);
        return Status{MUSTER_OK};
    });
}

muster_status muster_broker_close_begin(muster_broker *broker, int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                        muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (const Status status = check_handle(broker); status < 0) return Error::from_status(status);
        const auto close = [self = Ref<Broker>(unwrap(broker)), timeout_ns] {
            self->running().close(timeout_ns);
            return BegunCall::Outcome();
        };
        return BegunCall::begin({unwrap(broker)->context(), MUSTER_DONE_CALL, close}, queue, tag);
    });
}

void muster_broker_release(muster_broker *broker) {
    if (broker) unwrap(broker)->release();
}

} // extern "C"
