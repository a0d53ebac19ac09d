// SPDX-License-Identifier: MIT
#include "store/standby/link.hpp"

#include "base/uncancelled.hpp"
#include "transport/sockets.hpp"

#include <cerrno>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr int64_t hello_timeout_ns = 5'000'000'000; // until the hello of the other server
constexpr size_t address_max = 4400;
constexpr uint32_t wanted_events = EPOLLIN | EPOLLOUT | EPOLLRDHUP;

} // namespace

void put_hello(std::string &to, const PairHello &hello) {
    ByteWriter writer(to);
    writer.bytes(hello.process).bytes(hello.instance).bytes(hello.with);
    writer.number(static_cast<uint8_t>(hello.role)).number(static_cast<uint8_t>(hello.kind));
    writer.number(static_cast<uint8_t>(hello.keeps ? 1 : 0)).number(hello.epoch).number(hello.position);
    writer.bytes(hello.address);
}

bool get_hello(std::string_view body, PairHello &hello) {
    ByteReader from(body);
    for (StoreId *id : {&hello.process, &hello.instance, &hello.with}) *id = from.array<sizeof(StoreId)>();
    const auto role = from.number<uint8_t>(), kind = from.number<uint8_t>(), keeps = from.number<uint8_t>();
    from.require(role <= static_cast<uint8_t>(PairRole::waiting) && kind <= PairMark::alone && keeps <= 1);
    hello.role = static_cast<PairRole>(role);
    hello.kind = static_cast<PairMark::Kind>(kind);
    hello.keeps = keeps != 0;
    hello.epoch = from.number<uint64_t>();
    hello.position = from.number<uint64_t>();
    from.require(from.left() <= address_max);
    hello.address = from.rest();
    return from.is_valid();
}

PairLink::PairLink(Hub &hub, PairLinkOwner &owner, ProvedSocket socket, bool dialled)
    : hub_(hub), owner_(owner), owner_alive_(&owner.link_owner()), fd_(std::move(socket.fd)),
      peer_(std::move(socket.peer)), dialled_(dialled) {
    const SocketAddress there = peer_address(fd_.get());
    on_this_host_ = stays_on_host(fd_.get());
    host_ = there.family() == AF_UNIX || on_this_host_ ? "this" : host_of(there);
    reader_.start(socket.agreed);
    writer_.start(socket.agreed);
}

bool PairLink::start() noexcept {
    if (!hub_.add(fd_.get(), wanted_events, *this)) {
        fd_.reset();
        return false;
    }
    hub_.start_timer(hello_timer_, now_ns() + hello_timeout_ns);
    return true;
}

void PairLink::put(PairRecord what, uint64_t number, std::string_view body) {
    if (fd_) put_record(writer_.plain(), {0, static_cast<StoreRecord>(what), 0, number}, body);
}

void PairLink::flush() noexcept {
    if (!fd_ || writer_.empty()) return;
    const int why = writer_.send(fd_.get());
    if (why != 0 && why != EAGAIN) end("the connection broke");
}

void PairLink::shut() noexcept {
    if (!fd_) return;
    const Ref<PairLink> self(this);
    hub_.stop_timer(hello_timer_);
    hub_.remove(fd_.get(), *this);
    fd_.reset();
    writer_.clear();
}

void PairLink::end(const char *why) noexcept {
    if (!fd_) return;
    const Ref<PairLink> self(this);
    shut();
    owner_.link_ended(*this, why);
}

bool PairLink::take_record(const StoreHead &head, std::string_view body) {
    const auto what = static_cast<PairRecord>(head.type);
    if (what == PairRecord::hello && !std::exchange(is_hello_received_, true)) hub_.stop_timer(hello_timer_);
    return owner_.link_says(*this, what, head.number, body) && fd_;
}

void PairLink::on_events(uint32_t epoll_events) noexcept {
    const Ref<PairLink> self(this);
    if (!fd_) return;
    if (epoll_events & EPOLLOUT) {
        flush();
        if (fd_) owner_.link_has_room(*this);
    }
    for (int i = 0; i < 4 && fd_; i++) {
        const ssize_t n = uncancelled::receive(fd_.get(), hub_.staging(), Hub::staging_bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return owner_.link_was_read(*this);
        if (n <= 0) {
            owner_.link_was_read(*this);
            return end(n == 0 ? "the other hung up" : "the connection broke");
        }
        bool fine = false;
        try {
            fine = reader_.feed(hub_.staging(), static_cast<size_t>(n), *this);
        } catch (const std::bad_alloc &) {
            return end("out of memory");
        }
        if (!fine) return end("what it says makes no sense");
    }
    if (!fd_) return;
    owner_.link_was_read(*this);
    if (fd_) hub_.modify(fd_.get(), wanted_events, *this); // another edge if there are more bytes
}

} // namespace muster
