/* SPDX-License-Identifier: MIT */
/* Sends a file from one process to another, over a transport that this program serves itself (wire.c).
 *
 *   send_file FILE COPY     starts a second process of itself and sends FILE to it, which writes COPY
 *
 * The two share a socket pair; the secret of the job is passed through a pipe, since a command line is public. */
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t second = 1000000000;
enum { wire_fd = 3, secret_fd = 4, piece = 1 << 20 };
static const char address[] = "wire://here";

static int failed(const char *what, const muster_error *error) {
    fprintf(stderr, "send_file: %s: %s\n", what, error->message);
    return 1;
}

/* The second process: dials, reads the size, then the bytes as they arrive. */
static int receive(const char *copy) {
    muster_context_config config = {.struct_size = sizeof config, .secret_fd_plus_one = secret_fd + 1};
    muster_context *context;
    muster_stream *stream;
    muster_error error;
    if (muster_context_create(&config, &context, &error) < 0) return failed("context", &error);
    wire *w = wire_serve(context, wire_fd, &error);
    if (w == NULL) return failed("wire", &error);
    if (muster_transport_dial(context, address, sizeof address - 1, NULL, 10 * second, &stream, &error) != MUSTER_OK)
        return failed("dial", &error);

    FILE *file = fopen(copy, "wb");
    char *data = malloc(piece);
    uint64_t left = 0;
    size_t size;
    if (file == NULL || data == NULL) return perror(copy), 1;
    muster_status status = muster_stream_read_into(stream, &left, sizeof left, 0, 10 * second, &size);
    while (status == MUSTER_OK && left > 0) {
        status = muster_stream_read(stream, data, left < piece ? (size_t)left : piece, 10 * second, &size);
        if (fwrite(data, 1, size, file) != size) return perror(copy), 1;
        left -= size;
    }
    if (fclose(file) != 0) return perror(copy), 1;
    if (status == MUSTER_OK) status = muster_stream_write(stream, "done", 4, 10 * second, &size);
    muster_stream_close(stream, 10 * second);
    muster_stream_release(stream);
    wire_end(w);
    muster_context_close(context, second);
    muster_context_release(context);
    free(data);
    if (status != MUSTER_OK) fprintf(stderr, "send_file: receiving: %s\n", muster_status_text(status));
    return status == MUSTER_OK ? 0 : 1;
}

static int send_all(muster_stream *stream, FILE *file, uint64_t total) {
    char *data = malloc(piece), answer[4];
    uint64_t sent = 0;
    size_t size, n;
    muster_status status =
        data == NULL ? MUSTER_E_NOMEM : muster_stream_write(stream, &total, sizeof total, 10 * second, &size);
    while (status == MUSTER_OK && (n = fread(data, 1, piece, file)) > 0) {
        status = muster_stream_write(stream, data, n, 10 * second, &size);
        sent += size;
        if (isatty(1)) printf("\r%5.1f %%", 100.0 * (double)sent / (double)total), fflush(stdout);
    }
    if (status == MUSTER_OK) status = muster_stream_read_into(stream, answer, 4, 0, 10 * second, &size);
    printf("%ssent %llu of %llu bytes: %s\n", isatty(1) ? "\r" : "", (unsigned long long)sent,
           (unsigned long long)total, muster_status_text(status));
    free(data);
    return status == MUSTER_OK && sent == total ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count == 3 && strcmp(arguments[1], "--receive") == 0) return receive(arguments[2]);
    if (count != 3) return fprintf(stderr, "usage: send_file FILE COPY\n"), 2;
    struct stat about;
    FILE *file = fopen(arguments[1], "rb");
    if (file == NULL || fstat(fileno(file), &about) != 0) return perror(arguments[1]), 1;

    muster_context *context;
    muster_listener *listener;
    muster_process *child;
    muster_stream *stream;
    muster_error error;
    unsigned char secret[1024];
    size_t secret_bytes;
    int ends[2], secrets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || pipe2(secrets, O_CLOEXEC) != 0)
        return perror("send_file"), 1;
    if (muster_context_create(NULL, &context, &error) < 0) return failed("context", &error);
    if (muster_context_secret(context, secret, sizeof secret, &secret_bytes) < 0) return 1;
    if (write(secrets[1], secret, secret_bytes) != (ssize_t)secret_bytes) return perror("send_file"), 1;
    close(secrets[1]);

    wire *w = wire_serve(context, ends[0], &error);
    if (w == NULL) return failed("wire", &error);
    if (muster_transport_listen(context, address, sizeof address - 1, NULL, &listener, &error) < 0)
        return failed("listen", &error);
    const char *argv[] = {"/proc/self/exe", "--receive", arguments[2], NULL};
    const muster_process_fd fds[] = {{ends[1], wire_fd}, {secrets[0], secret_fd}};
    const muster_process_config config = {.struct_size = sizeof config, .argv = argv, .fds = fds, .fd_count = 2};
    if (muster_process_spawn(context, &config, &child, &error) < 0) return failed("spawn", &error);
    close(ends[1]);
    close(secrets[0]);
    if (muster_listener_accept(listener, 10 * second, &stream, &error) != MUSTER_OK) return failed("accept", &error);

    int result = send_all(stream, file, (uint64_t)about.st_size);
    muster_process_exit ended;
    if (muster_process_wait(child, 10 * second, &ended) != MUSTER_OK || ended.kind != MUSTER_PROCESS_EXITED ||
        ended.value != 0) {
        fprintf(stderr, "send_file: the receiver did not end well\n");
        result = 1;
    }
    muster_process_release(child);
    muster_stream_release(stream);
    muster_listener_release(listener);
    wire_end(w);
    muster_context_close(context, second);
    muster_context_release(context);
    fclose(file);
    return result;
}
