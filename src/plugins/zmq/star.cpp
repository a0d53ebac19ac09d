// SPDX-License-Identifier: MIT
#include "star.hpp"

#include "plugin.hpp"

#include <algorithm>
#include <cstdlib>

namespace star {

namespace {

constexpr int64_t tick_ns = 1'000'000'000;
constexpr uint64_t window_max = uint64_t{1} << 30; // a broker's bound
constexpr size_t file_name_max = 512;              // of curve=
constexpr size_t peers_max = 1 << 18;              // known at a time
// Smaller messages are copied: a segment is more than they are worth.
constexpr size_t lend_min = 16 * 1024;

// At the head of a segment that is being sent.
struct Lent {
    const muster_host *host;
    void *segment;
};

void give_back(void *, void *hint) {
    const Lent lent = *static_cast<Lent *>(hint); // it lies in what is given back
    if (lent.segment != nullptr) lent.host->release_buffer(lent.host, lent.segment);
}

// The end of a loan, any thread.
void give_up(void *message, void *) {
    delete static_cast<Message *>(message);
}

} // namespace

bool BrokerAddress::parse(std::string_view authority, BrokerAddress &out, std::string &why) {
    const size_t question = authority.find('?');
    if (question != std::string_view::npos) {
        std::string_view options = authority.substr(question + 1);
        authority = authority.substr(0, question);
        while (!options.empty()) {
            const std::string_view option = options.substr(0, options.find('&'));
            options.remove_prefix(std::min(options.size(), option.size() + 1));
            if (option == "curve=no" || option == "curve=yes")
                out.curve = option == "curve=yes";
            else if (option.substr(0, 7) == "curve=/" && option.size() <= file_name_max)
                out.curve_file = option.substr(6);
            else if (option.substr(0, 7) == "broker=") {
                if (!key_of_hex(option.substr(7), out.broker_key.emplace()))
                    return why = "broker= has a key of 64 digits 0-9 and a-f, not " + printable(option.substr(7)),
                           false;
            } else
                return why = "unknown option " + std::string(option), false;
        }
    }
    const size_t at = authority.rfind('@');
    if (at != std::string_view::npos) {
        out.name = authority.substr(0, at);
        if (!valid_name(out.name))
            return why = "a name is 1 to 64 letters, digits, - _ and ., not " + printable(out.name), false;
        authority = authority.substr(at + 1);
    }
    const size_t bracket = authority.rfind(']'), colon = authority.rfind(':');
    std::string_view host = authority, port;
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        host = authority.substr(0, colon);
        port = authority.substr(colon + 1);
    }
    uint32_t number = port.empty() ? default_port : 0;
    for (const char c : port)
        number = c >= '0' && c <= '9' && number < 100'000 ? number * 10 + uint32_t(c - '0') : 100'000;
    if (host.empty() || host.find_first_of(" @/*;") != std::string_view::npos)
        return why = "no broker in it: zmq://[name@]host:port/", false;
    if (number == 0 || number > 65535) return why = "no port: " + printable(port), false;
    out.place = std::string(host) + ":" + std::to_string(number);
    out.local = host == "localhost" || host == "[::1]" || host.substr(0, 4) == "127.";
    return true;
}

std::string BrokerAddress::key() const {
    std::string text = place;
    if (!curve) text += "?curve=no";
    if (curve && !curve_file.empty()) text += "?curve=" + curve_file;
    if (broker_key) text += (text.size() == place.size() ? "?broker=" : "&broker=") + hex_of(*broker_key);
    return text;
}

Star::Star(Plugin &plugin, BrokerAddress address, std::optional<CurveKeys> keys, std::optional<CurveKey> pinned)
    : plugin_(plugin), address_(std::move(address)), keys_(std::move(keys)), pinned_(pinned) {}

Star::~Star() {
    disconnect();
    plugin_.host()->stop_timer(std::exchange(retry_, nullptr));
    for (const auto &[id, peer] : peers_) plugin_.disown(peer.number);
    for (const uint64_t number : lost_) plugin_.disown(number);
}

// ---- the connection
// --------------------------------------------------------------------------------------------------

void Star::connect() {
    const muster_host *const host = plugin_.host();
    host->stop_timer(std::exchange(retry_, nullptr));
    if (uplink_) return;
    UplinkConfig config;
    config.place = address_.place;
    config.curve = keys_;
    config.pinned = pinned_;
    uplink_ = std::make_unique<Uplink>(std::move(config), plugin_.keys(), plugin_.scratch(), *this);
    const auto due = [](void *self) { static_cast<Star *>(self)->tick(); };
    muster_status status = MUSTER_OK;
    if (timer_ == nullptr) status = host->start_timer(host, tick_ns, tick_ns, due, this, &timer_);
    if (status == MUSTER_OK) status = uplink_->open(now_ns());
    if (status != MUSTER_OK) up_lost(status, "no connection can be made");
    if (down_) look_soon();
}

muster_status Star::up_watch(int fd, bool writable) {
    const muster_host *const host = plugin_.host();
    const uint32_t events = MUSTER_PLUGIN_READABLE | (writable ? MUSTER_PLUGIN_WRITABLE : 0);
    if (watch_ != nullptr && fd == watched_) return host->change_fd(watch_, events), MUSTER_OK;
    host->unwatch_fd(std::exchange(watch_, nullptr));
    watched_ = fd;
    if (fd < 0) return MUSTER_OK;
    const auto ready = [](void *self, uint32_t) { static_cast<Star *>(self)->ready(); };
    return host->watch_fd(host, fd, events, ready, this, &watch_);
}

void Star::ready() {
    if (uplink_) uplink_->process();
    look();
}

void Star::disconnect() {
    uplink_.reset();
    plugin_.host()->stop_timer(std::exchange(timer_, nullptr));
}

void Star::leave() {
    if (uplink_) uplink_->leave();
}

void Star::drain(int64_t limit_ns) {
    if (uplink_) uplink_->drain(limit_ns);
}

void Star::look_soon() {
    if (std::exchange(look_posted_, true)) return;
    const auto run = [](void *self) {
        static_cast<Star *>(self)->look_posted_ = false;
        static_cast<Star *>(self)->look();
    };
    if (plugin_.host()->post(plugin_.host(), run, this) != MUSTER_OK) look_posted_ = false;
}

void Star::look() {
    if (!std::exchange(down_, false)) return;
    // The broker is lost: now everybody is told, outside of the uplink.
    disconnect();
    const std::string why = "the broker at " + address_.place + ": " + down_why_;
    const bool was_in = window_ != 0;
    window_ = 0;
    if (was_in) plugin_.log(MUSTER_LOG_WARN, why);
    for (auto &[name, state] : names_) state.ours = false;
    for (const auto &[number, asked] : std::exchange(asked_, {}))
        if (asked.question != 0) plugin_.answer(asked.claim, asked.question, down_status_, 0, why);
    for (const auto &[id, peer] : std::exchange(peers_, {})) tell_lost(peer, why);
    if (!names_.empty()) retry_later();
}

void Star::retry_later() {
    const muster_host *const host = plugin_.host();
    if (retry_ != nullptr) return;
    const auto due = [](void *self) { static_cast<Star *>(self)->connect(); };
    host->start_timer(host, back_off_.next_ns(random_u64()), 0, due, this, &retry_);
}

// Until there is nothing to wait for: a member whose connection stands and whose names are its own sleeps.
void Star::tick() {
    if (!uplink_) return;
    uplink_->tick(now_ns());
    if (down_) return look();
    if (!uplink_->ready()) return;
    if (std::all_of(names_.begin(), names_.end(), [](const auto &name) { return name.second.ours; }))
        return plugin_.host()->stop_timer(std::exchange(timer_, nullptr));
    for (const auto &[name, state] : names_) {
        const bool pending = std::any_of(asked_.begin(), asked_.end(), [&name = name](const auto &asked) {
            return asked.second.claim && asked.second.name == name;
        });
        if (!state.ours && !pending) ask({true, name, 0}); // somebody else had it when we came back
    }
}

void Star::up_lost(muster_status status, const std::string &why) {
    down_ = true;
    down_status_ = status == MUSTER_E_PEER ? MUSTER_E_UNREACHABLE : status;
    down_why_ = why;
}

void Star::up_ready(uint64_t, uint64_t window) {
    window_ = std::clamp<uint64_t>(window, 1, window_max);
    back_off_.reset();
    plugin_.log(MUSTER_LOG_INFO, "a member at " + address_.place);
    for (auto &[number, asked] : asked_)
        uplink_->send(Head{asked.claim ? Kind::claim : Kind::find, number, 0, uplink_->id()}, asked.name);
    for (const auto &[name, state] : names_) {
        const bool pending = std::any_of(asked_.begin(), asked_.end(), [&name = name](const auto &asked) {
            return asked.second.claim && asked.second.name == name;
        });
        if (!pending) ask({true, name, 0});
    }
}

// ---- names
// -----------------------------------------------------------------------------------------------------------

void Star::ask(const Asked &asked) {
    const uint32_t number = next_asked_++;
    asked_.emplace(number, asked);
    if (uplink_ && uplink_->ready()) {
        uplink_->send(Head{asked.claim ? Kind::claim : Kind::find, number, 0, uplink_->id()}, asked.name);
    } else {
        connect();
    }
}

void Star::find(const std::string &name, uint64_t question) {
    ask({false, name, question});
}

void Star::claim(const std::string &name, uint64_t question) {
    const auto found = names_.find(name);
    if (found != names_.end() && found->second.ours) {
        found->second.users++;
        return plugin_.answer(true, question, MUSTER_OK, 0, address_.authority_of(name));
    }
    ask({true, name, question});
}

void Star::release(const std::string &name) {
    const auto found = names_.find(name);
    if (found == names_.end() || --found->second.users != 0) return;
    names_.erase(found);
    if (uplink_ && uplink_->ready()) uplink_->send(Head{Kind::release, 0, 0, uplink_->id()}, name);
}

void Star::answered(const Head &head, std::string_view payload) {
    Answer answer;
    const auto found = asked_.find(head.word);
    if (found == asked_.end() || !answer.decode(payload)) return;
    const Asked asked = found->second;
    asked_.erase(found);
    if (!asked.claim) {
        Peer *const who = answer.status == MUSTER_OK ? peer(head.from) : nullptr;
        if (who != nullptr) who->known = true;
        if (who == nullptr && answer.status == MUSTER_OK) answer.status = MUSTER_E_LIMIT;
        return plugin_.answer(false, asked.question, answer.status, who != nullptr ? who->number : 0,
                              printable(answer.text));
    }
    if (answer.status == MUSTER_OK) {
        Name &name = names_[asked.name];
        if (asked.question != 0) name.users++;
        name.ours = name.users != 0;
        if (!name.ours) { // withdrawn meanwhile
            names_.erase(asked.name);
            uplink_->send(Head{Kind::release, 0, 0, uplink_->id()}, asked.name);
        }
    } else if (asked.question == 0) {
        plugin_.log(MUSTER_LOG_ERROR, "the name " + asked.name + " is lost: " + printable(answer.text));
    }
    if (asked.question == 0) return;
    plugin_.answer(true, asked.question, answer.status, 0,
                   answer.status == MUSTER_OK ? address_.authority_of(asked.name) : printable(answer.text));
}

// ---- bytes
// -----------------------------------------------------------------------------------------------------------

Star::Peer *Star::peer(uint64_t id) {
    if (const auto found = peers_.find(id); found != peers_.end()) return &found->second;
    if (peers_.size() >= peers_max) return nonsense("the broker tells of too many members"), nullptr;
    Peer &fresh = peers_[id];
    fresh.number = plugin_.own(*this, id);
    const uint32_t flags = (address_.curve ? MUSTER_PLUGIN_SEALS : 0) | (address_.local ? MUSTER_PLUGIN_LOCAL : 0);
    plugin_.host()->peer_flags(plugin_.endpoint(), fresh.number, flags);
    return &fresh;
}

// The end of this connection, told as soon as the uplink has returned.
void Star::nonsense(const char *what) {
    up_lost(MUSTER_E_PROTOCOL, what);
    look_soon();
}

bool Star::may_send(Peer &peer, size_t message_bytes) {
    if (peer.out == 0 || peer.out + cost(message_bytes) <= window_) return true;
    peer.blocked = true;
    return false;
}

muster_status Star::sent(Peer &peer, Message &message, bool done) {
    if (!done) return MUSTER_E_NOMEM;
    const uint64_t charge = cost(message.size());
    if (!uplink_->send(message)) return MUSTER_E_PEER;
    peer.out += charge;
    return MUSTER_OK;
}

muster_status Star::send(uint64_t id, const muster_span *spans, uint32_t count) {
    const auto found = peers_.find(id);
    if (found == peers_.end() || !uplink_ || !uplink_->ready()) return MUSTER_E_PEER;
    size_t size = head_bytes;
    for (uint32_t i = 0; i < count; i++) size += spans[i].size_bytes;
    if (!may_send(found->second, size)) return MUSTER_AGAIN;
    Message message;
    const bool made = message.make(size);
    if (made) {
        put_head(message.data(), Head{Kind::data, 0, id, uplink_->id()});
        unsigned char *to = message.data() + head_bytes;
        for (uint32_t i = 0; i < count; to += spans[i++].size_bytes) memcpy(to, spans[i].data, spans[i].size_bytes);
    }
    return sent(found->second, message, made);
}

muster_status Star::send_buffer(uint64_t id, void *segment, size_t offset, size_t size) {
    const auto found = peers_.find(id);
    if (found == peers_.end() || !uplink_ || !uplink_->ready()) return MUSTER_E_PEER;
    if (size < lend_min) return MUSTER_E_UNSUPPORTED;
    if (!may_send(found->second, head_bytes + size)) return MUSTER_AGAIN;
    auto *const start = static_cast<unsigned char *>(segment) + offset - head_bytes;
    put_head(start, Head{Kind::data, 0, id, uplink_->id()});
    Message message;
    Lent *const lent = new (segment) Lent{plugin_.host(), segment};
    const muster_status status = sent(found->second, message, message.lend(start, head_bytes + size, give_back, lent));
    if (status != MUSTER_OK) lent->segment = nullptr; // it stays the library's
    return status;
}

// Each peer's window counts the message as if it were its alone.
muster_status Star::send_multicast(const std::vector<uint64_t> &ids, void *segment, size_t offset, size_t size) {
    if (!uplink_ || !uplink_->ready()) return MUSTER_E_PEER;
    bool full = false;
    for (const uint64_t id : ids) {
        const auto found = peers_.find(id);
        if (found == peers_.end()) return MUSTER_E_PEER;
        full = !may_send(found->second, head_bytes + size) || full;
    }
    if (full) return MUSTER_AGAIN;
    const size_t list = ids.size() * 8;
    auto *const start = static_cast<unsigned char *>(segment) + offset - list - head_bytes;
    put_head(start, Head{Kind::group, static_cast<uint32_t>(ids.size()), 0, uplink_->id()});
    for (size_t i = 0; i < ids.size(); i++) put_u64(start + head_bytes + 8 * i, ids[i]);
    Lent *const lent = new (segment) Lent{plugin_.host(), segment};
    Message message;
    const bool made = message.lend(start, head_bytes + list + size, give_back, lent);
    if (!made || !uplink_->send(message)) {
        lent->segment = nullptr; // it stays the library's
        return made ? MUSTER_E_PEER : MUSTER_E_NOMEM;
    }
    for (const uint64_t id : ids) peers_.find(id)->second.out += cost(head_bytes + size);
    return MUSTER_OK;
}

void Star::up_message(const Head &head, Message &message) {
    if (down_) return;
    const std::string_view payload(reinterpret_cast<char *>(message.data()) + head_bytes, message.size() - head_bytes);
    const auto *bytes = reinterpret_cast<const unsigned char *>(payload.data());
    switch (head.kind) {
    case Kind::data:
        return data(head.from, bytes, payload.size(), message);
    case Kind::group:
        return data_for_many(head, bytes, payload.size(), message);
    case Kind::credit:
        return credit(head.from, head.word);
    case Kind::lost:
        return lost(head.from, payload);
    case Kind::answer:
        return answered(head, payload);
    default:
        return; // of a later version
    }
}

// A large message is the library's until the streams have read it; what it holds stays where it is.
class Loaned {
  public:
    Loaned(Message &message, size_t size) {
        Message *const lent = size >= lend_min ? new (std::nothrow) Message : nullptr;
        if (lent == nullptr) return;
        loan_ = {message.size(), give_up, lent, nullptr};
        lent->take(message);
    }
    const muster_loan *get() const noexcept { return loan_.memory != nullptr ? &loan_ : nullptr; }

  private:
    muster_loan loan_{};
};

void Star::data(uint64_t from, const unsigned char *bytes, size_t size, Message &message) {
    Peer *const sender = peer(from);
    if (sender == nullptr) return;
    sender->known = true;
    const Loaned loan(message, size);
    if (loan.get() != nullptr)
        plugin_.host()->message_lent(plugin_.endpoint(), sender->number, bytes, size, loan.get());
    else
        plugin_.host()->message(plugin_.endpoint(), sender->number, bytes, size);
    taken(from, head_bytes + size);
}

void Star::data_for_many(const Head &head, const unsigned char *bytes, size_t size, Message &message) {
    const size_t list = size_t{head.word} * 8;
    if (size < list) return;
    uint32_t index = 0;
    while (index < head.word && get_u64(bytes + size_t{8} * index) != uplink_->id()) index++;
    Peer *const sender = index == head.word ? nullptr : peer(head.from);
    if (sender == nullptr) return;
    sender->known = true;
    const Loaned loan(message, size - list);
    plugin_.host()->message_multicast(plugin_.endpoint(), sender->number, bytes + list, size - list, index, head.word,
                                      loan.get());
    taken(head.from, head_bytes + size - list);
}

// Small steps are told together.
void Star::taken(uint64_t from, size_t message_bytes) {
    const auto sender = peers_.find(from); // the library may have forgotten it meanwhile
    if (sender == peers_.end()) return;
    sender->second.due += cost(message_bytes);
    if (sender->second.due >= window_ / 4) give_credit(from, sender->second);
}

void Star::give_credit(uint64_t id, Peer &peer) {
    if (peer.due == 0 || !uplink_ || !uplink_->ready()) return;
    uplink_->send(Head{Kind::credit, static_cast<uint32_t>(peer.due), id, uplink_->id()});
    peer.due = 0;
}

void Star::credit(uint64_t from, uint64_t bytes) {
    const auto found = peers_.find(from);
    if (found == peers_.end()) return;
    Peer &to = found->second;
    to.out -= std::min(to.out, bytes);
    if (!to.known) return settle(from, to);
    if (std::exchange(to.blocked, false)) plugin_.host()->ready(plugin_.endpoint(), to.number);
}

void Star::lost(uint64_t who, std::string_view text) {
    const auto found = peers_.find(who);
    if (found == peers_.end()) return;
    const Peer gone = found->second;
    peers_.erase(found);
    tell_lost(gone, printable(text));
}

void Star::tell_lost(const Peer &peer, const std::string &why) {
    if (!peer.known) return plugin_.disown(peer.number);
    lost_.insert(peer.number); // it stays the library's until forget
    plugin_.host()->peer_lost(plugin_.endpoint(), peer.number, MUSTER_E_PEER, 0, why.data(), why.size());
}

void Star::forget(uint64_t number, uint64_t id) {
    if (lost_.erase(number) != 0) return plugin_.disown(number);
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    found->second.known = false;
    give_credit(id, found->second);
    settle(id, found->second);
}

// What is still under way keeps the window right: the broker counts, too.
void Star::settle(uint64_t id, Peer &peer) {
    if (peer.known || peer.out != 0) return;
    if (uplink_ && uplink_->ready()) uplink_->send(Head{Kind::part, 0, id, uplink_->id()});
    const uint64_t number = peer.number;
    peers_.erase(id);
    plugin_.disown(number);
}

} // namespace star
