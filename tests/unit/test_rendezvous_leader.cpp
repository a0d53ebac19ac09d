// SPDX-License-Identifier: MIT
// The leader against a real table of a store, with answers that come in the order the test wants.
#include "rendezvous/machine/leader.hpp"
#include "store/table/table.hpp"

#include <csetjmp>
#include <cstdarg>
#include <memory>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

struct Waiter final : StoreWaiter {
    using StoreWaiter::StoreWaiter;
};

// A member that leads, as its leader sees it: requests are kept until the test lets the store do them.
class World final : public LeaderHost {
  public:
    struct Asked {
        uint64_t detail;
        AskOps ops;
        std::unique_ptr<Waiter> request = {}; // once the store has it
    };
    World() {
        lease_ = table_.grant(INT64_MAX);
        term_ = do_now({{MUSTER_STORE_SET, keys::leader, "a"}}).result->entries[0].version;
    }
    ~World() {
        for (Asked &one : asked_)
            if (one.request && one.request->hangs()) table_.withdraw(*one.request);
    }

    StoreAnswer do_now(const AskOps &ops) {
        const std::unique_ptr<Waiter> request = made(ops);
        List<StoreWaiter> over;
        table_.submit(*request, over);
        while (over.pop_front() != nullptr) continue;
        return request->answer;
    }
    void member_seeks(const std::string &id, uint64_t ticket) {
        MemberRecord record;
        record.ticket = ticket;
        record.lease = lease_;
        record.address = record.order_key = id;
        do_now({{MUSTER_STORE_SET, keys::member(id), record.write()}});
    }
    Leader &lead(const RunConfig &config) {
        leader_ = std::make_unique<Leader>(*this, "a", config, Hosting{}, Leader::default_ops, true, term_, 0);
        leader_->begin(table_.revision(), {}, 0, {}, 0, false, Note::How::dead);
        return *leader_;
    }
    // All that was asked is done and answered, but for a request to make a round, which is done and not answered.
    void go_on() {
        for (bool again = true; again;) {
            again = false;
            for (Asked &one : asked_) {
                if (!one.request) submit(one);
                if (one.request->hangs() || makes_round(one)) continue;
                again = true;
                answer(one);
                break;
            }
            leader_->go_on(0);
        }
    }
    // The request to make a round, if there is one.
    Asked *round_asked() {
        for (Asked &one : asked_)
            if (makes_round(one)) return &one;
        return nullptr;
    }
    void answer(Asked &one) {
        const Asked done = std::move(one);
        std::erase_if(asked_, [&](const Asked &other) { return &other == &one; });
        leader_->answer(done.detail, done.ops, done.request->answer);
    }

  private:
    static bool makes_round(const Asked &one) { return one.ops.size() > 1 && one.ops[1].key == keys::round; }
    static std::unique_ptr<Waiter> made(const AskOps &ops) {
        auto request = make_request(ops, {});
        assert_true(static_cast<bool>(request));
        return std::make_unique<Waiter>(std::move(*request));
    }
    void submit(Asked &one) {
        one.request = made(one.ops);
        List<StoreWaiter> over;
        table_.submit(*one.request, over);
        while (over.pop_front() != nullptr) continue;
    }
    void ask_for_leader(uint64_t detail, AskOps ops) override { asked_.push_back({detail, std::move(ops)}); }
    void lease_for_leader(uint64_t, int64_t) override { fail_msg("there is no last call"); }
    void end_lease_of_leader(uint64_t) override {}
    void dial_for_leader(uint32_t, const std::string &) override {}
    void leader_sees(std::string_view, bool, uint64_t, uint64_t, std::string_view) override {}
    void leader_ends() override { fail_msg("it was not replaced"); }
    void leader_fails(const Error &error) override { fail_msg("%s", error.message); }

    StoreTable table_{uint64_t{1} << 30};
    uint64_t lease_ = 0, term_ = 0;
    std::vector<Asked> asked_;
    std::unique_ptr<Leader> leader_;
};

// The leader was stopped, for instance, and sees the abort by its watch before the answer to the request that made the
// round. A member of the aborted round that does not join again does not prevent the next round.
void test_an_abort_seen_before_the_answer_that_made_the_round_counts(void **) {
    World world;
    world.member_seeks("a", 1);
    world.member_seeks("b", 1);
    Leader &leader = world.lead({2, 2, -1, {}});
    world.go_on();
    World::Asked *const first = world.round_asked();
    assert_non_null(first);

    RoundRecord aborted = *RoundRecord::read(first->ops[1].value);
    aborted.aborted = true;
    const StoreAnswer done = world.do_now({{MUSTER_STORE_SET, keys::round, aborted.write()}});
    world.member_seeks("a", 2); // and "b" does not
    world.member_seeks("c", 1);
    leader.see_round(aborted, done.result->entries[0].version);
    world.answer(*first);
    world.go_on();

    World::Asked *const second = world.round_asked();
    assert_non_null(second);
    assert_int_equal(RoundRecord::read(second->ops[1].value)->attempt.number, 2);
    assert_int_equal(second->request->answer.error.status, MUSTER_OK);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_an_abort_seen_before_the_answer_that_made_the_round_counts),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
