// SPDX-License-Identifier: MIT
#include "socket/loan.hpp"

#include "transport/segment.hpp"

#include <algorithm>
#include <bit>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace muster {

namespace {
constexpr size_t min_buffer_bytes = 64 * 1024, page_bytes = 4096;
constexpr size_t directory_bytes = (sizeof(LoanDirectory) + page_bytes - 1) / page_bytes * page_bytes;
constexpr uint64_t use_mask = UINT32_MAX;
constexpr int64_t look_again_ns = 200'000'000;

// Sizes of buffers are powers of two, so that one fits frames of similar sizes.
size_t buffer_bytes(size_t bytes) noexcept {
    return std::max(min_buffer_bytes, std::bit_ceil(bytes));
}

// The descriptor of another process, or of this one: a memfd that is sealed against any change of size. Nothing else is
// opened, since an open may block or have effects.
Fd open_descriptor(uint32_t process, int descriptor, int flags, size_t bytes) noexcept {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%d", process, descriptor);
    const Fd handle(::open(path, O_PATH | O_CLOEXEC));
    struct stat about {};
    if (!handle || fstat(handle.get(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle.get());
    Fd memory(::open(path, flags | O_CLOEXEC));
    if (!memory || !check_shared_memory(memory.get(), bytes)) return {};
    return memory;
}
} // namespace

LoanBuffer::~LoanBuffer() {
    munmap(data_, bytes_);
}

// ---- the sender -----------------------------------------------------------------------------------------------------

Result<Ref<LoanPool>> LoanPool::make(uint64_t max_bytes) {
    auto segment = make_segment(directory_bytes);
    if (!segment) return segment.error();
    auto *const directory = new (segment->mapping) LoanDirectory();
    LoanOrigin origin;
    origin.process = static_cast<uint32_t>(getpid());
    origin.descriptor = segment->memory.get();
    randombytes_buf(origin.token.data(), origin.token.size());
    directory->token = origin.token;
    auto made = Ref<LoanPool>::adopt(new LoanPool(std::move(segment->memory), directory, origin, max_bytes));
    segment->mapping = nullptr; // the pool's
    return made;
}

LoanPool::~LoanPool() {
    munmap(directory_, directory_bytes);
}

// These, under the lock.
bool LoanPool::has_uses(uint32_t slot) const noexcept {
    for (uint32_t i = 0; i < sheet_count_; i++)
        if ((directory_->sheet[i].uses[slot].load(std::memory_order_acquire) & use_mask) != 0) return true;
    return false;
}

bool LoanPool::is_free(uint32_t slot) const noexcept {
    const Slot &one = slots_[slot];
    return !one.buffer->is_taken.load(std::memory_order_acquire) && !one.is_abandoned && !has_uses(slot);
}

void LoanPool::drop(uint32_t slot) noexcept {
    Slot &one = slots_[slot];
    if (!one.buffer) return;
    bytes_ -= one.buffer->bytes();
    one.buffer.reset(); // frames keep the memory, which is no loan any more
    one.is_abandoned = false;
    directory_->slot[slot].generation.store(++one.generation, std::memory_order_release);
}

void LoanPool::fill(uint32_t slot, size_t bytes) {
    auto segment = make_segment(bytes);
    if (!segment) throw std::bad_alloc();
    Slot &one = slots_[slot];
    one.buffer =
        make_ref<LoanBuffer>(std::move(segment->memory), static_cast<unsigned char *>(segment->mapping), bytes);
    segment->mapping = nullptr; // the buffer's
    bytes_ += bytes;
    LoanDirectory::Slot &shared = directory_->slot[slot];
    shared.descriptor.store(one.buffer->descriptor(), std::memory_order_relaxed);
    shared.bytes.store(bytes, std::memory_order_relaxed);
}

Status LoanPool::acquire(size_t bytes, Ref<FrameMemory> &out, unsigned char *&out_data) {
    const size_t wanted = buffer_bytes(bytes);
    const std::lock_guard hold(lock_);
    constexpr uint32_t none = LoanDirectory::slots;
    uint32_t found = none, empty = none;
    for (uint32_t i = 0; i < LoanDirectory::slots && found == none; i++) {
        if (slots_[i].is_abandoned && !has_uses(i)) drop(i);
        if (!slots_[i].buffer)
            empty = std::min(empty, i);
        else if (slots_[i].buffer->bytes() == wanted && is_free(i))
            found = i;
    }
    // Free buffers of other sizes make room.
    for (uint32_t i = 0; i < LoanDirectory::slots && found == none; i++) {
        if (empty != none && bytes_ + wanted <= max_bytes_) break;
        if (!slots_[i].buffer || !is_free(i)) continue;
        drop(i);
        empty = i;
    }
    if (found == none && (empty == none || bytes_ + wanted > max_bytes_)) return MUSTER_AGAIN;
    if (found == none) fill(found = empty, wanted);
    Slot &one = slots_[found];
    out = make_ref<Use>(*this, found, one.generation, one.buffer);
    out_data = one.buffer->data();
    one.buffer->is_taken.store(true, std::memory_order_relaxed);
    return MUSTER_OK;
}

std::optional<uint16_t> LoanPool::take_sheet() noexcept {
    const std::lock_guard hold(lock_);
    const auto free = static_cast<uint16_t>(std::countr_one(sheets_));
    if (free >= LoanDirectory::sheets) return std::nullopt;
    sheets_ |= uint64_t{1} << free;
    sheet_count_ = std::max<uint32_t>(sheet_count_, free + 1u);
    return free;
}

void LoanPool::give_sheet_back(uint16_t sheet) noexcept {
    const std::lock_guard hold(lock_);
    for (uint32_t i = 0; i < LoanDirectory::slots; i++) {
        std::atomic<uint64_t> &uses = directory_->sheet[sheet].uses[i];
        if ((uses.exchange(0, std::memory_order_acq_rel) & use_mask) == 0) continue;
        slots_[i].is_abandoned = true;
        if (!has_uses(i)) drop(i);
    }
    sheets_ &= ~(uint64_t{1} << sheet);
}

bool LoanPool::refer(const Frame &frame, uint16_t sheet, LoanReference &out) noexcept {
    if (!frame.memory || frame.memory->loaned_by() != this) return false;
    const Use &use = static_cast<const Use &>(*frame.memory);
    const std::lock_guard hold(lock_);
    const Slot &slot = slots_[use.slot];
    if (slot.generation != use.generation || slot.is_abandoned) return false;
    std::atomic<uint64_t> &uses = directory_->sheet[sheet].uses[use.slot];
    // A count of an earlier generation is 0, and the receiver does not change it: its buffer was free.
    if (uses.load(std::memory_order_relaxed) >> 32 != use.generation)
        uses.store(uint64_t{use.generation} << 32, std::memory_order_relaxed);
    uses.fetch_add(1, std::memory_order_acq_rel);
    out = {static_cast<uint16_t>(use.slot), sheet, use.generation};
    return true;
}

bool LoanPool::is_used() noexcept {
    const std::lock_guard hold(lock_);
    for (uint32_t i = 0; i < LoanDirectory::slots; i++)
        if (slots_[i].buffer && has_uses(i)) return true;
    return false;
}

// The socket has ended, and its peers read what it has sent.
void LingeringLoans::begin(Context &context, Ref<LoanPool> pool) {
    const auto made = make_ref<LingeringLoans>(context, std::move(pool));
    context.on_closing(made->closing_);
    made->look();
}

void LingeringLoans::look() noexcept {
    if (!pool_) return;
    if (pool_->is_used()) return context_->loop().start_timer(timer_, now_ns() + look_again_ns);
    context_->forget_closing(closing_);
    end();
}

void LingeringLoans::end() noexcept {
    context_->loop().stop_timer(timer_);
    pool_.reset();
}

// ---- the receiver ---------------------------------------------------------------------------------------------------

Ref<LoanView> LoanView::open(const LoanOrigin &origin, uint64_t incarnation) {
    if (origin.process == 0) return {};
    const Fd memory = open_descriptor(origin.process, origin.descriptor, O_RDWR, directory_bytes);
    if (!memory) return {};
    void *const at = mmap(nullptr, directory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (at == MAP_FAILED) return {};
    auto *const directory = static_cast<LoanDirectory *>(at);
    auto made = Ref<LoanView>::adopt(new LoanView(origin.process, directory));
    // Another process may have that number, or descriptor, by now.
    if (sodium_memcmp(directory->token.data(), origin.token.data(), origin.token.size()) != 0) return {};
    directory->acknowledged[incarnation % LoanDirectory::acknowledgements].store(incarnation,
                                                                                 std::memory_order_relaxed);
    return made;
}

LoanView::~LoanView() {
    munmap(directory_, directory_bytes);
}

LoanView::Mapping::~Mapping() {
    munmap(const_cast<unsigned char *>(data), bytes);
}

Status LoanView::resolve(const LoanReference &reference, size_t bytes, Ref<FrameMemory> &out,
                         const unsigned char *&data) {
    if (reference.slot >= LoanDirectory::slots || reference.sheet >= LoanDirectory::sheets) return MUSTER_E_PROTOCOL;
    Slot &slot = slots_[reference.slot];
    if (slot.generation != reference.generation || !slot.mapping) {
        slot.mapping.reset();
        const LoanDirectory::Slot &shared = directory_->slot[reference.slot];
        const uint64_t size = shared.bytes.load(std::memory_order_relaxed); // once: the peer can change it
        if (size < page_bytes || size > Message::max_bytes)
            return is_of(reference) ? MUSTER_E_PROTOCOL : MUSTER_E_STALE;
        const Fd memory = open_descriptor(process_, shared.descriptor.load(std::memory_order_relaxed), O_RDONLY, size);
        if (!memory) return is_of(reference) && errno != ENOENT ? MUSTER_E_LIMIT : MUSTER_E_STALE;
        void *const at = mmap(nullptr, size, PROT_READ, MAP_SHARED, memory.get(), 0);
        if (at == MAP_FAILED) return MUSTER_E_LIMIT;
        try {
            slot.mapping = make_ref<Mapping>(static_cast<const unsigned char *>(at), size);
        } catch (const std::bad_alloc &) {
            munmap(at, size);
            throw;
        }
        slot.generation = reference.generation;
        // Only now: while the message has a use of the generation, descriptor and size are those of it.
        if (!is_of(reference)) return MUSTER_E_STALE;
    }
    if (bytes > slot.mapping->bytes) return MUSTER_E_PROTOCOL;
    out = make_ref<Use>(*this, reference, slot.mapping);
    data = slot.mapping->data;
    return MUSTER_OK;
}

bool LoanView::is_of(const LoanReference &reference) const noexcept {
    return directory_->slot[reference.slot].generation.load(std::memory_order_acquire) == reference.generation;
}

void LoanView::release_use(const LoanReference &reference) noexcept {
    std::atomic<uint64_t> &uses = directory_->sheet[reference.sheet].uses[reference.slot];
    uint64_t now = uses.load(std::memory_order_relaxed);
    do {
        if (now >> 32 != reference.generation || (now & use_mask) == 0) return;
    } while (!uses.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel, std::memory_order_relaxed));
}

} // namespace muster
