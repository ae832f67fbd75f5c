/* What stands in a certificate, for people. */
#ifndef MOTEL_NET_TLS_CERTIFICATE_H
#define MOTEL_NET_TLS_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/err.h"

struct certificate_info {
    char subject[200], issuer[200]; /* RFC 4514; cut; "(none)" when empty */
    char names[300];                /* DNS names and addresses, comma separated; "" = none */
    int64_t begins_s, expires_s;    /* Unix time */
    bool self_signed;
};
/* The first certificate of DER or PEM data. 0 or -EINVAL. */
int certificate_info_read(const void *data, size_t len, bool pem, struct certificate_info *ret, struct err *reterr);
/* The same of a PEM file (NULL or "": of the text `pem`). -errno when it cannot be read. */
int certificate_info_load(const char *file, const char *pem, struct certificate_info *ret, struct err *reterr);
/* "2026-08-21". */
void certificate_date(int64_t unix_s, char ret[16]);

#endif
