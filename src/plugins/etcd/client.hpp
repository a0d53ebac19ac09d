// SPDX-License-Identifier: MIT
#pragma once
// Calls to an etcd of several members: the member in use, the next one to try, tokens, and the timeout without an
// answer.
#include "base/back_off.hpp"
#include "http.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace etcd {

using Json = nlohmann::json;

// The result of a call. If it is not OK it is a Failure, with the code of gRPC if etcd has answered at all.
struct Reply {
    Failure failure;
    int code = 0;       // of gRPC
    bool doubt = false; // an attempt may have been applied
    Json body;
    bool ok() const noexcept { return failure.status == MUSTER_OK; }
};

// int64 values are strings, zeros are omitted.
uint64_t number_in(const Json &object, const char *name);
std::string bytes_in(const Json &object, const char *name); // base64
std::string text_in(const Json &object, const char *name);
bool is_true(const Json &object, const char *name);
uint64_t revision_in(const Json &answer); // of its header

struct Call {
    const char *path = nullptr;
    std::string body;
    std::function<void(Reply &)> then;
    int64_t begun_ns = 0;
    int attempts = 0;
    muster::BackOff back_off{40 * ms, 500 * ms};
    bool doubt = false, renewed = false;
    bool last = false; // it is not made again
    Transfer *transfer = nullptr;
    muster_timer *again = nullptr;
    class Client *client = nullptr;
};

// Loop thread only.
class Client {
  public:
    Client(const muster_host *host, Url url);
    ~Client();
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    // Every call may be made twice without harm: it is repeated until a member has answered, or until the timeout
    // without an answer.
    Call *call(const char *path, std::string body, std::function<void(Reply &)> then);
    void cancel(Call *call) noexcept;   // NULL has no effect
    void end_soon(Call *call) noexcept; // with the current attempt, or at once; NULL has no effect
    // A stream, which its user begins again, at the current state. `end`: it has ended, for the reason `why`.
    Transfer *stream(const char *path, std::string body, std::function<void(std::string_view)> line,
                     std::function<void(const Failure &why)> end);
    void cancel(Transfer *stream) noexcept { http_.cancel(stream); }
    void try_next() noexcept { current_ = (current_ + 1) % url_.endpoints.size(); } // the current one does not do
    void forget_token() noexcept { token_.clear(); }
    bool needs_token() const noexcept { return !url_.user.empty() && token_.empty(); } // a call requires one

    const Url &url() const noexcept { return url_; }
    const muster_host *host() const noexcept { return http_.host(); }
    uint64_t revision() const noexcept { return revision_; } // the latest one in an answer
    void saw(uint64_t revision) noexcept {
        if (revision > revision_) revision_ = revision;
    }

  private:
    static constexpr size_t max_at_a_time = 16;
    void begin_more();
    void begin(Call &call);
    void answered(Call &call, Transfer &transfer);
    void try_again(Call &call);
    void end(Call &call, Reply reply);
    void log_in();
    void logged_in(const Failure &how);

    const Url url_;
    Http http_;
    size_t current_ = 0;
    uint64_t revision_ = 0;
    std::string token_;
    Transfer *login_ = nullptr;
    std::unordered_map<Call *, std::unique_ptr<Call>> calls_;
    std::deque<Call *> waiting_;
    size_t under_way_ = 0;
};

} // namespace etcd
