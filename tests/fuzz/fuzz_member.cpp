// SPDX-License-Identifier: MIT
// What a broker may say to its members, which need not be what it should. The plug-in is whole, in place of libzmq
// there are the few functions of it that a member uses, and in place of the library a host table that keeps count. Two
// members at two brokers; the input is a list of steps: what a broker sends or happens to a connection, what the host
// asks for, time that passes.
#include "input.hpp"

#include "broker.hpp"
#include "plugin.hpp"

#include <cerrno>
#include <deque>
#include <functional>
#include <set>

using namespace star;

const muster_broker_ops star::broker_ops{};

namespace {

// ---- libzmq, as far as it goes
// ---------------------------------------------------------------------------------------

struct Text { // in a zmq_msg_t
    unsigned char *bytes;
    size_t size;
    zmq_free_fn *free;
    void *hint;
    bool more;
};
static_assert(sizeof(Text) <= sizeof(zmq_msg_t));

Text &text_of(const zmq_msg_t *message) {
    return *reinterpret_cast<Text *>(const_cast<zmq_msg_t *>(message));
}

struct FakeSocket {
    int type = 0;
    int fd = 0;
    int broker = -1;   // which one it leads to
    bool gone = false; // the connection has ended: nothing can be sent
    bool watched = false;
    FakeSocket *watches = nullptr;               // a monitor
    std::deque<std::pair<std::string, bool>> in; // frames; is there more of the message?
};

std::set<FakeSocket *> sockets;
FakeSocket *opening; // the monitor is told to watch it, and then connected
int next_fd;

FakeSocket *connection(int broker, int type) {
    for (FakeSocket *const socket : sockets)
        if (socket->type == type && socket->broker == broker) return socket;
    return nullptr;
}

// ---- the library, as far as it goes
// ----------------------------------------------------------------------------------

struct Watch {
    int fd;
    void (*ready)(void *, uint32_t);
    void *user;
};
struct Timer {
    void (*due)(void *);
    void *user;
    bool repeats;
};
struct Known {
    int broker;
    bool lost = false;
};

struct World {
    muster_host host{};
    const muster_fabric_ops *ops = nullptr;
    void *self = nullptr;
    std::set<Watch *> watches;
    std::set<Timer *> timers;
    std::vector<std::pair<void (*)(void *), void *>> posted;
    std::map<uint64_t, bool> questions; // not answered yet; is it a name that is claimed?
    std::vector<std::string> published;
    std::map<uint64_t, Known> peers;
    std::set<uint64_t> forgotten; // after the running call
    uint64_t next_question = 1, segments = 0;
    int speaking = -1; // the broker whose message was read last
};
World *world;

void check_peer(uint64_t peer) {
    FUZZ_CHECK(peer != UINT64_MAX && world->speaking >= 0);
    const auto [found, fresh] = world->peers.try_emplace(peer, Known{world->speaking});
    FUZZ_CHECK(found->second.broker == world->speaking); // no broker speaks for another one's members
    FUZZ_CHECK(!found->second.lost);
}

void log(const muster_host *, int32_t, const char *text, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i++) FUZZ_CHECK(text[i] >= ' ' && text[i] <= '~');
    FUZZ_CHECK(bytes < 1000);
}
muster_status derive(const muster_host *, const char *, uint64_t, void *key, uint64_t bytes) {
    memset(key, 7, bytes);
    return MUSTER_OK;
}
muster_status add_fabric(const muster_host *, const char *, uint64_t, const muster_fabric_ops *ops, void *self,
                         muster_error *) {
    world->ops = ops;
    world->self = self;
    return MUSTER_OK;
}
muster_status watch_fd(const muster_host *, int32_t fd, uint32_t, void (*ready)(void *, uint32_t), void *user,
                       muster_watch **out) {
    auto *const watch = new Watch{fd, ready, user};
    world->watches.insert(watch);
    *out = reinterpret_cast<muster_watch *>(watch);
    return MUSTER_OK;
}
void unwatch_fd(muster_watch *watch) {
    if (watch == nullptr) return;
    FUZZ_CHECK(world->watches.erase(reinterpret_cast<Watch *>(watch)) == 1);
    delete reinterpret_cast<Watch *>(watch);
}
muster_status start_timer(const muster_host *, int64_t, int64_t repeat_ns, void (*due)(void *), void *user,
                          muster_timer **out) {
    auto *const timer = new Timer{due, user, repeat_ns > 0};
    world->timers.insert(timer);
    *out = reinterpret_cast<muster_timer *>(timer);
    return MUSTER_OK;
}
void stop_timer(muster_timer *timer) {
    if (timer == nullptr) return;
    FUZZ_CHECK(world->timers.erase(reinterpret_cast<Timer *>(timer)) == 1);
    delete reinterpret_cast<Timer *>(timer);
}
muster_status post(const muster_host *, void (*run)(void *), void *user) {
    world->posted.emplace_back(run, user);
    return MUSTER_OK;
}
void *take_segment(const muster_host *) {
    world->segments++;
    return malloc(message_max);
}
void give_segment(const muster_host *, void *segment) {
    if (segment != nullptr) world->segments--;
    free(segment);
}
void resolved(muster_endpoint *, uint64_t question, muster_status status, uint64_t peer, const char *, uint64_t) {
    const auto found = world->questions.find(question);
    FUZZ_CHECK(found != world->questions.end() && !found->second && status <= 0);
    world->questions.erase(found);
    if (status == MUSTER_OK) check_peer(peer);
}
void published(muster_endpoint *, uint64_t question, muster_status status, const char *text, uint64_t bytes) {
    const auto found = world->questions.find(question);
    FUZZ_CHECK(found != world->questions.end() && found->second && status <= 0 && bytes <= 1024);
    world->questions.erase(found);
    if (status == MUSTER_OK) world->published.emplace_back(text, bytes);
}
void message(muster_endpoint *, uint64_t peer, const void *data, uint64_t bytes) {
    check_peer(peer);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes; i++) sum += static_cast<const unsigned char *>(data)[i];
    if (sum % 3 == 0) world->forgotten.insert(peer); // it is of no interest
}
void message_to_many(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t bytes, uint32_t index,
                     uint32_t count, const muster_loan *loan) {
    FUZZ_CHECK(index < count);
    message(endpoint, peer, data, bytes);
    if (loan != nullptr) loan->release(loan->memory, loan->hint);
}
void message_lent(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t bytes, const muster_loan *loan) {
    message(endpoint, peer, data, bytes);
    loan->release(loan->memory, loan->hint);
}
void ready(muster_endpoint *, uint64_t peer) {
    check_peer(peer);
}
void peer_lost(muster_endpoint *, uint64_t peer, muster_status status, int32_t, const char *, uint64_t) {
    const auto found = world->peers.find(peer);
    FUZZ_CHECK(found != world->peers.end() && !found->second.lost && status < 0);
    found->second.lost = true;
    world->forgotten.insert(peer);
}
void peer_flags(muster_endpoint *, uint64_t, uint32_t) {}

void forget_some() {
    for (const uint64_t peer : std::exchange(world->forgotten, {}))
        if (world->peers.erase(peer) != 0) world->ops->forget(world->self, peer);
}

// ---- what happens
// ----------------------------------------------------------------------------------------------------

void say(int broker, const std::string &bytes) {
    if (FakeSocket *const socket = connection(broker, ZMQ_DEALER)) socket->in.emplace_back(bytes, false);
}

std::string spoken(const Head &head, std::string_view payload = {}) {
    std::string bytes(head_bytes, '\0');
    put_head(reinterpret_cast<unsigned char *>(bytes.data()), head);
    return bytes.append(payload);
}

void happens(int broker, uint16_t what) {
    FakeSocket *const monitor = connection(broker, ZMQ_PAIR);
    if (monitor == nullptr) return;
    if (what == ZMQ_EVENT_DISCONNECTED)
        if (FakeSocket *const socket = connection(broker, ZMQ_DEALER)) socket->gone = true;
    std::string event(6, '\0');
    memcpy(event.data(), &what, 2);
    monitor->in.emplace_back(event, true);
    monitor->in.emplace_back("tcp://x", false);
}

// As a broker that is in order does: it lets the member in.
void let_in(int broker, uint64_t id, uint64_t window) {
    happens(broker, ZMQ_EVENT_CONNECTED);
    say(broker,
        spoken(Head{Kind::welcome, 0, 0, 0}, std::string(1, '\1') + std::string(nonce_bytes + proof_bytes, 'n')));
    std::string word(8, '\0');
    put_u64(reinterpret_cast<unsigned char *>(word.data()), window);
    say(broker, spoken(Head{Kind::ready, 0, id, 0}, word));
}

void run_posted() {
    for (const auto &[run, user] : std::exchange(world->posted, {})) run(user);
    forget_some();
}

// Descriptors tell what is there; each callback may end watches.
void look_around() {
    for (int round = 0; round < 4; round++) {
        run_posted();
        std::vector<int> fds;
        for (const FakeSocket *const socket : sockets)
            if (!socket->in.empty()) fds.push_back(socket->fd);
        for (const int fd : fds)
            for (const Watch *const watch : world->watches)
                if (watch->fd == fd) {
                    watch->ready(watch->user, MUSTER_PLUGIN_READABLE);
                    break;
                }
        forget_some();
    }
}

void run_timers(bool repeating) {
    const std::set<Timer *> now = world->timers;
    for (Timer *const timer : now)
        if (world->timers.count(timer) != 0 && timer->repeats == repeating) timer->due(timer->user);
}

std::string authority(uint8_t which) {
    static const char *const names[] = {"", "a@", "b@", "ccc@"};
    return std::string(names[which % 4]) + (which & 4 ? "two:2" : "one:1") + "?curve=no";
}

void ask(bool claim, uint8_t which) {
    const std::string name = authority(which);
    const uint64_t question = world->next_question++;
    muster_error error{};
    char text[1024];
    uint64_t number = 0;
    world->questions.emplace(question, claim);
    const muster_status status =
        claim ? world->ops->publish(world->self, name.data(), name.size(), question, text, &number, &error)
              : world->ops->resolve(world->self, name.data(), name.size(), question, &number, &error);
    if (status != MUSTER_AGAIN) world->questions.erase(question);
}

void withdraw(size_t which) {
    if (world->published.empty()) return;
    const auto at = world->published.begin() + static_cast<std::ptrdiff_t>(which % world->published.size());
    const std::string name = *at;
    world->published.erase(at);
    world->ops->withdraw(world->self, name.data(), name.size());
}

void send(size_t which, size_t size, bool lent) {
    if (world->peers.empty()) return;
    auto at = world->peers.begin();
    std::advance(at, which % world->peers.size());
    if (at->second.lost) return;
    if (lent) {
        void *const segment = take_segment(nullptr);
        memset(segment, 1, 128 + size);
        if (world->ops->send_segment(world->self, at->first, segment, 128, size) != MUSTER_OK)
            give_segment(nullptr, segment);
        return;
    }
    const std::string bytes(size, 'b');
    const muster_span span = {bytes.data(), bytes.size()};
    world->ops->send(world->self, at->first, &span, 1);
}

void send_to_all(size_t size) {
    std::vector<uint64_t> peers;
    for (const auto &[number, peer] : world->peers)
        if (!peer.lost && peers.size() < 256) peers.push_back(number);
    if (peers.empty()) return;
    const size_t offset = 128 + 8 * peers.size();
    size = std::min(size, 256 * 1024 - offset);
    void *const segment = take_segment(nullptr);
    memset(segment, 1, offset + size);
    const auto count = static_cast<uint32_t>(peers.size());
    if (world->ops->send_many(world->self, peers.data(), count, segment, offset, size) != MUSTER_OK)
        give_segment(nullptr, segment);
}

Head any_head(Input &input) {
    Head head;
    head.kind = static_cast<Kind>(1 + input.byte() % last_kind);
    const uint8_t form = input.byte();
    head.word = form & 1 ? static_cast<uint32_t>(input.number(4)) : input.byte();
    head.from = form & 2 ? input.number(8) : input.byte();
    head.to = form & 4 ? input.number(8) : input.byte();
    return head;
}

void step(Input &input) {
    const uint8_t what = input.byte();
    const int broker = what >> 7;
    size_t got = 0;
    switch (what & 15) {
    case 0: { // anything
        const uint8_t *const bytes = input.take(input.number(2), got);
        return say(broker, {reinterpret_cast<const char *>(bytes), got});
    }
    case 1:
    case 2: { // something that makes sense
        const Head head = any_head(input);
        const uint8_t *const bytes = input.take(input.byte(), got);
        std::string payload(reinterpret_cast<const char *>(bytes), got);
        if ((what & 15) == 2) payload.resize(payload.size() * 500);
        return say(broker, spoken(head, payload));
    }
    case 3: {
        const uint8_t id = input.byte();
        return let_in(broker, id, uint64_t{1} << input.byte() % 64);
    }
    case 4:
        return happens(broker, static_cast<uint16_t>(1u << input.byte() % 16));
    case 5: { // an answer to one of its questions
        Answer answer;
        answer.status = static_cast<muster_status>(static_cast<int8_t>(input.byte()));
        Head head{Kind::answer, input.byte(), 0, input.byte()};
        return say(broker, spoken(head, answer.encode()));
    }
    case 6:
    case 7:
        return ask((what & 15) == 6, input.byte());
    case 8:
        return withdraw(input.byte());
    case 9:
    case 10: {
        const uint8_t which = input.byte();
        const size_t size = 1 + input.number(2);
        return what & 16 ? send_to_all(size) : send(which, size, (what & 15) == 10);
    }
    case 11:
        if (!world->peers.empty()) world->forgotten.insert(world->peers.begin()->first);
        return forget_some();
    case 12:
        return run_timers(true);
    case 13:
        return run_timers(false);
    default:
        return look_around();
    }
}

} // namespace

// ---- the functions
// ---------------------------------------------------------------------------------------------------

int zmq_msg_init(zmq_msg_t *message) {
    text_of(message) = {};
    return 0;
}
int zmq_msg_init_size(zmq_msg_t *message, size_t size) {
    text_of(message) = {static_cast<unsigned char *>(malloc(size + 1)), size, [](void *bytes, void *) { free(bytes); },
                        nullptr, false};
    return 0;
}
int zmq_msg_init_data(zmq_msg_t *message, void *data, size_t size, zmq_free_fn *free, void *hint) {
    text_of(message) = {static_cast<unsigned char *>(data), size, free, hint, false};
    return 0;
}
int zmq_msg_close(zmq_msg_t *message) {
    Text &text = text_of(message);
    if (text.free != nullptr) text.free(text.bytes, text.hint);
    text = {};
    return 0;
}
int zmq_msg_move(zmq_msg_t *to, zmq_msg_t *from) {
    zmq_msg_close(to);
    text_of(to) = std::exchange(text_of(from), {});
    return 0;
}
void *zmq_msg_data(zmq_msg_t *message) {
    return text_of(message).bytes;
}
size_t zmq_msg_size(const zmq_msg_t *message) {
    return text_of(message).size;
}
int zmq_msg_more(const zmq_msg_t *message) {
    return text_of(message).more;
}
int zmq_msg_recv(zmq_msg_t *message, void *self, int) {
    auto *const socket = static_cast<FakeSocket *>(self);
    if (socket->in.empty()) {
        errno = EAGAIN;
        return -1;
    }
    const auto [bytes, more] = std::move(socket->in.front());
    socket->in.pop_front();
    zmq_msg_close(message);
    zmq_msg_init_size(message, bytes.size());
    memcpy(text_of(message).bytes, bytes.data(), bytes.size());
    text_of(message).more = more;
    if (socket->type == ZMQ_DEALER) world->speaking = socket->broker;
    return static_cast<int>(bytes.size());
}
int zmq_msg_send(zmq_msg_t *message, void *self, int) {
    auto *const socket = static_cast<FakeSocket *>(self);
    Head head;
    FUZZ_CHECK(socket->type == ZMQ_DEALER && get_head(text_of(message).bytes, text_of(message).size, head));
    FUZZ_CHECK(text_of(message).size <= head_bytes + message_max);
    if (socket->gone) {
        errno = EAGAIN;
        return -1;
    }
    zmq_msg_close(message);
    return 0;
}
void *zmq_socket(void *, int type) {
    auto *const socket = new FakeSocket;
    socket->type = type;
    socket->fd = next_fd++;
    sockets.insert(socket);
    return socket;
}
int zmq_close(void *self) {
    auto *const socket = static_cast<FakeSocket *>(self);
    FUZZ_CHECK(sockets.erase(socket) == 1);
    for (const Watch *const watch : world->watches) FUZZ_CHECK(watch->fd != socket->fd);
    // libzmq's threads would wait for ever to tell something to a reader that is gone.
    FUZZ_CHECK(!socket->watched && (socket->watches == nullptr || !socket->watches->watched));
    delete socket;
    return 0;
}
int zmq_setsockopt(void *, int, const void *, size_t) {
    return 0;
}
int zmq_getsockopt(void *self, int option, void *value, size_t *) {
    const auto *const socket = static_cast<FakeSocket *>(self);
    *static_cast<int *>(value) = option == ZMQ_FD ? socket->fd : socket->in.empty() ? 0 : ZMQ_POLLIN;
    return 0;
}
int zmq_socket_monitor(void *self, const char *address, int) {
    auto *const socket = static_cast<FakeSocket *>(self);
    socket->watched = address != nullptr;
    if (address != nullptr) opening = socket;
    return 0;
}
int zmq_connect(void *self, const char *address) {
    auto *const socket = static_cast<FakeSocket *>(self);
    static FakeSocket *monitor;
    if (socket->type == ZMQ_PAIR) {
        monitor = socket;
        socket->watches = opening;
    } else {
        FUZZ_CHECK(socket == opening);
        socket->broker = monitor->broker = strcmp(address, "tcp://two:2") == 0;
    }
    return 0;
}
void *zmq_ctx_new() {
    return &next_fd;
}
int zmq_ctx_set(void *, int, int) {
    return 0;
}
int zmq_ctx_term(void *) {
    FUZZ_CHECK(sockets.empty());
    return 0;
}
int zmq_errno() {
    return errno;
}
const char *zmq_strerror(int number) {
    return strerror(number);
}
int zmq_has(const char *) {
    return 1;
}
char *zmq_z85_encode(char *text, const uint8_t *, size_t size) {
    memset(text, 'a', size * 5 / 4);
    text[size * 5 / 4] = '\0';
    return text;
}
uint8_t *zmq_z85_decode(uint8_t *, const char *) {
    return nullptr;
}
int zmq_curve_public(char *text, const char *secret) {
    strcpy(text, secret);
    return 0;
}

extern "C" MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    World here;
    world = &here;
    next_fd = 100;
    muster_host &host = here.host;
    host.struct_size = sizeof host;
    host.log = log;
    host.derive = derive;
    host.add_fabric = add_fabric;
    host.watch_fd = watch_fd;
    host.unwatch_fd = unwatch_fd;
    host.start_timer = start_timer;
    host.stop_timer = stop_timer;
    host.post = post;
    host.take_segment = take_segment;
    host.give_segment = give_segment;
    host.resolved = resolved;
    host.published = published;
    host.message = message;
    host.message_lent = message_lent;
    host.message_to_many = message_to_many;
    host.ready = ready;
    host.peer_lost = peer_lost;
    host.peer_flags = peer_flags;
    muster_error error{};
    FUZZ_CHECK(muster_plugin_v1(&host, &error) == MUSTER_OK);
    FUZZ_CHECK(here.ops->start(here.self, nullptr, &error) == MUSTER_OK);
    Input input(data, size);
    for (int steps = 0; input.left() != 0 && steps < 2000; steps++) step(input);
    look_around();
    FUZZ_CHECK(here.questions.size() < 2000);
    here.ops->stop(here.self);
    FUZZ_CHECK(sockets.empty() && here.watches.empty() && here.timers.empty() && here.segments == 0);
    return 0;
}
