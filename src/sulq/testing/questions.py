"""Questions drawn at random over the columns of `neighbours`: every row function, in every place it may stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, ParamSpec, TypeVar

import numpy as np

from sulq.terms.question import Question, Sums, Together
from sulq.terms.rowfn import (
    Arith,
    Bernstein,
    Bins,
    Bucket,
    Case,
    Clip,
    Col,
    Compare,
    Dot,
    Each,
    Fill,
    IsIn,
    IsMissing,
    Lit,
    Logic,
    Lookup,
    Nearest,
    Not,
    Outer,
    Position,
    RowFn,
    Vector,
    WithinBall,
)

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

    def number(self, depth: int) -> RowFn:
        """A row function that gives a number."""
        if depth <= 0:
            return self._pick(lambda: Col(self._one(NUMBERS)), lambda: Lit(self._literal()))()
        deeper = depth - 1
        return self._pick(
            lambda: Col(self._one(NUMBERS)),
            lambda: Lit(1),
            lambda: Arith(self._one(("+", "-", "*")), self.number(deeper), self.number(deeper)),
            lambda: Clip(Arith("/", self.number(deeper), self.number(deeper)), *self._ends()),
            lambda: Arith("/", self.number(deeper), Col("score")),
            lambda: Clip(self.number(deeper), *self._ends()),
            lambda: Fill(self.number(deeper), self._literal()),
            lambda: Case(
                ((self.condition(deeper), self.number(deeper)), (self.condition(deeper), Lit(self._literal()))),
                self.number(deeper) if self.rng.random() < 0.5 else None,
            ),
            lambda: self.condition(deeper),
            lambda: Dot(Vector((Col("gain"), Col("debt"))), (self._literal(), self._literal())),
            lambda: Lookup((Col("city"),), tuple((self._literal(),) for _ in CITIES)),
            lambda: Lookup((Col("city"), Each(Col("flag"))), ((1,), (2,), (-3,), (4,), (0,), (9,))),
            lambda: Clip(Arith("/", Lit(1), Position()), 0, 1),
        )()

    def condition(self, depth: int) -> RowFn:
        """A row function that gives a truth value."""
        deeper = max(depth - 1, 0)
        simple: list[Callable[[], RowFn]] = [
            lambda: Col("flag"),
            lambda: Compare(self._one(("==", "!=")), Col("city"), Lit(self._one(CITIES))),
            lambda: IsIn(Col("code"), (1, 5)),
            lambda: Compare(self._one(("<", "<=", ">", ">=")), Col(self._one(NUMBERS)), Lit(self._literal())),
            lambda: Compare("<", Col("day"), Lit("2020-06-15")),
            lambda: Compare(">=", Col("moment"), Lit("2020-03-01T12:00:00")),
            lambda: Compare("==", Col("note"), Lit("ann")),
            lambda: IsMissing(Col(self._one((*NUMBERS, "city", "day", "note")))),
            lambda: Compare("==", Bucket(3, int(self.rng.integers(5))), Lit(1)),
        ]
        if depth <= 0:
            return self._pick(*simple)()
        return self._pick(
            *simple,
            lambda: Compare(self._one(("==", "<", ">=")), self.number(deeper), self.number(deeper)),
            lambda: Logic(self._one(("and", "or")), (self.condition(deeper), self.condition(deeper))),
            lambda: Not(self.condition(deeper)),
            lambda: Fill(self.condition(deeper), bool(self.rng.integers(2))),
            lambda: IsMissing(self.number(deeper)),
        )()

    def vector(self, depth: int) -> RowFn:
        """A row function that gives a vector of whole units."""
        return self._pick(
            self._coordinates,
            lambda: WithinBall(self._coordinates(), float(self._one((0.5, 3, 40)))),
            lambda: Outer(self._coordinates()),
            lambda: Outer(WithinBall(self._coordinates(), float(self._one((0.5, 3, 40))))),
            lambda: Bernstein(self.number(depth - 1), 1),
            lambda: Bernstein(self.number(depth - 1), 2),
            lambda: Lookup((Col("city"),), ((1, -1), (0.5, 2), (0, 3))),
        )()

    def key(self) -> RowFn:
        """A row function that puts a row into one of few cells."""
        return self._pick(
            lambda: Col("city"),
            lambda: Col("code"),
            lambda: Each(Col("flag")),
            lambda: Each(self.condition(1)),
            lambda: Bins(Col(self._one(NUMBERS)), (-10, 0, 12.5, 30, 250)),
            lambda: Bins(self.number(1), (-1, 0, 3, 10)),
            lambda: Bins(Col("day"), ("2020-01-01", "2020-04-01", "2020-12-31")),
            lambda: Nearest(self._coordinates(), self._centres()),
            lambda: Bucket(int(self.rng.integers(1, 5)), int(self.rng.integers(5))),
        )()

    def _coordinates(self) -> Vector:
        return Vector((Col("gain"), Col(self._one(NUMBERS))), int(self.rng.integers(3, 12)))

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
