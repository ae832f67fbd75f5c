"""Our .proto files against the published OTLP descriptors (package opentelemetry-proto), both ways.

MOTEL_BUILD names the build directory (default build).
"""
import importlib
import os

from google.protobuf import descriptor_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("MOTEL_BUILD", os.path.join(ROOT, "build"))
MODULES = ("common.v1.common", "resource.v1.resource", "trace.v1.trace", "metrics.v1.metrics", "logs.v1.logs",
           "collector.trace.v1.trace_service", "collector.metrics.v1.metrics_service",
           "collector.logs.v1.logs_service")
FIELD = descriptor_pb2.FieldDescriptorProto


def published():
    for name in MODULES:
        file = descriptor_pb2.FileDescriptorProto()
        importlib.import_module(f"opentelemetry.proto.{name}_pb2").DESCRIPTOR.CopyToProto(file)
        yield file


def ours():
    files = descriptor_pb2.FileDescriptorSet()
    with open(os.path.join(BUILD, "proto", "otlp", "descriptors.bin"), "rb") as f:
        files.ParseFromString(f.read())
    return [file for file in files.file if file.package.startswith("opentelemetry.")]


def presence(message, field):
    """None, or the oneof's name; a one-member oneof is what `optional` makes, whatever it is called."""
    if not field.HasField("oneof_index"):
        return None
    members = sum(f.HasField("oneof_index") and f.oneof_index == field.oneof_index for f in message.field)
    return "optional" if members == 1 else message.oneof_decl[field.oneof_index].name


def describe(files):
    """(name -> what a reader of the wire or of JSON can tell); the order of fields is the matter of the JSON tests."""
    found = {}

    def enum(prefix, e):
        found[f"{prefix}.{e.name}"] = [(v.name, v.number) for v in e.value]

    def message(prefix, m):
        name = f"{prefix}.{m.name}"
        found[name] = sorted(f.name for f in m.field)
        for f in m.field:
            found[f"{name}.{f.name}"] = (f.number, FIELD.Type.Name(f.type), FIELD.Label.Name(f.label), f.type_name,
                                         presence(m, f))
        for e in m.enum_type:
            enum(name, e)
        for nested in m.nested_type:
            message(name, nested)

    for file in files:
        for e in file.enum_type:
            enum(file.package, e)
        for m in file.message_type:
            message(file.package, m)
    return found


def test_same_names_and_definitions():
    theirs, own = describe(published()), describe(ours())
    assert len(theirs) > 200
    assert sorted(own) == sorted(theirs)
    assert {n: (own[n], theirs[n]) for n in theirs if own[n] != theirs[n]} == {}
