// SPDX-License-Identifier: MIT
#include "group/opening.hpp"

#include "base/hash.hpp"
#include "group/abort.hpp"
#include "transport/dial.hpp"

#include <algorithm>
#include <optional>
#include <sodium.h>

namespace muster {

namespace {

constexpr size_t store_batch = 256;         // keys of one request
constexpr uint32_t messages_tag = 1u << 31; // of a stream for messages, beside the rank
constexpr uint64_t tag_of_round = UINT32_MAX;

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

} // namespace

Opening::Opening(Context &context, Deadline &deadline, Group *within)
    : hub_(Hub::of(context)), instance(random_number()), context_(context), deadline_(deadline), within_(within) {}

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

Error Opening::stream_ended(uint32_t tag) noexcept {
    const uint32_t rank = tag & ~messages_tag;
    Stream &stream = *(tag & messages_tag ? streams_.messages : streams_.operations)[rank];
    if (const Error cause = cause_of_abort(stream, rank, settings.size); cause.status != MUSTER_OK) return cause;
    Error ended;
    stream.reason(nullptr, &ended);
    Error why = Error::make(MUSTER_E_PEER, "rank %u has ended during the call: %s", rank, ended.message);
    why.rank = rank;
    return why;
}

// A request that waits in the store of a round ends when the round is over. This one waits for a key that nothing sets.
Result<void> Opening::watch_round(Queue &queue) {
    const std::string name = settings.name + "/over";
    muster_store_op get = {};
    get.kind = MUSTER_STORE_GET;
    get.key = name.data();
    get.key_bytes = name.size();
    Error why;
    const Status status = muster_store_begin(store_of_round_, &get, 1, -1, wrap(&queue), tag_of_round, nullptr, &why);
    // The store may belong to another context, or have too many requests: then the time limit is left.
    if (status == MUSTER_OK || status == MUSTER_AGAIN || status == MUSTER_E_ARG) return {};
    return why.status != MUSTER_OK ? why : Error::from_status(status);
}

// Lower ranks are dialled, higher ones dial.
Result<void> Opening::wait_for_streams(Queue &queue) {
    const uint64_t of_listener = settings.size;
    if (const Status status = listener_->watch(&queue, of_listener); status < 0) return Error::from_status(status);
    if (store_of_round_ != nullptr)
        if (auto watched = watch_round(queue); !watched) return watched;
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
        if (entry.kind == MUSTER_EVENT_READY && rank < settings.size && (entry.events & MUSTER_STREAM_ENDED))
            return stream_ended(tag);
        if (entry.kind == MUSTER_DONE_STORE) {
            muster_store_result_release(static_cast<muster_store_result *>(entry.object));
            if (entry.status != MUSTER_OK) return why.status != MUSTER_OK ? why : Error::from_status(entry.status);
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
    std::optional<Group::ClosedOnFailure> closed_on_failure;
    if (within_) closed_on_failure.emplace(*within_, **queue);
    auto connected = wait_for_streams(**queue);
    (*queue)->close(); // ends the other dials
    listener_->close();
    listener_.reset();
    for (const auto *const all : {&streams_.operations, &streams_.messages})
        for (const Ref<Stream> &stream : *all) {
            if (!stream) continue;
            if (connected)
                stream->watch(0, nullptr, 0);
            else
                abort_with_cause(*stream, connected.error(), settings.rank);
        }
    return connected;
}

// A stream that one side has already may fail at the other in the last step of its handshake.
Result<void> Opening::meet_on_streams() {
    constexpr char has_all = 'y';
    const auto with_each = [this](const auto &move) -> Result<void> {
        for (uint32_t r = 0; r < settings.size; r++) {
            if (!streams_.operations[r]) continue;
            const Status status = move(*streams_.operations[r]);
            if (status == MUSTER_OK) continue;
            if (status == MUSTER_E_PEER || status == MUSTER_E_ABORTED) return stream_ended(r);
            Error why = status > 0 ? Error::make(MUSTER_TIMEOUT, "rank %u has not connected to all others in time", r)
                                   : Error::from_status(status);
            if (status > 0) why.rank = r;
            return why;
        }
        return {};
    };
    size_t moved = 0;
    char other = 0;
    auto written = with_each([&](Stream &stream) { return stream.write(&has_all, 1, deadline_, moved); });
    if (!written) return written;
    return with_each([&](Stream &stream) { return stream.read(&other, 1, 1, deadline_, moved); });
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

} // namespace muster
