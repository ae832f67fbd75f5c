/*
 * Prints what the program knows of itself as one JSON object: commands, flags, help texts,
 * settings, components with their tables of keys. manual.py makes the man pages and the completions
 * of it when the program is built.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/base/cleanup.h"
#include "agent/commands_parts.h"
#include "agent/load.h"
#include "agent/pipeline/component.h"
#include "agent/pipeline/settings.h"

static json_t *text_of(FILE *f, char **text)
{
    json_t *ret = fclose(f) == 0 ? json_string(*text) : NULL;
    free(*text);
    return ret;
}

/* What a function prints, as a string. */
#define PRINTED(call)                                                                              \
    ({                                                                                             \
        char *text_ = NULL;                                                                        \
        size_t len_ = 0;                                                                           \
        FILE *to_ = open_memstream(&text_, &len_);                                                 \
        if (!to_)                                                                                  \
            abort();                                                                               \
        (call);                                                                                    \
        text_of(to_, &text_);                                                                      \
    })

static json_t *keys_of(const struct cfg_field *fields)
{
    return fields ? PRINTED(cfg_print_docs(to_, fields)) : json_string("");
}

static json_t *command_names(unsigned bits)
{
    json_t *names = json_array();
    if (bits & COMMAND_BIT(COMMAND_RUN))
        json_array_append_new(names, json_string(""));
    for (size_t i = 0; i < command_nwords; i++)
        if (bits & COMMAND_BIT(command_words[i].command))
            json_array_append_new(names, json_string(command_words[i].name));
    return names;
}

static json_t *commands(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < command_nwords; i++) {
        const enum command command = command_words[i].command;
        const bool again = i > 0 && command_words[i - 1].command == command;
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "name", command_words[i].name,
                                              "second_name", json_boolean(again), "help",
                                              PRINTED(command_help_of(to_, command))));
    }
    return list;
}

static json_t *flags(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < command_nflags; i++) {
        const struct command_flag *f = &command_flags[i];
        const char letter[2] = {f->letter, '\0'};
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s*, s:o}", "name", f->name,
                                              "letter", letter, "bare", (int)f->bare, "choices",
                                              f->choices, "commands", command_names(f->commands)));
    }
    return list;
}

static json_t *settings(void)
{
    json_t *list = json_array();
    for (const struct cfg_field *f = motel_fields; f->key; f++) {
        char flag[64], variable[64];
        motel_flag_name(f, flag, sizeof(flag));
        motel_variable_name(f, variable, sizeof(variable));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:b}", "key", f->key, "flag", flag,
                                        "variable", variable, "bool", (int)(f->kind == BIND_BOOL)));
    }
    return list;
}

static json_t *signals(unsigned bits)
{
    json_t *list = json_array();
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (bits & SIGNAL_BIT(s))
            json_array_append_new(list, json_string(signal_name((enum signal)s)));
    return list;
}

static json_t *components(void)
{
    json_t *list = json_array();
    for (const struct component_type *const *at = component_types; *at; at++) {
        const struct component_type *t = *at;
        json_t *aliases = json_array();
        for (const char *const *a = t->aliases; a && *a; a++)
            json_array_append_new(aliases, json_string(*a));
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "section",
                                              component_kind_section(t->kind), "name", t->name,
                                              "help", t->help ? t->help : "", "aliases", aliases,
                                              "accepts", signals(t->accepts), "emits",
                                              signals(t->emits), "keys", keys_of(t->fields)));
    }
    return list;
}

int main(void)
{
    json_t *all = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "version", MOTEL_VERSION, "help",
        PRINTED(command_help(to_, COMMAND_RUN)), "commands", commands(), "flags", flags(),
        "settings", settings(), "settings_keys", keys_of(motel_fields), "service_keys",
        keys_of(service_fields), "gates", PRINTED(feature_gates_print(to_, NULL, NULL)),
        "components", components(), "example", load_default_config);
    const bool ok = all && json_dumpf(all, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF &&
                    fflush(stdout) == 0;
    json_decref(all);
    return ok ? 0 : 1;
}
