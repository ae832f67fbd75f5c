"""The results: one JSON file, written anew after every run, so that a measurement can be interrupted and gone on with."""
import datetime
import json
import os
import statistics

from harness.plan import ROWS

FORMAT = 1


class Unusable(Exception):
    """The file cannot be read or written, is something else, or holds runs of another program or of another size."""


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read(path):
    try:
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
    except OSError as e:
        raise Unusable(f"{path}: {e.strerror}") from None
    except ValueError:
        raise Unusable(f"{path}: not a file of results, which are JSON") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not {"machine", "versions", "settings", "peers", "runs"} <= data.keys():
        raise Unusable(f"{path}: not a file of results, or of another format")
    return data


class Results:
    """`data`: format, started, finished, machine, versions, peers (identity or None), settings, runs, summary."""

    def __init__(self, path):
        self.path, self.data = path, {"format": FORMAT, "started": now(), "peers": {}, "runs": []}
        if os.path.exists(path):
            self.data = _read(path)

    @property
    def runs(self):
        return self.data["runs"]

    def describe(self, machine, versions, settings):
        for name, words in (("scale", "another --scale"), ("warm_pages", "another choice of --no-warm-pages")):
            if self.runs and self.data["settings"][name] != settings[name]:
                raise Unusable(f"{self.path} has runs with {words} ({name} {self.data['settings'][name]}); use another file")
        self.data |= {"machine": machine, "versions": versions, "settings": settings}

    def add_peer(self, name, identity, again=False):
        """Notes which program `name` is. With `again` its earlier runs are dropped."""
        before = self.data["peers"].get(name)
        if again:
            self.data["runs"] = [r for r in self.runs if r["peer"] != name]
        elif before and identity and before["sha256"] != identity["sha256"] and any(r["peer"] == name for r in self.runs):
            raise Unusable(f"{self.path} has runs of another {name}; use another file, or --again {name}")
        self.data["peers"][name] = identity or before

    def done(self, spec_name, peer, round_number):
        return any(r["ok"] or "cannot" in r for r in self.runs if (r["spec"], r["peer"], r["round"]) == (spec_name, peer, round_number))

    def add(self, run):
        key = (run["spec"], run["peer"], run["round"])
        self.data["runs"] = [r for r in self.runs if (r["spec"], r["peer"], r["round"]) != key] + [run]
        self.save()

    def failures(self):
        return [r for r in self.runs if not r["ok"] and "cannot" not in r]

    def values(self, spec_name, peer, field):
        return [r[field] for r in self.runs if r["spec"] == spec_name and r["peer"] == peer and r["ok"] and r.get(field) is not None]

    def spread(self, spec_name, peer, field, scale=1.0):
        """median, min, max and number of runs; None without runs"""
        values = [v * scale for v in self.values(spec_name, peer, field)]
        if not values:
            return None
        return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": len(values)}

    def reason(self, spec_name, peer):
        """Why a peer has no figure, or None."""
        for r in self.runs:
            if r["spec"] == spec_name and r["peer"] == peer and not r["ok"]:
                return ("cannot", r["cannot"]) if "cannot" in r else ("failed", r["error"])
        return None

    def save(self):
        self.data["finished"] = now()
        found = {(row.title, peer): self.spread(row.spec, peer, row.field, row.scale) for row in ROWS for peer in self.data["peers"]}
        self.data["summary"] = [{"row": title, "peer": peer, **spread} for (title, peer), spread in found.items() if spread]
        temporary = self.path + ".new"
        try:
            with open(temporary, "w", encoding="utf-8") as f:
                json.dump(self.data, f, indent=1, ensure_ascii=False)
                f.write("\n")
            os.replace(temporary, self.path)
        except OSError as e:
            raise Unusable(f"{self.path}: {e.strerror}") from None
