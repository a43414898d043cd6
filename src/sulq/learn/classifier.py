"""Classifiers that score each class and say the one of the highest score."""

from __future__ import annotations

import numpy as np

from sulq.language.kinds import Floats
from sulq.learn.base import Learner
from sulq.learn.tables import Array


class ScoreClassifier(Learner):
    """A classifier by scores: what it adds to a learner is prediction on ordinary arrays and frames."""

    kind = "classifier"
    classes_: Array

    def _scores(self, X: object) -> Floats:
        """A score for each row and class, such that its exponential is proportional to the probability."""
        raise NotImplementedError

    def decision_function(self, X: object) -> Floats:
        """The scores; of two classes how much higher that of the second is, as scikit-learn has it."""
        self._ready()
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: object) -> Array:
        """The class of the highest score for each row of an ordinary array or frame."""
        self._ready()
        found: Array = self.classes_[self._scores(X).argmax(axis=1)]
        return found

    def predict_proba(self, X: object) -> Floats:
        """How likely each class is, for each row; the columns are those of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: object) -> Floats:
        """The logarithms of those probabilities."""
        self._ready()
        scores = self._scores(X)
        high = scores - scores.max(axis=1, keepdims=True)
        found: Floats = high - np.log(np.exp(high).sum(axis=1, keepdims=True))
        return found

    def score(self, X: object, y: object) -> float:
        """The part of the rows whose class is predicted."""
        said = self.predict(X)
        given = np.asarray(y).ravel()
        return float(np.mean([one == other for one, other in zip(said.tolist(), given.tolist(), strict=True)]))
