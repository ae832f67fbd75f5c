#!/usr/bin/env python3
"""Writes the man pages from the tables of the program: man.py TABLES.json 1|5 > motel.1"""
import datetime
import os
import re
import sys

import helptext
import tables

HERE = os.path.dirname(os.path.abspath(__file__))
SECTIONS = {"receivers": "what comes in", "processors": "what happens to it", "connectors": "from one pipeline into another",
            "exporters": "where it goes", "extensions": "what stands beside the pipelines"}


def date():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    day = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now(datetime.timezone.utc)
    return day.strftime("%Y-%m-%d")


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti").replace("'", "\\(aq").replace("`", "\\(ga")
    return "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)


def line(text):
    """Text that may begin a line: a dot there would be a request."""
    return ("\\&" if text[:1] in ".\\'" and not text.startswith("\\f") else "") + text


class Page:
    def __init__(self, name, section, version, what):
        self.out = [f'.TH {name.upper()} {section} "{date()}" "motel {version}" "{what}"', ".ad l", ".nh"]

    def section(self, title):
        self.out.append(f".SH {escape(title.upper())}")

    def subsection(self, title):
        self.out.append(f'.SS "{escape(title)}"')

    def running(self, text):
        """Lines of a filled text, a sentence on a line, none too long; `x` is printed bold."""
        parts = re.split(r"(`[^`]+`)", text)
        text = "".join("\\fB" + escape(p[1:-1]) + "\\fR" if p.startswith("`") and len(p) > 2 else escape(p) for p in parts)
        for sentence in re.split(r"(?<=[.:;?!])(?<!e\.g\.)(?<!\.\.\.) +(?=[^ ])", re.sub(r"\s+", " ", text.strip())):
            while len(sentence) > 78 and " " in sentence[:78]:
                at = sentence.rindex(" ", 0, 78)
                self.out.append(line(sentence[:at]))
                sentence = sentence[at + 1:]
            self.out.append(line(sentence))

    def paragraph(self, text):
        if not self.out[-1].startswith((".SH", ".SS")):
            self.out.append(".PP")
        self.running(text)

    def item(self, term, text):
        self.out += [".TP", line(f"\\fB{escape(term)}\\fR")]
        self.running(text)

    def verbatim(self, lines):
        if not self.out[-1].startswith((".SH", ".SS")):
            self.out.append(".PP")
        self.out += [".RS 4", ".nf", *(line(escape(s)) if s else "\\&" for s in lines), ".fi", ".RE"]

    def blocks(self, lines):
        for kind, content in helptext.blocks(lines):
            if kind == "items":
                for term, text in content:
                    self.item(term, text)
            elif kind == "verbatim":
                self.verbatim(content)
            else:
                self.paragraph(content)

    def keys(self, markdown):
        for path, type_, default, text in tables.keys(markdown):
            self.out += [".TP", line("\\fB" + escape(path).replace("::", "::\\:") + "\\fR")]
            self.running(type_.replace("`", "") + (f", default `{default}`" if default else "") + ". " + text)

    def text(self):
        return "\n".join(self.out) + "\n"


def page1(t):
    p = Page("motel", 1, t["version"], "Motel")
    parts = helptext.sections(t["help"])
    usage = helptext.usage_items(dict(parts)["Usage"])
    p.section("Name")
    p.out.append("motel \\- a small OpenTelemetry collector")
    p.section("Synopsis")
    for i, (synopsis, _) in enumerate(usage):
        if i:
            p.out.append(".br")
        p.out.append(line(f"\\fBmotel\\fR{escape(synopsis[len('motel'):])}"))
    p.section("Description")
    p.blocks(parts[0][1])
    p.section("Commands")
    for synopsis, meaning in usage:
        p.item(synopsis, meaning[:1].upper() + meaning[1:] + ("." if meaning and meaning[-1] != "." else ""))
    for heading, lines in parts[1:]:
        if heading not in ("Usage", "Examples") and not re.match("Settings of motel's own", heading):
            p.section({"Flags": "Options", "Exit codes": "Exit status"}.get(heading, heading))
            p.blocks(lines)
    p.section("Settings")
    p.paragraph("Each is a flag, a variable of the environment and a key of the section `motel:` of the configuration. A flag wins over a "
                "variable, a variable over the file. An empty variable counts as not set.")
    by_key = {k[0]: k for k in tables.keys(t["settings_keys"])}
    for s in t["settings"]:
        _, type_, default, text = by_key[s["key"]]
        p.item(f"{s['flag']}, {s['variable']}", f"{type_}" + (f", default `{default}`" if default else "") + ". " + text)
    for command in t["commands"]:
        if command["help"] and not command["second_name"]:
            p.section(f"motel {command['name']}")
            usage, rest = helptext.command_parts(command["help"])
            for synopsis, meaning in helptext.usage_items(usage):
                p.paragraph(f"`{synopsis}`" + (f": {meaning}" if meaning else ""))
            for heading, lines in helptext.sections("\n".join(rest)):
                if heading:
                    p.subsection(heading)
                p.blocks(lines)
    p.section("Examples")
    p.blocks(dict(parts)["Examples"])
    p.section("See also")
    p.out.append(".BR motel.yaml (5)")
    return p.text()


def page5(t):
    p = Page("motel.yaml", 5, t["version"], "Motel")
    p.section("Name")
    p.out.append("motel.yaml \\- configuration of the motel OpenTelemetry collector")
    with open(os.path.join(HERE, "motel.yaml.txt"), encoding="utf-8") as f:
        for heading, lines in helptext.sections(f.read()):
            p.section(heading)
            p.blocks(lines)
    p.section("Motel")
    p.paragraph("What only motel knows stands in the section `motel`, which the OpenTelemetry Collector refuses: keep it in a file of its own when one "
                "file is for both.")
    p.keys(t["settings_keys"])
    p.section("Service")
    p.keys(t["service_keys"])
    for section, what in SECTIONS.items():
        p.section(section)
        p.paragraph(f"The section `{section}`: {what}.")
        for c in t["components"]:
            if c["section"] == section:
                p.subsection(c["name"])
                p.paragraph(c["help"] or c["name"])
                signals = c["accepts"] or c["emits"]
                if c["accepts"] and c["emits"] and section == "connectors":
                    p.paragraph(f"Takes {', '.join(c['accepts'])}; gives {', '.join(c['emits'])}.")
                elif signals:
                    p.paragraph(f"Signals: {', '.join(signals)}.")
                if c["aliases"]:
                    p.paragraph(f"Older name: {', '.join(c['aliases'])}.")
                if c["keys"]:
                    p.keys(c["keys"])
                else:
                    p.paragraph("It has no keys.")
    p.section("Example")
    p.paragraph("The built\u2010in configuration, which runs when none is given; `motel print-config` prints it.")
    p.verbatim(t["example"].rstrip("\n").split("\n"))
    p.section("See also")
    p.out.append(".BR motel (1)")
    return p.text()


if __name__ == "__main__":
    sys.stdout.write({"1": page1, "5": page5}[sys.argv[2]](tables.read(sys.argv[1])))
