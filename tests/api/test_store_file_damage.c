// SPDX-License-Identifier: MIT
// Stores in a file: bits that change on the disk, files of others, other names of the file.
// ctest: quick timeout=100
#include "store_file.h"

enum { keys = 8, max_bytes = 4096 };

static size_t read_file(const char *path, char *bytes, size_t room) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    const ssize_t got = read(file, bytes, room);
    assert_true(got >= 0 && (size_t)got < room);
    close(file);
    return (size_t)got;
}
static void write_file(const char *path, const char *bytes, size_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}
static void reopen(fixture *f, bool sync) {
    muster_store_release(f->store);
    snprintf(f->url, sizeof f->url, "file://%s?sync=%s", f->path, sync ? "yes" : "no");
    open_it(f);
}
/* So much that the log is written anew several times. */
static off_t write_history(fixture *f, muster_store *store) {
    static char value[60001];
    memset(value, 'v', sizeof value - 1);
    off_t largest = 0;
    for (int i = 0; i < 300; i++) {
        run(store, op(MUSTER_STORE_SET, "k", value));
        struct stat about;
        assert_int_equal(stat(f->path, &about), 0);
        if (about.st_size > largest) largest = about.st_size;
    }
    return largest;
}

/* Any bit of the file changes. The store has all that was acknowledged, or it is refused and the file stays as it is.
 * Without sync the last record may be taken for one that was torn. */
static void test_a_changed_bit_loses_nothing(void **state) {
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        fixture f = set_up();
        reopen(&f, sync);
        char name[16], value[32], bytes[max_bytes], found[max_bytes];
        size_t last_at = 0;
        for (int i = 0; i < keys; i++) {
            last_at = read_file(f.path, bytes, sizeof bytes);
            snprintf(name, sizeof name, "k%d", i);
            snprintf(value, sizeof value, "value of %d", i);
            run(f.store, op(MUSTER_STORE_SET, name, value));
        }
        muster_store_release(f.store);
        const size_t size = read_file(f.path, bytes, sizeof bytes);
        int refused = 0;
        for (size_t bit = 0; bit < size * 8; bit++) {
            bytes[bit / 8] ^= (char)(1 << bit % 8);
            write_file(f.path, bytes, size);
            f.store = NULL;
            muster_status status = try_open(&f, f.url);
            int there = 0;
            for (int i = 0; i < keys && status == MUSTER_OK; i++) {
                snprintf(name, sizeof name, "k%d", i);
                snprintf(value, sizeof value, "value of %d", i);
                status = request(f.store, op(MUSTER_STORE_READ, name, ""), 20 * second);
                muster_store_entry e;
                if (status == MUSTER_OK && muster_store_result_entry(last, 0, &e) == MUSTER_OK && e.version != 0 &&
                    e.value_bytes == strlen(value) && memcmp(e.value, value, strlen(value)) == 0)
                    there++;
            }
            muster_store_release(f.store);
            f.store = NULL;
            if (status != MUSTER_OK) {
                assert_int_equal(status, MUSTER_E_PROTOCOL);
                assert_non_null(strstr(why.message, f.path));
                assert_int_equal(read_file(f.path, found, sizeof found), size);
                assert_memory_equal(found, bytes, size);
                refused++;
            } else if (there != keys && (sync || there != keys - 1 || bit / 8 < last_at)) {
                fail_msg("bit %zu of byte %zu of %zu: %d of %d keys are there", bit % 8, bit / 8, size, there, keys);
            }
            bytes[bit / 8] ^= (char)(1 << bit % 8);
        }
        assert_true(refused > (int)size);
        write_file(f.path, bytes, size);
        open_it(&f);
        tear_down(&f);
    }
}

/* What was acknowledged and is not there any more is damage, too; what was not acknowledged is taken away. */
static void test_a_file_that_was_cut(void **state) {
    (void)state;
    fixture f = set_up();
    reopen(&f, true);
    run(f.store, op(MUSTER_STORE_SET, "a", "1"));
    char bytes[max_bytes], torn[max_bytes];
    const size_t before = read_file(f.path, bytes, sizeof bytes);
    run(f.store, op(MUSTER_STORE_SET, "b", "2"));
    const size_t size = read_file(f.path, bytes, sizeof bytes);
    muster_store_release(f.store);
    assert_int_equal(truncate(f.path, (off_t)before + 3), 0);
    open_it(&f);
    assert_int_equal(request(f.store, op(MUSTER_STORE_READ, "a", ""), second), MUSTER_E_PROTOCOL);
    assert_non_null(strstr(why.message, "is damaged"));
    muster_store_release(f.store);
    memcpy(torn, bytes, size);
    memcpy(torn + size, bytes + before, size - before - 1); /* the beginning of a further record */
    write_file(f.path, torn, size + (size - before - 1));
    open_it(&f);
    expect_holds(f.store, "b", "2");
    assert_int_equal(read_file(f.path, torn, sizeof torn), size);
    tear_down(&f);
}

static void test_short_files_of_others_stay(void **state) {
    (void)state;
    fixture f = set_up();
    static const char *const contents[] = {"m", "hello", "muster store 1", "muster store 2\n"};
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        muster_store_release(f.store);
        f.store = NULL;
        write_file(f.path, contents[i], strlen(contents[i]));
        assert_int_equal(try_open(&f, f.url), MUSTER_E_PROTOCOL);
        char found[64];
        assert_int_equal(read_file(f.path, found, sizeof found), strlen(contents[i]));
        assert_memory_equal(found, contents[i], strlen(contents[i]));
    }
    tear_down(&f);
}

/* The writer of the first header was killed, or its disk failed: the end is written first, the magic last. */
static void test_a_header_that_was_begun_is_written_anew(void **state) {
    (void)state;
    fixture f = set_up();
    char whole[32], begun[32];
    muster_store_release(f.store);
    f.store = NULL;
    unlink(f.path);
    open_it(&f);
    assert_int_equal(request(f.store, op(MUSTER_STORE_SET, "a", "1"), second), MUSTER_OK);
    char bytes[4096];
    assert_true(read_file(f.path, bytes, sizeof bytes) > sizeof whole);
    memcpy(whole, bytes, sizeof whole);
    for (size_t size = 17; size <= 32; size++)
        for (size_t magic = 0; magic < 15; magic += size == 32 ? 1 : 15) {
            muster_store_release(f.store);
            f.store = NULL;
            memcpy(begun, whole, sizeof begun);
            memset(begun + magic, 0, 16 - magic);
            write_file(f.path, begun, size);
            open_it(&f);
            assert_int_equal(request(f.store, op(MUSTER_STORE_SET, "b", "2"), second), MUSTER_OK);
            expect_holds(f.store, "b", "2");
        }
    tear_down(&f);
}

static void test_a_symbolic_link_is_the_same_store(void **state) {
    (void)state;
    fixture f = set_up();
    char link[280], url[320];
    snprintf(link, sizeof link, "%s.link", f.path);
    snprintf(url, sizeof url, "file://%s?sync=no", link);
    assert_int_equal(symlink(f.path, link), 0);
    muster_store *target = f.store;
    if (try_open(&f, url) != MUSTER_OK) fail_msg("%s", why.message);
    muster_store *linked = f.store;
    f.store = target;
    assert_true(write_history(&f, linked) < 8 << 20);
    struct stat about;
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    muster_store_op lock = op(MUSTER_STORE_SET, "lock", "one");
    lock.condition = MUSTER_STORE_IF_ABSENT;
    run(linked, lock);
    assert_int_equal(request(target, lock, second), MUSTER_E_CHANGED);
    expect_holds(target, "lock", "one");
    muster_store_release(linked);
    tear_down(&f);
    unlink(link);
}

static void test_a_log_written_anew_is_the_same_file_to_others(void **state) {
    (void)state;
    fixture f = set_up();
    assert_int_equal(chmod(f.path, 0640), 0);
    const uid_t owner = geteuid() == 0 ? 12345 : geteuid();
    if (geteuid() == 0) assert_int_equal(chown(f.path, owner, 12346), 0);
    char draft[280], other[280], found[64];
    snprintf(draft, sizeof draft, "%s.new", f.path);
    snprintf(other, sizeof other, "%s.other", f.path);
    write_file(other, "precious", 8);
    assert_int_equal(link(other, draft), 0);
    assert_true(write_history(&f, f.store) < 8 << 20);
    struct stat about;
    assert_int_equal(stat(f.path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0640);
    assert_int_equal(about.st_uid, owner);
    assert_int_equal(read_file(other, found, sizeof found), 8);
    assert_memory_equal(found, "precious", 8);
    /* The draft of a writer who was killed goes. */
    unlink(draft);
    write_file(draft, "muster store 1\n\0 and more", 25);
    assert_true(write_history(&f, f.store) < 8 << 20);
    assert_int_equal(access(draft, F_OK), -1);
    /* A file of two names stays one file. */
    unlink(other);
    assert_int_equal(link(f.path, other), 0);
    write_history(&f, f.store);
    struct stat second_name;
    assert_int_equal(stat(f.path, &about), 0);
    assert_int_equal(stat(other, &second_name), 0);
    assert_int_equal(about.st_ino, second_name.st_ino);
    tear_down(&f);
    unlink(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_changed_bit_loses_nothing),
        cmocka_unit_test(test_a_file_that_was_cut),
        cmocka_unit_test(test_short_files_of_others_stay),
        cmocka_unit_test(test_a_header_that_was_begun_is_written_anew),
        cmocka_unit_test(test_a_symbolic_link_is_the_same_store),
        cmocka_unit_test(test_a_log_written_anew_is_the_same_file_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
