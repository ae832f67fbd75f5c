/* What belongs to no component. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/base/cgroup.h"
#include "agent/doctor_parts.h"
#include "agent/summary.h"

#define FILES_WANTED 1024 /* fewer open files are worth a warning */
#define MIB(bytes) ((unsigned long long)(bytes) >> 20)

void doctor_check_servers(struct probe *p, const struct loaded *l)
{
    const char *endpoint = l->service->telemetry.metrics_endpoint;
    p->component = "service::telemetry::metrics";
    if (endpoint)
        probe_server(p, "", &(struct server_settings){.endpoint = endpoint}, true);
}

/* ---- the configuration ---- */

/* "file:1:2: path: the environment variable "X" is not set, so this is empty" and the like. */
static void check_warnings(struct probe *p, const struct config *c)
{
    p->component = "config";
    for (size_t i = 0; i < c->nwarnings; i++) {
        const char *text = c->warnings[i];
        const char *name = strstr(text, "the environment variable \"");
        char variable[128] = "";
        if (name && strstr(text, "is not set")) {
            name = strchr(name, '"') + 1;
            snprintf(variable, sizeof(variable), "%.*s", (int)strcspn(name, "\""), name);
        }
        if (*variable)
            probe_warn(p, "variable", variable, "set it, or write ${env:NAME:-default}", "%s",
                       text);
        else
            probe_warn(p, "warning", "", "", "%s", text);
    }
}

/* Variables that are set to nothing: no warning of a start, and as a rule a mistake. */
static void check_empty_variables(struct probe *p, const struct config *c)
{
    p->component = "config";
    for (size_t i = 0; i < c->nreferences; i++) {
        const struct cfg_reference *r = &c->references[i];
        if (r->from_env && !*r->text)
            probe_warn(p, "variable", strncmp(r->name, "env:", 4) == 0 ? r->name + 4 : r->name,
                       "set it to something", "%s:%d:%d: %s: the environment variable is empty",
                       r->pos.file, r->pos.line, r->pos.column, r->path);
    }
}

/* ---- files ---- */

static void check_logs(struct probe *p, const struct loaded *l)
{
    p->component = "service::telemetry::logs";
    for (const char *const *path = l->service->telemetry.logs.output_paths; path && *path; path++)
        if (strcmp(*path, "stderr") != 0 && strcmp(*path, "stdout") != 0)
            probe_output_file(p, *path, false, "is continued");
}

static void check_places(struct probe *p, const struct loaded *l)
{
    struct summary_place place;
    const struct motel_settings *m = &l->motel;
    p->component = "motel::spill_directory";
    if (m->spill_directory && *m->spill_directory)
        probe_directory(p, m->spill_directory, true);
    p->component = "motel::summary"; /* else it is beside a file that the exporter looks at */
    if (summary_place_find(l->service, m->summary, &place) == 0 && place.path && !place.beside)
        probe_output_file(p, place.path, false, "is replaced at the end");
    summary_place_done(&place);
}

/* What names the trusted authorities for all that names none itself: a store that cannot be read is
 * an empty one, which no error tells. */
static void check_authorities(struct probe *p)
{
    const char *file = getenv("SSL_CERT_FILE");
    struct certificate_info c;
    struct err e = {0};
    if (!file || !*file)
        return;
    if (tls_is_special_file(file))
        err_set(&e, -EINVAL, "%s: not an ordinary file", file);
    else if (certificate_info_load(file, NULL, &c, &e) == 0)
        return;
    p->component = "process";
    probe_warn(p, "certificate", "SSL_CERT_FILE",
               "correct the variable, or unset it: no server's certificate can be verified with it",
               "%s", e.text);
}

/* ---- limits ---- */

static void check_open_files(struct probe *p, const struct motel_settings *m)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    const unsigned long long soft = r.rlim_cur;
    const long long connections =
        m->max_connections ? m->max_connections : (long long)(soft - soft / 4);
    if (r.rlim_cur != RLIM_INFINITY && connections >= (long long)soft)
        probe_warn(p, "limit", "open files", "raise it (ulimit -n), or lower max_connections",
                   "%llu allowed, less than max_connections (%lld)", soft, connections);
    else if (soft < FILES_WANTED)
        probe_warn(p, "limit", "open files", "raise it: ulimit -n 4096",
                   "%llu allowed, which is room for %lld connections", soft, connections);
    else
        probe_ok(p, "limit", "open files", "%llu allowed, room for %lld connections", soft,
                 connections);
}

static void check_memory(struct probe *p, const struct motel_settings *m)
{
    uint64_t group = 0;
    const unsigned long long machine = machine_memory();
    const bool limited = cgroup_memory_limit(&group);
    const int64_t own = m->memory_limit_bytes;
    if (own > 0 && (unsigned long long)own > machine)
        probe_warn(p, "limit", "memory", "lower motel's memory_limit, or leave it out",
                   "memory_limit is %llu MiB, but the %s has %llu MiB: the kernel would end the "
                   "process before motel refuses data",
                   MIB(own), limited ? "container" : "machine", MIB(machine));
    else if (own > 0)
        probe_ok(p, "limit", "memory", "%llu MiB, of %llu MiB that the %s has", MIB(own),
                 MIB(machine), limited ? "container" : "machine");
    else if (own < 0 && limited)
        probe_ok(p, "limit", "memory", "%llu MiB, 80 %% of what the container has",
                 MIB(group / 5 * 4));
    else
        probe_ok(p, "limit", "memory", "none; the machine has %llu MiB", MIB(machine));
}

void doctor_check_rest(struct probe *p, const struct loaded *l)
{
    check_warnings(p, l->config);
    check_empty_variables(p, l->config);
    check_logs(p, l);
    check_places(p, l);
    check_authorities(p);
    p->component = "process";
    check_open_files(p, &l->motel);
    check_memory(p, &l->motel);
}
