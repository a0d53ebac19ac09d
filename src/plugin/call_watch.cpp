// SPDX-License-Identifier: MIT
#include "plugin/call_watch.hpp"

#include "base/fork.hpp"
#include "base/futex.hpp"
#include "base/thread.hpp"

#include <mutex>

namespace muster {

// Of the process. Never destroyed: its thread may be abandoned at exit.
class CallWatch {
  public:
    // That of a parent process has no thread here.
    static CallWatch &get() {
        static std::mutex lock;
        static CallWatch *watch = nullptr;
        const std::lock_guard hold(lock);
        if (watch == nullptr || watch->mark_.forked()) watch = new CallWatch;
        return *watch;
    }

    void add(CallMark &mark) noexcept {
        const std::lock_guard hold(lock_);
        marks_.push_back(mark);
        // Without it, a slow function is reported when it has returned.
        if (!has_thread_) has_thread_ = start_thread(&CallWatch::body, this) == 0;
    }

    void remove(CallMark &mark) noexcept {
        const std::lock_guard hold(lock_);
        marks_.remove(mark);
    }

    // seq_cst: a caller marks itself and then checks whether the thread sleeps; the thread marks that it sleeps and
    // then checks the marks. One of the two sees the other.
    void wake() noexcept {
        if (asleep_.load(std::memory_order_seq_cst) == 0) return;
        if (asleep_.exchange(0, std::memory_order_seq_cst) != 0) futex_wake(asleep_, 1, false);
    }

  private:
    static constexpr int64_t look_ns = 500'000'000;

    static void *body(void *self) {
        pthread_setname_np(pthread_self(), "muster-watch");
        static_cast<CallWatch *>(self)->run();
        return nullptr;
    }

    [[noreturn]] void run() noexcept {
        for (;;) {
            Deadline endless(-1);
            if (!look()) {
                asleep_.store(1, std::memory_order_seq_cst);
                while (!look() && asleep_.load(std::memory_order_seq_cst) == 1) futex_wait(asleep_, 1, endless, false);
                asleep_.store(0, std::memory_order_seq_cst);
            }
            Deadline later(look_ns);
            while (!later.passed()) futex_wait(never_, 0, later, false);
        }
    }

    // A function that has to be reported. The context keeps the plug-in, and with it the names.
    struct Slow {
        Ref<Context> context;
        const char *plugin = nullptr, *what = nullptr;
        int64_t took_ns = 0;
    };

    // False: nothing is called. Reports are written without the lock: a log releases references, and the last one of a
    // context destroys its plug-ins, which remove their marks.
    bool look() noexcept {
        for (;;) {
            bool any = false;
            Slow slow;
            {
                const std::lock_guard hold(lock_);
                for (CallMark *mark = marks_.first(); mark != nullptr; mark = List<CallMark>::after(*mark))
                    any |= look_at(*mark, slow);
            }
            if (!slow.context) return any;
            slow.context->log(MUSTER_LOG_WARN,
                              "plug-in %s: %s keeps the thread of the context for %.1f s, and has not returned",
                              slow.plugin, slow.what, static_cast<double>(slow.took_ns) * 1e-9);
        }
    }

    bool look_at(CallMark &mark, Slow &slow) noexcept {
        const char *const what = mark.what_.load(std::memory_order_seq_cst);
        const int64_t since = mark.since_ns_.load(std::memory_order_seq_cst);
        if (what == nullptr || mark.what_.load(std::memory_order_seq_cst) != what) return what != nullptr;
        if (mark.logged_since_ns_ != since) {
            mark.logged_since_ns_ = since;
            mark.log_after_ns_ = CallMark::slow_ns;
        }
        const int64_t took = now_ns() - since;
        // One at a time: the others are found by the next look. A context that is being destroyed reports nothing.
        if (took < mark.log_after_ns_ || slow.context || !mark.context_.try_retain()) return true;
        mark.log_after_ns_ = 10 * took;
        slow = {Ref<Context>::adopt(&mark.context_), mark.plugin_, what, took};
        return true;
    }

    const ForkMark mark_;
    std::mutex lock_; // guards the next two
    List<CallMark> marks_;
    bool has_thread_ = false;
    std::atomic<uint32_t> asleep_{0};
    std::atomic<uint32_t> never_{0}; // never changed
};

CallMark::CallMark(Context &context, const char *plugin)
    : watch_(CallWatch::get()), context_(context), plugin_(plugin) {
    watch_.add(*this);
}

CallMark::~CallMark() {
    watch_.remove(*this);
}

CallMark::Inside CallMark::begin(const char *what, int64_t now_ns) noexcept {
    const Inside before{what_.load(std::memory_order_relaxed), since_ns_.load(std::memory_order_relaxed)};
    since_ns_.store(now_ns, std::memory_order_relaxed);
    what_.store(what, std::memory_order_seq_cst);
    if (before.what == nullptr) watch_.wake();
    return before;
}

void CallMark::end(const Inside &before) noexcept {
    what_.store(nullptr, std::memory_order_release);
    if (before.what == nullptr) return;
    since_ns_.store(before.since_ns, std::memory_order_relaxed);
    what_.store(before.what, std::memory_order_release);
}

} // namespace muster
