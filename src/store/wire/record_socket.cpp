// SPDX-License-Identifier: MIT
#include "store/wire/record_socket.hpp"

#include "base/uncancelled.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace muster {

namespace {
constexpr size_t sealed_piece = 64 * 1024;
constexpr size_t kept_bytes = 1024; // of a buffer that is empty
} // namespace

// ---- out ------------------------------------------------------------------------------------------------------------

void RecordWriter::start(const Agreement &agreed) {
    if (!agreed.sealed) return;
    sealer_ = std::make_unique<Sealer>(agreed.key_out.data(), agreed.cipher);
    out_.assign(reinterpret_cast<const char *>(sealer_->prefix()), seal_prefix_bytes);
}

void RecordWriter::seal() {
    const size_t pieces = (plain_.size() + sealed_piece - 1) / sealed_piece;
    size_t at = out_.size();
    out_.resize(at + plain_.size() + pieces * frame_bytes(0, true));
    for (size_t from = 0; from < plain_.size();) {
        const size_t size = std::min(sealed_piece, plain_.size() - from);
        const iovec span{plain_.data() + from, size};
        at +=
            put_frame(reinterpret_cast<unsigned char *>(out_.data() + at), FrameType::data, 0, &span, size, &*sealer_);
        from += size;
    }
    plain_.clear();
}

void RecordWriter::gather() {
    if (sealer_) {
        if (!plain_.empty()) seal();
    } else if (sent_ == out_.size()) {
        out_.swap(plain_);
        plain_.clear();
        sent_ = 0;
    } else if (!plain_.empty()) {
        out_.append(plain_);
        plain_.clear();
    }
}

int RecordWriter::send(int fd) noexcept {
    int why = prepare();
    if (why == 0) why = send_prepared(fd);
    shrink();
    return why;
}

int RecordWriter::prepare() noexcept {
    try {
        gather();
        return 0;
    } catch (const std::bad_alloc &) {
        return ENOMEM;
    }
}

int RecordWriter::send_prepared(int fd) noexcept {
    while (sent_ < out_.size()) {
        const ssize_t n = uncancelled::send(fd, out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EWOULDBLOCK ? EAGAIN : errno;
        sent_ += static_cast<size_t>(n);
    }
    out_.clear();
    sent_ = 0;
    return 0;
}

void RecordWriter::shrink() noexcept {
    if (!out_.empty() || !plain_.empty()) return;
    if (out_.capacity() > kept_bytes) out_ = std::string();
    if (plain_.capacity() > kept_bytes) plain_ = std::string();
}

void RecordWriter::clear() noexcept {
    plain_ = out_ = std::string();
    sent_ = 0;
    sealer_.reset();
}

// ---- in -------------------------------------------------------------------------------------------------------------

void RecordReader::start(const Agreement &agreed) {
    frames_.reset();
    partial_ = std::string();
    resting_ = false;
    why_ = "";
    if (!agreed.sealed) return;
    frames_ = std::make_unique<FrameReader>();
    frames_->set_opener(std::make_unique<Opener>(agreed.key_in.data(), agreed.cipher));
}

bool RecordReader::feed(const unsigned char *data, size_t size, Taker &taker) {
    taker_ = &taker;
    if (!frames_) return cut(data, size);
    const Status status = frames_->feed(data, size, *this);
    if (status == MUSTER_E_NOMEM) throw std::bad_alloc();
    if (status < 0 && *why_ == '\0' && *frames_->why() != '\0') why_ = frames_->why();
    return status >= 0;
}

bool RecordReader::go_on(Taker &taker) {
    taker_ = &taker;
    resting_ = false;
    const std::string rest = std::move(partial_);
    partial_ = std::string();
    return cut(reinterpret_cast<const unsigned char *>(rest.data()), rest.size());
}

Status RecordReader::on_data(uint32_t, const unsigned char *data, size_t size) noexcept {
    try {
        return cut(data, size) ? MUSTER_OK : MUSTER_E_PROTOCOL;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    }
}

bool RecordReader::check(const StoreHead &head) noexcept {
    if (head.bytes <= store_record_max) return true;
    why_ = "a record that is too long";
    return false;
}

// Complete records are passed on in place; the beginning of one is kept until the rest has arrived. However long a
// record claims to be, only received bytes are kept.
bool RecordReader::cut(const unsigned char *data, size_t size) {
    if (resting_) {
        partial_.append(reinterpret_cast<const char *>(data), size);
        return true;
    }
    if (!partial_.empty()) {
        size_t wants = store_head_bytes;
        if (partial_.size() >= wants)
            wants += StoreHead::get(reinterpret_cast<const unsigned char *>(partial_.data())).bytes;
        for (;;) {
            const size_t take = std::min(size, wants - partial_.size());
            partial_.append(reinterpret_cast<const char *>(data), take);
            data += take, size -= take;
            if (partial_.size() < wants) return true;
            const StoreHead head = StoreHead::get(reinterpret_cast<const unsigned char *>(partial_.data()));
            if (!check(head)) return false;
            if (wants == store_head_bytes + head.bytes) {
                const std::string whole = std::move(partial_);
                partial_ = std::string();
                if (!taker_->take_record(head, std::string_view(whole).substr(store_head_bytes))) return false;
                break;
            }
            wants = store_head_bytes + head.bytes;
        }
    }
    while (size >= store_head_bytes) {
        if (taker_->has_enough()) {
            resting_ = true;
            break;
        }
        const StoreHead head = StoreHead::get(data);
        if (!check(head)) return false;
        if (size < store_head_bytes + head.bytes) break;
        const std::string_view body(reinterpret_cast<const char *>(data) + store_head_bytes, head.bytes);
        data += store_head_bytes + head.bytes, size -= store_head_bytes + head.bytes;
        if (!taker_->take_record(head, body)) return false;
    }
    if (size != 0) partial_.assign(reinterpret_cast<const char *>(data), size);
    return true;
}

} // namespace muster
