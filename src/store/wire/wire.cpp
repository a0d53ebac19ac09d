// SPDX-License-Identifier: MIT
#include "store/wire/wire.hpp"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

enum : uint8_t { has_value = 1, has_expected = 2, has_version = 4, has_number = 8, has_lease = 16, has_key = 32 };
constexpr size_t op_head_bytes = 8, answer_head_bytes = 18, entry_head_bytes = 16;

// A record at the end of the text, with its head, and the writer of its body. The memory of the text grows at least
// twofold.
PlacedByteWriter begin(std::string &to, StoreHead head, size_t body) {
    const size_t at = to.size();
    to.resize(at + store_head_bytes + body);
    head.bytes = static_cast<uint32_t>(body);
    head.put(reinterpret_cast<unsigned char *>(to.data() + at));
    return PlacedByteWriter(to.data() + at + store_head_bytes);
}

// On the wire the field of the version has the rank of a barrier, and the field of the number its count.
uint64_t wire_version(const StoreOp &op) noexcept {
    return op.kind == MUSTER_STORE_BARRIER ? op.rank : op.version;
}
uint64_t wire_number(const StoreOp &op) noexcept {
    return op.kind == MUSTER_STORE_BARRIER ? op.count : static_cast<uint64_t>(op.number);
}

uint8_t fields_of(const StoreOp &op) noexcept {
    return static_cast<uint8_t>((op.value.empty() ? 0 : has_value) | (op.expected.empty() ? 0 : has_expected) |
                                (wire_version(op) == 0 ? 0 : has_version) | (wire_number(op) == 0 ? 0 : has_number) |
                                (op.lease == 0 ? 0 : has_lease));
}
uint8_t fields_of(const StoreEntry &entry) noexcept {
    return static_cast<uint8_t>((entry.number == 0 ? 0 : has_number) | (entry.key ? has_key : 0) |
                                (entry.value ? has_value : 0));
}

size_t bytes_of(const StoreOp &op) noexcept {
    const uint8_t fields = fields_of(op);
    size_t bytes = op_head_bytes + op.key.size() + op.value.size() + op.expected.size();
    for (const uint8_t four : {has_value, has_expected}) bytes += fields & four ? 4 : 0;
    for (const uint8_t eight : {has_version, has_number, has_lease}) bytes += fields & eight ? 8 : 0;
    return bytes;
}
size_t bytes_of(const StoreEntry &entry) noexcept {
    return entry_head_bytes + (entry.number == 0 ? 0 : 8) + (entry.key ? 4 + entry.key->size() : 0) +
           (entry.value ? 4 + entry.value->size() : 0);
}

Ref<Blob> get_blob(ByteReader &reader) {
    const std::string_view bytes = reader.bytes(reader.number<uint32_t>());
    return reader.is_valid() ? Blob::make(bytes) : Ref<Blob>();
}

} // namespace

void put_record(std::string &to, StoreHead head, std::string_view body) {
    begin(to, head, body.size()).bytes(body);
}

void put_hello(std::string &to, const StoreId &session, bool resume) {
    PlacedByteWriter writer = begin(to, {0, StoreRecord::hello, 0, 0}, session.size() + 1);
    writer.bytes(session).number(static_cast<uint8_t>(resume ? 1 : 0));
}

bool get_hello(std::string_view body, StoreId &session, bool &resume) noexcept {
    ByteReader reader(body);
    const auto id = reader.array<sizeof(StoreId)>();
    const auto flag = reader.number<uint8_t>();
    if (!reader.is_complete() || flag > 1) return false;
    session = id;
    resume = flag == 1;
    return true;
}

void put_welcome(std::string &to, const StoreWelcome &welcome) {
    PlacedByteWriter writer = begin(to, {0, StoreRecord::welcome, 0, 0}, welcome.instance.size() + 13);
    writer.bytes(welcome.instance).number(welcome.capabilities).number(welcome.flags).number(welcome.revision);
}

bool get_welcome(std::string_view body, StoreWelcome &welcome) noexcept {
    ByteReader reader(body);
    welcome.instance = reader.array<sizeof(StoreId)>();
    welcome.capabilities = reader.number<uint32_t>();
    welcome.flags = reader.number<uint8_t>();
    welcome.revision = reader.number<uint64_t>();
    return reader.is_complete();
}

void put_ask(std::string &to, uint64_t number, uint64_t floor, bool once, const StoreRequest &request) {
    size_t body = 12;
    for (const StoreOp &op : request.ops()) body += bytes_of(op);
    PlacedByteWriter writer = begin(to, {0, StoreRecord::ask, once ? store_ask_once : uint8_t{0}, number}, body);
    writer.number(floor).number(static_cast<uint32_t>(request.prefix_bytes()));
    for (const StoreOp &op : request.ops()) {
        const uint8_t fields = fields_of(op);
        writer.number(static_cast<uint16_t>(op.kind));
        writer.number(static_cast<uint8_t>(op.condition));
        writer.number(fields);
        writer.number(static_cast<uint32_t>(op.key.size()));
        if (fields & has_value) writer.number(static_cast<uint32_t>(op.value.size()));
        if (fields & has_expected) writer.number(static_cast<uint32_t>(op.expected.size()));
        if (fields & has_version) writer.number(wire_version(op));
        if (fields & has_number) writer.number(wire_number(op));
        if (fields & has_lease) writer.number(op.lease);
        writer.bytes(op.key).bytes(op.value).bytes(op.expected);
    }
}

bool get_ask(std::string_view body, uint64_t &floor, uint32_t &prefix, std::vector<muster_store_op> &ops) {
    ByteReader reader(body);
    floor = reader.number<uint64_t>();
    prefix = reader.number<uint32_t>();
    ops.clear();
    while (reader.is_valid() && reader.left() != 0) {
        if (ops.size() == store_ops_max) return false;
        muster_store_op &op = ops.emplace_back();
        op = {};
        op.kind = reader.number<uint16_t>();
        op.condition = reader.number<uint8_t>();
        const uint8_t fields = reader.number<uint8_t>();
        if (fields >= has_key) return false;
        op.key_bytes = reader.number<uint32_t>();
        if (fields & has_value) op.value_bytes = reader.number<uint32_t>();
        if (fields & has_expected) op.expected_bytes = reader.number<uint32_t>();
        if (fields & has_version) op.version = reader.number<uint64_t>();
        if (fields & has_number) op.number = reader.number<int64_t>();
        if (fields & has_lease) op.lease = reader.number<uint64_t>();
        if (op.kind == MUSTER_STORE_BARRIER) {
            if (op.version > UINT32_MAX || op.number < 0 || op.number > UINT32_MAX) return false;
            op.rank = static_cast<uint32_t>(std::exchange(op.version, 0));
            op.count = static_cast<uint32_t>(std::exchange(op.number, 0));
        }
        op.key = reader.bytes(op.key_bytes).data();
        op.value = reader.bytes(op.value_bytes).data();
        op.expected = reader.bytes(op.expected_bytes).data();
    }
    return reader.is_valid() && !ops.empty();
}

void put_answer(std::string &to, uint64_t number, const StoreAnswer &answer) {
    const std::string_view text(answer.error.message, std::min<size_t>(answer.error.message_bytes, UINT16_MAX));
    size_t body = answer_head_bytes + text.size();
    if (answer.result)
        for (const StoreEntry &entry : answer.result->entries) body += bytes_of(entry);
    PlacedByteWriter writer =
        begin(to, {0, StoreRecord::answer, answer.result ? uint8_t{1} : uint8_t{0}, number}, body);
    writer.number(static_cast<uint32_t>(answer.error.status));
    writer.number(answer.result ? static_cast<uint32_t>(answer.result->entries.size()) : 0);
    writer.number(answer.result ? answer.result->revision : 0).text(text);
    if (!answer.result) return;
    for (const StoreEntry &entry : answer.result->entries) {
        const uint8_t fields = fields_of(entry);
        writer.number(entry.op);
        writer.number(static_cast<uint8_t>(entry.flags));
        writer.number(fields);
        writer.number(uint16_t{0});
        writer.number(entry.version);
        if (fields & has_number) writer.number(entry.number);
        for (const Blob *blob : {entry.key.get(), entry.value.get()}) {
            if (blob == nullptr) continue;
            writer.number(static_cast<uint32_t>(blob->size())).bytes(blob->bytes());
        }
    }
}

bool get_answer(std::string_view body, StoreAnswer &answer) {
    ByteReader reader(body);
    answer = {};
    answer.error.status = reader.number<Status>();
    const uint32_t count = reader.number<uint32_t>();
    const uint64_t revision = reader.number<uint64_t>();
    const std::string_view text = reader.text(UINT16_MAX);
    if (!reader.is_valid() || count > reader.left() / entry_head_bytes) return false;
    if (!text.empty())
        answer.error = Error::make(answer.error.status, "%.*s", static_cast<int>(text.size()), text.data());
    if (answer.error.status != MUSTER_OK && answer.error.status != MUSTER_E_CHANGED) return reader.is_complete();
    answer.result = make_ref<StoreResult>();
    answer.result->revision = revision;
    answer.result->entries.resize(count);
    for (StoreEntry &entry : answer.result->entries) {
        entry.op = reader.number<uint32_t>();
        entry.flags = reader.number<uint8_t>();
        const uint8_t fields = reader.number<uint8_t>();
        if (reader.number<uint16_t>() != 0 || (fields & ~(has_number | has_key | has_value)) != 0) return false;
        entry.version = reader.number<uint64_t>();
        if (fields & has_number) entry.number = reader.number<int64_t>();
        if (fields & has_key) entry.key = get_blob(reader);
        if (fields & has_value) entry.value = get_blob(reader);
        if (!reader.is_valid()) return false;
    }
    return reader.is_complete();
}

} // namespace muster
