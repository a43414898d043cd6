"""The base of all learners: parameters, a fit that asks an Oracle, and a model that needs none.

The conventions are scikit-learn's, so its tools (clone, Pipeline, grids of
parameters) work on a fitted model; scikit-learn itself is not needed. A learner
sees answers only, so a mistake in one can cost accuracy and never privacy (S0.29).
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

import numpy as np

from sulq.answers import wire
from sulq.answers.answer import Answer
from sulq.answers.auto_bounds import Bounds, Clip
from sulq.answers.call import timed
from sulq.answers.oracle import ColumnChoice, Progress, SpendPlan
from sulq.answers.relation_oracle import base_of, same_rows
from sulq.answers.wire import LOSSES
from sulq.display.progress import shows_progress
from sulq.errors import QuestionError, SetupError, SulqError
from sulq.forms.signature import Form, signed
from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss, Unit
from sulq.learn.clipped import FitSearch, search_columns
from sulq.learn.derived import beside
from sulq.learn.evaluation.judged import Judged, JudgedClassifier
from sulq.learn.features import Array, numbers_of
from sulq.learn.model_json import plain, unreadable, value_of

FORMAT: Final = 1  # of a model's JSON


class Learner(Judged):
    """A learner: `fit` pays and asks, the rest is free.

    A subclass is a dataclass of keyword parameters with defaults; it has `_fit`, which asks, and whatever can be done
    with what was learned. `kind` is what its fit needs: "unsupervised", "classifier" or "regressor".
    After a fit `spent_` is what it cost, `unit_` whom it protects, `guarantee_` "dp" or "posterior", and
    `feature_names_in_` the columns, in order. `parts` names the dataclasses, beside features and
    attributes, that a fitted model is made of, so that it can be saved.
    """

    kind: ClassVar[str] = "unsupervised"
    binary: ClassVar[bool] = False  # of a classifier: whether it tells two classes apart and no more
    parts: ClassVar[tuple[type, ...]] = ()
    spent_: Loss
    unit_: Unit
    guarantee_: str
    feature_names_in_: tuple[str, ...]
    n_features_in_: int
    bounds_: dict[str, Clip]  # of a fit with bounds="auto": to where each column was clipped
    notes_: tuple[str, ...]  # of such a fit: which part of each column's values lies beyond its clip

    @shows_progress
    @timed
    def fit(
        self,
        X: ColumnChoice,
        y: ColumnChoice | None = None,
        *,
        spend: Loss | None = None,
        progress: Progress | None = None,
        bounds: Bounds | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Learn from private columns: `model.fit(db[["age", "income"]], db["smoker"], spend=Epsilon(1))`.

        Whatever ends it early, a refusal or a stop, the model is as it was before: unfitted, or of its last fit.

        Args:
            X: The columns to learn from, as `db[["a", "b"]]` gives them.
            y: The column to predict, of the same database; only where there is one.
            spend: What the whole fit may cost; not under a SubLinear budget, where each sum is a query.
            progress: Called with the steps done and the steps planned, as the fit goes on.
            bounds: "auto": a third of the spend searches for where the numbers among the columns lie, y's too for a
                regressor; the fit is of values clipped to there, and `bounds_` says where that is, `notes_` how
                many values lie beyond.
            timeout: For how many seconds it may go on; what was charged by then stays charged (`timed-out`).

        Raises:
            QuestionError: The parameters or the columns do not fit; nothing was spent. `too-few-rows`: an accuracy was
                promised that the number of rows cannot hold; where that number is not declared, a noisy one was paid.
            BudgetExceeded: It does not fit what is left; nothing was spent.
        """
        y = beside(X, y) if isinstance(X, ColumnChoice) and isinstance(y, ColumnChoice) else y
        y = _checked(self, X, y)
        learned = type(self)(**self.get_params())  # not self: half a fit must not mix with the last one
        if bounds is None:
            found = FitSearch(SpendPlan(X.oracle, spend, progress), {})
        else:
            found = self._searched(X, y, bounds, spend, progress)
            X, y = found.columns(X), None if y is None else found.columns(y)
            learned.bounds_, learned.notes_ = found.bounds, found.notes
        spending = found.spending
        learned._fit(X, cast("ColumnChoice", y), spending)  # noqa: SLF001 - its own kind
        learned.spent_ = found.spent
        learned.unit_ = spending.facts.unit
        learned.guarantee_ = spending.guarantee
        learned.feature_names_in_ = X.names
        learned.n_features_in_ = len(X)
        self._take(vars(learned))
        return self

    def _searched(
        self, X: ColumnChoice, y: ColumnChoice | None, bounds: Bounds, spend: Loss | None, progress: Progress | None
    ) -> FitSearch:
        """Search for the columns' bounds; what the fit would refuse is refused before, free."""

        def rehearse(spending: SpendPlan) -> None:
            features = ColumnChoice(X.names, spending.oracle)
            label = None if y is None else ColumnChoice(y.names, spending.oracle)
            trial = type(self)(**self.get_params())
            trial._fit(features, cast("ColumnChoice", label), spending)  # noqa: SLF001 - its own kind

        columns = [X, y] if y is not None and self.kind == "regressor" else [X]
        return search_columns(columns, bounds, spend, progress, rehearse)

    def _take(self, learned: Mapping[str, object]) -> None:
        """Be what was learned, and nothing of an earlier fit; what a Pipeline or the like hung on the model stays."""
        held = vars(self)
        for name in held.get("_own", ()):
            held.pop(name, None)
        held.update(learned, _own=tuple(learned))

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        """Ask and learn; `y` is None where `kind` is "unsupervised", and a column elsewhere."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: FBT001, FBT002 - scikit-learn's signature
        """The parameters by name."""
        return {name: getattr(self, name) for name in parameters(type(self))}

    def set_params(self, **changes: object) -> Self:
        """Change parameters; takes effect at the next fit."""
        known = parameters(type(self))
        for name, value in changes.items():
            if name not in known:
                raise QuestionError(
                    "bad-parameter",
                    f"{type(self).__name__} has no parameter {name[:80]!r} (it has: {', '.join(known)}).",
                )
            setattr(self, name, value)
        return self

    def to_json(self) -> dict[str, object]:
        """The fitted model as JSON: parameters, what was learned, what it cost and whom it protects.

        `fitted` holds the attributes that end in `_`, arrays as lists; `state` what prediction needs besides.
        """
        self._ready()
        known = {*parameters(type(self)), *_TOLD}
        held = {name: plain(value, self.parts) for name, value in vars(self).items() if name not in known}
        return {
            "format": FORMAT,
            "learner": type(self).__name__,
            "parameters": {name: plain(value, self.parts) for name, value in self.get_params().items()},
            "columns": list(self.feature_names_in_),
            "spent": wire.to_json(self.spent_),
            # One that learned from another oracle than a database's has a price at most, and nobody's promise.
            "guarantee": {
                "kind": getattr(self, "guarantee_", "none"),
                "unit": wire.to_json(getattr(self, "unit_", None)),
            },
            "fitted": {name: value for name, value in held.items() if _is_fitted(name)},
            "state": {name: value for name, value in held.items() if not _is_fitted(name)},
        }

    @classmethod
    def from_json(cls, tree: Mapping[str, object]) -> Self:
        """The model that `to_json` told; it predicts without any data.

        Raises:
            QuestionError: `bad-model`: it is of another learner, or of a format this version does not know.
        """
        told = _told(tree, cls.__name__)
        names = parameters(cls)
        if not set(told["parameters"]) <= set(names):
            raise unreadable()
        model = cls(**value_of(told["parameters"], cls.parts))
        for name, value in (value_of(told["fitted"], cls.parts) | value_of(told["state"], cls.parts)).items():
            if not name.isidentifier() or name.startswith("__") or name in names or hasattr(cls, name):
                raise unreadable()
            setattr(model, name, value)
        model.spent_ = _of(told["spent"], *LOSSES)
        if told["guarantee"].get("kind") != "none":
            model.unit_ = _of(told["guarantee"].get("unit"), Unit)
            model.guarantee_ = str(told["guarantee"].get("kind"))
        model.feature_names_in_ = tuple(str(name) for name in told["columns"])
        model.n_features_in_ = len(model.feature_names_in_)
        model._take(dict(vars(model)))
        return model

    def save(self, path: str | Path) -> None:
        """Write the model to a file as JSON; `sulq.learn.load` reads it."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        try:
            Path(path).write_text(f"{text}\n", encoding="utf-8")
        except OSError:
            raise SetupError("missing-file", f"The model cannot be written to {path}.") from None

    @property
    def fitted(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "spent_")

    def __sklearn_is_fitted__(self) -> bool:
        return self.fitted

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - a class of a library that need not be there
        """What scikit-learn's own tools ask an estimator for; nobody else calls it."""
        tags = importlib.import_module("sklearn.utils._tags")
        supervised = self.kind != "unsupervised"
        return tags.Tags(
            estimator_type={"classifier": "classifier", "regressor": "regressor"}.get(self.kind),
            target_tags=tags.TargetTags(required=supervised),
            classifier_tags=tags.ClassifierTags(multi_class=not self.binary) if self.kind == "classifier" else None,
            regressor_tags=tags.RegressorTags() if self.kind == "regressor" else None,
            transformer_tags=tags.TransformerTags() if hasattr(self, "transform") else None,
        )

    def _ready(self) -> None:
        """Refuse to predict before a fit."""
        if not self.fitted:
            raise _unfitted()("not-fitted", f"This {type(self).__name__} has learned nothing yet.", "Call fit first.")

    def __repr__(self) -> str:
        given = ((name, getattr(self, name), default) for name, default in parameters(type(self)).items())
        shown = ", ".join(f"{name}={value!r}" for name, value, default in given if not _same(value, default))
        return f"{type(self).__name__}({shown})"


def _unfitted() -> type[QuestionError]:
    """The error of a model without a fit: also scikit-learn's own where its tools are looking on."""
    theirs = sys.modules.get("sklearn.exceptions")
    return QuestionError if theirs is None else type("NotFitted", (QuestionError, theirs.NotFittedError), {})


_TOLD: Final = ("spent_", "unit_", "guarantee_", "feature_names_in_", "n_features_in_", "_own")  # elsewhere, or nowhere
_FIELDS: Final[dict[str, type]] = {
    "format": int,
    "learner": str,
    "parameters": dict,
    "columns": list,
    "spent": dict,
    "guarantee": dict,
    "fitted": dict,
    "state": dict,
}


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _told(tree: object, learner: str) -> dict[str, Any]:
    """A model's JSON, if it is of this format and of this learner."""
    if not isinstance(tree, Mapping) or set(tree) != set(_FIELDS):
        raise unreadable()
    if tree["format"] != FORMAT:
        raise unreadable("This model is of a format that this version of sulq does not know.")
    if not all(isinstance(tree[name], kind) for name, kind in _FIELDS.items()):
        raise unreadable()
    if tree["learner"] != learner:
        raise unreadable(f"This is a model of {str(tree['learner'])[:80]}, not of {learner}.")
    return dict(tree)


def _of(tree: object, *kinds: type) -> Any:  # noqa: ANN401 - one of the kinds
    """A term of the language, of a kind it may have here."""
    try:
        found = wire.from_json(tree)
    except SulqError:
        found = None
    if not isinstance(found, kinds):
        raise unreadable()
    return found


def parameters(learner: type) -> dict[str, object]:
    """A learner's parameters and their defaults, as its signature has them."""
    found = inspect.signature(learner.__init__).parameters  # type: ignore[misc]
    return {name: each.default for name, each in found.items() if name != "self"}


def form(learner: type[Learner]) -> Form:
    """A learner's form, read off its signature; the columns are the doors' own fields."""
    made = learner.__init__
    return signed(learner.__name__, learner.kind, made, [inspect.getdoc(learner) or "", inspect.getdoc(made) or ""])


def _checked(learner: Learner, X: object, y: object) -> ColumnChoice | None:
    """The label, of the very rows of X, if the columns fit the learner."""
    name = type(learner).__name__
    for value in (X, y):
        if value is not None and not isinstance(value, ColumnChoice):
            raise QuestionError(
                "bad-question", f"{name} learns from private columns, not from a {type(value).__name__}.", HANDLES
            )
    if not isinstance(X, ColumnChoice):
        raise QuestionError("bad-question", f"{name} needs columns to learn from.", HANDLES)
    twice = [column for i, column in enumerate(X.names) if column in X.names[:i]]
    if twice:
        raise QuestionError("bad-question", f"The column {twice[0]} is there twice.", "Name every column once.")
    if (y is None) != (learner.kind == "unsupervised"):
        raise QuestionError("bad-question", f"{name} {'needs' if y is None else 'takes no'} y.", HANDLES)
    if not isinstance(y, ColumnChoice):
        return None
    if not same_rows(X.oracle, y.oracle):
        raise QuestionError("bad-question", *_apart(X, y))
    if len(y) != 1 or y.names[0] in X.names:
        raise QuestionError("bad-question", "y is one column, and none of X.", HANDLES)
    return y if y.oracle is X.oracle else ColumnChoice(y.names, X.oracle)


def _apart(X: ColumnChoice, y: ColumnChoice) -> tuple[str, str]:
    """Why X and y are not of the same rows, and what to do."""
    ours, theirs = (base_of(choice.oracle) for choice in (X, y))
    if ours is not theirs:
        return "X and y are columns of one database.", HANDLES
    tables = [choice.oracle.facts.table for choice in (X, y)]
    if tables[0] != tables[1]:
        return f"X is of table {tables[0]} and y of {tables[1]}: they have different rows.", JOINED
    return f"X and y are of different rows of {tables[0]}.", ALIKE


JOINED: Final = (
    'Take both from one derived table: rows = db.view("SELECT ... FROM ... JOIN ..."), rows[["a"]], rows["b"].'
)
ALIKE: Final = "Take both from one part, or under one condition: rows = db.where(condition), rows[X], rows[y]."
HANDLES = 'Take them from a database: db[["age", "income"]], db["smoker"].'


def _same(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # an array's comparison is no truth value
        return False


class Classifier(JudgedClassifier, Learner):
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
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

    def score(self, X: object, y: object, *, spend: Loss | None = None) -> float | Answer:
        """The part of the rows whose class is predicted; of private columns a noisy answer, for a spend."""
        found = self._private_score(X, y, spend)
        if found is not None:
            return found
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
        return np.asarray(high - np.log(np.exp(high).sum(axis=1, keepdims=True)))


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

    def score(self, X: object, y: object, *, spend: Loss | None = None) -> float | Answer:
        """The part of the variance of y that the predictions explain, R^2; of private columns a noisy answer."""
        found = self._private_score(X, y, spend)
        if found is not None:
            return found
        truth = numbers_of(np.asarray(y).ravel(), self._predicts, "y")
        rest = float(((truth - self.predict(X)) ** 2).sum())
        whole = float(((truth - truth.mean()) ** 2).sum())
        return 1 - rest / whole if whole > 0 else float(rest == 0)
