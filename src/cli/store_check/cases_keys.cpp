// SPDX-License-Identifier: MIT
// Keys, numbers, lists: what every store has. Conditions and requests of several operations.
#include "store_check/harness.hpp"

#include <atomic>
#include <thread>

namespace store_check {

namespace {

void one_key(const Place &place) {
    place.once({read("a")}).expect_absent(0);
    const Answer first = place.once({set("a", "first")});
    const uint64_t version = first.entry(0).version;
    CHECK(version != 0 && version == first.revision());
    Answer got = place.once({get("a")});
    got.expect_holds(0, "first");
    CHECK(got.entry(0).version == version);
    const Answer looked = place.once({Op(MUSTER_STORE_CHECK, "a")});
    CHECK(looked.entry(0).value_bytes == 0 && looked.entry(0).flags == MUSTER_STORE_PRESENT);
    CHECK(place.once({set("a", "first")}).entry(0).version > version); // the same value is a change all the same
    place.once({set("empty", "")});
    place.once({get("empty")}).expect_holds(0, "");
    CHECK(place.once({append("a", " and second")}).entry(0).number == 16);
    place.once({append("new", "tail")});
    place.once({read("a")}).expect_holds(0, "first and second");
    CHECK(place.once({remove("a")}).entry(0).flags == MUSTER_STORE_PRESENT);
    place.once({remove("a")}).expect_absent(0);
    place.once({read("a")}).expect_absent(0);
    CHECK(place.once({set("a", "again")}).entry(0).version > version); // versions are never reused
}

void any_bytes(const Place &place) {
    std::string every(256, '\0');
    for (size_t i = 0; i < every.size(); i++) every[i] = static_cast<char>(i);
    const std::string key = "k" + every;
    place.once({set(key, every)});
    place.once({get(key)}).expect_holds(0, every);
    const Answer listed = place.once({Op(MUSTER_STORE_LIST, std::string_view(key).substr(0, 3))});
    CHECK(listed.count() == 1 && listed.key(0) == key);
    listed.expect_holds(0, every);
    place.once({read(every.substr(0, 4))}).expect_absent(0);
}

void numbers(const Place &place) {
    place.once({add("n", 40)});
    CHECK(place.once({add("n", -82)}).entry(0).number == -42);
    place.once({get("n")}).expect_holds(0, "-42");
    place.once({set("n", "9223372036854775807")});
    place.once({add("n", 1)}, MUSTER_E_ARG).expect_text("add to \"n\": the sum does not fit");
    for (const char *const text : {"", "x", "1x", " 1", "+1", "9223372036854775808"}) {
        place.once({set("n", text)});
        CHECK(place.once({add("n", 1)}, MUSTER_E_ARG).count() == 0);
        place.once({get("n")}).expect_holds(0, text);
    }
}

void large_values(const Place &place) {
    std::string value(100'000, 'x');
    for (size_t i = 0; i < value.size(); i++) value[i] = static_cast<char>(i * 7 + i / 251);
    place.run({set("large", value)});
    place.run({get("large")}).expect_holds(0, value);
    const std::string long_key(4000, 'k');
    place.run({set(long_key, "v")});
    place.run({get(long_key)}).expect_holds(0, "v");
    // The largest that the library accepts; a store may refuse it as too large.
    const std::string largest(8 << 20, 'l');
    const Answer answer = place.try_run({set("largest", largest)});
    if (answer.status() == MUSTER_E_LIMIT)
        place.run({read("largest")}).expect_absent(0);
    else
        place.run({get("largest")}).expect_holds(0, largest);
}

void lists(const Place &place) {
    std::vector<std::string> keys, values;
    for (int i = 0; i < 25; i++) {
        keys.push_back(std::string("p/") + static_cast<char>('0' + i / 10) + static_cast<char>('0' + i % 10));
        values.push_back(std::string("v").append(std::to_string(i)));
    }
    for (size_t i = 0; i < keys.size(); i++) place.run({set(keys[i], values[i])});
    place.run({set("q", "beside")});
    CHECK(place.once({Op(MUSTER_STORE_COUNT, "p/")}).entry(0).number == 25);
    CHECK(place.once({Op(MUSTER_STORE_COUNT, "")}).entry(0).number == 26);
    CHECK(place.once({Op(MUSTER_STORE_COUNT, "none")}).entry(0).number == 0);
    CHECK(place.once({Op(MUSTER_STORE_LIST, "none")}).count() == 0);
    std::string last;
    size_t seen = 0;
    for (bool more = true; more;) {
        const Answer page = place.once({Op(MUSTER_STORE_LIST, "p/").with(last).count(10)});
        CHECK(page.count() == (seen < 20 ? 10u : 5u));
        for (uint64_t i = 0; i < page.count(); i++, seen++) {
            CHECK(page.key(i) == keys[seen]);
            page.expect_holds(i, values[seen]);
            CHECK(page.entry(i).version != 0);
            more = (page.entry(i).flags & MUSTER_STORE_MORE) != 0;
            CHECK(!more || i == page.count() - 1);
            last = page.key(i);
        }
    }
    CHECK(seen == keys.size());
    const Answer names = place.once({Op(MUSTER_STORE_KEYS, "p/1")});
    CHECK(names.count() == 10 && names.key(9) == "p/19" && names.entry(0).value_bytes == 0);
}

void views(const Place &place) {
    muster_store *job = nullptr, *round = nullptr;
    check::expect(muster_store_view(place.store(), "job/", 4, &job, nullptr), MUSTER_OK, "a view");
    check::expect(muster_store_view(job, "7/", 2, &round, nullptr), MUSTER_OK, "a view of a view");
    {
        const Place in_job(place.context(), job, ""), in_round(place.context(), round, "");
        in_round.once({set("rank", "3")});
        place.once({read("job/7/rank")}).expect_holds(0, "3");
        place.once({set("job/8", "other")});
        const Answer all = in_job.once({Op(MUSTER_STORE_LIST, "")});
        CHECK(all.count() == 2 && all.key(0) == "7/rank");
        const Answer names = in_round.once({Op(MUSTER_STORE_KEYS, "")});
        CHECK(names.count() == 1 && names.key(0) == "rank");
        const Answer behind = in_job.once({Op(MUSTER_STORE_KEYS, "").with("7/rank")});
        CHECK(behind.count() == 1 && behind.key(0) == "8");
        // A request with a timeout of 0 does not wait, whether the store can wait or not.
        in_round.once({get("missing")}, MUSTER_AGAIN).expect_text("get \"missing\": absent");
    }
    muster_store_release(round);
    muster_store_release(job);
}

void counters_of_many_threads(const Place &place) {
    constexpr int threads = 4, times = 50;
    std::atomic<int> failed{0};
    std::vector<std::thread> running;
    for (int i = 0; i < threads; i++)
        running.emplace_back([&] {
            for (int k = 0; k < times; k++) {
                if (place.try_run({add("sum", 1)}).status() != MUSTER_OK) failed++;
                if (place.try_run({append("marks", "m")}).status() != MUSTER_OK) failed++;
            }
        });
    for (std::thread &thread : running) thread.join();
    CHECK(failed == 0);
    place.once({get("sum")}).expect_holds(0, std::to_string(threads * times));
    CHECK(place.once({get("marks")}).entry(0).value_bytes == threads * times);
}

void what_it_lacks_is_refused(const Place &place) {
    const auto refused = [&](const std::vector<Op> &ops) { place.run(ops, MUSTER_E_UNSUPPORTED); };
    if (!place.can(MUSTER_STORE_CAN_TRANSACT)) {
        refused({set("a", "1"), set("b", "2")});
        refused({set("a", "1").under(MUSTER_STORE_IF_ABSENT)});
    }
    if (!place.can(MUSTER_STORE_CAN_QUEUE)) {
        refused({push("q", "v")});
        refused({pop("q")});
        refused({Op(MUSTER_STORE_LENGTH, "q")});
    }
    if (!place.can(MUSTER_STORE_CAN_WAIT)) refused({get("not there")});
    if (!place.can(MUSTER_STORE_CAN_WATCH)) refused({watch("", 0)});
    if (!place.can(MUSTER_STORE_CAN_BARRIER)) refused({barrier("b", 0, 1)});
    if (!place.can(MUSTER_STORE_CAN_LEASE)) {
        muster_lease *lease = nullptr;
        check::expect(muster_store_lease(place.store(), 60 * second, 0, time_limit, &lease, nullptr),
                      MUSTER_E_UNSUPPORTED, "a lease");
    }
    CHECK(place.once({Op(MUSTER_STORE_COUNT, "")}).entry(0).number == 0);
}

// ---- transactions
// ----------------------------------------------------------------------------------------------------

void conditions(const Place &place) {
    place.need(MUSTER_STORE_CAN_TRANSACT);
    const Answer refused = place.once({set("a", "1").under(MUSTER_STORE_IF_PRESENT)}, MUSTER_E_CHANGED);
    CHECK(refused.entry(0).flags == MUSTER_STORE_FAILED);
    refused.expect_text("set \"a\": the condition does not hold, it is absent");
    const uint64_t version = place.once({set("a", "1").under(MUSTER_STORE_IF_ABSENT)}).entry(0).version;
    const Answer there = place.once({set("a", "2").under(MUSTER_STORE_IF_ABSENT)}, MUSTER_E_CHANGED);
    CHECK(there.entry(0).flags == (MUSTER_STORE_FAILED | MUSTER_STORE_PRESENT));
    CHECK(there.value(0) == "1" && there.entry(0).version == version); // the same answer has the current value
    place.once({set("a", "2").if_value("0")}, MUSTER_E_CHANGED);
    const uint64_t second_version = place.once({set("a", "2").if_value("1")}).entry(0).version;
    place.once({set("a", "3").if_version(version)}, MUSTER_E_CHANGED);
    place.once({set("a", "3").if_version(second_version)});
    place.once({remove("a").if_version(0)}, MUSTER_E_CHANGED);
    place.once({remove("a").if_value("3")});
    place.once({set("a", "again").if_version(0)}); // 0: absent
    // Absent and empty are two things.
    place.once({set("b", "x").if_value("")}, MUSTER_E_CHANGED);
    place.once({set("b", "")});
    place.once({set("b", "x").if_value("")});
    // On operations that only read, and on numbers and texts that grow.
    place.once({read("b").if_value("y")}, MUSTER_E_CHANGED);
    place.once({read("b").if_value("x")}).expect_holds(0, "x");
    place.once({add("n", 5).under(MUSTER_STORE_IF_PRESENT)}, MUSTER_E_CHANGED);
    place.once({add("n", 5).under(MUSTER_STORE_IF_ABSENT)});
    place.once({append("b", "z").if_value("x")});
    place.once({read("b")}).expect_holds(0, "xz");
}

void all_or_nothing(const Place &place) {
    place.need(MUSTER_STORE_CAN_TRANSACT);
    place.once({set("there", "1")});
    const Answer refused = place.once({set("new", "x"), append("there", "2"), remove("there"), read("other"),
                                       Op(MUSTER_STORE_NONE, "lock").under(MUSTER_STORE_IF_PRESENT)},
                                      MUSTER_E_CHANGED);
    CHECK(refused.count() == 5);
    refused.expect_absent(0);
    refused.expect_holds(1, "1");
    CHECK(refused.entry(4).flags == MUSTER_STORE_FAILED);
    place.once({set("new", "x"), append("there", "2"), remove("there"), set("there", "3"), set("no number", "x"),
                add("no number", 1)},
               MUSTER_E_ARG);
    const Answer look = place.once({read("new"), read("there"), Op(MUSTER_STORE_COUNT, "")});
    look.expect_absent(0);
    look.expect_holds(1, "1");
    CHECK(look.entry(2).number == 1);
}

void in_order_with_one_revision(const Place &place) {
    place.need(MUSTER_STORE_CAN_TRANSACT);
    const uint64_t before = place.once({set("there", "1")}).revision();
    const Answer done = place.once({add("n", 2), add("n", 3), read("n"), remove("there"), read("there"),
                                    set("fresh", "f"), append("fresh", "g"), Op(MUSTER_STORE_LIST, ""), read("none")});
    CHECK(done.entry(0).number == 2 && done.entry(1).number == 5);
    done.expect_holds(2, "5");
    CHECK(done.entry(3).flags == MUSTER_STORE_PRESENT);
    done.expect_absent(4);
    CHECK(done.entry(6).number == 2);
    CHECK(done.count() == 10 && done.key(7) == "fresh" && done.key(8) == "n");
    done.expect_holds(7, "fg");
    done.expect_absent(9);
    CHECK(done.revision() > before && done.entry(0).version == done.revision());
    CHECK(done.entry(1).version == done.revision() && done.entry(6).version == done.revision());
    const Answer after = place.once({read("n"), read("fresh"), read("there")});
    CHECK(after.entry(0).version == done.revision() && after.entry(1).version == done.revision());
    after.expect_holds(1, "fg");
    after.expect_absent(2);
}

void compare_and_set_of_many_threads(const Place &place) {
    place.need(MUSTER_STORE_CAN_TRANSACT);
    constexpr int threads = 4, times = 25;
    std::atomic<int> failed{0};
    std::vector<std::thread> running;
    for (int i = 0; i < threads; i++)
        running.emplace_back([&] {
            for (int k = 0; k < times; k++)
                for (uint64_t version = 0, sum = 0;;) { // until it works
                    const std::string next = std::to_string(sum + 1);
                    const Answer answer = place.try_run({set("sum", next).if_version(version), add("same", 1)});
                    if (answer.status() == MUSTER_OK) break;
                    if (answer.status() != MUSTER_E_CHANGED) {
                        failed++;
                        break;
                    }
                    version = answer.entry(0).version;
                    sum = std::stoull(answer.value(0));
                }
        });
    for (std::thread &thread : running) thread.join();
    CHECK(failed == 0);
    const Answer sums = place.once({get("sum"), get("same")});
    sums.expect_holds(0, std::to_string(threads * times));
    sums.expect_holds(1, std::to_string(threads * times));
}

void several_lists_in_one_request(const Place &place) {
    place.need(MUSTER_STORE_CAN_TRANSACT);
    place.once({set("p/1", "1"), set("p/2", "2"), set("q", "3")});
    const Answer both = place.once(
        {Op(MUSTER_STORE_KEYS, "nothing"), Op(MUSTER_STORE_KEYS, "p/"), read("q"), Op(MUSTER_STORE_COUNT, "p/")});
    CHECK(both.count() == 4 && both.entry(0).op == 1 && both.entry(2).op == 2);
    CHECK(both.entry(0).value_bytes == 0);
    both.expect_holds(2, "3");
    CHECK(both.entry(3).number == 2);
}

} // namespace

const std::vector<Case> key_cases = {
    {"a key is set, read, appended to, deleted", one_key},
    {"keys and values are any bytes", any_bytes},
    {"numbers", numbers},
    {"large values, and limits that are told", large_values},
    {"lists in order, page by page", lists},
    {"views", views},
    {"counters of many threads lose nothing", counters_of_many_threads},
    {"what it lacks is refused, and nothing is done", what_it_lacks_is_refused},
};
const std::vector<Case> transaction_cases = {
    {"conditions", conditions},
    {"all or nothing", all_or_nothing},
    {"operations in order, with one revision", in_order_with_one_revision},
    {"compare and set of many threads", compare_and_set_of_many_threads},
    {"several lists in one request", several_lists_in_one_request},
};

} // namespace store_check
