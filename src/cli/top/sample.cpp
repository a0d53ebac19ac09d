// SPDX-License-Identifier: MIT
#include "sample.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <set>

namespace top {

namespace {

constexpr std::string_view prefix = "muster/metrics/";
constexpr size_t changes_kept = 200;

// `name="text",name="text"}`; false: it is something else.
bool parse_labels(std::string_view &rest, std::map<std::string, std::string> &out) {
    while (!rest.empty() && rest.front() != '}') {
        const size_t equals = rest.find("=\"");
        if (equals == std::string_view::npos) return false;
        const std::string name(rest.substr(0, equals));
        rest.remove_prefix(equals + 2);
        std::string value;
        while (!rest.empty() && rest.front() != '"') {
            if (rest.front() == '\\' && rest.size() > 1) rest.remove_prefix(1);
            value += rest.front();
            rest.remove_prefix(1);
        }
        if (rest.empty()) return false;
        rest.remove_prefix(1);
        if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
        muster::make_printable(value.data(), value.size());
        out[name] = value;
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    return true;
}

std::string clock_time() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::localtime_r(&now, &parts);
    char text[16];
    std::strftime(text, sizeof text, "%H:%M:%S", &parts);
    return text;
}

} // namespace

double Sample::sum(std::string_view name, std::string_view label, std::string_view text) const {
    const auto found = lines.find(name);
    if (found == lines.end()) return 0;
    double all = 0;
    for (const Line &line : found->second) {
        const auto at = line.labels.find(std::string(label));
        if (label.empty() || (at != line.labels.end() && at->second == text)) all += line.value;
    }
    return all;
}

double Sample::largest(std::string_view name) const {
    const auto found = lines.find(name);
    double most = 0;
    if (found != lines.end())
        for (const Line &line : found->second) most = std::max(most, line.value);
    return most;
}

Sample parse_sample(std::string_view text) {
    Sample sample;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.front() == '#') continue;
        const size_t name_end = line.find_first_of("{ ");
        if (name_end == std::string_view::npos) continue;
        const std::string name(line.substr(0, name_end));
        Sample::Line read;
        const bool has_labels = line[name_end] == '{';
        line.remove_prefix(name_end + (has_labels ? 1 : 0));
        if (has_labels && !parse_labels(line, read.labels)) continue;
        const std::string number(line);
        char *rest = nullptr;
        read.value = std::strtod(number.c_str(), &rest);
        if (rest == number.c_str() || !std::isfinite(read.value)) continue;
        sample.lines[name].push_back(std::move(read));
    }
    return sample;
}

std::optional<double> Process::rate(std::string_view name, std::string_view label, std::string_view label_text) const {
    const double seconds = now.at() - before.at();
    if (before.lines.empty() || seconds <= 0) return std::nullopt;
    // A counter that is smaller than before is that of an object that has ended.
    return std::max(0.0, (now.sum(name, label, label_text) - before.sum(name, label, label_text)) / seconds);
}

void Job::note(const std::string &what) {
    changes.push_back(clock_time() + "  " + what);
    if (changes.size() > changes_kept) changes.erase(changes.begin());
}

void Job::note_differences(const std::string &name, const Process &process) {
    const auto grown = [&](std::string_view metric, std::string_view label = {}, std::string_view text = {}) {
        return process.now.sum(metric, label, text) - process.before.sum(metric, label, text);
    };
    const auto show = [](double count) { return std::to_string(static_cast<long long>(count)); };
    if (const double more = grown("muster_agent_restarts_total"); more > 0)
        note(name + ": workers were restarted after a failure");
    else if (grown("muster_agent_round") > 0)
        note(name + ": round " + show(process.now.sum("muster_agent_round")) + " with " +
             show(process.now.sum("muster_agent_nodes")) + " nodes");
    for (const auto &[how, text] : {std::pair{"dead", "died"}, std::pair{"failed", "failed to join"}})
        if (const double more = grown("muster_cluster_ended_total", "how", how); more > 0)
            note(name + ": " + show(more) + (more == 1 ? " worker has " : " workers have ") + text);
    if (const double more = grown("muster_broker_lost_total"); more > 0)
        note(name + ": " + show(more) + (more == 1 ? " member was" : " members were") + " lost");
    if (const double more = grown("muster_handshakes_total", "result", "refused"); more > 0)
        note(name + ": " + show(more) + (more == 1 ? " connection was" : " connections were") + " refused");
}

muster_status Job::read(muster_store *store, int64_t timeout_ns, muster_error &why) {
    muster_store_op list{};
    list.kind = MUSTER_STORE_LIST;
    list.key = prefix.data();
    list.key_bytes = prefix.size();
    std::set<std::string> seen;
    std::string after;
    for (bool has_more = true; has_more;) {
        list.value = after.data();
        list.value_bytes = after.size();
        muster_store_result *result = nullptr;
        const muster_status status = muster_store_do(store, &list, 1, timeout_ns, &result, &why);
        if (status != MUSTER_OK) return status;
        has_more = false;
        for (uint64_t i = 0; i < muster_store_result_count(result); i++) {
            muster_store_entry entry;
            if (muster_store_result_entry(result, i, &entry) != MUSTER_OK) continue;
            if ((entry.flags & MUSTER_STORE_PRESENT) == 0 || entry.key_bytes <= prefix.size()) continue;
            after.assign(static_cast<const char *>(entry.key), entry.key_bytes);
            has_more = (entry.flags & MUSTER_STORE_MORE) != 0;
            std::string name = after.substr(prefix.size());
            muster::make_printable(name.data(), name.size());
            seen.insert(name);
            const auto [at, is_new] = processes.try_emplace(name);
            Process &process = at->second;
            if (is_new && reads > 0) note(name + ": has begun to publish");
            if (process.version == entry.version) {
                process.repeated++;
                continue;
            }
            process.repeated = 0;
            process.version = entry.version;
            process.before = std::move(process.now);
            process.text.assign(static_cast<const char *>(entry.value), entry.value_bytes);
            process.now = parse_sample(process.text);
            if (!process.before.lines.empty()) note_differences(name, process);
        }
        muster_store_result_release(result);
    }
    for (auto at = processes.begin(); at != processes.end();) {
        if (seen.count(at->first) != 0) {
            ++at;
        } else {
            note(at->first + ": has ended, or does not publish any more");
            at = processes.erase(at);
        }
    }
    reads++;
    return MUSTER_OK;
}

} // namespace top
