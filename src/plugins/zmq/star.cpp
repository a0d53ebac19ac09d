// SPDX-License-Identifier: MIT
#include "star.hpp"

#include "plugin.hpp"

#include <algorithm>
#include <cstdlib>

namespace star {

namespace {

constexpr int64_t member_tick_ns = 1'000'000'000;
constexpr uint64_t max_window_bytes = uint64_t{1} << 30; // of the window that a broker announces
constexpr size_t file_name_max = 512;                    // of curve=
constexpr size_t max_peers = 1 << 18;                    // at a time
// Smaller messages are copied, which costs less than a buffer of the library.
constexpr size_t min_lend_bytes = 16 * 1024;

// At the beginning of a buffer that is being sent.
struct Lent {
    const muster_host *host;
    void *segment;
};

void return_buffer(void *, void *hint) {
    const Lent lent = *static_cast<Lent *>(hint); // copied: it is in the buffer that is returned
    if (lent.segment != nullptr) lent.host->release_buffer(lent.host, lent.segment);
}

// Ends a loan. Any thread.
void free_message(void *message, void *) {
    delete static_cast<Message *>(message);
}

} // namespace

bool BrokerAddress::parse(std::string_view authority, BrokerAddress &out, std::string &why) {
    const size_t mark = authority.find('?');
    if (mark != std::string_view::npos) {
        std::string_view options = authority.substr(mark + 1);
        authority = authority.substr(0, mark);
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
        if (!is_valid_name(out.name))
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
    : plugin_(plugin), address_(std::move(address)), keys_(std::move(keys)), pinned_(pinned),
      alarm_(
          plugin.host(), [](void *self) { static_cast<Star *>(self)->call([](Star &star) { star.due(); }); }, this) {}

Star::~Star() {
    disconnect();
    plugin_.disown_all(*this);
}

// ---- the connection -------------------------------------------------------------------------------------------------

void Star::connect() noexcept {
    if (uplink_ || down_) return;
    alarm_.set(member_tick_ns);
    call([](Star &star) {
        UplinkConfig config;
        config.place = star.address_.place;
        config.curve = star.keys_;
        config.pinned = star.pinned_;
        star.uplink_ = std::make_unique<Uplink>(std::move(config), star.plugin_.keys(), star.plugin_.scratch(), star);
        const muster_status status = star.uplink_->open(now_ns());
        if (status != MUSTER_OK) star.uplink_lost(status, "no connection can be made");
    });
}

muster_status Star::watch_uplink(int fd, bool writable) {
    const muster_host *const host = plugin_.host();
    const uint32_t events = MUSTER_PLUGIN_READABLE | (writable ? MUSTER_PLUGIN_WRITABLE : 0);
    if (watch_ != nullptr && fd == watched_) return host->change_fd(watch_, events), MUSTER_OK;
    host->unwatch_fd(std::exchange(watch_, nullptr));
    watched_ = fd;
    if (fd < 0) return MUSTER_OK;
    const auto ready = [](void *self, uint32_t) { static_cast<Star *>(self)->call([](Star &star) { star.ready(); }); };
    return host->watch_fd(host, fd, events, ready, this, &watch_);
}

void Star::ready() {
    if (uplink_) uplink_->process();
    report_down();
}

// A call of the library, which no exception may leave. Without memory the connection to the broker ends, with what it
// was about to do, and is established again.
template <class Body>
void Star::call(Body body) noexcept {
    try {
        body(*this);
    } catch (const std::exception &) {
        uplink_lost(MUSTER_E_NOMEM, "out of memory");
    }
}

void Star::disconnect() noexcept {
    uplink_.reset();
    alarm_.clear();
}

void Star::leave() noexcept {
    call([](Star &star) {
        if (star.uplink_) star.uplink_->leave();
    });
}

void Star::drain(int64_t limit_ns) noexcept {
    call([limit_ns](Star &star) {
        if (star.uplink_) star.uplink_->drain(limit_ns);
    });
}

void Star::due() {
    if (down_) return report_down();
    if (uplink_) return tick();
    if (!names_.empty()) connect();
}

void Star::report_down() noexcept {
    if (!std::exchange(down_, false)) return;
    char why[sizeof down_why_ + 320];
    snprintf(why, sizeof why, "the broker at %.280s: %s", address_.place.c_str(), down_why_);
    disconnect();
    const bool was_in = window_ != 0;
    window_ = 0;
    if (was_in) plugin_.log(MUSTER_LOG_WARN, why);
    for (auto &[name, state] : names_) state.ours = false;
    for (const auto &[number, request] : std::exchange(requests_, {}))
        if (request.id != 0) plugin_.answer(request.claim, request.id, down_status_, 0, why);
    for (const auto &[id, peer] : std::exchange(peers_, {})) report_lost(peer, why);
    if (!names_.empty()) alarm_.set(back_off_.next_ns(random_u64()));
}

// Runs until the connection is ready and every name is confirmed.
void Star::tick() {
    uplink_->tick(now_ns());
    if (down_) return report_down();
    const bool all = std::all_of(names_.begin(), names_.end(), [](const auto &name) { return name.second.ours; });
    if (uplink_->ready() && all) return;
    alarm_.set(member_tick_ns);
    if (!uplink_->ready()) return;
    for (const auto &[name, state] : names_) {
        const bool pending = std::any_of(requests_.begin(), requests_.end(), [&name = name](const auto &request) {
            return request.second.claim && request.second.name == name;
        });
        if (!state.ours && !pending) ask({true, name, 0}); // another member had it after a reconnection
    }
}

void Star::uplink_lost(muster_status status, std::string_view why) noexcept {
    if (std::exchange(down_, true)) return;
    down_status_ = status == MUSTER_E_PEER ? MUSTER_E_UNREACHABLE : status;
    snprintf(down_why_, sizeof down_why_, "%.*s", static_cast<int>(std::min(why.size(), sizeof down_why_)), why.data());
    alarm_.set(0); // the uplink may be in use
}

void Star::uplink_ready(uint64_t, uint64_t window) {
    window_ = std::clamp<uint64_t>(window, 1, max_window_bytes);
    back_off_.reset();
    plugin_.log(MUSTER_LOG_INFO, "joined the star at " + address_.place);
    for (auto &[number, request] : requests_)
        uplink_->send(Head{request.claim ? Kind::claim : Kind::find, number, 0, uplink_->id()}, request.name);
    for (const auto &[name, state] : names_) {
        const bool pending = std::any_of(requests_.begin(), requests_.end(), [&name = name](const auto &request) {
            return request.second.claim && request.second.name == name;
        });
        if (!pending) ask({true, name, 0});
    }
}

// ---- names ----------------------------------------------------------------------------------------------------------

void Star::ask(const NameRequest &request) {
    const uint32_t number = next_request_++;
    requests_.emplace(number, request);
    if (uplink_ && uplink_->ready()) {
        uplink_->send(Head{request.claim ? Kind::claim : Kind::find, number, 0, uplink_->id()}, request.name);
    } else {
        connect();
    }
}

void Star::find(const std::string &name, uint64_t id) {
    ask({false, name, id});
}

void Star::claim(const std::string &name, uint64_t id) {
    const auto found = names_.find(name);
    if (found != names_.end() && found->second.ours) {
        found->second.users++;
        return plugin_.answer(true, id, MUSTER_OK, 0, address_.authority_of(name));
    }
    ask({true, name, id});
}

void Star::release(std::string_view name) noexcept {
    const auto found = names_.find(name);
    if (found == names_.end() || --found->second.users != 0) return;
    names_.erase(found);
    if (uplink_ && uplink_->ready()) uplink_->send(Head{Kind::release, 0, 0, uplink_->id()}, name);
}

// A request is removed when nothing can fail any more for which it would have to be answered.
void Star::answered(const Head &head, std::string_view payload) {
    Answer answer;
    const auto found = requests_.find(head.word);
    if (found == requests_.end() || !answer.decode(payload)) return;
    const bool granted = answer.status == MUSTER_OK && found->second.claim;
    const std::string text = granted ? address_.authority_of(found->second.name) : printable(answer.text);
    if (!found->second.claim) {
        Peer *const who = answer.status == MUSTER_OK ? peer(head.from) : nullptr;
        if (who != nullptr) who->known = true;
        if (who == nullptr && answer.status == MUSTER_OK) answer.status = MUSTER_E_LIMIT;
        const uint64_t id = found->second.id;
        requests_.erase(found);
        return plugin_.answer(false, id, answer.status, who != nullptr ? who->number : 0, text);
    }
    if (granted) names_.try_emplace(found->second.name);
    const auto removed = requests_.extract(found);
    const NameRequest &request = removed.mapped();
    if (granted) {
        Name &name = names_.find(request.name)->second;
        if (request.id != 0) name.users++;
        name.ours = name.users != 0;
        if (!name.ours) { // withdrawn meanwhile
            names_.erase(request.name);
            uplink_->send(Head{Kind::release, 0, 0, uplink_->id()}, request.name);
        }
    } else if (request.id == 0) {
        plugin_.log(MUSTER_LOG_ERROR, "the name " + request.name + " is lost: " + text);
    }
    if (request.id != 0) plugin_.answer(true, request.id, answer.status, 0, text);
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

Star::Peer *Star::peer(uint64_t id) {
    if (const auto found = peers_.find(id); found != peers_.end()) return &found->second;
    if (peers_.size() >= max_peers)
        return uplink_lost(MUSTER_E_PROTOCOL, "the broker reports too many members"), nullptr;
    const uint64_t number = plugin_.own(*this, id);
    const auto kept = [&] {
        try {
            return peers_.try_emplace(id).first;
        } catch (const std::bad_alloc &) {
            plugin_.disown(number);
            throw;
        }
    }();
    Peer &fresh = kept->second;
    fresh.number = number;
    const uint32_t flags = (address_.curve ? MUSTER_PLUGIN_SEALS : 0) | (address_.local ? MUSTER_PLUGIN_LOCAL : 0);
    plugin_.host()->peer_flags(plugin_.endpoint(), fresh.number, flags);
    return &fresh;
}

bool Star::may_send(Peer &peer, size_t message_bytes) {
    if (peer.out == 0 || peer.out + cost(message_bytes) <= window_) return true;
    peer.blocked = true;
    return false;
}

muster_status Star::complete_send(Peer &peer, Message &message, bool done) {
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
    return complete_send(found->second, message, made);
}

muster_status Star::send_buffer(uint64_t id, void *segment, size_t offset, size_t size) {
    const auto found = peers_.find(id);
    if (found == peers_.end() || !uplink_ || !uplink_->ready()) return MUSTER_E_PEER;
    if (size < min_lend_bytes) return MUSTER_E_UNSUPPORTED;
    if (!may_send(found->second, head_bytes + size)) return MUSTER_AGAIN;
    auto *const start = static_cast<unsigned char *>(segment) + offset - head_bytes;
    put_head(start, Head{Kind::data, 0, id, uplink_->id()});
    Message message;
    Lent *const lent = new (segment) Lent{plugin_.host(), segment};
    muster_status status = MUSTER_E_NOMEM;
    try {
        status = complete_send(found->second, message, message.lend(start, head_bytes + size, return_buffer, lent));
    } catch (const std::bad_alloc &) { // the status is that already
    }
    if (status != MUSTER_OK) lent->segment = nullptr; // the library keeps it
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
    muster_status status = MUSTER_E_NOMEM;
    try {
        if (message.lend(start, head_bytes + list + size, return_buffer, lent))
            status = uplink_->send(message) ? MUSTER_OK : MUSTER_E_PEER;
    } catch (const std::bad_alloc &) { // the status is that already
    }
    if (status != MUSTER_OK) return lent->segment = nullptr, status; // the library keeps it
    for (const uint64_t id : ids) peers_.find(id)->second.out += cost(head_bytes + size);
    return MUSTER_OK;
}

void Star::uplink_message(const Head &head, Message &message) {
    if (down_) return;
    const std::string_view payload(reinterpret_cast<char *>(message.data()) + head_bytes, message.size() - head_bytes);
    const auto *bytes = reinterpret_cast<const unsigned char *>(payload.data());
    switch (head.kind) {
    case Kind::data:
        return data(head.from, bytes, payload.size(), message);
    case Kind::group:
        return multicast_data(head, bytes, payload.size(), message);
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

// Lends a large message to the library until the streams have read it, so that its bytes are not copied.
class Loaned {
  public:
    Loaned(Message &message, size_t size) {
        Message *const lent = size >= min_lend_bytes ? new (std::nothrow) Message : nullptr;
        if (lent == nullptr) return;
        loan_ = {message.size(), free_message, lent, nullptr};
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
    received_bytes(from, head_bytes + size);
}

void Star::multicast_data(const Head &head, const unsigned char *bytes, size_t size, Message &message) {
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
    received_bytes(head.from, head_bytes + size - list);
}

// Credit is sent in steps of a quarter of the window.
void Star::received_bytes(uint64_t from, size_t message_bytes) {
    const auto sender = peers_.find(from); // the library may have forgotten the peer meanwhile
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
    if (!to.known) return retire(from, to);
    if (std::exchange(to.blocked, false)) plugin_.host()->ready(plugin_.endpoint(), to.number);
}

void Star::lost(uint64_t who, std::string_view text) {
    const auto found = peers_.find(who);
    if (found == peers_.end()) return;
    const std::string why = printable(text);
    const Peer gone = found->second;
    peers_.erase(found);
    report_lost(gone, why);
}

void Star::report_lost(const Peer &peer, std::string_view why) noexcept {
    if (!peer.known) return plugin_.disown(peer.number);
    plugin_.lose(peer.number); // the library keeps it until forget
    plugin_.host()->peer_lost(plugin_.endpoint(), peer.number, MUSTER_E_PEER, 0, why.data(), why.size());
}

void Star::forget(uint64_t id) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    found->second.known = false;
    give_credit(id, found->second);
    retire(id, found->second);
}

// Data in flight keeps the record of the peer: the broker counts it as well.
void Star::retire(uint64_t id, Peer &peer) {
    if (peer.known || peer.out != 0) return;
    if (uplink_ && uplink_->ready()) uplink_->send(Head{Kind::part, 0, id, uplink_->id()});
    const uint64_t number = peer.number;
    peers_.erase(id);
    plugin_.disown(number);
}

} // namespace star
