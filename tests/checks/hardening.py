"""The guards that the build puts into the program, read back from the ELF file: hardening.py PROGRAM.

Prints what is missing and exits 1, or prints one line and exits 0. With --built-with-sanitizer what the sanitizers replace is not asked for; with
--static what musl has not: checked functions (_FORTIFY_SOURCE), and symbols to find them by.
"""
import re
import subprocess
import sys

# Where an indirect branch may land. The note that switches the check on is only there when the C library's start files have it, too.
ENDBR64, MOST_OF_START_FILES = b"\xf3\x0f\x1e\xfa", 100


def count(program, code):
    with open(program, "rb") as f:
        return f.read().count(code)


def readelf(program, *options):
    r = subprocess.run(["readelf", "--wide", *options, program], capture_output=True, text=True, check=True)
    return r.stdout


def segments(program):
    """Type -> flags of each program header."""
    found = {}
    for line in readelf(program, "--program-headers").split("\n"):
        m = re.match(r"\s+([A-Z_]+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ (.{3})", line)
        if m:
            found.setdefault(m.group(1), []).append(m.group(2).replace(" ", ""))
    return found


def protects_stacks(program, symbols, static):
    """The name of the function that is called, or, without symbols, the canary behind the thread pointer or in a variable that is read."""
    if not static:
        return "__stack_chk_fail" in symbols
    code = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", program], capture_output=True, text=True).stdout if is_x86(program) else ""
    return not is_x86(program) or len(re.findall(r"%fs:0x28", code)) > MOST_OF_START_FILES


def is_x86(program):
    return "X86-64" in readelf(program, "--file-header")


def faults(program, sanitized, static):
    header, heads, dynamic = readelf(program, "--file-header"), segments(program), readelf(program, "--dynamic")
    symbols = readelf(program, "--dyn-syms")
    if not re.search(r"Type:\s+DYN", header):
        yield "not position independent (PIE)"
    if "(TEXTREL)" in dynamic:
        yield "has relocations in its code"
    if "GNU_RELRO" not in heads:
        yield "no read-only relocations (RELRO)"
    if not re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic) and "BIND_NOW" not in dynamic:
        yield "symbols are bound late, so the table of functions stays writable (no full RELRO)"
    if heads.get("GNU_STACK") != ["RW"]:
        yield f"the stack's flags are {heads.get('GNU_STACK')}, not RW"
    both = [flags for flags in heads.get("LOAD", []) if "W" in flags and "E" in flags]
    if both:
        yield "a segment is writable and executable"
    if "(RPATH)" in dynamic:
        yield "has an RPATH"
    if not protects_stacks(program, symbols, static):
        yield "no stack protector"
    if static and "INTERP" in heads:
        yield "asks for a loader"
    if not sanitized and not static and not re.search(r"__(memcpy|snprintf|vsnprintf|read|recv|fprintf)_chk", symbols):
        yield "no checked functions (_FORTIFY_SOURCE)"
    if "X86-64" in header and count(program, ENDBR64) < MOST_OF_START_FILES:
        yield "functions do not begin with endbr64 (-fcf-protection)"


def main():
    program, sanitized = sys.argv[1], "--built-with-sanitizer" in sys.argv[2:]
    found = list(faults(program, sanitized, "--static" in sys.argv[2:]))
    for fault in found:
        print(f"{program}: {fault}")
    if not found:
        print(f"{program}: hardened")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
