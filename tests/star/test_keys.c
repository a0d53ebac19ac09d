// SPDX-License-Identifier: MIT
// Brokers and members with CURVE keys of their own: who has the right ones and the secret is in, and nobody else.
#include "star.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <zmq.h>

typedef struct key_pair {
    char open[41], secret[41];
} key_pair;

static char keys_folder[128], broker_file[160], one_file[160], two_file[160], stranger_file[160];
static key_pair broker_keys, one_keys, two_keys, stranger_keys;

// A file of that mode; its name goes to `out`.
static void write_file(char *out, const char *name, mode_t mode, const char *text) {
    snprintf(out, 160, "%s/%s", keys_folder, name);
    const int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void write_member_file(char *out, const char *name, const key_pair *own, const char *broker_public) {
    char text[400];
    snprintf(text, sizeof text, "# a member's\n\nbroker-public  %s\r\nmember-public %s\nmember-secret\t%s \n",
             broker_public, own->open, own->secret);
    write_file(out, name, 0600, text);
}

static int set_up(void **state) {
    need_zmq(state);
    unsetenv("MUSTER_CURVE_FILE");
    const char *tmp = getenv("TMPDIR");
    snprintf(keys_folder, sizeof keys_folder, "%.100s/muster-keys-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(keys_folder));
    key_pair *const all[] = {&broker_keys, &one_keys, &two_keys, &stranger_keys};
    for (size_t i = 0; i < 4; i++) assert_int_equal(zmq_curve_keypair(all[i]->open, all[i]->secret), 0);
    char text[600];
    snprintf(text, sizeof text, "broker-secret %s\nmember-public %s\nmember-public %s\nmember-secret %s\n",
             broker_keys.secret, one_keys.open, two_keys.open, one_keys.secret);
    write_file(broker_file, "broker", 0600, text);
    write_member_file(one_file, "one", &one_keys, broker_keys.open);
    write_member_file(two_file, "two", &two_keys, broker_keys.open);
    write_member_file(stranger_file, "stranger", &stranger_keys, broker_keys.open);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[300];
    static const char *const names[] = {"broker", "one", "two", "stranger", "bad"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(command, sizeof command, "%s/%s", keys_folder, names[i]);
        unlink(command);
    }
    return rmdir(keys_folder);
}

static muster_status try_keyed(broker *b, const char *file, const char *parent, uint32_t flags, muster_error *error) {
    muster_broker_config config = {.struct_size = sizeof config, .flags = flags};
    config.curve_file = file;
    config.curve_file_bytes = file != NULL ? strlen(file) : 0;
    config.parent = parent;
    config.parent_bytes = parent != NULL ? strlen(parent) : 0;
    return try_configured_broker(b, SECRET, "zmq://127.0.0.1:0/", &config, error);
}

static broker start_keyed(const char *file, const char *parent) {
    broker b = {0};
    muster_error error = {0};
    if (try_keyed(&b, file, parent, 0, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return b;
}

static member join_with(const broker *b, const char *name, const char *file) {
    char rest[200];
    snprintf(rest, sizeof rest, "/?upgrade=no&curve=%s", file);
    return join_star(b, name, rest);
}

static void test_right_keys_are_in(void **state) {
    (void)state;
    broker b = start_keyed(broker_file, NULL);
    member one = join_with(&b, "one", one_file), two = join_with(&b, "two", two_file);
    assert_non_null(strstr(one.address, "curve=/")); // what others dial, if the file is the same for them
    char where[700];
    snprintf(where, sizeof where, "zmq://one@%s/?upgrade=no&curve=%s", b.place, two_file);
    between s = {.near = dial_member(&two, where)};
    s.far = accept_one(&one);
    transfer(s.near, s.far, 1000000);
    transfer(s.far, s.near, 1000000);
    drop_between(&s);
    // Closing the listener withdraws the name.
    leave_star(&one);
    one = join_with(&b, "one", one_file);
    leave_star(&one);
    leave_star(&two);
    stop_broker(&b);
}

static void test_the_environment_names_the_file(void **state) {
    (void)state;
    setenv("MUSTER_CURVE_FILE", broker_file, 1);
    broker b = start_keyed(NULL, NULL);
    setenv("MUSTER_CURVE_FILE", one_file, 1);
    member one = join_star(&b, "one", "/");
    setenv("MUSTER_CURVE_FILE", two_file, 1);
    member two = join_star(&b, "two", "/");
    assert_null(strstr(one.address, "curve="));
    between s = connect_members(&two, &one);
    drop_between(&s);
    unsetenv("MUSTER_CURVE_FILE");
    leave_star(&one);
    leave_star(&two);
    stop_broker(&b);
}

static void test_everybody_else_stays_out(void **state) {
    (void)state;
    broker keyed = start_keyed(broker_file, NULL), derived = start_broker(0);
    char other_broker[160];
    write_member_file(other_broker, "bad", &one_keys, stranger_keys.open);
    const struct {
        const broker *at;
        const char *curve, *secret;
    } cases[] = {
        {&keyed, stranger_file, SECRET},                 // not among those let in
        {&keyed, other_broker, SECRET},                  // thinks of another broker
        {&keyed, "yes", SECRET},                         // derived from the secret
        {&keyed, "no", SECRET},                          // plain
        {&keyed, one_file, "another secret altogether"}, // right keys, but not the secret
        {&derived, one_file, SECRET},                    // a broker without that file
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        member m = {.context = make_context(0, cases[i].secret)};
        char where[700];
        muster_error error = {0};
        muster_stream *stream = NULL;
        snprintf(where, sizeof where, "zmq://m@%s/?curve=%s", cases[i].at->place, cases[i].curve);
        const muster_status status = try_listen(&m, where, 0, &error);
        if (status != MUSTER_E_AUTH) fail_msg("case %zu: %s %s", i, muster_status_name(status), error.message);
        assert_int_equal(try_dial(&m, where, 0, &stream, &error), MUSTER_E_AUTH);
        leave_star(&m);
    }
    member one = join_with(&keyed, "one", one_file); // the others have no effect on a member
    leave_star(&one);
    assert_int_equal(figures(&keyed).names, 0);
    stop_broker(&keyed);
    stop_broker(&derived);
}

static void test_a_tree_shares_the_brokers_keys(void **state) {
    (void)state;
    broker top = start_keyed(broker_file, NULL), below = start_keyed(broker_file, top.address);
    AWAIT_FIGURE(&top, s.brokers == 1);
    member one = join_with(&top, "one", one_file), two = join_with(&below, "two", two_file);
    char where[700];
    snprintf(where, sizeof where, "zmq://one@%s/?upgrade=no&curve=%s", below.place, two_file);
    between s = {.near = dial_member(&two, where)};
    s.far = accept_one(&one);
    transfer(s.near, s.far, 100000);
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    stop_broker(&below);
    stop_broker(&top);
}

// Each says what is wrong, and no key.
static void test_bad_files_are_told(void **state) {
    (void)state;
    char bad[160], where[700], text[600];
    broker b = start_keyed(broker_file, NULL), none = {0};
    member m = {.context = make_context(0, SECRET)};
    const struct {
        mode_t mode;
        const char *lines; // B: the broker's secret key, b: its public one, M, m: of member one, x: of no member
        muster_status broker, member;
        const char *word;
    } cases[] = {
        {0640, "broker-secret B\nbroker-public b\nmember-public m\nmember-secret M\n", MUSTER_E_PERMISSION,
         MUSTER_E_PERMISSION, "600"},
        {0604, "broker-secret B\nbroker-public b\nmember-public m\nmember-secret M\n", MUSTER_E_PERMISSION,
         MUSTER_E_PERMISSION, "600"},
        {0600, "", MUSTER_E_AUTH, MUSTER_E_AUTH, "needs"},
        {0600, "broker-secret B\n", MUSTER_E_AUTH, MUSTER_E_AUTH, "member-"},
        {0600, "broker-public b\nmember-public m\n", MUSTER_E_AUTH, MUSTER_E_AUTH, "secret"},
        {0600, "broker-public x\nbroker-secret B\nmember-public m\nmember-secret M\n", MUSTER_E_AUTH, MUSTER_E_AUTH,
         "no pair"},
        {0600, "broker-secret B\nbroker-secret B\nmember-public m\nmember-secret M\n", MUSTER_E_AUTH, MUSTER_E_AUTH,
         "line 2"},
        {0600, "broker-secret B1\nmember-public m\n", MUSTER_E_AUTH, MUSTER_E_AUTH, "line 1"},
        {0600, "B\nmember-public m\n", MUSTER_E_AUTH, MUSTER_E_AUTH, "line 1"},
        {0600, "# B\n\nsecret B\n", MUSTER_E_AUTH, MUSTER_E_AUTH, "line 3"},
        {0600, "broker-public \"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\n",
         MUSTER_E_AUTH, MUSTER_E_AUTH, "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = 0;
        text[0] = 0;
        for (const char *c = cases[i].lines; *c != '\0'; c++) {
            const bool key = c > cases[i].lines && c[-1] == ' ';
            const char *put = key && *c == 'B'   ? broker_keys.secret
                              : key && *c == 'b' ? broker_keys.open
                              : key && *c == 'M' ? one_keys.secret
                              : key && *c == 'm' ? one_keys.open
                              : key && *c == 'x' ? stranger_keys.open
                                                 : NULL;
            size +=
                (size_t)snprintf(text + size, sizeof text - size, put != NULL ? "%s" : "%.1s", put != NULL ? put : c);
        }
        write_file(bad, "bad", cases[i].mode, text);
        for (int of_broker = 0; of_broker < 2; of_broker++) {
            muster_error error = {0};
            snprintf(where, sizeof where, "zmq://%s/%zu?curve=%s", b.place, i, bad);
            const muster_status status =
                of_broker ? try_keyed(&none, bad, NULL, 0, &error) : try_listen(&m, where, 0, &error);
            if (status != (of_broker ? cases[i].broker : cases[i].member) || !strstr(error.message, cases[i].word))
                fail_msg("case %zu, %d: %s %s", i, of_broker, muster_status_name(status), error.message);
            if (strstr(error.message, broker_keys.secret) || strstr(error.message, one_keys.secret))
                fail_msg("case %zu: a key is told", i);
        }
    }
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://%s/?curve=%s/nothing", b.place, keys_folder);
    assert_int_equal(try_listen(&m, where, 0, &error), MUSTER_E_NOT_FOUND);
    snprintf(where, sizeof where, "%s/nothing", keys_folder);
    assert_int_equal(try_keyed(&none, where, NULL, 0, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(try_keyed(&none, keys_folder, NULL, 0, &error), MUSTER_E_SYSTEM);
    snprintf(where, sizeof where, "zmq://%s/?curve=relative", b.place);
    assert_int_equal(try_listen(&m, where, 0, &error), MUSTER_E_ADDRESS);
    assert_int_equal(try_keyed(&none, broker_file, NULL, MUSTER_BROKER_OPEN, &error), MUSTER_E_ARG);
    assert_int_equal(try_keyed(&none, broker_file, NULL, MUSTER_BROKER_NO_CURVE, &error), MUSTER_E_ARG);
    muster_broker_config config = {.struct_size = sizeof config, .curve_file_bytes = 3};
    assert_int_equal(try_configured_broker(&none, SECRET, "zmq://127.0.0.1:0/", &config, &error), MUSTER_E_ARG);
    // A broker below needs a member's key, too.
    snprintf(text, sizeof text, "broker-secret %s\nmember-public %s\n", broker_keys.secret, one_keys.open);
    write_file(bad, "bad", 0600, text);
    assert_int_equal(try_keyed(&none, bad, b.address, 0, &error), MUSTER_E_AUTH);
    leave_star(&m);
    stop_broker(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_right_keys_are_in),        cmocka_unit_test(test_the_environment_names_the_file),
    cmocka_unit_test(test_everybody_else_stays_out), cmocka_unit_test(test_a_tree_shares_the_brokers_keys),
    cmocka_unit_test(test_bad_files_are_told),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
