/*
 * How many spans a sampled span stands for, from the threshold in its W3C tracestate ("ot=th:c"),
 * https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/ and https://www.w3.org/TR/trace-context/#tracestate-header.
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_TRACESTATE_H
#define MOTEL_CONNECTORS_SPAN_METRICS_TRACESTATE_H

#include "agent/base/bytes.h"

/* True with the threshold, spans rejected out of 2^56, when `tracestate` is well formed and has one. */
bool tracestate_threshold(struct bytes tracestate, uint64_t *ret);
/* 2^56 / (2^56 - threshold), rounded up or down at random so that the mean is right; `rng` is the state, not zero. */
uint64_t tracestate_adjusted_count(uint64_t threshold, uint64_t *rng);

#endif
