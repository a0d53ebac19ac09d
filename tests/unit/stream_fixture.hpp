// SPDX-License-Identifier: MIT
#pragma once
// What the tests of streams share: contexts, pairs in one process, pairs over one memfd mapped twice, patterned bytes.
#include "context/context.hpp"
#include "queue/queue.hpp"
#include "stream/duplex.hpp"
#include "stream/stream.hpp"

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

namespace muster::test {

constexpr int64_t ms = 1'000'000;
constexpr int64_t second = 1'000'000'000;

// Tests compute in an inner scope and report what was wrong first; cmocka's longjmp would skip destructors.
class Findings {
  public:
    [[gnu::format(printf, 2, 3)]] void note(const char *format, ...) {
        if (failed_.exchange(true)) return;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text_, sizeof text_, format, arguments);
        va_end(arguments);
    }
    bool expect(bool holds, const char *what) {
        if (!holds) note("%s", what);
        return holds;
    }
    bool expect_status(Status got, Status wanted, const char *what) {
        if (got != wanted) note("%s: status %d, not %d", what, got, wanted);
        return got == wanted;
    }
    bool failed() const { return failed_.load(); }
    const char *text() const { return text_; }

  private:
    std::atomic<bool> failed_{false};
    char text_[512] = "";
};

// Runs a test body, then fails outside of it.
inline void run(const std::function<void(Findings &)> &body) {
    static char text[512];
    bool failed;
    {
        Findings findings;
        body(findings);
        failed = findings.failed();
        memcpy(text, findings.text(), sizeof text);
    }
    if (failed) fail_msg("%s", text);
}

inline Ref<Context> make_context(uint32_t flags = 0) {
    ContextSettings settings;
    settings.flags = flags;
    settings.secret.assign(32, 7);
    auto made = Context::create(settings);
    if (!made) abort();
    return std::move(*made);
}

inline Ref<Queue> make_queue(Context &context, uint32_t capacity = 1024) {
    auto made = Queue::create(context, capacity);
    if (!made) abort();
    return std::move(*made);
}

// The next completion within the timeout; status MUSTER_TIMEOUT or MUSTER_AGAIN if there was none.
struct Taken {
    Status status;
    muster_completion completion;
};
inline Taken take(Queue &queue, int64_t timeout_ns) {
    Deadline deadline(timeout_ns);
    Taken taken{};
    taken.status = queue.next(deadline, &taken.completion, nullptr);
    return taken;
}

inline unsigned char pattern(uint64_t position) {
    return static_cast<unsigned char>((position * 2654435761u) >> 13);
}
inline void fill(unsigned char *data, size_t size, uint64_t from) {
    for (size_t i = 0; i < size; i++) data[i] = pattern(from + i);
}
inline bool matches(const unsigned char *data, size_t size, uint64_t from) {
    for (size_t i = 0; i < size; i++)
        if (data[i] != pattern(from + i)) return false;
    return true;
}

// Small steps over the C++ inside, as a host would take them through the C functions.
inline Status put(Stream &stream, const void *data, size_t size, int64_t timeout_ns, size_t *moved = nullptr) {
    Deadline deadline(timeout_ns);
    size_t n = 0;
    const Status status = stream.write(data, size, deadline, n);
    if (moved != nullptr) *moved = n;
    return status;
}
inline Status get(Stream &stream, void *data, size_t min, size_t capacity, int64_t timeout_ns,
                  size_t *moved = nullptr) {
    Deadline deadline(timeout_ns);
    size_t n = 0;
    const Status status = stream.read(data, min, capacity, deadline, n);
    if (moved != nullptr) *moved = n;
    return status;
}

// Stands for the link between two processes: over it a shared-memory stream tells its peer of an abort.
class Teller final : public Carrier {
  public:
    explicit Teller(Ref<Duplex> other) : other_(std::move(other)) {}
    void abort(uint64_t reason, const char *text, size_t text_bytes) noexcept override {
        other_->end({Error::make(MUSTER_E_ABORTED, "%.*s", static_cast<int>(text_bytes), text), reason});
    }
    void closed() noexcept override { closed_count++; }
    std::atomic<int> closed_count{0};

  private:
    Ref<Duplex> other_;
};

// A seeded source of numbers; tests print the seed when they fail.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
    uint64_t next() {
        state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
        return state_ * 0x2545f4914f6cdd1d;
    }
    uint64_t below(uint64_t n) { return (next() >> 11) % n; }
    bool one_in(uint64_t n) { return below(n) == 0; }
    // Small numbers as often as large ones.
    uint64_t of_any_size(uint64_t most) { return 1 + below(uint64_t{1} << below(65 - __builtin_clzll(most))) % most; }

  private:
    uint64_t state_;
};

// Two ends of one memfd, as two processes would have them: each with its own mapping, context and descriptors.
struct SharedPair {
    Ref<Context> contexts[2];
    Ref<Queue> queues[2];
    Ref<Duplex> duplexes[2];
    Ref<Stream> streams[2];       // reset() releases as the host does
    unsigned char *spy = nullptr; // a third mapping, for what a hostile peer does
    std::vector<unsigned char *> guards;
    size_t bytes = 0;
    uint64_t window = 0;

    explicit SharedPair(uint64_t window_bytes, uint32_t flags_first = 0, uint32_t flags_second = 0)
        : window(window_bytes) {
        bytes = Duplex::shared_bytes(window);
        const int memory = memfd_create("muster-test", MFD_CLOEXEC);
        if (memory < 0 || ftruncate(memory, static_cast<off_t>(bytes)) != 0) ::abort();
        // Each mapping between two pages that may not be touched.
        const auto map = [&] {
            auto *around = static_cast<unsigned char *>(
                mmap(nullptr, bytes + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
            void *at = mmap(around + 4096, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
            if (around == MAP_FAILED || at == MAP_FAILED) ::abort();
            guards.push_back(around);
            guards.push_back(around + 4096 + bytes);
            return at;
        };
        const int events[2] = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        for (int i = 0; i < 2; i++) {
            contexts[i] = make_context(i == 0 ? flags_first : flags_second);
            queues[i] = make_queue(*contexts[i]);
            auto made = Duplex::make_shared(map(), window, i, dup(events[i]), dup(events[1 - i]), i == 0);
            if (!made) ::abort();
            duplexes[i] = std::move(*made);
        }
        for (int i = 0; i < 2; i++)
            streams[i] = Stream::make(*contexts[i], duplexes[i], i, make_ref<Teller>(duplexes[1 - i]), "peer", "");
        spy = static_cast<unsigned char *>(map());
        ::close(memory);
        ::close(events[0]);
        ::close(events[1]);
    }
    SharedPair(const SharedPair &) = delete;
    SharedPair &operator=(const SharedPair &) = delete;
    void drop(int i) {
        if (Stream *s = streams[i].detach()) s->host_release();
    }
    ~SharedPair() {
        drop(0), drop(1);
        for (int i = 0; i < 2; i++) {
            Deadline deadline(5 * second);
            contexts[i]->close(deadline);
        }
        munmap(spy, bytes);
        for (unsigned char *guard : guards) munmap(guard, 4096);
    }
    // The pipe that side `reader` reads from, as it lies in the mapping (see Duplex::make_shared()).
    PipeControl &control(int reader) {
        Pipe &pipe = duplexes[reader]->incoming(reader);
        const auto offset = reinterpret_cast<unsigned char *>(&pipe.control()) - base(reader);
        return *reinterpret_cast<PipeControl *>(spy + offset);
    }

  private:
    // Controls lie in the first page of a mapping.
    unsigned char *base(int side) {
        const auto at = reinterpret_cast<uintptr_t>(&duplexes[side]->incoming(side).control());
        return reinterpret_cast<unsigned char *>(at & ~uintptr_t{4095});
    }
};

// Two ends in one process.
struct LocalPair {
    Ref<Context> context;
    Ref<Queue> queue;
    Ref<Stream> streams[2];

    explicit LocalPair(uint64_t window, uint32_t flags = 0) : context(make_context(flags)) {
        queue = make_queue(*context);
        Stream::pair(*context, window, "pair", streams[0], streams[1]);
    }
    LocalPair(const LocalPair &) = delete;
    LocalPair &operator=(const LocalPair &) = delete;
    void drop(int i) {
        if (Stream *s = streams[i].detach()) s->host_release();
    }
    ~LocalPair() {
        drop(0), drop(1);
        Deadline deadline(5 * second);
        context->close(deadline);
    }
};

} // namespace muster::test
