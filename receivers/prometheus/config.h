/* Keys of the prometheus receiver: the reference's, and below `config` those of a Prometheus configuration file. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_CONFIG_H
#define MOTEL_RECEIVERS_PROMETHEUS_CONFIG_H

#include "agent/config/bind.h"
#include "agent/net/tls.h"

enum relabel_action {
    RELABEL_REPLACE, RELABEL_KEEP, RELABEL_DROP, RELABEL_KEEPEQUAL, RELABEL_DROPEQUAL, RELABEL_HASHMOD, RELABEL_LABELMAP,
    RELABEL_LABELDROP, RELABEL_LABELKEEP, RELABEL_LOWERCASE, RELABEL_UPPERCASE,
};
extern const char *const prom_relabel_actions[]; /* their names, NULL ended */
struct relabel_config {
    struct cfg_list source_labels; /* of const char * */
    const char *separator, *regex, *target_label, *replacement;
    int64_t modulus;
    int action;
    enum cfg_presence separator_given, regex_given, replacement_given;
};
struct static_config {
    struct cfg_list targets; /* of const char * */
    struct cfg_map labels;   /* of const char * */
};
struct file_sd_config {
    struct cfg_list files; /* of const char * */
    const char *refresh_interval;
};
struct basic_auth_config {
    const char *username, *username_file, *password, *password_file;
};
struct authorization_config {
    const char *type, *credentials, *credentials_file;
};
struct http_header_config {
    struct cfg_list values, secrets, files; /* of const char * */
};
struct prom_tls_config {
    const char *ca, *ca_file, *cert, *cert_file, *key, *key_file, *server_name;
    bool insecure_skip_verify;
    int min_version, max_version; /* 0 = default, 1 TLS10 … 4 TLS13 */
};

/* What a job takes from `global` where it has none of its own; 0 or NULL = none. */
struct scrape_limits {
    const char *body_size_limit;
    int64_t sample_limit, target_limit, label_limit, label_name_length_limit, label_value_length_limit;
    int name_escaping;              /* 0 = not given */
    const struct cfg_value *unused; /* keys without an effect */
};
enum scrape_protocol { PROTO_PROTOBUF, PROTO_TEXT_0_0_4, PROTO_TEXT_1_0_0, PROTO_OPENMETRICS_0_0_1, PROTO_OPENMETRICS_1_0_0 };

struct scrape_config {
    const char *job_name;
    const char *scrape_interval, *scrape_timeout; /* NULL = global */
    const char *metrics_path;
    int scheme;            /* 0 http, 1 https */
    struct cfg_map params; /* of struct cfg_list of const char * */
    bool honor_labels, honor_timestamps, track_timestamps_staleness, enable_compression;
    struct cfg_list scrape_protocols; /* of int: enum scrape_protocol; empty = global */
    int fallback_scrape_protocol;     /* enum scrape_protocol */
    struct scrape_limits limits;
    const struct cfg_value *extra_scrape_metrics; /* NULL = global */
    struct cfg_list static_configs, file_sd_configs;         /* of struct static_config, file_sd_config */
    struct cfg_list relabel_configs, metric_relabel_configs; /* of struct relabel_config */
    const struct basic_auth_config *basic_auth;
    const struct authorization_config *authorization;
    const char *bearer_token, *bearer_token_file;
    struct prom_tls_config tls;
    const char *proxy_url, *no_proxy;
    bool proxy_from_environment, follow_redirects, enable_http2;
    struct cfg_map http_headers; /* of struct http_header_config */
};
struct global_config {
    const char *scrape_interval, *scrape_timeout;
    struct cfg_list scrape_protocols;
    struct cfg_map external_labels;
    struct scrape_limits limits;
    bool extra_scrape_metrics;
    const struct cfg_value *unused;
};
struct prom_file_config {
    struct global_config global;
    struct cfg_list scrape_configs; /* of struct scrape_config */
};
struct prom_config {
    struct prom_file_config file; /* `config` */
    bool trim_metric_suffixes, scrape_on_shutdown, discovery_reload_on_startup;
    int64_t initial_scrape_offset_ns;
    enum cfg_presence initial_scrape_offset_given;
};
extern const struct cfg_field prom_fields[];
int prom_config_check(const void *config, struct err *reterr);

/* A job with everything decided that the file leaves to `global` or to defaults. */
struct job_settings {
    const struct scrape_config *config;
    uint64_t interval_ns, timeout_ns;
    uint64_t body_size_limit; /* 0 = none */
    uint64_t sample_limit, target_limit, label_limit, label_name_length_limit, label_value_length_limit;
    bool extra_metrics;
    char accept[400]; /* value of the Accept header */
};
/* 0, or -EINVAL with the reason, about a key of the job. */
int prom_job_settings(const struct prom_file_config *file, const struct scrape_config *job, struct job_settings *ret, struct err *reterr);

/* Prometheus' durations, "1d12h", "15s", "0"; units y w d h m s ms, each once, in this order. 0 or -EINVAL with the reason. */
int prom_parse_duration(const char *text, uint64_t *ret_ns, struct err *reterr);
/* The same the other way, as Prometheus writes it ("1m", "1h30m", "500ms"). */
void prom_format_duration(uint64_t ns, char ret[40]);
/* "10MB", "512KiB" (1024 each), "0". 0 or -EINVAL with the reason. */
int prom_parse_size(const char *text, uint64_t *ret_bytes, struct err *reterr);

#endif
