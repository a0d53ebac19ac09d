// SPDX-License-Identifier: MIT
// `static:`: ranks that the caller has given. Members are not monitored; a store, where there is one, keeps the table
// and what the members want to share.
#include "rendezvous/machine/ask.hpp"
#include "rendezvous/member/member.hpp"

namespace muster {

namespace {

class StaticMember final : public Member, private StoreListener {
  public:
    StaticMember(Context &context, RendezvousSettings what, Ref<Store> store)
        : Member(context, std::move(what)), store_(std::move(store)) {}

    void start(Ref<RendezvousOperation> operation) noexcept override {
        Error error;
        Ref<Round> round;
        try {
            if (!begin(operation, error, round)) return;
        } catch (const std::bad_alloc &) {
            error = Error::make(MUSTER_E_NOMEM, "out of memory");
            round.reset(); // made before something else found no memory
            const std::lock_guard hold(lock_);
            if (under_way_.get() == operation.get()) under_way_.reset();
        }
        operation->finish(error, std::move(round));
    }

    // The requests to the store have the same deadline, and better texts.
    void stop(RendezvousOperation &operation, Status why) noexcept override {
        if (why == MUSTER_TIMEOUT) return;
        Ref<StoreOperation> asked;
        {
            const std::lock_guard hold(lock_);
            if (under_way_.get() != &operation) return;
            asked = asked_;
        }
        if (asked) asked->cancel();
    }

    void released() noexcept override {}
    Result<std::string> list(int64_t) override {
        return Error::make(MUSTER_E_UNSUPPORTED, "%s: static: has no members that wait", settings.name().c_str());
    }

  private:
    // True: it is over. False: answered() ends it.
    bool begin(const Ref<RendezvousOperation> &operation, Error &error, Ref<Round> &round) {
        Ref<StoreOperation> ask;
        {
            const std::lock_guard hold(lock_);
            if (operation->what == MUSTER_RENDEZVOUS_ABORT) {
                error =
                    Error::make(MUSTER_E_UNSUPPORTED, "%s: static: cannot notify the others", settings.name().c_str());
                return true;
            }
            if (operation->what == MUSTER_RENDEZVOUS_CLOSE) {
                close(operation->reason);
                return true;
            }
            if (under_way_) {
                error = Error::make(MUSTER_E_BUSY, "%s: the member joins, leaves or exits already",
                                    settings.name().c_str());
                return true;
            }
            if (operation->what == MUSTER_RENDEZVOUS_LEAVE) {
                show(MUSTER_RENDEZVOUS_PHASE_IDLE);
                return true;
            }
            const bool joins = operation->what == MUSTER_RENDEZVOUS_JOIN;
            if (joins && closed_) {
                error = Error::make(MUSTER_E_CLOSED, "%s: closed here: %s", settings.name().c_str(), reason_.c_str());
                return true;
            }
            if (!joins && !in_) {
                error = Error::make(MUSTER_E_STALE, "%s: exit: this member is in no round", settings.name().c_str());
                return true;
            }
            if (joins) {
                joins_++;
                auto made = make_round();
                if (!made) {
                    error = made.error();
                    return true;
                }
                round = std::move(*made);
                if (!store_) {
                    show(MUSTER_RENDEZVOUS_PHASE_JOINED);
                    return true;
                }
            }
            auto request = joins ? announcement() : barrier();
            if (!request) {
                error = request.error();
                return true;
            }
            ask = StoreOperation::make(*store_, std::move(*request), operation->timeout_ns);
            under_way_ = operation;
            asked_ = ask;
            joined_ = std::move(round);
        }
        ask->begin(*this, 0);
        return false;
    }

    std::string prefix() const { return "muster/rdzv/" + settings.run_id + "/static/" + std::to_string(joins_) + "/"; }
    Result<Ref<Round>> make_round() const {
        RoundFacts facts;
        facts.number = joins_;
        facts.rank = settings.rank;
        facts.world = settings.max;
        if (!store_) return make_ref<Round>(facts, Ref<Store>(), Ref<Store>(), 1);
        auto view = store_->view(prefix() + "view/"), pages = store_->view(prefix() + "table/");
        if (!view) return view.error();
        if (!pages) return pages.error();
        return make_ref<Round>(facts, std::move(*view), std::move(*pages), 1);
    }
    Result<StoreRequest> announcement() const {
        const std::string key = prefix() + "table/" + std::to_string(settings.rank);
        return make_request({{MUSTER_STORE_SET, key, write_page({settings.address})}}, store_->prefix(),
                            store_->conditions());
    }
    Result<StoreRequest> barrier() const {
        if (!store_ || (store_->backend().capabilities() & MUSTER_STORE_CAN_BARRIER) == 0)
            return Error::make(MUSTER_E_UNSUPPORTED, "%s: exit: there is no store that has barriers",
                               settings.name().c_str());
        AskOp op{MUSTER_STORE_BARRIER, prefix() + "exit"};
        op.rank = settings.rank;
        op.count = settings.max;
        return make_request({op}, store_->prefix(), store_->conditions());
    }

    void answered(uint64_t, StoreAnswer answer) noexcept override {
        Ref<RendezvousOperation> operation;
        Ref<Round> round;
        {
            const std::lock_guard hold(lock_);
            operation = std::move(under_way_);
            round = std::move(joined_);
            asked_.reset();
            if (round && answer.error.status == MUSTER_OK) show(MUSTER_RENDEZVOUS_PHASE_JOINED);
        }
        if (answer.error.status != MUSTER_OK) round.reset();
        operation->finish(answer.error, std::move(round));
    }
    Object &listener_object() noexcept override { return *this; }

    void close(const std::string &reason) { // the first reason is kept
        if (closed_) return;
        reason_ = reason;
        closed_ = true;
        show(in_ ? MUSTER_RENDEZVOUS_PHASE_JOINED : MUSTER_RENDEZVOUS_PHASE_IDLE);
        emit(make_event(MUSTER_RENDEZVOUS_CLOSED, in_ ? joins_ : 0, UINT32_MAX, 0, "closed here: " + reason_));
    }
    void show(uint32_t phase) noexcept {
        in_ = phase == MUSTER_RENDEZVOUS_PHASE_JOINED;
        muster_rendezvous_state state{};
        state.phase = phase;
        state.flags = closed_ ? MUSTER_RENDEZVOUS_IS_CLOSED : 0;
        state.round = joins_;
        state.present = in_ ? settings.max : 0;
        state.last_call_remaining_ns = -1;
        set_state(state);
    }

    const Ref<Store> store_;
    std::mutex lock_; // guards the rest
    uint64_t joins_ = 0;
    bool in_ = false, closed_ = false;
    std::string reason_;
    Ref<RendezvousOperation> under_way_;
    Ref<StoreOperation> asked_;
    Ref<Round> joined_;
};

} // namespace

Result<Ref<Member>> open_static_member(Context &context, RendezvousSettings settings, Ref<Store> store) {
    if ((settings.flags & MUSTER_RENDEZVOUS_HAS_RANK) == 0)
        return Error::make(MUSTER_E_ARG, "%s: static: needs a rank", settings.name().c_str());
    if (settings.min != settings.max)
        return Error::make(MUSTER_E_ARG, "%s: static: has as many members as max, min %u and max %u differ",
                           settings.name().c_str(), settings.min, settings.max);
    return Ref<Member>(make_ref<StaticMember>(context, std::move(settings), std::move(store)));
}

} // namespace muster
