#!/usr/bin/env python3
"""gen_schema.py DESCRIPTOR_SET OUT.c PBC.c: writes the tables of proto/schema.h and proto/schema_tables.h, and that of proto/schema_pbc.h.

DESCRIPTOR_SET is what `protoc --descriptor_set_out` wrote, a google.protobuf.FileDescriptorSet. It is read by hand here, so
that nothing but Python itself is needed to build. Field order is declaration order, which is the order of JSON output.
"""
import re
import sys

KINDS = {1: "DOUBLE", 6: "FIXED64", 16: "SFIXED64", 7: "FIXED32", 5: "INT32", 3: "INT64", 17: "SINT32", 13: "UINT32",
         4: "UINT64", 8: "BOOL", 14: "ENUM", 9: "STRING", 12: "BYTES", 11: "MESSAGE"}
WIRE = {"DOUBLE": 1, "FIXED64": 1, "SFIXED64": 1, "FIXED32": 5, "STRING": 2, "BYTES": 2, "MESSAGE": 2}
ACTION = {0: "VARINT", 1: "I64", 5: "I32"}
ID_LEN = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}
RECORDS = re.compile(r"\.(Span|LogRecord|\w+DataPoint)$")
ATTRIBUTE = "opentelemetry.proto.common.v1.KeyValue"
VALUE = "opentelemetry.proto.common.v1.AnyValue"
ORDER_FIELDS = 31  # one place more is for unknown ones
TIMES = {"start_time_unix_nano": "TIME", "end_time_unix_nano": "TIME", "time_unix_nano": "TIME", "observed_time_unix_nano": "TIME_OBSERVED"}
CONTAINERS = ("opentelemetry.proto.common.v1.ArrayValue", "opentelemetry.proto.common.v1.KeyValueList")
SHAPES = {ATTRIBUTE: "KEY_VALUE", "opentelemetry.proto.common.v1.AnyValue": "VALUE"}
JSON_START_BYTES = 32
SIGNALS = ("trace", "Trace"), ("metrics", "Metrics"), ("logs", "Logs")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def parse(data):
    """The fields of an encoded message: number -> list of ints (varint) or bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            data_end = at + value
            value, at = data[at:data_end], data_end
        elif tag & 7 != 0:
            sys.exit(f"unexpected wire type {tag & 7} in the descriptor set")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def text(fields, number):
    return fields[number][-1].decode() if number in fields else ""


def collect(data):
    """All messages and enums of the set: two dicts of full name -> parsed descriptor."""
    messages, enums = {}, {}

    def visit(prefix, fields, message_no, enum_no):
        for raw in fields.get(enum_no, []):
            e = parse(raw)
            enums[f"{prefix}.{text(e, 1)}"] = e
        for raw in fields.get(message_no, []):
            m = parse(raw)
            messages[f"{prefix}.{text(m, 1)}"] = m
            visit(f"{prefix}.{text(m, 1)}", m, 3, 4)

    for raw in parse(data)[1]:
        file = parse(raw)
        visit(text(file, 2), file, 4, 5)
    return messages, enums


def ident(name):
    return name.replace(".", "_")


def descriptor_symbol(name):
    """The name protoc-c gives to the descriptor of a message."""
    parts = [re.sub(r"(?<=[^A-Z_])([A-Z])", r"_\1", part).lower() for part in name.split(".")]
    return "__".join(parts) + "__descriptor"


class Field:
    def __init__(self, raw):
        d = parse(raw)
        self.name, self.number = text(d, 1), d[3][-1]
        self.json = text(d, 10) or re.sub(r"_(\w)", lambda m: m.group(1).upper(), self.name)
        self.repeated = d[4][-1] == 3
        self.kind = KINDS[d[5][-1]]
        self.type_name = text(d, 6).lstrip(".")
        self.oneof = d[9][-1] if 9 in d else -1
        self.wire = WIRE.get(self.kind, 0)
        self.id_len = ID_LEN.get(self.name, 0) if self.kind == "BYTES" else 0
        if self.number >= 32:
            sys.exit(f"{self.name}: field numbers above 31 need larger check tables")
        if len(self.json) + 4 > JSON_START_BYTES:
            sys.exit(f"{self.name}: longer names need a larger JSON_START_BYTES")

    def row(self):
        message = f"&schema_messages[M_{ident(self.type_name)}]" if self.kind == "MESSAGE" else "NULL"
        enum = f"&E_{ident(self.type_name)}" if self.kind == "ENUM" else "NULL"
        return (f'    {{"{self.name}", "{self.json}", {len(self.name)}, {len(self.json)}, {self.number}, KIND_{self.kind}, '
                f"{self.wire}, {self.id_len}, {int(self.repeated)}, {self.oneof}, {message}, {enum},\n"
                f'     SHAPE_{SHAPES.get(self.type_name, "ANY")}, {len(self.json) + 4}, ",\\"{self.json}\\":"}},')

    def action(self, message):
        if self.kind == "MESSAGE":
            if self.type_name in CONTAINERS and self.oneof >= 0:
                return "CONTAINER"
            if self.type_name == ATTRIBUTE:
                return "ATTRIBUTE"
            return "RECORD" if RECORDS.search(self.type_name) and self.repeated else "MESSAGE"
        if self.kind == "STRING" or self.kind == "BYTES":
            return f"ID{self.id_len}" if self.id_len else self.kind
        if RECORDS.search(message) and self.name in TIMES and not (self.name.startswith("start") and message.endswith("DataPoint")):
            return TIMES[self.name]
        return ("PACKED_" if self.repeated else "") + ACTION[self.wire]

    def cell(self, message):
        action = self.action(message)
        wire = 2 if action.startswith("PACKED") else self.wire
        slot = self.number
        if self.oneof >= 0:
            slot = f"CHECK_FIRST_ONEOF + {self.oneof}"
        elif self.repeated and not action.startswith("PACKED"):
            slot = "CHECK_REPEATED"
        sub = f"M_{ident(self.type_name)}" if self.kind == "MESSAGE" else 0
        return f"        [{self.number}] = {{CHECK_{action}, {wire}, {slot}, {sub}}},"

    def packed(self):
        return self.repeated and self.wire != 2

    def sent_wire(self):
        return 2 if self.packed() else self.wire

    def order(self):
        """The cell of proto/wire_order.c."""
        presence = self.oneof >= 0 or self.repeated
        if self.kind == "MESSAGE":
            action = {ATTRIBUTE: "ATTRIBUTE", VALUE: "VALUE"}.get(self.type_name, "MESSAGE")
        elif self.id_len:
            action = "ID"
        elif self.packed():
            action = "TEXT"
        else:
            action = ("TEXT" if self.sent_wire() == 2 else "NUMBER") + ("_PRESENT" if presence else "")
        sub = f"M_{ident(self.type_name)}" if self.kind == "MESSAGE" else 0
        return f"    {{ORDER_{action}, KIND_{self.kind}, {sub}, {self.number << 3 | self.sent_wire()}}},"

    def always(self):
        return self.id_len > 0 or (self.kind == "MESSAGE" and not self.repeated and self.oneof < 0)


def write_enums(enums, out):
    for name, e in enums.items():
        out.append(f"static const struct schema_enum_value V_{ident(name)}[] = {{")
        for raw in e[2]:
            v = parse(raw)
            out.append(f'    {{"{text(v, 1)}", {v.get(2, [0])[-1]}}},')
        out.append("};")
        out.append(f'static const struct schema_enum _unused_ E_{ident(name)} = '
                   f'{{"{name}", {len(e[2])}, V_{ident(name)}}};')


def write_messages(messages, out):
    fields = {name: [Field(raw) for raw in m.get(2, [])] for name, m in messages.items()}
    out.append("enum {")
    out += [f"    M_{ident(name)}," for name in messages]
    out.append("};")
    for name in messages:
        out.append(f"static const struct schema_field F_{ident(name)}[] = {{")
        out += [f.row() for f in fields[name]]
        out.append("};")
    out.append("const struct schema_message schema_messages[] = {")
    for name, m in messages.items():
        always = sum(1 << i for i, f in enumerate(fields[name]) if f.kind == "MESSAGE" and not f.repeated and f.oneof < 0)
        places = ", ".join(f"[{f.number}] = {i + 1}" for i, f in enumerate(fields[name]))
        out.append(f'    {{"{name}", {len(fields[name])}, {len(m.get(8, []))}, {int(name in CONTAINERS)}, F_{ident(name)}, {{{places}}}, {always}}},')
    out.append("};")
    out.append(f"const size_t schema_nmessages = {len(messages)};")
    out.append("const struct check_cell check_cells[][CHECK_FIELDS] = {")
    for name in messages:
        out.append(f"    [M_{ident(name)}] = {{")
        out.append("        [0 ... CHECK_FIELDS - 1] = {CHECK_OTHER, 0xff, CHECK_REPEATED, 0},")
        out += [f.cell(name) for f in fields[name]]
        out.append("    },")
    out.append("};")


def write_order(messages, out):
    """The tables of proto/wire_order.c: fields by declaration, which is the order that the reference writes backwards."""
    fields = {name: [Field(raw) for raw in m.get(2, [])] for name, m in messages.items()}
    out.append("const struct order_cell order_cells[] = {")
    for of in fields.values():
        out += [f.order() for f in of]
    out.append("};")
    out.append("const struct order_message order_messages[] = {")
    first = 0
    for name, of in fields.items():
        if len(of) > ORDER_FIELDS:
            sys.exit(f"{name}: more than {ORDER_FIELDS} fields need larger order tables")
        always = sum(1 << i for i, f in enumerate(of) if f.always())
        repeated = sum(1 << i for i, f in enumerate(of) if f.repeated and not f.packed())
        out.append(f"    [M_{ident(name)}] = {{{always:#x}, {repeated:#x}, {first}, {{")
        out.append("        [0 ... CHECK_FIELDS - 1] = ORDER_UNKNOWN,")
        out += [f"        [{f.number}] = {i << 3 | f.sent_wire()}," for i, f in enumerate(of)]
        out.append("    }},")
        first += len(of)
    out.append("};")


def write_signals(what, out):
    out.append(f"const struct schema_message *const schema_{what.lower()}s[SIGNAL_COUNT] = {{")
    for package, signal in SIGNALS:
        name = f"opentelemetry.proto.collector.{package}.v1.Export{signal}Service{what}"
        out.append(f"    &schema_messages[M_{ident(name)}],")
    out.append("};")


def write_descriptors(messages, path):
    out = ["/* Made by gen_schema.py. */", '#include "proto/schema_pbc.h"', '#include "proto/schema_tables.h"', ""]
    out += [f"extern const ProtobufCMessageDescriptor {descriptor_symbol(name)};" for name in messages]
    out.append("static const ProtobufCMessageDescriptor *const descriptors[] = {")
    out += [f"    &{descriptor_symbol(name)}," for name in messages]
    out += ["};", "", "const ProtobufCMessageDescriptor *schema_descriptor(const struct schema_message *m)", "{",
            "    return descriptors[schema_index(m)];", "}"]
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def main():
    with open(sys.argv[1], "rb") as f:
        messages, enums = collect(f.read())
    out = ['/* Made by gen_schema.py. */', '#include "proto/schema_tables.h"', ""]
    out += ["#pragma GCC diagnostic ignored \"-Woverride-init\"",
            "#ifdef __clang__", "#pragma GCC diagnostic ignored \"-Winitializer-overrides\"", "#endif", ""]
    write_enums(enums, out)
    write_messages(messages, out)
    write_order(messages, out)
    write_signals("Request", out)
    write_signals("Response", out)
    with open(sys.argv[2], "w") as f:
        f.write("\n".join(out) + "\n")
    write_descriptors(messages, sys.argv[3])


main()
