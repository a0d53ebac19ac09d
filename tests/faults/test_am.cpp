// SPDX-License-Identifier: MIT
// am.h.
#include "scenario.hpp"

#include <cstring>

using namespace faults;

namespace {

HANDLE(Am, muster_am, muster_am_release)
HANDLE(Request, muster_am_request, muster_am_request_release)

muster_status double_it(void *, uint32_t, const void *data, size_t bytes, void *reply, size_t, size_t *out_bytes) {
    if (bytes != 8) return MUSTER_E_ARG;
    uint64_t value = 0;
    std::memcpy(&value, data, sizeof value);
    value *= 2;
    std::memcpy(reply, &value, sizeof value);
    *out_bytes = sizeof value;
    return MUSTER_OK;
}

// Lack of memory for what a peer has sent disconnects it.
bool has_ended(muster_am *am) {
    muster_am_peer peer{};
    return muster_am_get_peer(am, 0, &peer, nullptr) == MUSTER_OK && peer.status != MUSTER_OK;
}

} // namespace

SCENARIO(am, two_in_a_context) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    muster_am_config config{};
    config.struct_size = sizeof config;
    config.queue = queue;
    config.tag = 3;
    Am one, other;
    OK(muster_am_create, context, &config, one.out(), &error);
    OK(muster_am_create, context, nullptr, other.out(), &error);
    OK(muster_am_set_handler, other, 1, double_it, nullptr);
    OK(muster_am_serve, other, 2, queue, 5);
    Stream first, second_end;
    OK(muster_stream_pair, context, nullptr, first.out(), second_end.out(), &error);
    const Mortal mortal([&] { return has_ended(one) || has_ended(other); });
    uint32_t peer = 9;
    OK(muster_am_add_peer, one, first, &peer, &error);
    first.leave();
    OK(muster_am_add_peer, other, second_end, &peer, &error);
    second_end.leave();
    EXPECT(peer == 0);
    uint64_t value = 21, reply = 0;
    size_t got = 0;
    OR_END(muster_am_call, one, 0, 1, &value, sizeof value, &reply, sizeof reply, patience, &got, &error);
    EXPECT(got == 8 && reply == 42);
    OR_END(muster_am_begin, one, 0, 1, &value, sizeof value, &reply, sizeof reply, queue, 7);
    take_ok(queue, MUSTER_DONE_AM, 7, "muster_am_call");
    OR_END(muster_am_begin, one, 0, 2, &value, sizeof value, &reply, sizeof reply, queue, 8);
    muster_completion entry{};
    do OK(muster_queue_next, queue, patience, &entry, &error);
    while (entry.kind == MUSTER_EVENT_READY);
    if (entry.kind == MUSTER_DONE_AM) { // the request could not be put in the queue
        check_status("muster_am_call", entry.status, "a request of the host");
        EXPECT(has_fired() && entry.status != MUSTER_OK);
        ended();
    }
    EXPECT(entry.kind == MUSTER_REQUEST_AM && entry.tag == 5);
    {
        Request request(entry.object);
        muster_am_request_info info{};
        OK(muster_am_request_get, request, &info);
        EXPECT(info.bytes == 8 && info.handler == 2);
        OR_END(muster_am_request_reply, request, MUSTER_OK, info.data, info.bytes);
    }
    take_ok(queue, MUSTER_DONE_AM, 8, "muster_am_call");
    EXPECT(reply == 21);
    OR_END(muster_am_flush, one, UINT32_MAX, patience);
    muster_am_peer state{};
    OK(muster_am_get_peer, one, 0, &state, &error);
    EXPECT(state.sent == 3 && state.requests == 0);
    OK(muster_am_disconnect, one, 0, "enough");
    OK(muster_am_close, other);
}
