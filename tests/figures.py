"""What a test measured of a paper's statement, kept beside the paper's own figure: docs/theory/papers.md shows both.

    SULQ_FIGURES=path     JSON lines of what was measured: {"id", "text", "value", "paper"}

`python -m tools.papers --figures` runs the tests that record figures and writes tools/papers_figures.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

Value = float | str


def figure(id: str, text: str, value: Value | Sequence[Value], paper: Value | Sequence[Value]) -> None:  # noqa: A002
    """Record the `value` measured for a statement, and what the `paper` (corrected) says; `text` says of what.

    Several numbers are shown side by side.
    """
    path = os.environ.get("SULQ_FIGURES")
    if path:
        entry = {"id": id, "text": text, "value": _shown(value), "paper": _shown(paper)}
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _shown(value: Value | Sequence[Value]) -> str:
    if isinstance(value, (list, tuple)):
        return " / ".join(map(_shown, value))
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return f"{number:,.0f}" if abs(number) >= 1e5 else f"{number:.5g}"
