/* A file of targets: a list of {targets: [host:port], labels: {}}, as JSON or YAML.
 * https://prometheus.io/docs/prometheus/latest/configuration/configuration/#file_sd_config */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_SD_FILE_H
#define MOTEL_RECEIVERS_PROMETHEUS_SD_FILE_H

#include "receivers/prometheus/labels.h"

struct sd_group {
    const char **targets;
    size_t ntargets;
    struct prom_labels labels;
};
struct sd_groups {
    struct arena *arena; /* of everything here */
    struct sd_group *items;
    size_t n;
};
/* By the end of its name ".json", else YAML. 0 or -errno with the place in reterr; the caller frees *ret. */
int prom_sd_file_read(const char *path, struct sd_groups **ret, struct err *reterr);
struct sd_groups *prom_sd_groups_free(struct sd_groups *g); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct sd_groups *, prom_sd_groups_free)

#endif
