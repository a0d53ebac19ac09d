// SPDX-License-Identifier: MIT
#include "plugin/plugins.hpp"

#include "plugin/plugin.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

namespace {

// Plug-ins that belong to Muster, and the libraries that they need.
struct KnownPlugin {
    const char *scheme, *package;
};
constexpr KnownPlugin known_plugins[] = {
    {"zmq", "libzmq5 (to build it, libzmq3-dev)"},
    {"mpi", "libopenmpi3 (to build it, libopenmpi-dev)"},
    {"etcd", "libcurl4 (to build it, libcurl4-openssl-dev and nlohmann-json3-dev)"},
};

// Debian's packages for libraries that plug-ins are linked with.
struct KnownLibrary {
    const char *file, *package;
};
constexpr KnownLibrary known_libraries[] = {
    {"libzmq.so.5", "libzmq5"},   {"libsodium.so.23", "libsodium23"}, {"libmpi.so.40", "libopenmpi3"},
    {"libcurl.so.4", "libcurl4"}, {"libstdc++.so.6", "libstdc++6"},   {"libluajit-5.1.so.2", "libluajit-5.1-2"},
};

const char *package_of_missing(const char *text) noexcept {
    for (const KnownLibrary &library : known_libraries)
        if (strstr(text, library.file) != nullptr && strstr(text, "cannot open shared object file") != nullptr)
            return library.package;
    return nullptr;
}

// <folder of libmuster.so>/muster/<major>, which follows an installed tree that was moved; then the one it was built
// for.
std::vector<std::string> search_folders() {
    std::vector<std::string> folders;
    const auto add = [&](std::string folder) {
        if (!folder.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end())
            folders.push_back(std::move(folder));
    };
    if (const char *path = secure_getenv("MUSTER_PLUGIN_PATH")) {
        const std::string text = path;
        for (size_t at = 0; at <= text.size();) {
            const size_t colon = std::min(text.find(':', at), text.size());
            add(text.substr(at, colon - at));
            at = colon + 1;
        }
    }
    Dl_info own;
    if (dladdr(reinterpret_cast<void *>(&muster_plugin_load), &own) != 0 && own.dli_fname != nullptr) {
        const std::string file = own.dli_fname;
        const size_t slash = file.rfind('/');
        if (slash != std::string::npos) add(file.substr(0, slash) + "/muster/" + std::to_string(MUSTER_VERSION_MAJOR));
    }
    add(MUSTER_PLUGIN_DIR);
    return folders;
}

bool writable_by_all(const struct stat &about) noexcept {
    return (about.st_mode & S_IWOTH) != 0;
}

// A user who may write the file, or replace it, can run code in this process. Root, the user of the process and the
// owner of the library may. The folders of the library itself are not checked, and neither is anything if all users may
// write the library: a user who can change the library needs no plug-in.
Result<void> check_who_may_change(const char *file) {
    Dl_info own;
    char library[PATH_MAX] = "";
    struct stat of_library {};
    if (dladdr(reinterpret_cast<void *>(&muster_plugin_load), &own) != 0 && own.dli_fname != nullptr &&
        realpath(own.dli_fname, library) != nullptr && stat(library, &of_library) == 0 && writable_by_all(of_library))
        return {};
    const auto trusted = [&](uid_t owner) {
        return owner == 0 || owner == geteuid() || (library[0] != '\0' && owner == of_library.st_uid);
    };
    const auto refuse = [&](const std::string &path, const struct stat &about, const char *why) {
        return Error::make(MUSTER_E_PERMISSION, "load plug-in %s: %s %s (owner %u, mode %04o)", file, path.c_str(), why,
                           static_cast<unsigned>(about.st_uid), static_cast<unsigned>(about.st_mode & 07777));
    };
    std::string path = file;
    struct stat about {};
    if (stat(file, &about) != 0) return Error::from_errno(errno, MUSTER_OK, "load plug-in %s", file);
    if (writable_by_all(about)) return refuse(path, about, "may be written by all");
    for (;;) { // `about` is that of `path`
        if (geteuid() == 0 && !trusted(about.st_uid)) return refuse(path, about, "belongs to another user");
        const size_t slash = path.rfind('/');
        const std::string folder = path.substr(0, slash + 1);
        if (slash == std::string::npos || path == "/" || std::strncmp(library, folder.c_str(), folder.size()) == 0)
            return {};
        const struct stat inside = about;
        const std::string name = slash == 0 ? "/" : path.substr(0, slash);
        if (stat(name.c_str(), &about) != 0)
            return Error::from_errno(errno, MUSTER_OK, "load plug-in %s: %s", file, name.c_str());
        if (writable_by_all(about) && (about.st_mode & S_ISVTX) == 0)
            return refuse(name, about, "is a folder in which all may write");
        if (writable_by_all(about) && !trusted(inside.st_uid))
            return refuse(path, inside, "belongs to another user, in a folder in which all may write");
        path = name;
    }
}

// Libraries with which a plug-in is linked may install signal handlers as soon as they are loaded (UCX does, for
// SIGSEGV among others). Signals belong to the host.
class Dispositions {
  public:
    Dispositions() noexcept {
        for (int number = 1; number < NSIG; number++)
            known_[number] = sigaction(number, nullptr, &before_[number]) == 0;
    }
    ~Dispositions() {
        for (int number = 1; number < NSIG; number++) {
            struct sigaction now {};
            if (known_[number] && sigaction(number, nullptr, &now) == 0 &&
                (now.sa_handler != before_[number].sa_handler || now.sa_flags != before_[number].sa_flags))
                sigaction(number, &before_[number], nullptr);
        }
    }
    Dispositions(const Dispositions &) = delete;
    Dispositions &operator=(const Dispositions &) = delete;

  private:
    struct sigaction before_[NSIG] {};
    bool known_[NSIG] = {};
};

int key_;

} // namespace

Plugins &Plugins::of(Context &context) {
    return static_cast<Plugins &>(
        context.part(&key_, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Plugins>(c); }));
}

Plugins::Plugins(Context &context) : context_(context), served_(ServedRequests::of(context)) {}

Plugins::~Plugins() = default;

Result<void> Plugins::load(const std::string &path) {
    const std::lock_guard hold(lock_);
    return load_locked(path);
}

Result<void> Plugins::load_locked(const std::string &path) {
    if (context_.closed()) return Error::make(MUSTER_E_CLOSED, "load plug-in %s: the context is closed", path.c_str());
    char real[PATH_MAX];
    if (realpath(path.c_str(), real) == nullptr)
        return Error::from_errno(errno, errno == ENOENT || errno == ENOTDIR ? MUSTER_E_NOT_FOUND : MUSTER_OK,
                                 "load plug-in %s", path.c_str());
    for (const auto &plugin : plugins_)
        if (plugin->path() == real) return {};
    if (access(real, R_OK) != 0) return Error::from_errno(errno, MUSTER_OK, "load plug-in %s", real);
    if (auto allowed = check_who_may_change(real); !allowed) return allowed;
    // Never unloaded: its threads and thread-local destructors may outlive every context.
    void *file = nullptr;
    {
        const Dispositions dispositions;
        file = dlopen(real, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    if (file == nullptr) {
        const char *why = dlerror();
        const char *package = package_of_missing(why != nullptr ? why : "");
        return Error::make(MUSTER_E_PLUGIN, "load plug-in %s: %s%s%s", real, why != nullptr ? why : "unknown reason",
                           package != nullptr ? "; package " : "", package != nullptr ? package : "");
    }
    const auto entry = reinterpret_cast<muster_plugin_v1_fn>(dlsym(file, "muster_plugin_v1"));
    if (entry == nullptr)
        return Error::make(MUSTER_E_PLUGIN, "load plug-in %s: it does not export muster_plugin_v1", real);
    auto plugin = std::make_unique<Plugin>(context_, *this, real);
    plugins_.reserve(plugins_.size() + 1);
    if (const Result<void> entered = plugin->enter(entry); !entered) {
        // It may have kept the table; its objects stay, but serve nothing.
        plugins_.push_back(std::move(plugin));
        plugins_.back()->disown();
        return entered.error();
    }
    context_.log(MUSTER_LOG_INFO, "plug-in %s loaded", real);
    plugins_.push_back(std::move(plugin));
    plugins_.back()->hand_over(false);
    return {};
}

Result<void> Plugins::provide(const std::string &scheme, const char *what) {
    const std::lock_guard hold(lock_);
    const std::string name = "muster-" + scheme + ".so";
    std::string searched;
    for (const std::string &folder : search_folders()) {
        std::string path = folder;
        path.append("/").append(name);
        if (access(path.c_str(), F_OK) == 0) return load_locked(path);
        searched.append(searched.empty() ? "" : ", ").append(folder);
    }
    for (const KnownPlugin &known : known_plugins)
        if (scheme == known.scheme)
            return Error::make(MUSTER_E_PLUGIN,
                               "%s %s: its plug-in, which needs package %s, is not installed: no %s in %s", what,
                               scheme.c_str(), known.package, name.c_str(), searched.c_str());
    return Error::make(MUSTER_E_NOT_FOUND, "%s %s: not built in, and no %s in %s", what, scheme.c_str(), name.c_str(),
                       searched.c_str());
}

bool Plugins::brings_store(const std::string &scheme) noexcept {
    const std::lock_guard hold(lock_);
    return std::any_of(plugins_.begin(), plugins_.end(),
                       [&](const auto &plugin) { return plugin->brings_store(scheme); });
}

void SessionTransport::enter(Context &context, bool end_at_once) noexcept {
    context_ = &context;
    end_at_once_ = end_at_once;
    entering_.post(context);
}

void SessionTransport::enter_here() noexcept {
    if (end_at_once_)
        context_stops();
    else
        Plugins::of(*context_).add(*this);
}

void Plugins::add(SessionTransport &transport) noexcept {
    if (transports_.holds(transport)) return;
    if (stopped_) return transport.context_stops();
    transport.transport_object().retain();
    transports_.push_back(transport);
}

void SessionTransport::leave() noexcept {
    if (context_ != nullptr) Plugins::of(*context_).remove(*this);
}

void Plugins::remove(SessionTransport &transport) noexcept {
    if (!transports_.holds(transport)) return;
    transports_.remove(transport);
    transport.transport_object().release();
}

void Plugins::close() noexcept {
    for (SessionTransport *t = transports_.begin_walk(); t != nullptr; t = transports_.next()) t->context_closes();
}

bool Plugins::drained() noexcept {
    bool all = true;
    for (SessionTransport *t = transports_.begin_walk(); t != nullptr; t = transports_.next())
        all = t->context_drained() && all;
    return all;
}

void Plugins::stop() noexcept {
    stopped_ = true;
    while (SessionTransport *const transport = transports_.pop_front()) {
        transport->context_stops();
        transport->transport_object().release();
    }
    served_.stop(); // callbacks of the plug-ins' stores run for the last time
    const std::lock_guard hold(lock_);
    for (const auto &plugin : plugins_) plugin->stop();
}

[[maybe_unused]] const bool provides_transports = Registry::set_provider(
    [](Context &context, const std::string &scheme) -> Result<void> { return Plugins::of(context).provide(scheme); });

} // namespace muster
