"""The only place where a private box is opened: exact integers in, noisy integers out, or one constant error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import numpy as np

from sulq.errors import CuratorError
from sulq.terms.kinds import Integers
from sulq.terms.private import Private

LIMIT: Final = 2**62

_LOG: Final = logging.getLogger("sulq")


def released(exact: Private[Integers], add: Callable[[Integers], Integers]) -> Integers:
    """Clamp the exact integers to +-2^62 and add noise; any shape, also empty.

    Privacy: clamping moves no two values farther apart (T5), so sensitivities
    hold. Whatever fails after the debit ends in one constant error: a sampler's
    own text may print the exact sum (T31), a failing source gives no answer (T68).
    """
    noisy = _attempt(exact, add)
    if noisy is None:  # raised here, where no exact value is in reach of a traceback
        raise CuratorError("noise-failed", "No noise could be drawn.")
    return noisy


def _attempt(exact: Private[Integers], add: Callable[[Integers], Integers]) -> Integers | None:
    try:
        values = exact.open()
        if not isinstance(values, np.ndarray) or values.dtype != np.int64:
            raise TypeError
        if values.size == 0:
            return values.copy()
        noisy = add(np.clip(values.ravel(), -LIMIT, LIMIT))
        if noisy.dtype != np.int64 or noisy.shape != (values.size,):
            raise ValueError
    except Exception as failure:  # noqa: BLE001  whatever it is, its text must not travel
        _LOG.error("noise failed: %s", type(failure).__name__)  # without its text, which could print the sum
        return None
    return noisy.reshape(values.shape)
