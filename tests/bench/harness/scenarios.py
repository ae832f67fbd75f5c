"""One measurement of one agent. Each function returns the figures of a run, and raises Failed when something could not be measured
or data was lost: every record sent must have been accepted, and have arrived once (by number) at the sink and in the file."""
import dataclasses
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from harness.agent import Agent, http_post
from harness.load import SINK_KEYS, Sink, close_all, h2load, open_connections, signal_of
from harness.payloads import Payloads
from harness.peers import PEERS
from harness.system import Failed, cpu_seconds, memory, wait_file_quiet, wait_for, wait_settled, warm_pages


@dataclasses.dataclass(frozen=True)
class Context:
    """What all runs share."""
    work: str              # a folder for agents' folders
    payloads: Payloads
    sink_program: str
    scale: float = 1.0
    warm: bool = True      # warm_pages() before each measured window

    def scaled(self, n, least=1):
        return max(least, round(n * self.scale))

    def warm_pages(self):
        if self.warm:
            warm_pages(self.work)

    def agent(self, peer, spec):
        prefix = ("taskset", "-c", spec.cores) if spec.cores else ()
        return Agent(peer, spec.configuration, self.work, prefix, spec.arguments if peer == "motel" else ())

    def sink(self, port, page=""):
        return Sink(self.sink_program, port, self.payloads.path(page + ".txt") if page else None)


class Load:
    """A run of kind load: warm-up, then a measured window."""

    def __init__(self, context, peer, spec):
        self.context, self.spec, self.payloads = context, spec, context.payloads
        self.signal = signal_of(spec.body)
        self.key, self.records = SINK_KEYS[self.signal], self.payloads.records(spec.body)
        self.agent, self.sink_process = context.agent(peer, spec), None
        self.idle = []

    def send(self, requests, rate=0):
        """Returns (seconds, requests accepted)."""
        s = self.spec
        return h2load(self.agent, self.payloads, s.protocol, s.body, requests, s.connections, s.gzip, rate, s.may_refuse)

    def drain(self, records):
        """Waits until `records` in all have left the agent, and fails when they do not."""
        if self.sink_process:
            got = wait_settled(lambda: self.sink_process.stats()[self.key], records, 120)
            self._expect("at the sink", got, records)
        if self.spec.file:
            wait_file_quiet(self.agent.file(self.signal))
        if not self.sink_process and not self.spec.file:
            time.sleep(0.3)

    def wait_span_metrics(self):
        path = self.agent.file("metrics")
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, 30, "span metrics are written", 0.05)

    def mark(self):
        return {"accepted": self.agent.accepted(), "sink": self.sink_process.stats() if self.sink_process else None,
                "cpu": cpu_seconds(self.agent.pid), "time": time.monotonic()}

    def run(self):
        with self.agent:
            try:
                return self._run()
            finally:
                close_all(self.idle)
                if self.sink_process:
                    self.sink_process.stop()

    def _start(self):
        if self.spec.sink:
            self.sink_process = self.context.sink(self.agent.ports["SINK"])
        self.agent.start().wait_ready()
        if self.spec.idle_connections:
            n = self.context.scaled(self.spec.idle_connections)
            self.idle = open_connections(self.agent, self.spec.protocol, n, self.payloads.read("traces_1.pb"))
        time.sleep(0.5)

    def _run(self):
        self._start()
        at_rest = memory(self.agent.pid)
        requests = self.context.scaled(self.spec.n, 4)
        warm_records = self.send(max(1, requests // 10))[1] * self.records
        self.drain(warm_records)
        self.context.warm_pages()
        before = self.mark()
        seconds, accepted = self.send(requests, self.spec.rate)
        sent = accepted * self.records
        self.drain(warm_records + sent)
        if self.spec.span_metrics:
            self.wait_span_metrics()
        after = self.mark()
        figures = self._figures(before, after, seconds, sent)
        figures |= {"requests": requests, "accepted_requests": accepted, "rss_rest_kib": at_rest["VmRSS"]}
        figures |= self._delivered(before, after, sent)
        if self.spec.file:
            self.agent.stop_ms()
            figures["in_file"] = self.agent.records_in_file(self.signal) - warm_records - len(self.idle)
            self._expect("in the file", figures["in_file"], sent)
        return figures

    def _figures(self, before, after, seconds, sent):
        cpu, held = after["cpu"] - before["cpu"], memory(self.agent.pid)
        if sent == 0:
            raise Failed("nothing was accepted")
        return {"body": self.spec.body, "records": sent, "cpu_s": round(cpu, 6), "cpu_us_per_record": round(cpu / sent * 1e6, 4),
                "records_per_s": round(sent / seconds), "load_s": round(seconds, 3), "window_s": round(after["time"] - before["time"], 2),
                "rss_end_kib": held["VmRSS"], "rss_peak_kib": held["VmHWM"], "anonymous_end_kib": held["RssAnon"], "threads": held["Threads"]}

    def _delivered(self, before, after, sent):
        found = {}
        if after["accepted"] is not None:
            found["accepted"] = after["accepted"] - before["accepted"]
            self._expect("accepted by its own count", found["accepted"], sent)
        if not self.sink_process:
            return found
        changed = {k: after["sink"][k] - before["sink"][k] for k in after["sink"]}
        found |= {"delivered": changed[self.key], "sink_requests": changed["posts"], "sink_malformed": after["sink"]["bad"],
                  "wire_bytes_per_record": round(changed["bytes_wire"] / sent, 2)}
        self._expect("at the sink", found["delivered"], sent)
        self._expect("malformed at the sink", found["sink_malformed"], 0)
        return found

    @staticmethod
    def _expect(what, got, wanted):
        if got != wanted:
            raise Failed(f"records {what}: {got}, expected {wanted}")


def load(context, peer, spec):
    return Load(context, peer, spec).run()


def scrape(context, peer, spec):
    """A page is scraped for spec.n seconds; each scrape must be in the file with all its points."""
    seconds, (series, points) = context.scaled(spec.n, 2), context.payloads.page(spec.page)
    with context.agent(peer, spec) as agent:
        page = context.sink(agent.ports["PAGE"], spec.page)
        try:
            agent.start().wait_ready()
            wait_for(lambda: page.stats()["gets"] >= 3, 30, "three scrapes", 0.02)  # the reference begins after 5 s
            context.warm_pages()
            gets = page.stats()["gets"]
            wait_for(lambda: page.stats()["gets"] > gets, 30, "another scrape", 0.02)
            time.sleep(0.3)  # the window begins and ends between two scrapes
            gets, cpu = page.stats()["gets"], cpu_seconds(agent.pid)
            time.sleep(seconds)
            scrapes, cpu, held = page.stats()["gets"] - gets, cpu_seconds(agent.pid) - cpu, memory(agent.pid)
            agent.stop_ms()
            asked = page.stats()["gets"]
        finally:
            page.stop()
        in_file = agent.records_in_file("metrics")
    if scrapes == 0:
        raise Failed("no scrapes")
    # one scrape may have been under way at the end
    if in_file not in (asked * points, (asked - 1) * points):
        raise Failed(f"points in the file: {in_file}, expected {points} of each of {asked} scrapes")
    return {"page": spec.page, "seconds": seconds, "scrapes": scrapes, "series": series, "points": points,
            "cpu_ms_per_scrape": round(cpu / scrapes * 1e3, 4), "rss_end_kib": held["VmRSS"], "rss_peak_kib": held["VmHWM"],
            "anonymous_end_kib": held["RssAnon"]}


def idle(context, peer, spec):
    """Memory and CPU of an agent that has started and does nothing."""
    seconds = context.scaled(spec.n)
    with context.agent(peer, spec) as agent:
        agent.start().wait_ready()
        time.sleep(1.5)
        cpu = cpu_seconds(agent.pid)
        time.sleep(seconds)
        cpu, held = cpu_seconds(agent.pid) - cpu, memory(agent.pid)
        agent.stop_ms()
    return {"seconds": seconds, "cpu_ms_per_s": round(cpu / seconds * 1e3, 4), "rss_kib": held["VmRSS"], "anonymous_kib": held["RssAnon"],
            "rss_peak_kib": held["VmHWM"], "threads": held["Threads"]}


def _start_and_stop(context, peer, spec, body):
    """Starts, gives 1,000 spans (or none), ends: (ms to the first answer, ms from SIGTERM to the end)."""
    with context.agent(peer, spec) as agent:
        sink = context.sink(agent.ports["SINK"]) if spec.sink else None
        try:
            ready = agent.start().wait_ready()
            time.sleep(0.2)
            if spec.held and http_post(agent.ports["HTTP"], "/v1/traces", body) // 100 != 2:
                raise Failed("the request was refused")
            ended = agent.stop_ms()
            got = sink.stats()["spans"] if sink else agent.records_in_file("traces")
        finally:
            if sink:
                sink.stop()
    wanted = 1000 if spec.held else 0
    if got != wanted:
        raise Failed(f"of {wanted} spans held at SIGTERM {got} arrived")
    return ready, ended


def startstop(context, peer, spec):
    body = context.payloads.read("traces_1000.pb")
    context.warm_pages()
    both = [_start_and_stop(context, peer, spec, body) for _ in range(context.scaled(spec.n))]
    ready, ended = ([round(v[i], 2) for v in both] for i in (0, 1))
    return {"repeats": len(both), "ready_ms": statistics.median(ready), "stop_ms": statistics.median(ended), "all_ready_ms": ready,
            "all_stop_ms": ended}


def connections(context, peer, spec):
    """Memory with open connections, each of which has made one request of 10 spans."""
    n = context.scaled(spec.n)
    with context.agent(peer, spec) as agent:
        agent.start().wait_ready()
        time.sleep(0.5)
        before = memory(agent.pid)
        held = open_connections(agent, spec.protocol, n, context.payloads.read("traces_10.pb"))
        try:
            time.sleep(0.5)
            after = memory(agent.pid)
        finally:
            close_all(held)
    return {"connections": n, "kib_per_connection": round((after["VmRSS"] - before["VmRSS"]) / n, 2), "rss_kib": after["VmRSS"],
            "anonymous_kib_per_connection": round((after["RssAnon"] - before["RssAnon"]) / n, 2), "rss_peak_kib": after["VmHWM"]}


def size(context, peer, _spec):
    """The program's size without debug information."""
    program = PEERS[peer].find()
    if not shutil.which("strip"):
        raise Failed("no strip(1)")
    with tempfile.TemporaryDirectory(dir=context.work) as folder:
        copy = os.path.join(folder, "stripped")
        subprocess.run(["strip", "-o", copy, program], check=True, capture_output=True)
        stripped = os.path.getsize(copy)
    return {"bytes": os.path.getsize(program), "stripped_kib": round(stripped / 1024, 1)}


KINDS = {f.__name__: f for f in (load, scrape, idle, startstop, connections, size)}
