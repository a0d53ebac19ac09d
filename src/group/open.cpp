// SPDX-License-Identifier: MIT
// A group from a configuration.
#include "group/meeting_place.hpp"
#include "group/opening.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr uint32_t max_members = 4096;
constexpr size_t max_name = 200;
constexpr uint64_t all_slots_bytes = uint64_t{16} << 20, min_slot = 64 * 1024, max_slot = 512 * 1024;
constexpr uint64_t max_slot_bytes = uint64_t{16} << 20, slot_unit = 4096;

Result<void> choose_slots(uint64_t wanted, Group::Settings &settings) {
    if (wanted % slot_unit != 0 || wanted > max_slot_bytes)
        return Error::make(MUSTER_E_ARG, "slot_bytes is %llu: a multiple of 4096, at most 16 MiB",
                           static_cast<unsigned long long>(wanted));
    if (wanted != 0 && wanted < uint64_t{16} * settings.size)
        return Error::make(MUSTER_E_ARG, "slot_bytes is %llu, less than 16 for each of %u members",
                           static_cast<unsigned long long>(wanted), settings.size);
    const uint64_t chosen = std::clamp(all_slots_bytes / settings.size / slot_unit * slot_unit, min_slot, max_slot);
    settings.slot_bytes = wanted != 0 ? wanted : chosen;
    return {};
}

std::vector<std::string> split_lines(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return lines;
}

} // namespace

Result<Ref<Group>> open_group(Context &context, const muster_group_config &config, Deadline &deadline) {
    Opening opening(context, deadline);
    Group::Settings &settings = opening.settings;
    settings.rank = config.rank;
    settings.size = config.size;
    settings.flags = config.flags;
    settings.name =
        config.name != nullptr ? std::string(static_cast<const char *>(config.name), config.name_bytes) : "group";
    auto place = MeetingPlace::of(config, deadline, settings.rank, settings.size);
    if (!place) return place.error();
    muster_store *const store = place->store();
    if (settings.name.empty() || settings.name.size() > max_name)
        return Error::make(MUSTER_E_ARG, "name has %zu bytes, 1 to %zu", settings.name.size(), max_name);
    if (settings.size == 0 || settings.size > max_members)
        return Error::make(MUSTER_E_ARG, "size is %u, 1 to %u", settings.size, max_members);
    if (settings.rank >= settings.size)
        return Error::make(MUSTER_E_ARG, "rank is %u, the group has %u members", settings.rank, settings.size);
    if (auto chosen = choose_slots(config.slot_bytes, settings); !chosen) return chosen.error();
    if (store != nullptr) {
        if (config.addresses != nullptr)
            return Error::make(MUSTER_E_ARG, "addresses is given, and a store, a round or a cluster as well");
        if (config.listen == nullptr || config.listen_bytes == 0)
            return Error::make(MUSTER_E_ARG, "no address to listen at");
        settings.listen.assign(config.listen, config.listen_bytes);
        if (const size_t at = settings.listen.find("{}"); at != std::string::npos)
            settings.listen.replace(at, 2, std::to_string(settings.rank));
        if (auto listening = opening.listen(settings.listen); !listening) return listening.error();
        if (config.round != nullptr) opening.ends_with_round(store);
        auto found = opening.exchange(store);
        Result<Ref<Group>> opened = found ? opening.connect() : Result<Ref<Group>>(found.error());
        opening.forget(store); // every member has read it, or the group was not opened
        return opened;
    }
    if (config.listen != nullptr) return Error::make(MUSTER_E_ARG, "listen is given, and no store, round or cluster");
    if (config.addresses == nullptr && settings.size > 1)
        return Error::make(MUSTER_E_ARG, "no round, store, cluster or addresses");
    if (settings.size == 1) return Group::make(context, settings, Group::Streams::of_one());
    std::vector<std::string> addresses = split_lines({config.addresses, config.addresses_bytes});
    if (addresses.size() != settings.size)
        return Error::make(MUSTER_E_ARG, "addresses has %zu lines, the group has %u members", addresses.size(),
                           settings.size);
    settings.listen = addresses[settings.rank];
    if (auto listening = opening.listen(settings.listen); !listening) return listening.error();
    opening.set_addresses(std::move(addresses), {});
    return opening.connect();
}

} // namespace muster
