// SPDX-License-Identifier: MIT
// rendezvous.h: over a store in memory, over a served one, and with ranks that are given.
#include "scenario.hpp"

#include <cstring>

using namespace faults;

namespace {

muster_rendezvous_config member_config(const std::string &url) {
    muster_rendezvous_config config{};
    config.struct_size = sizeof config;
    config.run_id = "run";
    config.run_id_bytes = 3;
    config.url = url.data();
    config.url_bytes = url.size();
    config.address = "here";
    config.address_bytes = 4;
    config.min = config.max = 2;
    config.last_call_ns = -1;
    config.keep_alive_ns = second;
    return config;
}

struct Place {
    Context context;
    Queue queue;
    StoreServer server;
    std::string url = "memory:";
    Store store;
};

void make_place(Place &p, bool is_served) {
    create(p.context);
    const Paused guard;
    OK(muster_queue_create, p.context, nullptr, p.queue.out(), &error);
    if (is_served) {
        const char *const at = "tcp://127.0.0.1:0";
        OK(muster_store_server_open, p.context, at, strlen(at), nullptr, p.server.out(), &error);
        char address[256];
        size_t bytes = 0;
        OK(muster_store_server_address, p.server, address, sizeof address, &bytes);
        p.url.assign(address, bytes);
    }
    OK(muster_store_open, p.context, p.url.data(), p.url.size(), nullptr, patience, p.store.out(), &error);
}

muster_error why; // the first failure of the latest join

// The round of a member is over that has begun for it and not yet for the other: the fault has ended the connection,
// and their leases with it.
bool is_over(Rendezvous &member) {
    bool over = false;
    for (muster_rendezvous_event event{}; CALL(muster_rendezvous_next_event, member, 0, &event) == MUSTER_OK;)
        over |= event.kind == MUSTER_RENDEZVOUS_ABORTED || event.kind == MUSTER_RENDEZVOUS_EXPELLED;
    return over;
}

// Two members of one process join one round. When the fault ends one join, the other is cancelled; when it ends the
// round of the first that is in, that one joins again.
bool join(Place &p, Rendezvous &one, Rendezvous &other, Round &first, Round &second_round) {
    const auto begin = [&p](Rendezvous &member, uint64_t tag) {
        OK(muster_rendezvous_begin, member, MUSTER_RENDEZVOUS_JOIN, nullptr, 0, patience, p.queue, tag, &error);
    };
    begin(one, 1);
    begin(other, 2);
    bool is_joined = true, is_in[2] = {false, false};
    for (int left = 2; left > 0;) {
        muster_completion entry{};
        if (const muster_status status = CALL(muster_queue_next, p.queue, patience, &entry, &error))
            wrong("the join of a member does not complete: %s", muster_status_name(status));
        if (is_joined && left == 1 && has_fired() && entry.kind != MUSTER_DONE_RENDEZVOUS) {
            const int in = is_in[0] ? 0 : 1;
            if (!is_in[in] || !is_over(in == 0 ? one : other)) continue;
            is_in[in] = false;
            begin(in == 0 ? one : other, in == 0 ? 1 : 2);
            left++;
        }
        if (entry.kind != MUSTER_DONE_RENDEZVOUS) continue;
        left--;
        (entry.tag == 1 ? first : second_round) = Round(entry.object);
        is_in[entry.tag - 1] = entry.status == MUSTER_OK;
        if (entry.status == MUSTER_OK) continue;
        check_status("muster_rendezvous_join", entry.status, "MUSTER_DONE_RENDEZVOUS");
        if (is_joined) why = error;
        if (is_joined) {
            expect_fault("muster_rendezvous_join", entry.status);
            OK(muster_rendezvous_cancel, entry.tag == 1 ? other : one);
        }
        is_joined = false;
    }
    return is_joined;
}

void meet(bool is_served) {
    Place p;
    make_place(p, is_served);
    muster_rendezvous_config config = member_config(p.url);
    config.store = p.store;
    config.queue = p.queue;
    config.tag = 99;
    Rendezvous one, other;
    OK(muster_rendezvous_open, p.context, &config, patience, one.out(), &error);
    for (int attempt = 0; attempt < 2; attempt++) {
        OK(muster_rendezvous_open_begin, p.context, &config, patience, p.queue, 5, &error);
        const muster_completion opened = take(p.queue, MUSTER_DONE_OPEN, 5, "muster_rendezvous_open");
        other = Rendezvous(opened.object);
        if (opened.status == MUSTER_OK) break;
        expect_fault("muster_rendezvous_open", opened.status);
        EXPECT(attempt == 0);
    }
    Round first, second_round;
    if (!join(p, one, other, first, second_round)) {
        EXPECT(has_fired());
        if (why.status == MUSTER_E_NOMEM) ended(); // the member is out for good
        if (!join(p, one, other, first, second_round)) wrong("a second join fails, too: %s", why.message);
    }
    muster_round_info info{};
    OK(muster_round_get_info, first, &info);
    EXPECT(info.world == 2);
    Store view;
    OK(muster_round_store, first, view.out(), &error);
    muster_round_member_info member{};
    muster_status status = CALL(muster_round_member, first, 1, patience, &member, &error);
    if (status != MUSTER_OK) expect_fault("muster_round_member", status);
    OK(muster_round_member_begin, first, 0, patience, p.queue, 6, &error);
    take(p.queue, MUSTER_DONE_CALL, 6, "muster_round_member");
    char text[4096];
    size_t bytes = 0;
    status = CALL(muster_rendezvous_list, one, text, sizeof text, patience, &bytes, &error);
    if (status != MUSTER_OK) expect_fault("muster_rendezvous_list", status);
    OK(muster_rendezvous_list_begin, one, text, sizeof text, patience, p.queue, 7, &error);
    take(p.queue, MUSTER_DONE_CALL, 7, "muster_rendezvous_list");
    muster_rendezvous_state state{};
    OK(muster_rendezvous_get_state, one, &state);
    muster_rendezvous_event event{};
    status = CALL(muster_rendezvous_next_event, one, has_fired() ? 0 : patience, &event);
    EXPECT(status == MUSTER_OK || has_fired());
    status = CALL(muster_rendezvous_abort, one, "over", 4, patience, &error);
    if (status != MUSTER_OK) expect_fault("muster_rendezvous_abort", status);
    status = CALL(muster_rendezvous_exit, other, patience, &error);
    EXPECT(status == MUSTER_E_STALE || has_fired());
    OK(muster_rendezvous_cancel, one); // nothing is under way
    status = CALL(muster_rendezvous_leave, one, patience, &error);
    if (status != MUSTER_OK) expect_fault("muster_rendezvous_leave", status);
    status = CALL(muster_rendezvous_close, other, "done", 4, patience, &error);
    if (status != MUSTER_OK) expect_fault("muster_rendezvous_close", status);
}

} // namespace

SCENARIO(rendezvous, memory) {
    meet(false);
}

SCENARIO(rendezvous, served) {
    meet(true);
}

SCENARIO(rendezvous, given_ranks) {
    Place p;
    make_place(p, false);
    const std::string url = "static:";
    muster_rendezvous_config config = member_config(url);
    config.store = p.store;
    config.flags = MUSTER_RENDEZVOUS_HAS_RANK;
    config.min = config.max = 1;
    Rendezvous member;
    OK(muster_rendezvous_open, p.context, &config, patience, member.out(), &error);
    Round round;
    OK(muster_rendezvous_join, member, patience, round.out(), &error);
    muster_round_member_info info{};
    OK(muster_round_member, round, 0, patience, &info, &error);
    OK(muster_rendezvous_exit, member, patience, &error);
}
