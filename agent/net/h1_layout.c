#include "agent/net/h1_layout.h"

/* One behind the other with one byte between them, which is NUL now. */
static bool follows(struct bytes first, struct bytes second)
{
    return first.data + first.len + 1 == second.data;
}

/* A line ends at `at` with CR LF. */
static bool line_ends(struct h1_layout *l, const uint8_t *at)
{
    l->next = at + 2;
    return at[0] == 0 && at[1] == 0;
}

static bool is_visible(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.data[i] <= ' ' || b.data[i] == 0x7f)
            return false;
    return b.len > 0;
}

static bool is_text(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if ((b.data[i] < ' ' && b.data[i] != '\t') || b.data[i] == 0x7f)
            return false;
    return true;
}

static bool is_version(struct bytes b)
{
    return b.len == 8 && memcmp(b.data, "HTTP/1.", 7) == 0 &&
           (b.data[7] == '0' || b.data[7] == '1');
}

struct bytes h1_layout_target(const char *target)
{
    struct bytes b = bytes_str(target);
    return is_visible(b) ? b : bytes_of(target, 0);
}

bool h1_layout_line(struct h1_layout *l, struct bytes method, struct bytes target,
                    struct bytes version)
{
    return is_visible(method) && target.len > 0 && is_version(version) && follows(method, target) &&
           follows(target, version) && line_ends(l, version.data + version.len);
}

bool h1_layout_field(struct h1_layout *l, struct bytes name, struct bytes value)
{
    const uint8_t *at = name.data + name.len;
    if (name.data != l->next || !is_visible(name) || *at != 0 || value.data <= at)
        return false;
    for (at++; at < value.data && (*at == ' ' || *at == '\t'); at++) {
    }
    return at == value.data && is_text(value) && line_ends(l, value.data + value.len);
}

bool h1_layout_end(const struct h1_layout *l, const uint8_t **ret_body)
{
    *ret_body = l->next + 2;
    return l->next[0] == 0 && l->next[1] == 0;
}
