// SPDX-License-Identifier: MIT
#include "plugin/session_address.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace muster {

namespace {
bool yes_or_no(const std::string &value) noexcept {
    return value == "yes" || value == "no";
}

std::string percent_encoded(const std::string &text) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (isalnum(byte) != 0 || (byte != 0 && strchr("-_.~/:@,+*!$'()", c) != nullptr)) {
            out += c;
        } else {
            out += '%';
            out += digits[byte >> 4];
            out += digits[byte & 15];
        }
    }
    return out;
}
} // namespace

Result<SessionAddress> session_address(const Context &context, const Address &address) {
    SessionAddress own;
    own.full = address.text;
    if (context.settings.flags & MUSTER_CONTEXT_SEAL_ALWAYS) own.seal = SealWish::always;
    if (context.settings.flags & MUSTER_CONTEXT_NO_SEAL) own.seal = SealWish::never;
    own.text = address.scheme + "://" + address.path;
    char separator = '?';
    for (const auto &[key, value] : address.options) {
        if (key == "auth") {
            if (value != "none")
                return Error::make(MUSTER_E_ADDRESS, "address %s: auth=%s, only auth=none is known", own.full.c_str(),
                                   value.c_str());
            own.auth = false;
        } else if (key == "seal" || key == "upgrade") {
            if (!yes_or_no(value))
                return Error::make(MUSTER_E_ADDRESS, "address %s: %s is yes or no, not %s", own.full.c_str(),
                                   key.c_str(), value.c_str());
            if (key == "seal") own.seal = value == "yes" ? SealWish::always : SealWish::never;
        } else {
            if (own.foreign.empty()) own.foreign = key;
            own.text += separator + key + "=" + percent_encoded(value);
            separator = '&';
        }
    }
    const size_t slash = address.path.find('/');
    own.authority = address.path.substr(0, slash);
    if (slash != std::string::npos) own.service = address.path.substr(slash + 1);
    return own;
}

bool valid_scheme(std::string_view scheme) noexcept {
    const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto known = [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '+' || c == '.' || c == '-'; };
    return !scheme.empty() && scheme.size() <= 31 && lower(scheme[0]) &&
           std::all_of(scheme.begin(), scheme.end(), known);
}

Result<void> run_on_loop(Context &context, std::function<Result<void>()> body) {
    struct Call final : Object {
        std::function<Result<void>()> body;
        Result<void> result;
        Signal signal;
        std::atomic<bool> done{false}; // release after result is written; pairs with the waiting thread
    };
    if (context.on_loop()) return body();
    const auto call = make_ref<Call>();
    call->body = std::move(body);
    const Ref<Context> alive(&context);
    const bool posted = context.post([&context, call] {
        try {
            call->result = call->body();
        } catch (const std::bad_alloc &) {
            call->result = Error::make(MUSTER_E_NOMEM, "out of memory");
        }
        call->done.store(true, std::memory_order_release);
        context.notify(call->signal);
    });
    if (!posted) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    for (;;) {
        const uint32_t seen = call->signal.seen();
        if (call->done.load(std::memory_order_acquire)) return call->result;
        Deadline endless(-1);
        if (const Status status = context.sleep(call->signal, seen, endless); status < 0)
            return Error::from_status(status);
    }
}

} // namespace muster
