"""Figures: how a cell's error probability is divided, and what has an interval at all."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from sulq.language.privacy import Epsilon
from sulq.language.relation import Table
from sulq.language.rowfn import Col
from sulq.sql.parse.syntax import Call
from sulq.sql.released.cells import GroupCells, NoisyValue, Unclear, applied, either, interval, statistics
from sulq.sql.released.program import GroupStatistics, KeyLabel, Stat, StatAt, TableProgram
from tests.sql.programs import apply, const, truth

GROUPS = GroupStatistics(
    Table(),
    None,
    (Col("city"),),
    (),
    (Stat("rows"), Stat("rows", where=Col("smoker")), Stat("max", (Col("visit"),))),
)
N, S, LAST = StatAt(0), StatAt(1), StatAt(2)


def cell(expr: object) -> tuple[NoisyValue, list[object]]:
    asked, released = truth(TableProgram(GROUPS, (("x", expr),)), Epsilon(1))  # type: ignore[arg-type]
    return asked.read(released).shown()[0][0], released


def test_the_error_probability_is_divided_over_the_statistics():
    """A cell of one statistic has its own exact interval; of two, each at half of beta."""
    figure, released = cell(N)
    assert len(statistics(figure)) == 1
    law = figure.origin.column.released(released).noise[0].law
    low, high = interval(figure, released, 0.05)
    assert (high - low) / 2 == law.accuracy(0.05)
    figure, released = cell(apply("+", N, S))
    assert len(statistics(figure)) == 2
    low, high = interval(figure, released, 0.05)
    assert (high - low) / 2 == 2 * law.accuracy(0.025)
    figure, _ = cell(apply("-", N, N))
    assert len(statistics(figure)) == 1


def test_truths_texts_and_keys_have_no_interval():
    """Comparisons, labels and constants are shown as they are; a case of numbers spans what could hold."""
    for expr in (
        apply(">", N, const(3)),
        KeyLabel(0),
        const(4),
        Call("case", (apply(">", N, S), const("a"), const("b"))),
    ):
        figure, released = cell(expr)
        assert interval(figure, released, 0.05) is None
    figure, released = cell(Call("case", (apply(">", N, S), const(1), const(0))))
    assert figure.value == 1
    assert interval(figure, released, 0.05) in ((1.0, 1.0), (0.0, 1.0))
    certain = either([(NoisyValue(value=True), NoisyValue(3))], NoisyValue(4))
    assert (certain.value, certain.origin) == (3, None)
    assert interval(NoisyValue(3, Unclear()), [], 0.05) is None
    assert applied("+", [NoisyValue(1), NoisyValue(2)]).origin is None


def test_moments_have_intervals_of_moments():
    """The interval of a date is made of dates."""
    figure, released = cell(LAST)
    assert isinstance(figure.origin, GroupCells)
    low, high = interval(figure, released, 0.05)
    assert isinstance(low, datetime.date)
    assert low <= figure.value <= high


def test_wider_confidence_is_a_wider_interval():
    """A smaller beta never narrows an interval."""
    figure, released = cell(apply("/", apply("*", const(1.0), S), N))
    widths = [b - a for a, b in (interval(figure, released, beta) for beta in (0.5, 0.1, 0.01))]
    assert widths == sorted(widths)
    assert figure.value == pytest.approx(float(Fraction(figure.value)))
