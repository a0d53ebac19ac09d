// SPDX-License-Identifier: MIT
#pragma once
// Loaned frames: a sender fills them in shared memory, and a receiver on the same host reads them in place.
//
// A socket that loans has a pool: up to 64 buffers, each a memfd, and a directory of them, a memfd that its peers map
// as well. The hello of the socket has the process, the descriptor and the token of the directory. A peer that can open
// both by /proc, which the kernel permits to processes of the same user in the same namespace, acknowledges that in the
// directory; from then on messages to it refer to frames by slot and generation. To all other peers the bytes are
// copied. No side waits for the other one, as it would where descriptors are passed by the loop of the owner.
//
// A buffer is free when no frame of this process has it and no peer uses it. Each peer has a sheet in the directory,
// with a count of uses for each slot: the sender adds a use with each reference that it writes to the peer, the
// receiver subtracts it when it releases the frame. If the connection ends before, the buffers that the peer uses are
// abandoned: they are not filled again, other peers may use them to the end, and their memory stays until the lost peer
// unmaps it. Then the generation of the slot changes, so that a late release has no effect.
#include "base/fd.hpp"
#include "base/fork.hpp"
#include "context/context.hpp"
#include "message/wire.hpp"

#include <array>
#include <atomic>
#include <mutex>

namespace muster {

// In shared memory.
struct LoanDirectory {
    static constexpr size_t slots = 64, sheets = 64, acknowledgements = 256;
    struct Slot {
        std::atomic<uint32_t> generation; // release by the sender, acquire by a receiver that has mapped the buffer
        std::atomic<int32_t> descriptor;  // relaxed, these two: written before a message refers to the slot
        std::atomic<uint64_t> bytes;
    };
    // Of each slot: generation (upper half) and uses. acq_rel: a release of the receiver's is seen with its last read
    // of the buffer by the sender, which then writes it again.
    struct alignas(64) Sheet {
        std::atomic<uint64_t> uses[slots];
    };
    std::array<unsigned char, 16> token;
    std::atomic<uint64_t> acknowledged[acknowledgements]; // relaxed: incarnations of peers that have mapped this
    Slot slot[slots];
    Sheet sheet[sheets];
};

// Where the directory is; part of a hello. A value.
struct LoanOrigin {
    uint32_t process = 0; // 0: there is none
    int32_t descriptor = -1;
    std::array<unsigned char, 16> token{};
};

class LoanPool;

// A buffer that is filled here. It belongs to one frame at a time, and to the copies of its message.
class LoanBuffer final : public FrameMemory {
  public:
    LoanBuffer(Fd memory, unsigned char *data, size_t bytes) noexcept
        : memory_(std::move(memory)), data_(data), bytes_(bytes) {}
    unsigned char *data() const noexcept { return data_; }
    size_t bytes() const noexcept { return bytes_; }
    int descriptor() const noexcept { return memory_.get(); }
    // By frames of this process. release where they end, acquire where it is filled again: their reads come before.
    std::atomic<bool> is_taken{false};

  private:
    ~LoanBuffer() override;
    const Fd memory_;
    unsigned char *const data_;
    const size_t bytes_;
};

// Any thread.
class LoanPool final : public Object {
  public:
    static Result<Ref<LoanPool>> make(uint64_t max_bytes);
    const LoanOrigin &origin() const noexcept { return origin_; }
    uint64_t max_bytes() const noexcept { return max_bytes_; }

    // Memory for a frame. Empty with MUSTER_AGAIN: all is in use.
    Status acquire(size_t bytes, Ref<FrameMemory> &out, unsigned char *&out_data);
    // Has a peer of this incarnation mapped the directory?
    bool is_mapped_by(uint64_t incarnation) const noexcept {
        return directory_->acknowledged[incarnation % LoanDirectory::acknowledgements].load(
                   std::memory_order_relaxed) == incarnation;
    }
    // A sheet for a peer. Empty: all are in use, and the peer gets copies.
    std::optional<uint16_t> take_sheet() noexcept;
    void give_sheet_back(uint16_t sheet) noexcept; // the connection to the peer has ended
    // A reference to a frame of this pool, counted as a use. False: it is none, or its buffer is abandoned.
    bool refer(const Frame &frame, uint16_t sheet, LoanReference &out) noexcept;
    bool is_used() noexcept; // by a peer

  private:
    struct Use final : FrameMemory { // the local use of a buffer by frames
        Use(LoanPool &of, uint32_t in, uint32_t its_generation, Ref<LoanBuffer> its_buffer) noexcept
            : pool(&of), slot(in), generation(its_generation), buffer(std::move(its_buffer)) {}
        ~Use() override { buffer->is_taken.store(false, std::memory_order_release); }
        const void *loaned_by() const noexcept override { return pool.get(); }
        const Ref<LoanPool> pool;
        const uint32_t slot, generation;
        const Ref<LoanBuffer> buffer;
    };
    struct Slot {
        Ref<LoanBuffer> buffer; // or none
        uint32_t generation = 0;
        bool is_abandoned = false;
    };
    LoanPool(Fd memory, LoanDirectory *directory, LoanOrigin origin, uint64_t max_bytes) noexcept
        : memory_(std::move(memory)), directory_(directory), origin_(origin), max_bytes_(max_bytes) {}
    ~LoanPool() override;
    bool has_uses(uint32_t slot) const noexcept;
    bool is_free(uint32_t slot) const noexcept;
    void drop(uint32_t slot) noexcept;
    void fill(uint32_t slot, size_t bytes);

    const Fd memory_;
    LoanDirectory *const directory_;
    const LoanOrigin origin_;
    const uint64_t max_bytes_;
    std::mutex lock_; // guards the rest
    Slot slots_[LoanDirectory::slots];
    uint64_t bytes_ = 0;       // of all buffers
    uint64_t sheets_ = 0;      // those that peers have, a bit each
    uint32_t sheet_count_ = 0; // those that peers have had are the first ones
    static_assert(LoanDirectory::sheets <= 64);
};

// The pool of a socket that has ended, until its peers have released all frames, or the context ends. Loop thread.
class LingeringLoans final : public Object {
  public:
    LingeringLoans(Context &context, Ref<LoanPool> pool) noexcept : context_(&context), pool_(std::move(pool)) {}
    static void begin(Context &context, Ref<LoanPool> pool);

  private:
    void look() noexcept;
    void end() noexcept;
    const Ref<Context> context_;
    Ref<LoanPool> pool_;
    Timer<LingeringLoans, &LingeringLoans::look> timer_{*this};
    Closing<LingeringLoans, &LingeringLoans::end> closing_{*this};
};

// The buffers of a peer, as this process has mapped them. resolve(): one thread at a time.
class LoanView final : public Object, public LoanSource {
  public:
    // Empty: the peer does not loan, or its memory cannot be had. `incarnation`: of the socket here.
    static Ref<LoanView> open(const LoanOrigin &origin, uint64_t incarnation);
    Status resolve(const LoanReference &reference, size_t bytes, Ref<FrameMemory> &out,
                   const unsigned char *&data) override;

  private:
    struct Mapping final : Object {
        Mapping(const unsigned char *at, size_t size) noexcept : data(at), bytes(size) {}
        ~Mapping() override;
        const unsigned char *const data;
        const size_t bytes;
    };
    struct Use final : FrameMemory {
        Use(LoanView &of, const LoanReference &its_reference, Ref<Mapping> its_mapping) noexcept
            : view(&of), reference(its_reference), mapping(std::move(its_mapping)) {}
        ~Use() override {
            if (!mark.forked()) view->release_use(reference);
        }
        const Ref<LoanView> view;
        const LoanReference reference;
        const Ref<Mapping> mapping;
        const ForkMark mark;
    };
    struct Slot {
        uint32_t generation = 0;
        Ref<Mapping> mapping;
    };
    LoanView(uint32_t process, LoanDirectory *directory) noexcept : process_(process), directory_(directory) {}
    ~LoanView() override;
    bool is_of(const LoanReference &reference) const noexcept; // the slot has that generation
    void release_use(const LoanReference &reference) noexcept;

    const uint32_t process_;
    LoanDirectory *const directory_;
    Slot slots_[LoanDirectory::slots];
};

} // namespace muster
