// SPDX-License-Identifier: MIT
// A large reply to a request that was begun is read to the memory of the host. When the request ends in the middle of
// it, that memory is the host's again: the test takes it away, and the rest of the reply must go nowhere. What the peer
// sends after it is received as usual.
// ctest: quick timeout=60
#include "am/active_messages.hpp"
#include "stream_fixture.hpp"

#include <sys/mman.h>

using namespace muster;
using namespace muster::test;

namespace {

constexpr size_t reply_bytes = 1 << 20;
constexpr size_t parts[] = {direct_bytes / 2, direct_bytes + 1, reply_bytes / 2, reply_bytes - 1};

std::string head_of(AmKind kind, uint64_t id, size_t payload) {
    std::string bytes(AmHead::bytes, '\0');
    AmHead head;
    head.kind = kind;
    head.id = id;
    head.payload = static_cast<uint32_t>(payload);
    head.put(bytes.data());
    return bytes;
}

// Looks at memory that another thread fills: the test wants the middle of that.
__attribute__((no_sanitize("thread"))) bool is_filled(const volatile char *byte) {
    return *byte != 0;
}

// Until this side has received the bytes of the peer up to this one.
void await_received(Findings &f, const char *byte) {
    const int64_t until = now_ns() + 20 * second;
    while (!is_filled(byte) && now_ns() < until) std::this_thread::yield();
    if (!is_filled(byte)) f.note("the bytes are not read to their place");
}

enum class End { cancelled, queue_closed };

void cut(Findings &f, const Ref<Context> &context, size_t part, End end) {
    Ref<Stream> near, far;
    Stream::pair(*context, 2 << 20, "pair", near, far);
    ActiveMessages::Settings settings;
    settings.limits = {reply_bytes, 16};
    auto am = ActiveMessages::make(*context, std::move(settings));
    auto queue = Queue::create(*context, 16), other_queue = Queue::create(*context, 16);
    if (!am || !queue || !other_queue) return f.note("make");
    auto peer = (*am)->add_peer(*near);
    if (!peer) return f.note("peer: %s", peer.error().message);
    (void)near.detach(); // the endpoint has it
    std::string hello = head_of(AmKind::hello, 0, AmHello::bytes);
    hello.resize(AmHead::bytes + AmHello::bytes);
    AmHello{reply_bytes, 16, 1}.put(hello.data() + AmHead::bytes);
    f.expect_status(put(*far, hello.data(), hello.size(), second), MUSTER_OK, "the hello");

    void *const memory = mmap(nullptr, reply_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return f.note("mmap");
    char small[8] = {};
    ActiveMessages::Request large{*peer, 1, nullptr, 0, memory, reply_bytes};
    ActiveMessages::Request second_one{*peer, 1, nullptr, 0, small, sizeof small};
    if (auto begun = (*am)->begin(large, queue->get(), 1); !begun) f.note("begin: %s", begun.error().message);
    if (auto begun = (*am)->begin(second_one, other_queue->get(), 2); !begun)
        f.note("begin: %s", begun.error().message);

    // The peer learns the numbers of the requests.
    std::string sent(3 * AmHead::bytes + AmHello::bytes, '\0');
    f.expect_status(get(*far, sent.data(), sent.size(), sent.size(), second), MUSTER_OK, "the requests");
    AmHead first, next;
    const auto *const requests = reinterpret_cast<const unsigned char *>(sent.data()) + AmHead::bytes + AmHello::bytes;
    AmHead::get(requests, reply_bytes, first);
    AmHead::get(requests + AmHead::bytes, reply_bytes, next);

    const std::string reply = head_of(AmKind::reply, first.id, reply_bytes) + std::string(reply_bytes, 'r');
    f.expect_status(put(*far, reply.data(), AmHead::bytes + part, second), MUSTER_OK, "a part of the reply");
    if (part >= direct_bytes) await_received(f, static_cast<const char *>(memory) + part - 1);

    if (end == End::cancelled) {
        if (!(*queue)->cancel_operation(1)) f.note("there is nothing to cancel");
        muster_completion entry;
        Deadline soon(10 * second);
        f.expect_status((*queue)->next(soon, &entry, nullptr), MUSTER_OK, "the entry");
        f.expect_status(entry.status, MUSTER_E_CANCELED, "the request");
    } else {
        (*queue)->close();
    }
    if (munmap(memory, reply_bytes) != 0) f.note("munmap"); // from here on a byte that is written there ends the test

    const size_t done = AmHead::bytes + part;
    f.expect_status(put(*far, reply.data() + done, reply.size() - done, second), MUSTER_OK, "the rest of the reply");
    const std::string short_one = head_of(AmKind::reply, next.id, sizeof small) + "the next";
    f.expect_status(put(*far, short_one.data(), short_one.size(), second), MUSTER_OK, "the next reply");
    muster_completion entry;
    Deadline soon(10 * second);
    f.expect_status((*other_queue)->next(soon, &entry, nullptr), MUSTER_OK, "the next entry");
    f.expect_status(entry.status, MUSTER_OK, "the next request");
    if (memcmp(small, "the next", sizeof small) != 0) f.note("its bytes are others");

    (*am)->close();
    far.detach()->host_release();
    am->detach()->host_release();
    queue->detach()->host_release();
    other_queue->detach()->host_release();
}

void a_reply_that_is_cut(void **) {
    run([](Findings &f) {
        const Ref<Context> context = make_context();
        for (const size_t part : parts)
            for (const End end : {End::cancelled, End::queue_closed}) cut(f, context, part, end);
        Deadline deadline(10 * second);
        f.expect_status(context->close(deadline), MUSTER_OK, "close");
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(a_reply_that_is_cut)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
