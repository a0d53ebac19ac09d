// SPDX-License-Identifier: MIT
#include "store/standby/pair.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sodium.h>

namespace muster {

namespace {
constexpr int64_t dial_timeout_ns = 5'000'000'000;

StoreId random_id() noexcept {
    StoreId id;
    randombytes_buf(id.data(), id.size());
    return id;
}

PairRoles::Settings role_settings(const StorePairSettings &settings, bool keeps) noexcept {
    PairRoles::Settings out;
    out.process = random_id();
    out.standby = !settings.standby_of.empty();
    out.alone = settings.alone;
    out.keeps = keeps;
    out.lease_ns = settings.lease_ns;
    return out;
}
} // namespace

int64_t pair_now_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

StorePair::StorePair(PairedServer &server, StorePairSettings settings, PairMark mark, bool keeps)
    : server_(server), hub_(server.hub()), settings_(std::move(settings)),
      roles_(role_settings(settings_, keeps), std::move(mark)),
      other_(settings_.standby_of.empty() ? roles_.mark().other : settings_.standby_of) {}

StorePair::~StorePair() = default;

Object &StorePair::link_owner() noexcept {
    return server_.server_object();
}

void StorePair::start() noexcept {
    act(roles_.start(pair_now_ns()));
}

void StorePair::stop() noexcept {
    if (std::exchange(stopped_, true)) return;
    if (link_) {
        try {
            if (roles_.role() == PairRole::paired) {
                pump();
                if (sent_ == position_) link_->put(PairRecord::resign, position_ + 1);
            } else if (roles_.follows()) {
                link_->put(PairRecord::leave, 0);
            }
            link_->flush();
        } catch (const std::bad_alloc &) { // then it finds out by itself
        }
    }
    leave_links();
    drop_link();
    hub_.stop_timer(look_timer_);
    hub_.stop_timer(dial_timer_);
    hub_.stop_timer(beat_timer_);
}

bool StorePair::go_alone() noexcept {
    PairRoles::Actions actions;
    if (stopped_ || !roles_.go_alone(actions)) return false;
    act(actions);
    return true;
}

// ---- roles ----------------------------------------------------------------------------------------------------------

void StorePair::say(const char *why) noexcept {
    if (*why == '\0' || said_ == why) return; // it is tried again and again
    try {
        said_ = why;
    } catch (const std::bad_alloc &) {
    }
    hub_.context().log(MUSTER_LOG_WARN, "store: %s: %s", server_.address().c_str(), why);
}

void StorePair::act(const PairRoles::Actions &actions) noexcept {
    if (stopped_) return;
    say(actions.why);
    try {
        switch (actions.link) {
        case PairRoles::Link::drop:
            leave_links();
            drop_link();
            roles_.lost(pair_now_ns());
            break;
        case PairRoles::Link::feed:
            begin_feed();
            break;
        case PairRoles::Link::follow:
            begin_following();
            break;
        default:
            break;
        }
        if (actions.mark) write_mark();
        if (actions.serve) server_.begin_serving();
        if (actions.go_on) server_.resume_serving();
        if (actions.step_down || actions.send_away) server_.dismiss_clients(actions.step_down);
        if (actions.in_sync) {
            const uint8_t keeps = server_.has_journal() ? 1 : 0;
            feeding_ = false;
            put(PairRecord::in_sync,
                ByteWriter().number(roles_.epoch()).number(roles_.lease_ns()).number(keeps).take());
            flush();
        }
        if (actions.confirm) confirm(true);
    } catch (const std::bad_alloc &) {
        say("out of memory");
        link_lost();
    }
    server_.publish_role();
    look();
}

void StorePair::write_mark() noexcept {
    if (server_.has_journal()) {
        marking_ = true;
        mark_position_ = server_.write_mark(roles_.wanted());
    } else {
        act(roles_.marked(pair_now_ns()));
    }
}

void StorePair::journal_moved() noexcept {
    if (stopped_) return;
    if (marking_ && server_.durable() >= mark_position_) {
        marking_ = false;
        act(roles_.marked(pair_now_ns()));
    }
    look_at_snapshot();
    if (roles_.follows()) confirm(false);
}

void StorePair::look() noexcept {
    if (stopped_) return;
    const int64_t at = roles_.look_at_ns();
    if (at == INT64_MAX)
        hub_.stop_timer(look_timer_);
    else
        hub_.start_timer(look_timer_, now_ns() + std::max<int64_t>(0, at - pair_now_ns()));
    if (link_ && gathers() && !beat_timer_.running()) hub_.start_timer(beat_timer_, now_ns() + roles_.lease_ns() / 4);
    if (roles_.looks_for_other() && !dialling_ && !dial_timer_.running() && !other_.empty())
        hub_.start_timer(dial_timer_, now_ns() + back_off_.current_ns());
}

void StorePair::look_due() noexcept {
    act(roles_.tick(pair_now_ns()));
}

// ---- links ----------------------------------------------------------------------------------------------------------

class StorePair::Dialling final : public Dial, public SocketTaker {
  public:
    Dialling(StorePair &pair, uint64_t number) noexcept
        : server_(&pair.server_.server_object()), pair_(pair), number_(number) {}
    void done(Result<Ref<Stream>> result) noexcept override {
        if (!result) pair_.dial_failed(number_, result.error());
    }
    bool stop_by(Ref<Attempt> attempt) noexcept override {
        if (pair_.stopped_ || number_ != pair_.dials_) return false;
        pair_.attempt_ = std::move(attempt);
        return true;
    }
    Context &context() noexcept override { return pair_.hub_.context(); }
    void take(ProvedSocket socket) noexcept override { pair_.dialled(number_, std::move(socket)); }
    Object &socket_taker() noexcept override { return *this; }

  private:
    const Ref<Object> server_; // keeps the pair
    StorePair &pair_;
    const uint64_t number_;
};

// Also called when the attempt takes too long.
void StorePair::dial() noexcept {
    const Ref<Object> self(&server_.server_object());
    if (dialling_) return dial_failed(dials_, Error::make(MUSTER_TIMEOUT, "it does not answer"));
    if (stopped_ || !roles_.looks_for_other()) return;
    dialling_ = true;
    const uint64_t number = ++dials_;
    hub_.start_timer(dial_timer_, now_ns() + dial_timeout_ns);
    try {
        auto address = parse_address(other_);
        if (!address) return dial_failed(number, address.error());
        if (address->scheme == "tcp" && address->port < 0) address->port = store_port;
        auto transport = Registry::of(hub_.context()).find(address->scheme);
        if (!transport) return dial_failed(number, transport.error());
        const auto dialling = make_ref<Dialling>(*this, number);
        TransportOptions options;
        options.hello = store_hello_pair;
        options.window_bytes = hub_.context().settings.window_bytes;
        options.taker = dialling.get();
        (*transport)->dial(*address, options, dialling);
    } catch (const std::bad_alloc &) {
        dial_failed(number, Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
}

// No process listens there any more: on another host that may be the answer of a firewall, on this one it is that of
// the kernel.
void StorePair::dial_failed(uint64_t number, const Error &why) noexcept {
    if (stopped_ || number != dials_ || !dialling_) return;
    dialling_ = false;
    hub_.stop_timer(dial_timer_);
    if (const Ref<Attempt> attempt = std::move(attempt_)) attempt->stop();
    back_off_.next_ns();
    if (why.os_errno == ECONNREFUSED && is_dead_if_refused())
        act(roles_.other_is_dead(pair_now_ns()));
    else
        look();
}

void StorePair::dialled(uint64_t number, ProvedSocket socket) noexcept {
    if (stopped_ || number != dials_ || !dialling_) return;
    attempt_.reset();
    if (socket.agreed.hello != store_hello_server)
        return dial_failed(number, Error::make(MUSTER_E_PROTOCOL, "no store is served there"));
    try {
        accepted_ = make_ref<PairLink>(hub_, static_cast<PairLinkOwner &>(*this), std::move(socket), true);
        if (!accepted_->start()) {
            accepted_.reset();
            return dial_failed(number, Error::make(MUSTER_E_LIMIT, "it could not be watched"));
        }
        accepted_->put(PairRecord::hi, 0);
        accepted_->flush();
    } catch (const std::bad_alloc &) {
        accepted_.reset();
        dial_failed(number, Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
}

void StorePair::take(ProvedSocket socket) noexcept {
    if (stopped_) return;
    try {
        if (dialled_) dialled_->shut();
        dialled_ = make_ref<PairLink>(hub_, static_cast<PairLinkOwner &>(*this), std::move(socket), false);
        if (!dialled_->start()) dialled_.reset();
    } catch (const std::bad_alloc &) {
        dialled_.reset();
    }
}

// Statements over the old links are no longer valid.
void StorePair::leave_links() noexcept {
    dials_++;
    dialling_ = false;
    hub_.stop_timer(dial_timer_);
    if (const Ref<Attempt> attempt = std::move(attempt_)) attempt->stop();
    for (Ref<PairLink> *const one : {&dialled_, &accepted_})
        if (const Ref<PairLink> link = std::move(*one)) link->shut();
}

void StorePair::drop_link() noexcept {
    hub_.stop_timer(beat_timer_);
    feeding_ = behind_snapshot_ = false;
    snapshot_ = nullptr;
    if (const Ref<PairLink> link = std::move(link_)) link->shut();
}

void StorePair::link_lost() noexcept {
    back_off_.reset();
    drop_link();
    act(roles_.lost(pair_now_ns()));
}

void StorePair::link_ended(PairLink &link, const char *why) noexcept {
    if (stopped_) return;
    if (&link == link_.get()) {
        hub_.context().log(MUSTER_LOG_INFO, "store: %s: the other of the pair, %s: %s", server_.address().c_str(),
                           link.peer().c_str(), why);
        return link_lost();
    }
    if (&link == dialled_.get()) dialled_.reset();
    if (&link != accepted_.get()) return;
    accepted_.reset();
    dial_failed(dials_, Error::make(MUSTER_E_PEER, "%s", why));
}

void StorePair::say_hello(PairLink &link) {
    PairHello hello = roles_.hello();
    if (server_.has_instance()) hello.instance = server_.instance();
    hello.position = durable_got_;
    hello.address = server_.address_for_others();
    std::string body;
    put_hello(body, hello);
    link.put(PairRecord::hello, 0, body);
    link.flush();
}

bool StorePair::link_says(PairLink &link, PairRecord what, uint64_t number, std::string_view body) {
    if (stopped_) return false;
    if (what == PairRecord::hi && &link == dialled_.get()) {
        say_hello(link);
        return body.empty();
    }
    if (what == PairRecord::hello && (&link == dialled_.get() || &link == accepted_.get())) {
        PairHello hello;
        return get_hello(body, hello) && meet(link, std::move(hello));
    }
    if (&link != link_.get()) return false;
    const int64_t now = pair_now_ns();
    roles_.heard(now);
    switch (what) {
    case PairRecord::confirm:
        return gathers() && confirmed(number);
    case PairRecord::leave:
        if (!roles_.serves()) return false;
        act(roles_.left(now));
        return true;
    case PairRecord::resign:
        if (number != got_ + 1) return false;
        act(roles_.resigned());
        return true;
    default:
        return roles_.follows() && take_followed(what, number, body);
    }
}

// True: the link lives on.
bool StorePair::meet(PairLink &link, PairHello hello) {
    const Ref<PairLink> self(&link);
    const bool same_place = hello.address == with_address_ && link.host() == with_host_;
    const StoreId none{};
    if (server_.has_instance() && hello.instance != none && hello.instance != server_.instance()) {
        if (roles_.role() != PairRole::standby && roles_.role() != PairRole::halted) {
            say("the other keeps another store: one of the two folders is not of this pair");
            return false;
        }
        hello.role = PairRole::waiting; // it is no standby here, and has no contents
        hello.kind = PairMark::none;
        hello.epoch = 0;
    }
    if (link_ && hello.process != roles_.with() && !same_place) {
        say("another standby wants to be fed: there is one already");
        return false;
    }
    if (link.dialled()) say_hello(link);
    if (link_) link_lost();
    Ref<PairLink> &place = link.dialled() ? accepted_ : dialled_;
    if (place.get() != &link) return false; // left meanwhile
    place.reset();
    attempt_.reset();
    leave_links();
    link_ = self;
    back_off_.next_ns();
    const uint64_t position = hello.position;
    const PairRoles::Actions actions = roles_.met(hello, same_place, pair_now_ns());
    if (actions.link != PairRoles::Link::drop) {
        back_off_.reset();
        with_address_ = hello.address;
        with_host_ = link.host();
        with_on_host_ = link.on_this_host();
        with_keeps_ = hello.keeps;
        if (settings_.standby_of.empty()) other_ = hello.address;
        said_.clear();
    }
    act(actions);
    if (actions.link == PairRoles::Link::resume && gathers() && link_.get() == &link) resume(position);
    return link_.get() == &link;
}

} // namespace muster
