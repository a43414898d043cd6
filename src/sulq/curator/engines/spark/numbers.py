"""Exact whole numbers as bytes: 64 bits where they fit, else in two parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, cast

import numpy as np

from sulq.curator.engines.totals import Totals
from sulq.terms.kinds import Integers, Objects

BITS: Final = 62


def to_bytes(values: Sequence[Integers | Objects]) -> tuple[bytes, bytes | None]:
    """Whole numbers below 2^125, one array after the other: their low bits, and their high bits where there are any."""
    if all(part.dtype != object for part in values):
        return b"".join(part.astype("<i8").tobytes() for part in values), None
    whole = [int(value) for part in values for value in part]
    lo = np.array([value & (2**BITS - 1) for value in whole], dtype="<i8")
    hi = np.array([value >> BITS for value in whole], dtype="<i8")
    return lo.tobytes(), hi.tobytes()


def added(parts: Iterable[tuple[bytes, bytes | None]], size: int) -> Integers | Objects:
    """The sums of such numbers, position by position."""
    totals = Totals(1, size)
    for lo, hi in parts:
        low = np.frombuffer(lo, "<i8")
        if hi is None:
            totals.reserve(_most(low))
            totals.small[0] += low
            continue
        high = np.frombuffer(hi, "<i8").astype(object) * 2**BITS + low.astype(object)
        totals.large = high[None] if totals.large is None else totals.large + high[None]
    return cast("Integers | Objects", totals.exact()[0])


def _most(values: Integers) -> int:
    """The largest of some numbers, without their signs."""
    return max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
