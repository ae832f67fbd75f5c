#include "agent/pipeline/any_config.h"

#include <errno.h>
#include <math.h>

#include "agent/base/number.h"
#include "proto/any_value.h"

enum { ANY_ARRAY_FIELD = 5, ANY_KVLIST_FIELD = 6, ELEMENTS = 1, PAIR_KEY = 1, PAIR_VALUE = 2 };

static int write_list(const struct cfg_value *v, struct buf *out, struct err *reterr)
{
    size_t whole, item;
    int r = wire_begin(out, ANY_ARRAY_FIELD, &whole);
    for (size_t i = 0; r == 0 && i < v->n; i++) {
        r = wire_begin(out, ELEMENTS, &item);
        if (r == 0)
            r = any_config_write(v->items[i], out, reterr);
        if (r == 0)
            r = wire_end(out, item);
    }
    return r < 0 ? r : wire_end(out, whole);
}

static int write_pair(const char *key, const struct cfg_value *v, struct buf *out,
                      struct err *reterr)
{
    size_t pair, value;
    int r = wire_begin(out, ELEMENTS, &pair);
    if (r == 0)
        r = wire_put_str(out, PAIR_KEY, key);
    if (r == 0)
        r = wire_begin(out, PAIR_VALUE, &value);
    if (r == 0)
        r = any_config_write(v, out, reterr);
    if (r == 0)
        r = wire_end(out, value);
    return r < 0 ? r : wire_end(out, pair);
}

static int write_map(const struct cfg_value *v, struct buf *out, struct err *reterr)
{
    size_t whole;
    int r = wire_begin(out, ANY_KVLIST_FIELD, &whole);
    for (size_t i = 0; r == 0 && i < v->n; i++)
        r = write_pair(v->keys[i], v->items[i], out, reterr);
    return r < 0 ? r : wire_end(out, whole);
}

int any_config_write(const struct cfg_value *v, struct buf *out, struct err *reterr)
{
    struct any_value any = {ANY_EMPTY};
    switch (v->type) {
    case CFG_NULL: break;
    case CFG_BOOL: any = (struct any_value){ANY_BOOL, .b = v->b}; break;
    case CFG_INT: any = (struct any_value){ANY_INT, .i = v->i}; break;
    case CFG_UINT: any = (struct any_value){ANY_INT, .i = (int64_t)v->u}; break;
    case CFG_DOUBLE:
        any = (struct any_value){ANY_DOUBLE, .d = isnan(v->d) ? number_nan() : v->d};
        break;
    case CFG_STRING:
        any = (struct any_value){ANY_STRING, .bytes = bytes_of(v->text, v->text_len)};
        break;
    case CFG_TIMESTAMP:
        return err_set(reterr, -EINVAL,
                       "a time is no attribute value; put it in quotes to have a string");
    case CFG_LIST: return write_list(v, out, reterr);
    case CFG_MAP: return write_map(v, out, reterr);
    }
    return any_value_write(&any, out);
}
