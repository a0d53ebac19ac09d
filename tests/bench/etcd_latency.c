/* SPDX-License-Identifier: MIT */
/* Requests to an etcd of this program's own, one after the other: over Muster's store, or with libcurl alone as the
 * measure, which sends what is ready made and does not look at the answer.
 *
 *   --etcd <program> --over muster|curl|curl-once --op set|get --scale <percent of the usual time>
 *   --context thread|external: Muster's context has a thread, or the calling thread drives it
 *   curl-once: a set as a transaction that also writes down that it was done, as Muster's does to do it only once
 * Prints p50_us, p99_us. */
#include "bench.h"

#include <muster/store.h>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

enum { most_samples = 100000, value_bytes = 64 };

static const char key[] = "bench/key";
static char value[value_bytes];
static char folder[200] = "/tmp/muster-etcd-XXXXXX";
static pid_t server;

/* ---- the server ---- */

static void end_server(void) {
    if (server == 0 || getpid() == server) return;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) perror(folder);
}

static int any_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s, (struct sockaddr *)&address, size) != 0 || getsockname(s, (struct sockaddr *)&address, &size) != 0)
        die_errno("a port");
    close(s);
    return ntohs(address.sin_port);
}

/* Until it says that it serves; what it says later is not of interest, and is read so that it can be said. */
static int start_server(const char *program) {
    const char *tmp = getenv("TMPDIR");
    if (tmp != NULL) snprintf(folder, sizeof folder, "%s/muster-etcd-XXXXXX", tmp);
    if (mkdtemp(folder) == NULL) die_errno(folder);
    const int port = any_port();
    char data[256], url[64];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) die_errno("pipe");
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execlp(program, program, "--data-dir", data, "--listen-client-urls", url, "--advertise-client-urls", url,
               "--listen-peer-urls", "http://127.0.0.1:0", "--logger", "zap", "--log-outputs", "stdout", "--log-level",
               "info", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    atexit(end_server);
    FILE *const log = fdopen(ends[0], "r");
    char line[4096];
    while (fgets(line, sizeof line, log) != NULL)
        if (strstr(line, "serving client traffic") != NULL) {
            if (fork() == 0) { /* reads on, and ends with the server */
                server = 0;
                while (fgets(line, sizeof line, log) != NULL) {
                }
                _exit(0);
            }
            fclose(log);
            return port;
        }
    die("etcd", "it does not start");
    return 0;
}

/* ---- the two clients ---- */

static size_t swallow(char *text, size_t size, size_t count, void *self) {
    (void)text;
    (void)self;
    return size * count;
}

/* Base64 of a text whose length is a multiple of 3, or filled up. */
static void encode(const char *text, size_t size, char *out) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        unsigned three = 0;
        for (size_t j = 0; j < 3; j++) three = three << 8 | (i + j < size ? (unsigned char)text[i + j] : 0u);
        for (size_t j = 0; j < 4; j++) *out++ = i + j > size ? '=' : letters[three >> (18 - 6 * j) & 63];
    }
    *out = '\0';
}

typedef struct client {
    CURL *curl;
    muster_context *context;
    muster_store *store;
    muster_store_op op;
    char body[1024];
} client;

static void ask_once(client *c) {
    if (c->curl != NULL) {
        const CURLcode code = curl_easy_perform(c->curl);
        if (code != CURLE_OK) die("curl", curl_easy_strerror(code));
        return;
    }
    muster_error error;
    muster_store_result *result = NULL;
    if (muster_store_do(c->store, &c->op, 1, -1, &result, &error) != MUSTER_OK) die("do", error.message);
    muster_store_result_release(result);
}

static void make_request(client *c, int port, const char *path) {
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v3/kv/%s", port, path);
    c->curl = curl_easy_init();
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(c->curl, CURLOPT_FAILONERROR, 1L);
}

static void set_up_curl(client *c, int port, int set, int once) {
    char key64[32], value64[128];
    encode(key, sizeof key - 1, key64);
    encode(value, sizeof value, value64);
    snprintf(c->body, sizeof c->body, "{\"key\":\"%s\",\"value\":\"%s\"}", key64, value64);
    make_request(c, port, "put");
    if (set && !once) return;
    ask_once(c); /* so that a get finds the value */
    curl_easy_cleanup(c->curl);
    if (once)
        snprintf(
            c->body, sizeof c->body,
            "{\"compare\":[{\"key\":\"bWFyaw==\",\"target\":\"VERSION\",\"result\":\"GREATER\",\"version\":\"-1\"}],"
            "\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"%s\"}},"
            "{\"request_put\":{\"key\":\"bWFyaw==\",\"value\":\"\"}}],"
            "\"failure\":[{\"request_range\":{\"key\":\"%s\"}},{\"request_range\":{\"key\":\"bWFyaw==\"}}]}",
            key64, value64, key64);
    else
        snprintf(c->body, sizeof c->body, "{\"key\":\"%s\"}", key64);
    make_request(c, port, once ? "txn" : "range");
}

static void set_up_muster(client *c, int port, int set, int external) {
    muster_error error = {0};
    const muster_context_config config = {.struct_size = sizeof config,
                                          .flags = external ? MUSTER_CONTEXT_EXTERNAL : 0};
    char url[100];
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", port);
    c->op = (muster_store_op){.kind = MUSTER_STORE_SET, .key = key, .key_bytes = sizeof key - 1};
    c->op.value = value;
    c->op.value_bytes = sizeof value;
    if (muster_context_create(&config, &c->context, &error) != MUSTER_OK ||
        muster_store_open(c->context, url, strlen(url), NULL, 30000000000, &c->store, &error) != MUSTER_OK ||
        muster_store_do(c->store, &c->op, 1, -1, NULL, &error) != MUSTER_OK)
        die("open", error.message);
    if (set) return;
    c->op.kind = MUSTER_STORE_READ;
    c->op.value = NULL;
    c->op.value_bytes = 0;
}

int main(int argc, char **argv) {
    const char *over = "muster", *op = "set", *program = "etcd", *context = "thread";
    double seconds = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--over"))
            over = argv[i + 1];
        else if (!strcmp(argv[i], "--op"))
            op = argv[i + 1];
        else if (!strcmp(argv[i], "--context"))
            context = argv[i + 1];
        else if (!strcmp(argv[i], "--etcd"))
            program = argv[i + 1];
        else if (!strcmp(argv[i], "--scale"))
            seconds = atof(argv[i + 1]) / 100;
        else
            die(argv[i], "unknown option");
    }
    setenv("MUSTER_SECRET", "the secret of a benchmark", 0);
    memset(value, 'v', sizeof value);
    const int port = start_server(program), set = !strcmp(op, "set");
    client c;
    memset(&c, 0, sizeof c);
    if (!strncmp(over, "curl", 4))
        set_up_curl(&c, port, set, !strcmp(over, "curl-once"));
    else
        set_up_muster(&c, port, set, !strcmp(context, "external"));
    static double samples[most_samples];
    int count = 0;
    for (int i = 0; i < 100; i++) ask_once(&c);
    for (const double end = now_us() + seconds * 1e6; now_us() < end && count < most_samples; count++) {
        const double from = now_us();
        ask_once(&c);
        samples[count] = now_us() - from;
    }
    if (count == 0) die("etcd", "no request was done in time");
    qsort(samples, (size_t)count, sizeof(double), compare_doubles);
    printf("p50_us\t%.1f\np99_us\t%.1f\n", samples[count / 2], samples[(int)(count * 0.99)]);
    return 0;
}
