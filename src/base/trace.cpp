// SPDX-License-Identifier: MIT
#include "base/hash.hpp"
#include "base/trace_rings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace muster {

std::atomic<bool> Trace::on_{false};

TraceRings &TraceRings::get() noexcept {
    alignas(TraceRings) static unsigned char place[sizeof(TraceRings)];
    static auto *const rings = new (place) TraceRings;
    return *rings;
}

namespace {

// The ring of this thread; at its end another thread may have it.
struct OwnRing {
    TraceRing *ring = nullptr;
    bool has_ended = false;
    ~OwnRing() {
        has_ended = true;
        if (ring != nullptr) ring->is_used.store(false, std::memory_order_release); // pairs with enter_trace()
    }
};
thread_local OwnRing own_ring;

void *map_pages(size_t bytes) noexcept {
    void *const found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return found == MAP_FAILED ? nullptr : found;
}

// For the trace that is on now; null: this thread writes nothing.
TraceRing *enter_trace() noexcept {
    if (own_ring.has_ended) return nullptr;
    TraceRings &rings = TraceRings::get();
    const std::lock_guard hold(rings.lock);
    const uint64_t generation = rings.generation.load(std::memory_order_relaxed);
    TraceRing *ring = own_ring.ring;
    // The ring of a thread that has ended, if its events are those of an earlier trace.
    for (TraceRing *one = rings.first; one != nullptr && ring == nullptr; one = one->next) {
        const bool is_free = !one->is_used.load(std::memory_order_acquire);
        if (is_free && one->generation.load(std::memory_order_relaxed) != generation) ring = one;
    }
    if (ring == nullptr) {
        void *const place = rings.count < TraceRings::max_threads ? map_pages(sizeof(TraceRing)) : nullptr;
        if (place == nullptr) return nullptr;
        ring = new (place) TraceRing;
        ring->next = std::exchange(rings.first, ring);
        rings.count++;
    }
    if (ring->capacity != rings.events) {
        constexpr size_t event_bytes = TraceRing::words_per_event * sizeof(uint64_t);
        if (ring->words != nullptr) munmap(static_cast<void *>(ring->words), ring->capacity * event_bytes);
        ring->words = static_cast<std::atomic<uint64_t> *>(map_pages(rings.events * event_bytes));
        ring->capacity = ring->words != nullptr ? rings.events : 0;
        if (ring->words == nullptr) return nullptr;
    }
    ring->is_used.store(true, std::memory_order_relaxed);
    ring->head.store(0, std::memory_order_relaxed);
    ring->tid = static_cast<int>(syscall(SYS_gettid));
    pthread_getname_np(pthread_self(), ring->thread_name, sizeof ring->thread_name);
    ring->generation.store(generation, std::memory_order_relaxed);
    own_ring.ring = ring;
    return ring;
}

void save_at_exit() {
    const char *const folder = std::getenv("MUSTER_TRACE");
    if (folder == nullptr || TraceRings::get().process.forked()) return;
    try {
        const std::string name =
            std::string(folder) + '/' + program_invocation_short_name + '-' + std::to_string(getpid()) + ".pftrace";
        (void)Trace::save(name); // a failure has no receiver
    } catch (const std::bad_alloc &) {
    }
}

} // namespace

// An event has eight words: the time; kind, length of the text (8 bits each), and the duration of a span in units of
// 16 ns; category; name; four words of text, the last of which is the flow if the highest bit of the length is set.
namespace {
constexpr uint64_t flow_bit = 0x80 << 8;
constexpr int duration_shift = 16, duration_unit_shift = 4;
} // namespace

void TraceRing::write(const Trace::Event &what) noexcept {
    const size_t size = std::min(what.text.size(), what.flow != 0 ? Trace::text_bytes_with_flow : Trace::text_bytes);
    uint64_t letters[4] = {};
    if (size != 0) memcpy(letters, what.text.data(), size);
    if (what.flow != 0) letters[3] = what.flow;
    const uint64_t number = head.load(std::memory_order_relaxed);
    std::atomic<uint64_t> *const event = &words[number % capacity * words_per_event];
    const uint64_t at = static_cast<uint64_t>(what.at_ns != 0 ? what.at_ns : now_ns());
    const uint64_t duration = static_cast<uint64_t>(what.for_ns) >> duration_unit_shift << duration_shift;
    std::atomic_thread_fence(std::memory_order_release); // see `head`
    event[0].store(at, std::memory_order_relaxed);
    event[1].store(static_cast<uint64_t>(what.kind) | size << 8 | (what.flow != 0 ? flow_bit : 0) | duration,
                   std::memory_order_relaxed);
    event[2].store(reinterpret_cast<uintptr_t>(what.category), std::memory_order_relaxed);
    event[3].store(reinterpret_cast<uintptr_t>(what.name), std::memory_order_relaxed);
    for (size_t i = 0; i < 4; i++) event[4 + i].store(letters[i], std::memory_order_relaxed);
    head.store(number + 1, std::memory_order_release);
}

std::vector<TraceEvent> TraceRing::read() const {
    const uint64_t before = head.load(std::memory_order_acquire);
    const uint64_t first = before > capacity ? before - capacity : 0;
    std::vector<TraceEvent> events;
    events.reserve(before - first);
    for (uint64_t number = first; number < before; number++) {
        const std::atomic<uint64_t> *const event = &words[number % capacity * words_per_event];
        uint64_t copy[words_per_event];
        for (size_t i = 0; i < words_per_event; i++) copy[i] = event[i].load(std::memory_order_relaxed);
        TraceEvent made;
        made.at_ns = static_cast<int64_t>(copy[0]);
        made.kind = static_cast<Trace::Kind>(copy[1] & 0xff);
        made.category = reinterpret_cast<const char *>(static_cast<uintptr_t>(copy[2]));
        made.name = reinterpret_cast<const char *>(static_cast<uintptr_t>(copy[3]));
        const size_t size = copy[1] >> 8 & 0x7f;
        made.text.assign(reinterpret_cast<const char *>(&copy[4]), std::min(size, Trace::text_bytes));
        if ((copy[1] & flow_bit) != 0) made.flow = copy[7];
        made.for_ns = static_cast<int64_t>(copy[1] >> duration_shift << duration_unit_shift);
        events.push_back(std::move(made));
    }
    // What was overwritten meanwhile, the event included that is being written now.
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint64_t after = head.load(std::memory_order_relaxed);
    const uint64_t kept = after + 1 > capacity ? after + 1 - capacity : 0;
    if (kept > first)
        events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(std::min(kept, before) - first));
    return events;
}

void Trace::write(const Event &event) noexcept {
    TraceRing *ring = own_ring.ring;
    const uint64_t generation = TraceRings::get().generation.load(std::memory_order_acquire);
    if (ring == nullptr || ring->generation.load(std::memory_order_relaxed) != generation) ring = enter_trace();
    if (ring != nullptr) ring->write(event);
}

uint64_t Trace::fresh_number() noexcept {
    static const uint64_t seed = [] {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = static_cast<uint64_t>(now_ns());
        return random;
    }();
    static std::atomic<uint64_t> count{0}; // relaxed: only its own order counts
    const uint64_t number = mix64(seed + count.fetch_add(1, std::memory_order_relaxed));
    const uint64_t made = mix64(number ^ static_cast<uint64_t>(getpid())); // a forked child has the seed, too
    return made != 0 ? made : 1;
}

uint64_t Trace::id() noexcept {
    return TraceRings::get().id.load(std::memory_order_relaxed); // relaxed: of this trace, or of the one before
}

uint64_t Trace::flow_of(uint64_t direction, uint64_t number) noexcept {
    const uint64_t mixed = mix64(direction ^ mix64(number));
    return mixed != 0 ? mixed : 1;
}

Result<void> Trace::start(std::string_view name, uint32_t events) {
    TraceRings &rings = TraceRings::get();
    std::string kept(name.empty() ? program_invocation_short_name : name);
    const std::lock_guard hold(rings.lock);
    if (is_on() && !rings.process.forked()) return Error::make(MUSTER_E_EXISTS, "a trace is on already");
    rings.name = std::move(kept);
    rings.events = events;
    rings.offset_ns = 0, rings.offset_error_ns = -1;
    rings.process = ForkMark();
    rings.id = fresh_number();
    rings.generation.fetch_add(1, std::memory_order_release); // pairs with write(): the rest is set
    on_.store(true, std::memory_order_relaxed);
    return {};
}

Trace::State Trace::state() noexcept {
    TraceRings &rings = TraceRings::get();
    const std::lock_guard hold(rings.lock);
    State found;
    for (const TraceRing *ring = rings.first; ring != nullptr; ring = ring->next) {
        if (ring->generation.load(std::memory_order_relaxed) != rings.generation.load(std::memory_order_relaxed))
            continue;
        found.threads++;
        found.events += ring->head.load(std::memory_order_relaxed);
    }
    found.offset_ns = rings.offset_ns, found.offset_error_ns = rings.offset_error_ns;
    found.is_on = is_on();
    return found;
}

void Trace::set_offset(int64_t offset_ns, int64_t error_ns) noexcept {
    TraceRings &rings = TraceRings::get();
    const std::lock_guard hold(rings.lock);
    rings.offset_ns = offset_ns, rings.offset_error_ns = error_ns;
}

void Trace::start_by_environment() noexcept {
    static const bool once = [] {
        const char *const folder = std::getenv("MUSTER_TRACE");
        if (folder == nullptr || *folder == '\0') return false;
        try {
            return start({}, 8192) && std::atexit(save_at_exit) == 0;
        } catch (const std::bad_alloc &) {
            return false;
        }
    }();
    (void)once;
}

} // namespace muster
