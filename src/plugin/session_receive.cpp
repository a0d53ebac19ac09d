// SPDX-License-Identifier: MIT
// What comes in: the handshake, then frames. Everything a peer can say is checked here; a wrong word ends the session.
#include "base/text.hpp"
#include "plugin/pairing.hpp"
#include "plugin/session.hpp"
#include "transport/frame.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr uint64_t credit_max = uint64_t{1} << 40;
constexpr size_t text_max = 200;
// Less is copied: that costs no more than giving the memory back later.
constexpr size_t lent_min = 16 * 1024;

bool valid_window(uint64_t window) noexcept {
    return window >= 4096 && window <= uint64_t{1} << 30 && (window & (window - 1)) == 0;
}
} // namespace

size_t Session::deliver(const void *data, size_t size, bool whole, Loan *loan) noexcept {
    if (state_ == State::over || lost_.status < 0) return size;
    settle(false); // a plug-in may deliver while it sends: an abort that comes in takes handed-over buffers back
    if (const int64_t now = context_.loop_now_ns(); turn_ns_ != now) turn_ns_ = now, turn_left_ = turn_bytes;
    const size_t taken = whole ? size : std::min(size, turn_left_);
    turn_left_ -= std::min(taken, turn_left_);
    if (taken != 0) heard();
    loan_ = loan;
    try {
        take(static_cast<const unsigned char *>(data), taken);
    } catch (const std::exception &) {
        fail(MUSTER_E_NOMEM, "out of memory");
    }
    loan_ = nullptr;
    if (taken < size) {
        resume_due_ = true;
        schedule();
    }
    return taken;
}

void Session::heard() noexcept {
    heard_ns_ = context_.loop_now_ns();
    heard_told_.store(heard_ns_, std::memory_order_relaxed);
    if (!std::exchange(silent_, false)) return;
    for (auto &[id, stream] : streams_) stream->duplex_->tell_peer_events(0, MUSTER_STREAM_PEER_BACK);
}

// The frame of what was sent to many was taken off by the fabric: whose it is stands in front of it.
void Session::deliver_to(uint32_t stream, const void *data, size_t size, Loan *loan) noexcept {
    if (state_ == State::over || state_ == State::leaving || lost_.status < 0 || goodbye_got_) return;
    if (state_ != State::open || opener_ || in_payload_ || header_have_ != 0 || size == 0)
        return broken("bytes for many out of turn");
    settle(false); // as in deliver()
    heard();
    data_piece(stream, static_cast<const unsigned char *>(data), size, loan);
}

void Session::take(const unsigned char *data, size_t size) {
    while (size != 0 && lost_.status >= 0 && refused_.status >= 0) {
        if (state_ == State::handshake) {
            take_handshake(data, size);
        } else if (state_ == State::leaving || state_ == State::over || goodbye_got_) {
            return; // what comes now is nobody's
        } else if (opener_ && !opener_->ready()) {
            if (!opener_->take_prefix(data, size)) return broken("a seal that cannot be opened");
        } else if (in_payload_) {
            take_payload(data, size);
        } else {
            const size_t k = std::min(size, session_header_bytes - header_have_);
            memcpy(header_ + header_have_, data, k);
            data += k, size -= k, header_have_ += k;
            if (header_have_ == session_header_bytes) begin_frame();
        }
    }
}

void Session::take_handshake(const unsigned char *&data, size_t &size) {
    size_t used = 0;
    const Status status = handshake_->feed(data, size, used);
    data += used, size -= used;
    raw_ += handshake_->take_output();
    schedule();
    if (status == MUSTER_AGAIN) return;
    if (status < 0) {
        const Error &why = handshake_->error();
        refused_ = Error::make(status, "%s: %s", config_.peer.c_str(), why.message);
        busy_ = handshake_->busy();
        context_.log(MUSTER_LOG_WARN, "%s", refused_.message);
        return;
    }
    const Agreement &agreed = handshake_->agreement();
    if (agreed.sealed) {
        sealer_ = std::make_unique<Sealer>(agreed.key_out.data());
        opener_ = std::make_unique<Opener>(agreed.key_in.data());
        raw_.append(reinterpret_cast<const char *>(sealer_->prefix()), seal_prefix_bytes);
    }
    const int64_t peers = std::min(agreed.peer_heartbeat_ns, Patience::slowest_ns);
    if (!config_.single) beat_ns_ = std::max(beat_ns_, peers);
    patience_ = Patience(context_.settings, agreed, config_.single ? peers : beat_ns_);
    near_ = agreed.near;
    peer_direct_ = agreed.peer_direct;
    handshake_.reset();
    enter_open();
}

// A header is complete: everything it can say about length is bounded here.
void Session::begin_frame() noexcept {
    header_have_ = 0;
    const size_t overhead = opener_ ? seal_overhead_bytes : 0;
    const auto kind = static_cast<SessionFrame>(header_[0]);
    const size_t length = get_u32(header_ + 4);
    const size_t most = (kind == SessionFrame::data ? session_data_max : session_control_max) + overhead;
    if (length < overhead || length > most) return broken("a frame of impossible length");
    in_payload_ = true;
    payload_left_ = length;
    in_have_ = 0;
    if (length == overhead && kind == SessionFrame::data) return broken("a frame of impossible length");
    if (length == 0) {
        in_payload_ = false;
        try {
            frame(kind, get_u32(header_) >> 8, nullptr, 0);
        } catch (const std::exception &) {
            fail(MUSTER_E_NOMEM, "out of memory");
        }
    }
}

void Session::take_payload(const unsigned char *&data, size_t &size) {
    const auto kind = static_cast<SessionFrame>(header_[0]);
    const uint32_t id = get_u32(header_) >> 8;
    const size_t k = std::min<uint64_t>(size, payload_left_);
    const unsigned char *from = data;
    data += k, size -= k, payload_left_ -= k;
    if (!opener_ && kind == SessionFrame::data) {
        in_payload_ = payload_left_ != 0;
        return data_piece(id, from, k, loan_);
    }
    const size_t whole = in_have_ + k + payload_left_;
    if (in_ == nullptr && (in_ = static_cast<unsigned char *>(pool_.take())) == nullptr)
        return fail(MUSTER_E_NOMEM, "out of memory");
    memcpy(in_ + in_have_, from, k);
    in_have_ += k;
    if (payload_left_ != 0) return;
    in_payload_ = false;
    const unsigned char *payload = in_;
    size_t bytes = whole;
    if (opener_) {
        if (!opener_->open(in_, whole, header_)) return broken("a frame that was changed on its way");
        payload += seal_lead_bytes;
        bytes -= seal_overhead_bytes;
    }
    if (kind == SessionFrame::data)
        data_piece(id, payload, bytes, nullptr); // deciphered into a segment of the session's own
    else
        frame(kind, id, payload, bytes);
    pool_.give(std::exchange(in_, nullptr));
}

SessionStream *Session::find(uint32_t id) noexcept {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
}

// Memory is kept only for a piece that is at least half of it: so what a stream holds is at most twice its window.
void Session::data_piece(uint32_t id, const unsigned char *data, size_t size, Loan *loan) noexcept {
    SessionStream *stream = find(id);
    if (stream == nullptr) { // over on this side, while the bytes were on their way
        if (id == 0 || id >= next_id_) broken("data for a stream that never was");
        return;
    }
    if (stream->finish_got_ || size > stream->granted_) return broken("more data than was asked for");
    stream->granted_ -= size;
    if (stream->to_host_.reader_gone()) return;
    if (loan != nullptr && size >= lent_min && size >= loan->size_bytes() / 2) {
        Lent lent{data, size, Ref<Object>(loan)};
        if (stream->to_host_.push_lent(lent) == MUSTER_OK) return;
    }
    size_t moved = 0;
    const Status status = stream->to_host_.push(data, size, moved);
    if (status < 0 || moved != size) fail(status < 0 ? status : MUSTER_E_NOMEM, "no room for what came in");
}

void Session::frame(SessionFrame kind, uint32_t id, const unsigned char *payload, size_t size) {
    SessionStream *stream = find(id);
    switch (kind) {
    case SessionFrame::open:
        return on_open(id, payload, size);
    case SessionFrame::accept:
        return on_accept(id, payload, size);
    case SessionFrame::refuse:
        return on_refuse(id, payload, size);
    case SessionFrame::where:
        return on_where(id, payload, size);
    case SessionFrame::here:
        return on_here(id, payload, size);
    case SessionFrame::heartbeat:
        return size == 0 ? answer_heartbeat() : broken("a heartbeat with contents");
    case SessionFrame::goodbye:
        goodbye_got_ = true;
        if (!opening_.empty() ||
            std::any_of(streams_.begin(), streams_.end(), [](auto &s) { return !s.second->done(); }))
            lost(Error::make(MUSTER_E_PEER, "%s: the peer closed", config_.peer.c_str()));
        else
            while (!streams_.empty()) {
                SessionStream &closed = *streams_.begin()->second;
                closed.peer_closed();
                remove(closed);
            }
        return schedule();
    case SessionFrame::pair_offer:
    case SessionFrame::pair_answer:
        if (!Pairing::take(*this, pairing_, kind == SessionFrame::pair_offer, payload, size))
            broken("a message about shared memory that makes no sense");
        return;
    case SessionFrame::credit:
    case SessionFrame::finish:
    case SessionFrame::abort:
    case SessionFrame::gone:
        break;
    case SessionFrame::data:
    default:
        return broken("a frame of unknown kind");
    }
    if (stream == nullptr) {
        if (id == 0 || id >= next_id_) broken("a frame for a stream that never was");
        return;
    }
    switch (kind) {
    case SessionFrame::credit:
        if (size != 8 || get_u64(payload) > credit_max - stream->credit_) return broken("an impossible credit");
        stream->credit_ += get_u64(payload);
        break;
    case SessionFrame::finish:
        if (size != 0 || stream->finish_got_) return broken("an impossible end");
        stream->finish_got_ = true;
        stream->to_host_.finish();
        break;
    case SessionFrame::abort:
        return on_abort(*stream, payload, size);
    default: // gone
        if (size != 0) return broken("an impossible farewell");
        stream->drop_outgoing();
        break;
    }
    if (stream->finish_got_ && stream->peer_gone_) stream->peer_closed();
    ready(*stream);
    schedule();
}

void Session::on_abort(SessionStream &stream, const unsigned char *payload, size_t size) {
    if (size < 8 || size > 8 + text_max) return broken("an impossible abort");
    char text[text_max];
    memcpy(text, payload + 8, size - 8);
    make_printable(text, size - 8);
    const Error why = Error::make(MUSTER_E_ABORTED, "%s aborted the stream%s%.*s", config_.peer.c_str(),
                                  size == 8 ? "" : ": ", static_cast<int>(size - 8), text);
    stream.duplex_->end({why, get_u64(payload)});
    remove(stream);
}

Ref<SessionStream> Session::add_stream(uint32_t id, uint64_t window, uint64_t credit) {
    Ref<SessionStream> stream = make_ref<SessionStream>(*this, id, window);
    stream->credit_ = credit;
    stream->granted_ = window;
    streams_.emplace(id, stream);
    stream->attach();
    ready(*stream);
    return stream;
}

void Session::refuse(uint32_t id, Status status, std::string_view text) noexcept {
    unsigned char word[4];
    put_u32(word, static_cast<uint32_t>(status));
    put_control(SessionFrame::refuse, id, {reinterpret_cast<char *>(word), 4}, text.substr(0, text_max));
    schedule();
}

void Session::on_open(uint32_t id, const unsigned char *payload, size_t size) {
    if (config_.dialer || id == 0 || id < next_id_) return broken("a stream opened out of turn");
    if (size < 10 || !valid_window(get_u64(payload))) return broken("a stream opened with an impossible window");
    const size_t service_bytes = get_u16(payload + 8);
    if (service_bytes > 1024 || size < 10 + service_bytes || size - 10 - service_bytes > greeting_max_bytes)
        return broken("a stream opened with an impossible name");
    next_id_ = id + 1;
    idle_since_ = now_ns();
    const char *text = reinterpret_cast<const char *>(payload) + 10;
    const std::string service(text, service_bytes), greeting(text + service_bytes, size - 10 - service_bytes);
    if (streams_.size() >= session_streams_max)
        return refuse(id, MUSTER_E_LIMIT, "too many streams between two processes");
    const SessionListener listener = owner_.session_listener(*this, service);
    if (!listener.core) return refuse(id, listener.status, listener.text);
    if (!listener.core->reserve()) return refuse(id, MUSTER_E_LIMIT, "the listener takes no more");
    struct Place { // given back if memory ends before there is a stream
        ListenerCore *core;
        ~Place() {
            if (core != nullptr) core->unreserve();
        }
    } place{listener.core.get()};
    const Ref<SessionStream> stream = add_stream(id, listener.window, get_u64(payload));
    stream->greeting_ = listener.greeting;
    stream->accept_due_ = true;
    Ref<Stream> made = Stream::make(context_, stream->duplex_, 0, Ref<Carrier>(stream), config_.peer, greeting);
    schedule();
    place.core = nullptr;
    accepted_first();
    listener.core->offer(std::move(made));
}

// The dialling side asks before it opens; the number is taken only then.
void Session::on_where(uint32_t id, const unsigned char *payload, size_t size) {
    if (config_.dialer || id == 0) return broken("a question out of turn");
    if (size > 1024) return broken("a question about an impossible name");
    idle_since_ = now_ns();
    const std::string service(reinterpret_cast<const char *>(payload), size);
    put_control(SessionFrame::here, id, owner_.session_elsewhere(*this, service));
    schedule();
}

void Session::on_here(uint32_t id, const unsigned char *payload, size_t size) {
    const auto found = opening_.find(id);
    if (found == opening_.end() || (found->second && found->second->step != Opening::Step::asking))
        return broken("an introduction nobody asked for");
    if (size > session_elsewhere_max) return broken("an introduction to impossible addresses");
    idle_since_ = now_ns();
    const Ref<Opening> opening = found->second;
    if (!opening) { // cancelled meanwhile
        opening_.erase(found);
        unanswered_--;
        return schedule();
    }
    opening->step = Opening::Step::meeting;
    opening->introduction =
        make_ref<Introduction>(*this, id, opening->options, std::string(reinterpret_cast<const char *>(payload), size));
    opening->introduction->start();
}

void Session::introduced(uint32_t id, Result<Ref<Stream>> result) noexcept {
    const auto found = opening_.find(id);
    if (found == opening_.end() || !found->second || found->second->step != Opening::Step::meeting) return;
    const Ref<Opening> opening = found->second;
    const Ref<Introduction> over = std::move(opening->introduction);
    schedule();
    if (!result) {
        opening->step = Opening::Step::here; // over the channel, then; numbers are opened in order
        auto node = opening_.extract(found);
        node.key() = next_id_++;
        opening_.insert(std::move(node));
        return;
    }
    opening_.erase(found);
    idle_since_ = now_ns();
    context_.counters.upgrades.fetch_add(1, std::memory_order_relaxed);
    const Ref<Dial> dial = std::move(opening->dial);
    if (dial) dial->done(std::move(result));
}

void Session::on_accept(uint32_t id, const unsigned char *payload, size_t size) {
    const auto found = opening_.find(id);
    if (found == opening_.end() || (found->second && found->second->step != Opening::Step::open))
        return broken("an answer nobody asked for");
    if (size < 8 || size - 8 > greeting_max_bytes || !valid_window(get_u64(payload)))
        return broken("an answer with an impossible window");
    const Ref<Opening> opening = found->second;
    if (!opening) { // cancelled meanwhile
        opening_.erase(found);
        unanswered_--;
        put_control(SessionFrame::abort, id, session_no_reason, "the dial was cancelled");
        idle_since_ = now_ns();
        return schedule();
    }
    const Ref<SessionStream> stream = add_stream(id, opening->options.window_bytes, get_u64(payload));
    const std::string greeting(reinterpret_cast<const char *>(payload) + 8, size - 8);
    auto made = Stream::make(context_, stream->duplex_, 0, Ref<Carrier>(stream), config_.peer, greeting);
    opening_.erase(found); // not before: as long as it is there, the end of the session is told to the dial
    schedule();
    opening->dial->done(std::move(made));
}

void Session::on_refuse(uint32_t id, const unsigned char *payload, size_t size) {
    const auto found = opening_.find(id);
    if (found == opening_.end() || (found->second && found->second->step != Opening::Step::open))
        return broken("a refusal nobody asked for");
    if (size < 4 || size > 4 + text_max) return broken("an impossible refusal");
    const Ref<Opening> opening = std::move(found->second);
    opening_.erase(found);
    if (!opening) unanswered_--;
    idle_since_ = now_ns();
    if (config_.single) leave_when_idle_ = true;
    schedule();
    if (!opening) return;
    const Ref<Dial> dial = std::move(opening->dial);
    const auto status = static_cast<int32_t>(get_u32(payload));
    char text[text_max];
    memcpy(text, payload + 4, size - 4);
    make_printable(text, size - 4);
    const bool known = status == MUSTER_E_UNREACHABLE || status == MUSTER_E_LIMIT || status == MUSTER_E_AUTH;
    dial->done(Error::make(known ? status : MUSTER_E_UNREACHABLE, "dial %s: %.*s", config_.peer.c_str(),
                           static_cast<int>(size - 4), text));
}

} // namespace muster
