// SPDX-License-Identifier: MIT
#include "http.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace etcd {

struct Http::Watched {
    Http *http;
    curl_socket_t fd;
    muster_watch *watch;
};

bool Transfer::unsent() const noexcept {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
        return true;
    case CURLE_OPERATION_TIMEDOUT: {
        curl_off_t connected = 0; // 0: it never was
        curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
        return connected == 0;
    }
    default:
        return false;
    }
}

std::string Transfer::text() const {
    return why[0] != '\0' ? why : curl_easy_strerror(code);
}

Http::Http(const muster_host *host, const Url &url) : host_(host), url_(url), multi_(curl_multi_init()) {
    if (multi_ == nullptr) throw std::bad_alloc();
    idle_.reserve(max_idle);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 16L);
}

Http::~Http() {
    for (auto &[transfer, owned] : transfers_) drop(*transfer);
    transfers_.clear();
    for (CURL *const easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_); // it still calls the socket function
    for (auto &[fd, watched] : watched_) host_->unwatch_fd(watched->watch);
    host_->stop_timer(timer_);
    host_->stop_timer(finishing_);
    for (const Headers &headers : with_token_) curl_slist_free_all(headers.list);
}

curl_slist *Http::headers_of(const std::string &token) {
    if (!with_token_.empty() && with_token_.back().token == token) return with_token_.back().list;
    if (transfers_.empty()) { // the old ones are not in use
        for (const Headers &headers : with_token_) curl_slist_free_all(headers.list);
        with_token_.clear();
    }
    curl_slist *list = nullptr;
    const auto add = [&](const std::string &text) {
        curl_slist *const longer = curl_slist_append(list, text.c_str());
        if (longer == nullptr) {
            curl_slist_free_all(list);
            throw std::bad_alloc();
        }
        list = longer;
    };
    add("Content-Type: application/json");
    add("Expect:");
    add("Grpc-Metadata-hasleader: true"); // a member that is cut off from the others then fails the request
    if (!token.empty()) add("Authorization: " + token);
    with_token_.push_back({list, token});
    return list;
}

void Http::prepare(Transfer &transfer, const std::string &token) {
    CURL *const easy = transfer.easy;
    curl_easy_setopt(easy, CURLOPT_URL, transfer.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_of(token));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.body.data());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.why);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 2000L);
    if (!transfer.stream) curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 7000L); // etcd's own is 5 s and elections
    // A stream may be silent for a long time: the system checks whether the other side is alive.
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 10L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 3L);
    if (!url_.ca.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, url_.ca.c_str());
    if (!url_.cert.empty()) {
        curl_easy_setopt(easy, CURLOPT_SSLCERT, url_.cert.c_str());
        curl_easy_setopt(easy, CURLOPT_SSLKEY, url_.key.c_str());
    }
}

Transfer *Http::post(std::string url, std::string body, const std::string &token, bool stream,
                     std::function<void(Transfer &)> done, std::function<void(std::string_view)> line) {
    auto transfer = std::make_unique<Transfer>();
    Transfer *const made = transfer.get();
    made->url = std::move(url);
    made->body = std::move(body);
    made->done = std::move(done);
    made->line = std::move(line);
    made->stream = stream;
    made->http = this;
    transfers_.emplace(made, std::move(transfer));
    if (!idle_.empty()) {
        made->easy = idle_.back();
        idle_.pop_back();
    } else {
        made->easy = curl_easy_init();
    }
    try {
        if (made->easy == nullptr) throw std::bad_alloc();
        prepare(*made, token);
        if (curl_multi_add_handle(multi_, made->easy) != CURLM_OK) throw std::bad_alloc();
    } catch (...) {
        if (made->easy != nullptr) curl_easy_cleanup(made->easy);
        transfers_.erase(made);
        throw;
    }
    act(CURL_SOCKET_TIMEOUT, 0); // at once, not a turn of the loop later
    finish_soon();
    return made;
}

void Http::drop(Transfer &transfer) noexcept {
    if (transfer.easy == nullptr) return;
    curl_multi_remove_handle(multi_, transfer.easy);
    if (idle_.size() < max_idle) {
        curl_easy_reset(transfer.easy);
        idle_.push_back(transfer.easy);
    } else {
        curl_easy_cleanup(transfer.easy);
    }
    transfer.easy = nullptr;
}

void Http::cancel(Transfer *transfer) noexcept {
    const auto found = transfers_.find(transfer);
    if (found == transfers_.end()) return;
    done_.erase(std::remove(done_.begin(), done_.end(), transfer), done_.end());
    fed_.erase(std::remove(fed_.begin(), fed_.end(), transfer), fed_.end());
    drop(*transfer);
    transfers_.erase(found);
}

// ---- callbacks of curl ----------------------------------------------------------------------------------------------

int Http::on_socket(CURL *, curl_socket_t fd, int what, void *user, void *) noexcept {
    Http &self = *static_cast<Http *>(user);
    const auto found = self.watched_.find(fd);
    if (what == CURL_POLL_REMOVE) {
        if (found == self.watched_.end()) return 0;
        self.host_->unwatch_fd(found->second->watch);
        self.watched_.erase(found);
        return 0;
    }
    uint32_t events = 0;
    if (what & CURL_POLL_IN) events |= MUSTER_PLUGIN_READABLE;
    if (what & CURL_POLL_OUT) events |= MUSTER_PLUGIN_WRITABLE;
    if (found != self.watched_.end()) {
        self.host_->change_fd(found->second->watch, events);
        return 0;
    }
    try {
        auto watched = std::make_unique<Watched>(Watched{&self, fd, nullptr});
        Watched *const made = watched.get();
        self.watched_.emplace(fd, std::move(watched));
        const auto ready = [](void *one, uint32_t happened) {
            const Watched &w = *static_cast<Watched *>(one);
            int bits = 0;
            if (happened & (MUSTER_PLUGIN_READABLE | MUSTER_PLUGIN_HANGUP)) bits |= CURL_CSELECT_IN;
            if (happened & MUSTER_PLUGIN_WRITABLE) bits |= CURL_CSELECT_OUT;
            Http &http = *w.http;
            http.act(w.fd, bits); // perhaps this descriptor is watched no more
            http.finish();
        };
        if (self.host_->watch_fd(self.host_, fd, events, ready, made, &made->watch) == MUSTER_OK) return 0;
        self.watched_.erase(fd);
    } catch (const std::bad_alloc &) {
    }
    return -1; // the transfer fails
}

int Http::on_timer(CURLM *, long after_ms, void *user) noexcept {
    Http &self = *static_cast<Http *>(user);
    self.host_->stop_timer(self.timer_);
    self.timer_ = nullptr;
    if (after_ms < 0) return 0;
    const auto due = [](void *one) {
        Http &http = *static_cast<Http *>(one);
        http.host_->stop_timer(http.timer_);
        http.timer_ = nullptr;
        http.act(CURL_SOCKET_TIMEOUT, 0);
        http.finish();
    };
    return self.host_->start_timer(self.host_, after_ms * ms, 0, due, &self, &self.timer_) == MUSTER_OK ? 0 : -1;
}

size_t Http::on_data(char *data, size_t size, size_t count, void *user) noexcept {
    Transfer &transfer = *static_cast<Transfer *>(user);
    const size_t bytes = size * count;
    if (transfer.answer.size() + bytes > (transfer.stream ? max_line : max_answer)) {
        transfer.too_much = true;
        return 0;
    }
    try {
        transfer.answer.append(data, bytes);
        if (transfer.stream && !transfer.fed && memchr(data, '\n', bytes) != nullptr) {
            transfer.http->fed_.push_back(&transfer);
            transfer.fed = true;
        }
        return bytes;
    } catch (const std::bad_alloc &) {
        return 0;
    }
}

void Http::act(curl_socket_t fd, int events) noexcept {
    int running = 0;
    curl_multi_socket_action(multi_, fd, events, &running);
    collect();
}

void Http::collect() noexcept {
    int left = 0;
    while (const CURLMsg *const message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        char *user = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
        auto *const transfer = reinterpret_cast<Transfer *>(user);
        transfer->code = message->data.result;
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &transfer->status);
        done_.push_back(transfer);
    }
}

// Not during a call of the user.
void Http::finish_soon() noexcept {
    if ((done_.empty() && fed_.empty()) || finishing_ != nullptr) return;
    const auto due = [](void *one) {
        Http &http = *static_cast<Http *>(one);
        http.host_->stop_timer(http.finishing_);
        http.finishing_ = nullptr;
        http.finish();
    };
    host_->start_timer(host_, 0, 0, due, this, &finishing_);
}

// Out of memory: the user is not notified, and has a deadline.
template <class Body>
void Http::call_host(Body &&body) noexcept {
    try {
        body();
    } catch (const std::exception &why) {
        host_->log(host_, MUSTER_LOG_ERROR, why.what(), strlen(why.what()));
    }
}

// The callbacks of users may post and cancel.
void Http::finish() noexcept {
    while (!fed_.empty() || !done_.empty()) {
        if (!fed_.empty()) {
            Transfer *const transfer = fed_.front();
            fed_.pop_front();
            transfer->fed = false;
            std::string text = std::move(transfer->answer);
            const size_t whole = text.rfind('\n') + 1;
            transfer->answer = text.substr(whole);
            for (size_t at = 0; at < whole;) {
                const size_t end = text.find('\n', at);
                const auto line = transfer->line;
                call_host([&] { line(std::string_view(text).substr(at, end - at)); });
                at = transfers_.count(transfer) != 0 ? end + 1 : whole;
            }
            continue;
        }
        Transfer *const transfer = done_.front();
        done_.pop_front();
        const auto found = transfers_.find(transfer);
        const std::unique_ptr<Transfer> owned = std::move(found->second);
        transfers_.erase(found);
        owned->never_sent = owned->unsent();
        drop(*owned);
        call_host([&] { owned->done(*owned); });
    }
}

} // namespace etcd
