"""Chi-squared tests of noisy counts: of independence, and of given proportions.

Each squared residual is divided by what it would vary by, sampling and noise together, so that cells which are mere
noise hardly count; the p-value is of that statistic's own law (`quadratic_law`), never of the table of chi-squared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from sulq.answers.answer import extra, paid
from sulq.answers.oracle import Oracle
from sulq.display.tables import as_html
from sulq.display.text_table import TextTable
from sulq.errors import QuestionError
from sulq.forms.parameters import number
from sulq.inference.groups import ComparedGroups, groups_of
from sulq.inference.purchase import InferenceTerms, Purchase
from sulq.inference.quadratic_law import tail
from sulq.inference.result import Bill
from sulq.language.kinds import Floats
from sulq.language.law import LaplaceLaw
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from sulq.language.rowfn.base import several

if TYPE_CHECKING:
    import pandas

CLEAR: Final = 5.0  # deviations of its noise that the number of rows must have
LEAST: Final = 0.5  # rows that are expected in a cell, at least
MAX_CELLS: Final = 400
OWN_LAW: Final = "The p-value counts noise and sampling: it is of this statistic's own law, not of the chi-squared one."
HIDDEN: Final = "Noise hides how many rows there are: nothing is rejected."


class CellCount(NamedTuple):
    """One cell of a chi-squared test: its labels, its noisy count, and what was expected."""

    labels: tuple[object, ...]
    observed: float
    expected: float


@dataclass(frozen=True, slots=True)
class ChiSquareTest:
    """A chi-squared test: the statistic, its degrees of freedom, and the p-value that counts noise and sampling."""

    title: str
    keys: tuple[str, ...]
    statistic: float
    df: int
    p: float
    cells: tuple[CellCount, ...]
    bill: Bill
    notes: tuple[str, ...]

    @property
    def spent(self) -> Loss:
        """What it cost."""
        return self.bill.spent

    def to_pandas(self) -> pandas.DataFrame:
        """One row with the columns term, coef (the statistic), df and p."""
        row = {"term": ["chi-squared"], "coef": [self.statistic], "df": [self.df], "p": [self.p]}
        return cast("pandas.DataFrame", extra("pandas", "pandas").DataFrame(row))

    def counts(self) -> pandas.DataFrame:
        """The cells: a column for each key, then `observed`, the noisy count, and `expected`."""
        table: dict[str, list[object]] = {
            name: [cell.labels[i] for cell in self.cells] for i, name in enumerate(self.keys)
        }
        table |= {"observed": [c.observed for c in self.cells], "expected": [c.expected for c in self.cells]}
        return cast("pandas.DataFrame", extra("pandas", "pandas").DataFrame(table))

    def _table(self) -> TextTable:
        rows = tuple(
            (*(str(label) for label in c.labels), f"{c.observed:,.0f}", f"{c.expected:,.0f}") for c in self.cells
        )
        return TextTable(self._heading(), (*self.keys, "observed", "expected"), rows)

    def _heading(self) -> str:
        shown = "<0.0001" if self.p < 1e-4 else f"{self.p:.4f}"
        return f"{self.title}: statistic {self.statistic:.4g}, df {self.df}, p {shown}"

    def _tail(self) -> str:
        bill = self.bill
        return ("reused: " if bill.reused else "") + paid(bill.spent, bill.remaining, bill.unit)

    def __repr__(self) -> str:
        return "\n".join([self._table().text(), self._tail(), *self.notes])

    def _repr_html_(self) -> str:
        table = self._table()
        body = [[str(cell) for cell in row] for row in table.rows]
        return as_html(table.columns, body, " ".join([self._heading() + ".", self._tail(), *self.notes]))


def independence(counts: Floats, *, noise: float, pure: bool, rows: int = 1) -> tuple[float, float, Floats]:
    """Statistic, p-value and expected counts of a table of noisy counts; `noise`: their variance."""
    kept = np.maximum(counts, 0.0)
    total = max(float(kept.sum()), 1.0)
    a, b = (np.maximum(kept.sum(axis=axis) / total, LEAST / total) for axis in (1, 0))
    a, b = a / a.sum(), b / b.sum()
    centred = [np.eye(len(part)) - np.outer(part, np.ones(len(part))) for part in (a, b)]
    expected: Floats = max(float(counts.sum()), 1.0) * np.outer(a, b)
    statistic, p = _tested(
        counts.ravel(), expected.ravel(), np.asarray(np.kron(*centred)), noise=noise, pure=pure, rows=rows
    )
    return statistic, p, expected


def fit(counts: Floats, parts: Floats, *, noise: float, pure: bool, rows: int = 1) -> tuple[float, float, Floats]:
    """Statistic, p-value and expected counts of noisy counts beside given proportions."""
    expected = max(float(counts.sum()), 1.0) * parts
    residual = np.eye(len(parts)) - np.outer(parts, np.ones(len(parts)))
    statistic, p = _tested(counts, expected, residual, noise=noise, pure=pure, rows=rows)
    return statistic, p, expected


def _tested(
    counts: Floats, expected: Floats, residual: Floats, *, noise: float, pure: bool, rows: int
) -> tuple[float, float]:
    held = np.maximum(expected, LEAST)
    weights = 1 / (held + noise)
    off = counts - expected
    statistic = float((off**2 * weights).sum())
    form = residual.T @ (residual * weights[:, None])
    return statistic, tail(statistic, form, sampling=rows * held, noise=noise, pure=pure)


def chi_squared(
    oracle: Oracle,
    columns: object,
    *,
    expected: object,
    terms: InferenceTerms,
) -> ChiSquareTest:
    """Whether two keys are independent, or one has given proportions."""
    facts = oracle.facts
    listed = several(columns, "Columns") if isinstance(columns, (list, tuple)) else (columns,)
    if not 1 <= len(listed) <= 2 or (len(listed) == 2 and expected is not None):
        raise QuestionError(
            "bad-question", "Two columns are tested for independence, or one beside proportions.",
            'Write db.chi2(["a", "b"], ...), or db.chi2("a", expected={...}, ...).',
        )  # fmt: skip
    keys = [groups_of(facts, column, None, most=MAX_CELLS) for column in listed]
    sizes = [len(key.labels) for key in keys]
    if int(np.prod(sizes)) > MAX_CELLS:
        raise QuestionError("too-large", f"{int(np.prod(sizes))} cells are more than {MAX_CELLS}.")
    parts = _parts(keys[0], expected) if len(keys) == 1 else None
    question = Sums((Lit(1),), terms.where, tuple(key.key for key in keys))
    pay = Purchase.of(oracle, question, terms=terms)
    pay.plan.plan(1, question)
    released = pay.ask(question, 1)
    counts, noise = released.values()[:, 0].reshape(sizes), released.noise[0]
    pure, variance = isinstance(noise.law, LaplaceLaw), noise.deviation**2
    if parts is None:
        statistic, p, wanted = independence(counts, noise=variance, pure=pure, rows=pay.rows)
    else:
        statistic, p, wanted = fit(counts, parts, noise=variance, pure=pure, rows=pay.rows)
    clear = counts.sum() > CLEAR * np.sqrt(variance * counts.size)
    labels = [(a,) for a in keys[0].labels] if parts is not None else _pairs(keys)
    cells = tuple(
        CellCount(label, float(o), float(e)) for label, o, e in zip(labels, counts.ravel(), wanted.ravel(), strict=True)
    )
    names = tuple(key.name for key in keys)
    freedom = int(np.prod([size - 1 for size in sizes]))
    said = "Chi-squared test of " + (f"{' and '.join(names)} (independence)" if parts is None else names[0])
    notes = pay.notes(OWN_LAW, *(() if clear else (HIDDEN,)))[2:]
    return ChiSquareTest(
        said, names, statistic, freedom, float(max(p, 1e-6)) if clear else 1.0, cells, pay.bill(), notes
    )


def _pairs(keys: Sequence[ComparedGroups]) -> list[tuple[object, ...]]:
    return [(a, b) for a in keys[0].labels for b in keys[1].labels]


def _parts(key: ComparedGroups, expected: object) -> Floats:
    """The proportions that labels are expected to have; alike where none are given."""
    if expected is None:
        return np.full(len(key.labels), 1 / len(key.labels))
    told = (
        expected if isinstance(expected, Mapping) else dict(zip(key.labels, several(expected, "Parts"), strict=False))
    )
    if set(told) != set(key.labels) or (
        not isinstance(expected, Mapping) and len(told) != len(list(several(expected, "Parts")))
    ):
        raise QuestionError("bad-question", f"expected gives a part for each of the {len(key.labels)} labels.")
    parts = np.array([float(number(told[label])) for label in key.labels])
    if not (parts > 0).all():
        raise QuestionError("bad-literal", "Expected parts are positive numbers.")
    return np.asarray(parts / parts.sum())
