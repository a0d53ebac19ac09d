// SPDX-License-Identifier: MIT
// Requests that wait: for keys, for queues, for each other.
#include "store_check/harness.hpp"

#include <thread>

namespace store_check {

namespace {

void waits(const Place &place) {
    place.need(MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_TRANSACT);
    place.begin({wait("a"), get("b"), set("c", "done")}, 1);
    place.begin({get("c")}, 2);
    place.run({set("b", "2")});
    place.expect_none();
    place.run({set("a", "1"), remove("a")}); // the key never was present for a waiter
    place.expect_none();
    place.run({remove("b")});
    place.run({set("a", "1")});
    place.expect_none();
    place.once({read("c")}).expect_absent(0);
    place.run({set("b", "3")});
    bool seen[3] = {};
    for (int i = 0; i < 2; i++) {
        uint64_t tag = 0;
        const Answer answer = place.take(&tag);
        CHECK(tag == 1 || tag == 2);
        if (tag == 1)
            answer.expect_holds(1, "3");
        else
            answer.expect_holds(0, "done");
        seen[tag] = true;
    }
    CHECK(seen[1] && seen[2]);
    // Conditions are evaluated when no operation waits any more.
    place.begin({wait("go"), set("a", "5").if_value("4")}, 3);
    place.expect_none();
    place.run({set("go", "")});
    place.take(nullptr, MUSTER_E_CHANGED).expect_holds(1, "1");
}

void many_waits(const Place &place) {
    place.need(MUSTER_STORE_CAN_WAIT);
    constexpr uint64_t count = 100;
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < count; i++) keys.push_back(std::string("key/").append(std::to_string(i)));
    for (uint64_t i = 0; i < count; i++) place.begin({get(keys[i])}, i);
    for (uint64_t i = 0; i < count; i++) place.run({set(keys[count - 1 - i], keys[i])});
    std::vector<bool> seen(count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t tag = 0;
        const Answer answer = place.take(&tag);
        CHECK(tag < count && !seen[tag]);
        seen[tag] = true;
        answer.expect_holds(0, keys[count - 1 - tag]);
    }
}

void ends_of_waits(const Place &place) {
    place.need(MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_TRANSACT);
    const std::vector<Op> some = {wait("a"), get("b\n"), wait("c"), wait("d"), wait("e"), set("f", "")};
    CHECK(place.run(some, MUSTER_TIMEOUT, 20 * ms).count() == 0);
    place.run(some, MUSTER_TIMEOUT, 20 * ms)
        .expect_text("wait for \"a\", get \"b.\", wait for \"c\", wait for \"d\" and 1 more: absent after 0.0");
    place.begin(some, 5, 20 * ms);
    uint64_t tag = 0;
    place.take(&tag, MUSTER_TIMEOUT).expect_text("\"a\"");
    CHECK(tag == 5);
    const uint64_t number = place.begin(some, 6);
    check::expect(muster_store_cancel(place.store(), number), MUSTER_OK, "cancel");
    check::expect(muster_store_cancel(place.store(), number), MUSTER_E_STALE, "cancel again");
    place.take(&tag, MUSTER_E_CANCELED);
    CHECK(tag == 6);
    check::expect(muster_store_cancel(place.store(), 999999), MUSTER_E_STALE, "cancel of what never was");
    place.begin({get("late")}, 7);
    CHECK(place.once({Op(MUSTER_STORE_COUNT, "")}).entry(0).number == 0);
    place.run({set("late", "x")});
    place.take(&tag).expect_holds(0, "x");
    place.begin({get("late")}, 8, second); // nothing to wait for
    place.take(&tag).expect_holds(0, "x");
}

void threads_that_wait(const Place &place) {
    place.need(MUSTER_STORE_CAN_WAIT);
    muster_status first = MUSTER_TIMEOUT, cancelled = MUSTER_TIMEOUT;
    std::thread waits_for_a([&] { first = place.try_run({get("a")}, -1).status(); });
    place.run({set("a", "1")});
    waits_for_a.join();
    check::expect(first, MUSTER_OK, "a thread that waits");
    std::atomic<bool> over{false};
    std::thread waits_for_b([&] {
        cancelled = place.try_run({get("b")}, -1).status();
        over = true;
    });
    while (!over) { // until it has begun to wait
        check::expect(muster_store_cancel(place.store(), 0), MUSTER_OK, "cancel of all that wait");
        std::this_thread::yield();
    }
    waits_for_b.join();
    check::expect(cancelled, MUSTER_E_CANCELED, "a cancelled thread");
}

// ---- queues
// ----------------------------------------------------------------------------------------------------------

void queues(const Place &place) {
    place.need(MUSTER_STORE_CAN_QUEUE);
    place.once({Op(MUSTER_STORE_TRY_POP, "q")}).expect_absent(0);
    place.once({pop("q")}, MUSTER_AGAIN);
    const std::string values[] = {"0", "1", "2", "3"};
    for (int i = 0; i < 3; i++) CHECK(place.once({push("q", values[i]).count(3)}).entry(0).number == i + 1);
    place.once({push("q", values[3]).count(3)}, MUSTER_E_LIMIT).expect_text("push to \"q\": the queue is full");
    place.once({read("q")}).expect_absent(0); // keys are something else
    if (!place.can(MUSTER_STORE_CAN_TRANSACT)) return;
    const Answer moved = place.once({pop("q"), pop("q"), set("taken", "2")});
    moved.expect_holds(0, "0");
    moved.expect_holds(1, "1");
    place.once({pop("q"), pop("q"), set("taken", "2")}, MUSTER_AGAIN); // one value is present, two are needed
    CHECK(place.once({Op(MUSTER_STORE_LENGTH, "q")}).entry(0).number == 1);
}

void those_who_wait_are_served_in_order(const Place &place) {
    place.need(MUSTER_STORE_CAN_QUEUE | MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_TRANSACT);
    for (uint64_t i = 0; i < 8; i++) place.begin({pop("jobs")}, i);
    for (uint64_t i = 0; i < 8; i += 2) {
        place.run({push("jobs", "x"), push("jobs", "y")});
        for (uint64_t k = 0; k < 2; k++) {
            uint64_t tag = 0;
            const Answer answer = place.take(&tag);
            CHECK(tag == i + k);
            answer.expect_holds(0, k == 0 ? "x" : "y");
        }
        place.expect_none();
    }
    CHECK(place.once({Op(MUSTER_STORE_LENGTH, "jobs")}).entry(0).number == 0);
}

void what_is_popped_is_popped_once(const Place &place) {
    place.need(MUSTER_STORE_CAN_QUEUE | MUSTER_STORE_CAN_WAIT);
    constexpr int threads = 4, each = 50;
    std::atomic<int> failed{0};
    std::vector<std::vector<int>> got(threads);
    std::vector<std::thread> running;
    for (int i = 0; i < threads; i++)
        running.emplace_back([&, i] {
            for (int k = 0; k < each; k++) {
                const Answer answer = place.try_run({pop("work")});
                if (answer.status() != MUSTER_OK) {
                    failed++;
                    return;
                }
                got[static_cast<size_t>(i)].push_back(std::stoi(answer.value(0)));
            }
        });
    for (int i = 0; i < threads * each; i++) place.run({push("work", std::to_string(i))});
    for (std::thread &thread : running) thread.join();
    CHECK(failed == 0);
    std::vector<bool> seen(threads * each);
    for (const std::vector<int> &one : got)
        for (size_t i = 0; i < one.size(); i++) {
            CHECK(!seen[static_cast<size_t>(one[i])]);
            CHECK(i == 0 || one[i] > one[i - 1]);
            seen[static_cast<size_t>(one[i])] = true;
        }
}

// ---- barriers
// --------------------------------------------------------------------------------------------------------

void barriers(const Place &place) {
    place.need(MUSTER_STORE_CAN_BARRIER);
    place.once({barrier("alone", 0, 1)});
    for (int round = 0; round < 3; round++) { // it can be used again, at once
        for (uint64_t rank = 0; rank < 4; rank++) {
            place.expect_none();
            place.begin({barrier("step", 3 - rank, 4)}, rank);
        }
        unsigned seen = 0;
        for (int i = 0; i < 4; i++) {
            uint64_t tag = 0;
            CHECK(place.take(&tag).entry(0).number == 4);
            seen |= 1u << tag;
        }
        CHECK(seen == 15);
    }
    const uint64_t leaving = place.begin({barrier("step", 1, 12)}, 1);
    place.once({barrier("step", 1, 12)}, MUSTER_E_EXISTS).expect_text("barrier \"step\": rank 1 is there already");
    place.once({barrier("step", 0, 11)}, MUSTER_E_ARG).expect_text("of 11 members, others say 12");
    place.run({barrier("step", 2, 12)}, MUSTER_TIMEOUT, 20 * ms).expect_text("barrier \"step\"");
    check::expect(muster_store_cancel(place.store(), leaving), MUSTER_OK, "cancel"); // not present any more
    place.take(nullptr, MUSTER_E_CANCELED);
}

} // namespace

const std::vector<Case> wait_cases = {
    {"waits for keys", waits},
    {"many waits at a time", many_waits},
    {"waits end by deadline and cancel", ends_of_waits},
    {"threads that wait", threads_that_wait},
};
const std::vector<Case> queue_cases = {
    {"queues", queues},
    {"those who wait for a queue are served in order", those_who_wait_are_served_in_order},
    {"what is popped is popped once", what_is_popped_is_popped_once},
};
const std::vector<Case> meet_cases = {
    {"barriers", barriers},
};

} // namespace store_check
