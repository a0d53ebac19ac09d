// SPDX-License-Identifier: MIT
#include "store/wire/wire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {

namespace {

enum : uint8_t { has_value = 1, has_expected = 2, has_version = 4, has_number = 8, has_lease = 16, has_key = 32 };
constexpr size_t op_head_bytes = 8, answer_head_bytes = 18, entry_head_bytes = 16;

// Into memory that is there already.
class Writer {
  public:
    explicit Writer(char *to) noexcept : to_(reinterpret_cast<unsigned char *>(to)) {}
    void u8(uint8_t v) noexcept { *to_++ = v; }
    void u16(uint16_t v) noexcept { put_u16(to_, v), to_ += 2; }
    void u32(uint32_t v) noexcept { put_u32(to_, v), to_ += 4; }
    void u64(uint64_t v) noexcept { put_u64(to_, v), to_ += 8; }
    void bytes(std::string_view v) noexcept {
        if (!v.empty()) std::memcpy(to_, v.data(), v.size());
        to_ += v.size();
    }
    void head(StoreHead head) noexcept { head.put(to_), to_ += store_head_bytes; }

  private:
    unsigned char *to_;
};

class Reader {
  public:
    explicit Reader(std::string_view from) noexcept : from_(from) {}
    bool fine() const noexcept { return fine_; }
    bool at_end() const noexcept { return fine_ && from_.empty(); }
    uint8_t u8() noexcept { return take(1) ? at_[0] : uint8_t{0}; }
    uint16_t u16() noexcept { return take(2) ? get_u16(at_) : uint16_t{0}; }
    uint32_t u32() noexcept { return take(4) ? get_u32(at_) : 0; }
    uint64_t u64() noexcept { return take(8) ? get_u64(at_) : 0; }
    std::string_view bytes(size_t size) noexcept {
        return take(size) ? std::string_view(reinterpret_cast<const char *>(at_), size) : std::string_view();
    }
    size_t left() const noexcept { return from_.size(); }

  private:
    bool take(size_t size) noexcept {
        if (!fine_ || size > from_.size()) return fine_ = false;
        at_ = reinterpret_cast<const unsigned char *>(from_.data());
        from_.remove_prefix(size);
        return true;
    }
    std::string_view from_;
    const unsigned char *at_ = nullptr;
    bool fine_ = true;
};

// Room for a record at the end of the text.
Writer begin(std::string &to, StoreHead head, size_t body) {
    const size_t at = to.size();
    to.resize(at + store_head_bytes + body);
    Writer writer(to.data() + at);
    head.bytes = static_cast<uint32_t>(body);
    writer.head(head);
    return writer;
}

// On the wire the rank of a barrier stands in the place of the version, and its count in that of the number.
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

Ref<Blob> get_blob(Reader &reader) {
    const std::string_view bytes = reader.bytes(reader.u32());
    return reader.fine() ? Blob::make(bytes) : Ref<Blob>();
}

} // namespace

void put_record(std::string &to, StoreHead head, std::string_view body) {
    begin(to, head, body.size()).bytes(body);
}

void put_hello(std::string &to, const StoreId &session, bool resume) {
    Writer writer = begin(to, {0, StoreRecord::hello, 0, 0}, session.size() + 1);
    writer.bytes({reinterpret_cast<const char *>(session.data()), session.size()});
    writer.u8(resume ? 1 : 0);
}

bool get_hello(std::string_view body, StoreId &session, bool &resume) noexcept {
    Reader reader(body);
    const std::string_view id = reader.bytes(session.size());
    const uint8_t flag = reader.u8();
    if (!reader.at_end() || flag > 1) return false;
    std::memcpy(session.data(), id.data(), session.size());
    resume = flag == 1;
    return true;
}

void put_welcome(std::string &to, const StoreWelcome &welcome) {
    Writer writer = begin(to, {0, StoreRecord::welcome, 0, 0}, welcome.instance.size() + 13);
    writer.bytes({reinterpret_cast<const char *>(welcome.instance.data()), welcome.instance.size()});
    writer.u32(welcome.capabilities);
    writer.u8(welcome.flags);
    writer.u64(welcome.revision);
}

bool get_welcome(std::string_view body, StoreWelcome &welcome) noexcept {
    Reader reader(body);
    const std::string_view id = reader.bytes(welcome.instance.size());
    welcome.capabilities = reader.u32();
    welcome.flags = reader.u8();
    welcome.revision = reader.u64();
    if (!reader.at_end()) return false;
    std::memcpy(welcome.instance.data(), id.data(), id.size());
    return true;
}

void put_ask(std::string &to, uint64_t number, uint64_t floor, bool once, const StoreRequest &request) {
    size_t body = 12;
    for (const StoreOp &op : request.ops()) body += bytes_of(op);
    Writer writer = begin(to, {0, StoreRecord::ask, once ? store_ask_once : uint8_t{0}, number}, body);
    writer.u64(floor);
    writer.u32(static_cast<uint32_t>(request.prefix_bytes()));
    for (const StoreOp &op : request.ops()) {
        const uint8_t fields = fields_of(op);
        writer.u16(static_cast<uint16_t>(op.kind));
        writer.u8(static_cast<uint8_t>(op.condition));
        writer.u8(fields);
        writer.u32(static_cast<uint32_t>(op.key.size()));
        if (fields & has_value) writer.u32(static_cast<uint32_t>(op.value.size()));
        if (fields & has_expected) writer.u32(static_cast<uint32_t>(op.expected.size()));
        if (fields & has_version) writer.u64(wire_version(op));
        if (fields & has_number) writer.u64(wire_number(op));
        if (fields & has_lease) writer.u64(op.lease);
        writer.bytes(op.key);
        writer.bytes(op.value);
        writer.bytes(op.expected);
    }
}

bool get_ask(std::string_view body, uint64_t &floor, uint32_t &prefix, std::vector<muster_store_op> &ops) {
    Reader reader(body);
    floor = reader.u64();
    prefix = reader.u32();
    ops.clear();
    while (reader.fine() && reader.left() != 0) {
        if (ops.size() == store_ops_max) return false;
        muster_store_op &op = ops.emplace_back();
        op = {};
        op.kind = reader.u16();
        op.condition = reader.u8();
        const uint8_t fields = reader.u8();
        if (fields >= has_key) return false;
        op.key_bytes = reader.u32();
        if (fields & has_value) op.value_bytes = reader.u32();
        if (fields & has_expected) op.expected_bytes = reader.u32();
        if (fields & has_version) op.version = reader.u64();
        if (fields & has_number) op.number = static_cast<int64_t>(reader.u64());
        if (fields & has_lease) op.lease = reader.u64();
        if (op.kind == MUSTER_STORE_BARRIER) {
            if (op.version > UINT32_MAX || op.number < 0 || op.number > UINT32_MAX) return false;
            op.rank = static_cast<uint32_t>(std::exchange(op.version, 0));
            op.count = static_cast<uint32_t>(std::exchange(op.number, 0));
        }
        op.key = reader.bytes(op.key_bytes).data();
        op.value = reader.bytes(op.value_bytes).data();
        op.expected = reader.bytes(op.expected_bytes).data();
    }
    return reader.fine() && !ops.empty();
}

void put_answer(std::string &to, uint64_t number, const StoreAnswer &answer) {
    const std::string_view text(answer.error.message, std::min<size_t>(answer.error.message_bytes, UINT16_MAX));
    size_t body = answer_head_bytes + text.size();
    if (answer.result)
        for (const StoreEntry &entry : answer.result->entries) body += bytes_of(entry);
    Writer writer = begin(to, {0, StoreRecord::answer, answer.result ? uint8_t{1} : uint8_t{0}, number}, body);
    writer.u32(static_cast<uint32_t>(answer.error.status));
    writer.u32(answer.result ? static_cast<uint32_t>(answer.result->entries.size()) : 0);
    writer.u64(answer.result ? answer.result->revision : 0);
    writer.u16(static_cast<uint16_t>(text.size()));
    writer.bytes(text);
    if (!answer.result) return;
    for (const StoreEntry &entry : answer.result->entries) {
        const uint8_t fields = fields_of(entry);
        writer.u32(entry.op);
        writer.u8(static_cast<uint8_t>(entry.flags));
        writer.u8(fields);
        writer.u16(0);
        writer.u64(entry.version);
        if (fields & has_number) writer.u64(static_cast<uint64_t>(entry.number));
        for (const Ref<Blob> &blob : {entry.key, entry.value}) {
            if (!blob) continue;
            writer.u32(static_cast<uint32_t>(blob->size()));
            writer.bytes(blob->bytes());
        }
    }
}

bool get_answer(std::string_view body, StoreAnswer &answer) {
    Reader reader(body);
    answer = {};
    answer.error.status = static_cast<Status>(reader.u32());
    const uint32_t count = reader.u32();
    const uint64_t revision = reader.u64();
    const std::string_view text = reader.bytes(reader.u16());
    if (!reader.fine() || count > reader.left() / entry_head_bytes) return false;
    if (!text.empty())
        answer.error = Error::make(answer.error.status, "%.*s", static_cast<int>(text.size()), text.data());
    if (answer.error.status != MUSTER_OK && answer.error.status != MUSTER_E_CHANGED) return reader.at_end();
    answer.result = make_ref<StoreResult>();
    answer.result->revision = revision;
    answer.result->entries.resize(count);
    for (StoreEntry &entry : answer.result->entries) {
        entry.op = reader.u32();
        entry.flags = reader.u8();
        const uint8_t fields = reader.u8();
        if (reader.u16() != 0 || (fields & ~(has_number | has_key | has_value)) != 0) return false;
        entry.version = reader.u64();
        if (fields & has_number) entry.number = static_cast<int64_t>(reader.u64());
        if (fields & has_key) entry.key = get_blob(reader);
        if (fields & has_value) entry.value = get_blob(reader);
        if (!reader.fine()) return false;
    }
    return reader.at_end();
}

} // namespace muster
