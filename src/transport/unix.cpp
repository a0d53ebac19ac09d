// SPDX-License-Identifier: MIT
// unix:///path, unix://@name; and shm://name, which is a Unix socket over which two processes set up shared memory.
#include "transport/builtin.hpp"
#include "transport/socket_dial.hpp"
#include "transport/socket_listener.hpp"

#include <sys/file.h>
#include <sys/stat.h>

namespace muster {
namespace {

Error failed(const Address &address, int os_errno) {
    Error why = Error::from_errno(os_errno, MUSTER_OK, "listen at %s", address.text.c_str());
    if (os_errno == EADDRINUSE) why.status = MUSTER_E_EXISTS;
    if (os_errno == ENOENT || os_errno == ENOTDIR) why.status = MUSTER_E_NOT_FOUND;
    return why;
}

// The folder of the socket: made with mode 0700 if it is missing; otherwise no other user may add or remove files
// there.
Result<Fd> open_folder(const Address &address) {
    const size_t slash = address.path.rfind('/');
    const std::string folder = slash == 0 ? "/" : address.path.substr(0, slash);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        // An existing folder of another user is valid, although this user has no right to make it.
        const int why = errno;
        struct stat exists {};
        if (stat(folder.c_str(), &exists) != 0) return failed(address, why);
    }
    Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat about {};
    if (!fd || fstat(fd.get(), &about) != 0) return failed(address, errno);
    if ((about.st_mode & 022) != 0 && (about.st_mode & S_ISVTX) == 0)
        return Error::make(MUSTER_E_PERMISSION, "listen at %s: folder %s can be changed by others (mode %03o)",
                           address.text.c_str(), folder.c_str(), about.st_mode & 0777);
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return Error::make(MUSTER_E_PERMISSION, "listen at %s: folder %s belongs to user %u", address.text.c_str(),
                           folder.c_str(), about.st_uid);
    return fd;
}

// Does no process listen at the socket file? Only a connection shows that.
bool is_stale(const SocketAddress &at) noexcept {
    auto probe = open_socket(AF_UNIX);
    return probe && connect(probe->get(), at.get(), at.size) != 0 && errno == ECONNREFUSED;
}

Result<void> bind_path(const Address &address, int fd, SocketFile &file) {
    auto folder = open_folder(address);
    if (!folder) return folder.error();
    // Two processes that both find the same stale file use this lock: the second then finds the listener of the first.
    // A lock that is not available (another file system, another process that holds it) must not prevent a listener.
    bool locked = false;
    for (int i = 0; i < 20 && !locked; i++) {
        locked = flock(folder->get(), LOCK_EX | LOCK_NB) == 0;
        if (!locked && errno != EWOULDBLOCK) break;
        if (!locked) usleep(5000);
    }
    const SocketAddress at = unix_socket_address(address.path);
    int rc = bind(fd, at.get(), at.size);
    struct stat about {};
    if (rc != 0 && errno == EADDRINUSE) {
        if (lstat(address.path.c_str(), &about) == 0 && !S_ISSOCK(about.st_mode))
            return Error::make(MUSTER_E_EXISTS, "listen at %s: there is a file that is no socket",
                               address.text.c_str());
        if (!is_stale(at)) return failed(address, EADDRINUSE);
        unlink(address.path.c_str());
        rc = bind(fd, at.get(), at.size);
    }
    if (rc != 0) return failed(address, errno);
    // Before listen(): no peer can have connected yet.
    if (chmod(address.path.c_str(), 0600) != 0 || lstat(address.path.c_str(), &about) != 0)
        return failed(address, errno);
    file = {address.path, about.st_dev, about.st_ino};
    if (::listen(fd, SOMAXCONN) != 0) return failed(address, errno);
    return {};
}

// Both schemes; `shared`: shm.
class UnixTransport final : public Transport {
  public:
    explicit UnixTransport(bool shared) : shared_(shared) {}

    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override {
        Hub &hub = Hub::of(dial->context());
        auto config = settle(hub, address, options, true);
        if (!config) return dial->done(config.error());
        auto socket_dial = make_ref<SocketDial>(hub, address, std::move(*config), options.taker, dial);
        if (socket_dial->wanted()) socket_dial->start({unix_socket_address(path_of(hub, address))});
    }

    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override {
        Hub &hub = Hub::of(core->context());
        auto config = settle(hub, address, options, false);
        if (!config) return config.error();
        auto fd = open_socket(AF_UNIX);
        if (!fd) return failed(address, fd.error().os_errno);
        const std::string path = path_of(hub, address);
        SocketFile file;
        if (path[0] == '@') {
            const SocketAddress at = unix_socket_address(path);
            if (bind(fd->get(), at.get(), at.size) != 0 || ::listen(fd->get(), SOMAXCONN) != 0)
                return failed(address, errno);
        } else if (auto bound = bind_path(address, fd->get(), file); !bound) {
            return bound.error();
        }
        auto listener = make_ref<SocketListener>(hub, std::move(*fd), address.scheme + "://" + address.path,
                                                 std::move(core), options.taker, std::move(*config), std::move(file));
        if (auto started = listener->start(); !started) return started.error();
        return Ref<TransportListener>(std::move(listener));
    }

  private:
    Result<HandshakeConfig> settle(Hub &hub, const Address &address, const TransportOptions &options, bool dialer) {
        auto ok = shared_ ? check_options(address, {"auth"}) : check_options(address, {"auth", "upgrade", "seal"});
        if (!ok) return ok.error();
        auto config = handshake_config_for(hub, address, options, dialer);
        if (config && shared_) {
            config->shared = config->upgrade = true;
            config->seal = SealPolicy::off_host; // there is no link on which the bytes could leave the host
        }
        return config;
    }

    // shm: an abstract name per user. It vanishes with its process; the kernel reports its owner.
    std::string path_of(const Hub &hub, const Address &address) const {
        return shared_ ? "@muster/" + std::to_string(hub.host.user) + "/" + address.path : address.path;
    }

    const bool shared_;
};

} // namespace

Ref<Transport> make_unix_transport() {
    return make_ref<UnixTransport>(false);
}
Ref<Transport> make_shm_transport() {
    return make_ref<UnixTransport>(true);
}

} // namespace muster
