"""stop_delay: after SIGTERM clients still reach motel for a while, as those of a job whose processes all get the signal at once need it."""
import re
import signal
import time

from conftest import connects, count_spans, free_port, post, span_request, wait_until

FILE = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: out.jsonl}}}}
service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}}}
"""
SAID = "Clients have until the end of stop_delay"


def running(start, *args, **kw):
    port = free_port()
    return start(FILE.format(port=port), args=list(args), wait_ports=[port], **kw), port


def test_clients_are_served_after_the_signal(start):
    """A minute's delay that another signal ends: everything that was sent in between is in the file."""
    p, port = running(start, "--stop-delay", "60s", "--shutdown-timeout", "90s")
    p.process.send_signal(signal.SIGTERM)
    wait_until(lambda: SAID in p.stderr, what="the delay")
    assert post(port, "traces", span_request(5))[0] == 200
    p.process.send_signal(signal.SIGHUP)            # changes nothing now
    assert post(port, "traces", span_request(5, start=5))[0] == 200
    assert p.stop() == 0
    assert count_spans(p.json_lines("out.jsonl")) == 10
    assert "Shutdown complete." in p.stderr and "second signal" not in p.stderr


def test_the_delay_ends_by_itself(start):
    """As a variable, which is how a job gives it to a collector that somebody else starts."""
    p, port = running(start, env={"MOTEL_STOP_DELAY": "1s"})
    begin = time.monotonic()
    assert p.stop() == 0
    assert time.monotonic() - begin >= 1 and not connects(port)
    assert SAID in p.stderr and "Shutdown complete." in p.stderr


def test_it_is_a_part_of_the_shutdown_timeout(start):
    p, _ = running(start, "--stop-delay", "1h", "--shutdown-timeout", "1s")
    assert p.stop() == 0
    assert 0 < int(re.search(r'"ms": (\d+)', p.stderr)[1]) <= 800


def test_time_is_left_for_what_came_during_the_delay(start, http_sink):
    """A delay that is as long as the whole stop: what was acknowledged until its end is delivered."""
    port, sink = free_port(), http_sink()
    exporter = f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{batch: {{flush_timeout: 1m, min_size: 1000000}}}}}}'
    p = start(FILE.format(port=port).replace("file: {path: out.jsonl}", exporter).replace("[file]", "[otlp_http]"),
              args=["--stop-delay", "1h", "--shutdown-timeout", "5s"], wait_ports=[port])
    p.process.send_signal(signal.SIGTERM)
    wait_until(lambda: SAID in p.stderr, what="the delay")
    assert post(port, "traces", span_request(5))[0] == 200
    assert p.process.wait(60) == 0
    assert len(sink.messages()) == 1 and "Shutdown complete." in p.stderr


def test_an_interrupt_stops_at_once(start):
    p, _ = running(start, "--stop-delay", "1h", "--shutdown-timeout", "1h")
    assert p.stop(signal.SIGINT) == 0
    assert SAID not in p.stderr and "Shutdown complete." in p.stderr
