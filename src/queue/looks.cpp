// SPDX-License-Identifier: MIT
#include "queue/looks.hpp"

namespace muster {

void Queue::Looks::take(State &state) noexcept {
    for (Source *&recent : state.recent) {
        if (recent == nullptr) continue;
        if (!recent->owner().try_retain()) { // in its destructor, about to detach
            recent = nullptr;
            continue;
        }
        recent->busy_++;
        ones_[count_++] = {recent, Ref<Object>::adopt(&recent->owner()), 0, false};
    }
}

bool Queue::Looks::give_back(State &state, std::unique_lock<std::mutex> &hold) noexcept {
    if (count_ == 0) return false;
    bool found = false;
    for (uint32_t i = 0; i < count_; i++) {
        Source &source = *ones_[i].source;
        if (ones_[i].events != 0 && source.attached_ && !state.closed) {
            state.link(source, ones_[i].events);
            found = true;
        }
        if (--source.busy_ == 0) state.idle.notify_all();
    }
    hold.unlock();
    while (count_ != 0) ones_[--count_].owner.reset(); // may be the last reference, which detaches
    hold.lock();
    return found;
}

bool Queue::Looks::begin() noexcept {
    bool any = false;
    for (uint32_t i = 0; i < count_; i++) any |= ones_[i].begun = ones_[i].source->begin_look();
    return any;
}

bool Queue::Looks::look() noexcept {
    bool found = false;
    for (uint32_t i = 0; i < count_; i++) {
        if (!ones_[i].begun || ones_[i].events != 0) continue;
        ones_[i].events = ones_[i].source->look();
        found |= ones_[i].events != 0;
    }
    return found;
}

void Queue::Looks::end() noexcept {
    for (uint32_t i = 0; i < count_; i++)
        if (ones_[i].begun && ones_[i].events == 0) ones_[i].events = ones_[i].source->end_look();
}

} // namespace muster
