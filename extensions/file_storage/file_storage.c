/*
 * The file_storage extension: says where and how queues are kept on disk (agent/pipeline/store.h).
 * It opens no queue file itself: each exporter with `sending_queue::storage` opens its own.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/pipeline/probe.h"
#include "agent/pipeline/store.h"

#define DEFAULT_DIRECTORY "/var/lib/otelcol/file_storage"
#define MIB ((int64_t)1 << 20)
#define TEMP_PREFIX "tempdb"

extern const struct component_type extension_file_storage;

struct compaction_config {
    bool on_start, on_rebound, cleanup_on_start;
    const char *directory;
    int64_t needed_mib, trigger_mib, max_transaction_size, check_interval_ns;
};
struct storage_config {
    const char *directory, *directory_permissions;
    int64_t timeout_ns, max_size;
    bool fsync, create_directory, recreate;
    struct compaction_config compaction;
};

struct storage {
    struct component c; /* first */
    const struct storage_config *config;
    struct store_settings settings;
};

/* ---- configuration ---- */

static bool compacts(const struct storage_config *c)
{
    return c->compaction.on_start || c->compaction.on_rebound;
}

/* 0, or -1 with the reason. */
static int read_mode(const char *text, int64_t *ret, const char **ret_why)
{
    const char *digits = text + (*text == '+' || *text == '-');
    const size_t n = strspn(digits, "01234567");
    errno = 0;
    *ret = strtoll(text, NULL, 8);
    *ret_why = NULL;
    if (n == 0 || digits[n] || errno || *ret > INT32_MAX || *ret < INT32_MIN)
        *ret_why = "directory_permissions value must be a valid octal representation";
    else if (*ret & ~(int64_t)0777)
        *ret_why = "directory_permissions contain invalid bits for file access";
    return *ret_why ? -1 : 0;
}

static int check_directory(const struct storage_config *c, const char *dir, struct err *reterr)
{
    struct stat st;
    if (stat(dir, &st) == 0)
        return S_ISDIR(st.st_mode) ? 0 : err_set(reterr, -ENOTDIR, "%s is not a directory", dir);
    if (errno != ENOENT)
        return err_set(reterr, -errno,
                       "problem accessing configured directory: %s, err: stat %s: %s", dir, dir,
                       strerror(errno));
    if (c->create_directory)
        return 0;
    return err_set(reterr, -ENOENT,
                   "directory must exist: stat %s: no such file or directory. You can enable the "
                   "create_directory option to automatically create it",
                   dir);
}

static int check_compaction(const struct storage_config *c, struct err *reterr)
{
    const struct compaction_config *k = &c->compaction;
    const int64_t most_mib = c->max_size / MIB;
    if (c->max_size > 0 && k->on_rebound && k->needed_mib > most_mib)
        return err_set(reterr, -EINVAL,
                       "compaction rebound needed threshold cannot be greater than max size");
    if (c->max_size > 0 && k->on_rebound && k->trigger_mib > most_mib)
        return err_set(reterr, -EINVAL,
                       "compaction rebound trigger threshold cannot be greater than max size");
    if (k->on_rebound && k->check_interval_ns <= 0)
        return err_set(reterr, -EINVAL,
                       "compaction check interval must be positive when rebound compaction is set");
    return 0;
}

static int storage_check(const void *config, struct err *reterr)
{
    const struct storage_config *c = config;
    const char *why;
    int64_t mode;
    int r = check_directory(c, c->directory, reterr);
    if (r == 0 && compacts(c))
        r = check_directory(c, c->compaction.directory, reterr);
    if (r < 0)
        return r;
    if (c->compaction.max_transaction_size < 0)
        return err_set(reterr, -EINVAL,
                       "max transaction size for compaction cannot be less than 0");
    if (c->max_size < 0)
        return err_set(reterr, -EINVAL, "max size cannot be less than 0");
    r = check_compaction(c, reterr);
    if (r == 0 && c->create_directory && read_mode(c->directory_permissions, &mode, &why) < 0)
        r = err_set(reterr, -EINVAL, "%s", why);
    return r;
}

/* ---- life ---- */

static int64_t mib_to_bytes(int64_t mib)
{
    return mib > INT64_MAX / MIB ? INT64_MAX : mib > 0 ? mib * MIB : 0;
}

static struct store_settings settings_of(const struct storage_config *c)
{
    const char *why;
    int64_t mode = 0;
    if (c->create_directory)
        read_mode(c->directory_permissions, &mode, &why);
    return (struct store_settings){
        .directory = c->directory,
        .lock_timeout_ns = c->timeout_ns,
        .max_bytes = c->max_size,
        .fsync = c->fsync,
        .create_directory = c->create_directory,
        .recreate = c->recreate,
        .compact_on_start = c->compaction.on_start,
        .compact_on_rebound = c->compaction.on_rebound,
        .directory_mode = mode,
        .rebound_needed_bytes = mib_to_bytes(c->compaction.needed_mib),
        .rebound_trigger_bytes = mib_to_bytes(c->compaction.trigger_mib),
        .compact_directory = compacts(c) ? c->compaction.directory : NULL,
        .compact_max_items = c->compaction.max_transaction_size,
        .compact_interval_ns = c->compaction.check_interval_ns,
    };
}

static int storage_create(const struct component_args *args, struct component **ret,
                          struct err *reterr)
{
    struct storage *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&s->c, &extension_file_storage, args);
    s->config = args->config;
    s->settings = settings_of(s->config);
    *ret = &s->c;
    return 0;
}

static void storage_destroy(struct component *c)
{
    free(c);
}

/* What a compaction left behind that was cut short. */
static void clean_up(struct storage *s, const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0 &&
            unlinkat(dirfd(d), e->d_name, 0) < 0)
            log_info(&s->c.logger, "cleanup error", LOG_STR("file", e->d_name),
                     LOG_STR("error", strerror(errno)));
    if (d)
        closedir(d);
}

static int storage_start(struct component *c, struct err *reterr)
{
    struct storage *s = (struct storage *)c;
    struct store_settings compaction = s->settings;
    int r = store_directory_check(&s->settings, reterr);
    if (r == 0 && compacts(s->config)) {
        compaction.directory = s->config->compaction.directory;
        r = store_directory_check(&compaction, reterr);
    }
    if (r == 0 && s->config->compaction.cleanup_on_start)
        clean_up(s, s->config->compaction.directory);
    return r;
}

static const void *storage_capability(struct component *c, enum capability kind)
{
    return kind == CAP_STORAGE ? &((struct storage *)c)->settings : NULL;
}

static void storage_probe(struct component *c, struct probe *p)
{
    const struct storage_config *config = ((struct storage *)c)->config;
    if (p->step != PROBE_OUTSIDE)
        return;
    probe_directory(p, config->directory, config->create_directory);
    if (compacts(config) && strcmp(config->compaction.directory, config->directory) != 0)
        probe_directory(p, config->compaction.directory, config->create_directory);
}

/* ---- fields ---- */

/* clang-format off */
static const struct cfg_field compaction_fields[] = {
    {.key = "on_start", .kind = BIND_BOOL, CFG_AT(struct compaction_config, on_start), .def = "false",
     .help = "Write each queue file anew, without its free room, when it is opened."},
    {.key = "on_rebound", .kind = BIND_BOOL, CFG_AT(struct compaction_config, on_rebound), .def = "false",
     .help = "The same while it is in use, when it was large and holds little now; see the thresholds."},
    {.key = "directory", .kind = BIND_STRING, CFG_AT(struct compaction_config, directory), .def = DEFAULT_DIRECTORY,
     .use = CFG_KEEPS_FILE, .help = "Where the new file is written; the queue's own directory is taken when this is another file system."},
    {.key = "rebound_needed_threshold_mib", .kind = BIND_INT, CFG_AT(struct compaction_config, needed_mib), .def = "100", CFG_MORE(.unit = "MiB"),
     .help = "A file that was larger than this is written anew once it holds less than rebound_trigger_threshold_mib."},
    {.key = "rebound_trigger_threshold_mib", .kind = BIND_INT, CFG_AT(struct compaction_config, trigger_mib), .def = "10", CFG_MORE(.unit = "MiB"),
     .help = "How much a file that was large may hold when it is written anew."},
    {.key = "max_transaction_size", .kind = BIND_INT, CFG_AT(struct compaction_config, max_transaction_size), .def = "65536",
     .help = "Pieces of 16 KiB that are copied in one transaction; 0 means all."},
    {.key = "check_interval", .kind = BIND_DURATION, CFG_AT(struct compaction_config, check_interval_ns), .def = "5s",
     .help = "Shortest time between two compactions of a file."},
    {.key = "cleanup_on_start", .kind = BIND_BOOL, CFG_AT(struct compaction_config, cleanup_on_start), .def = "false",
     .help = "Remove files called tempdb… from the compaction directory at the start."},
    {0}};
static const struct cfg_field storage_fields[] = {
    {.key = "directory", .kind = BIND_STRING, CFG_AT(struct storage_config, directory), .def = DEFAULT_DIRECTORY,
     .use = CFG_KEEPS_FILE, .help = "Where the queue files are."},
    {.key = "timeout", .kind = BIND_DURATION, CFG_AT(struct storage_config, timeout_ns), .def = "1s",
     .help = "Time to wait for another process that has a queue file open."},
    {.key = "max_size", .kind = BIND_INT, CFG_AT(struct storage_config, max_size), .def = "0", CFG_MORE(.unit = "bytes"),
     .help = "Largest size of one queue file; 0 means what the disk holds."},
    {.key = "fsync", .kind = BIND_BOOL, CFG_AT(struct storage_config, fsync), .def = "false",
     .help = "Wait for the disk at every write, so that a power failure loses nothing."},
    {.key = "create_directory", .kind = BIND_BOOL, CFG_AT(struct storage_config, create_directory), .def = "false",
     .help = "Make the directories when they are missing."},
    {.key = "directory_permissions", .kind = BIND_STRING, CFG_AT(struct storage_config, directory_permissions), .def = "\"0750\"",
     .help = "Mode of directories that are made, in octal, less the umask."},
    {.key = "recreate", .kind = BIND_BOOL, CFG_AT(struct storage_config, recreate), .def = "false",
     .help = "Move a queue file that cannot be used aside and start empty, instead of not starting."},
    {.key = "compaction", .kind = BIND_STRUCT, CFG_AT(struct storage_config, compaction), .fields = compaction_fields,
     CFG_NESTED(struct compaction_config), .help = "When room in a file is given back to the disk."},
    {0}};
/* clang-format on */

const struct component_type extension_file_storage = {
    .kind = KIND_EXTENSION,
    .name = "file_storage",
    .help = "Keeps sending queues in files, so that they survive a restart.",
    .fields = storage_fields,
    .config_size = sizeof(struct storage_config),
    .check = storage_check,
    .create = storage_create,
    .start = storage_start,
    .destroy = storage_destroy,
    .capability = storage_capability,
    .probe = storage_probe,
};
