// SPDX-License-Identifier: MIT
#include "plugin/session_address.hpp"

#include "base/percent.hpp"
#include "plugin/plugins.hpp"

#include <algorithm>

namespace muster {

namespace {
bool yes_or_no(const std::string &value) noexcept {
    return value == "yes" || value == "no";
}
} // namespace

Result<SessionAddress> session_address(const Context &context, const Address &address, bool upgrades) {
    SessionAddress own;
    own.full = address.text;
    if (context.settings.flags & MUSTER_CONTEXT_SEAL_ALWAYS) own.seal = SealPolicy::always;
    if (context.settings.flags & MUSTER_CONTEXT_NO_SEAL) own.seal = SealPolicy::never;
    own.upgrade = (context.settings.flags & MUSTER_CONTEXT_NO_UPGRADE) == 0;
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
            if (key == "seal") own.seal = value == "yes" ? SealPolicy::always : SealPolicy::never;
            if (key == "upgrade") own.upgrade = value == "yes";
        } else if (key == "direct" && upgrades) {
            own.direct = value;
        } else {
            if (own.foreign.empty()) own.foreign = key;
            std::string option = key + "=";
            percent_encode(option, value, "-_.~/:@,+*!$'()");
            if (!own.foreign_options.empty()) own.foreign_options += '&';
            own.foreign_options += option;
            own.text += separator + option;
            separator = '&';
        }
    }
    if (own.seal == SealPolicy::always) own.upgrade = false;
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

Result<void> call_on_loop(Context &context, Result<void> (*run)(void *body), void *body) noexcept {
    // On the stack of the caller, which waits until `done` is set: after that the loop does not access it any more.
    struct OnLoop final : TaskNode {
        Result<void> (*run)(void *);
        void *body;
        Signal *signal;
        Context *context;
        Result<void> result;
        std::atomic<bool> done{false}; // release after result is written; pairs with the waiting thread
        void call() noexcept {
            try {
                result = run(body);
            } catch (const std::bad_alloc &) {
                result = Error::make(MUSTER_E_NOMEM, "out of memory");
            }
        }
        void run_task() noexcept override {
            call();
            Context &in = *context;
            Signal &waited_on = *signal;
            done.store(true, std::memory_order_release);
            in.notify(waited_on);
        }
        void refuse_task() noexcept override {}
    } task;
    task.run = run;
    task.body = body;
    if (context.on_loop()) {
        task.call();
        return task.result;
    }
    const Ref<Context> alive(&context);
    task.context = &context;
    task.signal = &Plugins::of(context).called;
    if (!context.post(task)) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    for (;;) {
        const uint32_t seen = task.signal->seen();
        if (task.done.load(std::memory_order_acquire)) return task.result;
        Deadline endless(-1);
        (void)context.sleep(*task.signal, seen, endless); // refuses only the loop thread, which does not get here
    }
}

} // namespace muster
