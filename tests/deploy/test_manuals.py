"""Man pages and completions: installed where they belong, without a warning of their readers, and with everything that the program knows in them."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from support import ROOT, e2e

sys.path.insert(0, os.path.join(ROOT, "docs", "manual"))
import helptext  # noqa: E402
import tables  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.dirname(os.path.abspath(e2e.MOTEL))


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder share/ of an installation."""
    root = tmp_path_factory.mktemp("root")
    r = run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", str(root))
    assert r.returncode == 0, r.stdout + r.stderr
    prefix = next(o["value"] for o in json.loads(run("meson", "introspect", BUILD, "--buildoptions").stdout) if o["name"] == "prefix")
    assert os.access(f"{root}{prefix}/bin/motel", os.X_OK)
    return f"{root}{prefix}/share"


@pytest.fixture(scope="module")
def known():
    return tables.read(os.path.join(BUILD, "docs", "manual", "tables.json"))


def pages(share):
    return [f"{share}/man/man1/motel.1", f"{share}/man/man5/motel.yaml.5"]


def rendered(page):
    need("mandoc")
    text = run("mandoc", "-Tascii", "-O", "width=400", page).stdout
    return re.sub(r".\x08", "", text)


def complaints(page):
    """What mandoc and groff say of a page."""
    need("mandoc")
    need("man")
    ret = run("mandoc", "-T", "lint", page).stdout
    for width in ("80", "60"):
        r = run("man", "--warnings=w", "-l", page, env={**os.environ, "MANWIDTH": width, "LC_ALL": "C.UTF-8"})
        assert r.returncode == 0
        ret += r.stderr
    return ret


def test_readers_of_man_pages_have_no_complaint(installed):
    for page in pages(installed):
        assert complaints(page) == ""


def test_a_broken_page_is_noticed(installed, tmp_path):
    with open(pages(installed)[0], encoding="utf-8") as f:
        text = f.read()
    bad = tmp_path / "motel.1"
    bad.write_text(text.replace(".SH COMMANDS", ".SHH COMMANDS", 1), encoding="utf-8")
    assert complaints(str(bad)) != ""


def missing_in_motel_1(text, known):
    wanted = [f"motel {c['name']}" for c in known["commands"] if not c["second_name"]]
    wanted += ["--" + f["name"] for f in known["flags"]]
    wanted += [s[k] for s in known["settings"] for k in ("flag", "variable")]
    return [w for w in wanted if not re.search(re.escape(w) + r"(?![\w-])", text)]


def test_motel_1_has_every_command_flag_and_setting(installed, known):
    text = rendered(pages(installed)[0])
    assert missing_in_motel_1(text, known) == []
    assert missing_in_motel_1(text.replace("--rate", "--rat"), known) == ["--rate"]
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "SETTINGS", "FILES", "SIGNALS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
        assert re.search(f"^{heading}$", text, re.M), heading


def test_every_flag_is_explained_for_a_command_that_takes_it(known):
    """A flag in the table that no help text describes would be in no manual."""
    described = {"": helptext.flag_values(known["help"])}
    described.update({c["name"]: helptext.flag_values(c["help"]) for c in known["commands"]})
    for flag in known["flags"]:
        assert any(flag["name"] in described[c] or flag["name"] in described[""] for c in flag["commands"]), flag["name"]


def missing_in_motel_yaml_5(text, known):
    ret = []
    sections = re.split(r"^([A-Z]+)$", text, flags=re.M)
    sections = dict(zip(sections[1::2], sections[2::2]))
    places = [(sections["MOTEL"], "motel", known["settings_keys"]), (sections["SERVICE"], "service", known["service_keys"])]
    for c in known["components"]:
        chapters = re.split(r"^   (\w+)$", sections[c["section"].upper()], flags=re.M)
        chapters = dict(zip(chapters[1::2], chapters[2::2]))
        places.append((chapters.get(c["name"], ""), f"{c['section']} {c['name']}", c["keys"]))
        if c["name"] not in chapters:
            ret.append(f"{c['section']} {c['name']}")
    for chapter, name, keys in places:
        terms = re.findall(r"^       (\S+)(?:  ?.*)?$", chapter, re.M)
        ret += [f"{name}: {path}" for path, *_ in tables.keys(keys) if path not in terms]
    return ret


def test_motel_yaml_5_has_every_component_and_key(installed, known):
    text = rendered(pages(installed)[1])
    assert sum(len(tables.keys(c["keys"])) for c in known["components"]) > 300
    assert missing_in_motel_yaml_5(text, known) == []
    less = text.replace("send_batch_max_size", "send_batch_size", 1)
    assert missing_in_motel_yaml_5(less, known) == ["processors batch: send_batch_max_size"]


def test_the_tables_are_those_of_the_program(motel, known):
    listing = run(motel, "components").stdout
    assert re.findall(r"- name: (\w+)", listing) != []
    assert sorted(re.findall(r"- name: (\w+)", listing)) == sorted(c["name"] for c in known["components"])
    assert run(motel, "--help").stdout == known["help"]
    for c in known["components"]:
        shown = run(motel, "components", c["name"]).stdout
        assert f"## {c['section']}: {c['name']}\n" in shown
        assert c["keys"] in shown


def test_names_that_are_no_component(motel):
    r = run(motel, "components", "bacth")
    assert r.returncode == 1
    assert r.stderr == 'Error: unknown component "bacth"; did you mean "batch"?; motel components lists them\n'
    assert "## exporters: otlp_http" in run(motel, "components", "otlphttp").stdout


# ---- completions ----

BASH = r"""
. "$1"
cd "$2"
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_motel
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where things are completed."""
    path = tmp_path_factory.mktemp("here")
    for name in ("collector.yaml", "with space.yaml", "traces.jsonl", "odd/*", "odd/[a-z]", "odd/$(touch x)", "odd/x"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("")
    (path / "collected").mkdir()
    return path


def bash(share, folder, *words):
    r = run("bash", "--norc", "-c", BASH, "bash", f"{share}/bash-completion/completions/motel", str(folder), *words)
    assert r.stderr == ""
    return {line for line in r.stdout.splitlines() if line}


def zsh(share, folder, *lines):
    """The candidates of each line, which all go to one shell."""
    need("zsh")
    out = folder / "candidates"
    texts = [" ".join(words) for words in lines]
    r = run("zsh", "-f", os.path.join(HERE, "zsh_candidates.zsh"), f"{share}/zsh/site-functions", str(folder), str(out), *texts)
    assert r.returncode == 0, r.stderr
    found = [set(part.splitlines()) for part in re.split(r"^end\n", out.read_text(), flags=re.M)[:-1]]
    out.unlink()
    assert len(found) == len(lines)
    return found


CASES = [
    (["motel", "repl"], {"replay"}),
    (["motel", "--config", "coll"], {"collector.yaml", "collected"}),
    (["motel", "validate", "--config", "collector.yaml", "--shut"], {"--shutdown-timeout"}),
    (["motel", "print-config", "--format", ""], {"yaml", "json"}),
    (["motel", "doctor", "--format", ""], {"text", "json"}),
    (["motel", "replay", "traces.jsonl", "--protocol", "http"], {"http/protobuf", "http/json"}),
    (["motel", "replay", "tra"], {"traces.jsonl"}),
    (["motel", "report", "--max"], {"--max-traces"}),
    (["motel", "--redact", ""], {"true", "false"}),
    (["motel", "components", "otlp_"], {"otlp_grpc", "otlp_http"}),
    (["motel", "--spill-directory", "coll"], {"collected"}),
    (["motel", "run", "--config", "collector.yaml", "--spill"], {"--spill-directory"}),
    (["motel", "run", "cat", "tra"], {"traces.jsonl"}),
    (["motel", "run", "--", "cat", "tra"], {"traces.jsonl"}),
]


def every_command(known):
    """Lines that end in what all commands, components and flags are offered for."""
    yield ["motel", ""], {c["name"] for c in known["commands"]}
    yield ["motel", "components", ""], {c["name"] for c in known["components"]}
    yield ["motel", "help", ""], {c["name"] for c in known["commands"]}
    loading = next(f["commands"] for f in known["flags"] if f["name"] == "set")
    for command in ["", *(c["name"] for c in known["commands"])]:
        wanted = {"--" + f["name"] for f in known["flags"] if command in f["commands"]}
        if command in loading:
            wanted |= {s["flag"] for s in known["settings"]}
        yield ["motel", *([command] if command else []), "--"], wanted


# Names that a shell would take for something else; zsh quotes them itself.
ODD_NAMES = [
    (["motel", "report", "odd/"], {"odd/*", "odd/[a-z]", "odd/$(touch x)", "odd/x"}),
    (["motel", "--config", "odd/$"], {"odd/$(touch x)"}),
]


@pytest.mark.parametrize("words,expected", CASES + ODD_NAMES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_bash(installed, folder, words, expected):
    assert bash(installed, folder, *words) == expected


def test_bash_has_every_command_component_and_flag(installed, folder, known):
    for words, expected in every_command(known):
        assert (words, bash(installed, folder, *words)) == (words, expected)


def test_zsh(installed, folder, known):
    cases = CASES + list(every_command(known))
    found = zsh(installed, folder, *(words for words, _ in cases))
    for (words, expected), got in zip(cases, found):
        assert (words, got) == (words, expected)


def test_bash_takes_values_behind_an_equals_sign(installed, folder):
    assert bash(installed, folder, "motel", "print-config", "--format", "=", "j") == {"json"}
    assert bash(installed, folder, "motel", "print-config", "--format=j") == {"--format=json"}
    assert bash(installed, folder, "motel", "--config", "=", "with") == {"with space.yaml"}


def test_bash_completion_finds_it_by_itself(installed):
    script = "/usr/share/bash-completion/bash_completion"
    if not os.path.exists(script):
        pytest.skip("bash-completion is not installed")
    r = run("bash", "--norc", "-c", f". {script}; _completion_loader motel; complete -p motel", env={**os.environ, "XDG_DATA_DIRS": installed})
    assert r.stdout == "complete -F _motel motel\n"
