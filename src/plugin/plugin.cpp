// SPDX-License-Identifier: MIT
// One plug-in in one context, and the host functions any plug-in may use: descriptors, timers, keys, log.
#include "plugin/plugin.hpp"

#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/thread.hpp"
#include "plugin/connections.hpp"
#include "plugin/fabric.hpp"
#include "plugin/timed.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <sys/epoll.h>

using namespace muster;

namespace {
PluginStores store_module{}; // written while the library is loaded, by one thread
} // namespace

bool PluginStores::set(const PluginStores &stores) noexcept {
    store_module = stores;
    return true;
}

// The targets of a plug-in's watches and timers.
struct muster_watch {
    Plugin *plugin;
    std::unique_ptr<LoopWatch> watch;

    void set(uint32_t events) noexcept {
        uint32_t wanted = 0;
        for (const auto &[ours, epolls] : bits)
            if (events & ours) wanted |= epolls;
        watch->set_events(wanted);
    }
    static uint32_t reported(uint32_t epoll_events) noexcept {
        uint32_t events = 0;
        for (const auto &[ours, epolls] : bits)
            if (epoll_events & epolls) events |= ours;
        return events;
    }
    static constexpr std::pair<uint32_t, uint32_t> bits[] = {
        {MUSTER_PLUGIN_READABLE, EPOLLIN}, {MUSTER_PLUGIN_WRITABLE, EPOLLOUT}, {MUSTER_PLUGIN_HANGUP, EPOLLRDHUP}};
};

struct muster_timer {
    Plugin *plugin;
    LoopTimer timer;
    muster_timer(Plugin &plugin, void (*due)(void *), void *user)
        : plugin(&plugin), timer(plugin.context().loop(),
                                 [&plugin, due, user] { timed(plugin, "a timer", [due, user] { due(user); }); }) {}
};

namespace muster {

struct HostFunctions {
    static void log(const muster_host *host, int32_t level, const char *text, uint64_t text_bytes) {
        Plugin &plugin = Plugin::of(host);
        if (text == nullptr || level < MUSTER_LOG_ERROR || level > MUSTER_LOG_DEBUG || !plugin.context_.logs(level))
            return;
        plugin.context_.log(level, "%s: %.*s", plugin.name(), static_cast<int>(std::min<uint64_t>(text_bytes, 200)),
                            text);
    }

    static Status derive(const muster_host *host, const char *label, uint64_t label_bytes, void *out_key,
                         uint64_t key_bytes) {
        if (label == nullptr || out_key == nullptr || key_bytes < 16 || key_bytes > 64) return MUSTER_E_ARG;
        const std::vector<unsigned char> &secret = Plugin::of(host).context_.settings.secret;
        // Two steps: a key of fixed size from the secret, then one from that and the label.
        unsigned char root[64];
        static constexpr char role[] = "muster plug-in key 1";
        crypto_generichash_state state;
        crypto_generichash_init(&state, reinterpret_cast<const unsigned char *>(role), sizeof role - 1, sizeof root);
        crypto_generichash_update(&state, secret.data(), secret.size());
        crypto_generichash_final(&state, root, sizeof root);
        crypto_generichash(static_cast<unsigned char *>(out_key), key_bytes,
                           reinterpret_cast<const unsigned char *>(label), label_bytes, root, sizeof root);
        sodium_memzero(root, sizeof root);
        return MUSTER_OK;
    }

    template <class Ops, class Made>
    static Status add(const muster_host *host, const char *scheme, uint64_t scheme_bytes, const Ops *ops, void *self,
                      muster_error *error, const char *table_name) {
        Plugin &plugin = Plugin::of(host);
        return boundary(error, [&]() -> Result<void> {
            if (!plugin.entering_)
                return Error::make(MUSTER_E_ARG, "%s: schemes are registered inside muster_plugin_v1", plugin.name());
            if (scheme == nullptr || ops == nullptr || !valid_scheme({scheme, static_cast<size_t>(scheme_bytes)}))
                return Error::make(MUSTER_E_ARG, "%s: no scheme or no table", plugin.name());
            Ops table;
            if (ops->struct_size < sizeof(Ops))
                return Error::make(MUSTER_E_ABI, "%s: its %s has %u bytes, this library needs %zu", plugin.name(),
                                   table_name, ops->struct_size, sizeof(Ops));
            if (Result<void> read = read_config(ops, table, table_name); !read) return read;
            const std::string name(scheme, scheme_bytes);
            if (Registry::of(plugin.context_).known(name))
                return Error::make(MUSTER_E_EXISTS, "%s: %s:// is taken", plugin.name(), name.c_str());
            auto made = Made::make(plugin, name, table, self);
            if (!made) return made.error();
            Made *transport = made->get();
            if constexpr (requires { table.poll; }) plugin.polls_ |= table.poll != nullptr;
            plugin.schemes_.push_back({name, Ref<Transport>(std::move(*made)), transport});
            return {};
        });
    }

    static Status add_connections(const muster_host *host, const char *scheme, uint64_t scheme_bytes,
                                  const muster_connections_ops *ops, void *self, muster_error *error) {
        return add<muster_connections_ops, Connections>(host, scheme, scheme_bytes, ops, self, error,
                                                        "muster_connections_ops");
    }

    static Status add_fabric(const muster_host *host, const char *scheme, uint64_t scheme_bytes,
                             const muster_fabric_ops *ops, void *self, muster_error *error) {
        return add<muster_fabric_ops, Fabric>(host, scheme, scheme_bytes, ops, self, error, "muster_fabric_ops");
    }

    static Status add_store(const muster_host *host, const char *scheme, uint64_t scheme_bytes,
                            const muster_store_host_ops *ops, void *self, muster_error *error) {
        Plugin &plugin = Plugin::of(host);
        return boundary(error, [&]() -> Result<void> {
            if (!plugin.entering_)
                return Error::make(MUSTER_E_ARG, "%s: schemes are registered inside muster_plugin_v1", plugin.name());
            if (scheme == nullptr || ops == nullptr || !valid_scheme({scheme, static_cast<size_t>(scheme_bytes)}))
                return Error::make(MUSTER_E_ARG, "%s: no scheme or no table", plugin.name());
            if (store_module.make == nullptr) return Error::from_status(MUSTER_E_UNSUPPORTED);
            plugin.stores_.reserve(plugin.stores_.size() + 1);
            auto made = store_module.make(plugin, std::string(scheme, scheme_bytes), ops, self);
            if (!made) return made.error();
            plugin.stores_.push_back(std::move(*made));
            return {};
        });
    }

    static Status watch_fd(const muster_host *host, int32_t fd, uint32_t events, void (*ready)(void *, uint32_t),
                           void *user, muster_watch **out_watch) {
        Plugin &plugin = Plugin::of(host);
        if (fd < 0 || ready == nullptr || out_watch == nullptr) return MUSTER_E_ARG;
        return boundary([&]() -> Status {
            auto made = LoopWatch::make(plugin.context_.loop(), fd, [&plugin, ready, user](uint32_t happened) {
                timed(plugin, "a watched descriptor", [=] { ready(user, muster_watch::reported(happened)); });
            });
            if (!made) return made.error().os_errno == EEXIST ? MUSTER_E_EXISTS : made.error().status;
            auto watch = std::make_unique<muster_watch>(muster_watch{&plugin, std::move(*made)});
            plugin.watches_.insert(watch.get());
            watch->set(events);
            *out_watch = watch.release();
            return MUSTER_OK;
        });
    }

    static void change_fd(muster_watch *watch, uint32_t events) {
        if (watch != nullptr) watch->set(events);
    }

    static void unwatch_fd(muster_watch *watch) {
        if (watch == nullptr) return;
        watch->plugin->watches_.erase(watch);
        delete watch;
    }

    static Status start_timer(const muster_host *host, int64_t after_ns, int64_t repeat_ns, void (*due)(void *),
                              void *user, muster_timer **out_timer) {
        Plugin &plugin = Plugin::of(host);
        if (due == nullptr || out_timer == nullptr) return MUSTER_E_ARG;
        return boundary([&]() -> Status {
            auto timer = std::make_unique<muster_timer>(plugin, due, user);
            plugin.timers_.insert(timer.get());
            timer->timer.start(after_ns, repeat_ns);
            *out_timer = timer.release();
            return MUSTER_OK;
        });
    }

    static void stop_timer(muster_timer *timer) {
        if (timer == nullptr) return;
        timer->plugin->timers_.erase(timer);
        delete timer;
    }

    static Status post(const muster_host *host, void (*run)(void *), void *user) {
        if (run == nullptr) return MUSTER_E_ARG;
        return boundary([&]() -> Status {
            Plugin &plugin = Plugin::of(host);
            const auto call = [&plugin, run, user] { timed(plugin, "a posted function", [run, user] { run(user); }); };
            return plugin.context_.post(call) ? MUSTER_OK : MUSTER_E_CLOSED;
        });
    }

    static void *acquire_buffer(const muster_host *host) { return Plugin::of(host).plugins_.pool->take(); }
    static void release_buffer(const muster_host *host, void *segment) {
        Plugin::of(host).plugins_.pool->give(segment);
    }
};

Error plugin_error(const Plugin &plugin, const Error &error, Status status, const char *what,
                   const std::string &address) {
    if (status >= 0)
        return Error::make(MUSTER_E_PLUGIN, "%s %s: %s answered %d", what, address.c_str(), plugin.name(), status);
    const size_t length = strnlen(error.message, sizeof error.message);
    const char *text = length != 0 ? error.message : muster_status_text(status);
    Error made =
        Error::make(status, "%s %s: %.*s", what, address.c_str(), length != 0 ? static_cast<int>(length) : 200, text);
    made.os_errno = error.os_errno;
    made.provider_code = error.provider_code;
    return made;
}

Plugin::Plugin(Context &context, Plugins &plugins, std::string path)
    : context_(context), plugins_(plugins), path_(std::move(path)), name_(path_.substr(path_.rfind('/') + 1)) {
    table_.struct_size = sizeof table_;
    table_.flags = context.external() ? MUSTER_HOST_EXTERNAL : 0;
    table_.library = this;
    table_.log = HostFunctions::log;
    table_.derive = HostFunctions::derive;
    table_.add_connections = HostFunctions::add_connections;
    table_.add_fabric = HostFunctions::add_fabric;
    table_.watch_fd = HostFunctions::watch_fd;
    table_.change_fd = HostFunctions::change_fd;
    table_.unwatch_fd = HostFunctions::unwatch_fd;
    table_.start_timer = HostFunctions::start_timer;
    table_.stop_timer = HostFunctions::stop_timer;
    table_.post = HostFunctions::post;
    table_.acquire_buffer = HostFunctions::acquire_buffer;
    table_.release_buffer = HostFunctions::release_buffer;
    table_.add_store = HostFunctions::add_store;
    if (store_module.fill_functions != nullptr) store_module.fill_functions(table_);
    Connections::fill(table_);
    Fabric::fill(table_);
}

Plugin::~Plugin() = default;

Result<void> Plugin::enter(muster_plugin_v1_fn entry) {
    Error why;
    entering_ = true;
    why.status = entry(&table_, &why);
    entering_ = false;
    end_threads_before(reinterpret_cast<const void *>(entry)); // it has initialised its libraries
    if (why.status != MUSTER_OK) {
        why.message[sizeof why.message - 1] = '\0';
        return Error::make(why.status < 0 ? why.status : MUSTER_E_PLUGIN, "plug-in %s declines: %s", path_.c_str(),
                           why.message[0] != '\0' ? why.message : muster_status_text(why.status));
    }
    if (schemes_.empty() && stores_.empty())
        return Error::make(MUSTER_E_PLUGIN, "plug-in %s registers no scheme", path_.c_str());
    size_t added = 0;
    Result<void> published;
    try {
        published = publish(added);
    } catch (const std::bad_alloc &) { // the caller disowns the plug-in, as after every error
        published = Error::make(MUSTER_E_NOMEM, "load plug-in %s: out of memory", path_.c_str());
    }
    if (!published)
        while (added != 0) Registry::of(context_).remove(schemes_[--added].name);
    return published;
}

// Registers its schemes, of which `added` are known to the context then, and its stores.
Result<void> Plugin::publish(size_t &added) {
    if (polls_)
        if (auto shared = context_.share(); !shared) return shared;
    Registry &registry = Registry::of(context_);
    for (; added < schemes_.size(); added++)
        if (auto done = registry.add(schemes_[added].name, schemes_[added].transport); !done) return done;
    for (const Ref<PluginStore> &store : stores_)
        if (auto done = store->publish(); !done) return done;
    return {};
}

bool Plugin::brings_store(const std::string &scheme) const noexcept {
    return std::any_of(stores_.begin(), stores_.end(), [&](const auto &store) { return store->scheme() == scheme; });
}

// From now on the context ends its transports: at its own end, or at once if they were not registered after all.
void Plugin::hand_over(bool end_at_once) noexcept {
    for (const Scheme &scheme : schemes_) scheme.session_transport->enter(context_, end_at_once);
}

void Plugin::disown() noexcept {
    path_.clear();
    hand_over(true);
    schemes_.clear();
    for (const Ref<PluginStore> &store : stores_) store->withdraw();
    stores_.clear();
}

void Plugin::stop() noexcept {
    while (!watches_.empty()) HostFunctions::unwatch_fd(*watches_.begin());
    while (!timers_.empty()) HostFunctions::stop_timer(*timers_.begin());
    schemes_.clear();
    stores_.clear();
}

} // namespace muster
