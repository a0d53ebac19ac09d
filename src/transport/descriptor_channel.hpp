// SPDX-License-Identifier: MIT
#pragma once
// Passing of descriptors between processes of one user on one host (SCM_RIGHTS).
//
// A process that offers descriptors announces, inside an authenticated connection, the random name of an abstract Unix
// socket and a token for this one offer. The other process connects, shows the token, and is sent the descriptors. Each
// checks that the other belongs to the same user.
#include "transport/hub.hpp"
#include "transport/sockets.hpp"

#include <map>
#include <string_view>

namespace muster {

// Loop thread only, but for the static members: any thread.
class DescriptorChannel final : public ContextPart, private Watch {
  public:
    class Owner { // of an offer
      public:
        // A peer has shown the token; the offer is over. The socket is for send().
        virtual void token_shown(Fd socket) noexcept = 0;

      protected:
        ~Owner() = default;
    };

    static DescriptorChannel &of(Hub &hub);
    explicit DescriptorChannel(Hub &hub) : hub_(hub), object_(Ref<Anchor>::adopt(new Anchor)) {}
    // Makes an offer that ends with withdraw(), or once its token was shown. False: no descriptors for it.
    bool offer(Owner &owner, DescriptorOffer &out);
    void withdraw(const DescriptorOffer &offer) noexcept;
    void close() noexcept override;

    // The other side: connects and shows the token. Empty: not possible.
    static Fd connect(const DescriptorOffer &offer, uint32_t user) noexcept;

    static std::string random_digits(size_t count);
    // As sendmsg() without waiting: how many bytes, or -errno. `to`: of a datagram socket.
    static ssize_t send(int socket, std::string_view bytes, const int *descriptors, size_t count,
                        const SocketAddress *to = nullptr) noexcept;
    // As recv() without waiting. Any other number of descriptors than `count` is closed. `user`: of the sender, on a
    // socket with SO_PASSCRED.
    static ssize_t receive(int socket, void *data, size_t size, Fd *descriptors, size_t count,
                           uint32_t *user = nullptr) noexcept;

  private:
    class Visitor;
    struct Anchor final : Object {}; // the channel lives as long as the context
    using Token = decltype(DescriptorOffer::token);
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *object_; }
    bool listen();
    void accept_some() noexcept;
    void serve(const Token &token, Fd socket) noexcept;

    Hub &hub_;
    const Ref<Anchor> object_;
    Fd fd_;
    std::string name_;
    std::map<Token, Owner *> offers_;
    int visitors_ = 0;
    int64_t retry_until_ns_ = 0;
    Timer<DescriptorChannel, &DescriptorChannel::accept_some> retry_{*this};
};

} // namespace muster
