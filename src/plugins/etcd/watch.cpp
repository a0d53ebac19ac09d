// SPDX-License-Identifier: MIT
#include "watch.hpp"

#include <algorithm>

namespace etcd {

namespace {
constexpr int64_t linger_ns = 5 * second;
} // namespace

Watch::Watch(Watches &all, Range range, uint64_t behind)
    : all_(all), range_(std::move(range)), floor_(behind), at_(behind) {
    begin();
}

Watch::~Watch() {
    if (stream_ != nullptr) all_.client_.cancel(stream_);
    all_.client_.cancel(token_);
    stop_timers();
}

void Watch::stop_timers() noexcept {
    const muster_host *const host = all_.client_.host();
    host->stop_timer(again_);
    host->stop_timer(idle_);
    again_ = idle_ = nullptr;
}

void Watch::begin() {
    if (all_.client_.needs_token()) {
        const std::string any = "{\"key\":\"" + base64(range_.begin) + "\",\"count_only\":true}";
        token_ = all_.client_.call("/v3/kv/range", any, [this](Reply &reply) {
            token_ = nullptr;
            reply.ok() ? begin() : begin_again(reply.failure);
        });
        return;
    }
    const std::string body = "{\"create_request\":{\"key\":\"" + base64(range_.begin) + "\",\"range_end\":\"" +
                             base64(range_.end) + "\",\"start_revision\":\"" + std::to_string(at_ + 1) +
                             "\",\"progress_notify\":true}}";
    begun_ns_ = now_ns();
    if (lost_ns_ == 0) lost_ns_ = begun_ns_;
    stream_ = all_.client_.stream(
        "/v3/watch", body, [this](std::string_view line) { on_line(line); },
        [this](const Failure &why) { ended(why); });
}

void Watch::on_line(std::string_view line) {
    const Json message = Json::parse(line, nullptr, false);
    if (!message.is_object()) return begin_again({MUSTER_E_PROTOCOL, "a line of a watch that is no JSON"});
    const auto result = message.find("result");
    if (result == message.end() || !result->is_object()) {
        const auto error = message.find("error");
        std::string why = error != message.end() ? text_in(*error, "message") : std::string();
        if (why.empty()) why = "a watch was refused";
        all_.client_.forget_token(); // perhaps it was that
        return begin_again({MUSTER_E_UNREACHABLE, why});
    }
    const uint64_t revision = revision_in(*result);
    all_.client_.saw(revision);
    if (const uint64_t first = number_in(*result, "compact_revision"); first != 0) {
        std::vector<Watcher *> all(watchers_.begin(), watchers_.end());
        for (Watcher *const one : all) one->stream = nullptr;
        watchers_.clear();
        Watches &owner = all_;
        owner.drop(*this); // this is gone
        for (Watcher *const one : all) one->compacted(first);
        return;
    }
    if (is_true(*result, "canceled")) return begin_again({MUSTER_E_UNREACHABLE, "a watch was cancelled"});
    lost_ns_ = 0;
    if (now_ns() - begun_ns_ > back_off_.max_ns()) is_retrying_ = false; // unless it ends as soon as it has begun
    if (is_true(*result, "created")) {
        begun_at_ = revision;
        return notify_tasks();
    }
    const auto events = result->find("events");
    if (events == result->end() || !events->is_array()) { // progress only: all changes so far were reported
        at_ = std::max(at_, revision);
        return;
    }
    for (const Json &event : *events) {
        const auto kv = event.find("kv");
        if (kv == event.end() || !kv->is_object()) continue;
        Change change{number_in(*kv, "mod_revision"), text_in(event, "type") != "DELETE", bytes_in(*kv, "key"),
                      bytes_in(*kv, "value")};
        if (change.revision <= floor_ || !range_.holds(change.key)) continue;
        at_ = std::max(at_, change.revision);
        bytes_ += change.key.size() + change.value.size() + sizeof(Change);
        changes_.push_back(std::move(change));
    }
    while (changes_.size() > max_changes || bytes_ > max_bytes) { // whole revisions
        if (changes_.front().revision == changes_.back().revision) break;
        floor_ = changes_.front().revision;
        while (changes_.front().revision == floor_) {
            bytes_ -= changes_.front().key.size() + changes_.front().value.size() + sizeof(Change);
            changes_.pop_front();
        }
    }
    notify_tasks();
}

// Watchers may leave, and others join.
void Watch::notify_tasks() {
    std::vector<Watcher *> all(watchers_.begin(), watchers_.end());
    for (Watcher *const one : all)
        if (watchers_.count(one) != 0) one->changed();
}

void Watch::ended(const Failure &why) {
    stream_ = nullptr;
    begin_again(why);
}

void Watch::begin_again(const Failure &why) {
    const muster_host *const host = all_.client_.host();
    if (stream_ != nullptr) all_.client_.cancel(stream_);
    stream_ = nullptr;
    if (watchers_.empty()) return all_.drop(*this);
    if (lost_ns_ == 0) lost_ns_ = now_ns();
    if (now_ns() - lost_ns_ > all_.client_.url().timeout_ns) {
        std::vector<Watcher *> all(watchers_.begin(), watchers_.end());
        for (Watcher *const one : all) one->stream = nullptr;
        watchers_.clear();
        Watches &owner = all_;
        const Failure text{MUSTER_E_UNREACHABLE, "no etcd can be watched: " + why.text};
        owner.drop(*this);
        for (Watcher *const one : all) one->unreachable(text);
        return;
    }
    all_.client_.try_next();
    if (!is_retrying_) back_off_.reset();
    const int64_t pause = std::exchange(is_retrying_, true) ? back_off_.next_ns() : 0;
    const auto due = [](void *self) {
        Watch &watch = *static_cast<Watch *>(self);
        watch.all_.client_.host()->stop_timer(watch.again_);
        watch.again_ = nullptr;
        watch.begin();
    };
    host->stop_timer(again_);
    again_ = nullptr;
    host->start_timer(host, pause, 0, due, this, &again_);
}

// ---- the streams of a store -----------------------------------------------------------------------------------------

Watch &Watches::enter(Watcher &watcher) {
    Watch *found = nullptr;
    for (const auto &one : watches_)
        if (one->range_.covers(watcher.range) && one->floor_ <= watcher.behind) found = one.get();
    if (found == nullptr) {
        if (watches_.size() >= max_streams) { // one without watchers is closed
            const auto idle =
                std::find_if(watches_.begin(), watches_.end(), [](const auto &one) { return one->idle(); });
            if (idle != watches_.end()) drop(**idle);
        }
        const Range &range = watches_.size() < max_streams ? watcher.range : everything_;
        watches_.push_back(std::make_unique<Watch>(*this, range, watcher.behind));
        found = watches_.back().get();
    }
    found->watchers_.insert(&watcher);
    watcher.stream = found;
    client_.host()->stop_timer(found->idle_);
    found->idle_ = nullptr;
    return *found;
}

// Most likely there will be another request: a stream is kept for a while.
void Watches::leave(Watcher &watcher) noexcept {
    Watch *const watch = std::exchange(watcher.stream, nullptr);
    if (watch == nullptr) return;
    watch->watchers_.erase(&watcher);
    if (!watch->idle() || watch->idle_ != nullptr) return;
    const auto due = [](void *self) {
        Watch &idle = *static_cast<Watch *>(self);
        idle.all_.drop(idle);
    };
    client_.host()->start_timer(client_.host(), linger_ns, 0, due, watch, &watch->idle_);
}

void Watches::drop(Watch &watch) noexcept {
    const auto found =
        std::find_if(watches_.begin(), watches_.end(), [&](const auto &one) { return one.get() == &watch; });
    if (found != watches_.end()) watches_.erase(found);
}

} // namespace etcd
