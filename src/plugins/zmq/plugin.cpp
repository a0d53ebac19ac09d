// SPDX-License-Identifier: MIT
// zmq:// - a star of processes around a broker, as a fabric plug-in.
#include "plugin.hpp"

#include "base/percent.hpp"
#include "broker.hpp"
#include "key_file.hpp"

#include <cerrno>
#include <mutex>
#include <new>
#include <unistd.h>

namespace star {

muster_status fail(muster_error *error, muster_status status, const std::string &text) noexcept {
    if (error != nullptr) {
        error->status = status;
        snprintf(error->message, sizeof error->message, "%s", text.c_str());
    }
    return status;
}

Plugin::Plugin(const muster_host *host) : host_(host), keys_(host) {
    char name[17];
    snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(random_u64()));
    own_name_ = name;
}

// Messages that were sent last are still written: all stars begin to leave, then each is drained.
Plugin::~Plugin() {
    constexpr int64_t linger_ns = 2'000'000'000; // of all together
    const int64_t until = now_ns() + linger_ns;
    for (auto &[key, star] : stars_) star->leave();
    for (auto &[key, star] : stars_) star->drain(until - now_ns());
    stars_.clear();
}

void Plugin::log(int32_t level, std::string_view text) const noexcept {
    host_->log(host_, level, text.data(), text.size());
}

void Plugin::start(muster_endpoint *endpoint) {
    endpoint_ = endpoint;
}

// The key of the broker is pinned by the address or by the file; otherwise it derives from the secret.
muster_status Plugin::keys_for(const BrokerAddress &address, std::optional<CurveKeys> &out,
                               std::optional<CurveKey> &pinned, std::string &why) {
    pinned = address.broker_key;
    if (!address.curve) return MUSTER_OK;
    std::string name;
    if (!muster::percent_decode(name, address.curve_file))
        return why = "a % in the curve= of the address is not followed by two hexadecimal digits", MUSTER_E_ADDRESS;
    const std::string file = key_file(name);
    if (file.empty()) {
        out = keys_.curve();
        if (pinned) out->server_public = z85_of(*pinned);
        return MUSTER_OK;
    }
    GivenKeys given;
    if (const muster_status status = read_key_file(file, KeyUser::member, given, why); status != MUSTER_OK)
        return status;
    CurveKey of_file{};
    if (!key_of_z85(given.curve.server_public, of_file)) return why = file + ": no broker-public", MUSTER_E_AUTH;
    if (pinned && *pinned != of_file)
        return why = file + ": broker-public is another key than broker= in the address", MUSTER_E_AUTH;
    pinned = of_file;
    out = given.curve;
    return MUSTER_OK;
}

// Keys are read when a star is used first.
Star *Plugin::star(std::string_view authority, BrokerAddress &address, muster_error *error) {
    std::string why;
    if (!BrokerAddress::parse(authority, address, why)) return fail(error, MUSTER_E_ADDRESS, why), nullptr;
    const auto found = stars_.find(address.key());
    if (found != stars_.end()) return found->second.get();
    std::optional<CurveKeys> keys;
    std::optional<CurveKey> pinned;
    const muster_status status = keys_for(address, keys, pinned, why);
    if (status != MUSTER_OK) return fail(error, status, why), nullptr;
    auto star = std::make_unique<Star>(*this, address, std::move(keys), pinned);
    if (const muster_status opened = star->open(); opened != MUSTER_OK)
        return fail(error, opened, "no timer for the star"), nullptr;
    return (stars_[address.key()] = std::move(star)).get();
}

uint64_t Plugin::own(Star &star, uint64_t id) {
    owned_.emplace(next_peer_, Owned{&star, id, false});
    return next_peer_++;
}

void Plugin::disown_all(const Star &star) noexcept {
    std::erase_if(owned_, [&](const auto &one) { return one.second.star == &star; });
}

Plugin::Owned Plugin::owned(uint64_t peer) const noexcept {
    const auto found = owned_.find(peer);
    return found == owned_.end() ? Owned{} : found->second;
}

// Without memory, too: a name that stays claimed is of use to no process.
void Plugin::withdraw(std::string_view authority) noexcept {
    const size_t at = authority.find('@');
    if (at == std::string_view::npos) return;
    const auto found = stars_.find(authority.substr(at + 1));
    if (found != stars_.end()) found->second->release(authority.substr(0, at));
}

void Plugin::answer(bool claim, uint64_t id, muster_status status, uint64_t peer,
                    std::string_view text) const noexcept {
    if (status > 0) status = MUSTER_E_PROTOCOL;
    if (claim)
        host_->published(endpoint_, id, status, text.data(), text.size());
    else
        host_->resolved(endpoint_, id, status, peer, text.data(), text.size());
}

namespace {

Plugin &of(void *self) noexcept {
    return *static_cast<Plugin *>(self);
}

// No exception leaves the plug-in.
template <class Body>
muster_status guarded(Body body, muster_error *error = nullptr) noexcept {
    try {
        return body();
    } catch (const std::exception &) {
        return fail(error, MUSTER_E_NOMEM, "out of memory");
    }
}

muster_status op_start(void *self, muster_endpoint *endpoint, muster_error *) {
    of(self).start(endpoint);
    return MUSTER_OK;
}

void op_stop(void *self) {
    delete &of(self);
}

muster_status op_publish(void *self, const char *authority, uint64_t authority_bytes, uint64_t id, char *, uint64_t *,
                         muster_error *error) {
    return guarded(
        [&]() -> muster_status {
            BrokerAddress address;
            muster_error why{};
            Star *const star = of(self).star({authority, authority_bytes}, address, &why);
            if (star == nullptr) return fail(error, why.status, why.message);
            star->claim(address.name.empty() ? of(self).own_name() : address.name, id);
            return MUSTER_AGAIN;
        },
        error);
}

void op_withdraw(void *self, const char *authority, uint64_t authority_bytes) {
    of(self).withdraw({authority, authority_bytes});
}

muster_status op_resolve(void *self, const char *authority, uint64_t authority_bytes, uint64_t id, uint64_t *,
                         muster_error *error) {
    return guarded(
        [&]() -> muster_status {
            BrokerAddress address;
            muster_error why{};
            Star *const star = of(self).star({authority, authority_bytes}, address, &why);
            if (star == nullptr) return fail(error, why.status, why.message);
            if (address.name.empty())
                return fail(error, MUSTER_E_ADDRESS, "the address has no name: zmq://name@" + address.place + "/");
            star->find(address.name, id);
            return MUSTER_AGAIN;
        },
        error);
}

muster_status op_send(void *self, uint64_t peer, const muster_span *spans, uint32_t span_count) {
    return guarded([&]() -> muster_status {
        const auto [star, id, is_lost] = of(self).owned(peer);
        return star == nullptr || is_lost ? MUSTER_E_PEER : star->send(id, spans, span_count);
    });
}

muster_status op_send_buffer(void *self, uint64_t peer, void *segment, uint64_t offset_bytes, uint64_t size_bytes) {
    return guarded([&]() -> muster_status {
        const auto [star, id, is_lost] = of(self).owned(peer);
        return star == nullptr || is_lost ? MUSTER_E_PEER : star->send_buffer(id, segment, offset_bytes, size_bytes);
    });
}

muster_status op_send_multicast(void *self, const uint64_t *peers, uint32_t peer_count, void *segment,
                                uint64_t offset_bytes, uint64_t size_bytes) {
    return guarded([&]() -> muster_status {
        Star *const star = of(self).owned(peers[0]).star;
        if (star == nullptr) return MUSTER_E_PEER;
        std::vector<uint64_t> ids;
        for (uint32_t i = 0; i < peer_count; i++) {
            const auto [other, id, is_lost] = of(self).owned(peers[i]);
            if (other == nullptr || is_lost) return MUSTER_E_PEER;
            if (other != star) return MUSTER_E_UNSUPPORTED;
            ids.push_back(id);
        }
        return star->send_multicast(ids, segment, offset_bytes, size_bytes);
    });
}

void op_forget(void *self, uint64_t peer) {
    guarded([&]() -> muster_status {
        const auto [star, id, is_lost] = of(self).owned(peer);
        if (is_lost)
            of(self).disown(peer);
        else if (star != nullptr)
            star->forget(id);
        return MUSTER_OK;
    });
}

const muster_fabric_ops ops = {
    .struct_size = sizeof ops,
    .flags = MUSTER_PLUGIN_OPTIONS | MUSTER_PLUGIN_UPGRADES,
    .message_bytes = max_message_bytes,
    .credit_bytes = 0, // credit is counted here: a small message costs more than its bytes
    .start = op_start,
    .stop = op_stop,
    .publish = op_publish,
    .withdraw = op_withdraw,
    .resolve = op_resolve,
    .send = op_send,
    .authenticated = nullptr,
    .segment_shared = nullptr,
    .forget = op_forget,
    .headroom_bytes = 128,
    .send_buffer = op_send_buffer,
    .broker = &broker_ops,
    .send_multicast = op_send_multicast,
    .poll = nullptr,
};

} // namespace
} // namespace star

extern "C" MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    using namespace star;
    if (host->struct_size < sizeof *host) return fail(error, MUSTER_E_ABI, "this library is older than the plug-in");
    if (zmq_has("curve") == 0) return fail(error, MUSTER_E_UNSUPPORTED, "this libzmq was built without CURVE");
    return guarded(
        [&]() -> muster_status {
            auto plugin = std::make_unique<Plugin>(host);
            const muster_status status = host->add_fabric(host, "zmq", 3, &ops, plugin.get(), error);
            if (status == MUSTER_OK) (void)plugin.release(); // op_stop frees it
            return status;
        },
        error);
}
