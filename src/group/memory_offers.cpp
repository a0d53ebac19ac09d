// SPDX-License-Identifier: MIT
#include "group/memory_offers.hpp"

#include "plugin/plugins.hpp"
#include "plugin/session_address.hpp"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace muster {

namespace {
constexpr int64_t fetch_timeout_ns = 5'000'000'000; // of the answer to a token
constexpr char memory_mark = 'm';                   // comes with the descriptor
} // namespace

void MemoryOffers::Offer::token_shown(Fd socket) noexcept {
    DescriptorChannel::send(socket.get(), std::string_view(&memory_mark, 1), &memory_, 1);
}

MemoryOffers::MemoryOffers(Context &context, int memory, uint32_t count) : context_(context) {
    Plugins::of(context); // run_on_loop() uses it, and must not make it
    for (uint32_t i = 0; i < count; i++) offers_.emplace_back(memory);
}

MemoryOffers::~MemoryOffers() {
    // If the engine has stopped, its channel serves nothing any more.
    (void)run_on_loop(context_, [this]() -> Result<void> {
        for (Offer &one : offers_)
            if (!one.offer.name.empty()) DescriptorChannel::of(Hub::of(context_)).withdraw(one.offer);
        return {};
    });
}

bool MemoryOffers::make() noexcept {
    const auto made = run_on_loop(context_, [this]() -> Result<void> {
        bool good = true;
        for (Offer &one : offers_) good = good && DescriptorChannel::of(Hub::of(context_)).offer(one, one.offer);
        return good ? Result<void>() : Error::from_status(MUSTER_E_LIMIT);
    });
    return bool(made);
}

std::string MemoryOffers::message(uint32_t index) const {
    const DescriptorOffer &offer = offers_[index].offer;
    std::string message(bytes, '\0');
    if (offer.name.size() >= bytes - 1 - offer.token.size()) return message;
    message[0] = static_cast<char>(offer.name.size());
    offer.name.copy(&message[1], offer.name.size());
    memcpy(&message[bytes - offer.token.size()], offer.token.data(), offer.token.size());
    return message;
}

Segment MemoryOffers::fetch(std::string_view message, size_t size, Deadline &deadline) noexcept {
    Segment segment;
    DescriptorOffer offer;
    const auto length = static_cast<unsigned char>(message[0]);
    if (length == 0 || length >= bytes - offer.token.size()) return segment;
    offer.name.assign(message.data() + 1, length);
    memcpy(offer.token.data(), message.data() + bytes - offer.token.size(), offer.token.size());
    const Fd socket = DescriptorChannel::connect(offer, geteuid());
    if (!socket) return segment;
    Deadline limit(deadline.endless() ? fetch_timeout_ns : std::min(fetch_timeout_ns, deadline.left()));
    for (;;) {
        pollfd wait{socket.get(), POLLIN, 0};
        const int64_t left = limit.left();
        if (left == 0) return segment;
        if (poll(&wait, 1, static_cast<int>(left / 1'000'000 + 1)) <= 0) continue;
        char byte = 0;
        Fd memory;
        const ssize_t got = DescriptorChannel::receive(socket.get(), &byte, 1, &memory, 1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got != 1 || byte != memory_mark || !memory || !check_shared_memory(memory.get(), size)) return segment;
        void *const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
        if (at == MAP_FAILED) return segment;
        segment.mapping = at;
        segment.size = size;
        segment.memory = std::move(memory);
        return segment;
    }
}

} // namespace muster
