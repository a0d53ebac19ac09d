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
    static std::atomic<uint64_t> latest{0}; // relaxed: it only has to be unique
    return latest.fetch_add(1, std::memory_order_relaxed) + 1;
}

Endpoint::Endpoint(const muster_host *host, Node &node)
    : host_(host), node_(node), local_listener_(host, accepted, this), remote_listener_(host, accepted, this) {}

Endpoint::~Endpoint() {
    if (spin_fd_ >= 0) ::close(spin_fd_);
}

muster_status Endpoint::start(muster_endpoint *endpoint, muster_error *error) {
    endpoint_ = endpoint;
    random_bytes(&missing_mark_, sizeof missing_mark_);
    spin_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (spin_fd_ < 0) return refuse(error, MUSTER_E_LIMIT, "no descriptor: %s", strerror(errno));
    slot_ = node_.acquire_slot(this);
    if (slot_ < 0) return refuse(error, MUSTER_E_LIMIT, "more than %d contexts of a process use mpi://", max_slots);
    if (host_->watch_fd(host_, spin_fd_, MUSTER_PLUGIN_READABLE, spun, this, &spin_watch_) != MUSTER_OK) {
        node_.release_slot(slot_);
        return refuse(error, MUSTER_E_NOMEM, "out of memory");
    }
    started_ = true;
    wake();
    return MUSTER_OK;
}

// Accepted messages are still sent for a moment; then the peers are notified of their number.
void Endpoint::stop() {
    if (!started_) return;
    constexpr int64_t moment_ns = 1'000'000'000;
    const int64_t until = now_ns() + moment_ns;
    for (int round = 0; sends_ != 0 && !failed_ && now_ns() < until; round++) {
        if (round % 64 == 0) receive_controls(); // the receivers may be waiting for a sign that this side polls
        const Node::Hold mpi(node_);
        if (!mpi) break;
        finish_sends();
        take_messages(); // or two that leave would wait for each other
        finish_receives();
    }
    started_ = false;
    for (auto &[id, link] : links_) {
        if (link->state == Link::State::open && link->sending.empty()) link->control.send(Control::goodbye, link->sent);
        abandon(*link);
        link->control.close();
    }
    {
        const Node::Hold mpi(node_);
        for (auto &[rank, queue] : receiving_)
            for (const Receiving &one : queue)
                if (!one.done) node_.adopt(one.request, one.buffer.data);
    }
    if (listener_ >= 0) {
        listener_users_ = 1;
        withdraw();
    }
    host_->stop_timer(boot_timer_);
    host_->unwatch_fd(spin_watch_);
    node_.release_slot(slot_);
}

void Endpoint::receive_controls() {
    std::vector<uint64_t> all;
    for (const auto &[id, link] : links_)
        if (link->state == Link::State::open) all.push_back(id);
    for (const uint64_t id : all)
        if (Link *const link = find(id)) link->control.receive();
    answer_pings();
}

// ---- names ----------------------------------------------------------------------------------------------------------

muster_status Endpoint::parse(const std::string &authority, int &rank, int &listener, muster_error *error) const {
    const size_t dot = authority.find('.');
    const auto number = [](const std::string &text, int &out) {
        if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return false;
        out = std::stoi(text);
        return true;
    };
    listener = 0;
    if (!number(authority.substr(0, dot), rank) ||
        (dot != std::string::npos && !number(authority.substr(dot + 1), listener)))
        return refuse(error, MUSTER_E_ADDRESS, "`%.40s` is no rank: it is a number from 0 to %d", authority.c_str(),
                      node_.size() - 1);
    if (rank >= node_.size())
        return refuse(error, MUSTER_E_UNREACHABLE, "there is no rank %d: this job has the ranks 0 to %d", rank,
                      node_.size() - 1);
    if (listener >= max_listeners)
        return refuse(error, MUSTER_E_UNREACHABLE, "no process has a listening context %d: at most %d", listener,
                      max_listeners);
    return MUSTER_OK;
}

// The first context of a process that listens is the rank; others are called rank.1, rank.2.
muster_status Endpoint::publish(const std::string &authority, std::string &out_authority, muster_error *error) {
    if (const std::string why = node_.failure(); !why.empty()) return refuse(error, MUSTER_E_CLOSED, "%s", why.c_str());
    int rank = node_.rank(), wanted = -1;
    if (!authority.empty())
        if (const muster_status status = parse(authority, rank, wanted, error); status != MUSTER_OK) return status;
    if (rank != node_.rank())
        return refuse(error, MUSTER_E_ADDRESS, "this process is rank %d, it cannot listen as rank %d", node_.rank(),
                      rank);
    if (listener_ < 0) {
        const int listener = node_.acquire_listener(wanted);
        if (listener < 0 && wanted >= 0)
            return refuse(error, MUSTER_E_EXISTS, "another context of this process listens as %s", authority.c_str());
        if (listener < 0)
            return refuse(error, MUSTER_E_LIMIT, "more than %d contexts of this process listen", max_listeners);
        muster_status status = local_listener_.open(node_.own_name(std::to_string(listener)), error);
        if (status == MUSTER_OK && was_ready_)
            if (const int fd = node_.port_socket(listener); fd >= 0) status = remote_listener_.open(fd, error);
        if (status != MUSTER_OK) {
            local_listener_.close();
            node_.release_listener(listener);
            return status;
        }
        listener_ = listener;
    } else if (wanted >= 0 && wanted != listener_) {
        return refuse(error, MUSTER_E_EXISTS, "this context listens as %d.%d already", node_.rank(), listener_);
    }
    listener_users_++;
    out_authority = std::to_string(node_.rank());
    if (listener_ != 0) out_authority.append(".").append(std::to_string(listener_));
    return MUSTER_OK;
}

void Endpoint::withdraw() {
    if (listener_users_ == 0 || --listener_users_ != 0) return;
    local_listener_.close();
    remote_listener_.close();
    node_.release_listener(listener_);
    listener_ = -1;
    for (auto &[id, link] : links_) // a later dial is then refused at once, and not by a session without a listener
        if (link->state == Link::State::open && link->listener < 0) link->control.send(Control::not_listening, 0);
}

muster_status Endpoint::resolve(const std::string &authority, uint64_t request, uint64_t &out_peer,
                                muster_error *error) {
    if (const std::string why = node_.failure(); !why.empty()) return refuse(error, MUSTER_E_CLOSED, "%s", why.c_str());
    int rank = 0, listener = 0;
    if (const muster_status status = parse(authority, rank, listener, error); status != MUSTER_OK) return status;
    if (Link *const link = dialled(rank, listener)) {
        // The peer may have left, and another one may listen in its place: the socket has that message by now.
        link->control.receive();
    }
    if (Link *const link = dialled(rank, listener)) {
        if (link->state == Link::State::open) {
            link->known = true;
            out_peer = link->id;
            return MUSTER_OK;
        }
        link->requests.push_back(request);
        return MUSTER_AGAIN;
    }
    if (!was_ready_) { // some rank has not loaded this yet
        waiting_.push_back({authority, request});
        wake();
        return MUSTER_AGAIN;
    }
    return call(rank, listener, request, error);
}

muster_status Endpoint::call(int rank, int listener, uint64_t request, muster_error *error) {
    auto made = std::make_unique<Link>(*this, new_link_id());
    Link &link = *made;
    link.rank = rank;
    link.listener = listener;
    link.requests.push_back(request);
    links_.emplace(link.id, std::move(made));
    muster_error why{};
    const muster_status status = link.control.connect(node_.listener_names(rank, listener), &why);
    if (status != MUSTER_OK) {
        drop(link);
        if (error != nullptr) error->os_errno = why.os_errno, error->rank = static_cast<uint32_t>(rank);
        return refuse(error, status, "rank %d does not listen (%s)", rank, why.message);
    }
    link.control.send_hello(hello_to(link));
    return MUSTER_AGAIN;
}

void Endpoint::became_ready() {
    was_ready_ = true;
    if (listener_ >= 0) {
        muster_error error{};
        const int fd = node_.port_socket(listener_);
        if (fd >= 0 && remote_listener_.open(fd, &error) != MUSTER_OK)
            log(host_, MUSTER_LOG_ERROR, "ranks of other hosts cannot reach this one: %s", error.message);
    }
    max_spin_ns_ = spin_ns_ = spin_for(node_);
    for (auto &[id, link] : links_) // a dialling peer has all hellos already
        if (link->hello_due) answer_hello(*link);
    for (const Request &one : std::exchange(waiting_, {})) {
        uint64_t peer = 0;
        muster_error error{};
        const muster_status status = resolve(one.authority, one.number, peer, &error);
        if (status != MUSTER_AGAIN)
            host_->resolved(endpoint_, one.number, status, peer, error.message, strlen(error.message));
    }
}

// ---- links ----------------------------------------------------------------------------------------------------------

Link::Link(Endpoint &endpoint, uint64_t id) : endpoint(endpoint), id(id), control(endpoint.host_, *this) {}

Link *Endpoint::find(uint64_t id) {
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second.get();
}

Link *Endpoint::dialled(int rank, int listener) {
    for (auto &[id, link] : links_)
        if (link->rank == rank && link->listener == listener && link->alive()) return link.get();
    return nullptr;
}

Hello Endpoint::hello_to(const Link &link) const {
    Hello hello{};
    hello.mark = hello_mark;
    memcpy(hello.token, node_.info(link.rank).token, sizeof hello.token);
    hello.rank = node_.rank();
    hello.slot = static_cast<uint32_t>(slot_);
    hello.link = link.id;
    return hello;
}

void Endpoint::accepted(void *self, int fd) {
    auto &endpoint = *static_cast<Endpoint *>(self);
    const auto among = [&](const auto &each) { return each.second->state == Link::State::accepted; };
    constexpr long max_accepted = 256; // connections that send nothing
    try {
        // The rank infos of the others are needed to identify peers; they will arrive in a moment.
        if (std::count_if(endpoint.links_.begin(), endpoint.links_.end(), among) >= max_accepted) {
            ::close(fd);
            return;
        }
        auto made = std::make_unique<Link>(endpoint, new_link_id());
        Link &link = *made;
        link.state = Link::State::accepted;
        endpoint.links_.emplace(link.id, std::move(made));
        if (link.control.adopt(fd) != MUSTER_OK) endpoint.drop(link);
    } catch (const std::bad_alloc &) {
        ::close(fd);
    }
}

void Link::on_hello(const Hello &hello) {
    const Node &node = endpoint.node_;
    const bool expected = state == State::accepted || (state == State::dialing && hello.rank == rank);
    unsigned char differs = 1;
    if (hello.mark == hello_mark && hello.rank >= 0 && hello.rank < node.size()) {
        differs = 0;
        for (size_t i = 0; i < sizeof hello.token; i++)
            differs |= static_cast<unsigned char>(hello.token[i] ^ node.own_token()[i]);
    }
    if (differs != 0 || !expected || hello.slot >= max_slots) return on_closed(EPROTO);
    rank = hello.rank;
    slot = hello.slot;
    remote_link = hello.link;
    if (state == State::accepted) {
        hello_due = true;
        if (endpoint.was_ready_) endpoint.answer_hello(*this);
        return;
    }
    state = State::open;
    endpoint.opened(*this);
    endpoint.answer(*this, MUSTER_OK, "");
}

// Bytes that stay on this host need not be sealed.
void Endpoint::opened(Link &link) {
    if (!node_.is_local(link.rank)) return;
    link.known = true; // from this call on
    host_->peer_flags(endpoint_, link.id, MUSTER_PLUGIN_LOCAL);
}

void Endpoint::answer_hello(Link &link) {
    link.hello_due = false;
    link.state = Link::State::open;
    opened(link);
    link.control.send_hello(hello_to(link));
}

void Endpoint::answer(Link &link, muster_status status, const char *text) {
    for (const uint64_t request : std::exchange(link.requests, {})) {
        if (status == MUSTER_OK) link.known = true;
        host_->resolved(endpoint_, request, status, link.id, text, strlen(text));
    }
}

void Link::on_closed(int os_errno) {
    control.close();
    if (state == State::accepted) return endpoint.drop(*this);
    if (state == State::dialing) {
        const std::string why = "rank " + std::to_string(rank) + " does not listen (" +
                                (os_errno != 0 ? strerror(os_errno) : "it hung up") + ")";
        endpoint.answer(*this, MUSTER_E_UNREACHABLE, why.c_str());
        return endpoint.drop(*this);
    }
    if (state != State::open) return;
    state = State::draining; // bytes that it had sent before are read first
    draining_since = received_at = now_ns();
    endpoint.wake();
}

void Endpoint::lose(Link &link, const std::string &why) {
    if (link.state == Link::State::lost) return;
    link.state = Link::State::lost;
    link.control.close();
    abandon(link);
    answer(link, MUSTER_E_UNREACHABLE, why.c_str());
    if (!link.known) return drop(link);
    host_->peer_lost(endpoint_, link.id, MUSTER_E_PEER, 0, why.data(), why.size());
}

void Endpoint::drop(Link &link) {
    const auto found = links_.find(link.id);
    link.control.close();
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
    for (const Request &one : std::exchange(waiting_, {}))
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
