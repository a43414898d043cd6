"""Columns brought to one scale before a learner takes them: private handles and ordinary tables alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Self

import numpy as np

from sulq.answers.auto_bounds import Bounds
from sulq.answers.oracle import ColumnChoice, Progress, SpendPlan
from sulq.answers.readings.estimators import Spread
from sulq.answers.readings.joint import SpreadMean
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.domain import Bool, Category, Column, Real, Text
from sulq.language.kinds import Floats
from sulq.language.privacy import Epsilon, Loss
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Col
from sulq.learn.base import HANDLES, Learner
from sulq.learn.derived import Derived, DerivedOracle
from sulq.learn.features import BadTable, cells, numbers_of

CLEAR: Final = 3.0  # deviations of its noise that a column's number of rows must have for its moments to be believed
LEAST: Final = 1e-3  # of a column's width, that its deviation is taken for at least


@dataclass(eq=False, repr=False, kw_only=True)
class StandardScaler(Learner):
    """Numbers less their mean, over their standard deviation; categories and truth values as they are.

    `transform` takes ordinary tables, as scikit-learn's does, and private handles: these become handles on columns that
    are scaled wherever a question meets them, so that any learner, `score` and `cross_validate` take them. In a
    Pipeline of scikit-learn it comes before one of our learners.

    Most learners scale by themselves; principal components, clusters and perceptrons in the columns' own units do not.

    Privacy: the spend's; by="bounds" asks nothing and costs nothing. A scaled column's bounds follow from its declared
    ones and from released numbers.
    Accuracy: mean and deviation are those of noisy sums, one vector of norm 1 a column (SR18). Where its noise hides
    how many rows there are, a column has the moments that its bounds let expect.

    The spend: the same part for each column, all at one debit.

    by: "moments" asks for noisy means and deviations; "bounds" takes the middle of the declared bounds and the
        deviation of values that lie evenly between them.

    Learned: `mean_`, `scale_` and `var_`, one for each column, 0 and 1 where a column stays as it is.
    """

    by: Literal["moments", "bounds"] = "moments"

    @shows_progress
    def fit(
        self,
        X: ColumnChoice,
        y: object = None,
        *,
        spend: Loss | None = None,
        progress: Progress | None = None,
        bounds: Bounds | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Learn from private columns, or for nothing from their bounds; y, which a Pipeline hands over, is not used.

        Raises:
            QuestionError: The parameter or the columns do not fit; nothing was spent.
            BudgetExceeded: It does not fit what is left; nothing was spent.
        """
        if self.by == "moments" or not isinstance(X, ColumnChoice):
            return super().fit(X, None, spend=spend, progress=progress, bounds=bounds, timeout=timeout)
        checked(spend is None and bounds is None, 'by="bounds" asks nothing: leave spend and bounds out.')
        learned = type(self)(by=self.by)
        learned.expect(X)
        facts = X.oracle.facts
        learned.spent_, learned.unit_, learned.guarantee_ = Epsilon.total(Fraction(0)), facts.unit, "dp"
        learned.feature_names_in_, learned.n_features_in_ = X.names, len(X)
        self._take(vars(learned))
        return self

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        checked(self.by in ("moments", "bounds"), 'by is "moments" or "bounds".')
        self.expect(X)
        places = [i for i, (_, column) in enumerate(self._columns) if _scaled(column)]
        if not places:
            raise QuestionError("wrong-kind", "None of the columns is a number.", "Leave the scaler out.")
        terms = [Bernstein(Col(X.names[i]), 2) for i in places]
        question = Together(tuple(Sums((term,)) for term in terms))
        spending.plan(1, question)
        schema = spending.facts.schema
        for i, term, answer in zip(places, terms, spending.several(question), strict=True):
            step, low, high = term.span(schema)
            released = answer.released
            noise = float(released.deviations()[0]) * math.sqrt(3)
            if float(released.values().sum()) <= CLEAR * noise:
                continue
            width = float((high - low) * step)
            self.mean_[i] = float(SpreadMean(low * step, high * step).value(released)[0, 0])
            deviation = float(Spread((high - low) * step, root=True).value(released)[0, 0])
            self.scale_[i] = max(deviation, LEAST * width) or 1.0
        self.var_ = np.where(self._numeric, self.scale_**2, 1.0)

    def expect(self, X: ColumnChoice) -> None:
        """Take the moments that the declared bounds alone let expect; `fit` does, before it asks for better ones."""
        self._columns = tuple(zip(X.names, X.domain, strict=True))
        self.mean_, self.scale_ = np.zeros(len(X)), np.ones(len(X))
        for i, (name, column) in enumerate(self._columns):
            if isinstance(column, Text):
                raise QuestionError("wrong-kind", f"{name} is free text; it has no scale.")
            if _scaled(column):
                low, high = _ends(column)
                self.mean_[i], self.scale_[i] = (low + high) / 2, (high - low) / math.sqrt(12) or 1.0
        self.var_ = np.where(self._numeric, self.scale_**2, 1.0)

    @property
    def _numeric(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.array([_scaled(column) for _, column in self._columns])

    def transform(self, X: object) -> Any:  # noqa: ANN401 - handles, a frame or an array, as it was given
        """Handles on scaled columns for handles; an ordinary array or frame scaled, a missing cell still missing."""
        self._ready()
        if isinstance(X, ColumnChoice):
            return self._handles(X)
        found = cells(X, [name for name, _ in self._columns])
        scaled = {
            name: (numbers_of(found[name], column, name) - self.mean_[i]) / self.scale_[i]
            for i, (name, column) in enumerate(self._columns)
            if _scaled(column)
        }
        if hasattr(X, "assign"):  # a pandas frame stays one
            return X.assign(**scaled)
        columns = [scaled.get(name, found[name]) for name, _ in self._columns]
        return np.stack(columns, axis=1) if self._numeric.all() else _objects(columns)

    def inverse_transform(self, X: object) -> Floats:
        """An array of scaled numbers in the columns' own units."""
        self._ready()
        array = np.asarray(X, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(self._columns):
            raise BadTable("bad-table", f"Give a table of {len(self._columns)} columns.")
        return np.asarray(array * self.scale_ + self.mean_)

    def _handles(self, X: ColumnChoice) -> ColumnChoice:
        if X.names != self.feature_names_in_:
            names = ", ".join(self.feature_names_in_[:5])
            raise QuestionError("bad-question", f"It was fitted to other columns ({names}).", HANDLES)
        derived: dict[str, Derived] = {}
        for i, (name, learned) in enumerate(self._columns):
            column = X.domain[i]
            if type(column) is not type(learned):
                raise QuestionError("wrong-kind", f"{name} is declared otherwise than when the scaler was fitted.")
            if _scaled(column):
                low, high = ((end - self.mean_[i]) / self.scale_[i] for end in _ends(column))
                row = (Col(name) - float(self.mean_[i])) / float(self.scale_[i])
                derived[name] = (
                    row.clip(float(low), float(high)),
                    Real(float(low), float(high), missing=column.missing),
                )
        return ColumnChoice(X.names, DerivedOracle(X.oracle, derived))


def _scaled(column: Column) -> bool:
    return not isinstance(column, Bool | Category | Text)


def _ends(column: Column) -> tuple[float, float]:
    assert not isinstance(column, Text)  # noqa: S101 - refused before
    return float(column.low * column.step), float(column.high * column.step)


def _objects(columns: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Columns of several kinds side by side."""
    found = np.empty((len(columns[0]), len(columns)), dtype=object)
    for i, column in enumerate(columns):
        found[:, i] = column
    return found
