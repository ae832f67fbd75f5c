#!/usr/bin/env python3
"""Counts the instructions of fixed work under callgrind and compares them with the stored counts.

guard.py PROGRAM TOOLCHAIN [--update] [NAME...]

PROGRAM is build/tests/guard/guard, TOOLCHAIN the file beside it that says what built it. NAME: only these workloads.
Exit status 0: nothing costs more than it did; 1: something does; 77: the counts were stored with another toolchain.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

STORE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counts.json")
TOLERANCE = 3.0       # percent
KEEP_FUNCTIONS = 60   # that are stored for each workload
SHOW_FUNCTIONS = 15   # that are shown of a workload that has changed
SKIPPED = 77

# The same variants of memcpy() and so on whatever the processor is, and the same sizes of its caches.
TUNABLES = ":".join((
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-BMI1,-BMI2,-LZCNT,-MOVBE,-ERMS,-FSRM,"
    "-RTM,-SSSE3,-SSE4_1,-SSE4_2,-POPCNT",
    "glibc.cpu.x86_data_cache_size=0x8000", "glibc.cpu.x86_shared_cache_size=0x100000",
    "glibc.cpu.x86_non_temporal_threshold=0xc0000"))


def toolchain(path):
    """What the counts hold for."""
    with open(path, encoding="utf-8") as f:
        found = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
    try:
        found["libc"] = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        found["libc"] = "not glibc"
    found["valgrind"] = "none"
    if shutil.which("valgrind"):
        out = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=False).stdout.strip()
        found["valgrind"] = re.sub(r"^valgrind-", "", out)
    return found


def differences(stored, found):
    return [f"{key} {found.get(key, 'unknown')!r} instead of {value!r}" for key, value in stored.items() if found.get(key) != value]


def parse(path):
    """The instructions that each function itself took, from what callgrind wrote with uncompressed names."""
    functions = collections.Counter()
    name, skip = "?", False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("fn="):
                name = line[3:].rstrip("\n")
            elif line.startswith("calls="):
                skip = True  # the next line is what the callee took
            elif line[:1].isdigit() or line[:1] in "+-*":
                if not skip:
                    functions[name] += int(line.split()[1])
                skip = False
    return functions


def count(program, name):
    """(records, instructions by function) of one workload."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind")
        command = ["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=guard_counted",
                   "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={out}", "./" + os.path.basename(program), name]
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "GLIBC_TUNABLES": TUNABLES}
        r = subprocess.run(command, cwd=os.path.dirname(program), env=environment, capture_output=True, text=True, check=False)
        if r.returncode:
            sys.exit(f"{name}: the program ended with {r.returncode}:\n{r.stdout}{r.stderr}")
        functions = parse(out)
    records = int(r.stdout.split()[0])
    if not records or not functions:
        sys.exit(f"{name}: nothing was counted")
    return records, functions


def measure(program, names):
    found = {}
    for name in names:
        records, functions = count(program, name)
        total = sum(functions.values())
        found[name] = {"instructions": total, "records": records, "per_record": round(total / records, 1),
                       "functions": dict(functions.most_common(KEEP_FUNCTIONS))}
    return found


def explain(stored, found):
    """The functions that make most of the difference; those that were not stored, or are not worth it now, are one line."""
    before, now = stored["functions"], found["functions"]
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in set(before) | set(now)}
    changes["(all others)"] = (found["instructions"] - sum(now.values())) - (stored["instructions"] - sum(before.values()))
    print(f"    {'before':>12} {'now':>12} {'difference':>12}  function")
    for name, change in sorted(changes.items(), key=lambda c: -abs(c[1]))[:SHOW_FUNCTIONS]:
        if change:
            print(f"    {before.get(name, 0):12,} {now.get(name, 0):12,} {change:+12,}  {name}")


def compare(stored, found):
    """Prints the table; the names of workloads that cost more."""
    worse = []
    print(f"{'workload':<14} {'stored':>14} {'now':>14} {'change':>8}   instructions a record")
    for name, now in found.items():
        before = stored.get(name)
        if not before:
            print(f"{name:<14} {'-':>14} {now['instructions']:14,} {'new':>8}   {now['per_record']}: run tests/guard/update to store it")
            worse.append(name)
            continue
        change = 100.0 * (now["per_record"] / before["per_record"] - 1)
        print(f"{name:<14} {before['instructions']:14,} {now['instructions']:14,} {change:+7.2f}%   {before['per_record']} -> {now['per_record']}")
        if change > TOLERANCE:
            print(f"  WORSE: {name} costs {change:.1f} % more instructions than stored (at most {TOLERANCE:g} % is allowed). By function:")
            explain(before, now)
            worse.append(name)
        elif change < -TOLERANCE:
            print(f"  BETTER by {-change:.1f} %: run tests/guard/update to record the gain, or a later loss as large will not be seen.")
            explain(before, now)
    return worse


def update(conditions, found, partly):
    stored = {}
    if partly and os.path.exists(STORE):
        with open(STORE, encoding="utf-8") as f:
            stored = json.load(f)["workloads"]
    with open(STORE, "w", encoding="utf-8") as f:
        json.dump({"holds_for": conditions, "workloads": {**stored, **found}}, f, indent=1)
        f.write("\n")
    print(f"stored in {os.path.relpath(STORE)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("toolchain")
    p.add_argument("names", nargs="*")
    p.add_argument("--update", action="store_true")
    a = p.parse_args()
    for path in (a.program, a.toolchain):
        if not os.path.exists(path):
            sys.exit(f"{path}: no such file; `ninja -C build tests/guard/guard` makes the program, `meson setup build` the toolchain file")
    conditions = toolchain(a.toolchain)
    stored = {"holds_for": {}, "workloads": {}}
    if os.path.exists(STORE):
        with open(STORE, encoding="utf-8") as f:
            stored = json.load(f)
    why = differences(stored["holds_for"], conditions)
    if conditions["valgrind"] == "none":
        print("skipped: valgrind is not installed")
        return SKIPPED
    if why and not a.update:
        print("skipped: the counts were stored with another toolchain: " + "; ".join(why))
        return SKIPPED
    program = os.path.abspath(a.program)
    names = a.names or subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    found = measure(program, names)
    worse = compare(stored["workloads"], found)
    if a.update:
        update(conditions, found, a.names)
        return 0
    if worse:
        print(f"costs more than stored: {', '.join(worse)}. When that is meant to be: tests/guard/update, and say why in the commit.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
