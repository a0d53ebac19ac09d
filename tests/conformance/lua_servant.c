/* SPDX-License-Identifier: MIT */
/* Serves lua:// in a program that is no LuaJIT: one interpreter and one thread for each context (lua_servant.lua). For
 * `muster transport-check --serve`. MUSTER_LUA names the folder of the example, MUSTER_SERVANT the script. */
#include <muster/queue.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part of LuaJIT's own C API that is needed, so that its headers are not. */
typedef struct lua_State lua_State;
static lua_State *(*new_state)(void);
static void (*open_libraries)(lua_State *);
static int (*load_file)(lua_State *, const char *, const char *);
static void (*push_pointer)(lua_State *, void *);
static int (*call)(lua_State *, int, int, int);
static const char *(*text_at)(lua_State *, int, size_t *);
static void (*close_state)(lua_State *);

static int find(void *library, const char *name, void *slot) {
    void *const found = dlsym(library, name);
    memcpy(slot, &found, sizeof found);
    return found != NULL;
}

static int load_luajit(void) {
    void *const library = dlopen("libluajit-5.1.so.2", RTLD_NOW | RTLD_GLOBAL);
    return library != NULL && find(library, "luaL_newstate", &new_state) &&
           find(library, "luaL_openlibs", &open_libraries) && find(library, "luaL_loadfilex", &load_file) &&
           find(library, "lua_pushlightuserdata", &push_pointer) && find(library, "lua_pcall", &call) &&
           find(library, "lua_tolstring", &text_at) && find(library, "lua_close", &close_state);
}

/* The script knows this layout up to `serving`. */
typedef struct servant {
    muster_context *context;
    muster_queue *queue; /* set by the script */
    uint64_t last_tag;   /* set by the script: posted there, it ends */
    sem_t *serving;      /* raised by the script, or when it has failed */
    sem_t raised;
    sem_t over; /* nobody uses the queue any more, which is the interpreter's */
    pthread_t thread;
    int failed;
    char why[200];
} servant;

static void *serve(void *self) {
    servant *const s = self;
    lua_State *const lua = new_state();
    open_libraries(lua);
    s->failed = load_file(lua, getenv("MUSTER_SERVANT"), NULL);
    if (!s->failed) {
        push_pointer(lua, s);
        s->failed = call(lua, 1, 0, 0);
    }
    if (s->failed) {
        snprintf(s->why, sizeof s->why, "%s", text_at(lua, -1, NULL));
        fprintf(stderr, "lua_servant: %s\n", s->why);
        sem_post(&s->raised);
    }
    while (sem_wait(&s->over) != 0) {
    }
    close_state(lua);
    return NULL;
}

void *muster_serve_begin(muster_context *context, muster_error *error);
void muster_serve_end(void *serving);

void *muster_serve_begin(muster_context *context, muster_error *error) {
    servant *const s = calloc(1, sizeof *s);
    if (s == NULL || getenv("MUSTER_SERVANT") == NULL || !load_luajit()) {
        snprintf(error->message, sizeof error->message, "no libluajit-5.1.so.2 or no MUSTER_SERVANT");
        free(s);
        return NULL;
    }
    s->context = context;
    s->serving = &s->raised;
    sem_init(&s->raised, 0, 0);
    sem_init(&s->over, 0, 0);
    if (pthread_create(&s->thread, NULL, serve, s) != 0) {
        free(s);
        return NULL;
    }
    while (sem_wait(&s->raised) != 0) {
    }
    if (s->queue != NULL) return s;
    sem_post(&s->over);
    pthread_join(s->thread, NULL);
    snprintf(error->message, sizeof error->message, "%s", s->why);
    free(s);
    return NULL;
}

void muster_serve_end(void *serving) {
    servant *const s = serving;
    muster_queue_post(s->queue, s->last_tag, 0); /* if the context is closed it has ended, or will, by itself */
    sem_post(&s->over);
    pthread_join(s->thread, NULL);
    sem_destroy(&s->raised);
    sem_destroy(&s->over);
    free(s);
}
