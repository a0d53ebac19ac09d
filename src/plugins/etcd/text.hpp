// SPDX-License-Identifier: MIT
#pragma once
// Text that etcd's gateway reads and writes, and the URL of a store.
#include "base/time.hpp"

#include <muster/base.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etcd {

using muster::now_ns;
constexpr int64_t ms = 1'000'000, second = 1'000 * ms;

// A failure with its sentence. A value.
struct Failure {
    muster_status status = MUSTER_OK;
    std::string text;
};

std::string base64(std::string_view bytes);
bool from_base64(std::string_view text, std::string &out); // false: it is none
// The first key after all keys that begin with the prefix; a zero byte: there is none, in the notation of etcd.
std::string behind_all(std::string_view prefix);

// etcd://host:port[,host:port...]/prefix?ca=file&cert=file&key=file&user-file=file&timeout=seconds&tls=yes
struct Url {
    std::vector<std::string> endpoints; // https://host:port
    std::string root;                   // the prefix of all keys
    std::string ca, cert, key;          // files
    std::string user, password;
    int64_t timeout_ns = 10 * second; // timeout without an answer

    static Failure parse(std::string_view text, Url &out);
};

} // namespace etcd
