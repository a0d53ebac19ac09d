// SPDX-License-Identifier: MIT
#include "group/hello.hpp"

#include "base/codec.hpp"

namespace muster {

namespace {
constexpr uint32_t hello_magic_of_group = 0x4847534D, record_magic = 0x5247474D; // "MSGH", "MGGR"
constexpr uint8_t group_version = 1;
constexpr size_t max_address = 4096;
} // namespace

std::string GroupHello::write() const {
    ByteWriter to;
    to.number(hello_magic_of_group).number(group_version).number(rank).number(size).number(flags);
    to.number(name).number(instance).number(slot_bytes);
    to.bytes(host.boot).number(host.pid_namespace).number(host.net_namespace).number(host.user);
    return to.take();
}

std::optional<GroupHello> GroupHello::read(std::string_view bytes) noexcept {
    ByteReader from(bytes);
    GroupHello hello;
    from.expect(hello_magic_of_group);
    from.expect(group_version);
    hello.rank = from.number<uint32_t>();
    hello.size = from.number<uint32_t>();
    hello.flags = from.number<uint32_t>();
    hello.name = from.number<uint64_t>();
    hello.instance = from.number<uint64_t>();
    hello.slot_bytes = from.number<uint64_t>();
    hello.host.boot = from.array<16>();
    hello.host.pid_namespace = from.number<uint64_t>();
    hello.host.net_namespace = from.number<uint64_t>();
    hello.host.user = from.number<uint32_t>();
    from.require(hello.rank < hello.size);
    if (!from.is_complete()) return std::nullopt;
    return hello;
}

std::string GroupRecord::write() const {
    ByteWriter to;
    to.number(record_magic).number(group_version).number(size).number(instance).bytes(address);
    return to.take();
}

std::optional<GroupRecord> GroupRecord::read(std::string_view bytes) {
    ByteReader from(bytes);
    GroupRecord record;
    from.expect(record_magic);
    from.expect(group_version);
    record.size = from.number<uint32_t>();
    record.instance = from.number<uint64_t>();
    record.address = from.rest();
    from.require(!record.address.empty() && record.address.size() <= max_address);
    if (!from.is_complete()) return std::nullopt;
    return record;
}

} // namespace muster
