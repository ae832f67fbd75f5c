/* What every component shares: its base, its emission, its names. */
#include "agent/pipeline/component.h"

#include <stdarg.h>
#include <string.h>

#include "agent/base/secrets.h"
#include "agent/pipeline/graph.h"
#include "agent/pipeline/host.h"

/* Cuts a text that may have been cut within a character. */
static void trim_utf8(char *text)
{
    size_t n = strlen(text), i = n;
    while (i > 0 && n - i < 4 && ((unsigned char)text[i - 1] & 0xc0) == 0x80)
        i--;
    if (i == 0)
        return;
    unsigned char lead = (unsigned char)text[i - 1];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (n - (i - 1) < want)
        text[i - 1] = '\0';
}

enum verdict ack_answer(struct ack *a, enum verdict v, int status, const char *fmt, ...)
{
    a->now = (struct outcome){.status = status};
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(a->now.message, sizeof(a->now.message), fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof(a->now.message))
        trim_utf8(a->now.message);
    if (n >= (int)sizeof(a->now.message))
        secrets_trim(a->now.message);
    return v;
}

const char *component_kind_name(enum component_kind k)
{
    static const char *const names[] = {"receiver", "processor", "connector", "exporter",
                                        "extension"};
    return names[k];
}

const char *component_kind_section(enum component_kind k)
{
    static const char *const names[] = {"receivers", "processors", "connectors", "exporters",
                                        "extensions"};
    return names[k];
}

void component_init(struct component *c, const struct component_type *type,
                    const struct component_args *args)
{
    *c = (struct component){.type = type, .id = args->id, .host = args->host};
    c->logger = (struct logger){.id = args->id, .kind = component_kind_name(type->kind)};
    if (type->kind == KIND_PROCESSOR) {
        c->logger.signal = signal_name(args->signal);
        c->logger.pipeline = args->pipeline;
    }
}

enum verdict component_emit(struct component *c, struct batch *b, struct ack *ack)
{
    struct fanout *next = c->next[b->signal];
    if (c->type->kind == KIND_RECEIVER)
        host_note_times(c->host, b->signal, &b->times);
    if (next)
        return fanout_offer(next, b, ack);
    batch_unref(b);
    ack->now = (struct outcome){0};
    return VERDICT_OK;
}

static bool name_is(const char *name, const char *id, size_t len)
{
    return strncmp(name, id, len) == 0 && name[len] == '\0';
}

static bool has_alias(const struct component_type *t, const char *id, size_t len)
{
    for (const char *const *a = t->aliases; a && *a; a++)
        if (name_is(*a, id, len))
            return true;
    return false;
}

const struct component_type *component_type_find(enum component_kind kind, const char *id,
                                                 bool *ret_alias)
{
    size_t len = strcspn(id, "/");
    for (const struct component_type *const *t = component_types; *t; t++) {
        bool alias = (*t)->kind == kind && has_alias(*t, id, len);
        if ((*t)->kind != kind || (!alias && !name_is((*t)->name, id, len)))
            continue;
        if (ret_alias)
            *ret_alias = alias;
        return *t;
    }
    return NULL;
}
