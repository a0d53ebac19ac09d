// SPDX-License-Identifier: MIT
#include "cluster/launch/ticket.hpp"

#include "base/percent.hpp"
#include "base/uncancelled.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sodium.h>

namespace muster {

namespace {

constexpr char head[] = "muster-worker-ticket 1";
constexpr std::string_view plain_characters = "-_.:/?&=@[]{}";

void put_word(std::string &to, const char *name, std::string_view value) {
    to.append(" ").append(name).append("=");
    percent_encode(to, value, plain_characters);
}

template <class Bytes>
std::string to_hex(const Bytes &bytes) {
    std::string text(2 * bytes.size() + 1, '\0'); // the function ends it with a zero
    sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
    text.pop_back();
    return text;
}

// Empty: it is no such text.
std::vector<unsigned char> from_hex(std::string_view text) {
    if (text.size() < 2) return {};
    std::vector<unsigned char> bytes(text.size() / 2);
    size_t size = 0;
    if (sodium_hex2bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, &size, nullptr) != 0) return {};
    return bytes;
}

bool take_text(std::string_view value, std::string &out) {
    return percent_decode(out, value) && out.size() <= 4096;
}

bool take_bytes(std::string_view value, std::vector<unsigned char> &out) {
    out = from_hex(value);
    return out.size() >= 16 && out.size() <= 1024;
}

template <class T>
bool take_number_of(std::string_view value, T &out, int base) {
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), out, base);
    return failed == std::errc() && end == value.data() + value.size();
}

} // namespace

std::string Ticket::line() const {
    std::string text(head);
    char number[17];
    std::snprintf(number, sizeof number, "%016llx", static_cast<unsigned long long>(cluster));
    put_word(text, "cluster", number);
    put_word(text, "member", std::to_string(member));
    if (members != 1) {
        put_word(text, "members", std::to_string(members));
        put_word(text, "rank", rank_variables);
    }
    put_word(text, "master", master);
    put_word(text, "listen", listen);
    text += key.empty() ? " secret=" : " key=";
    return text.append(to_hex(key.empty() ? secret : key)).append("\n");
}

Result<Ticket> Ticket::parse(std::string_view line) {
    const auto wrong = [](std::string_view where) {
        return Error::make(MUSTER_E_PROTOCOL, "no ticket of a worker, or one of another version: %.*s",
                           static_cast<int>(where.size()), where.data());
    };
    constexpr std::string_view begin(head);
    if (line.substr(0, begin.size()) != begin)
        return wrong("it begins in another way"); // it may be a secret, and is not shown
    line.remove_prefix(begin.size());
    Ticket ticket;
    uint32_t seen = 0;
    while (!line.empty()) {
        if (line.front() != ' ') return wrong("words are separated by a space");
        line.remove_prefix(1);
        const std::string_view word = line.substr(0, line.find(' '));
        line.remove_prefix(word.size());
        const size_t sign = word.find('=');
        if (sign == std::string_view::npos) return wrong("a word without a value");
        const std::string_view name = word.substr(0, sign), value = word.substr(sign + 1);
        bool good = true;
        uint32_t bit = 0;
        if (name == "cluster") {
            good = take_number_of(value, ticket.cluster, 16);
            bit = 1;
        } else if (name == "member") {
            good = take_number_of(value, ticket.member, 10) && ticket.member != 0;
            bit = 2;
        } else if (name == "master") {
            good = take_text(value, ticket.master);
            bit = 4;
        } else if (name == "listen") {
            good = take_text(value, ticket.listen);
            bit = 8;
        } else if (name == "secret") {
            good = take_bytes(value, ticket.secret);
            bit = 16;
        } else if (name == "key") {
            good = take_bytes(value, ticket.key);
            bit = 16;
        } else if (name == "members") {
            good = take_number_of(value, ticket.members, 10) && ticket.members != 0;
            bit = 32;
        } else if (name == "rank") {
            good = take_text(value, ticket.rank_variables);
            bit = 64;
        } else {
            return wrong("an unknown word");
        }
        if (!good || (seen & bit) != 0) return wrong(name);
        seen |= bit;
    }
    constexpr uint32_t of_one = 31, of_many = 96;
    if (seen != of_one && seen != (of_one | of_many)) return wrong("something is missing");
    if (ticket.members - 1 > UINT32_MAX - 1 - ticket.member) return wrong("members");
    return ticket;
}

std::string numbered(std::string text, uint32_t member) {
    const std::string number = std::to_string(member);
    for (size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at + number.size()))
        text.replace(at, 2, number);
    return text;
}

std::string Ticket::variable() const {
    return to_hex(line());
}

Result<Ticket> Ticket::parse_variable(std::string_view value) {
    const std::vector<unsigned char> line = from_hex(value);
    if (line.empty()) return Error::make(MUSTER_E_PROTOCOL, "%s is no ticket", ticket_variable);
    const std::string_view text(reinterpret_cast<const char *>(line.data()), line.size());
    return parse(text.substr(0, text.find('\n')));
}

Result<void> Ticket::take_own() {
    if (members == 1) return {};
    std::string_view rest(rank_variables);
    while (!rest.empty()) {
        const std::string name(rest.substr(0, rest.find(',')));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        const char *const value = getenv(name.c_str());
        if (value == nullptr) continue;
        uint32_t rank = 0;
        if (!take_number_of(std::string_view(value), rank, 10) || rank >= members)
            return Error::make(MUSTER_E_PROTOCOL, "%s is \"%.40s\", not 0 to %u", name.c_str(), value, members - 1);
        member += rank;
        listen = numbered(listen, member);
        return {};
    }
    return Error::make(MUSTER_E_PROTOCOL, "the ticket is for %u workers, and none of the variables %s gives the rank",
                       members, rank_variables.c_str());
}

std::string WorkerReport::line() const {
    std::string text(worker_report_begins);
    text += address;
    if (member != 0) text.append(1, ' ').append(std::to_string(member));
    return text += '\n';
}

std::optional<WorkerReport> WorkerReport::parse(std::string_view line) {
    if (line.substr(0, worker_report_begins.size()) != worker_report_begins) return std::nullopt;
    line.remove_prefix(worker_report_begins.size());
    WorkerReport report;
    const size_t space = line.find(' ');
    report.address = line.substr(0, space);
    if (space == std::string_view::npos) return report;
    if (!take_number_of(line.substr(space + 1), report.member, 10)) return std::nullopt;
    return report;
}

Result<Ticket> read_ticket(int fd) {
    std::string line;
    for (;;) {
        char c = 0; // one at a time: the bytes after the newline belong to the program
        const ssize_t got = uncancelled::read(fd, &c, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, MUSTER_E_SYSTEM, "read the ticket from descriptor %d", fd);
        if (got == 0)
            return Error::make(MUSTER_E_PROTOCOL, "descriptor %d ends after %zu bytes, before the end of a ticket", fd,
                               line.size());
        if (c == '\n') return Ticket::parse(line);
        line.push_back(c);
        if (line.size() > ticket_max_bytes)
            return Error::make(MUSTER_E_PROTOCOL, "no ticket on descriptor %d: %zu bytes without a newline", fd,
                               line.size());
    }
}

} // namespace muster
