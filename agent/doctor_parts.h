/* Between the files of doctor. */
#ifndef MOTEL_DOCTOR_PARTS_H
#define MOTEL_DOCTOR_PARTS_H

#include "agent/doctor.h"
#include "agent/load.h"
#include "agent/pipeline/probe.h"

/* Where findings go. */
struct doctor_report {
    FILE *out;
    bool json;
    unsigned counts[PROBE_FAIL + 1]; /* by grade */
};
/* Prints one finding, without secrets. */
void doctor_report_finding(struct doctor_report *r, const struct probe_finding *f);
/* The line, or the end of the JSON object, that sums up. */
void doctor_report_end(struct doctor_report *r);

/* What belongs to no component: warnings of the configuration, own metrics, log files, directories, limits. The first looks at addresses only. */
void doctor_check_servers(struct probe *p, const struct loaded *l);
void doctor_check_rest(struct probe *p, const struct loaded *l);

/* Whether process `pid` is a motel, and whether it was started with the configuration of `cl`. */
enum probe_likeness doctor_likeness(const struct command_line *cl, pid_t pid);

#endif
