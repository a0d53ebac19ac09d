// SPDX-License-Identifier: MIT
#include "txn.hpp"

namespace etcd {

void Txn::compare(std::string_view key, const char *target, const char *result, const char *field,
                  std::string_view value) {
    if (!compares_.empty()) compares_ += ',';
    compares_ += "{\"key\":\"" + base64(key) + "\",\"target\":\"" + target + "\",\"result\":\"" + result + "\",\"" +
                 field + "\":\"" + std::string(value) + "\"}";
}

void Txn::compare_mod(std::string_view key, uint64_t mod) {
    compare(key, "MOD", "EQUAL", "mod_revision", std::to_string(mod));
}

void Txn::put(Branch branch, std::string_view key, std::string_view value, uint64_t lease) {
    std::string text = "{\"request_put\":{\"key\":\"" + base64(key) + "\",\"value\":\"" + base64(value) + "\"";
    if (lease != 0) text += ",\"lease\":\"" + std::to_string(lease) + "\"";
    add(branch, text + "}}");
}

void Txn::remove(Branch branch, std::string_view key) {
    add(branch, "{\"request_delete_range\":{\"key\":\"" + base64(key) + "\"}}");
}

void Txn::add(Branch branch, const std::string &text) {
    std::string &to = branches_[branch];
    if (!to.empty()) to += ',';
    to += text;
}

std::string Txn::text() const {
    return "{\"compare\":[" + compares_ + "],\"success\":[" + branches_[success] + "],\"failure\":[" +
           branches_[failure] + "]}";
}

std::string range_of_key(std::string_view key, uint64_t at_revision) {
    std::string text = "{\"key\":\"" + base64(key) + "\"";
    if (at_revision != 0) text += ",\"revision\":\"" + std::to_string(at_revision) + "\"";
    return text + "}";
}

Value value_in(const Json &kv) {
    Value value;
    if (!kv.is_object()) return value;
    value.there = true;
    value.bytes = bytes_in(kv, "value");
    value.mod = number_in(kv, "mod_revision");
    value.version = number_in(kv, "version");
    value.lease = number_in(kv, "lease");
    return value;
}

Value first_in(const Json &range) {
    const auto kvs = range.find("kvs");
    if (kvs == range.end() || !kvs->is_array() || kvs->empty()) return {};
    return value_in(kvs->front());
}

Listed listed_in(const Json &range) {
    Listed listed;
    listed.count = number_in(range, "count");
    listed.more = is_true(range, "more");
    const auto kvs = range.find("kvs");
    if (kvs == range.end() || !kvs->is_array()) return listed;
    for (const Json &kv : *kvs)
        if (kv.is_object()) listed.keys.emplace_back(bytes_in(kv, "key"), value_in(kv));
    return listed;
}

const Json &response(const Json &body, size_t index, const char *what) {
    static const Json nothing = Json::object();
    const auto responses = body.find("responses");
    if (responses == body.end() || !responses->is_array() || index >= responses->size()) return nothing;
    const Json &one = (*responses)[index];
    const auto found = one.find(what);
    return one.is_object() && found != one.end() && found->is_object() ? *found : nothing;
}

} // namespace etcd
