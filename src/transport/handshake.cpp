// SPDX-License-Identifier: MIT
#include "transport/handshake.hpp"

#include "transport/frame.hpp"
#include "transport/handshake_details.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

enum : uint8_t { msg_hello = 1, msg_proof = 2, msg_segment = 3, msg_paired = 4, msg_refuse = 5 };
constexpr unsigned char magic[8] = {0x93, 'M', 'u', 's', 't', 'e', 'r', '\n'};
constexpr uint16_t version_min = 1, version_max = 1;
constexpr size_t hello_bytes = 8 + 2 + 2 + 4 + 32 + 32;
constexpr size_t proof_bytes = 32, tag_bytes = crypto_aead_chacha20poly1305_ietf_ABYTES;
constexpr size_t proof_max = proof_bytes + HandshakeDetails::max_bytes + tag_bytes;
constexpr size_t paired_bytes = 1 + 16;
constexpr char no_secret[] = "a public key that gives no secret";
constexpr std::string_view other_key_mark = {"\0muster other key\0", 18}; // before a hello, and the key's id (8)

// In HELLO.
enum : uint32_t { option_auth = 1, option_seal = 2, option_no_seal = 4, option_known = 7 };

// The longest body a message may have; 0: no such message.
size_t longest(uint8_t type) noexcept {
    switch (type) {
    case msg_hello:
        return hello_bytes;
    case msg_proof:
        return proof_max;
    case msg_segment:
        return 8;
    case msg_paired:
        return paired_bytes;
    case msg_refuse:
        return 1;
    default:
        return 0;
    }
}

} // namespace

SecretKey secret_key(const void *secret, size_t size) noexcept {
    return key_hash(nullptr, {"muster secret 1", {static_cast<const char *>(secret), size}});
}

bool OtherKeys::add(uint64_t id, const SecretKey &key) {
    const std::lock_guard hold(lock_);
    if (keys_.size() == max_keys) return false;
    keys_.emplace_back(id, key);
    return true;
}

void OtherKeys::remove(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    for (auto key = keys_.begin(); key != keys_.end(); ++key) {
        if (key->first != id) continue;
        sodium_memzero(key->second.data(), key->second.size());
        keys_.erase(key);
        return;
    }
}

std::vector<std::pair<uint64_t, SecretKey>> OtherKeys::all() {
    const std::lock_guard hold(lock_);
    return keys_;
}

uint64_t take_other_key(std::string_view &hello) noexcept {
    if (hello.size() < other_key_mark.size() + 8 || hello.substr(0, other_key_mark.size()) != other_key_mark) return 0;
    const uint64_t id = get_u64(reinterpret_cast<const unsigned char *>(hello.data()) + other_key_mark.size());
    hello.remove_prefix(other_key_mark.size() + 8);
    return id;
}

Handshake::Handshake(HandshakeConfig config) : config_(std::move(config)) {
    if (!config_.auth) config_.secret = secret_key("", 0);
    randombytes_buf(private_.data(), private_.size());
    crypto_scalarmult_base(public_.data(), private_.data());
    if (config_.dialer) make_hello();
}

Handshake::~Handshake() {
    sodium_memzero(private_.data(), private_.size());
    sodium_memzero(root_.data(), root_.size());
    sodium_memzero(shared_.data(), shared_.size());
    sodium_memzero(config_.secret.data(), config_.secret.size());
    sodium_memzero(agreed_.key_in.data(), agreed_.key_in.size());
    sodium_memzero(agreed_.key_out.data(), agreed_.key_out.size());
}

std::string Handshake::take_output() {
    return std::exchange(output_, {});
}

void Handshake::send(uint8_t type, const void *body, size_t size, std::string *transcript) {
    std::string text(handshake_head_bytes, '\0');
    text[0] = static_cast<char>(type);
    put_u16(reinterpret_cast<unsigned char *>(text.data()) + 2, static_cast<uint16_t>(size));
    text.append(static_cast<const char *>(body), size);
    if (transcript != nullptr) *transcript = text;
    output_ += text;
}

Status Handshake::fail(Refusal why, Status status, const char *text) {
    if (why != Refusal::none && !config_.dialer) output_ += refusal_message(why);
    error_ = Error::make(status, "%s", text);
    state_ = State::failed;
    return status;
}

void Handshake::refuse(Refusal why) {
    fail(why, MUSTER_E_LIMIT, "refused");
}

std::string Handshake::refusal_message(Refusal why) {
    const char text[handshake_head_bytes + 1] = {msg_refuse, 0, 1, 0, static_cast<char>(why)};
    return {text, sizeof text};
}

size_t Handshake::wants() const noexcept {
    if (in_.size() < handshake_head_bytes) return handshake_head_bytes - in_.size();
    return handshake_head_bytes + get_u16(in_.data() + 2) - in_.size();
}

Status Handshake::feed(const unsigned char *data, size_t size, size_t &used) {
    used = 0;
    for (;;) {
        if (state_ == State::done) return MUSTER_OK;
        if (state_ == State::failed) return error_.status;
        const size_t k = std::min(wants(), size - used);
        in_.insert(in_.end(), data + used, data + used + k);
        used += k;
        if (in_.size() == handshake_head_bytes) {
            const size_t most = longest(in_[0]);
            // The first byte distinguishes other protocols: none of their messages begins with a type of this one.
            if (most == 0 || in_[1] != 0)
                return fail(Refusal::none, MUSTER_E_PROTOCOL, "the other side does not speak Muster");
            if (get_u16(in_.data() + 2) > most)
                return fail(Refusal::protocol, MUSTER_E_PROTOCOL, "a message of the handshake is too long");
        }
        if (wants() != 0) {
            if (used == size) return MUSTER_AGAIN;
            continue;
        }
        const std::vector<unsigned char> whole = std::exchange(in_, {});
        const Status status =
            message(whole[0], whole.data() + handshake_head_bytes, whole.size() - handshake_head_bytes);
        if (status != MUSTER_AGAIN) return status;
        if (used == size) return MUSTER_AGAIN;
    }
}

Status Handshake::message(uint8_t type, const unsigned char *body, size_t size) {
    if (type == msg_refuse && config_.dialer) return take_refusal(body, size);
    if (type == msg_hello && state_ == State::hello) return take_hello(body, size);
    if (type == msg_proof && state_ == State::proof) return take_proof(body, size);
    if (type == msg_paired && state_ == State::paired && !config_.dialer) return take_paired(body, size);
    return fail(Refusal::protocol, MUSTER_E_PROTOCOL, "a message of the handshake came out of turn");
}

void Handshake::make_hello() {
    unsigned char body[hello_bytes];
    memcpy(body, magic, 8);
    put_u16(body + 8, version_min);
    put_u16(body + 10, version_max);
    uint32_t options = 0;
    if (config_.auth) options |= option_auth;
    if (config_.seal == SealPolicy::always) options |= option_seal;
    if (config_.seal == SealPolicy::never) options |= option_no_seal;
    put_u32(body + 12, options);
    randombytes_buf(body + 16, 32);
    memcpy(body + 48, public_.data(), 32);
    send(msg_hello, body, sizeof body, &hello_own_);
}

Status Handshake::take_hello(const unsigned char *body, size_t size) {
    if (size < hello_bytes || memcmp(body, magic, sizeof magic) != 0)
        return fail(Refusal::none, MUSTER_E_PROTOCOL, "the other side does not speak Muster");
    const uint16_t low = get_u16(body + 8), high = get_u16(body + 10);
    if (low > version_max || high < version_min)
        return fail(Refusal::version, MUSTER_E_PROTOCOL, "no common version of the protocol");
    peer_options_ = get_u32(body + 12);
    if ((peer_options_ & ~uint32_t{option_known}) != 0)
        return fail(Refusal::version, MUSTER_E_PROTOCOL, "unknown options of the other side");
    if (((peer_options_ & option_auth) != 0) != config_.auth)
        return fail(Refusal::auth_differs, MUSTER_E_AUTH,
                    config_.auth ? "the other side wants no proof of the secret (auth=none)"
                                 : "the other side wants proof of the secret, auth=none must be written on both sides");
    const bool always = config_.seal == SealPolicy::always || (peer_options_ & option_seal) != 0;
    const bool never = config_.seal == SealPolicy::never || (peer_options_ & option_no_seal) != 0;
    if (always && never)
        return fail(Refusal::seal_differs, MUSTER_E_PROTOCOL, "one side insists on sealing, the other refuses it");
    hello_peer_.assign(handshake_head_bytes, '\0');
    hello_peer_[0] = msg_hello;
    hello_peer_[2] = static_cast<char>(size);
    hello_peer_.append(reinterpret_cast<const char *>(body), size);
    memcpy(public_peer_.data(), body + 48, public_peer_.size());
    state_ = State::proof;
    if (!config_.dialer) {
        make_hello();
        return MUSTER_AGAIN;
    }
    if (!derive_keys()) return fail(Refusal::none, MUSTER_E_PROTOCOL, no_secret);
    make_proof();
    return MUSTER_AGAIN;
}

void Handshake::prepare() noexcept {
    if (state_ == State::proof) derive_keys();
}

// False: the public key of the other side gives no secret.
bool Handshake::derive_keys() noexcept {
    if (has_root_) return *has_root_;
    has_root_ = crypto_scalarmult(shared_.data(), private_.data(), public_peer_.data()) == 0;
    if (*has_root_) derive_root();
    return *has_root_;
}

void Handshake::derive_root() noexcept {
    const std::string &first = config_.dialer ? hello_own_ : hello_peer_;
    const std::string &second = config_.dialer ? hello_peer_ : hello_own_;
    transcript_ = key_hash(nullptr, {"muster hello 1", first, second});
    root_ = key_hash(&config_.secret, {"muster root 1", key_part(shared_), key_part(transcript_)});
}

SecretKey Handshake::derive(const char *label, bool with_all) const {
    return key_hash(&root_, {label, key_part(with_all ? all_ : transcript_)});
}

std::string Handshake::details() const {
    HandshakeDetails own;
    own.local = config_.local;
    own.covered = config_.covered;
    own.direct = config_.direct;
    own.aes = config_.aes;
    own.external = config_.external;
    own.upgrade = config_.upgrade;
    own.shared = config_.shared;
    own.here = config_.passing == Passing::in_band;
    own.aside = config_.passing == Passing::out_of_band;
    own.window = config_.window;
    own.heartbeat_ns = config_.heartbeat_ns;
    own.host = config_.host;
    own.hello = config_.hello;
    own.pairing = agreed_.pairing;
    own.offer = agreed_.offer;
    return own.encode();
}

void Handshake::make_proof() {
    const SecretKey proof = derive(config_.dialer ? "muster proof dialer" : "muster proof listener");
    const SecretKey key = derive(config_.dialer ? "muster details dialer" : "muster details listener");
    const std::string text = details();
    std::vector<unsigned char> body(proof_bytes + text.size() + tag_bytes);
    memcpy(body.data(), proof.data(), proof_bytes);
    const unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = {}; // each key seals one message only
    crypto_aead_chacha20poly1305_ietf_encrypt(body.data() + proof_bytes, nullptr,
                                              reinterpret_cast<const unsigned char *>(text.data()), text.size(),
                                              proof.data(), proof.size(), nullptr, nonce, key.data());
    send(msg_proof, body.data(), body.size(), &proof_own_);
}

bool Handshake::fits(const unsigned char *proof, const char *label) const noexcept {
    return sodium_memcmp(derive(label).data(), proof, proof_bytes) == 0;
}

// The dialer may have proved another key. Keys that derive from it seal the rest, also the details with its hello.
bool Handshake::fits_other_key(const unsigned char *proof) {
    if (config_.dialer || !config_.auth || !config_.other_keys || (peer_options_ & option_seal) == 0) return false;
    const SecretKey own = config_.secret;
    for (const auto &[id, key] : config_.other_keys->all()) {
        config_.secret = key;
        derive_root();
        if (fits(proof, "muster proof dialer")) {
            other_key_ = id;
            return true;
        }
    }
    config_.secret = own;
    derive_root();
    return false;
}

Status Handshake::take_proof(const unsigned char *body, size_t size) {
    const char *const label = config_.dialer ? "muster proof listener" : "muster proof dialer";
    if (!derive_keys()) return fail(Refusal::protocol, MUSTER_E_PROTOCOL, no_secret);
    if (size < proof_bytes + tag_bytes || (!fits(body, label) && !fits_other_key(body)))
        return fail(Refusal::wrong_secret, MUSTER_E_AUTH, "the other side has another secret");
    const SecretKey proof = derive(label);
    const SecretKey key = derive(config_.dialer ? "muster details listener" : "muster details dialer");
    std::string text(size - proof_bytes - tag_bytes, '\0');
    const unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = {};
    if (crypto_aead_chacha20poly1305_ietf_decrypt(reinterpret_cast<unsigned char *>(text.data()), nullptr, nullptr,
                                                  body + proof_bytes, size - proof_bytes, proof.data(), proof.size(),
                                                  nonce, key.data()) != 0)
        return fail(Refusal::wrong_secret, MUSTER_E_AUTH, "the details of the other side were changed on their way");
    HandshakeDetails theirs;
    if (!theirs.decode(text))
        return fail(Refusal::protocol, MUSTER_E_PROTOCOL, "the details of the other side make no sense");
    proof_peer_.assign(reinterpret_cast<const char *>(body), size);
    return agree(std::move(theirs));
}

// Both sides derive the same result from the same proved facts.
Status Handshake::agree(HandshakeDetails theirs) {
    agreed_.hello = std::move(theirs.hello);
    if (other_key_ != 0) {
        unsigned char id[8];
        put_u64(id, other_key_);
        agreed_.hello.insert(0, reinterpret_cast<const char *>(id), sizeof id).insert(0, other_key_mark);
    }
    agreed_.peer_window = theirs.window;
    agreed_.peer_heartbeat_ns = theirs.heartbeat_ns;
    agreed_.peer_external = theirs.external;
    if (config_.dialer) {
        agreed_.pairing = theirs.pairing;
        agreed_.offer = std::move(theirs.offer);
    }
    agreed_.local = config_.local && theirs.local && config_.host.same_kernel(theirs.host);
    const bool always = config_.seal == SealPolicy::always || (peer_options_ & option_seal) != 0;
    const bool own_never = config_.seal == SealPolicy::never, peer_never = (peer_options_ & option_no_seal) != 0;
    const bool safe = agreed_.local || (config_.covered && theirs.covered);
    if (!safe && !always && own_never != peer_never)
        return fail(Refusal::seal_differs, MUSTER_E_PROTOCOL,
                    "the link leaves the host, and one side does not seal it: seal=no must be written on both sides");
    agreed_.sealed = always || (!safe && !own_never);
    if (config_.aes && theirs.aes) agreed_.cipher = SealCipher::aes256_gcm;
    agreed_.same_host = config_.upgrade && theirs.upgrade && config_.host.same_place(theirs.host);
    agreed_.peer_direct = theirs.direct;
    agreed_.shared_window = std::min(config_.window, agreed_.peer_window);
    const bool must = config_.shared || theirs.shared;
    const bool like = must || (config_.upgrade && theirs.upgrade && !agreed_.sealed);
    if (!config_.dialer) {
        const bool way = (config_.passing == Passing::in_band && theirs.here) ||
                         (config_.passing == Passing::out_of_band && theirs.aside);
        if (like && agreed_.local && config_.host.same_place(theirs.host) && way &&
            (config_.passing == Passing::in_band || (config_.offer && config_.offer(agreed_.offer))))
            agreed_.pairing = config_.passing;
        if (must && agreed_.pairing == Passing::none)
            return fail(Refusal::no_shared_memory, MUSTER_E_UNSUPPORTED,
                        "the other side cannot share memory with this process");
        if (config_.admit && !config_.admit())
            return fail(Refusal::limit, MUSTER_E_LIMIT, "more connections than accept() takes");
        make_proof();
    }
    // The listener's choice must be one that this side supports.
    if (config_.dialer && agreed_.pairing != Passing::none && (!like || agreed_.pairing != config_.passing))
        return fail(Refusal::none, MUSTER_E_PROTOCOL, "the other side offers shared memory that was not requested");
    if (config_.dialer && config_.shared && agreed_.pairing == Passing::none)
        return fail(Refusal::none, MUSTER_E_UNSUPPORTED, "the other side does not share its memory");
    const std::string_view own(proof_own_), first = config_.dialer ? own.substr(handshake_head_bytes) : proof_peer_,
                                            second = config_.dialer ? proof_peer_ : own.substr(handshake_head_bytes);
    all_ = key_hash(nullptr, {"muster all 1", key_part(transcript_), first, second});
    agreed_.key_out = derive(config_.dialer ? "muster stream dialer" : "muster stream listener", true);
    agreed_.key_in = derive(config_.dialer ? "muster stream listener" : "muster stream dialer", true);
    if (agreed_.pairing == Passing::none) {
        state_ = State::done;
        return MUSTER_OK;
    }
    state_ = config_.dialer ? State::segment : State::paired;
    return MUSTER_AGAIN;
}

Status Handshake::paired(bool ok) {
    if (state_ != State::segment) return MUSTER_E_ARG;
    unsigned char body[paired_bytes] = {static_cast<unsigned char>(ok)};
    const SecretKey mark = derive(ok ? "muster paired yes" : "muster paired no", true);
    memcpy(body + 1, mark.data(), 16);
    send(msg_paired, body, sizeof body, nullptr);
    agreed_.paired = ok;
    if (!ok && config_.shared)
        return fail(Refusal::none, MUSTER_E_UNSUPPORTED, "the shared memory could not be set up");
    state_ = State::done;
    return MUSTER_OK;
}

Status Handshake::take_paired(const unsigned char *body, size_t size) {
    if (size != paired_bytes || body[0] > 1)
        return fail(Refusal::protocol, MUSTER_E_PROTOCOL, "an answer about shared memory makes no sense");
    const bool ok = body[0] == 1;
    const SecretKey mark = derive(ok ? "muster paired yes" : "muster paired no", true);
    if (sodium_memcmp(mark.data(), body + 1, 16) != 0)
        return fail(Refusal::protocol, MUSTER_E_PROTOCOL, "an answer about shared memory was changed on its way");
    agreed_.paired = ok;
    if (!ok && config_.shared)
        return fail(Refusal::none, MUSTER_E_UNSUPPORTED, "the other side could not map the shared memory");
    state_ = State::done;
    return MUSTER_OK;
}

Status Handshake::take_refusal(const unsigned char *body, size_t size) {
    switch (static_cast<Refusal>(size == 1 ? body[0] : 0)) {
    case Refusal::wrong_secret:
        return fail(Refusal::none, MUSTER_E_AUTH, "refused: the other side has another secret");
    case Refusal::auth_differs:
        return fail(Refusal::none, MUSTER_E_AUTH, "refused: auth=none must be written on both sides or on none");
    case Refusal::version:
        return fail(Refusal::none, MUSTER_E_PROTOCOL, "refused: no common version of the protocol");
    case Refusal::seal_differs:
        return fail(Refusal::none, MUSTER_E_PROTOCOL, "refused: one side insists on sealing, the other does not");
    case Refusal::limit:
        return fail(Refusal::none, MUSTER_E_LIMIT, "refused: the other side takes no more connections");
    case Refusal::busy:
        busy_ = true;
        return fail(Refusal::none, MUSTER_E_LIMIT,
                    "refused: too many connections have not proved themselves at the other side");
    case Refusal::no_shared_memory:
        return fail(Refusal::none, MUSTER_E_UNSUPPORTED, "refused: no memory can be shared with the other side");
    default:
        return fail(Refusal::none, MUSTER_E_PROTOCOL, "refused: the other side did not understand");
    }
}

std::string Handshake::segment_message(uint64_t window) {
    unsigned char text[handshake_head_bytes + 8] = {msg_segment, 0, 8, 0};
    put_u64(text + handshake_head_bytes, window);
    return {reinterpret_cast<char *>(text), sizeof text};
}

size_t Handshake::segment_message_bytes() noexcept {
    return handshake_head_bytes + 8;
}

bool Handshake::read_segment_message(const unsigned char *data, uint64_t &window) noexcept {
    if (data[0] != msg_segment || data[1] != 0 || get_u16(data + 2) != 8) return false;
    window = get_u64(data + handshake_head_bytes);
    return true;
}

} // namespace muster
