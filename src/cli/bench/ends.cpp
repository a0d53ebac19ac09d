// SPDX-License-Identifier: MIT
#include "bench/ends.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace bench {

namespace {

constexpr uint32_t magic = 0x4d62656e, largest = 64 << 20, small = 64; // bytes
constexpr uint64_t most_messages = uint64_t{1} << 40;
constexpr size_t most_samples = 1'000'000;
constexpr int64_t patience_ns = 30'000'000'000; // with the other end, for each message
constexpr double trial_seconds = 0.02;          // that the number of messages is calculated from
enum Way : uint32_t { echo = 1, take = 2 };

struct Order {
    uint32_t magic, way, size, reserved;
    uint64_t count; // of messages
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Channel {
  public:
    explicit Channel(muster_stream *stream) noexcept : stream_(stream) {}
    bool write(const void *data, size_t size) noexcept {
        size_t moved = 0;
        status_ = muster_stream_write(stream_, data, size, patience_ns, &moved);
        return status_ == MUSTER_OK;
    }
    bool read(void *data, size_t size) noexcept {
        size_t moved = 0;
        status_ = muster_stream_read_into(stream_, data, size, 0, patience_ns, &moved);
        return status_ == MUSTER_OK;
    }
    std::string why() const {
        muster_error error{};
        uint64_t reason = 0;
        if (status_ == MUSTER_TIMEOUT) return "the other end, which should be muster bench --serve, does not answer";
        const bool has_ended = muster_stream_reason(stream_, &reason, &error) != MUSTER_OK && error.message_bytes != 0;
        return has_ended ? std::string(error.message, error.message_bytes) : muster_status_text(status_);
    }

  private:
    muster_stream *stream_;
    muster_status status_ = MUSTER_OK;
};

// Half of each round trip, in microseconds, until the time is over.
bool round_trips(Channel &channel, double seconds, std::vector<double> &halves) {
    unsigned char message[small] = {};
    const Order order{magic, echo, small, 0, most_messages};
    halves.clear();
    if (!channel.write(&order, sizeof order)) return false;
    const double end = now() + seconds;
    for (double at = now(); at < end || halves.empty();) {
        if (!channel.write(message, sizeof message) || !channel.read(message, sizeof message)) return false;
        const double after = now();
        if (halves.size() < most_samples) halves.push_back((after - at) * 0.5e6);
        at = after;
    }
    message[0] = 1; // the last one
    return channel.write(message, sizeof message) && channel.read(message, sizeof message);
}

// The time of so many messages, until the other end has confirmed that it has the last one; 0: the stream has ended.
double one_way(Channel &channel, const std::vector<unsigned char> &data, uint32_t size, uint64_t count) {
    const Order order{magic, take, size, 0, count};
    unsigned char confirmed = 0;
    if (!channel.write(&order, sizeof order)) return 0;
    const double begun = now();
    for (uint64_t i = 0; i < count; i++)
        if (!channel.write(data.data(), size)) return 0;
    return channel.read(&confirmed, 1) ? now() - begun : 0;
}

// Messages per second.
double rate_of(Channel &channel, const std::vector<unsigned char> &data, uint32_t size, double seconds) {
    uint64_t count = 1;
    double took = one_way(channel, data, size, count);
    while (took > 0 && took < trial_seconds && count < most_messages / 4) {
        count *= 4;
        took = one_way(channel, data, size, count);
    }
    if (took <= 0) return 0;
    const double wanted = static_cast<double>(count) * seconds / took;
    count = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, most_messages);
    took = one_way(channel, data, size, count);
    return took > 0 ? static_cast<double>(count) / took : 0;
}

} // namespace

std::string measure(muster_stream *stream, double seconds, Figures &out) {
    Channel channel(stream);
    std::vector<double> halves;
    if (!round_trips(channel, trial_seconds, halves) || !round_trips(channel, seconds, halves)) return channel.why();
    std::sort(halves.begin(), halves.end());
    out.half_us = halves[halves.size() / 2];
    out.half_99_us = halves[halves.size() * 99 / 100];
    const std::vector<unsigned char> data(largest, 1);
    for (const auto &[size, figure] : {std::pair{small, &out.rate},
                                       {65536u, &out.bytes_64k},
                                       {uint32_t{1} << 20, &out.bytes_1m},
                                       {largest, &out.bytes_64m}}) {
        const double rate = rate_of(channel, data, size, seconds);
        if (rate <= 0) return channel.why();
        *figure = size == small ? rate : rate * size;
    }
    return {};
}

void answer(muster_stream *stream) {
    Channel channel(stream);
    std::vector<unsigned char> data;
    Order order{};
    while (channel.read(&order, sizeof order)) {
        const bool is_known = order.magic == magic && (order.way == echo || order.way == take) && order.size >= 1 &&
                              order.size <= largest && order.count <= most_messages;
        if (!is_known) {
            static constexpr char text[] = "no order of muster bench";
            muster_stream_abort(stream, 0, text, sizeof text - 1);
            return;
        }
        data.resize(order.size);
        bool works = true, is_last = false;
        for (uint64_t i = 0; works && !is_last && i < order.count; i++) {
            works = channel.read(data.data(), order.size);
            if (order.way == take) continue;
            works = works && channel.write(data.data(), order.size);
            is_last = data[0] == 1;
        }
        if (order.way == take) works = works && channel.write("", 1);
        if (!works) return;
    }
}

} // namespace bench
