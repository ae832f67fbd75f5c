"""The agents that can be measured, where they are found, and what each cannot do.

To add an agent: one entry in PEERS and a folder of tests/bench/configs with its configurations (see CONFIGURATIONS).
"""
import dataclasses
import glob
import hashlib
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(os.path.dirname(BENCH))
CONFIG_FOLDER = os.path.join(BENCH, "configs")

# The variables that the Gym configuration reads.
GYM_ENVIRONMENT = {"OTEL_TOKEN": "secret-token-0123456789", "SLURM_JOB_ID": "4711"}
ACCEPTED = re.compile(r"^otelcol_receiver_accepted_(?:spans|metric_points|log_records)\S* (\S+)", re.M)

# name -> (file in the peer's folder, tags of the lines to keep, values of the placeholders)
CONFIGURATIONS = {
    "nop": ("nop", (), {}),
    "upserts": ("upserts", ("http", "none"), {"COMPRESSION": "none", "TIMEOUT": "200ms", "FLUSH_S": "0.2"}),
    "upserts_gzip": ("upserts", ("http", "gzip"), {"COMPRESSION": "gzip", "TIMEOUT": "200ms", "FLUSH_S": "0.2"}),
    "held_http": ("upserts", ("http", "none"), {"COMPRESSION": "none", "TIMEOUT": "30s", "FLUSH_S": "30"}),
    "held_file": ("upserts", ("file",), {"TIMEOUT": "30s"}),
    "gym_file": ("gym", (), {}),
    "gym_file_http": ("gym", ("http",), {}),
    "gym_full": ("gym", ("http", "span_metrics"), {}),
    "scrape": ("scrape", (), {"INTERVAL": "1s"}),
    "scrape_fast": ("scrape", (), {"INTERVAL": "500ms"}),
}


@dataclasses.dataclass(frozen=True)
class Peer:
    """One agent. `argv` may use {program}, {config} (the rendered file) and {out} (its folder)."""
    name: str
    variable: str                       # environment variable that names the program
    candidates: tuple                   # paths (globs, from the project's root) and names in PATH, tried in order
    folder: str                         # folder of tests/bench/configs
    suffix: str = "yaml"
    argv: tuple = ("{program}", "--config", "{config}")
    lines_are_arguments: bool = False   # the configuration's lines are added to argv
    version: tuple = ("--version",)
    environment: dict = dataclasses.field(default_factory=dict)
    counts: bool = False                # has ACCEPTED counters on its own /metrics
    floor: str = ""                     # "http" or "grpc": a server that only swallows requests of this protocol
    cannot: dict = dataclasses.field(default_factory=dict)   # configuration -> why not

    def find(self):
        """The program's path, or None."""
        given = os.environ.get(self.variable)
        for place in (given,) if given else self.candidates:
            found = shutil.which(place) if "/" not in place else next(iter(glob.glob(os.path.join(ROOT, place))), None)
            if found and os.access(found, os.X_OK):
                return os.path.abspath(found)
        return None

    def not_found(self):
        given = os.environ.get(self.variable)
        return f"not found: {self.variable}={given} is no program" if given else f"not found ({self.variable} can name it)"

    def identity(self):
        """Version, size and hash of the program, for the results."""
        program = self.find()
        if not program:
            return None
        said = subprocess.run([program, *self.version], capture_output=True, text=True, check=False)
        lines = (said.stdout or said.stderr).strip().splitlines()
        with open(program, "rb") as f:
            digest = hashlib.file_digest(f, "sha256").hexdigest()
        return {"program": os.path.basename(program), "version": lines[0].strip() if lines else "?", "sha256": digest,
                "bytes": os.path.getsize(program)}

    def render(self, configuration, values):
        """The text of a configuration; raises KeyError (the reason) when this peer has none."""
        if configuration in self.cannot:
            raise KeyError(self.cannot[configuration])
        name, tags, fixed = CONFIGURATIONS[configuration]
        base = self.name if self.floor else name
        path = os.path.join(CONFIG_FOLDER, self.folder, f"{base}.{self.suffix}")
        if not os.path.exists(path) or self.floor and configuration != "nop":
            raise KeyError("has no such pipeline")
        with open(path, encoding="utf-8") as f:
            kept = [line for line in map(_split_tag, f.read().splitlines()) if not line[1] or line[1] in tags]
        text = "\n".join(line for line, _ in kept) + "\n"
        for key, value in {**fixed, **values, "CONFIGS": os.path.dirname(path)}.items():
            text = text.replace(f"@{key}@", str(value))
        return text


def _split_tag(line):
    """A line and its tag: `text  #? tag` is kept in configurations with that tag only."""
    text, _, tag = line.partition("#?")
    return text.rstrip(), tag.strip()


_NO_FILES = "has no file exporter"

PEERS = {p.name: p for p in (
    Peer("motel", "MOTEL", ("build/motel",), "collector", environment=GYM_ENVIRONMENT, counts=True),
    Peer("static", "MOTEL_STATIC", (f"dist/motel-*-linux-{os.uname().machine}",), "collector", environment=GYM_ENVIRONMENT, counts=True),
    Peer("reference", "REFERENCE_COLLECTOR", ("otelcol-contrib", "otelcol"), "collector", environment=GYM_ENVIRONMENT, counts=True),
    Peer("rotel", "ROTEL", (".venv-rotel/lib/python3*/site-packages/rotel/rotel-agent", "rotel-agent", "rotel"), "rotel", suffix="args",
         argv=("{program}", "start"), lines_are_arguments=True,
         cannot={"upserts": "compresses although its compression is off", "gym_file": _NO_FILES + " and no OTTL",
                 "gym_file_http": _NO_FILES + " and no OTTL", "gym_full": "has no span metrics", "held_file": _NO_FILES,
                 "scrape": "has no Prometheus receiver", "scrape_fast": "has no Prometheus receiver"}),
    Peer("fluentbit", "FLUENT_BIT", ("fluent-bit", "/opt/fluent-bit/bin/fluent-bit"), "fluentbit", argv=("{program}", "-c", "{config}"),
         cannot={"gym_file": "has no OTTL", "gym_file_http": "has no OTTL", "gym_full": "has no span metrics",
                 "held_file": "writes no traces to files", "scrape": "writes metrics as text, not as OTLP JSON",
                 "scrape_fast": "writes metrics as text, not as OTLP JSON"}),
    Peer("nginx", "NGINX", ("nginx", "/usr/sbin/nginx"), "floors", suffix="conf", version=("-v",), floor="http",
         argv=("{program}", "-c", "{config}", "-p", "{out}")),
    Peer("mhd", "MHD_FLOOR", ("build/tests/bench/mhd_floor",), "floors", suffix="args", argv=("{program}",),
         lines_are_arguments=True, floor="http"),
    Peer("nghttpd", "NGHTTPD", ("nghttpd", "/usr/sbin/nghttpd"), "floors", suffix="args", argv=("{program}",),
         lines_are_arguments=True, floor="grpc"),
)}
