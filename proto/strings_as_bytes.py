#!/usr/bin/env python3
"""strings_as_bytes.py IN.proto OUT.proto: the same messages with `bytes` for `string`, for protoc-c only.

protobuf-c's string is a char pointer, so packing cuts the text at a NUL, which is a legal character. Both types are the
same on the wire.
"""
import re
import sys

with open(sys.argv[1]) as f:
    source = f.read()
with open(sys.argv[2], "w") as f:
    f.write(re.sub(r"^(\s*(?:repeated )?)string ", r"\1bytes ", source, flags=re.M))
