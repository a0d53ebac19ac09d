// SPDX-License-Identifier: MIT
// Changes that are watched, and leases.
#include "store_check/harness.hpp"

#include <thread>

namespace store_check {

namespace {

void watches(const Place &place) {
    place.need(MUSTER_STORE_CAN_WATCH);
    const uint64_t begun = place.run({set("job/a", "1")}).revision();
    place.run({set("other", "x")});
    if (place.can(MUSTER_STORE_CAN_TRANSACT)) {
        place.run({set("job/b", "2"), remove("job/a")});
    } else {
        place.run({set("job/b", "2")});
        place.run({remove("job/a")});
    }
    const uint64_t last = place.run({set("job/b", "3")}).revision();
    muster_store *view = nullptr;
    check::expect(muster_store_view(place.store(), "job/", 4, &view, nullptr), MUSTER_OK, "a view");
    {
        const Place job(place.context(), view, "");
        // All changes of a request are returned together, however few are requested.
        std::vector<std::pair<std::string, std::string>> seen;
        uint64_t at = begun;
        while (at < last) {
            const Answer answer = job.run({watch("", at).count(1)});
            CHECK(answer.count() >= 1);
            for (uint64_t i = 0; i < answer.count(); i++) {
                const bool there = (answer.entry(i).flags & MUSTER_STORE_PRESENT) != 0;
                CHECK(answer.entry(i).version > at && answer.entry(i).version <= answer.revision());
                seen.emplace_back(answer.key(i), there ? answer.value(i) : "gone");
            }
            if (seen.size() == 1 && place.can(MUSTER_STORE_CAN_TRANSACT)) fail("half of a request was shown");
            at = answer.revision();
        }
        CHECK(seen.size() == 3);
        CHECK(seen[0].first == "b" && seen[0].second == "2");
        CHECK(seen[1].first == "a" && seen[1].second == "gone");
        CHECK(seen[2].first == "b" && seen[2].second == "3");
        job.once({watch("", at)}, MUSTER_AGAIN);
        job.begin({watch("", at)}, 9);
        place.run({set("other", "y")});
        job.expect_none();
        place.run({set("job/c", "4")});
        uint64_t tag = 0;
        const Answer answer = job.take(&tag);
        CHECK(tag == 9 && answer.count() == 1 && answer.key(0) == "c");
        answer.expect_holds(0, "4");
        // Of another store, perhaps.
        job.once({watch("", answer.revision() + 1000)}, MUSTER_E_STALE).expect_text("watch \"\"");
    }
    muster_store_release(view);
}

void no_change_is_missed(const Place &place) {
    place.need(MUSTER_STORE_CAN_WATCH);
    constexpr uint64_t count = 300;
    uint64_t at = place.run({set("n", "0")}).revision();
    std::thread writer([&] {
        for (uint64_t i = 1; i <= count; i++) place.try_run({set("n", std::to_string(i))});
    });
    uint64_t seen = 0;
    std::string wrong;
    while (seen < count && wrong.empty()) {
        const Answer answer = place.try_run({watch("", at)});
        if (answer.status() != MUSTER_OK) wrong = answer.text();
        for (uint64_t i = 0; i < answer.count() && wrong.empty(); i++)
            if (answer.value(i) != std::to_string(++seen))
                wrong = answer.value(i) + " in place of " + std::to_string(seen);
        at = answer.revision();
    }
    writer.join();
    if (!wrong.empty()) fail("%s", wrong.c_str());
    place.once({watch("", at)}, MUSTER_AGAIN);
}

void many_watches(const Place &place) {
    place.need(MUSTER_STORE_CAN_WATCH);
    constexpr uint64_t count = 40;
    const uint64_t begun = place.run({set("begun", "")}).revision();
    std::vector<std::string> names;
    for (uint64_t i = 0; i < count; i++) names.push_back(std::string("w").append(std::to_string(i)).append("/"));
    for (uint64_t i = 0; i < count; i++) place.begin({watch(names[i], begun)}, i);
    for (uint64_t i = 0; i < count; i++) place.run({set(names[i], names[i])});
    std::vector<bool> seen(count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t tag = 0;
        const Answer answer = place.take(&tag);
        CHECK(tag < count && !seen[tag]);
        seen[tag] = true;
        CHECK(answer.count() == 1 && answer.key(0) == names[tag]);
    }
}

// ---- leases
// ----------------------------------------------------------------------------------------------------------

// The names of the keys that are deleted next, after a revision.
std::vector<std::string> gone_behind(const Place &place, uint64_t &revision) {
    const Answer answer = place.run({watch("", revision)});
    std::vector<std::string> names;
    for (uint64_t i = 0; i < answer.count(); i++) {
        CHECK((answer.entry(i).flags & MUSTER_STORE_PRESENT) == 0);
        names.push_back(answer.key(i));
    }
    revision = answer.revision();
    return names;
}

void leases(const Place &place) {
    place.need(MUSTER_STORE_CAN_LEASE | MUSTER_STORE_CAN_WATCH | MUSTER_STORE_CAN_TRANSACT);
    const int64_t ttl = least_lease(place);
    Lease kept(place, ttl), manual(place, ttl, MUSTER_LEASE_MANUAL);
    CHECK(muster_lease_id(kept.get()) != muster_lease_id(manual.get()));
    uint64_t revision = place
                            .run({set("kept", "1").on(kept.get()), set("also", "2").on(kept.get()), add("kept", 1),
                                  set("manual", "3").on(manual.get())})
                            .revision();
    check::expect(muster_lease_keep(manual.get()), MUSTER_OK, "keep");
    const int64_t begun = check::now_ns();
    CHECK(gone_behind(place, revision) == std::vector<std::string>{"manual"}); // it is not renewed any more
    CHECK(check::now_ns() - begun > ttl / 2);
    place.once({set("manual", "4").on(manual.get())}, MUSTER_E_STALE).expect_text("set \"manual\": its lease is over");
    place.once({get("kept")}).expect_holds(0, "2"); // its time is over as well, but the library keeps it
    revision = place.run({set("also", "stays")}).revision();
    kept.release(); // now it ends after its time
    CHECK(gone_behind(place, revision) == std::vector<std::string>{"kept"});
    place.once({get("also")}).expect_holds(0, "stays");
    muster_lease *none = nullptr;
    check::expect(muster_store_lease(place.store(), ms - 1, 0, time_limit, &none, nullptr), MUSTER_E_ARG, "0.9 ms");
    check::expect(muster_store_lease(place.store(), second, 64, time_limit, &none, nullptr), MUSTER_E_ARG, "flags");
}

void a_lease_that_is_ended(const Place &place) {
    place.need(MUSTER_STORE_CAN_LEASE | MUSTER_STORE_CAN_WATCH);
    const Lease lease(place, 60 * second);
    uint64_t revision = 0;
    for (const char *const key : {"a", "b", "c"}) revision = place.run({set(key, "1").on(lease.get())}).revision();
    check::expect(muster_lease_end(lease.get(), time_limit, nullptr), MUSTER_OK, "end");
    CHECK(gone_behind(place, revision).size() == 3); // at one moment
    CHECK(place.once({Op(MUSTER_STORE_COUNT, "")}).entry(0).number == 0);
    check::expect(muster_lease_end(lease.get(), time_limit, nullptr), MUSTER_E_STALE, "end again");
    place.once({set("a", "2").on(lease.get())}, MUSTER_E_STALE);
    place.once({read("a")}).expect_absent(0);
}

void what_waits_goes_on_with_a_lease(const Place &place) {
    place.need(MUSTER_STORE_CAN_LEASE | MUSTER_STORE_CAN_WAIT);
    const Lease lease(place, 60 * second);
    place.begin({get("leader")}, 1);
    place.run({set("leader", "me").on(lease.get())});
    place.take(nullptr).expect_holds(0, "me");
    place.run({append("leader", "!")}); // the key keeps its lease
    check::expect(muster_lease_end(lease.get(), time_limit, nullptr), MUSTER_OK, "end");
    place.once({read("leader")}).expect_absent(0);
}

} // namespace

const std::vector<Case> watch_cases = {
    {"changes are watched from any revision", watches},
    {"no change is missed, none comes twice", no_change_is_missed},
    {"many watches at a time", many_watches},
};
const std::vector<Case> lease_cases = {
    {"keys go with their leases", leases},
    {"a lease that is ended takes its keys at one moment", a_lease_that_is_ended},
    {"what waits sees keys with leases", what_waits_goes_on_with_a_lease},
};

} // namespace store_check
