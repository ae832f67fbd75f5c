"""The configuration language in the running program: what variables become in headers and attributes, and where secrets do not show."""
import json
import subprocess

import pytest

from conftest import MOTEL, free_port, post, records, span_request, wait_until

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
processors:
  resource:
    attributes:
{attributes}
exporters:
  otlp_http:
    endpoint: {endpoint}
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
    headers:
{headers}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: debug}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [{chain}], exporters: [otlp_http]}}}}
"""


def config(port, endpoint, attributes=(), headers=()):
    """Both lists hold (name, YAML of the value)."""
    return CONFIG.format(
        port=port, endpoint=endpoint, chain="resource" if attributes else "",
        attributes="\n".join(f"      - {{key: {k}, value: {v}, action: upsert}}" for k, v in attributes) or "      - {key: a, action: delete}",
        headers="\n".join(f"      {k}: {v}" for k, v in headers) or "      {}")


TOKENS = ["123", "0123", "0xdeadbeef", "1e3", "true", "null", "[a,b]", '"0123"', "2023-03-20T03:17:55Z", "1111:1111::", "a: b", "foo # bar"]


def test_headers_take_the_exact_text(start, http_sink):
    sink, port = http_sink(), free_port()
    headers = [(f"x-tok-{i}", f'"${{env:TOK{i}}}"') for i in range(len(TOKENS))] + [(f"y-tok-{i}", f'"pre-${{env:TOK{i}}}"') for i in range(len(TOKENS))]
    start(config(port, sink.url, headers=headers), wait_ports=[port], env={f"TOK{i}": t for i, t in enumerate(TOKENS)})
    assert post(port, "traces", span_request())[0] == 200
    sent = wait_until(lambda: sink.requests, what="a request")[0]["headers"]
    for i, token in enumerate(TOKENS):
        assert sent[f"x-tok-{i}"] == token
        assert sent[f"y-tok-{i}"] == "pre-" + token


# value in the configuration, what arrives; ENVV=hello
ESCAPES = [
    ("$$ENVV", "$ENVV"), ("$${ENVV}", "${ENVV}"), ("$${env:ENVV}", "${env:ENVV}"), ("$$$${env:ENVV}", "$${env:ENVV}"), ("$$${env:ENVV}", "$hello"),
    ("$${env:A}:${env:ENVV}", "${env:A}:hello"), ("a$$", "a$"), ("$", "$"), ("$ENVV", "$ENVV"), ("${ENVV}", "hello"),
    ("${env:ENVV}x${env:ENVV}", "helloxhello"), ("${env:NOPE:-d}", "d"), ("${env:NOPE:-}", ""), ("${env:NOPE:-a:-b}", "a:-b"), ("x${env:NOPE}y", "xy"),
    ("${env:DOLLARS}", "$X"), ("${env:OTHER}", "hello"), ("${env:JOB}", 12345), ("${env:OCTAL}", 83), ("id-${env:OCTAL}", "id-0123"),
    ("x-${env:OCTAL}-$${env:OCTAL}", "x-0123-${env:OCTAL}"), ("${env:LIST}", ["a", 2]), ("${env:FLAG}", True), ("${env:FLOAT}", 1000.0),
]


def test_dollars_and_types_of_attributes(start, http_sink):
    sink, port = http_sink(), free_port()
    attributes = [(f"k{i}", json.dumps(v)) for i, (v, _) in enumerate(ESCAPES)]
    env = {"ENVV": "hello", "DOLLARS": "$$X", "OTHER": "${env:ENVV}", "JOB": "12345", "OCTAL": "0123", "LIST": "[a, 2]", "FLAG": "true", "FLOAT": "1e3"}
    p = start(config(port, sink.url, attributes=attributes), wait_ports=[port], env=env)
    assert post(port, "traces", span_request())[0] == 200
    signal, message = wait_until(sink.messages, what="a request")[0]
    got, _, _ = next(records(signal, message))
    for i, (text, want) in enumerate(ESCAPES):
        assert got[f"k{i}"] == want and type(got[f"k{i}"]) is type(want), text
    assert 'the environment variable "NOPE" is not set' in p.stderr


@pytest.mark.parametrize("text, word", [("${1}", '"1"'), ("${HOST:-x}", "env:HOST:-x"), ("${vault:x}", '"vault"'), ("${file:/nonexistent/x}", "/nonexistent/x")])
def test_a_bad_reference_ends_the_start(start, text, word):
    p = start(config(free_port(), "http://127.0.0.1:9", headers=[("x-a", json.dumps(text))]))
    assert p.process.wait(10) == 1
    assert word in p.stderr and "exporters::otlp_http::headers::x-a" in p.stderr


def test_a_token_file_loses_its_newline(start, http_sink, tmp_path):
    sink, port = http_sink(), free_port()
    (tmp_path / "token").write_text("tok-123456\n")
    p = start(config(port, sink.url, headers=[("authorization", f'"Bearer ${{file:{tmp_path}/token}}"')]), wait_ports=[port])
    assert post(port, "traces", span_request())[0] == 200
    assert wait_until(lambda: sink.requests)[0]["headers"]["authorization"] == "Bearer tok-123456"
    assert "the newline at the end" in p.stderr and "tok-123456" not in p.stderr


def test_secrets_show_nowhere(start, http_sink):
    """The backend quotes them in its refusal; logs at debug level, validate and print-config are looked over."""
    secrets = ["SEKRET-literal", "SEKRET-url", "SEKRET-variable"]
    sink = http_sink(answer=lambda s, n: (401, {"Content-Type": "text/plain"}, ("no " + " ".join(secrets)).encode()))
    port = free_port()
    text = config(port, sink.url.replace("//", "//user:SEKRET-url@"), headers=[("authorization", '"Bearer SEKRET-literal"'), ("x-k", '"${env:SEKRET_VAR}"')])
    env = {"SEKRET_VAR": secrets[2]}
    p = start(text, wait_ports=[port], env=env)
    post(port, "traces", span_request(), headers={"Authorization": "Bearer SEKRET-incoming"})
    sent = wait_until(lambda: sink.requests)[0]["headers"]
    assert sent["x-k"] == secrets[2] and "SEKRET-literal" in sent["authorization"]
    p.stop()
    for argv in (["validate"], ["print-config"]):
        r = subprocess.run([MOTEL, *argv, "--config", p.config_path, "--set", "service.telemetry.logs.level=nonsense" if argv == ["validate"] else
                            "service.telemetry.logs.level=info"], capture_output=True, text=True, env=env)
        assert r.returncode == (1 if argv == ["validate"] else 0), r.stderr
        assert "SEKRET-" not in r.stdout + r.stderr
    assert "SEKRET-" not in p.stdout + p.stderr
    assert "[REDACTED]" in r.stdout
