// SPDX-License-Identifier: MIT
#pragma once
// A file of CURVE keys, in place of keys derived from the secret. Each line has a word and a key in Z85 (40 characters,
// as zmq_curve_keypair() writes them); empty lines and lines that begin with # are ignored:
//   broker-public, broker-secret    one pair for all brokers of a tree
//   member-public, member-secret    a member's own pair; a broker's file has member-public of each member
// Only the owner of the file may have access to it.
#include "keys.hpp"

#include <vector>

namespace star {

enum class KeyUser : uint8_t { member, broker, broker_below };

struct GivenKeys {                    // a value
    CurveKeys curve;                  // client_*: empty for a broker without parent
    std::vector<std::string> members; // of a broker: public keys of members, 32 bytes each
};

// `given`, or MUSTER_CURVE_FILE where that is empty. An empty result: keys derive from the secret.
std::string key_file(const std::string &given);
// Reads and checks the file. `why` never contains a key. Any thread.
muster_status read_key_file(const std::string &path, KeyUser user, GivenKeys &out, std::string &why);

} // namespace star
