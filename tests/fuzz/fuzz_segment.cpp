// SPDX-License-Identifier: MIT
// Shared memory whose other side writes what it likes into the indices: no byte outside the ring is ever touched, and
// no call hangs.
#include "input.hpp"

#include "stream/pipe.hpp"

#include <memory>
#include <vector>

using namespace muster;

namespace {

constexpr uint64_t capacity = 4096;

uint64_t hostile(Input &in, uint64_t honest) {
    switch (in.byte() % 6) {
    case 0:
        return honest;
    case 1:
        return honest + in.byte();
    case 2:
        return honest - in.byte();
    case 3:
        return honest + capacity + in.byte();
    case 4:
        return in.number(8);
    default:
        return UINT64_MAX - in.byte();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in(data, size);
    // The ring is a block of its own: a sanitizer sees every byte beside it.
    auto control = std::make_unique<PipeControl>();
    auto ring = std::make_unique<unsigned char[]>(capacity);
    std::memset(ring.get(), 0, capacity);
    Pipe pipe; // this process is producer or consumer, never both, as in life
    pipe.init_shared(control.get(), ring.get(), capacity);
    const bool consumer = (in.byte() & 1) != 0;
    std::vector<unsigned char> buffer(2 * capacity, 0x5a);
    size_t moved = 0, shown = 0;
    while (in.left() != 0) {
        switch (in.byte() % 10) {
        case 0:
            if (consumer)
                pipe.pull(buffer.data(), in.number(2) % buffer.size(), moved);
            else
                pipe.push(buffer.data(), in.number(2) % buffer.size(), moved);
            FUZZ_CHECK(moved <= buffer.size());
            break;
        case 1:
            if (consumer) {
                const unsigned char *at = nullptr;
                const size_t min = 1 + in.number(2) % (capacity / 4);
                if (pipe.peek(min, at, shown) == MUSTER_OK) {
                    FUZZ_CHECK(shown >= min && shown <= capacity);
                    std::memcpy(buffer.data(), at, shown);
                    pipe.consume(in.number(2) % (shown + 1));
                }
            } else {
                unsigned char *at = nullptr;
                const size_t min = 1 + in.number(2) % (capacity / 4);
                if (pipe.reserve(min, at, shown) == MUSTER_OK) {
                    FUZZ_CHECK(shown <= capacity);
                    std::memset(at, 1, shown);
                    pipe.commit(in.number(2) % (shown + 1));
                }
            }
            break;
        case 2:
            if (consumer) {
                iovec spans[8];
                int count = 0;
                if (pipe.gather(spans, 8, in.number(2), count) == MUSTER_OK && count != 0) {
                    size_t all = 0;
                    for (int i = 0; i < count; i++) {
                        std::memcpy(buffer.data(), spans[i].iov_base, spans[i].iov_len);
                        all += spans[i].iov_len;
                    }
                    FUZZ_CHECK(all <= capacity);
                    pipe.consume(in.number(2) % (all + 1));
                }
            }
            break;
        case 3:
            if (consumer)
                pipe.park_reader(Park::FD, in.number(2));
            else
                pipe.park_writer(Park::FD, in.number(2));
            break;
        case 4:
            if (consumer)
                FUZZ_CHECK(pipe.readable() <= capacity);
            else
                pipe.drained();
            break;
        case 5:
            if (consumer)
                pipe.publish_tail();
            else
                pipe.finish();
            break;
        case 6:
            control->head.store(hostile(in, control->head.load()));
            break;
        case 7:
            control->tail.store(hostile(in, control->tail.load()));
            break;
        case 8:
            control->reader.state.store(static_cast<uint32_t>(in.number(4)));
            control->reader.need.store(static_cast<uint32_t>(in.number(4)));
            control->writer.state.store(static_cast<uint32_t>(in.number(4)));
            control->writer.need.store(static_cast<uint32_t>(in.number(4)));
            break;
        default:
            control->finished.store(in.byte());
            control->reader_gone.store(in.byte());
        }
    }
    return 0;
}
