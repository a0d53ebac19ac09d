// SPDX-License-Identifier: MIT
// What members of a cluster hand to each other: tickets, greetings, messages on the link to the master, and the first
// words of broadcasts. What is
// understood is the same again when it is written anew.
#include "input.hpp"

#include "cluster/broadcast/inbox.hpp"
#include "cluster/broadcast/wire.hpp"
#include "cluster/launch/ticket.hpp"
#include "cluster/managers/options.hpp"
#include "cluster/member/control.hpp"
#include "cluster/member/hello.hpp"

using namespace muster;

namespace {

void read_ticket(std::string_view text) {
    auto ticket = Ticket::parse(text);
    if (!ticket) {
        FUZZ_CHECK(ticket.error().status == MUSTER_E_PROTOCOL && ticket.error().message_bytes != 0);
        return;
    }
    FUZZ_CHECK(ticket->member != 0 && ticket->secret.size() >= 16 && ticket->secret.size() <= 1024);
    std::string line = ticket->line();
    FUZZ_CHECK(line.back() == '\n' && line.find('\n') == line.size() - 1);
    line.pop_back();
    auto again = Ticket::parse(line);
    FUZZ_CHECK(again && again->cluster == ticket->cluster && again->member == ticket->member);
    FUZZ_CHECK(again->master == ticket->master && again->listen == ticket->listen && again->secret == ticket->secret);
    FUZZ_CHECK(again->members == ticket->members && ticket->members - 1 <= UINT32_MAX - 1 - ticket->member);
    auto variable = Ticket::parse_variable(ticket->variable());
    FUZZ_CHECK(variable && variable->line() == ticket->line());
}

void read_report(std::string_view text) {
    const auto report = WorkerReport::parse(text);
    if (!report || report->member == 0) return;
    const std::string again = report->line();
    const auto same = WorkerReport::parse(std::string_view(again).substr(0, again.size() - 1));
    FUZZ_CHECK(same && same->address == report->address && same->member == report->member);
}

void read_options(std::string_view text) {
    auto options = ManagerOptions::parse(text, {"hosts", "flags"});
    if (options) FUZZ_CHECK(!options->has("ssh") && options->text("hosts").size() <= text.size());
    auto words = split_words(text);
    if (!words) return;
    std::string line;
    for (const std::string &word : *words) line += shell_word(word) + " ";
    if (auto again = split_words(line)) FUZZ_CHECK(*again == *words);
}

void read_message(std::string_view bytes) {
    const auto message = decode_control(bytes);
    if (!message) return;
    FUZZ_CHECK(message->text.size() <= control_text_max && message->address.size() <= control_address_max);
    const std::string again = encode(*message);
    FUZZ_CHECK(std::string_view(again).substr(4) == bytes);
}

void read_greeting(std::string_view bytes) {
    const auto greeting = decode_hello(bytes);
    if (greeting) FUZZ_CHECK(encode(*greeting) == bytes);
}

void read_broadcast(std::string_view bytes) {
    const auto head = decode_broadcast(bytes);
    if (!head) return;
    FUZZ_CHECK(encode(*head) == bytes);
    size_t handed_on = 0;
    for (const auto &part : branches(head->stations, broadcast_fan)) {
        FUZZ_CHECK(!part.empty() && !part[0].empty());
        handed_on += part.size();
    }
    FUZZ_CHECK(handed_on == head->stations.size());
}

void read_shelf(std::string_view bytes) {
    const InboxAddress inbox = InboxAddress::parse(bytes);
    if (inbox.known()) FUZZ_CHECK(inbox.bytes() == bytes);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input input(data, size);
    const uint8_t what = input.byte();
    size_t got = 0;
    const uint8_t *const at = input.take(size, got);
    const std::string_view rest(reinterpret_cast<const char *>(at), got);
    if (what == 't') read_ticket(rest);
    if (what == 'm') read_message(rest);
    if (what == 'g') read_greeting(rest);
    if (what == 'r') read_report(rest);
    if (what == 'o') read_options(rest);
    if (what == 'b') read_broadcast(rest);
    if (what == 's') read_shelf(rest);
    return 0;
}
