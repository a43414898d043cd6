"""The only place where a private box is opened: exact integers in, noisy integers out, or one constant error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from sulq.errors import CuratorError
from sulq.kernel.arrays import Integers
from sulq.kernel.private import Private

LIMIT: Final = 2**62

S = TypeVar("S")
T = TypeVar("T")

_LOG: Final = logging.getLogger("sulq")


def released(exact: Private[Integers], add: Callable[[Integers], Integers]) -> Integers:
    """Noise on the exact integers of a box; any shape, also empty.

    Privacy: whatever fails after the debit ends in one constant error: a sampler's
    own text may print the exact sum (T31), a failing source gives no answer (T68).
    """
    return opened(exact, lambda values: noisy(values, add))


def noisy(values: Integers, add: Callable[[Integers], Integers]) -> Integers:
    """Clamp exact integers to +-2^62 and add noise.

    Privacy: clamping moves no two values farther apart (T5), so sensitivities hold.
    """
    if _of(values).size == 0:
        return values.copy()
    return _of(add(np.clip(values.ravel(), -LIMIT, LIMIT)), (values.size,)).reshape(values.shape)


def chosen(exact: Private[Integers], pick: Callable[[Integers], Integers], *, none: bool = False) -> Integers:
    """Draw a candidate for each row of exact scores; of m candidates, a number from 0 to m - 1, m for none of them."""

    def drawn(scores: Integers) -> Integers:
        choices, candidates = _of(scores).shape
        found = _of(pick(np.clip(scores, -LIMIT // 2, LIMIT // 2)), (choices,))
        if choices and not 0 <= found.min() <= found.max() < candidates + none:
            raise ValueError
        return found[:, None]

    return opened(exact, drawn)


def opened(exact: Private[S], work: Callable[[S], T]) -> T:
    """Open the box for a mechanism; whatever goes wrong is one constant error."""
    found = _attempt(exact, work)
    if found is None:  # raised here, where no exact value is in reach of a traceback
        raise CuratorError("noise-failed", "No noise could be drawn.")
    return found


def _attempt(exact: Private[S], work: Callable[[S], T]) -> T | None:
    try:
        return work(exact.open())
    except Exception as failure:  # noqa: BLE001  whatever it is, its text must not travel
        _LOG.error("noise failed: %s", type(failure).__name__)  # without its text, which could print the sum
        return None


def _of(values: Integers, shape: tuple[int, ...] | None = None) -> Integers:
    """Insist on 64-bit integers, of a shape where one is given."""
    if not isinstance(values, np.ndarray) or values.dtype != np.int64:
        raise TypeError
    if shape is not None and values.shape != shape:
        raise ValueError
    return values
