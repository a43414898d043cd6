"""The columns of a regression: numbers within their declared bounds, and an indicator for each label but the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.inference.titles import labelled, title
from sulq.language.domain import Category
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Floats
from sulq.language.rowfn import Col, Lit, Lookup, RowFn, Vector, named
from sulq.language.rowfn.base import describe, several
from sulq.language.rowfn.vectors import MAX_BITS, bounded

INTERCEPT: Final = "intercept"
MAX_TERMS: Final = 100  # of a regression: noise grows with their square


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A number of a row, from the middle of its declared bounds in units of half their width: within [-1, 1]."""

    name: str
    row: RowFn
    middle: float
    half: float


@dataclass(frozen=True, slots=True, eq=False)
class Regressors:
    """The terms of a regression, and the table they are of."""

    terms: tuple[Term, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the coefficients are called, the intercept first."""
        return (INTERCEPT, *(term.name for term in self.terms))

    def vector(self, *more: RowFn) -> Vector:
        """One, the terms, and what stands behind them, side by side; a row that lacks any of them counts nothing."""
        return Vector((Lit(1), *(term.row for term in self.terms), *more), MAX_BITS - 1)

    def units(self, middle: float, half: float) -> tuple[Floats, Floats]:
        """Coefficients in the columns' own units, as a matrix times those of the terms and a constant.

        `middle`, `half`: of what the terms explain.
        """
        halves = np.array([term.half for term in self.terms])
        matrix = np.diag(np.append(half, half / halves))
        matrix[0, 1:] = -half * np.array([term.middle for term in self.terms]) / halves
        return matrix, np.append(middle, np.zeros(len(self.terms)))


def regressors(facts: Facts, items: object) -> Regressors:
    """The terms of columns and row functions; a category is an indicator for each label but the first."""
    listed: list[tuple[str | None, RowFn]]
    if isinstance(items, Mapping):
        listed = [(str(name), named(item)) for name, item in items.items()]
    else:
        told = several(items, "Columns") if isinstance(items, (list, tuple)) else (items,)
        listed = [(None, named(item)) for item in told]
    found: list[Term] = []
    for name, item in listed:
        found += _terms(facts, item, name)
    names = [term.name for term in found]
    twice = next((name for i, name in enumerate(names) if name in names[:i] or name == INTERCEPT), None)
    if not found or twice is not None:
        what = "At least one column explains another." if not found else f"The column {twice} is there twice."
        raise QuestionError(
            "bad-question", what, 'Name what is no column: db.ols("y", {"a": "a", "a squared": col("a") ** 2}, ...).'
        )
    if len(found) > MAX_TERMS:
        raise QuestionError("too-large", f"{len(found)} terms are more than {MAX_TERMS}.", "Leave some columns out.")
    return Regressors(tuple(found))


def term(facts: Facts, fn: RowFn, name: str | None = None) -> Term:
    """A bounded number as a term."""
    lo, hi, kind = bounded(fn, facts.schema)
    if kind.clock:
        raise QuestionError("wrong-kind", f"{describe(fn)} is a date.", "Take a number of it, as its year.")
    if lo == hi:
        raise QuestionError("bad-question", f"{title(fn)} is constant by its bounds.", "Leave it out.")
    middle, half = float((lo + hi) / 2), float((hi - lo) / 2)
    return Term(name or title(fn), (fn - middle) / half, middle, half)


def labels_of(facts: Facts, fn: RowFn) -> tuple[object, ...] | None:
    """The labels of a key; None for what is no key."""
    kind = fn.kind(facts.schema)
    return kind.labels if isinstance(kind, Code) else None


def _terms(facts: Facts, fn: RowFn, name: str | None) -> Sequence[Term]:
    labels = labels_of(facts, fn)
    if labels is None:
        return [term(facts, fn, name)]
    domain = facts.schema.find(fn.name) if isinstance(fn, Col) else None
    labels = domain.values if isinstance(domain, Category) else labels
    if labels == (False, True) and isinstance(labels[0], bool):  # no literal of a question; 0 equals False
        return [term(facts, Lookup((fn,), ((0,), (1,))), labelled(fn, label=True, name=name))]
    return [term(facts, fn == label, labelled(fn, label, name)) for label in labels[1:]]
