// SPDX-License-Identifier: MIT
// What an etcd answers, or whoever is in its place: the plug-in on a host and a way to the network that are of this
// file. However wrong the answers are, each request is answered at most once, nothing is thrown, and as long as one is
// not answered there is something that it waits for.
//
// An input is lines: what is asked of the plug-in, and what the network does; see play().
#include "input.hpp"

#include "store.hpp"
#include "task.hpp"

#include <list>

using namespace etcd;

// ---- the network: transfers in the order they were begun ------------------------------------------------------------

struct Http::Watched {};

namespace {
std::list<Transfer *> transfers;

Transfer *first(bool stream) {
    for (Transfer *const one : transfers)
        if (one->stream == stream) return one;
    return nullptr;
}
} // namespace

namespace etcd {

std::string Transfer::text() const {
    return "no connection";
}
Http::Http(const muster_host *host, const Url &url) : host_(host), url_(url) {}
Http::~Http() {
    while (!transfers_.empty()) cancel(transfers_.begin()->first);
}
Transfer *Http::post(std::string url, std::string body, const std::string &, bool stream,
                     std::function<void(Transfer &)> done, std::function<void(std::string_view)> line) {
    auto made = std::make_unique<Transfer>();
    made->url = std::move(url);
    made->body = std::move(body);
    made->done = std::move(done);
    made->line = std::move(line);
    made->stream = stream;
    made->http = this;
    transfers.push_back(made.get());
    Transfer *const transfer = made.get();
    transfers_.emplace(transfer, std::move(made));
    return transfer;
}
void Http::cancel(Transfer *transfer) noexcept {
    const auto found = transfers_.find(transfer);
    if (found == transfers_.end()) return;
    transfers.remove(transfer);
    const std::unique_ptr<Transfer> last = std::move(found->second); // forgotten before it is gone
    transfers_.erase(found);
}

} // namespace etcd

namespace {

// As Http::finish() does: the transfer is removed, and then reported.
void finish(Transfer *transfer, CURLcode code, long status, std::string_view answer) {
    transfer->code = code;
    transfer->status = status;
    transfer->never_sent = code == CURLE_COULDNT_CONNECT;
    transfer->answer = answer;
    const auto done = std::move(transfer->done);
    Transfer told;
    told.url = transfer->url;
    told.answer = transfer->answer;
    told.code = code;
    told.status = status;
    told.never_sent = transfer->never_sent;
    transfer->http->cancel(transfer);
    done(told);
}

// ---- the host -------------------------------------------------------------------------------------------------------

struct Timer {
    void (*due)(void *);
    void *user;
    bool repeats;
};
std::list<Timer> timers;
std::map<uint64_t, bool> asked; // requests, and whether they were answered
bool is_open;

Timer *timer_of(muster_timer *timer) {
    return reinterpret_cast<Timer *>(timer);
}
muster_status answered(uint64_t request) {
    const auto found = asked.find(request);
    if (found == asked.end() || found->second) return MUSTER_E_STALE;
    found->second = true;
    return MUSTER_OK;
}
size_t sum;
void read_all(const void *data, uint64_t size) {
    for (uint64_t i = 0; i < size; i++) sum += static_cast<const unsigned char *>(data)[i];
}

muster_host make_host() {
    muster_host host{};
    host.struct_size = sizeof host;
    host.log = [](const muster_host *, int32_t, const char *text, uint64_t size) { read_all(text, size); };
    host.start_timer = [](const muster_host *, int64_t, int64_t repeat_ns, void (*due)(void *), void *user,
                          muster_timer **out) {
        *out = reinterpret_cast<muster_timer *>(&timers.emplace_back(Timer{due, user, repeat_ns != 0}));
        return muster_status{MUSTER_OK};
    };
    host.stop_timer = [](muster_timer *timer) {
        timers.remove_if([&](const Timer &one) { return &one == timer_of(timer); });
    };
    host.store_opened = [](const muster_host *, uint64_t request, const muster_store_traits *, muster_error *) {
        is_open = true;
        return answered(request);
    };
    host.store_done = [](const muster_host *, uint64_t request, muster_status, const muster_store_entry *entries,
                         uint64_t count, uint64_t, muster_error *) {
        for (uint64_t i = 0; i < count; i++) {
            read_all(entries[i].key, entries[i].key_bytes);
            read_all(entries[i].value, entries[i].value_bytes);
        }
        return answered(request);
    };
    host.store_failed = [](const muster_host *, uint64_t request, muster_status status, uint32_t, const char *text,
                           uint64_t size) {
        FUZZ_CHECK(status < 0 || status == MUSTER_AGAIN);
        read_all(text, size);
        return answered(request);
    };
    return host;
}

// All that are due now; those that they start are not.
void fire() {
    std::vector<Timer *> all;
    for (Timer &one : timers) all.push_back(&one);
    for (Timer *const one : all) {
        const auto there = std::find_if(timers.begin(), timers.end(), [&](const Timer &t) { return &t == one; });
        if (there == timers.end()) continue;
        const Timer due = *there;
        due.due(due.user);
    }
}

// ---- an input -------------------------------------------------------------------------------------------------------

struct Asked {
    std::string bytes;
    std::vector<muster_store_op> ops;
};

// Pairs of a kind and a key: "sa" sets a, "gb" gets b.
void ask(Plugin &plugin, std::list<Asked> &kept, std::string_view text, uint64_t id, uint32_t flags) {
    static const std::map<char, uint32_t> kinds = {
        {'n', MUSTER_STORE_NONE}, {'g', MUSTER_STORE_GET},    {'r', MUSTER_STORE_READ},   {'s', MUSTER_STORE_SET},
        {'+', MUSTER_STORE_ADD},  {'p', MUSTER_STORE_APPEND}, {'d', MUSTER_STORE_DELETE}, {'k', MUSTER_STORE_CHECK},
        {'w', MUSTER_STORE_WAIT}, {'c', MUSTER_STORE_COUNT},  {'l', MUSTER_STORE_LIST},   {'y', MUSTER_STORE_KEYS},
        {'W', MUSTER_STORE_WATCH}};
    Asked &made = kept.emplace_back();
    made.bytes = text;
    for (size_t i = 0; i + 1 < made.bytes.size() && made.ops.size() < 120; i += 2) {
        const auto kind = kinds.find(made.bytes[i]);
        muster_store_op op{};
        op.kind = kind == kinds.end() ? uint32_t{MUSTER_STORE_SET} : kind->second;
        op.key = &made.bytes[i + 1];
        op.key_bytes = 1;
        if (op.kind == MUSTER_STORE_SET || op.kind == MUSTER_STORE_APPEND) op.value = "v", op.value_bytes = 1;
        if (op.kind == MUSTER_STORE_ADD) op.number = 1;
        if (op.kind == MUSTER_STORE_WATCH && (!made.ops.empty() || i + 2 < made.bytes.size())) continue;
        if (made.bytes[i + 1] == '?' && op.kind == MUSTER_STORE_SET) op.condition = MUSTER_STORE_IF_ABSENT;
        if (made.bytes[i + 1] == '=' && op.kind == MUSTER_STORE_SET)
            op.condition = MUSTER_STORE_IF_VALUE, op.expected = "v", op.expected_bytes = 1;
        if (made.bytes[i + 1] == '#' && op.kind == MUSTER_STORE_SET)
            op.condition = MUSTER_STORE_IF_VERSION, op.version = 7;
        if (made.bytes[i + 1] == '*' && op.kind == MUSTER_STORE_SET) op.lease = 5;
        made.ops.push_back(op);
    }
    if (made.ops.empty()) return;
    muster_store_request what{};
    what.struct_size = sizeof what;
    what.kind = MUSTER_STORE_REQUEST_DO;
    what.store = 1;
    what.flags = flags;
    what.ops = made.ops.data();
    what.op_count = made.ops.size();
    asked[id] = false;
    plugin.request(id, what);
}

void play(Plugin &plugin, std::string_view input) {
    std::list<Asked> kept;
    uint64_t next = 2;
    for (int steps = 0; !input.empty() && steps < 200; steps++) {
        const size_t end = std::min(input.find('\n'), input.size());
        const char what = input[0];
        const std::string_view rest = input.substr(std::min<size_t>(1, end), end == 0 ? 0 : end - 1);
        input.remove_prefix(std::min(end + 1, input.size()));
        Transfer *const call = first(false), *const stream = first(true);
        muster_store_request lease{};
        lease.struct_size = sizeof lease;
        lease.store = 1;
        lease.lease = 5;
        lease.ttl_ns = 3 * second;
        switch (what) {
        case 'o': // asks; 'O': and looks once
        case 'O':
            if (is_open) ask(plugin, kept, rest, next++, what == 'O' ? MUSTER_STORE_NO_WAIT : 0);
            break;
        case 'G': // leases
        case 'K':
        case 'E':
            lease.kind = what == 'G'   ? MUSTER_STORE_REQUEST_GRANT
                         : what == 'K' ? MUSTER_STORE_REQUEST_KEEP
                                       : MUSTER_STORE_REQUEST_END;
            if (!is_open) break;
            asked[next] = false;
            plugin.request(next++, lease);
            break;
        case 'a': // the oldest call is answered, 'e': as a failure
            if (call != nullptr) finish(call, CURLE_OK, 200, rest);
            break;
        case 'e':
            if (call != nullptr) finish(call, CURLE_OK, 400, rest);
            break;
        case 'n': // is not answered; has not even left
            if (call != nullptr) finish(call, CURLE_RECV_ERROR, 0, {});
            break;
        case 'u':
            if (call != nullptr) finish(call, CURLE_COULDNT_CONNECT, 0, {});
            break;
        case 's': // a line of the oldest stream
            if (stream != nullptr) {
                const auto line = stream->line;
                line(rest);
            }
            break;
        case 'x': // its end
            if (stream != nullptr) finish(stream, CURLE_OK, rest.empty() ? 200 : 401, rest);
            break;
        case 't':
            fire();
            break;
        case 'c': // the oldest request is not wanted any more
            for (auto &[id, over] : asked)
                if (!over && id != 1) {
                    over = true;
                    plugin.cancel(id);
                    break;
                }
            break;
        case 'q':
            if (is_open) plugin.close(1);
            return;
        default:
            break;
        }
        const bool waits = std::any_of(asked.begin(), asked.end(), [](const auto &one) { return !one.second; });
        FUZZ_CHECK(!waits || !transfers.empty() || !timers.empty());
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const muster_host host = make_host();
    {
        Plugin plugin(&host);
        muster_store_request open{};
        const std::string_view url =
            size != 0 && data[0] == 'U' ? "etcd://h:1,g:2/root/?timeout=1000" : "etcd://h:1/root/?timeout=1000";
        open.struct_size = sizeof open;
        open.kind = MUSTER_STORE_REQUEST_OPEN;
        open.url = url.data();
        open.url_bytes = url.size();
        asked[1] = false;
        plugin.request(1, open);
        play(plugin, {reinterpret_cast<const char *>(data), size});
        asked[1] = true;
    }
    FUZZ_CHECK(transfers.empty());
    timers.clear();
    asked.clear();
    is_open = false;
    return 0;
}
