/* motel run --help, motel replay --help, motel report --help, motel explain --help */
#include "agent/commands_parts.h"

static const char run_help[] =
    "motel run [--config FILE | --gym-config FILE] [--] COMMAND [ARGUMENT]...\n"
    "\n"
    "Runs a command with the collector beside it. What the command prints goes through unchanged, "
    "signals\n"
    "reach it, and motel run ends with its exit code, after what it sent was delivered. Its "
    "telemetry\n"
    "comes in by two ways: what it prints with console exporters, and what its SDK sends to motel, "
    "whose\n"
    "address it finds in OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL.\n"
    "\n"
    "Without a configuration the telemetry is in motel-RUNID.jsonl afterwards: motel report looks "
    "at\n"
    "it, motel replay sends it to a backend. With one it goes where that says.\n"
    "\n"
    "Set for the command, where it is not set: OTEL_EXPORTER_OTLP_ENDPOINT and _PROTOCOL,\n"
    "NEMO_GYM_OTEL_ENABLED, NEMO_GYM_OTEL_RUN_ID. With --gym-config the variables "
    "OTEL_EXPORTER_OTLP_* say\n"
    "where motel sends to, and the command gets motel's address.\n"
    "\n"
    "Nothing that goes wrong with telemetry keeps the command from running: also without a "
    "backend, with a\n"
    "mistake in the configuration or a port that is taken it runs, and a warning on stderr says "
    "so.\n"
    "(motel validate --config FILE checks before.)\n"
    "\n"
    "Exit codes: the command's; 128 + n when signal n ended it; 127 it was not found; 126 it "
    "cannot be\n"
    "executed; 125 a mistake on motel's own command line.\n"
    "\n"
    "  motel run python train.py\n"
    "  motel run --config collector.yaml -- gym env start ...\n"
    "  OTEL_EXPORTER_OTLP_ENDPOINT=https://backend:4317 motel run --gym-config gym.yaml -- gym env "
    "start ...\n";

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
    "  without --to               OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL and _HEADERS say where\n"
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
    const char *text = topic == COMMAND_JOB            ? run_help
                       : topic == COMMAND_REPORT       ? report_help
                       : topic == COMMAND_REPLAY       ? replay_help
                       : topic == COMMAND_EXPLAIN      ? command_explain_help
                       : topic == COMMAND_HEALTH       ? command_health_help
                       : topic == COMMAND_DOCTOR       ? command_doctor_help
                       : topic == COMMAND_PRINT_CONFIG ? command_print_config_help
                                                       : NULL;
    if (text)
        fputs(text, f);
    return text != NULL;
}
