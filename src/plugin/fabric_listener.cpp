// SPDX-License-Identifier: MIT
// Listening over a fabric: the authority is asked for, now or later, and streams may be had without the fabric, too.
#include "base/back_off.hpp"
#include "plugin/fabric.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr size_t authority_max = 1024;
} // namespace

// Waits on the calling thread for the answer of the plug-in; while the name service is unreachable and the timeout is
// not over, it tries again.
Result<Ref<TransportListener>> Fabric::listen(const Address &address, const TransportOptions &options,
                                              Ref<ListenerCore> core) {
    Result<SessionAddress> own = session_address(context_, address, upgrades());
    if (!own) return own.error();
    if (const Result<void> checked = check(*own, true); !checked) return checked.error();
    const auto listener = make_ref<FabricListener>(*this, *own, options, std::move(core));
    Deadline until(options.retry_ns);
    BackOff back_off(5'000'000, 200'000'000);
    for (;;) {
        const Result<void> done = publish(listener);
        if (done) return Ref<TransportListener>(listener);
        const int64_t pause = back_off.next_ns();
        if (done.status() != MUSTER_E_UNREACHABLE || options.retry_ns == 0 || until.left() <= pause)
            return done.error();
        if (context_.pause(pause) != MUSTER_OK) return done.error();
    }
}

Result<void> Fabric::publish(const Ref<FabricListener> &listener) {
    const auto publishing = make_ref<Publishing>();
    Result<void> begun = run_on_loop(context_, [&]() -> Result<void> {
        begin_publishing(listener, publishing);
        return {};
    });
    if (!begun) return begun;
    Deadline endless(-1); // the plug-in answers, or the context closes
    const Status status = publishing->result.wait(context_, endless);
    if (status == MUSTER_OK) return publishing->result.value();
    // The loop thread cannot wait for itself.
    if (const Ref<FabricListener> unpublished = std::move(publishing->listener))
        services_.erase(listener->wanted_.service);
    return Error::make(status, "listen %s: this thread has to serve the transport it would wait for",
                       listener->wanted_.full.c_str());
}

void Fabric::begin_publishing(const Ref<FabricListener> &listener, const Ref<Publishing> &publishing) {
    const SessionAddress &wanted = listener->wanted_;
    if (Result<void> started = ensure_started(); !started) return end_publishing(*publishing, started);
    if (services_.count(wanted.service) != 0)
        return end_publishing(
            *publishing,
            Error::make(MUSTER_E_EXISTS, "listen %s: this process has such a service already", wanted.full.c_str()));
    // Nothing after publish() needs memory.
    char text[authority_max];
    listener->authority_.reserve(sizeof text);
    listener->address_.reserve(scheme_.size() + 3 + sizeof text + 1 + wanted.service.size());
    const std::string name = authority(wanted);
    const uint64_t question = next_question_++;
    publishing_.emplace(question, publishing);
    services_.emplace(wanted.service, listener);
    publishing->listener = listener;
    uint64_t text_bytes = 0;
    Error error;
    const Status status = timed(plugin_, "publish", [&] {
        return ops_.publish(self_, name.data(), name.size(), question, text, &text_bytes, &error);
    });
    if (status == MUSTER_AGAIN) return;
    if (status == MUSTER_OK)
        published(question, status, text, text_bytes);
    else
        published(question, status, error.message, strnlen(error.message, sizeof error.message));
}

void Fabric::published(uint64_t question, Status status, const char *text, size_t text_bytes) {
    const auto found = publishing_.find(question);
    if (found == publishing_.end())
        return context_.log(MUSTER_LOG_ERROR, "%s answered a publish that was over", plugin_.name());
    const Ref<Publishing> publishing = std::move(found->second);
    publishing_.erase(found);
    const Ref<FabricListener> listener = publishing->listener;
    if (status != MUSTER_OK) {
        Error error = Error::make(status, "%.*s", static_cast<int>(std::min<size_t>(text_bytes, 300)), text);
        if (listener) error = plugin_error(plugin_, error, status, "listen", listener->wanted_.full);
        error.status = std::min(error.status, -1);
        return end_publishing(*publishing, error);
    }
    if (text_bytes == 0 || text_bytes > authority_max) {
        Error error =
            Error::make(MUSTER_E_PLUGIN, "listen: %s answered with an authority of %zu bytes, it has 1 to %zu",
                        plugin_.name(), text_bytes, authority_max);
        return end_publishing(*publishing, error);
    }
    if (!listener) { // no thread waits any more
        withdrawn_.emplace_back(text, std::min(text_bytes, authority_max));
        tidy_.post(context_);
        return end_publishing(*publishing, {});
    }
    listener->authority_.assign(text, std::min(text_bytes, authority_max));
    const size_t options = std::min(listener->authority_.find('?'), listener->authority_.size());
    listener->address_.append(scheme_).append("://").append(listener->authority_, 0, options);
    if (!listener->wanted_.service.empty()) listener->address_.append("/").append(listener->wanted_.service);
    listener->address_.append(listener->authority_, options);
    listener->open_ = true;
    end_publishing(*publishing, {});
}

void Fabric::end_publishing(Publishing &publishing, Result<void> result) noexcept {
    const Ref<FabricListener> listener = std::move(publishing.listener);
    if (listener && !listener->open_) services_.erase(listener->wanted_.service);
    publishing.result.complete(context_, std::move(result));
}

// ---- a listener -----------------------------------------------------------------------------------------------------

FabricListener::FabricListener(Fabric &fabric, const SessionAddress &address, const TransportOptions &options,
                               Ref<ListenerCore> core)
    : fabric_(&fabric), wanted_(address), options_(options), core_(std::move(core)) {}

void FabricListener::close() noexcept {
    const Result<void> done = run_on_loop(fabric_->context_, [this]() -> Result<void> {
        withdraw();
        return {};
    });
    if (!done) return; // the loop has stopped, and has dropped the task
}

void FabricListener::withdraw() noexcept {
    if (!std::exchange(open_, false)) return;
    const Ref<FabricListener> alive(this);
    for (Ref<TransportListener> *const other : {&shared_, &direct_})
        if (const Ref<TransportListener> gone = std::move(*other)) gone->close();
    fabric_->services_.erase(wanted_.service);
    if (fabric_->ops_.withdraw != nullptr)
        timed(fabric_->plugin_, "withdraw",
              [&] { return fabric_->ops_.withdraw(fabric_->self_, authority_.data(), authority_.size()); });
}

// Streams that arrive there are handled as those over the fabric. Addresses that are not available are left out.
std::string FabricListener::routes(bool same_host) {
    const auto listen = [&](Ref<TransportListener> &listener, bool &tried, const std::string &text) {
        if (std::exchange(tried, true)) return;
        auto address = parse_address(text + (wanted_.auth ? "" : "?auth=none"));
        const Ref<Transport> transport =
            address ? Registry::of(fabric_->context_).known(address->scheme) : Ref<Transport>();
        auto made =
            transport ? transport->listen(*address, options_, core_) : Result<Ref<TransportListener>>(address.error());
        if (made) listener = std::move(*made);
        if (!made) fabric_->context_.log(MUSTER_LOG_WARN, "%s: %s", address_.c_str(), made.error().message);
    };
    std::string places;
    if (same_host && wanted_.upgrade) {
        listen(shared_, shared_tried_, "shm://" + DescriptorChannel::random_digits(32));
        if (shared_) places += shared_->address() + (wanted_.auth ? "" : "?auth=none");
    }
    if (!same_host && !wanted_.direct.empty() && wanted_.direct != "no") {
        listen(direct_, direct_tried_, "tcp://" + wanted_.direct);
        if (direct_) places += direct_->address() + (wanted_.auth ? "" : "?auth=none");
    }
    return places.size() <= routes_max_bytes ? places : "";
}

} // namespace muster
