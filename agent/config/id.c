/* Component ids: "type" or "type/name", by the rules of the reference collector. */
#include <ctype.h>
#include <errno.h>

#include "agent/config/bind.h"
#include "agent/config/tree.h"

#define MAX_TYPE_BYTES 63
#define MAX_NAME_BYTES 1024

/* Characters above ASCII that a name must not have: Unicode 14's classes Z (separators), S
 * (symbols) and C (control, format, surrogate, private use). Unassigned characters may lie inside a
 * range. */
static const struct range {
    uint32_t first, last;
} refused[] = {
    {0x80, 0xa0},       {0xa2, 0xa6},        {0xa8, 0xa9},       {0xac, 0xb1},
    {0xb4, 0xb4},       {0xb8, 0xb8},        {0xd7, 0xd7},       {0xf7, 0xf7},
    {0x2c2, 0x2c5},     {0x2d2, 0x2df},      {0x2e5, 0x2eb},     {0x2ed, 0x2ed},
    {0x2ef, 0x2ff},     {0x375, 0x375},      {0x384, 0x385},     {0x3f6, 0x3f6},
    {0x482, 0x482},     {0x58d, 0x58f},      {0x600, 0x608},     {0x60b, 0x60b},
    {0x60e, 0x60f},     {0x61c, 0x61c},      {0x6dd, 0x6de},     {0x6e9, 0x6e9},
    {0x6fd, 0x6fe},     {0x70f, 0x70f},      {0x7f6, 0x7f6},     {0x7fe, 0x7ff},
    {0x888, 0x888},     {0x890, 0x891},      {0x8e2, 0x8e2},     {0x9f2, 0x9f3},
    {0x9fa, 0x9fb},     {0xaf1, 0xaf1},      {0xb70, 0xb70},     {0xbf3, 0xbfa},
    {0xc7f, 0xc7f},     {0xd4f, 0xd4f},      {0xd79, 0xd79},     {0xe3f, 0xe3f},
    {0xf01, 0xf03},     {0xf13, 0xf13},      {0xf15, 0xf17},     {0xf1a, 0xf1f},
    {0xf34, 0xf34},     {0xf36, 0xf36},      {0xf38, 0xf38},     {0xfbe, 0xfc5},
    {0xfc7, 0xfcf},     {0xfd5, 0xfd8},      {0x109e, 0x109f},   {0x1390, 0x1399},
    {0x166d, 0x166d},   {0x1680, 0x1680},    {0x17db, 0x17db},   {0x180e, 0x180e},
    {0x1940, 0x1940},   {0x19de, 0x19ff},    {0x1b61, 0x1b6a},   {0x1b74, 0x1b7c},
    {0x1fbd, 0x1fbd},   {0x1fbf, 0x1fc1},    {0x1fcd, 0x1fcf},   {0x1fdd, 0x1fdf},
    {0x1fed, 0x1fef},   {0x1ffd, 0x200f},    {0x2028, 0x202f},   {0x2044, 0x2044},
    {0x2052, 0x2052},   {0x205f, 0x206f},    {0x207a, 0x207c},   {0x208a, 0x208c},
    {0x20a0, 0x20c0},   {0x2100, 0x2101},    {0x2103, 0x2106},   {0x2108, 0x2109},
    {0x2114, 0x2114},   {0x2116, 0x2118},    {0x211e, 0x2123},   {0x2125, 0x2125},
    {0x2127, 0x2127},   {0x2129, 0x2129},    {0x212e, 0x212e},   {0x213a, 0x213b},
    {0x2140, 0x2144},   {0x214a, 0x214d},    {0x214f, 0x214f},   {0x218a, 0x2307},
    {0x230c, 0x2328},   {0x232b, 0x244a},    {0x249c, 0x24e9},   {0x2500, 0x2767},
    {0x2794, 0x27c4},   {0x27c7, 0x27e5},    {0x27f0, 0x2982},   {0x2999, 0x29d7},
    {0x29dc, 0x29fb},   {0x29fe, 0x2bff},    {0x2ce5, 0x2cea},   {0x2e50, 0x2e51},
    {0x2e80, 0x3000},   {0x3004, 0x3004},    {0x3012, 0x3013},   {0x3020, 0x3020},
    {0x3036, 0x3037},   {0x303e, 0x303f},    {0x309b, 0x309c},   {0x3190, 0x3191},
    {0x3196, 0x319f},   {0x31c0, 0x31e3},    {0x3200, 0x321e},   {0x322a, 0x3247},
    {0x3250, 0x3250},   {0x3260, 0x327f},    {0x328a, 0x32b0},   {0x32c0, 0x33ff},
    {0x4dc0, 0x4dff},   {0xa490, 0xa4c6},    {0xa700, 0xa716},   {0xa720, 0xa721},
    {0xa789, 0xa78a},   {0xa828, 0xa82b},    {0xa836, 0xa839},   {0xaa77, 0xaa79},
    {0xab5b, 0xab5b},   {0xab6a, 0xab6b},    {0xd800, 0xf8ff},   {0xfb29, 0xfb29},
    {0xfbb2, 0xfbc2},   {0xfd40, 0xfd4f},    {0xfdcf, 0xfdcf},   {0xfdfc, 0xfdff},
    {0xfe62, 0xfe62},   {0xfe64, 0xfe66},    {0xfe69, 0xfe69},   {0xfeff, 0xfeff},
    {0xff04, 0xff04},   {0xff0b, 0xff0b},    {0xff1c, 0xff1e},   {0xff3e, 0xff3e},
    {0xff40, 0xff40},   {0xff5c, 0xff5c},    {0xff5e, 0xff5e},   {0xffe0, 0xfffd},
    {0x10137, 0x1013f}, {0x10179, 0x10189},  {0x1018c, 0x101fc}, {0x10877, 0x10878},
    {0x10ac8, 0x10ac8}, {0x110bd, 0x110bd},  {0x110cd, 0x110cd}, {0x1173f, 0x1173f},
    {0x11fd5, 0x11ff1}, {0x13430, 0x13438},  {0x16b3c, 0x16b3f}, {0x16b45, 0x16b45},
    {0x1bc9c, 0x1bc9c}, {0x1bca0, 0x1bca3},  {0x1cf50, 0x1d164}, {0x1d16a, 0x1d16c},
    {0x1d173, 0x1d17a}, {0x1d183, 0x1d184},  {0x1d18c, 0x1d1a9}, {0x1d1ae, 0x1d241},
    {0x1d245, 0x1d245}, {0x1d300, 0x1d356},  {0x1d6c1, 0x1d6c1}, {0x1d6db, 0x1d6db},
    {0x1d6fb, 0x1d6fb}, {0x1d715, 0x1d715},  {0x1d735, 0x1d735}, {0x1d74f, 0x1d74f},
    {0x1d76f, 0x1d76f}, {0x1d789, 0x1d789},  {0x1d7a9, 0x1d7a9}, {0x1d7c3, 0x1d7c3},
    {0x1d800, 0x1d9ff}, {0x1da37, 0x1da3a},  {0x1da6d, 0x1da74}, {0x1da76, 0x1da83},
    {0x1da85, 0x1da86}, {0x1e14f, 0x1e14f},  {0x1e2ff, 0x1e2ff}, {0x1ecac, 0x1ecac},
    {0x1ecb0, 0x1ecb0}, {0x1ed2e, 0x1ed2e},  {0x1eef0, 0x1f0f5}, {0x1f10d, 0x1fbca},
    {0xe0001, 0xe007f}, {0xf0000, 0x10fffd},
};

static bool is_refused(uint32_t c)
{
    size_t low = 0, high = ARRAY_SIZE(refused);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (c > refused[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ARRAY_SIZE(refused) && c >= refused[low].first;
}

/* Letters, digits and punctuation; the ASCII symbols are $ + < = > ^ ` | ~. */
static bool is_ascii_name(unsigned char c)
{
    return c > 0x20 && c < 0x7f && !strchr("$+<=>^`|~", c);
}

static bool is_name(const char *name, size_t len)
{
    const unsigned char *p = (const unsigned char *)name, *end = name ? p + len : p;
    while (p < end) {
        uint32_t c;
        size_t n = *p < 0x80 ? is_ascii_name(*p) : cfg_decode_utf8(p, (size_t)(end - p), &c);
        if (n == 0 || (*p >= 0x80 && is_refused(c)))
            return false;
        p += n;
    }
    return true;
}

static bool is_type(const char *type, size_t len)
{
    if (len > MAX_TYPE_BYTES || !isalpha((unsigned char)*type))
        return false;
    for (size_t i = 1; i < len; i++)
        if (!isalnum((unsigned char)type[i]) && type[i] != '_')
            return false;
    return true;
}

/* The part without white space around it. */
static struct bytes trimmed(const char *p, size_t len)
{
    while (len && isspace((unsigned char)*p)) {
        p++;
        len--;
    }
    while (len && isspace((unsigned char)p[len - 1]))
        len--;
    return bytes_of(p, len);
}

static void split_id(const char *text, struct bytes *type, struct bytes *name, bool *has_name)
{
    const char *slash = strchr(text, '/');
    *has_name = slash != NULL;
    *type = trimmed(text, slash ? (size_t)(slash - text) : strlen(text));
    *name = slash ? trimmed(slash + 1, strlen(slash + 1)) : bytes_of(NULL, 0);
}

int cfg_parse_id(const char *text, struct err *reterr)
{
    struct bytes type, name;
    bool has_name;
    split_id(text, &type, &name, &has_name);
    if (type.len == 0)
        return has_name ? err_set(reterr, -EINVAL,
                                  "in \"%.100s\" id: there is no type before the /", text)
                        : err_set(reterr, -EINVAL, "a component id must not be empty");
    if (has_name && name.len == 0)
        return err_set(reterr, -EINVAL, "in \"%.100s\" id: there is no name after the /", text);
    if (!is_type((const char *)type.data, type.len))
        return err_set(
            reterr, -EINVAL,
            "in \"%.100s\" id: a type is a letter, then letters, digits and _, at most %d", text,
            MAX_TYPE_BYTES);
    if (name.len > MAX_NAME_BYTES)
        return err_set(reterr, -EINVAL, "in \"%.100s\" id: the name is longer than %d bytes", text,
                       MAX_NAME_BYTES);
    if (!is_name((const char *)name.data, name.len))
        return err_set(reterr, -EINVAL,
                       "in \"%.100s\" id: a name has no white space, control characters or symbols",
                       text);
    return 0;
}

const char *cfg_trim_id(struct arena *a, const char *text)
{
    struct bytes type, name;
    bool has_name;
    split_id(text, &type, &name, &has_name);
    if (type.len + has_name + name.len == strlen(text))
        return text;
    return arena_printf(a, "%.*s%s%.*s", (int)type.len, type.data, has_name ? "/" : "",
                        (int)name.len, has_name ? (const char *)name.data : "");
}
