/* The table of converters. */
#include "ottl/calls.h"
#include "ottl/format.h"

OTTL_FN(format)
{
    _cleanup_buf_ struct buf *out = ottl_fn_buf(env);
    struct ottl_list *args = NULL;
    if (!out)
        return -ENOMEM;
    int r = ottl_arg_list(c, 1, env, &args);
    if (r == 0)
        r = ottl_format(ottl_fn_literal(c, 0, ""), args->items, args->n, out);
    return r < 0 ? r : ottl_fn_text(env, out, ret);
}

#define ONE(name, kind) PARAMS(P(name, kind))
#define TWO(name, kind, second, second_kind) PARAMS(P(name, kind), P(second, second_kind))

#define KEY_VALUE_PARAMS(kind)                                                                     \
    P("target", kind), OPTIONAL("delimiter", LITERAL_STRING),                                      \
        OPTIONAL("pair_delimiter", LITERAL_STRING)

const struct ottl_function ottl_converters[] = {
    {"Base64Encode", PARAMS(P("target", STRING), OPTIONAL("variant", STRING)),
     .call = ottl_fn_base64_encode},
    {"Bool", ONE("target", BOOL_LIKE), .call = ottl_fn_convert},
    {"Coalesce", ONE("values", LIST_OF_ANY), .prepare = ottl_prepare_coalesce,
     .call = ottl_fn_coalesce},
    {"Concat", TWO("vals", LIST_OF_STRING_LIKE, "delimiter", STRING), .call = ottl_fn_concat},
    {"ContainsValue", TWO("target", LIST, "item", ANY), .call = ottl_fn_contains_value},
    {"ConvertCase", TWO("target", STRING, "to_case", LITERAL_STRING),
     .prepare = ottl_prepare_convert_case, .call = ottl_fn_convert_case},
    {"Day", ONE("time", TIME), .call = ottl_fn_day},
    {"Decode", TWO("target", ANY, "encoding", STRING), .prepare = ottl_prepare_decode,
     .call = ottl_fn_decode},
    {"Double", ONE("target", DOUBLE_LIKE), .call = ottl_fn_convert},
    {"Duration", ONE("duration", STRING), .call = ottl_fn_duration},
    {"ExtractPatterns", TWO("target", STRING, "pattern", STRING), .prepare = ottl_prepare_pattern_1,
     .release = ottl_release_pattern, .call = ottl_fn_extract_patterns},
    {"FNV", ONE("target", STRING), .call = ottl_fn_fnv},
    {"Format", TWO("format", LITERAL_STRING, "vals", LIST_OF_ANY), .call = ottl_fn_format},
    {"FormatTime", TWO("time", TIME, "format", LITERAL_STRING), .prepare = ottl_prepare_format_time,
     .call = ottl_fn_format_time},
    {"HasPrefix", TWO("target", STRING, "prefix", STRING), .call = ottl_fn_has_prefix},
    {"HasSuffix", TWO("target", STRING, "suffix", STRING), .call = ottl_fn_has_suffix},
    {"Hex", ONE("target", BYTES_LIKE), .call = ottl_fn_hex},
    {"Hour", ONE("time", TIME), .call = ottl_fn_hour},
    {"Hours", ONE("duration", DURATION), .call = ottl_fn_hours},
    {"Index", TWO("target", ANY, "value", ANY), .call = ottl_fn_index},
    {"Int", ONE("target", INT_LIKE), .call = ottl_fn_convert},
    {"IsBool", ONE("target", ANY), .call = ottl_fn_is_bool},
    {"IsDouble", ONE("target", ANY), .call = ottl_fn_is_double},
    {"IsEmpty", ONE("target", ANY), .call = ottl_fn_is_empty},
    {"IsInCIDR", TWO("target", STRING, "networks", LIST_OF_STRINGS),
     .prepare = ottl_prepare_is_in_cidr, .call = ottl_fn_is_in_cidr},
    {"IsInt", ONE("target", ANY), .call = ottl_fn_is_int},
    {"IsList", ONE("target", ANY), .call = ottl_fn_is_list},
    {"IsMap", ONE("target", ANY), .call = ottl_fn_is_map},
    {"IsMatch", TWO("target", STRING_LIKE, "pattern", STRING), .prepare = ottl_prepare_pattern_1,
     .release = ottl_release_pattern, .call = ottl_fn_is_match},
    {"IsRootSpan", NULL, OTTL_CONTEXT_BIT(OTTL_SPAN), .call = ottl_fn_is_root_span},
    {"IsString", ONE("target", ANY), .call = ottl_fn_is_string},
    {"IsValidLuhn", ONE("target", STRING_LIKE), .call = ottl_fn_is_valid_luhn},
    {"Keys", ONE("target", MAP), .call = ottl_fn_keys},
    {"Len", ONE("target", ANY), .call = ottl_fn_len},
    {"Log", ONE("target", DOUBLE_LIKE), .call = ottl_fn_log},
    {"MD5", ONE("target", STRING), .call = ottl_fn_md5},
    {"Microseconds", ONE("duration", DURATION), .call = ottl_fn_microseconds},
    {"Milliseconds", ONE("duration", DURATION), .call = ottl_fn_milliseconds},
    {"Minute", ONE("time", TIME), .call = ottl_fn_minute},
    {"Minutes", ONE("duration", DURATION), .call = ottl_fn_minutes},
    {"Month", ONE("time", TIME), .call = ottl_fn_month},
    {"Nanosecond", ONE("time", TIME), .call = ottl_fn_nanosecond},
    {"Nanoseconds", ONE("duration", DURATION), .call = ottl_fn_nanoseconds},
    {"Now", NULL, .call = ottl_fn_now},
    {"ParseInt", TWO("target", STRING, "base", INT), .call = ottl_fn_parse_int},
    {"ParseJSON", ONE("target", STRING), .call = ottl_fn_parse_json},
    {"ParseKeyValue", PARAMS(KEY_VALUE_PARAMS(STRING)), .prepare = ottl_prepare_key_value,
     .call = ottl_fn_parse_key_value},
    {"SHA1", ONE("target", STRING), .call = ottl_fn_sha1},
    {"SHA256", ONE("target", STRING), .call = ottl_fn_sha256},
    {"SHA512", ONE("target", STRING), .call = ottl_fn_sha512},
    {"Second", ONE("time", TIME), .call = ottl_fn_second},
    {"Seconds", ONE("duration", DURATION), .call = ottl_fn_seconds},
    {"SliceToMap",
     PARAMS(P("target", LIST), OPTIONAL("key_path", LIST_OF_LITERAL_STRINGS),
            OPTIONAL("value_path", LIST_OF_LITERAL_STRINGS)),
     .call = ottl_fn_slice_to_map},
    {"Sort", PARAMS(P("target", ANY), OPTIONAL("order", LITERAL_STRING)),
     .prepare = ottl_prepare_sort, .call = ottl_fn_sort},
    {"SpanID", ONE("target", BYTES_LIKE), .prepare = ottl_prepare_span_id, .call = ottl_fn_span_id},
    {"Split", TWO("target", STRING, "delimiter", STRING), .call = ottl_fn_split},
    {"String", ONE("target", STRING_LIKE), .call = ottl_fn_convert},
    {"Substring",
     PARAMS(P("target", STRING), P("start", INT), P("length", INT),
            OPTIONAL("utf8_safe", LITERAL_BOOL)),
     .call = ottl_fn_substring},
    {"Time",
     PARAMS(P("time", STRING), P("format", LITERAL_STRING), OPTIONAL("location", LITERAL_STRING),
            OPTIONAL("locale", LITERAL_STRING)),
     .prepare = ottl_prepare_time, .release = ottl_release_time, .call = ottl_fn_time},
    {"ToCamelCase", ONE("target", STRING), .call = ottl_fn_to_camel_case},
    {"ToKeyValueString", PARAMS(KEY_VALUE_PARAMS(MAP), OPTIONAL("sort_output", LITERAL_BOOL)),
     .prepare = ottl_prepare_key_value, .call = ottl_fn_to_key_value_string},
    {"ToLowerCase", ONE("target", STRING), .call = ottl_fn_to_lower_case},
    {"ToSnakeCase", ONE("target", STRING), .call = ottl_fn_to_snake_case},
    {"ToUpperCase", ONE("target", STRING), .call = ottl_fn_to_upper_case},
    {"TraceID", ONE("target", BYTES_LIKE), .prepare = ottl_prepare_trace_id,
     .call = ottl_fn_trace_id},
    {"Trim", PARAMS(P("target", STRING), OPTIONAL("replacement", LITERAL_STRING)),
     .call = ottl_fn_trim},
    {"TrimPrefix", TWO("target", STRING, "prefix", STRING), .call = ottl_fn_trim_prefix},
    {"TrimSuffix", TWO("target", STRING, "suffix", STRING), .call = ottl_fn_trim_suffix},
    {"TruncateTime", TWO("time", TIME, "duration", DURATION), .call = ottl_fn_truncate_time},
    {"UUID", NULL, .call = ottl_fn_uuid},
    {"Unix", PARAMS(P("seconds", INT), OPTIONAL("nanoseconds", INT)), .call = ottl_fn_unix},
    {"UnixMicro", ONE("time", TIME), .call = ottl_fn_unix_micro},
    {"UnixMilli", ONE("time", TIME), .call = ottl_fn_unix_milli},
    {"UnixNano", ONE("time", TIME), .call = ottl_fn_unix_nano},
    {"UnixSeconds", ONE("time", TIME), .call = ottl_fn_unix_seconds},
    {"Values", ONE("target", MAP), .call = ottl_fn_values},
    {"Weekday", ONE("time", TIME), .call = ottl_fn_weekday},
    {"Year", ONE("time", TIME), .call = ottl_fn_year},
    {0},
};
