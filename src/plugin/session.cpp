// SPDX-License-Identifier: MIT
// Life and death of a session: the handshake, its turns on the loop, silence, the end.
#include "plugin/session.hpp"

#include "context/loop_watch.hpp"
#include "plugin/broadcast.hpp"
#include "plugin/pairing.hpp"

#include <algorithm>

namespace muster {

namespace {
// The maximum time in which messages of a peer that is gone may still arrive.
constexpr int64_t drain_ns = 2'000'000'000;
constexpr int max_rounds = 8; // segments sent per turn: other sessions have their turn, too
} // namespace

Session::Session(Context &context, SegmentPool &pool, Ref<Channel> channel, SessionOwner &owner, SessionConfig config)
    : context_(context), pool_(pool), channel_(std::move(channel)), owner_(owner), config_(std::move(config)),
      headroom_(channel_->headroom()), beat_ns_(std::max(context.settings.heartbeat_ns, config_.heartbeat_ns)) {
    sent_ns_ = looked_ns_ = started_ns_ = idle_since_ = now_ns();
    silence_.excuse(sent_ns_);
}

Session::~Session() {
    if (out_ != nullptr) std::free(out_);
}

void Session::start() noexcept {
    if (state_ != State::connecting) return;
    started_ns_ = looked_ns_ = now_ns();
    silence_.excuse(started_ns_);
    const int64_t beat = std::min(context_.settings.heartbeat_ns, context_.settings.handshake_timeout_ns);
    try {
        handshake_ = std::make_unique<Handshake>(handshake_config());
        raw_ = handshake_->take_output();
        timer_ = std::make_unique<LoopTimer>(context_.loop(), [this] { tick(); });
    } catch (const std::bad_alloc &) {
        return fail(MUSTER_E_NOMEM, "out of memory");
    }
    timer_->start(beat, beat);
    state_ = State::handshake;
    schedule();
}

HandshakeConfig Session::handshake_config() const {
    const ContextSettings &settings = context_.settings;
    HandshakeConfig config;
    config.dialer = config_.dialer;
    config.auth = config_.auth;
    if (config_.auth) config.secret = secret_key(settings.secret.data(), settings.secret.size());
    config.seal = config_.seal;
    config.local = config_.local;
    config.covered = config_.covered;
    config.upgrade = config_.upgrade;
    config.direct = config_.direct;
    config.external = context_.external();
    config.window = settings.window_bytes;
    config.heartbeat_ns = beat_ns_;
    config.host = HostIdentity::own();
    return config;
}

// The other side has proved the secret (or none was required).
void Session::enter_open() {
    state_ = State::open;
    idle_since_ = now_ns();
    silence_.excuse(idle_since_);
    context_.counters.handshakes_ok.fetch_add(1, std::memory_order_relaxed);
    proved_due_ = true; // the channel is notified in a turn of the session
    schedule();
    if (config_.single && !config_.dialer) { // until the stream is opened it is one of those that prove themselves
        first_due_ = true;
        first_due_ns_ = idle_since_;
        const int64_t beat = std::min(beat_ns_, context_.settings.handshake_timeout_ns);
        return timer_->start(beat, beat);
    }
    begin_beating();
    owner_.session_proved(*this);
}

void Session::accepted_first() noexcept {
    if (!std::exchange(first_due_, false)) return;
    begin_beating();
    owner_.session_proved(*this);
}

void Session::turn() noexcept {
    take_woken();
    if (state_ == State::over) return;
    const Ref<Session> alive(this);
    try {
        channel_->turn();
        if (lost_.status < 0) return end(lost_);
        if (state_ == State::connecting) return;
        if (std::exchange(proved_due_, false)) channel_->proved();
        if (std::exchange(resume_due_, false)) {
            turn_left_ = turn_bytes;
            channel_->resume();
        }
        for (int round = 0; round < max_rounds; round++) {
            if (!drain()) break;
            if (lost_.status < 0) return end(lost_);
            look_at_broadcasts();
            if (!stage()) break;
            if (round == max_rounds - 1) schedule();
        }
        settle(false); // between turns any thread may take handed-over buffers back
        if (lost_.status < 0) return end(lost_);
        if (refused_.status < 0 && ((out_ == nullptr && raw_.empty()) || send_failed_.status < 0)) return end(refused_);
        tell_pairing();
        look_idle();
    } catch (const std::bad_alloc &) {
        end(Error::make(MUSTER_E_NOMEM, "%s: out of memory", config_.peer.c_str()));
    }
}

// Single sessions leave with their stream, others on request.
void Session::look_idle() noexcept {
    if (state_ == State::open && streams_.empty() && opening_.empty()) {
        if (leave_when_idle_ || goodbye_received_) {
            state_ = State::leaving;
            leaving_ns_ = now_ns();
            goodbye_due_ = true;
            schedule();
        }
    } else if (state_ == State::leaving && out_ == nullptr && control_.empty() && !goodbye_due_) {
        if (!std::exchange(channel_finished_, true)) channel_->finish();
        state_ = State::over;
        const Ref<Session> alive(this);
        timer_.reset();
        pairing_.reset();
        channel_->close(true);
        owner_.session_over(*this, Error::make(MUSTER_E_CLOSED, "%s: closed", config_.peer.c_str()));
    }
}

void Session::end_when_idle() noexcept {
    leave_when_idle_ = true;
    if (state_ == State::connecting || state_ == State::handshake)
        lost(Error::make(MUSTER_E_CLOSED, "%s: closed", config_.peer.c_str()));
    schedule();
}

void Session::wind_down() noexcept {
    for (auto &[id, stream] : streams_) {
        if (stream->closed_.load(std::memory_order_relaxed) || !stream->from_host_empty() ||
            stream->held_back_.load(std::memory_order_seq_cst))
            continue;
        stream->duplex_->end(Error::make(MUSTER_E_CLOSED, "the context was closed"));
        stream->closed();
    }
}

// Streams of the dialling side.
void Session::open(std::string service, const TransportOptions &options, Ref<Dial> dial, bool may_upgrade) {
    const auto opening = make_ref<Opening>(*this, std::move(service), options, std::move(dial));
    opening->may_upgrade = may_upgrade;
    opening_.emplace(next_id_, opening);
    if (opening->dial->stop_by(Ref<Attempt>(opening))) {
        next_id_++;
        schedule();
        return;
    }
    opening_.erase(next_id_);
    if (config_.single) lost(Error::make(MUSTER_E_CANCELED, "dial %s: cancelled", config_.peer.c_str()));
}

void Session::cancel(Opening &opening) noexcept {
    const auto found =
        std::find_if(opening_.begin(), opening_.end(), [&](auto &o) { return o.second.get() == &opening; });
    if (found == opening_.end()) return;
    const Ref<Dial> last = std::move(opening.dial);
    if (const Ref<Upgrade> upgrade = std::move(opening.upgrade)) upgrade->stop();
    const bool unanswered = opening.step == Opening::Step::querying || opening.step == Opening::Step::open;
    if (!unanswered) { // the caller holds it
        opening_.erase(found);
    } else {
        found->second = Ref<Opening>();
        if (++unanswered_ > session_streams_max) fail(MUSTER_E_PEER, "the peer answers no dial");
    }
    idle_since_ = now_ns();
    if (config_.single) lost(Error::make(MUSTER_E_CANCELED, "dial %s: cancelled", config_.peer.c_str()));
    schedule();
}

void Session::lost(const Error &why) noexcept {
    if (lost_.status < 0 || state_ == State::over) return;
    lost_ = why;
    schedule();
}

void Session::fail(Status status, const char *what) noexcept {
    lost(Error::make(status, "%s: %s", config_.peer.c_str(), what));
}

void Session::broken(const char *what) noexcept {
    lost(Error::make(MUSTER_E_PROTOCOL, "%s: broke the protocol: %s", config_.peer.c_str(), what));
}

// The channel is no more, or may not be used any more: all streams and dials end, once.
void Session::end(const Error &cause) noexcept {
    if (state_ == State::over) return;
    const Error why = refused_.status < 0 ? refused_ : cause; // a refusal is followed by a hang-up
    const Ref<Session> alive(this);
    if (state_ == State::handshake) context_.counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
    const bool orderly = !gave_up_ && (state_ == State::leaving || refused_.status < 0 ||
                                       (why.status == MUSTER_E_END && streams_.empty()));
    state_ = State::over;
    timer_.reset();
    pairing_.reset();
    Error told = why;
    if (told.status == MUSTER_E_END)
        told = Error::make(MUSTER_E_PEER, "%s: the connection ended without a goodbye", config_.peer.c_str());
    while (!opening_.empty()) {
        const Ref<Opening> opening = std::move(opening_.begin()->second);
        opening_.erase(opening_.begin());
        if (!opening) continue;
        if (const Ref<Upgrade> upgrade = std::move(opening->upgrade)) upgrade->stop();
        const Ref<Dial> dial = std::move(opening->dial);
        if (dial) busy_ ? dial->busy(told) : dial->done(told);
    }
    while (ready_.pop_front() != nullptr) {
    }
    ready_count_ = 0;
    settle(true);
    while (!streams_.empty()) {
        const Ref<SessionStream> stream = streams_.begin()->second;
        streams_.erase(streams_.begin());
        stream->detach();
        if (stream->is_done() && told.status == MUSTER_E_CLOSED) continue; // both directions had ended before
        Error last = told;
        if (last.status != MUSTER_E_CLOSED) last.status = MUSTER_E_PEER;
        stream->duplex_->end(last);
    }
    take_woken();
    if (out_ != nullptr) pool_.give(std::exchange(out_, nullptr));
    channel_->close(orderly);
    owner_.session_over(*this, told);
}

void Session::displace() noexcept {
    const Error why =
        Error::make(MUSTER_E_LIMIT, "%s: made place for a newer connection: too many have not proved themselves",
                    config_.peer.c_str());
    if (state_ == State::handshake && !refused() && raw_.empty()) {
        const std::string text = Handshake::refusal_message(Refusal::busy); // so short that it needs no memory
        size_t taken = 0;
        if (channel_->room() >= text.size() && channel_->send(text.data(), text.size(), taken) == MUSTER_OK)
            refused_ = why; // so the channel is closed in order
    }
    end(why);
}

// From now on once per heartbeat. Four times per heartbeat is all of a process's sessions' time: a thousand that are
// due together wake it, and the process that carries their messages, once.
void Session::begin_beating() noexcept {
    timer_->start(beat_ns_ - now_ns() % (beat_ns_ / 4 + 1), beat_ns_);
}

// Both sides are awake now: the answer need not wait for the next interval.
void Session::answer_heartbeat() noexcept {
    if (context_.loop_now_ns() - sent_ns_ < beat_ns_ / 2) return;
    heartbeat_due_ = true;
    schedule();
}

// Once per heartbeat: send a heartbeat if nothing was sent, and notice silence.
void Session::tick() noexcept {
    const Ref<Session> alive(this);
    const ContextSettings &settings = context_.settings;
    const int64_t now = now_ns();
    if (state_ == State::connecting || state_ == State::handshake) {
        looked_ns_ = now;
        if (send_failed_.status < 0 && now - send_failed_ns_ > drain_ns) return lost(send_failed_);
        if (now - started_ns_ > settings.handshake_timeout_ns)
            fail(config_.dialer ? MUSTER_E_PEER : MUSTER_E_AUTH, "the handshake took too long");
        return;
    }
    look_at_clock(now);
    if (state_ == State::over || lost_.status < 0) return;
    switch (silence_.check(now)) {
    case PeerSilence::Change::dead:
        return lost(Error::make(MUSTER_E_PEER, "%s: nothing was received from the peer for %lld ms",
                                config_.peer.c_str(), static_cast<long long>(silence_.duration_ns(now) / 1'000'000)));
    case PeerSilence::Change::silent:
        for (auto &[id, stream] : streams_) stream->duplex_->tell_peer_events(0, MUSTER_STREAM_PEER_SILENT);
        break;
    case PeerSilence::Change::none:
        break;
    }
    if (now - sent_ns_ >= beat_ns_ - 1'000'000 && out_ == nullptr && control_.empty()) heartbeat_due_ = true;
    schedule();
}

// Not until the next heartbeat, which is much later.
void Session::wait_for_refusal() noexcept {
    if (timer_) timer_->start(drain_ns + 1'000'000, beat_ns_);
}

// Operations with a time limit. Also called between heartbeats with long intervals.
void Session::look_at_clock(int64_t now) noexcept {
    if (state_ != State::open && state_ != State::leaving) return;
    const Ref<Session> alive(this);
    // Was this process stopped itself (a debugger, Ctrl-Z)? Then the bytes of the peer wait to be read: it was not
    // silent.
    const int64_t usual = std::min(beat_ns_, std::max(context_.settings.heartbeat_ns, longest_between_looks_ns));
    if (now - std::exchange(looked_ns_, now) > 2 * usual + 500'000'000) {
        silence_.excuse(now);
        leaving_ns_ = first_due_ns_ = now;
    }
    if (state_ == State::leaving && now - leaving_ns_ > linger_ns) {
        gave_up_ = true;
        return fail(MUSTER_E_PEER, "the peer did not take the goodbye in time");
    }
    if (first_due_ && now - first_due_ns_ > context_.settings.handshake_timeout_ns)
        return fail(MUSTER_E_PEER, "the peer did not open its stream in time");
    if (send_failed_.status < 0 && now - send_failed_ns_ > drain_ns) return lost(send_failed_);
    for (size_t i = broadcasting_.size(); i-- != 0;) { // at most one leaves
        const Ref<Broadcast> broadcast = broadcasting_[i]->broadcast_;
        broadcast->tick(now);
    }
    for (auto it = streams_.begin(); it != streams_.end();) {
        SessionStream &stream = *(it++)->second;
        if (stream.closed_at_ != 0 && now - stream.closed_at_ > linger_ns) {
            put_control(FrameType::abort, stream.id_, session_no_reason, "closed, and the rest was not taken in time");
            stream.duplex_->end(Error::make(MUSTER_E_PEER, "the peer did not take what was left in time"));
            remove(stream);
        }
    }
}

void Session::remove(SessionStream &stream) noexcept {
    const auto found = streams_.find(stream.id_);
    if (found == streams_.end() || found->second.get() != &stream) return;
    const Ref<SessionStream> alive = std::move(found->second);
    streams_.erase(found);
    if (ready_.holds(stream)) ready_.remove(stream), ready_count_--;
    stream.detach();
    idle_since_ = now_ns();
    if (config_.single) leave_when_idle_ = true;
    schedule();
}

// The exchange is over, and its object with it.
void Session::end_pairing(Ref<SharedSegment> segment, Status status, bool asked_here) noexcept {
    if (segment || asked_here) { // a failure is reported only on the requesting side
        have_segment_ = static_cast<bool>(segment);
        pairing_due_ = true;
        pairing_segment_ = std::move(segment);
        pairing_status_ = status;
    }
    pairing_.reset();
    schedule();
}

void Session::tell_pairing() noexcept {
    if (pairing_ && pairing_->early() < 0) end_pairing({}, pairing_->early(), true);
    // Not before the answer is being sent: a plug-in may send everything through the new memory from now on, and the
    // peer reads it only when it has the answer.
    if (out_ != nullptr || !control_.empty()) return;
    if (std::exchange(pairing_due_, false)) channel_->paired(std::move(pairing_segment_), pairing_status_);
}

Status Session::pair(size_t bytes) noexcept {
    if (state_ != State::open) return MUSTER_E_AUTH;
    if (bytes == 0 || bytes > size_t{1} << 30) return MUSTER_E_ARG;
    if (pairing()) return MUSTER_E_BUSY;
    try {
        pairing_ = Pairing::offer(*this, bytes);
        return MUSTER_OK;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    }
}

} // namespace muster
