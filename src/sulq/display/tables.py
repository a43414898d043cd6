"""Tables as texts and as HTML, with how many of their rows are not shown."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

MAX_ROWS: Final = 20  # of a table that an object prints as
GAP: Final = "  "


def not_shown(rows: int) -> str:
    """A line for the rows of a table that are left out; empty where there are none."""
    return f"... {rows:,} more {'row' if rows == 1 else 'rows'}" if rows > 0 else ""


def text(head: Sequence[str], rows: Iterable[Sequence[str]], *, more: int = 0, right: bool = False) -> str:
    """A table whose columns stand below each other; `right`: all but the first end at their right edge."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    laid = [
        GAP.join(
            cell.rjust(width) if right and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*laid, *filter(None, [not_shown(more)])])


def as_html(head: Iterable[str], body: Iterable[Iterable[str]], tail: str, *, more: int = 0) -> str:
    """A table in HTML with a line below it."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in body)
    left = f"<p>{not_shown(more)}</p>" if more > 0 else ""
    return f"<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>{left}<p>{html.escape(tail)}</p>"
