// SPDX-License-Identifier: MIT
#include "transport/builtin.hpp"
#include "transport/transport.hpp"

namespace muster {

namespace {
// Written while the library is loaded, by one thread. Without the plug-in loader (in unit tests): NULL.
Registry::Provider provider = nullptr;
} // namespace

bool Registry::set_provider(Provider it) noexcept {
    provider = it;
    return true;
}

Registry &Registry::of(Context &context) {
    static const char key = 0;
    return static_cast<Registry &>(
        context.part(&key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Registry>(c); }));
}

Registry::Registry(Context &context) : context_(context) {
    transports_.emplace("inproc", make_inproc_transport());
    transports_.emplace("tcp", make_tcp_transport());
    transports_.emplace("unix", make_unix_transport());
    transports_.emplace("shm", make_shm_transport());
}

Result<void> Registry::add(const std::string &scheme, Ref<Transport> transport) {
    const std::lock_guard hold(lock_);
    if (!transports_.emplace(scheme, std::move(transport)).second)
        return Error::make(MUSTER_E_EXISTS, "transport %s:// is known already", scheme.c_str());
    return {};
}

bool Registry::remove(const std::string &scheme) {
    Ref<Transport> gone; // released without the lock
    const std::lock_guard hold(lock_);
    const auto found = transports_.find(scheme);
    if (found == transports_.end()) return false;
    gone = std::move(found->second);
    transports_.erase(found);
    return true;
}

Ref<Transport> Registry::known(const std::string &scheme) {
    const std::lock_guard hold(lock_);
    const auto found = transports_.find(scheme);
    return found == transports_.end() ? Ref<Transport>() : found->second;
}

Result<Ref<Transport>> Registry::find(const std::string &scheme) {
    Ref<Transport> transport = known(scheme);
    if (!transport && provider != nullptr) {
        if (auto found = provider(context_, scheme); !found) return found.error();
        transport = known(scheme);
    }
    if (!transport) return Error::make(MUSTER_E_NOT_FOUND, "no transport for %s://", scheme.c_str());
    return transport;
}

} // namespace muster
