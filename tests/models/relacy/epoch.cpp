// SPDX-License-Identifier: MIT
// The functions of epochs (copies made by adapt.py) with threads that read, replace, defer and free objects, in the
// form whose pins have a fence. An object is a variable that its free writes: a reader that is not ordered before the
// free is a race, which relacy finds. The form with membarrier(2), and processes that die, are in epoch.pml.
#include "world.hpp"

#include <muster/epoch.h>

#include <string_view>

namespace muster {

class Epoch;

struct ModelToken {
    model::atomic<uint64_t> epoch;
    int64_t to_global = 1; // with a fence
    uint64_t depth = 0;
    model::atomic<uint64_t> state;
    uint32_t index = 0;
};
inline const model::atomic<uint64_t> *model_global; // what to_global leads to

} // namespace muster
using muster::model_global;
using muster::ModelToken;

namespace muster {
enum class Fence { per_pin };
inline void full_fence() noexcept {
    rl::atomic_thread_fence(rl::mo_seq_cst, model::place());
}
inline void heavy_fence(Fence) noexcept {
    full_fence();
}
inline uint64_t thread_start_time(int, int) noexcept {
    return 1;
}

struct Limit { // register_token() can fail
    const char *text;
};
struct Error {
    static Limit make(int, const char *text, unsigned) noexcept { return {text}; }
};
template <class T>
struct Result {
    T value{};
    Result(T made) noexcept : value(made) {}
    Result(Limit) noexcept {}
};
struct Poll {
    uint32_t max_objects = 0;
    uint64_t *objects = nullptr;
    uint32_t capacity = 0, count = 0, freed = 0;
    bool has_room() const noexcept { return freed < max_objects; }
};
struct EpochHeader;
struct EpochSlot;
struct DeferredObject;
} // namespace muster

#include "adapted_layout.hpp" // made by adapt.py

namespace muster {

inline std::ostream &operator<<(std::ostream &out, const DeferredObject &object) {
    return out << object.object;
}

constexpr uint64_t capacity = 8, tokens = 4;

struct EpochLeader {
    void advance_soon() noexcept {}
};

// As in epoch.hpp, with the memory of a scenario.
class Epoch {
  public:
    EpochHeader header;
    EpochSlot all[tokens];
    uint32_t numbers[tokens * (2 * capacity / bag_objects + capacity / bag_objects + 1)] = {};
    model::var<DeferredObject> objects[tokens * (capacity / bag_objects + 1) * bag_objects];

    Epoch() {
        header.epoch.store(1, rl::mo_relaxed);
        model_global = &header.epoch;
    }
    Result<EpochSlot *> register_token();
    Status unregister_token(EpochSlot &slot) noexcept;
    uint64_t now() const noexcept { return header.epoch.load(rl::mo_acquire); }
    Status advance(muster_epoch_attempt &out) noexcept;
    bool scan(uint64_t epoch, muster_epoch_attempt &out) noexcept;
    void protect(EpochSlot &slot, uint32_t hazard, uint64_t object) noexcept;
    Status defer(EpochSlot &slot, const DeferredObject &what) noexcept;
    void seal(EpochSlot &slot) noexcept;
    Status poll(EpochSlot &slot, Poll &poll) noexcept;

  private:
    EpochSlot &slot(uint64_t index) noexcept { return slots_[index]; }
    uint32_t index_of(const EpochSlot &slot) const noexcept { return static_cast<uint32_t>(&slot - slots_); }
    uint32_t used_tokens() const noexcept { return header.used_tokens.load(rl::mo_acquire); }
    uint32_t *bag_table(const EpochSlot &slot) noexcept {
        return numbers_ + index_of(slot) * (table_entries_ + epoch_bags(capacity_));
    }
    uint32_t &bag_of(const EpochSlot &slot, uint64_t position) noexcept {
        return bag_table(slot)[position / bag_objects & (table_entries_ - 1)];
    }
    model::var<DeferredObject> &entry(const EpochSlot &slot, uint64_t position) noexcept {
        const uint64_t bag = index_of(slot) * epoch_bags(capacity_) + bag_of(slot, position);
        return objects_[bag * bag_objects + position % bag_objects];
    }
    uint64_t stamp_now() noexcept;
    void take_bag(EpochSlot &slot, uint64_t tail) noexcept;
    DeferredObject pop(EpochSlot &slot) noexcept;
    bool claim(EpochSlot &slot, uint64_t seen) noexcept;
    void become(EpochSlot &slot, uint32_t state) noexcept;
    void abandon(EpochSlot &slot) noexcept;
    bool push(EpochSlot &slot, const DeferredObject &what) noexcept;
    void refresh_ripe(EpochSlot &slot) noexcept;
    bool is_protected(uint64_t object) noexcept;
    bool free_first(EpochSlot &slot, Poll &poll) noexcept;
    bool free_ripe(EpochSlot &slot, Poll &poll) noexcept;
    bool free_orphans(Poll &poll) noexcept;

    // distributed_epoch.pml has managers that are led.
    bool is_led() const noexcept { return false; }
    // No thread dies here, and references are not counted.
    bool can_die() const noexcept { return false; }
    bool take_from_dead(EpochSlot &) noexcept { return false; }
    void look_for_dead() noexcept {}
    void find_blocking(EpochSlot &, uint64_t, muster_epoch_attempt &out) noexcept { out.outcome = MUSTER_EPOCH_HELD; }
    void retain() noexcept {}
    void release() noexcept {}

    Queue *const queue_ = nullptr;
    model::atomic<EpochLeader *> leader_{nullptr};
    const int32_t process_ = 1;
    const uint64_t process_start_ = 1;
    const void *const home_ = nullptr;
    const Fence fence_ = Fence::per_pin;
    const uint64_t capacity_ = capacity, max_tokens_ = tokens, table_entries_ = 2 * capacity / bag_objects;
    EpochHeader *const header_ = &header;
    EpochSlot *const slots_ = all;
    uint32_t *const numbers_ = numbers;
    model::var<DeferredObject> *const objects_ = objects;
};

} // namespace muster

#include "adapted.hpp"

using namespace muster;

namespace {

enum { object_count = 4 };

// A cell that points to an object; threads replace the object and free the old one.
struct Structure {
    Epoch epoch;
    model::atomic<uint64_t> cell{1};
    model::var<uint64_t> values[object_count + 1]; // 1: in use, 2: freed
    unsigned frees[object_count + 1] = {};
    static inline Structure *now;

    Structure() {
        now = this;
        for (auto &value : values) value = 1;
    }
    static void free_object(void *, void *object) {
        const auto number = reinterpret_cast<uintptr_t>(object);
        now->values[number] = 2; // a race if a reader is not ordered before
        RL_ASSERT(++now->frees[number] == 1);
    }
    EpochSlot &register_one() {
        EpochSlot *const slot = epoch.register_token().value;
        RL_ASSERT(slot != nullptr);
        return *slot;
    }
    void read(EpochSlot &token) {
        muster_epoch_pin_inline(&token.token);
        RL_ASSERT(values[cell.load(rl::mo_acquire)] == 1);
        muster_epoch_unpin_inline(&token.token);
    }
    // The token need not be pinned: the old object is used by this thread no more.
    void replace(EpochSlot &token, uint64_t number) {
        const uint64_t old = cell.exchange(number, rl::mo_acq_rel);
        RL_ASSERT(epoch.defer(token, {free_object, nullptr, old}) == MUSTER_OK);
    }
    void poll(EpochSlot &token) {
        Poll poll;
        poll.max_objects = 8;
        RL_ASSERT(epoch.poll(token, poll) >= 0);
    }
};

// A reader, and a writer that replaces and polls.
struct ReadAndFree : rl::test_suite<ReadAndFree, 2> {
    std::unique_ptr<Structure> s;
    void before() { s = std::make_unique<Structure>(); }
    void thread(unsigned index) {
        EpochSlot &token = s->register_one();
        if (index == 0) {
            s->read(token);
            if (rl::rand(2) == 0) {
                s->read(token);
                return;
            }
            muster_epoch_pin_inline(&token.token); // and leaves while it is pinned
            RL_ASSERT(s->values[s->cell.load(rl::mo_acquire)] == 1);
            RL_ASSERT(s->epoch.unregister_token(token) == MUSTER_OK);
            return;
        }
        for (uint64_t i = 2; i <= 3; i++) {
            s->replace(token, i);
            for (int k = 0; k < 3; k++) s->poll(token);
        }
    }
    void after() { s.reset(); }
};

// A third thread advances the epoch, and frees what the writer leaves behind.
struct LeaveAndAdopt : rl::test_suite<LeaveAndAdopt, 3> {
    std::unique_ptr<Structure> s;
    void before() { s = std::make_unique<Structure>(); }
    void thread(unsigned index) {
        EpochSlot &token = s->register_one();
        if (index == 0) {
            s->read(token);
        } else if (index == 1) {
            s->replace(token, 2);
            RL_ASSERT(s->epoch.unregister_token(token) == MUSTER_OK);
            EpochSlot &again = s->register_one(); // perhaps with the objects that it left
            s->replace(again, 3);
            s->poll(again);
        } else {
            for (int k = 0; k < 4; k++) s->poll(token);
        }
    }
    void after() { s.reset(); }
};

// A reader protects an object, unpins, and goes on reading it.
struct Protect : rl::test_suite<Protect, 2> {
    std::unique_ptr<Structure> s;
    void before() { s = std::make_unique<Structure>(); }
    void thread(unsigned index) {
        EpochSlot &token = s->register_one();
        if (index == 0) {
            muster_epoch_pin_inline(&token.token);
            const uint64_t number = s->cell.load(rl::mo_acquire);
            s->epoch.protect(token, 1, number);
            muster_epoch_unpin_inline(&token.token);
            s->read(token);
            RL_ASSERT(s->values[number] == 1);
            if (rl::rand(2) == 0)
                s->epoch.protect(token, 1, 0);
            else
                RL_ASSERT(s->epoch.unregister_token(token) == MUSTER_OK);
            return;
        }
        s->replace(token, 2);
        for (int k = 0; k < 4; k++) s->poll(token);
    }
    void after() { s.reset(); }
};

// Two writers replace, defer and advance at once.
struct TwoWriters : rl::test_suite<TwoWriters, 3> {
    std::unique_ptr<Structure> s;
    void before() { s = std::make_unique<Structure>(); }
    void thread(unsigned index) {
        EpochSlot &token = s->register_one();
        if (index == 0) {
            s->read(token);
            return;
        }
        s->read(token);
        s->replace(token, index + 1);
        for (int k = 0; k < 4; k++) s->poll(token);
    }
    void after() { s.reset(); }
};

bool all_hold(uint64_t runs) {
    return model::holds<ReadAndFree>("read and free", runs) && model::holds<LeaveAndAdopt>("leave and adopt", runs) &&
           model::holds<Protect>("protect", runs) && model::holds<TwoWriters>("two writers", runs);
}

} // namespace

int main(int count, char **arguments) {
    return model::run_all(count, arguments, all_hold);
}
