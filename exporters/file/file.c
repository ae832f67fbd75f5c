/*
 * The file exporter: every batch becomes one record of a file, a line of OTLP/JSON or a
 * length-prefixed message. A thread of its own writes; what it holds at a stop is written before
 * the program ends.
 */
#include <errno.h>
#include <stddef.h>

#include "agent/base/clock.h"
#include "agent/pipeline/probe.h"
#include "exporters/file/writer.h"

#define DEFAULT_MEGABYTES 100

struct rotation_config {
    int64_t max_megabytes, max_days, max_backups;
    bool localtime;
};

struct group_config {
    bool enabled;
    const char *resource_attribute;
    int64_t max_open_files;
};

struct file_config {
    const char *path, *format, *compression;
    bool append, create_directory;
    int64_t compression_level, flush_interval_ns, directory_permissions;
    enum cfg_presence directory_permissions_given;
    struct rotation_config *rotation;
    struct group_config group_by;
};

struct file_exporter {
    struct component base;
    const struct file_config *config;
    struct renderer *renderer;
    struct rotation rotation;
    struct writer *writer;
    bool left_behind; /* the writer's thread hangs and has pointers to this */
};

extern const struct component_type exporter_file;

/* ---- life cycle ---- */

static void file_destroy(struct component *c)
{
    struct file_exporter *f = (struct file_exporter *)c;
    if (!f || f->left_behind)
        return;
    renderer_free(f->renderer);
    free(f);
}

static int file_create(const struct component_args *args, struct component **ret,
                       struct err *reterr)
{
    struct file_exporter *f = calloc(1, sizeof(*f));
    if (!f)
        return err_set(reterr, -ENOMEM, "out of memory");
    const struct file_config *c = f->config = args->config;
    component_init(&f->base, &exporter_file, args);
    if (c->rotation)
        f->rotation = (struct rotation){
            .max_bytes =
                (c->rotation->max_megabytes ? c->rotation->max_megabytes : DEFAULT_MEGABYTES) << 20,
            .max_days = c->rotation->max_days,
            .max_backups = c->rotation->max_backups,
            .localtime = c->rotation->localtime,
        };
    f->renderer =
        renderer_new(strcmp(c->format, "proto") == 0, *c->compression, (int)c->compression_level);
    if (!f->renderer) {
        file_destroy(&f->base);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    *ret = &f->base;
    return 0;
}

static struct output *make_output(struct file_exporter *f)
{
    const struct file_config *c = f->config;
    return output_new(&(struct output_options){
        .host = f->base.host,
        .renderer = f->renderer,
        .file =
            {
                .path = c->path,
                .content = renderer_content(f->renderer),
                .framed = renderer_framed(f->renderer),
                .truncate = !c->append && !c->rotation,
                .mode = host_settings(f->base.host)->file_mode,
                .rotation = c->rotation ? &f->rotation : NULL,
                .logger = &f->base.logger,
            },
        .grouped = c->group_by.enabled,
        .directory_mode = (mode_t)c->directory_permissions,
        .max_open_files = (size_t)c->group_by.max_open_files,
    });
}

static int file_start(struct component *component, struct err *reterr)
{
    struct file_exporter *f = (struct file_exporter *)component;
    const struct file_config *c = f->config;
    int r = c->create_directory && !c->group_by.enabled
                ? outfile_make_directory(c->path, (mode_t)c->directory_permissions)
                : 0;
    if (r < 0)
        return err_set(reterr, r, "cannot make the directory of \"%s\": %s", c->path, strerror(-r));
    struct output *output = make_output(f);
    if (!output)
        return err_set(reterr, -ENOMEM, "out of memory");
    r = c->group_by.enabled ? 0 : output_select(output, NULL, reterr);
    if (r < 0) {
        output_free(output);
        return r;
    }
    return writer_start(
        &f->base, output, c->flush_interval_ns ? (uint64_t)c->flush_interval_ns : NS_PER_S,
        c->group_by.enabled ? c->group_by.resource_attribute : NULL, &f->writer, reterr);
}

static void file_stop(struct component *c, uint64_t deadline_ns)
{
    struct file_exporter *f = (struct file_exporter *)c;
    if (!f->writer || f->left_behind)
        return;
    if (writer_stop(f->writer, deadline_ns))
        f->writer = NULL;
    else
        f->left_behind = true;
}

static enum verdict file_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct file_exporter *f = (struct file_exporter *)c;
    if (f->writer)
        return writer_offer(f->writer, b, ack);
    batch_unref(b);
    return ack_answer(ack, VERDICT_RETRY, 0, "shutting down");
}

/* With group_by the files have names of their own, in the folder of what stands before the star. */
static void file_probe(struct component *component, struct probe *p)
{
    const struct file_config *c = ((struct file_exporter *)component)->config;
    if (p->step != PROBE_OUTSIDE)
        return;
    if (!c->group_by.enabled) {
        probe_output_file(p, c->path, c->create_directory,
                          c->append || c->rotation ? "is continued" : "is emptied at the start");
        return;
    }
    _cleanup_free_ char *folder = strndup(c->path, strcspn(c->path, "*"));
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        slash[slash == folder] = 0;
    probe_directory(p, slash ? folder : ".", true);
}

/* ---- configuration ---- */

static int check_group_by(const struct file_config *c, struct err *reterr)
{
    const char *star = strchr(c->path, '*');
    if (!c->group_by.enabled)
        return 0;
    if (!star || strchr(star + 1, '*'))
        return err_at(reterr, "path",
                      "must contain exactly one * when group_by is enabled, got \"%s\"", c->path);
    if (star == c->path)
        return err_at(reterr, "path", "must not start with * when group_by is enabled, got \"%s\"",
                      c->path);
    if (!*c->group_by.resource_attribute)
        return err_at(reterr, "group_by::resource_attribute",
                      "must not be empty when group_by is enabled");
    return 0;
}

static int check_directory(const struct file_config *c, struct err *reterr)
{
    const int64_t p = c->directory_permissions;
    if (c->directory_permissions_given == CFG_GIVEN && !c->create_directory)
        return err_at(reterr, "directory_permissions", "needs create_directory to be true");
    if (p < 0 || (p & ~(int64_t)0777))
        return err_at(reterr, "directory_permissions",
                      "expected permission bits up to 0777, got 0%llo", (unsigned long long)p);
    return 0;
}

static int file_check(const void *config, struct err *reterr)
{
    const struct file_config *c = config;
    if (!*c->path)
        return err_at(reterr, "path", "must not be empty");
    if (c->append && c->rotation)
        return err_at(reterr, "append", "append and rotation exclude each other");
    if (strcmp(c->format, "json") != 0 && strcmp(c->format, "proto") != 0)
        return err_at(reterr, "format", "expected json or proto, got \"%s\"", c->format);
    if (*c->compression && strcmp(c->compression, "zstd") != 0)
        return err_at(reterr, "compression", "expected zstd, got \"%s\"", c->compression);
    if (c->flush_interval_ns < 0)
        return err_at(reterr, "flush_interval", "must not be negative");
    int r = check_group_by(c, reterr);
    return r < 0 ? r : check_directory(c, reterr);
}
static const struct cfg_field rotation_fields[] = {
    {.key = "max_megabytes",
     .kind = BIND_INT,
     CFG_AT(struct rotation_config, max_megabytes),
     .def = "100",
     CFG_MORE(.unit = "MiB", .min = 0, .max = 1 << 30),
     .help = "Size that a file may reach; 0 means 100."},
    {.key = "max_days",
     .kind = BIND_INT,
     CFG_AT(struct rotation_config, max_days),
     .def = "0",
     CFG_MORE(.unit = "days", .min = 0, .max = 1 << 20),
     .help = "Age from which old files are removed, by the time in their names; 0 means never."},
    {.key = "max_backups",
     .kind = BIND_INT,
     CFG_AT(struct rotation_config, max_backups),
     .def = "100",
     CFG_MORE(.unit = "files", .min = 0, .max = 1 << 30),
     .help = "How many old files are kept; 0 means all."},
    {.key = "localtime",
     .kind = BIND_BOOL,
     CFG_AT(struct rotation_config, localtime),
     .def = "false",
     .help = "Local time instead of UTC in the names of old files."},
    {0}};

static const struct cfg_field group_fields[] = {
    {.key = "enabled",
     .kind = BIND_BOOL,
     CFG_AT(struct group_config, enabled),
     .def = "false",
     .help = "A file for each value of a resource attribute."},
    {.key = "resource_attribute",
     .kind = BIND_STRING,
     CFG_AT(struct group_config, resource_attribute),
     .def = "fileexporter.path_segment",
     .help = "The attribute whose string value stands for the * in the path."},
    {.key = "max_open_files",
     .kind = BIND_INT,
     CFG_AT(struct group_config, max_open_files),
     .def = "100",
     CFG_MORE(.unit = "files", .min = 1, .max = 100000),
     .help = "Files that are open at a time."},
    {0}};

static const struct cfg_field compression_fields[] = {
    {.key = "level",
     .kind = BIND_INT,
     .offset = 0,
     .def = "0",
     CFG_MORE(.min = INT32_MIN, .max = INT32_MAX),
     .help = "Compression level; 0 is the library's default, the nearest one is taken."},
    {0}};

static const struct cfg_field fields[] = {
    {.key = "path",
     .kind = BIND_STRING,
     CFG_AT(struct file_config, path),
     .use = CFG_WRITES_FILE,
     .help = "The file; relative paths start at the working directory. Must be given."},
    {.key = "append",
     .kind = BIND_BOOL,
     CFG_AT(struct file_config, append),
     .def = "false",
     .help = "Continue a file that exists instead of emptying it."},
    {.key = "rotation",
     .kind = BIND_BLOCK,
     CFG_AT(struct file_config, rotation),
     .fields = rotation_fields,
     CFG_NESTED(struct rotation_config),
     .help = "Start a new file when one is full; an existing file is continued. Not together with "
             "append."},
    {.key = "format",
     .kind = BIND_STRING,
     CFG_AT(struct file_config, format),
     .def = "json",
     .help = "json: a line of OTLP/JSON for each batch; proto: 4 bytes of length (big-endian) and "
             "the protobuf message."},
    {.key = "encoding",
     .kind = BIND_REFUSED,
     .help = "there are no encoding extensions; use format"},
    {.key = "compression",
     .kind = BIND_STRING,
     CFG_AT(struct file_config, compression),
     .help = "zstd: every message is compressed on its own and gets a length before it, JSON too."},
    {.key = "compression_params",
     .kind = BIND_STRUCT,
     CFG_AT(struct file_config, compression_level),
     .fields = compression_fields,
     CFG_NESTED(int64_t),
     .help = "Settings of the compression."},
    {.key = "flush_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct file_config, flush_interval_ns),
     .def = "1s",
     .help =
         "Longest time before a small batch is written; 0 means 1s. From 4 KiB on nothing waits."},
    {.key = "group_by",
     .kind = BIND_STRUCT,
     CFG_AT(struct file_config, group_by),
     .fields = group_fields,
     CFG_NESTED(struct group_config),
     .help = "Several files instead of one."},
    {.key = "create_directory",
     .kind = BIND_BOOL,
     CFG_AT(struct file_config, create_directory),
     .def = "false",
     .help = "Make the directory of the file when it is missing."},
    {.key = "directory_permissions",
     .kind = BIND_OCTAL,
     CFG_AT(struct file_config, directory_permissions),
     CFG_MORE(CFG_PRESENCE(struct file_config, directory_permissions_given)),
     .def = "\"0755\"",
     .help = "Mode of directories that are made, less the umask. Needs create_directory."},
    {0}};

const struct component_type exporter_file = {
    .kind = KIND_EXPORTER,
    .name = "file",
    .accepts = SIGNALS_ALL,
    .stability = {"alpha", "alpha", "alpha"},
    .help = "Writes telemetry to files.",
    .fields = fields,
    .config_size = sizeof(struct file_config),
    .check = file_check,
    .create = file_create,
    .start = file_start,
    .stop = file_stop,
    .destroy = file_destroy,
    .consume = file_consume,
    .probe = file_probe,
};
