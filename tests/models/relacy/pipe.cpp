// SPDX-License-Identifier: MIT
// The pipe's own sources (copies made by adapt.py) under every kind of company they keep: a producer and a consumer
// that push, pull and sleep as a stream does, a thread that cancels, a host that takes its buffers back, a carrier.
// Each scenario is run in many orders; no run may lose or mix up a byte, use one from two threads at once, give a
// buffer back twice, or end with a thread asleep that has something to do.
#include "world.hpp"

#include "adapted.hpp" // made by adapt.py

using namespace muster;

namespace {

constexpr uint64_t window = 4;

unsigned char byte_at(uint64_t position) {
    return static_cast<unsigned char>(position * 7 + 1);
}

// The two sides of a pipe: of one process, or each with its own Pipe on what they share.
struct Ends {
    std::unique_ptr<Pipe> own, other;
    std::unique_ptr<PipeControl> control;
    unsigned char *ring = nullptr;

    explicit Ends(bool shared) : own(std::make_unique<Pipe>()) {
        if (!shared) {
            own->init_private(window);
            return;
        }
        control = std::make_unique<PipeControl>();
        ring = model::make_bytes(window);
        other = std::make_unique<Pipe>();
        for (Pipe *pipe : {own.get(), other.get()}) {
            pipe->init_shared(control.get(), ring, window);
            pipe->set_fds(0, 1);
        }
    }
    ~Ends() {
        own.reset();
        other.reset();
        model::end_bytes(ring);
    }
    Pipe &producer() { return *own; }
    Pipe &consumer() { return other ? *other : *own; }
};

// Sleeps as Stream::sleep() does.
template <class ParkAs, class Stop>
void sleep(Park &park, ParkAs &&park_as, Stop &&stop) {
    park.sleep(Park::FUTEX, park_as, stop, [&]() -> Status {
        park.state.wait(Park::FUTEX);
        return MUSTER_OK;
    });
}
constexpr auto never = [] { return false; };

struct Scenario {
    model::World world;
};

// What a producer does: bytes from `first` on, in pieces of any size. False: its reader is gone.
template <class Stop>
bool push_all(Pipe &pipe, uint64_t first, uint64_t count, Stop &&stop) {
    for (uint64_t done = 0; done < count;) {
        unsigned char bytes[8];
        const uint64_t piece = std::min<uint64_t>(count - done, 1 + rl::rand(4));
        for (uint64_t i = 0; i < piece; i++) bytes[i] = byte_at(first + done + i);
        if (pipe.reader_gone() || stop()) return false;
        size_t moved = 0;
        if (pipe.push_quickly(bytes, piece))
            moved = piece;
        else
            RL_ASSERT(pipe.push(bytes, piece, moved) == MUSTER_OK);
        done += moved;
        if (moved == piece) continue;
        const size_t need = std::min<uint64_t>(count - done, 1 + rl::rand(2));
        if (!pipe.has_room(need))
            sleep(
                pipe.control().writer, [&](uint32_t how) { return pipe.park_writer(how, need); }, stop);
    }
    return true;
}

// What a consumer does: all bytes up to `count` or the end. Returns how many came.
template <class Stop>
uint64_t pull_all(Pipe &pipe, uint64_t count, Stop &&stop) {
    uint64_t done = 0;
    while (done < count && !stop()) {
        unsigned char bytes[8];
        const size_t most = std::min<uint64_t>(count - done, 1 + rl::rand(4));
        const bool finished = pipe.finished();
        size_t moved = pipe.pull_quickly(bytes, 1, most);
        if (moved == 0) RL_ASSERT(pipe.pull(bytes, most, moved) == MUSTER_OK);
        for (size_t i = 0; i < moved; i++) RL_ASSERT(bytes[i] == byte_at(done + i));
        done += moved;
        if (moved != 0) continue;
        if (finished) break;
        const size_t need = std::min<uint64_t>(count - done, 1 + rl::rand(2));
        sleep(
            pipe.control().reader, [&](uint32_t how) { return pipe.park_reader(how, need); }, stop);
    }
    return done;
}

// ---- bytes, and their end
// -----------------------------------------------------------------------------------------------

template <bool shared>
struct Bytes : rl::test_suite<Bytes<shared>, 2>, Scenario {
    static constexpr uint64_t count = 7;
    Ends ends{shared};
    void thread(unsigned index) {
        if (index == 0) {
            RL_ASSERT(push_all(ends.producer(), 0, count, never));
            ends.producer().finish();
        } else {
            RL_ASSERT(pull_all(ends.consumer(), UINT64_MAX, never) == count);
            RL_ASSERT(ends.consumer().drained());
        }
    }
};

// The writer has no more to say, for now, and does not wait either: the reader must not miss it.
template <bool shared>
struct Message : rl::test_suite<Message<shared>, 2>, Scenario {
    Ends ends{shared};
    uint64_t count = 0;
    void before() { count = 1 + rl::rand(window); }
    void thread(unsigned index) {
        if (index == 0)
            push_all(ends.producer(), 0, count, never);
        else
            pull_all(ends.consumer(), count, never);
    }
};

// The reader makes room, just enough, and does not wait: a writer that needs it must not miss it.
template <bool shared>
struct Room : rl::test_suite<Room<shared>, 2>, Scenario {
    Ends ends{shared};
    uint64_t wanted = 0;
    void before() {
        wanted = 1 + rl::rand(3);
        push_all(ends.producer(), 0, window, never);
    }
    void thread(unsigned index) {
        if (index == 0)
            push_all(ends.producer(), window, wanted, never);
        else
            pull_all(ends.consumer(), wanted, never);
    }
};

// The reader leaves: a writer that waits for room learns it.
template <bool shared>
struct ReaderLeaves : rl::test_suite<ReaderLeaves<shared>, 2>, Scenario {
    Ends ends{shared};
    void thread(unsigned index) {
        if (index == 0) {
            push_all(ends.producer(), 0, 12, never);
        } else {
            pull_all(ends.consumer(), rl::rand(6), never);
            ends.consumer().drop_reader();
        }
    }
};

// A third thread of the reader's (or the writer's) process ends its wait, for which the other side gives no reason.
template <bool shared>
struct Cancel : rl::test_suite<Cancel<shared>, 3>, Scenario {
    Ends ends{shared};
    model::atomic<uint32_t> cancels{0};
    void thread(unsigned index) {
        const auto cancelled = [&] { return cancels.load(rl::mo_seq_cst) != 0; };
        if (index == 0) {
            push_all(ends.producer(), 0, 9, cancelled);
        } else if (index == 1) {
            pull_all(ends.consumer(), 5, cancelled);
        } else {
            cancels.fetch_add(1, rl::mo_seq_cst);
            ends.producer().unpark_writer();
            ends.consumer().unpark_reader();
        }
    }
};

// The writer waits until everything was taken, as in close().
template <bool shared>
struct Flush : rl::test_suite<Flush<shared>, 2>, Scenario {
    Ends ends{shared};
    void thread(unsigned index) {
        constexpr uint64_t count = 3;
        Pipe &out = ends.producer(), &in = ends.consumer();
        if (index == 0) {
            push_all(out, 0, count, never);
            while (!out.drained() && !out.reader_gone())
                sleep(
                    out.control().writer,
                    [&](uint32_t how) {
                        out.park_flusher(how);
                        return !(out.drained() || out.reader_gone());
                    },
                    never);
        } else {
            // Takes all, or leaves before.
            if (pull_all(in, rl::rand(2) ? count : 1, never) != count) in.drop_reader();
        }
    }
};

// A carrier drains the pipe, then its socket, and says so: the writer's flush waits for both.
struct SentAll : rl::test_suite<SentAll, 2>, Scenario {
    Ends ends{false};
    model::atomic<uint32_t> on_its_way{1};
    void thread(unsigned index) {
        Pipe &pipe = ends.producer();
        if (index == 0) {
            push_all(pipe, 0, 2, never);
            const auto sent = [&] { return pipe.drained() && on_its_way.load(rl::mo_seq_cst) == 0; };
            while (!sent())
                sleep(
                    pipe.control().writer, [&](uint32_t how) { return pipe.park_flusher(how), !sent(); }, never);
        } else {
            pull_all(pipe, 2, never);
            on_its_way.store(0, rl::mo_seq_cst);
            pipe.sent_all();
        }
    }
};

// ---- a host's own loop
// --------------------------------------------------------------------------------------------------

struct Loop : Waker {
    model::Event event;
    model::var<uint32_t> alive{1};
    void told() noexcept {
        RL_ASSERT(alive == 1);
        event.signal();
    }
    void wake_reader() noexcept override { told(); }
    void wake_writer() noexcept override { told(); }
    ~Loop() { alive = 0; }
};

// The reader is a loop: parks as FD, and waits for its waker (or its eventfd). It ends while the writer goes on.
template <bool shared>
struct HostLoop : rl::test_suite<HostLoop<shared>, 2>, Scenario {
    Ends ends{shared};
    void thread(unsigned index) {
        if (index == 0) {
            push_all(ends.producer(), 0, 6, never);
            ends.producer().finish();
            return;
        }
        Pipe &pipe = ends.consumer();
        const auto loop = std::make_unique<Loop>();
        if (!shared) pipe.set_reader_waker(loop.get());
        const uint64_t wanted = rl::rand(2) ? 3 : 7;
        uint64_t done = 0;
        for (bool finished = false; !finished && done < wanted;) {
            finished = pipe.finished();
            unsigned char bytes[8];
            size_t moved = 0;
            RL_ASSERT(pipe.pull(bytes, 8, moved) == MUSTER_OK);
            for (size_t i = 0; i < moved; i++) RL_ASSERT(bytes[i] == byte_at(done + i));
            done += moved;
            if (moved != 0) finished = false;
            if (moved != 0 || finished || !pipe.park_reader(Park::FD, 1)) continue;
            shared ? world.events[0].wait() : loop->event.wait();
        }
        if (!shared) pipe.set_reader_waker(nullptr);
        if (done < 6) pipe.drop_reader();
    }
};

// ---- memory that is lent
// -------------------------------------------------------------------------------------------------

// Pieces among copied bytes: each is back when its last byte was read, and not before.
struct LentPieces : rl::test_suite<LentPieces, 2>, Scenario {
    static constexpr uint64_t pieces = 3, size = 2, copied = 1, count = pieces * (size + copied);
    Ends ends{false};
    Object memory[pieces];
    void write() {
        Pipe &pipe = ends.producer();
        for (uint64_t n = 0; n < pieces; n++) {
            const uint64_t first = n * (size + copied);
            memory[n].bytes = model::make_bytes(size);
            for (size_t i = 0; i < size; i++) *model::World::now->bytes.at(memory[n].bytes + i) = byte_at(first + i);
            Lent lent{memory[n].bytes, size, Ref<Object>(&memory[n])};
            for (;;) {
                const Status status = pipe.push_lent(lent);
                RL_ASSERT(status == MUSTER_OK || status == MUSTER_AGAIN);
                if (status == MUSTER_OK) break;
                sleep(
                    pipe.control().writer, [&](uint32_t how) { return pipe.park_writer(how, size); }, never);
            }
            RL_ASSERT(push_all(pipe, first + size, copied, never));
        }
        pipe.finish();
    }
    void thread(unsigned index) {
        if (index == 0) return write();
        RL_ASSERT(pull_all(ends.consumer(), UINT64_MAX, never) == count);
        for (const Object &one : memory) RL_ASSERT(one.back);
    }
};

// ---- buffers handed over
// -----------------------------------------------------------------------------------------------

struct Handed {
    static constexpr uint64_t most = 2;
    unsigned char *data[most] = {};
    int32_t status[most] = {1, 1};
    uint64_t bytes[most] = {};
    Queue queue;

    // The host's part: what comes back is its own again, and is written to.
    void take(size_t size) {
        for (muster_completion c; queue.take(c);) {
            RL_ASSERT(c.kind == MUSTER_DONE_RELEASED && status[c.tag] == 1); // once
            status[c.tag] = c.status;
            bytes[c.tag] = c.bytes;
            for (size_t i = 0; i < size; i++) *model::World::now->bytes.at(data[c.tag] + i) = 0;
        }
    }
};

// Two buffers among copied bytes; the reader takes all and may leave before the end, another thread takes buffers back.
template <bool take_back, bool leave>
struct Buffers : rl::test_suite<Buffers<take_back, leave>, take_back ? 3 : 2>, Scenario {
    static constexpr size_t size = 3;
    Ends ends{false};
    Handed handed;
    uint64_t pushed = 0;

    // Bytes show their origin: copied ones are odd, those of buffer n are 2 + 16 n and on.
    void write() {
        Pipe &pipe = ends.producer();
        for (uint64_t n = 0; n < Handed::most; n++) {
            copied(pipe, 1);
            handed.data[n] = model::make_bytes(size);
            for (size_t i = 0; i < size; i++)
                *model::World::now->bytes.at(handed.data[n] + i) = static_cast<unsigned char>(2 + 16 * n + 2 * i);
            Owned owned{handed.data[n], size, Ref<Queue>(&handed.queue), n};
            RL_ASSERT(pipe.push_owned(owned) == MUSTER_OK);
            handed.take(size);
        }
        copied(pipe, 5);
        pipe.finish();
        handed.take(size);
    }
    void copied(Pipe &pipe, size_t count) {
        for (size_t i = 0; i < count && !pipe.reader_gone();) {
            const unsigned char byte = 1;
            size_t moved = 0;
            RL_ASSERT(pipe.push(&byte, 1, moved) == MUSTER_OK);
            i += moved;
            if (moved == 0)
                sleep(
                    pipe.control().writer, [&](uint32_t how) { return pipe.park_writer(how, 1); }, never);
        }
    }
    void read() {
        Pipe &pipe = ends.consumer();
        unsigned char next[Handed::most] = {0, 0};
        uint64_t left = leave ? rl::rand(9) : UINT64_MAX;
        while (left != 0) {
            unsigned char bytes[4];
            const bool finished = pipe.finished();
            size_t moved = 0;
            const Status status = take(pipe, bytes, std::min<uint64_t>(left, 1 + rl::rand(4)), moved);
            for (size_t i = 0; i < moved; i++) {
                if (bytes[i] == 1) continue;
                const unsigned n = bytes[i] >= 16;
                RL_ASSERT(bytes[i] == 2 + 16 * n + 2 * next[n]++);
            }
            left -= moved;
            if (status == MUSTER_E_ABORTED) break; // in the middle of one that was taken back
            RL_ASSERT(status == MUSTER_OK);
            if (moved != 0) continue;
            if (finished) return;
            sleep(
                pipe.control().reader, [&](uint32_t how) { return pipe.park_reader(how, 1); }, never);
        }
        pipe.drop_reader();
    }
    // Each way to take bytes out.
    Status take(Pipe &pipe, unsigned char *bytes, size_t most, size_t &moved) {
        const unsigned way = rl::rand(3);
        if (way == 0) return pipe.pull(bytes, most, moved);
        if (way == 1) {
            iovec spans[2];
            int count = 0;
            const Status status = pipe.gather(spans, 2, most, count);
            for (int i = 0; i < count; i++) {
                model::copy(bytes + moved, spans[i].iov_base, spans[i].iov_len);
                moved += spans[i].iov_len;
            }
            if (count != 0) pipe.consume(moved);
            pipe.publish_tail();
            return status;
        }
        const unsigned char *shown = nullptr;
        const Status status = pipe.peek(1, shown, moved);
        if (status == MUSTER_AGAIN) { // what was taken back is passed over by a pull
            moved = 0;
            return pipe.hidden() != 0 ? pipe.pull(bytes, most, moved) : MUSTER_OK;
        }
        if (status != MUSTER_OK) return moved = 0, status;
        moved = std::min(moved, most);
        model::copy(bytes, shown, moved);
        pipe.consume(moved);
        pipe.publish_tail();
        return MUSTER_OK;
    }
    void thread(unsigned index) {
        if (index == 0)
            write();
        else if (index == 1)
            read();
        else
            ends.producer().take_back_owned(MUSTER_E_CANCELED);
    }
    void after() {
        if (leave || take_back) ends.producer().take_back_owned(MUSTER_E_CLOSED);
        handed.take(size);
        for (uint64_t n = 0; n < Handed::most; n++) {
            RL_ASSERT(handed.status[n] <= 0); // every one came back
            RL_ASSERT(leave || take_back || (handed.status[n] == MUSTER_OK && handed.bytes[n] == size));
            model::end_bytes(handed.data[n]);
        }
    }
};

// Room made before and inside a buffer handed over.
struct RoomByBuffer : rl::test_suite<RoomByBuffer, 2>, Scenario {
    Ends ends{false};
    Handed handed;
    uint64_t wanted = 0;
    void before() {
        wanted = 1 + rl::rand(3);
        unsigned char bytes[4] = {1, 1, 1, 1};
        size_t moved = 0;
        ends.producer().push(bytes, rl::rand(2) ? 4 : 2, moved);
        handed.data[0] = model::make_bytes(2);
        Owned owned{handed.data[0], 2, Ref<Queue>(&handed.queue), 0};
        RL_ASSERT(ends.producer().push_owned(owned) == MUSTER_OK);
        ends.producer().push(bytes, 4 - moved, moved);
    }
    void thread(unsigned index) {
        if (index == 0) {
            push_all(ends.producer(), 0, wanted, never);
            return;
        }
        unsigned char bytes[8];
        for (uint64_t left = wanted + 2; left != 0;) { // what lies in the buffer makes no room
            size_t moved = 0;
            RL_ASSERT(ends.consumer().pull(bytes, left, moved) == MUSTER_OK && moved != 0);
            left -= moved;
        }
    }
    void after() {
        ends.producer().take_back_owned(MUSTER_E_CLOSED);
        handed.take(2);
        RL_ASSERT(handed.status[0] <= 0);
        model::end_bytes(handed.data[0]);
    }
};

// The reader leaves while a buffer is being handed over: it must come back.
struct LeavesAsHanded : rl::test_suite<LeavesAsHanded, 2>, Scenario {
    Ends ends{false};
    Handed handed;
    void thread(unsigned index) {
        if (index == 0) {
            handed.data[0] = model::make_bytes(1);
            Owned owned{handed.data[0], 1, Ref<Queue>(&handed.queue), 0};
            RL_ASSERT(ends.producer().push_owned(owned) == MUSTER_OK);
        } else {
            ends.consumer().drop_reader();
        }
    }
    void after() {
        handed.take(1);
        RL_ASSERT(handed.status[0] == MUSTER_E_PEER);
        model::end_bytes(handed.data[0]);
    }
};

// ---- running
bool all_hold(uint64_t runs) {
#define HOLDS(name, ...) (model::holds<__VA_ARGS__>(name, runs) || model::mutant.order == 0)
    return HOLDS("bytes", Bytes<false>) && HOLDS("bytes in shared memory", Bytes<true>) &&
           HOLDS("a message", Message<false>) && HOLDS("a message in shared memory", Message<true>) &&
           HOLDS("room", Room<false>) && HOLDS("room in shared memory", Room<true>) &&
           HOLDS("room by a buffer", RoomByBuffer) && HOLDS("the reader leaves", ReaderLeaves<false>) &&
           HOLDS("the reader leaves shared memory", ReaderLeaves<true>) && HOLDS("cancel", Cancel<false>) &&
           HOLDS("cancel in shared memory", Cancel<true>) && HOLDS("flush", Flush<false>) &&
           HOLDS("flush in shared memory", Flush<true>) && HOLDS("sent all", SentAll) &&
           HOLDS("host's loop", HostLoop<false>) && HOLDS("host's loop in shared memory", HostLoop<true>) &&
           HOLDS("lent pieces", LentPieces) && HOLDS("buffers", Buffers<false, false>) &&
           HOLDS("buffers, the reader leaves", Buffers<false, true>) &&
           HOLDS("buffers taken back", Buffers<true, false>) &&
           HOLDS("buffers taken back, the reader leaves", Buffers<true, true>) &&
           HOLDS("handed over as the reader leaves", LeavesAsHanded);
}

} // namespace

int main(int count, char **arguments) {
    return model::run_all(count, arguments, all_hold);
}
