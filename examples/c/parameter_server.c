/* SPDX-License-Identifier: MIT */
/* A parameter server, as in Apache SINGA: the server has the parameters of a small network, workers compute gradients
 * of shares of the points.
 *
 * The server is a router, each worker a dealer. A worker gets the parameters (GET), computes the sums of its share, and
 * sends them back (UPDATE); when all sums of a step have arrived the server makes the step and sends the next
 * parameters. After 200 steps one worker kills itself: the server learns of it from an event of its socket, and divides
 * the same step among the others. In the end it compares the loss with that of one process.
 *
 *   parameter_server [COMMAND COMMAND COMMAND]
 *
 * A worker may be a command of the shell, in any language; "-" is the one of this program. Its environment has
 * PARAMETER_SERVER, the address of the server, WORKER, its number, and MUSTER_SECRET. examples/lua/parameter_worker.lua
 * and examples/julia/parameter_worker.jl are such workers. */
#include "moons.h"

#include <muster/muster.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t second = 1000000000;
static const char secret[] = "the secret of this example";
enum { workers = 3, server_address = 1, first_worker_address = 10 };

static int failed(const char *what, const muster_error *error) {
    fprintf(stderr, "parameter_server: %s: %s\n", what, error->message);
    return 1;
}

static muster_context *make_context(muster_error *error) {
    const muster_context_config config = {
        .struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *context = NULL;
    muster_context_create(&config, &context, error);
    return context;
}

/* A message of one array of numbers, which is copied, and two numbers: which share of how many. */
static muster_status send(muster_socket *socket, uint64_t to, uint32_t type, int64_t step, const double *numbers,
                          size_t count, int share, int shares, muster_error *error) {
    const muster_message_header header = {
        .struct_size = sizeof header, .type = type, .destination = to, .target_version = step};
    const muster_value values[] = {{.integer = share}, {.integer = shares}};
    muster_message *message;
    muster_status status = muster_message_create(&message);
    if (status != MUSTER_OK) return status;
    status = muster_message_set_header(message, &header);
    if (status == MUSTER_OK) status = muster_message_add_values(message, "ii", values, 2, error);
    if (status == MUSTER_OK) status = muster_message_add_frame(message, numbers, count * sizeof *numbers);
    if (status == MUSTER_OK) status = muster_socket_send(socket, message, 10 * second, error);
    if (status != MUSTER_OK) muster_message_release(message); /* else the socket has it */
    return status;
}

/* The other way. False: the message is not one of these. */
static bool open_message(const muster_message *message, double *numbers, size_t count, int *share, int *shares) {
    muster_value values[2];
    muster_buffer frame;
    uint32_t got;
    if (muster_message_get_values(message, 0, "ii", NULL, values, 2, &got, NULL) != MUSTER_OK || got != 2 ||
        muster_message_frame(message, 1, &frame) != MUSTER_OK || frame.bytes != count * sizeof *numbers)
        return false;
    *share = (int)values[0].integer;
    *shares = (int)values[1].integer;
    memcpy(numbers, frame.data, frame.bytes);
    return true;
}

/* ---- a worker ---- */

static int work(int number, const char *address) {
    const muster_socket_config config = {
        .struct_size = sizeof config, .kind = MUSTER_SOCKET_DEALER, .address = first_worker_address + (uint64_t)number};
    muster_error error = {0};
    muster_socket *socket;
    muster_context *const context = make_context(&error);
    if (context == NULL || muster_socket_create(context, &config, &socket, &error) != MUSTER_OK ||
        muster_socket_connect(socket, address, strlen(address), &error) != MUSTER_OK ||
        send(socket, server_address, MUSTER_MESSAGE_GET, 0, NULL, 0, 0, 0, &error) != MUSTER_OK)
        return failed("worker", &error);
    muster_message *message;
    for (bool over = false; !over && muster_socket_receive(socket, 60 * second, &message) == MUSTER_OK;) {
        model m;
        double sums[sums_of_points];
        int share, shares;
        muster_message_header header = {.struct_size = sizeof header};
        muster_message_get_header(message, &header);
        over = header.type == MUSTER_MESSAGE_STOP;
        if (!over && open_message(message, &m.step, sizeof m / sizeof m.step, &share, &shares)) {
            evaluate(&m, share, shares, sums);
            if (number == 1 && header.target_version == dies_at) raise(SIGKILL);
            if (send(socket, server_address, MUSTER_MESSAGE_UPDATE, header.target_version, sums, sums_of_points, share,
                     shares, &error) != MUSTER_OK)
                return failed("update", &error);
        }
        muster_message_release(message);
    }
    muster_socket_close(socket, second);
    muster_socket_release(socket);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}

static int work_by_command(int number, const char *address, const char *command) {
    char text[16], line[4096];
    snprintf(text, sizeof text, "%d", number);
    snprintf(line, sizeof line, "exec %s", command); /* so that the shell is not what is killed */
    setenv("PARAMETER_SERVER", address, 1);
    setenv("WORKER", text, 1);
    setenv("MUSTER_SECRET", secret, 1);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    return perror("parameter_server: sh"), 1;
}

/* ---- the server ---- */

typedef struct server {
    muster_socket *socket;
    model m;
    double sums[workers][sums_of_points], total[sums_of_points];
    bool alive[workers], has_sums[workers];
    int registered, living, missing; /* missing: sums of this step */
} server;

/* Divides the step among all that live: what they had sent for another division is not used. */
static muster_status divide(server *s, muster_error *error) {
    int share = 0;
    s->missing = s->living;
    memset(s->has_sums, 0, sizeof s->has_sums);
    for (int w = 0; w < workers; w++) {
        if (!s->alive[w]) continue;
        const muster_status status =
            send(s->socket, first_worker_address + (uint64_t)w, MUSTER_MESSAGE_GOT, (int64_t)s->m.step, &s->m.step,
                 sizeof s->m / sizeof s->m.step, share++, s->living, error);
        if (status != MUSTER_OK && status != MUSTER_E_PEER) return status; /* an event says that it has died */
    }
    return MUSTER_OK;
}

static muster_status take(server *s, const muster_message *message, muster_error *error) {
    muster_message_header header = {.struct_size = sizeof header};
    muster_message_get_header(message, &header);
    const uint64_t worker = header.source - first_worker_address;
    int share, shares;
    double sums[sums_of_points];
    if (worker >= workers) return MUSTER_OK;
    if (header.type == MUSTER_MESSAGE_GET && !s->alive[worker]) {
        s->alive[worker] = true;
        s->living++;
        return ++s->registered == workers ? divide(s, error) : MUSTER_OK;
    }
    if (header.type != MUSTER_MESSAGE_UPDATE || header.target_version != (int64_t)s->m.step || s->has_sums[worker] ||
        !open_message(message, sums, sums_of_points, &share, &shares) || shares != s->living)
        return MUSTER_OK; /* the sums belong to an earlier division of this step */
    memcpy(s->sums[share], sums, sizeof sums);
    s->has_sums[worker] = true;
    if (--s->missing != 0) return MUSTER_OK;
    memset(s->total, 0, sizeof s->total);
    for (int i = 0; i < shares; i++)
        for (int k = 0; k < sums_of_points; k++) s->total[k] += s->sums[i][k];
    take_step(&s->m, s->total);
    return s->m.step < steps ? divide(s, error) : MUSTER_OK;
}

static muster_status look_at_event(server *s, const muster_socket_event *event, muster_error *error) {
    const uint64_t worker = event->address - first_worker_address;
    if (event->kind != MUSTER_SOCKET_LOST || worker >= workers || !s->alive[worker]) return MUSTER_OK;
    printf("worker %d is lost at step %.0f: %s\n", (int)worker, s->m.step, event->text);
    s->alive[worker] = false;
    s->living--;
    return s->living > 0 ? divide(s, error) : MUSTER_E_PEER;
}

/* One queue has both: messages that arrived, and events. */
static muster_status serve(server *s, muster_queue *queue, muster_error *error) {
    muster_status status = MUSTER_OK;
    while (status == MUSTER_OK && s->m.step < steps) {
        muster_completion entry;
        muster_socket_event event;
        muster_message *message;
        status = muster_queue_next(queue, 60 * second, &entry, error);
        if (status == MUSTER_OK && entry.kind == MUSTER_DONE_MESSAGE)
            muster_message_release(entry.object); /* its worker has died */
        while (status == MUSTER_OK && muster_socket_next_event(s->socket, 0, &event) == MUSTER_OK)
            status = look_at_event(s, &event, error);
        while (status == MUSTER_OK && muster_socket_receive(s->socket, 0, &message) == MUSTER_OK) {
            status = take(s, message, error);
            muster_message_release(message);
        }
    }
    for (int w = 0; w < workers; w++)
        if (s->alive[w])
            send(s->socket, first_worker_address + (uint64_t)w, MUSTER_MESSAGE_STOP, 0, NULL, 0, 0, 0, error);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 1 && argc != 1 + workers) return fprintf(stderr, "usage: %s [COMMAND COMMAND COMMAND]\n", argv[0]), 2;
    int addresses[2], ended_well = 0, killed = 0;
    char address[256] = "";
    if (pipe(addresses) != 0) return perror("parameter_server"), 1;
    for (int number = 0; number < workers; number++) { /* before this process has threads */
        const pid_t child = fork();
        if (child < 0) return perror("parameter_server"), 1;
        if (child != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(addresses[0], address, sizeof address) != sizeof address) return 1;
        const char *const command = argc == 1 ? "-" : argv[1 + number];
        return strcmp(command, "-") == 0 ? work(number, address) : work_by_command(number, address, command);
    }
    muster_error error = {0};
    muster_queue *queue;
    muster_context *const context = make_context(&error);
    if (context == NULL || muster_queue_create(context, NULL, &queue, &error) != MUSTER_OK)
        return failed("context", &error);
    static const char anywhere[] = "tcp://127.0.0.1:0";
    const muster_socket_config config = {
        .struct_size = sizeof config, .kind = MUSTER_SOCKET_ROUTER, .address = server_address, .queue = queue};
    server *const s = calloc(1, sizeof *s);
    if (s == NULL || muster_socket_create(context, &config, &s->socket, &error) != MUSTER_OK ||
        muster_socket_bind(s->socket, anywhere, sizeof anywhere - 1, address, sizeof address, &error) != MUSTER_OK)
        return failed("router", &error);
    for (int number = 0; number < workers; number++)
        if (write(addresses[1], address, sizeof address) != sizeof address) return perror("parameter_server"), 1;
    start_model(&s->m);
    if (serve(s, queue, &error) != MUSTER_OK) return failed("training", &error);
    for (int number = 0, how; number < workers; number++) {
        if (wait(&how) < 0) return perror("parameter_server"), 1;
        ended_well += WIFEXITED(how) && WEXITSTATUS(how) == 0;
        killed += WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    }
    const double loss = s->total[sum_of_loss] / points, accuracy = s->total[sum_of_right] / points,
                 alone = train_alone();
    printf("the server has loss %.9f and accuracy %.4f; one process alone has loss %.9f\n", loss, accuracy, alone);
    const bool well = fabs(loss - alone) < 1e-6 && accuracy > 0.98 && ended_well == workers - 1 && killed == 1;
    puts(well ? "the server trained to the end with two of three workers" : "not as it should be");
    muster_socket_close(s->socket, second);
    muster_socket_release(s->socket);
    free(s);
    muster_queue_release(queue);
    muster_context_close(context, second);
    muster_context_release(context);
    return well ? 0 : 1;
}
