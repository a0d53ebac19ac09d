// SPDX-License-Identifier: MIT
#include "cluster/ticket.hpp"

#include "base/uncancelled.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace muster {

namespace {

constexpr char head[] = "muster-worker-ticket 1";
constexpr char digits[] = "0123456789abcdef";

void put_hex(std::string &to, unsigned char byte) {
    to.push_back(digits[byte >> 4]);
    to.push_back(digits[byte & 15]);
}

bool plain(char c) noexcept {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || (c != '\0' && std::strchr("-_.:/?&=@[]{}", c) != nullptr);
}

void put_word(std::string &to, const char *name, std::string_view value) {
    to.append(" ").append(name).append("=");
    for (const char c : value) {
        if (plain(c)) {
            to.push_back(c);
        } else {
            to.push_back('%');
            put_hex(to, static_cast<unsigned char>(c));
        }
    }
}

int hex_of(char c) noexcept {
    const char *const found = c == '\0' ? nullptr : std::strchr(digits, c);
    return found == nullptr ? -1 : static_cast<int>(found - digits);
}

bool take_text(std::string_view value, std::string &out) {
    for (size_t i = 0; i < value.size(); i++) {
        if (value[i] != '%') {
            out.push_back(value[i]);
            continue;
        }
        if (value.size() - i < 3) return false;
        const int high = hex_of(value[i + 1]), low = hex_of(value[i + 2]);
        if (high < 0 || low < 0) return false;
        out.push_back(static_cast<char>(high << 4 | low));
        i += 2;
    }
    return out.size() <= 4096;
}

bool take_bytes(std::string_view value, std::vector<unsigned char> &out) {
    if (value.size() % 2 != 0) return false;
    for (size_t i = 0; i < value.size(); i += 2) {
        const int high = hex_of(value[i]), low = hex_of(value[i + 1]);
        if (high < 0 || low < 0) return false;
        out.push_back(static_cast<unsigned char>(high << 4 | low));
    }
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
    put_word(text, "master", master);
    put_word(text, "listen", listen);
    text += " secret=";
    for (const unsigned char byte : secret) put_hex(text, byte);
    return text += '\n';
}

Result<Ticket> Ticket::parse(std::string_view line) {
    const auto wrong = [](std::string_view where) {
        return Error::make(MUSTER_E_PROTOCOL, "no ticket of a worker, or one of another version: %.*s",
                           static_cast<int>(where.size()), where.data());
    };
    constexpr std::string_view begin(head);
    if (line.substr(0, begin.size()) != begin) return wrong("it begins in another way"); // it may be a secret: untold
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
        } else {
            return wrong("an unknown word");
        }
        if (!good || (seen & bit) != 0) return wrong(name);
        seen |= bit;
    }
    if (seen != 31) return wrong("something is missing");
    return ticket;
}

Result<Ticket> read_ticket(int fd) {
    std::string line;
    for (;;) {
        char c = 0; // one at a time: what follows is the program's
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
