// SPDX-License-Identifier: MIT
#pragma once
// The forwarder of a process: receives on the loop thread, and sends each message to its next hop.
#include "message_queue/message_queue.hpp"
#include "socket/socket.hpp"

#include <muster/forwarder.h>

#include <list>
#include <map>

namespace muster {

// The address table. One thread at a time.
class RouteTable {
  public:
    static constexpr size_t max_routes = 65536;
    bool add(uint64_t pattern, uint64_t next_hop); // false: it is full
    bool remove(uint64_t pattern) noexcept;
    // 0: no route. Only a route with exactly this destination, or else the first pattern that matches.
    uint64_t exact(uint64_t destination) const noexcept;
    uint64_t matching(uint64_t destination) const noexcept;

  private:
    struct Pattern {
        uint64_t pattern, next_hop;
    };
    std::unordered_map<uint64_t, uint64_t> exact_;
    std::vector<Pattern> patterns_; // those with wildcards, in the order in which they were added
};

class Forwarder final : public Object, private Source, private MessageQueue::RoomWaiter {
  public:
    struct Settings {
        uint32_t max_hops, max_waiting;
        Ref<MessageQueue> inbox;
        Ref<Queue> queue; // of the host, or none
        uint64_t tag;
    };
    static Result<Ref<Forwarder>> make(Context &context, Settings settings, Socket::Settings socket);

    const Settings settings;
    Context &context() const noexcept { return *context_; }
    Socket &socket() const noexcept { return *socket_; }
    bool forked() const noexcept { return context_->forked(); }

    Status add_route(uint64_t pattern, uint64_t next_hop);
    Status remove_route(uint64_t pattern) noexcept;
    Status set_hook(uint32_t type, MessageQueue *into);
    Result<void> send(Message &message, Deadline &deadline);
    void stats(muster_forwarder_stats &out) noexcept;
    Status close(Deadline &deadline);
    void host_release() noexcept;

  private:
    // A message that waits for room at its next hop, or in a message queue of the host.
    struct Waiting {
        Ref<Message> message;
        Ref<MessageQueue> queue;
        uint64_t next_hop = 0; // without a queue
    };
    using Place = std::pair<const MessageQueue *, uint64_t>;
    static Place place_of(const Waiting &one) noexcept { return {one.queue.get(), one.next_hop}; }
    Forwarder(Context &context, Settings what, Ref<Queue> own) noexcept
        : settings(std::move(what)), context_(&context), own_(std::move(own)) {}
    ~Forwarder() override;
    Object &owner() noexcept override { return *this; }
    void room_made() noexcept override;
    void turn() noexcept;
    void handle(muster_completion &entry, const Error &error) noexcept;
    bool receive_some() noexcept;
    void accept(Ref<Message> message) noexcept;
    bool place(Waiting &message, Error &why);
    uint64_t next_hop(uint64_t destination) noexcept;
    Status pass(Waiting &message, Error &why) noexcept;
    void retry() noexcept;
    void come_back(Ref<Message> message, const Error &why) noexcept;
    void end(Deadline &deadline, Status &status) noexcept;

    const Ref<Context> context_;
    const Ref<Queue> own_; // readiness of the socket, and messages that it returns; the loop thread takes them
    Ref<Socket> socket_;
    Signal settled_; // nothing waits

    std::mutex lock_; // guards the tables and the counters
    RouteTable routes_;
    std::map<uint32_t, Ref<MessageQueue>> hooks_;
    muster_forwarder_stats stats_{};

    std::mutex work_lock_; // guards what follows; comes before lock_ and those of the socket and of message queues
    std::map<Place, std::deque<Waiting>> waiting_; // none is empty
    size_t waiting_count_ = 0;
    bool has_more_ = false; // the socket may have messages
    bool closed_ = false;

    PostedTask<Forwarder, &Forwarder::turn> turn_{*this};
};

inline Forwarder *unwrap(muster_forwarder *handle) noexcept {
    return reinterpret_cast<Forwarder *>(handle);
}
inline muster_forwarder *wrap(Forwarder *object) noexcept {
    return reinterpret_cast<muster_forwarder *>(object);
}

} // namespace muster
