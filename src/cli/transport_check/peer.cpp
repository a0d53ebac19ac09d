// SPDX-License-Identifier: MIT
// The other side: does with each stream what its hello asks for.
#include "transport_check/harness.hpp"

#include <chrono>
#include <condition_variable>
#include <set>
#include <sstream>
#include <sys/prctl.h>
#include <unistd.h>

namespace check {

namespace {

void echo(const Stream &stream) {
    std::vector<unsigned char> piece(256 * 1024);
    for (;;) {
        size_t size = 0;
        const muster_status status = muster_stream_read(stream.get(), piece.data(), piece.size(), -1, &size);
        if (status == MUSTER_E_END) break;
        if (status != MUSTER_OK) return;
        stream.write(piece.data(), size, -1);
    }
    stream.finish();
}

// Everything to its end; then how much it was and its checksum.
void sink(const Stream &stream) {
    std::vector<unsigned char> piece(256 * 1024);
    Checksum sum;
    uint64_t total = 0;
    for (;;) {
        size_t size = 0;
        const muster_status status = muster_stream_read(stream.get(), piece.data(), piece.size(), -1, &size);
        if (status == MUSTER_E_END) break;
        if (status != MUSTER_OK) return;
        if (total < 64 << 20) sum.add(piece.data(), size);
        total += size;
    }
    stream.write_number(total);
    stream.write_number(sum.value());
    stream.finish();
}

void verify(const Stream &stream, uint64_t size, uint64_t sequence) {
    stream.read_sequence(size, sequence);
    stream.expect_end();
    stream.write_number(size);
    stream.finish();
}

// Streams that wait for a message of another stream.
class Gates {
  public:
    void open(uint64_t gate) {
        const std::lock_guard hold(lock_);
        open_.insert(gate);
        opened_.notify_all();
    }
    void pass(uint64_t gate) {
        std::unique_lock hold(lock_);
        opened_.wait_for(hold, std::chrono::nanoseconds(time_limit), [&] { return open_.count(gate) != 0; });
    }

  private:
    std::mutex lock_;
    std::condition_variable opened_;
    std::set<uint64_t> open_;
} gates;

void handle(const Host &host, Stream stream) {
    std::istringstream words(stream.hello());
    std::string what;
    uint64_t a = 0, b = 0;
    words >> what >> a >> b;
    try {
        if (what == "echo") {
            echo(stream);
        } else if (what == "sink") {
            sink(stream);
        } else if (what == "verify") { // size, sequence
            verify(stream, a, b);
        } else if (what == "source") { // size, sequence
            stream.write_sequence(a, b);
            stream.finish();
        } else if (what == "after-end") { // answers only to a half-close
            stream.expect_end();
            stream.write_sequence(a, b);
            stream.finish();
        } else if (what == "gated") { // reads nothing until the gate is opened
            gates.pass(a);
            sink(stream);
        } else if (what == "open") { // the gate
            gates.open(a);
            stream.finish();
        } else if (what == "sleep") { // milliseconds, then all
            usleep(static_cast<useconds_t>(a * 1000));
            sink(stream);
        } else if (what == "abort") { // after one byte; the code
            char byte;
            stream.read(&byte, 1);
            muster_stream_abort(stream.get(), a, "as was asked", 12);
        } else if (what == "close") { // after one byte, without reading the rest
            char byte;
            stream.read(&byte, 1);
            muster_stream_close(stream.get(), 0);
        } else if (what == "hold") { // reads nothing until the other side is gone
            stream.write("!", 1);
            while (muster_stream_reason(stream.get(), nullptr, nullptr) == MUSTER_OK) usleep(20'000);
        } else if (what == "stats") {
            muster_context_stats stats;
            expect(muster_context_get_stats(host.context(), &stats), MUSTER_OK, "stats");
            stream.write_number(stats.handshakes_ok);
            stream.write_number(stats.handshakes_failed);
            stream.finish();
        } else {
            fail("no such behaviour: %s", what.c_str());
        }
    } catch (const Failed &failed) {
        muster_stream_abort(stream.get(), 999, failed.text.data(), std::min<size_t>(failed.text.size(), 200));
    }
    muster_stream_close(stream.get(), time_limit);
}

// The peer ends with its parent, whatever state either is in: stopped by a case, or with a thread of the library that
// hangs because of the checked defect. Therefore the kernel kills it. (The signal is sent at the end of the thread that
// spawned; that is the first thread of the parent, which lives as long as its process.)
void end_with(int parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); // it was over before that
}

} // namespace

void serve(const Host &host, const Listener &listener) {
    std::vector<std::thread> threads;
    for (;;) {
        muster_stream *stream = nullptr;
        const muster_status status = muster_listener_accept(listener.get(), -1, &stream, nullptr);
        if (status != MUSTER_OK) break;
        threads.emplace_back([&host, stream] { handle(host, Stream(stream)); });
    }
    for (std::thread &thread : threads) thread.join();
}

int peer_main(const Options &options, int secret_fd, int parent) {
    end_with(parent);
    try {
        std::string secret(1024, '\0');
        size_t size = 0;
        for (ssize_t got; (got = read(secret_fd, secret.data() + size, secret.size() - size)) > 0;)
            size += static_cast<size_t>(got);
        ::close(secret_fd);
        secret.resize(size);
        Host host(options, secret);
        const std::unique_ptr<Listener> listener = host.listen(options.address);
        printf("listening %s\n", listener->address().c_str());
        fflush(stdout);
        serve(host, *listener);
        return 0;
    } catch (const Failed &failed) {
        printf("failed %s\n", failed.text.c_str());
        return 1;
    }
}

} // namespace check
