// SPDX-License-Identifier: MIT
// etcd:// - stores that an etcd keeps, as a plug-in like others.
#include "store.hpp"
#include "task.hpp"

#include <cstring>
#include <exception>

namespace etcd {

void Plugin::request(uint64_t request, const muster_store_request &what) {
    if (what.kind == MUSTER_STORE_REQUEST_OPEN) {
        Url url;
        const Failure wrong = Url::parse({what.url, what.url_bytes}, url);
        if (wrong.status == MUSTER_OK) {
            stores_.emplace(request, std::make_unique<Store>(*this, request, std::move(url)));
            return;
        }
        host_->store_failed(host_, request, wrong.status, UINT32_MAX, wrong.text.data(), wrong.text.size());
        return;
    }
    const auto found = stores_.find(what.store);
    if (found != stores_.end()) found->second->request(request, what);
}

void Plugin::cancel(uint64_t request) noexcept {
    const auto open = stores_.find(request);
    if (open != stores_.end()) return open->second->close();
    for (const auto &[id, store] : stores_) store->cancel(request);
}

void Plugin::close(uint64_t store) noexcept {
    const auto found = stores_.find(store);
    if (found != stores_.end()) found->second->close();
}

namespace {

const muster_store_host_ops ops = {
    sizeof ops,
    0,
    [](void *self, uint64_t request, const muster_store_request *what) {
        Plugin &plugin = *static_cast<Plugin *>(self);
        try {
            plugin.request(request, *what);
        } catch (const std::exception &) {
            constexpr char text[] = "out of memory";
            plugin.host()->store_failed(plugin.host(), request, MUSTER_E_NOMEM, UINT32_MAX, text, sizeof text - 1);
        }
    },
    [](void *self, uint64_t request) { static_cast<Plugin *>(self)->cancel(request); },
    [](void *self, uint64_t store) { static_cast<Plugin *>(self)->close(store); },
    [](void *self) { delete static_cast<Plugin *>(self); },
};

} // namespace

} // namespace etcd

extern "C" MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    const auto decline = [error](muster_status status, const char *text) {
        if (error != nullptr) {
            error->message_bytes = static_cast<uint32_t>(strlen(text));
            memcpy(error->message, text, strlen(text) + 1);
        }
        return status;
    };
    if (host->struct_size < sizeof *host) return decline(MUSTER_E_ABI, "the library is older than the plug-in");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return decline(MUSTER_E_SYSTEM, "libcurl does not start");
    auto *const plugin = new (std::nothrow) etcd::Plugin(host);
    if (plugin == nullptr) return decline(MUSTER_E_NOMEM, "out of memory");
    const muster_status added = host->add_store(host, "etcd", 4, &etcd::ops, plugin, error);
    if (added != MUSTER_OK) delete plugin;
    return added;
}
