#include "receivers/prometheus/names.h"

bool name_ends(struct bytes name, const char *suffix)
{
    const size_t n = strlen(suffix);
    return name.len >= n && memcmp(name.data + name.len - n, suffix, n) == 0;
}

struct bytes name_trim(struct bytes name)
{
    static const char *const suffixes[] = {"_bucket", "_count", "_sum",
                                           "_total",  "_info",  "_created"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (name_ends(name, suffixes[i]) && name.len > strlen(suffixes[i]))
            return bytes_of(name.data, name.len - strlen(suffixes[i]));
    return name;
}

struct bytes name_trim_type_and_unit(struct bytes name, bool counter, struct bytes unit)
{
    static const char total[] = "_total";
    if (counter && name_ends(name, total) && name.len > strlen(total))
        name.len -= strlen(total);
    if (unit.len && name.len > unit.len && name.data[name.len - unit.len - 1] == '_' &&
        memcmp(name.data + name.len - unit.len, unit.data, unit.len) == 0)
        name.len -= unit.len + 1;
    return name;
}

struct word {
    const char *word, *ucum;
};
static const struct word units[] = {
    {"days", "d"},          {"hours", "h"},         {"minutes", "min"},    {"seconds", "s"},
    {"milliseconds", "ms"}, {"microseconds", "us"}, {"nanoseconds", "ns"}, {"bytes", "By"},
    {"kibibytes", "KiBy"},  {"mebibytes", "MiBy"},  {"gibibytes", "GiBy"}, {"tibibytes", "TiBy"},
    {"kilobytes", "KBy"},   {"megabytes", "MBy"},   {"gigabytes", "GBy"},  {"terabytes", "TBy"},
    {"meters", "m"},        {"volts", "V"},         {"amperes", "A"},      {"joules", "J"},
    {"watts", "W"},         {"grams", "g"},         {"celsius", "Cel"},    {"hertz", "Hz"},
    {"ratio", "1"},         {"percent", "%"},       {NULL, NULL},
};
static const struct word per_units[] = {
    {"second", "s"}, {"minute", "m"}, {"hour", "h"}, {"day", "d"},
    {"week", "w"},   {"month", "mo"}, {"year", "y"}, {NULL, NULL},
};

static int put_word(struct bytes word, const struct word *words, struct buf *out)
{
    for (; words->word; words++)
        if (bytes_eq_str(word, words->word))
            return buf_append_str(out, words->ucum);
    return buf_append(out, word.data, word.len);
}

int unit_to_ucum(struct bytes unit, struct buf *out)
{
    static const char per[] = "_per_";
    const uint8_t *cut = unit.len ? memmem(unit.data, unit.len, per, strlen(per)) : NULL;
    if (!cut)
        return put_word(unit, units, out);
    const struct bytes first = bytes_of(unit.data, (size_t)(cut - unit.data));
    const struct bytes second = bytes_of(cut + strlen(per), unit.len - first.len - strlen(per));
    int r = put_word(first, units, out);
    if (r < 0 || second.len == 0)
        return r;
    r = buf_putc(out, '/');
    return r < 0 ? r : put_word(second, per_units, out);
}
