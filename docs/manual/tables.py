"""What docs/manual/tables.c prints, read; and the Markdown tables of keys in it, taken apart."""
import json
import re


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def cells(row):
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", row)[1:-1]]


def keys(markdown):
    """[(path, type, default, help)] of a table of keys."""
    return [tuple(c if i in (1, 3) else c.strip("`") for i, c in enumerate(cells(row))) for row in markdown.splitlines()[2:]]
