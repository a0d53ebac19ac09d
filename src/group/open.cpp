// SPDX-License-Identifier: MIT
// The way to a group: the addresses of the members, by a store, a list or another group, and a stream between each two.
#include "base/codec.hpp"
#include "base/hash.hpp"
#include "group/group.hpp"
#include "group/hello.hpp"
#include "group/meeting_place.hpp"
#include "transport/address.hpp"
#include "transport/descriptor_channel.hpp"
#include "transport/dial.hpp"
#include "transport/listener.hpp"

#include <algorithm>
#include <sodium.h>

namespace muster {

namespace {

constexpr uint32_t max_members = 4096;
constexpr size_t max_name = 200;
constexpr size_t store_batch = 256;                   // keys of one request
constexpr uint64_t window_of_operations = 256 * 1024; // of the streams of the group itself
constexpr uint64_t all_slots_bytes = uint64_t{16} << 20, min_slot = 64 * 1024, max_slot = 512 * 1024;
constexpr uint64_t max_slot_bytes = uint64_t{16} << 20, slot_unit = 4096;
constexpr size_t split_record_bytes = 512;
constexpr uint32_t messages_tag = 1u << 31; // of a stream for messages, beside the rank

template <class T, void (*release)(T *)>
struct Handle { // of the C interface
    T *object = nullptr;
    Handle() = default;
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { release(object); }
};
using StoreResult = Handle<muster_store_result, muster_store_result_release>;

uint64_t random_number() noexcept {
    uint64_t number = 0;
    randombytes_buf(&number, sizeof number);
    return number | 1;
}

// The ranks, for people: "1, 2, 5 and 17 more".
std::string list_ranks(const std::vector<uint32_t> &ranks) {
    std::string text;
    for (size_t i = 0; i < ranks.size(); i++) {
        if (i == 12) return text + " and " + std::to_string(ranks.size() - i) + " more";
        text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    }
    return text;
}

// Finds the other members and connects to them; used once, by one thread.
class Opening {
    Hub &hub_; // first: it initialises the source of random numbers

  public:
    Opening(Context &context, Deadline &deadline) : hub_(Hub::of(context)), context_(context), deadline_(deadline) {}
    ~Opening();

    Group::Settings settings;
    const uint64_t instance = random_number();
    uint64_t window_bytes = window_of_operations;

    Result<void> listen(const std::string &address);
    std::string address() { return listener_->address(); }
    Result<void> exchange(muster_store *store); // addresses by the store; after listen()
    void forget(muster_store *store) noexcept;  // deletes the own address
    void set_addresses(std::vector<std::string> addresses, std::vector<uint64_t> instances);
    Result<Ref<Group>> connect();
    // The streams to the other members, without a group; no queue watches them.
    Result<void> connect_streams();
    Group::Streams &streams() noexcept { return streams_; }

  private:
    std::string key(uint32_t rank) const { return settings.name + '/' + std::to_string(rank); }
    Result<void> read_records(muster_store *store, uint32_t first, uint32_t count);
    Error missing_records(muster_store *store);
    GroupHello hello() const;
    bool has_messages() const noexcept { return settings.flags & MUSTER_GROUP_MESSAGES; }
    // `tag`: the rank, with for_messages or without.
    Result<void> dial(Queue &queue, uint32_t tag);
    Result<void> add(Queue &queue, Ref<Stream> stream, bool was_dialled, uint32_t tag);
    Result<void> wait_for_streams(Queue &queue);
    Error missing_streams() const;

    Context &context_;
    Deadline &deadline_;
    Ref<Listener> listener_;
    std::vector<std::string> addresses_;
    std::vector<uint64_t> instances_; // 0: not known
    Group::Streams streams_;
    uint32_t connected_ = 0;
    bool same_place_ = true, published_ = false;
};

Opening::~Opening() {
    if (listener_) listener_->close();
}

GroupHello Opening::hello() const {
    GroupHello says;
    says.rank = settings.rank;
    says.size = settings.size;
    // The board has no way to drive an external context while a thread waits.
    const bool no_memory = (settings.flags & MUSTER_GROUP_NO_SHARED_MEMORY) || context_.external();
    says.flags = (no_memory ? GroupHello::no_memory : 0) | (has_messages() ? GroupHello::has_messages : 0);
    says.name = fnv1a(settings.name);
    says.instance = instance;
    says.slot_bytes = settings.slot_bytes;
    says.host = hub_.host;
    return says;
}

Result<void> Opening::listen(const std::string &address) {
    TransportOptions options;
    options.hello = hello().write();
    options.window_bytes = window_bytes;
    auto listener = Listener::open(context_, address, options);
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
    listener_->expect(settings.size * (has_messages() ? 2 : 1));
    streams_.operations.resize(settings.size);
    if (has_messages()) streams_.messages.resize(settings.size);
    return {};
}

// ---- addresses ------------------------------------------------------------------------------------------------------

void Opening::set_addresses(std::vector<std::string> addresses, std::vector<uint64_t> instances) {
    addresses_ = std::move(addresses);
    instances_ = std::move(instances);
    instances_.resize(settings.size);
}

Result<void> Opening::exchange(muster_store *store) {
    addresses_.resize(settings.size);
    instances_.resize(settings.size);
    const std::string name = key(settings.rank), value = GroupRecord{settings.size, instance, address()}.write();
    muster_store_op set = {};
    set.kind = MUSTER_STORE_SET;
    set.condition = MUSTER_STORE_IF_ABSENT;
    set.key = name.data();
    set.key_bytes = name.size();
    set.value = value.data();
    set.value_bytes = value.size();
    Error why;
    const int64_t left = deadline_.endless() ? -1 : std::max<int64_t>(1, deadline_.left());
    StoreResult result;
    const Status status = muster_store_do(store, &set, 1, left, &result.object, &why);
    if (status == MUSTER_E_CHANGED)
        return Error::make(MUSTER_E_EXISTS, "rank %u of group \"%s\" has an address already", settings.rank,
                           settings.name.c_str());
    if (status != MUSTER_OK) return why.status != MUSTER_OK ? why : Error::from_status(status);
    published_ = true;
    for (uint32_t first = 0; first < settings.size; first += store_batch) {
        const uint32_t count = std::min<uint32_t>(store_batch, settings.size - first);
        if (auto done = read_records(store, first, count); !done) return done;
    }
    return {};
}

Result<void> Opening::read_records(muster_store *store, uint32_t first, uint32_t count) {
    std::vector<std::string> names;
    std::vector<muster_store_op> ops(count);
    for (uint32_t i = 0; i < count; i++) names.push_back(key(first + i));
    for (uint32_t i = 0; i < count; i++) {
        ops[i].kind = MUSTER_STORE_GET;
        ops[i].key = names[i].data();
        ops[i].key_bytes = names[i].size();
    }
    Error why;
    const int64_t left = deadline_.endless() ? -1 : std::max<int64_t>(1, deadline_.left());
    StoreResult result;
    const Status status = muster_store_do(store, ops.data(), count, left, &result.object, &why);
    if (status == MUSTER_TIMEOUT) return missing_records(store);
    if (status != MUSTER_OK) return why.status != MUSTER_OK ? why : Error::from_status(status);
    for (uint32_t i = 0; i < count; i++) {
        muster_store_entry entry;
        if (const Status got = muster_store_result_entry(result.object, i, &entry); got != MUSTER_OK)
            return Error::from_status(got);
        const auto record = GroupRecord::read({static_cast<const char *>(entry.value), entry.value_bytes});
        if (!record)
            return Error::make(MUSTER_E_PROTOCOL, "the key %s of the store has no address of a member",
                               names[i].c_str());
        if (record->size != settings.size) {
            Error differs =
                Error::make(MUSTER_E_MISMATCH, "rank %u says that the group has %u members, rank %u says %u", first + i,
                            record->size, settings.rank, settings.size);
            differs.rank = first + i;
            return differs;
        }
        addresses_[first + i] = record->address;
        instances_[first + i] = record->instance;
    }
    return {};
}

Error Opening::missing_records(muster_store *store) {
    std::vector<uint32_t> missing;
    for (uint32_t r = 0; r < settings.size; r++) {
        const std::string name = key(r);
        muster_store_op look = {};
        look.kind = MUSTER_STORE_CHECK;
        look.key = name.data();
        look.key_bytes = name.size();
        StoreResult result;
        muster_store_entry entry;
        constexpr int64_t a_second = 1'000'000'000;
        if (muster_store_do(store, &look, 1, a_second, &result.object, nullptr) != MUSTER_OK ||
            muster_store_result_entry(result.object, 0, &entry) != MUSTER_OK)
            return Error::make(MUSTER_TIMEOUT, "not all members have published an address in time");
        if (!(entry.flags & MUSTER_STORE_PRESENT)) missing.push_back(r);
    }
    return Error::make(MUSTER_TIMEOUT, "ranks that have published no address in time: %s", list_ranks(missing).c_str());
}

void Opening::forget(muster_store *store) noexcept {
    if (!published_) return;
    try {
        const std::string name = key(settings.rank);
        muster_store_op erase = {};
        erase.kind = MUSTER_STORE_DELETE;
        erase.key = name.data();
        erase.key_bytes = name.size();
        StoreResult result;
        constexpr int64_t a_second = 1'000'000'000;
        muster_store_do(store, &erase, 1, a_second, &result.object, nullptr);
    } catch (const std::bad_alloc &) { // the key stays
    }
}

// ---- streams --------------------------------------------------------------------------------------------------------

Result<void> Opening::dial(Queue &queue, uint32_t tag) {
    const uint32_t rank = tag & ~messages_tag;
    GroupHello says = hello();
    if (tag & messages_tag) says.flags |= GroupHello::for_messages;
    TransportOptions options;
    options.hello = says.write();
    options.window_bytes = window_bytes;
    const int64_t left = deadline_.left();
    options.retry_ns = deadline_.endless() ? INT64_MAX / 4 : left;
    auto made =
        HostDial::make(context_, addresses_[rank], options, deadline_.endless() ? -1 : std::max<int64_t>(1, left));
    if (!made) return made.error();
    auto begun = (*made)->begin(queue, tag);
    if (!begun) return begun.error();
    return begun.status() == MUSTER_OK ? Result<void>() : Error::make(MUSTER_E_INTERNAL, "a dial could not be begun");
}

// A stream of a listener may be from any process; a dialled stream leads to the member, or the group cannot be
// opened.
Result<void> Opening::add(Queue &queue, Ref<Stream> stream, bool was_dialled, uint32_t tag) {
    uint32_t rank = tag & ~messages_tag;
    struct Refuse {
        Ref<Stream> stream;
        ~Refuse() {
            if (!stream) return;
            stream->abort(0, "not expected by this member of a group");
            stream.detach()->host_release();
        }
    } guard{std::move(stream)};
    const auto says = GroupHello::read(guard.stream->hello());
    const auto refuse = [&](Error why) -> Result<void> {
        why.rank = rank;
        return was_dialled ? why : Result<void>();
    };
    // A member that was made by a split listened before it knew its rank: its instance shows that it is the right one.
    const bool by_instance = was_dialled && instances_[rank] != 0;
    if (!says || says->name != fnv1a(settings.name) || (was_dialled && !by_instance && says->rank != rank))
        return refuse(
            Error::make(MUSTER_E_PROTOCOL, "%s is not rank %u of this group", guard.stream->peer().c_str(), rank));
    const bool for_messages = was_dialled ? tag & messages_tag : says->flags & GroupHello::for_messages;
    if (!was_dialled) rank = says->rank;
    if (bool(says->flags & GroupHello::has_messages) != has_messages()) {
        Error differs =
            Error::make(MUSTER_E_MISMATCH, "rank %u was opened %s messages, rank %u %s", rank,
                        has_messages() ? "without" : "with", settings.rank, has_messages() ? "with" : "without");
        differs.rank = rank;
        return differs;
    }
    std::vector<Ref<Stream>> &streams = for_messages ? streams_.messages : streams_.operations;
    if ((!by_instance && says->size != settings.size) || says->slot_bytes != settings.slot_bytes) {
        Error differs =
            Error::make(MUSTER_E_MISMATCH, "rank %u has a group of %u members and slots of %llu bytes, not %u and %llu",
                        says->rank, says->size, static_cast<unsigned long long>(says->slot_bytes), settings.size,
                        static_cast<unsigned long long>(settings.slot_bytes));
        differs.rank = says->rank;
        return differs;
    }
    const bool expected = rank < settings.size && rank != settings.rank && (was_dialled || rank > settings.rank);
    if (!expected || (for_messages && !has_messages()) || streams[rank] ||
        (instances_[rank] != 0 && instances_[rank] != says->instance))
        return refuse(Error::make(MUSTER_E_PROTOCOL, "%s is another process than rank %u of this group",
                                  guard.stream->peer().c_str(), rank));
    same_place_ = same_place_ && !(says->flags & GroupHello::no_memory) && says->host.same_place(hub_.host);
    if (const Status watched =
            guard.stream->watch(MUSTER_STREAM_ENDED, &queue, for_messages ? rank | messages_tag : rank);
        watched < 0)
        return Error::from_status(watched);
    streams[rank] = std::move(guard.stream);
    connected_++;
    return {};
}

Error Opening::missing_streams() const {
    std::vector<uint32_t> missing;
    for (uint32_t r = 0; r < settings.size; r++)
        if (r != settings.rank && (!streams_.operations[r] || (has_messages() && !streams_.messages[r])))
            missing.push_back(r);
    Error why = Error::make(MUSTER_TIMEOUT, "ranks that have not connected in time: %s", list_ranks(missing).c_str());
    why.rank = missing.empty() ? UINT32_MAX : missing.front();
    return why;
}

// Lower ranks are dialled, higher ones dial.
Result<void> Opening::wait_for_streams(Queue &queue) {
    const uint64_t of_listener = settings.size;
    if (const Status status = listener_->watch(&queue, of_listener); status < 0) return Error::from_status(status);
    for (uint32_t r = 0; r < settings.rank; r++) {
        if (auto begun = dial(queue, r); !begun) return begun;
        if (!has_messages()) continue;
        if (auto begun = dial(queue, r | messages_tag); !begun) return begun;
    }
    for (;;) {
        for (;;) { // also before the first entry: connections may have arrived before the watch
            Deadline once(0);
            Ref<Stream> stream;
            Error why;
            const Status status = listener_->accept(once, stream, why);
            if (status < 0) return why.status != MUSTER_OK ? why : Error::from_status(status);
            if (status != MUSTER_OK) break;
            if (auto added = add(queue, std::move(stream), false, UINT32_MAX); !added) return added;
        }
        if (connected_ == (settings.size - 1) * (has_messages() ? 2 : 1)) return {};
        muster_completion entry;
        Error why;
        const Status status = queue.next(deadline_, &entry, &why);
        if (status == MUSTER_TIMEOUT || status == MUSTER_AGAIN) return missing_streams();
        if (status != MUSTER_OK) return Error::from_status(status);
        const auto tag = static_cast<uint32_t>(entry.tag), rank = tag & ~messages_tag;
        if (entry.kind == MUSTER_EVENT_READY && rank < settings.size && (entry.events & MUSTER_STREAM_ENDED)) {
            Error ended;
            (tag & messages_tag ? streams_.messages : streams_.operations)[rank]->reason(nullptr, &ended);
            why = Error::make(MUSTER_E_PEER, "rank %u has ended during the call: %s", rank, ended.message);
            why.rank = rank;
            return why;
        }
        if (entry.kind != MUSTER_DONE_DIAL) continue;
        if (entry.status == MUSTER_TIMEOUT) return missing_streams();
        if (entry.status != MUSTER_OK) {
            why.rank = rank;
            return why;
        }
        auto stream = Ref<Stream>::adopt(unwrap(static_cast<muster_stream *>(entry.object)));
        if (auto added = add(queue, std::move(stream), true, tag); !added) return added;
    }
}

Result<void> Opening::connect_streams() {
    auto queue = Queue::create(context_, 2 * settings.size + 16);
    if (!queue) return queue.error();
    auto connected = wait_for_streams(**queue);
    (*queue)->close(); // ends the other dials
    listener_->close();
    listener_.reset();
    return connected;
}

Result<Ref<Group>> Opening::connect() {
    if (auto connected = connect_streams(); !connected) return connected.error();
    const bool shares = same_place_ && !(hello().flags & GroupHello::no_memory);
    auto group = Group::make(context_, settings, std::move(streams_));
    if (!group) return group.error();
    struct ReleaseUnlessOpen {
        Ref<Group> group;
        ~ReleaseUnlessOpen() {
            if (group) group.detach()->host_release();
        }
    } guard{std::move(*group)};
    // The barrier shows that every member has all its streams.
    GroupOperation barrier;
    barrier.kind = MUSTER_GROUP_BARRIER;
    if (auto agreed = guard.group->agree_on_memory(shares, deadline_); !agreed) return agreed.error();
    if (auto met = guard.group->perform(barrier, deadline_); !met) return met.error();
    return std::move(guard.group);
}

// ---- from the configuration ---------------------------------------------------------------------------------------

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

Group::Streams alone() { // of a group of one
    Group::Streams streams;
    streams.operations.resize(1);
    return streams;
}

// An address of the same transport and host that is not in use yet.
Result<std::string> fresh_address(const std::string &like) {
    auto parsed = parse_address(like);
    if (!parsed) return parsed.error();
    const size_t options = std::min(like.find('?'), like.size());
    const std::string rest = like.substr(options);
    if (parsed->scheme == "tcp") return "tcp://" + format_host_port(parsed->host, 0) + rest;
    return like.substr(0, options) + '-' + DescriptorChannel::random_digits(16) + rest;
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
        auto found = opening.exchange(store);
        Result<Ref<Group>> opened = found ? opening.connect() : Result<Ref<Group>>(found.error());
        opening.forget(store); // every member has read it, or the group was not opened
        return opened;
    }
    if (config.listen != nullptr) return Error::make(MUSTER_E_ARG, "listen is given, and no store, round or cluster");
    if (config.addresses == nullptr && settings.size > 1)
        return Error::make(MUSTER_E_ARG, "no round, store, cluster or addresses");
    if (settings.size == 1) return Group::make(context, settings, alone());
    std::vector<std::string> addresses = split_lines({config.addresses, config.addresses_bytes});
    if (addresses.size() != settings.size)
        return Error::make(MUSTER_E_ARG, "addresses has %zu lines, the group has %u members", addresses.size(),
                           settings.size);
    settings.listen = addresses[settings.rank];
    if (auto listening = opening.listen(settings.listen); !listening) return listening.error();
    opening.set_addresses(std::move(addresses), {});
    return opening.connect();
}

namespace {

// Listens at a fresh address, and exchanges the addresses of all members of a group. One member's part of the
// all-gather: color, key, instance, address.
struct Meeting {
    struct Member {
        int64_t key;
        uint32_t rank;
        uint64_t instance;
        std::string address;
    };
    std::vector<Member> members; // of this color, ordered by key and rank; without a color: none
    Error failed;                // a member could not listen
};

Result<Meeting> meet_again(Group &group, Opening &opening, int64_t color, int64_t key, Deadline &deadline) {
    std::string own;
    // The failure of one member must not leave the others in the all-gather: it takes part, without an address.
    Meeting met;
    if (color >= 0 && group.size() > 1) {
        auto at = fresh_address(group.settings.listen);
        auto listening = at ? opening.listen(*at) : Result<void>(at.error());
        if (!listening) met.failed = listening.error();
        if (listening) own = opening.address();
        if (own.size() > split_record_bytes - 32) {
            met.failed = Error::make(MUSTER_E_LIMIT, "the address to listen at is too long: %zu bytes", own.size());
            own.clear();
        }
    }
    ByteWriter writer;
    writer.number(static_cast<uint64_t>(color)).number(static_cast<uint64_t>(key)).number(opening.instance).text(own);
    std::string record = writer.take();
    record.resize(split_record_bytes);
    std::vector<unsigned char> all(group.size() * split_record_bytes);
    muster_group_operation gather = {};
    gather.struct_size = sizeof gather;
    gather.kind = MUSTER_GROUP_ALL_GATHER;
    gather.type = MUSTER_TYPE_U8;
    gather.count = split_record_bytes;
    gather.input = record.data();
    gather.output = all.data();
    auto operation = group.read(gather);
    if (!operation) return operation.error();
    if (auto done = group.perform(*operation, deadline); !done) return done.error();
    if (color < 0) return met;
    for (uint32_t r = 0; r < group.size(); r++) {
        ByteReader from({reinterpret_cast<const char *>(all.data()) + r * split_record_bytes, split_record_bytes});
        const auto its_color = static_cast<int64_t>(from.number<uint64_t>());
        const auto its_key = static_cast<int64_t>(from.number<uint64_t>());
        const auto its_instance = from.number<uint64_t>();
        if (its_color != color) continue;
        met.members.push_back({its_key, r, its_instance, std::string(from.text(split_record_bytes))});
    }
    std::stable_sort(met.members.begin(), met.members.end(),
                     [](const Meeting::Member &a, const Meeting::Member &b) { return a.key < b.key; });
    std::vector<std::string> addresses;
    std::vector<uint64_t> instances;
    for (uint32_t i = 0; i < met.members.size(); i++) {
        Meeting::Member &one = met.members[i];
        if (one.rank == group.rank()) opening.settings.rank = i;
        if (one.address.empty() && group.size() > 1 && met.failed.status == MUSTER_OK) {
            met.failed = Error::make(MUSTER_E_UNREACHABLE, "rank %u could not listen", one.rank);
            met.failed.rank = one.rank;
        }
        addresses.push_back(one.address);
        instances.push_back(one.instance);
    }
    opening.settings.size = static_cast<uint32_t>(met.members.size());
    if (met.failed.status == MUSTER_OK && opening.settings.size > 1)
        opening.set_addresses(std::move(addresses), std::move(instances));
    return met;
}

} // namespace

Result<Ref<Group>> split_group(Group &group, int64_t color, int64_t key, Deadline &deadline) {
    Opening opening(group.context(), deadline);
    opening.settings = group.settings;
    opening.settings.name += "/split";
    auto met = meet_again(group, opening, color, key, deadline);
    if (!met) return met.error();
    if (met->failed.status != MUSTER_OK) return met->failed;
    if (color < 0) return Ref<Group>();
    if (opening.settings.size == 1) return Group::make(group.context(), opening.settings, alone());
    return opening.connect();
}

// The members then agree on how it ended: either all have their streams, or none has.
Result<std::vector<Ref<Stream>>> connect_members(Group &group, Deadline &deadline) {
    Opening opening(group.context(), deadline);
    opening.settings = group.settings;
    opening.settings.name += "/streams";
    opening.window_bytes = group.context().settings.window_bytes;
    opening.settings.flags &= ~static_cast<uint32_t>(MUSTER_GROUP_MESSAGES);
    auto met = meet_again(group, opening, 0, 0, deadline);
    if (!met) return met.error();
    Error why = met->failed;
    if (why.status == MUSTER_OK && group.size() > 1)
        if (auto connected = opening.connect_streams(); !connected) why = connected.error();
    int32_t worst = why.status == MUSTER_OK ? 0 : 1;
    muster_group_operation vote = {};
    vote.struct_size = sizeof vote;
    vote.kind = MUSTER_GROUP_ALL_REDUCE;
    vote.type = MUSTER_TYPE_I32;
    vote.reduction = MUSTER_REDUCE_MAX;
    vote.count = 1;
    vote.output = &worst;
    auto operation = group.read(vote);
    if (!operation) return operation.error();
    if (auto done = group.perform(*operation, deadline); !done) return done.error();
    if (why.status != MUSTER_OK) return why;
    if (worst != 0) return Error::make(MUSTER_E_UNREACHABLE, "another member could not connect to all others");
    std::vector<Ref<Stream>> streams = std::move(opening.streams().operations);
    streams.resize(group.size());
    for (const Ref<Stream> &one : streams)
        if (one) one->watch(0, nullptr, 0);
    return streams;
}

} // namespace muster
