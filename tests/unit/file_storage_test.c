/* The file_storage extension: its settings as the store gets them, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/stat.h>

#include "agent/pipeline/store.h"
#include "rig.h"

extern const struct component_type extension_file_storage;

static const struct {
    const char *yaml, *error;
} rows[] = {
    {"directory: /tmp", NULL},
    {"directory: /tmp\ncompaction:", NULL},
    {"directory: /nonexistent/x\ncreate_directory: true", NULL},
    {"",
     "directory must exist: stat /var/lib/otelcol/file_storage: no such file or directory. You can "
     "enable the create_directory option to automatically create it"},
    {"directory: /nonexistent/x", "directory must exist: stat /nonexistent/x"},
    {"directory: ''", "directory must exist: stat : no such file"},
    {"directory: /etc/passwd", "/etc/passwd is not a directory"},
    {"directory: /etc/passwd/x", "problem accessing configured directory: /etc/passwd/x"},
    {"directory: /tmp\nmax_size: -1", "max size cannot be less than 0"},
    {"directory: /tmp\ncompaction: {max_transaction_size: -1}",
     "max transaction size for compaction cannot be less than 0"},
    {"directory: /tmp\ncompaction: {on_start: true, directory: /nonexistent/y}",
     "directory must exist: stat /nonexistent/y"},
    {"directory: /tmp\ncompaction: {directory: /nonexistent/y}", NULL},
    {"directory: /tmp\nmax_size: 1000000\ncompaction: {on_rebound: true, directory: /tmp}",
     "compaction rebound needed threshold cannot be greater than max size"},
    {"directory: /tmp\nmax_size: 8000000\ncompaction: {on_rebound: true, directory: /tmp, "
     "rebound_needed_threshold_mib: 1}",
     "compaction rebound trigger threshold cannot be greater than max size"},
    {"directory: /tmp\nmax_size: 1000000", NULL},
    {"directory: /tmp\ncompaction: {on_rebound: true, directory: /tmp, check_interval: 0s}",
     "compaction check interval must be positive when rebound compaction is set"},
    {"directory: /tmp\ncreate_directory: true\ndirectory_permissions: '9'",
     "directory_permissions value must be a valid octal representation"},
    {"directory: /tmp\ncreate_directory: true\ndirectory_permissions: ''",
     "directory_permissions value must be a valid octal representation"},
    {"directory: /tmp\ncreate_directory: true\ndirectory_permissions: '1777'",
     "directory_permissions contain invalid bits for file access"},
    {"directory: /tmp\ndirectory_permissions: '9'", NULL},
    {"directory: /tmp\nfsnc: true", "fsnc"},
};

static void test_configuration(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound = NULL;
        const int rc = rig_bind(&r, &extension_file_storage, rows[i].yaml, &bound, &e);
        if ((rc == 0) != !rows[i].error || (rows[i].error && !strstr(e.text, rows[i].error)))
            fail_msg("%s: %d %s", rows[i].yaml, rc, e.text);
        config_free(r.config);
    }
}

static void test_settings(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &extension_file_storage, "file_storage", SIGNAL_TRACES, 0,
             "directory: /tmp\ntimeout: 3s\nmax_size: 1000000000\nfsync: true\nrecreate: true\n"
             "create_directory: true\ndirectory_permissions: '0700'\n"
             "compaction: {on_rebound: true, directory: /var/tmp, rebound_needed_threshold_mib: 7, "
             "rebound_trigger_threshold_mib: 3, max_transaction_size: 5, check_interval: 2s}\n");
    const struct store_settings *s = extension_file_storage.capability(r.c, CAP_STORAGE);
    assert_null(extension_file_storage.capability(r.c, CAP_ENCODING));
    assert_string_equal(s->directory, "/tmp");
    assert_string_equal(s->compact_directory, "/var/tmp");
    assert_int_equal(s->lock_timeout_ns, 3000000000);
    assert_int_equal(s->max_bytes, 1000000000);
    assert_int_equal(s->directory_mode, 0700);
    assert_int_equal(s->rebound_needed_bytes, 7 << 20);
    assert_int_equal(s->rebound_trigger_bytes, 3 << 20);
    assert_int_equal(s->compact_max_items, 5);
    assert_int_equal(s->compact_interval_ns, 2000000000);
    assert_true(s->fsync && s->recreate && s->create_directory && s->compact_on_rebound &&
                !s->compact_on_start);
    rig_done(&r);
}

static void write_file(const char *folder, const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static bool there(const char *folder, const char *name)
{
    char path[200];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &st) == 0;
}

static void test_start(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e;
    char folder[] = "/tmp/motel-storage-XXXXXX", yaml[400];
    assert_non_null(mkdtemp(folder));
    snprintf(yaml, sizeof(yaml),
             "directory: %s/a/b\ncreate_directory: true\ndirectory_permissions: '0700'\n"
             "compaction: {on_start: true, directory: %s/c, cleanup_on_start: true}\n",
             folder, folder);
    rig_make(&r, &extension_file_storage, "file_storage", SIGNAL_TRACES, 0, yaml);
    assert_false(there(folder, "a")); /* not before the start */
    assert_int_equal(extension_file_storage.start(r.c, &e), 0);
    assert_true(there(folder, "a/b") && there(folder, "c"));
    write_file(folder, "c/tempdb-x");
    write_file(folder, "c/other");
    assert_int_equal(extension_file_storage.start(r.c, &e), 0);
    assert_false(there(folder, "c/tempdb-x"));
    assert_true(there(folder, "c/other"));
    rig_done(&r);
    char command[100];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void test_not_writable(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {.text = ""};
    rig_make(&r, &extension_file_storage, "file_storage", SIGNAL_TRACES, 0,
             "directory: /proc/self\n"); /* nobody can make files there */
    assert_true(extension_file_storage.start(r.c, &e) < 0);
    assert_non_null(strstr(e.text, "cannot make files in the storage directory /proc/self: "));
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_not_writable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
