"""The prometheus receiver against targets on Python's http.server and on prometheus_client, and beside the reference collector."""
import base64
import gzip
import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import wait_until

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
REPORTS = {"up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added"}


class Target:
    """A target. `answers` are used one after the other, the last one again and again: a text, (status, headers, body), or a function
    that is given the request handler and does all itself."""

    def __init__(self, *answers):
        self.answers, self.requests, self.lock = answers, [], threading.Lock()
        target = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with target.lock:
                    n = len(target.requests)
                    target.requests.append((self.path, list(self.headers.items())))
                answer = target.answers[min(n, len(target.answers) - 1)]
                try:
                    target.reply(self, answer)
                except OSError:
                    pass

            def log_message(self, *_):
                pass
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def reply(self, handler, answer):
        if callable(answer):
            answer(handler)
            return
        status, headers, body = answer if isinstance(answer, tuple) else (200, {"Content-Type": TEXT}, answer)
        body = body.encode() if isinstance(body, str) else body
        handler.send_response(status)
        for k, v in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(k, v)
        handler.end_headers()
        handler.wfile.write(body)

    @property
    def count(self):
        with self.lock:
            return len(self.requests)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def target():
    made = []

    def make(*answers):
        made.append(Target(*answers))
        return made[-1]
    yield make
    for t in made:
        t.close()


def config(jobs, more="", scrape="1s", logs="info"):
    """`jobs`: the items of scrape_configs."""
    lines = "\n".join("        " + line for line in jobs.strip("\n").split("\n"))
    return f"""
receivers:
  prometheus:
{more}
    config:
      global: {{scrape_interval: {scrape}}}
      scrape_configs:
{lines}
exporters:
  file: {{path: out.jsonl, flush_interval: 20ms}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: {logs}}}}}
  pipelines:
    metrics: {{receivers: [prometheus], exporters: [file]}}
"""


def job(name, address, more=""):
    return f"- {{job_name: {name}, static_configs: [{{targets: ['{address}']}}]{', ' if more else ''}{more}}}\n"


def value(v):
    return v.get("stringValue", v.get("intValue", v.get("doubleValue", v.get("boolValue"))))


def points(program, name="out.jsonl"):
    """(line, resource, metric, kind, point) of every data point, attributes as maps."""
    out = []
    for n, line in enumerate(program.json_lines(name)):
        for r in line["resourceMetrics"]:
            resource = {a["key"]: value(a["value"]) for a in r["resource"].get("attributes", [])}
            for s in r["scopeMetrics"]:
                for m in s["metrics"]:
                    kind = next(k for k in ("gauge", "sum", "histogram", "summary", "exponentialHistogram") if k in m)
                    for p in m[kind].get("dataPoints", []):
                        p = dict(p, attributes={a["key"]: value(a["value"]) for a in p.get("attributes", [])})
                        out.append((n, resource, m["name"], kind, p))
    return out


def of(program, metric, job_name=None):
    return [(r, p) for _, r, m, _, p in points(program) if m == metric and job_name in (None, r["service.name"])]


def values(program, metric, job_name=None):
    """Values in order of time; None is a stale point."""
    found = sorted(of(program, metric, job_name), key=lambda x: int(x[1]["timeUnixNano"]))
    return [None if p.get("flags") == 1 else p.get("asDouble") for _, p in found]


# ---------------------------------------------------------------- what goes out, what comes in
def test_request(start, target):
    t = target("a 1\n")
    p = start(config(f"""
- job_name: j
  metrics_path: /m x
  params: {{q: [one, "t w&o"], module: [x]}}
  scrape_timeout: 500ms
  basic_auth: {{username: me, password: s3cret-password}}
  http_headers: {{X-Scope: {{values: [tenant]}}}}
  static_configs: [{{targets: ['{t.address}']}}]
"""))
    wait_until(lambda: t.count, 30)
    path, headers = t.requests[0]
    assert path == "/m%20x?module=x&q=one&q=t+w%26o"
    got = {k.lower(): v for k, v in headers}
    assert got["accept"] == ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
                             "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2")
    assert got["accept-encoding"] == "gzip" and got["x-prometheus-scrape-timeout-seconds"] == "0.5"
    assert got["user-agent"].startswith("motel/") and got["host"] == t.address
    assert base64.b64decode(got["authorization"].split()[1]) == b"me:s3cret-password" and got["x-scope"] == "tenant"
    assert p.stop() == 0
    assert "s3cret-password" not in p.stderr


def test_token_of_a_file_and_of_the_environment(start, target, tmp_path):
    t, u = target("a 1\n"), target((401, {}, "no"))
    token = tmp_path / "token"
    token.write_text("first-token\n")
    jobs = job("file", t.address, f"bearer_token_file: {token}") + job("env", u.address, "authorization: {credentials: '${env:SCRAPE_TOKEN}'}")
    p = start(config(jobs, scrape="3s", logs="debug"), env={"SCRAPE_TOKEN": "environment-token"})
    seen = lambda target: [dict(h)["Authorization"] for _, h in list(target.requests)]
    wait_until(lambda: "Bearer first-token" in seen(t) and "Bearer environment-token" in seen(u), 30)
    token.write_text("second-token")
    wait_until(lambda: "Bearer second-token" in seen(t), 30)
    wait_until(lambda: "HTTP status 401 Unauthorized" in p.stderr, 30)
    assert p.stop() == 0
    assert "-token" not in p.stderr.replace("bearer_token", "")


def test_prometheus_client(start):
    prometheus_client = pytest.importorskip("prometheus_client")
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("requests", "Requests.", ["code"], registry=registry).labels("200").inc(3)
    prometheus_client.Gauge("running", "Running.", registry=registry).set(2.5)
    h = prometheus_client.Histogram("latency_seconds", "Latency.", buckets=(0.1, 1), registry=registry)
    for v in (0.05, 0.5, 5):
        h.observe(v)
    prometheus_client.Summary("size", "Sizes.", registry=registry).observe(7)
    server, thread = prometheus_client.start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        p = start(config(job("py", f"127.0.0.1:{server.server_port}"), scrape="5s"))
        wait_until(lambda: of(p, "up"), 30)
        assert p.stop() == 0
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    first = {m: (k, x) for n, _, m, k, x in points(p) if n == 0}
    assert first["requests_total"][0] == "sum" and first["requests_total"][1]["asDouble"] == 3 and first["requests_total"][1]["attributes"] == {"code": "200"}
    assert "startTimeUnixNano" in first["requests_total"][1]        # of requests_created
    assert first["running"][1]["asDouble"] == 2.5
    latency = first["latency_seconds"][1]
    assert latency["bucketCounts"] == ["1", "1", "1"] and latency["explicitBounds"] == [0.1, 1] and latency["count"] == "3" and latency["sum"] == 5.55
    assert first["size"][1]["count"] == "1" and first["size"][1]["sum"] == 7
    assert first["up"][1]["asDouble"] == 1


def lying(handler):
    """A body that ends before its announced length."""
    handler.send_response(200)
    handler.send_header("Content-Type", TEXT)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"a 1\n")
    handler.close_connection = True


def stalled(event):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", TEXT)
        handler.send_header("Content-Length", "8")
        handler.end_headers()
        handler.wfile.write(b"a 1\n")
        handler.wfile.flush()
        event.wait(120)
        handler.close_connection = True
    return answer


def test_up_and_down(start, target):
    """Every way to fail gives `up` 0 and nothing of the page; the others give `up` 1. Nobody waits for the one that hangs."""
    over = threading.Event()
    page = "a 1\nb 2\nc 3\n"
    cases = {
        "good": (target(page), "", 1), "empty": (target(""), "", 1),
        "gzip": (target((200, {"Content-Type": TEXT, "Content-Encoding": "gzip"}, gzip.compress(page.encode()))), "", 1),
        "enough": (target(page), "sample_limit: 3, body_size_limit: 13B, label_limit: 3", 1),
        "500": (target((500, {}, "a 1\n")), "", 0), "html": (target((200, {"Content-Type": "text/html"}, "<html><body>no</body></html>")), "", 0),
        "lying": (target(lying), "", 0), "stalled": (target(stalled(over)), "", 0), "badgzip": (target((200, {"Content-Encoding": "gzip"}, "a 1\n")), "", 0),
        "body": (target(page), "body_size_limit: 12B", 0), "zipped": (target((200, {"Content-Encoding": "gzip"}, gzip.compress(b"a 1\n" * 10000))), "body_size_limit: 1KB", 0),
        "samples": (target(page), "sample_limit: 2", 0), "labels": (target('a{x="1",y="2"} 1\n'), "label_limit: 4", 0),
        "name": (target('a{verylong="1"} 1\n'), "label_name_length_limit: 7", 0), "value": (target('a{x="' + "v" * 30 + '"} 1\n'), "label_value_length_limit: 29", 0),
        "noeof": (target((200, {"Content-Type": OPENMETRICS}, "a 1\n")), "", 0), "line": (target("a 1\nb{ 2\n"), "", 0),
        "noredirect": (target((302, {"Location": "/other"}, "")), "follow_redirects: false", 0)}
    redirected = target((301, {"Location": "/other"}, ""), page)
    cases["redirect"] = (redirected, "", 1)
    jobs = "".join(job(f"'{name}'", t.address, "scrape_timeout: " + ("4s" if up else "500ms") + (", " if more else "") + more) for name, (t, more, up) in cases.items())
    jobs += job("refused", "127.0.0.1:1")       # nobody listens there
    p = start(config(jobs, "    scrape_on_shutdown: false", scrape="4s"))
    names = [*cases, "refused"]
    wait_until(lambda: all(len(values(p, "up", n)) >= 2 for n in names), 120, "two scrapes of each")
    hung = len(values(p, "up", "stalled"))
    assert p.stop() == 0
    over.set()
    for name in names:
        want = cases[name][2] if name in cases else 0
        got = values(p, "up", name)
        assert len(got) >= 2 and set(got) == {want}, (name, got)
        for report in REPORTS:
            assert len(values(p, report, name)) == len(got), (name, report)
        others = {m for _, r, m, _, _ in points(p) if r["service.name"] == name} - REPORTS
        assert others == ({"a", "b", "c"} if want and name != "empty" else set()), name
    assert len(values(p, "up", "good")) >= hung - 1
    assert redirected.requests[1][0] == "/other"
    assert values(p, "scrape_samples_scraped", "samples")[0] == 3 and values(p, "scrape_samples_post_metric_relabeling", "samples")[0] == 3
    failures = [line for line in p.stderr.split("\n") if "Failed to scrape Prometheus endpoint" in line]
    assert failures and all(sum(f'job=\\"{n}\\"' in line for line in failures) <= 1 for n in names)


def test_state_is_logged_once(start, target):
    t = target("a 1\n", (503, {}, ""), (503, {}, ""), (503, {}, ""), "a 1\n")
    p = start(config(job("j", t.address), scrape="3s"))
    wait_until(lambda: t.count >= 6 and "works again" in p.stderr, 120)
    assert p.stop() == 0
    assert p.stderr.count("Failed to scrape Prometheus endpoint") == 1 and p.stderr.count("works again") == 1
    assert "server returned HTTP status 503 Service Unavailable" in p.stderr
    # the first page, the stale point, nothing, nothing, and again
    assert values(p, "a")[:3] == [1, None, 1] and values(p, "up")[:5] == [1, 0, 0, 0, 1]


def test_series_that_come_and_go(start, target):
    first = '# TYPE a gauge\na{x="1"} 1\na{x="2"} 2\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\nd 5 1700000000000\n'
    p = start(config(job("j", target(first, 'a{x="2"} 3\n', first).address), scrape="3s"))
    wait_until(lambda: len(values(p, "up")) >= 4, 120)
    assert p.stop() == 0
    by_line = {}
    for n, _, m, k, x in points(p):
        if m not in REPORTS:
            by_line.setdefault(n, []).append((m, k, x["attributes"].get("x"), x.get("flags", 0), x.get("asDouble")))
    assert sorted(by_line[0]) == [("a", "gauge", "1", 0, 1), ("a", "gauge", "2", 0, 2), ("d", "gauge", None, 0, 5), ("h", "histogram", None, 0, None)]
    # the one with a time of its own needs no stale point
    assert sorted(by_line[1]) == [("a", "gauge", "1", 1, None), ("a", "gauge", "2", 0, 3), ("h", "histogram", None, 1, None)]
    assert sorted(by_line[2]) == sorted(by_line[0]) and sorted(by_line[3]) == sorted(by_line[0])


def test_pages_like_the_one_before(start, target):
    """Values, times, buckets and counts are those of each page, also where a page is like the one before, and where it is again after another one."""
    def page(n, more=""):
        seen = max(0, n - 4)    # its first observation is in the sixth page
        return (f'# TYPE a counter\na{{x="1"}} {n}\na{{x="2"}} {n / 4}\n{more}# HELP h text\n# TYPE h histogram\nh_bucket{{le="1"}} {n}\nh_bucket{{le="+Inf"}} {2 * n + 1}\n'
                f'h_sum {n / 2}\nh_count {2 * n + 1}\n# TYPE q summary\nq{{quantile="0.5"}} {seen}\nq_sum {seen}\nq_count {seen}\n')
    pages = [page(n, "b 7\n" if n == 7 else "") for n in range(10)]
    p = start(config(job("j", target(*pages).address), "    scrape_on_shutdown: false", scrape="3s"))
    wait_until(lambda: len(values(p, "up")) >= len(pages), 120)
    assert p.stop() == 0
    assert set(values(p, "up")) == {1}
    own = [(a["attributes"].get("x"), a) for _, a in of(p, "a")]
    for n in range(len(pages)):
        assert [a["asDouble"] for x, a in own if x == "1"][n] == n and [a["asDouble"] for x, a in own if x == "2"][n] == n / 4
        (_, h), (_, q), (_, up) = of(p, "h")[n], of(p, "q")[n], of(p, "up")[n]
        assert h["bucketCounts"] == [str(n), str(n + 1)] and h["explicitBounds"] == [1] and h["count"] == str(2 * n + 1) and h["sum"] == n / 2, n
        assert int(q.get("count", 0)) == q.get("sum", 0) == q["quantileValues"][0].get("value", 0) == max(0, n - 4), n
        assert h["timeUnixNano"] == q["timeUnixNano"] == up["timeUnixNano"] == own[2 * n][1]["timeUnixNano"], n
    times = [int(up["timeUnixNano"]) for _, up in of(p, "up")]
    assert times == sorted(set(times))
    assert values(p, "b") == [7, None]
    n = len(pages) - 1
    assert values(p, "scrape_samples_scraped")[:n] == [9] * 7 + [10] + [9] * (n - 8)
    assert values(p, "scrape_series_added")[:n] == [9] + [0] * 6 + [1] + [0] * (n - 8)


# ---------------------------------------------------------------- start, stop, discovery
def test_last_scrape_at_the_stop(start, target):
    """A run that is shorter than the interval: the last values are seen all the same, also of many targets and beside one that hangs."""
    over = threading.Event()
    targets, hanging = [target(f"a {i}\n") for i in range(8)], target(stalled(over))
    addresses = ", ".join(f"'{t.address}'" for t in targets)
    jobs = f"- {{job_name: many, static_configs: [{{targets: [{addresses}]}}]}}\n" + job("hangs", hanging.address, "scrape_timeout: 1s")
    p = start(config(jobs, "    initial_scrape_offset: 1h", scrape="1h"))
    wait_until(lambda: "Everything is ready" in p.stderr, 30)
    assert [t.count for t in targets] == [0] * 8
    began = time.monotonic()
    assert p.stop() == 0
    took = time.monotonic() - began
    over.set()
    assert [t.count for t in targets] == [1] * 8
    assert sorted(values(p, "a")) == list(range(8)) and values(p, "up", "many") == [1] * 8 and values(p, "up", "hangs") == [0]
    assert took < 20


def test_no_last_scrape_when_told_so(start, target):
    t = target("a 1\n")
    p = start(config(job("j", t.address), "    initial_scrape_offset: 1h\n    scrape_on_shutdown: false", scrape="1h"))
    wait_until(lambda: "Everything is ready" in p.stderr, 30)
    assert p.stop() == 0
    assert t.count == 0 and points(p) == []


def test_files_of_targets(start, target, tmp_path):
    t, u, v = target("a 1\n"), target("a 2\n"), target("a 3\n")
    folder = tmp_path / "sd"
    folder.mkdir()

    def write(name, text):
        (folder / (name + ".new")).write_text(text)
        os.replace(folder / (name + ".new"), folder / name)
    write("one.json", json.dumps([{"targets": [t.address], "labels": {"rack": "é\U0001f600", "port": "80"}}]))
    p = start(config(f"""
- job_name: j
  file_sd_configs: [{{files: ['{folder}/*.json', '{folder}/*.yml']}}]
  relabel_configs: [{{source_labels: [__meta_filepath], regex: '.*/(.*)', target_label: file}}]
""", scrape="2s"))
    up = lambda address: [x for r, x in of(p, "up") if r["service.instance.id"] == address and x.get("flags") != 1]
    wait_until(lambda: up(t.address), 30)
    assert up(t.address)[0]["attributes"] == {"rack": "é\U0001f600", "port": "80", "file": "one.json"}
    write("two.yml", f"- targets: ['{u.address}', '{v.address}']\n  labels: {{rack: 7}}\n")
    wait_until(lambda: up(u.address) and up(v.address), 60)
    assert up(u.address)[0]["attributes"] == {"rack": "7", "file": "two.yml"}
    write("one.json", "[{")                         # what it said before stays
    wait_until(lambda: "one.json" in p.stderr, 30)
    write("two.yml", f"- targets: ['{v.address}']\n")
    before = t.count
    gone = lambda metric: [x for r, x in of(p, metric) if r["service.instance.id"] == u.address and x.get("flags") == 1]
    wait_until(lambda: gone("a") and gone("up") and t.count > before, 60, "stale points of the target that is gone")
    asked = u.count
    (folder / "one.json").unlink()
    wait_until(lambda: [x for r, x in of(p, "up") if r["service.instance.id"] == t.address and x.get("flags") == 1], 60)
    assert p.stop() == 0
    assert u.count == asked


def test_target_limit(start, target):
    t, u = target("a 1\n"), target("a 1\n")
    p = start(config(f"- {{job_name: j, target_limit: 1, static_configs: [{{targets: ['{t.address}', '{u.address}']}}]}}", scrape="200ms"))
    wait_until(lambda: len(values(p, "up")) >= 4, 30)
    assert p.stop() == 0
    assert set(values(p, "up")) == {0} and t.count == u.count == 0
    assert "target_limit exceeded (number of targets: 2, limit: 1)" in p.stderr


def test_refused_scrapes_are_offered_again(start, target, http_sink):
    """A backend without a queue before it, which is away at first: every scrape arrives, once."""
    down, taken = {"yes": True}, []

    def answer(_, n):
        if down["yes"]:
            return 503, {}, b""
        taken.append(n)
        return 200, {"Content-Type": "application/x-protobuf"}, b""
    sink, t = http_sink(answer), target("a 1\n")
    p = start(config(job("j", t.address), scrape="500ms").replace(
        "  file: {path: out.jsonl, flush_interval: 20ms}",
        f"  otlp_http: {{endpoint: '{sink.url}', compression: none, sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}").replace("[file]", "[otlp_http]"))
    wait_until(lambda: t.count >= 4 and len(sink.requests) >= 2, 60)
    down["yes"] = False
    wait_until(lambda: t.count >= 8, 60)
    assert p.stop() == 0
    assert "are kept and offered again" in p.stderr
    messages = sink.messages()
    times = [pt.time_unix_nano for n in taken for r in messages[n][1].resource_metrics for s in r.scope_metrics for x in s.metrics if x.name == "up" for pt in x.gauge.data_points]
    assert len(times) == len(set(times)) >= t.count


# ---------------------------------------------------------------- beside the reference
def normal(lines):
    """The scrapes as sets of points without times and versions."""
    scrapes = []
    for line in lines:
        out = []
        for r in line["resourceMetrics"]:
            resource = json.dumps(r["resource"], sort_keys=True)
            for s in r["scopeMetrics"]:
                scope = dict(s["scope"])
                if scope.get("name", "").endswith("prometheusreceiver"):
                    scope.pop("version")
                for m in s["metrics"]:
                    kind = next(k for k in ("gauge", "sum", "histogram", "summary") if k in m)
                    head = {k: v for k, v in m.items() if k != kind} | {k: v for k, v in m[kind].items() if k != "dataPoints"}
                    for p in m[kind]["dataPoints"]:
                        p = {k: v for k, v in p.items() if k != "timeUnixNano"}
                        if m["name"].startswith("scrape_duration"):
                            p.pop("asDouble", None)
                        for e in p.get("exemplars", []):
                            e.pop("timeUnixNano")
                        out.append(json.dumps([resource, scope, head, kind, p], sort_keys=True))
        scrapes.append(sorted(out))
    return scrapes


MIXED = ('# HELP a Help.\n# TYPE a counter\na_total{x="1",job="own",exported_job="e"} 1\na_total{x="2",instance="i"} 2\n# TYPE g gauge\ng{env="page",n="7"} 3\n'
         '# TYPE h histogram\nh_bucket{le="1",x="1"} 1\nh_bucket{le="+Inf",x="1"} 3\nh_sum{x="1"} 9\nh_count{x="1"} 3\nu 4\n')
CASES = {
    "plain": ("", [MIXED, MIXED]),
    "honor_labels": ("honor_labels: true", [MIXED]),
    "external_labels": ("@global external_labels: {env: prod, cluster: c1}", [MIXED]),
    "extra_metrics": ("extra_scrape_metrics: true, sample_limit: 100", [MIXED]),
    "extra_body_limit": ("extra_scrape_metrics: true, body_size_limit: 10B", [MIXED]),
    # The reference leaves series out that stood before the bad line: it sends neither a value nor a stale point for them.
    "bad_after_good": ("", [MIXED, "b{ 2\na_total 1\n", MIXED]),
    "down_after_good": ("", [MIXED, (500, {}, ""), (500, {}, ""), MIXED]),
    "empty_after_good": ("", [MIXED, "", MIXED]),
    # The reference then sends stale points of series that never had a value.
    "samples": ("sample_limit: 4", [MIXED]),
    "labels": ("label_limit: 4", [MIXED]),
    "labeldrop": ("metric_relabel_configs: [{action: labeldrop, regex: x}]", [MIXED]),
    "drop_name": ("metric_relabel_configs: [{action: labeldrop, regex: __name__}]", [MIXED]),
    "keep": ("metric_relabel_configs: [{source_labels: [__name__], regex: 'h_.*', action: keep}]", [MIXED]),
    "rename": ("metric_relabel_configs: [{source_labels: [__name__, n], separator: '-', regex: '(.)-(7)', target_label: __name__, replacement: '$${1}_$$2'}]", [MIXED]),
    "hashmod": ("metric_relabel_configs: [{source_labels: [__name__, x], target_label: shard, modulus: 1000, action: hashmod}, "
                "{source_labels: [__name__], target_label: upper, action: uppercase}, {regex: '(x|n)', replacement: 'm_$$1', action: labelmap}]", [MIXED]),
    "job_of_page": ("metric_relabel_configs: [{source_labels: [exported_job], regex: '(.+)', target_label: job}]", [MIXED]),
    "target_rules": ("relabel_configs: [{target_label: instance, replacement: node7}, {source_labels: [__address__], target_label: was}, {target_label: __param_q, replacement: 'a b'},"
                     " {target_label: __metrics_path__, replacement: /other}]", [MIXED]),
    "no_timestamps": ("honor_timestamps: false", ["a 1 1700000000000\nb 2\n", "b 2\n"]),
    "track_timestamps": ("track_timestamps_staleness: true", ["a 1 1700000000000\nb 2\n", "b 2\n"]),
    "order": ("", ['a{x="1",y="2"} 1\n', 'a{y="2",x="1"} 2\n', 'a{x="1",y="2"} 3\n']),
    "back_again": ("", ['a{x="1"} 1\na{x="2"} 1\n', 'a{x="1"} 1\n', 'a{x="1"} 1\na{x="2"} 1\n']),
    "openmetrics": ("", [(200, {"Content-Type": OPENMETRICS}, '# TYPE c counter\n# UNIT c_seconds seconds\nc_total 1 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 1\n# EOF\n')]),
    "suffixes": ("@more     trim_metric_suffixes: true", [MIXED]),
}


def compare(name, start, reference, target):
    """What differs; "" = nothing."""
    more, answers = CASES[name]
    got = {}
    for who, run in (("motel", start), ("reference", reference)):
        t = target(*answers)
        top = more[6:] if more.startswith("@more ") else "    discovery_reload_on_startup: true"
        own = "" if more.startswith("@") else more
        text = config(job("j", "localhost:" + str(t.port), own), top)
        if more.startswith("@global "):
            text = text.replace("{scrape_interval: 1s}", "{scrape_interval: 1s, " + more[8:] + "}")
        p = run(text)
        wait_until(lambda: len(p.json_lines("out.jsonl")) >= len(answers), 60)
        p.kill()
        lines = p.json_lines("out.jsonl")[:len(answers)]
        got[who] = (normal(json.loads(json.dumps(lines).replace(str(t.port), "PORT"))), [path for path, _ in t.requests[:len(answers)]])
    if got["motel"][1] != got["reference"][1]:
        return f"{got['motel'][1]} requested, not {got['reference'][1]}"
    for n, (mine, theirs) in enumerate(zip(got["motel"][0], got["reference"][0])):
        if mine != theirs:
            return f"scrape {n + 1}: only here {[x for x in mine if x not in theirs]}, only there {[x for x in theirs if x not in mine]}"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_as_the_reference(start, reference, target, name):
    """On a busy machine a scrape may take longer than its second, here or there: a difference counts when it is there three times."""
    differences = ""
    for _ in range(3):
        differences = compare(name, start, reference, target)
        if not differences:
            return
    pytest.fail(differences)
