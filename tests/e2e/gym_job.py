"""What a submitted NeMo Gym job gives to its collector: the rendered files of tests/golden/gym-config, as they are or moved to free ports."""
import os
import re

from conftest import ROOT, free_port

FOLDER = os.path.join(ROOT, "tests", "golden", "gym-config")
NAMES = sorted(n[:-len(".collector.yaml")] for n in os.listdir(FOLDER) if n.endswith(".collector.yaml"))
JOB_ID = "0012345"


def path_of(name, suffix=".collector.yaml"):
    return os.path.join(FOLDER, name + suffix)


def load(name, suffix=".collector.yaml"):
    with open(path_of(name, suffix), encoding="utf-8") as f:
        return f.read()


def token_variable(text):
    """The variable that the file takes its ingest token from."""
    return re.search(r"Authorization: Bearer \$\{env:(\w+)\}", text).group(1)


def moved(text, folder, backend):
    """The file with free ports, its outputs in `folder`, `backend` as managed endpoint and short intervals; nothing else is changed. Returns it and
    the ports by what they were."""
    ports = {p: free_port() for p in ("13133", "4317", "4318", "8888")}
    for port in ("13133", "4317", "4318"):
        text = text.replace(f"endpoint: 0.0.0.0:{port}\n", f"endpoint: 127.0.0.1:{ports[port]}\n")
    text = re.sub(r"- localhost:\d+\n", lambda _: f"- localhost:{free_port()}\n", text)
    text = re.sub(r"endpoint: http\S+", f"endpoint: {backend}", text)
    text = re.sub(r"path: /\S*/(\w+\.jsonl)", lambda m: f"path: {os.path.join(str(folder), m.group(1))}", text)
    text = re.sub(r"(scrape_interval|metrics_flush_interval): \d+s", r"\1: 1s", text)
    page = f"    metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {ports['8888']}}}}}}}}}]}}\n"
    return text.replace("  telemetry:\n", "  telemetry:\n" + page), ports

