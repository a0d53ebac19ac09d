// SPDX-License-Identifier: MIT
// SpareMemory (a copy made by adapt.py) with threads that take, write, and give back. The thread that has a
// piece writes a variable in it. Relacy reports a race if two threads have a piece at once, or if a write is not
// ordered after that of the thread that had the piece before.
#include "world.hpp"

#include <memory>

namespace model {

template <class Piece>
struct Memory {
    Piece piece; // first: the address of both is the same
    var<uint64_t> user;
};
template <class Piece>
Piece *begin_piece(void *memory) noexcept {
    return static_cast<Piece *>(memory);
}
template <class Piece>
void *make_piece() {
    return new Memory<Piece>;
}
template <class Piece>
void end_piece(void *memory) noexcept {
    delete static_cast<Memory<Piece> *>(memory);
}
template <class T, class Place>
T replace(Place &place, T value) noexcept {
    const T before = place;
    place = value;
    return before;
}

} // namespace model

#define private public // Piece
#include "adapted.hpp"
#undef private

using muster::SpareMemory;

namespace {

struct Pieces {
    SpareMemory spare{0};
    void *take(uint64_t user) {
        void *const memory = spare.take();
        static_cast<model::Memory<SpareMemory::Piece> *>(memory)->user = user;
        return memory;
    }
};

// Two threads take and give back, a third gives back what it took before: lists are taken as a whole while others grow.
struct TakeAndGive : rl::test_suite<TakeAndGive, 3> {
    std::unique_ptr<Pieces> s;
    void *taken[2];
    void before() {
        s = std::make_unique<Pieces>();
        for (void *&memory : taken) memory = s->take(3);
    }
    void thread(unsigned index) {
        if (index == 2) {
            for (void *const memory : taken) s->spare.give(memory);
            return;
        }
        for (int k = 0; k < 3; k++) {
            void *const memory = s->take(index);
            RL_ASSERT(static_cast<model::Memory<SpareMemory::Piece> *>(memory)->user == index);
            s->spare.give(memory);
        }
    }
    void after() { s.reset(); }
};

bool all_hold(uint64_t runs) {
    return model::holds<TakeAndGive>("take and give", runs);
}

} // namespace

int main(int count, char **arguments) {
    return model::run_all(count, arguments, all_hold);
}
