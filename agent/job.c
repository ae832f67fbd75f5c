#include "agent/job.h"

#include <errno.h>
#include <sys/stat.h>

#include "agent/gym/run_id.h"
#include "agent/gym/run_wire.h"
#include "agent/life.h"
#include "agent/pipeline/listen.h"
#include "agent/summary.h"

/* ---- where OTLP goes to ---- */

/* "0.0.0.0:4318" is an address to listen on, not one to send to. */
static void reachable(const char *address, char *ret, size_t size)
{
    const char *port = strrchr(address, ':');
    const bool any = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
    snprintf(ret, size, "%s%s", any ? "127.0.0.1" : "", any && port ? port : address);
}

static void find_address(const struct component_settings *s, struct host *h, const char *protocol,
                         const char *normal, char *ret, size_t size)
{
    char owner[1100], address[140];
    const struct cfg_value *p = cfg_get(cfg_get(s->value, "protocols"), protocol),
                           *endpoint = cfg_get(p, "endpoint"), *transport = cfg_get(p, "transport");
    if (!p || ret[0] || cfg_get(p, "tls"))
        return;
    snprintf(owner, sizeof(owner), "receiver %s %s", s->id, protocol);
    const char *text = endpoint && endpoint->text && *endpoint->text ? endpoint->text : normal;
    if ((!transport || !transport->text || strcmp(transport->text, "unix") != 0) &&
        served_find(h, owner, text, transport ? transport->text : NULL, address, sizeof(address)))
        reachable(address, ret, size);
}

void job_tell_ready(const struct run_link *link, const struct loaded *l, struct host *h)
{
    struct run_ready r = {.idle = l->idle != NULL,
                          .measures_memory = l->measures_memory,
                          .stop_ns = (uint64_t)l->motel.shutdown_timeout_ns};
    for (size_t i = 0; !r.idle && i < l->service->npipelines; i++) {
        const struct pipeline_settings *p = &l->service->pipelines[i];
        for (size_t k = 0; k < p->nreceivers; k++) {
            const struct component_settings *s = p->receivers[k];
            if (s->type->kind != KIND_RECEIVER || strcmp(s->type->name, "otlp") != 0)
                continue;
            find_address(s, h, "http", "localhost:4318", r.http, sizeof(r.http));
            find_address(s, h, "grpc", "localhost:4317", r.grpc, sizeof(r.grpc));
        }
    }
    run_link_ready(link, &r);
}

void job_tell_done(const struct run_link *link, struct host *h)
{
    _cleanup_buf_ struct buf *page = buf_new(0);
    if (!page || metrics_render(h, page) < 0)
        return;
    const struct bytes text = buf_bytes(page);
    const struct run_done d = {
        .spans = (uint64_t)summary_total(text, "otelcol_receiver_accepted_spans"),
        .points = (uint64_t)summary_total(text, "otelcol_receiver_accepted_metric_points"),
        .logs = (uint64_t)summary_total(text, "otelcol_receiver_accepted_log_records")};
    run_link_done(link, &d);
}

/* ---- the command ---- */

static int be_the_pipeline(void *ctx, const struct run_link *link)
{
    return life_run(ctx, link);
}

static int usage(void)
{
    fputs("Error: name the command to be run: motel run [--config FILE] -- COMMAND [ARGUMENT]...\n",
          stderr);
    return EXIT_NOT_RUN;
}

/* A run without telemetry leaves nothing behind. */
static void remove_empty(const char *file)
{
    struct stat st;
    if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        unlink(file);
}

int job_run(const struct command_line *cl)
{
    struct command_line copy = *cl;
    _cleanup_free_ char *id = gym_run_id(NULL), *file = NULL, *hint = NULL;
    if (cl->nwords == 0)
        return usage();
    if (id && !command_line_configured(cl) && run_default_file(id, &file) == 0 &&
        asprintf(&hint, "in %s; motel report %s looks at it", file, file) < 0)
        hint = NULL;
    const int code = run_command(&(struct run_command){.argv = cl->words,
                                                       .takes_otlp_variables = cl->ngym_configs > 0,
                                                       .hint = hint,
                                                       .pipeline = be_the_pipeline,
                                                       .ctx = &copy});
    if (file)
        remove_empty(file);
    return code;
}
