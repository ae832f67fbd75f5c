"""The Python wheel: what is in it, what packaging tools say of it, and that installing it gives a program that a Gym job uses as it is."""
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
import zipfile

import pytest

from support import ROOT, e2e, static_program, version

BUILD = os.path.join(ROOT, "deploy", "wheel", "build")
E2E = os.path.join(ROOT, "tests", "e2e")
GOLDEN = os.path.join(ROOT, "tests", "golden", "gym-config")
INFO = f"motel_collector-{version()}.dist-info"
SCRIPT = f"motel_collector-{version()}.data/scripts/motel"


def build(folder, arch="x86_64"):
    """Builds the wheel from the static program, with a dist/ of its own; its path."""
    os.makedirs(folder, exist_ok=True)
    program = static_program(arch)
    for path in (program, f"{program}.spdx.json", os.path.join(os.path.dirname(program), "LICENSES.txt")):
        shutil.copy2(path, folder)
    run = subprocess.run([BUILD, arch], check=True, capture_output=True, text=True, timeout=600, env={**os.environ, "MOTEL_DIST": str(folder)})
    return run.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


def tool(*args, **kw):
    """Runs a program of the tests' own environment."""
    path = shutil.which(args[0], path=os.path.dirname(sys.executable)) or shutil.which(args[0])
    assert path, f"{args[0]} is in tests/requirements.txt"
    done = subprocess.run([path, *map(str, args[1:])], capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL, **kw)
    done.said = " ".join((done.stdout + done.stderr).split())
    return done


# ---- what is in it


def mistakes(path, arch="x86_64"):
    """What is not as the wheel format, or this wheel, has it."""
    said = []
    with zipfile.ZipFile(path) as z:
        files = {i.filename: z.read(i) for i in z.infolist()}
        modes = {i.filename: i.external_attr >> 16 for i in z.infolist()}
    recorded = {row[0]: (row[1], row[2]) for row in csv.reader(io.StringIO(files[f"{INFO}/RECORD"].decode()))}
    for name, data in files.items():
        digest = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if recorded.pop(name, None) != (("", "") if name == f"{INFO}/RECORD" else (digest, str(len(data)))):
            said.append(f"RECORD of {name}")
    said += [f"RECORD has {name}, the wheel has not" for name in recorded]
    tags = re.findall(r"^Tag: (.*)$", files[f"{INFO}/WHEEL"].decode(), re.M)
    name_tags = [f"py3-none-{p}" for p in os.path.basename(path)[:-len(".whl")].split("-")[-1].split(".")]
    if tags != name_tags or set(tags) != {f"py3-none-{p}_{arch}" for p in ("manylinux_2_17", "manylinux2014", "musllinux_1_1")}:
        said.append(f"tags {tags}, in the name {name_tags}")
    metadata = files[f"{INFO}/METADATA"].decode()
    licence_files = re.findall(r"^License-File: (.*)$", metadata, re.M)
    if {f"{INFO}/licenses/{n}" for n in licence_files} != {n for n in files if n.startswith(f"{INFO}/licenses/")}:
        said.append(f"licences: {licence_files}")
    licence = re.search(r"^License-Expression: (.*)$", metadata, re.M)
    declared = {p["licenseDeclared"] for p in json.loads(files[f"{INFO}/sboms/motel.spdx.json"])["packages"]}
    if not licence or {x.strip("()") for x in licence[1].split(" AND ")} != declared or "Apache-2.0" not in declared:
        said.append(f"licences in the expression: {licence and licence[1]}")
    if f"\nName: motel-collector\nVersion: {version()}\n" not in metadata:
        said.append("name or version")
    with open(static_program(arch), "rb") as f:
        if files.get(SCRIPT) != f.read():
            said.append("the program")
    if modes.get(SCRIPT, 0) & 0o777 != 0o755:
        said.append("the mode of the program")
    return said


def test_contents(wheel):
    assert mistakes(wheel) == []
    with zipfile.ZipFile(wheel) as z:
        texts = [n for n in z.namelist() if "/licenses/" in n]
        assert len(texts) >= 2, "motel's own licence and those of the libraries"
        assert "gnutls" in b"".join(z.read(n) for n in texts).decode(errors="replace").lower()
    assert os.path.getsize(wheel) < 4 << 20


@pytest.mark.parametrize("name, old, new", [(f"{INFO}/WHEEL", b"musllinux_1_1", b"musllinux_1_2"), (f"{INFO}/RECORD", b"sha256=", b"sha256=x"), (SCRIPT, b"ELF", b"FLE"),
                                            (f"{INFO}/METADATA", b"License-File: LICENSE\n", b""), (f"{INFO}/METADATA", b"AND LGPL-2.1-or-later ", b"")])
def test_a_broken_copy_is_found(wheel, tmp_path, name, old, new):
    copy = tmp_path / os.path.basename(wheel)
    with zipfile.ZipFile(wheel) as a, zipfile.ZipFile(copy, "w") as b:
        for info in a.infolist():
            data = a.read(info)
            assert info.filename != name or old in data
            b.writestr(info, data.replace(old, new, 1) if info.filename == name else data)
    assert mistakes(str(copy))


def test_the_same_bytes_twice(wheel, tmp_path):
    again = build(tmp_path / "dist")
    assert os.path.basename(again) == os.path.basename(wheel)
    with open(wheel, "rb") as a, open(again, "rb") as b:
        assert hashlib.sha256(a.read()).digest() == hashlib.sha256(b.read()).digest()


def test_what_packaging_tools_say(wheel):
    checked = tool("twine", "check", "--strict", wheel)
    assert checked.returncode == 0 and "PASSED" in checked.said, checked.said
    shown = tool("auditwheel", "show", wheel)
    assert shown.returncode == 0 and "requires no external shared libraries" in shown.said, shown.said
    # The oldest system that it would run on; older than, or the one that the name says.
    tag = re.search(r'platform tag: "manylinux_2_(\d+)_x86_64"', shown.said)
    assert tag and int(tag[1]) <= 17, shown.said


def test_twine_finds_a_broken_description(wheel, tmp_path):
    copy = tmp_path / os.path.basename(wheel)
    with zipfile.ZipFile(wheel) as a, zipfile.ZipFile(copy, "w") as b:
        for info in a.infolist():
            data = a.read(info)
            if info.filename == f"{INFO}/METADATA":
                data = data.split(b"\n\n")[0].replace(b"text/markdown; charset=UTF-8; variant=GFM", b"text/x-rst") + b"\n\nA `broken <link`\n\n====\n"
            b.writestr(info, data)
    assert tool("twine", "check", "--strict", copy).returncode != 0


# ---- installed


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Path of `motel` in a new environment that pip installed the wheel into."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel], check=True, timeout=300)
    yield str(folder / "bin/motel")
    subprocess.run([folder / "bin/pip", "uninstall", "--quiet", "--yes", "motel-collector"], check=True, timeout=300)
    assert not os.path.exists(folder / "bin/motel")


def test_pip_puts_the_program_on_the_path(installed):
    with open(installed, "rb") as a, open(static_program(), "rb") as b:
        assert a.read() == b.read()
    assert shutil.which("motel", path=os.path.dirname(installed)) == installed
    assert version() in subprocess.run([installed, "version"], capture_output=True, text=True, check=True).stdout


def test_uv_installs_it_too(wheel, tmp_path):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("UV_") and k != "VIRTUAL_ENV"}, "UV_CACHE_DIR": str(tmp_path / "cache"),
           "UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin"), "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    for command in (["venv", tmp_path / "venv"], ["pip", "install", "--offline", "--no-index", "--python", tmp_path / "venv/bin/python", wheel],
                    ["tool", "install", "--offline", "--no-index", wheel]):
        done = tool("uv", *command, env=env)
        assert done.returncode == 0, done.said
    for program in (tmp_path / "venv/bin/motel", tmp_path / "bin/motel"):
        assert version() in subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
    done = tool("uvx", "--offline", "--no-index", "--from", wheel, "motel", "version", env=env)
    assert version() in done.stdout, done.said


NAMESPACES = ["unshare", "-rmnpf", "--mount-proc", "--kill-child"]
JOB, JOB_ID, SPANS, TOKEN = "b-no-scrape.gsm8k", "0012345", 200, "placeholder-token"


def test_a_gym_job_with_the_installed_program(installed, tmp_path):
    """`otel.binary: motel`, the wheel's folder on the PATH: the job script as Gym writes it finds motel by health check, and by exactly its command line."""
    probe = subprocess.run([*NAMESPACES, "sh", "-c", "mount -t tmpfs tmpfs /tmp"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no namespaces of our own: {probe.stderr.strip()}")
    with open(f"{GOLDEN}/{JOB}.collector-part.sh", encoding="utf-8") as f:
        script = f.read()
    assert script.count(" otelcol-contrib --config ") == 1 and script.count("'^otelcol\\-contrib --config ") == 1
    script = script.replace(" otelcol-contrib --config ", " motel --config ").replace("'^otelcol\\-contrib --config ", "'^motel --config ")
    folder = tmp_path / "job"
    (folder / "otel").mkdir(parents=True)
    config = f"{GOLDEN}/{JOB}.collector.yaml"
    shutil.copyfile(config, folder / "otel" / "collector.yaml")
    with open(config, encoding="utf-8") as f:
        path = re.search(r"path: (/\S*)/otel/metrics\.jsonl", f.read())[1]
    # `program` is the one that stands beside the job under the reference's name; a job that started it would not be found by its command line.
    spec = {"job": path, "folder": str(folder), "script": script, "program": installed, "places": [], "certificates": "", "backend": {"port": 24318, "tls": False},
            "driver": f"{E2E}/gym_job_driver.py", "env": {"OTEL_TOKEN": TOKEN, "SLURM_JOB_ID": JOB_ID, "JOB_EXIT": "3", "JOB_SPANS": str(SPANS), "JOB_GRACE": "1", "JOB_SCRAPES": "[]"}}
    (folder / "spec.json").write_text(json.dumps(spec))
    env = {**os.environ, "PATH": os.path.dirname(installed) + os.pathsep + os.environ["PATH"]}
    done = subprocess.run([*NAMESPACES, sys.executable, f"{E2E}/gym_job_inside.py", folder / "spec.json"], capture_output=True, text=True, timeout=600, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((folder / "result.json").read_text())
    log = (folder / "logs" / f"otel_collector-{JOB_ID}.log").read_text(errors="replace")
    assert "otel_collector ready." in result["stdout"] and result["code"] == 3, (result["stderr"], log[-3000:])
    assert result["left"] == [] and result["stop_seconds"] < 30 and "Shutdown complete." in log and "second signal" not in log
    lines = [json.loads(x) for x in (folder / "otel" / "traces.jsonl").read_text().splitlines()]
    assert e2e.count_spans(lines) == 2 * SPANS
    arrived = [e2e.parse("traces", e2e.decode(base64.b64decode(r["body"]), r["headers"].get("content-encoding", "")))
               for r in result["requests"] if r["path"].endswith("/v1/traces")]
    assert sum(1 for m in arrived for _ in e2e.records("traces", m)) == 2 * SPANS


def test_the_command_line_is_the_one_that_was_given(installed, tmp_path):
    """No wrapper: the process is the program, and its command line is `motel --config PATH` as it was typed."""
    port, health = e2e.free_port(), e2e.free_port()
    config = tmp_path / "collector.yaml"
    config.write_text(f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\nexporters: {{nop: }}\n"
                      f"extensions: {{health_check: {{endpoint: '127.0.0.1:{health}'}}}}\nservice:\n  extensions: [health_check]\n"
                      "  telemetry: {metrics: {level: none}}\n  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}\n")
    p = subprocess.Popen(["motel", "--config", str(config)], env={"PATH": os.path.dirname(installed)}, stderr=subprocess.PIPE, text=True,
                         executable=installed)
    try:
        e2e.wait_until(lambda: subprocess.run([installed, "health", f"http://127.0.0.1:{health}/"], capture_output=True, timeout=60, check=False).returncode == 0, 60,
                       "the health check")
        pattern = "^motel --config " + re.escape(str(config)) + "$"
        assert subprocess.run(["pgrep", "-f", "--", pattern], capture_output=True, text=True, check=False).stdout.split() == [str(p.pid)]
        subprocess.run(["pkill", "-TERM", "-f", "--", pattern], check=True)
        assert p.wait(60) == 0, p.stderr.read()
    finally:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()


# ---- another processor


def test_the_wheel_for_aarch64(tmp_path):
    wheel = build(tmp_path / "dist", "aarch64")
    assert mistakes(wheel, "aarch64") == []
    with zipfile.ZipFile(wheel) as z:
        program = z.extract(SCRIPT, tmp_path)
    os.chmod(program, 0o755)
    refused = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-index", "--no-deps", "-d", tmp_path / "none", wheel], capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "not a supported wheel" in refused.stderr
    qemu = shutil.which("qemu-aarch64-static")
    if not qemu:
        pytest.skip("the rest needs qemu-aarch64-static")
    run = subprocess.run([qemu, program, "version"], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0 and version() in run.stdout, run
