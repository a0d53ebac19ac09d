// SPDX-License-Identifier: MIT
// The table of a store against a simple model of it: random requests, some of which wait, some of which are withdrawn,
// and for some of which memory runs out at a random point. Whatever ends has done what the model does, in the order in
// which it ended; whatever waits could not be done.
// ctest: quick timeout=120
#include "store/table/table.hpp"

#include "limited_memory.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

struct Spec { // an operation before it is bytes
    uint32_t kind = 0, condition = 0;
    std::string key, value, expected;
    uint64_t version = 0;
    int64_t number = 0;
    uint64_t lease = 0;
};

struct Waiter final : StoreWaiter {
    Waiter(StoreRequest what, std::vector<Spec> given) : StoreWaiter(std::move(what)), specs(std::move(given)) {}
    std::vector<Spec> specs;
};

std::unique_ptr<Waiter> make(const std::vector<Spec> &specs) {
    std::vector<muster_store_op> ops(specs.size());
    for (size_t i = 0; i < specs.size(); i++) {
        const Spec &s = specs[i];
        ops[i] = {s.kind,
                  s.condition,
                  s.key.data(),
                  s.key.size(),
                  s.value.data(),
                  s.value.size(),
                  s.expected.data(),
                  s.expected.size(),
                  s.version,
                  s.number,
                  s.lease,
                  0,
                  0};
    }
    auto request = StoreRequest::read(ops.data(), ops.size(), {});
    if (!request) fail_msg("%s", request.error().message);
    return std::make_unique<Waiter>(std::move(*request), specs);
}

// ---- the model: whole copies, no cleverness -------------------------------------------------------------------------

struct Record {
    std::string value;
    uint64_t version = 0, lease = 0;
};
struct Change {
    uint64_t revision;
    std::string key;
    std::optional<std::string> value;
};

struct Model {
    std::map<std::string, Record> keys;
    std::vector<Change> changes;
    std::set<uint64_t> leases;
    std::map<std::string, std::vector<std::string>> queues;
    uint64_t revision = 0;

    bool changed(const Spec &s) const {
        return std::any_of(changes.begin(), changes.end(),
                           [&](const Change &c) { return c.revision > s.version && c.key.starts_with(s.key); });
    }
    void end_lease(uint64_t lease) {
        leases.erase(lease);
        size_t before = keys.size();
        for (auto at = keys.begin(); at != keys.end();)
            if (at->second.lease == lease) {
                changes.push_back({revision + 1, at->first, {}});
                at = keys.erase(at);
            } else {
                ++at;
            }
        revision += keys.size() != before;
    }
    bool lacks(const Spec &s) const {
        if (s.kind == MUSTER_STORE_WATCH) return s.version <= revision && !changed(s);
        return (s.kind == MUSTER_STORE_GET || s.kind == MUSTER_STORE_WAIT) && keys.count(s.key) == 0;
    }
    bool can_go_on(const std::vector<Spec> &specs) const {
        std::map<std::string, size_t> taken;
        for (const Spec &s : specs) {
            const bool takes = s.kind == MUSTER_STORE_POP || s.kind == MUSTER_STORE_TRY_POP;
            const auto queue = queues.find(s.key);
            const size_t before = takes ? taken[s.key]++ : 0;
            if (s.kind == MUSTER_STORE_POP ? queue == queues.end() || queue->second.size() <= before : lacks(s))
                return false;
        }
        return true;
    }
    bool holds(const Spec &s) const {
        const auto found = keys.find(s.key);
        const bool there = found != keys.end();
        switch (s.condition) {
        case MUSTER_STORE_IF_ABSENT:
            return !there;
        case MUSTER_STORE_IF_PRESENT:
            return there;
        case MUSTER_STORE_IF_VALUE:
            return there && found->second.value == s.expected;
        case MUSTER_STORE_IF_VERSION:
            return (there ? found->second.version : 0) == s.version;
        default:
            return true;
        }
    }

    // What the table should answer, one line for each entry; changes the model if it is MUSTER_OK.
    std::pair<Status, std::string> run(const std::vector<Spec> &specs) {
        if (specs[0].kind == MUSTER_STORE_WATCH) return watch(specs[0]);
        for (const Spec &s : specs)
            if (!holds(s)) return {MUSTER_E_CHANGED, ""};
        Model after = *this;
        std::string lines;
        bool changed = false;
        for (size_t i = 0; i < specs.size(); i++) {
            const Spec &s = specs[i];
            const auto line = [&](bool there, uint64_t version, int64_t number, const std::string &value,
                                  const std::string &key = "") {
                lines += std::to_string(i) + (there ? " there " : " absent ") + std::to_string(version) + " " +
                         std::to_string(number) + " [" + key + "] [" + value + "]\n";
            };
            auto found = after.keys.find(s.key);
            const bool there = found != after.keys.end();
            auto &queue = after.queues[s.key];
            const bool writes =
                s.kind == MUSTER_STORE_SET || s.kind == MUSTER_STORE_ADD || s.kind == MUSTER_STORE_APPEND;
            if (writes && s.lease != 0 && leases.count(s.lease) == 0) return {MUSTER_E_STALE, ""};
            const auto write = [&](const std::string &value) {
                const uint64_t kept =
                    there && s.kind != MUSTER_STORE_SET && s.lease == 0 ? found->second.lease : s.lease;
                after.keys[s.key] = {value, revision + 1, kept};
                after.changes.push_back({revision + 1, s.key, value});
                changed = true;
            };
            switch (s.kind) {
            case MUSTER_STORE_NONE:
            case MUSTER_STORE_GET:
            case MUSTER_STORE_READ:
                line(there, there ? found->second.version : 0, 0, there ? found->second.value : "");
                break;
            case MUSTER_STORE_CHECK:
            case MUSTER_STORE_WAIT:
                line(there, there ? found->second.version : 0, 0, "");
                break;
            case MUSTER_STORE_SET:
                write(s.value);
                line(true, revision + 1, 0, "");
                break;
            case MUSTER_STORE_ADD: {
                char *end = nullptr;
                const std::string before = there ? found->second.value : "0";
                const int64_t sum = strtoll(before.c_str(), &end, 10) + s.number;
                if (*end != '\0' || before.empty()) return {MUSTER_E_ARG, ""};
                write(std::to_string(sum));
                line(true, revision + 1, sum, "");
                break;
            }
            case MUSTER_STORE_APPEND: {
                const std::string whole = (there ? found->second.value : "") + s.value;
                write(whole);
                line(true, revision + 1, static_cast<int64_t>(whole.size()), "");
                break;
            }
            case MUSTER_STORE_DELETE:
                line(there, 0, 0, "");
                if (there) {
                    after.keys.erase(found), changed = true;
                    after.changes.push_back({revision + 1, s.key, {}});
                }
                break;
            case MUSTER_STORE_COUNT: {
                int64_t count = 0;
                for (const auto &[key, record] : after.keys) count += key.starts_with(s.key);
                line(false, 0, count, "");
                break;
            }
            case MUSTER_STORE_LIST:
                for (const auto &[key, record] : after.keys)
                    if (key.starts_with(s.key)) line(true, record.version, 0, record.value, key);
                break;
            case MUSTER_STORE_PUSH:
                if (queue.size() >= static_cast<size_t>(s.number)) return {MUSTER_E_LIMIT, ""};
                queue.push_back(s.value);
                line(false, 0, static_cast<int64_t>(queue.size()), "");
                changed = true;
                break;
            case MUSTER_STORE_POP:
            case MUSTER_STORE_TRY_POP:
                line(!queue.empty(), 0, 0, queue.empty() ? "" : queue.front());
                if (!queue.empty()) queue.erase(queue.begin()), changed = true;
                break;
            case MUSTER_STORE_LENGTH:
                line(false, 0, static_cast<int64_t>(queue.size()), "");
                break;
            default:
                abort();
            }
        }
        std::erase_if(after.queues, [](const auto &one) { return one.second.empty(); });
        after.revision += changed;
        *this = std::move(after);
        return {MUSTER_OK, lines};
    }

    std::pair<Status, std::string> watch(const Spec &s) const {
        if (s.version > revision) return {MUSTER_E_STALE, ""};
        std::string lines;
        int64_t count = 0;
        uint64_t shown = 0;
        for (const Change &c : changes) {
            if (c.revision <= s.version || !c.key.starts_with(s.key)) continue;
            if (s.number != 0 && count >= s.number && c.revision != shown) break;
            count++;
            shown = c.revision;
            lines += (c.value ? "0 there " : "0 absent ") + std::to_string(c.revision) + " 0 [" + c.key + "] [" +
                     c.value.value_or("") + "]\n";
        }
        return {MUSTER_OK, lines};
    }
};

std::string lines_of(const StoreResult &result) {
    std::string lines;
    for (const StoreEntry &e : result.entries)
        lines += std::to_string(e.op) + (e.flags & MUSTER_STORE_PRESENT ? " there " : " absent ") +
                 std::to_string(e.version) + " " + std::to_string(e.number) + " [" +
                 std::string(e.key ? e.key->bytes() : "") + "] [" + std::string(e.value ? e.value->bytes() : "") +
                 "]\n";
    return lines;
}

// ---- random requests ------------------------------------------------------------------------------------------------

class Dice {
  public:
    explicit Dice(unsigned seed) : engine_(seed) {}
    size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine_); }
    bool once_in(size_t n) { return below(n) == 0; }

  private:
    std::mt19937 engine_;
};

std::string some_key(Dice &dice) {
    static const char *const keys[] = {"a", "ab", "b", "c"};
    return keys[dice.below(4)];
}
std::string some_value(Dice &dice) {
    static const char *const values[] = {"", "1", "-7", "x", "a value that is longer than a small string is"};
    return values[dice.below(5)];
}

std::vector<Spec> some_request(Dice &dice, const Model &model) {
    std::vector<Spec> specs(1 + (dice.once_in(2) ? 0 : dice.below(5)));
    for (Spec &s : specs) {
        s.kind = static_cast<uint32_t>(dice.below(MUSTER_STORE_LENGTH + 1));
        if (s.kind == MUSTER_STORE_KEYS) s.kind = MUSTER_STORE_LIST;
        if (specs.size() == 1 && dice.once_in(8)) {
            s = {MUSTER_STORE_WATCH, 0, dice.once_in(2) ? "" : some_key(dice), "", "", 0, 0, 0};
            s.version = model.revision - std::min<uint64_t>(model.revision, dice.below(4));
            if (dice.once_in(10)) s.version += 5;
            s.number = static_cast<int64_t>(dice.below(3));
            return specs;
        }
        s.key = some_key(dice);
        const bool queue = s.kind >= MUSTER_STORE_PUSH,
                   many = s.kind == MUSTER_STORE_COUNT || s.kind == MUSTER_STORE_LIST;
        if (s.kind == MUSTER_STORE_SET || s.kind == MUSTER_STORE_APPEND || s.kind == MUSTER_STORE_PUSH)
            s.value = some_value(dice);
        if (s.kind == MUSTER_STORE_ADD) s.number = static_cast<int64_t>(dice.below(9)) - 4;
        if (s.kind == MUSTER_STORE_PUSH) s.number = 3;
        const bool writes = s.kind == MUSTER_STORE_SET || s.kind == MUSTER_STORE_ADD || s.kind == MUSTER_STORE_APPEND;
        if (writes && dice.once_in(3) && !model.leases.empty())
            s.lease = *std::next(model.leases.begin(), static_cast<ptrdiff_t>(dice.below(model.leases.size())));
        if (writes && dice.once_in(40)) s.lease = 99999;
        if (queue || many || !dice.once_in(4)) continue;
        s.condition = static_cast<uint32_t>(1 + dice.below(4));
        if (s.condition == MUSTER_STORE_IF_VALUE) s.expected = some_value(dice);
        if (s.condition == MUSTER_STORE_IF_VERSION) {
            const auto found = model.keys.find(s.key);
            s.version = found != model.keys.end() && dice.once_in(2) ? found->second.version : dice.below(3);
        }
    }
    return specs;
}

void run_schedule(unsigned seed, bool memory_runs_out) {
    Dice dice(seed);
    Model model;
    StoreTable table(1 << 20);
    std::vector<std::unique_ptr<Waiter>> waiting;
    for (int step = 0; step < 400; step++) {
        List<StoreWaiter> over;
        std::unique_ptr<Waiter> fresh;
        if (!waiting.empty() && dice.once_in(12)) {
            const size_t which = dice.below(waiting.size());
            assert_true(table.withdraw(*waiting[which]));
            assert_false(table.withdraw(*waiting[which]));
            waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(which));
        } else if (dice.once_in(15)) {
            const uint64_t lease = table.grant(INT64_MAX);
            assert_true(model.leases.insert(lease).second);
            assert_true(table.keep(lease, static_cast<int64_t>(dice.below(1000))));
        } else if (!model.leases.empty() && dice.once_in(15)) {
            const uint64_t lease = *model.leases.begin();
            assert_true(table.end_lease(lease, MUSTER_STORE_LEASE_SILENT, over));
            assert_false(table.end_lease(lease, MUSTER_STORE_LEASE_SILENT, over));
            assert_false(table.keep(lease, 0));
            model.end_lease(lease);
        } else {
            fresh = make(some_request(dice, model));
            const size_t most = dice.below(20);
            if (memory_runs_out && dice.once_in(2)) allocations_left = static_cast<int>(most);
            table.submit(*fresh, over);
            allocations_left = -1;
            waiting.push_back(std::move(fresh));
        }
        while (StoreWaiter *const one = over.first()) {
            over.remove(*one);
            const auto at = std::find_if(waiting.begin(), waiting.end(), [&](const auto &w) { return w.get() == one; });
            assert_true(at != waiting.end());
            Waiter &ended = **at;
            if (ended.answer.error.status == MUSTER_E_NOMEM) {
                assert_true(memory_runs_out);
            } else {
                assert_true(model.can_go_on(ended.specs));
                const auto [status, lines] = model.run(ended.specs);
                assert_int_equal(ended.answer.error.status, status);
                if (status == MUSTER_OK) assert_string_equal(lines_of(*ended.answer.result).c_str(), lines.c_str());
                const bool whole = ended.specs[0].kind != MUSTER_STORE_WATCH || ended.specs[0].number == 0;
                if (status == MUSTER_OK && whole) assert_int_equal(ended.answer.result->revision, model.revision);
            }
            waiting.erase(at);
        }
        assert_int_equal(table.revision(), model.revision);
        assert_int_equal(table.keys(), model.keys.size());
        size_t bytes = 0;
        for (const auto &[key, record] : model.keys) bytes += key.size() + record.value.size() + 64;
        for (const auto &[name, queue] : model.queues)
            for (const std::string &value : queue) bytes += value.size() + 64;
        assert_int_equal(table.bytes(), bytes);
        for (const auto &w : waiting) assert_false(model.can_go_on(w->specs));
    }
    for (const auto &w : waiting) assert_true(table.withdraw(*w));
}

struct Lone { // one request and its end
    StoreTable &table;
    Status run(const Spec &spec) {
        List<StoreWaiter> over;
        waiter = make({spec});
        table.submit(*waiter, over);
        if (over.empty()) {
            assert_true(table.withdraw(*waiter));
            return MUSTER_AGAIN;
        }
        over.remove(*over.first());
        assert_true(over.empty());
        return waiter->answer.error.status;
    }
    std::unique_ptr<Waiter> waiter;
};

void test_what_is_not_remembered_is_told(void **) {
    StoreTable table(1 << 30);
    Lone lone{table, {}};
    for (size_t i = 0; i < StoreLog::max_changes; i++)
        assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "k", std::to_string(i), "", 0, 0, 0}), MUSTER_OK);
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "k", "", "", 0, 1, 0}), MUSTER_OK);
    assert_string_equal(lines_of(*lone.waiter->answer.result).c_str(), "0 there 1 0 [k] [0]\n");
    assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "k", "last", "", 0, 0, 0}), MUSTER_OK);
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "k", "", "", 0, 1, 0}), MUSTER_E_STALE);
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "k", "", "", 1, 1, 0}), MUSTER_OK);
    assert_string_equal(lines_of(*lone.waiter->answer.result).c_str(), "0 there 2 0 [k] [1]\n");
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "k", "", "", table.revision(), 1, 0}), MUSTER_AGAIN);
    const std::string large(8 << 20, 'x');
    assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "a", large, "", 0, 0, 0}), MUSTER_OK);
    const uint64_t before = table.revision();
    for (int i = 0; i < 2; i++) assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "a", large, "", 0, 0, 0}), MUSTER_OK);
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "a", "", "", before, 0, 0}), MUSTER_E_STALE);
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "a", "", "", before + 1, 0, 0}), MUSTER_OK);
}

// Also where the first page ends with the key that is the beginning of all others.
void test_pages_end(void **) {
    StoreTable table(1 << 20);
    Lone lone{table, {}};
    for (const char *const key : {"a", "ab", "abc", "b"})
        assert_int_equal(lone.run({MUSTER_STORE_SET, 0, key, "", "", 0, 0, 0}), MUSTER_OK);
    std::string behind, seen;
    for (int page = 0; page < 3; page++) {
        assert_int_equal(lone.run({MUSTER_STORE_KEYS, 0, "a", behind, "", 0, 1, 0}), MUSTER_OK);
        const StoreEntry &only = lone.waiter->answer.result->entries[0];
        assert_int_equal((only.flags & MUSTER_STORE_MORE) != 0, page < 2);
        behind = only.key->bytes();
        seen += behind + " ";
    }
    assert_string_equal(seen.c_str(), "a ab abc ");
    assert_int_equal(lone.run({MUSTER_STORE_KEYS, 0, "a", behind, "", 0, 1, 0}), MUSTER_OK);
    assert_int_equal(lone.waiter->answer.result->entries.size(), 0);
    // The start key is before the prefix.
    assert_int_equal(lone.run({MUSTER_STORE_KEYS, 0, "b", "a", "", 0, 1, 0}), MUSTER_OK);
    assert_int_equal(lone.waiter->answer.result->entries.size(), 1);
}

void test_leases_end_by_their_time(void **) {
    StoreTable table(1 << 20);
    Lone lone{table, {}};
    List<StoreWaiter> over;
    const uint64_t a = table.grant(100), b = table.grant(200);
    assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "a", "", "", 0, 0, a}), MUSTER_OK);
    assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "b", "", "", 0, 0, b}), MUSTER_OK);
    assert_int_equal(table.next_end_ns(), 100);
    assert_true(table.keep(a, 300));
    table.end_leases(199, over);
    assert_int_equal(table.keys(), 2);
    table.end_leases(200, over);
    assert_int_equal(table.keys(), 1);
    assert_int_equal(lone.run({MUSTER_STORE_SET, 0, "b", "", "", 0, 0, b}), MUSTER_E_STALE);
    assert_int_equal(table.next_end_ns(), 300);
    const auto watch = make({{MUSTER_STORE_WATCH, 0, "", "", "", table.revision(), 0, 0}});
    table.submit(*watch, over);
    assert_true(over.empty());
    allocations_left = 0; // the key is deleted nevertheless, and watchers have to read again
    table.end_leases(300, over);
    allocations_left = -1;
    assert_ptr_equal(over.first(), watch.get());
    over.remove(*watch);
    assert_true(over.empty());
    if (memory_can_run_out) assert_int_equal(watch->answer.error.status, MUSTER_E_STALE);
    assert_int_equal(table.keys(), 0);
    assert_int_equal(table.next_end_ns(), INT64_MAX);
    if (memory_can_run_out) assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "", "", "", 0, 0, 0}), MUSTER_E_STALE);
    assert_int_equal(lone.run({MUSTER_STORE_WATCH, 0, "", "", "", table.revision(), 0, 0}), MUSTER_AGAIN);
}

void test_as_the_model(void **) {
    for (unsigned seed = 1; seed <= 500; seed++) run_schedule(seed, false);
}

void test_while_memory_runs_out(void **) {
    for (unsigned seed = 1; seed <= 500; seed++) run_schedule(seed, true);
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_model),
        cmocka_unit_test(test_while_memory_runs_out),
        cmocka_unit_test(test_what_is_not_remembered_is_told),
        cmocka_unit_test(test_pages_end),
        cmocka_unit_test(test_leases_end_by_their_time),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
