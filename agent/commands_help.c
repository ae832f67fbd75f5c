/* motel --help */
#include "agent/commands.h"

#include <string.h>

static const char opening[] =
    "motel is a small OpenTelemetry collector. Programs send it traces, metrics and logs (OTLP "
    "over\n"
    "gRPC or HTTP), it processes them and passes them on to a backend, to files or to the screen. "
    "It\n"
    "reads the same YAML configuration as the OpenTelemetry Collector.\n"
    "\n"
    "Usage:\n"
    "  motel [--config FILE]... [--set KEY=VALUE]...    run; without --config, a collector for "
    "this\n"
    "                                                   machine that prints what it receives\n"
    "  motel run [--config FILE] [--] COMMAND...        run a command with a collector beside it\n"
    "  motel replay FILE... --to URL                    send what logs and files hold to a "
    "backend\n"
    "  motel report FILE...                             whether the traces in logs and files hold "
    "together\n"
    "  motel validate --config FILE                     check a configuration and say what is "
    "wrong\n"
    "  motel print-config [--config FILE]               the whole configuration with its defaults\n"
    "  motel --gym-config FILE                          run beside a NeMo Gym job, as its "
    "telemetry: block says\n"
    "  motel explain --config FILE                      what a configuration does: flow, ports, "
    "files, ...\n"
    "  motel health [ADDRESS]                           ask a running motel whether it is well\n"
    "  motel doctor [--config FILE]                     whether a start finds what it needs: "
    "ports, "
    "backends,\n"
    "                                                   certificates, tokens, files\n"
    "  motel components [NAME]...                       what this build can receive, process, "
    "export;\n"
    "                                                   with a name the keys of that component\n"
    "  motel featuregate [ID]                           feature gates that are known\n"
    "  motel help [COMMAND]                             this text, or what a command does and "
    "takes\n"
    "  motel version                                    the version of this program\n"
    "\n"
    "Examples:\n"
    "  motel\n"
    "      Look at what a program sends. In the shell of that program:\n"
    "      export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 \\\n"
    "             OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"
    "  motel --config collector.yaml\n"
    "      The collector of a job.\n"
    "  motel --config job.yaml --config motel.yaml --set processors.batch.timeout=1s\n"
    "      Two files merged, and one value changed.\n"
    "  OTEL_EXPORTER_OTLP_ENDPOINT=http://backend:4317 motel --gym-config gym.yaml\n"
    "      Stamp what a NeMo Gym run sends to this machine, and pass it on.\n"
    "\n"
    "Flags:\n"
    "  --config SOURCE        a file, file:PATH, env:NAME (YAML in a variable) or yaml:TEXT; may "
    "be\n"
    "                         repeated: maps are merged, lists and values are replaced\n"
    "  --gym-config FILE      a NeMo Gym config, of which the telemetry: block counts; may be "
    "repeated;\n"
    "                         --config lies over it\n"
    "  --set KEY=VALUE        one value over all files, dots between the levels\n"
    "  --feature-gates LIST   taken as in the OpenTelemetry Collector; see motel featuregate\n"
    "  --format FORMAT        of print-config: yaml or json; of doctor: text or json\n"
    "  --validate=false       print-config without a check of the pipelines\n"
    "  -v, --version          the version\n"
    "  -h, --help             this text\n";

static const char closing[] =
    "\n"
    "Files:\n"
    "  A path in the configuration counts from the directory in which motel was started. motel "
    "writes\n"
    "  only where the configuration says (file exporter, storage, spill directory, log output,\n"
    "  summary).\n"
    "\n"
    "Signals:\n"
    "  TERM, INT              stop: take no new data, deliver what is there, end. A second one "
    "ends at\n"
    "                         once, or writes what is left to the spill directory.\n"
    "  HUP                    read the configuration and certificates again; a bad one is reported "
    "and\n"
    "                         changes nothing.\n"
    "\n"
    "Exit codes:\n"
    "  0                      stopped by a signal; or the command did what it should\n"
    "  1                      a mistake on the command line or in the configuration, or a start "
    "that\n"
    "                         failed; the reason is on stderr\n";

#define INDENT 6
#define WIDTH 100

void help_print_wrapped(FILE *f, const char *text, int indent)
{
    int at = 0;
    for (const char *word = text; *word;) {
        const int len = (int)strcspn(word, " ");
        const bool fits = at > 0 && at + 1 + len <= WIDTH;
        if (at > 0 && !fits)
            fputc('\n', f);
        fprintf(f, "%*s%.*s", fits ? 1 : indent, "", len, word);
        at = (fits ? at + 1 : indent) + len;
        word += len + (int)strspn(word + len, " ");
    }
    fputc('\n', f);
}

static void print_settings(FILE *f)
{
    fputs("\nSettings of motel's own, each a flag, a variable (a flag wins) and a key of the\n"
          "section \"motel:\" in the configuration:\n",
          f);
    for (const struct cfg_field *s = motel_fields; s->key; s++) {
        char flag[64], variable[64];
        motel_flag_name(s, flag, sizeof(flag));
        motel_variable_name(s, variable, sizeof(variable));
        fprintf(f, "  %s, %s%s%s%s\n", flag, variable, s->def ? " (default " : "",
                s->def ? s->def : "", s->def ? ")" : "");
        help_print_wrapped(f, s->help, INDENT);
    }
}

void command_help(FILE *f, enum command topic)
{
    if (command_help_of(f, topic))
        return;
    fputs(opening, f);
    print_settings(f);
    fputs(closing, f);
}
