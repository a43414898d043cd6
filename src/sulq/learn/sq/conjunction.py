"""Monotone conjunctions by statistical queries: which columns must all be true [S2.10]."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sulq.language.kinds import Floats, Truths
from sulq.language.rowfn import Col, Not, RowFn
from sulq.learn.sq.boolean import BooleanClassifier
from sulq.learn.sq.oracle import PricedOracle, StatOracle


class MonotoneConjunction(BooleanClassifier):
    """The conjunction of all columns that are hardly ever false where the label is true.

    One query a column: how often is it false while the label is true? A column of the target never is. All d
    queries are one vector question; where no size is declared a tenth of the spend is a noisy count.

    Privacy: the spend's; the rule is computed from noisy means alone.
    Accuracy: with answers within tau = accuracy/(2d) the rule holds every column of the target conjunction, is
    wrong only where it says false, and on at most the part `accuracy` of the rows; so with probability 1 - beta.
    Source: SQNotes, Theorem 5 (d = 12, accuracy .1: tau = .00417).

    accuracy: The error rate that is good enough, such as 0.1: a fit that cannot promise it is refused with the
        number of rows it would need. Left out, the fit makes the best of its spend and says in `accuracy_`
        what it can promise.
    beta: The probability with which the promise may fail.
    eta: How likely each label was flipped, where the labels are known to be noisy; the promise is then about the
        true ones.

    Learned: `variables_`, the columns of the conjunction; `estimates_`, the noisy means; `tolerance_`, how far they
    may be off; `accuracy_`, the error rate that is promised.
    """

    def _asks(self, columns: int) -> tuple[int, int, int | None]:
        return 1, columns, None

    def _promised(self, oracle: StatOracle, names: tuple[str, ...], label: str) -> None:
        tau = float(self.accuracy or 0) / (2 * len(names))
        self._conclude(names, oracle.stats(queries(names, label), tau), tau)

    def _best(self, oracle: PricedOracle, names: tuple[str, ...], label: str, part: Fraction) -> None:
        self._conclude(names, *oracle.best(queries(names, label), part))

    def _conclude(self, names: tuple[str, ...], answers: Floats, tau: float) -> None:
        self.classes_ = np.array([False, True])
        self.estimates_ = answers
        self.tolerance_ = tau
        self.accuracy_ = min(1.0, 2 * len(names) * tau)
        self.variables_ = tuple(name for name, answer in zip(names, answers, strict=True) if answer <= tau)

    def _rule(self, X: Truths) -> Truths:
        kept = [name in self.variables_ for name in self.feature_names_in_]
        return np.asarray(X[:, kept].all(axis=1))

    def export_text(self) -> str:
        """The rule as a line of text."""
        self._ready()
        return " and ".join(self.variables_) or "always true"


def queries(names: Sequence[str], label: str) -> list[RowFn]:
    """For each column, whether it is false although the label is true [S2.10]."""
    return [Not(Col(name)) & Col(label) for name in names]
