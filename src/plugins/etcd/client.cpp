// SPDX-License-Identifier: MIT
#include "client.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace etcd {

namespace {

// Codes of gRPC.
enum {
    invalid = 3,
    deadline = 4,
    not_found = 5,
    denied = 7,
    exhausted = 8,
    precondition = 9,
    unavailable = 14,
    unauthenticated = 16
};

// Canceled, unknown, aborted, internal and data loss: they do not exclude that the call was applied.
bool leaves_doubt(int code) noexcept {
    return code == 1 || code == 2 || code == 10 || code == 13 || code == 15;
}

muster_status status_of(int code, const std::string &text) {
    switch (code) {
    case not_found:
        return MUSTER_E_STALE;
    case denied:
        return MUSTER_E_PERMISSION;
    case exhausted:
        return MUSTER_E_LIMIT;
    case unauthenticated:
        return MUSTER_E_AUTH;
    case unavailable:
    case deadline:
        return MUSTER_E_UNREACHABLE;
    default:
        if (text.find("authentication failed") != std::string::npos || text.find("user name") != std::string::npos)
            return MUSTER_E_AUTH;
        if (text.find("too large") != std::string::npos || text.find("too many") != std::string::npos)
            return MUSTER_E_LIMIT;
        return MUSTER_E_PROTOCOL;
    }
}

std::string seconds_since(int64_t begun_ns) {
    char text[32];
    snprintf(text, sizeof text, "%.1f s", static_cast<double>(now_ns() - begun_ns) * 1e-9);
    return text;
}

} // namespace

uint64_t number_in(const Json &object, const char *name) {
    const auto found = object.find(name);
    if (found == object.end()) return 0;
    if (found->is_number_unsigned()) return found->get<uint64_t>();
    if (!found->is_string()) return 0;
    const auto &text = found->get_ref<const std::string &>();
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string bytes_in(const Json &object, const char *name) {
    std::string bytes;
    const auto found = object.find(name);
    if (found != object.end() && found->is_string()) from_base64(found->get_ref<const std::string &>(), bytes);
    return bytes;
}

std::string text_in(const Json &object, const char *name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_true(const Json &object, const char *name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

uint64_t revision_in(const Json &answer) {
    const auto header = answer.find("header");
    return header != answer.end() ? number_in(*header, "revision") : 0;
}

Client::Client(const muster_host *host, Url url) : url_(std::move(url)), http_(host, url_) {}

Client::~Client() {
    for (auto &[call, owned] : calls_) host()->stop_timer(call->again);
}

Call *Client::call(const char *path, std::string body, std::function<void(Reply &)> then) {
    auto made = std::make_unique<Call>();
    Call *const call = made.get();
    call->path = path;
    call->body = std::move(body);
    call->then = std::move(then);
    call->begun_ns = now_ns();
    call->client = this;
    calls_.emplace(call, std::move(made));
    waiting_.push_back(call);
    begin_more();
    return call;
}

void Client::cancel(Call *call) noexcept {
    const auto found = calls_.find(call);
    if (found == calls_.end()) return;
    if (call->transfer != nullptr) {
        http_.cancel(call->transfer);
        under_way_--;
    }
    host()->stop_timer(call->again);
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), call), waiting_.end());
    calls_.erase(found);
    begin_more();
}

void Client::end_soon(Call *call) noexcept {
    if (calls_.count(call) == 0 || std::exchange(call->last, true) || call->transfer != nullptr) return;
    const auto due = [](void *one) {
        Call &due_call = *static_cast<Call *>(one);
        Client &client = *due_call.client;
        client.host()->stop_timer(due_call.again);
        due_call.again = nullptr;
        client.end(due_call,
                   {{due_call.doubt ? MUSTER_E_PEER : MUSTER_E_UNREACHABLE, "cancelled"}, 0, due_call.doubt, {}});
    };
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), call), waiting_.end());
    host()->stop_timer(call->again);
    call->again = nullptr;
    if (host()->start_timer(host(), 0, 0, due, call, &call->again) == MUSTER_OK) return;
    waiting_.push_back(call); // one attempt more
    begin_more();
}

void Client::begin_more() {
    if (needs_token() && !waiting_.empty()) return log_in();
    while (under_way_ < max_at_a_time && !waiting_.empty()) {
        Call &next = *waiting_.front();
        waiting_.pop_front();
        begin(next);
    }
}

void Client::begin(Call &call) {
    call.attempts++;
    under_way_++;
    call.transfer = http_.post(url_.endpoints[current_] + call.path, call.body, token_, false,
                               [this, &call](Transfer &transfer) { answered(call, transfer); });
}

namespace {
// Every answer of etcd's begins with a header; that to a lease which is kept has it inside `result`.
bool is_of_etcd(const Json &body) {
    if (!body.is_object()) return false;
    const auto result = body.find("result");
    const Json &answer = result != body.end() && result->is_object() ? *result : body;
    const auto header = answer.find("header");
    return header != answer.end() && header->is_object();
}
} // namespace

void Client::answered(Call &call, Transfer &transfer) {
    under_way_--;
    call.transfer = nullptr;
    Reply reply;
    reply.doubt = call.doubt;
    if (transfer.too_much) {
        reply.failure = {MUSTER_E_LIMIT, "the answer is too large; ask for less at a time"};
        reply.doubt = true;
        return end(call, std::move(reply));
    }
    reply.body = transfer.code == CURLE_OK ? Json::parse(transfer.answer, nullptr, false) : Json();
    const bool accepted = transfer.code == CURLE_OK && transfer.status == 200;
    if (accepted && is_of_etcd(reply.body)) {
        saw(revision_in(reply.body));
        return end(call, std::move(reply));
    }
    if (accepted && reply.body.is_object()) { // a proxy, or another server: as if there were no answer
        reply.failure.text = "the answer is none of an etcd's: it has no header";
        reply.code = unavailable;
    } else if (reply.body.is_object()) {
        const auto code = reply.body.find("code");
        reply.code = code != reply.body.end() && code->is_number_integer() ? code->get<int>() : 0;
        reply.failure.text = text_in(reply.body, "error");
    } else if (transfer.code == CURLE_OK) {
        reply.failure.text = transfer.status == 404 ? "there is no /v3 there: no etcd, or one before 3.4"
                                                    : "HTTP status " + std::to_string(transfer.status);
        reply.code = transfer.status == 404 ? invalid : unavailable;
    } else {
        reply.failure.text = transfer.text();
        reply.code = unavailable;
    }
    reply.failure.status = status_of(reply.code, reply.failure.text);
    if (reply.code == unauthenticated && !url_.user.empty() && !call.renewed) {
        call.renewed = true; // tokens last some minutes
        token_.clear();
        waiting_.push_front(&call);
        return begin_more();
    }
    if (reply.code != unavailable && reply.code != deadline) {
        reply.doubt = reply.doubt || leaves_doubt(reply.code);
        return end(call, std::move(reply));
    }
    if (!transfer.never_sent) call.doubt = reply.doubt = true;
    if (!call.last && now_ns() - call.begun_ns < url_.timeout_ns) return try_again(call);
    reply.failure.status = call.doubt ? MUSTER_E_PEER : MUSTER_E_UNREACHABLE;
    reply.failure.text =
        url_.endpoints[current_] + ": " + reply.failure.text + "; tried for " + seconds_since(call.begun_ns);
    end(call, std::move(reply));
}

// Every member in turn; from the second round on with a pause.
void Client::try_again(Call &call) {
    try_next();
    const bool is_first_round = call.attempts < static_cast<int>(url_.endpoints.size());
    const int64_t pause = is_first_round ? 0 : call.back_off.next_ns();
    const auto due = [](void *one) {
        Call &due_call = *static_cast<Call *>(one);
        Client &client = *due_call.client;
        client.host()->stop_timer(due_call.again);
        due_call.again = nullptr;
        client.waiting_.push_back(&due_call);
        client.begin_more();
    };
    if (host()->start_timer(host(), pause, 0, due, &call, &call.again) != MUSTER_OK)
        end(call, {{MUSTER_E_NOMEM, "out of memory"}, 0, call.doubt, {}});
    begin_more();
}

void Client::end(Call &call, Reply reply) {
    const auto found = calls_.find(&call);
    const std::unique_ptr<Call> owned = std::move(found->second);
    calls_.erase(found);
    owned->then(reply);
    begin_more();
}

// ---- tokens ---------------------------------------------------------------------------------------------------------

void Client::log_in() {
    if (login_ != nullptr) return;
    const std::string body =
        Json{{"name", url_.user}, {"password", url_.password}}.dump(-1, ' ', false, Json::error_handler_t::replace);
    login_ =
        http_.post(url_.endpoints[current_] + "/v3/auth/authenticate", body, "", false, [this](Transfer &transfer) {
            login_ = nullptr;
            const Json answer = transfer.code == CURLE_OK ? Json::parse(transfer.answer, nullptr, false) : Json();
            if (!answer.is_object()) {
                try_next();
                return logged_in(
                    {MUSTER_E_UNREACHABLE, transfer.code == CURLE_OK ? "no answer of an etcd" : transfer.text()});
            }
            token_ = text_in(answer, "token");
            if (!token_.empty()) return logged_in({});
            const std::string why = text_in(answer, "error");
            if (why.find("not enabled") != std::string::npos) { // then no token is required
                token_ = "none";
                return logged_in({});
            }
            const auto code = answer.find("code");
            const int number = code != answer.end() && code->is_number_integer() ? code->get<int>() : 0;
            logged_in({number == unavailable ? MUSTER_E_UNREACHABLE : MUSTER_E_AUTH, "user " + url_.user + ": " + why});
        });
}

// The calls that wait for a token continue, or end; if there was no answer they are repeated until their timeout.
void Client::logged_in(const Failure &how) {
    if (how.status == MUSTER_OK) return begin_more();
    std::deque<Call *> waiting = std::move(waiting_);
    waiting_.clear();
    for (Call *const call : waiting) {
        if (calls_.count(call) == 0) continue; // it was cancelled meanwhile
        call->attempts++;
        if (how.status == MUSTER_E_UNREACHABLE && !call->last && now_ns() - call->begun_ns < url_.timeout_ns)
            try_again(*call);
        else
            end(*call, {how, 0, call->doubt, {}});
    }
}

// ---- streams --------------------------------------------------------------------------------------------------------

Transfer *Client::stream(const char *path, std::string body, std::function<void(std::string_view)> line,
                         std::function<void(const Failure &why)> end) {
    return http_.post(
        url_.endpoints[current_] + path, std::move(body), token_, true,
        [this, end = std::move(end)](Transfer &transfer) {
            if (transfer.too_much) return end({MUSTER_E_LIMIT, "a change that is too large"});
            const Json answer = Json::parse(transfer.answer, nullptr, false);
            const bool refused = transfer.code == CURLE_OK && transfer.status != 200;
            std::string why = transfer.code == CURLE_OK ? "the stream ended" : transfer.text();
            if (refused && answer.is_object()) why = text_in(answer, "error");
            const auto code = answer.is_object() ? answer.find("code") : answer.end();
            const int number = refused && code != answer.end() && code->is_number_integer()
                                   ? code->get<int>()
                                   : static_cast<int>(unavailable);
            if (number == unauthenticated) forget_token();
            end({status_of(number, why), why});
        },
        std::move(line));
}

} // namespace etcd
