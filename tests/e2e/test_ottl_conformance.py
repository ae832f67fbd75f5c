"""Every row of tests/golden/ottl/conformance.tsv through the program: OTLP in, the transform processor, the file exporter."""
import importlib.util
import os

from conftest import MOTEL, ROOT, SANITIZER_WORDS, free_port

SPEC = importlib.util.spec_from_file_location("ottl_table", os.path.join(ROOT, "tests", "golden", "ottl", "check_against_reference.py"))
table = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(table)


def wanted(row):
    return row["motel"] or row["expected"]


def test_every_row_that_starts(tmp_path):
    """Refusals, a process each, are left to the unit test of the same table."""
    _, rows = table.read_table()
    cases = [(case, row) for case, row in enumerate(rows) if not wanted(row).startswith("refused")]
    try:
        found, _ = table.run(MOTEL, cases, str(tmp_path), free_port())
    finally:
        log = (tmp_path / "log").read_text(errors="replace")
        print(log[-6000:])
    assert len(found) == len(cases) and not any(w in log for w in SANITIZER_WORDS)
    different = {row["text"]: (table.picked(row, found[case]), wanted(row)) for case, row in cases
                 if not wanted(row).startswith("error") and table.picked(row, found[case]) != wanted(row)}
    assert not different
