#include "agent/net/h1_layout.h"

#include <microhttpd.h>

#include "agent/net/head.h"

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
    if (!http_is_token(method) || target.len == 0 || !is_version(version))
        return false;
    return l->anywhere || (follows(method, target) && follows(target, version) &&
                           line_ends(l, version.data + version.len));
}

bool h1_layout_field(struct h1_layout *l, struct bytes name, struct bytes value)
{
    const uint8_t *at = name.data + name.len;
    if (l->anywhere)
        return http_is_token(name) && is_text(value);
    if (name.data != l->next || !http_is_token(name) || *at != 0 || value.data <= at)
        return false;
    for (at++; at < value.data && (*at == ' ' || *at == '\t'); at++) {
    }
    return at == value.data && is_text(value) && line_ends(l, value.data + value.len);
}

struct bytes h1_layout_head(struct MHD_Connection *mc, const char *method)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return bytes_of(method, info ? info->header_size : 0);
}

bool h1_layout_end(const struct h1_layout *l, struct bytes head, const uint8_t **ret_body)
{
    *ret_body = NULL;
    if (l->anywhere)
        return true;
    *ret_body = l->next + 2;
    return *ret_body == head.data + head.len && l->next[0] == 0 && l->next[1] == 0;
}
