// SPDX-License-Identifier: MIT
#include "stream/duplex.hpp"

#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace muster {

namespace {
// The first page of a shared mapping; the controls follow at 1024 and 2048, the rings at whole pages.
struct SharedHeader {
    char magic[8];
    uint32_t layout;
    uint32_t control_bytes;
    uint64_t window;
};
constexpr char shared_magic[8] = {'M', 'u', 's', 't', 'e', 'r', 'S', 'M'};
constexpr size_t page = 4096;

Error no_memory() noexcept {
    return Error::make(MUSTER_E_NOMEM, "no memory for a stream");
}
} // namespace

Ref<Duplex> Duplex::make_private(uint64_t window) {
    auto d = Ref<Duplex>::adopt(new Duplex);
    d->pipes_[0].init_private(window);
    d->pipes_[1].init_private(window);
    return d;
}

size_t Duplex::shared_bytes(uint64_t window) noexcept {
    return page + 2 * window;
}

Result<Ref<Duplex>> Duplex::make_shared(void *mapping, uint64_t window, int own, int own_event, int peer_event,
                                        bool fresh) noexcept {
    auto d = Ref<Duplex>::adopt(new (std::nothrow) Duplex);
    if (!d) {
        munmap(mapping, shared_bytes(window));
        ::close(own_event);
        ::close(peer_event);
        return no_memory();
    }
    d->mapping_ = mapping;
    d->mapping_bytes_ = shared_bytes(window);
    d->own_ = own;
    d->own_event_ = own_event;
    d->peer_event_ = peer_event;
    auto *bytes = static_cast<unsigned char *>(mapping);
    auto *header = static_cast<SharedHeader *>(mapping);
    if (fresh) {
        new (bytes + 1024) PipeControl;
        new (bytes + 2048) PipeControl;
        header->layout = 1;
        header->control_bytes = sizeof(PipeControl);
        header->window = window;
        memcpy(header->magic, shared_magic, sizeof shared_magic);
    } else if (memcmp(header->magic, shared_magic, sizeof shared_magic) != 0 || header->layout != 1 ||
               header->control_bytes != sizeof(PipeControl) || header->window != window) {
        return Error::make(MUSTER_E_PROTOCOL, "shared memory of the peer has another layout");
    }
    for (int i = 0; i < 2; i++)
        if (!d->pipes_[i].init_shared(reinterpret_cast<PipeControl *>(bytes + 1024 * (i + 1)),
                                      bytes + page + i * window, window))
            return no_memory();
    d->incoming(own).set_fds(own_event, peer_event);
    d->outgoing(own).set_fds(peer_event, own_event);
    return d;
}

Duplex::~Duplex() {
    for (const auto &at : at_queues_) at->queue().delist(*at);
    if (mapping_ == nullptr) return;
    munmap(mapping_, mapping_bytes_);
    if (own_event_ >= 0) ::close(own_event_);
    if (peer_event_ >= 0) ::close(peer_event_);
}

void Duplex::set_side(int side, Side *listener) noexcept {
    const std::lock_guard guard(sides_lock_);
    sides_[side] = listener;
}

bool Duplex::end(const Ending &ending) noexcept {
    const Status status = ending.why.status != MUSTER_OK ? ending.why.status : MUSTER_E_CLOSED;
    {
        // First of all: a thread that has seen the end in one call must see it in the next.
        const std::lock_guard guard_sides(sides_lock_);
        if (is_ended()) return false;
        for (Side *side : sides_)
            if (side != nullptr) side->about_to_end();
        const std::lock_guard guard(lock_);
        ending_ = ending;
        ended_.store(status, std::memory_order_seq_cst); // before the unparks below; pairs with a check after a park
    }
    for (int side = 0; side < 2; side++) {
        if (shared() && side != own_) continue; // the other side sleeps in another process
        incoming(side).unpark_reader();
        outgoing(side).unpark_writer();
    }
    if (!shared())
        for (Pipe &pipe : pipes_) pipe.take_back_owned(status);
    const std::lock_guard guard(sides_lock_);
    for (Side *side : sides_)
        if (side != nullptr) side->ended();
    return true;
}

bool Duplex::aborted_by(int side) noexcept {
    const std::lock_guard guard(lock_);
    return ending_.aborted_by == side;
}

Ending Duplex::ending() noexcept {
    const std::lock_guard guard(lock_);
    return ending_;
}

void Duplex::tell_peer_events(int side, uint32_t events) noexcept {
    const std::lock_guard guard(sides_lock_);
    if (sides_[side] != nullptr) sides_[side]->peer_events(events);
}

// ---- buffers without a stream ---------------------------------------------------------------------------------------

void DuplexAtQueue::end_operations() noexcept {
    duplex_.end_owned(side_, *queue_);
}

Object &DuplexAtQueue::owner() noexcept {
    return duplex_;
}

void Duplex::keep_owned(int side, Queue &queue) noexcept {
    bool kept = false;
    try {
        const std::lock_guard guard(at_queues_lock_);
        for (const auto &at : at_queues_) kept = kept || (at->side() == side && &at->queue() == &queue);
        if (!kept) {
            at_queues_.push_back(std::make_unique<DuplexAtQueue>(*this, side, queue));
            queue.enlist(*at_queues_.back()); // false: the queue is closed, which is checked below
            kept = true;
        }
    } catch (const std::bad_alloc &) { // the queue must not keep what it cannot find
    }
    if (!kept || queue.closed()) end_owned(side, queue);
}

// The carrier, if there is one, finds the gap when it consumes bytes, and notifies the peer.
void Duplex::end_owned(int side, const Queue &queue) noexcept {
    if (outgoing(side).take_back_owned(MUSTER_E_CANCELED, &queue).begun)
        end({Error::make(MUSTER_E_ABORTED, "%s", cancelled_in_the_middle), 0, side});
}

} // namespace muster
