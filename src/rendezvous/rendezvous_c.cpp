// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "rendezvous/member.hpp"

#include <algorithm>
#include <cstring>

using namespace muster;

namespace {

constexpr size_t reason_max = 200;

Result<Ref<RendezvousOperation>> make(muster_rendezvous *rendezvous, uint32_t what, const void *reason,
                                      size_t reason_bytes, int64_t timeout_ns) {
    if (!rendezvous) return Error::make(MUSTER_E_ARG, "no rendezvous");
    Member &member = unwrap(rendezvous)->member();
    if (member.forked()) return Error::from_status(MUSTER_E_FORKED);
    if (what < MUSTER_RENDEZVOUS_JOIN || what > MUSTER_RENDEZVOUS_CLOSE)
        return Error::make(MUSTER_E_ARG, "unknown operation %u", what);
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: it may have to wait");
    const bool gives_reason = what == MUSTER_RENDEZVOUS_ABORT || what == MUSTER_RENDEZVOUS_CLOSE;
    if (reason_bytes > (gives_reason ? reason_max : 0) || (reason_bytes != 0 && !reason))
        return Error::make(MUSTER_E_ARG, "a reason of %zu bytes, at most %zu", reason_bytes,
                           gives_reason ? reason_max : 0);
    if (member.context().closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return make_ref<RendezvousOperation>(member, what,
                                         std::string_view(static_cast<const char *>(reason), reason_bytes), timeout_ns);
}

muster_status wait_for(muster_rendezvous *rendezvous, uint32_t what, const void *reason, size_t reason_bytes,
                       int64_t timeout_ns, Ref<Round> &out_round, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto operation = make(rendezvous, what, reason, reason_bytes, timeout_ns);
        if (!operation) return operation.error();
        if (unwrap(rendezvous)->member().would_deadlock())
            return Error::make(MUSTER_E_WOULD_DEADLOCK, "this thread serves the rendezvous");
        const Error ended = (*operation)->wait(out_round);
        if (ended.status <= 0) return ended;
        report(error, ended);
        return Result<void>::positive(ended.status);
    });
}

} // namespace

extern "C" muster_status muster_rendezvous_open(muster_context *context, const muster_rendezvous_config *given,
                                                int64_t timeout_ns, muster_rendezvous **out_rendezvous,
                                                muster_error *error) {
    if (out_rendezvous) *out_rendezvous = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (!out_rendezvous) return Error::make(MUSTER_E_ARG, "no place for the rendezvous");
        if (!given) return Error::make(MUSTER_E_ARG, "no config: a run_id and min are needed");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: opening may have to wait");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        muster_rendezvous_config config;
        if (auto done = read_config(given, config, "muster_rendezvous_config"); !done) return done;
        Deadline deadline(timeout_ns);
        auto rendezvous = Rendezvous::open(*unwrap(context), config, deadline);
        if (!rendezvous && rendezvous.error().status > 0) {
            report(error, rendezvous.error());
            return Result<void>::positive(rendezvous.error().status);
        }
        if (!rendezvous) return rendezvous.error();
        *out_rendezvous = wrap(rendezvous->detach());
        return {};
    });
}

extern "C" muster_status muster_rendezvous_join(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                muster_round **out_round, muster_error *error) {
    if (!out_round) return report(error, Error::make(MUSTER_E_ARG, "no place for the round"));
    *out_round = nullptr;
    Ref<Round> round;
    const muster_status status = wait_for(rendezvous, MUSTER_RENDEZVOUS_JOIN, nullptr, 0, timeout_ns, round, error);
    *out_round = wrap(round.detach());
    return status;
}

extern "C" muster_status muster_rendezvous_leave(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                 muster_error *error) {
    Ref<Round> none;
    return wait_for(rendezvous, MUSTER_RENDEZVOUS_LEAVE, nullptr, 0, timeout_ns, none, error);
}

extern "C" muster_status muster_rendezvous_exit(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                muster_error *error) {
    Ref<Round> none;
    return wait_for(rendezvous, MUSTER_RENDEZVOUS_EXIT, nullptr, 0, timeout_ns, none, error);
}

extern "C" muster_status muster_rendezvous_abort(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes,
                                                 int64_t timeout_ns, muster_error *error) {
    Ref<Round> none;
    return wait_for(rendezvous, MUSTER_RENDEZVOUS_ABORT, reason, reason_bytes, timeout_ns, none, error);
}

extern "C" muster_status muster_rendezvous_close(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes,
                                                 int64_t timeout_ns, muster_error *error) {
    Ref<Round> none;
    return wait_for(rendezvous, MUSTER_RENDEZVOUS_CLOSE, reason, reason_bytes, timeout_ns, none, error);
}

extern "C" muster_status muster_rendezvous_begin(muster_rendezvous *rendezvous, uint32_t operation, const void *reason,
                                                 size_t reason_bytes, int64_t timeout_ns, muster_queue *queue,
                                                 uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!queue) return Error::make(MUSTER_E_ARG, "no queue");
        auto begun = make(rendezvous, operation, reason, reason_bytes, timeout_ns);
        if (!begun) return begun.error();
        if (&unwrap(queue)->context() != &unwrap(rendezvous)->member().context())
            return Error::make(MUSTER_E_ARG, "the queue is of another context");
        if (unwrap(queue)->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
        if (!unwrap(queue)->reserve()) return Result<void>::positive(MUSTER_AGAIN);
        (*begun)->begin(*unwrap(queue), tag);
        return {};
    });
}

extern "C" muster_status muster_rendezvous_cancel(muster_rendezvous *rendezvous) {
    if (!rendezvous) return MUSTER_E_ARG;
    if (unwrap(rendezvous)->member().forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    const Ref<Rendezvous> self(unwrap(rendezvous));
    self->member().cancel();
    return MUSTER_OK;
}

extern "C" muster_status muster_rendezvous_next_event(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                      muster_rendezvous_event *out_event) {
    if (!rendezvous || !out_event) return MUSTER_E_ARG;
    if (unwrap(rendezvous)->member().forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    const Ref<Rendezvous> self(unwrap(rendezvous));
    const bool may_wait = !self->member().would_deadlock(); // what is there is given in any case
    Deadline deadline(may_wait ? timeout_ns : 0);
    const Status status = self->member().next_event(deadline, *out_event);
    return status == MUSTER_AGAIN && timeout_ns != 0 ? Status{MUSTER_E_WOULD_DEADLOCK} : status;
}

extern "C" muster_status muster_rendezvous_get_state(muster_rendezvous *rendezvous,
                                                     muster_rendezvous_state *out_state) {
    if (!rendezvous || !out_state) return MUSTER_E_ARG;
    if (unwrap(rendezvous)->member().forked()) return MUSTER_E_FORKED;
    *out_state = unwrap(rendezvous)->member().state();
    return MUSTER_OK;
}

extern "C" muster_status muster_rendezvous_list(muster_rendezvous *rendezvous, char *out_text, size_t capacity,
                                                int64_t timeout_ns, size_t *out_bytes, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!rendezvous) return Error::make(MUSTER_E_ARG, "no rendezvous");
        if (!out_bytes || (!out_text && capacity != 0)) return Error::make(MUSTER_E_ARG, "no place for the text");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: it may have to wait");
        const Ref<Rendezvous> self(unwrap(rendezvous));
        if (self->member().forked()) return Error::from_status(MUSTER_E_FORKED);
        if (self->member().would_deadlock())
            return Error::make(MUSTER_E_WOULD_DEADLOCK, "this thread serves the rendezvous");
        auto text = self->member().list(timeout_ns);
        if (!text && text.error().status > 0) {
            report(error, text.error());
            return Result<void>::positive(text.error().status);
        }
        if (!text) return text.error();
        size_t size = std::min(capacity, text->size());
        while (size != 0 && size < text->size() && (*text)[size - 1] != '\n') size--; // whole lines
        if (size != 0) text->copy(out_text, size);
        *out_bytes = size;
        return {};
    });
}

extern "C" void muster_rendezvous_release(muster_rendezvous *rendezvous) {
    if (rendezvous) unwrap(rendezvous)->release();
}

extern "C" muster_status muster_round_get_info(const muster_round *round, muster_round_info *out_info) {
    if (!round || !out_info) return MUSTER_E_ARG;
    const RoundFacts &facts = unwrap(round)->facts();
    muster_round_info info{};
    info.number = facts.number;
    info.rank = facts.rank;
    info.world = facts.world;
    info.flags = unwrap(round)->over() ? MUSTER_ROUND_OVER : 0;
    std::memcpy(info.digest, facts.digest.data(), sizeof info.digest);
    *out_info = info;
    return MUSTER_OK;
}

extern "C" muster_status muster_round_store(muster_round *round, muster_store **out_store, muster_error *error) {
    if (out_store) *out_store = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!round) return Error::make(MUSTER_E_ARG, "no round");
        if (!out_store) return Error::make(MUSTER_E_ARG, "no place for the store");
        Ref<Store> view = unwrap(round)->view();
        if (!view) return Error::make(MUSTER_E_UNSUPPORTED, "this round has no store");
        *out_store = wrap(view.detach());
        return {};
    });
}

extern "C" muster_status muster_round_member(muster_round *round, uint32_t rank, int64_t timeout_ns,
                                             muster_round_member_info *out_member, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!round) return Error::make(MUSTER_E_ARG, "no round");
        if (!out_member) return Error::make(MUSTER_E_ARG, "no place for the member");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: it may have to wait");
        const Ref<Round> self(unwrap(round));
        if (self->view() && self->view()->forked()) return Error::from_status(MUSTER_E_FORKED);
        Error why;
        auto done = self->member(rank, timeout_ns, *out_member, why);
        if (why.status > 0) report(error, why);
        return done;
    });
}

extern "C" void muster_round_release(muster_round *round) {
    if (round) unwrap(round)->release();
}
