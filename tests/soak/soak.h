// SPDX-License-Identifier: MIT
// What a soak holds of the system, sampled over time in namespaces of its own, and whether it grows.
#ifndef SOAK_H
#define SOAK_H

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// One point in time. All of the system's, except descriptors and memory, which are of one process.
typedef struct soak_sample {
    double seconds;
    long descriptors, resident_kib, processes, files, abstract_sockets;
} soak_sample;

enum { soak_samples = 20000 };
typedef struct soak_series {
    const char *name;
    soak_sample all[soak_samples];
    int count;
} soak_series;

static inline double soak_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double soak_seconds(void) {
    const char *const text = getenv("MUSTER_SOAK_SECONDS");
    return text != NULL ? atof(text) : 600;
}

static inline void soak_fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    fflush(NULL);
    _exit(1);
}

static inline void soak_write(const char *path, const char *text) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, text, strlen(text)) < 0) perror(path);
    close(file);
}

static char soak_folder[256]; // for the files of this run

// The rest of the program runs where it sees nothing but its own processes, files and sockets. Exits with 77 where the
// system does not allow that.
static inline void soak_enter(void) {
    char map[64];
    snprintf(map, sizeof map, "0 %u 1\n", (unsigned)getuid());
    const int kinds = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID;
    if (unshare(kinds) != 0) {
        if (unshare(kinds | CLONE_NEWUSER) != 0) {
            puts("no namespaces for this user");
            exit(77);
        }
        soak_write("/proc/self/uid_map", map);
    }
    // Process 1 of the namespace reaps what has no parent any more; the second one is the soak.
    const char *const tmp = getenv("TMPDIR");
    snprintf(soak_folder, sizeof soak_folder, "%s/muster-soak-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(soak_folder) == NULL) soak_fail("no folder for temporary files");
    setenv("TMPDIR", soak_folder, 1);
    const pid_t first = fork();
    if (first > 0) {
        int how;
        while (waitpid(first, &how, 0) < 0) {
        }
        rmdir(soak_folder);
        exit(WIFEXITED(how) ? WEXITSTATUS(how) : 1);
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("proc", "/proc", "proc", 0, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) != 0) {
        puts("no file systems of its own for this user");
        exit(77);
    }
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &loopback) != 0) soak_fail("no loopback");
    close(s);
    const pid_t second = fork();
    if (second == 0) return;
    for (;;) {
        int how;
        const pid_t ended = wait(&how);
        if (ended == second) _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 1);
    }
}

static inline long soak_count_entries(const char *path, bool numbers) {
    DIR *const folder = opendir(path);
    long count = 0;
    if (folder == NULL) return -1;
    for (const struct dirent *one; (one = readdir(folder)) != NULL;)
        count += numbers ? one->d_name[0] >= '0' && one->d_name[0] <= '9' : one->d_name[0] != '.';
    closedir(folder);
    return count;
}

static inline long soak_abstract_sockets(void) {
    FILE *const file = fopen("/proc/net/unix", "r");
    char line[512];
    long count = 0;
    if (file == NULL) return -1;
    while (fgets(line, sizeof line, file) != NULL) count += strchr(line, '@') != NULL;
    fclose(file);
    return count;
}

static inline void soak_look(soak_series *s, double from, long pid) {
    if (s->count == soak_samples) return;
    soak_sample *const now = &s->all[s->count];
    char path[64];
    long all = 0, pages = 0;
    now->seconds = soak_now() - from;
    snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    now->descriptors = soak_count_entries(path, true);
    snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *const file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) soak_fail("a process to be watched has ended");
    fclose(file);
    now->resident_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
    now->processes = soak_count_entries("/proc", true);
    now->files = soak_count_entries(soak_folder, false) + soak_count_entries("/dev/shm", false);
    now->abstract_sockets = soak_abstract_sockets();
    s->count++;
}

typedef struct soak_figures {
    long most;
    double average;
} soak_figures;
static inline soak_figures soak_between(const soak_series *s, size_t offset, int first, int last) {
    soak_figures f = {0, 0};
    for (int i = first; i < last; i++) {
        long value;
        memcpy(&value, (const char *)&s->all[i] + offset, sizeof value);
        if (value > f.most) f.most = value;
        f.average += (double)value / (last - first);
    }
    return f;
}

// The second half against the first, of which the first fifth of the run does not count: caches fill up. One line of
// figures; false: something grows.
static inline bool soak_settled(const soak_series *s) {
    static const struct {
        const char *name;
        size_t offset;
        double slack, share; // of the average that it may be more
    } kinds[] = {{"descriptors", offsetof(soak_sample, descriptors), 2, 0},
                 {"resident KiB", offsetof(soak_sample, resident_kib), 1024, 0.05},
                 {"processes", offsetof(soak_sample, processes), 0.5, 0},
                 {"files", offsetof(soak_sample, files), 0.5, 0},
                 {"abstract sockets", offsetof(soak_sample, abstract_sockets), 1, 0}};
    bool fine = s->count >= 10;
    printf("%s: %d samples in %.0f s;", s->name, s->count, s->count ? s->all[s->count - 1].seconds : 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const soak_figures before = soak_between(s, kinds[i].offset, s->count / 5, s->count / 2),
                           after = soak_between(s, kinds[i].offset, s->count / 2, s->count);
        const bool grows = after.average > before.average * (1 + kinds[i].share) + kinds[i].slack;
        printf(" %s %.1f -> %.1f (at most %ld)%s;", kinds[i].name, before.average, after.average,
               before.most > after.most ? before.most : after.most, grows ? " GROWS" : "");
        fine = fine && !grows;
    }
    puts("");
    fflush(stdout);
    return fine;
}

#endif
