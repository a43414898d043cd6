"""Scores on private rows: one question each, or all of them together at one debit.

Every ask draws new noise and is charged, as a fit is (SR12). Rows without a label count nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.answers.answer import Answer
from sulq.answers.oracle import SpendPlan
from sulq.answers.readings.estimators import Mean, Plain, Reading
from sulq.errors import QuestionError
from sulq.language.privacy import Loss
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Lit, Lookup
from sulq.learn.evaluation.prediction import CALIBRATED, ClassPrediction, two_classes
from sulq.learn.evaluation.results import CalibrationCurve, Confusion, Evaluation, RocCurve
from sulq.learn.evaluation.rows import JudgedRows, Model

EVALUATED: Final = (Fraction(1, 5), Fraction(1, 5), Fraction(2, 5), Fraction(1, 5))  # score, matrix, ROC, calibration


def score(model: Model, X: object, y: object, *, spend: Loss | None) -> Answer:
    """The model's score of private rows: accuracy, R^2, or for clusters the squared distances with a minus sign."""
    rows = JudgedRows.of(model, X, y)
    return _score_of(rows, _spending(rows, spend).one(rows.question(rows.judged)))


def confusion(model: Model, X: object, y: object, *, spend: Loss | None) -> Confusion:
    """How many rows of each class are told to have which."""
    rows = JudgedRows.of(model, X, y)
    return _confusion_of(rows, _spending(rows, spend).one(_confusion_question(rows)))


def roc(model: Model, X: object, y: object, *, spend: Loss | None) -> RocCurve:
    """How well a score of two classes orders rows: the ROC curve and the area under it."""
    rows = JudgedRows.of(model, X, y)
    return _roc_of(rows, _spending(rows, spend).one(_roc_question(rows)))


def calibration(model: Model, X: object, y: object, *, spend: Loss | None) -> CalibrationCurve:
    """How often the second of two classes is there where the model gives it each probability."""
    rows = JudgedRows.of(model, X, y)
    return _calibration_of(rows, _spending(rows, spend).one(_calibration_question(rows)))


def evaluate(model: object, X: object, y: object = None, *, spend: Loss | None = None) -> Evaluation:
    """Judge a fitted model on private rows, everything that suits it at one debit.

    Of two classes accuracy, confusion matrix, ROC curve and calibration curve (shares 1:1:2:1 of the spend), of more
    accuracy and matrix, of a number R^2, of clusters the sum of squared distances. A Pipeline's earlier steps are
    gone through first.

    Raises:
        QuestionError: The columns do not fit the model; nothing was spent.
        BudgetExceeded: It does not fit what is left; nothing was spent.
    """
    last, X = _through(model, X)
    rows = JudgedRows.of(last, X, y)
    found, spending = rows.prediction, _spending(rows, spend)
    parts = [rows.question(rows.judged)]
    classes = isinstance(found, ClassPrediction)
    if classes:
        parts.append(_confusion_question(rows))
    graded = isinstance(found, ClassPrediction) and len(rows.classes) == 2
    if graded:
        parts.append(_roc_question(rows))
    calibrated = graded and isinstance(found, ClassPrediction) and found.calibrated
    if calibrated:
        parts.append(_calibration_question(rows))
    answers = list(spending.several(Together(tuple(parts), EVALUATED[: len(parts)])))
    return Evaluation(
        type(last).__name__,
        _score_of(rows, answers[0]),
        _confusion_of(rows, answers[1]) if classes else None,
        _roc_of(rows, answers[2]) if graded else None,
        _calibration_of(rows, answers[3]) if calibrated else None,
    )


def _through(model: object, X: object) -> tuple[Model, object]:
    """The last step of a Pipeline and the columns that come to it; any other model as it is."""
    steps = [step for _, step in getattr(model, "steps", ())]
    for step in steps[:-1]:
        X = step.transform(X) if step not in (None, "passthrough") else X
    last = steps[-1] if steps else model
    if not hasattr(last, "prediction") or not hasattr(last, "learned_columns"):
        raise QuestionError(
            "bad-question",
            f"A {type(last).__name__} is no learner of sulq, and cannot be judged on rows it may not see.",
            "Learn with one of sulq.learn; score others on ordinary arrays.",
        )
    return cast("Model", last), X


def _spending(rows: JudgedRows, spend: Loss | None) -> SpendPlan:
    return SpendPlan(rows.oracle, spend)


def _score_of(rows: JudgedRows, answer: Answer) -> Answer:
    reading, name = rows.reading
    return replace(answer.read(cast("Reading", reading), (name,)), notes=(*answer.notes, *rows.notes))


def _labels(rows: JudgedRows) -> tuple[object, ...]:
    return tuple(rows.classes.tolist())


def _classified(rows: JudgedRows, what: str, *, two: bool) -> ClassPrediction:
    found = rows.prediction
    if not isinstance(found, ClassPrediction):
        raise QuestionError("wrong-kind", f"{what} is of a classifier; this model predicts no class.")
    if two:
        two_classes(found, _labels(rows), what)
    return found


def _confusion_question(rows: JudgedRows) -> Sums:
    return Sums((Lit(1),), by=(rows.truth, _classified(rows, "A confusion matrix", two=False).predicted))


def _confusion_of(rows: JudgedRows, answer: Answer) -> Confusion:
    names = _labels(rows)
    told = _classified(rows, "A confusion matrix", two=False).told
    keys = (("actual", names), ("predicted", tuple(names[place] for place in told)))
    return Confusion(replace(answer.read(Plain(), ("count",)), keys=keys), names)


def _roc_question(rows: JudgedRows) -> Sums:
    key, _ = _classified(rows, "A ROC curve", two=True).grades("odds")
    return Sums((Lit(1),), by=(rows.truth, key))


def _roc_of(rows: JudgedRows, answer: Answer) -> RocCurve:
    _, chance = _classified(rows, "A ROC curve", two=True).grades("odds")
    keys = (("actual", _labels(rows)), ("probability", tuple(chance.tolist())))
    return RocCurve(replace(answer.read(Plain(), ("count",)), keys=keys))


def _calibration_question(rows: JudgedRows) -> Sums:
    found = _classified(rows, "A calibration curve", two=True)
    if not found.calibrated:
        raise QuestionError("wrong-kind", "This model's scores mean no probabilities.", "Ask for its ROC curve.")
    key, _ = found.grades("parts")
    return Sums((Bernstein(Lookup((rows.truth,), ((0,), (1,)))),), by=(key,))


def _calibration_of(rows: JudgedRows, answer: Answer) -> CalibrationCurve:
    _, chance = _classified(rows, "A calibration curve", two=True).grades("parts")
    parts = _parts(np.rint(chance * CALIBRATED - 0.5).astype(int).tolist())
    read = answer.read(Mean(Fraction(0), Fraction(1)), ("observed",))
    return CalibrationCurve(replace(read, keys=(("predicted", parts),)), tuple(chance.tolist()), _labels(rows)[1])


def _parts(numbers: Sequence[int]) -> tuple[tuple[float, float], ...]:
    return tuple((number / CALIBRATED, (number + 1) / CALIBRATED) for number in numbers)
