// SPDX-License-Identifier: MIT
// The log of a store in a file, as anybody may have written it, or cut it off: it is refused, or understood; what was
// understood is the same for whoever reads it next, and what is written behind it is found again.
#include "input.hpp"

#include "store/file/file_log.hpp"
#include "store/wire/wire.hpp"

#include <sodium.h>

#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace muster;

namespace {

// The input is records without their checksums, after a byte: 1: it is the file as it is; 2: numbers of records are
// used unchanged; 4: and one checksum in eight is wrong.
std::string file_of(const uint8_t *data, size_t size) {
    static const unsigned char key[crypto_shorthash_KEYBYTES] = {'m', 'u', 's', 't', 'e', 'r'};
    Input input(data, size);
    const uint8_t mode = input.byte();
    const std::string_view rest(reinterpret_cast<const char *>(data) + (size == 0 ? 0 : 1), input.left());
    if (mode & 1) return std::string(rest);
    std::string file("muster store 1\n\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
    uint64_t number = 0;
    for (size_t at = 0; rest.size() - at >= store_head_bytes;) {
        StoreHead head = StoreHead::get(reinterpret_cast<const unsigned char *>(rest.data()) + at);
        const size_t body = std::min<size_t>(head.bytes, rest.size() - at - store_head_bytes);
        std::string record(rest.substr(at, store_head_bytes + body));
        if (!(mode & 2) && head.type == StoreRecord::ask) head.number = ++number;
        if (head.bytes <= store_record_max) head.bytes = static_cast<uint32_t>(body);
        head.put(reinterpret_cast<unsigned char *>(record.data()));
        unsigned char hash[crypto_shorthash_BYTES];
        crypto_shorthash(hash, reinterpret_cast<const unsigned char *>(record.data()), record.size(), key);
        if ((mode & 4) && record.back() % 8 == 1) hash[0] ^= 1;
        file.append(reinterpret_cast<const char *>(hash), sizeof hash).append(record);
        at += store_head_bytes + body;
    }
    return file;
}

struct Asked final : StoreWaiter {
    explicit Asked(StoreRequest what) noexcept : StoreWaiter(std::move(what)) {}
};

std::string image_of(FileLog &log) {
    std::string text = std::to_string(log.table().revision()) + "\n";
    for (const auto &one : log.table().image().keys)
        text.append(one.key).append("=").append(one.value->bytes()).append(std::to_string(one.version) + "\n");
    return text;
}

bool read(FileLog &log) {
    if (!log.lock()) return false;
    const bool fine = static_cast<bool>(log.catch_up());
    log.unlock();
    return fine;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int memory = memfd_create("store", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(memory);
    const std::string file = file_of(data, size);
    const auto refill = [&](size_t bytes) {
        FUZZ_CHECK(ftruncate(memory, 0) == 0);
        FUZZ_CHECK(pwrite(memory, file.data(), bytes, 0) == static_cast<ssize_t>(bytes));
    };
    refill(file.size());
    FileLog first(path, false, 1 << 20);
    if (!first.open() || !read(first)) return 0;
    const std::string before = image_of(first);
    FUZZ_CHECK(read(first) && image_of(first) == before); // nothing new
    struct stat about {};
    FUZZ_CHECK(fstat(memory, &about) == 0);
    const auto whole = static_cast<size_t>(about.st_size); // what was cut off is taken away

    FileLog second(path, false, 1 << 20);
    FUZZ_CHECK(second.open() && read(second));
    FUZZ_CHECK(image_of(second) == before);
    muster_store_op op{};
    op.kind = MUSTER_STORE_SET;
    op.key = "key";
    op.key_bytes = 3;
    auto request = StoreRequest::read(&op, 1, {});
    FUZZ_CHECK(static_cast<bool>(request));
    FUZZ_CHECK(static_cast<bool>(second.lock()));
    Asked set(std::move(*request));
    FUZZ_CHECK(second.table().do_now(set));
    if (set.answer.error.status == MUSTER_OK) {
        second.note(set.request);
        FUZZ_CHECK(static_cast<bool>(second.write()));
    }
    second.unlock();
    FUZZ_CHECK(read(first) && image_of(first) == image_of(second));

    // Its writer was killed in the middle of a record: the records before it are present.
    if (whole <= 32 || file.size() < whole) return 0;
    refill(whole - 1 - size % (whole - 32));
    FileLog third(path, false, 1 << 20);
    FUZZ_CHECK(third.open() && read(third));
    FUZZ_CHECK(third.table().revision() <= first.table().revision());
    return 0;
}
