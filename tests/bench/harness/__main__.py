"""python -m harness run|report ARGUMENTS"""
import importlib
import sys

MODULES = {"run": "harness.command", "report": "harness.report"}  # the report needs no packages

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in MODULES:
        sys.exit(__doc__)
    sys.exit(importlib.import_module(MODULES[sys.argv[1]]).main(sys.argv[2:]))
