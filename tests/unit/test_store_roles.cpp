// SPDX-License-Identifier: MIT
// The two of a pair in random schedules: deaths, restarts, pauses, partitions, links that break, what was not yet on
// the disk. Always: no two answer in one epoch, nobody reads less than was acknowledged before, and no acknowledged
// write is ever gone. When the faults end one serves, and the other is in sync.
// ctest: quick timeout=180
#include "schedules.hpp"
#include "store/standby/roles.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>

extern "C" {
#include <cmocka.h>
}

using namespace muster;
using namespace muster::test;

namespace {

constexpr int64_t ms = 1'000'000, second = 1'000'000'000, lease = second;

struct Shape {             // of a schedule
    bool same_host = true; // a refused dial shows that a process has ended
    bool keep[2] = {true, true};
    bool partitions = true;
    int events = 120;
};

struct Message {
    enum Kind { hi, hello, snapshot, note, beat, in_sync, confirm } kind;
    PairHello who = {};
    uint64_t number = 0;
    std::vector<int> log = {}; // of a snapshot
    int write = 0;
};

class Simulation {
  public:
    Simulation(uint64_t seed, const Shape &shape) : random_(seed), shape_(shape) {
        for (int i = 0; i < 2; i++) nodes_[i].index = i;
        start(nodes_[0], false);
        start(nodes_[1], true);
    }
    ~Simulation() { // what is on its way holds its link
        for (const auto &link : links_) {
            if (const auto open = link.lock()) open->on_way[0].clear(), open->on_way[1].clear();
        }
    }

    void run() {
        for (int i = 0; i < shape_.events; i++) {
            disturb();
            go_on(now_ + static_cast<int64_t>(below(600)) * ms);
        }
        come_together();
    }
    size_t acknowledged() const { return acknowledged_.size(); }
    uint64_t reigns() const { return reigns_.size(); }

  private:
    struct Link {
        bool open[2] = {true, true};
        int dialer = 0;
        int64_t next_ns[2] = {0, 0}; // to whom
        std::deque<std::function<void()>> on_way[2];
    };
    struct Sent {
        Message message;
        int64_t at_ns;
    };
    struct Held { // an answer
        uint64_t position;
        std::function<void()> give;
    };
    struct Node {
        int index = 0;
        PairMark disk_mark;
        std::vector<int> disk;
        bool disk_marked = true; // false: what is wanted may be there or not
        uint64_t life = 0;       // events of an earlier one are not for this
        std::optional<PairRoles> roles;
        std::vector<int> log;
        bool stopped = false;
        std::vector<std::function<void()>> later; // while it is stopped
        std::shared_ptr<Link> link, dialled;      // the latter: it has dialled
        bool dialling = false;
        uint64_t dials = 0;
        // of the serving server
        uint64_t position = 0, confirmed = 0, fed_at = 0;
        bool feeding = false;
        std::deque<Sent> unconfirmed;
        std::deque<Held> held;
        // of the standby
        uint64_t got = 0;
        PairHello other;
    };
    struct Timed {
        int64_t at_ns;
        uint64_t order;
        std::function<void()> run;
        bool operator<(const Timed &b) const { return std::tuple(at_ns, order) > std::tuple(b.at_ns, b.order); }
    };

    uint64_t below(uint64_t n) { return random_() % n; }
    void at(int64_t when, std::function<void()> run) { timed_.push({std::max(when, now_), order_++, std::move(run)}); }
    int64_t soon() { return now_ + 1 + static_cast<int64_t>(below(20)) * ms / 4; }
    void go_on(int64_t until) {
        while (!timed_.empty() && timed_.top().at_ns <= until) {
            Timed next = timed_.top();
            timed_.pop();
            now_ = next.at_ns;
            next.run();
        }
        now_ = until;
    }
    // Something that happens to a process as it is now; kept while it is stopped.
    void happen(Node &node, int64_t when, std::function<void()> what) {
        at(when, [this, &node, life = node.life, what = std::move(what)] {
            if (node.life != life) return;
            if (node.stopped) return node.later.push_back(what);
            what();
            look(node);
        });
    }
    bool keeps(const Node &node) const { return shape_.keep[node.index]; }

    // ---- processes ----
    void start(Node &node, bool standby) {
        node.life++;
        if (!keeps(node)) node.disk_mark = {}, node.disk.clear();
        PairRoles::Settings settings;
        settings.process[0] = static_cast<unsigned char>(node.index + 1);
        std::memcpy(settings.process.data() + 1, &node.life, sizeof node.life);
        settings.standby = standby;
        settings.keeps = keeps(node);
        settings.lease_ns = lease;
        node.log = node.disk;
        node.roles.emplace(settings, node.disk_mark);
        node.position = node.confirmed = node.got = 0;
        node.unconfirmed.clear();
        act(node, node.roles->start(now_));
        look(node);
        again(node);
    }
    // What was made as a pair's first is started as such again; in memory it has lost what it knew.
    void start_again(Node &node) {
        start(node, node.disk_mark.kind == PairMark::none ? node.index == 1 || !keeps(node) : below(2) == 0);
    }
    void again(Node &node) { // it looks at its clock now and then
        happen(node, now_ + 20 * ms, [this, &node] {
            if (now_ >= node.roles->look_at_ns()) act(node, node.roles->tick(now_));
            again(node);
        });
    }
    void kill(Node &node) {
        if (!node.roles) return;
        if (!node.disk_marked && keeps(node) && below(2) == 0) node.disk_mark = node.roles->wanted();
        node.disk_marked = true;
        node.roles.reset();
        node.life++;
        node.stopped = node.dialling = node.feeding = false;
        node.later.clear();
        node.held.clear();
        drop(node);
        leave_dialled(node);
    }
    void resume(Node &node) {
        node.stopped = false;
        auto later = std::exchange(node.later, {});
        const uint64_t life = node.life;
        for (auto &one : later) {
            if (node.life != life) return;
            one();
            look(node);
        }
    }

    // ---- links ----
    Node &other(Node &node) { return nodes_[1 - node.index]; }
    void send(Node &from, const std::shared_ptr<Link> &link, Message message) {
        Node &to = other(from);
        bring(link, to, [this, link, &to, message = std::move(message)] {
            if (link->open[to.index]) take(to, link, message);
        });
    }
    // In order; while the two are cut off from each other it stays on its way.
    void bring(const std::shared_ptr<Link> &link, Node &to, std::function<void()> what) {
        link->on_way[to.index].push_back(std::move(what));
        arrive(link, to.index, to.life);
    }
    void arrive(const std::shared_ptr<Link> &link, int whom, uint64_t life) {
        int64_t &next = link->next_ns[whom];
        next = std::max(next + 1, soon());
        at(next, [=, this] {
            Node &to = nodes_[whom];
            if (to.life != life || !to.roles) return;
            if (cut_) return stuck_.push_back([=, this] { arrive(link, whom, life); });
            const auto what = std::move(link->on_way[whom].front());
            link->on_way[whom].pop_front();
            if (to.stopped) return to.later.push_back(what);
            what();
            look(to);
        });
    }
    // A closed end: the other side is notified after the messages in transit.
    void close(Node &node, const std::shared_ptr<Link> &link) {
        if (!link->open[node.index]) return;
        link->open[node.index] = false;
        Node &to = other(node);
        bring(link, to, [this, link, &to] {
            if (!std::exchange(link->open[to.index], false)) return;
            if (to.link == link) lost(to);
        });
    }
    void lost(Node &node) {
        node.link.reset();
        node.feeding = false;
        if (node.roles) act(node, node.roles->lost(now_));
    }
    void drop(Node &node) {
        if (const auto link = std::exchange(node.link, nullptr)) close(node, link);
        node.feeding = false;
    }
    void dial(Node &node) {
        node.dialling = true;
        const uint64_t number = ++node.dials;
        happen(node, now_ + static_cast<int64_t>(below(200)) * ms, [this, &node, number] {
            if (number != node.dials) return;
            node.dialling = false;
            Node &to = other(node);
            if (!node.roles->looks_for_other() || cut_ || (to.roles && to.stopped)) return;
            if (!to.roles) {
                if (shape_.same_host) act(node, node.roles->other_is_dead(now_));
                return;
            }
            const auto link = std::make_shared<Link>();
            links_.push_back(link);
            link->dialer = node.index;
            send(node, link, {Message::hi});
            happen(node, now_ + second, [this, &node, link] { // it does not answer
                if (node.link != link) close(node, link);
            });
        });
    }
    PairHello hello_of(Node &node) {
        PairHello hello = node.roles->hello();
        hello.position = node.got;
        return hello;
    }

    // ---- what is said ----
    void take(Node &node, const std::shared_ptr<Link> &link, const Message &message) {
        PairRoles &roles = *node.roles;
        if (message.kind == Message::hi) {
            if (node.dialled) close(node, node.dialled);
            node.dialled = link;
            return say_hello(node, link);
        }
        if (message.kind == Message::hello) return meet(node, link, message.who);
        if (node.link != link) return;
        roles.heard(now_);
        switch (message.kind) {
        case Message::snapshot:
            node.log = node.disk = message.log;
            if (keeps(node)) node.disk_mark = roles.mark();
            node.got = message.number;
            roles.whole();
            break;
        case Message::note:
            node.log.push_back(message.write);
            if (keeps(node)) node.disk.push_back(message.write);
            node.got = message.number;
            break;
        case Message::beat:
            node.got = message.number;
            break;
        case Message::in_sync:
            node.got = message.number;
            return act(node, roles.take_in_sync(message.who.epoch, lease, "there", message.who.keeps));
        case Message::confirm:
            return confirmed(node, message.number);
        default:
            break;
        }
        if (below(4) != 0) return confirm(node); // or later, with more
        happen(node, now_ + 10 * ms, [this, &node] { confirm(node); });
    }
    void say_hello(Node &node, const std::shared_ptr<Link> &link) {
        Message hello{Message::hello};
        hello.who = hello_of(node);
        send(node, link, hello);
    }
    // The dialling side sends its hello after it has received that of the other, so that it is not a message of an
    // ended process.
    void meet(Node &node, const std::shared_ptr<Link> &link, const PairHello &who) {
        if (link->dialer == node.index) {
            if (node.link) return close(node, link);
            say_hello(node, link);
        } else if (node.dialled != link) {
            return close(node, link);
        }
        if (node.dialled == link) node.dialled = nullptr;
        if (node.link) {
            drop(node);
            act(node, node.roles->lost(now_));
        }
        leave_dialled(node);
        node.link = link;
        node.other = who;
        act(node, node.roles->met(who, true, now_));
    }
    // What was said there is not so any more.
    void leave_dialled(Node &node) {
        node.dials++;
        node.dialling = false;
        if (const auto link = std::exchange(node.dialled, nullptr)) close(node, link);
    }
    void confirm(Node &node) {
        if (!node.link || !node.roles->may_confirm()) return;
        node.roles->answered(now_);
        Message message{Message::confirm};
        message.number = node.got;
        send(node, node.link, message);
    }
    void forget_up_to(Node &node, uint64_t number) {
        node.confirmed = std::max(node.confirmed, number);
        while (!node.unconfirmed.empty() && node.unconfirmed.front().message.number <= number)
            node.unconfirmed.pop_front();
    }
    void confirmed(Node &node, uint64_t number) {
        for (const Sent &one : node.unconfirmed)
            if (one.message.number <= number) node.roles->confirmed(one.at_ns);
        forget_up_to(node, number);
        release(node);
        if (node.feeding && node.confirmed >= node.fed_at) act(node, node.roles->fed("here", node.other.keeps));
    }
    void put(Node &node, Message message) {
        if (!node.feeding && !node.roles->needs_the_other()) return;
        message.number = ++node.position;
        node.unconfirmed.push_back({message, now_});
        if (node.link) send(node, node.link, message);
    }

    // ---- what it is to do ----
    void act(Node &node, PairRoles::Actions actions) {
        PairRoles &roles = *node.roles;
        if (actions.link == PairRoles::Link::drop) drop(node), leave_dialled(node);
        if (actions.link == PairRoles::Link::feed) {
            node.feeding = true;
            node.unconfirmed.clear();
            node.confirmed = 0;
            Message all{Message::snapshot};
            all.log = node.log;
            node.position = 0;
            put(node, all);
            node.fed_at = node.position;
        } else if (actions.link == PairRoles::Link::follow) {
            node.log.clear();
            node.got = 0;
            roles.spoil();
        } else if (actions.link == PairRoles::Link::resume && roles.needs_the_other()) {
            forget_up_to(node, node.other.position); // which is no promise not to take over
            release(node);
            for (const Sent &one : node.unconfirmed) send(node, node.link, one.message);
            put(node, {Message::beat});
        }
        if (actions.mark) {
            node.disk_marked = false;
            happen(node, soon(), [this, &node, wanted = roles.wanted()] {
                if (keeps(node)) node.disk_mark = wanted;
                node.disk_marked = true;
                act(node, node.roles->marked(now_));
            });
        }
        if (actions.serve || actions.go_on) release(node);
        if (actions.step_down) node.held.clear();
        if (actions.in_sync) {
            Message in_sync{Message::in_sync};
            in_sync.who.epoch = roles.epoch();
            in_sync.who.keeps = keeps(node);
            put(node, in_sync);
            node.feeding = false;
        }
        if (actions.confirm) confirm(node);
    }
    void look(Node &node) {
        if (!node.roles || node.stopped) return;
        if (node.roles->looks_for_other() && !node.dialling) dial(node);
        if (node.roles->role() == PairRole::paired && node.link && now_ > beat_ns_[node.index] + lease / 4) {
            beat_ns_[node.index] = now_;
            put(node, {Message::beat});
        }
        if (node.feeding && now_ > beat_ns_[node.index] + lease / 4) {
            beat_ns_[node.index] = now_;
            put(node, {Message::beat});
        }
    }

    // ---- clients ----
    void answer(Node &node, std::function<void()> give) {
        const bool ready =
            !node.roles->needs_the_other() || (node.confirmed == node.position && node.roles->may_answer(now_));
        if (ready) return give();
        if (node.confirmed == node.position) put(node, {Message::beat});
        node.held.push_back({node.position, std::move(give)});
    }
    void release(Node &node) {
        while (!node.held.empty() && (!node.roles->needs_the_other() || node.held.front().position <= node.confirmed)) {
            const auto give = std::move(node.held.front().give);
            node.held.pop_front();
            give();
        }
    }
    void note_reign(Node &node) {
        const auto [reign, fresh] = reigns_.emplace(node.roles->epoch(), std::pair(node.index, node.life));
        if (!fresh && reign->second != std::pair(node.index, node.life) && !(reign->second.first == node.index))
            throw Broken{"two have answered in epoch " + std::to_string(reign->first)};
    }
    void write(Node &node) {
        if (!node.roles || node.stopped || !node.roles->lets_in()) return;
        const int what = ++writes_;
        node.log.push_back(what);
        if (keeps(node)) node.disk.push_back(what);
        Message note{Message::note};
        note.write = what;
        put(node, note);
        answer(node, [this, &node, what] {
            note_reign(node);
            acknowledged_.insert(what);
        });
    }
    void read(Node &node) {
        if (!node.roles || !node.roles->lets_in()) return;
        happen(node, soon(), [this, &node, before = acknowledged_] { // it was asked when that was acknowledged
            if (!node.roles->lets_in()) return;
            answer(node, [this, &node, before, log = node.log] {
                note_reign(node);
                if (!has_all(log, before)) throw Broken{"a read has seen less than was acknowledged before"};
            });
        });
    }
    static bool has_all(const std::vector<int> &log, const std::set<int> &writes) {
        const std::set<int> there(log.begin(), log.end());
        return std::includes(there.begin(), there.end(), writes.begin(), writes.end());
    }

    // ---- what befalls them ----
    // Without a folder, what one alone has acknowledged goes with its process.
    bool may_die(const Node &node) {
        if (shape_.keep[0] && shape_.keep[1]) return true;
        const Node &left = nodes_[1 - node.index];
        return node.roles && left.roles &&
               ((node.roles->role() == PairRole::paired && left.roles->role() == PairRole::standby) ||
                (left.roles->role() == PairRole::alone && !node.roles->serves()) ||
                (left.roles->role() == PairRole::paired && node.roles->role() == PairRole::standby));
    }
    void disturb() {
        Node &one = nodes_[below(2)];
        for (int i = 0; i < 3; i++) write(nodes_[below(2)]), read(nodes_[below(2)]);
        switch (below(12)) {
        case 0:
            if (may_die(one)) kill(one);
            break;
        case 1:
        case 2:
        case 3:
            if (!one.roles) start_again(one);
            break;
        case 4:
            if (one.roles) one.stopped = true;
            break;
        case 5:
        case 6:
            if (one.stopped) resume(one);
            break;
        case 7:
            if (shape_.partitions) cut_ = true;
            break;
        case 8:
        case 9:
            heal();
            break;
        case 10:
            if (one.link && !one.stopped) {
                const auto link = one.link;
                close(one, link);
                lost(one);
                look(one);
            }
            break;
        default:
            break;
        }
    }
    // A server that has ended without a folder cannot show its state: the operator has to decide.
    void somebody_decides() {
        Node &newer = nodes_[0].roles->epoch() > nodes_[1].roles->epoch() ? nodes_[0] : nodes_[1];
        PairRoles::Actions actions;
        if (!keeps(other(newer)) && newer.roles->go_alone(actions)) act(newer, actions);
    }
    void heal() {
        cut_ = false;
        auto stuck = std::exchange(stuck_, {});
        for (auto &one : stuck) one();
    }
    void come_together() {
        heal();
        for (Node &node : nodes_) {
            if (node.stopped) resume(node);
            if (!node.roles) start_again(node);
        }
        const auto together = [&] {
            for (Node &node : nodes_)
                if (node.roles->role() == PairRole::paired && other(node).roles->role() == PairRole::standby)
                    return node.index;
            return -1;
        };
        bool answered = false;
        for (int i = 0; i < 600 && !answered; i++) {
            if (i % 100 == 99) somebody_decides();
            go_on(now_ + 100 * ms);
            if (together() < 0) continue;
            write(nodes_[together()]);
            const int what = writes_;
            go_on(now_ + 200 * ms);
            answered = acknowledged_.count(what) != 0 && together() >= 0;
        }
        if (!answered)
            throw Broken{"they do not come together: " + std::to_string(static_cast<int>(nodes_[0].roles->role())) +
                         " and " + std::to_string(static_cast<int>(nodes_[1].roles->role()))};
        go_on(now_ + second);
        for (Node &node : nodes_)
            if (!has_all(node.log, acknowledged_)) throw Broken{"an acknowledged write is gone"};
    }

    std::mt19937_64 random_;
    const Shape shape_;
    int64_t now_ = second;
    uint64_t order_ = 0;
    std::priority_queue<Timed> timed_;
    Node nodes_[2];
    int64_t beat_ns_[2] = {0, 0};
    bool cut_ = false;
    std::vector<std::function<void()>> stuck_; // until the partition ends
    int writes_ = 0;
    std::vector<std::weak_ptr<Link>> links_;
    std::set<int> acknowledged_;
    std::map<uint64_t, std::pair<int, uint64_t>> reigns_;
};

void many(const char *name, const Shape &shape, uint64_t schedules) {
    size_t acknowledged = 0;
    uint64_t reigns = 0;
    const std::string fault = run_schedules(schedules, [&](uint64_t seed) {
        Simulation simulation(seed, shape);
        simulation.run();
        acknowledged += simulation.acknowledged();
        reigns += simulation.reigns();
    });
    if (!fault.empty()) fail_msg("%s, %s", name, fault.c_str());
    printf("%s: %llu schedules, %zu writes acknowledged, %llu epochs\n", name,
           static_cast<unsigned long long>(schedules), acknowledged, static_cast<unsigned long long>(reigns));
    assert_true(acknowledged > schedules * 5); // or nothing was tried
    assert_true(reigns > schedules);
}

void test_one_host(void **) {
    many("one host", {}, 400);
}
void test_two_hosts(void **) {
    Shape shape;
    shape.same_host = false;
    many("two hosts", shape, 400);
}
void test_in_memory(void **) {
    Shape shape;
    shape.keep[0] = shape.keep[1] = false;
    many("in memory", shape, 400);
}
void test_one_keeps(void **) {
    Shape shape;
    shape.keep[1] = false;
    many("one has a folder", shape, 400);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_one_host), cmocka_unit_test(test_two_hosts),
                                cmocka_unit_test(test_in_memory), cmocka_unit_test(test_one_keeps)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
