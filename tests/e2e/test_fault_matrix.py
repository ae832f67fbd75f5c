"""What becomes of every span when the backend fails in one of thirteen ways, at one of three moments, behind one of two exporters.

Each case sends numbered spans and then asks three witnesses: the clients (what was answered with 200), the backend (what it took) and motel
(its page of metrics, its log, its summary). They have to agree, and each span has to be accounted for.

    python tests/e2e/test_fault_matrix.py        prints the tables for docs/operations.md
"""
import collections
import concurrent.futures
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time

import pytest

from conftest import MOTEL, Program, SANITIZER_WORDS, free_port, post, span_request, wait_until
from fault_backend import BACKENDS, FAULTS

EXPORTERS, MOMENTS = ("otlp_http", "otlp_grpc"), ("start", "middle", "shutdown")
AT_ONCE = 6                                 # cases
BEFORE, DURING, AFTER = 10, 120, 10          # spans of two requests each: while the backend is healthy, faulty, healthy again

# ---- expectations

KEPT_TRYING, REFUSED, PARTLY = "tries again", "gives up", "takes in part"
# What motel makes of a fault. `left` says what of DURING does not arrive when it has to be decided.
REACTION = {
    #           otlp_http    otlp_grpc
    "refuses": (KEPT_TRYING, KEPT_TRYING),
    "hangs": (KEPT_TRYING, KEPT_TRYING),
    "stalls": (KEPT_TRYING, KEPT_TRYING),   # like hangs; connections of that time never recover
    "resets": (KEPT_TRYING, KEPT_TRYING),
    "400": (REFUSED, REFUSED),              # gRPC: INTERNAL
    "401": (REFUSED, REFUSED),              # gRPC: UNAUTHENTICATED
    "404": (REFUSED, REFUSED),              # gRPC: UNIMPLEMENTED
    "429": (KEPT_TRYING, KEPT_TRYING),      # gRPC: UNAVAILABLE
    "500": (REFUSED, REFUSED),              # gRPC: UNKNOWN
    "503": (KEPT_TRYING, KEPT_TRYING),      # gRPC: UNAVAILABLE
    "partial": (PARTLY, PARTLY),
    "garbage": (REFUSED, REFUSED),
    "slow": (KEPT_TRYING, KEPT_TRYING),     # slower than `timeout` allows
}

Fate = collections.namedtuple("Fate", "accepted refused arrived rejected dropped kept", defaults=(0,))       # spans; kept: on disk after the stop
# By reaction and moment. 130 are sent at the start (the fault is there first), 140 in the middle, 130 at the stop (nothing comes after).
FATES = {
    (KEPT_TRYING, "start"): Fate(130, 0, 130, 0, 0),
    (KEPT_TRYING, "middle"): Fate(140, 0, 140, 0, 0),
    (KEPT_TRYING, "shutdown"): Fate(130, 0, 10, 0, 120),
    (REFUSED, "start"): Fate(130, 0, 10, 120, 0),
    (REFUSED, "middle"): Fate(140, 0, 20, 120, 0),
    (REFUSED, "shutdown"): Fate(130, 0, 10, 120, 0),
    (PARTLY, "start"): Fate(130, 0, 128, 2, 0),
    (PARTLY, "middle"): Fate(140, 0, 138, 2, 0),
    (PARTLY, "shutdown"): Fate(130, 0, 128, 2, 0),
}

# Without a queue the client waits for the backend's answer: (status over otlp_http, over otlp_grpc).
DIRECT_STATUS = {
    "refuses": (503, 503), "hangs": (503, 503), "stalls": (503, 503), "resets": (503, 503), "400": (400, 500), "401": (401, 401), "404": (404, 404), "429": (429, 503),
    "500": (500, 500), "503": (503, 503), "partial": (200, 200), "garbage": (500, 500), "slow": (503, 503),
}

CONFIG = """
motel: {{shutdown_timeout: 3s, summary: summary.json}}
extensions: {extensions}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors: {{batch: {{timeout: 0s}}}}
exporters:
  {exporter}:
    endpoint: "http://127.0.0.1:{backend}"
    compression: none
    timeout: {timeout}
    sending_queue: {queue}
    retry_on_failure: {retry}
service:
  telemetry: {{logs: {{sampling: {{enabled: false}}}}, metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {page}}}}}}}}}]}}}}
  extensions: {used}
  pipelines: {{traces: {{receivers: [otlp], processors: [{processors}], exporters: [{exporter}]}}}}
"""
RETRY = "{initial_interval: 100ms, max_interval: 100ms, max_elapsed_time: 0}"
Variant = collections.namedtuple("Variant", "queue retry processors")
VARIANTS = {
    "queue": Variant("{num_consumers: 1}", RETRY, ""),
    "batch": Variant("{num_consumers: 1}", RETRY, "batch"),
    "direct": Variant("{enabled: false}", "{enabled: false}", ""),
    "waiting": Variant("{wait_for_result: true}", "{enabled: false}", ""),
    "batch, direct": Variant("{enabled: false}", "{enabled: false}", "batch"),
    "disk": Variant("{num_consumers: 1, storage: file_storage}", RETRY, ""),
    "batch, disk": Variant("{num_consumers: 1, storage: file_storage}", RETRY, "batch"),
    "batch, full": Variant("{num_consumers: 1, queue_size: 1}", RETRY, "batch"),
}
ON_DISK = ("disk", "batch, disk")
TOLD = ("direct", "waiting")        # the client has the backend's answer
Case = collections.namedtuple("Case", "variant fault exporter moment")
CASES = [Case("queue", f, e, m) for f in FAULTS for e in EXPORTERS for m in MOMENTS]
CASES += [Case("batch", f, "otlp_http", m) for f in ("refuses", "400", "503", "partial") for m in ("middle", "shutdown")]
CASES += [Case("direct", f, e, "middle") for f in FAULTS for e in EXPORTERS]
CASES += [Case("waiting", f, e, "middle") for f in ("refuses", "401", "503", "partial") for e in EXPORTERS]
CASES += [Case("batch, direct", f, "otlp_http", m) for f in ("refuses", "resets", "400", "503", "partial") for m in ("middle", "shutdown")]
CASES += [Case("batch, full", f, "otlp_http", m) for f in ("refuses", "400", "503") for m in ("middle", "shutdown")]


CASES += [Case("disk", f, e, m) for f in FAULTS for e in EXPORTERS for m in ("middle", "shutdown")]
CASES += [Case("batch, disk", f, "otlp_http", m) for f in ("refuses", "400", "503", "partial") for m in ("middle", "shutdown")]


def reaction(case):
    return REACTION[case.fault][EXPORTERS.index(case.exporter)]


def expected(case):
    if case.variant in ON_DISK and reaction(case) == KEPT_TRYING and case.moment == "shutdown":
        return Fate(130, 0, 10, 0, 0, 120)
    if case.variant not in TOLD:
        return FATES[reaction(case), case.moment]
    status = DIRECT_STATUS[case.fault][EXPORTERS.index(case.exporter)]
    if status == 200:
        return Fate(140, 0, 138, 2, 0)
    return Fate(20, 120, 20, 120 if reaction(case) == REFUSED else 0, 0)       # a refusal for good counts as a loss, whoever was told


# ---- a run

_ports = threading.Lock()


def ports(n):
    with _ports:
        return [free_port() for _ in range(n)]


class Run:
    """One case: motel, its backend, a client that counts."""

    def __init__(self, case, folder):
        self.case, self.next, self.kept = case, 0, set()
        self.accepted, self.refused, self.statuses, self.told = set(), set(), [], 0     # told: spans of all answers but 200
        self.port, self.page_port, backend = ports(3)
        self.backend = BACKENDS[case.exporter](backend)
        self.backend.make(case.fault if case.moment == "start" else None)
        self.folder = folder
        self.program = self.start()

    def start(self):
        case = self.case
        disk = case.variant in ON_DISK
        text = CONFIG.format(port=self.port, page=self.page_port, backend=self.backend.port, exporter=case.exporter, used="[file_storage]" if disk else "[]",
                             extensions=f"{{file_storage: {{directory: {self.folder}/queue, create_directory: true}}}}" if disk else "{}",
                             timeout="2s" if case.fault in ("hangs", "stalls", "slow") else "20s",
                             **VARIANTS[case.variant]._asdict())
        return Program(MOTEL, self.folder, text, wait_ports=[self.port, self.page_port])

    def post_one(self, numbers):
        """One request; whether it was answered with 200."""
        status = post(self.port, "traces", span_request(len(numbers), start=numbers[0]))[0]
        self.statuses.append(status)
        if status == 200:
            self.accepted.update(numbers)
        else:
            self.told += len(numbers)
        return status == 200

    def post(self, spans, insist=False):
        """Two requests, each again and again if insist is true."""
        for _ in range(2):
            numbers = range(self.next, self.next + spans // 2)
            self.next += spans // 2
            if not self.post_one(numbers):
                if insist:
                    wait_until(lambda: self.post_one(numbers), what="an answer 200")
                else:
                    self.refused.update(numbers)

    def counters(self):
        text = post(self.page_port, "", b"", path="/metrics", method="GET")[2].decode()
        return {m[1]: int(float(m[2])) for m in re.finditer(r"^(\w+)(?:_total)?\{[^}]*\} (\S+)$", text, re.M) if "spans" in m[1] or "dropped_items" in m[1]}

    def decided(self):
        c = self.counters()
        value = lambda name: c.get(f"{name}_spans", 0)
        return value("otelcol_exporter_sent") + value("otelcol_exporter_send_failed") - value("motel_exporter_returned") == self.next - self.waiting()

    def waiting(self):
        """Spans that were given back to their sender: no exporter has decided about them."""
        return len(self.refused) if reaction(self.case) == KEPT_TRYING else 0

    def failed_attempts(self):
        return self.program.stderr.count("Will retry the request") + self.program.stderr.count("Exporting failed. Rejecting data.")

    def wait_for_the_fault(self):
        """Until it has shown: a decision that is final, or so many attempts that failed."""
        if self.case.variant in TOLD:
            return
        if reaction(self.case) == KEPT_TRYING:
            wait_until(lambda: self.failed_attempts() >= 2, what="two failed attempts")
        else:
            wait_until(self.decided, what="a decision about all spans")

    def play(self):
        if self.case.moment != "start":
            self.post(BEFORE)
            wait_until(self.decided, what="the first spans at the backend")
        self.backend.make(self.case.fault)
        self.post(DURING)
        self.wait_for_the_fault()
        if self.case.moment != "shutdown":
            self.backend.make(None)
            self.post(AFTER, insist=True)
            wait_until(self.decided, what="a decision about all spans")
        self.began_to_stop = time.monotonic()
        assert self.program.stop(signal.SIGTERM, limit=60) == 0
        self.stop_s = time.monotonic() - self.began_to_stop
        with open(self.program.path("summary.json"), encoding="utf-8") as f:
            self.summary = json.load(f)
        self.log = self.program.stderr
        assert not any(w in self.log for w in SANITIZER_WORDS), self.log[-6000:]
        self.taken = list(self.backend.taken)
        if self.case.variant in ON_DISK:
            self.play_the_rest()
        return self

    def play_the_rest(self):
        """Another start finds what was kept, and a backend that is well."""
        self.backend.make(None)
        self.program = self.start()
        wait_until(lambda: len(set(self.backend.taken)) == len(self.accepted) - expected(self.case).rejected, what="all that was kept at the backend")
        assert self.program.stop(signal.SIGTERM, limit=60) == 0
        self.kept = set(self.backend.taken) - set(self.taken)

    def end(self):
        self.program.kill()
        self.backend.close()

    # ---- the witnesses

    def logged(self, key):
        return sum(int(n) for n in re.findall(rf'"{key}": (\d+)', self.log))

    def exporter_row(self):
        (row,) = [r for r in self.summary["exporters"] if r["signal"] == "traces"]
        return row

    def fate(self):
        row, held = self.exporter_row(), sum(p["dropped"] for p in self.summary["processors"])
        return Fate(len(self.accepted), len(self.refused), len(set(self.taken)), row["rejected"], row["dropped"] + held, len(self.kept))


def run(case, folder):
    r = Run(case, folder)
    try:
        return r.play()
    finally:
        r.end()


# ---- the tests

def name(case):
    return "-".join(case).replace(", ", "_")


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """The cases that were asked for, several at once: most of their time is waiting."""
    folder = tmp_path_factory.mktemp("matrix")
    wanted = [i.callspec.params["case"] for i in request.session.items if i.module is request.module and hasattr(i, "callspec")]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        yield {c: pool.submit(run, c, os.path.join(folder, name(c))) for c in dict.fromkeys(wanted)}


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_span_is_accounted_for(runs, case):
    r = runs[case].result()
    assert r.fate() == expected(case), r.log[-4000:]
    check_clients(r)
    check_sums(r)
    check_words(r)
    check_attempts(r)


def check_clients(r):
    """With a queue nobody is bothered; without one the client has the backend's answer."""
    s = r.summary["signals"]["traces"]
    assert (s["accepted"], s["refused"], s["failed"]) == (len(r.accepted), r.told, 0)
    if r.case.variant in TOLD:
        status = DIRECT_STATUS[r.case.fault][EXPORTERS.index(r.case.exporter)]
        assert r.statuses[:4] == [200, 200, status, status] and r.statuses[-1] == 200
        if r.case.exporter == "otlp_http" or r.case.fault not in ("refuses", "stalls"):        # there a new connection is not tried at once
            assert r.statuses[4:] == [200, 200]
    else:
        assert set(r.statuses) == {200}


def check_sums(r):
    """Nothing is acknowledged and then forgotten, and nobody counts what did not happen."""
    fate, row, taken = r.fate(), r.exporter_row(), set(r.taken)
    lost = r.accepted - taken
    if r.case.variant in TOLD and r.case.fault != "partial":
        assert not lost and not r.refused & taken
        assert row["returned"] == r.told - fate.rejected
    else:
        assert len(lost) == fate.rejected + fate.dropped + fate.kept and r.kept <= lost
        assert fate.accepted == fate.arrived + fate.rejected + fate.dropped + fate.kept
    assert row["in"] == row["sent"] + row["rejected"] + row["dropped"] + row.get("kept", 0) and row.get("kept", 0) == fate.kept
    assert row["sent"] == fate.arrived and r.summary["run"]["lost"] == fate.rejected + fate.dropped
    assert taken <= r.accepted


def check_words(r):
    """The log names the same numbers."""
    fate = r.fate()
    if reaction(r.case) == PARTLY:
        assert r.logged("dropped_spans") == fate.rejected and r.logged("dropped_items") == 0
    elif r.case.variant in TOLD:
        assert r.logged("rejected_items") == r.told and r.logged("dropped_items") == 0
    else:
        assert r.logged("dropped_items") == fate.rejected + fate.dropped


def check_attempts(r):
    """What is refused for good is sent once; what comes again comes no sooner than the backend asked; nothing that arrived is sent again."""
    times = [t for t, fault in r.backend.attempts if fault == r.case.fault]
    if reaction(r.case) != KEPT_TRYING:
        assert len(times) == 2 or len(times) == 1 and r.case.variant == "batch, disk"      # its queue may have both in one batch
    if r.case.fault == "429" and r.case.exporter == "otlp_http" and r.case.moment != "shutdown" and r.case.variant not in TOLD:
        assert all(b - a >= 0.99 for a, b in zip(times, times[1:2]))
    if r.case.fault not in ("hangs", "stalls", "slow"):       # there an answer can be too late for the sender
        assert len(r.backend.taken) == len(set(r.backend.taken))
    assert r.stop_s < 30


# ---- the tables for people

BACKEND_DOES = {
    "refuses": "refuses connections", "hangs": "accepts and does not answer",
    "stalls": "has connections that were forgotten on the way", "resets": "resets the connection in the middle of a request", "400": "answers 400",
    "401": "answers 401", "404": "answers 404", "429": "answers 429 with `Retry-After`", "500": "answers 500", "503": "answers 503",
    "partial": "takes a part (partial success)", "garbage": "answers 200 with something else than OTLP", "slow": "is slower than `timeout`",
}


def in_words(sent, fate):
    if fate.kept:
        return "stays on disk, is sent after the next start"
    if fate.arrived == sent:
        return "all arrives, after new attempts"
    return "what it left out is counted as rejected" if fate.arrived == sent - 2 else "rejected" if fate.rejected else "dropped when the time is over"


def show():
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = dict(zip(CASES, pool.map(lambda c: run(c, os.path.join(folder, name(c))), CASES)))
    wrong = [(c, r.fate()) for c, r in done.items() if r.fate() != expected(c)]
    print("| The backend … | and is well again later | until the stop | until the stop, queue on disk | without a queue the client gets (`otlp_http`, `otlp_grpc`) |\n| --- | --- | --- | --- | --- |")
    for fault, what in BACKEND_DOES.items():
        cells = [what]
        for variant, moment in (("queue", "middle"), ("queue", "shutdown"), ("disk", "shutdown")):
            words = [in_words(done[c].next, done[c].fate()) for c in (Case(variant, fault, e, moment) for e in EXPORTERS)]
            cells.append(words[0] if words[0] == words[1] else f"`otlp_http`: {words[0]}; `otlp_grpc`: {words[1]}")
        cells.append(", ".join(str(done[Case("direct", fault, e, "middle")].statuses[2]) for e in EXPORTERS))
        print("| " + " | ".join(cells) + " |")
    for case, fate in wrong:
        print("not as expected:", name(case), fate, "expected", expected(case))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(show())
