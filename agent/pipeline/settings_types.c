/* Component types by name, and what to say when there is none. */
#include <string.h>

#include "agent/pipeline/settings_build.h"

/* Types that the reference collector's contrib distribution has: a job's configuration may name
 * them, and then "not supported by this build" is more use than "unknown". Names that motel has do
 * no harm here. */
static const char *const reference_types[KIND_COUNT] = {
    [KIND_RECEIVER] =
        " activedirectoryds aerospike apache apachespark awscloudwatch awscontainerinsightreceiver"
        " awsecscontainermetrics awsfirehose awslambda awss3 awsxray azureblob azureeventhub"
        " azuremonitor bigip carbon chrony cloudflare cloudfoundry collectd couchdb datadog"
        " docker_stats elasticsearch envoyals expvar faro file_log file_stats filelog filestats"
        " flinkmetrics fluent_forward fluentforward github gitlab googlecloudmonitoring"
        " googlecloudpubsub googlecloudspanner haproxy host_metrics hostmetrics httpcheck"
        " huaweicloudces iis influxdb jaeger jmx journald k8s_cluster k8s_events k8s_objects"
        " k8sobjects kafka kafka_metrics kafkametrics kubelet_stats kubeletstats libhoney loki"
        " memcached mongodb mongodbatlas mysql namedpipe netflow nginx nop nsxt ntp opencensus"
        " oracledb osquery otelarrow otlp otlp_json_file otlpjsonfile podman_stats postgresql pprof"
        " prometheus prometheus_remote_write prometheus_simple prometheusremotewrite pulsar purefa"
        " purefb rabbitmq receiver_creator redfish redis riak saphana signalfx skywalking snmp"
        " snowflake solace splunk_hec splunkenterprise sqlquery sqlserver sshcheck statsd stef"
        " syslog systemd tcp_check tcp_log tcpcheck tcplog tlscheck udp_log udplog vcenter vcr"
        " wavefront webhookevent windowseventlog windowsperfcounters windowsservice yanggrpc zipkin"
        " zookeeper ",
    [KIND_PROCESSOR] =
        " attributes batch coralogix cumulative_to_delta cumulativetodelta datadogsemantics"
        " delta_to_cumulative delta_to_rate deltatocumulative deltatorate dns_lookup dnslookup"
        " filter geoip group_by_attrs group_by_trace groupbyattrs groupbytrace interval "
        "isolation_forest"
        " isolationforest k8s_attributes k8sattributes log_dedup logdedup logs_transform "
        "logstransform"
        " lookup memory_limiter metric_start_time metrics_generation metrics_transform"
        " metricsgeneration metricstarttime metricstransform probabilistic_sampler redaction"
        " remote_tap remotetap resource resource_detection resourcedetection schema span sumologic"
        " tail_sampling transform unroll ",
    [KIND_CONNECTOR] =
        " count datadog exceptions failover forward grafanacloud metrics_as_attributes otlp_json"
        " otlpjson round_robin roundrobin routing service_graph servicegraph signal_to_metrics"
        " signaltometrics slow_sql slowsql span_metrics spanmetrics sum ",
    [KIND_EXPORTER] =
        " alertmanager alibabacloud_logservice awscloudwatchlogs awsemf awskinesis awss3 awsxray"
        " azureblob azuredataexplorer azuremonitor bmchelix carbon cassandra clickhouse coralogix"
        " datadog dataset debug doris elasticsearch faro file google_cloud_storage googlecloud"
        " googlecloudpubsub googlecloudstorage googlemanagedprometheus honeycombmarker influxdb "
        "kafka"
        " load_balancing loadbalancing logicmonitor logzio loki mezmo nop opensearch otelarrow otlp"
        " otlp_grpc otlp_http otlphttp prometheus prometheus_remote_write prometheusremotewrite"
        " pulsar rabbitmq sapm sematext sentry signalfx splunk_hec stef sumologic syslog"
        " tencentcloud_logservice tinybird zipkin ",
    [KIND_EXTENSION] =
        " ack asapclient avro_log_encoding awscloudwatchmetricstreams_encoding awslogs_encoding"
        " awsproxy azure_auth azure_encoding basicauth bearertokenauth cfgardenobserver "
        "cgroupruntime"
        " datadog db_storage docker_observer ecs_observer ecs_task_observer file_storage"
        " googleclientauth googlecloudlogentry_encoding headers_setter health_check healthcheckv2"
        " host_observer http_forwarder jaeger_encoding jaegerremotesampling json_log_encoding"
        " k8s_leader_elector k8s_observer kafka_topics_observer memory_limiter oauth2client oidc "
        "opamp"
        " otlp_encoding pprof redis_storage remotetap sigv4auth skywalking_encoding "
        "solarwindsapmsettings"
        " sumologic text_encoding zipkin_encoding zpages ",
};

static bool name_is(const struct component_type *t, const char *name, bool *ret_alias)
{
    *ret_alias = false;
    if (strcmp(t->name, name) == 0)
        return true;
    for (const char *const *a = t->aliases; a && *a; a++)
        if (strcmp(*a, name) == 0)
            return *ret_alias = true;
    return false;
}

const struct component_type *settings_find_type(struct settings_build *b, enum component_kind kind,
                                                const char *name, bool *ret_alias)
{
    for (const struct component_type *const *t = b->types; *t; t++)
        if ((*t)->kind == kind && name_is(*t, name, ret_alias))
            return *t;
    return NULL;
}

static bool in_reference(struct settings_build *b, enum component_kind kind, const char *name)
{
    return strstr(reference_types[kind], settings_text(b, " %s ", name)) != NULL;
}

/* "[batch filter memory_limiter]", and the same as a list for suggestions. */
static const char *valid_types(struct settings_build *b, enum component_kind kind,
                               const char ***ret_names)
{
    size_t n = 0;
    for (const struct component_type *const *t = b->types; *t; t++)
        n += (*t)->kind == kind;
    const char **names = settings_alloc(b, (n + 1) * sizeof(*names));
    const char *text = "";
    n = 0;
    for (const struct component_type *const *t = b->types; names && *t; t++)
        if ((*t)->kind == kind) {
            text = settings_text(b, "%s%s%s", text, *text ? " " : "", (*t)->name);
            names[n++] = (*t)->name;
        }
    *ret_names = names;
    return settings_text(b, "[%s]", text);
}

/* "a processor" when another kind has a type of this name; NULL when none has. */
static const char *other_kind(struct settings_build *b, enum component_kind kind, const char *name)
{
    bool alias;
    for (int k = 0; k < KIND_COUNT; k++)
        if ((enum component_kind)k != kind &&
            settings_find_type(b, (enum component_kind)k, name, &alias)) {
            const char *word = component_kind_name((enum component_kind)k);
            return settings_text(b, "%s %s", strchr("aeiou", word[0]) ? "an" : "a", word);
        }
    return NULL;
}

static void unknown_type(struct settings_build *b, enum component_kind kind, const char *id,
                         const char *name, struct cfg_pos pos)
{
    const char *section = component_kind_section(kind), **names;
    const char *path = settings_text(b, "%s::%s", section, id);
    const char *valid = valid_types(b, kind, &names), *other = other_kind(b, kind, name);
    if (kind == KIND_EXPORTER && strcmp(name, "logging") == 0)
        cfg_error(b->errs, pos, path, "the \"logging\" exporter is gone; use \"debug\" instead");
    else if (in_reference(b, kind, name))
        cfg_error(b->errs, pos, path,
                  "%s type \"%s\" is not supported by this build (supported: %s)",
                  component_kind_name(kind), name, valid);
    else if (other)
        cfg_error(b->errs, pos, path,
                  "unknown type: \"%s\" for id: \"%s\": it is %s (valid values: %s)", name, id,
                  other, valid);
    else {
        const char *near = names ? cfg_suggest(name, names) : NULL;
        cfg_error(b->errs, pos, path,
                  "unknown type: \"%s\" for id: \"%s\" (valid values: %s)%s%s%s", name, id, valid,
                  near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
}

const struct component_type *settings_type(struct settings_build *b, enum component_kind kind,
                                           const char *id, struct cfg_pos pos, bool *ret_alias)
{
    const char *name = settings_text(b, "%.*s", (int)strcspn(id, "/"), id);
    const struct component_type *t = settings_find_type(b, kind, name, ret_alias);
    if (!t)
        unknown_type(b, kind, id, name, pos);
    return t;
}
