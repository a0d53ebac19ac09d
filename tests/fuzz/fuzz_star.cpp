// SPDX-License-Identifier: MIT
// What members and brokers of a star may send to a broker: greetings, names, data, credits, groups, and what is none of
// these. The input is a list of events: connection u8, length u16, bytes; length 65535: the connection ends; connection
// 255: the broker above speaks, comes (length 65534) or goes (65535).
#include "input.hpp"

#include "exchange.hpp"

using namespace star;

namespace {

struct Sink final : Outlet {
    bool send(Route route, const Head &head, std::string_view payload) noexcept override {
        FUZZ_CHECK(payload.size() <= max_message_bytes);
        FUZZ_CHECK(static_cast<uint8_t>(head.kind) >= 1 && static_cast<uint8_t>(head.kind) <= last_kind);
        return route != 3; // one whose connection has ended without a word yet
    }
    bool forward(Route, Packet &packet) noexcept override { return take(packet); }
    bool forward_copy(Route, Packet &packet) noexcept override { return take(packet); }
    void log(int32_t, std::string_view text) noexcept override { FUZZ_CHECK(text.size() < 1000); }
    static bool take(Packet &packet) {
        FUZZ_CHECK(packet.size >= head_bytes);
        return true;
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    constexpr uint64_t window = 64 * 1024;
    Sink sink;
    ExchangeConfig config;
    config.open = true;
    config.window = window;
    config.prefix = 9;
    config.role_below = [](const Nonce &, const Nonce &) { // as the corpus has it
        Proof proof;
        proof.fill('r');
        return proof;
    };
    config.prove_role = [](const auto &challenge, const Nonce &, const Nonce &, Proof &out) {
        out = challenge;
        return challenge[0] != 0;
    };
    Exchange exchange(sink, std::move(config));
    Input input(data, size);
    int64_t now = 1;
    while (input.left() != 0) {
        const uint8_t connection = input.byte();
        const uint64_t length = input.number(2);
        now += 10'000'000;
        if (length >= 65534) {
            if (connection != 255)
                exchange.gone(connection);
            else if (length == 65535)
                exchange.parent_down();
            else if (!exchange.has_parent())
                exchange.parent_up();
        } else {
            size_t got = 0;
            const uint8_t *const bytes = input.take(length, got);
            std::vector<unsigned char> received(bytes, bytes + got);
            Packet packet{received.data(), got, nullptr};
            exchange.message(connection == 255 ? parent_route : connection, packet, now);
        }
        exchange.tick(now);
        const ExchangeStats stats = exchange.stats();
        FUZZ_CHECK(stats.members + stats.brokers <= 255);
        FUZZ_CHECK(stats.queued_bytes <= stats.pairs * (window + cost(head_bytes + max_message_bytes)));
    }
    for (Route route = 0; route < 255; route++) exchange.gone(route);
    const ExchangeStats stats = exchange.stats();
    FUZZ_CHECK(stats.members == 0 && stats.brokers == 0 && stats.pairs == 0 && stats.queued_bytes == 0);
    return 0;
}
