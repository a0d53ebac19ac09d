// SPDX-License-Identifier: MIT
// A watched descriptor is reported as long as there is something to take: also when it has failed, and what arrived
// before the failure is taken piece by piece.
// ctest: quick timeout=60
#include "context/loop_watch.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "context_fixture.hpp"

using namespace muster;

namespace {

// A connection over TCP whose other end has sent some bytes, and then a reset.
int make_reset(const char *bytes, size_t size) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    auto *const address = reinterpret_cast<sockaddr *>(&at);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, address, &length), 0);
    const int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(own, address, length), 0);
    const int theirs = accept(listener, nullptr, nullptr);
    close(listener);
    assert_int_equal(send(theirs, bytes, size, MSG_NOSIGNAL), size);
    const linger at_once{1, 0};
    setsockopt(theirs, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(theirs);
    return own;
}

struct Reader {
    std::unique_ptr<LoopWatch> watch;
    int fd = -1, bytes = 0, calls = 0;
    std::atomic<bool> over{false};

    void ready() {
        calls++;
        char byte;
        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
            bytes++;
            return;
        }
        watch.reset();
        over = true;
    }
};

} // namespace

static void test_bytes_before_a_failure_are_reported_one_by_one(void **) {
    for (const uint32_t flags : {0u, uint32_t{MUSTER_CONTEXT_EXTERNAL}}) {
        Ref<Context> context = make_context(flags);
        Reader reader;
        reader.fd = make_reset("0123456789", 10);
        context->post([&] {
            auto made = LoopWatch::make(context->loop(), reader.fd, [&](uint32_t) { reader.ready(); });
            if (!made) fail_msg("%s", made.error().message);
            reader.watch = std::move(*made);
            reader.watch->set_events(EPOLLIN);
        });
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!reader.over) {
            if (std::chrono::steady_clock::now() > until)
                fail_msg("%d bytes of 10 were reported, and then no more", reader.bytes);
            Deadline soon(1'000'000);
            if (context->external())
                context->progress(soon);
            else
                std::this_thread::yield();
        }
        assert_int_equal(reader.bytes, 10);
        assert_int_equal(reader.calls, 11);
        close(reader.fd);
    }
}

// Paused inside the call: not reported again until events are set again.
static void test_a_watch_that_is_paused_at_a_failure_stays_so(void **) {
    Ref<Context> context = make_context(MUSTER_CONTEXT_EXTERNAL);
    int calls = 0;
    const int fd = make_reset("x", 1);
    std::unique_ptr<LoopWatch> watch;
    context->post([&] {
        auto made = LoopWatch::make(context->loop(), fd, [&](uint32_t) {
            calls++;
            watch->set_events(0);
        });
        watch = std::move(*made);
        watch->set_events(EPOLLIN);
    });
    for (int i = 0; i < 20; i++) {
        Deadline soon(1'000'000);
        context->progress(soon);
    }
    assert_int_equal(calls, 1);
    watch.reset();
    close(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bytes_before_a_failure_are_reported_one_by_one),
    cmocka_unit_test(test_a_watch_that_is_paused_at_a_failure_stays_so),
};

int main() {
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
