"""The static program: it depends on nothing, is small and guarded, has its papers, and does a Gym job's work where nothing else is installed."""
import base64
import collections
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from support import ROOT, debian_root, e2e, static_program, version

HERE = os.path.dirname(os.path.abspath(__file__))
GYM = os.path.join(ROOT, "tests", "golden", "gym-config", "a-default.aime25.collector.yaml")
DRIVER = os.path.join(ROOT, "tests", "e2e", "gym_job_driver.py")
MAX_BYTES = 4 * 1024 * 1024
ARCHES = ["x86_64", "aarch64"]
SPANS = 300
TOKEN = "sk-static-0123456789"


@pytest.fixture(scope="module", params=ARCHES)
def program(request):
    return static_program(request.param)


def readelf(program, *options):
    return subprocess.run(["readelf", "--wide", *options, program], check=True, capture_output=True, text=True).stdout


def emulated(program):
    """The command that runs the program here: through qemu when it is for another processor."""
    arch = program.rsplit("-", 1)[1]
    if arch == os.uname().machine:
        return []
    emulator = shutil.which(f"qemu-{arch}-static")
    if not emulator:
        pytest.skip(f"there is no qemu-{arch}-static")
    return [emulator]


def test_depends_on_nothing(program):
    heads, dynamic = readelf(program, "--program-headers"), readelf(program, "--dynamic")
    assert "INTERP" not in heads and "NEEDED" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert re.search(r"Machine:\s+(.*)", readelf(program, "--file-header")).group(1) == {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}[program.rsplit("-", 1)[1]]


def test_is_small(program):
    assert os.path.getsize(program) <= MAX_BYTES


def test_is_hardened(program):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "checks", "hardening.py"), program, "--static"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_no_folder_of_the_build(program):
    with open(program, "rb") as f:
        content = f.read()
    for trace in (ROOT.encode() + b"/", b"/motel-static.", b"/sysroot/", os.path.expanduser("~").encode() + b"/.cache"):
        assert trace not in content, trace


def test_version(program):
    done = subprocess.run([*emulated(program), program, "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == f"motel version {version()}\n", done


def refusal(command, overrides):
    argv = [*command, *[f"--set={o}" for o in overrides]]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done
    return [line for line in done.stderr.splitlines() if line.startswith("Error: ")]


def test_words_of_errors_are_those_of_every_build(program, motel, tmp_path):
    """People search for "address already in use"; musl's own words are others."""
    config = tmp_path / "collector.yaml"
    config.write_text("receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:0'}}}}\nexporters: {file: {path: out}}\n"
                      "service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [file]}}}\n")
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        for place, words in ((f"receivers::otlp::protocols::http::endpoint=127.0.0.1:{s.getsockname()[1]}", "address already in use"),
                             ("receivers::otlp::protocols::http::endpoint=192.0.2.1:4318", "cannot assign requested address"),
                             (f"exporters::file::path={tmp_path}/{'x' * 300}", "File name too long"),
                             (f"exporters::file::path={loop}", "Too many levels of symbolic links")):
            ours = refusal([*emulated(program), program, "--config", str(config)], [f"exporters::file::path={tmp_path}/out", place])
            assert words in ours[0] and ours == refusal([motel, "--config", str(config)], [f"exporters::file::path={tmp_path}/out", place])


# ---- what lies beside it

def test_checksums(program, dist):
    with open(os.path.join(dist, "SHA256SUMS"), encoding="utf-8") as f:
        sums = dict(reversed(line.split()) for line in f)
    for name in (os.path.basename(program), os.path.basename(program) + ".spdx.json", "LICENSES.txt"):
        with open(os.path.join(dist, name), "rb") as f:
            assert sums[name] == hashlib.sha256(f.read()).hexdigest(), name
    ours = {f"motel-{version()}-linux-{arch}{ending}" for arch in ARCHES for ending in ("", ".spdx.json")} | {"LICENSES.txt"}
    assert set(sums) <= ours        # not what other builds leave in the folder


# ---- the build

def build(tmp_path, *args, without=(), instead=None):
    """Starts the build with folders of its own, as on a machine that lacks some commands, or has others in their place."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (tmp_path / "tmp").mkdir()
    for name, text in (instead or {}).items():
        (bin_folder / name).write_text(text)
        (bin_folder / name).chmod(0o755)
    for folder in ("/usr/bin", "/bin"):
        for name in os.listdir(folder):
            if name not in without and not os.path.lexists(bin_folder / name):
                os.symlink(os.path.join(folder, name), bin_folder / name)
    env = {**os.environ, "PATH": str(bin_folder), "TMPDIR": str(tmp_path / "tmp"), "MOTEL_DIST": str(tmp_path / "dist"), "MOTEL_STATIC_CACHE": str(tmp_path / "cache")}
    return subprocess.Popen([os.path.join(ROOT, *args[0].split("/")), *args[1:]], env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize("command", ["deploy/static/build", "deploy/wheel/build", "deploy/container/build"])
def test_a_build_says_at_once_what_is_missing(tmp_path, command):
    p = build(tmp_path, command, "x86_64", without=("patch", "cmake"))
    out, err = p.communicate(timeout=60)
    assert (p.returncode, out) == (1, "")
    assert re.fullmatch(r"static build: not here: patch, cmake\. On Debian 12 .*: deploy/install-packages static\n", err)
    assert not (tmp_path / "cache").exists() and os.listdir(tmp_path / "tmp") == []


@pytest.mark.parametrize("name, everyone", [("SIGTERM", False), ("SIGINT", True), ("SIGINT", False)])
def test_a_signal_ends_all_of_a_build(tmp_path, name, everyone):
    """A SIGTERM to the script alone, a Ctrl-C to all: its jobs end, its files go. What it waits for here stands for a compiler."""
    waiting = f"#!/bin/sh\necho $$ >{tmp_path}/pid.new\nmv {tmp_path}/pid.new {tmp_path}/pid\nsleep 300 && exit 1\n"
    p = build(tmp_path, "deploy/static/build", "x86_64", instead={"apt-get": waiting})
    e2e.wait_until((tmp_path / "pid").exists, what="the job")
    assert len(os.listdir(tmp_path / "tmp")) == 1
    (os.killpg if everyone else os.kill)(p.pid, getattr(signal, name))
    p.communicate(timeout=60)       # its output is at the end: nobody has it any more
    assert p.returncode == 128 + getattr(signal, name) and os.listdir(tmp_path / "tmp") == []
    stat = f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat"
    assert not os.path.exists(stat) or open(stat, encoding="ascii").read().rsplit(")", 1)[1].split()[0] == "Z"


def test_sbom(program, dist):
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    path = program + ".spdx.json"
    document = parse_file(path)
    assert validate_full_spdx_document(document) == []
    names = {p.name: p for p in document.packages}
    wanted = {"motel", "musl", "gmp", "nettle", "gnutls", "libtasn1", "libunistring", "libmicrohttpd", "nghttp2", "curl", "jansson", "libyaml", "pcre2",
              "libzstd", "lz4", "libdeflate", "libisal", "lmdb", "libgcc"}
    assert set(names) == wanted
    linked = {r.related_spdx_element_id for r in document.relationships if r.relationship_type.name == "STATIC_LINK"}
    assert linked == {p.spdx_id for p in document.packages if p.name != "motel"}
    assert all(p.version and str(p.license_concluded) for p in document.packages)
    with open(program, "rb") as f:
        assert names["motel"].checksums[0].value == hashlib.sha256(f.read()).hexdigest()


def test_a_broken_sbom_is_found(program, tmp_path):
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    with open(program + ".spdx.json", encoding="utf-8") as f:
        content = json.load(f)
    content["packages"][1]["licenseConcluded"] = "not a licence ("
    path = tmp_path / "broken.spdx.json"
    path.write_text(json.dumps(content))
    try:
        assert validate_full_spdx_document(parse_file(str(path))) != []
    except Exception as e:      # a parser that does not take it is as good
        assert "licen" in str(e).lower() or "license" in repr(getattr(e, "get_messages", lambda: [])()).lower()


KILLED = r"""
set -euo pipefail
ROOT=$1 CACHE=$2/cache WORK=$2/work ARCH=x86_64 SYSROOT=$2/sysroot
say() { :; }
die() { echo "$*"; exit 1; }
. "$ROOT/deploy/static/lib/toolchain.sh"
. "$ROOT/deploy/static/lib/libraries.sh"
LIBRARIES=(lz4)
library_version() { echo 1; }
library_build() { mkdir -p "$OUT/usr"; echo whole >"$OUT/usr/liblz4.a"; }
mkdir -p "$CACHE/$ARCH" "$WORK" "$SYSROOT"
toolchain_names
libraries_provide
kept=$(echo "$CACHE/$ARCH"/lz4-*)
mv "$kept" "$kept.new"
mv "$kept.new/usr/liblz4.a" "$kept.new/half"
libraries_provide
cd "$kept" && find . -type f
"""


def test_half_a_library_of_a_killed_build_is_not_kept(tmp_path):
    done = subprocess.run(["bash", "-c", KILLED, "bash", ROOT, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["./usr/liblz4.a"], done


BUILDS = {name: os.path.join(ROOT, "deploy", name, "build") for name in ("static", "wheel", "container", "debian")}


@pytest.mark.parametrize("kind", BUILDS)
def test_mistakes_are_told_before_the_work(kind, tmp_path):
    """Arguments that are none, and a folder that cannot be made, are said in a line, not after minutes and not by a traceback."""
    (tmp_path / "file").touch()
    for args, dist in ((["sparc"], tmp_path / "dist"), ([], tmp_path / "file" / "dist")):
        env = {**os.environ, "MOTEL_DIST": str(dist), "MOTEL_STATIC_CACHE": str(tmp_path / "cache")}
        done = subprocess.run([BUILDS[kind], *args], capture_output=True, text=True, timeout=60, check=False, env=env)
        assert done.returncode and "Traceback" not in done.stderr and done.stdout + done.stderr, done
    assert subprocess.run([BUILDS[kind], "--help"], capture_output=True, timeout=60, check=False).returncode == 0
    assert not (tmp_path / "dist").exists() and not (tmp_path / "cache").exists()


def test_licences(dist):
    with open(os.path.join(dist, "LICENSES.txt"), encoding="utf-8") as f:
        text = f.read()
    heads = re.findall(r"^=+\n(\S+) \S+ \(source package [^)]+\): .+\n=+$", text, re.M)
    assert {"musl", "gmp", "nettle", "gnutls", "curl", "lmdb", "libgcc"} <= set(heads)
    for words in ("GNU LESSER GENERAL PUBLIC LICENSE", "GCC RUNTIME LIBRARY EXCEPTION", "Rich Felker", "The OpenLDAP Public License"):
        assert words.lower() in text.lower(), words


# ---- at work where nothing else is

def namespaces():
    command = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-mnpf", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare"):
        return None, "there is no unshare"
    tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    return command, tried.stderr.strip() if tried.returncode else ""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, and a certificate of it for the backend's name."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    return e2e.signed_by_ca(tmp_path_factory.mktemp("certificates"), "otlp.example.com")


def run_job(tmp_path, root, certificates, command, env):
    """Runs the Gym job's collector alone in `root`; gives what it wrote and sent."""
    enter, why_not = namespaces()
    if why_not:
        pytest.skip(f"no namespaces of our own: {why_not}")
    with open(GYM, encoding="utf-8") as f:
        config = f.read()
    outputs = root + os.path.dirname(re.search(r"path: (/\S*)/metrics\.jsonl", config).group(1) + "/x")
    os.makedirs(outputs)
    os.makedirs(root + "/etc", exist_ok=True)
    for name, text in (("/collector.yaml", config), ("/etc/resolv.conf", "nameserver 127.0.0.1\n")):
        if os.path.lexists(root + name):
            os.unlink(root + name)
        with open(root + name, "w", encoding="utf-8") as f:
            f.write(text)
    spec = {"root": root, "command": command, "env": {"OTEL_TOKEN": TOKEN, "SLURM_JOB_ID": "12", **env}, "certificates": str(certificates), "driver": DRIVER,
            "driver_env": {"JOB_SPANS": str(SPANS), "JOB_SCRAPES": "[]", "JOB_EXIT": "0"}, "result": str(tmp_path / "result.json")}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*enter, sys.executable, os.path.join(HERE, "static_inside.py"), str(tmp_path / "spec.json")], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    result["log"] = (tmp_path / "result.json.log").read_text(errors="replace")
    result["files"] = {}
    for signal in ("traces", "metrics", "logs"):
        with open(os.path.join(outputs, signal + ".jsonl"), encoding="utf-8") as f:
            result["files"][signal] = [json.loads(line) for line in f]
    return result


def check_job(result):
    """It ended cleanly, asked the name server, verified the backend, and lost nothing on either way out."""
    assert result["code"] == 0 and result["driver_code"] == 0, (result["driver"][-3000:], result["log"][-3000:])
    assert "otlp.example.com" in result["asked"]
    written = [s for line in result["files"]["traces"] for r in line["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]
    assert len(written) == 2 * SPANS, len(written)
    sent = collections.Counter()
    for request in result["requests"]:
        assert request["headers"]["authorization"] == "Bearer " + TOKEN
        signal = request["path"].rsplit("/", 1)[1]
        message = e2e.parse(signal, e2e.decode(base64.b64decode(request["body"]), request["headers"].get("content-encoding", "")))
        sent[signal] += len(list(e2e.records(signal, message)))
    assert sent["traces"] == 2 * SPANS and sent["logs"] == 2 and sent["metrics"] > 0, sent
    assert TOKEN not in result["log"], result["log"][-3000:]


def test_alone_in_an_empty_root(program, certificates, tmp_path):
    """Only the program, a resolv.conf, an authority's certificate and the configuration: no /dev, no /proc, no /tmp, no shell."""
    root = str(tmp_path / "root")
    os.makedirs(root)
    shutil.copy(program, root + "/motel")
    shutil.copy(certificates / "ca.pem", root + "/ca.pem")
    emulator = emulated(program)
    if emulator:
        shutil.copy(emulator[0], root + "/emulator")
    result = run_job(tmp_path, root, certificates, [*(["/emulator"] if emulator else []), "/motel", "--config", "/collector.yaml"], {"SSL_CERT_FILE": "/ca.pem"})
    check_job(result)


def test_in_debian_11(certificates, tmp_path, needs_root):
    """Started by its shell; the authority is where Debian keeps them."""
    root = debian_root("bullseye", tmp_path / "root")
    with open(root + "/etc/debian_version", encoding="utf-8") as f:
        assert f.read().startswith("11")
    shutil.copy(static_program(os.uname().machine), root + "/usr/local/bin/motel")
    shutil.copy(certificates / "ca.pem", root + "/etc/ssl/certs/ca-certificates.crt")
    result = run_job(tmp_path, root, certificates, ["/bin/sh", "-c", "exec /usr/local/bin/motel --config /collector.yaml"], {})
    shutil.rmtree(root)
    check_job(result)
