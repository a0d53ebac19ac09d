// SPDX-License-Identifier: MIT
#pragma once
// Where a peer that came by tcp fetches its shared memory: an abstract Unix socket of a random name, which is told only
// inside an authenticated connection, together with a token for that one connection.
#include "transport/greeter.hpp"

#include <map>

namespace muster {

// Loop thread only.
class PairBroker final : public ContextPart, private Watch {
  public:
    static PairBroker &of(Hub &hub);
    explicit PairBroker(Hub &hub) : hub_(hub), object_(Ref<Anchor>::adopt(new Anchor)) {}
    // Makes an offer that ends with withdraw(). False: no descriptors for it.
    bool offer(Greeter &greeter, PairOffer &out);
    void withdraw(const PairOffer &offer) noexcept;
    void close() noexcept override;

  private:
    class Visitor;
    struct Anchor final : Object {}; // the broker lives as long as the context
    using Token = std::array<unsigned char, 32>;
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *object_; }
    bool listen();
    void serve(const Token &token, Fd socket) noexcept;

    Hub &hub_;
    const Ref<Anchor> object_;
    Fd fd_;
    std::string name_;
    std::map<Token, Greeter *> offers_;
    int visitors_ = 0;
};

} // namespace muster
