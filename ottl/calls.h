/* The functions of the language, by the names of the tables in editors.c and converters.c. Only those and their makers include it. */
#ifndef MOTEL_OTTL_CALLS_H
#define MOTEL_OTTL_CALLS_H

#include "ottl/functions.h"

#define OTTL_FN(name) int ottl_fn_##name(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
#define OTTL_PREPARE(name) int ottl_prepare_##name(struct ottl_call *c, struct err *reterr)

/* call() */
OTTL_FN(append); OTTL_FN(base64_encode); OTTL_FN(coalesce); OTTL_FN(concat); OTTL_FN(contains_value); OTTL_FN(convert);
OTTL_FN(convert_case); OTTL_FN(day); OTTL_FN(decode); OTTL_FN(delete_index); OTTL_FN(delete_key); OTTL_FN(delete_matching_keys);
OTTL_FN(duration); OTTL_FN(extract_patterns); OTTL_FN(flatten); OTTL_FN(fnv); OTTL_FN(format); OTTL_FN(format_time);
OTTL_FN(has_prefix); OTTL_FN(has_suffix); OTTL_FN(hex); OTTL_FN(hour); OTTL_FN(hours); OTTL_FN(index); OTTL_FN(is_bool);
OTTL_FN(is_double); OTTL_FN(is_empty); OTTL_FN(is_in_cidr); OTTL_FN(is_int); OTTL_FN(is_list); OTTL_FN(is_map); OTTL_FN(is_match);
OTTL_FN(is_root_span); OTTL_FN(is_string); OTTL_FN(is_valid_luhn); OTTL_FN(keep_keys); OTTL_FN(keep_matching_keys); OTTL_FN(keys);
OTTL_FN(len); OTTL_FN(limit); OTTL_FN(log); OTTL_FN(merge_maps); OTTL_FN(microseconds); OTTL_FN(milliseconds); OTTL_FN(minute);
OTTL_FN(minutes); OTTL_FN(month); OTTL_FN(nanosecond); OTTL_FN(nanoseconds); OTTL_FN(now); OTTL_FN(parse_int);
OTTL_FN(parse_json); OTTL_FN(parse_key_value); OTTL_FN(replace_all_matches); OTTL_FN(replace_all_patterns);
OTTL_FN(replace_match); OTTL_FN(replace_pattern); OTTL_FN(second); OTTL_FN(seconds); OTTL_FN(set); OTTL_FN(md5); OTTL_FN(sha1); OTTL_FN(sha256); OTTL_FN(sha512);
OTTL_FN(slice_to_map); OTTL_FN(sort); OTTL_FN(span_id); OTTL_FN(split); OTTL_FN(substring); OTTL_FN(time); OTTL_FN(to_camel_case);
OTTL_FN(to_key_value_string); OTTL_FN(to_lower_case); OTTL_FN(to_snake_case); OTTL_FN(to_upper_case); OTTL_FN(trace_id);
OTTL_FN(trim); OTTL_FN(trim_prefix); OTTL_FN(trim_suffix); OTTL_FN(truncate_all); OTTL_FN(truncate_time); OTTL_FN(unix);
OTTL_FN(unix_micro); OTTL_FN(unix_milli); OTTL_FN(unix_nano); OTTL_FN(unix_seconds); OTTL_FN(uuid); OTTL_FN(values);
OTTL_FN(weekday); OTTL_FN(year);

/* prepare(): checks constants, compiles patterns, loads zones */
OTTL_PREPARE(append); OTTL_PREPARE(coalesce); OTTL_PREPARE(convert_case); OTTL_PREPARE(decode); OTTL_PREPARE(flatten);
OTTL_PREPARE(format_time); OTTL_PREPARE(is_in_cidr); OTTL_PREPARE(key_value); OTTL_PREPARE(limit); OTTL_PREPARE(merge_maps);
OTTL_PREPARE(replace_all_patterns); OTTL_PREPARE(sort); OTTL_PREPARE(span_id); OTTL_PREPARE(time); OTTL_PREPARE(trace_id);
OTTL_PREPARE(truncate_all);
void ottl_release_time(void *data);

#endif
