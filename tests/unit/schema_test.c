/* The generated tables: order, numbers, names. Every field against the published descriptors: tests/e2e/test_descriptors.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/schema_pbc.h"

static void test_declaration_order(void **state)
{
    (void)state;
    const struct schema_message *m = schema_find("opentelemetry.proto.metrics.v1.NumberDataPoint");
    static const char *const order[] = {"attributes", "startTimeUnixNano", "timeUnixNano", "asDouble",
                                        "asInt",      "exemplars",         "flags"};
    assert_non_null(m);
    assert_int_equal(m->nfields, ARRAY_SIZE(order));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        assert_string_equal(m->fields[i].json_name, order[i]);
    const struct schema_field *f = schema_field(m, 6);
    assert_int_equal(f->kind, KIND_SFIXED64);
    assert_int_equal(f->wire_type, WIRE_I64);
    assert_int_equal(f->oneof, schema_field(m, 4)->oneof);
    assert_null(schema_field(m, 1));
    assert_null(schema_field(m, 1000));
}

static void test_ids_and_enums(void **state)
{
    (void)state;
    const struct schema_message *m = schema_find("opentelemetry.proto.trace.v1.Span");
    assert_int_equal(schema_field(m, 1)->id_len, 16);
    assert_int_equal(schema_field(m, 2)->id_len, 8);
    assert_int_equal(schema_field(m, 4)->id_len, 8);
    const struct schema_enum *e = schema_field(m, 6)->enumeration;
    assert_int_equal(e->nvalues, 6);
    assert_string_equal(e->values[2].name, "SPAN_KIND_SERVER");
    assert_int_equal(e->values[2].number, 2);
    const struct schema_field *sum =
        schema_field(schema_find("opentelemetry.proto.metrics.v1.HistogramDataPoint"), 5);
    assert_true(sum->oneof >= 0);
}

/* request.1 -> entry.1, .2, .3 -> scope entry.1, .2, .3 for every signal. */
static void test_requests_nest_alike(void **state)
{
    (void)state;
    for (enum signal s = 0; s < SIGNAL_COUNT; s++) {
        const struct schema_message *m = schema_request(s);
        for (int level = 0; level < 2; level++) {
            const struct schema_field *items = schema_field(m, level ? ENTRY_ITEMS : OTLP_ENTRIES);
            assert_true(items->repeated && items->kind == KIND_MESSAGE);
            m = items->message;
            assert_int_equal(schema_field(m, ENTRY_HEAD)->kind, KIND_MESSAGE);
            assert_false(schema_field(m, ENTRY_HEAD)->repeated);
            assert_int_equal(schema_field(m, ENTRY_SCHEMA_URL)->kind, KIND_STRING);
        }
        assert_non_null(schema_field(schema_response(s), 1)->message);
    }
    assert_null(schema_find("opentelemetry.proto.trace.v1.Nothing"));
}

/* The descriptors of protobuf-c know the same fields. */
static void test_descriptors(void **state)
{
    (void)state;
    const struct schema_message *m = schema_find("opentelemetry.proto.logs.v1.LogRecord");
    assert_string_equal(schema_descriptor(m)->name, m->name);
    assert_int_equal(schema_descriptor(m)->n_fields, m->nfields);
    for (unsigned i = 0; i < m->nfields; i++)
        assert_non_null(protobuf_c_message_descriptor_get_field(schema_descriptor(m), m->fields[i].number));
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(schema_descriptor(m), "severity_text");
    assert_int_equal(f->type, PROTOBUF_C_TYPE_BYTES);
}

/* A NUL in a text survives protobuf-c. */
static void test_nul_in_text(void **state)
{
    (void)state;
    const struct schema_message *m = schema_find("opentelemetry.proto.trace.v1.Span");
    static const uint8_t wire[] = {0x2a, 3, 'a', 0, 'b'};
    uint8_t again[16];
    ProtobufCMessage *u = protobuf_c_message_unpack(schema_descriptor(m), NULL, sizeof(wire), wire);
    assert_int_equal(protobuf_c_message_pack(u, again), sizeof(wire));
    assert_memory_equal(again, wire, sizeof(wire));
    protobuf_c_message_free_unpacked(u, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declaration_order), cmocka_unit_test(test_ids_and_enums),
        cmocka_unit_test(test_requests_nest_alike), cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_nul_in_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
