// SPDX-License-Identifier: MIT
#include "agent/nodes.hpp"

#include <climits>
#include <cstring>
#include <unistd.h>

namespace muster {

Result<void> Nodes::open(int64_t timeout_ns) {
    muster_rendezvous_config config = plan_.config();
    std::string own = plan_.address;
    if (own.empty()) { // for people who read lists of nodes
        char host[HOST_NAME_MAX + 1] = "";
        gethostname(host, sizeof host - 1);
        own = std::string(host) + ":" + std::to_string(getpid());
        config.address = own.data();
        config.address_bytes = own.size();
    }
    config.queue = wrap(&inbox_);
    config.tag = 0;
    muster_error error{};
    muster_rendezvous *opened = nullptr;
    const Status status = muster_rendezvous_open(wrap(&context_), &config, timeout_ns, &opened, &error);
    rendezvous_.reset(opened);
    return begun(status, error);
}

Result<void> Nodes::begun(Status status, const muster_error &error) noexcept {
    if (status == MUSTER_OK) return {};
    Error why;
    static_cast<muster_error &>(why) = error;
    if (status > 0) why = Error::make(MUSTER_E_LIMIT, "%s", muster_status_text(status));
    return why;
}

Result<void> Nodes::ask(uint32_t operation, const std::string &reason, int64_t timeout_ns) {
    muster_error error{};
    request_ = 0;
    const Status status =
        muster_rendezvous_begin(rendezvous_.get(), operation, reason.empty() ? nullptr : reason.data(), reason.size(),
                                timeout_ns, wrap(&inbox_), ++question_, &error);
    asking_ = status == MUSTER_OK;
    return begun(status, error);
}

Result<void> Nodes::ask_view(const std::vector<muster_store_op> &ops, int64_t timeout_ns) {
    muster_error error{};
    result_.reset();
    const Status status = muster_store_begin(view_.get(), ops.data(), ops.size(), timeout_ns, wrap(&inbox_),
                                             ++question_, &request_, &error);
    asking_ = status == MUSTER_OK;
    return begun(status, error);
}

void Nodes::cancel() noexcept {
    if (!asking_) return;
    if (request_ != 0)
        muster_store_cancel(view_.get(), request_);
    else
        muster_rendezvous_cancel(rendezvous_.get());
}

bool Nodes::take_answer(const muster_completion &entry, const muster_error &detail) noexcept {
    if (entry.kind != MUSTER_DONE_RENDEZVOUS && entry.kind != MUSTER_DONE_STORE) return false;
    RoundHandle round;
    ResultHandle result;
    if (entry.kind == MUSTER_DONE_RENDEZVOUS)
        round.reset(static_cast<muster_round *>(entry.object));
    else
        result.reset(static_cast<muster_store_result *>(entry.object));
    if (!asking_ || entry.tag != question_) return true;
    asking_ = false;
    answer_ = {};
    if (entry.status != MUSTER_OK) static_cast<muster_error &>(answer_) = detail;
    answer_.status = entry.status;
    result_ = std::move(result);
    if (!round) return true;
    round_ = std::move(round);
    muster_round_get_info(round_.get(), &info_);
    muster_store *view = nullptr;
    muster_round_store(round_.get(), &view, nullptr); // none: `static:` without a store
    view_.reset(view);
    return true;
}

void Nodes::close() noexcept {
    forget_round();
    rendezvous_.reset();
}

void Nodes::forget_round() noexcept {
    view_.reset();
    round_.reset();
}

bool Nodes::closed() const noexcept {
    muster_rendezvous_state state{};
    muster_rendezvous_get_state(rendezvous_.get(), &state);
    return (state.flags & MUSTER_RENDEZVOUS_IS_CLOSED) != 0;
}

uint32_t Nodes::exiting() const noexcept {
    muster_rendezvous_state state{};
    muster_rendezvous_get_state(rendezvous_.get(), &state);
    return state.exiting;
}

} // namespace muster
