"""deploy/compose: the files against the specification and against each other, motel with its file and real SDK clients, and Debian's Prometheus with its.
There is no container engine here; backends are the tests' own, the reference collector on the paths of Jaeger and Prometheus, and Prometheus itself."""
import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import compose_spec
import pytest
import yaml

from support import ROOT, e2e, version

FOLDER = os.path.join(ROOT, "deploy", "compose")
SHUTDOWN_S = 25


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return f.read()


TEXT = read("compose.yaml")
FILE = yaml.safe_load(TEXT)
MOTEL = yaml.safe_load(read("motel.yaml"))
SERVICES = FILE["services"]


def valid(text):
    compose_spec.PyCompose.from_yaml(text).validate()


def test_the_specification():
    valid(TEXT)


@pytest.mark.parametrize("old,new", [("restart: unless-stopped", "restart: sometimes"), ("cap_drop: [ALL]", "cap_drops: [ALL]"), ("retries: 3", "retrys: 3"),
                                     ("stop_grace_period: 30s", "stop_grace_period: soon"), ("mem_limit: 256m", "mem_limit: lots"), ("services:", "service:")])
def test_a_broken_file_is_found(old, new):
    assert old in TEXT
    with pytest.raises(Exception) as e:
        valid(TEXT.replace(old, new, 1))
    assert not isinstance(e.value, AssertionError)


def container_ports(service):
    return [int(p.rsplit(":", 1)[1]) for p in SERVICES[service].get("ports", [])]


def test_images_and_ports():
    """Images by name and fixed version; ports for this machine alone, since nothing asks for a password."""
    for name, s in SERVICES.items():
        assert re.fullmatch(r"[a-z]+(/[a-z]+)?:v?\d+\.\d+\.\d+", s["image"]), name
        assert all(p.startswith("127.0.0.1:") for p in s["ports"])
    assert SERVICES["motel"]["image"] == f"motel:{version()}"


def test_mounted_files_and_volumes_are_there():
    for name, s in SERVICES.items():
        for mount in s.get("volumes", []):
            source, target, *_ = mount.split(":")
            if source.startswith("./"):
                assert os.path.exists(os.path.join(FOLDER, source)) and mount.endswith(":ro"), mount
            else:
                assert source in FILE["volumes"], mount
        assert set(s.get("depends_on", [])) <= set(SERVICES)
    used = {m.split(":")[0] for s in SERVICES.values() for m in s.get("volumes", []) if not m.startswith("./")}
    assert used == set(FILE["volumes"])


def test_motel_of_the_file():
    """What it listens on is published, what it writes is a volume, it may end in its time, and its health check is where the engine looks."""
    s = SERVICES["motel"]
    protocols = MOTEL["receivers"]["otlp"]["protocols"]
    listeners = [p["endpoint"] for p in protocols.values()] + [MOTEL["extensions"]["health_check"]["endpoint"]]
    assert sorted(listeners) == sorted(f"0.0.0.0:{p}" for p in container_ports("motel"))
    assert s["command"] == ["--config", "/etc/motel/motel.yaml"] and "./motel.yaml:/etc/motel/motel.yaml:ro" in s["volumes"]
    assert s["read_only"] and any(m.endswith(":/var/lib/motel") for m in s["volumes"]) and MOTEL["extensions"]["file_storage"]["directory"].startswith("/var/lib/motel/")
    assert int(s["stop_grace_period"].rstrip("s")) > SHUTDOWN_S
    assert s["healthcheck"]["test"] == ["CMD", "/usr/bin/motel", "health"] and MOTEL["extensions"]["health_check"]["endpoint"].endswith(":13133")


def hosts():
    """Where the files of each service say that another one is: (service, port)."""
    grafana = yaml.safe_load(read("grafana/datasources/motel.yaml"))
    urls = [MOTEL["exporters"]["otlp_http/prometheus"]["endpoint"], "http://" + MOTEL["exporters"]["otlp_grpc/jaeger"]["endpoint"], *(d["url"] for d in grafana["datasources"])]
    urls += ["http://" + t for s in yaml.safe_load(read("prometheus.yml"))["scrape_configs"] for c in s["static_configs"] for t in c["targets"]]
    return [(u.hostname, u.port) for u in map(urllib.parse.urlsplit, urls)]


def test_names_lead_to_services():
    page = MOTEL["service"]["telemetry"]["metrics"]["readers"][0]["pull"]["exporter"]["prometheus"]
    own = {"motel": {page["port"]}, "jaeger": {4317, *container_ports("jaeger")}, "prometheus": {*container_ports("prometheus")}}
    found = hosts()
    assert len(found) == 5
    for name, port in found:
        assert port in own[name], (name, port)
    assert page["host"] == "0.0.0.0" and {"--web.enable-otlp-receiver", "--enable-feature=native-histograms"} <= set(SERVICES["prometheus"]["command"])
    at = next(c.split("=")[1] for c in SERVICES["prometheus"]["command"] if c.startswith("--config.file="))
    assert f"./prometheus.yml:{at}:ro" in SERVICES["prometheus"]["volumes"]
    assert SERVICES["grafana"]["volumes"] == ["./grafana/datasources:/etc/grafana/provisioning/datasources:ro"]


def test_grafanas_data_sources():
    sources = yaml.safe_load(read("grafana/datasources/motel.yaml"))
    assert sources["apiVersion"] == 1 and [s["type"] for s in sources["datasources"]] == ["prometheus", "jaeger"]
    assert sum(bool(s.get("isDefault")) for s in sources["datasources"]) == 1
    assert all({"name", "type", "access", "url"} <= set(s) <= {"name", "uid", "type", "access", "url", "isDefault"} for s in sources["datasources"])


@pytest.mark.parametrize("old,new", [("", ""), ("scrape_interval: 15s", "scrape_intervall: 15s"), ("out_of_order_time_window: 30m", "out_of_order_time_window: long"),
                                     ('["motel:8888"]', '["http://motel:8888"]')])
def test_prometheus_takes_its_file(tmp_path, old, new):
    if not shutil.which("promtool"):
        pytest.skip("there is no promtool; Debian's package prometheus has it")
    text = read("prometheus.yml")
    assert old in text
    (tmp_path / "prometheus.yml").write_text(text.replace(old, new, 1))
    done = subprocess.run(["promtool", "check", "config", "--lint-fatal", str(tmp_path / "prometheus.yml")], capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == (old == ""), done.stdout + done.stderr


def moved(folder, jaeger, prometheus):
    """motel's file for this machine: free ports, the backends' addresses and a folder in place of the volume; nothing else is changed."""
    text, ports = read("motel.yaml"), {}
    for port in ("4317", "4318", "13133"):
        ports[port] = e2e.free_port()
        assert text.count(f'"0.0.0.0:{port}"') == 1
        text = text.replace(f'"0.0.0.0:{port}"', f'"127.0.0.1:{ports[port]}"')
    ports["8888"] = e2e.free_port()
    for old, new in (("host: 0.0.0.0, port: 8888", f"host: 127.0.0.1, port: {ports['8888']}"), ("jaeger:4317", f"127.0.0.1:{jaeger}"), ("prometheus:9090", f"127.0.0.1:{prometheus}"),
                     ("/var/lib/motel", str(folder)), ("metrics_flush_interval: 15s", "metrics_flush_interval: 1s")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text, ports


def send_all(ports, spans):
    e2e.run_python_client("grpc", "none", f"http://127.0.0.1:{ports['4317']}", spans)
    e2e.run_python_client("http", "gzip", f"http://127.0.0.1:{ports['4318']}", spans)


def health(motel, port):
    return subprocess.run([motel, "health", f"http://127.0.0.1:{port}/"], capture_output=True, timeout=60).returncode


def test_the_sdk_and_two_backends(start, motel, grpc_sink, http_sink, tmp_path):
    """Real clients on both ports: traces come to Jaeger's, metrics to Prometheus's path, those of the spans as well, logs to the output."""
    jaeger, prometheus = grpc_sink(), http_sink()
    text, ports = moved(tmp_path, jaeger.port, prometheus.port)
    p = start(text, wait_ports=[ports["4317"], ports["4318"], ports["13133"]])
    e2e.wait_until(lambda: health(motel, ports["13133"]) == 0, what="the health check")
    send_all(ports, 40)
    e2e.wait_until(lambda: sum(len(list(e2e.records(s, m))) for s, m in jaeger.messages()) >= 80, what="the spans")
    e2e.wait_until(lambda: "traces.span.metrics.calls" in {x.name for s, m in prometheus.messages() for _, _, x in e2e.records(s, m)}, what="the metrics of the spans")
    assert p.stop() == 0
    assert {s for s, _ in jaeger.messages()} == {"traces"} and sum(len(list(e2e.records(s, m))) for s, m in jaeger.messages()) == 80
    assert {r["path"] for r in prometheus.requests} == {"/api/v1/otlp/v1/metrics"}
    # Prometheus takes cumulative sums and histograms only.
    for _, m in prometheus.messages():
        for _, _, x in e2e.records("metrics", m):
            kind = x.WhichOneof("data")
            assert kind in ("gauge", "summary") or getattr(x, kind).aggregation_temporality == 2, x.name
    assert "severityText" in p.stdout or "body" in p.stdout, p.stdout[-2000:]
    assert health(motel, ports["13133"]) == 1


def test_backends_that_are_restarted(start, grpc_sink, http_sink, tmp_path):
    """`docker compose restart jaeger`, and motel killed meanwhile: its volume has the spans."""
    jaeger_port, prometheus = e2e.free_port(), http_sink()
    text, ports = moved(tmp_path, jaeger_port, prometheus.port)
    p = start(text, wait_ports=[ports["4318"]])
    e2e.run_python_client("http", "none", f"http://127.0.0.1:{ports['4318']}", 40)
    p.kill()
    jaeger = grpc_sink(port=jaeger_port)
    p = start(text, wait_ports=[ports["4318"]])
    e2e.wait_until(lambda: sum(len(list(e2e.records(s, m))) for s, m in jaeger.messages()) >= 40, 120, what="the spans")
    assert p.stop() == 0


def test_the_reference_collector_in_their_place(start, reference, tmp_path):
    """Another implementation of both receivers, on the same paths."""
    grpc, http, out = e2e.free_port(), e2e.free_port(), tmp_path / "reference.jsonl"
    backend = reference(f"""
receivers:
  otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{grpc}"}}, http: {{endpoint: "127.0.0.1:{http}", metrics_url_path: /api/v1/otlp/v1/metrics}}}}}}
exporters: {{file: {{path: {out}, flush_interval: 100ms}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}, metrics: {{receivers: [otlp], exporters: [file]}}}}
""", wait_ports=[grpc, http])
    text, ports = moved(tmp_path, grpc, http)
    p = start(text, wait_ports=[ports["4317"], ports["4318"]])
    send_all(ports, 20)
    assert p.stop() == 0 and backend.stop() == 0
    lines = [json.loads(x) for x in out.read_text().splitlines()]
    assert e2e.count_spans(lines) == 40
    names = {m["name"] for x in lines for r in x.get("resourceMetrics", []) for s in r["scopeMetrics"] for m in s["metrics"]}
    assert {"traces.span.metrics.calls", "traces.span.metrics.duration"} <= names and len(names) > 3


def test_debians_prometheus_scrapes_motel(start, grpc_sink, http_sink, tmp_path):
    """Its file with motel's address of here; what motel counts is what Prometheus answers."""
    if not shutil.which("prometheus"):
        pytest.skip("there is no prometheus; Debian's package has it")
    jaeger, metrics, listen = grpc_sink(), http_sink(), e2e.free_port()
    text, ports = moved(tmp_path, jaeger.port, metrics.port)
    start(text, wait_ports=[ports["4318"], ports["8888"]])
    e2e.run_python_client("http", "none", f"http://127.0.0.1:{ports['4318']}", 30)
    own = read("prometheus.yml").replace("motel:8888", f"127.0.0.1:{ports['8888']}").replace("scrape_interval: 15s", "scrape_interval: 1s")
    (tmp_path / "prometheus.yml").write_text(own)
    with open(tmp_path / "prometheus.log", "wb") as log:
        p = subprocess.Popen(["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb", f"--web.listen-address=127.0.0.1:{listen}"],
                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        def answer(query):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{listen}/api/v1/query?" + urllib.parse.urlencode({"query": query}), timeout=10) as r:
                    return [x["value"][1] for x in json.load(r)["data"]["result"]]
            except OSError:
                assert p.poll() is None, (tmp_path / "prometheus.log").read_text()[-3000:]
                return []
        e2e.wait_until(lambda: answer('sum(otelcol_receiver_accepted_spans{job="motel"})') == ["30"], 120, "the scraped counter")
        assert answer('up{job="motel"}') == ["1"]
    finally:
        p.terminate()
        p.wait(60)
