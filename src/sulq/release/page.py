"""The page of a release: its title, what it cost, and a picture of each of its charts; it fetches nothing."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sulq.display.axes import Timeline, number_ticks
from sulq.display.numbers import MIN_SEPARATED, NumberStyle, plain

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:CanvasText;"
    "background:Canvas;color-scheme:light dark}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid GrayText}"
    "svg{max-width:100%;height:auto}.bar{fill:#4878a8}.whisker{stroke:CanvasText;stroke-width:1.5}"
    ".band{fill:#4878a8;opacity:.25}.trace{fill:none;stroke:#4878a8;stroke-width:2}.rule{stroke:GrayText;opacity:.4}"
    "text{fill:CanvasText;font-size:12px}.soft{color:GrayText}"
)
MAX_BARS: Final = 60  # bars of one picture
PAGE_WIDTH_PIXELS: Final = 760
BAR_HEIGHT_PIXELS: Final = 20
NAMES_WIDTH_PIXELS: Final = 220
TEXT_WIDTH_PIXELS: Final = 150  # of the number and its interval beside a bar
MAX_TICKS: Final = 8  # of a line over time
MAX_NAME_LETTERS: Final = 30  # letters of a name beside its bar
Known = tuple[float, float, float]  # a number, and from where to where it may lie


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture of a release's page: a number with its error bar for each of some names."""

    title: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    error: tuple[float, ...] = ()  # half the length of each bar's interval; empty where there is none
    said: str = ""  # a line below: what the interval means, what was measured against what was foreseen


def page(title: str, paid: str, charts: Sequence[Chart]) -> str:
    """The page as HTML; texts from a table's categories stay texts (T82)."""
    title, paid = html.escape(title), html.escape(paid)
    pictures = "\n".join(_figure(chart) for chart in charts)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n<p>{paid}.</p>\n{pictures}\n</body></html>\n"
    )


def _figure(chart: Chart) -> str:
    return f"<section><h2>{html.escape(chart.title)}</h2>{picture(chart)}</section>"


def picture(chart: Chart, *, bars: bool = False) -> str:
    """A chart and the line below it: drawn as a line where the names are points in time, unless as `bars`."""
    error = chart.error or (0.0,) * len(chart.values)
    estimates = [(value, value - away, value + away) for value, away in zip(chart.values, error, strict=True)]
    over = None if bars else Timeline.of(chart.names)
    if over is None:
        drawn = _bars(chart.title, list(zip(chart.names, estimates, strict=True))[:MAX_BARS])
    else:
        drawn = _line(chart.title, estimates, over)
    more = 0 if over is not None else max(len(chart.values) - MAX_BARS, 0)
    said = " ".join(text for text in (chart.said, f"{more:,} more are in the tables." if more else "") if text)
    return f'{drawn}<p class="soft">{html.escape(said)}</p>'


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {PAGE_WIDTH_PIXELS} {height:g}" width="{PAGE_WIDTH_PIXELS}" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
    )


def _bars(title: str, shown: Sequence[tuple[str, Known]]) -> str:
    """Bars from the zero line with a whisker for each interval, and the number beside them."""
    low = min([0.0, *(start for _, (_, start, _) in shown)])
    high = max([0.0, *(end for _, (_, _, end) in shown)])
    scale = (PAGE_WIDTH_PIXELS - NAMES_WIDTH_PIXELS - TEXT_WIDTH_PIXELS) / ((high - low) or 1.0)
    style = NumberStyle.of([estimate for _, estimate in shown])

    def across(value: float) -> float:
        return NAMES_WIDTH_PIXELS + (value - low) * scale

    parts = []
    for i, (name, estimate) in enumerate(shown):
        value, start, end = estimate
        top = i * BAR_HEIGHT_PIXELS
        left, right = sorted((across(0.0), across(value)))
        short = name if len(name) <= MAX_NAME_LETTERS else f"{name[: MAX_NAME_LETTERS - 1]}…"
        middle = top + BAR_HEIGHT_PIXELS / 2
        parts.append(
            f'<text x="{NAMES_WIDTH_PIXELS - 8}" y="{middle + 4}" text-anchor="end">{html.escape(short)}</text>'
            f'<rect class="bar" x="{left:.1f}" y="{top + 3}" width="{max(right - left, 0.5):.1f}" '
            f'height="{BAR_HEIGHT_PIXELS - 6}"/>'
        )
        if start < end:
            parts.append(
                f'<line class="whisker" x1="{across(start):.1f}" x2="{across(end):.1f}" y1="{middle}" y2="{middle}"/>'
            )
        text = style.text(estimate) if start < end else style.value(estimate)
        parts.append(f'<text x="{across(max(end, 0.0)) + 6:.1f}" y="{middle + 4}">{text}</text>')
    return _svg(title, max(len(shown), 1) * BAR_HEIGHT_PIXELS, parts)


def _line(title: str, estimates: Sequence[Known], over: Timeline) -> str:
    """A line in a band of intervals, over ticks that are dates or whole numbers."""
    placed = [(place, one) for place, one in zip(over.places, estimates, strict=True) if place is not None]
    first, last = min(place for place, _ in placed), max(place for place, _ in placed)
    low, high = min(one[1] for _, one in placed), max(one[2] for _, one in placed)
    rules = number_ticks(min(low, 0.0) if low < high / 2 else low, high if high > low else low + 1.0, 4)
    left, right, top, base = 80.0, PAGE_WIDTH_PIXELS - 30.0, 10.0, 220.0

    def x(place: float) -> float:
        return left + (place - first) / ((last - first) or 1.0) * (right - left)

    def y(value: float) -> float:
        return base - (value - rules[0]) / (rules[-1] - rules[0]) * (base - top)

    separated = max(map(abs, rules)) >= MIN_SEPARATED
    parts = [
        f'<line class="rule" x1="{left}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{plain(tick, separated=separated)}</text>'
        for tick in rules
    ]
    parts += [
        f'<text x="{x(at):.1f}" y="{base + 20}" text-anchor="middle">{html.escape(text)}</text>'
        for at, text in over.ticks(MAX_TICKS)
    ]
    band = [(x(at), y(one[1])) for at, one in placed] + [(x(at), y(one[2])) for at, one in reversed(placed)]
    trace = [(x(at), y(one[0])) for at, one in placed]
    parts += [f'<path class="{kind}" d="{_path(points)}"/>' for kind, points in (("band", band), ("trace", trace))]
    return _svg(title, base + 28, parts)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
