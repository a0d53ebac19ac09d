// SPDX-License-Identifier: MIT
// What a rendezvous is opened with, checked; and which kind of it that asks for.
#include "base/config.hpp"
#include "base/text.hpp"
#include "rendezvous/dynamic/peers.hpp"
#include "rendezvous/served/served.hpp"

#include <algorithm>
#include <cstdlib>

namespace muster {

namespace {

constexpr size_t run_id_max = 255, address_max = 1024, order_key_max = 256, url_max = 4096, directory_max = 3072;
constexpr uint32_t world_max = 1 << 20, attempts_max = 1000;
constexpr int64_t shortest_ns = 1'000'000, longest_keep_alive_ns = 86'400'000'000'000;
constexpr int64_t default_keep_alive_ns = 5'000'000'000, default_last_call_ns = 30'000'000'000;
constexpr uint32_t default_attempts = 3;
constexpr std::string_view static_scheme = "static:";

Result<std::string_view> view(const char *what, const void *data, uint64_t size, size_t most) {
    if (size > most || (size != 0 && data == nullptr))
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: %s of %llu bytes, at most %zu", what,
                           static_cast<unsigned long long>(size), most);
    return std::string_view(static_cast<const char *>(data), size);
}

} // namespace

Result<RendezvousSettings> RendezvousSettings::read(const muster_rendezvous_config &config) {
    RendezvousSettings settings;
    auto run_id = view("a run_id", config.run_id, config.run_id_bytes, run_id_max);
    auto address = view("an address", config.address, config.address_bytes, address_max);
    auto order_key = view("an order_key", config.order_key, config.order_key_bytes, order_key_max);
    for (const auto *text : {&run_id, &address, &order_key})
        if (!*text) return text->error();
    settings.run_id = *run_id;
    settings.address = *address;
    settings.order_key = *order_key;
    if (settings.run_id.empty()) return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: no run_id");
    for (std::string_view left = settings.run_id; !left.empty();) {
        const size_t size = printable_bytes(left);
        if (size == 0 || left[0] == '/')
            return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: a run_id has no '/', and only printable text");
        left.remove_prefix(size);
    }
    if (settings.order_key.empty()) settings.order_key = settings.address.substr(0, order_key_max);

    const uint32_t max = config.max == 0 ? config.min : config.max;
    if (config.min == 0 || max > world_max)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: min %u, max %u: 1 to %u", config.min, max,
                           world_max);
    if (config.min > max)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: min %u is above max %u", config.min, max);
    constexpr uint32_t known = MUSTER_RENDEZVOUS_HAS_RANK | MUSTER_RENDEZVOUS_REOPEN | MUSTER_RENDEZVOUS_DISCARD_STATE;
    if ((config.flags & ~known) != 0) return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: unknown flags");
    for (const uint64_t reserved : config.reserved)
        if (reserved != 0) return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: reserved is zero");
    if (config.rank >= max && (config.flags & MUSTER_RENDEZVOUS_HAS_RANK) != 0)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: rank %u of at most %u", config.rank, max);
    settings.min = config.min;
    settings.max = max;
    settings.rank = config.rank;
    settings.flags = config.flags;

    const uint32_t attempts = config.keep_alive_attempts == 0 ? default_attempts : config.keep_alive_attempts;
    const int64_t interval = config.keep_alive_ns == 0 ? default_keep_alive_ns : config.keep_alive_ns;
    if (attempts > attempts_max || interval < shortest_ns || interval > longest_keep_alive_ns / attempts)
        return Error::make(MUSTER_E_ARG,
                           "muster_rendezvous_config: keep_alive_ns %lld, %u attempts: 1 ms to 24 hours in all, and at "
                           "most %u attempts",
                           static_cast<long long>(interval), attempts, attempts_max);
    settings.keep_alive_ns = interval * attempts;
    settings.last_call_ns = config.last_call_ns == 0 ? default_last_call_ns : config.last_call_ns;
    if (settings.last_call_ns != -1 &&
        (settings.last_call_ns < shortest_ns || settings.last_call_ns > longest_keep_alive_ns))
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: last_call_ns %lld: -1, or 1 ms to 24 hours",
                           static_cast<long long>(settings.last_call_ns));
    if (config.majority_timeout_ns < -1 || config.majority_timeout_ns > longest_keep_alive_ns)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: majority_timeout_ns %lld: -1, 0, or up to 24 hours",
                           static_cast<long long>(config.majority_timeout_ns));
    settings.majority_timeout_ns = config.majority_timeout_ns;
    auto directory = view("a state_dir", config.state_dir, config.state_dir_bytes, directory_max);
    if (!directory) return directory.error();
    if (directory->find('\0') != std::string_view::npos)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: a zero byte in state_dir");
    settings.state_dir = *directory;
    if (const char *const usual = ::secure_getenv("MUSTER_STATE_DIR"); usual && settings.state_dir.empty())
        settings.state_dir = usual;
    settings.queue = Ref<Queue>(unwrap(config.queue));
    settings.tag = config.tag;
    return settings;
}

namespace {

constexpr int64_t first_attempt_ns = 500'000'000,
                  max_attempt_ns = 10'000'000'000; // between two checks of the state files

// The URL, with which this process does not serve the store.
std::string without_hosting(std::string_view url) {
    constexpr std::string_view hosting = "host=auto";
    std::string text(url);
    if (const size_t at = text.find(hosting, text.find('?')); at != std::string::npos)
        text.replace(at, hosting.size(), "host=no");
    return text;
}

// A living process of this host is a member of the run, so the run is not new and this process does not serve a store.
// Returns no store if none was reached within `attempt_ns`: the caller reads the state files again, since that process
// may have ended and released its lock.
Result<Ref<Store>> open_store_of_run(Context &context, std::string_view url, const MembershipFile &file,
                                     int64_t attempt_ns, Deadline &deadline) {
    Deadline attempt(deadline.endless() ? attempt_ns : std::min(attempt_ns, deadline.left()));
    auto opened = Store::open(context, without_hosting(url), {}, attempt);
    const Status status = opened ? MUSTER_OK : opened.error().status;
    if (status != MUSTER_E_UNREACHABLE && status != MUSTER_E_PEER && status != MUSTER_TIMEOUT) return opened;
    if (!deadline.passed()) return Ref<Store>();
    const Error why = Error::make(
        status, "%s; the run is not new: a living process of this host was in round %llu (%s)", opened.error().message,
        static_cast<unsigned long long>(file.living()->place.attempt.number), file.living_path().c_str());
    return why;
}

} // namespace

Ref<Rendezvous> Rendezvous::of(const Ref<Member> &member) {
    Ref<Rendezvous> made;
    try {
        made = make_ref<Rendezvous>(member);
    } catch (const std::bad_alloc &) { // the member is known to others already: to a provider, to the run
        member->released();
        throw;
    }
    member->open_events();
    return made;
}

Result<Ref<Rendezvous>> Rendezvous::open(Context &context, const muster_rendezvous_config &config, Deadline &deadline) {
    auto settings = RendezvousSettings::read(config);
    if (!settings) return settings.error();
    if (settings->queue && &settings->queue->context() != &context)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: the queue is of another context");
    auto url = view("a url", config.url, config.url_bytes, url_max);
    if (!url) return url.error();
    const bool given_ranks = url->starts_with(static_scheme);
    if (given_ranks) url->remove_prefix(static_scheme.size());
    if (config.store == nullptr && !given_ranks && !url->empty())
        if (auto scheme = served_rendezvous(context, *url)) {
            settings->url = *url;
            auto member = open_served_member(context, std::move(*settings), std::move(scheme), deadline);
            if (!member) return member.error();
            return of(*member);
        }
    Ref<Store> store(unwrap(config.store));
    if (store && &store->context() != &context)
        return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: the store is of another context");
    const std::string_view own_url = store ? std::string_view() : *url;
    std::optional<MembershipFile> file;
    std::string origin;
    if (!store && !given_ranks && !settings->state_dir.empty()) {
        auto found = Peers::origin_of(*url);
        if (!found) return found.error();
        origin = std::move(*found);
    }
    for (int64_t attempt_ns = first_attempt_ns; !store && !url->empty();
         attempt_ns = std::min(2 * attempt_ns, max_attempt_ns)) {
        if (!origin.empty()) {
            auto opened = MembershipFile::open(settings->state_dir, settings->run_id, origin, deadline);
            if (!opened) return opened.error();
            file = std::move(*opened);
            if ((settings->flags & MUSTER_RENDEZVOUS_DISCARD_STATE) != 0) file->discard();
        }
        if (file && file->former()) {
            auto member = open_restarted_member(context, *settings, *file, *url, deadline);
            if (!member) return member.error();
            if (*member) return of(*member);
        }
        auto opened = file && file->living() ? open_store_of_run(context, *url, *file, attempt_ns, deadline)
                                             : Store::open(context, *url, {}, deadline);
        if (!opened) return opened.error();
        store = std::move(*opened);
    }
    if (!store && !given_ranks) return Error::make(MUSTER_E_ARG, "muster_rendezvous_config: neither a url nor a store");
    auto member = given_ranks
                      ? open_static_member(context, std::move(*settings), std::move(store))
                      : open_dynamic_member(context, std::move(*settings), *store, own_url, std::move(file), deadline);
    if (!member) return member.error();
    return of(*member);
}

} // namespace muster
