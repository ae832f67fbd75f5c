"""Each case of tests/compare/side_by_side.py: motel exports what the reference collector exports."""
import os
import subprocess
import sys

import pytest

from conftest import REFERENCE, ROOT

SCRIPT = os.path.join(ROOT, "tests", "compare", "side_by_side.py")
CASES = subprocess.run([sys.executable, SCRIPT, "--list"], check=True, capture_output=True, text=True).stdout.split("\n\n")[0].split()


@pytest.mark.reference
@pytest.mark.parametrize("case", CASES)
def test_case(case):
    if not REFERENCE:
        pytest.skip("REFERENCE_COLLECTOR does not name a reference collector")
    done = subprocess.run([sys.executable, SCRIPT, "--case", case, "--width", "1500"], capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[:20000]
