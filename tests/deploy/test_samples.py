"""Everything that a reader may copy out of the repository works: found by what it is, checked by who will read it.

A comment before a block of a page says what the block itself does not: `<!-- sample: at exporters::otlp_http -->` where in a configuration
it belongs, `<!-- sample: wrong -->` that it shows a mistake and has to be refused, `<!-- sample: text -->` that it is nothing to copy.
"""
import dataclasses
import re
import shutil

import pytest

from sample_checks import check, motel_commands
from samples import Sample, all_samples, files, of_page, of_shell, of_yaml, read

SAMPLES = all_samples()


def names(samples):
    return [f"{s.kind}-{s.where}" for s in samples]


@pytest.mark.parametrize("sample", SAMPLES, ids=names(SAMPLES))
def test_sample(sample):
    said = check(sample)
    if said is None:
        pytest.skip("the program that reads this is not here")
    assert said == "", f"{sample.where}:\n{said}"


def test_all_kinds_are_found():
    kinds = {s.kind for s in SAMPLES}
    assert kinds >= {"config", "shell", "markdown", "gym", "python"}
    assert sum(s.whole for s in SAMPLES) >= 2
    assert shutil.which("shellcheck"), "shellcheck is one of the packages of `deploy/install-packages test`"


def variables(text):
    """Names of the variables that a configuration reads without a default."""
    return set(re.findall(r"\$\{(?:env:)?([A-Za-z_]\w*)\}", text))


def test_variables_of_configurations_are_told():
    """Whoever copies a file of deploy/ finds in its comments, or in the files and pages beside it, what has to be set."""
    told = {name: read(name) or "" for name in files()}
    for name, text in told.items():
        if name.endswith((".yaml", ".yml")):
            comments = "\n".join(re.findall(r"#.*", text))
            for variable in variables("\n".join(re.sub(r"#.*", "", line) for line in text.split("\n"))):
                others = (t for n, t in told.items() if n != name)
                assert re.search(rf"\b{variable}\b", comments) or any(re.search(rf"\b{variable}\b", t) for t in others), f"{name}: {variable}"


CONFIGS = [s for s in SAMPLES if s.kind == "config" and not s.wrong]
SCRIPTS = [s for s in SAMPLES if s.kind == "shell" and any(True for _ in motel_commands(s.text)) and "--config" in s.text]


def broken(sample, text):
    return dataclasses.replace(sample, text=text)


@pytest.mark.parametrize("sample", CONFIGS, ids=names(CONFIGS))
def test_a_configuration_with_an_unknown_key_is_found(sample):
    assert check(broken(sample, sample.text + "\nno_such_key: 1\n"))


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.kind == "shell"], ids=names(s for s in SAMPLES if s.kind == "shell"))
def test_a_script_that_does_not_parse_is_found(sample):
    assert check(broken(sample, sample.text + "\nif true; then\n"))


@pytest.mark.parametrize("sample", SCRIPTS, ids=names(SCRIPTS))
def test_a_command_with_an_unknown_flag_is_found(sample):
    assert "--confg" in check(broken(sample, sample.text.replace("--config", "--confg")))


WHOLE = """\
receivers: {otlp: {protocols: {grpc: }}}
exporters: {otlp_http: {endpoint: "http://127.0.0.1:1"}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}}
"""


def indented(text, by):
    return "".join(" " * by + line for line in text.splitlines(keepends=True))


CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motel}\ndata:\n  motel.yaml: |\n" + indented(WHOLE, 4)
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: motel, image: "registry/motel:1", args: ["--config", "/etc/motel/motel.yaml"]}]}
"""
COMPOSE = "services:\n  motel: {image: motel, command: [--config, /motel.yaml]}\nconfigs:\n  motel:\n    content: |\n" + indented(
    WHOLE.replace('"http://127.0.0.1:1"', '"$${env:OTLP_BACKEND}"'), 6)
SCRIPT = "#!/bin/sh\ncat >motel.yaml <<'END'\n" + WHOLE + "END\nmotel --config motel.yaml\n"
EXPANDED = "#!/bin/bash\ncat >motel.yaml <<END\n" + WHOLE.replace("127.0.0.1:1", "${HOSTNAME}:$PORT") + "END\n"
PAGE = "# A page\n\nSee [there](#a-page) and `motel validate --config FILE`:\n\n```yaml\n" + WHOLE + "```\n\n    motel --config FILE\n"

# What it is, how its samples are found, a good copy, what is replaced, and by what.
COPIES = [
    ("a reference to nothing", of_yaml, WHOLE, "exporters: [otlp_http]", "exporters: [otlp_htp]"),
    ("a reference to another name", of_yaml, WHOLE, "exporters: [otlp_http]", "exporters: [otlp_http/b]"),
    ("a value of another type", of_yaml, WHOLE, '"http://127.0.0.1:1"', "4318"),
    ("a configuration that is no YAML", of_yaml, WHOLE, "]}}}", "]}}"),
    ("a fragment with a misspelt key", of_yaml, "processors: {batch: {timeout: 1s}}\n", "timeout", "timeot"),
    ("a fragment with a bad value", of_yaml, "processors: {batch: {timeout: 1s}}\n", "1s", "1"),
    ("a Gym config with an unknown key", of_yaml, "telemetry: {enabled: true, otlp_endpoint: 'http://a:4317'}\n", "otlp_endpoint", "endpoint"),
    ("a config map", of_yaml, CONFIG_MAP, "otlp_http:", "otlp_htp:"),
    ("the arguments of a container", of_yaml, POD, "--config", "--confg"),
    ("the shell of a container", of_yaml, POD.replace('args: ["--config", "/etc/motel/motel.yaml"]', 'command: [/bin/sh, -c, "motel --config a"]'),
     "--config", "--confg"),
    ("a manifest that is no YAML", of_yaml, POD, "{name: a}", "{name: a"),
    ("a config of compose", of_yaml, COMPOSE, "receivers: [otlp]", "receivers: [oltp]"),
    ("a command of compose", of_yaml, COMPOSE, "[--config", "[--confg"),
    ("a here-document", of_shell, SCRIPT, "otlp_http:", "otlp_htp:"),
    ("a command of a script", of_shell, SCRIPT, "motel --config", "motel validat --config"),
    ("a here-document with variables", of_shell, EXPANDED, "grpc:", "grp:"),
    ("a block of a page", of_page, PAGE, "otlp_http:", "otlp_htp:"),
    ("a command in a page", of_page, PAGE, "motel --config FILE", "motel --confg FILE"),
    ("a command in the text of a page", of_page, PAGE, "validate --config", "validate --confg"),
    ("a command of an image", of_page, "    docker run -v q:/var/lib/motel -p 1:1 motel:0.1.0 --config /etc/motel/motel.yaml\n", "--config", "--confg"),
    ("a command in a container", of_page, "    docker run --name motel -p 1:1 registry/motel:1 --config FILE\n", "--config", "--confg"),
    ("a block that does not end", of_page, "```text\na\n```\n", "a\n```", "a\n"),
    ("a link to no file", of_page, PAGE, "#a-page", "nowhere.md"),
    ("a link to no heading", of_page, PAGE, "#a-page", "#another"),
    ("a mistake that is none", of_page, "<!-- sample: wrong -->\n```yaml\nprocessors: {batch: {timeot: 1s}}\n```\n", "timeot", "timeout"),
    ("a fragment at a place", of_page, "<!-- sample: at service::telemetry -->\n```yaml\nmetrics: {level: none}\n```\n", "metrics", "metric"),
    ("a block of JSON", of_page, '```json\n{"a": 1}\n```\n', "1}", "1"),
    ("a block of a language that nobody checks", of_page, '```json\n{"a": 1}\n```\n', "json", "jsn"),
    ("a block of TOML", of_page, '```toml\na = "b"\n```\n', "= ", ""),
    ("a block of INI", of_page, "```ini\n[a]\nb = c\n```\n", "[a]\n", ""),
    ("a block of Python", of_page, "```python\nprint(1)\n```\n", "1)", "1"),
    ("a Dockerfile", of_page, '```dockerfile\nFROM motel\nCMD ["motel", "--config", "a"]\n```\n', "--config", "--confg"),
    ("a Dockerfile's instruction", of_page, "```dockerfile\nFROM motel\nUSER 1\n```\n", "USER", "USR"),
]


@pytest.mark.parametrize("find, text, old, new", [c[1:] for c in COPIES], ids=[c[0] for c in COPIES])
def test_a_broken_copy_is_found(find, text, old, new):
    def all_of(text):
        samples = find("docs/configuration.md", text)
        assert samples
        return [s for s in map(check, samples) if s]
    assert old in text
    assert all_of(text) == []
    assert all_of(text.replace(old, new))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_a_broken_unit_is_found():
    unit = Sample("unit", "a.service", "[Service]\nExecStart=/usr/bin/motel --config /etc/motel.yaml\n", notes={"name": "a.service"})
    assert check(unit) == ""
    assert check(broken(unit, unit.text.replace("ExecStart", "ExecStrt")))
    assert check(broken(unit, unit.text.replace("--config", "--confg")))
    assert check(broken(unit, unit.text + "ProtectSystem=stricct\n"))
