/* motel replay --help, motel report --help */
#include "agent/commands.h"

static const char report_help[] =
    "motel report FILE...                     tells whether traces hold together\n"
    "motel report -                           the same of what comes on stdin\n"
    "\n"
    "Reads logs with console telemetry in them (NeMo Gym's server logs, a saved terminal) and\n"
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
    "  python job.py | motel report -\n";

static const char replay_help[] =
    "motel replay FILE... --to TARGET         sends what files hold to a backend\n"
    "\n"
    "Reads logs with console telemetry in them and files of the file exporter, also compressed "
    "with\n"
    "zstd; - is stdin. Waits for the backend's answers, tries again what may be tried again, and "
    "says\n"
    "at the end what was delivered and what was not.\n"
    "\n"
    "  --to http://HOST:4318      a backend (OTLP); port 4317 means gRPC unless --protocol says "
    "otherwise\n"
    "  --to FILE                  a file of the file exporter, which is added to; also file:FILE\n"
    "  --to -                     stdout, one JSON object a record\n"
    "                             without --to: OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL and "
    "_HEADERS\n"
    "  --protocol P               grpc, http/protobuf or http/json\n"
    "  --header NAME=VALUE        for the backend, e.g. Authorization=\"Bearer $TOKEN\"; "
    "repeatable\n"
    "  --compression C            gzip (default), zstd, none, ...\n"
    "  --set-resource NAME=VALUE  an attribute of every resource, in place of one that is there;\n"
    "                             repeatable\n"
    "  --rate N                   records a second at most\n"
    "  --state FILE               remembers what was delivered: the same command sends only what "
    "is new,\n"
    "                             and goes on where it was interrupted\n"
    "\n"
    "Exit codes: 0 all was delivered; 1 something was not; 2 nothing was tried: a mistake on the "
    "command\n"
    "line, or a file that cannot be opened.\n"
    "\n"
    "  motel replay logs/*.log --to http://localhost:4318\n"
    "  motel replay otel/*.jsonl --to https://backend.example:4318 --state sent.json \\\n"
    "      --header Authorization=\"Bearer $TOKEN\" --set-resource run_id=rerun-7\n"
    "  motel replay server.log --to traces.jsonl       console telemetry to OTLP/JSON\n";

bool command_help_of(FILE *f, enum command topic)
{
    const char *text = topic == COMMAND_REPORT   ? report_help
                       : topic == COMMAND_REPLAY ? replay_help
                                                 : NULL;
    if (text)
        fputs(text, f);
    return text != NULL;
}
