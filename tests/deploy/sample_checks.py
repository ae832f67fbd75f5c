"""Checks of samples: each takes a sample and returns what is wrong with it, or "". The program decides about its own configurations."""
import ast
import configparser
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib

import yaml

from samples import HERE_DOCUMENT, SECTIONS, blocks, documents, read, top_keys
from support import ROOT, e2e

KINDS = ("receivers", "processors", "exporters", "connectors", "extensions")
# The least that a component which a fragment only names must be told.
LEAST = {
    "receivers": {"otlp": {"protocols": {"grpc": None, "http": None}}, "prometheus": {"config": {"scrape_configs": [
        {"job_name": "a", "static_configs": [{"targets": ["127.0.0.1:1"]}]}]}}},
    "processors": {"resource": {"attributes": [{"key": "a", "value": "b", "action": "upsert"}]},
                   "attributes": {"actions": [{"key": "a", "value": "b", "action": "upsert"}]},
                   "memory_limiter": {"check_interval": "1s", "limit_mib": 100}},
    "exporters": {"otlp_http": {"endpoint": "http://127.0.0.1:1"}, "otlphttp": {"endpoint": "http://127.0.0.1:1"},
                  "otlp_grpc": {"endpoint": "127.0.0.1:1"}, "otlp": {"endpoint": "127.0.0.1:1"}, "file": {"path": "x.jsonl"}},
    "extensions": {"bearertokenauth": {"token": "placeholder"}},
}


def motel(*args, env=None, folder=None):
    return subprocess.run([e2e.MOTEL, *args], capture_output=True, text=True, timeout=60, cwd=folder, stdin=subprocess.DEVNULL,
                          env={"PATH": os.environ["PATH"], **(env or {})}, check=False)


@functools.cache
def component_signals():
    """{kind: {type: signals}} of what the program has, aliases too."""
    known = yaml.safe_load(motel("components").stdout)
    found = {kind: {} for kind in KINDS}
    for kind in KINDS:
        for c in known[kind]:
            signals = {s for s in ("traces", "metrics", "logs") if (c.get("stability") or {}).get(s, "Undefined") != "Undefined"}
            for name in [c["name"], *(c.get("aliases") or [])]:
                found[kind][name] = signals or {"traces", "metrics", "logs"}
    return found


def tree_of(text):
    """A configuration as nested maps, `a::b` unfolded. Good enough to see what it defines."""
    tree = {}

    def put(into, key, value):
        first, _, rest = str(key).partition("::")
        if rest:
            put(into.setdefault(first, {}) or {}, rest, value)
        elif isinstance(value, dict):
            into[first] = into.get(first) or {}
            for k, v in value.items():
                put(into[first], k, v)
        else:
            into[first] = value
    for key, value in ((documents(text) or [{}])[0] or {}).items():
        put(tree, key, value)
    return tree


def placed(text, path):
    """The text as it would stand at a::b of a configuration."""
    for level in reversed(path.split("::")):
        text = f"{level}:\n" + "".join(f"  {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return text


def places(text, where):
    """Where a fragment that does not begin with a section may belong."""
    keys = top_keys(tree_of(text))
    types = {k.split("/")[0] for k in keys}
    page = re.match(r"docs/(receiver|processor|exporter|connector|extension)s/([a-z_]+)\.md", where)
    if page:
        yield from (f"{page[1]}s::{page[2]}", f"{page[1]}s::{page[2]}::protocols")
    for kind in KINDS:
        if types and types <= set(component_signals()[kind]):
            yield kind
    if types <= {"traces", "metrics", "logs"}:
        yield "service::pipelines"
    if keys <= {"telemetry", "pipelines", "extensions"}:
        yield "service"
    yield from ("exporters::otlp_http", "exporters::otlp_grpc", "motel")


def wanted_extensions(node, server):
    """(id, configuration) of the extensions that components refer to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("storage", "authenticator") and isinstance(value, str):
                kind = value.split("/")[0]
                side = {"htpasswd": {"inline": "a:b"}} if server else {"client_auth": {"username": "a", "password": "b"}}
                yield value, side if kind == "basicauth" else LEAST["extensions"].get(kind)
            yield from wanted_extensions(value, server)
    elif isinstance(node, list):
        for value in node:
            yield from wanted_extensions(value, server)


def skeleton(text, of=("traces", "metrics", "logs")):
    """What a fragment lacks to be a configuration with pipelines of these signals, as a second one to merge with it."""
    tree, signals = tree_of(text), component_signals()
    add = {kind: {} for kind in KINDS}
    service = tree.get("service") or {}
    pipelines = service.get("pipelines") or {}
    extra = {}

    def has(kind, name):
        return name in (tree.get(kind) or {})

    def need(kind, name):
        if not has(kind, name) and not has("connectors", name) and name.split("/")[0] in signals[kind]:
            add[kind][name] = LEAST[kind].get(name.split("/")[0])
    for signal, pipeline in pipelines.items():
        lacking = {kind: ["nop"] for kind in ("receivers", "exporters") if not (pipeline or {}).get(kind)}
        if lacking:
            extra[signal] = lacking
            add["receivers"]["nop"] = add["exporters"]["nop"] = None
        for kind in ("receivers", "processors", "exporters"):
            for name in (pipeline or {}).get(kind) or []:
                need(kind, name)
    if not pipelines:
        mine = {kind: list(tree.get(kind) or {}) for kind in KINDS}
        for signal in of:
            use = {kind: [n for n in mine[kind] if signal in signals[kind].get(n.split("/")[0], ())] for kind in KINDS}
            extra[signal] = {"receivers": use["receivers"] or ["nop"], "processors": use["processors"], "exporters": use["exporters"] or ["nop"]}
        add["receivers"]["nop"] = add["exporters"]["nop"] = None
    for kind in ("receivers", "exporters"):
        for name, config in wanted_extensions(tree.get(kind), kind == "receivers"):
            if not has("extensions", name):
                add["extensions"][name] = config
    have = service.get("extensions") or []
    for name in have:
        if not has("extensions", name) and name not in add["extensions"]:
            add["extensions"][name] = LEAST["extensions"].get(name.split("/")[0])
    more = {kind: v for kind, v in add.items() if v}
    more["service"] = {}
    if extra:
        more["service"]["pipelines"] = extra
    unnamed = [n for n in [*(tree.get("extensions") or {}), *add["extensions"]] if n not in have]
    if unnamed:
        more["service"]["extensions"] = [*have, *unnamed]
    return yaml.safe_dump(more)


def environment(text):
    """Values for the variables that a text reads and gives no default for."""
    env = {}
    for name in re.findall(r"\$\{(?:env:)?([A-Za-z_]\w*)\}", text) + re.findall(r"\$\{oc\.env:(\w+)\}", text):
        for pattern, value in (("TOKEN|PASSW|SECRET|KEY", "placeholder-value"), ("PORT$", "4317"), ("HOST|ADDR|NODE_IP|POD_IP", "127.0.0.1"),
                               ("GRPC", "127.0.0.1:4317"), ("ENDPOINT|BACKEND|URL", "http://127.0.0.1:4318"), ("DIR|PATH|FILE", "/tmp/sample"),
                               ("", "7")):
            if re.search(pattern, name):
                env[name] = value
                break
    return env


def validate(text, more=None):
    """What `motel validate` says about a configuration, and a second one merged over it."""
    with tempfile.TemporaryDirectory() as folder:
        secret = os.path.join(folder, "secret")
        with open(secret, "w", encoding="ascii") as f:
            f.write("placeholder-value")
        args = []
        for name, content in (("skeleton.yaml", more), ("sample.yaml", re.sub(r"\$\{file:[^}]*\}", "${file:" + secret + "}", text))):
            if content is not None:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(content)
                args += ["--config", name]
        run = motel("validate", *args, env=environment(text), folder=folder)
        return "" if run.returncode == 0 else run.stdout + run.stderr or f"exit code {run.returncode}"


def completed(text):
    """What the program says about a fragment that begins with a section: valid where it is so for a signal at least."""
    said = validate(text, skeleton(text))
    if said and not (tree_of(text).get("service") or {}).get("pipelines"):
        return "" if any(not validate(text, skeleton(text, (s,))) for s in ("traces", "metrics", "logs")) else said
    return said


def check_config(sample):
    if documents(sample.text) is None:
        return "this is no YAML"
    if sample.whole:
        return validate(sample.text)
    if sample.at:
        return completed(placed(sample.text, sample.at))
    if top_keys(documents(sample.text)[0]) & SECTIONS:
        return completed(sample.text)
    wrong = "nobody knows where in a configuration this belongs"
    for place in places(sample.text, sample.where):
        said = completed(placed(sample.text, place))
        if not said:
            return ""
        wrong = f"at {place}: {said}" if wrong.startswith("nobody") else wrong
    return wrong


def check_gym(sample):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gym.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(sample.text)
        run = motel("explain", "--gym-config", path, env=environment(sample.text))
    unknown = [line for line in run.stderr.splitlines() if "warn" in line.lower()]
    return "" if run.returncode == 0 and not unknown else run.stderr


def check_yaml(sample):
    try:
        list(yaml.safe_load_all(sample.text))
    except yaml.YAMLError as e:
        return str(e)
    return "\n".join(filter(None, (check_command(words) for words in sample.notes.get("commands", ()))))


@functools.cache
def flags_of(command):
    text = motel("help", command).stdout if command else ""
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", text + motel("help").stdout))


@functools.cache
def own_commands():
    usage = motel("help").stdout.split("Examples:")[0]
    return {w for words in re.findall(r"^  motel ([a-z-]+(?: \| [a-z-]+)*)", usage, re.M) for w in words.split(" | ")} | {"print-initial-config"}


def check_command(words):
    """Of a command line that begins with motel: whether the command and the flags are known, and files of the repository are valid."""
    args, takes_file, said = words[1:], [], []
    command = next((w for w in args if w in own_commands()), "")
    first = args[0] if args else ""
    if first and not command and re.fullmatch(r"[a-z][a-z-]*", first):
        return f"motel has no command {first!r}: {' '.join(words)}"
    for i, word in enumerate(args):
        if command == "run" and (word == "--" or (i > args.index("run") and not word.startswith("-") and not args[i - 1].startswith("--"))):
            break
        flag = word.split("=")[0]
        if re.fullmatch(r"--?[a-z][a-z0-9-]*", flag) and flag not in flags_of(command):
            said.append(f"motel {command or ''} has no flag {flag!r}: {' '.join(words)}")
        if flag == "--config" and command in ("", "validate", "run", "print-config", "explain", "doctor"):
            takes_file += [word.partition("=")[2] or (args[i + 1] if i + 1 < len(args) else "")]
    ours = [os.path.join(ROOT, f) for f in takes_file]
    if ours and all(os.path.isfile(f) for f in ours):
        run = motel("validate", *[w for f in ours for w in ("--config", f)], env={"OTLP_BACKEND": "http://127.0.0.1:4318"})
        said += [] if run.returncode == 0 else [run.stderr]
    return "\n".join(said)


def simple_commands(text):
    """The commands of a shell text as lists of words; assignments and what stands before a command such as sudo are left out."""
    text = re.sub(r"\\\n", " ", text)
    text = "\n".join(line if len(re.findall(r"[\"']", line.split(" #")[0])) % 2 else re.sub(r"(^|\s)#.*", "", line) for line in text.split("\n"))
    found, words, skip = [], [], False

    def end():
        nonlocal words
        while words and (re.match(r"^[A-Za-z_]\w*=", words[0]) or words[0] in
                         ("sudo", "exec", "nohup", "nice", "env", "time", "then", "do", "else", "!", "if", "while", "until", "{")):
            words = words[1:]
        if words:
            found.append(words)
        words = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        for token in lexer:
            if re.fullmatch(r"[<>&]*[<>][<>&]*", token):
                skip = True
            elif token and set(token) <= set("();<>|&\n"):
                end()
                skip = False
            elif skip:
                skip = False
            else:
                words.append(token)
    except ValueError:
        pass                            # a here-document with a lonely quote: what stands before it counts
    end()
    return found


IS_MOTEL = re.compile(r"(.*/)?(motel|\$\{?motel\}?)", re.I)
LAUNCHERS = ("srun", "timeout", "chroot", "uvx", "systemd-run")


def where_motel_is(words):
    """Index of the program in a command line, or None: the word may as well name a container, a package or a file."""
    if words[0] in ("docker", "podman") and len(words) > 1:
        of_image = re.compile(r"(.*/)?motel(:\S+)?")
        found = [i for i, w in enumerate(words) if i > 1 and of_image.fullmatch(w) and not words[i - 1].startswith("-")]
        return found[-1 if words[1] == "exec" else 0] if words[1] in ("run", "exec", "create") and found else None
    if IS_MOTEL.fullmatch(words[0]):
        return 0
    found = [i for i, w in enumerate(words) if IS_MOTEL.fullmatch(w)]
    return found[0] if words[0] in LAUNCHERS and found else None


def motel_commands(text):
    """Command lines of motel in a shell text, also those behind a launcher such as srun."""
    for words in simple_commands(text):
        i = where_motel_is(words)
        if i is not None:
            yield ["motel", *words[i + 1:]]


def without_here_documents(text):
    return HERE_DOCUMENT.sub("<<X\nX", text)


def check_shell(sample):
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as f:
        f.write(sample.text)
        f.flush()
        run = subprocess.run(["bash", "-n", f.name], capture_output=True, text=True, check=False)
        lint = subprocess.run(shellcheck(f.name, sample), capture_output=True, text=True, check=False) if shutil.which("shellcheck") else run
    said = [run.stderr] if run.returncode else [lint.stdout] if lint.returncode else []
    said += [check_command(words) for words in motel_commands(without_here_documents(sample.text))]
    return "\n".join(filter(None, said))


def shellcheck(path, sample):
    """Of a script mistakes count, of a block that a reader copies also what is merely doubtful: it has no first line, though, and sets
    variables for the reader's programs."""
    if not re.match(r"[^:]*\.md:", sample.where):
        return ["shellcheck", *([] if sample.text.startswith("#!") else ["-s", "bash"]), "-S", "error", path]
    return ["shellcheck", "-s", "bash", "-S", "warning", "-e", "SC2034,SC2148,SC2154,SC2164,SC2217", path]


def check_synopsis(sample):
    wrong = [f for f in re.findall(r"(?<![\w-])--[a-z][a-z-]*", sample.text) if not any(f in flags_of(c) for c in own_commands())]
    commands = set(re.findall(r"^motel ([a-z-]+)", sample.text, re.M)) - own_commands()
    return f"unknown: {wrong} {sorted(commands)}" if wrong or commands else ""


def parsed(parse):
    def check(sample):
        try:
            parse(sample.text)
        except (ValueError, SyntaxError, configparser.Error) as e:
            return f"{type(e).__name__}: {e}"
        return ""
    return check


def json_or_lines(text):
    try:
        json.loads(text)
    except ValueError:
        for line in text.splitlines():
            json.loads(line)


def check_unit(sample):
    """As systemd reads it; the program that it starts stands in for the one that is not installed here."""
    if not shutil.which("systemd-analyze"):
        return None
    text = re.sub(r"^(Exec\w+=[-@:+!]*)(\S*/motel)\b", lambda m: m[1] + os.path.realpath(e2e.MOTEL), sample.text, flags=re.M)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, sample.notes["name"])
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        run = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path], capture_output=True, text=True, check=False)
    said = [line for line in run.stderr.splitlines() if folder in line or sample.notes["name"] in line]
    commands = [shlex.split(m) for m in re.findall(r"^Exec\w+=[-@:+!]*(\S*/motel\b.*)$", sample.text, re.M)]
    return "\n".join(said + ([run.stderr] if run.returncode and not said else []) + [s for s in map(check_command, commands) if s])


INSTRUCTIONS = {"FROM", "RUN", "CMD", "LABEL", "EXPOSE", "ENV", "ADD", "COPY", "ENTRYPOINT", "VOLUME", "USER", "WORKDIR", "ARG", "ONBUILD",
                "STOPSIGNAL", "HEALTHCHECK", "SHELL"}


def check_dockerfile(sample):
    said = []
    text = re.sub(r"^\s*#.*\n", "", sample.text, flags=re.M)
    lines = [line for line in re.sub(r"\\\n", " ", text).split("\n") if line.strip()]
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word.upper() not in INSTRUCTIONS:
            said.append(f"no instruction: {line}")
        as_list = re.search(r"\[.*\]$", rest)
        if word.upper() in ("CMD", "ENTRYPOINT", "HEALTHCHECK") and as_list:
            try:
                words = json.loads(as_list[0])
            except ValueError as e:
                said.append(f"{e}: {line}")
                continue
            said += [check_command(words)] if os.path.basename(words[0]) == "motel" else []
    if not lines or lines[0].split()[0].upper() not in ("FROM", "ARG"):
        said.append("does not begin with FROM")
    return "\n".join(filter(None, said))


def slug(heading):
    """The anchor that renderers of Markdown give a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.replace("`", "").lower()).replace(" ", "-")


def prose_of(text):
    """The lines of a page that are in no block."""
    for _, _, block, _ in blocks(text):
        for line in block.splitlines():
            text = text.replace(line, "", 1) if line.strip() and len(line) > 12 else text
    return text


@functools.cache
def anchors(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    seen, found = {}, set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} (.*?)\s*$", text, re.M):
        s = slug(heading)
        found.add(s if s not in seen else f"{s}-{seen[s]}")
        seen[s] = seen.get(s, 0) + 1
    return found


def check_links(sample):
    said, page = [], os.path.join(ROOT, sample.where)
    for target in re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", prose_of(sample.text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path):
            said.append(f"{target}: no such file")
        elif anchor and path.endswith(".md") and anchor not in anchors(sample.text if path == page else read(path)):
            said.append(f"{target}: no such heading")
    return "\n".join(said)


def check_inline(sample):
    """Command lines of motel in the running text."""
    said = []
    for span in re.findall(r"`((?:build/)?motel [^`\n]*)`", prose_of(sample.text)):
        for words in motel_commands(re.sub(r"[\[\]]|\.\.\.|…", " ", span)):
            said.append(check_command(words))
    return "\n".join(filter(None, said))


def check_fences(sample):
    return "a block does not end" if len(re.findall(r"^ *(?:```|~~~)", sample.text, re.M)) % 2 else ""


def check_markdown(sample):
    return "\n".join(filter(None, (check_links(sample), check_inline(sample), check_fences(sample))))


CHECKS = {
    "config": check_config, "gym": check_gym, "yaml": check_yaml, "shell": check_shell, "synopsis": check_synopsis,
    "json": parsed(json_or_lines), "toml": parsed(tomllib.loads), "ini": parsed(lambda t: configparser.ConfigParser(interpolation=None, strict=False).read_string(t)),
    "python": parsed(ast.parse), "unit": check_unit, "dockerfile": check_dockerfile, "markdown": check_markdown,
    "unknown": lambda s: f"nobody knows how to check a block of {s.notes['language']}",
}


def check(sample):
    """What is wrong with a sample; "" when nothing is, None when it cannot be checked here."""
    said = CHECKS[sample.kind](sample)
    if sample.wrong and said is not None:
        return "" if said else "this is shown as a mistake, but it is accepted"
    return said
