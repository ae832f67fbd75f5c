"""Secrets stay off disks: what a variable puts into a header reaches the backend as it is, and no file, log line, page or listing."""
import base64
import json
import os
import re
import subprocess
import urllib.request

import pytest

import gym_job
from conftest import MOTEL, decode, free_port, parse, post, records, value_of, wait_until

TOKEN = "sk-a$$b#1"     # as in the variable; "$$" is how a configuration writes "$"
SENT = "sk-a$b#1"


def attribute(key, kind, value):
    return {"key": key, "value": {kind: value}}


def attributes_with(token):
    """Places for a token: a value, inside text, a key, a list, a map, bytes."""
    return [attribute("plain", "stringValue", token), attribute("inside", "stringValue", f"x{token}y{token}"), attribute(f"key-{token}", "intValue", "7"),
            attribute("list", "arrayValue", {"values": [{"stringValue": "a"}, {"arrayValue": {"values": [{"stringValue": token}]}}]}),
            attribute("map", "kvlistValue", {"values": [attribute(token, "stringValue", token)]}),
            attribute("bytes", "bytesValue", base64.b64encode(b"<" + token.encode() + b">").decode())]


def requests_with(token):
    """One request of each signal with the token wherever text can be."""
    resource = {"attributes": [attribute("service.name", "stringValue", "agent")] + attributes_with(token)}
    scope = {"name": token, "version": token, "attributes": attributes_with(token)}
    span = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "traceState": f"a={token}", "name": token, "kind": 2,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000250000000", "attributes": attributes_with(token),
            "events": [{"timeUnixNano": "1700000000000000001", "name": token, "attributes": attributes_with(token)}],
            "links": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "attributes": attributes_with(token)}],
            "status": {"code": 2, "message": token}}
    point = {"timeUnixNano": "1700000000000000000", "asInt": "3", "attributes": attributes_with(token),
             "exemplars": [{"timeUnixNano": "1", "asDouble": 1, "filteredAttributes": attributes_with(token)}]}
    metric = {"name": token, "description": token, "unit": token, "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point]}}
    log = {"timeUnixNano": "1700000000000000000", "severityText": token, "body": {"kvlistValue": {"values": attributes_with(token)}}, "eventName": token,
           "attributes": attributes_with(token)}
    return {"traces": {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [span], "schemaUrl": token}], "schemaUrl": token}]},
            "metrics": {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": [metric], "schemaUrl": token}]}]},
            "logs": {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": [log], "schemaUrl": token}]}]}}


def forms(token):
    """How a token can stand in bytes: as it is, escaped as in JSON, in base64 at each of the three offsets."""
    raw = token.encode()
    found = {raw, json.dumps(token)[1:-1].encode(), json.dumps(token, ensure_ascii=False)[1:-1].encode()}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + raw)
        found.add(text[-(-shift * 8 // 6):][:(len(raw) - 2) * 8 // 6])      # without what the neighbours decide
    return found


def unpacked(path):
    """The content of a file, and what zstd frames behind 4 bytes of length hold."""
    import zstandard
    with open(path, "rb") as f:
        data = f.read()
    yield data
    at = 0
    while at + 8 < len(data) and data[at + 4:at + 8] == b"\x28\xb5\x2f\xfd":
        size = int.from_bytes(data[at:at + 4], "big")
        yield zstandard.ZstdDecompressor().decompressobj().decompress(data[at + 4:at + 4 + size])
        at += 4 + size


def files_of(folder, but=()):
    for root, _, names in os.walk(folder):
        yield from (os.path.join(root, n) for n in names if n not in but)


def assert_nowhere(folder, *tokens, but=("config.yaml",)):
    """No token in any file below the folder, the log included, nor in the name of one."""
    for path in files_of(folder, but):
        for content in unpacked(path):
            for token in tokens:
                for form in forms(token):
                    assert form not in content, f"{form} in {path}: …{content[max(0, content.index(form) - 200):][:400]}…"
        assert not any(t in path for t in tokens), path


def get(port, path="/"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as r:
        return r.read().decode()


def arrived(sink, signal_name):
    return [m for s, m in sink.messages() if s == signal_name]


def resource_values(message, signal_name, key):
    return [attributes.get(key) for attributes, _, _ in records(signal_name, message)]


# ---------------------------------------------------------------- the files that Gym writes
def run_job(start, sink, folder, name, token):
    """Runs the rendered file until each signal is at the backend; returns the program, stopped."""
    text = gym_job.load(name)
    config, ports = gym_job.moved(text, folder, sink.url)
    program = start(config, env={gym_job.token_variable(text): token, "SLURM_JOB_ID": gym_job.JOB_ID}, wait_ports=[int(ports["4318"])])
    for signal_name, request in requests_with(SENT if token == TOKEN else token).items():
        assert post(int(ports["4318"]), signal_name, request)[0] == 200
    wait_until(lambda: all(arrived(sink, s) for s in ("traces", "metrics", "logs")), limit=60, what="every signal at the backend")
    for port, path in ((ports["8888"], "/metrics"), (ports["13133"], "/")):
        assert not any(f in get(port, path).encode() for t in (token, SENT) for f in forms(t))
    assert program.stop() == 0
    return program


@pytest.mark.parametrize("name", gym_job.NAMES)
def test_the_token_of_a_job(start, http_sink, tmp_path, name):
    sink, folder = http_sink(), tmp_path / "otel"
    folder.mkdir()
    program = run_job(start, sink, folder, name, TOKEN)
    assert all(r["headers"]["authorization"] == f"Bearer {SENT}" for r in sink.requests)
    for signal_name in ("traces", "metrics", "logs"):
        for message in arrived(sink, signal_name):
            assert set(resource_values(message, signal_name, "Authorization")) == {SENT}
    for signal_name in ("traces", "metrics", "logs"):
        with open(folder / f"{signal_name}.jsonl", encoding="utf-8") as f:
            lines = [json.loads(x) for x in f]
        assert lines and '"key": "Authorization", "value": {"stringValue": "[REDACTED]"}' in json.dumps(lines)
    assert_nowhere(tmp_path, TOKEN, SENT)
    assert "\tdebug\t" in program.stderr or "level: debug" not in gym_job.load(name)


@pytest.mark.parametrize("token, typed", [("tok\"quo\\te's", None), ("98765432109", 98765432109), ("1.25e10", 1.25e10), ("schlüssel-ß", None), ("0x12abcdef", 0x12abcdef)])
def test_odd_tokens_of_a_job(start, http_sink, tmp_path, token, typed):
    """Quotes, numbers (the attribute is then a number, as YAML has it), letters beyond ASCII."""
    sink, folder = http_sink(), tmp_path / "otel"
    folder.mkdir()
    run_job(start, sink, folder, "b-no-scrape.gsm8k", token)
    assert all(r["headers"]["authorization"].encode("latin-1").decode() == f"Bearer {token}" for r in sink.requests)
    for signal_name in ("traces", "logs"):
        for message in arrived(sink, signal_name):
            assert set(resource_values(message, signal_name, "Authorization")) == {token if typed is None else typed}
    assert_nowhere(tmp_path, token, *([] if typed is None else [str(int(typed))]))


# ---------------------------------------------------------------- every way out
EVERYTHING = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors:
  resource: {{attributes: [{{key: Authorization, value: "${{env:OTEL_TOKEN}}", action: upsert}}, {{key: text, value: "a ${{env:OTEL_TOKEN}} b", action: upsert}}]}}
exporters:
  otlp_http/backend: {{endpoint: "{url}", headers: {{authorization: "Bearer ${{env:OTEL_TOKEN}}"}}, sending_queue: {{enabled: false}}}}
  file/json: {{path: out.jsonl}}
  file/proto: {{path: out.pb, format: proto}}
  file/zstd: {{path: out.zst, compression: zstd}}
  file/proto_zstd: {{path: out.pb.zst, format: proto, compression: zstd}}
  file/rotated: {{path: rotated.jsonl, rotation: {{max_megabytes: 1}}}}
  file/grouped: {{path: "grouped/*.jsonl", group_by: {{enabled: true, resource_attribute: plain}}}}
  console: {{}}
  debug/normal: {{verbosity: normal}}
  debug/detailed: {{verbosity: detailed}}
  debug/stdout: {{verbosity: detailed, use_internal_logger: false}}
service:
  telemetry:
    logs: {{level: debug, encoding: {encoding}}}
    metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {page}}}}}}}}}]}}
    resource: {{token: "${{env:OTEL_TOKEN}}"}}
  pipelines:
    traces: &p {{receivers: [otlp], processors: [resource], exporters: [otlp_http/backend, file/json, file/proto, file/zstd, file/proto_zstd, file/rotated, file/grouped, console, debug/normal, debug/detailed, debug/stdout]}}
    metrics: *p
    logs: *p
"""


def run_everything(start, sink, token, encoding="console", args=None):
    port, page = free_port(), free_port()
    program = start(EVERYTHING.format(port=port, page=page, url=sink.url, encoding=encoding), env={"OTEL_TOKEN": token}, wait_ports=[port], args=args)
    for signal_name, request in requests_with(token).items():
        assert post(port, signal_name, request)[0] == 200
    metrics = get(page, "/metrics")
    assert program.stop() == 0
    return program, metrics


@pytest.mark.parametrize("token", ["sk-a#1", "tok\"quo\\te's", "98765432109", "1.25e10", "schlüssel-ß"])
@pytest.mark.parametrize("encoding", ["console", "json"])
def test_every_way_out(start, http_sink, token, encoding):
    sink = http_sink(answer=lambda s, n: (200, {}, b""))
    program, metrics = run_everything(start, sink, token, encoding)
    assert not any(f in metrics.encode() for f in forms(token))
    assert 'token="[REDACTED]"' in metrics
    assert_nowhere(program.folder, token)
    assert any("[REDACTED]" in p for p in files_of(program.folder)), "the grouped file has a name"
    for path in ("out.jsonl", "out.pb", "rotated.jsonl", "stdout", "stderr"):
        with open(program.path(path), "rb") as f:
            assert b"[REDACTED]" in f.read(), path
    assert len(sink.requests) == 3      # and there it is as it was
    for signal_name, message in sink.messages():
        assert token.encode() in message.SerializeToString() and b"REDACTED" not in message.SerializeToString()


def test_proto_files_are_whole(start, http_sink):
    """What the proto files hold is what the backend got, but for the token."""
    sink = http_sink(answer=lambda s, n: (200, {}, b""))
    program, _ = run_everything(start, sink, "sk-abc#1")
    with open(program.path("out.pb"), "rb") as f:
        data = f.read()
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4:4 + size])
        data = data[4 + size:]
    want = [(s, m) for s, m in sink.messages()]
    assert len(found) == len(want) == 3
    for (signal_name, message), got in zip(want, found):
        plain = str(parse(signal_name, message.SerializeToString())).replace("sk-abc#1", "[REDACTED]")
        assert str(parse(signal_name, got)) == plain


def test_redaction_switched_off(start, http_sink):
    sink = http_sink(answer=lambda s, n: (200, {}, b""))
    program, metrics = run_everything(start, sink, "sk-a#1", args=["--redact=false"])
    for path in ("out.jsonl", "out.pb", "rotated.jsonl", "stdout", "stderr", "grouped/sk-a#1.jsonl"):
        with open(program.path(path), "rb") as f:
            content = f.read()
        assert b"sk-a#1" in content and b"REDACTED" not in content, path
    assert 'token="sk-a#1"' in metrics


# ---------------------------------------------------------------- words of others
LONG = "SEKRETabcdefghijklmnopqrstuvwxyz0123456789"


def status_with(text):
    """google.rpc.Status { code: 16, message: text }"""
    data = text.encode()
    size = bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) if len(data) > 127 else bytes([len(data)])
    return b"\x08\x10\x12" + size + data


@pytest.mark.parametrize("kind", ["protobuf", "json", "text"])
def test_an_answer_that_quotes_the_token(start, http_sink, kind):
    """At every length before the token: the answer may be cut in the middle of it."""
    def answer(sink, n):
        text = "x" * (12 * n) + " " + LONG + " is not welcome"
        return (401, {"Content-Type": {"protobuf": "application/x-protobuf", "json": "application/json", "text": "text/plain"}[kind]},
                status_with(text) if kind == "protobuf" else json.dumps({"code": 16, "message": text}).encode() if kind == "json" else text.encode())
    sink, port = http_sink(answer=answer), free_port()
    program = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp_http: {{endpoint: "{sink.url}", headers: {{x-key: "${{env:KEY}}"}}, sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}}}
service: {{telemetry: {{logs: {{level: debug, sampling: {{enabled: false}}}}, metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}}}
""", env={"KEY": LONG}, wait_ports=[port])
    for _ in range(48):
        post(port, "traces", requests_with("nothing")["traces"])
    assert program.stop() == 0
    assert len(sink.requests) == 48 and program.stderr.count("Exporting failed") == 48
    assert "SEKR" not in program.stderr


def test_a_grpc_answer_that_quotes_the_token(start, grpc_sink):
    import grpc

    def answer(n, context):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "x" * (12 * n) + " " + LONG + " is not welcome")
    sink, port = grpc_sink(answer=answer), free_port()
    program = start(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp_grpc: {{endpoint: "127.0.0.1:{sink.port}", tls: {{insecure: true}}, headers: {{x-key: "${{env:KEY}}"}}, sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}}}
service: {{telemetry: {{logs: {{level: debug, sampling: {{enabled: false}}}}, metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_grpc]}}}}}}
""", env={"KEY": LONG}, wait_ports=[port])
    for _ in range(48):
        post(port, "traces", requests_with("nothing")["traces"])
    assert program.stop() == 0
    assert len(sink.requests) == 48 and program.stderr.count("Exporting failed") == 48
    assert "SEKR" not in program.stderr


# ---------------------------------------------------------------- listings and mistakes
def run(*args, **env):
    done = subprocess.run([MOTEL, *args], env={**os.environ, **env}, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("token", [TOKEN, "tok\"quo\\te's", "98765432109"])
def test_listings_and_mistakes(tmp_path, token):
    text = gym_job.load("b-no-scrape.gsm8k")
    config, _ = gym_job.moved(text, tmp_path, "http://127.0.0.1:9")
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(config, encoding="utf-8")
    mistakes = {"timeout: ": "  otlp_http/managed:\n    timeout: ${env:OTEL_TOKEN}\n", "unknown: ": "  otlp_http/managed:\n    unknown: ${env:OTEL_TOKEN}\n",
                "list: ": "  otlp_http/managed:\n    sending_queue: ${env:OTEL_TOKEN}\n", "key: ": "  otlp_http/managed:\n    encoding: x${env:OTEL_TOKEN}\n"}
    env = {"OTEL_TOKEN": token, "SLURM_JOB_ID": gym_job.JOB_ID}
    shown = [run("validate", "--config", str(good), **env), run("print-config", "--config", str(good), **env), run("print-config", "--format", "json", "--config", str(good), **env)]
    assert [code for code, _ in shown] == [0, 0, 0]
    for mistake in mistakes.values():
        bad.write_text(config.replace("  otlp_http/managed:\n", mistake), encoding="utf-8")
        shown += [run("validate", "--config", str(bad), **env), run("--config", str(bad), **env)]
        assert shown[-1][0] == shown[-2][0] == 1 and "Error" in shown[-1][1]
    for _, out in shown:
        assert not any(f in out.encode() for t in {token, token.replace("$$", "$")} for f in forms(t)), out
    assert re.search(r"Authorization: ['\"]?\[REDACTED\]", shown[1][1])


def test_a_statement_that_is_wrong(tmp_path):
    """Of a statement that holds the value of a variable no part is shown, only its place."""
    bad = tmp_path / "bad.yaml"
    frame = """
receivers: {nop: }
exporters: {nop: }
processors:
  transform: {trace_statements: [%s]}
  filter: {trace_conditions: [%s]}
service: {pipelines: {traces: {receivers: [nop], processors: [transform, filter], exporters: [nop]}}}
"""
    ok, wrong = "set(span.name, \"${env:T}\")", "set(span.nam, \"${env:T}\")"
    for statements, conditions, place in [
            (f"'{wrong}'", "", "transform::trace_statements[0]"),
            ("{context: span, statements: ['%s', 'set(nam, \"${env:T}\")']}" % ok.replace("span.", ""), "", "transform::trace_statements[0]::statements[1]"),
            ("{conditions: ['\"${env:T}\" == 1'], statements: []}", "", "transform::trace_statements[0]"),
            (f"'{ok}'", "'span.nam == \"${env:T}\"'", "filter::trace_conditions[0]"),
            ("", "{context: span, conditions: ['name == \"${env:T}\" x']}", "filter::trace_conditions[0]::conditions[0]")]:
        bad.write_text(frame % (statements, conditions), encoding="utf-8")
        code, out = run("validate", "--config", str(bad), T="hush-hush-1")
        assert code == 1 and place in out and "hush" not in out and "the value of a variable" in out, out
    bad.write_text(frame % ("'set(span.nam, 1)', 'set(span.name, \"${env:T}\")'", ""), encoding="utf-8")
    assert "set(span.nam, 1)" in run("validate", "--config", str(bad), T="hush-hush-1")[1]


def test_a_password_in_a_replay(tmp_path, http_sink):
    """It authenticates, and neither the state file nor the words at the end show it."""
    sink, state, data = http_sink(), tmp_path / "state.json", tmp_path / "in.jsonl"
    data.write_text(json.dumps(requests_with("nothing")["traces"]) + "\n", encoding="utf-8")
    to = f"http://user:pass-word-1@127.0.0.1:{sink.port}"
    for _ in range(2):
        code, out = run("replay", str(data), "--to", to, "--state", str(state))
        assert code == 0 and "pass-word-1" not in out and "pass-word-1" not in state.read_text(encoding="utf-8"), out
    assert [r["headers"]["authorization"] for r in sink.requests] == ["Basic " + base64.b64encode(b"user:pass-word-1").decode()]
