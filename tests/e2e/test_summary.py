"""The summary of a run: its lines, and the file with the same."""
import json
import os
import re
import signal

import pytest

from conftest import free_port, post, span_request, wait_until

PIPELINES = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters:
  otlp_http/backend: {{endpoint: "{url}", compression: none, retry_on_failure: {{initial_interval: 10ms, max_interval: 20ms, randomization_factor: 0}}}}
  file/all: {{path: {path}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http/backend, file/all]}}}}
"""


def config(port, url, path="out.jsonl"):
    return PIPELINES.format(port=port, url=url, path=path)


def summary_lines(program):
    return [(m.group(1), m.group(2)) for m in re.finditer(r"\t(info|warn)\tSummary: (.*?)(?:\t\{|$)", program.stderr, re.M)]


def row(summary, part, **key):
    found = [r for r in summary[part] if all(r[k] == v for k, v in key.items())]
    assert len(found) == 1, summary[part]
    return found[0]


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def test_counts_of_a_run(start, http_sink):
    """503 twice, then one request in part, then 400, then all is well: each shows in its own place."""
    partial = b'\n\x04\x08\x02\x12\x00'        # partial_success { rejected_spans: 2 }
    answers = [(503, {}, b""), (503, {}, b""), (200, {"Content-Type": "application/x-protobuf"}, partial), (400, {}, b"")]
    sink = http_sink(answer=lambda s, n: answers[n] if n < len(answers) else (200, {"Content-Type": "application/x-protobuf"}, b""))
    port = free_port()
    program = start(config(port, sink.url), wait_ports=[port])
    for i, n in enumerate((5, 3, 20)):
        assert post(port, "traces", span_request(n, start=100 * i))[0] == 200
        wait_until(lambda: len(sink.requests) >= i + 3, what="the request at the backend")
    assert program.stop() == 0
    s = load(program.path("summary.json"))
    assert s["motel_summary"] == 1 and s["run"]["lost"] == 5 and s["run"]["start"] <= s["run"]["end"]
    assert s["signals"]["traces"] == {"unit": "spans", "accepted": 28, "refused": 0, "failed": 0,
                                      "first_time": "2023-11-14T22:13:20.000Z", "last_time": "2023-11-14T22:13:20.250Z"}
    backend = row(s, "exporters", exporter="otlp_http/backend", signal="traces")
    assert {k: backend[k] for k in ("in", "sent", "rejected", "dropped", "refused", "retries", "queue_size")} == {
        "in": 28, "sent": 23, "rejected": 5, "dropped": 0, "refused": 0, "retries": 2, "queue_size": 1000}
    assert 1 <= backend["queue_peak"] <= 3
    assert row(s, "exporters", exporter="file/all", signal="traces")["sent"] == 28
    assert s["memory"]["rss_peak_bytes"] > s["memory"]["telemetry_peak_bytes"] > 0
    lines = summary_lines(program)
    assert len(lines) <= 10
    assert any(level == "warn" and re.match(r"otlp_http/backend: traces 28 in, 23 sent, 5 rejected by the backend, 2 retries, queue peak [123] of 1,000", text) for level, text in lines)
    assert ("info", "file/all: traces 28 in, all sent") in lines
    assert program.path("summary.json") .endswith(lines[-1][1].rsplit("is in ", 1)[1])


@pytest.mark.parametrize("how", ["flag", "variable", "section", "none"])
def test_where_the_file_goes(start, http_sink, how, tmp_path):
    sink, port, path = http_sink(), free_port(), str(tmp_path / "other.json")
    text = config(port, sink.url) + (f"motel: {{summary: {path}}}\n" if how == "section" else "")
    args = {"flag": ["--summary", path], "none": ["--summary=none"]}.get(how)
    program = start(text, args=args, env={"MOTEL_SUMMARY": path} if how == "variable" else None, wait_ports=[port])
    assert program.stop() == 0
    assert os.path.exists(path) == (how != "none")
    assert not os.path.exists(program.path("summary.json"))
    assert [n for n in os.listdir(program.folder) if n.endswith(".tmp")] == []
    assert ("is in " + path in summary_lines(program)[-1][1]) == (how != "none")


def test_another_file_stays(start, http_sink):
    sink, port = http_sink(), free_port()
    program = start(config(port, sink.url), wait_ports=[port])
    with open(program.path("summary.json"), "w", encoding="utf-8") as f:
        f.write('{"mine": 1}')
    assert program.stop() == 0
    assert load(program.path("summary.json")) == {"mine": 1}
    assert "is not a summary, so it stays" in program.stderr and len(summary_lines(program)) > 2


def test_a_full_disk_is_said(start, http_sink):
    sink, port = http_sink(), free_port()
    program = start(config(port, sink.url), args=["--summary", "/dev/full"], wait_ports=[port])
    assert program.stop() == 0
    assert "The summary of the run cannot be written" in program.stderr and "No space left on device" in program.stderr
    assert len(summary_lines(program)) > 2


def test_reload_goes_on_counting(start, http_sink, tmp_path):
    sink, port = http_sink(), free_port()
    program = start(config(port, sink.url), wait_ports=[port])
    assert post(port, "traces", span_request(2))[0] == 200
    other = tmp_path / "elsewhere"
    other.mkdir()
    with open(program.config_path, "w", encoding="utf-8") as f:
        f.write(config(port, sink.url, other / "out.jsonl"))
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "The old configuration has ended" in program.stderr, limit=40, what="the reload")
    assert post(port, "traces", span_request(3, start=50))[0] == 200
    assert program.stop() == 0
    s = load(other / "summary.json")
    assert s["signals"]["traces"]["accepted"] == 5
    assert row(s, "exporters", exporter="otlp_http/backend", signal="traces")["sent"] == 5
    assert row(s, "exporters", exporter="file/all", signal="traces")["sent"] == 5


def test_no_file_without_a_file_exporter(start):
    port = free_port()
    program = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{nop: {{}}, file/unused: {{path: unused.jsonl}}, file/device: {{path: /dev/null}}}}
service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [nop, file/device]}}}}}}
""", wait_ports=[port])
    assert program.stop() == 0
    assert sorted(os.listdir(program.folder)) == ["config.yaml", "stderr", "stdout"] and not os.path.exists("/dev/summary.json")
    assert summary_lines(program)
