// SPDX-License-Identifier: MIT
// Names and links: who listens, who is called, who is lost.
#include "endpoint.hpp"

#include "error.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace mpi {

uint64_t new_link_id() {
    static std::atomic<uint64_t> latest{0}; // relaxed: a number nobody else has, no more
    return latest.fetch_add(1, std::memory_order_relaxed) + 1;
}

Endpoint::Endpoint(const muster_host *host, Node &node)
    : host_(host), node_(node), external_((host->flags & MUSTER_HOST_EXTERNAL) != 0), near_door_(host, visited, this),
      far_door_(host, visited, this) {}

Endpoint::~Endpoint() {
    if (spin_fd_ >= 0) ::close(spin_fd_);
}

muster_status Endpoint::start(muster_endpoint *endpoint, muster_error *error) {
    endpoint_ = endpoint;
    spin_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (spin_fd_ < 0) return refuse(error, MUSTER_E_LIMIT, "no descriptor: %s", strerror(errno));
    slot_ = node_.take_slot(this);
    if (slot_ < 0) return refuse(error, MUSTER_E_LIMIT, "more than %d contexts of a process use mpi://", slots_max);
    if (host_->watch_fd(host_, spin_fd_, MUSTER_PLUGIN_READABLE, spun, this, &spin_watch_) != MUSTER_OK) {
        node_.give_slot(slot_);
        return refuse(error, MUSTER_E_NOMEM, "out of memory");
    }
    started_ = true;
    wake();
    return MUSTER_OK;
}

// Whatever was accepted and does not go at once is tried for a moment; then the others are told how much there was.
void Endpoint::stop() {
    if (!started_) return;
    constexpr int64_t moment_ns = 1'000'000'000;
    const int64_t until = now_ns() + moment_ns;
    for (int round = 0; sends_ != 0 && !failed_ && now_ns() < until; round++) {
        if (round % 64 == 0) look_at_bells(); // the receivers may be waiting for a sign that we poll
        const Node::Hold mpi(node_);
        if (!mpi) break;
        finish_sends();
        take_messages(); // or two that leave would wait for each other
        finish_receives();
    }
    started_ = false;
    for (auto &[id, link] : links_) {
        if (link->state == Link::State::open && link->sending.empty()) link->bell.say(Word::goodbye, link->sent);
        abandon(*link);
        link->bell.close();
    }
    {
        const Node::Hold mpi(node_);
        for (auto &[rank, queue] : receiving_)
            for (const Receiving &one : queue)
                if (!one.done) node_.adopt(one.request, one.buffer.data);
    }
    if (door_ >= 0) {
        door_users_ = 1;
        withdraw();
    }
    host_->stop_timer(boot_timer_);
    host_->unwatch_fd(spin_watch_);
    node_.give_slot(slot_);
}

void Endpoint::look_at_bells() {
    std::vector<uint64_t> all;
    for (const auto &[id, link] : links_)
        if (link->state == Link::State::open) all.push_back(id);
    for (const uint64_t id : all)
        if (Link *const link = find(id)) link->bell.look();
    answer_pings();
}

// ---- names
// -----------------------------------------------------------------------------------------------------------

muster_status Endpoint::parse(const std::string &authority, int &rank, int &door, muster_error *error) const {
    const size_t dot = authority.find('.');
    const auto number = [](const std::string &text, int &out) {
        if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return false;
        out = std::stoi(text);
        return true;
    };
    door = 0;
    if (!number(authority.substr(0, dot), rank) ||
        (dot != std::string::npos && !number(authority.substr(dot + 1), door)))
        return refuse(error, MUSTER_E_ADDRESS, "`%.40s` is no rank: it is a number from 0 to %d", authority.c_str(),
                      node_.size() - 1);
    if (rank >= node_.size())
        return refuse(error, MUSTER_E_UNREACHABLE, "there is no rank %d: this job has the ranks 0 to %d", rank,
                      node_.size() - 1);
    if (door >= doors_max)
        return refuse(error, MUSTER_E_UNREACHABLE, "no process has a listening context %d: at most %d", door,
                      doors_max);
    return MUSTER_OK;
}

// The first context of a process that listens is the rank; others are called rank.1, rank.2.
muster_status Endpoint::publish(const std::string &authority, std::string &out_authority, muster_error *error) {
    if (const std::string why = node_.trouble(); !why.empty()) return refuse(error, MUSTER_E_CLOSED, "%s", why.c_str());
    int rank = node_.rank(), wanted = -1;
    if (!authority.empty())
        if (const muster_status status = parse(authority, rank, wanted, error); status != MUSTER_OK) return status;
    if (rank != node_.rank())
        return refuse(error, MUSTER_E_ADDRESS, "this process is rank %d, it cannot listen as rank %d", node_.rank(),
                      rank);
    if (door_ < 0) {
        const int door = node_.take_door(wanted);
        if (door < 0 && wanted >= 0)
            return refuse(error, MUSTER_E_EXISTS, "another context of this process listens as %s", authority.c_str());
        if (door < 0) return refuse(error, MUSTER_E_LIMIT, "more than %d contexts of this process listen", doors_max);
        muster_status status = near_door_.open(node_.own_name(std::to_string(door)), error);
        if (status == MUSTER_OK && was_ready_)
            if (const int fd = node_.port_socket(door); fd >= 0) status = far_door_.open(fd, error);
        if (status != MUSTER_OK) {
            near_door_.close();
            node_.give_door(door);
            return status;
        }
        door_ = door;
    } else if (wanted >= 0 && wanted != door_) {
        return refuse(error, MUSTER_E_EXISTS, "this context listens as %d.%d already", node_.rank(), door_);
    }
    door_users_++;
    out_authority = std::to_string(node_.rank());
    if (door_ != 0) out_authority.append(".").append(std::to_string(door_));
    return MUSTER_OK;
}

void Endpoint::withdraw() {
    if (door_users_ == 0 || --door_users_ != 0) return;
    near_door_.close();
    far_door_.close();
    node_.give_door(door_);
    door_ = -1;
    for (auto &[id, link] : links_) // who dials again is refused at the door, not by a session that finds no listener
        if (link->state == Link::State::open && link->door < 0) link->bell.say(Word::shut, 0);
}

muster_status Endpoint::resolve(const std::string &authority, uint64_t question, uint64_t &out_peer,
                                muster_error *error) {
    if (const std::string why = node_.trouble(); !why.empty()) return refuse(error, MUSTER_E_CLOSED, "%s", why.c_str());
    int rank = 0, door = 0;
    if (const muster_status status = parse(authority, rank, door, error); status != MUSTER_OK) return status;
    if (Link *const link = dialled(rank, door)) {
        // It may have left, and somebody else may listen in its place: that is in the socket by now.
        link->bell.look();
    }
    if (Link *const link = dialled(rank, door)) {
        if (link->state == Link::State::open) {
            link->known = true;
            out_peer = link->id;
            return MUSTER_OK;
        }
        link->questions.push_back(question);
        return MUSTER_AGAIN;
    }
    if (!was_ready_) { // some rank has not loaded this yet
        waiting_.push_back({authority, question});
        wake();
        return MUSTER_AGAIN;
    }
    return call(rank, door, question, error);
}

muster_status Endpoint::call(int rank, int door, uint64_t question, muster_error *error) {
    auto made = std::make_unique<Link>(*this, new_link_id());
    Link &link = *made;
    link.rank = rank;
    link.door = door;
    link.questions.push_back(question);
    links_.emplace(link.id, std::move(made));
    muster_error why{};
    const muster_status status = link.bell.connect(node_.reach(rank, door), &why);
    if (status != MUSTER_OK) {
        drop(link);
        if (error != nullptr) error->os_errno = why.os_errno, error->rank = static_cast<uint32_t>(rank);
        return refuse(error, status, "rank %d does not listen (%s)", rank, why.message);
    }
    link.bell.greet(greeting_to(link));
    return MUSTER_AGAIN;
}

void Endpoint::became_ready() {
    was_ready_ = true;
    if (door_ >= 0) {
        muster_error error{};
        const int fd = node_.port_socket(door_);
        if (fd >= 0 && far_door_.open(fd, &error) != MUSTER_OK)
            log(host_, MUSTER_LOG_ERROR, "ranks of other hosts cannot reach this one: %s", error.message);
    }
    spin_most_ns_ = spin_ns_ = spin_for(node_);
    for (auto &[id, link] : links_) // who calls has everybody's card already
        if (link->greeting_due) greet_back(*link);
    for (const Question &one : std::exchange(waiting_, {})) {
        uint64_t peer = 0;
        muster_error error{};
        const muster_status status = resolve(one.authority, one.number, peer, &error);
        if (status != MUSTER_AGAIN)
            host_->resolved(endpoint_, one.number, status, peer, error.message, strlen(error.message));
    }
}

// ---- links
// -----------------------------------------------------------------------------------------------------------

Link::Link(Endpoint &endpoint, uint64_t id) : endpoint(endpoint), id(id), bell(endpoint.host_, *this) {}

Link *Endpoint::find(uint64_t id) {
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second.get();
}

Link *Endpoint::dialled(int rank, int door) {
    for (auto &[id, link] : links_)
        if (link->rank == rank && link->door == door && link->alive()) return link.get();
    return nullptr;
}

Greeting Endpoint::greeting_to(const Link &link) const {
    Greeting greeting{};
    greeting.mark = greeting_mark;
    memcpy(greeting.token, node_.card(link.rank).token, sizeof greeting.token);
    greeting.rank = node_.rank();
    greeting.slot = static_cast<uint32_t>(slot_);
    greeting.link = link.id;
    return greeting;
}

void Endpoint::visited(void *self, int fd) {
    auto &endpoint = *static_cast<Endpoint *>(self);
    const auto among = [&](const auto &each) { return each.second->state == Link::State::visited; };
    constexpr long strangers_max = 256; // who connects and says nothing
    try {
        // The cards of the others are needed to tell who is who; they will be here in a moment.
        if (std::count_if(endpoint.links_.begin(), endpoint.links_.end(), among) >= strangers_max) {
            ::close(fd);
            return;
        }
        auto made = std::make_unique<Link>(endpoint, new_link_id());
        Link &link = *made;
        link.state = Link::State::visited;
        endpoint.links_.emplace(link.id, std::move(made));
        if (link.bell.adopt(fd) != MUSTER_OK) endpoint.drop(link);
    } catch (const std::bad_alloc &) {
        ::close(fd);
    }
}

void Link::greeted(const Greeting &greeting) {
    const Node &node = endpoint.node_;
    const bool expected = state == State::visited || (state == State::calling && greeting.rank == rank);
    unsigned char differs = 1;
    if (greeting.mark == greeting_mark && greeting.rank >= 0 && greeting.rank < node.size()) {
        differs = 0;
        for (size_t i = 0; i < sizeof greeting.token; i++)
            differs |= static_cast<unsigned char>(greeting.token[i] ^ node.own_token()[i]);
    }
    if (differs != 0 || !expected || greeting.slot >= slots_max) return hung_up(EPROTO);
    rank = greeting.rank;
    slot = greeting.slot;
    remote_link = greeting.link;
    if (state == State::visited) {
        greeting_due = true;
        if (endpoint.was_ready_) endpoint.greet_back(*this);
        return;
    }
    state = State::open;
    endpoint.opened(*this);
    endpoint.answer(*this, MUSTER_OK, "");
}

// What stays on this host need not be sealed.
void Endpoint::opened(Link &link) {
    if (!node_.near(link.rank)) return;
    link.known = true; // from this call on
    host_->peer_flags(endpoint_, link.id, MUSTER_PLUGIN_LOCAL);
}

void Endpoint::greet_back(Link &link) {
    link.greeting_due = false;
    link.state = Link::State::open;
    opened(link);
    link.bell.greet(greeting_to(link));
}

void Endpoint::answer(Link &link, muster_status status, const char *text) {
    for (const uint64_t question : std::exchange(link.questions, {})) {
        if (status == MUSTER_OK) link.known = true;
        host_->resolved(endpoint_, question, status, link.id, text, strlen(text));
    }
}

void Link::hung_up(int os_errno) {
    bell.close();
    if (state == State::visited) return endpoint.drop(*this);
    if (state == State::calling) {
        const std::string why = "rank " + std::to_string(rank) + " does not listen (" +
                                (os_errno != 0 ? strerror(os_errno) : "it hung up") + ")";
        endpoint.answer(*this, MUSTER_E_UNREACHABLE, why.c_str());
        return endpoint.drop(*this);
    }
    if (state != State::open) return;
    state = State::ebbing; // what it had sent before is read first
    ebb_began = heard_at = now_ns();
    endpoint.wake();
}

void Endpoint::lose(Link &link, const std::string &why) {
    if (link.state == Link::State::lost) return;
    link.state = Link::State::lost;
    link.bell.close();
    abandon(link);
    answer(link, MUSTER_E_UNREACHABLE, why.c_str());
    if (!link.known) return drop(link);
    host_->peer_lost(endpoint_, link.id, MUSTER_E_PEER, 0, why.data(), why.size());
}

void Endpoint::drop(Link &link) {
    const auto found = links_.find(link.id);
    link.bell.close();
    abandon(link);
    dropped_.push_back(std::move(found->second));
    links_.erase(found);
    wake(); // to free it
}

void Endpoint::lose_all(const std::string &why) {
    std::vector<uint64_t> all;
    for (const auto &[id, link] : links_) all.push_back(id);
    for (const uint64_t id : all)
        if (Link *const link = find(id)) lose(*link, why);
    for (const Question &one : std::exchange(waiting_, {}))
        host_->resolved(endpoint_, one.number, MUSTER_E_CLOSED, 0, why.data(), why.size());
}

// A link that is well is kept: the next dial finds it, and no more than the ranks can have one.
void Endpoint::forget(uint64_t peer) {
    Link *const link = find(peer);
    if (link == nullptr) return;
    link->known = false;
    if (link->state == Link::State::lost) drop(*link);
}

} // namespace mpi
