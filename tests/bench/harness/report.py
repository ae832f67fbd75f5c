"""tests/bench/report: the table and the plots of a results file.

Writes the tables between the marker lines of docs/performance.md, and the plots docs/performance.svg and
docs/performance-growth.svg. With --print it writes the tables to standard output and changes nothing."""
import argparse
import os
import re

from harness import svg, table
from harness.peers import ROOT
from harness.plan import ROWS
from harness.store import Results, Unusable

PAGE = os.path.join(ROOT, "docs", "performance.md")
HEADING = "CPU of the agent, µs a span (S6: ms a scrape); the grey line is least to greatest"

GROWTH_HEADING = "CPU as the work grows; a line as steep as the dotted one is linear"


def sections(results):
    """marker -> text"""
    growth = table.growth_verdict(results)
    if table.growth_summary(results):
        growth += "\n" + table.growth_table(results) + "\n" + table.limits_table(results)
    floors = table.floor_table(results)
    return {"conditions": table.conditions(results), "table": "\n".join(filter(None, (table.main_table(results), table.reasons(results)))),
            "floors": floors or "The floors were not measured.\n", "growth": growth,
            "static": table.static_table(results) or "The static program was not measured.\n"}


def replace_sections(page, texts):
    for name, words in texts.items():
        begin, end = rf"(<!-- {name}: [^\n]*-->\n)", rf"(<!-- end of {name} -->)"
        page, n = re.subn(f"{begin}.*?{end}", lambda m, words=words: f"{m[1]}\n{words}\n{m[2]}", page, flags=re.S)
        if n != 1:
            raise SystemExit(f"performance.md: no markers of {name}")
    return page


def bar_plot(results):
    names = table.shown_agents(results)
    groups = []
    for row in ROWS:
        if row.field not in ("cpu_us_per_record", "cpu_ms_per_scrape"):
            continue
        spreads = {n: results.spread(row.spec, n, row.field, row.scale) for n in names}
        values = {n: (s["median"], s["min"], s["max"]) for n, s in spreads.items() if s}
        if values:
            groups.append((row.title, values))
    return svg.bars(HEADING, groups, names, list(map(table.title, names))) if groups else None


def growth_plot(results):
    series = [(row, [(x, table.total(row, x, run)) for x, run in points]) for row, points, _, _, _ in table.growth_summary(results)]
    return svg.growth(GROWTH_HEADING, series) if series else None


def write(path, words):
    with open(path, "w", encoding="utf-8") as f:
        f.write(words)
    print(os.path.relpath(path))


def main(argv):
    p = argparse.ArgumentParser(prog="tests/bench/report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", metavar="FILE.json")
    p.add_argument("--docs", default=os.path.dirname(PAGE), metavar="FOLDER",
                   help="write into the performance.md of this folder, and the plots beside it (docs)")
    p.add_argument("--print", action="store_true", help="write the tables to standard output only")
    a = p.parse_args(argv)
    if not os.path.exists(a.results):
        raise SystemExit(f"{a.results}: no such file")
    try:
        results = Results(a.results)
    except Unusable as e:
        raise SystemExit(str(e)) from None
    if not results.runs:
        raise SystemExit(f"{a.results}: no runs in it")
    texts = sections(results)
    if a.print:
        print("\n".join(texts.values()))
        return 0
    page = os.path.join(a.docs, "performance.md")
    if not os.path.exists(page):
        raise SystemExit(f"{page}: no such file; --docs wants a folder with a copy of docs/performance.md")
    with open(page, encoding="utf-8") as f:
        words = replace_sections(f.read(), texts)
    write(page, words)
    for name, plot in (("performance.svg", bar_plot(results)), ("performance-growth.svg", growth_plot(results))):
        if plot:
            write(os.path.join(a.docs, name), plot)
    return 0
