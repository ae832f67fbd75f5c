/* Rewriting by hand: what comes out byte for byte. The general laws: laws_test.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/rewrite.h"
#include "tests/unit/wire_text.h"

/* Texts of edits: an encoded message, "-" to drop, NULL to keep. */
struct script {
    const char *resource, *scope;
    const char *record_from, *record; /* records equal to `record_from` (NULL = all) become `record` */
    char seen[512];                   /* the resource and scope shown to the last record, in hex */
    enum edit error;
};

static enum edit play(const char *text, struct buf *out)
{
    if (!text)
        return EDIT_KEEP;
    if (*text == '-')
        return EDIT_DROP;
    wire_text_append(text, out);
    return EDIT_REPLACE;
}

static enum edit on_resource(void *ctx, struct bytes resource, struct buf *out)
{
    (void)resource;
    assert_int_equal(out->len, 0);
    return play(((struct script *)ctx)->resource, out);
}

static enum edit on_scope(void *ctx, struct bytes resource, struct bytes scope, struct buf *out)
{
    (void)resource, (void)scope;
    assert_int_equal(out->len, 0);
    return play(((struct script *)ctx)->scope, out);
}

static void show(struct script *s, struct bytes resource, struct bytes scope)
{
    char *p = s->seen;
    for (size_t i = 0; i < resource.len; i++)
        p += sprintf(p, "%02x", resource.data[i]);
    *p++ = '|';
    for (size_t i = 0; i < scope.len; i++)
        p += sprintf(p, "%02x", scope.data[i]);
    *p = 0;
}

static enum edit on_record(void *ctx, struct bytes resource, struct bytes scope, struct bytes record,
                           struct buf *out)
{
    struct script *s = ctx;
    assert_int_equal(out->len, 0);
    show(s, resource, scope);
    if (s->error)
        return s->error;
    if (s->record_from) {
        struct buf *from = wire_text(s->record_from);
        bool same = bytes_eq(buf_bytes(from), record);
        buf_unref(from);
        if (!same)
            return EDIT_KEEP;
    }
    return play(s->record, out);
}

static struct batch *batch_of(enum signal s, const char *text)
{
    struct batch *b;
    struct err err = {0};
    if (batch_from_wire(s, wire_text(text), &b, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return b;
}

static const struct {
    const char *what, *in;
    struct script script;
    const char *out; /* NULL: unchanged; "-": nothing left */
    uint32_t records;
} cases[] = {
    {"keep", "0a{0a{1001}12{0a{0a{'s'}}12{2a{'a'}}}}", {NULL}, NULL, 1},
    {"same bytes", "0a{0a{1001}12{12{2a{'a'}}}}", {.resource = "1001", .record = "2a{'a'}"}, NULL, 1},
    {"new resource", "0a{0a{1001}12{12{2a{'a'}}}1a{'u'}}", {.resource = "1002"}, "0a{0a{1002}12{12{2a{'a'}}}1a{'u'}}", 1},
    {"a resource where there was none", "0a{12{12{2a{'a'}}}}", {.resource = "1002"}, "0a{0a{1002}12{12{2a{'a'}}}}", 1},
    {"a resource behind its scopes", "0a{12{12{2a{'a'}}}0a{1001}1a{'u'}}", {.resource = "1002"},
     "0a{0a{1002}12{12{2a{'a'}}}1a{'u'}}", 1},
    {"empty resource", "0a{0a{1001}12{12{}}}", {.resource = ""}, "0a{0a{}12{12{}}}", 1},
    {"new scope", "0a{12{0a{0a{'s'}}12{}}12{12{}}}", {.scope = "0a{'t'}"}, "0a{12{0a{0a{'t'}}12{}}12{0a{0a{'t'}}12{}}}", 2},
    {"one record", "0a{12{12{2a{'a'}}12{2a{'b'}}12{2a{'c'}}}}", {.record_from = "2a{'b'}", .record = "2a{'long'}"},
     "0a{12{12{2a{'a'}}12{2a{'long'}}12{2a{'c'}}}}", 3},
    {"one record gone", "0a{12{12{2a{'a'}}12{2a{'b'}}1a{'u'}}}", {.record_from = "2a{'a'}", .record = "-"},
     "0a{12{12{2a{'b'}}1a{'u'}}}", 1},
    {"a scope left empty goes", "0a{12{0a{}12{2a{'a'}}1a{'u'}}12{12{2a{'b'}}}}", {.record_from = "2a{'a'}", .record = "-"},
     "0a{12{12{2a{'b'}}}}", 1},
    {"a resource left empty goes", "0a{0a{1001}12{12{2a{'a'}}}}0a{12{12{2a{'b'}}}}",
     {.record_from = "2a{'a'}", .record = "-"}, "0a{12{12{2a{'b'}}}}", 1},
    {"what was empty before stays", "0a{12{}}0a{}0a{12{12{2a{'a'}}}}", {.record = "-"}, "0a{12{}}0a{}", 0},
    {"all gone", "0a{0a{1001}12{12{2a{'a'}}}}0a{12{12{2a{'b'}}}}", {.record = "-"}, "-", 0},
    {"all resources gone", "0a{0a{1001}12{12{}}}0a{}", {.resource = "-"}, "-", 0},
    {"all scopes gone", "0a{0a{1001}12{12{}}12{}}", {.scope = "-"}, "-", 0},
    {"new resource of an entry that goes", "0a{0a{1001}12{12{2a{'a'}}}}0a{12{12{2a{'b'}}}}",
     {.resource = "1003", .record_from = "2a{'a'}", .record = "-"}, "0a{0a{1003}12{12{2a{'b'}}}}", 1},
    {"all at once", "0a{0a{1001}12{0a{0a{'s'}}12{2a{'a'}}12{2a{'b'}}}}",
     {.resource = "1002", .scope = "0a{'t'}", .record_from = "2a{'b'}", .record = "2a{'c'}"},
     "0a{0a{1002}12{0a{0a{'t'}}12{2a{'a'}}12{2a{'c'}}}}", 2},
    {"unknown fields stay", "f80101 0a{f80102 12{f80103 12{2a{'a'}f80104}f80105}f80106}f80107", {.record = "2a{'b'}"},
     "f80101 0a{f80102 12{f80103 12{2a{'b'}}f80105}f80106}f80107", 1},
    {"odd tags and lengths", "8a00{ 12{ 9200 8200 2a{} } }", {.record = "2a{'b'}"}, "0a{12{12{2a{'b'}}}}", 1},
    {"no entries", "", {.record = "-"}, NULL, 0},
};

static void run_case(size_t i, struct otlp_rewriter rw)
{
    struct script script = cases[i].script;
    struct batch *in = batch_of(SIGNAL_TRACES, cases[i].in), *out;
    rw.ctx = &script;
    assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
    if (!cases[i].out) {
        assert_ptr_equal(out, in);
    } else if (cases[i].out[0] == '-') {
        assert_int_equal(out->nsegs, 0);
    } else {
        assert_int_equal(out->nsegs, 1);
        assert_wire(out->segs[0], cases[i].out);
        assert_int_equal(out->bytes, out->segs[0]->len);
    }
    assert_int_equal(out->records, cases[i].records);
    batch_unref(out);
    batch_unref(in);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct script *s = &cases[i].script;
        run_case(i, (struct otlp_rewriter){on_resource, on_scope, on_record, NULL});
        /* Callbacks that would keep everything may be left out. */
        run_case(i, (struct otlp_rewriter){s->resource ? on_resource : NULL, s->scope ? on_scope : NULL,
                                           s->record ? on_record : NULL, NULL});
    }
}

static void test_callbacks_see_what_will_be(void **state)
{
    (void)state;
    struct script s = {.resource = "1002", .scope = "0a{'t'}"};
    struct otlp_rewriter rw = {on_resource, on_scope, on_record, &s};
    struct batch *in = batch_of(SIGNAL_LOGS, "0a{0a{1001}12{0a{0a{'s'}}12{}}}"), *out;
    assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
    assert_string_equal(s.seen, "1002|0a0174");
    batch_unref(out);
    s.resource = s.scope = NULL;
    assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
    assert_string_equal(s.seen, "1001|0a0173");
    batch_unref(out);
    batch_unref(in);
    in = batch_of(SIGNAL_LOGS, "0a{12{12{}}}");
    assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
    assert_string_equal(s.seen, "|");
    batch_unref(out);
    batch_unref(in);
}

static void test_error(void **state)
{
    (void)state;
    size_t before = mem_used();
    struct script s = {.resource = "1002", .error = EDIT_ERROR};
    struct otlp_rewriter rw = {on_resource, NULL, on_record, &s};
    struct batch *in = batch_of(SIGNAL_LOGS, "0a{0a{1001}12{12{}}}"), *out;
    assert_int_equal(otlp_rewrite(&rw, in, &out), -ENOMEM);
    batch_unref(in);
    assert_int_equal(mem_used(), before);
}

/* Of several segments only the changed one is new. */
static void test_segments_are_shared(void **state)
{
    (void)state;
    struct script s = {.record_from = "2a{'b'}", .record = "2a{'c'}"};
    struct otlp_rewriter rw = {NULL, NULL, on_record, &s};
    struct buf *segs[] = {wire_text("0a{12{12{2a{'a'}}}}"), wire_text("0a{12{12{2a{'b'}}}}"), wire_text("0a{12{12{}}}")};
    struct batch *in = batch_new(SIGNAL_TRACES, segs, 3, 3), *out;
    assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
    assert_int_equal(out->nsegs, 3);
    assert_ptr_equal(out->segs[0], segs[0]);
    assert_wire(out->segs[1], "0a{12{12{2a{'c'}}}}");
    assert_ptr_equal(out->segs[2], segs[2]);
    assert_int_equal(out->records, 3);
    batch_unref(out);
    s.record = "-";
    assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
    assert_int_equal(out->nsegs, 2);
    assert_int_equal(out->records, 2);
    batch_unref(out);
    batch_unref(in);
}

/* Lengths grow and shrink over the places where a varint gets another byte. */
static void test_lengths(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 120, 127, 128, 200, 16370, 16384, 70000};
    for (size_t i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(sizes); i++) {
        size_t from = sizes[i / ARRAY_SIZE(sizes)], to = sizes[i % ARRAY_SIZE(sizes)];
        _cleanup_free_ char *text = malloc(200000);
        sprintf(text, "0a{12{12{2a{'%0*d'}}12{2a{'x'}}}}", (int)from + 1, 0);
        _cleanup_free_ char *record = malloc(200000);
        sprintf(record, "2a{'%0*d'}", (int)to + 1, 1);
        _cleanup_free_ char *expected = malloc(200000);
        sprintf(expected, "0a{12{12{%s}12{2a{'x'}}}}", record);
        _cleanup_free_ char *record_from = malloc(200000);
        sprintf(record_from, "2a{'%0*d'}", (int)from + 1, 0);
        struct script s = {.record_from = record_from, .record = record};
        struct otlp_rewriter rw = {NULL, NULL, on_record, &s};
        struct batch *in = batch_of(SIGNAL_TRACES, text), *out;
        assert_int_equal(otlp_rewrite(&rw, in, &out), 0);
        assert_wire(out->segs[0], expected);
        batch_unref(out);
        batch_unref(in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_callbacks_see_what_will_be),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_segments_are_shared),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
