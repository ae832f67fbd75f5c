"""The gym_memory receiver on live processes, held against psutil."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

import conftest
from conftest import free_port, value_of

# A process that obeys: "fork N KIB" makes N children that hold KIB each, "grow KIB" makes it larger, "kill N" ends N children; each line is
# answered when it is done. With the argument "busy" it makes and ends children all the time instead.
TREE = r"""
import os, random, signal, sys, time
children, held = [], []
def touch(kib):
    block = bytearray(kib << 10)
    block[::4096] = b"x" * len(block[::4096])
    return block
def fork(kib):
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        held.append(touch(kib))
        os.write(done, b"x")
        while True: signal.pause()
    os.close(done); os.read(ready, 1); os.close(ready)
    children.append(pid)
def kill(pid):
    children.remove(pid); os.kill(pid, 9); os.waitpid(pid, 0)
if sys.argv[1:] == ["busy"]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        fork(random.randrange(100, 3000))
        if len(children) > 8: kill(random.choice(children))
        time.sleep(random.random() * 0.02)
for line in sys.stdin:
    verb, *numbers = line.split(); numbers = [int(n) for n in numbers]
    if verb == "fork":
        for _ in range(numbers[0]): fork(numbers[1])
    elif verb == "grow":
        held.append(touch(numbers[0]))
    elif verb == "kill":
        for _ in range(numbers[0]): kill(random.choice(children))
    print("done", flush=True)
"""


def wait_until(condition, what, limit=60):
    return conftest.wait_until(condition, limit=limit, what=what)


class Tree:
    """A running TREE in a process group of its own."""

    def __init__(self, *args):
        self.process = subprocess.Popen([sys.executable, "-c", TREE, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.pid = self.process.pid

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def tree():
    """tree() runs a TREE until the end of the test."""
    made = []

    def make(*args):
        made.append(Tree(*args))
        return made[-1]
    yield make
    for t in made:
        t.end()


@pytest.fixture
def memory(start, http_sink):
    """memory(keys) starts the receiver with an HTTP backend behind it; (program, samples()), each sample {(metric, server, memory type): point}."""
    def run(keys):
        sink = http_sink()
        program = start(f"""
receivers: {{gym_memory: {keys}}}
exporters: {{otlp_http: {{endpoint: "{sink.url}", compression: none}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [gym_memory], exporters: [otlp_http]}}}}
""")
        return program, lambda: [sample_of(m) for _, m in sink.messages()]
    return run


def sample_of(message):
    points = {}
    for r in message.resource_metrics:
        for s in r.scope_metrics:
            assert s.scope.name == "nemo.lens"
            for m in s.metrics:
                for p in m.gauge.data_points:
                    attributes = {a.key: value_of(a.value) for a in p.attributes}
                    points["time"] = p.time_unix_nano / 1e9
                    points[m.name, attributes.get("nemo.gym.server.name"), attributes.get("memory.type")] = (p.as_int, attributes)
    return points


def measured(sample, name, kind=None, server="s"):
    return sample[name, server, kind][0]


def usage(sample, server="s"):
    return tuple(measured(sample, "gym.server.memory.usage", k, server) for k in ("rss", "pss")) + (measured(sample, "gym.server.processes", None, server),)


def by_psutil(pid):
    """(rss, pss, processes) of a process and all below it."""
    rss = pss = n = 0
    root = psutil.Process(pid)
    for p in [root] + root.children(recursive=True):
        try:
            m = p.memory_full_info()
        except psutil.Error:
            continue
        rss, pss, n = rss + m.rss, pss + m.pss, n + 1
    return rss, pss, n


def about(a, b, processes):
    """psutil takes RSS from counters that the kernel keeps for each CPU; other programs on the machine share pages and so change the PSS."""
    return abs(a - b) <= 0.03 * max(a, b) + 300e3 * processes


def assert_same(sample, wanted):
    got = usage(sample)
    assert got[2] == wanted[2], (got, wanted)
    assert about(got[0], wanted[0], got[2]) and about(got[1], wanted[1], got[2]), (got, wanted)


def newer(samples, than):
    """The first sample that began after that time. They bear the time of their end, so that is the second of those."""
    return wait_until(lambda: [s for s in samples() if s["time"] > than][1:2], what="a sample")[0]


def test_a_tree_that_changes_is_right_one_sample_later(memory, tree):
    t = tree()
    program, samples = memory(f"{{interval: 200ms, servers: [{{name: s, type: t, pids: [{t.pid}]}}]}}")
    wait_until(samples, what="the first sample")
    for line in ("fork 5 2000", "kill 2", "grow 30000", "fork 3 20000", "kill 4", "fork 10 100", "kill 12", "grow 5000"):
        t.tell(line)
        wanted, n = by_psutil(t.pid), time.time()
        sample = newer(samples, n)
        assert_same(sample, wanted)
    t.end()
    n = time.time()
    sample = newer(samples, n)
    assert usage(sample) == (0, 0, 0)
    assert program.stop() == 0
    for kind in ("rss", "pss"):
        peaks = [measured(s, "gym.server.memory.sampled_peak", kind) for s in samples()]
        values = [measured(s, "gym.server.memory.usage", kind) for s in samples()]
        assert peaks == [max(values[:i + 1]) for i in range(len(values))]


def test_processes_that_come_and_go_all_the_time(memory, tree):
    """
    There are ten processes at most, and neither motel nor psutil sees all of them at one moment. So what is compared is the memory of one
    process: a sample is as many of it as it has processes, but for those that begin or end just then.
    """
    t = tree("busy")
    seen, stop = [], threading.Event()

    def watch():
        while not stop.is_set():
            seen.append(by_psutil(t.pid))
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    _, samples = memory(f"{{interval: 300ms, servers: [{{name: s, pids: [{t.pid}]}}]}}")
    wait_until(lambda: len(samples()) > 12, what="a dozen samples")
    stop.set()
    watcher.join()
    rss, pss = (sorted(v[i] / v[2] for v in seen)[len(seen) // 2] for i in (0, 1))
    for s in samples()[1:-2]:
        got_rss, got_pss, n = usage(s)
        assert 1 <= n <= 12
        assert 0.5 * rss * (n - 3) <= got_rss <= 1.6 * rss * n, (got_rss, rss, n)
        assert 0.3 * pss * (n - 3) <= got_pss <= 2.5 * pss * n and got_pss < got_rss, (got_pss, pss, n)
        assert s["gym.server.memory.usage", "s", "rss"][1] == {"nemo.gym.server.name": "s", "process.pid": t.pid, "memory.type": "rss"}
    assert max(usage(s)[2] for s in samples()) >= 8


def test_the_first_and_the_last_sample(memory, tree):
    t = tree()
    t.tell("fork 3 1000")
    program, samples = memory(f"{{interval: 1h, servers: [{{name: s, type: t, pids: [{t.pid}]}}]}}")
    first = wait_until(samples, what="the first sample")[0]
    assert_same(first, by_psutil(t.pid))
    t.tell("fork 2 30000")
    t.tell("kill 4")
    wanted = by_psutil(t.pid)
    assert program.stop() == 0
    assert len(samples()) == 2
    assert_same(samples()[1], wanted)


def test_the_host(memory):
    before = psutil.virtual_memory()
    _, samples = memory("{interval: 1h}")
    sample = wait_until(samples, what="the first sample")[0]
    after = psutil.virtual_memory()
    total, available, used, peak = (sample["gym.host.memory." + n, None, None] for n in ("total", "available", "usage", "sampled_peak"))
    assert total == (before.total, {}) and used == peak == (total[0] - available[0], {})
    slack = 0.1 * total[0] + abs(before.available - after.available)  # other programs come and go
    assert min(before.available, after.available) - slack <= available[0] <= max(before.available, after.available) + slack


SERVER = 'import subprocess, sys, time; subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]); print("up", flush=True); time.sleep(60)'
GYM = r"""
import os, subprocess, sys
config = "agent:\n  responses_api_agents:\n    simple_agent: {entrypoint: app.py}\nmodel:\n  responses_api_models:\n    openai_model: {entrypoint: app.py}\n"
shells = []
def start(name):
    # as Gym does it: through a shell, the whole config in the environment, another program behind the output
    command = f"true && NEMO_GYM_CONFIG_DICT='{config}' \\\n    NEMO_GYM_CONFIG_PATH={name} {sys.executable} -c '{sys.argv[1]}' > >(cat)"
    p = subprocess.Popen(command, shell=True, executable="/bin/bash", stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    return p
for line in sys.stdin:
    verb, name = line.split()
    if verb == "start":
        shells.append(start(name)); print(shells[-1].pid, flush=True)
    else:
        p = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env={**os.environ, "NEMO_GYM_CONFIG_PATH": name}, stdout=subprocess.PIPE, text=True)
        p.stdout.readline(); print(p.pid, flush=True)
"""


@pytest.fixture
def gym():
    p = subprocess.Popen([sys.executable, "-c", GYM, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def start(how, name):
        p.stdin.write(f"{how} {name}\n")
        p.stdin.flush()
        return int(p.stdout.readline())
    start.pid = p.pid
    yield start
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()


def test_servers_are_found_as_gym_starts_them(memory, gym):
    agent = gym("start", "agent")
    _, samples = memory(f"{{interval: 200ms, discover: {{root_pid: {gym.pid}}}}}")
    sample = wait_until(samples, what="the first sample")[0]
    who = {"nemo.gym.server.name": "agent", "nemo.gym.server.type": "responses_api_agents", "process.pid": agent}
    rss, pss, n = by_psutil(agent)
    assert sample["gym.server.processes", "agent", None] == (n, who)
    assert about(sample["gym.server.memory.usage", "agent", "rss"][0], rss, n) and about(sample["gym.server.memory.usage", "agent", "pss"][0], pss, n)
    model, other = gym("start", "model"), gym("plain", "other")
    sample = newer(samples, time.time())
    assert sample["gym.server.processes", "agent", None] == (n, who)
    assert sample["gym.server.processes", "model", None] == (n, {"nemo.gym.server.name": "model", "nemo.gym.server.type": "responses_api_models", "process.pid": model})
    assert sample["gym.server.processes", "other", None] == (2, {"nemo.gym.server.name": "other", "process.pid": other})
    for p in [psutil.Process(agent)] + psutil.Process(agent).children(recursive=True):
        p.kill()
    psutil.wait_procs(psutil.Process(agent).children(recursive=True), 5)
    sample = wait_until(lambda: next((s for s in samples()[-1:] if s["gym.server.memory.usage", "agent", "rss"][0] == 0), None), what="the end of the server")
    again = gym("start", "agent")
    sample = newer(samples, time.time())
    assert sample["gym.server.processes", "agent", None] == (n, {**who, "process.pid": again})


def test_a_program_that_becomes_a_server(memory):
    """A process that was there before and executes the server later."""
    shell = subprocess.Popen(["/bin/sh", "-c", f"read x; export NEMO_GYM_CONFIG_PATH=late; exec sleep 60"], stdin=subprocess.PIPE)
    named = subprocess.Popen(["/bin/sh", "-c", "read x; exec sleep \"$x\""], stdin=subprocess.PIPE)
    try:
        seconds = 60 + free_port() / 1e6
        _, samples = memory(f"{{interval: 100ms, discover: {{root_pid: {shell.pid}}}, servers: [{{name: p, command_pattern: '^sleep {seconds}$'}}]}}")
        wait_until(lambda: len(samples()) > 2, what="some samples")
        assert not any("late" in k or "p" in k for s in samples() for k in s)
        shell.stdin.write(b"\n")
        named.stdin.write(f"{seconds}\n".encode())
        shell.stdin.close(), named.stdin.close()
        wait_until(lambda: all(psutil.Process(p.pid).name() == "sleep" for p in (shell, named)), what="both programs")
        sample = newer(samples, time.time() + 0.2)
        assert sample["gym.server.processes", "late", None] == (1, {"nemo.gym.server.name": "late", "process.pid": shell.pid})
        assert sample["gym.server.processes", "p", None] == (1, {"nemo.gym.server.name": "p", "process.pid": named.pid})
    finally:
        for p in (shell, named):
            p.kill()
            p.wait()


def test_without_smaps_rollup_there_is_rss_only(memory, tmp_path, tree):
    """A copy of the /proc of a live tree in which one smaps_rollup is left out."""
    t = tree()
    t.tell("fork 3 1000")
    pids = [t.pid] + [p.pid for p in psutil.Process(t.pid).children(recursive=True)]
    rss = 0
    for pid in pids:
        copy = tmp_path / "proc" / str(pid)
        for name in ("stat", "statm", "cmdline", f"task/{pid}/children", "smaps_rollup"):
            os.makedirs((copy / name).parent, exist_ok=True)
            shutil.copyfile(f"/proc/{pid}/{name}", copy / name)
        if pid == pids[2]:
            (copy / "smaps_rollup").unlink()
            rss += int((copy / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        else:
            words = (copy / "smaps_rollup").read_text().split()
            rss += int(words[words.index("Rss:") + 1]) * 1024
    shutil.copyfile("/proc/meminfo", tmp_path / "proc/meminfo")
    _, samples = memory(f"{{interval: 1h, root_path: {tmp_path}, servers: [{{name: s, type: t, pids: [{t.pid}]}}]}}")
    sample = wait_until(samples, what="the first sample")[0]
    assert measured(sample, "gym.server.memory.usage", "rss") == rss and measured(sample, "gym.server.processes") == 4
    assert not any(k[2] == "pss" for k in sample if k != "time")


def test_root_path_of_a_mounted_proc(memory, tree, tmp_path):
    """Where a container sees its host: the same as without."""
    t = tree()
    t.tell("fork 2 500")
    os.symlink("/proc", tmp_path / "proc")
    _, samples = memory(f"{{interval: 1h, root_path: {tmp_path}, servers: [{{name: s, type: t, pids: [{t.pid}]}}]}}")
    assert_same(wait_until(samples, what="the first sample")[0], by_psutil(t.pid))


CROWD = r"""
import os, signal
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        for _ in range(49):
            if os.fork() == 0: break
        while True: signal.pause()
    print(pid, flush=True)
print("up", flush=True)
while True: signal.pause()
"""


def cpu_ns(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


def look_ns():
    """CPU time of this program to read as little as a line of 1000 processes: what a machine is worth at this moment."""
    before = time.process_time_ns()
    for _ in range(5):
        for _ in range(1000):
            with open("/proc/self/stat", "rb") as f:
                f.read()
    return (time.process_time_ns() - before) / 5


@pytest.mark.plain_only
def test_a_thousand_processes_cost_less_than_one_percent(memory):
    crowd = subprocess.Popen([sys.executable, "-c", CROWD], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        pids = [int(line) for line in iter(crowd.stdout.readline, "up\n")]
        wait_until(lambda: len(psutil.Process(crowd.pid).children(recursive=True)) == 1000, what="a thousand processes")
        servers = ", ".join(f"{{name: s{i}, type: t, pids: [{p}]}}" for i, p in enumerate(pids))
        program, samples = memory(f"{{interval: 1s, servers: [{servers}]}}")
        wait_until(lambda: len(samples()) >= 3, what="three samples")
        figures = []
        for _ in range(4):
            before, at = cpu_ns(program.pid), time.monotonic()
            n = len(samples())
            wait_until(lambda: len(samples()) >= n + 4, what="four samples")
            figures.append((cpu_ns(program.pid) - before) / (time.monotonic() - at) / 1e9)
        last = samples()[-1]
        assert [measured(last, "gym.server.processes", None, f"s{i}") for i in range(20)] == [50] * 20
        print("share of a core:", figures, "one look by Python:", look_ns() / 1e9)
        assert min(figures) < max(0.01, look_ns() / 1e9), figures
        assert len(os.listdir(f"/proc/{program.pid}/fd")) < 1100
    finally:
        os.killpg(crowd.pid, signal.SIGKILL)
        crowd.wait()
