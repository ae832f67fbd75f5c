#!/usr/bin/env python3
"""CPU and memory of scraping: many series, every second, by motel and by the reference collector at the same time.

scrape_bench.py MOTEL [--reference OTELCOL] [--series 5000] [--seconds 600] [--churn PERCENT]

Serves pages of histograms, counters and gauges with six labels a series, a server and a port for each collector. With --churn that
part of the series has another label value in every scrape. Prints the CPU milliseconds of a scrape, the anonymous memory after the first
tenth of the time and at the end, and the scrapes that were answered. Exit status 1 when motel needs more than a quarter of the
reference's CPU, or grew by more than a tenth (and a MiB).
"""
import argparse
import http.server
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONFIG = """
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: bench
          scrape_interval: 1s
          static_configs: [{{targets: ['127.0.0.1:{port}']}}]
exporters: {{nop: }}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines:
    metrics: {{receivers: [prometheus], exporters: [nop]}}
"""
BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]


def page(series, churn, number):
    """About `series` samples: a third counters, a third gauges, a third histogram buckets."""
    out, n = [], 0
    changing = series * churn // 100

    def labels(i):
        version = number if n < changing else 0
        return (f'engine="{i % 8}",model_name="meta/llama-3-70b",node="node{i % 40:03}",worker="w{i:05}",'
                f'zone="eu-west-1",version="v{version}"')
    for kind in ("counter", "gauge"):
        name = f"bench_{kind}_total" if kind == "counter" else "bench_gauge"
        out.append(f"# HELP {name} A {kind} of the benchmark.\n# TYPE {name} {kind}\n")
        for i in range(series // 3):
            out.append(f"{name}{{{labels(i)}}} {i * 3 + number}\n")
            n += 1
    out.append("# HELP bench_seconds A histogram of the benchmark.\n# TYPE bench_seconds histogram\n")
    i = 0
    while n + len(BOUNDS) + 3 <= series:
        own = labels(i)
        for k, b in enumerate(BOUNDS):
            out.append(f'bench_seconds_bucket{{{own},le="{b}"}} {k * number}\n')
        out.append(f'bench_seconds_bucket{{{own},le="+Inf"}} {10 * number}\nbench_seconds_sum{{{own}}} {number * 1.5}\n'
                   f'bench_seconds_count{{{own}}} {10 * number}\n')
        n += len(BOUNDS) + 3
        i += 1
    return "".join(out).encode()


def serve(listener, series, churn, answered):
    body = [page(series, churn, 1)]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body[0])))
            self.end_headers()
            self.wfile.write(body[0])
            answered.value += 1
            if churn:
                body[0] = page(series, churn, answered.value + 1)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.serve_forever()


class Collector:
    def __init__(self, name, binary, series, churn):
        self.name, self.binary = name, binary
        listener = socket.create_server(("127.0.0.1", 0))
        self.answered = multiprocessing.Value("i", 0)
        self.server = multiprocessing.Process(target=serve, args=(listener, series, churn, self.answered), daemon=True)
        self.server.start()
        self.config = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.config.write(CONFIG.format(port=listener.getsockname()[1]))
        self.config.flush()
        listener.close()
        self.process = subprocess.Popen([binary, "--config", self.config.name])

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def anonymous_kib(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(next(line for line in f if line.startswith("RssAnon")).split()[1])

    def mark(self):
        return self.cpu_s(), self.answered.value, self.anonymous_kib()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.server.kill()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("motel")
    p.add_argument("--reference")
    p.add_argument("--series", type=int, default=5000)
    p.add_argument("--seconds", type=float, default=600)
    p.add_argument("--churn", type=int, default=0, help="percent of the series that are new ones in every scrape")
    a = p.parse_args()
    collectors = [Collector("motel", a.motel, a.series, a.churn)]
    if a.reference:
        collectors.append(Collector("reference", a.reference, a.series, a.churn))
    time.sleep(a.seconds / 10)
    before = [c.mark() for c in collectors]
    time.sleep(a.seconds * 9 / 10)
    after = [c.mark() for c in collectors]
    cost, failed = {}, False
    for c, x, y in zip(collectors, before, after):
        scrapes = y[1] - x[1]
        cost[c.name] = (y[0] - x[0]) * 1000 / max(scrapes, 1)
        print(f"{c.name}: {cost[c.name]:.2f} ms CPU a scrape ({scrapes} scrapes of {a.series} series, {a.churn} % new), "
              f"anonymous memory {x[2]} -> {y[2]} KiB", flush=True)
        if c.name == "motel":
            failed |= y[2] > x[2] * 1.1 + 1024
        c.stop()
    if a.reference:
        ratio = cost["motel"] / cost["reference"]
        print(f"motel needs {ratio:.3f} of the reference's CPU")
        failed |= ratio > 0.25
    return failed


if __name__ == "__main__":
    sys.exit(main())
