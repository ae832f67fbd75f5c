/* The basicauth extension: keys, who may pass at once, later or never, what clients send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/encode.h"
#include "agent/base/secrets.h"
#include "extensions/basicauth/verifier.h"
#include "fake_exchange.h"
#include "rig.h"
#include "temp_dir.h"

extern const struct component_type extension_basicauth;

#define SLOW "$2y$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"  /* correct horse */
#define OTHER "$2y$04$abcdefghijklmnopqrstuu0HtfOlPbTiymk5tcV.3TsFPDd3SYZqu" /* other */

static void make(struct rig *r, const char *yaml)
{
    struct err e = {""};
    memset(r, 0, sizeof(*r));
    rig_make(r, &extension_basicauth, "basicauth", SIGNAL_TRACES, 0, yaml);
    if (r->c->type->start(r->c, &e) < 0)
        fail_msg("%s", e.text);
}

static void end(struct rig *r)
{
    r->c->type->stop(r->c, 0);
    rig_done(r);
}

struct outcome_of_check {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    const char *refused;
};

static void on_checked(void *ctx, const char *refused)
{
    struct outcome_of_check *o = ctx;
    pthread_mutex_lock(&o->lock);
    o->over = true;
    o->refused = refused;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static const char *wait_for(struct auth_check *k)
{
    struct outcome_of_check o = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cond_init_monotonic(&o.changed);
    k->then(k, on_checked, &o);
    pthread_mutex_lock(&o.lock);
    while (!o.over)
        pthread_cond_wait(&o.changed, &o.lock);
    pthread_mutex_unlock(&o.lock);
    pthread_cond_destroy(&o.changed);
    return o.refused;
}

/* "pass", the reason, or the same behind "later: ". */
static const char *knock_with(struct rig *r, const char *value)
{
    static char text[100];
    const struct server_auth *a = r->c->type->capability(r->c, CAP_SERVER_AUTH);
    struct fake_exchange f = fake_request(value ? "Authorization" : NULL, value);
    const char *reason = NULL;
    struct auth_check *check = NULL;
    switch (a->admit(a, &f.x, &reason, &check)) {
    case ADMIT_PASS: return "pass";
    case ADMIT_REFUSE: return reason;
    case ADMIT_BUSY: return "busy";
    case ADMIT_LATER: break;
    }
    reason = wait_for(check);
    snprintf(text, sizeof(text), "later: %s", reason ? reason : "pass");
    return text;
}

static const char *encoded(const char *pair)
{
    static char value[500];
    memset(value, 0, sizeof(value));
    memcpy(value, "Basic ", 6);
    encode_base64(bytes_str(pair), value + 6);
    return value;
}

static const char *knock(struct rig *r, const char *pair)
{
    return knock_with(r, encoded(pair));
}

static void test_quick(void **state)
{
    (void)state;
    struct rig r;
    make(&r, "htpasswd: {inline: \"plain:correct horse\\nsha:{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=\"}");
    assert_string_equal(knock_with(&r, NULL), "no basic auth provided");
    assert_string_equal(knock_with(&r, ""), "no basic auth provided");
    assert_string_equal(knock_with(&r, "Bearer x"), "invalid authorization scheme prefix");
    assert_string_equal(knock_with(&r, "Basic"), "invalid authorization scheme prefix");
    assert_string_equal(knock_with(&r, "Basic !!!"), "invalid authorization format");
    assert_string_equal(knock_with(&r, "Basic YWJj"), "invalid authorization format");
    assert_string_equal(knock(&r, "plain:correct horse"), "pass");
    assert_string_equal(knock_with(&r, "bASIC cGxhaW46Y29ycmVjdCBob3JzZQ=="), "pass");
    assert_string_equal(knock(&r, "plain:correct"), "invalid credentials");
    assert_string_equal(knock(&r, "plain:"), "invalid credentials");
    assert_string_equal(knock(&r, "plai:correct horse"), "invalid credentials");
    assert_string_equal(knock(&r, "sha:correct horse"), "pass");
    assert_string_equal(knock(&r, "sha:wrong"), "invalid credentials");
    end(&r);
}

/* A slow code is computed once for the right password, and once for a wrong one. */
static void test_slow(void **state)
{
    (void)state;
    struct rig r;
    make(&r, "htpasswd: {inline: \"bob:" SLOW "\\ncarol:" OTHER "\"}");
    assert_string_equal(knock(&r, "bob:wrong"), "later: invalid credentials");
    assert_string_equal(knock(&r, "bob:wrong"), "invalid credentials");
    assert_string_equal(knock(&r, "bob:correct horse"), "later: pass");
    assert_string_equal(knock(&r, "bob:correct horse"), "pass");
    assert_string_equal(knock(&r, "bob:never seen"), "invalid credentials");
    assert_string_equal(knock(&r, "carol:correct horse"), "later: invalid credentials");
    assert_string_equal(knock(&r, "carol:other"), "later: pass");
    assert_string_equal(knock(&r, "carol:other"), "pass");
    end(&r);
}

/* A guess of a host; NULL: too many wait. */
static struct auth_check *submit(struct rig *r, int host, int i)
{
    char pair[40];
    const struct server_auth *a = r->c->type->capability(r->c, CAP_SERVER_AUTH);
    snprintf(pair, sizeof(pair), "bob:guess %d of %d", i, host);
    struct fake_exchange f = fake_request("authorization", encoded(pair));
    snprintf(f.x.peer_text, sizeof(f.x.peer_text), "10.0.0.%d:%d", host, 1000 + i);
    const char *reason = NULL;
    struct auth_check *check = NULL;
    enum admission got = a->admit(a, &f.x, &reason, &check);
    assert_int_equal(got, check ? ADMIT_LATER : ADMIT_BUSY);
    return check;
}

/* As many as are let wait, of one host and of all, and not one more; who was waited for makes room.
 */
static void test_many(void **state)
{
    (void)state;
    struct rig r;
    struct auth_check *checks[VERIFIER_MAX];
    unsigned n = 0;
    make(&r, "htpasswd: {inline: \"bob:" SLOW "\"}");
    for (int host = 0; host < VERIFIER_MAX / VERIFIER_PEER_MAX; host++) {
        for (int i = 0; i < VERIFIER_PEER_MAX; i++)
            assert_non_null(checks[n++] = submit(&r, host, i));
        assert_null(submit(&r, host, VERIFIER_PEER_MAX));
    }
    assert_null(submit(&r, 100, 0));
    assert_string_equal(wait_for(checks[0]), "invalid credentials");
    for (unsigned i = 1; i < n - 1; i++)
        checks[i]->drop(checks[i]);
    assert_string_equal(knock(&r, "bob:correct horse"), "later: pass");
    r.c->type->stop(r.c, 0);
    wait_for(checks[n - 1]); /* whatever it says: it does not hang */
    rig_done(&r);
}

/* A request may be there longer than the extension. */
static void test_left_over(void **state)
{
    (void)state;
    struct rig r;
    make(&r, "htpasswd: {inline: \"bob:" SLOW "\"}");
    struct auth_check *k = submit(&r, 1, 0);
    end(&r);
    k->drop(k);
}

static void test_file(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16], yaml[2 * TEMP_DIR_BYTES];
    struct rig r;
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/htpasswd", dir);
    snprintf(yaml, sizeof(yaml), "htpasswd: {file: %s, inline: \"alice:from config\"}", path);
    temp_file_put(path, "alice:from file\nbob:" SLOW "\n");
    make(&r, yaml);
    assert_string_equal(knock(&r, "alice:from file"), "invalid credentials");
    assert_string_equal(knock(&r, "alice:from config"), "pass");
    assert_string_equal(knock(&r, "bob:correct horse"), "later: pass");
    temp_file_put(path, "dave:new one\nbob:" SLOW "\n");
    assert_string_equal(knock(&r, "dave:new one"), "pass");
    assert_string_equal(knock(&r, "bob:correct horse"), "pass"); /* known from before */
    temp_file_put(path, "dave:new one\nbob:" OTHER "\n");
    assert_string_equal(knock(&r, "bob:correct horse"), "later: invalid credentials");
    assert_string_equal(knock(&r, "bob:other"), "later: pass");
    assert_int_equal(remove(path), 0);
    assert_string_equal(knock(&r, "dave:new one"), "pass");
    end(&r);
    struct err e = {""};
    memset(&r, 0, sizeof(r));
    rig_make(&r, &extension_basicauth, "basicauth", SIGNAL_TRACES, 0, yaml);
    assert_int_equal(r.c->type->start(r.c, &e), -ENOENT);
    assert_non_null(strstr(e.text, "open htpasswd file: failed to read credentials file"));
    end(&r);
    temp_dir_remove(dir);
}

/* Ten thousand users, of whom two are known, before and behind a line that goes away. Codes do not
 * become words to be blanked out, of which every one slows all texts down; passwords do, some. */
static void test_many_users(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16], yaml[2 * TEMP_DIR_BYTES];
    struct rig r;
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/htpasswd", dir);
    snprintf(yaml, sizeof(yaml), "htpasswd: {file: %s}", path);
    secrets_clear();
    for (int without = 0; without < 2; without++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        for (int i = 0; i < 10000; i++) {
            if (without && i == 5000)
                continue;
            if (i % 2)
                fprintf(f, "user%d:password%04d\n", i, i);
            else
                fprintf(f, "user%d:" SLOW "\n", i);
        }
        fclose(f);
        if (!without)
            make(&r, yaml);
        const char *expected = without ? "pass" : "later: pass";
        assert_string_equal(knock(&r, "user4998:correct horse"), expected);
        assert_string_equal(knock(&r, "user9998:correct horse"), expected);
        assert_string_equal(knock(&r, "user9999:password9999"), "pass");
    }
    assert_string_equal(knock(&r, "user5000:correct horse"), "invalid credentials");
    assert_true(secrets_found(bytes_str("<password0001>")));
    assert_false(secrets_found(bytes_str("<password9999>")));
    assert_false(secrets_found(bytes_str("<" SLOW ">")));
    end(&r);
    secrets_clear();
    temp_dir_remove(dir);
}

/* "Name: value", or the error. */
static const char *sent(struct rig *r)
{
    static char line[1100];
    struct auth_headers h;
    struct err e = {""};
    const struct client_auth *a = r->c->type->capability(r->c, CAP_CLIENT_AUTH);
    if (auth_headers_get(a, false, &h, &e) < 0) {
        snprintf(line, sizeof(line), "%s", e.text);
        return line;
    }
    assert_int_equal(h.n, 1);
    snprintf(line, sizeof(line), "%s: %s", h.items[0].name, h.items[0].value);
    auth_headers_done(&h);
    return line;
}

static void test_clients(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16], yaml[2 * TEMP_DIR_BYTES];
    struct rig r;
    secrets_clear();
    make(&r, "client_auth: {username: Aladdin, password: open sesame}"); /* RFC 7617 */
    assert_string_equal(sent(&r), "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_null(r.c->type->capability(r.c, CAP_SERVER_AUTH));
    assert_true(secrets_found(bytes_str("<open sesame>")));
    assert_true(secrets_found(bytes_str("<QWxhZGRpbjpvcGVuIHNlc2FtZQ==>")));
    end(&r);
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/word", dir);
    snprintf(yaml, sizeof(yaml), "client_auth: {username: u, password: unused, password_file: %s}",
             path);
    temp_file_put(path, "one\n");
    make(&r, yaml);
    assert_string_equal(sent(&r), "Authorization: Basic dTpvbmU=");
    temp_file_put(path, "two\n");
    assert_string_equal(sent(&r), "Authorization: Basic dTp0d28=");
    assert_int_equal(remove(path), 0);
    assert_string_equal(sent(&r), "Authorization: Basic dTp0d28=");
    end(&r);
    struct err e = {""};
    memset(&r, 0, sizeof(r));
    rig_make(&r, &extension_basicauth, "basicauth", SIGNAL_TRACES, 0, yaml);
    assert_int_equal(r.c->type->start(r.c, &e), -ENOENT);
    end(&r);
    temp_dir_remove(dir);
    secrets_clear();
}

static void test_config(void **state)
{
    (void)state;
    static const struct rig_config rows[] = {
        {"htpasswd: {inline: \"a:b\"}", NULL},
        {"htpasswd: {file: /x}", NULL},
        {"client_auth: {username: a, password: b}", NULL},
        {"client_auth: {username_file: /a, password_file: /b}", NULL},
        {"{}", "no credential source provided"},
        {"htpasswd: {}", "no credential source provided"},
        {"{htpasswd: {file: /x}, client_auth: {username: a}}",
         "only one of `htpasswd` or `client_auth` can be specified"},
        {"client_auth: {username: \"a:b\", password: SEKRET}", "the user name holds a colon"},
        {"htpasswd: {inline: \"a:SEKRET\", x: y}", "unknown key \"x\""},
    };
    rig_check_configs(&extension_basicauth, rows, ARRAY_SIZE(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick),  cmocka_unit_test(test_slow),
        cmocka_unit_test(test_many),   cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_file),   cmocka_unit_test(test_clients),
        cmocka_unit_test(test_config), cmocka_unit_test(test_many_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
