/* Between the files of explain: one tree of maps and lists is filled, and then printed as it is (JSON) or in words. */
#ifndef MOTEL_EXPLAIN_PARTS_H
#define MOTEL_EXPLAIN_PARTS_H

#include "agent/config/bound.h"
#include "agent/explain.h"

struct explanation {
    struct arena *arena; /* holds all of it */
    const struct command_line *cl;
    const struct loaded *l;
    struct cfg_value *root;
    bool failed; /* out of memory */
};

/* Adding to the tree (`parent` is a map, or a list when `key` is NULL). Texts are put in without secrets. Never NULL. */
struct cfg_value *explain_map(struct explanation *e, struct cfg_value *parent, const char *key);
struct cfg_value *explain_list(struct explanation *e, struct cfg_value *parent, const char *key);
void explain_text(struct explanation *e, struct cfg_value *parent, const char *key, const char *fmt, ...) _printf_(4, 5);
void explain_flag(struct explanation *e, struct cfg_value *parent, const char *key, bool on);
/* "at": "collector.yaml:3:7"; nothing for what stands nowhere. */
void explain_at(struct explanation *e, struct cfg_value *parent, struct cfg_pos pos);
/* A copy of a formatted text in the arena; "" when out of memory. */
const char *explain_copy(struct explanation *e, const char *fmt, ...) _printf_(2, 3);

/* Something with a field table: a component, service::telemetry, motel. */
struct explained {
    const char *path; /* "receivers::otlp" */
    const struct cfg_field *fields;
    size_t size;
    const void *bound;
    const struct cfg_value *value; /* as given; NULL = not at all */
    struct cfg_pos pos;
    const struct component_settings *component; /* NULL = it is none */
};
/* Calls each() for every component (used: only those that a start would make), service::telemetry and motel. */
void explain_each(struct explanation *e, bool used, void (*each)(void *ctx, const struct explained *x), void *ctx);
bool explain_is_used(const struct service_settings *s, const struct component_settings *c);
/* Where the value at `path` below x->value was given; a place without a file when it was not. */
struct cfg_pos explain_place(const struct explanation *e, const struct explained *x, const char *path);

/* Whether the value at a full path, or a part of it, comes from a variable that is a secret somewhere. */
bool explain_is_hidden(const struct explanation *e, const char *path);

/* Each fills its part of e->root. */
void explain_pipelines(struct explanation *e);
void explain_settings(struct explanation *e);
void explain_uses(struct explanation *e); /* ports, destinations, files */
void explain_variables(struct explanation *e);
void explain_notes(struct explanation *e);
/* The tree in words. */
void explain_words(FILE *f, const struct cfg_value *root);

#endif
