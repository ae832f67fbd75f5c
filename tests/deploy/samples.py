"""Finds what a reader of the repository may copy (configurations, manifests, units, scripts, blocks of the pages) by what it is."""
import html
import os
import re
import subprocess
from dataclasses import dataclass, field

import yaml

from support import ROOT

FOLDERS = ("deploy", "docs")
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md")
SECTIONS = {"receivers", "processors", "exporters", "connectors", "extensions", "service", "motel"}
UNITS = (".service", ".socket", ".timer", ".path", ".mount", ".target")
SHELLS = re.compile(r"^#!.*\b(ba)?sh\b")
# Words at which a block of a page that does not name its language is one of commands, beside the programs of this machine.
COMMANDS = {
    "motel", "gym", "docker", "podman", "buildah", "skopeo", "enroot", "crun", "kubectl", "helm", "sbatch", "srun", "salloc", "scontrol",
    "squeue", "pip", "pipx", "uv", "uvx", "systemctl", "journalctl", "systemd-analyze", "systemd-run", "dpkg", "apt", "apt-get", "sudo",
    "curl", "wget", "jq", "git", "meson", "ninja", "export", "cd", "perf", "strace", "valgrind", "openssl", "python", "python3", "otelcol-contrib",
    "grep", "man", "cp", "mkdir", "chmod", "sha256sum", "install", "tests/run", "kill", "rm", "cat", "promtool", "squashfs", "mksquashfs", "tar",
}


@dataclass
class Sample:
    """One thing to check. `wrong`: the page shows it as a mistake, and it must be refused. `at`: where in a configuration it belongs."""
    kind: str                   # config, yaml, gym, shell, synopsis, json, lines, toml, ini, unit, dockerfile, python, markdown
    where: str                  # path of the file in the repository, and the line of a block
    text: str
    wrong: bool = False
    at: str = ""
    whole: bool = False         # of a configuration: nothing may be missing
    notes: dict = field(default_factory=dict)


def files():
    """Paths below the root, of files that are (or may be) under version control."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "--", *FOLDERS, *PAGES],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:
        names = list(PAGES)
        for folder in FOLDERS:
            for at, _, here in os.walk(os.path.join(ROOT, folder)):
                names += [os.path.relpath(os.path.join(at, n), ROOT) for n in here]
    return sorted({n for n in names if os.path.isfile(os.path.join(ROOT, n))})


def read(name):
    with open(os.path.join(ROOT, name), "rb") as f:
        data = f.read()
    return None if b"\0" in data else data.decode("utf-8", "replace")


def documents(text):
    """The YAML documents of a text, or None when it is no YAML."""
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError):
        return None


def top_keys(document):
    return {str(k).split("::")[0] for k in document} if isinstance(document, dict) else set()


def is_whole(document):
    """A configuration that is meant to run as it stands: every pipeline says where its data comes from and goes to."""
    if not {"receivers", "exporters", "service"} <= top_keys(document):
        return False
    service = document.get("service")
    pipelines = service.get("pipelines") if isinstance(service, dict) else None
    return bool(pipelines) and all(isinstance(p, dict) and {"receivers", "exporters"} <= set(p) for p in pipelines.values())


def strings(node, path=""):
    """Every text in a YAML document, with its path."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from strings(value, f"{path}::{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from strings(value, f"{path}[{i}]")
    elif isinstance(node, str):
        yield path, node


def embedded(where, text):
    """Configurations that stand as texts in another document (ConfigMap, compose), or in a script's here-document."""
    docs = documents(text)
    docs = docs if docs and len(docs) == 1 else []
    if docs and top_keys(docs[0]) & SECTIONS:
        return [Sample("config", where, text, whole=is_whole(docs[0]))]
    if docs and top_keys(docs[0]) == {"telemetry"}:
        return [Sample("gym", where, text)]
    return []


def arguments(node):
    """Command lines of containers and of their checks: lists below `command`, `args`, `entrypoint` and `test`."""
    if isinstance(node, dict):
        words = []
        for key in ("entrypoint", "command", "args"):
            value = node.get(key)
            words += [str(v) for v in value] if isinstance(value, list) else []
        if words and re.search(r"\bmotel\b", str(node.get("image", ""))) and words[0].startswith("-"):
            words = ["motel", *words]               # arguments of the image's own program
        if words:
            yield words
        test = node.get("test")
        if isinstance(test, list) and len(test) > 1:
            yield [str(w) for w in test[1:]]
        for value in node.values():
            yield from arguments(value)
    elif isinstance(node, list):
        for value in node:
            yield from arguments(value)


def of_yaml(where, text):
    """The samples in a YAML file or block."""
    docs = documents(text)
    if docs is None:
        return [Sample("yaml", where, text)]            # the check says what is wrong
    if len(docs) == 1 and (top_keys(docs[0]) & SECTIONS) and "services" not in top_keys(docs[0]):
        return [Sample("config", where, text, whole=is_whole(docs[0]))]
    if len(docs) == 1 and top_keys(docs[0]) == {"telemetry"}:
        return [Sample("gym", where, text)]
    commands = [c for d in docs for c in arguments(d)]
    found = [Sample("yaml", where, text, notes={"commands": [c for c in commands if os.path.basename(c[0]) == "motel"]})]
    for words in commands:
        if os.path.basename(words[0]) in ("sh", "bash") and words[1:2] == ["-c"]:
            found += of_shell(f"{where}#shell", words[-1])
    for i, doc in enumerate(docs):
        compose = "services" in top_keys(doc)
        for path, value in strings(doc):
            value = value.replace("$$", "$") if compose else value
            found += embedded(f"{where}#{i}{path}", value) if "\n" in value else []
    return found


HERE_DOCUMENT = re.compile(r"<<(-?)\s*(['\"\\]?)(\w+)['\"]?[^\n]*\n(.*?)^(\t*)\3[ \t]*$", re.M | re.S)


def expanded(text):
    """What the shell makes of an unquoted here-document in which every variable is 1."""
    names = set(re.findall(r"(?<!\\)\$\{?([A-Za-z_]\w*)", text))
    run = subprocess.run(["bash", "-c", f"cat <<'X_END_X' >/dev/null\nX_END_X\ncat <<X_END_X\n{text}X_END_X\n"], capture_output=True, text=True,
                         env={"PATH": os.environ["PATH"], **{n: "1" for n in names}}, check=False)
    return run.stdout


def of_shell(where, text):
    """A script and the configurations in its here-documents."""
    found = [Sample("shell", where, text)]
    for m in HERE_DOCUMENT.finditer(text):
        body = re.sub(r"^\t+", "", m[4], flags=re.M) if m[1] else m[4]
        line = text.count("\n", 0, m.start(4)) + 1
        found += embedded(f"{where}#here-document@{line}", body if m[2] else expanded(body))
    return found


def of_block(where, language, text, note):
    """The samples in one block of a page. Without a language its text says what it is."""
    at = note[len("at "):] if note.startswith("at ") else ""
    wrong = note.startswith("wrong")
    if wrong and note != "wrong":
        at = note[len("wrong at "):]
    if note == "text" or language in ("text", "c", "promql", "diff"):
        return []
    if language in ("yaml", "yml") or (not language and looks_like_yaml(text, at)):
        found = of_yaml(where, text)
        if found[0].kind == "yaml" and (at or not found[0].notes.get("commands")):
            found = [Sample("config", where, text)] if at or not foreign(text) else found
    elif language in ("console", "sh", "bash", "shell") or (not language and looks_like_commands(text)):
        found = of_shell(where, commands_of(text))
    elif not language and re.search(r"^motel .*\[--", text, re.M):
        found = [Sample("synopsis", where, text)]
    elif language == "json":
        found = [Sample("json", where, text)]
    elif language in ("toml", "ini", "python", "dockerfile"):
        found = [Sample(language, where, text)]
    elif language == "systemd":
        found = [Sample("unit", where, text, notes={"name": "sample.service"})]
    elif language:
        found = [Sample("unknown", where, text, notes={"language": language})]
    else:
        found = []
    for sample in found:
        sample.at, sample.wrong = at, wrong
    return found


def foreign(text):
    """YAML of other programs: Kubernetes, compose, Prometheus, ..."""
    others = {"apiVersion", "kind", "services", "scrape_configs", "otel", "env", "spec", "containers", "livenessProbe", "readinessProbe", "startupProbe",
              "volumes", "securityContext", "resources", "data", "stringData"}
    return any(top_keys(d) & others for d in documents(text) or [])


def looks_like_yaml(text, at):
    docs = documents(text)
    if not docs or not isinstance(docs[0], dict):
        return bool(at)
    return bool(at or top_keys(docs[0]) & (SECTIONS | {"telemetry"}) or foreign(text))


def commands_of(text):
    """Of a console session the commands; of anything else all of it."""
    lines = text.split("\n")
    if not any(line.startswith("$ ") for line in lines):
        return text
    kept, going_on = [], False
    for line in lines:
        if line.startswith("$ ") or (going_on and line.startswith("> ")):
            kept.append(line[2:])
        elif going_on:
            kept.append(line)
        else:
            continue
        going_on = kept[-1].endswith("\\")
    return "\n".join(kept) + "\n"


def looks_like_commands(text):
    lines = [line for line in commands_of(text).split("\n") if line.strip() and not line.startswith(("#", " "))]
    first = re.sub(r"^(\w+=\S*\s+)*", "", lines[0]).split() if lines else []
    return bool(first) and "[--" not in text and (first[0] in COMMANDS or first[0].startswith(("./", "build/", "deploy/", "tests/")))


FENCE = re.compile(r"^( *)(```+|~~~+)\s*([\w+-]*)\s*$")
NOTE = re.compile(r"<!--\s*sample:\s*(.*?)\s*-->")


def blocks(text):
    """(line, language, text, note) of every block of a page; the note is what a comment `<!-- sample: NOTE -->` before it says."""
    lines, i, note = text.split("\n"), 0, ""
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if fence:
            end = next((j for j in range(i + 1, len(lines)) if lines[j].strip() == fence[2]), len(lines))
            indent = len(fence[1])
            yield i + 1, fence[3].lower(), "\n".join(line[indent:] for line in lines[i + 1:end]) + "\n", note
            i, note = end + 1, ""
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()) and not in_list(lines, i):
            end = next((j for j in range(i, len(lines)) if lines[j].strip() and not lines[j].startswith("    ")), len(lines))
            yield i + 1, "", "\n".join(line[4:] for line in lines[i:end]).rstrip("\n") + "\n", note
            i, note = end, ""
        else:
            comment = NOTE.search(lines[i])
            note = html.unescape(comment[1]) if comment else note if not lines[i].strip() else ""
            i += 1


def in_list(lines, i):
    """Whether an indented line belongs to a list entry above it."""
    for line in reversed(lines[:i]):
        if line.strip() and not line.startswith(" "):
            return bool(re.match(r"([-*+]|\d+[.)]) ", line))
    return False


def of_page(name, text):
    found = [Sample("markdown", name, text)]
    for line, language, block, note in blocks(text):
        found += of_block(f"{name}:{line}", language, block, note)
    return found


def of_file(name):
    text = read(name)
    base, ending = os.path.basename(name), os.path.splitext(name)[1]
    if text is None:
        return []
    if ending == ".md":
        return of_page(name, text)
    if ending in (".yaml", ".yml"):
        return of_yaml(name, text)
    if ending in (".sh", ".bash", ".sbatch", ".slurm") or SHELLS.match(text):
        return of_shell(name, text)
    if ending in UNITS:
        return [Sample("unit", name, text, notes={"name": base})]
    if re.fullmatch(r"(Docker|Container)file(\.\w+)?(?<!ignore)", base) or ending == ".dockerfile":
        return [Sample("dockerfile", name, text)]
    if ending in (".json", ".toml", ".ini", ".cfg", ".py"):
        return [Sample({".cfg": "ini", ".py": "python"}.get(ending, ending[1:]), name, text)]
    if re.match(r"^#!.*\bpython", text):
        return [Sample("python", name, text)]
    return []


def all_samples():
    return [sample for name in files() for sample in of_file(name)]
