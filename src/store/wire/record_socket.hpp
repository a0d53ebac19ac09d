// SPDX-License-Identifier: MIT
#pragma once
// Records over an authenticated socket: collected and sealed when sent, opened and split when received. Without pending
// data neither side keeps a buffer.
#include "store/wire/wire.hpp"
#include "transport/transport.hpp"

namespace muster {

// One user at a time.
class RecordWriter {
  public:
    void start(const Agreement &agreed);             // before the first record
    std::string &plain() noexcept { return plain_; } // records are put here
    const std::string &plain() const noexcept { return plain_; }
    bool empty() const noexcept { return plain_.empty() && sent_ == out_.size(); }
    size_t unsent() const noexcept { return plain_.size() + out_.size() - sent_; }
    // Sends as much as is possible without waiting. 0: all; EAGAIN: not all; otherwise an errno.
    int send(int fd) noexcept;
    // The same in three steps, so that a lock can be released during the second one, while records are put into
    // plain(): 0 or ENOMEM; as send(); and always afterwards.
    int prepare() noexcept;
    int send_prepared(int fd) noexcept;
    void shrink() noexcept;
    void clear() noexcept; // drops the unsent bytes

  private:
    void gather();
    void seal();
    std::unique_ptr<Sealer> sealer_;
    std::string plain_, out_;
    size_t sent_ = 0; // of out_
};

// One user at a time.
class RecordReader final : private FrameSink {
  public:
    class Taker {
      public:
        // The body stays in place until the call returns. False: enough, or invalid.
        virtual bool take_record(const StoreHead &head, std::string_view body) = 0;
        // Later records are kept until go_on().
        virtual bool has_enough() const noexcept { return false; }

      protected:
        ~Taker() = default;
    };

    void start(const Agreement &agreed); // before the first byte
    // Accepts bytes as they arrive. False: the taker returned it, or the bytes are invalid; then why() is not empty.
    bool feed(const unsigned char *data, size_t size, Taker &taker);
    bool rests() const noexcept { return resting_; } // the taker had enough
    bool go_on(Taker &taker);
    const char *why() const noexcept { return why_; }
    size_t held() const noexcept { return partial_.capacity(); }

  private:
    bool cut(const unsigned char *data, size_t size);
    bool check(const StoreHead &head) noexcept;
    Status on_data(uint32_t stream, const unsigned char *data, size_t size) noexcept override;
    Status on_frame(FrameType, uint32_t, const unsigned char *, size_t) noexcept override { return MUSTER_OK; }

    std::unique_ptr<FrameReader> frames_; // where they are sealed
    Taker *taker_ = nullptr;
    std::string partial_; // the beginning of a record; while it pauses, all bytes received since
    bool resting_ = false;
    const char *why_ = "";
};

} // namespace muster
