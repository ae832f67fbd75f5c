/* motel run --help, motel replay --help, motel report --help */
#include "agent/commands.h"

static const char report_help[] =
    "motel report FILE...                     tells whether traces hold together\n"
    "motel report -                           the same of what comes on stdin\n"
    "\n"
    "Reads logs with console telemetry in them (NeMo Gym's server logs, what motel run passed on) "
    "and\n"
    "files of the file exporter, also compressed with zstd. Says how many traces go from service "
    "to\n"
    "service, which ones are broken and why, what each service sent, and which spans took most "
    "time.\n"
    "A span that is in two files counts once.\n"
    "\n"
    "  --all             every trace, not only broken ones\n"
    "  --json            one JSON object\n"
    "  --max-traces N    traces that are kept; about 2 KB each with 50 spans (default 100000)\n"
    "\n"
    "Exit codes: 0 propagation works; 1 it is broken, or nothing shows that it works; 2 a file "
    "cannot be\n"
    "read, or a mistake on the command line.\n"
    "\n"
    "  motel report logs/*.log otel/traces.jsonl\n"
    "  motel run -- python job.py | motel report -\n";

bool command_help_of(FILE *f, enum command topic)
{
    const char *text = topic == COMMAND_REPORT ? report_help : NULL;
    if (text)
        fputs(text, f);
    return text != NULL;
}
