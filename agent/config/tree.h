/* Building and combining value trees; for the files of this folder. Values are never changed once they are shared: every pass makes
 * new ones where something differs. All functions return NULL when out of memory. */
#ifndef MOTEL_CONFIG_TREE_H
#define MOTEL_CONFIG_TREE_H

#include "agent/config/errors.h"
#include "agent/config/value.h"

#define CFG_MAX_DEPTH 128 /* levels of maps and lists, after everything is put together */

struct cfg_value *cfg_new(struct arena *a, enum cfg_type type, struct cfg_pos pos);
/* A string value with a copy of the text. */
struct cfg_value *cfg_new_string(struct arena *a, struct cfg_pos pos, const char *text, size_t len);
/* A plain (unquoted) scalar, typed by the rules below. */
struct cfg_value *cfg_new_plain(struct arena *a, struct cfg_pos pos, const char *text, size_t len);
/* A shallow copy. */
struct cfg_value *cfg_copy(struct arena *a, const struct cfg_value *v);
/* Appends to a list (key NULL) or map. 0 or -ENOMEM. */
int cfg_append(struct arena *a, struct cfg_value *v, const char *key, struct cfg_pos key_pos, struct cfg_value *item);
/* The index of `key`, or v->n. */
size_t cfg_index(const struct cfg_value *v, const char *key);

/* Sets type and number of a value from its text, as YAML's core schema with the reference's additions reads a plain scalar: 0x, 0o, 0b
 * and leading-zero octals, `_` between digits, dates are timestamps, yes and no are strings. */
void cfg_resolve(struct cfg_value *v);

/* Two maps in one, deeply: `over` wins; lists and scalars are replaced. Anything else than two maps: `over`. */
struct cfg_value *cfg_merge(struct arena *a, struct cfg_value *base, struct cfg_value *over);
/* Turns keys such as "a::b" into nested maps, down to the first list. *ret is the result. 0, -ENOMEM, or -E2BIG past CFG_MAX_DEPTH. */
int cfg_nest(struct arena *a, struct cfg_value *v, int depth, struct cfg_value **ret);

/* The path of a value while a tree is walked; cut when it gets too long. */
struct cfg_path {
    char text[512];
    size_t len;
};
void cfg_path_set(struct cfg_path *p, const char *text);
/* Adds "::key" or "[i]"; returns what cfg_path_pop() takes to undo it. */
size_t cfg_path_push(struct cfg_path *p, const char *key);
size_t cfg_path_push_index(struct cfg_path *p, size_t i);
void cfg_path_pop(struct cfg_path *p, size_t mark);

/* Decodes one character above ASCII at `p`; its length, or 0 when it is not UTF-8. */
size_t cfg_decode_utf8(const unsigned char *p, size_t len, uint32_t *ret);

/* Parses one YAML document; `name` stands in positions (kept, not copied). An empty text is null. What is wrong is added to errs, and the
 * result is NULL. *ret_more (may be NULL) says that more documents follow. */
struct cfg_value *cfg_yaml_parse(struct arena *a, const char *name, const char *text, size_t len, struct cfg_errors *errs,
                                 bool *ret_more);

#endif
