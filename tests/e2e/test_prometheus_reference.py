"""The prometheus receiver makes of scraped pages what the reference collector makes of them, series that go away included; and it
reads the pages of a real client library, Python's prometheus_client, in both formats."""
import glob
import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conftest import ROOT, wait_until

PAGES = os.path.join(ROOT, "tests", "golden", "prometheus")
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
SCRAPES = 3     # compared of each target

# Series, families and values that come and go: the pages of a target one after the other; the last one stays.
SEQUENCES = {
    "gone_series": ["# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n", "# TYPE a gauge\na{x=\"2\"} 3\n"],
    "gone_families": ["# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n# TYPE s summary\ns{quantile=\"0.5\"} 1\n"
                      "s_sum 1\ns_count 1\n# TYPE c counter\nc_total 4\nu 5\n", "u 6\n"],
    "empty_after": ["# TYPE a counter\na_total 1\n", ""],
    "bad_after": ["# TYPE a counter\na_total 1\n", "a_total{\n"],
    "back_again": ["a 1\n", "b 1\n", "a 1\n"],
    "own_times": ["a 1 1700000000000\nb 1\n", "c 1\n"],
    "target_info_late": ["a 1\n", "a 1\ntarget_info{k=\"v\"} 1\n"],
    "type_late": ["a_total 1\n# TYPE a counter\n", "a_total 2\n# TYPE a counter\n"],
}
# One line, and after it one that is fine.
LINES = ["a 0x10", "a 1e309", "a 1_0", "a -NaN", "a infinity", "a .5", "a +1e+5", "a 1 -5", "a 1 5 6", "a{\"x\"} 1", "{a=\"1\"} 1", "{\"\"} 1", "{\"x\",\"b c\"=\"1\"} 1",
         "a{a=\"1\" b=\"2\"} 1", "a{,} 1", "a{a=\"1\",} 1", "a{a=\"1\",a=\"2\"} 1", "a{a=\"1\"}1", "a{a=\"x\ny\"} 1", "a{a=\"\\q\"} 1", "# TYPE a info", "# TYPE 1a gauge",
         "1a 3", "# HELP a", "# HELP", "#HELP a b", "a 1 # {a=\"b\"} 1", "a 99999999999999999999", "a 1 99999999999999999999", "a{__name__=\"b\"} 1"]
OPENMETRICS_PAGES = ["a  1\n# EOF\n", "a 1\n\n# EOF\n", "# c\na 1\n# EOF\n", "a 1\n", "a 1\n# EOF", "a 1\n# EOF\nx", "# TYPE a untyped\na 1\n# EOF\n",
                     "# UNIT a x\na 1\n# EOF\n", "a{b=\"1\", c=\"2\"} 1\n# EOF\n", "a{b=\"1\",} 1\n# EOF\n", "a 1 NaN\n# EOF\n", "# TYPE c counter\nc 1\n# EOF\n", "",
                     "a 1 -1.5\n# EOF\n", "a 1 # {a=\"b\"} 1 x\n# EOF\n", "a 1\r\n# EOF\r\n"]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256    # all targets may ask at once


class PageServer:
    """Serves /NAME: the n-th request gets the n-th page of that name, the last one from then on."""

    def __init__(self, pages):
        self.asked, self.lock = {}, threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.strip("/")
                kind, bodies = pages[name]
                with server.lock:
                    n = server.asked[name] = server.asked.get(name, 0) + 1
                body = bodies[min(n, len(bodies)) - 1]
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.http = Server(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def all_pages():
    pages = {}
    for path in sorted(glob.glob(os.path.join(PAGES, "*.txt"))):
        with open(path, "rb") as f:
            pages[os.path.basename(path)[:-4].replace(".", "_")] = (OPENMETRICS if ".om." in path else TEXT, [f.read()])
    for name, bodies in SEQUENCES.items():
        pages[name] = (TEXT, [b.encode() for b in bodies])
    for i, line in enumerate(LINES):
        pages[f"line{i}"] = (TEXT, [f"{line}\nok 1\n".encode()])
    for i, page in enumerate(OPENMETRICS_PAGES):
        pages[f"om{i}"] = (OPENMETRICS, [page.encode()])
    pages["html"] = ("text/html", [b"ok 1\n"])
    pages["not_utf8"] = (TEXT, [b"ok 1\na{x=\"\xff\"} 1\n"])
    return pages


def config(port, jobs, more="", interval="1s"):
    scrapes = "".join(f"\n        - {{job_name: {job}, scrape_interval: {interval}, metrics_path: /{job}{more}, static_configs: [{{targets: ['127.0.0.1:{port}'], "
                      f"labels: {{site: here}}}}]}}" for job in jobs)
    return f"""receivers:
  prometheus:
    discovery_reload_on_startup: true
    config:
      scrape_configs:{scrapes}
exporters:
  file: {{path: metrics.jsonl, flush_interval: 20ms}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    metrics: {{receivers: [prometheus], exporters: [file]}}
"""


def job_of(line, jobs):
    """The job whose scrape the line is: pages may have jobs of their own."""
    for r in line["resourceMetrics"]:
        for a in r["resource"]["attributes"]:
            if a["key"] == "service.name" and a["value"]["stringValue"] in jobs:
                return a["value"]["stringValue"]
    return None


def by_job(program, jobs):
    found = {job: [] for job in jobs}
    for line in program.json_lines("metrics.jsonl"):
        found[job_of(line, jobs)].append(line)
    return found


def without_times(point, scrape_ms):
    """The target's own times stay; that of the scrape is one word."""
    for key in ("timeUnixNano", "startTimeUnixNano"):
        if key in point and abs(int(point[key]) / 1e6 - scrape_ms) < 1:
            point[key] = "scrape"
    for e in point.get("exemplars", ()):
        without_times(e, scrape_ms)
    return json.dumps(point, sort_keys=True)


def points(line):
    """Each point of a scrape with its metric, scope and resource, sorted."""
    metrics = [(r["resource"], s["scope"], s.get("schemaUrl"), m) for r in line["resourceMetrics"] for s in r["scopeMetrics"] for m in s["metrics"]]
    up = next(m for *_, m in metrics if m["name"] == "up")
    scrape_ms = int(up["gauge"]["dataPoints"][0]["timeUnixNano"]) / 1e6
    found = []
    for resource, scope, url, metric in metrics:
        kind = next(k for k in ("gauge", "sum", "histogram", "summary") if k in metric)
        data = metric.pop(kind)
        for p in data.pop("dataPoints"):
            if metric["name"] == "scrape_duration_seconds":
                p.pop("asDouble", None)
            if "prometheusreceiver" in scope.get("name", ""):
                scope.pop("version", None)
            head = json.dumps([resource, scope, url, metric, kind, data], sort_keys=True)
            found.append(re.sub(r"127\.0\.0\.1:\d+", "HOST", re.sub(r'("server.port", "value": {"stringValue": )"\d+"', r"\1PORT", head)) + without_times(p, scrape_ms))
    return sorted(found)


def test_same_as_the_reference(start, reference):
    pages = all_pages()
    servers = [PageServer(pages), PageServer(pages)]
    try:
        # An interval that no slow machine takes for a time-out; so both run at once.
        programs = [run(config(s.port, pages, interval="5s")) for run, s in zip((reference, start), servers)]
        for p in programs:
            wait_until(lambda p=p: all(len(lines) >= SCRAPES for lines in by_job(p, pages).values()), 120, "a few scrapes of every target")
            p.stop()
    finally:
        for s in servers:
            s.close()
    want, got = ({job: [points(line) for line in lines[:SCRAPES]] for job, lines in by_job(p, pages).items()} for p in programs)
    different = [f"{job}, scrape {n}:\n" + "\n".join([f"  - {p}" for p in want[job][n] if p not in got[job][n]] + [f"  + {p}" for p in got[job][n] if p not in want[job][n]])
                 for job in pages for n in range(SCRAPES) if got[job][n] != want[job][n]]
    assert not different, "\n".join(different)


# ---- a real client library

def client_registry():
    from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram, Info, Summary
    registry = CollectorRegistry()
    counter = Counter("requests", "Requests by path", ["path"], registry=registry)
    counter.labels("/v1/chat \"quoted\"\\\n").inc(3, exemplar={"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "extra": "x"})
    Gauge("queue_depth", "Waiting", registry=registry).set(-2.5)
    histogram = Histogram("latency_seconds", "Latency", buckets=(0.1, 1, 10), registry=registry)
    for v in (0.05, 0.5, 0.7, 20):
        histogram.observe(v, exemplar={"trace_id": "0af7651916cd43dd8448eb211c80319c"})
    Summary("size_bytes", "Sizes", registry=registry).observe(512)
    Info("build", "Build", registry=registry).info({"version": "1.2"})
    Enum("state", "State", states=["on", "off"], registry=registry).state("off")
    return registry


@pytest.fixture
def client():
    library = pytest.importorskip("prometheus_client")
    server, thread = library.start_http_server(0, "127.0.0.1", client_registry())
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def scrape_client(start, port, protocol):
    """The first scrape of the client's page: {metric name: metric}."""
    program = start(config(port, ["metrics"], f", scrape_protocols: [{protocol}]"))
    lines = wait_until(lambda: program.json_lines("metrics.jsonl"), 60, "a scrape")
    program.stop()
    return lines[0]


def metrics_of(line):
    return {m["name"]: m for r in line["resourceMetrics"] for s in r["scopeMetrics"] for m in s["metrics"]}


def attributes(point):
    return {a["key"]: a["value"]["stringValue"] for a in point.get("attributes", ())}


def only_point(metric, kind):
    assert len(metric[kind]["dataPoints"]) == 1
    return metric[kind]["dataPoints"][0]


def check_values(m):
    counter = only_point(m["requests_total"], "sum")
    assert m["up"]["gauge"]["dataPoints"][0]["asDouble"] == 1
    assert counter["asDouble"] == 3 and attributes(counter) == {"path": "/v1/chat \"quoted\"\\\n", "site": "here"}
    assert m["requests_total"]["sum"]["isMonotonic"] and m["requests_total"]["description"] == "Requests by path"
    assert only_point(m["queue_depth"], "gauge")["asDouble"] == -2.5
    latency = only_point(m["latency_seconds"], "histogram")
    assert latency["bucketCounts"] == ["1", "2", "0", "1"] and latency["explicitBounds"] == [0.1, 1, 10]
    assert latency["count"] == "4" and abs(latency["sum"] - 21.25) < 1e-9
    assert only_point(m["size_bytes"], "summary")["sum"] == 512
    return counter, latency


def test_client_library_openmetrics(start, client):
    m = metrics_of(scrape_client(start, client, "OpenMetricsText1.0.0"))
    counter, latency = check_values(m)
    exemplar = counter["exemplars"][0]
    assert (exemplar["traceId"], exemplar["spanId"], exemplar["asDouble"]) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 3)
    assert [a["key"] for a in exemplar["filteredAttributes"]] == ["extra"]
    assert sorted(e["asDouble"] for e in latency["exemplars"]) == [0.05, 0.7, 20]
    assert int(counter["startTimeUnixNano"]) > 0 and int(latency["startTimeUnixNano"]) > 0
    assert not any(name.endswith("_created") for name in m)
    assert {tuple(attributes(p).items()): p["asDouble"] for p in m["state"]["sum"]["dataPoints"]} == {(("site", "here"), ("state", "on")): 0, (("site", "here"), ("state", "off")): 1}


def test_client_library_text(start, client):
    m = metrics_of(scrape_client(start, client, "PrometheusText0.0.4"))
    counter, latency = check_values(m)
    assert "exemplars" not in counter and "exemplars" not in latency
    assert only_point(m["build_info"], "gauge")["asDouble"] == 1


@pytest.mark.parametrize("protocol", ["OpenMetricsText1.0.0", "PrometheusText0.0.4"])
def test_client_library_same_as_the_reference(start, reference, client, protocol):
    want, got = points(scrape_client(reference, client, protocol)), points(scrape_client(start, client, protocol))
    assert got == want
