// SPDX-License-Identifier: MIT
#include "uplink.hpp"

#include <cerrno>

namespace star {

void set_common(Socket &socket) {
    socket.set(ZMQ_RECONNECT_IVL, -1);
    socket.set(ZMQ_HANDSHAKE_IVL, 10'000);
    // Hosts that vanish: the kernel asks, for libzmq's own heartbeats look through the timers of all connections at
    // each. Processes that are stopped are not dead: the streams' own heartbeats tell of those.
    socket.set(ZMQ_TCP_KEEPALIVE, 1);
    socket.set(ZMQ_TCP_KEEPALIVE_IDLE, 15);
    socket.set(ZMQ_TCP_KEEPALIVE_INTVL, 15);
    socket.set(ZMQ_TCP_KEEPALIVE_CNT, 3);
    socket.set(ZMQ_TCP_MAXRT, 60'000);
    const int64_t most = static_cast<int64_t>(head_bytes + message_max + 4096 * 8);
    zmq_setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &most, sizeof most);
}

std::string unique_inproc(const char *what) {
    char text[64];
    snprintf(text, sizeof text, "inproc://%s-%016llx", what, static_cast<unsigned long long>(random_u64()));
    return text;
}

Uplink::Uplink(void *context, UplinkConfig config, const Keys &keys, UplinkOwner &owner)
    : context_(context), config_(std::move(config)), keys_(keys), owner_(owner) {}

Uplink::~Uplink() = default;

muster_status Uplink::open(int64_t now_ns) {
    since_ns_ = now_ns;
    socket_ = Socket(context_, ZMQ_DEALER);
    if (!socket_) return errno == EMFILE ? MUSTER_E_LIMIT : MUSTER_E_NOMEM;
    set_common(socket_);
    if (config_.curve) {
        const bool set = socket_.set(ZMQ_CURVE_SERVERKEY, config_.curve->server_public) &&
                         socket_.set(ZMQ_CURVE_PUBLICKEY, config_.curve->client_public) &&
                         socket_.set(ZMQ_CURVE_SECRETKEY, config_.curve->client_secret);
        if (!set) return MUSTER_E_UNSUPPORTED;
    }
    if (!monitor_.open(context_, socket_, unique_inproc("uplink"))) return MUSTER_E_LIMIT;
    if (zmq_connect(socket_.get(), config_.endpoint.c_str()) != 0) return MUSTER_E_ADDRESS;
    state_ = State::connecting;
    nonce_ = make_nonce();
    std::string greeting(1, static_cast<char>(config_.broker));
    greeting.append(reinterpret_cast<const char *>(nonce_.data()), nonce_.size());
    if (config_.pinned) {
        check_.emplace(*config_.pinned);
        greeting.append(reinterpret_cast<const char *>(check_->challenge().data()), challenge_bytes);
    }
    return send(Head{Kind::hello, 0, 0, 0}, greeting) ? MUSTER_OK : MUSTER_E_NOMEM;
}

bool Uplink::send(const Head &head, std::string_view payload) noexcept {
    Message message;
    return message.make(head, payload.data(), payload.size()) && socket_.send(message);
}

void Uplink::leave(int64_t linger_ms) noexcept {
    if (!socket_) return;
    socket_.set(ZMQ_LINGER, static_cast<int>(linger_ms));
    monitor_.close();
    socket_.close();
    state_ = State::lost;
}

bool Uplink::process(bool events) {
    Message message;
    int taken = 0;
    while (state_ != State::lost && taken < most_messages && socket_.receive(message)) {
        taken++;
        take(message);
    }
    if (events && taken < most_messages) { // what was received before the end comes before the end
        Monitor::Event event;
        while (state_ != State::lost && monitor_.next(event)) happened(event);
        while (state_ != State::lost && end_status_ != MUSTER_OK && socket_.receive(message)) take(message);
        if (end_status_ != MUSTER_OK) lose(end_status_, end_why_);
    }
    return state_ != State::lost && (taken == most_messages || (taken != 0 && socket_.readable()));
}

void Uplink::tick(int64_t now_ns) {
    if ((state_ == State::connecting || state_ == State::proving) && now_ns - since_ns_ > patience_ns)
        lose(MUSTER_E_UNREACHABLE, connected_ ? "the broker does not answer" : "no connection in 5 s");
}

void Uplink::lose(muster_status status, const std::string &why) {
    if (state_ == State::lost) return;
    state_ = State::lost;
    owner_.up_lost(status, why);
}

void Uplink::ended(muster_status status, std::string why) {
    if (end_status_ != MUSTER_OK) return;
    end_status_ = status;
    end_why_ = std::move(why);
}

std::string Uplink::why_no_handshake() const {
    if (config_.curve && config_.pinned)
        return "the process there does not prove the broker key " + hex_of(*config_.pinned).substr(0, 8) +
               "..., has another secret, or no CURVE";
    return config_.curve ? "the broker has another secret, a key that the address lacks (?broker=KEY), or no CURVE"
                         : "the broker insists on CURVE, or is none";
}

void Uplink::happened(const Monitor::Event &event) {
    switch (event.what) {
    case ZMQ_EVENT_CONNECTED:
        connected_ = true;
        return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        return ended(MUSTER_E_AUTH, why_no_handshake());
    case ZMQ_EVENT_CLOSED:
    case ZMQ_EVENT_DISCONNECTED:
        if (!connected_) return ended(MUSTER_E_UNREACHABLE, "nobody answers there");
        if (state_ == State::ready) return ended(MUSTER_E_PEER, "the broker is gone");
        return ended(MUSTER_E_UNREACHABLE, "whoever answers there hangs up, and is no broker");
    default:
        return;
    }
}

void Uplink::take(Message &message) {
    Head head;
    if (!get_head(message.data(), message.size(), head)) return lose(MUSTER_E_PROTOCOL, "the broker talks nonsense");
    const std::string_view payload(reinterpret_cast<char *>(message.data()) + head_bytes, message.size() - head_bytes);
    if (head.kind == Kind::refused) {
        const auto status = static_cast<muster_status>(head.word);
        return lose(status < 0 ? status : MUSTER_E_AUTH, "the broker refuses: " + printable(payload));
    }
    if (state_ == State::ready) return owner_.up_message(head, message);
    if (state_ == State::connecting && head.kind == Kind::welcome) return welcome(payload);
    if (state_ == State::proving && head.kind == Kind::ready && payload.size() == 8) {
        id_ = head.to;
        state_ = State::ready;
        return owner_.up_ready(id_, get_u64(reinterpret_cast<const unsigned char *>(payload.data())));
    }
    lose(MUSTER_E_PROTOCOL, "the broker greets in an unknown way");
}

void Uplink::welcome(std::string_view payload) {
    constexpr size_t fixed = 1 + nonce_bytes + proof_bytes;
    const bool role = check_ && payload.size() == fixed + proof_bytes;
    if (payload.size() != fixed && !role) return lose(MUSTER_E_PROTOCOL, "the broker's greeting is cut");
    const bool open = payload[0] != 0;
    Nonce theirs;
    memcpy(theirs.data(), payload.data() + 1, nonce_bytes);
    if (open && config_.curve) return lose(MUSTER_E_AUTH, "the broker lets everybody in");
    const auto *shown = reinterpret_cast<const unsigned char *>(payload.data()) + 1 + nonce_bytes;
    if (!open && !equal(shown, keys_.proof(true, nonce_, theirs).data(), proof_bytes))
        return lose(MUSTER_E_AUTH, "the broker has another secret");
    if (check_ && (!role || !check_->verify(payload.substr(fixed), nonce_, theirs)))
        return lose(MUSTER_E_AUTH, std::string("the process there ") + (role ? "has another" : "does not prove the") +
                                       " broker key: the address names " + hex_of(*config_.pinned).substr(0, 8) +
                                       "...");
    const Proof proof = keys_.proof(false, nonce_, theirs);
    std::string answer(reinterpret_cast<const char *>(proof.data()), proof.size());
    if (config_.broker) {
        unsigned char word[4];
        put_u32(word, config_.prefix);
        answer.append(reinterpret_cast<char *>(word), sizeof word);
        if (config_.role != nullptr) {
            const Proof below = config_.role->below(nonce_, theirs);
            answer.append(reinterpret_cast<const char *>(below.data()), below.size());
        }
    }
    state_ = State::proving;
    if (!send(Head{Kind::proof, 0, 0, 0}, answer)) lose(MUSTER_E_NOMEM, "out of memory");
}

} // namespace star
