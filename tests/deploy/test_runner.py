"""Which failed unit tests tests/run gives a second try."""
import json
import os
import subprocess

from support import ROOT


def second_try(tmp_path, *tests):
    log = tmp_path / "testlog.json"
    log.write_text("".join(json.dumps({"name": f"motel:unit / {n}", "result": result, "returncode": code, "stdout": "", "stderr": text}) + "\n"
                           for n, (result, code, text) in enumerate(tests)))
    return subprocess.run([os.path.join(ROOT, "tests", "checks", "worth_a_second_try.py"), log], capture_output=True, text=True, check=True).stdout.split()


def test_what_failed_or_took_too_long(tmp_path):
    assert second_try(tmp_path, ("OK", 0, ""), ("FAIL", 1, "1 is not 2"), ("SKIP", 77, ""), ("TIMEOUT", -15, "")) == ["1", "3"]


def test_no_crash_and_nothing_that_a_sanitizer_found(tmp_path):
    assert second_try(tmp_path, ("FAIL", -11, ""), ("FAIL", 1, "x.c:1:2: runtime error: shift"), ("FAIL", 66, "WARNING: ThreadSanitizer: data race")) == []


def test_without_a_log(tmp_path):
    program = os.path.join(ROOT, "tests", "checks", "worth_a_second_try.py")
    assert subprocess.run([program, tmp_path / "none"], capture_output=True, check=True).stdout == b""
