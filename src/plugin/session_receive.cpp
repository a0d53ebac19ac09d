// SPDX-License-Identifier: MIT
// What comes in: the handshake, then frames. Everything a peer can say is checked here; a wrong frame ends the session.
#include "base/text.hpp"
#include "plugin/pairing.hpp"
#include "plugin/session.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
// Less is copied: that costs no more than giving the memory back later.
constexpr size_t lent_min = 16 * 1024;

bool valid_window(uint64_t window) noexcept {
    return window >= 4096 && window <= uint64_t{1} << 30 && (window & (window - 1)) == 0;
}
} // namespace

size_t Session::deliver(const void *data, size_t size, bool whole, Loan *loan) noexcept {
    if (state_ == State::over || lost_.status < 0) return size;
    settle(false); // a plug-in may deliver while it sends: a received abort takes handed-over buffers back
    if (const int64_t now = context_.loop_now_ns(); turn_ns_ != now) turn_ns_ = now, turn_left_ = turn_bytes;
    const size_t taken = whole ? size : std::min(size, turn_left_);
    turn_left_ -= std::min(taken, turn_left_);
    if (taken != 0) note_received();
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

void Session::note_received() noexcept {
    if (!silence_.on_received(context_.loop_now_ns())) return;
    for (auto &[id, stream] : streams_) stream->duplex_->tell_peer_events(0, MUSTER_STREAM_PEER_BACK);
}

// The fabric has removed the header of a message for many, which named this stream.
void Session::deliver_to(uint32_t stream, const void *data, size_t size, Loan *loan) noexcept {
    if (state_ == State::over || state_ == State::leaving || lost_.status < 0 || goodbye_received_) return;
    if (state_ != State::open || reader_.is_sealed() || !reader_.is_between_frames() || size == 0)
        return broken("bytes for many out of turn");
    settle(false); // as in deliver()
    note_received();
    take_data(stream, static_cast<const unsigned char *>(data), size, loan);
}

void Session::take(const unsigned char *data, size_t size) {
    while (size != 0 && state_ == State::handshake && lost_.status >= 0 && refused_.status >= 0)
        take_handshake(data, size);
    if (size == 0 || !takes_frames()) return; // bytes after the end are ignored
    const Status status = reader_.feed(data, size, *this);
    if (status == MUSTER_E_PROTOCOL) broken(reader_.why());
    if (status == MUSTER_E_NOMEM) fail(status, "out of memory");
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
        sealer_ = std::make_unique<Sealer>(agreed.key_out.data(), agreed.cipher);
        reader_.set_opener(std::make_unique<Opener>(agreed.key_in.data(), agreed.cipher));
        raw_.append(reinterpret_cast<const char *>(sealer_->prefix()), seal_prefix_bytes);
    }
    const int64_t peers = std::min(agreed.peer_heartbeat_ns, PeerTimeouts::max_heartbeat_ns);
    if (!config_.single) beat_ns_ = std::max(beat_ns_, peers);
    silence_.set_timeouts(PeerTimeouts(context_.settings, agreed, config_.single ? peers : beat_ns_));
    same_host_ = agreed.same_host;
    peer_direct_ = agreed.peer_direct;
    handshake_.reset();
    enter_open();
}

SessionStream *Session::find(uint32_t id) noexcept {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
}

Status Session::on_data(uint32_t id, const unsigned char *data, size_t size) noexcept {
    take_data(id, data, size, reader_.is_sealed() ? nullptr : loan_); // sealed data is in the reader's own memory
    return takes_frames() ? MUSTER_OK : MUSTER_E_CLOSED;
}

// Memory is kept only for a piece that is at least half of it: so a stream holds at most twice its window.
void Session::take_data(uint32_t id, const unsigned char *data, size_t size, Loan *loan) noexcept {
    SessionStream *stream = find(id);
    if (stream == nullptr) { // over on this side, while the bytes were in transit
        if (id == 0 || id >= next_id_) broken("data for a stream that never was");
        return;
    }
    if (stream->state_.finish_received || !stream->state_.count_received(size))
        return broken("more data than was granted");
    if (stream->to_host_.reader_gone()) return;
    if (loan != nullptr && size >= lent_min && size >= loan->size_bytes() / 2) {
        Lent lent{data, size, Ref<Object>(loan)};
        if (stream->to_host_.push_lent(lent) == MUSTER_OK) return;
    }
    size_t moved = 0;
    const Status status = stream->to_host_.push(data, size, moved);
    if (status < 0 || moved != size) fail(status < 0 ? status : MUSTER_E_NOMEM, "no room for what came in");
}

Status Session::on_frame(FrameType type, uint32_t id, const unsigned char *payload, size_t size) noexcept {
    try {
        take_frame(type, id, payload, size);
    } catch (const std::exception &) {
        fail(MUSTER_E_NOMEM, "out of memory");
    }
    return takes_frames() ? MUSTER_OK : MUSTER_E_CLOSED;
}

void Session::take_frame(FrameType type, uint32_t id, const unsigned char *payload, size_t size) {
    switch (type) {
    case FrameType::open:
        return on_open(id, payload, size);
    case FrameType::accept:
        return on_accept(id, payload, size);
    case FrameType::refuse:
        return on_refuse(id, payload, size);
    case FrameType::query_routes:
        return on_query_routes(id, payload, size);
    case FrameType::routes:
        return on_routes(id, payload, size);
    case FrameType::heartbeat:
        return answer_heartbeat();
    case FrameType::goodbye:
        goodbye_received_ = true;
        if (!opening_.empty() ||
            std::any_of(streams_.begin(), streams_.end(), [](auto &s) { return !s.second->is_done(); }))
            lost(Error::make(MUSTER_E_PEER, "%s: the peer closed", config_.peer.c_str()));
        else
            while (!streams_.empty()) {
                SessionStream &closed = *streams_.begin()->second;
                closed.end_by_peer();
                remove(closed);
            }
        return schedule();
    case FrameType::pair_offer:
    case FrameType::pair_answer:
        if (!Pairing::take(*this, pairing_, type == FrameType::pair_offer, payload, size))
            broken("a message about shared memory that makes no sense");
        return;
    default: // of one stream
        break;
    }
    SessionStream *stream = find(id);
    if (stream == nullptr) {
        if (id == 0 || id >= next_id_) broken("a frame for a stream that never was");
        return;
    }
    switch (type) {
    case FrameType::credit:
        if (!stream->state_.add_credit(get_u64(payload))) return broken("more credit than its window");
        break;
    case FrameType::finish:
        if (std::exchange(stream->state_.finish_received, true)) return broken("a second end of the data");
        stream->to_host_.finish();
        break;
    case FrameType::abort:
        stream->duplex_->end(aborted_by_peer(payload, size));
        return remove(*stream);
    default: // closed
        stream->drop_outgoing();
        break;
    }
    if (stream->state_.finish_received && stream->closed_received_) stream->end_by_peer();
    ready(*stream);
    schedule();
}

Ref<SessionStream> Session::add_stream(uint32_t id, uint64_t window, uint64_t peer_window) {
    Ref<SessionStream> stream = make_ref<SessionStream>(*this, id, window, peer_window);
    streams_.emplace(id, stream);
    stream->attach();
    ready(*stream);
    return stream;
}

void Session::refuse(uint32_t id, Status status, std::string_view text) noexcept {
    unsigned char word[4];
    put_u32(word, static_cast<uint32_t>(status));
    put_control(FrameType::refuse, id, {reinterpret_cast<char *>(word), 4}, text.substr(0, frame_text_max));
    schedule();
}

void Session::on_open(uint32_t id, const unsigned char *payload, size_t size) {
    if (config_.dialer || id == 0 || id < next_id_) return broken("a stream opened out of turn");
    if (!valid_window(get_u64(payload))) return broken("a stream opened with an impossible window");
    const size_t service_bytes = get_u16(payload + 8);
    if (service_bytes > service_max_bytes || size < 10 + service_bytes || size - 10 - service_bytes > hello_max_bytes)
        return broken("a stream opened with an impossible name");
    next_id_ = id + 1;
    idle_since_ = now_ns();
    const char *text = reinterpret_cast<const char *>(payload) + 10;
    const std::string service(text, service_bytes), hello(text + service_bytes, size - 10 - service_bytes);
    if (streams_.size() >= session_streams_max)
        return refuse(id, MUSTER_E_LIMIT, "too many streams between two processes");
    const SessionListener listener = owner_.session_listener(*this, service);
    if (!listener.core) return refuse(id, listener.status, listener.text);
    if (!listener.core->reserve()) return refuse(id, MUSTER_E_LIMIT, "the listener takes no more");
    struct Place { // released if memory runs out before there is a stream
        ListenerCore *core;
        ~Place() {
            if (core != nullptr) core->unreserve();
        }
    } place{listener.core.get()};
    const Ref<SessionStream> stream = add_stream(id, listener.window, get_u64(payload));
    stream->hello_ = listener.hello;
    stream->accept_due_ = true;
    Ref<Stream> made = Stream::make(context_, stream->duplex_, 0, Ref<Carrier>(stream), config_.peer, hello);
    schedule();
    place.core = nullptr;
    accepted_first();
    listener.core->offer(std::move(made));
}

// The dialling side queries before it opens; the number is used only when it opens.
void Session::on_query_routes(uint32_t id, const unsigned char *payload, size_t size) {
    if (config_.dialer || id == 0) return broken("a query out of turn");
    idle_since_ = now_ns();
    const std::string service(reinterpret_cast<const char *>(payload), size);
    put_control(FrameType::routes, id, owner_.session_routes(*this, service));
    schedule();
}

void Session::on_routes(uint32_t id, const unsigned char *payload, size_t size) {
    const auto found = opening_.find(id);
    if (found == opening_.end() || (found->second && found->second->step != Opening::Step::querying))
        return broken("routes without a query");
    idle_since_ = now_ns();
    const Ref<Opening> opening = found->second;
    if (!opening) { // cancelled meanwhile
        opening_.erase(found);
        unanswered_--;
        return schedule();
    }
    opening->step = Opening::Step::upgrading;
    opening->upgrade =
        make_ref<Upgrade>(*this, id, opening->options, std::string(reinterpret_cast<const char *>(payload), size));
    opening->upgrade->start();
}

void Session::upgraded(uint32_t id, Result<Ref<Stream>> result) noexcept {
    const auto found = opening_.find(id);
    if (found == opening_.end() || !found->second || found->second->step != Opening::Step::upgrading) return;
    const Ref<Opening> opening = found->second;
    const Ref<Upgrade> over = std::move(opening->upgrade);
    schedule();
    if (!result) {
        opening->step = Opening::Step::direct; // over the channel, then; numbers are opened in order
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
        return broken("an accept without an open");
    if (!valid_window(get_u64(payload))) return broken("an answer with an impossible window");
    const Ref<Opening> opening = found->second;
    if (!opening) { // cancelled meanwhile
        opening_.erase(found);
        unanswered_--;
        put_control(FrameType::abort, id, session_no_reason, "the dial was cancelled");
        idle_since_ = now_ns();
        return schedule();
    }
    const Ref<SessionStream> stream = add_stream(id, opening->options.window_bytes, get_u64(payload));
    const std::string hello(reinterpret_cast<const char *>(payload) + 8, size - 8);
    auto made = Stream::make(context_, stream->duplex_, 0, Ref<Carrier>(stream), config_.peer, hello);
    opening_.erase(found); // not before: as long as it exists, the end of the session ends the dial
    schedule();
    opening->dial->done(std::move(made));
}

void Session::on_refuse(uint32_t id, const unsigned char *payload, size_t size) {
    const auto found = opening_.find(id);
    if (found == opening_.end() || (found->second && found->second->step != Opening::Step::open))
        return broken("a refusal without an open");
    const Ref<Opening> opening = std::move(found->second);
    opening_.erase(found);
    if (!opening) unanswered_--;
    idle_since_ = now_ns();
    if (config_.single) leave_when_idle_ = true;
    schedule();
    if (!opening) return;
    const Ref<Dial> dial = std::move(opening->dial);
    const auto status = static_cast<int32_t>(get_u32(payload));
    char text[frame_text_max];
    memcpy(text, payload + 4, size - 4);
    make_printable(text, size - 4);
    const bool known = status == MUSTER_E_UNREACHABLE || status == MUSTER_E_LIMIT || status == MUSTER_E_AUTH;
    dial->done(Error::make(known ? status : MUSTER_E_UNREACHABLE, "dial %s: %.*s", config_.peer.c_str(),
                           static_cast<int>(size - 4), text));
}

} // namespace muster
