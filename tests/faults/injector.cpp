// SPDX-License-Identifier: MIT
// Which calls of the library fail: sites, the call that is chosen, and what is still allocated. The functions that
// replace the C library's are in interpose.cpp.
#include "interpose.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unwind.h>

namespace faults {

int depth = 8;

namespace {

Shared *shared;
std::atomic<int> mode{static_cast<int>(Mode::off)};
Site target;
int target_errno;
std::atomic<int64_t> countdown{-1};
std::atomic<bool> fired{false};
std::atomic_flag lock = ATOMIC_FLAG_INIT;

thread_local bool is_inside;
thread_local uint32_t current = no_function;
thread_local int entered, paused;

class Locked {
  public:
    Locked() noexcept {
        while (lock.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
    }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
    ~Locked() { lock.clear(std::memory_order_release); }
};

struct Place {
    uint64_t offset;
    const char *module; // NULL: not the library
};

// The library itself and its plug-ins; by a lookup that takes no lock and no memory.
Place place_of(const void *address) noexcept {
    dl_find_object found;
    if (_dl_find_object(const_cast<void *>(address), &found) != 0) return {0, nullptr};
    const char *name = found.dlfo_link_map->l_name;
    const char *base = name ? std::strrchr(name, '/') : nullptr;
    base = base ? base + 1 : name;
    if (base == nullptr || (std::strncmp(base, "libmuster", 9) != 0 && std::strncmp(base, "muster-", 7) != 0))
        return {0, nullptr};
    return {reinterpret_cast<uint64_t>(address) - found.dlfo_link_map->l_addr, name};
}

struct Walk {
    Site *site;
    int skipped;
};

_Unwind_Reason_Code step(_Unwind_Context *context, void *argument) {
    auto &site = *static_cast<Walk *>(argument)->site;
    const auto address = _Unwind_GetIP(context);
    if (address == 0) return _URC_END_OF_STACK;
    const Place place = place_of(reinterpret_cast<void *>(address - 1));
    if (place.module == nullptr) return site.frame_count == 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
    site.module = place.module;
    site.frames[site.frame_count++] = place.offset;
    return static_cast<int>(site.frame_count) == depth ? _URC_END_OF_STACK : _URC_NO_REASON;
}

uint64_t mix(uint64_t hash, uint64_t value) noexcept {
    hash ^= value + 0x9e3779b97f4a7c15 + (hash << 12) + (hash >> 4);
    return hash * 0xff51afd7ed558ccd;
}

void read_stack(Site &site) noexcept {
    site.frame_count = 0;
    Walk walk{&site, 0};
    _Unwind_Backtrace(step, &walk);
    uint64_t hash = mix(mix(1, site.kind), site.function);
    for (uint32_t i = 0; i < site.frame_count; i++) hash = mix(hash, site.frames[i]);
    site.hash = hash;
}

void record(const Site &site) noexcept {
    const Locked guard;
    for (uint32_t i = 0; i < shared->site_count; i++)
        if (shared->sites[i].hash == site.hash) {
            shared->sites[i].calls++;
            return;
        }
    if (shared->site_count == max_sites) {
        shared->is_full = 1;
        return;
    }
    shared->sites[shared->site_count] = site;
    shared->sites[shared->site_count].calls = 1;
    shared->site_count++;
}

} // namespace

bool is_library(const void *caller) noexcept {
    return place_of(static_cast<const char *>(caller) - 1).module != nullptr;
}

int decide(uint32_t kind, const void *caller) noexcept {
    const auto now = static_cast<Mode>(mode.load(std::memory_order_relaxed));
    if (now == Mode::off || is_inside || paused != 0) return 0;
    if (now == Mode::fail && (kind != target.kind || current != target.function || fired.load())) return 0;
    is_inside = true;
    int result = 0;
    const Place place = place_of(static_cast<const char *>(caller) - 1);
    if (place.module != nullptr && (now == Mode::record || place.offset == target.frames[0])) {
        const int saved = errno;
        Site site{};
        site.kind = kind;
        site.function = current;
        read_stack(site);
        if (now == Mode::record) {
            record(site);
        } else if (site.hash == target.hash && countdown.fetch_sub(1) == 0) {
            fired.store(true);
            shared->fired = 1;
            shared->fired_in_library = current == no_function;
            result = target_errno;
        }
        errno = saved;
    }
    is_inside = false;
    return result;
}

void init(Shared *memory) {
    shared = memory;
}

void arm(Mode how, const Site *site, uint32_t call, int os_errno) {
    if (site != nullptr) target = *site;
    target_errno = os_errno;
    countdown.store(call);
    fired.store(false);
    mode.store(static_cast<int>(how));
}

void disarm() {
    mode.store(static_cast<int>(Mode::off));
}

bool has_fired() {
    return fired.load();
}

bool fired_in_library() {
    return shared->fired_in_library != 0;
}

const char *fault_kind() {
    return kinds[target.kind].name;
}

void enter(uint32_t function) {
    if (entered++ == 0) current = function;
    __atomic_fetch_add(&shared->called[function], 1, __ATOMIC_RELAXED);
}

void pause(bool is_paused) {
    paused += is_paused ? 1 : -1;
}

void leave() {
    if (--entered == 0) current = no_function;
}

// What is allocated: an open hash table of pointers, in memory of its own.
namespace {

struct Entry {
    void *memory; // NULL: never used; tombstone: free again
    uint32_t leak;
};
constexpr uint64_t table_size = 1 << 18;
Entry *table;
Leak *records; // one for each allocation so far that found room
uint32_t record_count;
std::atomic<bool> is_tracking{false};
bool with_stacks;
void *const tombstone = reinterpret_cast<void *>(1);
std::atomic_flag table_lock = ATOMIC_FLAG_INIT;

Entry &slot(const void *memory, uint64_t n) noexcept {
    return table[((mix(7, reinterpret_cast<uint64_t>(memory)) >> 40) + n) & (table_size - 1)];
}

class TableLocked {
  public:
    TableLocked() noexcept {
        while (table_lock.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
    }
    TableLocked(const TableLocked &) = delete;
    TableLocked &operator=(const TableLocked &) = delete;
    ~TableLocked() { table_lock.clear(std::memory_order_release); }
};

} // namespace

void track(bool stacks) {
#ifdef FAULTS_ADDRESS_SANITIZER
    return; // the sanitizer looks for leaks itself
#endif
    with_stacks = stacks;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(nullptr, table_size * (sizeof(Entry) + sizeof(Leak)), PROT_READ | PROT_WRITE, flags, -1, 0);
    records = static_cast<Leak *>(memory);
    table = reinterpret_cast<Entry *>(records + table_size);
    is_tracking.store(true);
}

void allocated(void *memory, uint64_t bytes, const void *caller) noexcept {
    if (memory == nullptr || is_inside || !is_tracking.load(std::memory_order_relaxed)) return;
    const Place place = place_of(static_cast<const char *>(caller) - 1);
    if (place.module == nullptr) return;
    Site site{};
    site.function = current;
    if (with_stacks) {
        is_inside = true;
        read_stack(site);
        is_inside = false;
    }
    const TableLocked guard;
    for (uint64_t n = 0; n < table_size; n++) {
        Entry &e = slot(memory, n);
        if (e.memory != nullptr && e.memory != tombstone) continue;
        if (record_count == table_size) break;
        Leak &record = records[record_count];
        record.memory = memory;
        record.bytes = bytes;
        if (with_stacks) {
            record.hash = site.hash;
            record.function = site.function;
            record.frame_count = site.frame_count;
            std::memcpy(record.frames, site.frames, sizeof site.frames);
        }
        e = {memory, record_count++};
        break;
    }
}

void freed(void *memory) noexcept {
    if (memory == nullptr || !is_tracking.load(std::memory_order_relaxed)) return;
    const TableLocked guard;
    for (uint64_t n = 0; n < table_size; n++) {
        Entry &e = slot(memory, n);
        if (e.memory == nullptr) break;
        if (e.memory != memory) continue;
        e.memory = tombstone;
        records[e.leak].memory = nullptr;
        break;
    }
}

uint32_t live_allocations(Leak *out, uint32_t capacity) {
    const TableLocked guard;
    uint32_t count = 0;
    for (uint32_t i = 0; i < record_count; i++) {
        if (records[i].memory == nullptr) continue;
        if (count < capacity) out[count] = records[i];
        count++;
    }
    return count;
}

} // namespace faults
