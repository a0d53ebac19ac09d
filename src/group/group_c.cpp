// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "group/group.hpp"

using namespace muster;

namespace {

constexpr uint32_t max_element_bytes = 4096;
constexpr size_t max_revoke_text = 120;

Result<void> check(const muster_group *group) {
    if (group == nullptr) return Error::make(MUSTER_E_ARG, "no group");
    if (unwrap(group)->forked()) return Error::from_status(MUSTER_E_FORKED);
    return {};
}

Result<void> check_timeout(int64_t timeout_ns) {
    return timeout_ns != 0 ? Result<void>() : Error::make(MUSTER_E_ARG, "timeout_ns is 0: at least 1, or -1");
}

// Calls keep the group alive while they are in it: another thread may release it meanwhile.
Status perform(muster_group *group, const muster_group_operation *given, int64_t timeout_ns, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (given == nullptr) return Error::make(MUSTER_E_ARG, "no operation");
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        const Ref<Group> self(unwrap(group));
        GroupOperation operation;
        if (auto ok = self->read(*given, operation); !ok) return ok;
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        return self->perform(operation, deadline);
    });
}

muster_group_operation make_operation(uint32_t kind, const void *input, void *output, uint64_t count, uint32_t type,
                                      uint32_t reduction = 0, uint32_t root = 0) {
    muster_group_operation made = {};
    made.struct_size = sizeof made;
    made.kind = kind;
    made.type = type;
    made.reduction = reduction;
    made.root = root;
    made.count = count;
    made.input = input;
    made.output = output;
    return made;
}

} // namespace

extern "C" {

muster_status muster_group_open(muster_context *context, const muster_group_config *config, int64_t timeout_ns,
                                muster_group **out_group, muster_error *error) {
    if (out_group != nullptr) *out_group = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
        if (config == nullptr) return Error::make(MUSTER_E_ARG, "no configuration");
        if (out_group == nullptr) return Error::make(MUSTER_E_ARG, "no place for the group");
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        const Ref<Context> self(unwrap(context));
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (self->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        if (self->on_loop() && !self->external())
            return Error::make(MUSTER_E_WOULD_DEADLOCK, "a group is opened inside a callback of the engine");
        muster_group_config read;
        if (auto done = read_config(config, read, "muster_group_config"); !done) return done;
        if (read.flags & ~uint32_t{MUSTER_GROUP_NO_SHARED_MEMORY | MUSTER_GROUP_MESSAGES | MUSTER_GROUP_RANK_OF_MEMBER})
            return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", read.flags);
        const HostCall call(*self, nullptr, HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        auto opened = open_group(*self, read, deadline);
        if (!opened) return opened.error();
        *out_group = wrap(opened->detach());
        return {};
    });
}

muster_status muster_group_split(muster_group *group, int64_t color, int64_t key, int64_t timeout_ns,
                                 muster_group **out_group, muster_error *error) {
    if (out_group != nullptr) *out_group = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (out_group == nullptr) return Error::make(MUSTER_E_ARG, "no place for the group");
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        const Ref<Group> self(unwrap(group));
        const HostCall call(self->context(), self.get(), HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        auto made = split_group(*self, color, key, deadline);
        if (!made) return made.error();
        if (*made) *out_group = wrap(made->detach());
        return {};
    });
}

muster_status muster_group_connect(muster_group *group, int64_t timeout_ns, muster_stream **out_streams,
                                   uint32_t capacity, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        const Ref<Group> self(unwrap(group));
        if (out_streams == nullptr || capacity < self->size())
            return Error::make(MUSTER_E_ARG, "there is room for %u streams, and the group has %u members",
                               out_streams == nullptr ? 0 : capacity, self->size());
        const HostCall call(self->context(), self.get(), HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        auto made = connect_members(*self, deadline);
        if (!made) return made.error();
        for (uint32_t r = 0; r < self->size(); r++) out_streams[r] = (*made)[r] ? wrap((*made)[r].detach()) : nullptr;
        return {};
    });
}

uint32_t muster_group_rank(const muster_group *group) {
    return group == nullptr ? UINT32_MAX : unwrap(group)->rank();
}

uint32_t muster_group_size(const muster_group *group) {
    return group == nullptr ? 0 : unwrap(group)->size();
}

muster_status muster_group_add_reduction(muster_group *group, uint32_t element_bytes, muster_reduce_fn combine,
                                         void *user, uint32_t *out_reduction) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (combine == nullptr || out_reduction == nullptr) return Error::from_status(MUSTER_E_ARG);
        if (element_bytes == 0 || element_bytes > max_element_bytes) return Error::from_status(MUSTER_E_ARG);
        auto added = Ref<Group>(unwrap(group))->add_reduction(element_bytes, combine, user);
        if (!added) return added.error();
        *out_reduction = *added;
        return {};
    });
}

muster_status muster_group_run(muster_group *group, const muster_group_operation *operation, int64_t timeout_ns,
                               muster_error *error) {
    return perform(group, operation, timeout_ns, error);
}

muster_status muster_group_begin(muster_group *group, const muster_group_operation *operation, int64_t timeout_ns,
                                 muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (operation == nullptr) return Error::make(MUSTER_E_ARG, "no operation");
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        const Ref<Group> self(unwrap(group));
        GroupOperation read;
        if (auto ok = self->read(*operation, read); !ok) return ok;
        return self->begin(std::move(read), Deadline(timeout_ns), queue, tag);
    });
}

muster_status muster_group_barrier(muster_group *group, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_BARRIER, nullptr, nullptr, 0, 0);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_broadcast(muster_group *group, void *data, uint64_t count, uint32_t type, uint32_t root,
                                     int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_BROADCAST, nullptr, data, count, type, 0, root);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_reduce(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type,
                                  uint32_t reduction, uint32_t root, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_REDUCE, input, output, count, type, reduction, root);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_all_reduce(muster_group *group, const void *input, void *output, uint64_t count,
                                      uint32_t type, uint32_t reduction, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_ALL_REDUCE, input, output, count, type, reduction);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_reduce_scatter(muster_group *group, const void *input, void *output, uint64_t count,
                                          uint32_t type, uint32_t reduction, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_REDUCE_SCATTER, input, output, count, type, reduction);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_scan(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type,
                                uint32_t reduction, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_SCAN, input, output, count, type, reduction);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_gather(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type,
                                  uint32_t root, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_GATHER, input, output, count, type, 0, root);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_all_gather(muster_group *group, const void *input, void *output, uint64_t count,
                                      uint32_t type, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_ALL_GATHER, input, output, count, type);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_scatter(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type,
                                   uint32_t root, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_SCATTER, input, output, count, type, 0, root);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_all_to_all(muster_group *group, const void *input, void *output, uint64_t count,
                                      uint32_t type, int64_t timeout_ns, muster_error *error) {
    const auto operation = make_operation(MUSTER_GROUP_ALL_TO_ALL, input, output, count, type);
    return perform(group, &operation, timeout_ns, error);
}

muster_status muster_group_send(muster_group *group, uint32_t rank, const void *data, uint64_t data_bytes,
                                int64_t timeout_ns, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        if (data == nullptr && data_bytes != 0) return Error::make(MUSTER_E_ARG, "no data");
        const Ref<Group> self(unwrap(group));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        return self->send(rank, data, data_bytes, deadline);
    });
}

muster_status muster_group_receive(muster_group *group, uint32_t rank, void *out_data, uint64_t capacity,
                                   int64_t timeout_ns, uint64_t *out_bytes, muster_error *error) {
    if (out_bytes != nullptr) *out_bytes = 0;
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        if (out_data == nullptr && capacity != 0) return Error::make(MUSTER_E_ARG, "no destination");
        if (out_bytes == nullptr) return Error::make(MUSTER_E_ARG, "no place for the number of bytes");
        const Ref<Group> self(unwrap(group));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        return self->receive(rank, out_data, capacity, deadline, *out_bytes);
    });
}

muster_status muster_group_get_status(muster_group *group, uint32_t rank, muster_group_status *out_status) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (out_status == nullptr || rank >= unwrap(group)->size()) return Error::from_status(MUSTER_E_ARG);
        Ref<Group>(unwrap(group))->get_status(rank, *out_status);
        return {};
    });
}

muster_status muster_group_revoke(muster_group *group, const char *text, size_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (text_bytes > max_revoke_text || (text == nullptr && text_bytes != 0))
            return Error::from_status(MUSTER_E_ARG);
        const Ref<Group> self(unwrap(group));
        self->fail(Error::make(MUSTER_E_ABORTED, "rank %u revoked the group%s%.*s", self->rank(),
                               text_bytes ? ": " : "", static_cast<int>(text_bytes), text != nullptr ? text : ""));
        return {};
    });
}

muster_status muster_group_close(muster_group *group, int64_t timeout_ns, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check(group); !ok) return ok;
        if (auto ok = check_timeout(timeout_ns); !ok) return ok;
        const Ref<Group> self(unwrap(group));
        const HostCall call(self->context(), self.get());
        Deadline deadline(timeout_ns);
        return self->close(deadline);
    });
}

void muster_group_release(muster_group *group) {
    if (group != nullptr) unwrap(group)->host_release();
}

} // extern "C"
