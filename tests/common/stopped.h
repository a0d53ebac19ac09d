// SPDX-License-Identifier: MIT
// SIGSTOP is under way for a while after kill() has returned, longer on a busy machine: one thread takes the signal,
// and the others run until it does.
#ifndef STOPPED_H
#define STOPPED_H

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

// Until all threads of the process have stopped.
static inline void await_stopped(pid_t pid) {
    char path[64], name[128], line[512];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    for (int all = 0; !all; sched_yield()) {
        DIR *const tasks = opendir(path);
        if (tasks == NULL) return; // the process has ended
        all = 1;
        for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
            if (task->d_name[0] == '.') continue;
            snprintf(name, sizeof name, "%s/%.16s/stat", path, task->d_name);
            FILE *const stat = fopen(name, "r");
            const char *const end = stat && fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
            all = all && end != NULL && end[2] == 'T';
            if (stat) fclose(stat);
        }
        closedir(tasks);
    }
}

// Stops the process; no thread of it runs any more when this returns.
static inline void stop_process(pid_t pid) {
    kill(pid, SIGSTOP);
    await_stopped(pid);
}

#endif
