// SPDX-License-Identifier: MIT
// The pipe alone: its chain of buffers, buffers handed over and taken back, the window, and every mix of them against a
// plain string.
#include "stream_fixture.hpp"

#include <deque>
#include <map>
#include <set>

using namespace muster;
using namespace muster::test;

namespace {

// Memory that is lent; counts what has not come back.
class LentText final : public Object {
  public:
    LentText(std::string bytes, std::atomic<int> &out) : bytes(std::move(bytes)), out_(out) { out_++; }
    const std::string bytes;

  private:
    ~LentText() override {
        out_--;
        const_cast<std::string &>(bytes).assign(bytes.size(), '#'); // a later reader is detected
    }
    std::atomic<int> &out_;
};

struct Fixture {
    std::atomic<int> lent_out{0}; // longer than the pipe
    Ref<Context> context = make_context();
    Ref<Queue> queue = make_queue(*context, 4096);
    Pipe pipe;

    explicit Fixture(uint64_t window) { pipe.init_private(window); }
    size_t push(const void *data, size_t size) {
        size_t moved = 0;
        if (pipe.push(data, size, moved) != MUSTER_OK) ::abort();
        return moved;
    }
    Status own(const void *data, size_t size, uint64_t tag) {
        if (!queue->reserve()) ::abort();
        Owned owned{static_cast<const unsigned char *>(data), size, queue, tag};
        const Status status = pipe.push_owned(owned);
        if (status != MUSTER_OK) queue->unreserve();
        return status;
    }
    Status lend(const std::string &bytes) {
        const auto memory = make_ref<LentText>(bytes, lent_out);
        Lent lent{reinterpret_cast<const unsigned char *>(memory->bytes.data()), bytes.size(), Ref<Object>(memory)};
        return pipe.push_lent(lent);
    }
    std::string pull(size_t most) {
        std::string got(most, '\0');
        size_t moved = 0;
        if (pipe.pull(got.data(), most, moved) != MUSTER_OK) return "?";
        got.resize(moved);
        return got;
    }
    Taken back() { return take(*queue, 0); }
};

std::string text(size_t size, uint64_t from = 0) {
    std::string s(size, '\0');
    fill(reinterpret_cast<unsigned char *>(s.data()), size, from);
    return s;
}

void test_an_idle_pipe_has_no_buffer_and_grows_with_use(void **) {
    run([](Findings &f) {
        Fixture x(1 << 20);
        std::string all, got;
        // Each write finds the ring full, so the next one is larger; the old ones are read out first.
        for (size_t size = 1000; size < 400'000; size *= 2) {
            const std::string part = text(size, all.size());
            f.expect(x.push(part.data(), part.size()) == size, "accepted");
            all += part;
        }
        f.expect(x.pipe.readable() == all.size(), "readable");
        for (std::string part; !(part = x.pull(777)).empty();) got += part;
        f.expect(got == all, "in order through every ring of the chain");
        f.expect(x.pipe.drained(), "drained");
    });
}

void test_the_window_counts_what_was_copied(void **) {
    run([](Findings &f) {
        Fixture x(4096);
        const std::string big = text(10'000);
        f.expect(x.push(big.data(), big.size()) == 4096, "a window full");
        f.expect(x.push(big.data(), 1) == 0, "and no more");
        f.expect(x.own(big.data(), 5000, 1) == MUSTER_OK, "a buffer handed over needs no room");
        f.expect(x.push(big.data(), 1) == 0, "and gives none");
        f.expect(x.pull(1000).size() == 1000, "read a bit");
        x.pipe.publish_tail();
        f.expect(x.push(big.data(), 10'000) == 1000, "that much again");
        x.pull(3096 + 2500); // into the middle of the buffer handed over
        x.pipe.publish_tail();
        f.expect(x.push(big.data(), 10'000) == 3096, "the copied part only");
    });
}

void test_a_buffer_comes_back_once_when_it_is_read(void **) {
    run([](Findings &f) {
        Fixture x(65536);
        const std::string one = text(300'000), two = text(10, 7);
        x.own(one.data(), one.size(), 1);
        x.own(two.data(), two.size(), 2);
        std::string got = x.pull(299'999);
        f.expect_status(x.back().status, MUSTER_AGAIN, "not before its last byte");
        got += x.pull(1);
        Taken t = x.back();
        f.expect(t.status == MUSTER_OK && t.completion.tag == 1 && t.completion.bytes == one.size() &&
                     t.completion.status == MUSTER_OK,
                 "then at once, whole");
        f.expect(got == one, "its bytes");
        f.expect(x.pull(100) == two, "the next one");
        t = x.back();
        f.expect(t.status == MUSTER_OK && t.completion.tag == 2, "is back, too");
        f.expect_status(x.back().status, MUSTER_AGAIN, "once");
    });
}

void test_sixty_four_buffers_may_wait(void **) {
    run([](Findings &f) {
        Fixture x(65536);
        for (uint64_t i = 0; i < 64; i++) f.expect(x.own("a", 1, i) == MUSTER_OK, "taken");
        f.expect(x.own("a", 1, 64) == MUSTER_AGAIN, "the next one is not");
        x.pull(1);
        f.expect(x.own("a", 1, 64) == MUSTER_OK, "until one is through");
    });
}

void test_buffers_taken_back_in_every_state(void **) {
    run([](Findings &f) {
        const std::string data = text(1000);
        { // not begun: as if it had never been there
            Fixture x(65536);
            x.push("before", 6);
            x.own(data.data(), 1000, 1);
            x.push("after", 5);
            f.expect(!x.pipe.take_back_owned(MUSTER_E_CANCELED).begun, "nobody had begun it");
            const Taken t = x.back();
            f.expect(t.completion.status == MUSTER_E_CANCELED && t.completion.bytes == 0, "back, nothing taken");
            f.expect(x.pull(100) == "beforeafter", "the rest joins");
            f.expect(x.pipe.drained(), "and nothing is left");
        }
        { // begun: the reader is notified, and the writer how much was consumed
            Fixture x(65536);
            x.own(data.data(), 1000, 1);
            x.pull(300);
            f.expect(x.pipe.take_back_owned(MUSTER_E_CANCELED).begun, "begun");
            const Taken t = x.back();
            f.expect(t.completion.status == MUSTER_E_CANCELED && t.completion.bytes == 300, "back, with the count");
            char c;
            size_t moved;
            f.expect_status(x.pipe.pull(&c, 1, moved), MUSTER_E_ABORTED, "the reader");
            f.expect_status(x.pipe.pull(&c, 1, moved), MUSTER_E_ABORTED, "again");
        }
        { // wholly taken: nothing to take back
            Fixture x(65536);
            x.own(data.data(), 1000, 1);
            x.pull(1000);
            f.expect(!x.pipe.take_back_owned(MUSTER_E_CANCELED).begun, "none");
            f.expect(x.back().completion.status == MUSTER_OK, "it was back before");
            f.expect_status(x.back().status, MUSTER_AGAIN, "once");
        }
        { // shown by peek: the reader may have looked at it
            Fixture x(65536);
            x.own(data.data(), 1000, 1);
            const unsigned char *shown;
            size_t size;
            f.expect_status(x.pipe.peek(10, shown, size), MUSTER_OK, "peek");
            f.expect(x.pipe.take_back_owned(MUSTER_E_CANCELED).begun, "counts as begun");
        }
        { // the second of two, and then one after it
            Fixture x(65536);
            auto other = make_queue(*x.context);
            x.own(data.data(), 100, 1);
            other->reserve();
            Owned owned{reinterpret_cast<const unsigned char *>(data.data()) + 100, 100, other, 2};
            x.pipe.push_owned(owned);
            x.own(data.data() + 200, 100, 3);
            f.expect(!x.pipe.take_back_owned(MUSTER_E_CANCELED, other.get()).begun, "one queue's buffers only");
            f.expect(take(*other, 0).completion.tag == 2, "it is back");
            f.expect_status(x.back().status, MUSTER_AGAIN, "the others are not");
            x.own(data.data() + 300, 100, 4);
            f.expect(x.pull(1000) == data.substr(0, 100) + data.substr(200, 200), "they arrive in order");
            for (uint64_t tag : {1, 3, 4}) f.expect(x.back().completion.tag == tag, "and come back in order");
        }
        { // the pipe goes with buffers inside
            auto context = make_context();
            auto queue = make_queue(*context);
            {
                Pipe pipe;
                pipe.init_private(4096);
                queue->reserve();
                Owned owned{reinterpret_cast<const unsigned char *>(data.data()), 10, queue, 5};
                pipe.push_owned(owned);
            }
            f.expect(take(*queue, 0).completion.status == MUSTER_E_CLOSED, "back with the pipe's end");
        }
        { // the reader leaves before, and while, a buffer is handed over
            Fixture x(65536);
            x.own(data.data(), 10, 1);
            x.pipe.drop_reader();
            f.expect(x.back().completion.status == MUSTER_E_PEER, "back");
            x.own(data.data(), 10, 2);
            f.expect(x.back().completion.status == MUSTER_E_PEER, "back at once");
        }
    });
}

void test_peek_shows_across_every_edge(void **) {
    run([](Findings &f) {
        Fixture x(8192);
        std::string all;
        const auto add = [&](size_t size) {
            const std::string part = text(size, all.size());
            f.expect(x.push(part.data(), size) == size, "accepted");
            all += part;
        };
        const auto peeked = [&](size_t min) -> std::string {
            const unsigned char *data;
            size_t size;
            const Status status = x.pipe.peek(min, data, size);
            if (status != MUSTER_OK) {
                f.note("peek(%zu): status %d", min, status);
                return {};
            }
            return std::string(reinterpret_cast<const char *>(data), size);
        };
        add(4000); // the first ring is 4 KiB
        x.pull(3000);
        x.pipe.publish_tail();
        add(2000); // grows, or wraps
        std::string shown = peeked(2048);
        f.expect(shown.size() >= 2048 && all.compare(3000, shown.size(), shown) == 0, "over the edge of two rings");
        x.pipe.consume(1500);
        const std::string owned = text(500, all.size());
        x.own(owned.data(), owned.size(), 1);
        all += owned;
        add(700);
        shown = peeked(2000);
        f.expect(all.compare(4500, shown.size(), shown) == 0, "through a buffer handed over");
        x.pipe.consume(shown.size());
        f.expect(x.back().completion.bytes == 500, "which comes back once it is consumed");
        const unsigned char *data;
        size_t size;
        x.push("abc", 3);
        const size_t left = x.pipe.readable();
        f.expect_status(x.pipe.peek(left + 1, data, size), MUSTER_AGAIN, "more than there is");
        f.expect(size == left, "it says what there is");
    });
}

void test_gather_as_a_carrier_does(void **) {
    run([](Findings &f) {
        Fixture x(65536);
        const std::string big = text(600'000, 10);
        x.push("head", 4);
        x.own(big.data(), big.size(), 1);
        x.push("tail", 4);
        std::string got;
        for (int n = 0; n < 1000; n++) {
            iovec spans[8];
            int count;
            f.expect_status(x.pipe.gather(spans, 8, 100'000, count), MUSTER_OK, "gather");
            if (count == 0) break;
            f.expect(count > 0 && x.pipe.shows_owned() == (got.size() + 100'000 > 4 && got.size() < 600'004),
                     "shows it");
            size_t sent = 0;
            for (int i = 0; i < count; i++) {
                const size_t take_some = n % 3 == 0 ? spans[i].iov_len / 2 : spans[i].iov_len; // a short write
                got.append(static_cast<char *>(spans[i].iov_base), take_some);
                sent += take_some;
                if (take_some != spans[i].iov_len) break;
            }
            x.pipe.consume(sent);
        }
        f.expect(got == "head" + big + "tail", "all, in order");
        f.expect(x.back().completion.bytes == big.size(), "the buffer is back");
    });
}

// ---- every mix against a string ------------------------------------------------------------------------------------

// What the pipe holds, piece by piece.
struct Piece {
    std::string data;
    uint64_t tag; // of a buffer handed over; 0: copied
};

void differ(Findings &f, uint64_t seed, int steps) {
    Random random(seed);
    const uint64_t window = uint64_t{4096} << random.below(6);
    Fixture x(window);
    std::deque<Piece> model;
    std::map<uint64_t, std::pair<std::string, size_t>> out; // tag: its memory, and what was taken of it
    uint64_t next_tag = 1, written = 0;
    std::set<uint64_t> shown, perhaps_shown; // by peek(); the latter by one that then said AGAIN
    bool broken = false;
    const auto copied = [&] {
        uint64_t n = 0;
        for (const Piece &p : model)
            if (p.tag == 0) n += p.data.size();
        return n;
    };
    const auto flat = [&] {
        std::string s;
        for (const Piece &p : model) s += p.data;
        return s;
    };
    const auto took = [&](size_t n) {
        while (n != 0) {
            Piece &p = model.front();
            const size_t k = std::min(n, p.data.size());
            if (p.tag != 0) out[p.tag].second += k;
            p.data.erase(0, k);
            n -= k;
            if (p.data.empty()) model.pop_front();
        }
    };
    const auto mark = [&](std::set<uint64_t> &tags, size_t bytes) {
        for (size_t i = 0; bytes != 0 && i < model.size(); i++) {
            if (model[i].tag != 0) tags.insert(model[i].tag);
            bytes -= std::min(bytes, model[i].data.size());
        }
    };
    const auto expect_back = [&](uint64_t tag, Status status) {
        const Taken t = x.back();
        const auto &it = out.find(tag);
        f.expect(t.status == MUSTER_OK && t.completion.tag == tag && t.completion.status == status && it != out.end() &&
                     t.completion.bytes == it->second.second,
                 "a buffer comes back as the model says");
        out.erase(tag);
    };
    const auto expect_whole_ones_back = [&] {
        while (!out.empty() && out.begin()->second.second == out.begin()->second.first.size())
            expect_back(out.begin()->first, MUSTER_OK);
        f.expect(x.back().status == MUSTER_AGAIN, "no other one comes back");
    };
    for (int step = 0; step < steps && !f.failed() && !broken; step++) {
        const size_t size = random.of_any_size(2 * window);
        switch (random.below(12)) {
        case 0:
        case 1: { // push
            const std::string data = text(size, written);
            size_t moved = 0;
            f.expect_status(x.pipe.push(data.data(), size, moved), MUSTER_OK, "push");
            f.expect(moved <= size && copied() + moved <= window, "never more than the window");
            if (moved < size && x.pipe.drained()) f.note("an empty pipe takes a window");
            if (moved != 0) model.push_back({data.substr(0, moved), 0});
            written += moved;
            break;
        }
        case 2:
        case 3: // small and quick
            for (int n = 0; n < 20; n++) {
                const size_t little = 1 + random.below(100);
                const std::string data = text(little, written);
                if (!x.pipe.push_quickly(data.data(), little)) break;
                model.push_back({data, 0});
                written += little;
            }
            f.expect(copied() <= window, "never more than the window");
            break;
        case 4: { // hand over
            const uint64_t tag = next_tag++;
            auto &slot = out[tag];
            slot = {text(size, written), 0};
            if (x.own(slot.first.data(), size, tag) == MUSTER_OK) {
                model.push_back({slot.first, tag});
                written += size;
            } else {
                f.expect(out.size() == 65, "64 may wait");
                out.erase(tag);
            }
            break;
        }
        case 5: { // reserve, commit
            unsigned char *room;
            size_t there;
            const size_t min = 1 + random.below(window / 4);
            const Status status = x.pipe.reserve(min, room, there);
            x.pipe.publish_tail();
            if (status == MUSTER_AGAIN) break;
            f.expect_status(status, MUSTER_OK, "reserve");
            f.expect(copied() + there <= window, "within the window");
            const size_t used = random.below(there + 1);
            const std::string data = text(used, written);
            memcpy(room, data.data(), used);
            x.pipe.commit(used);
            if (used != 0) model.push_back({data, 0});
            written += used;
            break;
        }
        case 6: { // pull
            std::string got(size, '\0');
            size_t moved = 0;
            f.expect_status(x.pipe.pull(got.data(), size, moved), MUSTER_OK, "pull");
            got.resize(moved);
            const std::string all = flat();
            f.expect(moved != 0 || all.empty(), "what is there is shown");
            f.expect(all.compare(0, moved, got) == 0, "pulled bytes");
            took(moved);
            expect_whole_ones_back();
            break;
        }
        case 7: // small and quick
            for (int n = 0; n < 20; n++) {
                char some[100];
                const size_t min = 1 + random.below(100), got = x.pipe.pull_quickly(some, min, sizeof some);
                if (got == 0) break;
                f.expect(got >= min && flat().compare(0, got, some, got) == 0, "bytes pulled quickly");
                took(got);
            }
            expect_whole_ones_back();
            break;
        case 8:
        case 9: { // peek, consume
            const unsigned char *bytes;
            size_t there;
            const size_t min = 1 + random.below(window / 4);
            const Status status = x.pipe.peek(min, bytes, there);
            const std::string all = flat();
            if (status == MUSTER_AGAIN) {
                f.expect(all.size() < min && there >= all.size(), "fewer are there");
                mark(perhaps_shown, all.size());
                break;
            }
            f.expect_status(status, MUSTER_OK, "peek");
            f.expect(there >= min && all.compare(0, there, reinterpret_cast<const char *>(bytes), there) == 0, "shown");
            const size_t used = random.below(there + 1);
            x.pipe.consume(used);
            took(used);
            mark(shown, there - used);
            expect_whole_ones_back();
            break;
        }
        case 10: { // gather, consume
            iovec spans[5];
            int count;
            f.expect_status(x.pipe.gather(spans, 1 + static_cast<int>(random.below(5)), size, count), MUSTER_OK,
                            "gather");
            const std::string all = flat();
            f.expect(count != 0 || all.empty(), "what is there is shown");
            size_t at = 0;
            for (int i = 0; i < count; i++) {
                f.expect(all.compare(at, spans[i].iov_len, static_cast<char *>(spans[i].iov_base), spans[i].iov_len) ==
                             0,
                         "gathered bytes");
                at += spans[i].iov_len;
            }
            f.expect(at <= size, "within the limit");
            const size_t used = random.below(at + 1);
            if (count != 0) x.pipe.consume(used);
            took(used);
            expect_whole_ones_back();
            break;
        }
        default: // take back
            if (random.below(20) != 0) break;
            bool expected = false, perhaps = false;
            for (const auto &[tag, slot] : out) {
                expected |= slot.second != 0 || shown.count(tag) != 0;
                perhaps |= perhaps_shown.count(tag) != 0;
            }
            const bool begun = x.pipe.take_back_owned(MUSTER_E_CANCELED).begun;
            f.expect(begun == expected || perhaps, "whether one was begun");
            while (!out.empty()) expect_back(out.begin()->first, MUSTER_E_CANCELED);
            if (begun) {
                broken = true; // the reader is notified when it gets there
                break;
            }
            std::erase_if(model, [](const Piece &p) { return p.tag != 0; });
        }
        const size_t there = flat().size();
        f.expect(x.pipe.readable() >= there, "readable is never too small");
        if (there == 0 && x.pull(1).empty()) x.pipe.publish_tail(), f.expect(x.pipe.drained(), "drained when empty");
    }
    if (f.failed()) fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
}

void test_lent_pieces_are_let_go_of_one_by_one(void **) {
    run([](Findings &f) {
        Fixture x(8192);
        const std::string all = text(8192);
        f.expect(x.push(all.data(), 1000) == 1000, "copied");
        f.expect(x.lend(all.substr(1000, 3000)) == MUSTER_OK && x.lend(all.substr(4000, 3000)) == MUSTER_OK,
                 "two lent");
        f.expect(x.push(all.data() + 7000, 192) == 192, "copied behind them");
        f.expect(x.lend(text(1001)) == MUSTER_AGAIN && x.lent_out == 2, "the window counts them");
        f.expect(x.lend(all.substr(7192, 1000)) == MUSTER_OK && x.lent_out == 3, "to the last byte");
        f.expect(x.push(all.data(), 1) == 0, "full");
        f.expect(x.pull(1500) == all.substr(0, 1500), "into the first one");
        const unsigned char *shown = nullptr;
        size_t size = 0;
        f.expect(x.pipe.peek(100, shown, size) == MUSTER_OK && size == 2500, "all of it is shown");
        f.expect(memcmp(shown, all.data() + 1500, size) == 0, "where it lies");
        x.pipe.consume(2499);
        f.expect(x.lent_out == 3, "a byte of it is left");
        x.pipe.consume(1);
        f.expect(x.lent_out == 2, "back with its last byte");
        f.expect(x.pull(2000) == all.substr(4000, 2000), "the second one");
        iovec spans[4];
        int count = 0;
        f.expect(x.pipe.gather(spans, 4, 10'000, count) == MUSTER_OK && count == 3, "gathered");
        f.expect(!x.pipe.shows_owned() && spans[0].iov_len == 1000 && spans[2].iov_len == 1000, "without a lock");
        x.pipe.consume(1192);
        f.expect(x.lent_out == 1, "the second is back");
        f.expect(x.pull(5000) == all.substr(7192), "the last one");
        f.expect(x.lent_out == 0 && x.pipe.drained(), "nothing is out");
    });
}

void test_lent_pieces_nobody_reads_come_back_with_the_pipe(void **) {
    run([](Findings &f) {
        std::atomic<int> out{0};
        {
            Pipe pipe;
            pipe.init_private(1 << 16);
            for (int i = 0; i < 3; i++) {
                const auto memory = make_ref<LentText>(text(5000), out);
                Lent lent{reinterpret_cast<const unsigned char *>(memory->bytes.data()), 5000, Ref<Object>(memory)};
                f.expect(pipe.push_lent(lent) == MUSTER_OK, "lent");
            }
            unsigned char some[6000];
            size_t moved = 0;
            f.expect(pipe.pull(some, sizeof some, moved) == MUSTER_OK && out == 2, "one was read, and one begun");
            f.expect(!pipe.take_back_owned(MUSTER_E_ABORTED).begun, "lent is not handed over");
            f.expect(pipe.pull(some, 100, moved) == MUSTER_OK && moved == 100, "what has come can be read");
            pipe.drop_reader();
        }
        f.expect(out == 0, "all are back");
    });
}

void test_every_mix_against_a_string(void **) {
    for (uint64_t seed = 1; seed <= 400; seed++) run([&](Findings &f) { differ(f, seed, 300); });
}

// The same between two threads: positions are checked by the pattern, parks by arriving at all.
void test_two_threads_and_every_way_in_and_out(void **) {
    for (uint64_t seed = 1; seed <= 12; seed++)
        run([&](Findings &f) {
            const uint64_t window = uint64_t{4096} << (seed % 4), total = 3'000'000;
            Fixture x(window);
            std::deque<std::string> handed_over;
            std::thread producer([&] {
                Random random(seed);
                uint64_t at = 0;
                while (at < total && !f.failed()) {
                    const size_t size = std::min<uint64_t>(random.of_any_size(2 * window), total - at);
                    size_t moved = 0;
                    if (random.one_in(4)) {
                        handed_over.push_back(text(size, at));
                        if (x.own(handed_over.back().data(), size, 0) == MUSTER_OK)
                            moved = size;
                        else
                            handed_over.pop_back();
                    } else if (random.one_in(4)) {
                        if (x.lend(text(size, at)) == MUSTER_OK) moved = size;
                    } else {
                        const std::string data = text(size, at);
                        if (random.one_in(2) && x.pipe.push_quickly(data.data(), size))
                            moved = size;
                        else
                            x.pipe.push(data.data(), size, moved);
                    }
                    at += moved;
                    if (moved == 0) {
                        Park &park = x.pipe.control().writer;
                        Deadline deadline(10 * second);
                        if (x.pipe.park_writer(Park::FUTEX, 1 + random.below(window / 4)))
                            if (futex_wait(park.state, Park::FUTEX, deadline, false) == ETIMEDOUT)
                                f.note("seed %d: the producer was not woken", static_cast<int>(seed));
                        park.state.store(Park::AWAKE);
                    }
                }
                x.pipe.finish();
            });
            Random random(seed + 100);
            std::string data(2 * window, '\0');
            uint64_t at = 0;
            while (!f.failed()) {
                const bool finished = x.pipe.finished();
                size_t moved = 0;
                const size_t size = random.of_any_size(2 * window);
                if (random.one_in(3)) {
                    const unsigned char *shown;
                    if (x.pipe.peek(1 + random.below(window / 4), shown, moved) == MUSTER_OK) {
                        f.expect(matches(shown, moved, at), "shown");
                        x.pipe.consume(moved);
                    } else
                        moved = 0;
                }
                if (moved == 0)
                    x.pipe.pull(data.data(), size, moved),
                        f.expect(matches(reinterpret_cast<unsigned char *>(data.data()), moved, at), "pulled");
                at += moved;
                if (moved != 0) continue;
                if (finished) break;
                Park &park = x.pipe.control().reader;
                Deadline deadline(10 * second);
                if (x.pipe.park_reader(Park::FUTEX, 1 + random.below(window / 8)))
                    if (futex_wait(park.state, Park::FUTEX, deadline, false) == ETIMEDOUT)
                        f.note("seed %d: the consumer was not woken", static_cast<int>(seed));
                park.state.store(Park::AWAKE);
            }
            producer.join();
            f.expect(at == total && x.lent_out == 0, "all of it, and nothing is out");
        });
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_an_idle_pipe_has_no_buffer_and_grows_with_use),
        cmocka_unit_test(test_the_window_counts_what_was_copied),
        cmocka_unit_test(test_a_buffer_comes_back_once_when_it_is_read),
        cmocka_unit_test(test_sixty_four_buffers_may_wait),
        cmocka_unit_test(test_buffers_taken_back_in_every_state),
        cmocka_unit_test(test_peek_shows_across_every_edge),
        cmocka_unit_test(test_gather_as_a_carrier_does),
        cmocka_unit_test(test_lent_pieces_are_let_go_of_one_by_one),
        cmocka_unit_test(test_lent_pieces_nobody_reads_come_back_with_the_pipe),
        cmocka_unit_test(test_every_mix_against_a_string),
        cmocka_unit_test(test_two_threads_and_every_way_in_and_out),
    };
    return cmocka_run_group_tests_name("pipe", tests, nullptr, nullptr);
}
