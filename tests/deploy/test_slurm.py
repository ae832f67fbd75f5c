"""The samples of deploy/slurm, and the line by which `gym eval submit` starts its collector, under a real Slurm of two nodes where it can be started
(root, Debian's slurmctld and slurmd), and under programs that stand in for Slurm's. A real SDK is the job."""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from support import ROOT, e2e

HERE = os.path.dirname(os.path.abspath(__file__))
SLURM = os.path.join(ROOT, "deploy", "slurm")
GYM = os.path.join(ROOT, "tests", "golden", "gym-config")
TOKEN = "cluster-token-1"
JOB = [sys.executable, os.path.join(HERE, "slurm_job.py")]
SCRIPTS = ("run.sbatch", "beside.sbatch", "nodes.sbatch")
SPANS = [f"step {i}" for i in range(10)] + ["last"]


class Cluster:
    """Two nodes and a controller in namespaces of their own."""
    CLONE_NEWNET = 0x40000000
    addresses = {"n1": "10.213.77.1", "n2": "10.213.77.2"}

    def __init__(self, folder):
        self.folder = str(folder)
        self.env = {"SLURM_CONF": f"{self.folder}/slurm.conf"}
        with open(f"{folder}.log", "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
                                             os.path.join(HERE, "slurm_cluster"), self.folder], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def up():
            assert self.process.poll() is None, self.said()
            return os.path.exists(f"{self.folder}/up")
        try:
            e2e.wait_until(up, 180, "the cluster")
        except AssertionError as e:
            self.close()
            raise AssertionError(f"{e}\n{self.said()}") from None
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            self.pid = f.read().split()[0]

    def said(self):
        names = [f"{self.folder}.log", *(f"{self.folder}/log/{n}.out" for n in ("slurmctld", "slurmd.n1", "slurmd.n2"))]
        return "\n".join(open(n, encoding="utf-8", errors="replace").read()[-2000:] for n in names if os.path.exists(n))

    def run(self, *argv, cwd=None, env=None):
        return subprocess.run(["nsenter", "--target", self.pid, "--mount", "--net", "--uts", "--pid", f"--wd={cwd or self.folder}", *argv], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **self.env, **(env or {})}, stdin=subprocess.DEVNULL, check=True).stdout.strip()

    def sink(self):
        """A backend on the first node: its socket is made in a thread that is there."""
        made, libc = [], ctypes.CDLL(None, use_errno=True)

        def make():
            fd = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
            assert libc.setns(fd, self.CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            os.close(fd)
            made.append(e2e.HttpSink(host="10.213.77.1"))
        t = threading.Thread(target=make)
        t.start()
        t.join()
        made[0].address = f"http://10.213.77.1:{made[0].port}"
        return made[0]

    def submit(self, folder, env, argv):
        return self.run("sbatch", "--parsable", *argv, cwd=folder, env=env)

    def cancel(self, job, *options):
        self.run("scancel", *options, job)

    def end(self, job):
        """Waits for the job's end; its exit code, or signal + 128."""
        def ended():
            shown = self.run("scontrol", "show", "job", job)
            return not re.search(r"JobState=(PENDING|CONFIGURING|RUNNING|COMPLETING|SUSPENDED)", shown) and shown
        code, number = re.search(r"ExitCode=(\d+):(\d+)", e2e.wait_until(ended, 120, f"the end of job {job}")).groups()
        return int(number) + 128 if int(number) else int(code)

    def left(self, job):
        return self.run("squeue", "--steps", "--noheader", "--jobs", job)

    def close(self):
        self.process.kill()
        self.process.wait()


class Doubles:
    """Programs in place of Slurm's."""

    def __init__(self, folder, number=77):
        self.folder = str(folder)
        os.makedirs(f"{folder}/bin")
        os.makedirs(f"{folder}/state")
        for name in ("sbatch", "srun", "scancel", "squeue"):
            os.symlink(os.path.join(HERE, "slurm_doubles"), f"{folder}/bin/{name}")
        self.env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "SLURM_DOUBLES": f"{folder}/state", "SLURM_DOUBLES_NUMBER": str(number)}

    def run(self, *argv, cwd=None, env=None):
        return subprocess.run(argv, capture_output=True, text=True, timeout=120, env={**os.environ, **self.env, **(env or {})}, cwd=cwd, stdin=subprocess.DEVNULL, check=True).stdout.strip()

    def sink(self):
        s = e2e.HttpSink()
        s.address = s.url
        return s

    def submit(self, folder, env, argv):
        return self.run("sbatch", "--parsable", *argv, cwd=folder, env=env)

    def cancel(self, job, *options):
        self.run("scancel", *options, job)

    def end(self, job):
        path = f"{self.folder}/state/exit"
        e2e.wait_until(lambda: os.path.exists(path), 120, f"the end of job {job}")
        with open(path, encoding="ascii") as f:
            return int(f.read())

    def left(self, job):
        return self.run("squeue", "--steps", "--noheader", f"--jobs={job}")

    def close(self):
        """Nothing of the job stays behind."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if f"SLURM_DOUBLES_JOB={self.folder}/state".encode() in f.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass


def why_no_slurm():
    if os.geteuid() != 0:
        return "only root may start Slurm's daemons"
    for program in ("slurmctld", "slurmd", "munged", "sbatch", "unshare", "nsenter", "ip"):
        if not shutil.which(program):
            return f"there is no {program}"
    tried = subprocess.run(["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                            "mount -t tmpfs tmpfs /sys/fs/cgroup && ip link add veth-a type veth peer name veth-b"], capture_output=True, text=True)
    return f"no namespaces of our own: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.fixture(scope="module")
def real_slurm(tmp_path_factory):
    why_not = why_no_slurm()
    if why_not:
        pytest.skip(why_not)
    c = Cluster(tmp_path_factory.mktemp("slurm") / "cluster")
    yield c
    c.close()


@pytest.fixture(params=["doubles", "slurm"])
def new_job(request, motel, tmp_path):
    """new_job() makes a Job of that kind of Slurm, with a backend and ports of its own, so that several can run at the same time."""
    made = []

    def new():
        folder = tmp_path / f"job{len(made)}"
        made.append(Job(Doubles(folder / "doubles", 77 + len(made)) if request.param == "doubles" else request.getfixturevalue("real_slurm"), motel, folder))
        return made[-1]
    yield new
    for j in made:
        j.sink.close()
        if request.param == "doubles":
            j.slurm.close()


@pytest.fixture
def job(new_job):
    return new_job()


@pytest.fixture
def samples_of(new_job):
    """A job of each sample, submitted at the same time, with these words behind the command of the job."""
    def submit(*words, scripts=SCRIPTS):
        jobs = {script: new_job() for script in scripts}
        for script, j in jobs.items():
            j.submit(sample(script), *JOB, j.folder, *words, options=["--nodes=1"])
        return jobs
    return submit


class Job:
    """A submitted sample."""

    def __init__(self, slurm, motel, tmp_path):
        self.slurm, self.sink, self.folder = slurm, slurm.sink(), str(tmp_path / "job")
        os.makedirs(self.folder)
        ports = {f"OTLP_{name}_PORT": str(e2e.free_port()) for name in ("GRPC", "HTTP", "HEALTH")}
        shutil.copy(os.path.join(SLURM, "collector.yaml"), self.folder)
        self.env = {"MOTEL": os.path.abspath(motel), "OTLP_BACKEND": self.sink.address, "OTEL_TOKEN": TOKEN, "MOTEL_STOP_DELAY": "4s", **ports}
        self.id = None

    def submit(self, script, *words, options=(), env=None):
        self.id = self.slurm.submit(self.folder, {**self.env, **(env or {})}, [*options, script, *words])

    def wait_ready(self, tasks=1):
        def ready():
            return sum(os.path.exists(os.path.join(self.folder, f"ready-{i}")) for i in range(tasks)) == tasks
        try:
            e2e.wait_until(ready, 120, "the job")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.log()}") from None

    def log(self):
        return "\n".join(open(os.path.join(self.folder, n), encoding="utf-8", errors="replace").read() for n in sorted(os.listdir(self.folder)) if n.endswith(".log"))

    def cancel_in_background(self):
        """scancel; the stand-in's stays until the job has ended, as Slurm's daemon does."""
        threading.Thread(target=self.slurm.cancel, args=(self.id,), daemon=True).start()

    def end(self):
        return self.slurm.end(self.id)

    def arrived(self):
        """(task, span name, resource attributes) of every span that the backend has."""
        return [(r["task"], x.name, r) for s, m in self.sink.messages() if s == "traces" for r, _, x in e2e.records(s, m)]

    def in_files(self):
        """The same of the files, by node."""
        found = {}
        for name in sorted(n for n in os.listdir(self.folder) if n.startswith("telemetry-")):
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                lines = [json.loads(x) for x in f.read().splitlines()]
            node = re.fullmatch(rf"telemetry-{self.id}-(\w+)\.jsonl", name)[1]
            found[node] = sorted(x["name"] for line in lines for r in line["resourceSpans"] for s in r["scopeSpans"] for x in s["spans"])
        return found

    def summaries(self):
        """What became of the telemetry, by node; there is no summary of another name."""
        found = {}
        for name in sorted(n for n in os.listdir(self.folder) if "summary" in n):
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                found[re.fullmatch(rf"summary-{self.id}-(\w+)\.json", name)[1]] = json.load(f)
        return found

    def check(self, tasks=1, nodes=("n1",)):
        """Every span of every task is at the backend and in the files, stamped; the token went along and is in no file."""
        got = self.arrived()
        assert sorted((t, n) for t, n, _ in got) == sorted((str(t), n) for t in range(tasks) for n in SPANS), self.log()
        assert {r["slurm.job.id"] for _, _, r in got} == {self.id} and {r["slurm.node"] for _, _, r in got} == set(nodes)
        files = self.in_files()
        assert set(files) == set(nodes) and sorted(n for f in files.values() for n in f) == sorted(SPANS * tasks)
        assert {r["headers"]["authorization"] for r in self.sink.requests} == {f"Bearer {TOKEN}"}
        assert {n: s["run"]["lost"] for n, s in self.summaries().items()} == dict.fromkeys(nodes, 0)
        for at, _, names in os.walk(self.folder):
            assert not any(TOKEN in open(os.path.join(at, n), encoding="utf-8", errors="replace").read() for n in names)
        assert self.slurm.left(self.id) == ""


def sample(name):
    return os.path.join(SLURM, name)


def test_jobs_that_end(samples_of):
    """The exit code is the command's; nothing is lost at its end."""
    for script, job in samples_of("now").items():
        code = job.end()
        job.check()
        assert code == 7, (script, job.log())
        assert "scancel: error" not in job.log()


def test_no_backend_the_file_alone(new_job):
    """Nobody is sent anything, the token neither, and nothing is lost."""
    jobs = {script: new_job() for script in SCRIPTS}
    for script, job in jobs.items():
        job.submit(sample(script), *JOB, job.folder, "now", options=["--nodes=1"], env={"OTLP_BACKEND": ""})
    for script, job in jobs.items():
        assert job.end() == 7, (script, job.log())
        assert job.in_files() == {"n1": sorted(SPANS)} and not job.sink.requests
        summary = job.summaries()["n1"]
        assert summary["run"]["lost"] == 0 and {x["exporter"] for x in summary["exporters"]} == {"file"}


@pytest.mark.parametrize("script", ["beside.sbatch", "nodes.sbatch"])
def test_the_collector_of_another_job_is_not_taken(new_job, script):
    """The second job of a node with the same ports says what is the matter and ends before its command starts; the first one sees nothing of it."""
    first, second = new_job(), new_job()
    second.env.update({name: value for name, value in first.env.items() if name.endswith("_PORT")})
    first.submit(sample(script), *JOB, first.folder, "signal", options=["--nodes=1", "--nodelist=n1"])
    first.wait_ready()
    second.submit(sample(script), *JOB, second.folder, "now", options=["--nodes=1", "--nodelist=n1"])
    assert second.end() == 1
    assert "address already in use" in second.log() and "no collector" in second.log(), second.log()
    assert not os.path.exists(os.path.join(second.folder, "ready-0")) and not second.sink.requests
    first.slurm.cancel(first.id, "--batch", "--signal=TERM")
    code = first.end()
    first.check()
    assert code == 7


COUNT = """\
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
open(sys.argv[1] + "/ready-0", "w").close()
signal.sigwait({signal.SIGTERM})
count = 1
while signal.sigtimedwait({signal.SIGTERM}, 1):
    count += 1
open(sys.argv[1] + "/signals", "w").write(f"{count}\\n")
"""


def test_a_signal_for_the_batch_script_reaches_the_command_once(new_job):
    jobs = {script: new_job() for script in SCRIPTS}
    for script, job in jobs.items():
        job.submit(sample(script), sys.executable, "-c", COUNT, job.folder, options=["--nodes=1"])
    for job in jobs.values():
        job.wait_ready()
        job.slurm.cancel(job.id, "--batch", "--signal=TERM")
    for script, job in jobs.items():
        assert job.end() == 0, (script, job.log())
        with open(os.path.join(job.folder, "signals"), encoding="ascii") as f:
            assert f.read() == "1\n", script


def test_cancelled_jobs(samples_of):
    """scancel: all processes get SIGTERM at the same moment, and what the command then sends still arrives."""
    jobs = samples_of("signal")
    for job in jobs.values():
        job.wait_ready()
        assert not job.arrived()
        job.cancel_in_background()
    for job in jobs.values():
        job.end()
        job.check()


def test_the_time_is_nearly_over(samples_of):
    """Slurm's --signal=B:TERM@60 reaches the batch script alone: the command ends first, then the collector."""
    jobs = samples_of("signal")
    for job in jobs.values():
        job.wait_ready()
        job.slurm.cancel(job.id, "--batch", "--signal=TERM")
    for script, job in jobs.items():
        code = job.end()
        job.check()
        assert code == 7, (script, job.log())


def test_no_collector_no_job(new_job):
    """A mistake in the configuration ends the job at once, before the command starts, and the log says which."""
    jobs = [new_job(), new_job()]
    for job, script in zip(jobs, ("beside.sbatch", "nodes.sbatch")):
        with open(os.path.join(job.folder, "collector.yaml"), "a", encoding="utf-8") as f:
            f.write("no_such_section: 1\n")
        with open(sample(script), encoding="utf-8") as f:
            text = f.read()
        # A configuration that the health check can read, so that it waits.
        changed = os.path.join(job.folder, script)
        with open(changed, "w", encoding="utf-8") as f:
            f.write(text.replace('health --wait 60s --config "$config" --set "$path"', f"health --wait 300s {job.env['OTLP_HEALTH_PORT']}"))
        assert text.count("--wait 60s") == 1
        job.submit(changed, *JOB, job.folder, "now", options=["--nodes=1"])
    for job in jobs:
        assert job.end() == 1
        assert "no_such_section" in job.log() and "no collector" in job.log() and not os.path.exists(os.path.join(job.folder, "ready-0"))


@pytest.mark.parametrize("collectors", ["node", "job"])
@pytest.mark.parametrize("how", ["now", "signal"])
def test_two_nodes(real_slurm, motel, tmp_path, collectors, how):
    """Two tasks on each of two nodes, a collector on each or one on the first; to the end, and cancelled."""
    job = Job(real_slurm, motel, tmp_path)
    try:
        job.submit(sample("nodes.sbatch"), *JOB, job.folder, how, options=["--nodes=2", "--ntasks-per-node=2"], env={"COLLECTORS": collectors})
        if how == "signal":
            job.wait_ready(4)
            real_slurm.cancel(job.id)
        code = job.end()
        job.check(tasks=4, nodes=("n1", "n2") if collectors == "node" else ("n1",))
        assert how == "signal" or code == 7, job.log()
        by_node = {n: len(f) for n, f in job.in_files().items()}
        assert by_node == ({"n1": 22, "n2": 22} if collectors == "node" else {"n1": 44})
    finally:
        job.sink.close()


def test_a_port_that_is_taken_on_the_second_node(real_slurm, motel, tmp_path):
    """One collector of two cannot start: the job ends at once."""
    first, second = Job(real_slurm, motel, tmp_path / "first"), Job(real_slurm, motel, tmp_path / "second")
    second.env.update({name: value for name, value in first.env.items() if name.endswith("_PORT")})
    try:
        first.submit(sample("beside.sbatch"), *JOB, first.folder, "signal", options=["--nodes=1", "--nodelist=n2"])
        first.wait_ready()
        with open(sample("nodes.sbatch"), encoding="utf-8") as f:
            text = f.read()
        patient = os.path.join(second.folder, "nodes.sbatch")
        with open(patient, "w", encoding="utf-8") as f:
            f.write(text.replace("--wait 60s", "--wait 600s"))
        assert text.count("--wait 60s") == 1
        second.submit(patient, *JOB, second.folder, "now", options=["--nodes=2", "--ntasks-per-node=1"])
        assert second.end() == 1
        assert "address already in use" in second.log() and "no collector" in second.log(), second.log()
        assert not any(n.startswith("ready-") for n in os.listdir(second.folder))
        real_slurm.cancel(first.id, "--batch", "--signal=TERM")
        code = first.end()
        first.check(nodes=("n2",))
        assert code == 7
    finally:
        first.sink.close()
        second.sink.close()


GYM_SCRIPT = """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --output=job-%j.log
mkdir -p logs
{start}
OTEL_COLLECTOR_PID=$!
for _i in $(seq 1 600); do
    curl -sf "{health}" > /dev/null 2>&1 && break
    kill -0 $OTEL_COLLECTOR_PID 2>/dev/null || {{ echo "otel_collector died during startup."; exit 1; }}
    sleep 0.1
done
env OTEL_EXPORTER_OTLP_ENDPOINT={otlp} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf srun --overlap --output=logs/driver-$SLURM_JOB_ID.log "$@"
DRIVER_RC=$?
pkill -TERM -u "$(id -un)" -f -- '^{pattern}' || true
for _i in $(seq 1 30); do kill -0 $OTEL_COLLECTOR_PID 2>/dev/null || break; sleep 1; done
kill -TERM $OTEL_COLLECTOR_PID 2>/dev/null || true
exit $DRIVER_RC
"""


def gym_script(job, motel):
    """Gym's own srun line and collector configuration, at free ports and in the job's folder; the driver's part is the test's."""
    with open(os.path.join(GYM, "a-default.aime25.collector-part.sh"), encoding="utf-8") as f:
        line = next(x for x in f.read().splitlines() if "srun" in x and "--config" in x)
    with open(os.path.join(GYM, "a-default.aime25.collector.yaml"), encoding="utf-8") as f:
        config = f.read()
    ports = {p: e2e.free_port() for p in ("13133", "4317", "4318", "8888")}
    for port in ("13133", "4317", "4318"):
        assert f"endpoint: 0.0.0.0:{port}\n" in config
        config = config.replace(f"endpoint: 0.0.0.0:{port}\n", f"endpoint: 0.0.0.0:{ports[port]}\n")
    config = re.sub(r"endpoint: http\S+", f"endpoint: {job.sink.address}", config)
    config = re.sub(r"path: /\S*/(\w+\.jsonl)", lambda m: f"path: {job.folder}/otel/{m[1]}", config)
    config = config.replace("  telemetry:\n", f"  telemetry:\n    metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {ports['8888']}}}}}}}}}]}}\n")
    os.makedirs(os.path.join(job.folder, "otel"))
    path = os.path.join(job.folder, "otel", "collector.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config)
    program, _, rest = re.search(r"log (\S+) --config (\S+)(.*)", line).groups()
    assert program == "otelcol-contrib" and rest == " &"
    start = re.sub(r"(log )\S+ --config \S+", lambda m: f"{m[1]}{os.path.abspath(motel)} --config {path}", line)
    script = os.path.join(job.folder, "gym.sbatch")
    with open(script, "w", encoding="utf-8") as f:
        f.write(GYM_SCRIPT.format(start=start, health=f"http://localhost:{ports['13133']}/", otlp=f"http://localhost:{ports['4318']}",
                                  pattern=re.escape(f"{os.path.abspath(motel)} --config {path}")))
    return script


@pytest.mark.parametrize("how", ["now", "signal"])
def test_the_line_of_gym(job, motel, how):
    """To its end; and cancelled in the middle, with MOTEL_STOP_DELAY from the submitting shell: the last batch arrives in both cases."""
    job.submit(gym_script(job, motel), *JOB, job.folder, how, env=None if how == "signal" else {"MOTEL_STOP_DELAY": ""})
    if how == "signal":
        job.wait_ready()
        job.slurm.cancel(job.id)
    code = job.end()
    names = sorted(x.name for s, m in job.sink.messages() if s == "traces" for _, _, x in e2e.records(s, m))
    assert names == sorted(SPANS), job.log()
    assert how == "signal" or code == 7, job.log()
    with open(os.path.join(job.folder, "logs", f"otel_collector-{job.id}.log"), encoding="utf-8") as f:
        log = f.read()
    assert "Shutdown complete." in log and TOKEN not in log, log[-3000:]


def test_a_misspelt_option_is_found(tmp_path, motel):
    """The programs in Slurm's place take no option that the real ones do not know."""
    d = Doubles(tmp_path / "doubles")
    broken = tmp_path / "broken.sbatch"
    broken.write_text(open(sample("run.sbatch"), encoding="utf-8").read().replace("#SBATCH --ntasks=1", "#SBATCH --ntask=1"))
    with pytest.raises(subprocess.CalledProcessError) as e:
        d.submit(str(tmp_path), {"MOTEL": motel}, [str(broken), "true"])
    assert "unrecognized option '--ntask'" in e.value.stderr
