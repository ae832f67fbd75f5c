/* The steps of loading; for config.c, expand.c, retrieve.c and redact.c. */
#ifndef MOTEL_CONFIG_LOAD_H
#define MOTEL_CONFIG_LOAD_H

#include "agent/config/config.h"
#include "agent/config/tree.h"

/* What a URI such as "env:NAME", "file:path" or "yaml:text" stands for. */
struct retrieved {
    const char *name; /* for positions: "env:NAME", the path of the file, "yaml" */
    const char *text; /* NUL ended, may hold NULs */
    size_t len;
    const char *unset; /* the name of a variable that has neither a value nor a default; the text is empty then */
    bool empty_string; /* "${env:X:-}": the empty string, not null */
    bool from_env, from_file;
};
/* Reads it; everything is in the arena. 0 or a negative errno with reterr. */
int cfg_retrieve(struct arena *a, const char *uri, struct retrieved *ret, struct err *reterr);
/* The text without the newlines that end a file. */
size_t cfg_trimmed_len(const struct retrieved *r);

/* Adds a warning unless the same one is there. */
void cfg_warn(struct config *c, const char *fmt, ...) _printf_(2, 3);

/* Replaces every ${...} below `root` and then turns "$$" into "$". Mistakes are in errs. NULL when out of memory. */
struct cfg_value *cfg_expand(struct config *c, struct cfg_value *root, struct cfg_errors *errs);

/* Whether what stands under such a key is sent as, or holds, a credential: headers, auth blocks, tokens, passwords, PEM texts. */
bool cfg_key_holds_secrets(const char *key);
/* Whether the text under such a key is itself a credential, even when it is written into the file. */
bool cfg_key_is_credential(const char *key);
/* Whether the text under such a key is a path, also within "htpasswd" and the like. */
bool cfg_key_names_file(const char *key);
/* Puts the password of a URL ("scheme://user:password@host") into the secrets. */
void cfg_note_url(const char *text);
/* Numbers below `v` whose text is a secret: their usual spelling becomes one, too. */
void cfg_note_numbers(const struct cfg_value *v);

#endif
