"""Questions drawn at random over the columns of `neighbours`: every row function, in every place it may stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, ParamSpec, TypeVar

import numpy as np

from sulq.language import rowfn
from sulq.language.question import Above, Choose, OpenSums, Question, Sums, Together
from sulq.language.score import Contrast, Diagonal, Distance, Linear, NegAbs, NegL1, NegMaxAbs, Rank, Score

P = ParamSpec("P")
T = TypeVar("T")

NUMBERS: Final = ("age", "gain", "debt", "score")
CITIES: Final = ("Haifa", "Lod", "Yafo")


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws questions an analyst might put; some are refused under some units, most can be answered."""

    rng: np.random.Generator

    def question(self) -> Question:
        """Any question: mostly one set of sums, sometimes several together."""
        if self.rng.random() < 0.2:
            parts = tuple(self.sums() for _ in range(int(self.rng.integers(1, 4))))
            return Together(parts, self._shares(len(parts)))
        return self.sums()

    def sums(self) -> Sums:
        """Numbers and vectors, filtered or not, partitioned or not."""
        values = tuple(self._pick(self.number, self.vector)(2) for _ in range(int(self.rng.integers(1, 4))))
        where = self.condition(2) if self.rng.random() < 0.5 else None
        by = tuple(self.key() for _ in range(int(self.rng.choice(3, p=[0.4, 0.45, 0.15]))))
        return Sums(values, where, by, self._shares(len(values)))

    def open_sums(self) -> OpenSums:
        """Sums by keys nobody listed: texts, numbers, conditions, categories."""
        values = tuple(self._pick(self.number, self.vector)(1) for _ in range(int(self.rng.integers(3))))
        keys = tuple(self._open_key() for _ in range(int(self.rng.integers(1, 3))))
        where = self.condition(1) if self.rng.random() < 0.5 else None
        return OpenSums(values, where, keys, self._shares(len(values) + 1))

    def choose(self) -> Choose:
        """A choice by ranks of counts, or by a small matrix; sometimes one for each cell of a key, or by marginals."""
        if self.rng.random() < 0.25:
            return self._by_marginals()
        keys = (
            self._pick(
                lambda: rowfn.Col("city"), lambda: rowfn.Bins(rowfn.Col(self._one(NUMBERS)), (-60, 0, 20, 250))
            )(),
        )
        outer = (rowfn.Each(rowfn.Col("flag")),) if self.rng.random() < 0.5 else ()
        where = self.condition(1) if self.rng.random() < 0.5 else None
        value: rowfn.RowFn = rowfn.Lit(1) if self.rng.random() < 0.7 else rowfn.Clip(self.number(0), *self._ends())
        counts = Sums((value,), where, (*outer, *keys))
        matrix = tuple(tuple(row) for row in self.rng.integers(-3, 4, (int(self.rng.integers(1, 5)), 3)).tolist())
        whole = int(self.rng.integers(1, 20))
        ranked = Rank(int(self.rng.integers(whole + 1)), whole, self._one((-400, -20, -1, 0, 1, 20, 400)))
        contrast = Contrast((matrix, matrix) if outer else (matrix,))
        own = Diagonal(tuple(self.rng.integers(-3, 4, 3).tolist()), bool(self.rng.integers(2)))
        scores: tuple[Score, ...] = (ranked, Linear(matrix), NegAbs(matrix), own, contrast, *self._aimed(matrix))
        return Choose(counts, self._one(scores))

    def _by_marginals(self) -> Choose:
        """Six sums that one row moves at once: two marginals and a condition."""
        ones: list[rowfn.RowFn] = [rowfn.Lookup((rowfn.Col("city"),), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))]
        ones += [rowfn.Lookup((rowfn.Each(rowfn.Col("flag")),), ((1, 0), (0, 1))), self.condition(1)]
        every = rowfn.Choice(((self.condition(0), 0),), ("every row",), 0)
        where = self.condition(1) if self.rng.random() < 0.5 else None
        matrix = tuple(tuple(row) for row in self.rng.integers(-3, 4, (2, 6)).tolist())
        split = self._one((((2, 1, 1), (3, 0), (1,)), ((2, 1), (1, 3), (0, 1)), ((1, 2, 3, 4, 5, 6),)))
        weights, biases = (tuple(self.rng.integers(-3, 9, len(split)).tolist()) for _ in range(2))
        base = self._one(((), (1, 1, 1, 0, 0, 0)))
        scores: tuple[Score, ...] = (
            Linear(matrix),
            Diagonal(matrix[0], bool(self.rng.integers(2))),
            NegMaxAbs(matrix, ((1, 2), (3, 4), (0, 0)), base),
            NegL1(matrix, ((1, 2), (3, 4), (0, 0)), base),
            Distance(split, weights, biases),
        )
        return Choose(Sums(tuple(ones), where, (every,)), self._one(scores))

    def _aimed(self, matrix: tuple[tuple[int, ...], ...]) -> tuple[Score, ...]:
        """Scores by the distance from public targets of three sums."""
        targets = tuple(tuple(row) for row in self.rng.integers(-4, 30, (4, len(matrix))).tolist())
        base = self._one(((), (1, 1, 1), (2, 0, -1)))
        split = ((5, 2), (9,)) if self.rng.random() < 0.5 else ((7,), (1,), (0,))
        weights, biases = (tuple(self.rng.integers(-3, 9, len(split)).tolist()) for _ in range(2))
        return NegMaxAbs(matrix, targets, base), NegL1(matrix, targets, base), Distance(split, weights, biases)

    def above(self) -> Above:
        """A threshold for a count, for the cells of a partition, or for sums that one row moves at once."""
        flags = tuple(self.condition(1) for _ in range(int(self.rng.integers(2, 8))))
        value = self._pick(
            lambda: rowfn.Lit(1), lambda: rowfn.Lit(-1), lambda: self.number(1), lambda: rowfn.Vector(flags, 1)
        )
        by = tuple(self.key() for _ in range(int(self.rng.integers(2))))
        where = self.condition(1) if self.rng.random() < 0.5 else None
        return Above(Sums((self._pick(value, lambda: self.vector(1))(),), where, by), self._literal())

    def _open_key(self) -> rowfn.RowFn:
        return self._pick(
            lambda: rowfn.Col("note"),
            lambda: rowfn.Col("age"),
            lambda: self.condition(1),
            lambda: rowfn.Col("city"),
            lambda: rowfn.Col("day"),
            lambda: rowfn.NullIf(rowfn.OrMissing(rowfn.Col("city")), rowfn.Lit(self._one(CITIES))),
        )()

    def number(self, depth: int) -> rowfn.RowFn:
        """A row function that gives a number."""
        if depth <= 0:
            return self._pick(lambda: rowfn.Col(self._one(NUMBERS)), lambda: rowfn.Lit(self._literal()))()
        deeper = depth - 1
        return self._pick(
            lambda: rowfn.Col(self._one(NUMBERS)),
            lambda: rowfn.Lit(1),
            lambda: rowfn.Arith(self._one(("+", "-", "*")), self.number(deeper), self.number(deeper)),
            lambda: rowfn.Clip(rowfn.Arith("/", self.number(deeper), self.number(deeper)), *self._ends()),
            lambda: rowfn.Arith("/", self.number(deeper), rowfn.Col("score")),
            lambda: rowfn.Clip(self.number(deeper), *self._ends()),
            lambda: rowfn.Fill(self.number(deeper), self._literal()),
            lambda: rowfn.Case(
                ((self.condition(deeper), self.number(deeper)), (self.condition(deeper), rowfn.Lit(self._literal()))),
                self.number(deeper) if self.rng.random() < 0.5 else None,
            ),
            lambda: self.condition(deeper),
            lambda: rowfn.Dot(rowfn.Vector((rowfn.Col("gain"), rowfn.Col("debt"))), (self._literal(), self._literal())),
            lambda: rowfn.Lookup((rowfn.Col("city"),), tuple((self._literal(),) for _ in CITIES)),
            lambda: rowfn.Lookup(
                (rowfn.Col("city"), rowfn.Each(rowfn.Col("flag"))), ((1,), (2,), (-3,), (4,), (0,), (9,))
            ),
            lambda: rowfn.Clip(rowfn.Arith("/", rowfn.Lit(1), rowfn.Position()), 0, 1),
            lambda: self._computed(deeper),
            lambda: self._computed(deeper),
        )()

    def _computed(self, depth: int) -> rowfn.RowFn:
        """A function of numbers, dates, labels or texts that gives a number."""
        clock = rowfn.Col(self._one(("day", "moment")))
        return self._pick(
            lambda: rowfn.Maths(self._one(("abs", "floor", "ceil", "trunc", "sign", "sqrt", "ln")), self.number(depth)),
            lambda: rowfn.Clip(rowfn.Maths("exp", rowfn.Clip(self.number(depth), -5, 5)), 0, 50),
            lambda: rowfn.Round(self.number(depth), int(self.rng.integers(-1, 3))),
            lambda: rowfn.Clip(rowfn.Power(self.number(depth), self._one((2, 3, 0.5, -1))), *self._ends()),
            lambda: rowfn.Modulo(self.number(depth), self._one((2, 7, 2.5))),
            lambda: rowfn.Least((self.number(depth), self.number(depth))),
            lambda: rowfn.Greatest((self.number(depth), rowfn.Lit(self._literal()))),
            lambda: rowfn.First((self.number(depth), self.number(depth))),
            lambda: rowfn.NullIf(rowfn.Col(self._one(NUMBERS)), rowfn.Lit(self._literal())),
            lambda: rowfn.Value(rowfn.Relabel(rowfn.OrMissing(rowfn.Col("city")), (1, 2.5, None, 7))),
            lambda: rowfn.Value(rowfn.Choice(((self.condition(depth), 0),), (3, -4), 1)),
            lambda: rowfn.DatePart(self._one(("year", "month", "dow", "doy", "week")), clock),
            lambda: rowfn.DatePart(
                "day", rowfn.ToDate(rowfn.DateTrunc(self._one(("week", "month", "quarter")), clock))
            ),
            lambda: rowfn.DatePart("hour", rowfn.ToTimestamp(clock)),
            lambda: rowfn.Length(self.text()),
            lambda: rowfn.IndexOf(self.text(), self._one(("a", "n", ""))),
        )()

    def text(self) -> rowfn.RowFn:
        """A row function that gives a text."""
        return self._pick(
            lambda: rowfn.Col("note"),
            lambda: rowfn.Lowered(rowfn.Col("note")),
            lambda: rowfn.Uppered(rowfn.Trimmed(rowfn.Col("note"), self._one(("both", "left", "right")))),
            lambda: rowfn.Substring(rowfn.Col("note"), int(self.rng.integers(-1, 4)), int(self.rng.integers(0, 4))),
            lambda: rowfn.Concat((rowfn.Col("note"), rowfn.Lit("-"), rowfn.Lowered(rowfn.Col("note")))),
        )()

    def condition(self, depth: int) -> rowfn.RowFn:
        """A row function that gives a truth value."""
        deeper = max(depth - 1, 0)
        simple: list[Callable[[], rowfn.RowFn]] = [
            lambda: rowfn.Col("flag"),
            lambda: rowfn.Compare(self._one(("==", "!=")), rowfn.Col("city"), rowfn.Lit(self._one(CITIES))),
            lambda: rowfn.IsIn(rowfn.Col("code"), (1, 5)),
            lambda: rowfn.Compare(
                self._one(("<", "<=", ">", ">=")), rowfn.Col(self._one(NUMBERS)), rowfn.Lit(self._literal())
            ),
            lambda: rowfn.Compare("<", rowfn.Col("day"), rowfn.Lit("2020-06-15")),
            lambda: rowfn.Compare(">=", rowfn.Col("moment"), rowfn.Lit("2020-03-01T12:00:00")),
            lambda: rowfn.Compare("==", rowfn.Col("note"), rowfn.Lit("ann")),
            lambda: rowfn.IsMissing(rowfn.Col(self._one((*NUMBERS, "city", "day", "note")))),
            lambda: rowfn.Compare("==", rowfn.Bucket(3, int(self.rng.integers(5))), rowfn.Lit(1)),
            lambda: rowfn.Compare(">", rowfn.Col("day"), rowfn.Moment("2020-02-29")),
            lambda: rowfn.Like(self.text(), self._one(("a%", "%n", "_nn", "%"))),
            lambda: rowfn.StartsWith(self.text(), self._one(("a", "A", ""))),
        ]
        if depth <= 0:
            return self._pick(*simple)()
        return self._pick(
            *simple,
            lambda: rowfn.Compare(self._one(("==", "<", ">=")), self.number(deeper), self.number(deeper)),
            lambda: rowfn.Logic(self._one(("and", "or")), (self.condition(deeper), self.condition(deeper))),
            lambda: rowfn.Not(self.condition(deeper)),
            lambda: rowfn.Fill(self.condition(deeper), bool(self.rng.integers(2))),
            lambda: rowfn.IsMissing(self.number(deeper)),
        )()

    def vector(self, depth: int) -> rowfn.RowFn:
        """A row function that gives a vector of whole units."""
        return self._pick(
            self._coordinates,
            lambda: rowfn.WithinBall(self._coordinates(), float(self._one((0.5, 3, 40)))),
            lambda: rowfn.WithinL1(self._coordinates(), float(self._one((0.5, 3, 40)))),
            lambda: rowfn.Scaled(self._coordinates(), rowfn.Lookup((rowfn.Col("city"),), ((1,), (-1,), (0,)))),
            lambda: rowfn.Scaled(
                rowfn.WithinBall(self._coordinates(), 3.0), self.number(depth - 1), int(self.rng.integers(1, 12))
            ),
            lambda: rowfn.Outer(self._coordinates()),
            lambda: rowfn.Outer(rowfn.WithinBall(self._coordinates(), float(self._one((0.5, 3, 40))))),
            lambda: rowfn.Outer(rowfn.WithinL1(self._coordinates(), float(self._one((0.5, 3, 40))))),
            lambda: rowfn.Bernstein(self.number(depth - 1), 1, bool(self.rng.integers(2))),
            lambda: rowfn.Bernstein(self.number(depth - 1), 2, bool(self.rng.integers(2))),
            lambda: rowfn.Lookup((rowfn.Col("city"),), ((1, -1), (0.5, 2), (0, 3))),
        )()

    def key(self) -> rowfn.RowFn:
        """A row function that puts a row into one of few cells."""
        return self._pick(
            lambda: rowfn.Col("city"),
            lambda: rowfn.Col("code"),
            lambda: rowfn.Each(rowfn.Col("flag")),
            lambda: rowfn.Each(self.condition(1)),
            lambda: rowfn.Bins(rowfn.Col(self._one(NUMBERS)), (-10, 0, 12.5, 30, 250)),
            lambda: rowfn.Bins(self.number(1), (-1, 0, 3, 10)),
            lambda: rowfn.Bins(rowfn.Col("day"), ("2020-01-01", "2020-04-01", "2020-12-31")),
            lambda: rowfn.Nearest(self._coordinates(), self._centres()),
            lambda: rowfn.Route(
                (rowfn.Col("city"), rowfn.Each(self.condition(0))), ((0, 1, -1, 2), (1, -2, None), (1, -3, -1))
            ),
            lambda: rowfn.Bucket(int(self.rng.integers(1, 5)), int(self.rng.integers(5))),
            lambda: rowfn.OrMissing(rowfn.Col("city")),
            lambda: rowfn.OrMissing(rowfn.OrMissing(rowfn.Col("city"))),
            lambda: rowfn.Relabel(rowfn.Col("city"), ("coast", None, "coast")),
            lambda: rowfn.Choice(((self.condition(1), 0), (self.condition(0), None)), ("yes", "no"), 1),
        )()

    def _coordinates(self) -> rowfn.Vector:
        return rowfn.Vector((rowfn.Col("gain"), rowfn.Col(self._one(NUMBERS))), int(self.rng.integers(3, 12)))

    def _centres(self) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(self.rng.uniform(-60, 210, 2).tolist()) for _ in range(3))

    def _literal(self) -> float | int:
        return self._pick(
            lambda: int(self.rng.integers(-5, 100)), lambda: float(np.round(self.rng.uniform(-30, 60), 3))
        )()

    def _ends(self) -> tuple[float, float]:
        low, high = sorted(self.rng.integers(-20, 60, 2).tolist())
        return low, high + 1

    def _shares(self, count: int) -> tuple[Fraction, ...]:
        if count == 1 or self.rng.random() < 0.5:
            return ()
        return tuple(Fraction(int(x), 7) for x in self.rng.integers(1, 10, count))

    def _one(self, choices: tuple[T, ...]) -> T:
        return choices[int(self.rng.integers(len(choices)))]

    def _pick(self, *makers: Callable[P, T]) -> Callable[P, T]:
        return makers[int(self.rng.integers(len(makers)))]
