// SPDX-License-Identifier: MIT
#include "rendezvous/machine/records.hpp"

#include "base/codec.hpp"
#include "base/text.hpp"

#include <charconv>

namespace muster {

namespace {

constexpr uint8_t record_version = 2;
constexpr size_t max_address_bytes = 1024, order_key_max = 256, author_max = 256, reason_max = 200, peer_max = 300;
constexpr uint32_t world_max = 1 << 20;
constexpr uint8_t heir_bit = 1, hosts_bit = 2; // of a member's record

void write(ByteWriter &to, const RoundAttempt &attempt) {
    to.number(attempt.number).number(attempt.term).number(attempt.sequence);
}
RoundAttempt read_attempt(ByteReader &from) {
    RoundAttempt attempt;
    attempt.number = from.number<uint64_t>();
    attempt.term = from.number<uint64_t>();
    attempt.sequence = from.number<uint64_t>();
    return attempt;
}
std::string printable(std::string_view text) {
    std::string shown(text);
    make_printable(shown.data(), shown.size());
    return shown;
}

} // namespace

std::string RunConfig::write() const {
    ByteWriter to;
    to.number(record_version).number(min).number(max).number(last_call_ns);
    to.bytes(identity);
    return to.take();
}
std::optional<RunConfig> RunConfig::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    RunConfig config;
    config.min = from.number<uint32_t>();
    config.max = from.number<uint32_t>();
    config.last_call_ns = from.number<int64_t>();
    config.identity = from.array<sizeof(RunIdentity)>();
    from.require(config.min >= 1 && config.min <= config.max && config.max <= world_max);
    return from.is_complete() ? std::optional(config) : std::nullopt;
}
std::string RunConfig::text() const {
    char text[96], call[48] = "no last call";
    if (last_call_ns >= 0)
        std::snprintf(call, sizeof call, "last call %.3f s", static_cast<double>(last_call_ns) * 1e-9);
    std::snprintf(text, sizeof text, "min %u, max %u, %s", min, max, call);
    return text;
}

std::string MemberRecord::write() const {
    ByteWriter to;
    to.number(record_version).number(state).number(ticket).number(lease).number(old_round).number(old_rank);
    to.number(preferred).text(address).text(order_key).text(peer).number(base);
    return to.number(static_cast<uint8_t>((heir ? heir_bit : 0) | (hosts ? hosts_bit : 0))).take();
}
std::optional<MemberRecord> MemberRecord::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    MemberRecord record;
    const auto state = from.number<uint8_t>();
    from.require(state <= confirmed);
    record.state = static_cast<State>(state);
    record.ticket = from.number<uint64_t>();
    record.lease = from.number<uint64_t>();
    record.old_round = from.number<uint64_t>();
    record.old_rank = from.number<uint32_t>();
    record.preferred = from.number<uint32_t>();
    record.address = from.text(max_address_bytes);
    record.order_key = from.text(order_key_max);
    record.peer = from.text(peer_max);
    record.base = from.number<uint64_t>();
    const auto bits = from.number<uint8_t>();
    from.require((bits & ~(heir_bit | hosts_bit)) == 0);
    record.heir = (bits & heir_bit) != 0;
    record.hosts = (bits & hosts_bit) != 0;
    return from.is_complete() ? std::optional(std::move(record)) : std::nullopt;
}

std::string RoundRecord::write() const {
    ByteWriter to;
    to.number(record_version);
    muster::write(to, attempt);
    to.number(world);
    to.bytes(digest);
    to.number(static_cast<uint8_t>(aborted)).text(author).text(reason);
    to.number(static_cast<uint8_t>(elsewhere)).number(host);
    return to.take();
}
std::optional<RoundRecord> RoundRecord::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    RoundRecord record;
    record.attempt = read_attempt(from);
    record.world = from.number<uint32_t>();
    record.digest = from.array<sizeof(Digest)>();
    record.aborted = from.number<uint8_t>() != 0;
    record.author = printable(from.text(author_max));
    record.reason = printable(from.text(reason_max));
    record.elsewhere = from.number<uint8_t>() != 0;
    record.host = from.number<uint32_t>();
    from.require(record.world <= world_max && record.attempt.number != 0);
    return from.is_complete() ? std::optional(std::move(record)) : std::nullopt;
}

std::string RoundRecord::abort_text() const {
    return "aborted by " + (author.empty() ? std::string("a member without address") : author) +
           (reason.empty() ? "" : ": " + reason);
}

std::string RoundPlace::write() const {
    ByteWriter to;
    to.number(record_version).number(ticket);
    muster::write(to, attempt);
    to.number(rank).number(world);
    to.bytes(digest);
    return to.number(static_cast<uint8_t>(whole)).number(leader).number(host).take();
}
std::optional<RoundPlace> RoundPlace::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    RoundPlace place;
    place.ticket = from.number<uint64_t>();
    place.attempt = read_attempt(from);
    place.rank = from.number<uint32_t>();
    place.world = from.number<uint32_t>();
    place.digest = from.array<sizeof(Digest)>();
    place.whole = from.number<uint8_t>() != 0;
    place.leader = from.number<uint32_t>();
    place.host = from.number<uint32_t>();
    from.require(place.world <= world_max && (place.attempt.number == 0 || place.rank < place.world));
    return from.is_complete() ? std::optional(place) : std::nullopt;
}

std::string Note::write() const {
    ByteWriter to;
    to.number(record_version).number(round).number(exited).number(confirmed);
    to.number(seeking).number(waiting).number(present).number(exiting);
    to.number(left).number(dead).number(static_cast<uint8_t>(called)).number(last_call_remaining_ns);
    to.number(static_cast<uint16_t>(gone.size()));
    for (const Gone &one : gone) to.number(one.rank).number(static_cast<uint8_t>(one.how));
    return to.take();
}
std::optional<Note> Note::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    Note note;
    note.round = from.number<uint64_t>();
    note.exited = from.number<uint64_t>();
    note.confirmed = from.number<uint64_t>();
    note.seeking = from.number<uint32_t>();
    note.waiting = from.number<uint32_t>();
    note.present = from.number<uint32_t>();
    note.exiting = from.number<uint32_t>();
    note.left = from.number<uint32_t>();
    note.dead = from.number<uint32_t>();
    note.called = from.number<uint8_t>() != 0;
    note.last_call_remaining_ns = from.number<int64_t>();
    const size_t count = from.number<uint16_t>();
    from.require(count <= max_gone);
    for (size_t i = 0; i < count && from.is_valid(); i++) {
        Gone &one = note.gone.emplace_back();
        one.rank = from.number<uint32_t>();
        const auto how = from.number<uint8_t>();
        from.require(how <= static_cast<uint8_t>(How::broken));
        one.how = static_cast<How>(how);
    }
    return from.is_complete() ? std::optional(std::move(note)) : std::nullopt;
}
Note::How Note::how(uint32_t lease_flags) noexcept {
    if ((lease_flags & MUSTER_STORE_LEASE_BROKEN) != 0) return How::broken;
    if ((lease_flags & MUSTER_STORE_LEASE_SILENT) != 0) return How::silent;
    return (lease_flags & MUSTER_STORE_LEASE_ENDED) != 0 ? How::ended : How::dead;
}
const char *Note::text_of(How how) noexcept {
    switch (how) {
    case How::left:
        return "";
    case How::ended:
        return "it was released and had not left";
    case How::silent:
        return "its heartbeats have stopped: it hangs, or cannot reach the store";
    case How::broken:
        return "its connection to the store broke: it died, or was cut off";
    default:
        return "its lease has ended: it died, or its heartbeats have stopped";
    }
}
bool Note::has_content_of(const Note &other) const {
    const auto all = [](const Note &n) {
        return std::tuple(n.round, n.exited, n.confirmed, n.seeking, n.waiting, n.present, n.exiting, n.left, n.dead,
                          n.called);
    };
    return all(*this) == all(other); // the list changes with its totals
}

std::string ClosedRecord::write() const {
    return ByteWriter().number(record_version).text(author).text(reason).take();
}
std::optional<ClosedRecord> ClosedRecord::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    ClosedRecord record;
    record.author = printable(from.text(author_max));
    record.reason = printable(from.text(reason_max));
    return from.is_complete() ? std::optional(std::move(record)) : std::nullopt;
}
std::string ClosedRecord::text() const {
    return "closed by " + (author.empty() ? std::string("a member without address") : author) +
           (reason.empty() ? "" : ": " + reason);
}

std::string MovedRecord::write() const {
    ByteWriter to;
    to.number(record_version).bytes(identity);
    return to.number(round).text(address).take();
}
std::optional<MovedRecord> MovedRecord::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(record_version);
    MovedRecord record;
    record.identity = from.array<sizeof(RunIdentity)>();
    record.round = from.number<uint64_t>();
    record.address = from.text(peer_max);
    from.require(!record.address.empty());
    return from.is_complete() ? std::optional(std::move(record)) : std::nullopt;
}

namespace keys {

// Of one width, so that rounds are listed in their order.
std::string of_round(uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "r/%016llx/", static_cast<unsigned long long>(number));
    return text;
}
std::string promise_of(uint64_t number, uint32_t rank) {
    return std::string(promises) + std::to_string(number) + "/" + std::to_string(rank);
}
std::string promise_of_all(uint64_t number) {
    return std::string(promises) + std::to_string(number) + "/all";
}
uint64_t number_of(std::string_view key) {
    constexpr size_t digits = 16;
    if (!key.starts_with(rounds) || key.size() < rounds.size() + digits + 1) return 0;
    const std::string_view text = key.substr(rounds.size(), digits);
    uint64_t number = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + digits, number, 16);
    return wrong == std::errc() && end == text.data() + digits && key[rounds.size() + digits] == '/' ? number : 0;
}

} // namespace keys

} // namespace muster
