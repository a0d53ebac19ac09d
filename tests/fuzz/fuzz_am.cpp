// SPDX-License-Identifier: MIT
// What a peer may send as active messages: heads and hellos, and operations on global memory, which are then performed
// on a segment as its owner does. No byte beside the segment is touched, and no operation hangs.
#include "input.hpp"

#include "am/wire.hpp"
#include "memory/memory.hpp"
#include "memory/remote_wire.hpp"

#include <string>
#include <vector>

using namespace muster;

namespace {

constexpr uint32_t max_payload = 65536;

Memory &memory_of_one() {
    static Memory *const made = [] {
        muster_context *context = nullptr;
        muster_group *group = nullptr;
        muster_memory *memory = nullptr;
        muster_group_config members{};
        members.struct_size = sizeof members;
        members.size = 1;
        muster_memory_config config{};
        config.struct_size = sizeof config;
        config.segment_bytes = 65536;
        config.max_tokens = 1;
        config.max_pending = 64;
        FUZZ_CHECK(muster_context_create(nullptr, &context, nullptr) == MUSTER_OK);
        FUZZ_CHECK(muster_group_open(context, &members, -1, &group, nullptr) == MUSTER_OK);
        FUZZ_CHECK(muster_memory_open(group, &config, -1, &memory, nullptr) == MUSTER_OK);
        return unwrap(memory);
    }();
    return *made;
}

void read_head(const std::string &bytes) {
    AmHead head;
    if (bytes.size() < AmHead::bytes) return;
    if (AmHead::get(as_bytes(std::string_view(bytes)), max_payload, head) != nullptr) return;
    FUZZ_CHECK(head.payload <= max_payload && head.handler < am_handlers);
    char again[AmHead::bytes];
    head.put(again);
    FUZZ_CHECK(bytes.compare(0, AmHead::bytes, again, sizeof again) == 0);
    if (head.kind != AmKind::hello) return;
    AmHello hello;
    const std::string payload = bytes.substr(AmHead::bytes);
    if (AmHello::get(as_bytes(std::string_view(payload)), payload.size(), hello))
        FUZZ_CHECK(hello.max_bytes >= am_least_bytes && hello.max_requests >= am_least_requests);
}

void perform(const std::string &bytes) {
    auto what = RemoteOperation::get(as_bytes(std::string_view(bytes)), bytes.size());
    if (!what) return;
    if (what->kind != MUSTER_MEMORY_PUT) {
        char again[RemoteOperation::bytes];
        RemoteOperation::put(again, *what);
        FUZZ_CHECK(bytes == std::string(again, sizeof again));
    }
    std::vector<unsigned char> reply(max_payload);
    if (what->kind == MUSTER_MEMORY_GET) {
        if (what->bytes > reply.size()) return;
        what->local = reply.data();
    }
    muster_memory_result found{};
    const Status status = memory_of_one().run_here(*what, found);
    FUZZ_CHECK(status == MUSTER_OK || status == MUSTER_AGAIN || status == MUSTER_E_ARG || status == MUSTER_E_STALE);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in(data, size);
    const uint8_t mode = in.byte();
    size_t left;
    const auto *at = reinterpret_cast<const char *>(in.take(in.left(), left));
    const std::string bytes(at, left); // so that reading past it is seen
    if (mode % 4 == 0)
        read_head(bytes);
    else if (mode % 4 == 1)
        perform(bytes);
    else if (mode % 4 == 2 && left >= 8) // any block that a peer may free
        (void)muster_memory_free(wrap(&memory_of_one()), get_u64(as_bytes(std::string_view(bytes))), 0);
    else if (left >= 8) {
        muster_gptr block = 0;
        const uint64_t wanted = get_u64(as_bytes(std::string_view(bytes))) % 131072;
        if (muster_memory_allocate(wrap(&memory_of_one()), 0, wanted, 0, &block) == MUSTER_OK)
            (void)muster_memory_free(wrap(&memory_of_one()), block,
                                     0); // an earlier PUT may have overwritten the head of the block
    }
    return 0;
}
