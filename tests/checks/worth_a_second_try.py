#!/usr/bin/env python3
"""Names of the tests in meson's testlog.json that failed and may pass when they are run again: no sanitizer found anything, and none crashed.

  worth_a_second_try.py BUILD/meson-logs/testlog.json
"""
import json
import sys

FINDINGS = ("Sanitizer", "runtime error:")


def main():
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            tests = [json.loads(line) for line in log]
    except OSError:
        return
    for t in tests:
        output = t.get("stdout", "") + t.get("stderr", "")
        crashed = t["returncode"] < 0 and t["result"] != "TIMEOUT"
        if t["result"] in ("FAIL", "TIMEOUT") and not crashed and not any(f in output for f in FINDINGS):
            print(t["name"].split(" / ")[-1])


if __name__ == "__main__":
    main()
