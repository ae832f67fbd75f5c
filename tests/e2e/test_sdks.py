"""Real OpenTelemetry SDKs send traces, metrics and logs through motel to a backend that is not ours; everything arrives, stamped."""
import pytest

from conftest import free_port, records, run_node_client, run_python_client, wait_until

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
      http: {{endpoint: "127.0.0.1:{http}"}}
processors:
  resource:
    attributes:
      - {{key: nemo.gym.service_group, value: nemo-gym, action: upsert}}
      - {{key: nemo.run.id, value: "${{env:SLURM_JOB_ID:-local}}", action: upsert}}
      - {{key: nemo.run.id, action: convert, converted_type: string}}
  batch: {{timeout: 100ms}}
exporters:
  {exporter}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [resource, batch], exporters: [{id}]}}
    metrics: {{receivers: [otlp], processors: [resource, batch], exporters: [{id}]}}
    logs: {{receivers: [otlp], processors: [resource, batch], exporters: [{id}]}}
"""
CLIENTS = [("python", "grpc", "none"), ("python", "grpc", "gzip"), ("python", "http", "none"), ("python", "http", "gzip"),
           ("node", "json", "none"), ("node", "proto", "gzip"), ("node", "grpc", "none")]
WANT = {"python": {"traces": {"py-span-0", "py-span-1", "py-span-2"}, "metrics": {"py.count", "py.gauge", "py.histogram", "py.exponential"}, "logs": 2},
        "node": {"traces": {"node-parent", "node-child"}, "metrics": {"node.count", "node.gauge", "node.histogram"}, "logs": 2}}


def send(client, protocol, compression, target):
    url = f"http://127.0.0.1:{target}"
    (run_python_client if client == "python" else run_node_client)(protocol, compression, url)


def start_motel(start, exporter, exporter_id, env=None):
    ports = {"grpc": free_port(), "http": free_port()}
    program = start(CONFIG.format(exporter=exporter, id=exporter_id, **ports), env=env, wait_ports=ports.values())
    return program, ports


def check_arrived(sink, client, run_id):
    want = WANT[client]

    def seen():
        got = {"traces": [], "metrics": [], "logs": []}
        for signal_name, message in sink.messages():
            got[signal_name] += list(records(signal_name, message))
        return got
    wait_until(lambda: len(seen()["logs"]) >= want["logs"] and len(seen()["traces"]) >= len(want["traces"]) and len(seen()["metrics"]) >= len(want["metrics"]),
               what="arrival of all records")
    got = seen()
    for signal_name, items in got.items():
        for resource, _, _ in items:
            assert resource["nemo.gym.service_group"] == "nemo-gym"
            assert resource["nemo.run.id"] == run_id
            assert resource["service.name"] == ("py-client/agent" if client == "python" else "node-client/agent")
            assert resource["answer"] == 42 and resource["ratio"] == 0.25 and resource["on"] is True and resource["list"] == ["a", "b"]
    assert {x.name for _, _, x in got["traces"]} == want["traces"] and len(got["traces"]) == len(want["traces"])
    assert {x.name for _, _, x in got["metrics"]} == want["metrics"] and len(got["metrics"]) == len(want["metrics"])
    assert len(got["logs"]) == want["logs"]


@pytest.mark.parametrize("client,protocol,compression", CLIENTS)
def test_to_grpc_backend(start, grpc_sink, client, protocol, compression):
    sink = grpc_sink()
    _, ports = start_motel(start, f"otlp_grpc: {{endpoint: '127.0.0.1:{sink.port}', tls: {{insecure: true}}}}", "otlp_grpc", {"SLURM_JOB_ID": "4242"})
    send(client, protocol, compression, ports["grpc" if protocol == "grpc" else "http"])
    check_arrived(sink, client, "4242")


@pytest.mark.parametrize("client,protocol,compression", CLIENTS)
def test_to_http_backend(start, http_sink, client, protocol, compression):
    sink = http_sink()
    _, ports = start_motel(start, f"otlp_http: {{endpoint: '{sink.url}'}}", "otlp_http", {"SLURM_JOB_ID": "0123"})
    send(client, protocol, compression, ports["grpc" if protocol == "grpc" else "http"])
    check_arrived(sink, client, "83")        # YAML reads 0123 as an octal number, as in the reference


@pytest.mark.parametrize("client,protocol", [("python", "grpc"), ("python", "http"), ("node", "grpc"), ("node", "json")])
def test_the_other_port(start, http_sink, client, protocol):
    """gRPC sent to the HTTP port and OTLP/HTTP sent to the gRPC port arrive as well."""
    sink = http_sink()
    _, ports = start_motel(start, f"otlp_http: {{endpoint: '{sink.url}', compression: zstd}}", "otlp_http", {"SLURM_JOB_ID": "job-7"})
    send(client, protocol, "none", ports["http" if protocol == "grpc" else "grpc"])
    check_arrived(sink, client, "job-7")


@pytest.mark.reference
@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("client,sends,compression", [("python", "grpc", "gzip"), ("node", "json", "none")])
def test_reference_collector_as_backend(start, reference, tmp_path, client, sends, compression, protocol):
    """The same requests directly and through motel give the same records in the reference collector's file, but for the stamps."""
    ports = {"grpc": free_port(), "http": free_port()}
    out = tmp_path / "reference.jsonl"
    backend = reference(f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{ports['grpc']}"}}, http: {{endpoint: "127.0.0.1:{ports['http']}"}}}}}}}}
exporters: {{file: {{path: {out}, flush_interval: 50ms}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
    metrics: {{receivers: [otlp], exporters: [file]}}
    logs: {{receivers: [otlp], exporters: [file]}}
""", wait_ports=ports.values())
    exporter = f"otlp_grpc: {{endpoint: '127.0.0.1:{ports['grpc']}', tls: {{insecure: true}}}}" if protocol == "grpc" else f"otlp_http: {{endpoint: 'http://127.0.0.1:{ports['http']}'}}"
    motel, mine = start_motel(start, exporter, exporter.split(":")[0], {"SLURM_JOB_ID": "ref-1"})
    send(client, sends, compression, mine["grpc" if sends == "grpc" else "http"])
    assert motel.stop() == 0
    assert backend.stop() == 0
    text = out.read_text()
    for name in WANT[client]["traces"] | WANT[client]["metrics"]:
        assert text.count(f'"name":"{name}"') == 1
    assert text.count('{"key":"nemo.run.id","value":{"stringValue":"ref-1"}}') == len(text.splitlines())
    assert text.count('{"key":"nemo.gym.service_group","value":{"stringValue":"nemo-gym"}}') == len(text.splitlines())
