// SPDX-License-Identifier: MIT
#include "plugin/pairing.hpp"

#include "plugin/session.hpp"

#include <cstring>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr int64_t pairing_timeout_ns = 10'000'000'000;
constexpr size_t offer_bytes = 8 + 16 + 8 + 4 + 32; // size, boot, network namespace, user, token; the name follows
constexpr size_t max_name_bytes = 100;
} // namespace

SharedSegment::SharedSegment(Segment segment, uint32_t side) noexcept : segment_(std::move(segment)) {
    table_ = {sizeof table_,
              side,
              segment_.mapping,
              segment_.size,
              segment_.events[side].get(),
              segment_.events[1 - side].get()};
}

// By value, since those that keep it need it so. NOLINTNEXTLINE(performance-unnecessary-value-param)
void Channel::paired(Ref<SharedSegment> segment, Status status) noexcept {
    (void)segment, (void)status;
}

Pairing::Pairing(Session &session)
    : session_(session), timer_(session.context().loop(), [this] { finish({}, MUSTER_E_UNSUPPORTED); }) {
    timer_.start(pairing_timeout_ns, 0);
}

Pairing::~Pairing() {
    if (asked_here_ && !offer_.name.empty()) channel().withdraw(offer_);
}

DescriptorChannel &Pairing::channel() const {
    return DescriptorChannel::of(Hub::of(session_.context()));
}

void Pairing::watch(int fd) {
    auto poll = LoopWatch::make(session_.context().loop(), fd, [this](uint32_t) {
        try {
            fetch();
        } catch (const std::bad_alloc &) {
            finish({}, MUSTER_E_NOMEM);
        }
    });
    if (!poll) return; // the timer ends it
    watch_ = std::move(*poll);
    watch_->set_events(EPOLLIN);
}

// Ends the exchange; the channel is notified in the next turn of the session. Destroys this.
void Pairing::finish(Ref<SharedSegment> segment, Status status) noexcept {
    session_.end_pairing(std::move(segment), status, asked_here_);
}

std::unique_ptr<Pairing> Pairing::offer(Session &session, size_t bytes) {
    auto pairing = std::unique_ptr<Pairing>(new Pairing(session));
    pairing->asked_here_ = true;
    pairing->bytes_ = (bytes + 4095) & ~size_t{4095};
    auto segment = make_segment(pairing->bytes_);
    if (!segment || !pairing->channel().offer(*pairing, pairing->offer_)) {
        pairing->finish_soon(segment ? MUSTER_E_LIMIT : segment.error().status);
        return pairing;
    }
    pairing->segment_ = make_ref<SharedSegment>(std::move(*segment), 0);
    const HostIdentity &host = Hub::of(session.context()).host;
    unsigned char payload[offer_bytes];
    put_u64(payload, pairing->bytes_);
    memcpy(payload + 8, host.boot.data(), 16);
    put_u64(payload + 24, host.net_namespace);
    put_u32(payload + 32, host.user);
    memcpy(payload + 36, pairing->offer_.token.data(), 32);
    session.put_control(FrameType::pair_offer, 0, {reinterpret_cast<char *>(payload), sizeof payload},
                        pairing->offer_.name);
    session.schedule();
    return pairing;
}

// Nothing can be offered: reported like any other result, never from inside the call that requested it.
void Pairing::finish_soon(Status status) {
    early_ = status;
    session_.schedule();
}

bool Pairing::take(Session &session, std::unique_ptr<Pairing> &current, bool is_offer, const unsigned char *payload,
                   size_t size) {
    if (is_offer) return take_offer(session, current, payload, size);
    if (size != 4) return false;
    const auto status = static_cast<int32_t>(get_u32(payload));
    // An answer to an offer that was dropped for the one of the peer.
    if (!current || !current->asked_here_) return true;
    if (status == MUSTER_OK && !current->waits_for_answer_) return false;
    current->finish(status == MUSTER_OK ? current->segment_ : Ref<SharedSegment>(),
                    status == MUSTER_OK ? MUSTER_OK : MUSTER_E_UNSUPPORTED);
    return true;
}

bool Pairing::take_offer(Session &session, std::unique_ptr<Pairing> &current, const unsigned char *payload,
                         size_t size) {
    if (size <= offer_bytes || size > offer_bytes + max_name_bytes) return false;
    const uint64_t bytes = get_u64(payload);
    if (bytes == 0 || bytes > uint64_t{1} << 30 || bytes % 4096 != 0) return false;
    const auto decline = [&](Status status) {
        unsigned char word[4];
        put_u32(word, static_cast<uint32_t>(status));
        session.put_control(FrameType::pair_answer, 0, {reinterpret_cast<char *>(word), 4});
        session.schedule();
        return true;
    };
    HostIdentity host;
    memcpy(host.boot.data(), payload + 8, 16);
    host.net_namespace = get_u64(payload + 24);
    host.user = get_u32(payload + 32);
    if (!session.channel().can_pair() || !Hub::of(session.context()).host.same_place(host))
        return decline(MUSTER_E_UNSUPPORTED);
    // A pairing that is in use, or about to be passed to the plug-in, stays.
    if (session.have_segment_ || session.pairing_due_) return decline(MUSTER_E_BUSY);
    if (current) {
        // Both sides have requested at the same time: the offer of the dialling side is used.
        if (!current->asked_here_ || session.dialer()) return decline(MUSTER_E_BUSY);
        current.reset();
    }
    auto pairing = std::unique_ptr<Pairing>(new Pairing(session));
    pairing->bytes_ = bytes;
    pairing->offer_.name.assign(reinterpret_cast<const char *>(payload) + offer_bytes, size - offer_bytes);
    memcpy(pairing->offer_.token.data(), payload + 36, 32);
    pairing->connection_ = DescriptorChannel::connect(pairing->offer_, host.user);
    if (!pairing->connection_) return decline(MUSTER_E_UNSUPPORTED);
    pairing->watch(pairing->connection_.get());
    current = std::move(pairing);
    return true;
}

void Pairing::token_shown(Fd socket) noexcept {
    if (send_segment(socket.get(), "M", segment_->segment()) != 1) return finish({}, MUSTER_E_SYSTEM);
    waits_for_answer_ = true;
}

void Pairing::fetch() {
    Fd fds[segment_descriptors];
    char mark = 0;
    const ssize_t got = DescriptorChannel::receive(connection_.get(), &mark, 1, fds, segment_descriptors);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    Status status = MUSTER_E_PROTOCOL;
    Ref<SharedSegment> segment;
    if (got == 1 && fds[0]) {
        auto taken = take_segment(fds, bytes_);
        status = taken ? MUSTER_OK : taken.error().status;
        if (taken) segment = make_ref<SharedSegment>(std::move(*taken), 1);
    }
    unsigned char word[4];
    put_u32(word, static_cast<uint32_t>(status));
    session_.put_control(FrameType::pair_answer, 0, {reinterpret_cast<char *>(word), 4});
    finish(std::move(segment), status);
}

} // namespace muster
