// SPDX-License-Identifier: MIT
// serve.h, store_serve.h and rendezvous_serve.h: what the program serves, pulled and by callbacks, in one thread that
// begins operations and answers their requests.
#include "scenario.hpp"

#include <muster/rendezvous_serve.h>
#include <muster/serve.h>
#include <muster/store_serve.h>

#include <cstring>
#include <functional>

using namespace faults;

namespace {

struct Host {
    Context context;
    Queue requests, queue; // requests to the host; completions of what it begins
    bool is_destroyed = false;
    std::function<void(uint64_t)> on_request, on_listen;
};

void make_host(Host &h) {
    create(h.context);
    const Paused guard;
    OK(muster_queue_create, h.context, nullptr, h.requests.out(), &error);
    OK(muster_queue_create, h.context, nullptr, h.queue.out(), &error);
}

void destroyed(void *self) {
    static_cast<Host *>(self)->is_destroyed = true;
}

// Serves one wait's worth of requests.
void serve_once(Host &h, bool by_callbacks) {
    if (by_callbacks) {
        uint64_t count = 0;
        const muster_status status = CALL(muster_queue_dispatch, h.requests, ms, nullptr, nullptr, &count);
        EXPECT(status >= 0);
        return;
    }
    muster_completion entry{};
    const muster_status status = CALL(muster_queue_next, h.requests, ms, &entry, &error);
    EXPECT(status >= 0);
    if (status != MUSTER_OK) return;
    if (entry.kind == MUSTER_REQUEST_LISTEN) h.on_listen(entry.request);
    if (entry.kind == MUSTER_REQUEST_OPEN || entry.kind == MUSTER_REQUEST_STORE ||
        entry.kind == MUSTER_REQUEST_RENDEZVOUS)
        h.on_request(entry.request);
}

// Serves until the operation that was begun with this tag is complete.
muster_completion serve_until(Host &h, bool by_callbacks, uint64_t tag, const char *function) {
    for (int i = 0; i < 4000; i++) {
        serve_once(h, by_callbacks);
        muster_completion entry{};
        const muster_status status = CALL(muster_queue_next, h.queue, 0, &entry, &error);
        EXPECT(status >= 0);
        if (status != MUSTER_OK || entry.tag != tag) continue;
        if (entry.status != MUSTER_OK && function != nullptr)
            check_status(function, entry.status, "a completion of what the host serves");
        return entry;
    }
    wrong("%s does not complete", function != nullptr ? function : "an operation");
}

void expect_destroyed(Host &h, bool by_callbacks) {
    for (int i = 0; by_callbacks && !h.is_destroyed && i < 1000; i++) serve_once(h, by_callbacks);
    EXPECT(!by_callbacks || h.is_destroyed);
}

// ---- a transport ---------------------------------------------------------------------------------------------------

struct Transport : Host {
    Stream near_pump, far_pump; // of the dialled stream, of the accepted one
    uint64_t listening = 0;
};

void move_bytes(muster_stream *from, muster_stream *to) {
    char data[4096];
    size_t bytes = 0, sent = 0;
    if (from == nullptr || to == nullptr) return;
    const muster_status status = CALL(muster_stream_read, from, data, sizeof data, 0, &bytes);
    if (bytes != 0 && CALL(muster_stream_write, to, data, bytes, 0, &sent) == MUSTER_E_NOMEM)
        CALL(muster_stream_write, to, data + sent, bytes - sent, 0, &sent);
    if (status == MUSTER_E_END)
        CALL(muster_stream_finish, to);
    else if (status < 0)
        CALL(muster_stream_abort, to, 0, nullptr, 0);
}

void open_connection(Transport &t, uint64_t request) {
    char text[256];
    size_t size = 0;
    const muster_status status = CALL(muster_request_address, t.requests, request, text, sizeof text, &size);
    if (status == MUSTER_E_NOMEM) OK(muster_request_address, t.requests, request, text, sizeof text, &size);
    if (t.listening == 0) {
        CALL(muster_request_fail, t.requests, request, MUSTER_E_UNREACHABLE, "nobody listens", 14);
        return;
    }
    muster_status opened = CALL(muster_request_stream, t.requests, request, t.near_pump.out(), &error);
    if (opened == MUSTER_E_NOMEM || opened == MUSTER_E_LIMIT)
        opened = CALL(muster_request_stream, t.requests, request, t.near_pump.out(), &error);
    if (opened != MUSTER_OK) return;
    uint64_t incoming = 0;
    muster_status come =
        CALL(muster_transport_incoming, t.requests, t.listening, "peer", 4, &incoming, t.far_pump.out(), &error);
    if (come != MUSTER_OK) {
        expect_fault("muster_transport_incoming", come);
        come = CALL(muster_transport_incoming, t.requests, t.listening, "peer", 4, &incoming, t.far_pump.out(), &error);
        EXPECT(come == MUSTER_OK);
    }
}

void listen_at(Transport &t, uint64_t request) {
    OK(muster_request_listening, t.requests, request, "mine://here", 11, &error);
    t.listening = request;
}

void serve_transport(bool by_callbacks) {
    Transport t;
    make_host(t);
    t.on_request = [&](uint64_t request) { open_connection(t, request); };
    t.on_listen = [&](uint64_t request) { listen_at(t, request); };
    muster_transport_ops ops{};
    ops.struct_size = sizeof ops;
    ops.flags = MUSTER_TRANSPORT_LOCAL;
    ops.open = [](void *self, uint64_t request, const char *, uint64_t) {
        open_connection(*static_cast<Transport *>(self), request);
    };
    ops.listen = [](void *self, uint64_t request, const char *, uint64_t) {
        listen_at(*static_cast<Transport *>(self), request);
    };
    ops.destroy = [](void *self) { destroyed(static_cast<Transport *>(self)); };
    if (by_callbacks)
        OK(muster_transport_serve_ops, t.context, "mine", 4, &ops, &t, t.requests, &error);
    else
        OK(muster_transport_serve, t.context, "mine", 4, MUSTER_TRANSPORT_LOCAL, t.requests, 5, &error);
    OK(muster_transport_dial_begin, t.context, "mine://here", 11, nullptr, patience, t.queue, 2, &error);
    const muster_completion refused = serve_until(t, by_callbacks, 2, "muster_transport_dial");
    EXPECT(refused.status == MUSTER_E_UNREACHABLE || has_fired());
    OK(muster_transport_listen_begin, t.context, "mine://here", 11, nullptr, t.queue, 4, &error);
    muster_completion opened{};
    for (int i = 0; i < 8000 && opened.kind != MUSTER_DONE_LISTEN; i++) {
        serve_once(t, by_callbacks);
        CALL(muster_queue_next, t.queue, 0, &opened, &error);
    }
    EXPECT(opened.kind == MUSTER_DONE_LISTEN);
    const Listener listener(opened.object);
    if (opened.status != MUSTER_OK) {
        EXPECT(has_fired());
        check_status("muster_transport_listen", opened.status, "MUSTER_DONE_LISTEN");
        ended();
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_transport_dial_begin, t.context, "mine://here", 11, nullptr, 4 * second, t.queue, 3, &error);
        muster_completion entry{};
        for (int i = 0; i < 8000 && entry.kind != MUSTER_DONE_DIAL; i++) {
            serve_once(t, by_callbacks);
            move_bytes(t.near_pump, t.far_pump);
            move_bytes(t.far_pump, t.near_pump);
            CALL(muster_queue_next, t.queue, 0, &entry, &error);
        }
        EXPECT(entry.kind == MUSTER_DONE_DIAL);
        if (entry.status == MUSTER_OK) {
            const Stream stream(entry.object);
            size_t bytes = 0;
            CALL(muster_stream_write, stream, "hello", 5, 0, &bytes);
            break;
        }
        check_status("muster_transport_dial", entry.status, "MUSTER_DONE_DIAL");
        expect_fault("muster_transport_dial", entry.status);
        EXPECT(attempt == 0);
        t.near_pump.reset();
        t.far_pump.reset();
    }
    t.near_pump.reset();
    t.far_pump.reset();
    OK(muster_listener_close, listener);
    OK(muster_transport_withdraw, t.context, "mine", 4);
    expect_destroyed(t, by_callbacks);
}

// ---- a store -------------------------------------------------------------------------------------------------------

void answer_store(Host &h, uint64_t request) {
    muster_store_request what{};
    what.struct_size = sizeof what;
    muster_status status = CALL(muster_store_request_read, h.requests, request, &what);
    if (status == MUSTER_E_STALE) return;
    EXPECT(status == MUSTER_OK);
    if (what.kind == MUSTER_STORE_REQUEST_OPEN) {
        muster_store_traits traits{};
        traits.struct_size = sizeof traits;
        traits.capabilities = MUSTER_STORE_CAN_TRANSACT;
        OK(muster_store_request_open, h.requests, request, &traits, &error);
    } else if (what.kind == MUSTER_STORE_REQUEST_DO && what.ops[0].kind == MUSTER_STORE_READ) {
        muster_store_entry entry{};
        entry.flags = MUSTER_STORE_PRESENT;
        entry.version = 1;
        entry.value = "value";
        entry.value_bytes = 5;
        OK(muster_store_request_done, h.requests, request, MUSTER_OK, &entry, 1, 1, &error);
    } else {
        OK(muster_store_request_fail, h.requests, request, MUSTER_E_PERMISSION, 0, "read only", 9);
    }
}

void serve_store(bool by_callbacks) {
    Host h;
    make_host(h);
    h.on_request = [&](uint64_t request) { answer_store(h, request); };
    muster_store_host_ops ops{};
    ops.struct_size = sizeof ops;
    ops.request = [](void *self, uint64_t request, const muster_store_request *) {
        answer_store(*static_cast<Host *>(self), request);
    };
    ops.destroy = destroyed;
    if (by_callbacks)
        OK(muster_store_serve_ops, h.context, "mine", 4, &ops, &h, h.requests, &error);
    else
        OK(muster_store_serve, h.context, "mine", 4, h.requests, 5, &error);
    Store store;
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_store_open_begin, h.context, "mine://x", 8, nullptr, patience, h.queue, 3, &error);
        const muster_completion opened = serve_until(h, by_callbacks, 3, "muster_store_open");
        store = Store(opened.object);
        if (opened.status == MUSTER_OK) break;
        expect_fault("muster_store_open", opened.status);
        EXPECT(attempt == 0);
    }
    for (const uint32_t kind : {uint32_t{MUSTER_STORE_READ}, uint32_t{MUSTER_STORE_DELETE}}) {
        muster_store_op op{};
        op.kind = kind;
        op.key = "key";
        op.key_bytes = 3;
        OK(muster_store_begin, store, &op, 1, patience, h.queue, 4, nullptr, &error);
        const muster_completion done = serve_until(h, by_callbacks, 4, "muster_store_do");
        const StoreResult result(done.object);
        EXPECT(has_fired() || done.status == (kind == MUSTER_STORE_READ ? MUSTER_OK : MUSTER_E_PERMISSION));
    }
    store.reset();
    OK(muster_store_withdraw, h.context, "mine", 4);
    expect_destroyed(h, by_callbacks);
}

// ---- a rendezvous --------------------------------------------------------------------------------------------------

struct Meeting : Host {
    uint64_t member = 0, rounds = 0;
};

void answer_rendezvous(Meeting &m, uint64_t request) {
    muster_rendezvous_request what{};
    what.struct_size = sizeof what;
    const muster_status status = CALL(muster_rendezvous_request_read, m.requests, request, &what);
    if (status == MUSTER_E_STALE) return;
    EXPECT(status == MUSTER_OK);
    if (what.kind == MUSTER_RENDEZVOUS_REQUEST_JOIN) {
        muster_rendezvous_assignment place{};
        place.struct_size = sizeof place;
        place.world = 1;
        place.number = ++m.rounds;
        OK(muster_rendezvous_request_round, m.requests, request, &place, &error);
        return;
    }
    if (what.kind == MUSTER_RENDEZVOUS_REQUEST_OPEN) m.member = request;
    if (what.kind == MUSTER_RENDEZVOUS_REQUEST_CLOSE) {
        OK(muster_rendezvous_request_fail, m.requests, request, MUSTER_E_PERMISSION, "no", 2);
        return;
    }
    OK(muster_rendezvous_request_done, m.requests, request, nullptr, 0, &error);
}

void serve_rendezvous(bool by_callbacks) {
    Meeting m;
    make_host(m);
    m.on_request = [&](uint64_t request) { answer_rendezvous(m, request); };
    muster_rendezvous_ops ops{};
    ops.struct_size = sizeof ops;
    ops.request = [](void *self, uint64_t request, const muster_rendezvous_request *) {
        answer_rendezvous(*static_cast<Meeting *>(self), request);
    };
    ops.destroy = [](void *self) { destroyed(static_cast<Meeting *>(self)); };
    if (by_callbacks)
        OK(muster_rendezvous_serve_ops, m.context, "mine", 4, &ops, &m, m.requests, &error);
    else
        OK(muster_rendezvous_serve, m.context, "mine", 4, m.requests, 5, &error);
    muster_rendezvous_config config{};
    config.struct_size = sizeof config;
    config.run_id = "run";
    config.run_id_bytes = 3;
    config.url = "mine://x";
    config.url_bytes = 8;
    config.min = 1;
    Rendezvous member;
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_rendezvous_open_begin, m.context, &config, patience, m.queue, 3, &error);
        const muster_completion opened = serve_until(m, by_callbacks, 3, "muster_rendezvous_open");
        member = Rendezvous(opened.object);
        if (opened.status == MUSTER_OK) break;
        expect_fault("muster_rendezvous_open", opened.status);
        EXPECT(attempt == 0);
    }
    Round round;
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_rendezvous_begin, member, MUSTER_RENDEZVOUS_JOIN, nullptr, 0, patience, m.queue, 4, &error);
        const muster_completion joined = serve_until(m, by_callbacks, 4, "muster_rendezvous_join");
        round = Round(joined.object);
        if (joined.status == MUSTER_OK) break;
        expect_fault("muster_rendezvous_join", joined.status);
        EXPECT(attempt == 0);
    }
    muster_rendezvous_event event{};
    event.kind = MUSTER_RENDEZVOUS_ABORTED;
    const muster_status told = CALL(muster_rendezvous_notify, m.requests, m.member, &event, &error);
    if (told == MUSTER_E_NOMEM) OK(muster_rendezvous_notify, m.requests, m.member, &event, &error);
    OK(muster_rendezvous_begin, member, MUSTER_RENDEZVOUS_CLOSE, "over", 4, patience, m.queue, 5, &error);
    // The host may fail it with any status.
    serve_until(m, by_callbacks, 5, nullptr);
    OK(muster_rendezvous_begin, member, MUSTER_RENDEZVOUS_LEAVE, nullptr, 0, patience, m.queue, 6, &error);
    const muster_completion left = serve_until(m, by_callbacks, 6, "muster_rendezvous_leave");
    if (left.status != MUSTER_OK) expect_fault("muster_rendezvous_leave", left.status);
    member.reset();
    OK(muster_rendezvous_withdraw, m.context, "mine", 4);
    expect_destroyed(m, by_callbacks);
}

} // namespace

SCENARIO(serve, transport_pulled) {
    serve_transport(false);
}
SCENARIO(serve, transport_callbacks) {
    serve_transport(true);
}
SCENARIO(store_serve, pulled) {
    serve_store(false);
}
SCENARIO(store_serve, callbacks) {
    serve_store(true);
}
SCENARIO(rendezvous_serve, pulled) {
    serve_rendezvous(false);
}
SCENARIO(rendezvous_serve, callbacks) {
    serve_rendezvous(true);
}
