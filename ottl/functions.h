/* What the functions of the language share, and their calls for the tables. Only ottl/ includes it. */
#ifndef MOTEL_OTTL_FUNCTIONS_H
#define MOTEL_OTTL_FUNCTIONS_H

#include <errno.h>

#include "agent/base/regex.h"
#include "ottl/function.h"

/* ---- arguments: 0, -EINVAL with env->err, -ENOMEM ---- */

/* A string argument. Optional and not given: `ret` stays as it is. */
int ottl_fn_string(const struct ottl_call *c, unsigned i, struct ottl_env *env, struct bytes *ret);
int ottl_fn_int(const struct ottl_call *c, unsigned i, struct ottl_env *env, int64_t *ret);
/* Constants; the default when they were not given. */
struct bytes ottl_fn_literal(const struct ottl_call *c, unsigned i, const char *def);
bool ottl_fn_literal_bool(const struct ottl_call *c, unsigned i, bool def);

/* ---- results ---- */

/* The text of `b` as a string in the arena of the evaluation. 0 or -ENOMEM. */
int ottl_fn_text(struct ottl_env *env, const struct buf *b, struct ottl_value *ret);
struct ottl_value ottl_map_value(struct ottl_map *m);
struct ottl_value ottl_list_value(struct ottl_list *l);
struct ottl_value ottl_time_value(int64_t ns);
struct ottl_value ottl_duration_value(int64_t ns);

/* ---- patterns ---- */

/* A regular expression or glob argument: compiled at the start when it is a literal, else for this call. */
struct ottl_pattern {
    const struct regex *re;
    struct regex *own;
};
static inline void ottl_pattern_done(struct ottl_pattern *p) { regex_free(p->own); }
int ottl_fn_pattern(const struct ottl_call *c, unsigned i, struct ottl_env *env, struct ottl_pattern *ret);
int ottl_fn_glob(const struct ottl_call *c, unsigned i, struct ottl_env *env, struct ottl_pattern *ret);
/* For the tables: prepare() and release() with the pattern in argument 1 or 2. */
int ottl_prepare_pattern_1(struct ottl_call *c, struct err *reterr);
int ottl_prepare_pattern_2(struct ottl_call *c, struct err *reterr);
int ottl_prepare_glob_1(struct ottl_call *c, struct err *reterr);
void ottl_release_pattern(void *data);

/* ---- the functions ---- */

#define OTTL_FN(name) int ottl_fn_##name(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
#define OTTL_PREPARE(name) int ottl_prepare_##name(struct ottl_call *c, struct err *reterr)

/* editors.c, editors_map.c, editors_replace.c */
OTTL_FN(set);
OTTL_FN(append);
OTTL_PREPARE(append);
OTTL_FN(delete_index);
OTTL_FN(delete_key);
OTTL_FN(delete_matching_keys);
OTTL_FN(keep_matching_keys);
OTTL_FN(keep_keys);
OTTL_FN(limit);
OTTL_PREPARE(limit);
OTTL_FN(truncate_all);
OTTL_PREPARE(truncate_all);
OTTL_FN(merge_maps);
OTTL_PREPARE(merge_maps);
OTTL_FN(flatten);
OTTL_PREPARE(flatten);
OTTL_FN(replace_pattern);
OTTL_FN(replace_all_patterns);
OTTL_PREPARE(replace_all_patterns);
OTTL_FN(replace_match);
OTTL_FN(replace_all_matches);

/* converters.c, convert_*.c */
OTTL_FN(coalesce);
OTTL_FN(concat);
OTTL_FN(contains_value);
OTTL_FN(convert);
OTTL_FN(convert_case);
OTTL_FN(day);
OTTL_FN(duration);
OTTL_FN(extract_patterns);
OTTL_FN(fnv);
OTTL_FN(format);
OTTL_FN(format_time);
OTTL_FN(has_prefix);
OTTL_FN(has_suffix);
OTTL_FN(hex);
OTTL_FN(hour);
OTTL_FN(hours);
OTTL_FN(index);
OTTL_FN(is_bool);
OTTL_FN(is_double);
OTTL_FN(is_empty);
OTTL_FN(is_int);
OTTL_FN(is_list);
OTTL_FN(is_map);
OTTL_FN(is_match);
OTTL_FN(is_root_span);
OTTL_FN(is_string);
OTTL_FN(keys);
OTTL_FN(len);
OTTL_FN(log);
OTTL_FN(microseconds);
OTTL_FN(milliseconds);
OTTL_FN(minute);
OTTL_FN(minutes);
OTTL_FN(month);
OTTL_FN(nanosecond);
OTTL_FN(nanoseconds);
OTTL_FN(now);
OTTL_FN(parse_int);
OTTL_FN(parse_json);
OTTL_FN(parse_key_value);
OTTL_FN(second);
OTTL_FN(seconds);
OTTL_FN(sha256);
OTTL_FN(slice_to_map);
OTTL_FN(sort);
OTTL_FN(span_id);
OTTL_FN(split);
OTTL_FN(substring);
OTTL_FN(time);
OTTL_FN(base64_encode);
OTTL_FN(decode);
OTTL_FN(is_in_cidr);
OTTL_FN(is_valid_luhn);
OTTL_FN(to_camel_case);
OTTL_FN(to_key_value_string);
OTTL_FN(to_lower_case);
OTTL_FN(to_snake_case);
OTTL_FN(to_upper_case);
OTTL_FN(trace_id);
OTTL_FN(trim);
OTTL_FN(trim_prefix);
OTTL_FN(trim_suffix);
OTTL_FN(truncate_time);
OTTL_FN(unix);
OTTL_FN(unix_micro);
OTTL_FN(unix_milli);
OTTL_FN(unix_nano);
OTTL_FN(unix_seconds);
OTTL_FN(uuid);
OTTL_FN(values);
OTTL_FN(weekday);
OTTL_FN(year);
OTTL_PREPARE(coalesce);
OTTL_PREPARE(convert_case);
OTTL_PREPARE(format_time);
OTTL_PREPARE(key_value);
OTTL_PREPARE(sort);
OTTL_PREPARE(span_id);
OTTL_PREPARE(time);
OTTL_PREPARE(trace_id);
OTTL_PREPARE(decode);
OTTL_PREPARE(is_in_cidr);
void ottl_release_time(void *data);

#endif
