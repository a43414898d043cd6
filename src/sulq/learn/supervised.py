"""What learners with a label share: how a classifier predicts and is scored, and how a regressor is scored."""

from __future__ import annotations

import numpy as np

from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.learn.base import Learner
from sulq.learn.features import Array, numbers_of


class Classifier(Learner):
    """A learner of classes: it predicts the class of the highest score."""

    kind = "classifier"
    classes_: Array

    def predict_proba(self, X: object) -> Floats:
        """How likely each class is, for each row; the columns are those of `classes_`."""
        raise NotImplementedError

    def _scores(self, X: object) -> Floats:
        """A score for each row and class."""
        return self.predict_proba(X)

    def predict(self, X: object) -> Array:
        """The class of the highest score for each row of an ordinary array or frame."""
        self._ready()
        found: Array = self.classes_[self._scores(X).argmax(axis=1)]
        return found

    def score(self, X: object, y: object) -> float:
        """The part of the rows whose class is predicted."""
        said = self.predict(X)
        given = np.asarray(y).ravel()
        return float(np.mean([one == other for one, other in zip(said.tolist(), given.tolist(), strict=True)]))


class ScoreClassifier(Classifier):
    """A classifier whose scores, exponentiated, are proportional to the probabilities."""

    def _scores(self, X: object) -> Floats:
        raise NotImplementedError

    def decision_function(self, X: object) -> Floats:
        """The scores; of two classes how much higher that of the second is, as scikit-learn has it."""
        self._ready()
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

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


class Regressor(Learner):
    """A learner of a number."""

    kind = "regressor"

    @property
    def _predicts(self) -> Column:
        """The declared column that is predicted."""
        raise NotImplementedError

    def predict(self, X: object) -> Floats:
        """The number for each row of an ordinary array or frame, within the bounds declared for y."""
        raise NotImplementedError

    def score(self, X: object, y: object) -> float:
        """The part of the variance of y that the predictions explain, R^2."""
        self._ready()
        truth = numbers_of(np.asarray(y).ravel(), self._predicts, "y")
        rest = float(((truth - self.predict(X)) ** 2).sum())
        whole = float(((truth - truth.mean()) ** 2).sum())
        return 1 - rest / whole if whole > 0 else float(rest == 0)
