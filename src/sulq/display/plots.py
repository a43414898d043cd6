"""Charts by matplotlib: bars with error bars, and lines with a band for what happens over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from sulq.display.axes import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR: Final = "#4a7fb5"
MAX_TICKS: Final = 8
MAX_TICK_LETTERS: Final = 6  # of ticks that stand side by side without being turned
MAX_DOTS: Final = 60  # of a line whose points are marked
MAX_UPRIGHT: Final = 6  # names of bars that stand side by side without being turned
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlotSeries:
    """What is drawn: a number with its interval for each label; `names`: the labels as texts."""

    labels: tuple[object, ...]
    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, labels: Sequence[object], names: Sequence[str], columns: Iterable[Sequence[object]]) -> PlotSeries:
        """The cells whose value is a number that is known."""
        value, low, high = (np.array([_number(cell) for cell in column], dtype=np.float64) for column in columns)
        known = np.flatnonzero(np.isfinite(value)).tolist()
        return cls(
            tuple(labels[i] for i in known), tuple(names[i] for i in known), value[known], low[known], high[known]
        )


def _number(cell: object) -> float:
    return float(cell) if isinstance(cell, (int, float)) else np.nan  # a date on this axis is no length


def draw(axes: Axes, series: PlotSeries, *, title: str, name: str, across: str) -> Axes:
    """Draw a series: as a line where its labels are points in time, else as bars."""
    over = Timeline.of(series.labels)
    if over is None:
        _bars(axes, series)
    else:
        _line(axes, series, over)
    axes.set_title(title, fontsize="medium")
    axes.set_ylabel(name)
    left = "" if over is None or None not in over.places else " (rows without one are left out)"
    axes.set_xlabel(f"{across}{left}")
    return axes


def _bars(axes: Axes, series: PlotSeries) -> None:
    away = np.nan_to_num(np.maximum([series.value - series.low, series.high - series.value], 0), posinf=0.0)
    axes.bar(list(series.names), series.value, yerr=away, capsize=3, color=COLOUR)
    if len(series.names) > MAX_UPRIGHT:
        axes.tick_params(axis="x", labelrotation=60)


def _line(axes: Axes, series: PlotSeries, over: Timeline) -> None:
    here = [i for i, place in enumerate(over.places) if place is not None]
    across = np.array([place for place in over.places if place is not None], dtype=np.float64)
    low, high = (np.where(np.isfinite(end), end, series.value)[here] for end in (series.low, series.high))
    axes.plot(across, series.value[here], marker="o" if len(here) <= MAX_DOTS else None, markersize=4, color=COLOUR)
    axes.fill_between(across, low, high, color=COLOUR, alpha=0.25, linewidth=0)
    ticks = over.ticks(MAX_TICKS)
    axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    if max((len(text) for _, text in ticks), default=0) > MAX_TICK_LETTERS:
        axes.tick_params(axis="x", labelrotation=30)
