"""Cross-validation by parts of the people: each part is judged by a model that learned from all others.

A part is a public hash of the person, so that all rows of a person are in one of them (SR11).
"""

from __future__ import annotations

import functools
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

from sulq.answers.answer import Answer
from sulq.answers.auto_bounds import total_spent
from sulq.answers.oracle import ColumnChoice, Progress, SpendPlan
from sulq.answers.readings.estimators import Reading
from sulq.answers.readings.noise_sums import added
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.forms.parameters import between, whole
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.rowfn import Bucket, Case, Compare, Lit, RowFn
from sulq.learn.derived import RestrictedOracle, beside
from sulq.learn.evaluation.prediction import ClassPrediction
from sulq.learn.evaluation.readings import PartOfCounts
from sulq.learn.evaluation.results import CrossValidation, one_number
from sulq.learn.evaluation.rows import JudgedRows

if TYPE_CHECKING:
    from sulq.learn.base import Learner

MAX_FOLDS: Final = 100
PIPELINE: Final = 'Scale the columns first: X = StandardScaler(by="bounds").fit(X).transform(X).'


def cross_validate(
    model: Learner,
    X: ColumnChoice,
    y: ColumnChoice | None = None,
    *,
    folds: int = 5,
    spend: Loss | None = None,
    score_part: float = 0.2,
    salt: int = 0,
    progress: Progress | None = None,
) -> CrossValidation:
    """Fit a model on all people but one part, for each part, and score it on the people of that part.

    The spend: `score_part` of it for the scores, all of them in one question, as each person is in one part (two, where
    a person is replaced); the rest in equal parts for the fits, which learn from overlapping people and so add up. A
    model that learned from everybody for the whole spend would be better than any of these: what is told is a cautious
    estimate, of a fit at this price of each part of the people.

    Args:
        model: A learner, fitted or not; it stays as it is, and copies of it are fitted.
        X: The columns to learn from, as `db[["a", "b"]]` gives them.
        y: The column to predict; only where there is one.
        folds: How many parts.
        spend: What all of it may cost.
        score_part: The part of the spend for the scores.
        salt: Another number gives other parts.
        progress: Called with the fits done and those planned.

    Raises:
        QuestionError: The columns do not fit, or the rows have no person to tell parts by (`needs-position`); nothing
            was spent.
        BudgetExceeded: It does not fit what is left; nothing was spent.
    """
    count, part = _checked(model, X, folds, score_part)
    y = None if y is None else beside(X, y)
    spending = SpendPlan(X.oracle, spend)
    if spending.sublinear:
        raise QuestionError("spend-kind", "Under a SubLinear budget fits are counted in queries, not divided.")
    bucket = Bucket(count, salt)
    spending.foresee(Sums((Lit(1),), by=(bucket,)), part)  # refuses rows that have no people to tell apart
    each = (1 - part) / count
    models, rows = [], []
    for fold in range(count):
        if progress is not None:
            progress(fold, count + 1)
        oracle = _part(X, bucket, "!=", fold)
        one = type(model)(**model.get_params())
        label = None if y is None else ColumnChoice(y.names, oracle)
        one.fit(ColumnChoice(X.names, oracle), label, spend=spending.share(each))
        models.append(one)
        rows.append(JudgedRows.of(one, X, y))
    rows = _alike(rows)
    answer = spending.one(_question(rows, bucket), part)
    if progress is not None:
        progress(count + 1, count + 1)
    scores = _read(rows[0], replace(answer, keys=(("fold", tuple(range(count))),)))
    costs = (*((f"fit without fold {i}", one.spent_) for i, one in enumerate(models)), ("scores", answer.spent))
    total = functools.reduce(total_spent, [cost for _, cost in costs])
    return CrossValidation(type(model).__name__, scores, _pooled(rows[0], answer), tuple(models), costs, total)


def folds_of(X: ColumnChoice, *, folds: int = 5, salt: int = 0) -> list[tuple[ColumnChoice, ColumnChoice]]:
    """For each part of the people, handles on the same columns of all others and of that part; free.

    Sizes of parts are secret, whatever was declared of the whole (SR11).

    Raises:
        QuestionError: `bad-parameter`, `bad-literal`: these are no whole numbers. Rows without people are refused when
            something is asked of them (`needs-position`).
    """
    bucket = Bucket(whole(folds, "folds", 2, MAX_FOLDS), salt)
    return [
        (ColumnChoice(X.names, _part(X, bucket, "!=", fold)), ColumnChoice(X.names, _part(X, bucket, "==", fold)))
        for fold in range(folds)
    ]


def _part(X: ColumnChoice, bucket: Bucket, op: str, fold: int) -> RestrictedOracle:
    return RestrictedOracle(X.oracle, Compare(op, bucket, Lit(fold)))


def _checked(model: object, X: object, folds: object, score_part: object) -> tuple[int, Fraction]:
    if hasattr(model, "steps"):
        raise QuestionError("bad-question", "A Pipeline is not taken apart into folds.", PIPELINE)
    if not hasattr(model, "learned_columns"):
        raise QuestionError(
            "bad-question", f"A {type(model).__name__} is no learner of sulq.", "Give one of sulq.learn."
        )
    if not isinstance(X, ColumnChoice):
        raise QuestionError(
            "bad-question", "These folds are of private columns.", "For ordinary arrays take scikit-learn's."
        )
    return whole(folds, "folds", 2, MAX_FOLDS), Fraction(between(score_part, "score_part"))


def _alike(rows: list[JudgedRows]) -> list[JudgedRows]:
    """Rows whose y is clipped in every fold as in the others: to what any of the models knows of it."""
    windows = [each.window for each in rows if each.window is not None]
    if not windows:
        return rows
    widest = min(low for low, _ in windows), max(high for _, high in windows)
    return [replace(each, window=widest) for each in rows]


def _question(rows: list[JudgedRows], bucket: Bucket) -> Sums:
    """Each row judged by the model that did not learn from it, by fold."""
    judged: list[RowFn] = []
    for several in zip(*(each.judged for each in rows), strict=True):
        branches = tuple((Compare("==", bucket, Lit(i)), fn) for i, fn in enumerate(several[:-1]))
        judged.append(Case(branches, several[-1]))
    return rows[0].question(tuple(judged), (bucket,))


def _read(rows: JudgedRows, answer: Answer) -> Answer:
    reading, name = rows.reading
    return replace(answer.read(cast("Reading", reading), (name,)), notes=(*answer.notes, *rows.notes))


def _together(answer: Answer) -> Answer:
    """The sums over all folds: each has the noise of as many."""
    released = answer.released
    noise = tuple(Noise(added(one.law, released.cells), one.step, one.width) for one in released.noise)  # type: ignore[arg-type]
    units = released.units.sum(axis=0, keepdims=True)
    return replace(answer, released=replace(released, units=units, noise=noise), keys=())


def _pooled(rows: JudgedRows, answer: Answer) -> Answer:
    """The score over all folds, from their sums."""
    if isinstance(rows.prediction, ClassPrediction):
        cells = answer.released.units.size
        return one_number(answer, PartOfCounts(tuple(range(0, cells, 2)), tuple(range(cells))), rows.reading[1])
    return _read(rows, _together(answer))
