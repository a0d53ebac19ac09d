// SPDX-License-Identifier: MIT
#include "epoch/epoch.hpp"

#include "process/identity.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

Epoch::Epoch(Settings settings) noexcept
    : flags_(settings.flags), capacity_wanted_(settings.capacity), queue_(std::move(settings.queue)),
      tag_(settings.tag), process_(::getpid()) {}

Epoch::~Epoch() {
    if (forked() || home_ == nullptr) return;
    if (home_->manager.load(std::memory_order_relaxed) == nullptr) { // opening it failed: the host has no handle
        ::munmap(home_, mapped_bytes_);
        return;
    }
    if (queue_) queue_->detach(*this);
    if (header_ != nullptr && !is_shared())
        for (uint32_t i = 0, used = used_tokens(); i < used; i++) free_all_functions(slot(i));
    // Handles and tokens that the host still has must not crash it, and must not become those of another manager: the
    // addresses stay, as zeros. Zero pages need no memory.
    const uint64_t kept = header_ == nullptr ? epoch_page : epoch_page + epoch_slots_end(max_tokens_);
    (void)::mmap(home_, kept, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped_bytes_ > kept) ::munmap(reinterpret_cast<char *>(home_) + kept, mapped_bytes_ - kept);
}

// One range of addresses: the page of this process, then `bytes` of memory, shared or not.
Result<void> Epoch::map(int fd, uint64_t offset, uint64_t bytes) {
    void *const at =
        ::mmap(nullptr, epoch_page + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return Error::from_errno(errno, MUSTER_OK, "reserve %llu bytes for a manager of epochs",
                                 static_cast<unsigned long long>(bytes));
    if (fd >= 0 && ::mmap(static_cast<char *>(at) + epoch_page, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          fd, static_cast<off_t>(offset)) == MAP_FAILED) {
        const int os_errno = errno;
        ::munmap(at, epoch_page + bytes);
        return Error::from_errno(os_errno, MUSTER_E_SYSTEM, "map the shared memory of a manager of epochs");
    }
    home_ = static_cast<EpochHome *>(at);
    mapped_bytes_ = epoch_page + bytes;
    header_ = reinterpret_cast<EpochHeader *>(static_cast<char *>(at) + epoch_page);
    return {};
}

void Epoch::place(uint64_t tokens) noexcept {
    char *const base = reinterpret_cast<char *>(header_);
    max_tokens_ = tokens;
    slots_ = reinterpret_cast<EpochSlot *>(base + epoch_page);
    table_entries_ = epoch_table_entries(capacity_);
    numbers_ = reinterpret_cast<uint32_t *>(base + epoch_slots_end(tokens));
    objects_ = reinterpret_cast<DeferredObject *>(base + epoch_bags_begin(tokens, capacity_));
}

void Epoch::enter() noexcept {
    home_->manager.store(this, std::memory_order_relaxed);
    home_->handle.store(this, std::memory_order_release);
    if (queue_) queue_->attach(*this, tag_);
}

Result<Ref<Epoch>> Epoch::make(Settings settings) {
    watch_forks();
    const bool shared = (settings.flags & MUSTER_EPOCH_SHARED) != 0;
    const uint64_t tokens = settings.max_tokens, bytes = epoch_bytes(tokens, settings.capacity);
    const int fd = shared ? settings.fd : -1;
    const uint64_t offset = settings.offset;
    struct stat about;
    if (shared && ::fstat(fd, &about) != 0)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "descriptor %d of the shared memory", fd);
    if (shared && (offset > static_cast<uint64_t>(about.st_size) || bytes > about.st_size - offset))
        return Error::make(MUSTER_E_ARG, "the shared memory has %lld bytes; the manager needs %llu at offset %llu",
                           static_cast<long long>(about.st_size), static_cast<unsigned long long>(bytes),
                           static_cast<unsigned long long>(offset));
    const uint64_t id_namespace = process_id_namespace();
    if (shared && id_namespace == 0)
        return Error::make(MUSTER_E_SYSTEM, "/proc cannot be read: deaths of processes could not be detected");
    auto made = Ref<Epoch>::adopt(new Epoch(std::move(settings)));
    if (auto done = made->map(fd, offset, bytes); !done) return done.error();
    EpochHeader &header = *made->header_;
    // Two creators at once: the epoch, zero until then, decides.
    uint64_t zero = 0;
    if (header.magic.load(std::memory_order_acquire) != 0 || !header.epoch.compare_exchange_strong(zero, 1)) {
        made->header_ = nullptr; // not ours
        return Error::make(MUSTER_E_EXISTS, "the shared memory has a manager of epochs, or is not zero");
    }
    made->capacity_ = made->capacity_wanted_;
    made->place(tokens);
    const Fence wanted = shared ? Fence::global_membarrier : Fence::private_membarrier;
#if defined(MUSTER_TSAN)
    const bool per_pin = true; // TSan does not see the fence of membarrier(2)
#else
    const bool per_pin = (made->flags_ & MUSTER_EPOCH_FENCED) != 0 || !register_fence(wanted);
#endif
    made->fence_ = per_pin ? Fence::per_pin : wanted;
    header.max_tokens = static_cast<uint32_t>(tokens);
    header.capacity = static_cast<uint32_t>(made->capacity_);
    header.is_fenced = per_pin;
    header.is_thread_bound = (made->flags_ & MUSTER_EPOCH_THREAD_BOUND) != 0;
    header.id_namespace = id_namespace;
    made->process_start_ = thread_start_time(made->process_, made->process_);
    header.magic.store(epoch_magic, std::memory_order_release);
    made->enter();
    return made;
}

Result<Ref<Epoch>> Epoch::open(Settings settings) {
    watch_forks();
    const int fd = settings.fd;
    const uint64_t offset = settings.offset;
    struct stat about;
    if (::fstat(fd, &about) != 0)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "descriptor %d of the shared memory", fd);
    const uint64_t available = about.st_size < 0 || offset > static_cast<uint64_t>(about.st_size)
                                   ? 0
                                   : static_cast<uint64_t>(about.st_size) - offset;
    if (available < epoch_page)
        return Error::make(MUSTER_E_NOT_FOUND, "the shared memory has no manager of epochs at offset %llu",
                           static_cast<unsigned long long>(offset));
    auto made = Ref<Epoch>::adopt(new Epoch(std::move(settings)));
    if (auto done = made->map(fd, offset, available / epoch_page * epoch_page); !done) return done.error();
    EpochHeader &header = *std::exchange(made->header_, nullptr);
    const uint64_t magic = header.magic.load(std::memory_order_acquire);
    if (magic == 0) return Error::make(MUSTER_E_NOT_FOUND, "the shared memory has no manager of epochs there");
    const uint64_t tokens = header.max_tokens, capacity = header.capacity;
    if (magic != epoch_magic || tokens == 0 || epoch_tokens(header.max_tokens) == 0 ||
        epoch_capacity(header.capacity) != capacity || epoch_bytes(tokens, capacity) > available ||
        header.used_tokens.load(std::memory_order_relaxed) > tokens)
        return Error::make(MUSTER_E_PROTOCOL, "the manager of epochs there is damaged, or of another version");
    const uint64_t id_namespace = process_id_namespace();
    if (id_namespace == 0)
        return Error::make(MUSTER_E_SYSTEM, "/proc cannot be read: deaths of processes could not be detected");
    if (header.id_namespace != id_namespace)
        return Error::make(MUSTER_E_UNSUPPORTED, "the manager belongs to another namespace of process ids: deaths "
                                                 "could not be detected");
    made->fence_ = header.is_fenced != 0 ? Fence::per_pin : Fence::global_membarrier;
    if (!register_fence(made->fence_))
        return Error::make(MUSTER_E_UNSUPPORTED, "pins of this manager rely on membarrier(2), which is refused");
    made->capacity_ = capacity;
    made->header_ = &header;
    made->place(tokens);
    made->process_start_ = thread_start_time(made->process_, made->process_);
    made->enter();
    return made;
}

void Epoch::host_release() noexcept {
    home_->handle.store(nullptr, std::memory_order_release);
    if (!forked()) release();
}

Epoch *Epoch::manager_of(const EpochSlot &slot) noexcept {
    const char *const base = reinterpret_cast<const char *>(&slot - slot.token.index) - epoch_page;
    return reinterpret_cast<const EpochHome *>(base - epoch_page)->manager.load(std::memory_order_acquire);
}

// Tries to advance the epoch. The election only saves work: any number of threads may scan at once, and a stopped one
// is overtaken after 64 attempts.
//
// A token that the scan does not see pinned cannot reach what was unlinked before heavy_fence(): either its pin had not
// reached memory, and everything that it reads comes after the fence; or it was unpinned. So an object that was
// unlinked while the global epoch was e (its stamp was read after it was unlinked) is used only by tokens that
// are pinned at e + 1 or earlier; the scan before the step to e + 2 finds these tokens. tests/models/epoch.pml checks
// this.
Status Epoch::advance(muster_epoch_attempt &out) noexcept {
    const uint64_t epoch = header_->epoch.load(std::memory_order_seq_cst);
    out = {};
    out.token = UINT32_MAX;
    out.epoch = epoch;
    out.outcome = MUSTER_EPOCH_LOST;
    if (is_led()) {
        if (EpochLeader *const leader = leader_.load(std::memory_order_acquire)) leader->advance_soon();
        return MUSTER_AGAIN;
    }
    uint64_t elected = header_->elected.load(std::memory_order_relaxed);
    if (elected == epoch) {
        if (header_->losers.fetch_add(1, std::memory_order_relaxed) < 64) return MUSTER_AGAIN;
    } else if (!header_->elected.compare_exchange_strong(elected, epoch, std::memory_order_relaxed)) {
        return MUSTER_AGAIN;
    }
    header_->losers.store(0, std::memory_order_relaxed);
    if (!scan(epoch, out)) {
        header_->elected.store(0, std::memory_order_relaxed);
        return MUSTER_AGAIN;
    }
    // seq_cst, and so acq_rel: frees that rely on the new epoch come after every read by tokens that the scan has
    // passed.
    uint64_t expected = epoch;
    const bool advanced = header_->epoch.compare_exchange_strong(expected, epoch + 1, std::memory_order_seq_cst);
    out.epoch = advanced ? epoch + 1 : expected;
    if (advanced) out.outcome = MUSTER_EPOCH_ADVANCED;
    if (can_die()) look_for_dead();
    return advanced ? MUSTER_OK : MUSTER_AGAIN;
}

// Tokens that are pinned before this epoch; those of dead owners are not pinned any more after it.
bool Epoch::scan(uint64_t epoch, muster_epoch_attempt &out) noexcept {
    heavy_fence(fence_);
    for (uint32_t i = 0, used = used_tokens(); i < used; i++) {
        EpochSlot &one = slot(i);
        // acquire: pairs with the release of an unpin, and with that of a pin after a protect().
        const uint64_t seen = one.epoch().load(std::memory_order_acquire);
        if (seen == 0 || seen >= epoch) continue;
        find_blocking(one, epoch, out);
        if (out.outcome == MUSTER_EPOCH_HELD) return false; // otherwise its owner was dead
    }
    return true;
}

void Epoch::lead() noexcept {
    header_->stamp_epoch.store(header_->epoch.load(std::memory_order_relaxed), std::memory_order_relaxed);
    header_->is_led.store(1, std::memory_order_release);
}

// The stamps first: no token here is pinned later than a stamp, either. seq_cst: see advance().
void Epoch::raise(uint64_t epoch, uint64_t stamps) noexcept {
    const auto grow = [](std::atomic<uint64_t> &copy, uint64_t to) {
        uint64_t seen = copy.load(std::memory_order_relaxed);
        while (seen < to && !copy.compare_exchange_weak(seen, to, std::memory_order_seq_cst)) {
        }
    };
    grow(header_->stamp_epoch, stamps);
    grow(header_->epoch, epoch);
    if (can_die()) look_for_dead();
}

void Epoch::stats(muster_epoch_stats &out) noexcept {
    out = {};
    out.epoch = now();
    out.blocking_token = UINT32_MAX;
    out.deaths = header_->deaths.load(std::memory_order_relaxed);
    out.is_fenced = fence_ == Fence::per_pin;
    for (uint32_t i = 0, used = used_tokens(); i < used; i++) {
        EpochSlot &one = slot(i);
        const uint64_t state = one.state().load(std::memory_order_acquire);
        out.tokens += kind_of(state) == MUSTER_EPOCH_TOKEN_IN_USE;
        out.orphaned += kind_of(state) >= MUSTER_EPOCH_TOKEN_ORPHANED;
        out.deferred += one.deferred.load(std::memory_order_relaxed);
        out.freed += one.freed.load(std::memory_order_relaxed);
        out.pending += one.pending();
        const uint64_t seen = one.epoch().load(std::memory_order_relaxed);
        if (seen == 0 || seen >= out.epoch || out.blocking_token != UINT32_MAX) continue;
        out.blocking_token = i;
        out.blocking_process = process_of(state);
        out.blocking_thread = one.owner_thread.load(std::memory_order_relaxed);
        if (one.blocked_epoch.load(std::memory_order_acquire) == out.epoch)
            out.blocked_ns = static_cast<uint64_t>(now_ns() - one.blocked_since_ns.load(std::memory_order_relaxed));
    }
}

} // namespace muster
