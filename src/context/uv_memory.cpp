// SPDX-License-Identifier: MIT
#include "context/uv_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <mutex>
#include <pthread.h>
#include <uv.h>

namespace muster {

namespace {

// libuv (1.44 at least) reports a failed malloc(), but aborts the process when the list of a loop's descriptors cannot
// grow: the one thing it uses realloc() for. prepare_poll() makes the list grow where a failure can be told; but a
// loop's first descriptor comes inside uv_loop_init(). So that realloc() gets a reserve, which costs nothing until it
// is touched.
constexpr size_t slot_count = 16, slot_bytes = 64 << 10; // descriptors up to 8190 in 16 loops
alignas(64) unsigned char reserve[slot_count][slot_bytes];
constinit std::mutex lock;
bool taken[slot_count]; // under lock

bool in_reserve(const void *memory) noexcept {
    const auto *byte = static_cast<const unsigned char *>(memory);
    return byte >= reserve[0] && byte < reserve[0] + sizeof reserve;
}

void *take_slot() noexcept {
    const std::lock_guard hold(lock);
    for (size_t i = 0; i < slot_count; i++)
        if (!taken[i]) {
            taken[i] = true;
            return reserve[i];
        }
    return nullptr;
}

void give_back(void *memory) noexcept {
    if (!in_reserve(memory)) return std::free(memory);
    const std::lock_guard hold(lock);
    taken[static_cast<size_t>(static_cast<unsigned char *>(memory) - reserve[0]) / slot_bytes] = false;
}

void *resize(void *memory, size_t size) noexcept {
    if (memory != nullptr && in_reserve(memory)) {
        if (size <= slot_bytes) return memory;
        void *const larger = std::malloc(size);
        if (larger == nullptr) return nullptr;
        std::memcpy(larger, memory, slot_bytes);
        give_back(memory);
        return larger;
    }
    if (void *const done = std::realloc(memory, size)) return done;
    void *const slot = size <= slot_bytes ? take_slot() : nullptr;
    // What lies behind the old block's end is of no value, so as much is copied as is known to be there.
    if (slot != nullptr && memory != nullptr) {
        std::memcpy(slot, memory, std::min(size, malloc_usable_size(memory)));
        std::free(memory);
    }
    return slot;
}

} // namespace

void give_uv_a_reserve() noexcept {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { uv_replace_allocator(std::malloc, resize, std::calloc, give_back); });
}

bool has_unregistered(const uv_loop_t *loop) noexcept {
    // A list in a ring, whose first word is the next one.
    const void *first;
    std::memcpy(&first, &loop->watcher_queue, sizeof first);
    return first != &loop->watcher_queue;
}

// As libuv does it, but for the abort: a power of two, less two places at the end that are libuv's own.
int prepare_poll(uv_loop_t *loop, uv_poll_t *poll, int fd) noexcept {
    const auto needed = static_cast<unsigned>(fd) + 1;
    const unsigned before = loop->nwatchers;
    if (needed > before) {
        const unsigned count = std::bit_ceil(needed + 2) - 2;
        const bool had_one = loop->watchers != nullptr;
        auto *const list = static_cast<uv__io_t **>(resize(loop->watchers, (count + 2) * sizeof(uv__io_t *)));
        if (list == nullptr) return UV_ENOMEM;
        uv__io_t *const own[2] = {had_one ? list[before] : nullptr, had_one ? list[before + 1] : nullptr};
        std::fill(list + before, list + count, nullptr);
        std::copy(own, own + 2, list + count);
        loop->watchers = list;
        loop->nwatchers = count;
    }
    return uv_poll_init(loop, poll, fd);
}

} // namespace muster
