/* Keys of the prometheus receiver, with the defaults of the reference and of Prometheus. */
#include "receivers/prometheus/config.h"

#include <errno.h>

#include "agent/base/regex.h"
#include "receivers/prometheus/relabel.h"

#define NO_EFFECT "Accepted, has no effect: native histograms are not read."
#define ONLY_FILES "only static_configs and file_sd_configs find targets"

static int parse_duration(const char *text, void *ret _unused_, struct err *reterr)
{
    return prom_parse_duration(text, NULL, reterr);
}

static int parse_size(const char *text, void *ret _unused_, struct err *reterr)
{
    return prom_parse_size(text, NULL, reterr);
}

static int parse_regex(const char *text, void *ret _unused_, struct err *reterr)
{
    _cleanup_(regex_freep) struct regex *re = NULL;
    return prom_relabel_regex(text, &re, reterr);
}

static int parse_address(const char *text, void *ret _unused_, struct err *reterr)
{
    if (!*text)
        return err_set(reterr, -EINVAL, "expected host:port, got nothing");
    return strchr(text, '/')
               ? err_set(reterr, -EINVAL,
                         "\"%s\" is not a valid hostname: expected host:port, without "
                         "scheme and path (see scheme and metrics_path)",
                         text)
               : 0;
}

static int parse_sd_file(const char *text, void *ret _unused_, struct err *reterr)
{
    static const char *const ends[] = {".json", ".yml", ".yaml", ".JSON", ".YML", ".YAML"};
    const size_t n = strlen(text);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (n >= strlen(ends[i]) && strcmp(text + n - strlen(ends[i]), ends[i]) == 0)
            return 0;
    return err_set(reterr, -EINVAL,
                   "path name \"%s\" is not valid for file discovery: expected an end of .json, "
                   ".yml or .yaml",
                   text);
}

const char *const prom_relabel_actions[] = {"replace|Replace|REPLACE",
                                            "keep|Keep|KEEP",
                                            "drop|Drop|DROP",
                                            "keepequal|KeepEqual|KEEPEQUAL",
                                            "dropequal|DropEqual|DROPEQUAL",
                                            "hashmod|HashMod|HASHMOD",
                                            "labelmap|LabelMap|LABELMAP",
                                            "labeldrop|LabelDrop|LABELDROP",
                                            "labelkeep|LabelKeep|LABELKEEP",
                                            "lowercase|Lowercase|LOWERCASE",
                                            "uppercase|Uppercase|UPPERCASE",
                                            NULL};
static const char *const schemes[] = {"http", "https", NULL};
static const char *const protocols[] = {"PrometheusProto",      "PrometheusText0.0.4",
                                        "PrometheusText1.0.0",  "OpenMetricsText0.0.1",
                                        "OpenMetricsText1.0.0", NULL};
static const char *const escapings[] = {"default", "allow-utf-8", "underscores",
                                        "dots",    "values",      NULL};
static const char *const tls_versions[] = {"", "TLS10", "TLS11", "TLS12", "TLS13", NULL};

/* clang-format off */
/* Prometheus' own loader takes any scalar where a text is meant. */
static const struct cfg_field text_elem = {.kind = BIND_STRING, .any_scalar = true};
static const struct cfg_field secret_elem = {.kind = BIND_OPAQUE, .any_scalar = true};
static const struct cfg_field address_elem = {.kind = BIND_STRING, .any_scalar = true, .parse = parse_address};
static const struct cfg_field sd_file_elem = {.kind = BIND_STRING, .parse = parse_sd_file};
static const struct cfg_field texts_elem = {.kind = BIND_LIST, .elem = &text_elem};
static const struct cfg_field protocol_elem = {.kind = BIND_ENUM, .values = protocols};

static const struct cfg_field relabel_fields[] = {
    {.key = "source_labels", .kind = BIND_LIST, CFG_AT(struct relabel_config, source_labels), .elem = &text_elem,
     .help = "Labels whose values are looked at, joined by the separator."},
    {.key = "separator", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct relabel_config, separator), .def = ";",
     CFG_MORE(CFG_PRESENCE(struct relabel_config, separator_given)), .help = "Stands between the values."},
    {.key = "regex", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct relabel_config, regex), .def = "(.*)", .parse = parse_regex,
     CFG_MORE(CFG_PRESENCE(struct relabel_config, regex_given)), .help = "What the whole text has to match (RE2)."},
    {.key = "modulus", .kind = BIND_INT, CFG_AT(struct relabel_config, modulus), CFG_MORE(.max = 9.2e18), .help = "hashmod: the number of parts."},
    {.key = "target_label", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct relabel_config, target_label),
     .help = "The label that is written, or, for keepequal and dropequal, compared with."},
    {.key = "replacement", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct relabel_config, replacement), .def = "$1",
     CFG_MORE(CFG_PRESENCE(struct relabel_config, replacement_given)),
     .help = "The new value; $1, ${1}, ${name} are groups of the regex (written $$1 in the file). Nothing removes the label."},
    {.key = "action", .kind = BIND_ENUM, CFG_AT(struct relabel_config, action), .values = prom_relabel_actions, .def = "replace",
     .help = "What is done."},
    {0}};
static const struct cfg_field relabel_elem = {.kind = BIND_STRUCT, .fields = relabel_fields, CFG_NESTED(struct relabel_config)};

static const struct cfg_field static_fields[] = {
    {.key = "targets", .kind = BIND_LIST, CFG_AT(struct static_config, targets), .elem = &address_elem, .use = CFG_ASKS_HTTP, .help = "host:port of each target."},
    {.key = "labels", .kind = BIND_MAP, CFG_AT(struct static_config, labels), .elem = &text_elem, .help = "Labels of all of them."},
    {0}};
static const struct cfg_field static_elem = {.kind = BIND_STRUCT, .fields = static_fields, CFG_NESTED(struct static_config)};

static const struct cfg_field file_sd_fields[] = {
    {.key = "files", .kind = BIND_LIST, CFG_AT(struct file_sd_config, files), .elem = &sd_file_elem, .required = true,
     .use = CFG_READS_FILE, .help = "Files of targets, .json, .yml or .yaml; the last part may be a pattern (*, ?, [a-z])."},
    {.key = "refresh_interval", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct file_sd_config, refresh_interval), .def = "5m",
     .parse = parse_duration, .help = "Changes are seen within seconds; after this long the files are read in any case."},
    {0}};
static const struct cfg_field file_sd_elem = {.kind = BIND_STRUCT, .fields = file_sd_fields, CFG_NESTED(struct file_sd_config)};

static const struct cfg_field basic_auth_fields[] = {
    {.key = "username", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct basic_auth_config, username), .help = "User name."},
    {.key = "username_file", .kind = BIND_STRING, CFG_AT(struct basic_auth_config, username_file), .use = CFG_READS_FILE, .help = "A file with it, read at every scrape."},
    {.key = "username_ref", .kind = BIND_REFUSED, .help = "there is no secret manager"},
    {.key = "password", .kind = BIND_OPAQUE, .any_scalar = true, CFG_AT(struct basic_auth_config, password), .help = "Password."},
    {.key = "password_file", .kind = BIND_STRING, CFG_AT(struct basic_auth_config, password_file), .use = CFG_READS_FILE, .help = "A file with it, read at every scrape."},
    {.key = "password_ref", .kind = BIND_REFUSED, .help = "there is no secret manager"},
    {0}};
static const struct cfg_field authorization_fields[] = {
    {.key = "type", .kind = BIND_STRING, CFG_AT(struct authorization_config, type), .def = "Bearer", .help = "Word before the credentials."},
    {.key = "credentials", .kind = BIND_OPAQUE, .any_scalar = true, CFG_AT(struct authorization_config, credentials), .help = "The credentials."},
    {.key = "credentials_file", .kind = BIND_STRING, CFG_AT(struct authorization_config, credentials_file),
     .use = CFG_READS_FILE, .help = "A file with them, read at every scrape."},
    {.key = "credentials_ref", .kind = BIND_REFUSED, .help = "there is no secret manager"},
    {0}};
static const struct cfg_field tls_fields[] = {
    {.key = "ca", .kind = BIND_STRING, CFG_AT(struct prom_tls_config, ca), .help = "Certificate authorities, as PEM text."},
    {.key = "ca_file", .kind = BIND_STRING, CFG_AT(struct prom_tls_config, ca_file), .use = CFG_READS_FILE, .help = "The same in a file."},
    {.key = "cert", .kind = BIND_STRING, CFG_AT(struct prom_tls_config, cert), .help = "Client certificate, as PEM text."},
    {.key = "cert_file", .kind = BIND_STRING, CFG_AT(struct prom_tls_config, cert_file), .use = CFG_READS_FILE, .help = "The same in a file."},
    {.key = "key", .kind = BIND_OPAQUE, CFG_AT(struct prom_tls_config, key), .help = "Its key, as PEM text."},
    {.key = "key_file", .kind = BIND_STRING, CFG_AT(struct prom_tls_config, key_file), .use = CFG_READS_FILE, .help = "The same in a file."},
    {.key = "server_name", .kind = BIND_STRING, CFG_AT(struct prom_tls_config, server_name), .help = "Name that the certificate has to be for."},
    {.key = "insecure_skip_verify", .kind = BIND_BOOL, CFG_AT(struct prom_tls_config, insecure_skip_verify), .help = "Takes any certificate."},
    {.key = "min_version", .kind = BIND_ENUM, CFG_AT(struct prom_tls_config, min_version), .values = tls_versions, .help = "Oldest TLS version."},
    {.key = "max_version", .kind = BIND_ENUM, CFG_AT(struct prom_tls_config, max_version), .values = tls_versions, .help = "Newest TLS version."},
    {0}};
static const struct cfg_field http_header_fields[] = {
    {.key = "values", .kind = BIND_LIST, CFG_AT(struct http_header_config, values), .elem = &text_elem, .help = "Values."},
    {.key = "secrets", .kind = BIND_LIST, CFG_AT(struct http_header_config, secrets), .elem = &secret_elem, .help = "Values that are secret."},
    {.key = "files", .kind = BIND_LIST, CFG_AT(struct http_header_config, files), .elem = &text_elem, .use = CFG_READS_FILE, .help = "Files with a value each, read at every scrape."},
    {0}};
static const struct cfg_field http_header_elem = {.kind = BIND_STRUCT, .fields = http_header_fields, CFG_NESTED(struct http_header_config)};

static const struct cfg_field limit_fields[] = {
    {.key = "body_size_limit", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct scrape_limits, body_size_limit), .nullable = true,
     .parse = parse_size, .help = "Largest page, uncompressed, such as 10MB; 0 means no limit. A scrape over a limit fails."},
    {.key = "sample_limit", .kind = BIND_INT, CFG_AT(struct scrape_limits, sample_limit), CFG_MORE(.max = 9e15),
     .help = "Most samples of a scrape, after relabelling; 0 means that of global, or no limit."},
    {.key = "target_limit", .kind = BIND_INT, CFG_AT(struct scrape_limits, target_limit), CFG_MORE(.max = 9e15),
     .help = "Most targets of the job; with more of them all scrapes fail; 0 means no limit."},
    {.key = "label_limit", .kind = BIND_INT, CFG_AT(struct scrape_limits, label_limit), CFG_MORE(.max = 9e15),
     .help = "Most labels of a sample; 0 means no limit."},
    {.key = "label_name_length_limit", .kind = BIND_INT, CFG_AT(struct scrape_limits, label_name_length_limit), CFG_MORE(.max = 9e15, .unit = "bytes"), .help = "Longest name of a label; 0 means no limit."},
    {.key = "label_value_length_limit", .kind = BIND_INT, CFG_AT(struct scrape_limits, label_value_length_limit), CFG_MORE(.max = 9e15, .unit = "bytes"), .help = "Longest value of a label; 0 means no limit."},
    {.key = "keep_dropped_targets", .kind = BIND_ANY, CFG_AT(struct scrape_limits, unused), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "native_histogram_bucket_limit", .kind = BIND_ANY, CFG_AT(struct scrape_limits, unused), .help = NO_EFFECT},
    {.key = "native_histogram_min_bucket_factor", .kind = BIND_ANY, CFG_AT(struct scrape_limits, unused), .help = NO_EFFECT},
    {.key = "scrape_native_histograms", .kind = BIND_REFUSED, .def = "false", .help = "native histograms are not read"},
    {.key = "convert_classic_histograms_to_nhcb", .kind = BIND_REFUSED, .def = "false", .help = "native histograms are not made"},
    {.key = "always_scrape_classic_histograms", .kind = BIND_ANY, CFG_AT(struct scrape_limits, unused), .help = NO_EFFECT},
    {.key = "metric_name_validation_scheme", .kind = BIND_REFUSED, .def = "utf8", .help = "names are checked as utf8"},
    {.key = "metric_name_escaping_scheme", .kind = BIND_ENUM, CFG_AT(struct scrape_limits, name_escaping), .values = escapings,
     .help = "What the Accept header asks for: allow-utf-8 unless given."},
    {.key = "scrape_failure_log_file", .kind = BIND_REFUSED, .def = "", .help = "failed scrapes are logged with the rest"},
    {0}};

static const struct cfg_field scrape_fields[] = {
    {.key = "job_name", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct scrape_config, job_name), .required = true,
     .help = "Name of the job, once only: the job label and service.name."},
    {.key = "scrape_interval", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct scrape_config, scrape_interval), .nullable = true,
     .parse = parse_duration, .help = "Time between two scrapes of a target; as in global unless given."},
    {.key = "scrape_timeout", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct scrape_config, scrape_timeout), .nullable = true,
     .parse = parse_duration, .help = "Time for one scrape, not above the interval; as in global unless given, or the interval when that is shorter."},
    {.key = "metrics_path", .kind = BIND_STRING, CFG_AT(struct scrape_config, metrics_path), .def = "/metrics", .help = "Path of the page."},
    {.key = "scheme", .kind = BIND_ENUM, CFG_AT(struct scrape_config, scheme), .values = schemes, .help = "http or https."},
    {.key = "params", .kind = BIND_MAP, CFG_AT(struct scrape_config, params), .elem = &texts_elem, .help = "URL parameters, a list of values each."},
    {.key = "honor_labels", .kind = BIND_BOOL, CFG_AT(struct scrape_config, honor_labels),
     .help = "A label of the page wins over one of the target; otherwise it becomes exported_NAME."},
    {.key = "honor_timestamps", .kind = BIND_BOOL, CFG_AT(struct scrape_config, honor_timestamps), .def = "true", .help = "Times in the page are kept."},
    {.key = "track_timestamps_staleness", .kind = BIND_BOOL, CFG_AT(struct scrape_config, track_timestamps_staleness),
     .help = "Series with times of their own get a stale point, too, when they are gone."},
    {.key = "scrape_protocols", .kind = BIND_LIST, CFG_AT(struct scrape_config, scrape_protocols), .elem = &protocol_elem,
     .help = "What is asked for, the best one first; all text formats, OpenMetrics first, unless given. PrometheusProto is left out."},
    {.key = "fallback_scrape_protocol", .kind = BIND_ENUM, CFG_AT(struct scrape_config, fallback_scrape_protocol), .values = protocols,
     .def = "PrometheusText0.0.4", .help = "How a page is read whose content type says nothing of use."},
    {.key = "", .kind = BIND_STRUCT, CFG_AT(struct scrape_config, limits), .fields = limit_fields, CFG_NESTED(struct scrape_limits)},
    {.key = "enable_compression", .kind = BIND_BOOL, CFG_AT(struct scrape_config, enable_compression), .def = "true", .help = "Takes gzip."},
    {.key = "extra_scrape_metrics", .kind = BIND_ANY, CFG_AT(struct scrape_config, extra_scrape_metrics),
     .help = "Adds scrape_timeout_seconds, scrape_sample_limit and scrape_body_size_bytes; as in global unless given."},
    {.key = "static_configs", .kind = BIND_LIST, CFG_AT(struct scrape_config, static_configs), .elem = &static_elem, .help = "Targets that are known."},
    {.key = "file_sd_configs", .kind = BIND_LIST, CFG_AT(struct scrape_config, file_sd_configs), .elem = &file_sd_elem,
     .help = "Targets that files name, which are read again when they change."},
    {.key = "relabel_configs", .kind = BIND_LIST, CFG_AT(struct scrape_config, relabel_configs), .elem = &relabel_elem,
     .help = "Changes the labels of targets, or drops some."},
    {.key = "metric_relabel_configs", .kind = BIND_LIST, CFG_AT(struct scrape_config, metric_relabel_configs), .elem = &relabel_elem,
     .help = "Changes the labels of samples, or drops some."},
    {.key = "basic_auth", .kind = BIND_BLOCK, CFG_AT(struct scrape_config, basic_auth), .fields = basic_auth_fields,
     CFG_NESTED(struct basic_auth_config), .null_absent = true, .help = "User name and password."},
    {.key = "authorization", .kind = BIND_BLOCK, CFG_AT(struct scrape_config, authorization), .fields = authorization_fields,
     CFG_NESTED(struct authorization_config), .null_absent = true, .help = "The Authorization header."},
    {.key = "bearer_token", .kind = BIND_OPAQUE, .any_scalar = true, CFG_AT(struct scrape_config, bearer_token), .help = "Older form of authorization."},
    {.key = "bearer_token_file", .kind = BIND_STRING, CFG_AT(struct scrape_config, bearer_token_file), .use = CFG_READS_FILE, .help = "Older form of authorization."},
    {.key = "oauth2", .kind = BIND_REFUSED, .help = "oauth2; use authorization or basic_auth"},
    {.key = "tls_config", .kind = BIND_STRUCT, CFG_AT(struct scrape_config, tls), .fields = tls_fields, CFG_NESTED(struct prom_tls_config),
     .help = "TLS of https targets."},
    {.key = "proxy_url", .kind = BIND_STRING, CFG_AT(struct scrape_config, proxy_url), .use = CFG_SENDS_TO_PROXY, .help = "HTTP proxy."},
    {.key = "no_proxy", .kind = BIND_STRING, CFG_AT(struct scrape_config, no_proxy), .help = "Hosts that it is not for, comma separated."},
    {.key = "proxy_from_environment", .kind = BIND_BOOL, CFG_AT(struct scrape_config, proxy_from_environment),
     .help = "Takes the proxy from HTTP_PROXY, HTTPS_PROXY and NO_PROXY."},
    {.key = "proxy_connect_header", .kind = BIND_REFUSED, .def = "{}", .help = "headers for the proxy"},
    {.key = "follow_redirects", .kind = BIND_BOOL, CFG_AT(struct scrape_config, follow_redirects), .def = "true", .help = "Redirects are followed."},
    {.key = "enable_http2", .kind = BIND_BOOL, CFG_AT(struct scrape_config, enable_http2), .def = "true", .help = "HTTP/2 on https."},
    {.key = "http_headers", .kind = BIND_MAP, CFG_AT(struct scrape_config, http_headers), .elem = &http_header_elem, .help = "Further request headers."},
    {.key = "azure_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "consul_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "digitalocean_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "dns_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "docker_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "dockerswarm_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "ec2_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "eureka_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "gce_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "hetzner_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "http_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "ionos_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "kubernetes_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "kuma_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "lightsail_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "linode_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "marathon_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "nerve_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "nomad_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "openstack_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "ovhcloud_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "puppetdb_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "scaleway_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "serverset_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "stackit_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "triton_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "uyuni_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {.key = "vultr_sd_configs", .kind = BIND_REFUSED, .def = "[]", .help = ONLY_FILES},
    {0}};
static const struct cfg_field scrape_elem = {.kind = BIND_STRUCT, .fields = scrape_fields, CFG_NESTED(struct scrape_config)};

static const struct cfg_field global_fields[] = {
    {.key = "scrape_interval", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct global_config, scrape_interval), .def = "1m",
     .parse = parse_duration, .help = "Time between two scrapes of a target."},
    {.key = "scrape_timeout", .kind = BIND_STRING, .any_scalar = true, CFG_AT(struct global_config, scrape_timeout), .nullable = true,
     .parse = parse_duration, .help = "Time for one scrape; 10s, or the interval when that is shorter, unless given."},
    {.key = "scrape_protocols", .kind = BIND_LIST, CFG_AT(struct global_config, scrape_protocols), .elem = &protocol_elem,
     .help = "For jobs that have none of their own."},
    {.key = "external_labels", .kind = BIND_MAP, CFG_AT(struct global_config, external_labels), .elem = &text_elem, .help = "Labels of all samples."},
    {.key = "", .kind = BIND_STRUCT, CFG_AT(struct global_config, limits), .fields = limit_fields, CFG_NESTED(struct scrape_limits)},
    {.key = "extra_scrape_metrics", .kind = BIND_BOOL, CFG_AT(struct global_config, extra_scrape_metrics),
     .help = "Adds scrape_timeout_seconds, scrape_sample_limit and scrape_body_size_bytes."},
    {.key = "evaluation_interval", .kind = BIND_ANY, CFG_AT(struct global_config, unused), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect: there are no rules."},
    {.key = "rule_query_offset", .kind = BIND_ANY, CFG_AT(struct global_config, unused), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect: there are no rules."},
    {.key = "query_log_file", .kind = BIND_REFUSED, .def = "", .help = "nothing is queried"},
    {0}};

static const struct cfg_field file_fields[] = {
    {.key = "global", .kind = BIND_STRUCT, CFG_AT(struct prom_file_config, global), .fields = global_fields, CFG_NESTED(struct global_config),
     .help = "Defaults of all jobs."},
    {.key = "scrape_configs", .kind = BIND_LIST, CFG_AT(struct prom_file_config, scrape_configs), .elem = &scrape_elem, .help = "The jobs."},
    {.key = "scrape_config_files", .kind = BIND_REFUSED, .def = "[]", .help = "put the jobs below scrape_configs"},
    {.key = "remote_read", .kind = BIND_REFUSED, .def = "[]", .help = "remote_read has no meaning in a receiver"},
    {.key = "remote_write", .kind = BIND_REFUSED, .def = "[]", .help = "remote_write has no meaning in a receiver; use an exporter"},
    {.key = "rule_files", .kind = BIND_REFUSED, .def = "[]", .help = "rules are not evaluated in a receiver"},
    {.key = "alerting", .kind = BIND_REFUSED, .def = "{}", .help = "there are no alerts in a receiver"},
    {.key = "storage", .kind = BIND_REFUSED, .def = "{}", .help = "nothing is stored"},
    {.key = "tracing", .kind = BIND_REFUSED, .def = "{}", .help = "scrapes are not traced"},
    {.key = "otlp", .kind = BIND_REFUSED, .def = "{}", .help = "use the otlp receiver"},
    {.key = "runtime", .kind = BIND_REFUSED, .def = "{}", .help = "there is no Go runtime"},
    {0}};

const struct cfg_field prom_fields[] = {
    {.key = "config", .kind = BIND_STRUCT, CFG_AT(struct prom_config, file), .fields = file_fields, CFG_NESTED(struct prom_file_config),
     .help = "A Prometheus configuration file. Every $ in it has to be written $$."},
    {.key = "trim_metric_suffixes", .kind = BIND_BOOL, CFG_AT(struct prom_config, trim_metric_suffixes),
     .help = "Takes units and types such as _seconds and _total off the names of metrics."},
    {.key = "scrape_on_shutdown", .kind = BIND_BOOL, CFG_AT(struct prom_config, scrape_on_shutdown), .def = "true",
     .help = "Scrapes every target once more when the process stops, so that the last values are seen (the reference does so only when told to)."},
    {.key = "discovery_reload_on_startup", .kind = BIND_BOOL, CFG_AT(struct prom_config, discovery_reload_on_startup),
     .use = CFG_NO_EFFECT, .help = "Accepted, has no effect: targets are always loaded at once."},
    {.key = "initial_scrape_offset", .kind = BIND_DURATION, CFG_AT(struct prom_config, initial_scrape_offset_ns), CFG_MORE(.min = 0, .max = 9.2e18, CFG_PRESENCE(struct prom_config, initial_scrape_offset_given)),
     .help = "The first scrape of every target is this long after the start; by default it is anywhere within the first interval, "
             "elsewhere for every target."},
    {.key = "api_server", .kind = BIND_REFUSED, .help = "there is no API server of Prometheus"},
    {.key = "target_allocator", .kind = BIND_REFUSED, .help = "targets come from the configuration, not from a target allocator"},
    {.key = "report_extra_scrape_metrics", .kind = BIND_REFUSED, .def = "false", .help = "use extra_scrape_metrics below config"},
    {0}};
/* clang-format on */
