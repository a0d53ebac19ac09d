// SPDX-License-Identifier: MIT
// CURVE between a member and a broker: the choice of the cipher, messages of all sizes, and changed or repeated ones.
#include "curve.hpp"

#include <sodium.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace star;

namespace {

enum class Has { aes, no_aes };

void offer_aes(Has what) {
    if (what == Has::aes)
        unsetenv("MUSTER_NO_AES");
    else
        setenv("MUSTER_NO_AES", "1", 1);
}

struct Ends {
    CurveServerKeys of_server;
    CurveClientKeys of_client;
    std::optional<CurveServer> server;
    std::optional<CurveClient> client;
    std::string server_saw, client_saw; // metadata

    Ends(Has client_has, Has server_has) {
        crypto_box_keypair(of_server.open.data(), of_server.secret.data());
        crypto_box_keypair(of_client.open.data(), of_client.secret.data());
        of_client.server = of_server.open;
        of_server.clients.emplace(reinterpret_cast<const char *>(of_client.open.data()), of_client.open.size());
        server.emplace(of_server);
        offer_aes(client_has);
        client.emplace(of_client);
        std::string welcome, initiate, ready, nothing;
        offer_aes(server_has);
        assert_int_equal(server->take(client->first(), welcome, server_saw), Curve::Step::next);
        offer_aes(client_has);
        assert_int_equal(client->take(welcome, initiate, client_saw), Curve::Step::next);
        offer_aes(server_has);
        assert_int_equal(server->take(initiate, ready, server_saw), Curve::Step::done);
        offer_aes(client_has);
        assert_int_equal(client->take(ready, nothing, client_saw), Curve::Step::done);
        unsetenv("MUSTER_NO_AES");
        assert_true(is_valid_metadata(server_saw, ZmtpSide::server) && is_valid_metadata(client_saw, ZmtpSide::client));
    }
};

std::vector<unsigned char> seal(Curve &from, const std::string &text, unsigned char flags = 0) {
    std::vector<unsigned char> out(Curve::overhead + text.size());
    from.seal(flags, text, out.data());
    return out;
}

bool open(Curve &to, std::vector<unsigned char> sealed, const std::string &text, unsigned char flags = 0) {
    unsigned char found = 0xFF;
    std::string_view payload;
    if (!to.open(sealed.data(), sealed.size(), found, payload)) return false;
    assert_int_equal(found, flags);
    assert_true(payload == text);
    return true;
}

constexpr Has all[] = {Has::aes, Has::no_aes};

void test_messages_pass_whatever_each_side_has(void **) {
    for (const Has client : all)
        for (const Has server : all) {
            Ends ends(client, server);
            assert_int_equal(has_aes(ends.client_saw),
                             client == Has::aes && server == Has::aes && muster::has_fast_aes());
            for (size_t size = 0; size < 70'000; size = size * 5 / 4 + 1) {
                const std::string text(size, static_cast<char>('a' + size % 26));
                assert_true(open(*ends.server, seal(*ends.client, text, Curve::more), text, Curve::more));
                assert_true(open(*ends.client, seal(*ends.server, text, Curve::command), text, Curve::command));
            }
        }
}

void test_changed_and_repeated_messages_are_refused(void **) {
    for (const Has what : all) {
        const std::string text = "forty bytes that are sent and are changed";
        for (size_t bit = 0; bit < (Curve::overhead + text.size()) * 8; bit++) {
            Ends ends(what, what);
            auto sealed = seal(*ends.client, text);
            sealed[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
            assert_false(open(*ends.server, sealed, text));
        }
        Ends ends(what, what);
        const auto sealed = seal(*ends.client, text);
        assert_false(open(*ends.client, sealed, text)); // returned to its sender
        assert_true(open(*ends.server, sealed, text));
        assert_false(open(*ends.server, sealed, text));
        Ends others(what, what);
        assert_false(open(*others.server, seal(*ends.client, text), text));
    }
}

} // namespace

int main() {
    if (sodium_init() < 0) return 1;
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_pass_whatever_each_side_has),
        cmocka_unit_test(test_changed_and_repeated_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
