// SPDX-License-Identifier: MIT
#include "transport_check/carriage.hpp"

#include "transport_check/harness.hpp"

#include <cerrno>
#include <cstring>
#include <future>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace check {

namespace {

constexpr char scheme[] = "served";

bool make_address(const std::string &text, sockaddr_un &out) {
    const std::string path = text.substr(sizeof scheme - 1 + 3);
    memset(&out, 0, sizeof out);
    out.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof out.sun_path) return false;
    memcpy(out.sun_path, path.data(), path.size());
    return true;
}

void refuse(muster_queue *queue, uint64_t request, muster_status status, const std::string &text) {
    muster_request_fail(queue, request, status, text.data(), std::min<size_t>(text.size(), 200));
}

} // namespace

Carriage::Carriage(muster_context *context, bool pulled) {
    muster_error error{};
    expect(muster_queue_create(context, nullptr, &queue_, &error), MUSTER_OK, "queue", &error);
    // Registered by the serving thread, so that no other one is taken for it.
    std::promise<muster_status> registered;
    server_ = std::thread([&, this, pulled] {
        const muster_status status =
            pulled ? muster_transport_serve(context, scheme, sizeof scheme - 1, 0, queue_, 0, &error)
                   : register_callbacks(context, error);
        registered.set_value(status);
        if (status == MUSTER_OK) pulled ? serve_pulled() : serve_dispatched();
    });
    const muster_status status = registered.get_future().get();
    if (status == MUSTER_OK) return;
    server_.join();
    expect(status, MUSTER_OK, "serve", &error);
}

muster_status Carriage::register_callbacks(muster_context *context, muster_error &error) {
    muster_transport_ops ops{};
    ops.struct_size = sizeof ops;
    ops.open = [](void *self, uint64_t request, const char *address, uint64_t bytes) {
        static_cast<Carriage *>(self)->open(request, {address, bytes});
    };
    ops.listen = [](void *self, uint64_t request, const char *address, uint64_t bytes) {
        static_cast<Carriage *>(self)->listen(request, {address, bytes});
    };
    ops.close = [](void *self, uint64_t request) { static_cast<Carriage *>(self)->closed(request); };
    return muster_transport_serve_ops(context, scheme, sizeof scheme - 1, &ops, this, queue_, &error);
}

Carriage::~Carriage() {
    muster_queue_close(queue_);
    server_.join();
    while (!doors_.empty()) closed(doors_.begin()->first);
    for (std::thread &pump : pumps_) pump.join();
    muster_queue_release(queue_);
}

void Carriage::serve_dispatched() {
    while (muster_queue_dispatch(queue_, -1, nullptr, nullptr, nullptr) != MUSTER_E_CLOSED) {
    }
}

void Carriage::serve_pulled() {
    muster_completion entry;
    while (muster_queue_next(queue_, -1, &entry, nullptr) == MUSTER_OK) {
        switch (entry.kind) {
        case MUSTER_REQUEST_OPEN:
            open(entry.request, address_of(entry.request));
            break;
        case MUSTER_REQUEST_LISTEN:
            listen(entry.request, address_of(entry.request));
            break;
        case MUSTER_REQUEST_CLOSE:
            closed(entry.request);
            break;
        default:
            break;
        }
    }
}

std::string Carriage::address_of(uint64_t request) const {
    char text[4200];
    size_t size = 0;
    if (muster_request_address(queue_, request, text, sizeof text, &size) != MUSTER_OK) return "served://";
    return {text, size};
}

void Carriage::open(uint64_t request, const std::string &address) {
    sockaddr_un where;
    if (!make_address(address, where)) return refuse(queue_, request, MUSTER_E_ADDRESS, "no path, or a long one");
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0 || connect(socket, reinterpret_cast<sockaddr *>(&where), sizeof where) != 0) {
        refuse(queue_, request, MUSTER_E_UNREACHABLE, strerror(errno));
        if (socket >= 0) ::close(socket);
        return;
    }
    muster_stream *end = nullptr;
    if (muster_request_stream(queue_, request, &end, nullptr) == MUSTER_OK)
        pump(end, socket);
    else
        ::close(socket);
}

void Carriage::await_listeners(unsigned count) {
    std::unique_lock hold(lock_);
    answered_.wait(hold, [&] { return listens_ >= count; });
}

void Carriage::listen(uint64_t request, const std::string &address) {
    do_listen(request, address);
    const std::lock_guard hold(lock_);
    listens_++;
    answered_.notify_all();
}

void Carriage::do_listen(uint64_t request, const std::string &address) {
    sockaddr_un where;
    if (!make_address(address, where)) return refuse(queue_, request, MUSTER_E_ADDRESS, "no path, or a long one");
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0 || bind(socket, reinterpret_cast<sockaddr *>(&where), sizeof where) != 0 ||
        ::listen(socket, 128) != 0) {
        refuse(queue_, request, errno == EADDRINUSE ? MUSTER_E_EXISTS : MUSTER_E_SYSTEM, strerror(errno));
        if (socket >= 0) ::close(socket);
        return;
    }
    {
        const std::lock_guard hold(lock_);
        Door &door = doors_[request];
        door.socket = socket;
        door.path = where.sun_path;
    }
    if (muster_request_listening(queue_, request, nullptr, 0, nullptr) != MUSTER_OK) return closed(request);
    const std::lock_guard hold(lock_);
    doors_[request].thread = std::thread([this, request, socket] { accept_all(request, socket); });
}

void Carriage::accept_all(uint64_t request, int socket) {
    for (;;) {
        const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (connection < 0) return; // shut down by closed()
        muster_stream *end = nullptr;
        if (muster_transport_incoming(queue_, request, nullptr, 0, nullptr, &end, nullptr) == MUSTER_OK)
            pump(end, connection);
        else
            ::close(connection);
    }
}

// A listener's end; a connection's pump ends by itself.
void Carriage::closed(uint64_t request) {
    Door door;
    {
        const std::lock_guard hold(lock_);
        const auto found = doors_.find(request);
        if (found == doors_.end()) return;
        door = std::move(found->second);
        doors_.erase(found);
    }
    unlink(door.path.c_str());
    shutdown(door.socket, SHUT_RDWR);
    if (door.thread.joinable()) door.thread.join();
    ::close(door.socket);
}

void Carriage::pump(muster_stream *end, int socket) {
    const std::lock_guard hold(lock_);
    pumps_.emplace_back([end, socket] {
        std::thread inward([end, socket] {
            std::vector<unsigned char> piece(256 * 1024);
            for (;;) {
                const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
                if (got < 0 && errno == EINTR) continue;
                if (got == 0) muster_stream_finish(end);
                if (got < 0) muster_stream_abort(end, 0, nullptr, 0);
                size_t written = 0;
                if (got <= 0 ||
                    muster_stream_write(end, piece.data(), static_cast<size_t>(got), -1, &written) != MUSTER_OK)
                    break;
            }
            shutdown(socket, SHUT_RD);
        });
        std::vector<unsigned char> piece(256 * 1024);
        bool taken = true; // the other side still receives
        for (;;) {
            size_t size = 0;
            const muster_status status = muster_stream_read(end, piece.data(), piece.size(), -1, &size);
            if (status != MUSTER_OK) { // the end of the outgoing bytes, in order or not
                shutdown(socket, status == MUSTER_E_END ? SHUT_WR : SHUT_RDWR);
                break;
            }
            // If the other side receives no more, it may still send: the rest is discarded, and the end is in its
            // bytes.
            for (size_t at = 0; taken && at < size;) {
                const ssize_t n = send(socket, piece.data() + at, size - at, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR) continue;
                if (n <= 0)
                    taken = false;
                else
                    at += static_cast<size_t>(n);
            }
        }
        inward.join();
        muster_stream_release(end);
        ::close(socket);
    });
}

} // namespace check
