"""The page that goes with a release: what it is, what was promised, its pictures; one file that fetches nothing."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

from sulq.release.payment import Chart

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:CanvasText;"
    "background:Canvas;color-scheme:light dark}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid GrayText}"
    "svg{max-width:100%;height:auto}.bar{fill:#4878a8}.whisker{stroke:CanvasText;stroke-width:1.5}"
    "text{fill:CanvasText;font-size:12px}.soft{color:GrayText}"
)
LONGEST: Final = 60  # bars of one picture
WIDTH: Final = 760
ROW: Final = 20
LEFT: Final = 220
CUT: Final = 30  # letters of a name beside its bar


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
    shown = list(zip(chart.names, chart.values, chart.error or (0.0,) * len(chart.values), strict=True))[:LONGEST]
    more = len(chart.values) - len(shown)
    said = " ".join(text for text in (chart.said, f"{more:,} more are in the tables." if more else "") if text)
    return (
        f"<section><h2>{html.escape(chart.title)}</h2>{_bars(chart.title, shown)}"
        f'<p class="soft">{html.escape(said)}</p></section>'
    )


def _bars(title: str, shown: list[tuple[str, float, float]]) -> str:
    """Bars from the zero line with a whisker for each interval, and the number beside them."""
    low = min([0.0, *(value - error for _, value, error in shown)])
    high = max([0.0, *(value + error for _, value, error in shown)])
    scale = (WIDTH - LEFT - 90) / ((high - low) or 1.0)

    def across(value: float) -> float:
        return LEFT + (value - low) * scale

    parts = []
    for i, (name, value, error) in enumerate(shown):
        top = i * ROW
        start, stop = sorted((across(0.0), across(value)))
        short = name if len(name) <= CUT else f"{name[: CUT - 1]}…"
        middle = top + ROW / 2
        parts.append(
            f'<text x="{LEFT - 8}" y="{middle + 4}" text-anchor="end">{html.escape(short)}</text>'
            f'<rect class="bar" x="{start:.1f}" y="{top + 3}" width="{max(stop - start, 0.5):.1f}" height="{ROW - 6}"/>'
        )
        if error:
            parts.append(
                f'<line class="whisker" x1="{across(value - error):.1f}" x2="{across(value + error):.1f}" '
                f'y1="{middle}" y2="{middle}"/>'
            )
        parts.append(f'<text x="{across(max(value + error, 0.0)) + 6:.1f}" y="{middle + 4}">{value:,.6g}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {max(len(shown), 1) * ROW}" width="{WIDTH}" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
    )
