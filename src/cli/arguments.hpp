// SPDX-License-Identifier: MIT
#pragma once
// The options of every command: a command lists them with the places of their values, and one parser reads them.
#include "commands.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace cli {

// Stores a value; returns an error text, empty if the value is valid.
using Setter = std::function<std::string(const std::string &)>;

struct Option {
    const char *name; // without the dashes
    Setter set;
    bool has_value = true;
    char letter = 0; // after a single dash; 0: none
};

// A whole number; empty: the text is none, or the number is not within the limits.
std::optional<uint64_t> number_of(const std::string &text, uint64_t min, uint64_t max);
// As number_of(), from text to a number; returns an error text.
std::string set_number(const std::string &text, uint64_t min, uint64_t max, uint64_t &to);
std::string set_seconds(const std::string &text, double min, double max, int64_t &to_ns);

template <class T>
Option number(const char *name, T &to, uint64_t min, uint64_t max) {
    return {name, [&to, min, max](const std::string &text) {
                uint64_t value = 0;
                std::string wrong = set_number(text, min, max, value);
                if constexpr (requires { to.value(); })
                    to = static_cast<typename T::value_type>(value);
                else
                    to = static_cast<T>(value);
                return wrong;
            }};
}
template <class T>
Option flag(const char *name, T &to, T bits = T(1)) {
    return {name, [&to, bits](const std::string &) { return to = static_cast<T>(to | bits), std::string(); }, false};
}
Option text(const char *name, std::string &to); // that is not empty
// A number of bytes or of things, with k, m or g after it.
Option amount(const char *name, uint64_t &to, uint64_t min = 0, uint64_t max = UINT64_MAX);
Option seconds(const char *name, int64_t &to_ns, double min = 0.001, double max = 1e9);
Option log_level(int32_t &to);
// The name of a file, which a variable of the environment then has.
Option secret_file(const char *name = "secret-file", const char *variable = "MUSTER_SECRET_FILE");
bool has_secret(); // by file or environment

struct Command {
    const char *name; // as in messages
    const char *help;
    bool runs_program = false; // options end at the first word that is none: a program and its arguments
};

// Prints an error about the arguments on stderr; returns the exit status for that, 2.
int reject(const Command &command, const std::string &why);

// Reads the options; other words are added to `words`. Returns the exit status if the command has to end at once: after
// --help, and after an error, which it has printed. Underscores in the names of options count as dashes.
std::optional<int> read_options(const Command &command, const Arguments &arguments, const std::vector<Option> &options,
                                std::vector<std::string> &words);

} // namespace cli
