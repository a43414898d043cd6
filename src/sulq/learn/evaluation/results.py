"""What is told of a model: frozen objects made of released answers, with tables, intervals and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from sulq.answers.answer import Answer, Value, extra, paid
from sulq.answers.readings.estimators import Reading
from sulq.display import labels
from sulq.display.tables import as_html
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss
from sulq.learn.evaluation.readings import AreaUnderCurve, PartOfCounts

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = "#4a7fb5"


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """What is read off one answer; the numbers and the debit are the answer's."""

    answer: Answer

    @property
    def spent(self) -> Loss:
        """What the ask cost; what was asked with it included."""
        return self.answer.spent

    def to_pandas(self, level: float | None = 0.95) -> pandas.DataFrame:
        """A pandas frame of the released numbers, with the ends of their intervals."""
        return self.answer.to_pandas(level)

    def _tail(self) -> str:
        return paid(self.spent, self.answer.remaining, self.answer.unit)


@dataclass(frozen=True, slots=True, eq=False)
class Confusion(_Told):
    """How many rows of each class are told to have which: noisy counts, one for each pair.

    `counts`: rows are the classes that the rows have, columns those that are predicted, in the order of `classes`.
    """

    classes: tuple[object, ...]

    @property
    def counts(self) -> Floats:
        """The noisy counts; 0 in the column of a class that the model never predicts."""
        found = np.zeros((len(self.classes),) * 2)
        found[:, self._told] = self.answer.released.values().reshape(len(self.classes), -1)
        return found

    @property
    def _told(self) -> list[int]:
        return [self.classes.index(name) for name in self.answer.keys[1][1]]

    def _cells(self, actual: Sequence[int], predicted: Sequence[int]) -> tuple[int, ...]:
        told = self._told
        columns = [told.index(place) for place in predicted if place in told]
        return tuple(row * len(told) + column for row in actual for column in columns)

    def accuracy(self) -> Answer:
        """The part of all rows that are told rightly; `model.score` asks for that alone, with less noise."""
        every = tuple(range(self.answer.released.units.size))
        right = tuple(cell for place in range(len(self.classes)) for cell in self._cells([place], [place]))
        return self._part("accuracy", right, every)

    def precision(self, label: object) -> Answer:
        """Of the rows that are told to have a class the part that have it."""
        place = self._place(label)
        return self._part("precision", self._cells([place], [place]), self._cells(range(len(self.classes)), [place]))

    def recall(self, label: object) -> Answer:
        """Of the rows that have a class the part that are told to."""
        place = self._place(label)
        return self._part("recall", self._cells([place], [place]), self._cells([place], range(len(self.classes))))

    def _place(self, label: object) -> int:
        if label not in self.classes:
            known = ", ".join(map(str, self.classes))
            raise QuestionError("unknown-category", f"{str(label)[:80]!r} is none of the classes ({known}).")
        return self.classes.index(label)

    def _part(self, name: str, above: tuple[int, ...], below: tuple[int, ...]) -> Answer:
        return one_number(self.answer, PartOfCounts(above, below), name)

    def __repr__(self) -> str:
        names = [str(name) for name in self.classes]
        lines = [["", *names]]
        lines += [[name, *(f"{count:,.0f}" for count in row)] for name, row in zip(names, self.counts, strict=True)]
        wide = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        said = ["  ".join(cell.rjust(width) for cell, width in zip(line, wide, strict=True)) for line in lines]
        away = float(self.answer.released.radius(0.05)[0])
        return "\n".join(["rows: actual, columns: predicted", *said, f"each +- {away:,.3g}; {self._tail()}"])

    def _repr_html_(self) -> str:
        rows = zip(self.classes, self.counts, strict=True)
        body = [[str(name), *(f"{count:,.0f}" for count in row)] for name, row in rows]
        away = float(self.answer.released.radius(0.05)[0])
        return as_html(["actual", *map(str, self.classes)], body, f"each +- {away:,.3g}; {self._tail()}")

    def plot(self, axes: Axes | None = None) -> Axes:
        """The matrix as shades, each row's parts of its class (needs the extra `plot`)."""
        axes = _axes() if axes is None else axes
        counts = np.maximum(self.counts, 0.0)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        names = [str(name) for name in self.classes]
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(names)), names)
        for (i, j), count in np.ndenumerate(self.counts):
            axes.text(j, i, f"{count:,.0f}", ha="center", va="center", color="white" if shares[i, j] > 0.5 else "black")
        axes.set_xlabel("predicted")
        axes.set_ylabel("actual")
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve(_Told):
    """How well a score orders rows of two classes, from noisy counts by class and grade of the score.

    The curve never falls, whatever the noise does. The area is that of the graded score, equal
    grades counted half; its estimate is not read off the curve, which would flatter it.
    """

    @property
    def auc(self) -> Answer:
        """The area under the curve, with its interval (a normal one)."""
        return one_number(self.answer, AreaUnderCurve(self.answer.released.cells // 2), "auc")

    @property
    def rates(self) -> tuple[Floats, Floats]:
        """False and true positive rates, from the highest threshold to the lowest."""
        counts = self.answer.released.values().reshape(2, -1)
        found = [_rising(np.concatenate([[0.0], np.cumsum(row[::-1])])) for row in counts]
        return found[0], found[1]

    @property
    def thresholds(self) -> Floats:
        """The probability of the second class above which rows are told to have it, for each point but the first."""
        return np.array([float(cast("float", chance)) for chance in reversed(self.answer.keys[1][1])])

    def __repr__(self) -> str:
        return f"{self.auc!r}"

    def _repr_html_(self) -> str:
        rows = zip(self.thresholds, *(rates[1:] for rates in self.rates), strict=True)
        body = [[f"{value:.3f}" for value in row] for row in rows]
        tail = f"area {_said(self.auc)}; {self._tail()}"
        return as_html(["threshold", "false positive rate", "true positive rate"], body, tail)

    def plot(self, axes: Axes | None = None) -> Axes:
        """The curve (needs the extra `plot`)."""
        axes = _axes() if axes is None else axes
        axes.plot([0, 1], [0, 1], color="0.8", linewidth=1)
        axes.plot(*self.rates, color=COLOUR)
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        axes.set_title(f"area {_said(self.auc)}", fontsize="medium")
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve(_Told):
    """How often the second of two classes is there, by the probability that the model gives it.

    `predicted`: the middle of each part of the probability; what is observed there is the answer's, with its interval.
    """

    predicted: tuple[float, ...]
    label: object

    def __repr__(self) -> str:
        return repr(self.answer)

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()

    def plot(self, axes: Axes | None = None) -> Axes:
        """What is observed over what is predicted, with intervals (needs the extra `plot`)."""
        axes = _axes() if axes is None else axes
        table = self.answer.to_dict()
        value, low, high = (np.array(table[name], dtype=float) for name in ("value", "low", "high"))
        known = ~np.isnan(value)
        at = np.array(self.predicted)[known]
        away = np.maximum([value - low, high - value], 0)[:, known]
        axes.plot([0, 1], [0, 1], color="0.8", linewidth=1)
        axes.errorbar(at, value[known], yerr=away, fmt="o", capsize=3, color=COLOUR)
        axes.set_xlabel(f"probability of {self.label}")
        axes.set_ylabel("observed")
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What `sulq.learn.evaluate` tells of a model, all of it from one debit; what does not suit the model is None."""

    model: str
    score: Answer
    confusion: Confusion | None = None
    roc: RocCurve | None = None
    calibration: CalibrationCurve | None = None

    @property
    def spent(self) -> Loss:
        """What all of it cost together."""
        return self.score.spent

    def measures(self) -> dict[str, Answer]:
        """Every single number by its name: the score, the area, each class's precision and recall."""
        found = {self.score.columns[0]: self.score}
        if self.roc is not None:
            found["auc"] = self.roc.auc
        if self.confusion is not None:
            for name in self.confusion.classes:
                found[f"precision of {name}"] = self.confusion.precision(name)
                found[f"recall of {name}"] = self.confusion.recall(name)
        return found

    def to_pandas(self, level: float = 0.95) -> pandas.DataFrame:
        """A pandas frame with `measure`, `value`, `low` and `high`."""
        lines = [(name, *_ends(answer, level)) for name, answer in self.measures().items()]
        return cast(
            "pandas.DataFrame", extra("pandas", "pandas").DataFrame(lines, columns=["measure", "value", "low", "high"])
        )

    def __repr__(self) -> str:
        measures = self.measures()
        wide = max(map(len, measures))
        lines = [f"{name.ljust(wide)}  {_said(answer)}" for name, answer in measures.items()]
        matrix = [] if self.confusion is None else repr(self.confusion).splitlines()[:-1]
        return "\n".join([self.model, *lines, *matrix, paid(self.spent, self.score.remaining, self.score.unit)])

    def _repr_html_(self) -> str:
        body = [[name, *(f"{end:,.4g}" for end in _ends(one, 0.95))] for name, one in self.measures().items()]
        tail = paid(self.spent, self.score.remaining, self.score.unit)
        return as_html([self.model, "value", "low", "high"], body, tail)

    def plot(self) -> Figure:
        """The matrix, the curves and what else there is, side by side (needs the extra `plot`)."""
        parts = [part for part in (self.confusion, self.roc, self.calibration) if part is not None]
        pyplot = extra("matplotlib.pyplot", "plot")
        figure, places = pyplot.subplots(
            1, max(len(parts), 1), figsize=(4.2 * max(len(parts), 1), 4), layout="constrained", squeeze=False
        )
        for part, axes in zip(parts, places[0], strict=False):
            part.plot(axes)
        if not parts:
            value, low, high = _ends(self.score, 0.95)
            places[0][0].errorbar([0], [value], yerr=[[value - low], [high - value]], fmt="o", capsize=3, color=COLOUR)
            places[0][0].set_xticks([0], [self.score.columns[0]])
        return cast("Figure", figure)


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """The scores of a model on parts of the people it did not learn from.

    `scores` has one for each fold, `score` that of all folds together. `costs`: what each fit cost and what the scores
    did; they add up to `spent`. `models`: the fitted ones, in the order of the folds.
    """

    model: str
    scores: Answer
    score: Answer
    models: tuple[object, ...]
    costs: tuple[tuple[str, Loss], ...]
    spent: Loss

    def to_pandas(self, level: float = 0.95) -> pandas.DataFrame:
        """A pandas frame with `fold` and the score with its interval; the last row is all folds together."""
        table = self.scores.to_dict(level)
        for name, end in zip(("value", "low", "high"), _ends(self.score, level), strict=True):
            table[name] = [*table[name], end]
        table["fold"] = [*table["fold"], "all"]
        return cast("pandas.DataFrame", extra("pandas", "pandas").DataFrame(table))

    def __repr__(self) -> str:
        name = self.score.columns[0]
        lines = [f"{self.model}, {name} in {len(self.models)} folds: {_said(self.score)}"]
        table = self.scores.to_dict()
        rows = zip(*(table[column] for column in ("fold", "value", "low", "high")), strict=True)
        lines += [f"fold {fold}  {labels.column([(value, *ends)])[0]}" for fold, value, *ends in rows]
        lines += [f"{what}: {cost}" for what, cost in self.costs]
        return "\n".join([*lines, paid(self.spent, self.score.remaining, self.score.unit)])

    def _repr_html_(self) -> str:
        table = self.scores.to_dict()
        rows = zip(*(table[column] for column in ("fold", "value", "low", "high")), strict=True)
        body = [["unknown" if cell is None else f"{cell:,.4g}" for cell in row] for row in rows]
        body.append(["all", *(f"{end:,.4g}" for end in _ends(self.score, 0.95))])
        costs = "; ".join(f"{what}: {cost}" for what, cost in self.costs)
        tail = f"{costs}; {paid(self.spent, self.score.remaining, self.score.unit)}"
        return as_html(["fold", self.score.columns[0], "low", "high"], body, tail)

    def plot(self) -> Axes:
        """The folds' scores with their intervals, beside all together (needs the extra `plot`)."""
        axes = self.scores.plot()
        value, low, high = _ends(self.score, 0.95)
        axes.axhspan(low, high, color="0.9", zorder=0)
        axes.axhline(value, color="0.5", linewidth=1)
        return axes


def one_number(answer: Answer, reading: object, name: str) -> Answer:
    """A single number that is read off all cells of an answer."""
    units, (noise,) = answer.released.units, answer.released.noise
    released = replace(answer.released, units=units.reshape(1, -1), noise=(replace(noise, width=units.size),))
    return replace(answer, released=released, reading=cast("Reading", reading), keys=(), columns=(name,))


def _ends(answer: Answer, level: float) -> tuple[float, float, float]:
    low, high = answer.interval(level)
    return _number(answer.value), _number(low), _number(high)


def _number(value: Value | None) -> float:
    return float("nan") if value is None else float(cast("float", value))


def _said(answer: Answer) -> str:
    return labels.column([_ends(answer, 0.95)])[0]


def _rising(values: Floats) -> Floats:
    """Noisy cumulative counts as a curve from 0 to 1 that never falls: halfway between its least and largest such."""
    above = np.maximum.accumulate(values)
    below = np.minimum.accumulate(values[::-1])[::-1]
    curve = np.maximum((above + below) / 2 - values[0], 0.0)
    return curve / curve[-1] if curve[-1] > 0 else np.linspace(0.0, 1.0, len(curve))


def _axes() -> Axes:
    figure = extra("matplotlib.pyplot", "plot").figure(figsize=(4.5, 4.2), layout="constrained")
    return cast("Axes", figure.add_subplot())
