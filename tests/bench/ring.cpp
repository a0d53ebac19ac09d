// SPDX-License-Identifier: MIT
// The bare ring, 1 MiB per direction as a stream's:  --over threads|processes --mode spin|park|hybrid
#include "ring.hpp"

struct channel {
    Ring *ring;
};
static inline void channel_write(channel *c, const void *data, size_t size) {
    c->ring->write(data, size);
}
static inline size_t channel_read_some(channel *c, void *data, size_t most) {
    return c->ring->read_some(data, most);
}
static inline void channel_read(channel *c, void *data, size_t size) {
    for (auto *to = static_cast<unsigned char *>(data); size != 0;) {
        const size_t k = c->ring->read_some(to, size);
        to += k, size -= k;
    }
}

#include "patterns.h"

namespace {

struct Ends {
    options o;
    channel forth, back;
};

void second(void *argument) {
    auto *ends = static_cast<Ends *>(argument);
    take_core(ends->o.cores, 1);
    second_end(&ends->o, &ends->back, &ends->forth);
}

Ring *make_ring(const options &o, bool shared) {
    constexpr uint64_t capacity = 1 << 20;
    void *memory =
        mmap(nullptr, Ring::bytes(capacity), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die_errno("mmap");
    const char mode = o.mode[0];
    auto *ring = static_cast<Ring *>(memory);
    ring->init(capacity, mode == 's' ? Waiting::SPIN : mode == 'h' ? Waiting::HYBRID : Waiting::PARK, shared);
    return ring;
}

} // namespace

int main(int argc, char **argv) {
    Ends ends{read_options(argc, argv), {}, {}};
    const bool shared = !strcmp(ends.o.over, "processes");
    ends.forth.ring = make_ring(ends.o, shared);
    ends.back.ring = make_ring(ends.o, shared);
    if (shared) {
        const pid_t child = start_process(second, &ends);
        take_core(ends.o.cores, 0);
        first_end(&ends.o, &ends.forth, &ends.back);
        join_process(child);
        return 0;
    }
    pthread_t thread;
    const auto run = [](void *argument) -> void * {
        second(argument);
        return nullptr;
    };
    if (pthread_create(&thread, nullptr, run, &ends) != 0) die("pthread_create", "failed");
    take_core(ends.o.cores, 0);
    first_end(&ends.o, &ends.forth, &ends.back);
    pthread_join(thread, nullptr);
    return 0;
}
