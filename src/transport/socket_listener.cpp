// SPDX-License-Identifier: MIT
#include "transport/socket_listener.hpp"

#include "transport/pair_broker.hpp"
#include "transport/sockets.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/stat.h>

namespace muster {

namespace {
// A connection that has not proved itself for so long makes place for a newer one.
constexpr int64_t patience_ns = 1'000'000'000;
constexpr int64_t pause_ns = 100'000'000; // without descriptors
} // namespace

SocketListener::SocketListener(Hub &hub, Fd fd, std::string address, Ref<ListenerCore> core, HandshakeConfig greeting,
                               SocketFile file)
    : hub_(hub), address_(std::move(address)), core_(std::move(core)), config_(std::move(greeting)),
      file_(std::move(file)), fd_(std::move(fd)) {}

Result<void> SocketListener::start() {
    return hub_.add(fd_.get(), EPOLLIN, *this);
}

void SocketListener::on_events(uint32_t) noexcept {
    accept_some();
}

void SocketListener::accept_some() noexcept {
    const Ref<SocketListener> self(this);
    for (;;) {
        Fd fd;
        int why = 0;
        {
            const std::lock_guard hold(lock_);
            if (!fd_) return;
            fd = Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            why = errno;
        }
        if (fd) {
            try {
                greet(std::move(fd));
            } catch (const std::bad_alloc &) {
                hub_.context().log(MUSTER_LOG_ERROR, "%s: out of memory for a connection", address_.c_str());
            }
            continue;
        }
        if (why == EAGAIN || why == EWOULDBLOCK) return;
        if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM) {
            hub_.context().log(MUSTER_LOG_ERROR, "%s: %s", address_.c_str(),
                               Error::from_errno(why, MUSTER_OK, "cannot accept a connection").message);
            if (!std::exchange(pausing_, true))
                hub_.start_timer(now_ns() + pause_ns, [self] {
                    self->pausing_ = false;
                    self->accept_some();
                });
            return;
        }
        // Others concern one connection that is gone already.
    }
}

// Room for one more that has not proved itself. False: they are all fresh, the new one has to go.
bool SocketListener::make_place() noexcept {
    if (greeting_.size() < hub_.context().settings.max_unauthenticated) return true;
    const Ref<Greeter> oldest = greeting_.front();
    if (now_ns() - oldest->since() < patience_ns) return false;
    oldest->refuse(Refusal::limit); // leaves the list
    return true;
}

void SocketListener::greet(Fd fd) {
    const bool unix_socket = local_address(fd.get()).family() == AF_UNIX;
    HandshakeConfig config = config_;
    GreeterSetup setup;
    setup.window = config.window;
    setup.unix_socket = unix_socket;
    if (unix_socket) {
        int32_t process = 0;
        const uint32_t user = peer_user(fd.get(), process);
        setup.peer = address_ + " (process " + std::to_string(process) + ")";
        config.passing = user == config.host.user ? Passing::here : Passing::no;
        if (config.shared && config.passing == Passing::no) {
            hub_.context().counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
            hub_.context().log(MUSTER_LOG_WARN, "%s: refused: a process of user %u", address_.c_str(), user);
            return;
        }
    } else {
        setup.peer = address_text(peer_address(fd.get()));
    }
    config.local = stays_on_host(fd.get());
    if (!unix_socket && config.local && config.upgrade) config.passing = Passing::aside;
    setup.what = "accept " + setup.peer;
    if (!make_place()) {
        const std::string refusal = Handshake::refusal_message(Refusal::limit);
        [[maybe_unused]] const ssize_t n = send(fd.get(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        hub_.context().counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
        hub_.context().log(MUSTER_LOG_WARN, "%s: refused: too many that have not proved themselves",
                           setup.what.c_str());
        return;
    }
    const auto admitted = std::make_shared<bool>(false);
    config.admit = [core = core_, admitted] { return *admitted = core->reserve(); };
    const auto place_of = std::make_shared<Greeter *>(nullptr);
    config.offer = [place_of, &hub = hub_](PairOffer &out) {
        return *place_of != nullptr && PairBroker::of(hub).offer(**place_of, out);
    };
    const auto place = greeting_.insert(greeting_.end(), Ref<Greeter>());
    *place = make_ref<Greeter>(hub_, std::move(fd), std::move(config), std::move(setup),
                               [self = Ref<SocketListener>(this), place, admitted](Result<Ref<Stream>> result) {
                                   const Ref<Greeter> last = std::move(*place);
                                   self->greeting_.erase(place);
                                   if (result)
                                       self->core_->offer(std::move(*result));
                                   else if (*admitted)
                                       self->core_->unreserve();
                               });
    const Ref<Greeter> greeter = *place;
    *place_of = greeter.get();
    greeter->start();
}

void SocketListener::close() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!fd_) return;
        // Only the file this listener made: another may have taken the name since.
        struct stat now {};
        if (!file_.path.empty() && lstat(file_.path.c_str(), &now) == 0 && now.st_dev == file_.device &&
            now.st_ino == file_.inode)
            unlink(file_.path.c_str());
        hub_.remove(fd_.get(), *this);
        fd_.reset();
    }
    // Those in the middle of proving themselves are dropped.
    const Ref<SocketListener> self(this);
    hub_.context().post([self] {
        while (!self->greeting_.empty()) {
            const Ref<Greeter> last = std::move(self->greeting_.front());
            self->greeting_.pop_front();
            last->stop();
        }
    });
}

} // namespace muster
