"""The pages of the components: one for each, with the keys of its field table as the program has them, and an example that it takes."""
import importlib.machinery
import importlib.util
import os
import re
import subprocess

import pytest

import sample_checks
import samples
from support import ROOT, e2e

UPDATE = os.path.join(ROOT, "docs", "update-keys")
_loader = importlib.machinery.SourceFileLoader("update_keys", UPDATE)
update_keys = importlib.util.module_from_spec(importlib.util.spec_from_loader("update_keys", _loader))
_loader.exec_module(update_keys)

COMPONENTS = update_keys.components(e2e.MOTEL)


def page_of(section, name):
    with open(os.path.join(ROOT, "docs", section, name + ".md"), encoding="utf-8") as f:
        return f.read()


def check_keys(folder, motel):
    return subprocess.run([os.path.join(folder, "update-keys"), "--check", motel], capture_output=True, text=True, timeout=120)


def test_all_components_are_there():
    assert len(COMPONENTS) > 20
    assert {s for s, _ in COMPONENTS} == {"receivers", "processors", "connectors", "exporters", "extensions"}


def test_tables_of_keys_are_up_to_date(motel):
    r = check_keys(os.path.join(ROOT, "docs"), motel)
    assert (r.returncode, r.stderr) == (0, "")


@pytest.mark.parametrize("old,new", [("| duration | `200ms` |", "| duration | `300ms` |"), ("At least 0, at most 4294967295.", "At least 0."),
                                     ("| `metadata_cardinality_limit` |", "| `metadata_limit` |"), ("<!-- keys -->", "")])
def test_a_page_that_is_out_of_date_is_found(motel, tmp_path, old, new):
    docs = tmp_path / "docs"
    subprocess.run(["cp", "-r", os.path.join(ROOT, "docs"), str(docs)], check=True)
    page = docs / "processors" / "batch.md"
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new, 1), encoding="utf-8")
    r = check_keys(str(docs), motel)
    assert r.returncode == 1
    assert "processors/batch.md" in r.stderr


def test_a_missing_page_is_found(motel, tmp_path):
    docs = tmp_path / "docs"
    subprocess.run(["cp", "-r", os.path.join(ROOT, "docs"), str(docs)], check=True)
    (docs / "exporters" / "nop.md").unlink()
    r = check_keys(str(docs), motel)
    assert r.returncode == 1
    assert "exporters/nop.md: is missing" in r.stderr


def rows_of(page):
    """[[key, type, default, what]] of the generated table."""
    table = update_keys.MARKED.search(page).group(0).splitlines()[3:-1]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table]


def test_every_key_says_what_it_is():
    """No key without a type and an explanation."""
    missing = []
    rows = {(section, name): rows_of(page_of(section, name)) for section, name in COMPONENTS}
    assert sum(len(r) for r in rows.values()) > 300
    for (section, name), table in rows.items():
        for row in table:
            if len(row) != 4 or not row[1] or (len(row[3].strip(". ")) < 3):
                missing.append(f"{section}/{name}: {row}")
    assert missing == []


def examples(section, name):
    """The blocks of its page that configure the component."""
    page = f"docs/{section}/{name}.md"
    for sample in samples.of_page(page, page_of(section, name)):
        if sample.kind == "config" and not sample.wrong and not sample.at:
            for document in samples.documents(sample.text):
                ids = (document.get(section) or {}) if isinstance(document, dict) else {}
                if isinstance(ids, dict) and any(str(i).split("/")[0] == name for i in ids):
                    yield sample


@pytest.mark.parametrize("section,name", COMPONENTS, ids="/".join)
def test_there_is_an_example_that_motel_takes(section, name):
    found = list(examples(section, name))
    assert found, f"docs/{section}/{name}.md has no YAML block that configures {name}"
    assert [sample_checks.check(sample) for sample in found] == [""] * len(found)


def test_settings_are_all_on_their_page():
    """Key, flag, variable and default of each, as motel --help has them."""
    with open(os.path.join(ROOT, "docs", "motel-settings.md"), encoding="utf-8") as f:
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in f if line.startswith("| `")]
    listing = subprocess.run([e2e.MOTEL, "--help"], check=True, capture_output=True, text=True).stdout
    known = re.findall(r"^  (--[a-z-]+), (MOTEL_[A-Z_]+)(?: \(default (.*)\))?$", listing, re.M)
    assert len(known) > 10
    pages = {row[1]: row for row in rows}
    for flag, variable, default in known:
        row = pages.get(f"`{flag}`")
        assert row, f"{flag} is not in docs/motel-settings.md"
        assert row[0] == "`" + variable[len("MOTEL_"):].lower() + "`"
        assert row[2] == f"`{variable}`"
        if default:
            assert row[3] == f"`{default}`", flag
    assert len(pages) == len(known)
