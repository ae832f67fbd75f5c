/* The pipeline that the telemetry settings of a NeMo Gym run ask for. */
#ifndef MOTEL_GYM_PIPELINE_H
#define MOTEL_GYM_PIPELINE_H

#include "agent/config/config.h"
#include "agent/gym/telemetry.h"

#define GYM_PIPELINE_FILE "--gym-config" /* where values come from that nobody gave */

/*
 * As a configuration, in `a`: receivers on 127.0.0.1, the processors gym and batch, the exporter. Values keep the place where they
 * came from, for error texts. An exporter that was given no endpoint has none in it, since a file that is merged over it may have one.
 * NULL after adding what is wrong to errs.
 */
struct cfg_value *gym_pipeline(struct arena *a, const struct gym_telemetry *t, struct cfg_errors *errs);

/*
 * After other files were merged over it: an exporter of gym_pipeline() that no pipeline uses any more is taken out of `c`; one in use must have an endpoint,
 * and none of the addresses on which an otlp receiver of `c` listens, which would send motel's output back to it. 0 or
 * -EINVAL.
 */
int gym_pipeline_check(struct config *c, struct cfg_errors *errs);

/* One "name=value" of OTEL_EXPORTER_OTLP_HEADERS, percent-decoded. */
struct gym_header {
    const char *name, *value;
};
/* The headers of such a list in *ret, *ret_n of them, later ones of a name in place of earlier ones. 0, or -EINVAL with a text
 * that does not show them. https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables */
int gym_headers_parse(struct arena *a, const char *list, struct gym_header **ret, size_t *ret_n, struct err *reterr);

#endif
