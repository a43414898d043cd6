"""Estimators: those that sulq brings; the owner's, found by their names and tried once before anything is asked (SR5).

Privacy: whatever one gives is cut off at the question's bounds, and a person is in one block (SR5, SR11), so no mistake
of sulq's own releases more (`sulq.kernel.whole.functions`). An owner's must be a function of its argument alone, or one
person would move more than one block (SR11): that is the owner's word, and a trial on made-up rows finds what is not
hidden on purpose.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np

from sulq.errors import SetupError
from sulq.kernel.whole.functions import Function, given, hushed
from sulq.language.kinds import Floats
from sulq.language.statistic import ESTIMATORS, Estimator


def _trimmed(rows: Floats) -> float:
    cut = len(rows) // 10
    return float(np.sort(rows[:, 0])[cut : len(rows) - cut].mean())


def _slope(rows: Floats) -> float:
    x = rows[:, 0] - rows[:, 0].mean()
    return float((x @ rows[:, 1]) / (x @ x))


OWN: Final[Mapping[str, tuple[int, Function]]] = {  # how many columns each reads
    "mean": (1, lambda rows: rows[:, 0].mean()),
    "median": (1, lambda rows: np.median(rows[:, 0])),
    "trimmed_mean": (1, _trimmed),
    "slope": (2, _slope),
    "correlation": (2, lambda rows: np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]),
}
"""Of an empty or constant block some have nothing to say, and the middle is taken."""


WIDTHS: Final = (1, 2, 3)  # columns of the made-up rows on which an estimator is tried


def load(estimators: Sequence[Estimator]) -> dict[str, Function]:
    """The owner's functions by name; what cannot be found is the owner's to hear of, before anything is asked."""
    found: dict[str, Function] = {}
    for item in estimators:
        function = _found(item)
        if item.name in found or item.name in ESTIMATORS:
            raise SetupError("bad-declaration", f"There are two estimators {item.name!r}.")
        if not _steady(function, WIDTHS if item.certificate is None else (len(item.certificate.columns),)):
            raise SetupError(
                "bad-declaration",
                f"The estimator {item.name!r} gave two values for the same rows: it must be a function of its argument "
                "alone, without memory and without chance.",
            )
        found[item.name] = function
    return found


def _found(item: Estimator) -> Function:
    """The function of an estimator, or an error that says what to do.

    Whatever a package raises as it is imported has one outcome; its text may hold lines of the source, so the error is
    raised anew, outside the handler.
    """
    package, _, name = item.function.partition(":")
    kind = ""
    try:
        function = getattr(importlib.import_module(package), name, None)
    except ModuleNotFoundError:
        function = None
    except Exception as error:  # noqa: BLE001 - see above
        function, kind = None, type(error).__name__
    if kind:
        raise SetupError(
            "bad-declaration",
            f"The package of the estimator {item.name!r} cannot be imported ({kind}): {item.function}.",
            "Import it in the Python that runs sulq, and mend what is told there.",
        )
    if not callable(function):
        raise SetupError(
            "bad-declaration",
            f"The estimator {item.name!r} was not found: {item.function}.",
            "Install its package where sulq is installed, or put its folder on PYTHONPATH.",
        )
    return cast("Function", function)


def _steady(function: Function, widths: Sequence[int]) -> bool:
    """Whether a function gives the same for the same made-up rows, whatever it was called with before.

    One that remembers or counts its calls would carry a person from one block into others (SR11). Memory can hide from
    any trial; this finds what is not hidden on purpose.
    """
    for width in widths:
        rows = (np.arange(60 * width, dtype=np.float64).reshape(-1, width) * 7919 % 101) / 4 - 5  # all over the place
        pieces = [rows[:0], rows[:1], rows[1:20], rows[20:24], rows[24:], rows * 1000, np.zeros((5, width))]
        with hushed():
            there = [given(function, piece) for piece in pieces]
            back = [given(function, piece) for piece in reversed(pieces)]
        if there != back[::-1]:
            return False
    return True
