"""A total divided over several queries: how accurate that makes each, and asking all of them at one debit."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, cast

from sulq.answers.answer import Answers
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan
from sulq.answers.reuse import nothing
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import Single, Together
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation, figure
from sulq.sql.forecast import UNDECLARED_SIZE_ROWS, ErrorForecast, amount, divided, error_at
from sulq.sql.released.render import PreparedQuery, prepare

TOO_MUCH_AT_ONCE: Final = ("too-large", "too-much-work")  # of what may be asked query by query


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One query of a workload: its part of the total and how accurate that makes it."""

    text: str
    spend: Loss
    error: float  # of its worst column, as a part of the range its value can have
    widths: tuple[tuple[str, float], ...]  # how far each column may be off
    explanation: Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A total and the part of it that each query has, by which the worst error is smallest."""

    total: Epsilon | Rho | EpsilonDelta
    forecasts: tuple[ErrorForecast, ...]
    queries: tuple[Planned, ...]
    parts: tuple[Fraction, ...]

    @classmethod
    def of(
        cls,
        forecasts: Sequence[ErrorForecast],
        total: Epsilon | Rho | EpsilonDelta,
        beta: float,
        known: Sequence[SqlAnswer | None],
    ) -> Self:
        """Divide a total; an error is measured by the range declared bounds allow, or by an answer that is known."""
        facts = forecasts[0].facts
        rows = facts.size or UNDECLARED_SIZE_ROWS
        units = [_units(one, total, rows, known[i] if known else None) for i, one in enumerate(forecasts)]
        kind: type[Epsilon | Rho] = Epsilon if isinstance(total, Epsilon) else Rho
        errors = [
            error_at(one, kind, unit, beta, lambda _: rows, priced=False)
            for one, unit in zip(forecasts, units, strict=True)
        ]
        whole = facts.counted(total) if isinstance(total, EpsilonDelta) else total
        parts = divided(errors, amount(whole), squared=kind is Rho)
        made = []
        for forecast, unit, part in zip(forecasts, units, parts, strict=True):
            share = whole.share(part)
            widths = forecast.widths(forecast.plan(share), rows=rows, beta=beta, whole=True)
            error = max((width / unit[i] for i, width in enumerate(widths)), default=0.0)
            shown = tuple((name, width) for name, width in zip(forecast.names, widths, strict=True) if width)
            made.append(Planned(forecast.compiled.text, share, error, shown, forecast.explained(share, beta)))
        return cls(total, tuple(forecasts), tuple(made), tuple(parts))

    def question(self) -> Together | None:
        """All that the queries ask, each for its part of the total; None where nothing private is asked."""
        questions: list[Single] = []
        weights: list[Fraction] = []
        for one, part in zip(self._prepared(), self.parts, strict=True):
            if one.question is not None:
                each = one.question.shares or (Fraction(1),) * len(one.question.questions)
                questions += one.question.questions
                weights += [part * share / sum(each) for share in each]
        return Together(tuple(questions), tuple(weights)) if questions else None

    def read(self, answers: Answers) -> list[SqlAnswer]:
        """Each query's answer, of the answers to all questions."""
        found, start = [], 0
        for one, query in zip(self._prepared(), self.queries, strict=True):
            number = 0 if one.question is None else len(one.question.questions)
            mine, start = Answers(tuple(answers)[start : start + number]), start + number
            table = one.read([answer.released for answer in mine])
            first = answers[0]
            paid = nothing(query.spend) if first.reused or not number else query.spend
            found.append(
                SqlAnswer(
                    table, mine if number else None, paid, first.remaining, first.unit,
                    first.guarantee, first.receipt, first.reused, (*table.notes, *first.notes),
                )
            )  # fmt: skip
        return found

    def _prepared(self) -> list[PreparedQuery]:
        """The queries as they are laid out for their parts; new ones, as each remembers what it read."""
        return [
            prepare(one.program, one.facts, query.spend)
            for one, query in zip(self.forecasts, self.queries, strict=True)
        ]


def _units(forecast: ErrorForecast, spend: Loss, rows: int, known: SqlAnswer | None) -> dict[int, float]:
    """What each column's error is measured by: an answer already released, or the range declared bounds allow."""
    declared = dict(enumerate(forecast.scales(forecast.plan(spend), rows=rows)))
    table = {} if known is None else known.to_dict()
    released = [
        max((abs(float(v)) for v in table.get(name, []) if isinstance(v, (int, float))), default=0.0)
        for name in forecast.names
    ]
    return {i: released[i] or scale for i, scale in declared.items()}


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
        for query in self.queries:
            text = " ".join(query.text.split())
            lines.append(f"{query.spend}: {text if len(text) <= 80 else text[:77] + '...'}")
            lines += [f"    {name}  +- {figure(width)}" for name, width in query.widths]
            lines.append(f"    worst error {query.error:.2%} of its range")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self), quote=False)}</pre>"
