#include "agent/gym/run_id.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"

static char made[13]; /* for this process */

static void make(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        bits = clock_wall_ns() ^ (uint64_t)getpid() << 40;
    for (int i = 0; i < 12; i++, bits >>= 4)
        made[i] = "0123456789abcdef"[bits & 15];
}

char *gym_run_id(const char *given)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *const choice[] = {given, getenv("NEMO_GYM_OTEL_RUN_ID"), getenv("NEMO_LENS_RUN_ID"),
                                  getenv("SLURM_JOB_ID")};
    for (size_t i = 0; i < ARRAY_SIZE(choice); i++) {
        const char *text = choice[i];
        while (text && isspace((unsigned char)*text))
            text++;
        size_t len = text ? strlen(text) : 0;
        while (len && isspace((unsigned char)text[len - 1]))
            len--;
        if (len)
            return strndup(text, len);
    }
    pthread_once(&once, make);
    return strdup(made);
}
