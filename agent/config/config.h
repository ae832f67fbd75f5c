/* Loading: sources, merge, ${...} expansion (behaviour of the reference collector's confmap). */
#ifndef MOTEL_CONFIG_CONFIG_H
#define MOTEL_CONFIG_CONFIG_H

#include "agent/config/errors.h"
#include "agent/config/value.h"

/* One ${...}, where it stands and what became of it. */
struct cfg_reference {
    const char *name;      /* "env:NAME", the path of a file, "yaml" */
    struct cfg_pos pos;    /* of the value that it is in */
    const char *path;      /* of that value, "exporters::otlp_http::endpoint" */
    bool from_env, from_file; /* a variable that is set; a file */
    bool unset;            /* a variable with neither a value nor a default */
    bool whole;            /* it is the whole value; else a part of a text */
    bool secret;           /* it stands in a header, an auth block or under a key such as "password" */
    enum cfg_type type;    /* of the value */
    const char *text;      /* what it stands for; not to be shown when `secret`, nor before secrets_redact() */
};
struct config {
    struct arena *arena;          /* everything below lives here, bound structs too */
    const struct cfg_value *root; /* expanded and merged */
    size_t nwarnings;
    size_t nreferences, references_cap;
    struct cfg_reference *references; /* every ${...} that counts, in the order of the file; a value that itself has references: inner ones later */
    const char **warnings;        /* unset variables, trimmed newlines …; to be logged once; no secret values in them */
};
struct config_source {
    const char *uri;  /* a --config value: path, file:, env:, yaml: */
    bool is_set;      /* a --set value instead: a.b.c=v */
    /* Instead of `uri`: makes the document in memory, all of it in `a`. It is merged and expanded like a file. NULL after
     * adding what is wrong to errs. */
    struct cfg_value *(*make)(void *ctx, struct arena *a, struct cfg_errors *errs);
    void *ctx;
};
/* Merges the sources in order (all --set after all --config), expands, unescapes. On mistakes: NULL, and errs has them all.
 * Values of environment variables used in headers or auth blocks are put into agent/base/secrets. */
struct config *config_load(const struct config_source *sources, size_t n, struct cfg_errors *errs);
/* The same from text that is in memory; `name` stands in error texts. */
struct config *config_load_text(const char *name, const char *text, struct cfg_errors *errs);
struct config *config_free(struct config *c); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct config *, config_free)

#endif
