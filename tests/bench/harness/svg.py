"""Plots as SVG text: bars side by side, and lines on logarithmic axes."""
import math
from xml.sax.saxutils import escape

COLOURS = {"motel": "#d9480f", "reference": "#495057", "rotel": "#1971c2", "fluentbit": "#2f9e44"}
LINES = ("#d9480f", "#1971c2", "#2f9e44", "#9c36b5", "#f59f00", "#15aabf", "#495057", "#e64980", "#5c940d")
AXES = ("spans, attributes, series, connections", "µs of CPU of the request, the span, the scrape; of a span beside so many connections")
HEAD = ('<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
        'font-family="system-ui, sans-serif" font-size="12">\n<rect width="{w}" height="{h}" fill="#ffffff"/>\n')


def text(x, y, words, anchor="start", colour="#212529", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{more}>{escape(words)}</text>'


def rectangle(x, y, w, h, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.5):.1f}" height="{h:.1f}" fill="{colour}"/>'


def line(x1, y1, x2, y2, colour="#dee2e6", width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def legend(names, x, y, colours):
    out = []
    for name, colour in zip(names, colours):
        out += [rectangle(x, y - 9, 10, 10, colour), text(x + 14, y, name)]
        x += 30 + 7 * len(name)
    return out


def bars(heading, groups, names, titles, width=860):
    """groups: list of (title, {name: (median, least, greatest) or None}); a group's own axis, from 0 to its greatest bar."""
    left, right, high, gap = 330, 90, 14, 12
    height = 64 + sum(len([n for n in names if values.get(n)]) * high + gap for _, values in groups)
    out = [HEAD.format(w=width, h=height), text(16, 24, heading, more=' font-size="15" font-weight="600"')]
    out += legend(titles, 16, 46, [COLOURS[n] for n in names])
    y = 62
    for title, values in groups:
        drawn = [n for n in names if values.get(n)]
        most = max(values[n][2] for n in drawn)
        out.append(text(left - 10, y + len(drawn) * high / 2 + 4, title, "end"))
        for n in drawn:
            median, least, greatest = values[n]
            scale = (width - left - right) / most
            out += [rectangle(left, y + 1, median * scale, high - 3, COLOURS[n]),
                    line(left + least * scale, y + high / 2 - 0.5, left + greatest * scale, y + high / 2 - 0.5, "#868e96", 2),
                    text(left + greatest * scale + 6, y + high - 3, f"{median:.3g}")]
            y += high
        y += gap
    return "\n".join(out) + "\n</svg>\n"


def _decades(least, most):
    return range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)


class LogAxes:
    """A frame with logarithmic axes; place(x, y) is in points."""

    def __init__(self, left, top, width, height, xs, ys):
        self.left, self.top, self.width, self.height = left, top, width, height
        self.x, self.y = _decades(min(xs), max(xs)), _decades(min(ys), max(ys))

    @staticmethod
    def _share(value, decades):
        return (math.log10(value) - decades[0]) / max(1, decades[-1] - decades[0])

    def place(self, x, y):
        return self.left + self._share(x, self.x) * self.width, self.top + (1 - self._share(y, self.y)) * self.height

    def draw(self, x_title, y_title):
        out = []
        for d in self.x:
            x, _ = self.place(10**d, 10**self.y[0])
            out += [line(x, self.top, x, self.top + self.height), text(x, self.top + self.height + 16, f"{10**d:,}", "middle")]
        for d in self.y:
            _, y = self.place(10**self.x[0], 10**d)
            out += [line(self.left, y, self.left + self.width, y), text(self.left - 6, y + 4, f"{10**d:g}", "end")]
        return out + [text(self.left, self.top - 8, y_title), text(self.left + self.width, self.top + self.height + 32, x_title, "end")]


def _linear(axes):
    """A dotted line of slope 1 through the lower left corner."""
    steps = min(len(axes.x), len(axes.y)) - 1
    x1, y1 = axes.place(10**axes.x[0], 10**axes.y[0])
    x2, y2 = axes.place(10**(axes.x[0] + steps), 10**(axes.y[0] + steps))
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#868e96" stroke-width="1.5" stroke-dasharray="2 4"/>'


def growth(heading, series, width=860):
    """series: list of (title, [(x, y)]); a line each."""
    lines_high = 18 * len(series)
    height, frame = 440 + lines_high, 300
    axes = LogAxes(60, 66, width - 90, frame, [x for _, p in series for x, _ in p], [y for _, p in series for _, y in p])
    out = [HEAD.format(w=width, h=height), text(16, 24, heading, more=' font-size="15" font-weight="600"')]
    out += axes.draw(*AXES)
    out.append(_linear(axes))
    for i, (title, points) in enumerate(series):
        colour = LINES[i % len(LINES)]
        places = [axes.place(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        out += legend([title], 60, 66 + frame + 58 + 18 * i, [colour])
    return "\n".join(out) + "\n</svg>\n"
