"""The least of a smooth convex function by quasi-Newton steps of limited memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from sulq.language.kinds import Floats

Valued = Callable[[Floats], tuple[float, Floats]]  # a function's value and its slope
MEMORY: Final = 10  # steps remembered
ENOUGH: Final = 1e-4  # part of the foreseen gain that a step must bring
HALVINGS: Final = 30
STILL: Final = 3  # steps in a row that gain too little, until it ends


def least(function: Valued, start: Floats, *, gain: float, steps: int) -> tuple[Floats, float]:
    """Where the function is least, to within steps that gain `gain` no more, and what all steps gained.

    The inverse of the second derivatives is known from the last slopes alone, so a step costs one or two
    evaluations. It goes down by every step, so ending early leaves a point no worse than the start.
    """
    here, (value, slope) = start, function(start)
    first = value
    memory: deque[tuple[Floats, Floats]] = deque(maxlen=MEMORY)
    idle = 0
    for _ in range(steps):
        step = _newton(slope, memory)
        foreseen = float(step @ slope)
        if foreseen >= 0:
            break
        rate = 1.0 if memory else min(1.0, 1.0 / max(float(np.abs(slope).max()), 1e-300))
        for _ in range(HALVINGS):
            there = here + rate * step
            new, turned = function(there)
            if new <= value + ENOUGH * rate * foreseen:
                break
            rate /= 2.0
        else:
            break
        moved, bent = there - here, turned - slope
        if float(moved @ bent) > 0:
            memory.append((moved, bent))
        idle = idle + 1 if value - new < gain else 0
        here, value, slope = there, new, turned
        if idle >= STILL:
            break
    return here, first - value


def _newton(slope: Floats, memory: deque[tuple[Floats, Floats]]) -> Floats:
    """The step that the remembered slopes let expect to lead to the least point."""
    left = -slope
    factors = []
    for moved, bent in reversed(memory):
        factor = float(moved @ left) / float(moved @ bent)
        left = left - factor * bent
        factors.append(factor)
    if memory:
        moved, bent = memory[-1]
        left = left * (float(moved @ bent) / float(bent @ bent))
    for (moved, bent), factor in zip(memory, reversed(factors), strict=True):
        left = left + (factor - float(bent @ left) / float(moved @ bent)) * moved
    return left
