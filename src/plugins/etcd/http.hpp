// SPDX-License-Identifier: MIT
#pragma once
// libcurl's multi interface on the library's loop: curl sets the descriptors and the time for which it waits.
#include "text.hpp"

#include <muster/plugin.h>

#include <curl/curl.h>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

namespace etcd {

// One POST in progress. Ends by done(), or by Http::cancel().
struct Transfer {
    std::string url, body, answer;
    std::function<void(Transfer &)> done;       // once, no other transfer's on the stack
    std::function<void(std::string_view)> line; // of a stream; may cancel the transfer
    CURL *easy = nullptr;
    CURLcode code = CURLE_OK;
    long status = 0;
    bool stream = false, too_much = false;
    bool never_sent = false; // nothing of it has reached the server
    bool fed = false;        // lines have arrived that were not reported yet
    class Http *http = nullptr;
    char why[CURL_ERROR_SIZE] = {};

    std::string text() const; // the reason why there is no answer

  private:
    friend class Http;
    bool unsent() const noexcept;
};

// Loop thread only.
class Http {
  public:
    Http(const muster_host *host, const Url &url);
    ~Http();
    Http(const Http &) = delete;
    Http &operator=(const Http &) = delete;

    Transfer *post(std::string url, std::string body, const std::string &token, bool stream,
                   std::function<void(Transfer &)> done, std::function<void(std::string_view)> line = {});
    void cancel(Transfer *transfer) noexcept;
    const muster_host *host() const noexcept { return host_; }

  private:
    static constexpr size_t max_idle = 8;
    static constexpr size_t max_answer = 64 << 20, max_line = 64 << 20;
    static int on_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *watch) noexcept;
    static int on_timer(CURLM *multi, long after_ms, void *self) noexcept;
    static size_t on_data(char *data, size_t size, size_t count, void *transfer) noexcept;
    void act(curl_socket_t fd, int events) noexcept;
    void collect() noexcept;
    void finish_soon() noexcept;
    void finish() noexcept; // reports lines, and transfers that are done
    template <class Body>
    void call_host(Body &&body) noexcept;
    void prepare(Transfer &transfer, const std::string &token);
    void drop(Transfer &transfer) noexcept; // from the multi

    struct Watched;
    const muster_host *const host_;
    const Url &url_;
    CURLM *multi_ = nullptr;
    muster_timer *timer_ = nullptr, *finishing_ = nullptr;
    std::unordered_map<Transfer *, std::unique_ptr<Transfer>> transfers_;
    std::unordered_map<curl_socket_t, std::unique_ptr<Watched>> watched_;
    std::deque<Transfer *> done_, fed_;
    std::vector<CURL *> idle_;
    struct Headers {
        curl_slist *list;
        std::string token;
    };
    std::vector<Headers> with_token_; // the last one is in use; those before it perhaps by transfers in progress
    curl_slist *headers_of(const std::string &token);
};

} // namespace etcd
