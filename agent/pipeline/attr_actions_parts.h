/* Shared by the two halves of attr_actions. */
#ifndef MOTEL_PIPELINE_ATTR_ACTIONS_PARTS_H
#define MOTEL_PIPELINE_ATTR_ACTIONS_PARTS_H

#include "agent/base/regex.h"
#include "agent/pipeline/attr_actions.h"

enum action_kind {
    ACTION_INSERT,
    ACTION_UPDATE,
    ACTION_UPSERT,
    ACTION_DELETE,
    ACTION_HASH,
    ACTION_EXTRACT,
    ACTION_CONVERT,
};

struct attr_action {
    enum action_kind kind;
    struct bytes key, from;       /* views of the config */
    struct buf *value, *fallback; /* encoded AnyValues; NULL = not given */
    struct regex *regex;          /* of `pattern`; NULL = not given */
    enum any_kind target;         /* convert */
};

struct attr_actions {
    const struct logger *lg;
    size_t n;
    struct attr_action items[];
};

#endif
