// SPDX-License-Identifier: MIT
// memory.h.
#include "scenario.hpp"

#include <muster/inline/memory.h>

#include <cstring>

using namespace faults;

namespace {

HANDLE(Group, muster_group, muster_group_release)
HANDLE(Memory, muster_memory, muster_memory_release)

} // namespace

SCENARIO(memory, alone) {
    Context context;
    create(context);
    muster_group_config members{};
    members.struct_size = sizeof members;
    members.size = 1;
    Group group;
    OK(muster_group_open, context, &members, patience, group.out(), &error);
    muster_memory_config config{};
    config.struct_size = sizeof config;
    config.segment_bytes = 1 << 17;
    config.max_tokens = 2;
    config.max_pending = 64;
    Memory memory;
    OR_END(muster_memory_open, group, &config, patience, memory.out(), &error);
    EXPECT(DO(muster_memory_locale, memory) == 0);
    EXPECT(DO(muster_memory_locales, memory) == 1);
    uint64_t offset = 0;
    OR_END(muster_memory_symmetric, memory, 8, 8, patience, &offset, &error);
    muster_gptr word = 0, block = 0;
    OK(muster_memory_pointer, memory, 0, offset, &word);
    uint32_t locale = 9;
    OK(muster_memory_parts, memory, word, &locale, &offset);
    EXPECT(locale == 0);
    OK(muster_memory_allocate, memory, 0, 100, -1, &block);
    void *address = nullptr;
    OK(muster_memory_address, memory, block, 100, &address);
    muster_memory_view view{};
    OK(muster_memory_get_view, memory, &view);
    EXPECT(muster_memory_at_inline(&view, block) == address);
    std::memset(address, 1, 100);
    muster_memory_operation add{};
    add.struct_size = sizeof add;
    add.kind = MUSTER_MEMORY_FETCH;
    add.target = word;
    add.value = 7;
    add.notify = 1;
    muster_memory_result before{};
    OK(muster_memory_run, memory, &add, -1, &before);
    EXPECT(before.value == 0);
    muster_memory_operation read{};
    read.struct_size = sizeof read;
    read.kind = MUSTER_MEMORY_READ;
    read.target = word;
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    OK(muster_memory_begin, memory, &read, &before, queue, 3);
    take_ok(queue, MUSTER_DONE_MEMORY, 3, "muster_memory_run");
    EXPECT(before.value == 7);
    OK(muster_memory_flush, memory, 0, patience);
    muster_memory_locale_info info{};
    OK(muster_memory_get_locale, memory, 0, &info, &error);
    EXPECT(info.is_mapped == 1);
    muster_epoch *epoch = nullptr;
    OK(muster_memory_epoch, memory, &epoch);
    muster_epoch_token *token = nullptr;
    OK(muster_epoch_register, epoch, &token, &error);
    OK(muster_epoch_retire, token, block);
    uint64_t back = 0;
    uint32_t backs = 0;
    OK(muster_epoch_synchronize, token, second, nullptr);
    OK(muster_epoch_poll, token, 1, 0, &back, 1, &backs, nullptr);
    EXPECT(backs == 1 && back == block);
    OK(muster_epoch_retire, token, block);
    OK(muster_epoch_synchronize, token, second, nullptr);
    OK(muster_memory_reclaim, memory, token, 1, 0, &backs);
    EXPECT(backs == 1);
    OK(muster_memory_allocate, memory, 0, 100, -1, &block);
    OK(muster_epoch_retire, token, block);
    uint64_t cleared = 0;
    OK(muster_memory_clear, memory, token, patience, &cleared);
    EXPECT(cleared == 1);
    OK(muster_memory_allocate, memory, 0, 100, -1, &block);
    OK(muster_memory_free, memory, block, -1);
    OK(muster_epoch_unregister, token);
    muster_memory_stats stats{};
    OK(muster_memory_get_stats, memory, 0, -1, &stats);
    EXPECT(stats.used_blocks == 0 && stats.allocated == 3);
}
