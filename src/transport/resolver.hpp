// SPDX-License-Identifier: MIT
#pragma once
// Names are looked up on short-lived threads of the library: libc offers no call that does not block, and libuv's
// thread pool would be shared with everything else. At most a few at a time; a lookup that hangs delays no other.
#include "base/list.hpp"
#include "context/context.hpp"
#include "transport/sockets.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace muster {

using Found = std::function<void(Result<std::vector<SocketAddress>>)>; // throws nothing

// Loop thread; the answers are delivered there, too.
class Resolver final : public ContextPart {
  public:
    static Resolver &of(Context &context);
    explicit Resolver(Context &context) noexcept : context_(context) {}
    ~Resolver() override;
    // `found` runs once, unless the engine has stopped by then.
    void look_up(const std::string &host, int port, Found found);

  private:
    struct Job;
    void start(std::unique_ptr<Job> job) noexcept;
    void answer(Job &job) noexcept;

    Context &context_;
    List<Job> waiting_;
    int running_ = 0;
};

} // namespace muster
