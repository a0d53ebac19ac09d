// SPDX-License-Identifier: MIT
#include "broker/broker.hpp"

#include "transport/hub.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr size_t authority_max = 1024;
}

Brokers &Brokers::of(Context &context) {
    static const char key = 0;
    Hub::of(context); // the parts that it uses are made before, and notified later
    Registry::of(context);
    return static_cast<Brokers &>(
        context.part(&key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<Brokers>(); }));
}

bool Brokers::add(OpenBroker &broker) noexcept {
    const std::lock_guard hold(lock_);
    if (stopped_) return false;
    broker.retain();
    list_.push_back(broker);
    return true;
}

void Brokers::remove(OpenBroker &broker) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!list_.holds(broker)) return;
        list_.remove(broker);
    }
    broker.release();
}

void Brokers::stop() noexcept {
    for (;;) {
        Ref<OpenBroker> broker;
        {
            const std::lock_guard hold(lock_);
            stopped_ = true;
            if (list_.empty()) return;
            broker = Ref<OpenBroker>(list_.first());
        }
        broker->close(0);
    }
}

Result<void> OpenBroker::open(const Address &address, const muster_broker_config &config) {
    void *self = nullptr;
    ops_ = transport_->broker(self);
    if (ops_ == nullptr)
        return Error::make(MUSTER_E_UNSUPPORTED, "broker %s: %s:// has no broker", address.text.c_str(),
                           address.scheme.c_str());
    const size_t slash = address.path.find('/');
    if ((slash != std::string::npos && slash + 1 != address.path.size()) || !address.options.empty())
        return Error::make(MUSTER_E_ADDRESS, "broker %s: nothing comes behind host and port", address.text.c_str());
    const std::string authority = address.path.substr(0, slash);
    char text[authority_max];
    uint64_t text_bytes = 0;
    Error why;
    void *broker = nullptr;
    const Status status =
        ops_->open(self, authority.data(), authority.size(), &config, &broker, text, &text_bytes, &why);
    if (status != MUSTER_OK) {
        const size_t length = strnlen(why.message, sizeof why.message);
        Error told = Error::make(status < 0 ? status : MUSTER_E_PLUGIN, "broker %s: %.*s", address.text.c_str(),
                                 length != 0 ? static_cast<int>(length) : 200,
                                 length != 0 ? why.message : muster_status_text(status));
        told.os_errno = why.os_errno;
        told.provider_code = why.provider_code;
        return told;
    }
    broker_ = broker;
    const std::string members(text, std::min<uint64_t>(text_bytes, sizeof text)); // host:port, and ?options
    const size_t options = std::min(members.find('?'), members.size());
    address_ = address.scheme + "://" + members.substr(0, options) + "/" + members.substr(options);
    return {};
}

void OpenBroker::write_metrics(MetricsWriter &writer) {
    static constexpr Metric members{"muster_broker_members", Metric::gauge, "Processes that are members."};
    static constexpr Metric brokers{"muster_broker_brokers", Metric::gauge, "Brokers below this one."};
    static constexpr Metric connections{"muster_broker_connections", Metric::gauge,
                                        "Open connections, including those that are not members yet."};
    static constexpr Metric names{"muster_broker_names", Metric::gauge, "Names in use, at the root broker."};
    static constexpr Metric pairs{"muster_broker_pairs", Metric::gauge, "Pairs of members that exchange messages."};
    static constexpr Metric queued{"muster_broker_queued_bytes", Metric::gauge, "Bytes sent and not acknowledged."};
    static constexpr Metric messages{"muster_broker_messages_total", Metric::counter, "Messages that were forwarded."};
    static constexpr Metric bytes{"muster_broker_bytes_total", Metric::counter, "Bytes in them."};
    static constexpr Metric refused{"muster_broker_refused_total", Metric::counter, "Connections that were refused."};
    static constexpr Metric lost{"muster_broker_lost_total", Metric::counter,
                                 "Members and brokers whose connection ended without a goodbye."};
    muster_broker_stats now{};
    stats(now);
    const std::string label = metric_label("address", address_.substr(0, address_.find('?')));
    const auto add = [&](const Metric &metric, uint64_t value) {
        writer.add(metric, static_cast<double>(value), label);
    };
    add(members, now.members);
    add(brokers, now.brokers);
    add(connections, now.connections);
    add(names, now.names);
    add(pairs, now.pairs);
    add(queued, now.queued_bytes);
    add(messages, now.messages);
    add(bytes, now.bytes);
    add(refused, now.refused);
    add(lost, now.lost);
}

void OpenBroker::stats(muster_broker_stats &out) noexcept {
    const std::lock_guard hold(lock_);
    if (broker_ != nullptr) ops_->stats(broker_, &last_);
    out = last_;
}

void OpenBroker::close(int64_t timeout_ns) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (void *const broker = std::exchange(broker_, nullptr)) {
            ops_->stats(broker, &last_);
            ops_->close(broker, timeout_ns);
        }
    }
    context_.metrics.remove(metrics_);
    Brokers::of(context_).remove(*this);
}

Result<Ref<Broker>> Broker::open(Context &context, std::string_view text, const muster_broker_config &config) {
    auto address = parse_address(text);
    if (!address) return address.error();
    auto transport = Registry::of(context).find(address->scheme);
    if (!transport) return transport.error();
    Brokers &brokers = Brokers::of(context);
    auto open = make_ref<OpenBroker>(context, std::move(*transport));
    auto broker = make_ref<Broker>(context, open);
    if (auto opened = open->open(*address, config); !opened) return opened.error();
    if (brokers.add(*open)) {
        open->show_metrics();
        return broker;
    }
    open->close(0);
    return Error::make(MUSTER_E_CLOSED, "broker %s: the context is closed", address->text.c_str());
}

void Broker::last_reference_gone() noexcept {
    if (context_->forked()) return;
    const Ref<Context> alive(context_);
    open_->close_soon();
    delete this;
}

} // namespace muster
