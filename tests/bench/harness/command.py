"""tests/bench/run: measures, and keeps the figures in a JSON file.

The file is written after every run. Started again with the same file the command goes on where it was: runs that are in the file
are not repeated, failed ones are; more --rounds add rounds. Exit status 1 when something could not be measured or data was lost; a
figure never decides."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

from harness import machine
from harness.agent import Cannot
from harness.payloads import Payloads
from harness.peers import PEERS, ROOT
from harness.plan import DEFAULT_GROUPS, GROUPS, SPECS
from harness.scenarios import KINDS, Context
from harness.store import Results, Unusable, now
from harness.system import Failed, raise_descriptor_limit


def rounds(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def factor(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def arguments(argv):
    p = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, metavar="FILE.json", help="results; gone on with when it exists")
    p.add_argument("--rounds", type=rounds, default=3, help="of the table (3)")
    p.add_argument("--growth-rounds", type=rounds, default=1, help="of the growth part (1)")
    p.add_argument("--peers", default=",".join(PEERS), help="agents (%(default)s); what is not found is noted and left out")
    p.add_argument("--only", help=f"groups ({', '.join(GROUPS)}) or single runs (see --list); default: all groups but signals")
    p.add_argument("--scale", type=factor, default=1.0, help="factor for requests, seconds, repeats and connections (1)")
    p.add_argument("--again", default="", metavar="PEERS", help="drop the runs of these agents and make them anew")
    p.add_argument("--no-warm-pages", action="store_true", help="do not touch and free a GiB of memory before each measured window")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "bench"), help="folder for payloads and agents' files (build/bench)")
    p.add_argument("--list", action="store_true", help="list the runs, and end")
    return p.parse_args(argv)


def select(only):
    wanted = [w.strip() for w in only.split(",")] if only else DEFAULT_GROUPS
    unknown = [w for w in wanted if w not in GROUPS and w not in SPECS]
    if unknown:
        raise SystemExit(f"--only: no group or run {', '.join(unknown)}; groups: {', '.join(GROUPS)}; runs: --list")
    return [s for s in SPECS.values() if s.group in wanted or s.name in wanted]


def takes_part(spec, peer):
    """Floors swallow requests of one protocol, and growth is motel's alone."""
    if spec.group == "growth":
        return peer == "motel"
    floor = PEERS[peer].floor
    return not floor or spec.kind == "load" and spec.configuration == "nop" and spec.protocol == floor and not spec.gzip


def plan(specs, peers, rounds, growth_rounds):
    """(round, spec, peer): peers alternate within a round, so that a noisy minute meets them all."""
    for n in range(1, max(rounds, growth_rounds) + 1):
        for spec in specs:
            most = 1 if spec.kind == "size" else growth_rounds if spec.group == "growth" else rounds
            yield from ((n, spec, p) for p in peers if n <= most and takes_part(spec, p))


def measure(context, spec, peer, number):
    run = {"spec": spec.name, "peer": peer, "round": number, "date": now(), "load_before": round(os.getloadavg()[0], 2), "ok": False}
    try:
        run |= KINDS[spec.kind](context, peer, spec)
        run["ok"] = True
    except Cannot as e:
        run["cannot"] = str(e)
    except (Failed, OSError) as e:
        run["error"] = f"{type(e).__name__}: {e}"
    return run


def figure(run):
    if not run["ok"]:
        return "cannot: " + run["cannot"] if "cannot" in run else "FAILED: " + run["error"]
    fields = ("cpu_us_per_record", "cpu_ms_per_scrape", "wire_bytes_per_record", "cpu_ms_per_s", "anonymous_kib", "rss_peak_kib", "ready_ms",
              "stop_ms", "kib_per_connection", "stripped_kib")
    return ", ".join(f"{k} {run[k]:.6g}" for k in fields if k in run)


def find_peers(names, results, again):
    found = []
    for option, given in (("--peers", names), ("--again", again)):
        unknown = [n for n in given if n not in PEERS]
        if unknown:
            raise SystemExit(f"{option}: no agent {', '.join(unknown)}; there are {', '.join(PEERS)}")
    for name in names:
        identity = PEERS[name].identity()
        results.add_peer(name, identity, name in again)
        print(f"{name}: {identity['version'] if identity else PEERS[name].not_found()}", flush=True)
        if identity:
            found.append(name)
    if not found:
        raise SystemExit("none of these agents was found, so there is nothing to measure")
    return found


def sink_program():
    beside = os.path.join(os.path.dirname(PEERS["motel"].find() or ""), "tests", "bench", "sink")
    for path in (os.environ.get("BENCH_SINK", ""), beside, os.path.join(ROOT, "build", "tests", "bench", "sink")):
        if path and os.access(path, os.X_OK):
            return path
    raise SystemExit("the sink is not built: ninja -C build tests/bench/sink")


def perform(context, results, todo):
    began = time.monotonic()
    for i, (number, spec, peer) in enumerate(todo, 1):
        run = measure(context, spec, peer, number)
        results.add(run)
        print(f"[{i}/{len(todo)} {time.monotonic() - began:5.0f} s] round {number} {spec.name}, {peer}: {figure(run)}", flush=True)


def main(argv):
    if "--list" in argv:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # --list | head
        print("\n".join(f"{s.group:12} {s.name}" for s in SPECS.values()))
        return 0
    a = arguments(argv)
    specs = select(a.only)
    if not shutil.which("h2load"):
        raise SystemExit("h2load is not here (Debian: nghttp2-client)")
    raise_descriptor_limit()
    os.makedirs(a.work, exist_ok=True)
    try:
        results = Results(a.out)
        peers = find_peers(a.peers.split(","), results, a.again.split(",") if a.again else [])
        results.describe(machine.describe(), machine.versions(), {"rounds": a.rounds, "scale": a.scale, "warm_pages": not a.no_warm_pages})
        results.save()
    except Unusable as e:
        raise SystemExit(str(e)) from None
    print(f"load average {os.getloadavg()[0]:.2f} on {len(os.sched_getaffinity(0))} cores", flush=True)
    todo = [t for t in plan(specs, peers, a.rounds, a.growth_rounds) if not results.done(t[1].name, t[2], t[0])]
    with tempfile.TemporaryDirectory(prefix="run-", dir=a.work) as folder:
        payloads = Payloads(os.path.join(a.work, "payloads"))
        perform(Context(folder, payloads, sink_program(), a.scale, not a.no_warm_pages), results, todo)
    failed = results.failures()
    for run in failed:
        print(f"FAILED: {run['spec']}, {run['peer']}, round {run['round']}: {run['error']}", file=sys.stderr)
    print(f"{len(results.runs)} runs in {a.out}, {len(failed)} failed")
    return 1 if failed else 0
