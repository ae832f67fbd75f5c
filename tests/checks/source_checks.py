"""Rules of the source that a machine can see: layering of includes, banned functions, comments on public functions, formatting.

source_checks.py [ROOT]; prints what is wrong and exits 1, or prints one line and exits 0.
"""
import os
import re
import subprocess
import sys

# Folder -> folders that it may include from. The longest matching folder counts.
COMMON = {"agent/base", "agent/config", "agent/net", "agent/pipeline", "agent/gym", "proto", "ottl"}
LAYERS = {
    "agent/base": set(),
    "agent/config": {"agent/base"},
    "agent/net": {"agent/base", "agent/config"},
    "proto": {"agent/base"},
    "ottl": {"agent/base", "proto"},
    "agent/pipeline": {"agent/base", "agent/config", "agent/net", "proto"},
    "agent/gym": {"agent/base", "agent/config", "agent/net", "agent/pipeline", "proto"},
    "receivers": COMMON, "processors": COMMON, "connectors": COMMON, "exporters": COMMON, "extensions": COMMON,
}
# Libraries that one file alone may know.
PRIVATE_HEADERS = {"curl/curl.h": {"agent/net/http_client_impl.h"}, "yaml.h": {"agent/config/yaml.c"}}
BANNED = {
    "strcpy": "strings have lengths: snprintf, buf_append", "strcat": "buf_append_str", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "gets": "fgets", "alloca": "malloc or a bounded array", "strtok": "strtok_r, or struct bytes", "atoi": "strtol with checks",
    "atol": "strtol with checks", "atof": "strtod with checks", "system": "posix_spawn", "usleep": "no sleeping to wait for state",
    "sleep": "no sleeping to wait for state", "tmpnam": "mkstemp", "localtime": "localtime_r", "gmtime": "gmtime_r",
    "inet_ntoa": "inet_ntop", "bcopy": "memmove", "setjmp": "errors are returned",
}
SKIP = ("tests", ".git", ".venv")


def sources(root):
    for folder, dirs, files in os.walk(root):
        rel = os.path.relpath(folder, root)
        dirs[:] = [d for d in dirs if not (rel == "." and (d in SKIP or d.startswith("build"))) and d != "node_modules"]
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                yield os.path.normpath(os.path.join(rel, name))


def layer(path):
    return max((f for f in LAYERS if path.startswith(f + "/")), key=len, default="")


def component_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("receivers", "processors", "connectors", "exporters", "extensions") else ""


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"//[^\n]*", "", text)


def include_faults(path, text):
    own = layer(path)
    for number, line in enumerate(text.split("\n"), 1):
        m = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if not m:
            continue
        target = m.group(1)
        if target in PRIVATE_HEADERS and path not in PRIVATE_HEADERS[target]:
            yield f"{path}:{number}: only {', '.join(PRIVATE_HEADERS[target])} may include {target}"
        there = layer(target)
        if own and there and there != own and there not in LAYERS[own]:
            yield f"{path}:{number}: {own} may not include from {there}"
        if component_of(path) and component_of(target) and component_of(path) != component_of(target):
            yield f"{path}:{number}: components never include each other ({target})"


def banned_faults(path, text):
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        for name, instead in BANNED.items():
            if re.search(r"(?<![\w.>])" + name + r"\s*\(", line):
                yield f"{path}:{number}: {name}() is banned: {instead}"


def format_faults(root, paths):
    for i in range(0, len(paths), 40):
        r = subprocess.run(["clang-format", "--dry-run", "--Werror", *paths[i:i + 40]], cwd=root, capture_output=True, text=True)
        if r.returncode:
            seen = set()
            for line in r.stderr.split("\n"):
                m = re.match(r"(\S+?):(\d+):\d+: error", line)
                if m and m.group(1) not in seen:
                    seen.add(m.group(1))
                    yield f"{m.group(1)}:{m.group(2)}: not formatted; run clang-format -i"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
    paths = list(sources(root))
    faults = []
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        faults += include_faults(path, text)
        faults += banned_faults(path, text)
        if text.count("\n") > 800 and path.endswith(".c"):
            faults.append(f"{path}: {text.count(chr(10))} lines; a file has 800 at most")
    faults += format_faults(root, [p for p in paths if p.endswith(".c")])
    for fault in faults:
        print(fault)
    if not faults:
        print(f"source checks: {len(paths)} files, nothing wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
