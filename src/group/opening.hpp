// SPDX-License-Identifier: MIT
#pragma once
// How a member finds the others and connects to them: their addresses, by a store, a list or another group, and a
// stream to each of them.
#include "group/group.hpp"
#include "group/hello.hpp"
#include "transport/hub.hpp"
#include "transport/listener.hpp"

#include <string>
#include <vector>

namespace muster {

// Used once, by one thread.
class Opening {
    Hub &hub_; // first: it initialises the source of random numbers

  public:
    // `within`: a group of the same members, or more, whose failure ends the wait; or NULL.
    Opening(Context &context, Deadline &deadline, Group *within = nullptr);
    Opening(const Opening &) = delete;
    Opening &operator=(const Opening &) = delete;
    ~Opening();

    Group::Settings settings;
    const uint64_t instance;
    uint64_t window_bytes = 256 * 1024; // of the streams of the group itself

    Result<void> listen(const std::string &address);
    std::string address() { return listener_->address(); }
    Result<void> exchange(muster_store *store); // addresses by the store; after listen()
    void forget(muster_store *store) noexcept;  // deletes the own address
    void ends_with_round(muster_store *store) noexcept { store_of_round_ = store; }
    void set_addresses(std::vector<std::string> addresses, std::vector<uint64_t> instances);
    Result<Ref<Group>> connect();
    // The streams to the other members, without a group; no queue watches them.
    Result<void> connect_streams();
    Result<void> meet_on_streams(); // after that; OK: every member has all its streams
    Group::Streams &streams() noexcept { return streams_; }

  private:
    std::string key(uint32_t rank) const { return settings.name + '/' + std::to_string(rank); }
    Result<void> read_records(muster_store *store, uint32_t first, uint32_t count);
    Error missing_records(muster_store *store);
    GroupHello hello() const;
    bool has_messages() const noexcept { return settings.flags & MUSTER_GROUP_MESSAGES; }
    // `tag`: the rank, with for_messages or without.
    Result<void> dial(Queue &queue, uint32_t tag);
    Result<void> add(Queue &queue, Ref<Stream> stream, bool was_dialled, uint32_t tag);
    Result<void> wait_for_streams(Queue &queue);
    Result<void> watch_round(Queue &queue);
    Error stream_ended(uint32_t tag) noexcept;
    Error missing_streams() const;

    Context &context_;
    Deadline &deadline_;
    const Ref<Group> within_;
    muster_store *store_of_round_ = nullptr;
    Ref<Listener> listener_;
    std::vector<std::string> addresses_;
    std::vector<uint64_t> instances_; // 0: not known
    Group::Streams streams_;
    uint32_t connected_ = 0;
    bool same_place_ = true, published_ = false;
};

} // namespace muster
