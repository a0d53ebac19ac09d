// SPDX-License-Identifier: MIT
// Clients of a store that are none, that do not keep to the rules, or that want too much: each ends or waits by itself.
// ctest: full timeout=150
#include "base/fd.hpp"
#include "store/wire/wire.hpp"
#include "transport/handshake.hpp"

#include <muster/muster.h>

#include <arpa/inet.h>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

constexpr int64_t ms = 1'000'000, second = 1'000'000'000;
constexpr char secret[] = "the secret of these tests";

size_t peak_memory() { // of this process, in bytes
    size_t kib = 0;
    char line[200];
    FILE *const file = fopen("/proc/self/status", "re");
    while (file != nullptr && fgets(line, sizeof line, file) != nullptr)
        if (sscanf(line, "VmHWM: %zu", &kib) == 1) break;
    if (file != nullptr) fclose(file);
    return kib << 10;
}

// ---- the server, and a client that behaves --------------------------------------------------------------------------

struct World {
    muster_context *context = nullptr;
    muster_store_server *server = nullptr;
    muster_store *store = nullptr;
    std::string url;

    explicit World(int64_t handshake_ns = 0, uint32_t max_clients = 0) {
        muster_context_config config{};
        config.struct_size = sizeof config;
        config.secret = secret;
        config.secret_bytes = sizeof secret - 1;
        config.handshake_timeout_ns = handshake_ns;
        muster_store_server_config serving{};
        serving.struct_size = sizeof serving;
        serving.max_clients = max_clients;
        muster_error why{};
        char text[200];
        size_t size = 0;
        if (muster_context_create(&config, &context, &why) != MUSTER_OK ||
            muster_store_server_open(context, "tcp://127.0.0.1:0", 17, &serving, &server, &why) != MUSTER_OK)
            fail_msg("%s", why.message);
        muster_store_server_address(server, text, sizeof text, &size);
        url = text;
        if (muster_store_open(context, text, size, nullptr, 30 * second, &store, &why) != MUSTER_OK)
            fail_msg("%s", why.message);
    }
    World(const World &) = delete;
    World &operator=(const World &) = delete;
    void end() {
        goes_on();
        muster_store_release(store);
        assert_int_equal(muster_store_server_close(server, 20 * second), MUSTER_OK);
        muster_store_server_release(server);
        assert_int_equal(muster_context_close(context, 20 * second), MUSTER_OK);
        muster_context_release(context);
    }
    muster_store_server_stats stats() const {
        muster_store_server_stats now;
        assert_int_equal(muster_store_server_get_stats(server, &now), MUSTER_OK);
        return now;
    }
    void set(const char *key, const std::string &value) const {
        muster_store_op op{};
        op.kind = MUSTER_STORE_SET;
        op.key = key;
        op.key_bytes = strlen(key);
        op.value = value.data();
        op.value_bytes = value.size();
        muster_error why{};
        if (muster_store_do(store, &op, 1, 30 * second, nullptr, &why) != MUSTER_OK) fail_msg("%s", why.message);
    }
    void goes_on() const { set("others go on", "yes"); }
};

// ---- one that does not ----------------------------------------------------------------------------------------------

class Peer {
  public:
    explicit Peer(const World &world) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(static_cast<uint16_t>(atoi(world.url.c_str() + world.url.rfind(':') + 1)));
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        assert_int_equal(connect(fd_.get(), reinterpret_cast<sockaddr *>(&at), sizeof at), 0);
    }
    // False: the server has hung up.
    bool say(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<size_t>(n));
        }
        return true;
    }
    // As say(), but of what the server does not read no more than fits: how much that was.
    size_t say_what_fits(std::string_view bytes) {
        size_t said = 0;
        while (said < bytes.size()) {
            pollfd room{fd_.get(), POLLOUT, 0};
            if (poll(&room, 1, 300) != 1) break;
            const ssize_t n = send(fd_.get(), bytes.data() + said, bytes.size() - said, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n <= 0) break;
            said += static_cast<size_t>(n);
        }
        return said;
    }
    void prove(const char *hello = store_hello_client) {
        HandshakeConfig config;
        config.dialer = true;
        config.secret = secret_key(secret, sizeof secret - 1);
        config.local = true;
        config.host = HostIdentity::own();
        config.hello = hello;
        Handshake handshake(config);
        Status status = MUSTER_AGAIN;
        while (status == MUSTER_AGAIN) {
            assert_true(say(handshake.take_output()));
            unsigned char bytes[4096];
            const ssize_t n = hear(bytes, std::min(handshake.wants(), sizeof bytes));
            assert_true(n > 0);
            size_t used = 0;
            status = handshake.feed(bytes, static_cast<size_t>(n), used);
        }
        assert_int_equal(status, MUSTER_OK);
        say(handshake.take_output());
        assert_false(handshake.agreement().sealed);
    }
    void greet(const StoreId &id, bool resume = false) {
        std::string hello;
        put_hello(hello, id, resume);
        assert_true(say(hello));
        StoreWelcome welcome;
        assert_true(get_welcome(next(StoreRecord::welcome), welcome));
        resumed = (welcome.flags & store_resumed) != 0;
    }
    // The body of the next record.
    std::string next(StoreRecord type) {
        unsigned char head[store_head_bytes];
        exactly(head, sizeof head);
        const StoreHead read = StoreHead::get(head);
        assert_int_equal(static_cast<int>(read.type), static_cast<int>(type));
        number = read.number;
        std::string body(read.bytes, '\0');
        exactly(reinterpret_cast<unsigned char *>(body.data()), body.size());
        return body;
    }
    StoreAnswer answer() {
        StoreAnswer out;
        assert_true(get_answer(next(StoreRecord::answer), out));
        return out;
    }
    // Whatever it still says, the end comes.
    bool is_cut_off() {
        for (;;) {
            unsigned char bytes[65536];
            const ssize_t n = hear(bytes, sizeof bytes);
            if (n <= 0) return n == 0 || errno == ECONNRESET;
        }
    }
    void hang_up() { shutdown(fd_.get(), SHUT_WR); }
    bool resumed = false;
    uint64_t number = 0; // of the record that was read

  private:
    ssize_t hear(unsigned char *to, size_t size) {
        pollfd waiting{fd_.get(), POLLIN, 0};
        if (poll(&waiting, 1, 30000) != 1) return errno = ETIMEDOUT, -1;
        return recv(fd_.get(), to, size, 0);
    }
    void exactly(unsigned char *to, size_t size) {
        for (size_t at = 0; at < size;) {
            const ssize_t n = hear(to + at, size - at);
            assert_true(n > 0);
            at += static_cast<size_t>(n);
        }
    }
    Fd fd_;
};

StoreId any_id() {
    static uint8_t next = 0;
    StoreId id{};
    id[0] = ++next;
    return id;
}

StoreRequest request(uint32_t kind, std::string_view key, std::string_view value = {}, int64_t number = 0) {
    muster_store_op op{};
    op.kind = kind;
    op.key = key.data();
    op.key_bytes = key.size();
    op.value = value.data();
    op.value_bytes = value.size();
    op.number = number;
    auto read = StoreRequest::read(&op, 1, {});
    if (!read) fail_msg("%s", read.error().message);
    return std::move(*read);
}

std::string ask(uint64_t number, const StoreRequest &what, uint64_t floor = 0) {
    std::string record;
    put_ask(record, number, floor, false, what);
    return record;
}
std::string record(StoreRecord type, uint64_t number, std::string_view body = {}) {
    std::string out;
    put_record(out, {0, type, 0, number}, body);
    return out;
}
std::string head_alone(StoreRecord type, uint32_t bytes) {
    unsigned char head[store_head_bytes];
    StoreHead{bytes, type, 0, 1}.put(head);
    return {reinterpret_cast<char *>(head), sizeof head};
}

// ---- clients without the secret -------------------------------------------------------------------------------------

void test_who_says_nothing_or_little_is_not_waited_for(void **) {
    World world(300 * ms);
    std::deque<Peer> silent, proved, slow;
    for (int i = 0; i < 20; i++) silent.emplace_back(world);
    for (int i = 0; i < 5; i++) proved.emplace_back(world).prove(); // and do not say which session is theirs
    for (int i = 0; i < 5; i++) {
        slow.emplace_back(world);
        for (const char byte : std::string("\x01\0\x50\0\x93Mu", 7)) slow.back().say({&byte, 1});
    }
    world.goes_on();
    for (std::deque<Peer> *all : {&silent, &proved, &slow})
        for (Peer &one : *all) assert_true(one.is_cut_off());
    world.end();
}

void test_garbage_before_the_proof(void **) {
    World world;
    static const std::string garbage[] = {"GET / HTTP/1.1\r\n\r\n", std::string(100000, '\0'),
                                          std::string(70000, '\x01'),
                                          std::string("\x01\0\xff\xff", 4) + std::string(70000, 'x')};
    for (const std::string &one : garbage) {
        Peer peer(world);
        peer.say(one);
        assert_true(peer.is_cut_off());
    }
    Peer other(world);
    other.prove("some other protocol 1");
    assert_true(other.is_cut_off());
    world.end();
}

// ---- clients with the secret that violate the protocol --------------------------------------------------------------

void test_nonsense_ends_the_connection(void **) {
    World world;
    const StoreRequest add = request(MUSTER_STORE_ADD, "n", {}, 1);
    const std::string hello = [] {
        std::string out;
        put_hello(out, any_id(), false);
        return out;
    }();
    std::string doubled = ask(7, request(MUSTER_STORE_GET, "never"));
    doubled += doubled;
    const std::string unknown_fields = std::string(12, '\0') + std::string("\x01\0\0\xff\0\0\0\0", 8);
    const struct {
        const char *what;
        std::string says;
        bool greets;
    } wrong[] = {
        {"an ask before the hello", ask(1, add), false},
        {"a hello that is too short", record(StoreRecord::hello, 0, "x"), false},
        {"a hello that is too long", record(StoreRecord::hello, 0, std::string(40, 'x')), false},
        {"two hellos", hello, true},
        {"what only servers say", record(StoreRecord::welcome, 0), true},
        {"no such record", record(static_cast<StoreRecord>(200), 0), true},
        {"a record that is too long", head_alone(StoreRecord::ask, (24 << 20) + 1), true},
        {"a record that is far too long", head_alone(StoreRecord::ask, UINT32_MAX), true},
        {"an ask without a number", ask(0, add), true},
        {"an ask of nothing", record(StoreRecord::ask, 1, std::string(12, '\0')), true},
        {"an ask that is cut off", record(StoreRecord::ask, 1, "abc"), true},
        {"an operation with unknown fields", record(StoreRecord::ask, 1, unknown_fields), true},
        {"two asks of one number", doubled, true},
        {"a number that was answered", ask(5, add, 6), true},
        {"a ping with something in it", record(StoreRecord::ping, 0, "x"), true},
    };
    for (const auto &one : wrong) {
        Peer peer(world);
        peer.prove();
        if (one.greets) peer.greet(any_id());
        peer.say(one.says);
        if (!peer.is_cut_off()) fail_msg("%s is taken", one.what);
        world.goes_on();
    }
    assert_true(world.stats().refused >= sizeof wrong / sizeof *wrong);
    Peer reader(world);
    reader.prove();
    reader.greet(any_id());
    reader.say(ask(1, request(MUSTER_STORE_READ, "n")));
    assert_true(reader.answer().result->entries[0].flags == 0); // nothing of it was done
    world.end();
}

// What is too large, or no operation, is answered; the connection is fine.
void test_what_cannot_be_asked_is_answered(void **) {
    World world;
    Peer peer(world);
    peer.prove();
    peer.greet(any_id());
    const auto op = [](uint16_t kind, uint8_t fields, std::string_view lengths, size_t bytes) {
        std::string body(12, '\0');
        body += static_cast<char>(kind);
        body += static_cast<char>(kind >> 8);
        body += '\0';
        body += static_cast<char>(fields);
        return body.append(lengths) + std::string(bytes, 'k');
    };
    const auto u32 = [](uint32_t v) {
        unsigned char bytes[4];
        put_u32(bytes, v);
        return std::string(reinterpret_cast<char *>(bytes), 4);
    };
    const struct {
        std::string body;
        Status status;
        const char *text;
    } asked[] = {
        {op(MUSTER_STORE_SET, 0, u32(8193), 8193), MUSTER_E_LIMIT, "a key of more than 8192 bytes"},
        {op(MUSTER_STORE_SET, 1, u32(1) + u32((8 << 20) + 1), (8 << 20) + 2), MUSTER_E_LIMIT,
         "a value of more than 8388608 bytes"},
        {op(4711, 0, u32(1), 1), MUSTER_E_ARG, "4711"},
        {op(store_grant, 0, u32(0), 0), MUSTER_E_ARG, ""}, // for no time
    };
    uint64_t number = 0;
    for (const auto &one : asked) {
        peer.say(record(StoreRecord::ask, ++number, one.body));
        const StoreAnswer answer = peer.answer();
        assert_int_equal(peer.number, number);
        if (answer.error.status != one.status || strstr(answer.error.message, one.text) == nullptr)
            fail_msg("ask %d: %d: %s", static_cast<int>(number), answer.error.status, answer.error.message);
    }
    peer.say(ask(++number, request(MUSTER_STORE_ADD, "n", {}, 1)));
    assert_int_equal(peer.answer().result->entries[0].number, 1);
    world.end();
}

// ---- sessions -------------------------------------------------------------------------------------------------------

void test_two_cannot_have_one_session(void **) {
    World world;
    const StoreId id = any_id();
    Peer first(world), second_one(world), third(world);
    first.prove();
    first.greet(id);
    first.say(ask(1, request(MUSTER_STORE_ADD, "n", {}, 1)));
    assert_int_equal(first.answer().result->entries[0].number, 1);
    second_one.prove();
    std::string hello;
    put_hello(hello, id, false); // its own, by chance or not
    second_one.say(hello);
    assert_true(second_one.is_cut_off());
    first.say(ask(2, request(MUSTER_STORE_ADD, "n", {}, 1)));
    assert_int_equal(first.answer().result->entries[0].number, 2);
    third.prove();
    third.greet(id, true); // the same client, which has given its connection up
    assert_true(third.resumed);
    assert_true(first.is_cut_off());
    third.say(ask(2, request(MUSTER_STORE_ADD, "n", {}, 1))); // asked again: not done again
    assert_int_equal(third.answer().result->entries[0].number, 2);
    third.say(ask(3, request(MUSTER_STORE_ADD, "n", {}, 1), 3));
    assert_int_equal(third.answer().result->entries[0].number, 3);
    third.say(ask(2, request(MUSTER_STORE_ADD, "n", {}, 1), 3)); // it has said that it knows that answer
    assert_true(third.is_cut_off());
    world.end();
}

// Clients that connect and disappear fill neither the table of clients nor that of sessions.
void test_sessions_are_bounded(void **) {
    World world(0, 50);
    for (int i = 1; i < 60; i++) { // the world's own is one of them
        Peer peer(world);
        peer.prove();
        if (i < 50) {
            peer.greet(any_id());
            peer.hang_up();
        } else {
            std::string hello;
            put_hello(hello, any_id(), false);
            peer.say(hello);
        }
        assert_true(peer.is_cut_off());
    }
    assert_int_equal(world.stats().sessions, 50);
    assert_int_equal(world.stats().refused, 10);
    world.end();
}

void test_leases_are_bounded(void **) {
    World world;
    Peer peer(world);
    peer.prove();
    peer.greet(any_id());
    const StoreRequest grant = StoreRequest::grant(3600 * second, 0);
    enum { rounds = 70, each = 1000 };
    bool refused = false;
    uint64_t number = 0;
    for (int round = 0; round < rounds; round++) {
        std::string many;
        for (int i = 0; i < each; i++, number++) many += ask(number + 1, grant, number);
        assert_true(peer.say(many));
        for (int i = 0; i < each; i++) refused |= peer.answer().error.status == MUSTER_E_LIMIT;
    }
    assert_true(refused);
    assert_true(world.stats().leases <= 65536);
    world.end();
}

// ---- clients that do not read their answers -------------------------------------------------------------------------

[[maybe_unused]] constexpr size_t much = size_t{400} << 20;

void test_answers_that_are_not_taken(void **) {
    World world;
    world.set("large", std::string(4 << 20, 'l'));
    const size_t before = peak_memory();
    Peer peer(world);
    peer.prove();
    peer.greet(any_id());
    std::string many;
    const StoreRequest get = request(MUSTER_STORE_GET, "large");
    uint64_t number = 0;
    while (number < 5000) many += ask(++number, get, 0); // answers of 20 GB
    assert_true(peer.say_what_fits(many) > 0);
    world.goes_on();
#ifndef MUSTER_SANITIZED
    assert_true(peak_memory() - before < much);
#else
    (void)before;
#endif
    for (uint64_t i = 1; i <= 200; i++) { // it takes some after all: none is missing
        const StoreAnswer answer = peer.answer();
        assert_int_equal(peer.number, i);
        assert_int_equal(answer.result->entries[0].value->size(), 4 << 20);
    }
    world.end();
}

// They wait for what comes all at once.
void test_waits_that_end_together(void **) {
    World world;
    const size_t before = peak_memory();
    Peer peer(world);
    peer.prove();
    peer.greet(any_id());
    std::string many;
    const StoreRequest get = request(MUSTER_STORE_GET, "large");
    for (uint64_t number = 1; number <= 2000; number++) many += ask(number, get, 0);
    assert_true(peer.say(many + record(StoreRecord::ping, 1)));
    peer.next(StoreRecord::pong);
    assert_int_equal(world.stats().waiting, 2000);
    world.set("large", std::string(4 << 20, 'l')); // answers of 8 GB
    world.goes_on();
#ifndef MUSTER_SANITIZED
    assert_true(peak_memory() - before < much);
#else
    (void)before;
#endif
    assert_true(peer.is_cut_off());
    assert_int_equal(world.stats().waiting, 0);
    world.end();
}

void test_long_records_that_come_slowly(void **) {
    World world;
    const size_t before = peak_memory();
    std::deque<Peer> peers;
    for (int i = 0; i < 64; i++) {
        Peer &peer = peers.emplace_back(world);
        peer.prove();
        peer.greet(any_id());
        assert_true(peer.say(head_alone(StoreRecord::ask, 24 << 20) + "the beginning"));
    }
    world.goes_on();
#ifndef MUSTER_SANITIZED
    assert_true(peak_memory() - before < size_t{64} << 20); // not 1.5 GB
#else
    (void)before;
#endif
    world.end();
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_long_records_that_come_slowly),
        cmocka_unit_test(test_who_says_nothing_or_little_is_not_waited_for),
        cmocka_unit_test(test_garbage_before_the_proof),
        cmocka_unit_test(test_nonsense_ends_the_connection),
        cmocka_unit_test(test_what_cannot_be_asked_is_answered),
        cmocka_unit_test(test_two_cannot_have_one_session),
        cmocka_unit_test(test_sessions_are_bounded),
        cmocka_unit_test(test_leases_are_bounded),
        cmocka_unit_test(test_answers_that_are_not_taken),
        cmocka_unit_test(test_waits_that_end_together),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
