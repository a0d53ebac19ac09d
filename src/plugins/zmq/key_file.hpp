// SPDX-License-Identifier: MIT
#pragma once
// CURVE keys that are given, in place of those derived from the secret. A file of lines, each a word and a key in Z85
// (40 characters, as zmq_curve_keypair() writes them); empty lines and those that begin with # say nothing:
//   broker-public, broker-secret    one pair for all brokers of a tree
//   member-public, member-secret    a member's own pair; a broker's file has member-public of everybody it lets in
// Nobody but its owner may have access to the file.
#include "keys.hpp"

#include <vector>

namespace star {

enum class KeyUser : uint8_t { member, broker, broker_below };

struct GivenKeys {                    // a value
    CurveKeys curve;                  // client_*: not of a broker that is below none
    std::vector<std::string> members; // of a broker: public keys let in, 32 bytes each
};

// `given` or, where that is empty, what MUSTER_CURVE_FILE names; empty: keys come from the secret.
std::string key_file(const std::string &given);
// OK, or why not; no text has a key in it. Any thread.
muster_status read_key_file(const std::string &path, KeyUser user, GivenKeys &out, std::string &why);

} // namespace star
