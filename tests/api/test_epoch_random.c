// SPDX-License-Identifier: MIT
// Random sequences of everything that tokens do, each step compared with what a model of epochs expects: in a process,
// and by processes that are killed, with the tokens in memory that they share.
//
// What must hold: an object that a reader has reached while it is pinned, or has protected, is not freed; nothing is
// freed twice, or before the epoch is two higher than it was when the object was deferred; the epoch advances exactly
// when no pinned token is behind; in the end polls alone free everything. ctest: quick timeout=240
#include "epoch_run.h"
#include "random_run.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

enum { actors = 4, tokens = 3, max_pending = 64, max_objects = max_steps + 1, linked_objects = 24 };
enum operation {
    REGISTER,
    UNREGISTER,
    PIN,
    UNPIN,
    REPIN,
    READ,
    PROTECT,
    DEFER,
    RECLAIM,
    POLL,
    SYNCHRONIZE,
    BARRIER,
    KILL
};

typedef struct step {
    enum operation operation;
    uint32_t actor, a, b;
} step;
static step steps[max_steps];

// ---- an actor: this process, or a process of its own

typedef struct command {
    enum operation operation;
    uint32_t a, b;
    uint64_t object;
} command;
typedef struct reply {
    muster_status status;
    uint32_t freed_count, index;
    muster_epoch_attempt attempt;
    muster_epoch_stats stats;
    uint64_t freed[4 * max_pending];
} reply;

static bool is_shared;
static uint32_t flags;
static int memory_fd;
static muster_epoch *managers[actors];
static muster_epoch_token *own_tokens[actors];
static reply *receives_freed; // of the command that is performed

static void note_freed(void *user, void *object) {
    (void)user;
    receives_freed->freed[receives_freed->freed_count++] = (uintptr_t)object;
}

static void perform(uint32_t actor, const command *c, reply *r) {
    *r = (reply){0};
    receives_freed = r;
    muster_epoch_token *const t = own_tokens[actor];
    switch (c->operation) {
    case REGISTER:
        r->status = muster_epoch_register(managers[actor], &own_tokens[actor], NULL);
        if (r->status == MUSTER_OK)
            r->index = own_tokens[actor]->index;
        else
            own_tokens[actor] = t; // remains as a token that is not registered
        break;
    case UNREGISTER:
        r->status = muster_epoch_unregister(t);
        break;
    case PIN:
        r->status = c->a % 4 == 0 ? muster_epoch_online(t) : muster_epoch_pin(t);
        break;
    case UNPIN:
        r->status = c->a % 4 == 0 ? muster_epoch_offline(t) : muster_epoch_unpin(t);
        break;
    case REPIN:
        r->status = c->a % 2 ? muster_epoch_quiescent(t) : muster_epoch_repin(t);
        break;
    case PROTECT:
        r->status = muster_epoch_protect(t, c->a, c->object);
        break;
    case DEFER:
        r->status = is_shared || c->object % 2 ? muster_epoch_retire(t, c->object)
                                               : muster_epoch_defer(t, note_freed, NULL, (void *)(uintptr_t)c->object);
        break;
    case RECLAIM:
        r->status = muster_epoch_try_reclaim(t, &r->attempt);
        break;
    case POLL: {
        uint64_t back[2 * max_pending];
        uint32_t count = 0, freed = 0;
        r->status = muster_epoch_poll(t, c->a, 0, back, c->b, &count, &freed);
        for (uint32_t i = 0; i < count; i++) r->freed[r->freed_count++] = back[i];
        if (freed != r->freed_count) r->status = MUSTER_E_INTERNAL;
        break;
    }
    case SYNCHRONIZE:
        r->status = muster_epoch_synchronize(t, 0, &r->attempt);
        break;
    case BARRIER:
        r->status = muster_epoch_barrier(t, 0);
        break;
    default:
        break;
    }
    if (muster_epoch_get_stats(managers[actor], &r->stats) != MUSTER_OK) r->status = MUSTER_E_INTERNAL;
}

static int channels[actors];
static pid_t processes[actors];

static muster_epoch *make_manager(bool opens) {
    muster_epoch_config config = {.struct_size = sizeof config, .flags = opens ? MUSTER_EPOCH_SHARED : flags};
    if (!opens) config.max_tokens = tokens, config.max_pending = max_pending;
    if (is_shared) config.fd = memory_fd;
    muster_epoch *made = NULL;
    muster_error error;
    const muster_status status =
        opens ? muster_epoch_open(&config, &made, &error) : muster_epoch_create(&config, &made, &error);
    if (status != MUSTER_OK) fprintf(stderr, "no manager: %s\n", error.message), _exit(1);
    return made;
}

static void start_actor(uint32_t actor) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) _exit(1);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0); // it ended before
        managers[actor] = make_manager(true);
        own_tokens[actor] = NULL;
        command c;
        static reply r;
        while (read(ends[1], &c, sizeof c) == sizeof c) {
            perform(actor, &c, &r);
            if (write(ends[1], &r, sizeof r) != sizeof r) break;
        }
        _exit(0);
    }
    close(ends[1]);
    channels[actor] = ends[0];
    processes[actor] = child;
}

static void ask(uint32_t actor, const command *c, reply *r) {
    if (!is_shared) {
        perform(actor, c, r);
    } else if (write(channels[actor], c, sizeof *c) != sizeof *c || read(channels[actor], r, sizeof *r) != sizeof *r) {
        fprintf(stderr, "actor %u does not answer\n", actor);
        _exit(1);
    }
}

// ---- the model

enum object_state { LINKED, DEFERRED, FREED };
typedef struct object {
    enum object_state state;
    uint64_t epoch; // when it was deferred
    uint32_t slot;  // index of the token
} object;
typedef struct actor_state {
    bool is_registered, was_registered;
    uint32_t depth, index;
    uint64_t pin_epoch;
    bool reached[max_objects];
    uint64_t protected[8];
} actor_state;

static object objects[max_objects];
static uint32_t object_count, linked[linked_objects];
static actor_state state[actors];
static uint64_t global, pending[tokens];
static bool dead_pinned; // a process was killed while it was pinned, and may not have been noticed yet
static int current = -1;

#define NEED(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "step %d: " #condition ": ", current);                                                     \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void link_new(uint32_t place) {
    linked[place] = ++object_count;
    objects[object_count] = (object){.state = LINKED};
}

static void forget_reached(actor_state *me) {
    memset(me->reached, 0, sizeof me->reached);
}
static bool uses(const actor_state *me, uint64_t number) {
    if (me->reached[number]) return true;
    for (int i = 0; i < 8; i++)
        if (me->protected[i] == number) return true;
    return false;
}
static bool is_blocked(uint64_t epoch) {
    for (uint32_t i = 0; i < actors; i++)
        if (state[i].depth > 0 && state[i].pin_epoch != epoch) return true;
    return false;
}
static bool any_pinned(void) {
    for (uint32_t i = 0; i < actors; i++)
        if (state[i].depth > 0) return true;
    return false;
}

static void note(const reply *r) {
    for (uint32_t i = 0; i < r->freed_count; i++) {
        NEED(r->freed[i] >= 1 && r->freed[i] <= object_count, "object %llu", (unsigned long long)r->freed[i]);
        object *const o = &objects[r->freed[i]];
        NEED(o->state == DEFERRED, "object %llu is in state %d", (unsigned long long)r->freed[i], o->state);
        NEED(r->stats.epoch >= o->epoch + 2, "freed at %llu, deferred at %llu", (unsigned long long)r->stats.epoch,
             (unsigned long long)o->epoch);
        for (uint32_t k = 0; k < actors; k++)
            NEED(!uses(&state[k], r->freed[i]), "actor %u uses object %llu", k, (unsigned long long)r->freed[i]);
        o->state = FREED;
        NEED(pending[o->slot] > 0, "token %u", o->slot);
        pending[o->slot]--;
    }
    NEED(r->stats.epoch >= global, "the epoch went from %llu to %llu", (unsigned long long)global,
         (unsigned long long)r->stats.epoch);
    global = r->stats.epoch;
    uint64_t sum = 0;
    for (int i = 0; i < tokens; i++) sum += pending[i];
    NEED(r->stats.pending == sum && r->stats.deferred - r->stats.freed == sum, "%llu objects wait, not %llu",
         (unsigned long long)r->stats.pending, (unsigned long long)sum);
    for (uint32_t k = 0; k < actors; k++)
        NEED(state[k].depth == 0 || global - state[k].pin_epoch <= 1, "actor %u is pinned at %llu, the epoch is %llu",
             k, (unsigned long long)state[k].pin_epoch, (unsigned long long)global);
}

static void kill_actor(uint32_t actor) {
    kill(processes[actor], SIGKILL);
    waitpid(processes[actor], NULL, 0);
    close(channels[actor]);
    dead_pinned |= state[actor].depth > 0;
    memset(&state[actor], 0, sizeof state[actor]);
    start_actor(actor);
}

static void one_step(const step *s) {
    const uint32_t actor = s->actor;
    actor_state *const me = &state[actor];
    command c = {.operation = s->operation, .a = s->a, .b = s->b};
    static reply r;
    if (s->operation == KILL) {
        if (is_shared) kill_actor(actor);
        return;
    }
    if (s->operation == REGISTER) {
        if (me->is_registered) return;
        uint32_t registered = 0;
        for (uint32_t i = 0; i < actors; i++) registered += state[i].is_registered;
        ask(actor, &c, &r);
        NEED(r.status == (registered < tokens ? MUSTER_OK : MUSTER_E_LIMIT), "%d with %u tokens", r.status, registered);
        if (r.status == MUSTER_OK) me->is_registered = me->was_registered = true, me->index = r.index;
        note(&r);
        return;
    }
    if (!me->is_registered) {
        for (uint32_t i = 0; i < actors; i++) // the place may be that of another token of this process now
            if (!me->was_registered || (state[i].is_registered && state[i].index == me->index)) return;
        if (s->operation == READ) return;
        if (s->operation == PROTECT || s->operation == DEFER) c.a = 0, c.object = 1;
        if (s->operation == POLL) c.a = c.b = 0;
        ask(actor, &c, &r);
        NEED(r.status == MUSTER_E_STALE, "%d of a token that is not registered", r.status);
        note(&r);
        return;
    }
    const uint32_t depth = me->depth;
    switch (s->operation) {
    case UNREGISTER:
        ask(actor, &c, &r);
        NEED(r.status == MUSTER_OK, "%d", r.status);
        me->is_registered = false, me->depth = 0;
        forget_reached(me);
        memset(me->protected, 0, sizeof me->protected);
        break;
    case PIN:
        ask(actor, &c, &r);
        if (s->a % 4 == 0 && depth > 0) {
            NEED(r.status == MUSTER_E_ARG, "%d: online", r.status);
        } else {
            NEED(r.status == MUSTER_OK, "%d", r.status);
            if (me->depth++ == 0) me->pin_epoch = r.stats.epoch;
        }
        break;
    case UNPIN:
        ask(actor, &c, &r);
        if (depth == 0 || (s->a % 4 == 0 && depth > 1)) {
            NEED(r.status == MUSTER_E_ARG, "%d", r.status);
        } else {
            NEED(r.status == MUSTER_OK, "%d", r.status);
            if (--me->depth == 0) forget_reached(me);
        }
        break;
    case REPIN:
        ask(actor, &c, &r);
        NEED(r.status == (depth == 0 ? MUSTER_E_ARG : depth > 1 ? MUSTER_AGAIN : MUSTER_OK), "%d", r.status);
        if (r.status == MUSTER_OK) me->pin_epoch = r.stats.epoch, forget_reached(me);
        break;
    case READ:
        if (depth > 0) me->reached[linked[s->a % linked_objects]] = true;
        return;
    case PROTECT:
        c.a = s->a % 9, c.object = s->b % 3 == 0 ? 0 : linked[s->b % linked_objects];
        if (c.object != 0 && depth > 0) me->reached[c.object] = true;
        ask(actor, &c, &r);
        NEED(r.status == (c.a == 8 || (c.object != 0 && depth == 0) ? MUSTER_E_ARG : MUSTER_OK), "%d", r.status);
        if (r.status == MUSTER_OK) me->protected[c.a] = c.object;
        break;
    case DEFER:
        c.object = linked[s->a % linked_objects];
        ask(actor, &c, &r);
        NEED(r.status == (pending[me->index] < max_pending ? MUSTER_OK : MUSTER_AGAIN), "%d with %llu objects",
             r.status, (unsigned long long)pending[me->index]);
        if (r.status != MUSTER_OK) break;
        objects[c.object] = (object){DEFERRED, global, me->index};
        pending[me->index]++;
        link_new(s->a % linked_objects);
        break;
    case RECLAIM: {
        const uint64_t before = global;
        ask(actor, &c, &r);
        if (is_blocked(before)) {
            NEED(r.attempt.outcome == MUSTER_EPOCH_HELD, "outcome %d", r.attempt.outcome);
        } else if (r.attempt.outcome != MUSTER_EPOCH_HELD || !dead_pinned) {
            NEED(r.status == MUSTER_OK && r.attempt.outcome == MUSTER_EPOCH_ADVANCED && r.stats.epoch == before + 1,
                 "outcome %d by token %u", r.attempt.outcome, r.attempt.token);
        }
        break;
    }
    case POLL:
        c.a = s->a % (2 * max_pending), c.b = s->b % 3 == 0 ? 0 : s->b % (2 * max_pending);
        ask(actor, &c, &r);
        NEED(r.status == MUSTER_OK || r.status == MUSTER_AGAIN, "%d", r.status);
        NEED(r.freed_count <= (c.a == 0 ? 8 : c.a), "%u objects freed", r.freed_count);
        break;
    case SYNCHRONIZE:
        ask(actor, &c, &r);
        if (depth > 0)
            NEED(r.status == MUSTER_E_WOULD_DEADLOCK, "%d", r.status);
        else if (any_pinned())
            NEED(r.status == MUSTER_TIMEOUT, "%d", r.status);
        else
            NEED(r.status == MUSTER_OK || (dead_pinned && r.status == MUSTER_TIMEOUT), "%d", r.status);
        break;
    case BARRIER:
        ask(actor, &c, &r);
        if (depth > 0) NEED(r.status == MUSTER_E_WOULD_DEADLOCK, "%d", r.status);
        break;
    default:
        break;
    }
    note(&r);
    if (s->operation == BARRIER && r.status == MUSTER_OK)
        NEED(pending[me->index] == 0, "%llu objects of the token wait", (unsigned long long)pending[me->index]);
}

// Without readers, polls alone free everything. Some tokens are unregistered first, with what they have deferred.
static void drain(void) {
    static reply r;
    bool any = false;
    for (uint32_t i = 0; i < actors; i++) {
        if (!state[i].is_registered) continue;
        if ((object_count >> i) % 2 != 0) {
            one_step(&(step){.operation = UNREGISTER, .actor = i});
            continue;
        }
        any = true;
        while (state[i].depth > 0) one_step(&(step){.operation = UNPIN, .actor = i, .a = 1});
        for (uint32_t slot = 0; slot < 8; slot++)
            one_step(&(step){.operation = PROTECT, .actor = i, .a = slot, .b = 0});
    }
    if (!any) one_step(&(step){.operation = REGISTER, .actor = 0});
    uint64_t left = 1;
    const time_t limit = time(NULL) + 20; // the owner of one token is checked in 10 ms
    for (int k = 0; left > 0 && (is_shared ? time(NULL) < limit : k < 2000); k++)
        for (uint32_t i = 0; i < actors; i++) {
            if (!state[i].is_registered) continue;
            ask(i, &(command){.operation = POLL, .a = 8, .b = 8}, &r);
            note(&r);
            left = r.stats.pending;
        }
    NEED(left == 0, "%llu objects are left", (unsigned long long)left);
    for (uint32_t i = 1; i <= object_count; i++) NEED(objects[i].state != DEFERRED, "object %u was not freed", i);
}

static void run(int count, const bool *left_out) {
    static reply r;
    if (is_shared) {
        memory_fd = memfd_create("epoch_random", MFD_CLOEXEC);
        if (memory_fd < 0 || ftruncate(memory_fd, (off_t)muster_epoch_size(tokens, max_pending)) != 0) _exit(1);
    }
    muster_epoch *const epoch = make_manager(false);
    for (uint32_t i = 0; i < actors; i++) {
        managers[i] = epoch;
        if (is_shared) start_actor(i);
    }
    for (uint32_t i = 0; i < linked_objects; i++) link_new(i);
    for (current = 0; current < count; current++)
        if (!left_out[current]) one_step(&steps[current]);
    if (is_shared || count % 2 == 0) {
        drain();
        for (uint32_t i = 0; is_shared && i < actors; i++) {
            kill(processes[i], SIGKILL);
            waitpid(processes[i], NULL, 0);
        }
        return;
    }
    // The manager and its tokens end while objects wait: functions are called all the same.
    receives_freed = &r;
    muster_epoch_release(epoch);
    for (uint32_t i = 0; i < actors; i++)
        if (state[i].is_registered) NEED(muster_epoch_unregister(own_tokens[i]) == MUSTER_OK, "token %u", i);
    for (uint32_t i = 0; i < r.freed_count; i++) {
        NEED(objects[r.freed[i]].state == DEFERRED, "object %llu", (unsigned long long)r.freed[i]);
        objects[r.freed[i]].state = FREED;
    }
    for (uint32_t i = 2; i <= object_count; i += 2) NEED(objects[i].state != DEFERRED, "object %u was not freed", i);
}

static void make_step(uint64_t *random, int i) {
    static const enum operation often[] = {REGISTER, REGISTER, REGISTER, UNREGISTER, PIN,   PIN,   PIN,
                                           UNPIN,    UNPIN,    UNPIN,    UNPIN,      REPIN, READ,  READ,
                                           READ,     PROTECT,  PROTECT,  DEFER,      DEFER, DEFER, DEFER,
                                           RECLAIM,  RECLAIM,  POLL,     POLL,       POLL,  POLL,  SYNCHRONIZE};
    const uint64_t kind = next_random(random) % 100;
    steps[i] = (step){.operation = kind == 0   ? KILL
                                   : kind == 1 ? BARRIER
                                               : often[next_random(random) % (sizeof often / sizeof *often)],
                      .actor = (uint32_t)(next_random(random) % actors),
                      .a = (uint32_t)(next_random(random) % 1000),
                      .b = (uint32_t)(next_random(random) % 1000)};
}

static void print_step(int i) {
    static const char *const names[] = {"register", "unregister", "pin",  "unpin",       "repin",   "read", "protect",
                                        "defer",    "reclaim",    "poll", "synchronize", "barrier", "kill"};
    fprintf(stderr, "  %d: %s actor %u a %u b %u\n", i, names[steps[i].operation], steps[i].actor, steps[i].a,
            steps[i].b);
}

static void drive(const char *name, bool shared, uint32_t with, int sequences, int count) {
    is_shared = shared;
    flags = with | (shared ? (uint32_t)MUSTER_EPOCH_SHARED : 0);
    const sequence all = {.name = name, .count = count, .make = make_step, .run = run, .print = print_step};
    if (!run_sequences(&all, sequences)) fail_msg("see above");
}

static void test_in_a_process(void **s) {
    (void)s;
    drive("a process", false, 0, 1500, 1000);
    drive("a process", false, 0, 500, 1001);
}
static void test_with_fences(void **s) {
    (void)s;
    drive("a process, fenced", false, MUSTER_EPOCH_FENCED, 500, 1000);
}
static void test_processes_that_are_killed(void **s) {
    (void)s;
    drive("processes", true, 0, 150, 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_a_process), cmocka_unit_test(test_with_fences),
                                       cmocka_unit_test(test_processes_that_are_killed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
