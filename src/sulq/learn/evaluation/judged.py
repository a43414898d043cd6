"""What every learner has once it is fitted: its prediction as a row function, and scores of private rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from sulq.answers.answer import Answer
from sulq.answers.auto_bounds import Clip
from sulq.answers.oracle import ColumnChoice
from sulq.errors import QuestionError
from sulq.language.domain import Column
from sulq.language.privacy import Loss
from sulq.language.rowfn import Col, RowFn
from sulq.learn.derived import substituted
from sulq.learn.evaluation import scores
from sulq.learn.evaluation.prediction import ClassPrediction, ClusterPrediction, HeldPart, NumberPrediction, Prediction
from sulq.learn.evaluation.results import CalibrationCurve, Confusion, RocCurve


class Judged:
    """A learner whose prediction can be told of a private row."""

    kind: ClassVar[str]
    feature_names_in_: tuple[str, ...]

    def prediction(self) -> Prediction:
        """What the model says of a row, as row functions of the columns it learned from."""
        self._ready()
        return self._prediction()

    def learned_columns(self) -> Sequence[tuple[str, Column]]:
        """The columns it learned from, with the domains it learned them in."""
        self._ready()
        return self._learned_columns()

    def prediction_row(self) -> RowFn:
        """The prediction as a row function: the class as a key, the number, or the number of the nearest centre.

        `db.count(by=model.prediction_row())`, `db.mean(model.prediction_row())`. After a fit with bounds="auto" it
        clips each column to `bounds_`, as the fit did.
        """
        found = self.prediction()
        if isinstance(found, HeldPart):
            raise _predicts_nothing(self)
        row = found.key if isinstance(found, ClusterPrediction) else None
        if isinstance(found, ClassPrediction):
            row = found.named(getattr(self, "classes_", ()))
        if isinstance(found, NumberPrediction):
            row = found.value
        clips: dict[str, Clip] = getattr(self, "bounds_", {})
        return cast("RowFn", substituted(row, {name: Col(name).clip(*clip) for name, clip in clips.items()}))

    def _prediction(self) -> Prediction:
        raise _predicts_nothing(self)

    def _learned_columns(self) -> Sequence[tuple[str, Column]]:
        raise NotImplementedError

    def _ready(self) -> None:
        raise NotImplementedError

    def _private_score(self, X: object, y: object, spend: Loss | None) -> Answer | None:
        """The score of private columns; None for ordinary rows, which cost nothing."""
        self._ready()
        if isinstance(X, ColumnChoice) or isinstance(y, ColumnChoice):
            return scores.score(self, X, y, spend=spend)
        if spend is not None:
            raise QuestionError("bad-question", "Ordinary rows are scored here, for nothing.", "Leave spend out.")
        return None


class JudgedClassifier(Judged):
    """And the tables and curves of a classifier on private rows, one question and one debit each."""

    def confusion(self, X: ColumnChoice, y: ColumnChoice, *, spend: Loss | None = None) -> Confusion:
        """How many rows of each class are told to have which: noisy counts, at the price of one."""
        self._ready()
        return scores.confusion(self, X, y, spend=spend)

    def roc(self, X: ColumnChoice, y: ColumnChoice, *, spend: Loss | None = None) -> RocCurve:
        """The ROC curve and its area, of two classes, from a noisy histogram of the score by class."""
        self._ready()
        return scores.roc(self, X, y, spend=spend)

    def calibration(self, X: ColumnChoice, y: ColumnChoice, *, spend: Loss | None = None) -> CalibrationCurve:
        """How often the second of two classes is there, for each tenth of the probability that the model gives it."""
        self._ready()
        return scores.calibration(self, X, y, spend=spend)


def _predicts_nothing(model: Judged) -> QuestionError:
    return QuestionError("wrong-kind", f"A {type(model).__name__} predicts nothing of a row.")
