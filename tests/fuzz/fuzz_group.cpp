// SPDX-License-Identifier: MIT
// What a member of a group may send or store: its hello, its record, the heads of its messages; and what is said about
// operations that differ.
#include "input.hpp"

#include "group/hello.hpp"
#include "group/operation.hpp"

#include <string>

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in(data, size);
    const uint8_t mode = in.byte();
    size_t left;
    const auto *at = reinterpret_cast<const char *>(in.take(in.left(), left));
    const std::string bytes(at, left); // so that reading past it is seen
    if (mode % 3 == 0) {
        const auto hello = GroupHello::read(bytes);
        if (hello) FUZZ_CHECK(hello->rank < hello->size && hello->write() == bytes);
    } else if (mode % 3 == 1) {
        const auto record = GroupRecord::read(bytes);
        if (record) FUZZ_CHECK(!record->address.empty() && record->write() == bytes);
    } else {
        const auto head = GroupMessageHead::read(bytes);
        FUZZ_CHECK(!head || left == GroupMessageHead::bytes);
        if (!head) return 0;
        char again[GroupMessageHead::bytes];
        head->put(again);
        FUZZ_CHECK(bytes == std::string(again, sizeof again));
        // Any fingerprint can be named, and compared with another one.
        const std::string text = describe(head->fingerprint);
        FUZZ_CHECK(!text.empty() && text.size() < 400);
        Fingerprint own = head->fingerprint;
        own.word[left % Fingerprint::words] ^= 1;
        const Error why = make_mismatch(0, own, 1, head->fingerprint);
        FUZZ_CHECK(why.status == MUSTER_E_MISMATCH && why.rank == 1 && why.message[0] != '\0');
    }
    return 0;
}
