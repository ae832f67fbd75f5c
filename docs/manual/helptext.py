"""Help texts of the program, taken apart: blocks of synopsis, paragraph, items (a term and what it means) and verbatim lines.

What the texts keep to: a heading begins at the left edge and ends in a colon; under it lines are indented. An item is indented by two and has two spaces
or more before its meaning; the meaning goes on in lines that are indented further. A line that begins with a command is an example.
"""
import re

ITEM = re.compile(r"^  (\S(?:.*?\S)?) {2,}(\S.*)$")
COMMAND = re.compile(r"^\s*(motel\b|[A-Z_]+=\S|export )")
FLAG = re.compile(r"^(?:-(\w), )?--([a-z][a-z-]*)(?:(=)| |$)(.*)$")


def sections(text):
    """The text as a list of (heading, lines); the heading of what comes first is ""."""
    ret = [("", [])]
    for group in groups(text.split("\n")):
        n = next((i for i, line in enumerate(group) if line.startswith(" ")), len(group))
        if n and group[n - 1].endswith(":"):
            ret.append((" ".join(group[:n])[:-1], group[n:]))
        else:
            ret[-1][1].extend([""] + group)
    return [(heading, lines) for heading, lines in ret if heading or lines]


def groups(lines):
    """The lines between empty ones."""
    ret = [[]]
    for line in lines:
        if line.strip():
            ret[-1].append(line)
        elif ret[-1]:
            ret.append([])
    return [g for g in ret if g]


def items(lines):
    """[[term, meaning]] of lines that are a list, else None."""
    ret = []
    for line in lines:
        m = ITEM.match(line)
        if m and not line.startswith("   "):
            ret.append([m.group(1), m.group(2)])
        elif ret and line.startswith("    "):
            ret[-1][1] += " " + line.strip()
        elif re.match(r"^  \S", line) and not line.startswith("   ") and len(line) < 100:
            ret.append([line.strip(), ""])
        else:
            return None
    return ret if ret and all(meaning for _, meaning in ret) else None


def blocks(lines):
    """[(kind, content)]: ("paragraph", text), ("items", [[term, meaning]]), ("verbatim", lines)."""
    ret = []
    for group in groups(lines):
        if not group[0].startswith(" "):
            ret.append(("paragraph", " ".join(group)))
        elif COMMAND.match(group[0]):
            ret.append(("verbatim", [line[2:] for line in group]))
        elif items(group):
            ret.append(("items", items(group)))
        else:
            ret.append(("paragraph", " ".join(line.strip() for line in group)))
    return ret


def command_parts(text):
    """(lines of usage, other lines) of the help of one command."""
    lines = text.rstrip("\n").split("\n")
    n = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    return lines[:n], lines[n:]


def usage_items(lines):
    """[[usage, meaning]] of "motel x  does this" lines; a meaning may be empty and go on in the next line."""
    ret = []
    for line in lines:
        m = re.match(r"^\s*(motel\b.*?)(?: {2,}(\S.*))?$", line)
        if m:
            ret.append([m.group(1), m.group(2) or ""])
        elif ret:
            ret[-1][1] = (ret[-1][1] + " " + line.strip()).strip()
    return ret


def all_items(text):
    """Every item of a help text, wherever it stands."""
    ret = []
    for _, lines in sections(text):
        for kind, content in blocks(lines):
            if kind == "items":
                ret += content
    return ret


def flag_values(text):
    """{flag: what stands for its value} of the flags that the text describes: {"config": "SOURCE", "json": ""}."""
    ret = {}
    for term, _ in all_items(text):
        m = FLAG.match(term)
        if m:
            ret.setdefault(m.group(2), m.group(4).strip())
    return ret
