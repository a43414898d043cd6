"""Several queries and a total, divided so that the worst error is smallest; nothing is spent until they are asked."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sulq.language.privacy import Loss
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation, figure


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One query of a workload: its part of the total and how accurate that makes it."""

    text: str
    spend: Loss
    error: float  # of its worst column, as a part of the range its value can have
    widths: tuple[tuple[str, float], ...]  # how far each column may be off
    explanation: Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A plan for several queries: iterate over (text, spend), or `ask()` them all."""

    queries: tuple[Planned, ...]
    total: Loss
    rows: int  # supposed, where no size is declared
    asker: Callable[[str, Loss], SqlAnswer]

    def __iter__(self) -> Iterator[tuple[str, Loss]]:
        return ((query.text, query.spend) for query in self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, index: int) -> Planned:
        return self.queries[index]

    @property
    def spends(self) -> tuple[Loss, ...]:
        """Each query's part of the total, in order."""
        return tuple(query.spend for query in self.queries)

    def ask(self) -> list[SqlAnswer]:
        """Ask them all, each at its own part; a query answered before at that price or more is free (SR12)."""
        return [self.asker(query.text, query.spend) for query in self.queries]

    def to_dict(self) -> dict[str, list[object]]:
        """A row for each column of each query."""
        lines = [(i, query, name, width) for i, query in enumerate(self.queries) for name, width in query.widths]
        return {
            "query": [i for i, _, _, _ in lines],
            "spend": [str(query.spend) for _, query, _, _ in lines],
            "column": [name for _, _, name, _ in lines],
            "within": [width for _, _, _, width in lines],
        }

    def __repr__(self) -> str:
        lines = [f"{len(self.queries)} queries for {self.total} together, for {self.rows:,} rows; nothing is spent yet"]
        for query in self.queries:
            text = " ".join(query.text.split())
            lines.append(f"{query.spend}: {text if len(text) <= 80 else text[:77] + '...'}")
            lines += [f"    {name}  +- {figure(width)}" for name, width in query.widths]
            lines.append(f"    worst error {query.error:.2%} of its range")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self), quote=False)}</pre>"
