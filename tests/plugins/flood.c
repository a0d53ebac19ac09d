// SPDX-License-Identifier: MIT
/* A plug-in whose connections lie in the memory of one process, and whose listener is flooded: flood://N begins N
 * connections each millisecond, in one call, that send nothing; flood://N/hello ones that send a HELLO and no proof. A
 * dial to the same address is an honest connection. For tests/api/test_pushed_flood.c. */
#include <muster/plugin.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { inbox_bytes = 1 << 20, hello_bytes = 84 };

typedef struct plugin {
    const muster_host *host;
    muster_acceptor *acceptor;
    muster_timer *timer;
    unsigned rate;
    uint64_t made;
    int64_t since_ms;
    bool greets;
} plugin;

typedef struct end {
    plugin *of;
    struct end *other; /* NULL: it has gone, or nobody is there */
    muster_link *link; /* NULL: closed */
    unsigned char *in;
    size_t size;
    int users; /* the library, and calls that were posted */
    bool connecting, lost;
} end;

static end *make_end(plugin *of) {
    end *const e = calloc(1, sizeof *e);
    if (e == NULL) return NULL;
    e->of = of;
    e->users = 1;
    return e;
}

static void drop_end(end *e) {
    if (--e->users != 0) return;
    free(e->in);
    free(e);
}

/* Tells the library what has happened to an end, in a turn of its own. */
static void tell(void *user) {
    end *const e = user;
    const muster_host *const host = e->of->host;
    if (e->link != NULL && e->connecting) {
        e->connecting = false;
        host->connected(e->link);
    }
    if (e->link != NULL && e->size != 0) {
        const uint64_t taken = host->deliver(e->link, e->in, e->size);
        e->size -= taken;
        memmove(e->in, e->in + taken, e->size);
        if (taken != 0 && e->other != NULL && e->other->link != NULL) host->writable(e->other->link);
    }
    if (e->link != NULL && e->other == NULL && e->size == 0 && !e->lost) {
        e->lost = true;
        host->lost(e->link, MUSTER_E_END, 0, NULL, 0);
    }
    drop_end(e);
}

static void tell_soon(end *e) {
    e->users++;
    if (e->of->host->post(e->of->host, tell, e) != MUSTER_OK) drop_end(e);
}

static bool put(end *to, const void *data, size_t size) {
    if (to->in == NULL) to->in = malloc(inbox_bytes);
    if (to->in == NULL) return false;
    memcpy(to->in + to->size, data, size);
    to->size += size;
    return true;
}

static void begin_hostile(plugin *p) {
    end *const e = make_end(p);
    if (e == NULL) return;
    e->other = e; /* a peer that says nothing and stays */
    if (p->host->accepted(p->acceptor, e, "10.0.0.1:1", 10, &e->link) != MUSTER_OK) {
        drop_end(e);
        return;
    }
    if (!p->greets) return;
    unsigned char hello[hello_bytes];
    memset(hello, 0x55, sizeof hello);
    memcpy(hello, "\001\000\120\000\223Muster\n\001\000\001\000\001\000\000\000", 20);
    put(e, hello, sizeof hello);
    tell_soon(e);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All that are due by now: a busy loop calls timers late. */
static void flood(void *user) {
    plugin *const p = user;
    const uint64_t due = p->rate * (uint64_t)(now_ms() - p->since_ms);
    for (; p->made < due && p->acceptor != NULL; p->made++) begin_hostile(p);
}

static muster_status dial(void *self, const char *address, uint64_t bytes, muster_link *link, void **out,
                          muster_error *error) {
    plugin *const p = self;
    (void)address, (void)bytes, (void)error;
    if (p->acceptor == NULL) return MUSTER_E_UNREACHABLE;
    end *const near = make_end(p), *const far = make_end(p);
    if (near == NULL || far == NULL) return free(near), free(far), MUSTER_E_NOMEM;
    near->other = far;
    far->other = near;
    if (p->host->accepted(p->acceptor, far, "10.0.0.2:1", 10, &far->link) != MUSTER_OK) {
        drop_end(near);
        drop_end(far);
        return MUSTER_E_UNREACHABLE;
    }
    near->link = link;
    near->connecting = true;
    *out = near;
    tell_soon(near);
    return MUSTER_OK;
}

static muster_status listen_at(void *self, const char *address, uint64_t bytes, muster_acceptor *acceptor, void **out,
                               char *text, uint64_t *text_bytes, muster_error *error) {
    plugin *const p = self;
    (void)error;
    if (p->acceptor != NULL) return MUSTER_E_EXISTS;
    p->since_ms = now_ms();
    p->rate = (unsigned)strtoul(address + strlen("flood://"), NULL, 10);
    p->greets = bytes > 5 && memcmp(address + bytes - 5, "hello", 5) == 0;
    const muster_status status = p->host->start_timer(p->host, 1000000, 1000000, flood, p, &p->timer);
    if (status != MUSTER_OK) return status;
    p->acceptor = acceptor;
    memcpy(text, address, bytes);
    *text_bytes = bytes;
    *out = p;
    return MUSTER_OK;
}

static void unlisten(void *self, void *listener) {
    plugin *const p = self;
    (void)listener;
    p->host->stop_timer(p->timer);
    p->timer = NULL;
    p->acceptor = NULL;
}

static muster_status send_spans(void *connection, const muster_span *spans, uint32_t count, uint64_t *out_bytes) {
    end *const e = connection, *const to = e->other;
    *out_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t size = spans[i].size_bytes;
        if (to == e) { /* nobody reads it */
            *out_bytes += size;
            continue;
        }
        if (to == NULL) return MUSTER_E_PEER;
        if (to->size + size > inbox_bytes) return MUSTER_AGAIN;
        if (!put(to, spans[i].data, size)) return MUSTER_E_NOMEM;
        *out_bytes += size;
    }
    if (to != e) tell_soon(to);
    return MUSTER_OK;
}

static void resume(void *connection) {
    tell_soon(connection);
}

static void close_end(void *connection) {
    end *const e = connection;
    e->link = NULL;
    if (e->other != NULL && e->other != e) {
        e->other->other = NULL;
        tell_soon(e->other);
    }
    e->other = NULL;
    drop_end(e);
}

static void stop(void *self) {
    free(self);
}

static const muster_connections_ops ops = {.struct_size = sizeof ops,
                                           .flags = MUSTER_PLUGIN_LOCAL,
                                           .stop = stop,
                                           .dial = dial,
                                           .listen = listen_at,
                                           .unlisten = unlisten,
                                           .send = send_spans,
                                           .resume = resume,
                                           .close = close_end,
                                           .abort = close_end};

MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    plugin *const p = calloc(1, sizeof *p);
    if (p == NULL) return MUSTER_E_NOMEM;
    p->host = host;
    const muster_status status = host->add_connections(host, "flood", 5, &ops, p, error);
    if (status != MUSTER_OK) free(p);
    return status;
}
