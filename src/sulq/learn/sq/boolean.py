"""Rows of truth values with a truth value to predict: what learners of Boolean concepts take."""

from __future__ import annotations

import numpy as np

from sulq.answers.columns import Columns
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.domain import Bool
from sulq.language.kinds import Truths
from sulq.learn.base import Learner
from sulq.learn.features import numbers_of
from sulq.learn.tables import Array, cells


class BooleanClassifier(Learner):
    """A learner of a truth value from truth values; its rule is read by `export_text`."""

    kind = "classifier"
    binary = True
    classes_: Array

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


def check_rates(accuracy: object, beta: object, eta: object) -> None:
    """Refuse parameters that are no probabilities, before anything is asked."""
    checked(accuracy is None or _between(accuracy, 0, 1), "accuracy is an error rate between 0 and 1, or None.")
    checked(_between(beta, 0, 1), "beta lies between 0 and 1.")
    checked(eta == 0 or _between(eta, 0, 0.5), "eta lies from 0 up to, not including, 1/2.")


def _between(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low < value < high
