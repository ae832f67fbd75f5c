"""The load harness (tests/bench) works: a very small load, motel alone. Nothing here looks at how long something took."""
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from conftest import MOTEL, ROOT

pytestmark = pytest.mark.plain_only

SINK = next((p for p in (os.path.join(os.path.dirname(MOTEL), "tests", "bench", "sink"), os.path.join(ROOT, "build", "tests", "bench", "sink"))
             if os.path.exists(p)), "")
RUNS = ("S1", "S2z", "S3z", "S4", "S3z paced", "S6", "idle Gym", "stop file", "stop HTTP", "connections HTTP", "connections gRPC", "size",
        "spans a request (HTTP → nothing): 1", "spans a request (HTTP → nothing): 10", "S2 metrics", "S2 logs")
FIGURES = {"load": {"cpu_us_per_record", "records", "rss_peak_kib", "requests", "window_s"}, "scrape": {"cpu_ms_per_scrape", "scrapes"},
           "idle": {"cpu_ms_per_s", "rss_kib", "anonymous_kib"}, "startstop": {"ready_ms", "stop_ms", "all_stop_ms"},
           "connections": {"kib_per_connection"}, "size": {"stripped_kib"}}

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))


def harness(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "harness", *arguments], capture_output=True, text=True, timeout=540, check=False,
                          env={**os.environ, "MOTEL": MOTEL, "BENCH_SINK": SINK, "PYTHONPATH": os.path.join(ROOT, "tests", "bench"), **environment})


def run(folder, only, *more, name="results.json", **environment):
    return harness("run", "--out", str(folder / name), "--work", str(folder / "work"), "--peers", "motel,rotel", "--rounds", "1", "--scale", "0.01",
                   "--no-warm-pages", "--only", only, *more, ROTEL="/nonexistent/rotel", **environment)


def results(folder, name="results.json"):
    with open(folder / name, encoding="utf-8") as f:
        return json.load(f)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    for _ in range(3):  # on a machine that stands still for a second a scrape can be late; what failed is made again
        done = run(folder, ",".join(RUNS))
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_everything_is_measured_and_delivered(measured):
    from harness.plan import SPECS
    data = results(measured)
    assert sorted(r["spec"] for r in data["runs"]) == sorted(RUNS)
    for r in data["runs"]:
        assert r["ok"] and r["peer"] == "motel" and "load_before" in r and "date" in r, r
        assert FIGURES[SPECS[r["spec"]].kind] <= set(r), r
    by_name = {r["spec"]: r for r in data["runs"]}
    assert by_name["S3z"]["delivered"] == by_name["S3z"]["records"] == by_name["S3z"]["accepted"] == by_name["S3z"]["requests"] * 100
    assert by_name["S4"]["in_file"] == by_name["S4"]["records"]
    assert {"cpu", "cores", "kernel", "governor", "hypervisor"} <= set(data["machine"])
    assert {"compiler", "libraries", "h2load", "commit"} <= set(data["versions"])
    assert data["peers"]["motel"]["version"] and data["peers"]["rotel"] is None, "what is not found is noted"
    assert {"row", "peer", "median", "min", "max", "runs"} <= set(data["summary"][0])


def test_goes_on_where_it_was(measured):
    before = results(measured)["runs"]
    again = run(measured, "S1,S4,size")
    assert again.returncode == 0 and results(measured)["runs"] == before
    assert run(measured, "size", "--again", "motel", name="other.json").returncode == 0
    assert [r["spec"] for r in results(measured, "other.json")["runs"]] == ["size"]


def test_report_writes_the_page_and_the_plots(measured, tmp_path):
    shutil.copy(os.path.join(ROOT, "docs", "performance.md"), tmp_path)
    done = harness("report", str(measured / "results.json"), "--docs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "performance.md").read_text(encoding="utf-8")
    for words in ("| S4: Gym → file, µs of CPU a span |", "Not found on this machine: rotel", "spans a request (HTTP → nothing)"):
        assert words in page
    for plot in ("performance.svg", "performance-growth.svg"):
        assert xml.etree.ElementTree.parse(tmp_path / plot).getroot().tag.endswith("svg")
    twice = harness("report", str(measured / "results.json"), "--docs", str(tmp_path))
    assert twice.returncode == 0 and (tmp_path / "performance.md").read_text(encoding="utf-8") == page, "the report can be written again"


def test_the_static_program_has_a_table_of_its_own(tmp_path):
    assert run(tmp_path, "size", "--peers", "motel,static", MOTEL_STATIC=MOTEL).returncode == 0
    shown = harness("report", str(tmp_path / "results.json"), "--print").stdout
    row = next(line for line in shown[shown.index("static / motel"):].splitlines() if line.startswith("| program, stripped"))
    assert row.endswith("| 1.00 |"), shown
    assert "motel, static" not in shown[:shown.index("static / motel") - 20].split("Agents:")[0], "the main table compares with other agents"


THIEF = r"""
import os, re, sys
if "--config" in sys.argv:
    with open(sys.argv[2], "r+") as f:
        text = f.read().replace("[resource, batch]", "[resource, filter, batch]")
        f.seek(0)
        f.write(re.sub("^processors:", "processors:\\n  filter: {traces: {span: ['name == \"gym.verify\"']}}", text, flags=re.M))
os.execv(os.environ["REAL_MOTEL"], sys.argv)
"""


def test_a_loss_fails(tmp_path):
    """An agent that drops spans between its receiver and the sink."""
    thief = tmp_path / "thief"
    thief.write_text(f"#!{sys.executable}{THIEF}", encoding="ascii")
    thief.chmod(0o755)
    done = run(tmp_path, "S3z", MOTEL=str(thief), REAL_MOTEL=MOTEL)
    assert done.returncode == 1 and "records at the sink" in done.stderr, done.stdout + done.stderr
    assert not results(tmp_path)["runs"][0]["ok"] and "cpu_us_per_record" not in results(tmp_path)["runs"][0]


def test_what_does_not_start_fails(tmp_path):
    done = run(tmp_path, "idle,size", MOTEL=shutil.which("false"))
    assert done.returncode == 1 and "ended with 1" in results(tmp_path)["runs"][0]["error"], done.stdout + done.stderr


def test_a_wrong_command_is_told(tmp_path):
    """Each mistake is one line (after the usage, where argparse writes it), and nothing is measured."""
    (tmp_path / "words.json").write_text("words", encoding="ascii")
    (tmp_path / "list.json").write_text("[]", encoding="ascii")
    for arguments, words in ((("--only", "S1,S9"), "no group or run S9;"), (("--peers", "motle"), "--peers: no agent motle"),
                             (("--again", "motle"), "--again: no agent motle"), (("--scale", "0"), "'0' is not a number above 0"),
                             (("--rounds", "0"), "'0' is not a whole number"), (("--out", str(tmp_path)), "Is a directory"),
                             (("--out", str(tmp_path / "no" / "x.json")), "No such file or directory"),
                             (("--out", str(tmp_path / "words.json")), "not a file of results"),
                             (("--out", str(tmp_path / "list.json")), "not a file of results"),
                             (("--peers", "rotel"), "nothing to measure")):
        done = run(tmp_path, "size", *arguments)
        assert done.returncode in (1, 2) and words in done.stderr and "Traceback" not in done.stderr, (arguments, done.stdout, done.stderr)
    assert run(tmp_path, "size").returncode == 0
    other = run(tmp_path, "size", "--scale", "0.02")
    assert other.returncode == 1 and "another --scale" in other.stderr, other.stderr
    for arguments, words in (((str(tmp_path / "words.json"),), "not a file of results"),
                             ((str(tmp_path / "results.json"), "--docs", str(tmp_path)), "performance.md: no such file")):
        done = harness("report", *arguments)
        assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_growth_that_is_too_fast_is_found():
    from harness.table import exponent
    assert exponent([(x, 3 * x * x) for x in (1, 10, 100)]) == pytest.approx(2)
    assert exponent([(x, 5 + 2 * x) for x in (1, 10, 100, 1000)]) < 1
    assert exponent([(x, 7) for x in (1, 2000)]) == pytest.approx(0)


def test_payloads_are_the_same_bytes_every_time(tmp_path):
    from harness.payloads import Payloads, traces
    assert traces(100, 1100).SerializeToString() == traces(100, 1100).SerializeToString()
    p = Payloads(str(tmp_path))
    assert p.read("traces_100.grpc")[5:] == p.read("traces_100.pb") and len(p.read("traces_100.pb")) // 100 == 576
    assert p.page("page_100")[0] >= 100
