"""The Markdown tables of the results."""
import math

from harness.peers import PEERS
from harness.plan import GROWTH, ROWS

AGENTS = [p for p in PEERS.values() if not p.floor and p.name != "static"]  # the static program has a table of its own
FLOORS = [p for p in PEERS.values() if p.floor]
TITLES = {"static": "motel, static", "reference": "reference collector", "fluentbit": "Fluent Bit", "mhd": "libmicrohttpd"}


def title(peer):
    return TITLES.get(peer, peer)


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows]) + "\n"


def spread_text(spread, digits):
    """`median (least–greatest)`"""
    median, least, most = (f"{spread[k]:.{digits}f}" for k in ("median", "min", "max"))
    return median if least == most else f"{median} ({least}–{most})"


def cell(results, row, peer):
    spread = results.spread(row.spec, peer, row.field, row.scale)
    if spread:
        return spread_text(spread, row.digits)
    reason = results.reason(row.spec, peer)
    if reason:
        return reason[0]
    return "not found" if results.data["peers"].get(peer, 0) is None else "–"


def median(results, row, peer):
    spread = results.spread(row.spec, peer, row.field, row.scale)
    return spread["median"] if spread else None


def ratio(results, row):
    """reference / motel; None when one is missing or nothing was used."""
    ours, theirs = median(results, row, "motel"), median(results, row, "reference")
    return theirs / ours if ours and theirs is not None else None


def verdict(results, row):
    """(the bar, met or not): texts for the last two columns."""
    ours, times = median(results, row, "motel"), ratio(results, row)
    if row.at_most:
        return f"≤ {row.at_most:g} {row.unit}", _yes(None if ours is None else ours <= row.at_most)
    if row.at_least:
        return f"≥ {row.at_least:g} ×", _yes(None if times is None else times >= row.at_least)
    if row.most_of_reference:
        met = None if times is None else 1 / times <= row.most_of_reference
        return f"≤ {row.most_of_reference:g} of the reference's", _yes(met)
    return "", ""


def _yes(met):
    return "not measured" if met is None else "yes" if met else "**no**"


def shown_agents(results):
    """Agents with figures or a reason; the rest is listed below the table."""
    return [p.name for p in AGENTS if any(r["peer"] == p.name for r in results.runs)]


def main_table(results):
    agents, rows = shown_agents(results), []
    for row in ROWS:
        if not any(results.values(row.spec, a, row.field) for a in agents):
            continue
        times = ratio(results, row)
        shown = "–" if times is None else f"{times:.{2 if times < 2 else 1}f}"
        rows.append([f"{row.title}, {row.unit}", *[cell(results, row, a) for a in agents], shown, *verdict(results, row)])
    return markdown(["", *map(title, agents), "reference / motel", "goal", "met"], rows)


def floor_table(results):
    rows = []
    for row in ROWS:
        for peer in FLOORS:
            spread = results.spread(row.spec, peer.name, row.field, row.scale)
            if spread and row.field == "cpu_us_per_record":
                rows.append([row.title, title(peer.name), spread_text(spread, 2)])
    return markdown(["", "server", "µs of CPU a span"], rows) if rows else ""


def static_table(results):
    """The static program beside the one that was built for the machine."""
    rows = []
    for row in ROWS:
        ours, other = median(results, row, "motel"), median(results, row, "static")
        if ours is not None and other is not None:
            shown = f"{other / ours:.2f}" if ours else "–"
            rows.append([f"{row.title}, {row.unit}", cell(results, row, "motel"), cell(results, row, "static"), shown])
    return markdown(["", "motel", "motel, static", "static / motel"], rows) if rows else ""


def reasons(results):
    """What the agents cannot do, and what was not found."""
    said = {}
    for r in results.runs:
        if "cannot" in r:
            said.setdefault((r["peer"], r["cannot"]), []).append(r["spec"])
    lines = [f"- {title(peer)} {why}: {', '.join(dict.fromkeys(specs))}." for (peer, why), specs in said.items()]
    missing = [title(p) for p, identity in results.data["peers"].items() if identity is None]
    lines += [f"- Not found on this machine: {', '.join(missing)}."] if missing else []
    return "\n".join(lines) + "\n" if lines else ""


def conditions(results):
    """The machine and the versions, as a paragraph."""
    m, v, peers = results.data["machine"], results.data["versions"], results.data["peers"]
    loads = sorted(r["load_before"] for r in results.runs)
    agents = ", ".join(f"{title(p)} ({i['version']})" for p, i in peers.items() if i)
    libraries = ", ".join(f"{k} {x}" for k, x in v["libraries"].items())
    s = results.data["settings"]
    return (f"{results.data['started'][:10]}, {m['cpu']}, {m['cores']} cores, {m['memory_mib'] // 1024} GiB, {m['system']}, Linux "
            f"{m['kernel']}; hypervisor: {m['hypervisor']}, frequency governor: {m['governor']}, transparent huge pages: "
            f"{m['transparent_hugepages']}. Load average before the runs: {loads[0]} to {loads[-1]}. {s['rounds']} {'round' if s['rounds'] == 1 else 'rounds'}"
            f"{'' if s['scale'] == 1 else ' of ' + format(s['scale'], 'g') + ' of the usual size'}; memory was "
            f"{'' if s['warm_pages'] else 'not '}touched before each window. Agents: {agents}. Commit of the harness {v['commit']}, {v['compiler']}, "
            f"{v['libc']}; {libraries}; load: {v['h2load']}.\n")


# ---- growth

def growth_rows(results):
    """row -> list of (x, run) in the order of x; of several rounds the run with the median CPU"""
    rows = {}
    for spec in GROWTH:
        runs = [r for r in results.runs if r["spec"] == spec.name and r["ok"]]
        if runs:
            runs.sort(key=lambda r: r.get("cpu_us_per_record", r.get("cpu_ms_per_scrape")))
            rows.setdefault(spec.row, []).append((spec.x, runs[(len(runs) - 1) // 2]))
    return {row: sorted(points, key=lambda p: p[0]) for row, points in rows.items()}


def cost(row, run):
    """What is drawn: CPU in µs, per record or per series; for attributes per attribute; for connections per record."""
    if "cpu_ms_per_scrape" in run:
        return run["cpu_ms_per_scrape"] * 1e3 / run["series"]
    if row.startswith("attributes"):
        return run["cpu_us_per_record"] / int(run["body"].split("_")[1])
    return run["cpu_us_per_record"]


def total(row, x, run):
    """CPU of the whole that grows: a request, a span, a scrape; for connections the CPU of the same work."""
    return cost(row, run) if "connections" in row else cost(row, run) * x


def grows(row):
    return not row.startswith(("receiver threads", "one core", "memory limit"))


def exponent(points):
    """Slope of log(total) over log(x), by least squares: 1 is linear, 0 does not grow."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(max(y, 1e-9)) for _, y in points]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def growth_summary(results):
    """(row, points, exponent over all, exponent of the last step, linear or less)"""
    out = []
    for row, points in growth_rows(results).items():
        if not grows(row) or len(points) < 2:
            continue
        totals = [(x, total(row, x, run)) for x, run in points]
        whole, last = exponent(totals), exponent(totals[-2:])
        out.append((row, points, whole, last, whole <= 1.1 and last <= 1.25))
    return out


def growth_table(results):
    rows = []
    for row, points, whole, last, fine in growth_summary(results):
        costs = ", ".join(f"{x}: {cost(row, run):.3g}" for x, run in points)
        rows.append([row, costs, f"{whole:.2f}", f"{last:.2f}", "yes" if fine else "**no**"])
    head = ["growing", "µs of CPU a span (of attributes and series: each)", "exponent", "last step", "linear or less"]
    return markdown(head, rows)


def growth_verdict(results):
    summary = growth_summary(results)
    worse = [row for row, _, _, _, fine in summary if not fine]
    if not summary:
        return "Growth was not measured.\n"
    if worse:
        return f"Grows faster than linearly: {'; '.join(worse)}.\n"
    return f"No row grows faster than linearly (rows measured: {len(summary)}).\n"


def limits_table(results):
    """What is not an axis: threads, one core, little memory, idle connections."""
    rows = []
    for row, points in growth_rows(results).items():
        if grows(row) and not row.startswith("idle connections"):
            continue
        for x, run in points:
            share = run["accepted_requests"] / run["requests"] * 100
            rows.append([f"{row}: {x}" if len(points) > 1 else row, f"{run['cpu_us_per_record']:.2f}", f"{run['records_per_s'] / 1000:.0f}",
                         f"{run['rss_peak_kib'] / 1024:.1f}", f"{share:.0f} %"])
    return markdown(["", "µs of CPU a span", "thousand spans a second", "peak resident, MiB", "requests accepted"], rows) if rows else ""
