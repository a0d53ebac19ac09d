// SPDX-License-Identifier: MIT
// A peer that sends requests without end, and no reply: a thread that waits for one executes some of the requests, and
// its deadline ends the wait all the same. Without a limit it would execute them for ever, since it never sleeps.
// ctest: quick timeout=60
#include "am/active_messages.hpp"
#include "stream_fixture.hpp"

using namespace muster;
using namespace muster::test;

namespace {

constexpr uint32_t internal_handler = am_first_internal_handler + 40;

std::atomic<uint64_t> by_waiting_thread, by_loop;
std::thread::id waiting_thread;

muster_status count(void *, uint32_t, const void *, size_t, void *, size_t, size_t *out_bytes) {
    (std::this_thread::get_id() == waiting_thread ? by_waiting_thread : by_loop)++;
    *out_bytes = 0;
    return MUSTER_OK;
}
size_t no_bytes(const unsigned char *, size_t) {
    return 0;
}

void a_flood_of_requests(void **) {
    run([](Findings &f) {
        const Ref<Context> context = make_context();
        Ref<Stream> near, far;
        Stream::pair(*context, 1 << 20, "pair", near, far);
        ActiveMessages::Settings settings;
        settings.limits = {4096, 65536};
        auto am = ActiveMessages::make(*context, std::move(settings));
        if (!am) return f.note("make: %s", am.error().message);
        ActiveMessages::Handler handler;
        handler.function = count;
        handler.reply_bytes = no_bytes;
        f.expect_status((*am)->set_handler(internal_handler, std::move(handler)), MUSTER_OK, "handler");
        auto peer = (*am)->add_peer(*near);
        if (!peer) return f.note("peer: %s", peer.error().message);
        (void)near.detach(); // the endpoint has it

        waiting_thread = std::this_thread::get_id(); // before handlers are executed

        // The peer: a hello, then the same request again and again; it reads what it gets, so that there is room.
        std::atomic<bool> over{false};
        std::thread flood([&] {
            std::vector<char> bytes(AmHead::bytes + AmHello::bytes + 100 * AmHead::bytes);
            AmHead head;
            head.payload = AmHello::bytes;
            head.put(bytes.data());
            AmHello{4096, 65536, 1}.put(bytes.data() + AmHead::bytes);
            head = {};
            head.kind = AmKind::request;
            head.handler = internal_handler;
            for (size_t i = 0; i < 100; i++)
                head.put(bytes.data() + AmHead::bytes + AmHello::bytes + i * AmHead::bytes);
            size_t from = 0;
            while (!over && put(*far, bytes.data() + from, bytes.size() - from, second) == MUSTER_OK)
                from = AmHead::bytes + AmHello::bytes; // the requests alone
        });
        std::thread drain([&] {
            char bytes[65536];
            while (get(*far, bytes, 1, sizeof bytes, second) == MUSTER_OK) {
            }
        });
        while (by_loop == 0) std::this_thread::yield(); // the flood has come
        for (int round = 0; round < 3; round++) {
            const uint64_t before = by_waiting_thread;
            const int64_t from = now_ns();
            Deadline deadline(200 * ms);
            const auto outcome = (*am)->call({*peer, internal_handler, nullptr, 0, nullptr, 0}, deadline);
            f.expect_status(outcome.why.status, MUSTER_TIMEOUT, "a call");
            if (now_ns() - from > 20 * second) f.note("the call has ended late");
            if (by_waiting_thread - before > 20'000) f.note("it has executed too many");
        }
        over = true;
        (*am)->close(); // the stream ends
        flood.join();
        drain.join();
        far.detach()->host_release();
        am->detach()->host_release();
        Deadline deadline(10 * second);
        f.expect_status(context->close(deadline), MUSTER_OK, "close");
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(a_flood_of_requests)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
