"""The manifests of deploy/kubernetes: against the published schemas, against the configurations in them, and run as the kubelet would run them
(user, read-only root, volumes, probes), with the static program in namespaces of its own."""
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import kubernetes_validate
import pytest
import yaml

from support import ROOT, e2e, needs_own_mounts, version

FOLDER = os.path.join(ROOT, "deploy", "kubernetes")
NAMES = sorted(n for n in os.listdir(FOLDER) if n.endswith(".yaml"))
OLDEST = {"job.yaml": "1.29.0", "daemonset.yaml": "1.26.0", "any-version.yaml": "1.25.0"}
TOKEN = "cluster-token-2"
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "": 1}
SHUTDOWN_S = 25


def documents(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return list(yaml.safe_load_all(f))


def everything():
    return [(name, d) for name in NAMES for d in documents(name)]


def quantity(text):
    number, unit = re.fullmatch(r"(\d+)(Ki|Mi|Gi|)", str(text)).groups()
    return int(number) * UNITS[unit]


def seconds(text):
    return sum(float(n) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[u] for n, u in re.findall(r"([\d.]+)(ms|s|m|h)", text))


def valid(document, against):
    kubernetes_validate.validate(document, against, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas(name):
    """Strict, against the newest version and the oldest that the file is for."""
    for document in documents(name):
        for against in (kubernetes_validate.latest_version(), OLDEST[name]):
            valid(document, against)


@pytest.mark.parametrize("name,old,new", [
    ("job.yaml", "restartPolicy: Always\n", "restartPolicies: Always\n"), ("job.yaml", "runAsUser: 10001", "runAsUser: me"),
    ("job.yaml", "failureThreshold: 60", "failureTreshold: 60"), ("daemonset.yaml", "containerPort: 4317", "containerport: 4317"),
    ("daemonset.yaml", "internalTrafficPolicy", "internalPolicy"), ("daemonset.yaml", "drop: [ALL]", "drop: ALL"),
    ("any-version.yaml", "emptyDir: {sizeLimit: 32Mi}", "emptyDir: {limit: 32Mi}")])
def test_a_broken_manifest_is_found(name, old, new):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        text = f.read()
    assert old in text
    with pytest.raises(kubernetes_validate.ValidationError):
        for document in yaml.safe_load_all(text.replace(old, new, 1)):
            valid(document, kubernetes_validate.latest_version())


def test_the_sidecar_is_not_for_older_versions():
    """Which is why any-version.yaml is there; the schemas know the difference."""
    with pytest.raises(kubernetes_validate.ValidationError):
        valid(documents("job.yaml")[1], "1.27.0")


# ---- the parts of a manifest fit together ----

def config_maps():
    return {d["metadata"]["name"]: d["data"]["motel.yaml"] for _, d in everything() if d["kind"] == "ConfigMap"}


class Pod:
    """A pod template of the manifests, and the container that runs motel in it."""

    def __init__(self, name, document):
        self.name, self.document, self.spec = name, document, document["spec"]["template"]["spec"]
        self.containers = [*self.spec.get("initContainers", []), *self.spec["containers"]]
        self.motel = next(c for c in self.containers if "--config" in [*c.get("command", []), *c.get("args", [])])
        self.mounts = {m["mountPath"]: m for m in self.motel["volumeMounts"]}
        self.volumes = {v["name"]: v for v in self.spec["volumes"]}
        self.text = config_maps()[self.volumes[self.mounts["/etc/motel"]["name"]]["configMap"]["name"]]
        self.config = yaml.safe_load(self.text)

    def env(self, backend="http://127.0.0.1:4318"):
        """The container's variables, as the kubelet makes them."""
        given = {"OTLP_BACKEND": backend}
        for e in self.motel["env"]:
            source = e.get("valueFrom", {})
            if "secretKeyRef" in source:
                assert source["secretKeyRef"] == {"name": "motel", "key": "token"}
                given[e["name"]] = TOKEN
            elif "fieldRef" in source:
                given[e["name"]] = {"metadata.namespace": "default", "metadata.name": "eval-x7k2p", "spec.nodeName": "42"}[source["fieldRef"]["fieldPath"]]
            else:
                given.setdefault(e["name"], e["value"])
        return given

    def __str__(self):
        return f"{self.name}:{self.document['kind']}"


PODS = [Pod(n, d) for n, d in everything() if d["kind"] in ("Job", "DaemonSet")]
SERVING = [p for p in PODS if p.motel.get("args")]


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_the_configuration_is_valid_where_it_is_used(pod, motel, tmp_path):
    """With exactly the variables that the manifest gives; one of them missing is noticed."""
    path = tmp_path / "motel.yaml"
    path.write_text(pod.text)
    clean = {"PATH": os.environ["PATH"]}
    # folders that only the pod has: the queue's stands in this test's
    path.write_text(pod.text.replace("/var/lib/motel", str(tmp_path)))
    done = subprocess.run([motel, "validate", "--config", str(path)], capture_output=True, text=True, env={**clean, **pod.env()}, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    used = set(re.findall(r"\$\{env:(\w+)\}", pod.text))
    assert used == {e["name"] for e in pod.motel["env"]}
    for name in used:
        less = {k: v for k, v in pod.env().items() if k != name}
        done = subprocess.run([motel, "validate", "--config", str(path)], capture_output=True, text=True, env={**clean, **less}, timeout=60)
        assert name in done.stdout + done.stderr, name


@pytest.mark.parametrize("pod", SERVING, ids=str)
def test_ports_and_probes(pod):
    """Container ports are the listeners; probes ask the health check, which listens on the pod's address."""
    c = pod.config
    listeners = {p["endpoint"] for p in c["receivers"]["otlp"]["protocols"].values()} | {c["extensions"]["health_check"]["endpoint"]}
    for reader in c["service"]["telemetry"]["metrics"].get("readers", []):
        page = reader["pull"]["exporter"]["prometheus"]
        listeners.add(f"{page['host']}:{page['port']}")
    ports = {p["name"]: p["containerPort"] for p in pod.motel["ports"]}
    assert sorted(ports.values()) == sorted(int(e.rsplit(":", 1)[1]) for e in listeners)
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = pod.motel[kind]["httpGet"]
        assert c["extensions"]["health_check"]["endpoint"] == f"0.0.0.0:{ports[get['port']]}" and get["path"] == c["extensions"]["health_check"].get("path", "/")
    assert "health_check" in c["service"]["extensions"]
    only_here = all(p["endpoint"].startswith("127.0.0.1:") for p in c["receivers"]["otlp"]["protocols"].values())
    assert only_here == (pod.document["kind"] == "Job")     # a sidecar serves its pod, a daemon its node


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_what_it_may(pod):
    """As the restricted Pod Security Standard has it, and more."""
    assert pod.spec["automountServiceAccountToken"] is False
    of_pod = pod.spec["securityContext"]
    assert of_pod["fsGroup"] == 10001 and of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(pod.spec.get(k) for k in ("hostNetwork", "hostPID", "hostIPC"))
    for c in pod.containers:
        assert not any("hostPort" in p for p in c.get("ports", []))
        if not c["image"].startswith("motel:"):
            # the reader's own program: neither our user, nor a limit that ends it
            assert "securityContext" not in c and "limits" not in c["resources"] and not of_pod.keys() & {"runAsUser", "runAsNonRoot"}
        else:
            s = {**of_pod, **c["securityContext"]}
            assert s["runAsNonRoot"] and s["runAsUser"] == s["runAsGroup"] == 10001
            assert s["allowPrivilegeEscalation"] is False and s["capabilities"] == {"drop": ["ALL"]} and "privileged" not in s
            assert s["readOnlyRootFilesystem"] and c["image"] == f"motel:{version()}" and c["imagePullPolicy"] == "IfNotPresent"
    assert not any("hostPath" in v for v in pod.volumes.values())


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_what_it_writes_is_a_volume(pod):
    storage = pod.config["extensions"]["file_storage"]
    mount = next(m for path, m in pod.mounts.items() if storage["directory"].startswith(path + "/"))
    assert not mount.get("readOnly")
    limit = quantity(pod.volumes[mount["name"]]["emptyDir"]["sizeLimit"])
    assert 3 * storage["max_size"] < limit                  # one file a signal
    assert all(m.get("readOnly") for path, m in pod.mounts.items() if path in ("/etc/motel",))
    if pod.motel.get("args"):
        assert limit <= quantity(pod.motel["resources"]["limits"]["ephemeral-storage"])
        assert pod.motel["args"][-1] == "/etc/motel/motel.yaml"
    assert {m["name"] for c in pod.containers for m in c.get("volumeMounts", [])} == set(pod.volumes)


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_time_to_end(pod):
    """The kubelet does not kill it before its own limit."""
    limit = seconds(pod.config.get("motel", {}).get("shutdown_timeout", f"{SHUTDOWN_S}s"))
    assert pod.spec["terminationGracePeriodSeconds"] >= limit + 10


@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_stands_alone(name):
    """Nothing that it needs is in another one, which would start more than was asked for; only the Secret is made by hand."""
    maps = {d["metadata"]["name"] for d in documents(name) if d["kind"] == "ConfigMap"}
    assert [p.volumes[p.mounts["/etc/motel"]["name"]]["configMap"]["name"] for p in PODS if p.name == name] == list(maps)


def test_the_service_leads_to_the_daemons():
    daemon = next(p for p in PODS if p.document["kind"] == "DaemonSet")
    service = next(d for n, d in everything() if d["kind"] == "Service")
    labels = daemon.document["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items() and daemon.document["spec"]["selector"]["matchLabels"].items() <= labels.items()
    ports = {p["name"]: p["containerPort"] for p in daemon.motel["ports"]}
    assert all(ports[p["targetPort"]] == p["port"] for p in service["spec"]["ports"]) and service["spec"]["internalTrafficPolicy"] == "Local"


def test_the_job_sends_to_its_sidecar():
    job = next(p for p in PODS if p.name == "job.yaml")
    env = {e["name"]: e["value"] for e in job.spec["containers"][0]["env"]}
    assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://" + job.config["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert job.motel["restartPolicy"] == "Always"           # that makes it a sidecar


def test_the_default_of_shutdown_timeout(motel):
    """What these tests take for granted."""
    with open(os.path.join(ROOT, "docs", "motel-settings.md"), encoding="utf-8") as f:
        assert re.search(rf"\| `shutdown_timeout` \|.*\| `{SHUTDOWN_S}s` \|", f.read())


# ---- as the kubelet runs it ----

KUBELET = """set -e
ip link set lo up
ip address add 10.99.0.7/32 dev lo
mount -t tmpfs tmpfs "$ROOT"
mkdir -p "$ROOT"/usr/bin "$ROOT"/etc/motel "$ROOT"/var/lib/motel "$ROOT"/dev
touch "$ROOT"/usr/bin/motel "$ROOT"/dev/null "$ROOT"/dev/urandom
mount --bind "$PROGRAM" "$ROOT"/usr/bin/motel
for d in null urandom; do mount --bind /dev/$d "$ROOT"/dev/$d; done
mount --bind "$CONFIG" "$ROOT"/etc/motel
mount -o remount,bind,ro "$ROOT"/etc/motel
mount --bind "$QUEUE" "$ROOT"/var/lib/motel
mount -o remount,ro "$ROOT"
touch "$UP"
read -r _ < "$GO"
exec env -i PATH=/usr/bin $ENVIRONMENT "$(command -v chroot)" --userspec=10001:10001 "$ROOT" /usr/bin/motel $ARGUMENTS
"""


class Running:
    """The container of a pod: its user, its file systems, its variables, its network; probes come by the pod's address."""

    def __init__(self, pod, program, folder):
        self.pod, self.folder, self.starts = pod, str(folder), 0
        self.program = program
        for name in ("root", "config", "queue"):
            os.makedirs(f"{folder}/{name}")
        os.chmod(f"{folder}/queue", 0o777)       # an emptyDir
        with open(f"{folder}/config/motel.yaml", "w", encoding="utf-8") as f:
            f.write(pod.text)
        at = self.folder                          # uid 10001 has to get there
        while at != "/":
            os.chmod(at, os.stat(at).st_mode | 0o011)
            at = os.path.dirname(at)
        self.process = self.pid = None

    def start(self, backend):
        """Starts it; its namespace exists before `backend(pid)` is asked for the address of a backend there."""
        self.starts += 1
        up, go, self.log = (f"{self.folder}/{n}{self.starts}" for n in ("up", "go", "log"))
        os.mkfifo(go)
        env = {"PATH": os.environ["PATH"], "ROOT": f"{self.folder}/root", "PROGRAM": self.program, "CONFIG": f"{self.folder}/config", "QUEUE": f"{self.folder}/queue", "UP": up, "GO": go,
               "ARGUMENTS": " ".join(self.pod.motel["args"]), "ENVIRONMENT": " ".join(f"{k}={v}" for k, v in self.pod.env(backend).items())}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", KUBELET], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        e2e.wait_until(lambda: os.path.exists(up) or self.process.poll() is not None, what="the container")
        assert self.process.poll() is None, self.said()     # the script waits for us now
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            self.pid = int(f.read().split()[0])
        self.go = go

    def let_go(self):
        with open(self.go, "w", encoding="ascii") as f:
            f.write("\n")

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def inside(self, *argv, check=False):
        return subprocess.run(["nsenter", "--target", str(self.pid), "--net", *argv], capture_output=True, text=True, timeout=120, check=check)

    def probe(self, kind):
        probe = self.pod.motel[kind]
        port = next(p["containerPort"] for p in self.pod.motel["ports"] if p["name"] == probe["httpGet"]["port"])
        return self.inside("curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--max-time", str(probe.get("timeoutSeconds", 1)),
                           f"http://10.99.0.7:{port}{probe['httpGet']['path']}").stdout

    def wait_started(self):
        def started():
            assert self.process.poll() is None, self.said()
            return self.probe("startupProbe") == "200"
        try:
            e2e.wait_until(started, what="the startup probe")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.said()}") from None

    def terminate(self):
        """SIGTERM, and SIGKILL after the grace period; the seconds it took and the exit code."""
        begin = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        try:
            code = self.process.wait(self.pod.spec["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            code = "killed"
        return time.monotonic() - begin, code

    def kill(self):
        if self.pid and self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)       # not its parent alone: a change of user undoes --kill-child
            self.process.wait()


@pytest.fixture
def kubelet(tmp_path, static_motel):
    if os.geteuid() != 0 or not shutil.which("nsenter"):
        pytest.skip("only root may be the kubelet")
    needs_own_mounts()
    running = []

    def run(pod):
        running.append(Running(pod, static_motel, tmp_path / f"pod{len(running)}"))
        return running[-1]
    yield run
    for r in running:
        r.kill()


BACKEND = "http://127.0.0.1:24318"
SEND = """import sys, json, urllib.request
sys.path.insert(0, sys.argv[1])
from conftest import post, span_request
first, n = int(sys.argv[3]), int(sys.argv[4])
for i in range(n):
    status, _, body = post(int(sys.argv[2]), "traces", span_request(10, start=10 * (first + i)))
    assert status == 200, (status, body)
"""
SINK = """import sys, json
sys.path.insert(0, sys.argv[1])
from conftest import HttpSink, records
import time
s = HttpSink(port=24318)
seen = 0
while True:
    got = s.messages()
    for (signal, m), q in list(zip(got, s.requests))[seen:]:
        for r, _, x in records(signal, m):
            print(json.dumps({"name": x.name, "id": x.span_id.hex(), "resource": r, "auth": q["headers"].get("authorization")}), flush=True)
    seen = len(got)
    time.sleep(0.05)
"""


@pytest.mark.parametrize("pod", SERVING, ids=str)
def test_as_the_kubelet_runs_it(pod, kubelet, tmp_path):
    """Probes; records while the backend is away; the container is killed (out of memory, say) and started again: nothing is lost, all is
    stamped and comes with the token. Then it is told to end."""
    c = kubelet(pod)
    e2e_folder = os.path.join(ROOT, "tests", "e2e")
    http = str(next(p["containerPort"] for p in pod.motel["ports"] if p["name"] == "otlp-http"))
    c.start(BACKEND)
    c.let_go()
    c.wait_started()
    assert c.probe("readinessProbe") == c.probe("livenessProbe") == "200"
    with open(f"/proc/{c.pid}/status", encoding="ascii") as f:
        status = f.read()
    assert re.search(r"^Uid:\t10001\t10001", status, re.M) and re.search(r"^CapEff:\t0+$", status, re.M) and re.search(r"^CapPrm:\t0+$", status, re.M)
    anonymous = int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.M)[1]) * 1024
    assert anonymous < quantity(pod.motel["resources"]["requests"]["memory"]), anonymous
    c.inside(sys.executable, "-c", SEND, e2e_folder, http, "0", "20", check=True)
    c.kill()
    c.start(BACKEND)
    with open(tmp_path / "sink", "wb") as out:
        sink = subprocess.Popen(["nsenter", "--target", str(c.pid), "--net", sys.executable, "-c", SINK, e2e_folder], stdout=out, stderr=subprocess.STDOUT)
    try:
        c.let_go()
        c.wait_started()
        c.inside(sys.executable, "-c", SEND, e2e_folder, http, "20", "5", check=True)

        def arrived():
            return [json.loads(x) for x in (tmp_path / "sink").read_text().split("\n")[:-1]]
        e2e.wait_until(lambda: len({x["id"] for x in arrived()}) == 250, 120, "all spans")
        assert {x["auth"] for x in arrived()} == {f"Bearer {TOKEN}"}
        for x in arrived():
            assert x["resource"]["k8s.node.name"] == "42"       # a text
            assert pod.document["kind"] != "Job" or x["resource"]["k8s.pod.name"] == "eval-x7k2p"
        assert TOKEN not in c.said()
        took, code = c.terminate()
        assert code == 0 and took < pod.spec["terminationGracePeriodSeconds"], c.said()
    finally:
        sink.kill()
        sink.wait()


def test_a_manifest_with_another_port_is_found():
    """The cross checks see what the schemas cannot."""
    pod = SERVING[0]
    broken = copy.copy(pod)
    broken.config = copy.deepcopy(pod.config)
    broken.config["extensions"]["health_check"]["endpoint"] = "127.0.0.1:13133"
    with pytest.raises(AssertionError):
        test_ports_and_probes(broken)
    broken.config = copy.deepcopy(pod.config)
    broken.config["extensions"]["file_storage"]["directory"] = "/queue"
    with pytest.raises((AssertionError, StopIteration)):
        test_what_it_writes_is_a_volume(broken)
