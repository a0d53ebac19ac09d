// SPDX-License-Identifier: MIT
// Who is let in to a store of etcd: TLS, users, and what URLs may say.
// ctest: full timeout=100
#include "etcd.h"

static void write_file(const etcd *e, const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", e->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_urls(void **state) {
    (void)state;
    fixture f;
    make(&f);
    const struct {
        const char *url, *text;
    } wrong[] = {{"etcd:x", "begins with etcd://host:port"},
                 {"etcd://", "names no host"},
                 {"etcd://host:0/x", "is no host:port"},
                 {"etcd://host:70000/x", "is no host:port"},
                 {"etcd://host:1,b c/x", "is no host:port"},
                 {"etcd://u:geheim@host/x", "user and password are given by"},
                 {"etcd://host/%zz", "no %xx"},
                 {"etcd://host/x?colour=red", "there is no option colour"},
                 {"etcd://host/x?ca", "option ca has no value"},
                 {"etcd://host/x?timeout=0", "1 to 3600"},
                 {"etcd://host/x?cert=/c", "come together"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(open_url(&f, wrong[i].url), MUSTER_E_ADDRESS);
        expect_text(wrong[i].text);
        assert_null(strstr(why.message, "geheim"));
    }
    assert_int_equal(open_url(&f, "etcd://host/x?user-file=/nowhere/at/all"), MUSTER_E_NOT_FOUND);
    drop(&f);
}

static void test_users(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    const etcd *e = &f.server;
    post(e, "/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"r\"}", "200 OK");
    post(e, "/v3/auth/role/add", "{\"name\":\"root\"}", "200 OK");
    post(e, "/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}", "200 OK");
    post(e, "/v3/auth/user/add", "{\"name\":\"alice\",\"password\":\"wonder \\\"land\\\"\"}", "200 OK");
    post(e, "/v3/auth/role/add", "{\"name\":\"job\"}", "200 OK");
    post(e, "/v3/auth/role/grant", /* job/ */
         "{\"name\":\"job\",\"perm\":{\"permType\":\"READWRITE\",\"key\":\"am9iLw==\",\"range_end\":\"am9iMA==\"}}",
         "200 OK");
    post(e, "/v3/auth/user/grant", "{\"user\":\"alice\",\"role\":\"job\"}", "200 OK");
    post(e, "/v3/auth/enable", "{}", "200 OK");
    char mine[400], elsewhere[400], wrong[400];
    write_file(e, "alice", "alice:wonder \"land\"\n");
    write_file(e, "mallory", "alice:guess\n");
    snprintf(mine, sizeof mine, "/job?user-file=%s/alice", e->folder);
    snprintf(elsewhere, sizeof elsewhere, "/other?user-file=%s/alice", e->folder);
    snprintf(wrong, sizeof wrong, "/job?user-file=%s/mallory", e->folder);
    assert_int_equal(try_open(&f, e->port, "/job"), MUSTER_E_AUTH);
    assert_int_equal(try_open(&f, e->port, wrong), MUSTER_E_AUTH);
    expect_text("authentication failed");
    assert_null(strstr(why.message, "guess"));
    assert_int_equal(try_open(&f, e->port, elsewhere), MUSTER_E_PERMISSION);
    open_at(&f, e->port, mine);
    run(&f, op(MUSTER_STORE_SET, "k", "1"), MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "", "");
    watch.version = muster_store_result_revision(last);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(f.store, 5 * second, 0, 10 * second, &lease, &why), MUSTER_OK);
    begin(&f, watch, 1);
    /* Its tokens are gone when it comes back. */
    kill_etcd(&f.server);
    start_etcd(&f.server);
    muster_store_op leased = op(MUSTER_STORE_SET, "k", "2");
    leased.lease = muster_lease_id(lease);
    run(&f, leased, MUSTER_OK);
    assert_int_equal(take(&f, MUSTER_OK), 1);
    expect_holds(0, "2");
    assert_int_equal(muster_lease_end(lease, 10 * second, NULL), MUSTER_OK);
    muster_lease_release(lease);
    drop(&f);
}

static void shell(const etcd *e, const char *command) {
    char text[2000];
    snprintf(text, sizeof text, "cd '%s' && { %s; } >log 2>&1", e->folder, command);
    if (system(text) != 0) fail_msg("%s", command);
}

static void test_tls(void **state) {
    (void)state;
    if (system("command -v openssl >/dev/null 2>&1") != 0) skip();
    fixture f;
    make(&f);
    etcd *e = &f.server;
    write_file(e, "extra", "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n");
    for (int i = 0; i < 2; i++) /* the second knows nobody here */
        shell(e, i == 0
                     ? "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca "
                       "-keyout ca.key -out ca.pem"
                     : "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
                       "-subj /CN=other -keyout other.key -out other.pem");
    shell(e, "for n in server client; do openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
             "-subj /O=muster -keyout $n.key -out $n.csr && openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key "
             "-CAcreateserial -days 2 -extfile extra -out $n.pem || exit 1; done");
    char cert[300], key[300], ca[300];
    snprintf(cert, sizeof cert, "%s/server.pem", e->folder);
    snprintf(key, sizeof key, "%s/server.key", e->folder);
    snprintf(ca, sizeof ca, "%s/ca.pem", e->folder);
    const char *const options[] = {"--cert-file",       cert, "--key-file",         key,
                                   "--trusted-ca-file", ca,   "--client-cert-auth", NULL};
    e->options = options;
    e->scheme = "https";
    start_etcd(e);
    char good[1200], unknown[600], without[600];
    snprintf(good, sizeof good, "/job?ca=%s&cert=%s/client.pem&key=%s/client.key&timeout=2", ca, e->folder, e->folder);
    snprintf(unknown, sizeof unknown, "/job?ca=%s/other.pem&timeout=1", e->folder);
    snprintf(without, sizeof without, "/job?ca=%s&timeout=1", ca);
    assert_int_equal(try_open(&f, e->port, "/job?timeout=1"), MUSTER_E_PEER); /* no TLS */
    assert_int_equal(try_open(&f, e->port, unknown), MUSTER_E_UNREACHABLE);
    expect_text("certificate");
    assert_true(try_open(&f, e->port, without) < 0);
    char url[2000];
    snprintf(url, sizeof url, "etcd://localhost:%d%s", e->port, good);
    if (open_url(&f, url) != MUSTER_OK) fail_msg("%s", why.message);
    run(&f, op(MUSTER_STORE_SET, "k", "1"), MUSTER_OK);
    begin(&f, op(MUSTER_STORE_GET, "later", ""), 1);
    run(&f, op(MUSTER_STORE_SET, "later", "2"), MUSTER_OK);
    take(&f, MUSTER_OK);
    expect_holds(0, "2");
    kill_etcd(e);
    start_etcd(e);
    run(&f, op(MUSTER_STORE_GET, "k", ""), MUSTER_OK);
    drop(&f);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
