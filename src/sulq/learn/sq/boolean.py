"""Rows of truth values with a truth value to predict: what learners of Boolean concepts take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from sulq.answers.columns import Columns
from sulq.answers.spend_plan import Purse
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.domain import Bool
from sulq.language.kinds import Truths
from sulq.language.privacy import Queries
from sulq.learn.base import Learner
from sulq.learn.features import numbers_of
from sulq.learn.sq.account import COUNT_FIRST
from sulq.learn.sq.noisy_labels import NoisyLabels
from sulq.learn.sq.oracle import PricedOracle, StatOracle
from sulq.learn.sq.statistical_queries import of_all_rows
from sulq.learn.tables import cells


@dataclass(eq=False, repr=False, kw_only=True)
class BooleanClassifier(Learner):
    """A learner of a truth value from truth values, by statistical queries; its rule is read by `export_text`."""

    kind = "classifier"
    binary = True

    accuracy: float | None = None
    beta: float = 0.05
    eta: float = 0.0

    def learn(self, oracle: StatOracle, names: Sequence[str], label: str) -> Self:
        """Learn from any oracle of statistical queries instead of a database; needs `accuracy`."""
        self._check()
        checked(self.accuracy is not None, "Name the accuracy: this oracle has no spend to make the best of.")
        self._promised(NoisyLabels(oracle, label, self.eta) if self.eta else oracle, tuple(names), label)
        self.feature_names_in_, self.n_features_in_ = tuple(names), len(names)
        self.spent_ = getattr(oracle, "spent", Queries(0))
        return self

    def _fit(self, X: Columns, y: Columns | None, purse: Purse) -> None:
        assert y is not None  # noqa: S101 - the base refused it
        self._check()
        names, label = truth_columns(X, y)
        steps, queries, family = self._asks(len(names))
        backend = of_all_rows(purse, queries=queries, beta=self.beta, population=self.eta > 0, family=family)
        counted = not backend.account.known
        purse.plan(steps + counted)
        oracle: PricedOracle = NoisyLabels(backend, label, self.eta) if self.eta else backend
        if self.accuracy is not None:
            self._afford(oracle, names, label)
            self._promised(oracle, names, label)
        else:
            self._best(oracle, names, label, 1 - COUNT_FIRST if counted else Fraction(1))

    def _check(self) -> None:
        """Refuse parameters that are no probabilities, before anything is asked."""
        good = self.accuracy is None or _between(self.accuracy, 0, 1)
        checked(good, "accuracy is an error rate between 0 and 1, or None.")
        checked(_between(self.beta, 0, 1), "beta lies between 0 and 1.")
        checked(self.eta == 0 or _between(self.eta, 0, 0.5), "eta lies from 0 up to, not including, 1/2.")

    def _asks(self, columns: int) -> tuple[int, int, int | None]:
        """The asks and the queries of a fit at most, and how many queries there might be."""
        raise NotImplementedError

    def _afford(self, oracle: PricedOracle, names: tuple[str, ...], label: str) -> None:
        """Refuse, before the first of several asks, a promise that the spend does not buy."""

    def _promised(self, oracle: StatOracle, names: tuple[str, ...], label: str) -> None:
        """Learn what keeps the promised accuracy."""
        raise NotImplementedError

    def _best(self, oracle: PricedOracle, names: tuple[str, ...], label: str, part: Fraction) -> None:
        """Learn the best that a part of the spend buys."""
        raise NotImplementedError

    def predict(self, X: object) -> Truths:
        """What the rule says of each row of an ordinary array or frame; a missing cell is false."""
        self._ready()
        return self._rule(truths_of(X, self.feature_names_in_))

    def score(self, X: object, y: object) -> float:
        """The part of the rows on which the rule is right."""
        given = numbers_of(np.asarray(y).ravel(), Bool(), "y")
        return float(np.mean(self.predict(X) == (given > 0.5)))

    def _rule(self, X: Truths) -> Truths:
        raise NotImplementedError


def truths_of(X: object, names: tuple[str, ...]) -> Truths:
    """An ordinary table of truth values, or of zeros and ones; what is missing is false."""
    found = cells(X, names)
    columns = [np.nan_to_num(numbers_of(found[name], Bool(), name)) > 0.5 for name in names]
    return np.stack(columns, axis=1)


def truth_columns(X: Columns, y: Columns) -> tuple[tuple[str, ...], str]:
    """The names of the columns and of the label, if they are all truth values."""
    for columns in (X, y):
        for name, domain in zip(columns.names, columns.domain, strict=True):
            if not isinstance(domain, Bool):
                raise QuestionError("wrong-kind", f"{name} is not a truth value.", "Declare it as Bool, or compare it.")
    return X.names, y.names[0]


def _between(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low < value < high
