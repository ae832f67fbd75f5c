#include "proto/count.h"

#include "proto/check.h"

uint32_t level_count(enum signal s, enum level level, struct bytes msg)
{
    if (level == level_counted(s))
        return 1;
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    bool leaf = level + 1 == level_counted(s);
    uint32_t n = 0;
    while (wire_next(&r, &f) > 0)
        if (level_items(level, f.number))
            n += leaf ? 1 : level_count(s, level + 1, f.bytes);
    return n;
}

uint32_t otlp_count(enum signal s, struct bytes wire)
{
    return level_count(s, LEVEL_REQUEST, wire);
}
