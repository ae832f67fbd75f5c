/* What the functions of the language share. Only ottl/ includes it. */
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

/* ---- texts ---- */

/* Without the white space (of ASCII) around it. */
static inline bool ottl_is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static inline struct bytes ottl_trim_space(struct bytes s)
{
    while (s.len && ottl_is_space(s.data[0]))
        s = bytes_of(s.data + 1, s.len - 1);
    while (s.len && ottl_is_space(s.data[s.len - 1]))
        s.len--;
    return s;
}

/* ---- results ---- */

/* An empty buffer for a result, which may grow to what the evaluation may still use: then -EMSGSIZE. NULL when out of memory. */
struct buf *ottl_fn_buf(const struct ottl_env *env);
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

/* ---- tables ---- */

/* Parameters in a row of a table: PARAMS(P("target", STRING), OPTIONAL("n", LITERAL_INT)). */
#define P(name, kind) {name, OTTL_P_##kind, false}
#define OPTIONAL(name, kind) {name, OTTL_P_##kind, true}
#define PARAMS(...) (const struct ottl_param[]){__VA_ARGS__, {0}}

#endif
