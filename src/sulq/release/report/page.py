"""A report's page: HTML that fetches nothing, is read on a screen and printed to PDF."""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sulq.answers.answer import bar
from sulq.release.base import STYLE, Chart, picture
from sulq.release.report.statement import Said
from sulq.sql.released.tables import Ends

MAX_ROWS_SHOWN: Final = 200  # of a table on the page; its file has all of them
MIN_POINTS: Final = 3  # of a line that is drawn without being asked for
YEARS: Final = range(1000, 3000)
WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 760, 280, 80, 40, 12  # pixels of a line chart
MAX_TICKS: Final = 8
LEAST_SPAN, TINY = 1e-6, 1e-300  # of an axis, as a part of its values; what is taken for no span at all
PRINTED: Final = (
    "main{max-width:60rem}h2{margin-top:2.2rem}figure{margin:1rem 0}pre{white-space:pre-wrap;font-size:.85em}"
    ".n{text-align:right}.line{fill:none;stroke:#4878a8;stroke-width:2}.band{fill:#4878a8;opacity:.25}"
    ".axis{stroke:GrayText;stroke-width:1}"
    "@page{margin:18mm}@media print{body{max-width:none;margin:0;font-size:11pt}h2,figure,svg,tr{break-inside:avoid}"
    "h2{break-after:avoid}thead{display:table-header-group}a{color:inherit;text-decoration:none}}"
)


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One table as the page shows it: `file` is the name of the file with all of its rows."""

    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[bool, ...]  # which columns are estimates
    more: int
    drawn: str
    notes: tuple[str, ...]
    sql: str = ""
    file: str = ""


def texts(values: Sequence[object], ends: Ends | None) -> list[str]:
    """The cells of a column that are shown, each estimate with its interval."""
    some = range(min(len(values), MAX_ROWS_SHOWN))
    if ends is None:
        return ["missing" if values[i] is None else str(values[i]) for i in some]
    return [_estimate(values[i], ends[0][i], ends[1][i]) for i in some]


def _estimate(value: object, low: object, high: object) -> str:
    if value is None:
        return "unknown"
    three = [one for one in (value, low, high) if isinstance(one, (int, float)) and math.isfinite(one)]
    if len(three) < 3:
        return str(value) if low is None else f"{value} in [{low}, {high}]"
    return bar("", *map(float, three))


def is_time(cells: Sequence[object]) -> bool:
    """Whether the cells of a key are moments in order: dates, or whole numbers that can be years; some are missing."""
    known = [cell for cell in cells if cell is not None]
    dates = all(isinstance(cell, datetime.date) for cell in known)
    years = all(isinstance(cell, int) and not isinstance(cell, bool) and cell in YEARS for cell in known)
    return len(known) >= MIN_POINTS and (dates or years) and list(map(str, known)) == sorted(map(str, known))


def drawing(chart: Chart | None, *, line: bool) -> str:
    """A chart as SVG with a line below it; nothing where there is none."""
    if chart is None:
        return ""
    return _line(chart) if line else f"<figure>{picture(chart)}</figure>"


def _line(chart: Chart) -> str:
    """Points in their order joined by a line, in a band of their intervals."""
    errors = chart.error or (0.0,) * len(chart.values)
    lows = [value - error for value, error in zip(chart.values, errors, strict=True)]
    highs = [value + error for value, error in zip(chart.values, errors, strict=True)]
    ticks = _ticks(min(lows), max(highs))
    bottom, top = min(ticks[0], *lows), max(ticks[-1], *highs)
    scale = (HEIGHT - ABOVE - BELOW) / ((top - bottom) or 1.0)
    step = (WIDTH - LEFT - 30) / max(len(chart.values) - 1, 1)

    def at(i: int, value: float) -> str:
        return f"{LEFT + i * step:.1f},{HEIGHT - BELOW - (value - bottom) * scale:.1f}"

    band = [at(i, value) for i, value in enumerate(highs)] + [at(i, lows[i]) for i in reversed(range(len(lows)))]
    drawn = [
        f'<polygon class="band" points="{" ".join(band)}"/>',
        f'<polyline class="line" points="{" ".join(at(i, value) for i, value in enumerate(chart.values))}"/>',
    ]
    for tick in ticks:
        y = HEIGHT - BELOW - (tick - bottom) * scale
        drawn.append(f'<line class="axis" x1="{LEFT - 4}" x2="{LEFT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:,.6g}</text>')
    every = max(1, math.ceil(len(chart.names) / MAX_TICKS))
    for i in range(0, len(chart.names), every):
        x = LEFT + i * step
        drawn.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{html.escape(chart.names[i])}</text>'
        )
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="{html.escape(chart.title)}">'
        f"{''.join(drawn)}</svg>"
    )
    return f'<figure>{svg}<figcaption class="soft">{html.escape(chart.said)}</figcaption></figure>'


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers that hold a range between them."""
    span = max(high - low, LEAST_SPAN * max(abs(low), abs(high)))
    span = span if span > TINY else 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= span / 4)
    first = math.floor(low / step)
    return [step * i for i in range(first, math.ceil(high / step) + 1)]


def report_page(
    title: str,
    said: Sequence[str],
    sections: Sequence[ReportSection],
    promise: Sequence[Said],
    method: Sequence[str],
) -> str:
    """The whole page; whatever stands in a title, a category or a query stays a text (T82)."""
    name = html.escape(title)
    contents = "".join(
        f'<li><a href="#t{number}">{html.escape(one.title)}</a></li>' for number, one in enumerate(sections, 1)
    )
    told = "".join(f"<h3>{html.escape(one.heading)}</h3>{_paragraphs(one.paragraphs)}" for one in promise)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{STYLE}{PRINTED}</style></head>\n<body><main><h1>{name}</h1>\n{_paragraphs(said)}\n"
        f"<nav><ol>{contents}</ol></nav>\n"
        + "\n".join(_section(number, one) for number, one in enumerate(sections, 1))
        + f'\n<section><h2 id="privacy">What this report protects</h2>{told}</section>\n'
        f'<section><h2 id="method">Notes on the method</h2>{_paragraphs(method)}</section>\n'
        "</main></body></html>\n"
    )


def _section(number: int, one: ReportSection) -> str:
    sides = ['class="n"' if is_number else "" for is_number in one.numbers]
    head = "".join(f"<th {side}>{html.escape(name)}</th>" for name, side in zip(one.columns, sides, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td {side}>{html.escape(text)}</td>" for text, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in one.rows
    )
    more = f"{one.more:,} more {'row is' if one.more == 1 else 'rows are'} in the file." if one.more else ""
    link = f'<a href="{html.escape(one.file)}">{html.escape(one.file)}</a>' if one.file else ""
    tail = " ".join(part for part in (html.escape(more), link) if part)
    query = f'<pre class="soft">{html.escape(one.sql)}</pre>' if one.sql else ""
    return (
        f'<section><h2 id="t{number}">{number}. {html.escape(one.title)}</h2>{_paragraphs([one.about])}'
        f"{one.drawn}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<p class="soft">{tail}</p>{_paragraphs(one.notes, "soft")}{query}</section>'
    )


def _paragraphs(texts: Sequence[str], kind: str = "") -> str:
    """Texts, of which an empty line begins another paragraph."""
    parts = [part for text in texts for part in text.split("\n\n") if part.strip()]
    style = f' class="{kind}"' if kind else ""
    return "".join(f"<p{style}>{html.escape(' '.join(part.split()))}</p>" for part in parts)
