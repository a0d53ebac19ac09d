// SPDX-License-Identifier: MIT
#include "cluster/worker/worker.hpp"

#include "queue/future.hpp"

#include "cluster/broadcast/broadcast.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace muster {

// ---- in -------------------------------------------------------------------------------------------------------------

void ClusterWorker::receive() {
    while (link_) {
        set_subject_link(MUSTER_CLUSTER_MASTER);
        ControlMessage message;
        const Error why = link_->next(message);
        if (why.status == MUSTER_AGAIN) {
            link_->flush();
            return;
        }
        if (!has_joined_) {
            if (why.status != MUSTER_OK) return join_failed(why);
            receive_join_answer(message);
            continue;
        }
        if (why.status != MUSTER_OK) return master_gone(why);
        take(message);
    }
}

void ClusterWorker::take(const ControlMessage &message) {
    switch (message.kind) {
    case ControlMessage::location: {
        const auto asked = locating_.find(message.number);
        if (asked == locating_.end()) return;
        const Located then = std::move(asked->second);
        locating_.erase(asked);
        return then(message);
    }
    case ControlMessage::delivery_status:
        return broadcasts_->receive_report(message.member, message);
    case ControlMessage::broadcast_over:
        return broadcasts_->receive_over(message.member, message.number);
    case ControlMessage::dial_back:
        return dial_back(message.member, message.number, message.text, message.address, message.status != 0,
                         [this, from = message.member, number = message.number](const Error &why) {
                             if (!link_) return;
                             ControlMessage failed;
                             failed.kind = ControlMessage::dial_back_failed;
                             failed.member = from;
                             failed.number = number;
                             failed.status = why.status;
                             failed.text = why.message;
                             link_->send(failed);
                         });
    case ControlMessage::dial_back_failed:
        return dial_back_failed(message.number, message.member, error_in(message));
    case ControlMessage::gone: {
        const Error why = message.status < 0 ? error_in(message) : Error();
        report_event(why.status < 0 ? MUSTER_CLUSTER_DEAD : MUSTER_CLUSTER_REMOVED, message.member, why, message.text);
        fail_dials(Error::make(MUSTER_E_STALE, "member %u is gone: %.150s", message.member, message.text.c_str()),
                   message.member);
        return broadcasts_->member_gone(message.member, Error::make(MUSTER_E_PEER, "%.200s", message.text.c_str()));
    }
    case ControlMessage::interrupt:
        return interrupt();
    case ControlMessage::die: // no other process can kill it
        ::kill(getpid(), SIGKILL);
        return;
    case ControlMessage::leave:
        return report_event(MUSTER_CLUSTER_LEAVE, self(), {}, {});
    default:
        return master_gone(Error::make(MUSTER_E_PROTOCOL, "it sent a message of kind %u out of turn", message.kind));
    }
}

void ClusterWorker::interrupt() {
    report_event(MUSTER_CLUSTER_INTERRUPT, self(), {}, {});
    if ((flags_ & MUSTER_WORKER_RAISE_INTERRUPT) != 0) ::kill(getpid(), SIGINT);
}

void ClusterWorker::find(const Ref<ClusterDial> &dial) {
    if (dial->member == MUSTER_CLUSTER_MASTER) return found(dial, master_address_, true);
    locate(dial->member, dial->number, [this, dial](const ControlMessage &answer) {
        if (answer.status != MUSTER_OK) dial->fail(error_in(answer));
        found(dial, answer.address, true);
    });
}

void ClusterWorker::locate(uint32_t member, uint64_t number, Located then) {
    ControlMessage question;
    question.kind = ControlMessage::locate;
    question.member = member;
    question.number = number;
    ask_master(question, std::move(then));
}

void ClusterWorker::ask_master(const ControlMessage &question, Located then) {
    locating_[question.number] = std::move(then);
    if (link_) link_->send(question); // if that fails, the link is about to be over
}

namespace {

// The address of the store of the cluster, once the master has answered; or why it does not. Any thread.
class StoreQuestion final : public Object {
  public:
    explicit StoreQuestion(Context &context) noexcept : context_(context) {}
    Result<std::string> wait(Deadline &deadline) {
        const Status status = answer_.wait(context_, deadline);
        if (status == MUSTER_OK) return std::move(answer_.value());
        return status == MUSTER_TIMEOUT ? Error::make(MUSTER_TIMEOUT, "the master did not answer in time")
                                        : Error::from_status(status);
    }
    // Held by what will be called with the answer, so it also ends where that is dropped.
    struct Answerer {
        explicit Answerer(Ref<StoreQuestion> asked) noexcept : question(std::move(asked)) {}
        Answerer(const Answerer &) = delete;
        Answerer &operator=(const Answerer &) = delete;
        ~Answerer() { give(Error::make(MUSTER_E_PEER, "the master is gone, or the cluster is closed")); }
        void give(Result<std::string> what) const noexcept {
            question->answer_.complete(question->context_, std::move(what));
        }
        const Ref<StoreQuestion> question;
    };

  private:
    Context &context_; // the caller has a reference
    Future<Result<std::string>> answer_;
};

} // namespace

Result<std::string> ClusterWorker::store_address(Deadline &deadline) {
    if (auto in = check_joined(); !in) return in.error();
    const auto asked = make_ref<StoreQuestion>(context());
    auto answerer = std::make_shared<StoreQuestion::Answerer>(asked);
    const bool is_posted = post([this, answerer = std::move(answerer)] {
        if (!link_) return;
        ControlMessage question;
        question.kind = ControlMessage::find_store;
        question.number = next_number();
        ask_master(question, [answerer](const ControlMessage &answer) {
            answerer->give(answer.status != MUSTER_OK ? Result<std::string>(error_in(answer))
                                                      : Result<std::string>(answer.address));
        });
    });
    if (!is_posted) return Error::make(MUSTER_E_CLOSED, "the cluster is closed");
    return asked->wait(deadline);
}

void ClusterWorker::find_inbox(uint32_t member, FoundInbox then) {
    if (member == MUSTER_CLUSTER_MASTER) return then({}, master_inbox_);
    locate(member, next_number(), [then](const ControlMessage &answer) {
        if (answer.status != MUSTER_OK) return then(error_in(answer), {});
        then({}, answer.text);
    });
}

bool ClusterWorker::send_control(uint32_t to, ControlMessage message) {
    message.member = to;
    return link_ && link_->send(message);
}

bool ClusterWorker::request_dial_back(ClusterDial &dial) {
    if (!link_) return false;
    ControlMessage request;
    request.kind = ControlMessage::dial_back;
    request.member = dial.member;
    request.number = dial.number;
    request.status = dial.on_done ? 1 : 0;
    request.text = dial.label;
    request.address = own_address_;
    return link_->send(request);
}

Status ClusterWorker::member(uint32_t member, muster_member_info &out) noexcept {
    const auto copy = [](const std::string &from, char *to, size_t room) {
        const size_t size = std::min(from.size(), room - 1);
        std::memcpy(to, from.data(), size);
        to[size] = '\0';
    };
    if (self() == no_member || (member != self() && member != MUSTER_CLUSTER_MASTER)) return MUSTER_E_NOT_FOUND;
    out = {};
    out.member = member;
    out.state = over() ? MUSTER_MEMBER_GONE : MUSTER_MEMBER_JOINED;
    if (member == self()) {
        out.pid = getpid();
        copy(host_, out.host, sizeof out.host);
    }
    copy(member == self() ? own_address_ : master_address_, out.address, sizeof out.address);
    return MUSTER_OK;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void ClusterWorker::begin_end(int64_t) {
    if (!has_joined_) return join_failed(Error::make(MUSTER_E_CLOSED, "the cluster was closed"));
    closing_ = true;
    if (!link_) return;
    link_->stream()->exit_with_peer(-1); // the master may end first now
    ControlMessage leaving;
    leaving.kind = ControlMessage::leaving;
    link_->send(leaving);
    link_.reset();
}

bool ClusterWorker::fail_link(const StepSubject &subject, const Error &why) {
    if (!has_joined_)
        join_failed(why);
    else if (subject.link)
        master_gone(why);
    else
        return false;
    return true;
}

void ClusterWorker::master_gone(const Error &why) {
    const Error gone = Error::make(MUSTER_E_PEER, "the master is gone: %s", why.message);
    broadcasts_->fail_all(gone);
    fail_dials(gone);
    Error status = why;
    if (status.status >= 0) status.status = MUSTER_E_PEER;
    report_event(MUSTER_CLUSTER_MASTER_GONE, MUSTER_CLUSTER_MASTER, status, why.message);
    link_.reset();
    locating_.clear();
    closing_ = true;
}

void ClusterWorker::abandon() noexcept {
    link_.reset();
}

} // namespace muster
