#!/usr/bin/env python3
"""Runs every row of conformance.tsv through a real collector and says which rows differ from what the table expects.

    REFERENCE_COLLECTOR=/path/to/otelcol-contrib tests/golden/ottl/check_against_reference.py [--write] [words ...]

--write puts what the collector did into the table. With words only rows that contain one of them are looked at. README.md describes the
columns. All rows go through one collector: a row is a statement of its own and a record of its own, which find each other by
the resource attribute "case". Statements that are refused at the start are told
apart by that number, by the line of a syntax error, or by halving the list until they stand alone.
"""
import json, math, os, pathlib, re, socket, subprocess, sys, tempfile, time, urllib.error, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ["area", "input", "kind", "text", "expected", "motel", "reason"]
SIGNALS = {"logs": ("log_statements", "resourceLogs", "scopeLogs"), "traces": ("trace_statements", "resourceSpans", "scopeSpans"),
           "metrics": ("metric_statements", "resourceMetrics", "scopeMetrics")}
NAMES = {"\\": "\\", "\n": "n", "\t": "t", "\r": "r"}


def unescape(s):
    return re.sub(r"\\(x[0-9a-f]{2}|.)", lambda m: chr(int(m[1][1:], 16)) if len(m[1]) > 1 else
                  {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), s)


def escape(s):
    return "".join("\\" + NAMES[c] if c in NAMES else c for c in s)


def read_table():
    lines = (HERE / "conformance.tsv").read_text(encoding="utf-8").split("\n")
    rows = []
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            fields = [unescape(f) for f in line.split("\t")]
            rows.append(dict(zip(COLUMNS, fields + [""] * (len(COLUMNS) - len(fields))), line=number))
    return lines, rows


def write_table(lines, rows):
    for row in rows:
        fields = [escape(row[c]) for c in COLUMNS]
        lines[row["line"]] = "\t".join(fields).rstrip("\t")
    (HERE / "conformance.tsv").write_text("\n".join(lines), encoding="utf-8")


# ---- what goes in ----

INPUTS = json.loads((HERE / "inputs.json").read_text(encoding="utf-8"))


def place(row):
    """The input and the context ("" = inferred) of a row."""
    name, _, context = row["input"].partition("@")
    given = INPUTS[name]
    return given, context if "@" in row["input"] else given["context"]


def statement(row, case):
    mine = f'resource.attributes["case"] == {case}'
    lines = "\n" * case  # a syntax error tells its line only
    if row["kind"] == "expr":
        return f'{lines}set(attributes["out"], {row["text"]}) where {mine}'
    if row["kind"] == "cond":
        return f'{lines}set(attributes["out"], true) where {mine} and ({row["text"]})'
    editor, _, condition = row["text"].partition(" where ")
    return f"{lines}{editor} where {mine}" + (f" and ({condition})" if condition else "")


def group(row, case):
    _, context = place(row)
    return {**({"context": context} if context else {}), "statements": [statement(row, case)]}


def collector_config(cases, port, out):
    processor = {"error_mode": "ignore"}
    for case, row in cases:
        processor.setdefault(SIGNALS[place(row)[0]["signal"]][0], []).append(group(row, case))
    return {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "processors": {"transform": processor},
        "exporters": {f"file/{s}": {"path": f"{out}/{s}.jsonl", "flush_interval": "100ms"} for s in SIGNALS},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"encoding": "json", "sampling": {"enabled": False}}},
                    "pipelines": {s: {"receivers": ["otlp"], "processors": ["transform"], "exporters": [f"file/{s}"]} for s in SIGNALS}}}


def requests(cases):
    """One request per signal; each row has a resource of its own."""
    out = {s: {SIGNALS[s][1]: []} for s in SIGNALS}
    for case, row in cases:
        given = place(row)[0]
        top = SIGNALS[given["signal"]][1]
        resource = json.loads(json.dumps(given["request"][top][0]))
        resource["resource"].setdefault("attributes", []).append({"key": "case", "value": {"intValue": str(case)}})
        out[given["signal"]][top].append(resource)
    return {s: r for s, r in out.items() if r[SIGNALS[s][1]]}


# ---- what comes out, simplified ----

def simple_value(v):
    if "stringValue" in v:
        return v["stringValue"]
    if "boolValue" in v:
        return v["boolValue"]
    if "intValue" in v:
        return int(v["intValue"])
    if "doubleValue" in v:
        d = v["doubleValue"]
        return {"double": d} if isinstance(d, str) or not math.isfinite(d) else float(d)
    if "bytesValue" in v:
        return {"bytes": v["bytesValue"]}
    if "arrayValue" in v:
        return [simple_value(i) for i in v["arrayValue"].get("values", [])]
    if "kvlistValue" in v:
        return simple_map(v["kvlistValue"].get("values", []))
    return None


def simple_map(pairs):
    return {p["key"]: simple_value(p.get("value", {})) for p in pairs}


def simple(j):
    if isinstance(j, list):
        return [simple(i) for i in j]
    if not isinstance(j, dict):
        return j
    out = {}
    for key, value in j.items():
        if key in ("attributes", "filteredAttributes", "metadata"):
            out[key] = simple_map(value)
        else:
            out[key] = simple_value(value) if key == "body" else simple(value)
    return out


def dump(j):
    return json.dumps(j, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def picked(row, resource):
    given, context = place(row)
    _, top, middle = SIGNALS[given["signal"]]
    if row["kind"] != "do":
        attributes = simple_map(resource[middle][0][given["records"]][0].get("attributes", []))
        return dump(attributes["out"]) if "out" in attributes else "absent"
    if context in ("resource", "scope"):
        return dump(simple({"resource": resource["resource"], "scope": resource[middle][0].get("scope", {})}))
    records = simple(resource[middle][0][given["records"]])
    return dump(records if given["signal"] == "metrics" else records[0])


# ---- running ----

PIECES = r'; (?=unable to |statement has |editor names |converter names |only paths |context ")'


def validate(binary, cases, where):
    """What is wrong with these rows: a text each, in no certain order; [] when nothing."""
    config = pathlib.Path(where) / "validate.json"
    config.write_text(json.dumps(collector_config(cases, 4318, where)).replace("$", "$$"))
    r = subprocess.run([binary, "validate", "--config", str(config)], capture_output=True, text=True, timeout=600)
    return re.split(PIECES, re.sub("^Error: processors::transform: ", "", r.stderr.strip())) if r.returncode else []


def whose(text):
    """The case that a refusal is about: it stands in the statement, or is the line of a syntax error; None when neither is told."""
    m = re.search(r"case\W+== (\d+)", text)
    if m:
        return int(m[1])
    m = re.search(r"invalid syntax(?:: | at )(\d+):", text)
    return int(m[1]) - 1 if m else None


def halve(binary, cases, where):
    """{case: why it is refused}, for texts that do not tell."""
    why = validate(binary, cases, where) if cases else []
    if not why or len(cases) == 1:
        return {cases[0][0]: "; ".join(why)} if why else {}
    half = len(cases) // 2
    return {**halve(binary, cases[:half], where), **halve(binary, cases[half:], where)}


def sift(binary, cases, where):
    """(those that start, {case: why it does not})"""
    bad = {}
    while True:
        left = [c for c in cases if c[0] not in bad]
        why = validate(binary, left, where) if left else []
        told = {whose(text): text for text in why if whose(text) in [c[0] for c in left]}
        bad.update(told)
        if not told:
            break
    if why:
        expected = [c for c in left if c[1]["expected"].startswith("refused")]
        for case in expected:
            bad.update(halve(binary, [case], where))
        bad.update(halve(binary, [c for c in left if c not in expected], where))
    return [c for c in cases if c[0] not in bad], bad


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def send(port, signal, request, process):
    """As an OTLP client does: what may be tried again is tried again."""
    body = json.dumps(request).encode()
    while process.poll() is None:
        try:
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/v1/{signal}", body, {"Content-Type": "application/json"}), timeout=240)
            return
        except urllib.error.HTTPError as e:
            if e.code not in (429, 502, 503, 504):
                raise SystemExit(f"{signal}: {e.code} {e.read()}") from e
        except (ConnectionError, urllib.error.URLError):
            pass  # it does not listen yet
        time.sleep(0.1)
    raise SystemExit(f"the collector has ended: {process.returncode}")


def case_of(resource):
    for a in resource["resource"]["attributes"]:
        if a["key"] == "case":
            resource["resource"]["attributes"].remove(a)
            return int(a["value"]["intValue"])


def received(out):
    """{case: resource} of all that has been written."""
    found = {}
    for signal, (_, top, _) in SIGNALS.items():
        path = pathlib.Path(out) / f"{signal}.jsonl"
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] if path.exists() else []:
            for resource in json.loads(line).get(top, []):
                found[case_of(resource)] = resource
    return found


def errors(log):
    """{case: text} of statements that failed while running."""
    found = {}
    for line in log.split("\n"):
        if line.startswith("{") and "failed to execute statement" in line:
            entry = json.loads(line)
            m = re.search(r'resource\.attributes\["case"\] == (\d+)', entry.get("statement", ""))
            if m:
                found[int(m[1])] = entry.get("error", "")
    return found


def run(binary, cases, where, port=None):
    port = port or free_port()
    config, log = pathlib.Path(where) / "run.json", pathlib.Path(where) / "log"
    config.write_text(json.dumps(collector_config(cases, port, where)).replace("$", "$$"))
    with open(log, "wb") as sink:
        process = subprocess.Popen([binary, "--config", str(config)], stdout=sink, stderr=sink)
    try:
        for signal, request in requests(cases).items():
            send(port, signal, request, process)
        deadline = time.time() + 240
        while len(found := received(where)) < len(cases) and time.time() < deadline and process.poll() is None:
            time.sleep(0.2)
    finally:
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
    return found, errors(log.read_text(encoding="utf-8", errors="replace"))


def reason_only(text):
    """The refusal without the statement around it."""
    text = re.sub(r'^unable to parse OTTL statement "(?:[^"\\]|\\.)*": ', "", text)
    text = re.sub(r"(invalid syntax(?:: | at ))\d+:", r"\g<1>1:", text)
    text = re.sub(r'error while parsing arguments for call to "set": invalid argument at position 1: ', "", text)
    text = re.sub(r'from statements \[.*?\] and conditions \[\]', "", text)
    return re.sub(r'\(\["[^)]*"\]\) ?|\["(?:log|span|scope|resource|metric|datapoint|exemplar|spanevent)"[^]]*\]', "", text)


def results(binary, rows):
    """What a collector makes of the rows: {index: text}."""
    cases = list(enumerate(rows))
    with tempfile.TemporaryDirectory() as where:
        good, refused = sift(binary, cases, where)
        got = {case: "refused: " + reason_only(why) for case, why in refused.items()}
        found, failed = run(binary, good, where) if good else ({}, {})
        for case, row in good:
            got[case] = "error: " + failed[case] if case in failed else picked(row, found[case]) if case in found else "lost"
    return got


def same(got, expected):
    """Of refusals and errors only that they happen: some name addresses, or a set in the order of the day."""
    word = expected.split(" ")[0]
    return got.startswith(word + " ") if word in ("refused:", "error:") else got == expected


def main():
    binary = os.environ.get("REFERENCE_COLLECTOR")
    if not binary:
        sys.exit("REFERENCE_COLLECTOR is not set")
    words = [a for a in sys.argv[1:] if not a.startswith("--")]
    lines, rows = read_table()
    chosen = [r for r in rows if not words or any(w in " ".join(map(str, r.values())) for w in words)]
    differ = 0
    for case, got in results(binary, chosen).items():
        row = chosen[case]
        if not same(got, row["expected"]):
            differ += 1
            print(f'{row["area"]}: {row["input"]} {row["kind"]} {row["text"]}\n  table     {row["expected"]}\n  collector {got}')
            if "--write" in sys.argv:
                row["expected"] = got
    print(f"{len(chosen)} rows, {differ} differ")
    if "--write" in sys.argv:
        write_table(lines, rows)
    sys.exit(1 if differ and "--write" not in sys.argv else 0)


if __name__ == "__main__":
    main()
