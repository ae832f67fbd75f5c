"""The site of docs/: it is made without a warning, has every page, leads nowhere that is not there, and needs no server and no network."""
import glob
import os
import shutil
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser

import pytest

from support import ROOT


def build(root, output):
    return subprocess.run([sys.executable, os.path.join(root, "docs", "site", "build"), str(output)], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    output = tmp_path_factory.mktemp("site") / "html"
    r = build(ROOT, output)
    assert r.returncode == 0, r.stdout + r.stderr
    assert r.stderr == ""
    return str(output)


class Page(HTMLParser):
    """The links, anchors and loaded files of a page."""
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.loaded = [], {"", "#"}, []
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[k] for k in ("id", "name") if attrs.get(k))
        if tag == "a" and attrs.get("href") is not None:
            self.links.append(attrs["href"])
        if tag in ("script", "img") and attrs.get("src"):
            self.loaded.append(attrs["src"])
        if tag == "link" and attrs.get("href") and attrs.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(attrs["href"])


@pytest.fixture(scope="module")
def html(site):
    return {p: Page(os.path.join(site, p)) for p in glob.glob("**/*.html", root_dir=site, recursive=True)}


def test_every_page_of_the_repository_is_there(site, html):
    pages = glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True) + glob.glob("deploy/**/*.md", root_dir=ROOT, recursive=True)
    assert len(pages) > 30
    assert [p for p in pages + ["SECURITY.md", "CONTRIBUTING.md"] if p[:-3] + ".html" not in html] == []
    assert "index.html" in html


def test_the_front_page_leads_to_every_page(html):
    todo, seen = ["index.html"], {"index.html"}
    while todo:
        at = todo.pop()
        for link in html[at].links:
            path = os.path.normpath(os.path.join(os.path.dirname(at), urllib.parse.unquote(link.split("#")[0])))
            if path in html and path not in seen:
                seen.add(path)
                todo.append(path)
    assert sorted(set(html) - seen - {"search.html", "genindex.html"}) == []


def test_no_link_leads_nowhere(site, html):
    broken = []
    for at, page in html.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme:
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(at), urllib.parse.unquote(url.path))) if url.path else at
            if not os.path.exists(os.path.join(site, path)):
                broken.append(f"{at}: {link}")
            elif path in html and urllib.parse.unquote(url.fragment) not in html[path].anchors:
                broken.append(f"{at}: {link}: no such anchor")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site, html):
    for at, page in html.items():
        for name in page.loaded:
            assert not urllib.parse.urlsplit(name).netloc, f"{at} loads {name}"
            path = os.path.join(site, os.path.dirname(at), urllib.parse.urlsplit(name).path)
            assert os.path.exists(path), f"{at} loads {name}, which is not there"


def test_search_knows_the_words_of_the_pages(site):
    """A script, not a request: a browser loads it from a disk, too."""
    with open(os.path.join(site, "searchindex.js"), encoding="utf-8") as f:
        index = f.read()
    assert index.startswith("Search.setIndex(")
    for word in ("memory_limiter", "send_batch_max", "spill"):
        assert word in index, word
    with open(os.path.join(site, "search.html"), encoding="utf-8") as f:
        assert '<script src="searchindex.js"' in f.read()


def test_the_contents_have_these_parts(site):
    with open(os.path.join(site, "index.html"), encoding="utf-8") as f:
        text = f.read()
    for part in ("Getting started", "Deployment", "Configuration", "Components", "Commands", "Operations", "Reference"):
        assert f'<span class="caption-text">{part}</span>' in text, part


@pytest.fixture
def copy(tmp_path):
    """What the site is made of, to be broken."""
    root = tmp_path / "copy"
    root.mkdir()
    for name in glob.glob("*.md", root_dir=ROOT) + ["meson.build"]:
        shutil.copy(os.path.join(ROOT, name), root / name)
    for name in ("docs", "deploy"):
        shutil.copytree(os.path.join(ROOT, name), root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in glob.glob("tests/*/README.md", root_dir=ROOT):
        os.makedirs(root / os.path.dirname(name), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), root / name)
    return root


def test_broken_links_and_anchors_are_errors(copy, tmp_path):
    page = copy / "docs" / "run.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[one](replayed.md) [two](cli.md#no-such-heading) [three](#nowhere) ![four](none.svg)\n", encoding="utf-8")
    r = build(copy, tmp_path / "out")
    assert r.returncode != 0
    assert not (tmp_path / "out").exists()
    for text in ("replayed.md", "no-such-heading", "nowhere", "none.svg"):
        assert text in r.stderr, text


def test_a_page_of_the_contents_that_is_gone_is_an_error(copy, tmp_path):
    (copy / "docs" / "cli.md").unlink()
    r = build(copy, tmp_path / "out")
    assert r.returncode != 0
    assert "docs/cli.md" in r.stderr
