"""The size of the installed program: size.py PROGRAM MAX_BYTES.

Strips a copy, as `meson install --strip` does, prints its size by section, and exits 1 when the file is larger than MAX_BYTES.
"""
import os
import subprocess
import sys
import tempfile

SHOWN_BYTES = 4096


def sections(path):
    """(name, bytes in the file) of the larger sections, the largest first."""
    out = subprocess.run(["size", "-A", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.split("\n") if line.startswith(".")]
    return sorted(((name, int(size)) for name, size, *_ in rows if name != ".bss" and int(size) >= SHOWN_BYTES), key=lambda row: -row[1])


def main():
    program, limit = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "stripped")
        subprocess.run(["strip", "-o", stripped, program], check=True)
        size = os.path.getsize(stripped)
        for name, part in sections(stripped):
            print(f"{part:10,} {name}")
    print(f"{size:10,} stripped, of at most {limit:,}")
    return 1 if size > limit else 0


if __name__ == "__main__":
    sys.exit(main())
