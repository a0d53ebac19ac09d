// SPDX-License-Identifier: MIT
#pragma once
// The text of etcd's transactions, and the content of their answers.
#include "client.hpp"

#include <map>

namespace etcd {

struct Value {
    bool there = false;
    std::string bytes;
    uint64_t mod = 0, version = 0; // of etcd: revision of the last change, and number of changes
    uint64_t lease = 0;
};

struct Listed {
    std::vector<std::pair<std::string, Value>> keys;
    uint64_t count = 0;
    bool more = false;
};

// {"compare":[...],"success":[...],"failure":[...]}
class Txn {
  public:
    void compare(std::string_view key, const char *target, const char *result, const char *field,
                 std::string_view value); // as text, or in base64
    void compare_mod(std::string_view key, uint64_t mod);
    enum Branch { success, failure };
    void range(Branch branch, const std::string &range) { add(branch, "{\"request_range\":" + range + "}"); }
    void put(Branch branch, std::string_view key, std::string_view value, uint64_t lease);
    void remove(Branch branch, std::string_view key);
    std::string text() const;

  private:
    void add(Branch branch, const std::string &text);
    std::string compares_, branches_[2];
};

std::string range_of_key(std::string_view key, uint64_t at_revision = 0);
Value value_in(const Json &kv);
// The first key in the answer of a range, or an absent one.
Value first_in(const Json &range);
Listed listed_in(const Json &range);
// The answer of one operation of a transaction; an empty object if it is missing.
const Json &response(const Json &body, size_t index, const char *what);

} // namespace etcd
