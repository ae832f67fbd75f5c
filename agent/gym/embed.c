#include "agent/gym/embed.h"

#include <errno.h>

#include "agent/base/json_text.h"

static int with_own(const struct component_type *own, const struct component_type ***ret)
{
    size_t n = 0;
    while (component_types[n])
        n++;
    const struct component_type **all = calloc(n + 2, sizeof(*all));
    if (!all)
        return -ENOMEM;
    memcpy(all, component_types, n * sizeof(*all));
    all[n] = own;
    *ret = all;
    return 0;
}

static int build(struct embed *e, const char *text, const struct component_type *own,
                 struct cfg_errors *errs)
{
    _cleanup_free_ const struct component_type **types = NULL;
    e->config = config_load_text("built-in", text, errs);
    if (!e->config)
        return -EINVAL;
    int r = with_own(own, &types);
    if (r == 0)
        r = service_settings_bind(e->config, types, errs, &e->settings);
    if (r == 0)
        r = log_configure(&e->settings->telemetry.logs, NULL);
    return r == 0 ? graph_build(e->host, e->settings, errs, &e->graph) : r;
}

int embed_start(struct embed *e, const char *text, const struct component_type *own,
                const struct motel_settings *settings, struct err *reterr)
{
    struct cfg_errors errs = {0};
    *e = (struct embed){.host = host_new(settings)};
    int r = e->host ? build(e, text, own, &errs) : -ENOMEM;
    if (r < 0 && errs.n)
        *reterr = errs.items[0];
    else if (r < 0)
        err_set(reterr, r, "cannot set up the pipeline: %s", strerror(-r));
    cfg_errors_done(&errs);
    if (r == 0) {
        host_set_graph(e->host, e->graph);
        r = graph_start(e->graph, reterr);
    }
    return r;
}

void embed_stop(struct embed *e, uint64_t deadline_ns)
{
    if (!e->graph)
        return;
    host_set_stopping(e->host, true);
    graph_stop(e->graph, deadline_ns);
}

void embed_done(struct embed *e)
{
    embed_stop(e, 0);
    graph_free(e->graph);
    host_free(e->host);
    config_free(e->config);
    *e = (struct embed){0};
}

int embed_put_string(struct buf *out, const char *text)
{
    _cleanup_buf_ struct buf *doubled = buf_new(0);
    int r = doubled ? 0 : -ENOMEM;
    for (; r == 0 && *text; text++) {
        if (*text == '$')
            r = buf_putc(doubled, '$');
        if (r == 0)
            r = buf_putc(doubled, *text);
    }
    return r == 0 ? json_text(out, buf_bytes(doubled)) : r;
}
