"""No privileges are needed: an ordinary user without any capability, on a file system that is read-only but for motel's own folder."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import MOTEL, connects, count_spans, free_port, post, span_request, wait_until

# In a mount namespace of its own: everything is read-only but the folder, then privileges are given up.
SCRIPT = r"""
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
awk '{print $2}' /proc/mounts | sort -u | while read -r place; do
    case "$place" in "$1" | /proc | /proc/* | /dev | /dev/* | /sys | /sys/*) ;; *) mount -o remount,ro,bind "$place" 2>/dev/null || true ;; esac
done
cd "$1"
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all sh -c '
    if touch /tmp/motel-read-only-check 2>/dev/null; then echo "the file system is not read-only" >&2; exit 99; fi
    exec "$0" --config config.yaml' "$2"
"""


def namespaces_work():
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        return False
    r = subprocess.run(["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /mnt && mount -o remount,ro,bind /mnt"],
                       capture_output=True, check=False)
    return r.returncode == 0


@pytest.fixture
def place():
    """A folder that other users may enter; pytest's own are for their owner only."""
    with tempfile.TemporaryDirectory(prefix="motel-unprivileged-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.mark.plain_only
@pytest.mark.skipif(not namespaces_work(), reason="needs root, unshare and setpriv, to give privileges up")
def test_as_nobody_on_a_read_only_file_system(place):
    folder = place / "own"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    program = place / "motel"                       # where nobody may reach it
    shutil.copy(MOTEL, program)
    program.chmod(0o755)
    http, health = free_port(), free_port()
    (folder / "config.yaml").write_text(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{http}"}}}}}}}}
exporters: {{file: {{path: out.jsonl}}}}
extensions: {{health_check: {{endpoint: "127.0.0.1:{health}"}}}}
service:
  extensions: [health_check]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
""")
    with open(place / "stderr", "wb") as log:
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(folder), str(program)], stderr=log)
    try:
        wait_until(lambda: connects(http) or process.poll() is not None, what="the receiver")
        assert process.poll() is None, (place / "stderr").read_text()
        assert post(http, "traces", span_request(10))[0] == 200
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            status = dict(line.split(":\t") for line in f.read().splitlines() if ":\t" in line)
        assert status["Uid"].split() == ["65534"] * 4 and int(status["CapEff"], 16) == 0
        process.terminate()
        assert process.wait(60) == 0, (place / "stderr").read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert count_spans(json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()) == 10
