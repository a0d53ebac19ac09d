// SPDX-License-Identifier: MIT
// A served store and its standby, as programs.
#ifndef STORE_PAIR_H
#define STORE_PAIR_H

#include "store_process.h"

typedef struct member { // of a pair
    program p;
    char url[300], dir[300];
} member;

// `of`: NULL: the first one. `lease`: seconds.
static inline void start_member(member *m, const member *of, const char *lease) {
    const char *arguments[12] = {"--listen", m->url, "--log", "info", "--pair-lease", lease};
    int count = 6;
    if (m->dir[0] != '\0') arguments[count++] = "--data-dir", arguments[count++] = m->dir;
    if (of != NULL) arguments[count++] = "--standby-of", arguments[count++] = of->url;
    m->p = start_server(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5],
                        arguments[6], arguments[6] ? arguments[7] : NULL, arguments[6] ? arguments[8] : NULL,
                        arguments[6] && arguments[8] ? arguments[9] : NULL, NULL);
    if (!await_line(&m->p, "listening")) fail_msg("it does not start: %s", m->p.line);
    snprintf(m->url, sizeof m->url, "%.290s", m->p.line + strlen("listening "));
}

static inline void make_member(member *m, const char *name) {
    memset(m, 0, sizeof *m);
    snprintf(m->url, sizeof m->url, "tcp://127.0.0.1:0");
    if (name != NULL) snprintf(m->dir, sizeof m->dir, "%s/%s", folder, name);
}

// It logs each change.
static inline void await_role(member *m, const char *role) {
    char wanted[40];
    snprintf(wanted, sizeof wanted, "role %s ", role);
    if (!await_line(&m->p, wanted)) fail_msg("it ends before it is %s: %s", role, m->p.line);
}

static inline int64_t epoch_of(const member *m) {
    const char *const at = strstr(m->p.line, " epoch ");
    assert_non_null(at);
    return strtoll(at + 7, NULL, 10);
}

static inline void both(char *url, size_t size, const member *a, const member *b) {
    snprintf(url, size, "%s,%s", a->url, b->url + strlen("tcp://"));
}

static inline void make_pair(member *a, member *b, const char *names, const char *lease, char *url, size_t size) {
    char name[40];
    snprintf(name, sizeof name, "%s-a", names ? names : "");
    make_member(a, names ? name : NULL);
    snprintf(name, sizeof name, "%s-b", names ? names : "");
    make_member(b, names ? name : NULL);
    start_member(a, NULL, lease);
    start_member(b, a, lease);
    await_role(b, "standby");
    await_role(a, "paired");
    both(url, size, a, b);
}

#endif
