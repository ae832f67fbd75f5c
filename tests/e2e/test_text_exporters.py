"""The console and debug exporters in the whole program: what jq sees on stdout, and a stdout that nobody reads."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import MOTEL, connects, free_port, post, span_request, wait_until

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{{exporters}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [{names}]}}}}
"""
SPAN = {"traceId": "000102030405060708090a0b0c0d0e0f", "spanId": "0102030405060708", "name": "é\nb", "kind": 2,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000123456789"}
LOG = {"traceId": SPAN["traceId"], "spanId": SPAN["spanId"], "timeUnixNano": "1", "body": {"stringValue": "x"}}


def config(port, exporters, names):
    return CONFIG.format(port=port, exporters=exporters, names=names)


def traces(*spans):
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


def post_json(port, path, body):
    return post(port, path, body, content_type="application/json")[0]


def test_console_lines_are_for_jq(start):
    port = free_port()
    text = config(port, "console: ", "console").replace("pipelines: {", "pipelines: {logs: {receivers: [otlp], exporters: [console]}, ")
    program = start(text, wait_ports=[port])
    assert post_json(port, "traces", traces(SPAN, SPAN)) == 200
    assert post_json(port, "logs", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [LOG]}]}]}).encode()) == 200
    assert program.stop() == 0
    lines = program.stdout.splitlines()
    assert len(lines) == 3 and all(line.isascii() for line in lines)
    assert [json.dumps(json.loads(line)) for line in lines] == lines  # Python's own separators and escapes
    spans = [json.loads(line) for line in lines if '"context"' in line]
    assert [s["name"] for s in spans] == ["é\nb"] * 2 and spans[0]["kind"] == "SpanKind.SERVER"
    if shutil.which("jq"):
        out = subprocess.run("grep -h '\"trace_id\"' stdout | jq -r .trace_id | sort | uniq -c", shell=True, cwd=program.folder,
                             capture_output=True, text=True, check=True).stdout.split()
        assert out == ["3", "0x" + SPAN["traceId"]]
        out = subprocess.run(["jq", "-r", "select(.context) | .context.trace_id", "stdout"], cwd=program.folder, capture_output=True,
                             text=True, check=True).stdout.split()
        assert out == ["0x" + SPAN["traceId"]] * 2


def test_console_that_nobody_reads_and_that_goes_away(tmp_path):
    port = free_port()
    path = tmp_path / "config.yaml"
    path.write_text(config(port, "console: ", "console"))
    with open(tmp_path / "stderr", "wb") as err:
        program = subprocess.Popen([MOTEL, "--config", str(path)], stdout=subprocess.PIPE, stderr=err)
    try:
        body = span_request(2000)
        statuses = set()

        def refused():
            try:
                statuses.add(post(port, "traces", body)[0])
            except OSError:
                return False
            return 503 in statuses
        wait_until(refused, 30, "a refusal")
        assert statuses == {200, 503}
        program.stdout.close()
        wait_until(lambda: post(port, "traces", body)[0] == 200, 10, "data is taken again")
        assert program.poll() is None
        program.send_signal(signal.SIGTERM)
        assert program.wait(20) == 0
        with open(tmp_path / "stderr", encoding="utf-8") as f:
            assert f.read().count("Broken pipe") == 1
    finally:
        if program.poll() is None:
            program.kill()
            program.wait()


@pytest.mark.parametrize("verbosity", ("basic", "normal", "detailed"))
def test_debug_writes_files_and_stdout(start, verbosity):
    port = free_port()
    program = start(config(port, f"debug: {{verbosity: {verbosity}, use_internal_logger: false, output_paths: [out.txt, stdout]}}", "debug"),
                    wait_ports=[port])
    assert post_json(port, "traces", traces(SPAN)) == 200
    assert program.stop() == 0
    text = program.stdout
    with open(os.path.join(program.folder, "out.txt"), encoding="utf-8") as f:
        assert f.read() == text
    assert text.startswith('Traces\t{"resource spans": 1, "spans": 1}\n')
    assert (SPAN["traceId"] in text) == (verbosity != "basic")
    assert ("Kind           : Server" in text) == (verbosity == "detailed")


def test_stderr_that_nobody_reads_holds_nothing_up(tmp_path):
    """Log lines are lost, not requests, and a stop still ends in time."""
    port = free_port()
    path = tmp_path / "config.yaml"
    path.write_text(config(port, "debug: {verbosity: detailed}", "debug") + "motel: {shutdown_timeout: 2s}\n")
    reader, writer = os.pipe()
    p = subprocess.Popen([MOTEL, "--config", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    try:
        wait_until(lambda: connects(port))
        body = traces(*[SPAN] * 50)
        assert [post_json(port, "traces", body) for _ in range(50)] == [200] * 50  # far more text than a pipe holds
        p.send_signal(signal.SIGTERM)
        assert p.wait(6) == 0
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
        os.close(reader)
