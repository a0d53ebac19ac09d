// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/trace.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"
#include "rendezvous/member/member.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

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

size_t copy_lines(const std::string &text, char *out_text, size_t capacity) noexcept {
    size_t size = std::min(capacity, text.size());
    while (size != 0 && size < text.size() && text[size - 1] != '\n') size--; // whole lines
    if (size != 0) text.copy(out_text, size);
    return size;
}

muster_status wait_for(muster_rendezvous *rendezvous, uint32_t what, const void *reason, size_t reason_bytes,
                       int64_t timeout_ns, Ref<Round> &out_round, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto operation = make(rendezvous, what, reason, reason_bytes, timeout_ns);
        if (!operation) return operation.error();
        const Ref<Rendezvous> self(unwrap(rendezvous)); // another thread may release it meanwhile
        const HostCall call(self->member().context(), self.get());
        if (self->member().would_deadlock())
            return Error::make(MUSTER_E_WOULD_DEADLOCK, "this thread serves the rendezvous");
        const Error ended = (*operation)->wait(out_round);
        if (ended.status <= 0) return ended;
        report(error, ended);
        return Result<void>::positive(ended.status);
    });
}

} // namespace

namespace {

Result<void> check_open(muster_context *context, const muster_rendezvous_config *given, int64_t timeout_ns,
                        muster_rendezvous_config &config) {
    if (!context) return Error::make(MUSTER_E_ARG, "no context");
    if (!given) return Error::make(MUSTER_E_ARG, "no config: a run_id and min are needed");
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: opening may have to wait");
    if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
    if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return read_config(given, config, "muster_rendezvous_config");
}

// A config with copies of its texts and objects.
struct KeptConfig {
    explicit KeptConfig(const muster_rendezvous_config &given)
        : config(given), store(unwrap(given.store)), queue(unwrap(given.queue)) {
        keep(config.run_id, config.run_id_bytes);
        keep(config.url, config.url_bytes);
        keep(config.address, config.address_bytes);
        keep(config.order_key, config.order_key_bytes);
        keep(config.state_dir, config.state_dir_bytes);
    }
    muster_rendezvous_config config;

  private:
    void keep(const void *&text, uint64_t bytes) {
        if (text == nullptr || bytes == 0 || bytes > 65536) return; // too long for any of them: it is refused by size
        texts.push_back(std::make_unique<std::string>(static_cast<const char *>(text), bytes));
        text = texts.back()->data();
    }
    std::vector<std::unique_ptr<std::string>> texts;
    const Ref<Store> store;
    const Ref<Queue> queue;
};

} // namespace

extern "C" muster_status muster_rendezvous_open(muster_context *context, const muster_rendezvous_config *given,
                                                int64_t timeout_ns, muster_rendezvous **out_rendezvous,
                                                muster_error *error) {
    if (out_rendezvous) *out_rendezvous = nullptr;
    return boundary(error, [&]() -> Result<void> {
        muster_rendezvous_config config;
        if (auto fine = check_open(context, given, timeout_ns, config); !fine) return fine;
        if (!out_rendezvous) return Error::make(MUSTER_E_ARG, "no place for the rendezvous");
        const HostCall call(*unwrap(context), nullptr, HostCall::EndedBy::context_too);
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

extern "C" muster_status muster_rendezvous_open_begin(muster_context *context, const muster_rendezvous_config *given,
                                                      int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                      muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_rendezvous_config config;
        if (auto fine = check_open(context, given, timeout_ns, config); !fine) return fine;
        Context &self = *unwrap(context);
        Deadline deadline(timeout_ns);
        if (!deadline.endless()) deadline.at(); // time runs from here
        const auto open = [&self, kept = std::make_shared<KeptConfig>(config), deadline]() mutable {
            BegunCall::Outcome outcome;
            auto rendezvous = Rendezvous::open(self, kept->config, deadline);
            if (!rendezvous) return outcome.why = rendezvous.error(), outcome;
            outcome.handle = wrap(rendezvous->get());
            outcome.object = std::move(*rendezvous);
            return outcome;
        };
        return BegunCall::begin({self, MUSTER_DONE_OPEN, open}, queue, tag);
    });
}

extern "C" muster_status muster_rendezvous_join(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                muster_round **out_round, muster_error *error) {
    if (!out_round) return report(error, Error::make(MUSTER_E_ARG, "no place for the round"));
    *out_round = nullptr;
    Ref<Round> round;
    const TraceSpan span("rendezvous", "join");
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
        if ((*begun)->begin(*unwrap(queue), tag)) return {};
        if (unwrap(queue)->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
        return Result<void>::positive(MUSTER_AGAIN);
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
    const HostCall call(self->member().context(), self.get());
    const bool may_wait = !self->member().would_deadlock(); // pages that are present are returned in any case
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
        const HostCall call(self->member().context(), self.get(), HostCall::EndedBy::context_too);
        if (self->member().would_deadlock())
            return Error::make(MUSTER_E_WOULD_DEADLOCK, "this thread serves the rendezvous");
        auto text = self->member().list(timeout_ns);
        if (!text && text.error().status > 0) {
            report(error, text.error());
            return Result<void>::positive(text.error().status);
        }
        if (!text) return text.error();
        *out_bytes = copy_lines(*text, out_text, capacity);
        return {};
    });
}

extern "C" muster_status muster_rendezvous_list_begin(muster_rendezvous *rendezvous, char *out_text, size_t capacity,
                                                      int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                      muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!rendezvous) return Error::make(MUSTER_E_ARG, "no rendezvous");
        if (!out_text && capacity != 0) return Error::make(MUSTER_E_ARG, "no place for the text");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: it may have to wait");
        const Ref<Rendezvous> self(unwrap(rendezvous));
        if (self->member().forked()) return Error::from_status(MUSTER_E_FORKED);
        const auto list = [member = Ref<Member>(&self->member()), out_text, capacity, timeout_ns] {
            BegunCall::Outcome outcome;
            auto text = member->list(timeout_ns);
            if (!text) return outcome.why = text.error(), outcome;
            BegunCall::write_result([&] { outcome.bytes = copy_lines(*text, out_text, capacity); });
            return outcome;
        };
        return BegunCall::begin({self->context(), MUSTER_DONE_CALL, list}, queue, tag);
    });
}

extern "C" void muster_rendezvous_release(muster_rendezvous *rendezvous) {
    if (rendezvous == nullptr) return;
    if (unwrap(rendezvous)->drop_handle())
        release_handle(*unwrap(rendezvous));
    else
        unwrap(rendezvous)->release();
}

extern "C" muster_status muster_round_get_info(const muster_round *round, muster_round_info *out_info) {
    if (!round || !out_info) return MUSTER_E_ARG;
    const RoundFacts &facts = unwrap(round)->facts();
    muster_round_info info{};
    info.number = facts.number;
    info.rank = facts.rank;
    info.world = facts.world;
    info.flags = unwrap(round)->over() ? MUSTER_ROUND_IS_OVER : 0;
    std::memcpy(info.digest, facts.digest.data(), sizeof info.digest);
    *out_info = info;
    return MUSTER_OK;
}

extern "C" muster_status muster_round_store(muster_round *round, muster_store **out_store, muster_error *error) {
    if (out_store) *out_store = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!round) return Error::make(MUSTER_E_ARG, "no round");
        if (!out_store) return Error::make(MUSTER_E_ARG, "no place for the store");
        if (!unwrap(round)->view()) return Error::make(MUSTER_E_UNSUPPORTED, "this round has no store");
        auto view = unwrap(round)->view()->view({}); // a handle of its own: its release ends only the calls on it
        if (!view) return view.error();
        *out_store = wrap(view->detach());
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
        std::optional<HostCall> call; // a round of `static:` may have nothing to wait for, and no context
        if (self->view()) call.emplace(self->view()->context(), self.get(), HostCall::EndedBy::context_too);
        Error why;
        auto done = self->member(rank, timeout_ns, *out_member, why);
        if (why.status > 0) report(error, why);
        return done;
    });
}

extern "C" muster_status muster_round_member_begin(muster_round *round, uint32_t rank, int64_t timeout_ns,
                                                   muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!round) return Error::make(MUSTER_E_ARG, "no round");
        if (!queue) return Error::make(MUSTER_E_ARG, "no queue");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "a timeout of 0: it may have to wait");
        Context &context = unwrap(queue)->context(); // a round without a store has no other context
        if (context.forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<Round> self(unwrap(round));
        if (self->view() && &self->view()->context() != &context)
            return Error::make(MUSTER_E_ARG, "the queue is of another context");
        const auto look_up = [self, rank, timeout_ns] {
            BegunCall::Outcome outcome;
            muster_round_member_info member;
            auto done = self->member(rank, timeout_ns, member, outcome.why);
            if (!done) outcome.why = done.error();
            return outcome;
        };
        return BegunCall::begin({context, MUSTER_DONE_CALL, look_up}, queue, tag);
    });
}

extern "C" void muster_round_release(muster_round *round) {
    if (round == nullptr) return;
    Round &self = *unwrap(round);
    if (self.view() && !self.view()->forked()) self.view()->context().host_calls().end_all_on(self);
    self.release();
}
