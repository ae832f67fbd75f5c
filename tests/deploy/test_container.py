"""The container image: what it says of itself, what is in it, and that it works as it is meant to be run: as its own user, on a root file
system that cannot be written, in namespaces of its own. The Dockerfile is built, and makes the same image."""
import gzip
import hashlib
import json
import os
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import tarfile

import psutil
import pytest

from containers import blob, container, json_of, layout, on_network, unpack, why_not  # noqa: F401 (container is a fixture)
from support import ROOT, debian_root, e2e, needs_own_mounts, static_program, version

MIB = 1 << 20
BUILD = os.path.join(ROOT, "deploy", "container", "build")
CLIENT = os.path.join(ROOT, "tests", "e2e", "sdk_client.py")


def build(folder, arch="x86_64", *flags):
    """Builds the image from the static program with a dist/ of its own."""
    os.makedirs(folder, exist_ok=True)
    program = static_program(arch)
    for path in (program, f"{program}.spdx.json", os.path.join(os.path.dirname(program), "LICENSES.txt")):
        shutil.copy2(path, folder)
    subprocess.run([BUILD, arch, *flags], check=True, timeout=600, env={**os.environ, "MOTEL_DIST": str(folder)})
    return os.path.join(folder, f"motel-{version()}-oci-{arch}.tar")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"), "x86_64", "--squashfs")


@pytest.fixture(scope="module")
def image(archive, tmp_path_factory):
    return layout(archive, tmp_path_factory.mktemp("layout"))


@pytest.fixture(scope="module")
def bundle(image, tmp_path_factory):
    reason = why_not()
    if reason:
        pytest.skip(reason)
    return unpack(image, version(), tmp_path_factory.mktemp("unpacked") / "bundle")


def parts(folder):
    """(manifest, config) of the one image in a layout."""
    manifest = json_of(blob(folder, json_of(folder, "index.json")["manifests"][0]))
    return manifest, json_of(blob(folder, manifest["config"]))


# ---- what the image says of itself


def mistakes(config):
    """What is not as it should be in the configuration of an image."""
    c = config["config"]
    wanted = {
        "User": "10001:10001", "Entrypoint": ["/usr/bin/motel"], "Cmd": ["--config", "/etc/motel/motel.yaml"], "StopSignal": "SIGTERM", "WorkingDir": "/var/lib/motel",
        "ExposedPorts": {"4317/tcp": {}, "4318/tcp": {}, "13133/tcp": {}, "8888/tcp": {}}, "Env": ["PATH=/usr/bin:/bin"],
    }
    said = [f"{k}: {c.get(k)!r}, not {v!r}" for k, v in wanted.items() if c.get(k) != v]
    if c.get("Healthcheck", {}).get("Test") != ["CMD", "/usr/bin/motel", "health"]:
        said.append("no health check")
    labels = c.get("Labels", {})
    for name, value in (("title", "motel"), ("version", version())):
        if labels.get(f"org.opencontainers.image.{name}") != value:
            said.append(f"label {name}: {labels.get(f'org.opencontainers.image.{name}')!r}")
    with open(f"{static_program()}.spdx.json", encoding="utf-8") as f:
        licences = {p["licenseDeclared"] for p in json.load(f)["packages"]} | {"GPL-2.0-only", "MPL-2.0"}
    label = labels.get("org.opencontainers.image.licenses", "")
    said += [f"licence {x} is not in {label!r}" for x in licences if x not in label.split(" AND ") and f"({x})" not in label.split(" AND ")]
    if c.get("Volumes"):
        said.append("volumes of its own")
    return said


def test_what_the_image_says(image):
    manifest, config = parts(image)
    assert mistakes(config) == []
    assert (config["architecture"], config["os"]) == ("amd64", "linux")
    assert sum(layer["size"] for layer in manifest["layers"]) + manifest["config"]["size"] <= 12 * MIB
    for descriptor in [manifest["config"], *manifest["layers"], json_of(image, "index.json")["manifests"][0]]:
        with open(blob(image, descriptor), "rb") as f:
            data = f.read()
        assert (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") == (descriptor["size"], descriptor["digest"])
    with gzip.open(blob(image, manifest["layers"][0])) as f:
        assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(f.read()).hexdigest()}"]


@pytest.mark.parametrize("key, value", [("User", ""), ("User", "0:0"), ("Entrypoint", ["motel"]), ("Healthcheck", {}), ("ExposedPorts", {}), ("Labels", {}),
                                        ("StopSignal", "SIGKILL"), ("Volumes", {"/var/lib/motel": {}})])
def test_a_mistake_in_the_image_is_found(image, key, value):
    _, config = parts(image)
    config["config"][key] = value
    assert mistakes(config)


def test_the_same_bytes_twice(archive, tmp_path):
    again = build(tmp_path / "dist", "x86_64", "--squashfs")
    for name in (f"motel-{version()}-oci-x86_64.tar", f"motel-{version()}-x86_64.sqsh"):
        with open(os.path.join(os.path.dirname(archive), name), "rb") as a, open(os.path.join(os.path.dirname(again), name), "rb") as b:
            assert hashlib.sha256(a.read()).digest() == hashlib.sha256(b.read()).digest(), name


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    """buildah(…) with a store of its own; what it prints."""
    if os.geteuid() != 0 or not shutil.which("buildah"):
        pytest.skip("only root, with buildah, may build images here")
    needs_own_mounts()
    store = tmp_path_factory.mktemp("buildah")
    driver = "overlay"

    def run(*args, check=True):
        done = subprocess.run(["buildah", "--root", f"{store}/root", "--runroot", f"{store}/run", "--storage-driver", driver, *map(str, args)],
                              capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout.strip()
    if not run("info", check=False):
        shutil.rmtree(store)
        driver = "vfs"          # slower, and works everywhere
    yield run
    run("rm", "--all")
    run("rmi", "--all", "--force")


@pytest.mark.parametrize("transport", ["oci-archive", "docker-archive"])
def test_the_file_is_both_kinds_of_archive(archive, buildah, transport):
    """Docker's archives are read by another part of the library than OCI's."""
    name = buildah("pull", "--quiet", f"{transport}:{archive}").splitlines()[-1]
    found = json.loads(buildah("inspect", "--type", "image", name))
    assert found["OCIv1"]["config"]["User"] == "10001:10001"
    assert found["OCIv1"]["config"]["Entrypoint"] == ["/usr/bin/motel"]
    assert found["OCIv1"]["architecture"] == "amd64"


# ---- what is in it


def test_what_is_in_the_root(bundle, tmp_path):
    root = os.path.join(bundle, "rootfs")

    def kind(path):
        return stat.filemode(os.lstat(os.path.join(root, path)).st_mode)
    assert os.readlink(os.path.join(root, "bin/sh")) == "busybox"
    assert kind("usr/bin/motel") == "-rwxr-xr-x" and kind("tmp") == "drwxrwxrwt"
    with open(os.path.join(root, "usr/bin/motel"), "rb") as a, open(static_program(), "rb") as b:
        assert a.read() == b.read()
    assert os.lstat(os.path.join(root, "var/lib/motel")).st_uid == 10001
    with open(os.path.join(root, "etc/passwd"), encoding="ascii") as f:
        assert "motel:x:10001:10001:" in f.read()
    writable = [p for folder, _, files in os.walk(root) for p in (os.path.join(folder, n) for n in files)
                if not os.path.islink(p) and os.lstat(p).st_mode & 0o6022]
    assert writable == []
    # Every command in /bin is one that its busybox has.
    busybox = os.path.join(root, "bin/busybox")
    known = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    commands = {n for n in os.listdir(os.path.join(root, "bin")) if n != "busybox"}
    assert len(commands) > 50 and commands <= set(known)
    # The texts of the licences, and what is said of the packages.
    for path, words in (("doc/motel/LICENSE", "Apache License"), ("common-licenses/GPL-2", "GNU GENERAL PUBLIC LICENSE"), ("common-licenses/MPL-2.0", "Mozilla Public License"),
                        ("doc/busybox-static/copyright", "GPL-2"), ("doc/ca-certificates/copyright", "MPL-2.0"), ("doc/motel/LICENSES.txt", "gnutls")):
        with open(os.path.join(root, "usr/share", path), encoding="utf-8") as f:
            assert words.lower() in f.read().lower(), path
    # The certificates are some that a TLS library takes.
    context = ssl.create_default_context(cafile=os.path.join(root, "etc/ssl/certs/ca-certificates.crt"))
    assert context.cert_store_stats()["x509_ca"] > 100
    for path in ("etc/ssl/cert.pem", "etc/pki/tls/certs/ca-bundle.crt"):
        target = os.readlink(os.path.join(root, path))
        assert os.path.exists(root + target if target.startswith("/") else os.path.join(root, os.path.dirname(path), target))


# ---- how it runs


def sent(messages):
    """How many spans, metrics and log records are in what a backend got."""
    return {signal_name: sum(1 for s, m in messages if s == signal_name for _ in e2e.records(s, m)) for signal_name in e2e.SIGNALS}


def health(c, *args):
    return c.run("/usr/bin/motel", "health", *args)


def test_as_it_comes(bundle, container):
    """Nothing given: takes OTLP of both kinds, prints it, is healthy, and ends cleanly when it is told to."""
    c = container(bundle).ready((4317, 4318, 13133, 8888))
    e2e.wait_until(lambda: health(c).returncode == 0, 60, "the health check")
    for protocol, port in (("grpc", 4317), ("http", 4318)):
        c.outside(sys.executable, CLIENT, protocol, "gzip", f"http://127.0.0.1:{port}", 5, check=True)
    page = c.outside("curl", "-sf", "http://127.0.0.1:8888/metrics", capture_output=True, text=True, check=True).stdout
    assert "otelcol_receiver_accepted_spans" in page
    status = c.text(f"/proc/{c.pid}/status")
    assert "Uid:\t10001\t10001\t10001\t10001" in status and "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    assert c.text(f"/proc/{c.pid}/cmdline").split("\0")[:-1] == ["/usr/bin/motel", "--config", "/etc/motel/motel.yaml"]
    shell = c.run("/bin/sh", "-c", "id -u; touch /x /etc/x /var/lib/motel/x 2>&1 | grep -c 'Read-only'; motel version")
    assert shell.returncode == 0 and shell.stdout.split("\n")[:2] == ["10001", "3"] and version() in shell.stdout, shell
    assert c.stop() == 0, c.stderr
    lines = [json.loads(line) for line in c.stdout.splitlines()]
    names = [line.get("name") for line in lines]
    assert [names.count(f"py-span-{i}") for i in range(5)] == [2] * 5


@pytest.fixture
def volume(tmp_path):
    folder = tmp_path / "volume"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


def test_with_a_configuration_of_ones_own(bundle, container, volume, tmp_path):
    """In place of the image's. Files without a folder are in the volume; the health check fails, for there is none."""
    (tmp_path / "motel.yaml").write_text("receivers: {otlp: {protocols: {http: }}}\nexporters: {file: {path: telemetry.jsonl}}\n"
                                         "service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [file]}}}\n")
    c = container(bundle, mounts=[(tmp_path / "motel.yaml", "/etc/motel/motel.yaml", "ro"), (volume, "/var/lib/motel", "rw")]).ready((4318,))
    bad = health(c)
    assert bad.returncode == 1 and "13133" in bad.stdout + bad.stderr
    body = json.dumps(e2e.span_request(7))
    c.outside("curl", "-sf", "-H", "Content-Type: application/json", "-d", body, "http://127.0.0.1:4318/v1/traces", check=True, stdout=subprocess.DEVNULL)
    assert c.stop() == 0
    lines = [json.loads(line) for line in (volume / "telemetry.jsonl").read_text().splitlines()]
    assert e2e.count_spans(lines) == 7 and os.stat(volume / "telemetry.jsonl").st_uid == 10001


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return e2e.self_signed(tmp_path_factory.mktemp("certificate"), "backend.test")


def tls_backend(certificate, port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    sink = e2e.HttpSink(port=port)
    sink.server.socket = context.wrap_socket(sink.server.socket, server_side=True, do_handshake_on_connect=False)
    return sink


def test_forwards_over_tls_and_keeps_what_the_backend_lacks(bundle, container, volume, certificate, tmp_path):
    """Killed while the backend is down: what was acknowledged lies in the volume, and the next container delivers it."""
    (tmp_path / "hosts").write_text("127.0.0.1 localhost backend.test\n")
    mounts = [(volume, "/var/lib/motel", "rw"), (tmp_path / "hosts", "/etc/hosts", "ro"), (certificate / "cert.pem", "/etc/motel/backend.pem", "ro")]

    def forwarder(port):
        return container(bundle, args=["--config", "/etc/motel/forward.yaml"], mounts=mounts, env=[
            f"OTEL_EXPORTER_OTLP_ENDPOINT=https://backend.test:{port}", "SSL_CERT_FILE=/etc/motel/backend.pem"]).ready()
    first = forwarder(1)
    first.outside(sys.executable, CLIENT, "grpc", "none", "http://127.0.0.1:4317", 20, check=True)
    first.stop(signal.SIGKILL)
    assert any(n.endswith("_traces.mdb") for n in os.listdir(volume / "queue")), os.listdir(volume)

    port = e2e.free_port()
    second = forwarder(port)
    sink = second.on_network(lambda: tls_backend(certificate, port))
    try:
        e2e.wait_until(lambda: sent(sink.messages()) == {"traces": 20, "metrics": 4, "logs": 2}, 90, "delivery of what was kept")
        second.outside(sys.executable, CLIENT, "http", "gzip", "http://127.0.0.1:4318", 3, check=True)
        assert second.stop() == 0, second.stderr
        assert sent(sink.messages()) == {"traces": 23, "metrics": 8, "logs": 4}
    finally:
        sink.close()


def test_a_wrong_configuration_ends_the_container(bundle, container):
    c = container(bundle, args=["--config", "/etc/motel/forward.yaml"])
    assert c.process.wait(60) == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in c.stderr


# ---- enroot


# An ordinary user's namespaces; the root as `enroot create` lays it; a tmpfs where enroot has one; then the image's own shell and /etc/rc.
ENROOT = ["setpriv", "--reuid=10002", "--regid=10002", "--clear-groups", "unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork",
          "--kill-child", "sh", "-c", 'ip link set lo up && mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount -t tmpfs tmpfs tmp && '
          'mount -o remount,bind,ro . && exec chroot . /bin/sh /etc/rc "$@"']


@pytest.fixture
def enroot_root(archive, tmp_path):
    """What `enroot create` makes of the file, owned by a user without any rights."""
    if os.geteuid() != 0 or not shutil.which("unsquashfs"):
        pytest.skip("only root, with unsquashfs, can do this here")
    root = tmp_path / "root"
    subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-user-xattrs", "-d", root, os.path.join(os.path.dirname(archive), f"motel-{version()}-x86_64.sqsh")], check=True)
    return root


def test_the_squashfs_has_what_enroot_reads(enroot_root, image):
    _, config = parts(image)
    for name in ("etc/passwd", "etc/group", "etc/rc", "etc/fstab", "etc/environment", "bin/sh"):
        assert os.path.lexists(enroot_root / name), name
    assert (enroot_root / "etc/environment").read_text().split("\n")[:-1] == config["config"]["Env"]
    rc = (enroot_root / "etc/rc").read_text()
    for word in config["config"]["Entrypoint"] + config["config"]["Cmd"]:
        assert word in rc
    assert subprocess.run(["sh", "-n", enroot_root / "etc/rc"], check=False).returncode == 0


def enroot(root, *args):
    return subprocess.Popen([*ENROOT, str(root), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def test_starts_as_enroot_does(enroot_root, tmp_path):
    """An ordinary user in namespaces, chrooted, /bin/sh on /etc/rc: with arguments, as srun gives them, and without."""
    probe = subprocess.run([*ENROOT[:11], "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no user namespaces here: {probe.stderr.strip()}")
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        os.chmod(folder, 0o755)
    subprocess.run(["chown", "-R", "10002:10002", enroot_root], check=True)
    out, err = (p := enroot(enroot_root, "version")).communicate(timeout=60)
    assert p.returncode == 0 and version() in out, err
    out, err = (p := enroot(enroot_root, "--config", "/nowhere.yaml")).communicate(timeout=60)
    assert p.returncode == 1 and "/nowhere.yaml" in err
    p = enroot(enroot_root)
    try:
        own = os.readlink("/proc/self/ns/net")
        e2e.wait_until(lambda: os.readlink(f"/proc/{p.pid}/ns/net") != own, 60, "a network of its own")
        network = f"/proc/{p.pid}/ns/net"
        e2e.wait_until(lambda: on_network(network, lambda: e2e.connects(13133)), 60, "motel under enroot's rules")
        subprocess.run(["nsenter", f"--net={network}", sys.executable, CLIENT, "http", "none", "http://127.0.0.1:4318", "3"], check=True, timeout=180)
        (motel,) = psutil.Process(p.pid).children()
        assert motel.cmdline() == ["/usr/bin/motel", "--config", "/etc/motel/motel.yaml"]
        motel.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=60)
    finally:
        p.kill()
    assert p.returncode == 0, err
    assert [json.loads(line).get("name") for line in out.splitlines()].count("py-span-0") == 1


# ---- the Dockerfile


def files_of(folder):
    """{path: (mode, user, link, digest)} of the root file system that the layers of an image make."""
    found = {}
    for descriptor in parts(folder)[0]["layers"]:
        with tarfile.open(blob(folder, descriptor)) as tar:
            for member in tar:
                data = hashlib.sha256(tar.extractfile(member).read()).hexdigest() if member.isreg() else ""
                if member.name.strip("./"):
                    found[member.name.strip("./")] = (oct(member.mode & 0o7777), member.uid, member.gid, member.linkname, data)
    return found


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The repository as a builder gets it, with the static program in dist/."""
    folder = tmp_path_factory.mktemp("context")
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "--", "deploy", "meson.build", "LICENSE"], capture_output=True, text=True, check=True)
    for name in names.stdout.splitlines():
        os.makedirs(os.path.dirname(folder / name), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), folder / name)
    shutil.copytree(os.path.dirname(static_program()), folder / "dist", ignore=lambda _, names: [
        n for n in names if not n.startswith((f"motel-{version()}-linux-x86_64", "LICENSES"))])
    return folder


@pytest.fixture(scope="module")
def base(buildah):
    """A Debian image that needs no registry, with the package sources of this machine: updates count, as they do in images."""
    made = buildah("from", "scratch")
    root = buildah("mount", made)
    copy = debian_root("bookworm", os.path.join(root, "copy"))
    for name in os.listdir(copy):
        os.rename(os.path.join(copy, name), os.path.join(root, name))
    os.rmdir(copy)
    sources = "etc/apt/sources.list.d"
    for name in os.listdir(f"/{sources}") if os.path.isdir(f"/{sources}") else ():
        with open(f"/{sources}/{name}", encoding="utf-8") as f:
            if "debian-archive-keyring" in f.read():
                shutil.copy2(f"/{sources}/{name}", f"{root}/{sources}/")
    if os.path.isfile("/etc/apt/sources.list"):
        shutil.copy2("/etc/apt/sources.list", f"{root}/etc/apt/")
    buildah("umount", made)
    buildah("commit", "--quiet", made, "localhost/debian")
    buildah("rm", made)
    return "localhost/debian"


def test_the_dockerfile_makes_the_same_image(image, buildah, base, context, tmp_path):
    buildah("bud", "--isolation", "chroot", "--network", "host", "--format", "docker", "--build-arg", f"BASE={base}", "-t", "localhost/motel",
            "-f", context / "deploy/container/Dockerfile", context)
    buildah("push", "--quiet", "localhost/motel", f"oci-archive:{tmp_path}/image.tar:{version()}")
    built = layout(tmp_path / "image.tar", tmp_path / "layout")
    docker = json.loads(buildah("inspect", "--type", "image", "localhost/motel"))["Docker"]
    _, ours = parts(image)
    _, theirs = parts(built)
    for key in ("User", "ExposedPorts", "Entrypoint", "Cmd", "WorkingDir", "StopSignal", "Env"):
        assert theirs["config"][key] == ours["config"][key], key
    assert docker["config"]["Healthcheck"] == ours["config"]["Healthcheck"]
    labels = {k: v for k, v in theirs["config"]["Labels"].items() if k.startswith("org.")}
    assert labels == ours["config"]["Labels"]
    assert mistakes({"config": {**theirs["config"], "Healthcheck": docker["config"]["Healthcheck"]}}) == []
    made, wanted = files_of(built), files_of(image)
    assert {k: (made.get(k), v) for k, v in wanted.items() if made.get(k) != v} == {}
    assert set(made) - set(wanted) <= {"etc/resolv.conf", "etc/hostname", "run/.containerenv"}


# ---- another processor


def test_the_image_for_aarch64(tmp_path):
    qemu = shutil.which("qemu-aarch64-static")
    if not qemu:
        pytest.skip("qemu-aarch64-static is not here")
    image = layout(build(tmp_path / "dist", "aarch64"), tmp_path / "layout")
    manifest, config = parts(image)
    assert mistakes(config) == [] and config["architecture"] == "arm64"
    root = tmp_path / "root"
    with tarfile.open(blob(image, manifest["layers"][0])) as tar:
        tar.extractall(root)
    for command in (["usr/bin/motel", "version"], ["bin/busybox", "echo", version()]):
        run = subprocess.run([qemu, str(root / command[0]), *command[1:]], capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 0 and version() in run.stdout, run
