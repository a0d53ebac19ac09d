// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Two ends of a stream, each used by a thread in every way there is, while a third cancels, aborts and closes. Records
// come whole and in order, but for those whose buffers were taken back; each buffer handed over comes back once.
#include "stress.hpp"

#include <muster/muster.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>

namespace {

constexpr int64_t us = 1000, ms = 1000 * us;
using Numbers = std::minstd_rand;

struct Header {
    uint32_t number, size; // of the payload
};
unsigned char payload(uint32_t number, size_t at) {
    return static_cast<unsigned char>(number * 31 + at);
}

muster_context *make_context() {
    muster_context_config config{};
    config.struct_size = sizeof config;
    static const char secret[] = "a secret of the stress test";
    config.secret = secret;
    config.secret_bytes = sizeof secret - 1;
    muster_context *context = nullptr;
    STRESS_CHECK(muster_context_create(&config, &context, nullptr) == MUSTER_OK);
    return context;
}

bool over(muster_status status) {
    return status == MUSTER_E_CLOSED || status == MUSTER_E_PEER || status == MUSTER_E_ABORTED || status == MUSTER_E_END;
}
bool to_be_tried_again(muster_status status) {
    return status == MUSTER_AGAIN || status == MUSTER_TIMEOUT || status == MUSTER_E_CANCELED;
}

int64_t some_time(Numbers &numbers) {
    const int64_t times[] = {0, 100 * us, 5 * ms, -1};
    return times[numbers() % 4];
}

// Writes records until it is stopped, or the stream is over.
class Writer {
  public:
    Writer(muster_context *context, muster_stream *stream, uint32_t seed) : stream_(stream), numbers_(seed) {
        STRESS_CHECK(muster_queue_create(context, nullptr, &queue_, nullptr) == MUSTER_OK);
    }
    ~Writer() { muster_queue_release(queue_); }

    void run(const std::atomic<bool> &stop, stress::Watchdog &dog) {
        while (!stop && !ended_) {
            const uint32_t number = next_++;
            const size_t most = numbers_() % 8 == 0 ? 300'000 : 3'000;
            Record record = make(number, numbers_() % most);
            if (numbers_() % 3 == 0)
                hand_over(number, std::move(record));
            else
                write(record);
            if (numbers_() % 50 == 0) {
                const muster_status status = muster_stream_flush(stream_, some_time(numbers_));
                STRESS_CHECK(status == MUSTER_OK || to_be_tried_again(status) || over(status));
            }
            take_back(0);
            dog.beat();
        }
        muster_stream_close(stream_, numbers_() % 2 ? 0 : 100 * ms);
    }
    // After both ends are gone.
    void await_buffers() {
        while (!waiting_.empty()) STRESS_CHECK(take_back(10'000 * ms));
    }
    uint32_t next() const { return next_; }
    bool may_be_missing(uint32_t number) const { return taken_back_.count(number) != 0; }

  private:
    using Record = std::unique_ptr<std::vector<unsigned char>>;

    static Record make(uint32_t number, size_t size) {
        auto record = std::make_unique<std::vector<unsigned char>>(sizeof(Header) + size);
        const Header header{number, static_cast<uint32_t>(size)};
        memcpy(record->data(), &header, sizeof header);
        for (size_t i = 0; i < size; i++) (*record)[sizeof header + i] = payload(number, i);
        return record;
    }
    void write(const Record &record) {
        for (size_t done = 0; done < record->size();) {
            size_t moved = 0;
            muster_status status;
            if (numbers_() % 4 == 0) {
                void *room = nullptr;
                const size_t left = record->size() - done;
                status = muster_stream_reserve(stream_, std::min<size_t>(left, 1 + numbers_() % 4096),
                                               some_time(numbers_), &room, &moved);
                if (status == MUSTER_OK) {
                    moved = std::min(moved, left);
                    memcpy(room, record->data() + done, moved);
                    status = muster_stream_commit(stream_, moved);
                    if (status == MUSTER_OK) status = muster_stream_flush(stream_, 0);
                } else {
                    moved = 0;
                }
            } else {
                status = muster_stream_write(stream_, record->data() + done, record->size() - done, some_time(numbers_),
                                             &moved);
            }
            done += moved;
            if (over(status)) {
                ended_ = true;
                return;
            }
            STRESS_CHECK(status == MUSTER_OK || to_be_tried_again(status));
        }
    }
    void hand_over(uint32_t number, Record record) {
        const unsigned char *data = record->data();
        const size_t size = record->size();
        waiting_[number] = std::move(record);
        for (;;) {
            const muster_status status = muster_stream_write_owned(stream_, data, size, queue_, number);
            if (status == MUSTER_OK) return;
            if (status == MUSTER_E_CANCELED) return; // released with it
            if (over(status)) {
                ended_ = true;
                return;
            }
            STRESS_CHECK(status == MUSTER_AGAIN);
            take_back(ms);
        }
    }
    bool take_back(int64_t timeout_ns) {
        for (bool any = false;; timeout_ns = 0, any = true) {
            muster_completion c;
            const muster_status status = muster_queue_next(queue_, timeout_ns, &c, nullptr);
            if (status == MUSTER_AGAIN || status == MUSTER_TIMEOUT) return any;
            STRESS_CHECK(status == MUSTER_OK && c.kind == MUSTER_DONE_RELEASED);
            const auto it = waiting_.find(static_cast<uint32_t>(c.tag));
            STRESS_CHECK(it != waiting_.end()); // once
            if (c.status == MUSTER_OK)
                STRESS_CHECK(c.bytes == it->second->size());
            else
                taken_back_[it->first] = c.bytes;
            memset(it->second->data(), 0, it->second->size()); // the host's again
            waiting_.erase(it);
        }
    }

    muster_stream *stream_;
    Numbers numbers_;
    muster_queue *queue_ = nullptr;
    uint32_t next_ = 0;
    bool ended_ = false;
    std::map<uint32_t, Record> waiting_;
    std::map<uint32_t, uint64_t> taken_back_;
};

// Reads in every way, and sees that records are whole and in order.
class Reader {
  public:
    Reader(muster_context *context, muster_stream *stream, uint32_t seed) : stream_(stream), numbers_(seed) {
        STRESS_CHECK(muster_queue_create(context, nullptr, &queue_, nullptr) == MUSTER_OK);
    }
    ~Reader() { muster_queue_release(queue_); }

    void run(stress::Watchdog &dog) {
        for (muster_status status = MUSTER_OK; !over(status); dog.beat()) {
            size_t moved = 0;
            status = some_bytes(moved);
            STRESS_CHECK(status == MUSTER_OK || to_be_tried_again(status) || over(status));
            for (size_t i = 0; i < moved; i++) look_at(buffer_[i]);
            whole_ = status == MUSTER_E_END;
        }
        muster_stream_close(stream_, 0);
    }
    bool whole() const { return whole_; }
    const std::vector<uint32_t> &numbers() const { return seen_; }
    bool between_records() const { return at_ == 0; }

  private:
    muster_status some_bytes(size_t &moved) {
        const size_t size = 1 + numbers_() % (numbers_() % 4 == 0 ? sizeof buffer_ : 2'000);
        switch (numbers_() % 4) {
        case 0:
            return muster_stream_read(stream_, buffer_, size, some_time(numbers_), &moved);
        case 1:
            return muster_stream_read_into(stream_, buffer_, size, 0, some_time(numbers_), &moved);
        case 2: {
            const void *shown = nullptr;
            muster_status status = muster_stream_peek(stream_, 1 + numbers_() % 8, some_time(numbers_), &shown, &moved);
            if (status == MUSTER_E_END && moved != 0) status = MUSTER_AGAIN; // what is left can be read
            if (status == MUSTER_OK) {
                moved = std::min(moved, sizeof buffer_);
                memcpy(buffer_, shown, moved);
                STRESS_CHECK(muster_stream_consume(stream_, moved) == MUSTER_OK);
            } else {
                moved = 0;
            }
            return status;
        }
        default: {
            const muster_status status = muster_stream_read_begin(stream_, buffer_, size, 0, queue_, 1);
            if (status != MUSTER_OK) return status;
            muster_completion c;
            STRESS_CHECK(muster_queue_next(queue_, -1, &c, nullptr) == MUSTER_OK && c.kind == MUSTER_DONE_READ);
            moved = c.bytes;
            return c.status;
        }
        }
    }
    void look_at(unsigned char byte) {
        if (at_ < sizeof header_) {
            reinterpret_cast<unsigned char *>(&header_)[at_++] = byte;
            if (at_ < sizeof header_) return;
            STRESS_CHECK(seen_.empty() || header_.number > seen_.back());
            seen_.push_back(header_.number);
        } else {
            STRESS_CHECK(byte == payload(header_.number, at_ - sizeof header_));
            at_++;
        }
        if (at_ == sizeof header_ + header_.size) at_ = 0;
    }

    muster_stream *stream_;
    Numbers numbers_;
    muster_queue *queue_ = nullptr;
    unsigned char buffer_[70'000];
    Header header_{};
    size_t at_ = 0;
    std::vector<uint32_t> seen_;
    bool whole_ = false;
};

// How two ends are made: a pair, or a listener and a dial between two contexts.
struct Maker {
    muster_context *contexts[2] = {make_context(), make_context()};
    muster_listener *listener = nullptr;
    std::string address;

    explicit Maker(const char *form) {
        if (form == nullptr) return;
        char text[256];
        snprintf(text, sizeof text, form, static_cast<int>(getpid()));
        STRESS_CHECK(muster_transport_listen(contexts[1], text, strlen(text), nullptr, &listener, nullptr) ==
                     MUSTER_OK);
        size_t bytes = 0;
        STRESS_CHECK(muster_listener_address(listener, text, sizeof text, &bytes) == MUSTER_OK);
        address = text;
        if (strstr(form, "upgrade=no") != nullptr) address += "?upgrade=no";
    }
    ~Maker() {
        muster_listener_release(listener);
        for (muster_context *context : contexts) {
            STRESS_CHECK(muster_context_close(context, 20'000 * ms) == MUSTER_OK);
            muster_context_release(context);
        }
    }
    void make(muster_stream *&first, muster_stream *&second) {
        if (listener == nullptr) {
            STRESS_CHECK(muster_stream_pair(contexts[0], nullptr, &first, &second, nullptr) == MUSTER_OK);
            return;
        }
        STRESS_CHECK(muster_transport_dial(contexts[0], address.data(), address.size(), nullptr, 20'000 * ms, &first,
                                           nullptr) == MUSTER_OK);
        STRESS_CHECK(muster_listener_accept(listener, 20'000 * ms, &second, nullptr) == MUSTER_OK);
    }
    muster_context *second_context() { return contexts[listener != nullptr]; }
};

void ends_under_fire(const char *what, const char *form, double share) {
    stress::Watchdog dog(what);
    Maker maker(form);
    uint32_t seed = 1;
    uint64_t records = 0, whole = 0;
    for (const stress::Clock clock(share); clock.running(); seed++) {
        muster_stream *ends[2] = {};
        maker.make(ends[0], ends[1]);
        Writer writer(maker.contexts[0], ends[0], seed * 2);
        Reader reader(maker.second_context(), ends[1], seed * 2 + 1);
        std::atomic<bool> stop{false};
        std::thread writing([&] { writer.run(stop, dog); });
        std::thread reading([&] { reader.run(dog); });
        Numbers numbers(seed);
        bool interfered = false;
        for (uint32_t turn = numbers() % 30; turn != 0; turn--) {
            std::this_thread::sleep_for(std::chrono::microseconds(numbers() % 1000));
            if (numbers() % 2) STRESS_CHECK(muster_stream_cancel(ends[0], MUSTER_STREAM_WRITE) == MUSTER_OK);
            if (numbers() % 2) STRESS_CHECK(muster_stream_cancel(ends[1], MUSTER_STREAM_READ) == MUSTER_OK);
        }
        switch (numbers() % 4) {
        case 0:
            interfered = true;
            muster_stream_abort(ends[numbers() % 2], 7, "stress", 6);
            break;
        case 1:
            interfered = true;
            muster_stream_close(ends[numbers() % 2], 0);
            break;
        default:
            break;
        }
        stop = true;
        writing.join();
        reading.join();
        const uint32_t first = numbers() % 2;
        muster_stream_release(ends[first]);
        muster_stream_release(ends[1 - first]);
        writer.await_buffers();
        records += reader.numbers().size();
        if (!reader.whole() || interfered) continue;
        // It ended in order: nothing is missing but what was taken back.
        whole++;
        STRESS_CHECK(reader.between_records());
        size_t at = 0;
        for (uint32_t number = 0; number < writer.next(); number++) {
            if (at < reader.numbers().size() && reader.numbers()[at] == number)
                at++;
            else
                STRESS_CHECK(writer.may_be_missing(number));
        }
        STRESS_CHECK(at == reader.numbers().size());
    }
    std::printf("%s: %u streams, %llu of them whole, %llu records\n", what, seed - 1,
                static_cast<unsigned long long>(whole), static_cast<unsigned long long>(records));
    STRESS_CHECK(records != 0);
}

} // namespace

int main() {
    ends_under_fire("inproc", nullptr, 0.5);
    ends_under_fire("unix", "unix://@muster-stress-%d?upgrade=no", 0.5);
    ends_under_fire("shm", "shm://muster-stress-%d", 0.5);
}
