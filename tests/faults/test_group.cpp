// SPDX-License-Identifier: MIT
// group.h.
#include "scenario.hpp"

#include <cstring>
#include <thread>

using namespace faults;

namespace {

HANDLE(Group, muster_group, muster_group_release)

constexpr uint32_t f64 = MUSTER_TYPE_F64, sum = MUSTER_REDUCE_SUM;
constexpr uint64_t many = 40'000;

void add_bytes(void *, const void *input, void *inout, uint64_t count) {
    const auto *from = static_cast<const unsigned char *>(input);
    auto *to = static_cast<unsigned char *>(inout);
    for (uint64_t i = 0; i < count; i++) to[i] = static_cast<unsigned char>(to[i] + from[i]);
}

muster_group_config config_of(uint32_t rank, uint32_t size, uint32_t flags) {
    static constexpr char listen[] = "tcp://127.0.0.1:0";
    muster_group_config config{};
    config.struct_size = sizeof config;
    config.flags = flags;
    config.rank = rank;
    config.size = size;
    config.listen = size > 1 ? listen : nullptr;
    config.listen_bytes = size > 1 ? sizeof listen - 1 : 0;
    return config;
}

// The other member, on a thread of its own: what it returns is of no interest. Its context is closed in the end, which
// ends all its waits.
class OtherMember {
  public:
    OtherMember(muster_store *store, uint32_t flags) {
        const Paused paused;
        const muster_context_config config = context_config();
        if (muster_context_create(&config, &context_, nullptr) != MUSTER_OK) wrong("no context for the other member");
        thread_ = std::thread([this, store, flags] {
            const Paused paused_here; // the faults of a member are tested at rank 0
            muster_group_config members = config_of(1, 2, flags);
            members.store = store;
            muster_group *group = nullptr;
            std::vector<double> data(2 * many);
            if (muster_group_open(context_, &members, patience, &group, nullptr) == MUSTER_OK) {
                muster_group *half = nullptr;
                muster_group_all_reduce(group, nullptr, data.data(), many, f64, sum, patience, nullptr);
                muster_group_all_reduce(group, nullptr, data.data(), 1, f64, sum, patience, nullptr);
                muster_group_all_to_all(group, nullptr, data.data(), many, f64, patience, nullptr);
                muster_group_broadcast(group, data.data(), many, f64, 0, patience, nullptr);
                uint64_t bytes = 0;
                muster_group_receive(group, 0, data.data(), many, patience, &bytes, nullptr);
                muster_group_send(group, 0, data.data(), bytes, patience, nullptr);
                muster_group_split(group, 0, 0, patience, &half, nullptr);
                if (half != nullptr) muster_group_close(half, patience, nullptr);
                muster_stream *streams[2] = {};
                muster_group_connect(group, patience, streams, 2, nullptr);
                for (muster_stream *const one : streams) muster_stream_release(one);
                muster_group_release(half);
                muster_group_close(group, patience, nullptr);
            }
            muster_group_release(group);
        });
    }
    OtherMember(const OtherMember &) = delete;
    OtherMember &operator=(const OtherMember &) = delete;
    ~OtherMember() {
        const Paused paused;
        muster_context_close(context_, patience);
        thread_.join();
        muster_context_release(context_);
    }

  private:
    muster_context *context_ = nullptr;
    std::thread thread_;
};

// A fault in the engine of the other member ends the group, too; before it has connected, by a time limit.
constexpr int64_t limit = 2 * second;
#define TOGETHER(f, ...)                                                                                               \
    do {                                                                                                               \
        const muster_status status_ = CALL(f, __VA_ARGS__);                                                            \
        if (status_ == MUSTER_TIMEOUT && has_fired()) ended();                                                         \
        if (status_ != MUSTER_OK) expect_fault(#f, status_), ended();                                                  \
    } while (0)

void work_in_two(uint32_t flags) {
    Context context;
    create(context);
    Store store;
    OK(muster_store_open, context, "memory:", 7, nullptr, patience, store.out(), &error);
    const OtherMember other(store, flags);
    std::vector<double> data(2 * many, 1.0);
    muster_group_config config = config_of(0, 2, flags);
    config.store = store;
    Group group, half;
    TOGETHER(muster_group_open, context, &config, limit, group.out(), &error);
    // A failure ends the group at both members.
    TOGETHER(muster_group_all_reduce, group, nullptr, data.data(), many, f64, sum, limit, &error);
    TOGETHER(muster_group_all_reduce, group, nullptr, data.data(), 1, f64, sum, limit, &error);
    TOGETHER(muster_group_all_to_all, group, nullptr, data.data(), many, f64, limit, &error);
    TOGETHER(muster_group_broadcast, group, data.data(), many, f64, 0, limit, &error);
    uint64_t bytes = 0;
    TOGETHER(muster_group_send, group, 1, data.data(), many, limit, &error);
    TOGETHER(muster_group_receive, group, 1, data.data(), many, limit, &bytes, &error);
    EXPECT(bytes == many);
    // Not by its time limit: a member that cannot connect fails the group.
    const muster_status divided = CALL(muster_group_split, group, 0, 0, limit, half.out(), &error);
    if (divided != MUSTER_OK) expect_fault("muster_group_split", divided), ended();
    TOGETHER(muster_group_close, half, limit, &error);
    muster_stream *streams[2] = {};
    const muster_status connected = CALL(muster_group_connect, group, limit, streams, 2, &error);
    const Stream to_other(streams[1]);
    EXPECT(streams[0] == nullptr);
    if (connected != MUSTER_OK) expect_fault("muster_group_connect", connected), ended();
    TOGETHER(muster_group_close, group, limit, &error);
}

} // namespace

SCENARIO(group, alone) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    const muster_group_config config = config_of(0, 1, 0);
    Group group;
    OK(muster_group_open, context, &config, patience, group.out(), &error);
    EXPECT(DO(muster_group_rank, group) == 0);
    EXPECT(DO(muster_group_size, group) == 1);
    uint32_t reduction = 0;
    OK(muster_group_add_reduction, group, 1, add_bytes, nullptr, &reduction);
    double in[4] = {1, 2, 3, 4}, out[4] = {};
    OR_END(muster_group_barrier, group, patience, &error);
    muster_stream *none[1] = {};
    OR_END(muster_group_connect, group, patience, none, 1, &error);
    EXPECT(none[0] == nullptr);
    OR_END(muster_group_broadcast, group, in, 4, f64, 0, patience, &error);
    OR_END(muster_group_reduce, group, in, out, 4, f64, sum, 0, patience, &error);
    OR_END(muster_group_all_reduce, group, in, out, 4, f64, sum, patience, &error);
    OR_END(muster_group_reduce_scatter, group, in, out, 4, f64, sum, patience, &error);
    OR_END(muster_group_scan, group, in, out, 4, f64, sum, patience, &error);
    OR_END(muster_group_gather, group, in, out, 4, f64, 0, patience, &error);
    OR_END(muster_group_all_gather, group, in, out, 4, f64, patience, &error);
    OR_END(muster_group_scatter, group, in, out, 4, f64, 0, patience, &error);
    OR_END(muster_group_all_to_all, group, in, out, 4, f64, patience, &error);
    EXPECT(memcmp(in, out, sizeof in) == 0);
    muster_group_operation operation{};
    operation.struct_size = sizeof operation;
    operation.kind = MUSTER_GROUP_ALL_REDUCE;
    operation.type = MUSTER_TYPE_OF_REDUCTION;
    operation.reduction = reduction;
    operation.count = sizeof out;
    operation.output = out;
    OR_END(muster_group_run, group, &operation, patience, &error);
    OR_END(muster_group_begin, group, &operation, patience, queue, 4, &error); // with a function of the host
    take_ok(queue, MUSTER_DONE_CALL, 4, "muster_group_run");
    operation.type = MUSTER_TYPE_U8;
    operation.reduction = sum;
    OR_END(muster_group_begin, group, &operation, patience, queue, 3, &error);
    take_ok(queue, MUSTER_DONE_CALL, 3, "muster_group_run");
    muster_group_status status{};
    OK(muster_group_get_status, group, 0, &status);
    Group half;
    OR_END(muster_group_split, group, 1, 0, patience, half.out(), &error);
    OK(muster_group_revoke, half, "no more", 7);
    OR_END(muster_group_close, group, patience, &error);
}

SCENARIO(group, shared_memory) {
    work_in_two(MUSTER_GROUP_MESSAGES);
}

SCENARIO(group, streams) {
    work_in_two(MUSTER_GROUP_MESSAGES | MUSTER_GROUP_NO_SHARED_MEMORY);
}
