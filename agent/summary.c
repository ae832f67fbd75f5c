#include "agent/summary.h"

#include <stdlib.h>
#include <string.h>

/* The value of a line "name{labels} 12", 0 for a comment or another name. */
static int64_t line_value(const char *line, size_t len, const char *prefix)
{
    if (len < strlen(prefix) || strncmp(line, prefix, strlen(prefix)) != 0)
        return 0;
    const char *blank = memrchr(line, ' ', len);
    char digits[32];
    if (!blank || (size_t)(line + len - blank) > sizeof(digits))
        return 0;
    memcpy(digits, blank + 1, (size_t)(line + len - blank - 1));
    digits[line + len - blank - 1] = 0;
    return (int64_t)strtod(digits, NULL);
}

int64_t summary_total(struct bytes page, const char *prefix)
{
    int64_t total = 0;
    for (size_t at = 0; at < page.len;) {
        const char *line = (const char *)page.data + at;
        const char *end = memchr(line, '\n', page.len - at);
        const size_t len = end ? (size_t)(end - line) : page.len - at;
        total += line_value(line, len, prefix);
        at += len + 1;
    }
    return total;
}

void summary_log(struct host *h)
{
    _cleanup_buf_ struct buf *page = buf_new(0);
    if (!page || metrics_render(h, page) < 0)
        return;
    const struct bytes text = buf_bytes(page);
    const int64_t failed = summary_total(text, "otelcol_exporter_send_failed_");
    const int64_t refused = summary_total(text, "otelcol_receiver_refused_");
    log_at(failed ? LOG_WARN : LOG_INFO, NULL, "Records of this run",
           LOG_INT("received", summary_total(text, "otelcol_receiver_accepted_")),
           LOG_INT("refused", refused),
           LOG_INT("sent", summary_total(text, "otelcol_exporter_sent_")),
           LOG_INT("send_failed", failed));
}
