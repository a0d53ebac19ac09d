// SPDX-License-Identifier: MIT
// Workers that a queueing system starts: one of the test (tests/managers/queue), and, where Slurm runs (with_slurm),
// its queue. QUEUE is the program.
#include "cluster_master.h"

#include <dirent.h>
#include <fcntl.h>
#include <muster/metrics.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static char folder[] = "/tmp/muster-queue-XXXXXX", scripts[64];

static uint32_t add_by_queue(fixture *f, const char *how, const char *more, const char *mode, uint32_t count) {
    static const char *const variables[] = {"MUSTER_TEST=it's $HOME; \"quoted\"", NULL};
    char options[2000];
    snprintf(options, sizeof options,
             "submit=%s %s {first} {last} {script}; rank=QUEUE_TASK; first=1; cancel=%s delete {job}; folder=%s%s",
             getenv("QUEUE"), how, getenv("QUEUE"), scripts, more);
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "command";
    like.options = options;
    like.envp = variables;
    return add_like(f, &like, mode, count);
}

static void read_file(const char *name, char *out, size_t capacity) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "r");
    const size_t size = file == NULL ? 0 : fread(out, 1, capacity - 1, file);
    out[size] = '\0';
    if (file != NULL) fclose(file);
}

static int deletions; // a pipe: the queue writes a line for each job that it deletes

// Waits until the file has the line of this job, which follows those of earlier tests.
static void await_deleted(const char *number) {
    char line[16] = "";
    size_t size = 0;
    while (strcmp(line, number) != 0) {
        struct pollfd readable = {.fd = deletions, .events = POLLIN};
        if (size == 0 || line[size - 1] == '\n') size = 0;
        if (poll(&readable, 1, 20000) != 1 || size + 1 >= sizeof line) fail_msg("job %s is not deleted", number);
        assert_int_equal(read(deletions, &line[size++], 1), 1);
        line[size] = '\0';
    }
}

static int files_in(const char *path) {
    DIR *const open = opendir(path);
    assert_non_null(open);
    int count = -2;
    while (readdir(open) != NULL) count++;
    closedir(open);
    return count;
}

static void test_tasks_are_workers(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    assert_int_equal(add_by_queue(f, "submit", "", "worker", 4), 1);
    await_joined(f, 4);
    assert_talks(f, 1, 4);
    assert_string_equal(ask(f, 3, "self"), "3");
    assert_int_equal(add_by_queue(f, "submit", "", "worker", 2), 5);
    await_joined(f, 2);
    assert_talks(f, 6, 1);
    // The script is for this user alone, and has a key in place of the secret.
    char mode[16], script[20000];
    read_file("mode.101", mode, sizeof mode);
    assert_string_equal(mode, "700\n");
    read_file("script.101", script, sizeof script);
    assert_says(script, "export MUSTER_TEST='it'");
    assert_null(strstr(script, getenv("MUSTER_SECRET")));
    // A process of a task has the variable of the launch, and not the ticket any more.
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, 2, &info), MUSTER_OK);
    char path[64], environment[65536];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)info.pid);
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    const size_t size = fread(environment, 1, sizeof environment, file);
    fclose(file);
    const char said[] = "MUSTER_TEST=it's $HOME; \"quoted\"";
    assert_non_null(memmem(environment, size, said, sizeof said));
    assert_int_equal(files_in(scripts), 2);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
    assert_int_equal(files_in(scripts), 0);
}

static void test_one_task_dies_and_the_others_go_on(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    const uint32_t first = add_by_queue(f, "submit", "", "worker", 3);
    await_joined(f, 3);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, first + 1, &info), MUSTER_OK);
    assert_int_equal(kill((pid_t)info.pid, SIGKILL), 0);
    const muster_cluster_event gone = next(f);
    assert_int_equal(gone.kind, MUSTER_CLUSTER_DEAD);
    assert_int_equal(gone.member, first + 1);
    assert_talks(f, first, first + 2);
    // The metrics of the master count it.
    char metrics[20000];
    size_t size = 0;
    assert_int_equal(muster_metrics_write(f->context, metrics, sizeof metrics - 1, &size), MUSTER_OK);
    metrics[size] = '\0';
    assert_says(metrics, "how=\"dead\"} 1\n");
    assert_says(metrics, "how=\"failed\"} 0\n");
    assert_says(metrics, "state=\"joined\"} 2\n");
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
}

static void test_a_queue_that_refuses_the_job(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    add_by_queue(f, "refuse", "", "worker", 2);
    for (int i = 0; i < 2; i++) {
        const muster_cluster_event event = next(f);
        assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
        assert_says(event.text, "exit code 7");
        assert_says(event.text, "there is no room for another job");
    }
    assert_int_equal(files_in(scripts), 0);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
}

// A job that still waits when the time to join is over is taken out of the queue.
static void test_a_job_that_does_not_start_is_cancelled(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 2 * second);
    char number[16];
    add_by_queue(f, "hold", "", "worker", 3);
    for (int i = 0; i < 3; i++) assert_int_equal(await(f, MUSTER_CLUSTER_FAILED).kind, MUSTER_CLUSTER_FAILED);
    read_file("number", number, sizeof number);
    await_deleted(number);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
}

static void refuse(fixture *f, const char *options, uint32_t count, const char *text) {
    const char *const words[] = {self_path, "worker", NULL};
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.manager = "command";
    launch.options = options;
    launch.argv = words;
    launch.count = count;
    muster_error error = {0};
    assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_E_ARG);
    assert_says(error.message, text);
}

static void test_options_that_are_refused(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    refuse(f, "rank=TASK", 2, "`submit` is missing");
    refuse(f, "submit=qsub", 2, "`rank` is \"\"");
    refuse(f, "submit=qsub; rank=A-B", 2, "`rank` is \"A-B\"");
    refuse(f, "submit=qsub; rank=TASK; job=all", 2, "`job` is \"all\"");
    refuse(f, "submit=qsub; rank=TASK; first=x", 2, "first");
    refuse(f, "submit=qsub; rank=TASK; unknown=1", 2, "unknown");
    refuse(f, "submit=qsub 'x; rank=TASK", 2, "'");
    // What can only be found out when it is launched.
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "command";
    like.options = "submit=/nonexistent/qsub; folder=/tmp";
    add_like(f, &like, "worker", 1);
    assert_says(next(f).text, "/nonexistent/qsub");
    like.options = "submit=true; folder=/nonexistent/folder";
    add_like(f, &like, "worker", 1);
    assert_says(next(f).text, "a script in /nonexistent/folder");
}

// The queue of a real Slurm.
static void test_slurms_queue(void **state) {
    fixture *f = *state;
    if (getenv("SLURM_CONF") == NULL) skip();
    open_with(f, 0, NULL, 50 * second);
    muster_launch like;
    muster_config_init(&like, sizeof like);
    like.manager = "command";
    like.options = "submit=sbatch --array=0-{last} --output=/dev/null; rank=SLURM_ARRAY_TASK_ID; cancel=scancel {job}";
    const uint32_t first = add_like(f, &like, "worker", 3);
    await_joined(f, 3);
    assert_talks(f, first, first + 2);
    assert_int_equal(muster_cluster_close(f->cluster, -1), MUSTER_OK);
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    find_self();
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(scripts, sizeof scripts, "%s/scripts", folder);
    if (mkdir(scripts, 0700) != 0) return 1;
    setenv("QUEUE_FOLDER", folder, 1);
    char command[100];
    snprintf(command, sizeof command, "%s/jobs", folder);
    if (mkfifo(command, 0600) != 0) return 1;
    snprintf(command, sizeof command, "%s/deleted", folder);
    if (mkfifo(command, 0600) != 0 || (deletions = open(command, O_RDWR | O_CLOEXEC)) < 0) return 1;
    const pid_t parent = getpid(), server = fork(); // before this process has threads
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) execl(getenv("QUEUE"), "queue", "serve", NULL);
        _exit(9);
    }
    setenv("MUSTER_SECRET", "a secret of the master", 1); // not in the environment of the server
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tasks_are_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_task_dies_and_the_others_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_queue_that_refuses_the_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_job_that_does_not_start_is_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_options_that_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slurms_queue, set_up, tear_down),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0 || failed;
}
