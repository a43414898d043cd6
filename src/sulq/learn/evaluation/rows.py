"""The rows a model is judged on: private columns, checked against those it learned, and its score as a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from sulq.answers.auto_bounds import Clip
from sulq.answers.oracle import ColumnChoice, Oracle
from sulq.answers.readings.estimators import Mean
from sulq.answers.readings.joint import WeightedSum
from sulq.errors import QuestionError
from sulq.language.domain import Category, Column, Int, Real, Text
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, Col, Power, RowFn
from sulq.language.rowfn.base import as_number
from sulq.learn.clipped import ClippedOracle
from sulq.learn.derived import beside
from sulq.learn.evaluation.prediction import ClassPrediction, ClusterPrediction, NumberPrediction, Prediction
from sulq.learn.evaluation.readings import ExplainedShare, Part
from sulq.learn.features import Array, Labels

RESIDUAL_SHARES: Final = (Fraction(7, 10), Fraction(3, 10))  # squared residuals, and the moments of y
HANDLES: Final = "Take them from a database: model.score(db[[...]], db[...], spend=...)."


class Model(Protocol):
    """A fitted learner, as far as it is judged."""

    feature_names_in_: tuple[str, ...]

    def prediction(self) -> Prediction:
        """What it says of a row, as row functions."""
        ...

    def learned_columns(self) -> Sequence[tuple[str, Column]]:
        """The columns it learned from, with the domains it learned them in."""
        ...


ScoreReading = Mean | ExplainedShare | WeightedSum | Part


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRows:
    """Private rows on an Oracle whose columns are as the model learned them, and what the model says of each."""

    oracle: Oracle
    prediction: Prediction
    classes: Array
    label: ColumnChoice | None
    window: tuple[float, float] | None = None  # of a number: y beyond its ends counts as these

    @classmethod
    def of(cls, model: Model, X: object, y: object) -> JudgedRows:
        """The rows of X and y, or a refusal from their names and declarations alone.

        Raises:
            QuestionError: `bad-question`: these are no private columns; `wrong-kind`: they are declared otherwise than
                those that the model learned from, or y has other classes.
        """
        prediction = model.prediction()
        if not isinstance(X, ColumnChoice) or (y is not None and not isinstance(y, ColumnChoice)):
            raise QuestionError("bad-question", "Either X and y are both private columns, or neither is.", HANDLES)
        if set(X.names) != set(model.feature_names_in_):
            names = ", ".join(model.feature_names_in_[:5]) + ", ..." * (len(model.feature_names_in_) > 5)
            raise QuestionError("bad-question", f"The model learned from other columns ({names}).", HANDLES)
        label = None if y is None else beside(X, y)
        if label is not None and (label.oracle is not X.oracle or len(label) != 1 or label.names[0] in X.names):
            raise QuestionError("bad-question", "y is one column of X's database, and none of X.", HANDLES)
        classes = np.asarray(getattr(model, "classes_", ()))
        if isinstance(prediction, ClassPrediction | NumberPrediction) and label is None:
            raise QuestionError("bad-question", "There is nothing to compare with what the model predicts: y.", HANDLES)
        if isinstance(prediction, ClassPrediction) and label is not None:
            _same_classes(label, classes)
        window = prediction.window if isinstance(prediction, NumberPrediction) else None
        return cls(_as_learned(model, X.oracle), prediction, classes, label, window)

    @property
    def truth(self) -> RowFn:
        """The class that a row has, as a key."""
        assert self.label is not None  # noqa: S101 - a classifier's rows have one
        return Labels(self.label).row

    @property
    def judged(self) -> tuple[RowFn, ...]:
        """What is summed of a row: whether it is told rightly, how far off, or how far it lies from a centre."""
        found = self.prediction
        if isinstance(found, ClassPrediction):
            return (found.right(self.truth, len(self.classes)),)
        if isinstance(found, NumberPrediction):
            return (self.y - self._clipped(found.value),)
        return (found.distance,) if isinstance(found, ClusterPrediction) else (found.held, found.rest)

    @property
    def y(self) -> RowFn:
        """The number that a row has."""
        assert self.label is not None  # noqa: S101 - a supervised model's rows have one
        return self._clipped(Col(self.label.names[0]))

    def _clipped(self, row: RowFn) -> RowFn:
        return row if self.window is None else row.clip(*self.window)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the score must know: that y was clipped, where it was."""
        if self.window is None or self.label is None:
            return ()
        (low, high), name = self.window, self.label.names[0]
        kind = as_number(Col(name).kind(self.oracle.facts.schema), Col(name))
        if kind.lo is not None and kind.hi is not None and low <= kind.lo and kind.hi <= high:
            return ()
        return (f"judged is {name} clipped to [{low:,.6g}, {high:,.6g}], where the model knows it to lie",)

    def question(self, judged: tuple[RowFn, ...], by: tuple[RowFn, ...] = ()) -> Sums:
        """The question for the model's score, over all rows or by a key."""
        if isinstance(self.prediction, ClassPrediction):
            return Sums((Bernstein(judged[0]),), by=by)
        if isinstance(self.prediction, NumberPrediction):
            return Sums((Power(judged[0], 2), Bernstein(self.y, 2)), by=by, shares=RESIDUAL_SHARES)
        return Sums(judged, by=by)

    @property
    def reading(self) -> tuple[ScoreReading, str]:
        """How its answer is read, and what the score is called."""
        if isinstance(self.prediction, ClassPrediction):
            return Mean(Fraction(0), Fraction(1)), "accuracy"
        if isinstance(self.prediction, NumberPrediction):
            return ExplainedShare(self.width), "r2"
        return (
            (WeightedSum((Fraction(-1),)), "score")
            if isinstance(self.prediction, ClusterPrediction)
            else (Part(), "held")
        )

    @property
    def width(self) -> float:
        """How wide the bounds of y are, as its moments have them."""
        step, low, high = Bernstein(self.y, 2).span(self.oracle.facts.schema)
        return float((high - low) * step)


def _same_classes(label: ColumnChoice, classes: Array) -> None:
    own = Labels(label).classes
    if own.tolist() != classes.tolist():
        raise QuestionError(
            "wrong-kind",
            f"{label.names[0]} has other classes than the model learned.",
            "Score against the column it was learned from, or one that is declared alike.",
        )


def _as_learned(model: Model, oracle: Oracle) -> Oracle:
    """The Oracle, its numbers clipped to the bounds that the model learned them in, where those are narrower."""
    schema, clips = oracle.facts.schema, dict[str, Clip]()
    for name, learned in model.learned_columns():
        column = schema.find(name)
        if column is None or type(column) is not type(learned):
            raise _otherwise(name)
        if _list_or_bounds(column) == _list_or_bounds(learned):
            continue
        if not isinstance(learned, Int | Real) or not isinstance(column, Int | Real):
            raise _otherwise(name)
        if learned.lo < column.lo or column.hi < learned.hi:
            raise _otherwise(name)
        clips[name] = (learned.lo, learned.hi)
    return ClippedOracle(oracle, clips) if clips else oracle


def _list_or_bounds(column: Column) -> object:
    """What must agree of two columns of one kind."""
    if isinstance(column, Text):
        return None
    return column.values if isinstance(column, Category) else (column.low * column.step, column.high * column.step)


def _otherwise(name: str) -> QuestionError:
    return QuestionError(
        "wrong-kind",
        f"{name} is declared otherwise than when the model learned from it.",
        "Score where it has the same kind and list, and bounds no narrower.",
    )
