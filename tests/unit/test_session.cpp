// SPDX-License-Identifier: MIT
// A session whose peer is this test, frame by frame: peers that break the protocol, ask for too much, do not read, do
// not let go, or are silent.
// ctest: quick timeout=120
#include "base/text.hpp"
#include "session_world.hpp"

using namespace muster;
using namespace muster::test;

namespace {

void test_a_peer_that_closes_in_order_ends_the_stream(void **) {
    run([](Findings &f) {
        for (const bool finished_before : {false, true}) {
            World w({});
            if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
            if (finished_before) {
                w.stream->finish();
                f.expect(w.heard(FrameType::finish, 1), "our finish is told");
            }
            w.say(frame(FrameType::data, 1, "rest") + frame(FrameType::finish, 1));
            w.settle();
            f.expect(!w.stream->duplex().is_ended(), "a finish alone is no end");
            w.say(frame(FrameType::closed, 1));
            f.expect(w.soon([&] { return w.stream->duplex().is_ended(); }), "ended");
            char text[8];
            size_t moved = 0;
            Deadline deadline(5 * second);
            f.expect_status(w.stream->read(text, 1, sizeof text, deadline, moved), MUSTER_OK, "what was sent before");
            f.expect(moved == 4 && memcmp(text, "rest", 4) == 0, "the bytes");
            f.expect_status(w.stream->read(text, 1, sizeof text, deadline, moved), MUSTER_E_END, "then the end");
            f.expect(w.reason().find("the peer has closed the stream") != std::string::npos, "the reason");
            f.expect_status(w.stream->close(deadline), MUSTER_OK, "closing in order");
            f.expect(w.soon([&] { return w.session->stream_count() == 0; }), "no stream is left");
        }
    });
}

void test_a_close_is_told_behind_the_finish_of_the_peer(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(FrameType::finish, 1));
        Deadline deadline(5 * second);
        f.expect_status(w.stream->close(deadline), MUSTER_OK, "close");
        f.expect(w.heard(FrameType::closed, 1) && w.heard(FrameType::finish, 1), "both are told");
        f.expect(w.soon([&] { return w.session->stream_count() == 0; }), "no stream is left");
    });
}

void test_a_goodbye_ends_streams_that_were_done(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.stream->finish();
        f.expect(w.heard(FrameType::finish, 1), "our finish is told");
        w.say(frame(FrameType::finish, 1) + frame(FrameType::goodbye, 0));
        f.expect(w.soon([&] { return w.over; }), "over");
        f.expect(w.channel->orderly, "in order");
        f.expect_status(w.stream->duplex().ended_status(), MUSTER_E_PEER, "the stream");
    });
}

void test_a_broken_protocol_is_a_lost_peer_to_streams(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(static_cast<FrameType>(77), 1));
        f.expect(w.soon([&] { return w.over; }), "over");
        f.expect_status(w.why.status, MUSTER_E_PROTOCOL, "the session");
        f.expect_status(w.stream->duplex().ended_status(), MUSTER_E_PEER, "the stream");
        f.expect(w.reason().find("broke the protocol: a frame of unknown type") != std::string::npos, "the reason");
    });
}

void test_text_of_a_peer_can_be_shown(void **) {
    run([](Findings &f) {
        const struct {
            std::string text, shown;
        } cases[] = {
            {"plain", "plain"},
            {std::string("\x1b[2J\0\x7f\n", 7), ".[2J..."},
            {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
            {"\xc3", "."},                // cut
            {"\xe2\x82x", "..x"},         // cut
            {"\xc0\xaf", ".."},           // longer than need be
            {"\xe0\x80\xaf", "..."},      // the same
            {"\xed\xa0\x80", "..."},      // half of a pair
            {"\xf4\x90\x80\x80", "...."}, // beyond the last
            {"\xc2\x9b", ".."},           // a control character
            {"\xff\xfe", ".."},
        };
        for (const auto &c : cases) {
            std::string text = c.text;
            make_printable(text.data(), text.size());
            f.expect(text == c.shown, c.shown.c_str());
        }
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(FrameType::abort, 1, number(7) + "bad\x1b\xff"));
        f.expect(w.soon([&] { return w.stream->duplex().is_ended(); }), "ended");
        f.expect(w.reason().find("aborted by the peer: bad..") != std::string::npos, w.reason().c_str());
    });
}

// An abort that arrives between two turns, while a handed-over buffer is being sent.
void test_an_abort_between_turns_gives_buffers_back(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f, 1, 1 << 30)) return;
        std::vector<unsigned char> data(8 << 20);
        const Ref<Queue> queue = make_queue(*w.context);
        w.on_loop([&] {
            w.channel->sends = 0;
            w.channel->sent = [&] {
                if (w.channel->sends == 7) // the last of a turn; the turn itself stages one more
                    w.context->post([&] { w.deliver(frame(FrameType::abort, 1, number(3))); });
            };
        });
        f.expect_status(w.stream->write_owned(data.data(), data.size(), *queue, 5), MUSTER_OK, "handed over");
        const Taken back = take(*queue, 10 * second);
        f.expect_status(back.status, MUSTER_OK, "given back");
        f.expect_status(back.completion.status, MUSTER_E_ABORTED, "with the abort");
        w.on_loop([&] { w.channel->sent = nullptr; });
    });
}

// ---- limits ---------------------------------------------------------------------------------------------------------

void test_a_peer_must_read_what_it_makes_us_say(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved")) return;
        std::string offer = number(4096) + std::string(92, '\0'); // of another host: declined
        w.on_loop([&] {
            w.channel->stuck = true;
            for (size_t i = 0; i < 2 * session_waiting_max && !w.over; i++)
                w.deliver(frame(FrameType::pair_offer, 0, offer));
        });
        f.expect(w.soon([&] { return w.over; }), "over");
        f.expect_status(w.why.status, MUSTER_E_LIMIT, "why");
    });
}

void test_a_stream_must_be_opened_in_time(void **) {
    run([](Findings &f) {
        WorldOptions options;
        options.single = true;
        options.handshake_timeout_ns = 300 * ms;
        for (const bool opens : {false, true}) {
            World w(options);
            if (!f.expect(w.ready.load(), "proved")) return;
            f.expect(w.proved == 0, "it counts as one that has not proved itself");
            if (opens && !w.open_stream(f)) return;
            for (int i = 0; i < 60; i++) {
                w.say(frame(FrameType::heartbeat, 0));
                usleep(10'000);
            }
            f.expect(w.is_over() == !opens, opens ? "a session in use stays" : "one without a stream ends");
            f.expect(w.proved == (opens ? 1 : 0), "it counts when the stream is there");
        }
    });
}

void test_dials_nobody_answers_are_limited(void **) {
    run([](Findings &f) {
        WorldOptions how;
        how.dialer = true;
        World w(how);
        if (!f.expect(w.ready.load(), "proved")) return;
        TransportOptions options;
        options.window_bytes = window;
        std::vector<Ref<TestDial>> dials;
        const auto dial_some = [&](size_t count) {
            w.on_loop([&] {
                for (size_t i = 0; i < count; i++) {
                    dials.push_back(make_ref<TestDial>(*w.context));
                    w.session->open("service", options, Ref<Dial>(dials.back()));
                }
            });
            f.expect(w.heard(FrameType::open, static_cast<uint32_t>(dials.size())), "asked");
            for (const Ref<TestDial> &dial : dials)
                if (const Ref<Attempt> attempt = std::move(dial->attempt); attempt) attempt->stop();
        };
        dial_some(2);
        w.say(frame(FrameType::accept, 1, number(window)) + frame(FrameType::refuse, 2, std::string(4, '\xff')));
        f.expect(w.heard(FrameType::abort, 1), "a late answer is declined");
        f.expect(w.soon([&] { return w.session->stream_count() == 0; }), "answered");
        dial_some(session_streams_max);
        w.settle();
        f.expect(!w.is_over(), "so many may be unanswered");
        dial_some(1);
        f.expect(w.soon([&] { return w.over; }), "one more may not");
    });
}

void test_a_peer_that_does_not_let_go_is_left(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved")) return;
        w.on_loop([&] {
            w.channel->stuck = true;
            w.session->end_when_idle();
        });
        const int64_t begin = now_ns();
        while (!w.is_over() && now_ns() - begin < 20 * second) {
            w.say(frame(FrameType::heartbeat, 0));
            usleep(20'000);
        }
        f.expect(w.is_over(), "over");
        f.expect(!w.channel->orderly, "the channel does not wait either");
    });
}

void test_silence_of_a_peer(void **) {
    run([](Findings &f) {
        WorldOptions options;
        options.dead_ns = 200 * ms;
        for (const bool external : {false, true}) {
            options.external_peer = external;
            World w(options);
            if (!f.expect(w.ready.load(), "proved")) return;
            usleep(600'000);
            f.expect(w.is_over() == !external, external ? "it has no thread of its own" : "it is dead");
        }
        ContextSettings own;
        Agreement terms;
        terms.peer_heartbeat_ns = INT64_MAX;
        f.expect(PeerTimeouts(own, terms).dead_ns == 4 * PeerTimeouts::max_heartbeat_ns,
                 "no beat is too slow for death");
        terms.peer_heartbeat_ns = INT64_MIN;
        f.expect(PeerTimeouts(own, terms).dead_ns == own.dead_ns && PeerTimeouts(own, terms).silent_ns == own.silent_ns,
                 "no beat is too fast");
        own.dead_ns = -1;
        f.expect(PeerTimeouts(own, terms).dead_ns < 0, "never");
    });
}

void test_beats_as_slow_as_those_of_the_slower_side(void **) {
    run([](Findings &f) {
        WorldOptions options;
        options.dead_ns = 200 * ms;
        options.peer_heartbeat_ns = 400 * ms;
        World w(options);
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        const int64_t begin = now_ns();
        f.expect(w.soon([&] { return w.over; }), "silence ends it all the same");
        const int64_t lasted = now_ns() - begin;
        f.expect(lasted > 1500 * ms, "but not before four beats of the slower side");
        const int heard = w.count(FrameType::heartbeat);
        f.expect(heard >= 1 && heard <= lasted / (300 * ms) + 1, "nor were more said");
    });
}

void test_a_heartbeat_is_answered(void **) {
    run([](Findings &f) {
        WorldOptions options;
        options.peer_heartbeat_ns = 60 * second;
        World w(options);
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(FrameType::heartbeat, 0));
        w.settle();
        f.expect(w.count(FrameType::heartbeat) == 0, "not while something was said lately");
    });
    run([](Findings &f) {
        WorldOptions options;
        options.peer_heartbeat_ns = 400 * ms;
        World w(options);
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        usleep(250'000); // more than half of a beat; its own turn is after three quarters
        w.say(frame(FrameType::heartbeat, 0));
        w.settle();
        f.expect(w.count(FrameType::heartbeat) != 0, "at once");
    });
}

// A session of a crowded listener that makes place: the refusal goes out if that needs no waiting.
void test_a_displaced_session_says_so(void **) {
    run([](Findings &f) {
        for (const bool stuck : {false, true}) {
            WorldOptions options;
            options.single = options.silent = true;
            World w(options);
            w.on_loop([&] {
                f.expect(!w.session->has_hello(), "nothing has come");
                w.channel->stuck = stuck;
                w.session->displace();
            });
            f.expect(w.is_over() && w.why.status == MUSTER_E_LIMIT, "it is over at once");
            f.expect(w.channel->orderly == !stuck, "closed in order if the refusal was sent");
            f.expect(w.channel->out == (stuck ? "" : std::string("\5\0\1\0\10", 5)), "the refusal");
            const uint64_t failed = w.context->counters.handshakes_failed.load();
            f.expect(failed == 1, "counted");
        }
    });
}

// The listener refuses for now and hangs up: the dialer gets the refusal although it can send nothing any more.
void test_a_refusal_that_follows_a_hang_up_is_taken(void **) {
    run([](Findings &f) {
        WorldOptions options;
        options.dialer = options.single = options.silent = options.failing = true;
        World w(options);
        w.settle();
        f.expect(!w.is_over(), "not over before the refusal");
        w.say(std::string("\5\0\1\0\10", 5));
        w.settle();
        f.expect(w.is_over() && w.why.status == MUSTER_E_LIMIT, "refused for now");
    });
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_that_closes_in_order_ends_the_stream),
        cmocka_unit_test(test_a_close_is_told_behind_the_finish_of_the_peer),
        cmocka_unit_test(test_a_goodbye_ends_streams_that_were_done),
        cmocka_unit_test(test_a_broken_protocol_is_a_lost_peer_to_streams),
        cmocka_unit_test(test_text_of_a_peer_can_be_shown),
        cmocka_unit_test(test_an_abort_between_turns_gives_buffers_back),
        cmocka_unit_test(test_a_peer_must_read_what_it_makes_us_say),
        cmocka_unit_test(test_a_stream_must_be_opened_in_time),
        cmocka_unit_test(test_dials_nobody_answers_are_limited),
        cmocka_unit_test(test_a_peer_that_does_not_let_go_is_left),
        cmocka_unit_test(test_silence_of_a_peer),
        cmocka_unit_test(test_beats_as_slow_as_those_of_the_slower_side),
        cmocka_unit_test(test_a_heartbeat_is_answered),
        cmocka_unit_test(test_a_displaced_session_says_so),
        cmocka_unit_test(test_a_refusal_that_follows_a_hang_up_is_taken),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
