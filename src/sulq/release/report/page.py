"""A report's page: HTML that fetches nothing, is read on a screen and printed to PDF."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sulq.release.page import STYLE
from sulq.release.report.statement import Said

MAX_ROWS_SHOWN: Final = 200  # of a table on the page; its file has all of them
PRINTED: Final = (
    "main{max-width:60rem}h2{margin-top:2.2rem}figure{margin:1rem 0}pre{white-space:pre-wrap;font-size:.85em}"
    ".n{text-align:right}"
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
