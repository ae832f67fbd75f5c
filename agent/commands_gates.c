/* Feature gates of the reference collector: motel takes the flag, but what a gate decides is fixed
 * here. */
#include <errno.h>
#include <string.h>

#include "agent/commands.h"

struct gate {
    const char *id;
    bool enabled; /* in the reference collector by default, and in motel always */
    bool free;    /* either setting is taken: nothing that motel does depends on it */
    const char *stage;
};

static const struct gate gates[] = {
    {"confmap.enableMergeAppendOption", false, false, "Alpha"},
    {"connector.spanmetrics.excludeResourceMetrics", false, false, "Alpha"},
    {"connector.spanmetrics.includeCollectorInstanceID", true, false, "Beta"},
    {"connector.spanmetrics.legacyMetricNames", false, false, "Alpha"},
    {"connector.spanmetrics.useSecondAsDefaultMetricsUnit", false, false, "Alpha"},
    {"exporter.file.nativeCompression", false, false, "Alpha"},
    {"exporter.prometheus.DisableResourceToTelemetryConversion", false, false, "Alpha"},
    {"exporter.prometheusexporter.DisableAddMetricSuffixes", true, false, "Beta"},
    {"exporter.prometheusremotewrite.DisableResourceToTelemetryConversion", false, false, "Alpha"},
    {"exporter.prometheusremotewritexporter.EnableMultipleWorkers", false, true, "Alpha"},
    {"exporter.prometheusremotewritexporter.RetryOn429", false, false, "Alpha"},
    {"exporter.prometheusremotewritexporter.enableSendingRW2", false, false, "Alpha"},
    {"exporter.prometheusremotewritexporter.removeTopLevelHTTPSettings", false, false, "Alpha"},
    {"extension.healthcheck.useComponentStatus", false, false, "Alpha"},
    {"filter.filterlog.useOTTLBridge", false, true, "Alpha"},
    {"filter.filtermetric.useOTTLBridge", false, true, "Alpha"},
    {"filter.filterspan.useOTTLBridge", false, true, "Alpha"},
    {"otelcol.printInitialConfig", true, true, "Stable"},
    {"ottl.PanicDuplicateName", true, false, "Stable"},
    {"ottl.contexts.enableOTelColContext", true, false, "Stable"},
    {"ottl.functions.enableLambda", false, false, "Alpha"},
    {"ottl.set.allowNil", true, false, "Beta"},
    {"pdata.useProtoPooling", false, true, "Alpha"},
    {"pkg.exporterhelper.queueBatchEnabled", false, false, "Alpha"},
    {"pkg.translator.prometheus.PermissiveLabelSanitization", false, false, "Alpha"},
    {"processor.filter.defaultErrorModeIgnore", true, false, "Stable"},
    {"processor.transform.defaultErrorModeIgnore", true, false, "Stable"},
    {"receiver.prometheusreceiver.EnableCreatedTimestampZeroIngestion", false, false, "Alpha"},
    {"receiver.prometheusreceiver.IgnoreScopeInfoMetric", true, false, "Beta"},
    {"receiverhelper.newReceiverMetrics", false, true, "Alpha"},
    {"service.AllowNoPipelines", false, false, "Alpha"},
    {"service.partialReload", false, true, "Alpha"},
    {"service.partialReloadReceivers", true, true, "Beta"},
    {"service.profilesSupport", false, false, "Alpha"},
    {"spanmetrics.statusCodeConvention.useOtelPrefix", false, false, "Alpha"},
    {"telemetry.newPipelineTelemetry", false, true, "Alpha"},
    {"transform.flatten.logs", false, false, "Alpha"},
};

static const struct gate *find(const char *id, size_t len)
{
    for (const struct gate *g = gates; g < gates + ARRAY_SIZE(gates); g++)
        if (strlen(g->id) == len && strncmp(g->id, id, len) == 0)
            return g;
    return NULL;
}

/* The known gate nearest to `id`, for an error text. */
static const char *nearest(const char *id)
{
    const char *names[ARRAY_SIZE(gates) + 1] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(gates); i++)
        names[i] = gates[i].id;
    return cfg_suggest(id, names);
}

static int check_one(const char *item, size_t len, struct err *reterr)
{
    const bool off = len && item[0] == '-';
    if (len && (item[0] == '-' || item[0] == '+')) {
        item++;
        len--;
    }
    const struct gate *g = find(item, len);
    if (!g) {
        _cleanup_free_ char *id = strndup(item, len);
        const char *near = id ? nearest(id) : NULL;
        return err_set(reterr, -EINVAL,
                       "invalid argument for \"--feature-gates\" flag: no such feature gate "
                       "\"%.*s\"%s%s%s; motel featuregate lists all",
                       (int)len, item, near ? "; did you mean \"" : "", near ? near : "",
                       near ? "\"?" : "");
    }
    if (g->free || g->enabled == !off)
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid argument for \"--feature-gates\" flag: motel cannot %s \"%s\"",
                   off ? "disable" : "enable", g->id);
}

int feature_gates_check(const char *list, struct err *reterr)
{
    while (*list) {
        list += strspn(list, " ,");
        const size_t len = strcspn(list, ",");
        size_t trimmed = len;
        while (trimmed && list[trimmed - 1] == ' ')
            trimmed--;
        int r = trimmed ? check_one(list, trimmed, reterr) : 0;
        if (r < 0)
            return r;
        list += len;
    }
    return 0;
}

int feature_gates_print(FILE *f, const char *id, struct err *reterr)
{
    if (!id) {
        fprintf(f, "%-68s  %-7s  %s\n", "ID", "Enabled", "Stage");
        for (const struct gate *g = gates; g < gates + ARRAY_SIZE(gates); g++)
            fprintf(f, "%-68s  %-7s  %s\n", g->id, g->enabled ? "true" : "false", g->stage);
        return 0;
    }
    const struct gate *g = find(id, strlen(id));
    if (!g)
        return err_set(reterr, -ENOENT, "feature \"%s\" not found", id);
    fprintf(f, "Feature: %s\nEnabled: %s\nStage: %s\n", g->id, g->enabled ? "true" : "false",
            g->stage);
    return 0;
}
