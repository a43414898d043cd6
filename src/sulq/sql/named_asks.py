"""The named asks that are made as SQL's are: quantiles, extremes and counts of different values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from sulq.answers.answer import Answer, Answers
from sulq.answers.law_choice import BETA, LawName, nearest
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan
from sulq.answers.readings.estimators import Reading
from sulq.answers.readings.quantiles import Quantile, Quantiles
from sulq.answers.readings.rank_choice import RankReading, SeveralQuantiles
from sulq.answers.readings.rank_choice import notes as chosen_notes
from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Scalar, Truth
from sulq.language.privacy import Loss
from sulq.language.question import WHOLE, Question, Together
from sulq.language.rowfn import Col, Each, OrMissing, RowFn
from sulq.sql.forecast import UNDECLARED_SIZE_ROWS, supposed
from sulq.sql.released.columns import RowGroups, StatColumn, collect, labels
from sulq.sql.released.program import Stat
from sulq.sql.released.questions import columns_of


def quantiles(
    oracle: Oracle,
    fn: RowFn,
    wanted: Sequence[Stat],
    names: tuple[str, ...],
    *,
    where: RowFn | None,
    by: tuple[RowFn, ...],
    spend: Loss | None,
    fresh: bool,
    law: LawName | None = None,
    interval: bool = True,
    sampling: bool = False,
) -> Answer:
    """Order statistics of a bounded number; without an `interval` what is chosen has all of the spend.

    `sampling`: none is chosen, as counts alone tell the sampling error.
    """
    kind = fn.kind(oracle.facts.schema)
    if isinstance(kind, Scalar) and kind.clock is not None:
        raise QuestionError("wrong-kind", "Quantiles of dates are asked in SQL.", "db.sql('SELECT MAX(visit) ...')")
    return _asked(
        oracle, list(wanted), names,
        where=where, by=by, spend=spend, fresh=fresh, law=law, interval=interval, counted=sampling,
    )  # fmt: skip


def count_distinct(
    oracle: Oracle,
    fn: RowFn,
    *,
    where: RowFn | None,
    by: tuple[RowFn, ...],
    spend: Loss | None,
    fresh: bool,
    law: LawName | None = None,
) -> Answer:
    """How many different values, or different people where the value is the person."""
    facts = oracle.facts
    people = isinstance(fn, Col) and fn.name == facts.person_of(facts.every[0])
    stat = Stat("persons") if people else Stat("count", (fn,), distinct=True)
    return _asked(oracle, [stat], ("count",), where=where, by=by, spend=spend, fresh=fresh, law=law)


def _asked(
    oracle: Oracle,
    stats: list[Stat],
    names: tuple[str, ...],
    *,
    where: RowFn | None,
    by: tuple[RowFn, ...],
    spend: Loss | None,
    fresh: bool,
    law: LawName | None = None,
    interval: bool = True,
    counted: bool = False,
) -> Answer:
    facts: Facts = oracle.facts
    if not all(isinstance(one, bool) for one in (fresh, interval, counted)):
        raise QuestionError("bad-question", "fresh, interval and sampling are True or False.")
    if where is not None and not isinstance(where, RowFn):
        raise QuestionError("bad-question", "where is a condition, sulq.col(...) > 0.")
    rows = RowGroups(WHOLE, where, tuple(labels(key, facts.schema)[0] for key in by))

    def foresee(question: Question, paid: Loss | None) -> Plan:
        return oracle.foresee(question, spend=paid)

    def asked(paid: Loss | None) -> tuple[Together, StatColumn, Reading]:
        """The question, all its columns as one and how they are read; all follow the law of the noise."""
        question, columns = collect(
            facts, paid, lambda asking: columns_of(asking, rows, stats), foresee, interval=interval, counted=counted
        )
        if question is None:  # pragma: no cover - every statistic asks for something
            raise QuestionError("bad-question", "Nothing is asked.")
        readings = [column.reading for column in columns]
        if len(columns) == 1:
            return question, columns[0], cast("Reading", readings[0])
        if all(isinstance(one, Quantile) for one in readings):
            return question, columns[0], Quantiles(tuple(one for one in readings if isinstance(one, Quantile)))
        slices = tuple(part for column in columns for part in column.slices)
        reading = SeveralQuantiles(
            cast("tuple[RankReading, ...]", tuple(readings)), tuple(len(c.slices) for c in columns)
        )
        return question, StatColumn(slices, reading), reading

    def widths(paid: Loss | None) -> list[float]:
        question, column, reading = asked(paid)
        folds = {part.question: part.fold for part in column.slices}
        plan = oracle.foresee(question, spend=paid)
        released = supposed(plan, facts, facts.size or UNDECLARED_SIZE_ROWS, whole=True, folds=folds)
        low, high = reading.interval(column.released(released), BETA)
        return [float(width) / 2 for width in np.ravel(high - low)]

    spend = nearest(spend, law, lambda: facts.budget, widths)
    question, column, reading = asked(spend)
    answers = cast("Answers", oracle.ask(question, spend=spend, reuse=not fresh))
    released = column.released([answer.released for answer in answers])
    keys = tuple((_title(fn, i), labels(fn, facts.schema)[1]) for i, fn in enumerate(by))
    notes = (*answers[0].notes, *chosen_notes([(reading, released)]))
    return replace(answers[0], released=released, reading=reading, keys=keys, columns=names, notes=notes)


def or_missing(fn: RowFn, schema: Schema) -> RowFn:
    """A key as SQL groups by it: where it can be missing, the rows without it are a group of their own."""
    kind = fn.kind(schema)
    if not isinstance(kind, (Code, Truth, Scalar)) or not kind.nullable:
        return fn
    return OrMissing(fn if isinstance(kind, Code) else Each(fn))


def _title(fn: RowFn, i: int) -> str:
    while isinstance(fn, (OrMissing, Each)):
        fn = fn.item
    name = getattr(fn, "name", None)
    return name if isinstance(name, str) else f"key{i}"


def parts(q: object) -> tuple[Fraction, ...]:
    """The quantiles asked for: one or several numbers from 0 to 1."""
    several = q if isinstance(q, (list, tuple)) else (q,)
    if not several or not all(isinstance(x, (int, float, Fraction)) and not isinstance(x, bool) for x in several):
        raise QuestionError("bad-literal", "A quantile is a number from 0 to 1, or a list of them.")
    if not all(0 <= x <= 1 for x in several):  # false for NaN too
        raise QuestionError("bad-literal", "A quantile lies between 0 and 1.")
    return tuple(Fraction(repr(float(x))) if isinstance(x, float) else Fraction(x) for x in several)
