"""What is measured: the runs of a round, the runs of the growth part, and the rows of the table with their bars."""
import dataclasses

SPANS_PER_REQUEST = (1, 10, 100, 1000, 10000)
ATTRIBUTES_PER_SPAN = (4, 16, 32, 64, 128)
SERIES_PER_PAGE = (100, 1000, 5000, 50000)


@dataclasses.dataclass(frozen=True)
class Spec:
    """One thing to run. `n`: requests, seconds (scrape, idle), repeats (startstop) or connections, before --scale."""
    name: str
    group: str
    kind: str                  # a function of scenarios.py
    configuration: str
    n: int
    title: str = ""
    protocol: str = "http"
    body: str = "traces_100"
    gzip: bool = False         # compressed requests
    rate: int = 0              # requests a second; 0: closed loop
    connections: int = 8
    idle_connections: int = 0  # open beside the load
    sink: bool = False         # delivers to the sink
    file: bool = False         # delivers to a file
    span_metrics: bool = False
    page: str = ""
    held: bool = True          # startstop: 1,000 spans wait in the batch at the end
    cores: str = ""            # the agent is pinned to these
    arguments: tuple = ()      # of motel alone
    may_refuse: bool = False   # a refused request is no loss
    x: int = 0                 # growth: the place on the axis
    row: str = ""              # growth: the row it belongs to


def _main_specs():
    gym = {"configuration": "gym_file", "file": True}
    gym_http = {"configuration": "gym_file_http", "file": True, "sink": True}
    full = {"configuration": "gym_full", "file": True, "sink": True, "span_metrics": True}
    plain, packed = {"configuration": "upserts", "sink": True}, {"configuration": "upserts_gzip", "sink": True}
    paced = {"group": "paced", "n": 160, "rate": 20, "kind": "load"}
    load = {"group": "load", "kind": "load"}
    return [
        Spec("S1", configuration="nop", n=2000, protocol="grpc", title="S1: gRPC → nothing", **load),
        Spec("S2", configuration="nop", n=2000, title="S2: HTTP → nothing", **load),
        Spec("S2z", configuration="nop", n=2000, gzip=True, title="S2z: gzipped HTTP → nothing", **load),
        Spec("S3", n=2000, title="S3: HTTP → 7 upserts → batch → HTTP", **plain, **load),
        Spec("S3z", n=1500, title="S3z: S3 with gzip out", **packed, **load),
        Spec("S4", n=1000, title="S4: Gym → file", **gym, **load),
        Spec("S4h", n=1000, title="S4h: Gym → file and gzipped HTTP", **gym_http, **load),
        Spec("S5", n=1000, title="S5: Gym with span metrics → file and gzipped HTTP", **full, **load),
        Spec("S1 paced", configuration="nop", protocol="grpc", title="S1 paced", **paced),
        Spec("S2 paced", configuration="nop", title="S2 paced", **paced),
        Spec("S3z paced", title="S3z paced", **packed, **paced),
        Spec("S5 paced", title="S5 paced", **full, **paced),
        Spec("S6", "scrape", "scrape", "scrape", 10, page="page_5000", file=True, title="S6: 5,000 series scraped every second → file"),
        Spec("idle", "idle", "idle", "nop", 8),
        Spec("idle Gym", "idle", "idle", "gym_full", 8),
        Spec("stop file", "startstop", "startstop", "held_file", 5, file=True),
        Spec("stop HTTP", "startstop", "startstop", "held_http", 5, sink=True),
        Spec("stop empty", "startstop", "startstop", "upserts_gzip", 5, sink=True, held=False),
        Spec("connections HTTP", "connections", "connections", "nop", 1000, protocol="http"),
        Spec("connections gRPC", "connections", "connections", "nop", 1000, protocol="grpc"),
        Spec("size", "size", "size", "nop", 1),
    ]


def _signal_specs():
    return [Spec(f"S2 {s}", "signals", "load", "nop", 400, body=f"{s}_500", title=f"S2 with {s}") for s in ("metrics", "logs")]


def _growth_specs():
    def spec(row, x, n, kind="load", configuration="nop", **more):
        return Spec(f"{row}: {x}", "growth", kind, configuration, n, row=row, x=x, **more)
    file_out, packed = {"configuration": "gym_file", "file": True}, {"configuration": "upserts_gzip", "sink": True}
    out = []
    for x in SPANS_PER_REQUEST:
        body = {"body": f"traces_{x}", "n": max(20, min(5000, 100000 // x))}
        out += [spec("spans a request (HTTP → nothing)", x, **body), spec("spans a request (gRPC → nothing)", x, protocol="grpc", **body),
                spec("spans a request (Gym → file)", x, **file_out, **body)]
    for x in (1, 10, 100, 1000, 2000):
        out.append(spec("connections (HTTP → nothing)", x, max(2000, 10 * x), connections=x))
    for x in (10, 1000, 5000):
        out.append(spec("idle connections beside the load (HTTP → nothing)", x, 2000, idle_connections=x))
    for x in ATTRIBUTES_PER_SPAN:
        out += [spec("attributes a span (HTTP → nothing)", x, 1000, body=f"attributes_{x}"),
                spec("attributes a span (Gym → file)", x, 500, body=f"attributes_{x}", **file_out)]
    for x in SERIES_PER_PAGE:
        out.append(spec("series a scrape (→ file)", x, 5, "scrape", "scrape_fast", page=f"page_{x}", file=True))
    for x, cores in ((1, "0"), (2, "0,1")):
        out += [spec("receiver threads (HTTP → nothing)", x, 2000, cores=cores),
                spec("receiver threads (gzipped HTTP out)", x, 1500, cores=cores, **packed)]
    out += [spec("one core (Gym with span metrics)", 1, 600, configuration="gym_full", file=True, sink=True, span_metrics=True, cores="0"),
            spec("memory limit 64 MiB (gzipped HTTP out)", 64, 1500, arguments=("--memory-limit", "64MiB"), may_refuse=True, **packed),
            spec("memory limit 64 MiB (Gym → file)", 64, 20, body="traces_10000", arguments=("--memory-limit", "64MiB"), may_refuse=True,
                 **file_out)]
    return out


MAIN, SIGNALS, GROWTH = _main_specs(), _signal_specs(), _growth_specs()
SPECS = {s.name: s for s in MAIN + SIGNALS + GROWTH}
GROUPS = list(dict.fromkeys(s.group for s in SPECS.values()))
DEFAULT_GROUPS = [g for g in GROUPS if g != "signals"]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table: a field of a run. The bar is a multiple (reference / motel) or a most in the row's unit."""
    title: str
    spec: str
    field: str
    unit: str
    at_least: float = 0
    at_most: float = 0
    scale: float = 1
    digits: int = 2
    most_of_reference: float = 0   # motel / reference may be this


def _cpu_rows():
    bars = {"S1": 5, "S1 paced": 5, "S2": 6, "S2 paced": 6, "S2z": 5, "S3": 6, "S3z": 6, "S3z paced": 0, "S4": 4.5, "S4h": 5, "S5": 4.5,
            "S5 paced": 5}
    return [Row(SPECS[name].title, name, "cpu_us_per_record", "µs of CPU a span", at_least=bar) for name, bar in bars.items()]


ROWS = _cpu_rows() + [
    Row("S2 with metrics", "S2 metrics", "cpu_us_per_record", "µs of CPU a point"),
    Row("S2 with logs", "S2 logs", "cpu_us_per_record", "µs of CPU a log record"),
    Row(SPECS["S6"].title, "S6", "cpu_ms_per_scrape", "ms of CPU a scrape", at_least=6),
    Row("S3z: bytes sent", "S3z", "wire_bytes_per_record", "bytes a span", most_of_reference=1.15, digits=1),
    Row("S3z paced: bytes sent", "S3z paced", "wire_bytes_per_record", "bytes a span", most_of_reference=1.15, digits=1),
    Row("idle: CPU", "idle", "cpu_ms_per_s", "ms a second", digits=3),
    Row("idle, Gym: CPU", "idle Gym", "cpu_ms_per_s", "ms a second", digits=3),
    Row("idle: resident", "idle", "rss_kib", "MiB", scale=1 / 1024, digits=1),
    Row("idle: anonymous", "idle", "anonymous_kib", "MiB", at_most=4, scale=1 / 1024, digits=1),
    Row("idle, Gym: resident", "idle Gym", "rss_kib", "MiB", scale=1 / 1024, digits=1),
    Row("idle, Gym: anonymous", "idle Gym", "anonymous_kib", "MiB", at_most=4, scale=1 / 1024, digits=1),
    Row("S3z paced: peak resident", "S3z paced", "rss_peak_kib", "MiB", at_most=16, scale=1 / 1024, digits=1),
    Row("S5 paced: peak resident", "S5 paced", "rss_peak_kib", "MiB", at_most=16, scale=1 / 1024, digits=1),
    Row("S3z: peak resident", "S3z", "rss_peak_kib", "MiB", at_most=48, scale=1 / 1024, digits=1),
    Row("start → first answer, file", "stop file", "ready_ms", "ms", at_most=15, digits=1),
    Row("start → first answer, HTTP", "stop HTTP", "ready_ms", "ms", at_most=15, digits=1),
    Row("SIGTERM → end, 1,000 spans held, file", "stop file", "stop_ms", "ms", at_most=20, digits=1),
    Row("SIGTERM → end, 1,000 spans held, HTTP", "stop HTTP", "stop_ms", "ms", at_most=20, digits=1),
    Row("SIGTERM → end, nothing held", "stop empty", "stop_ms", "ms", at_most=20, digits=1),
    Row("an open connection, HTTP", "connections HTTP", "kib_per_connection", "KiB", at_most=20, digits=1),
    Row("an open connection, gRPC", "connections gRPC", "kib_per_connection", "KiB", at_most=24, digits=1),
    Row("program, stripped", "size", "stripped_kib", "KiB", at_most=700, digits=0),
]
