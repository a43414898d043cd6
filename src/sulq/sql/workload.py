"""Several queries for one total: how accurate each would be, and asking all of them at one debit."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from sulq.answers.answer import Answers
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan
from sulq.display.numbers import figure
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, Loss
from sulq.language.question import Together
from sulq.sql.answer import SqlAnswer
from sulq.sql.forecast import UNDECLARED_SIZE_ROWS
from sulq.sql.joint import TOO_MUCH_AT_ONCE, told
from sulq.sql.planned_total import Division, Planned


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A plan for several queries: iterate over (text, spend), or `ask()` them all.

    `plan`: all of them as one question, with one debit; None where they are asked one by one: if the total is pure, so
    that one debit gains nothing, or if that is more than one ask may be.
    """

    queries: tuple[Planned, ...]
    total: Loss
    rows: int  # supposed, where no size is declared
    asker: Callable[[str, Loss], SqlAnswer]
    plan: Plan | None = None
    asker_of_all: Callable[[], list[SqlAnswer]] | None = None

    @classmethod
    def of(cls, division: Division, oracle: Oracle, asker: Callable[[str, Loss], SqlAnswer]) -> Workload:
        """The queries of a division, to be asked one by one or all at one debit."""
        question, facts = division.question(), oracle.facts

        def ask() -> list[SqlAnswer]:
            return division.read(
                cast("Answers", oracle.ask(cast("Together", question), spend=division.total, reuse=True))
            )

        plan = None
        if question is not None:
            try:
                plan = oracle.foresee(question, spend=division.total)
            except QuestionError as error:
                if error.code not in TOO_MUCH_AT_ONCE:
                    raise
        rows = facts.size or UNDECLARED_SIZE_ROWS
        pure = isinstance(division.total, Epsilon)
        return cls(division.queries, division.total, rows, asker, None if pure else plan, None if plan is None else ask)

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

    def ask(self, *, together: bool | None = None) -> list[SqlAnswer]:
        """Ask them all: at one debit where they are paid with a delta or in rho, else each at its own part.

        As one, what is not pure counts once in the sum of (epsilon, delta) (docs/theory/filter.md); the same workload,
        answered before at that price or more, is free then. One by one, a query is free if it was answered before
        (SR12). `together` overrides.
        """
        if together is not None and not isinstance(together, bool):
            raise QuestionError("bad-question", "together is True or False.")
        if (self.plan is not None if together is None else together) and self.asker_of_all is not None:
            return self.asker_of_all()
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
        for i, query in enumerate(self.queries):
            text = " ".join(query.text.split())
            lines.append(f"{query.spend}: {text if len(text) <= 80 else text[:77] + '...'}")
            lines += [f"    {name}  +- {figure(width)}" for name, width in query.widths]
            if query.together:
                lines.append(f"    {told(query.together, i)}")
            lines.append(f"    off by about {query.error:.2%} of a typical answer")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self), quote=False)}</pre>"
