"""Many properties of a row at once: how far the confidence in the worst of them moved [S1.4]."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.audit.beliefs import Holds
from sulq.audit.pmf import Pmf, checked, log_ratio
from sulq.errors import QuestionError

LARGEST: Final = 16  # values of a row: 65,536 properties, those of four bits


@dataclass(frozen=True, slots=True)
class Safety:
    """The largest move over a set of properties, for which values it is, and the bound for all properties."""

    largest: float
    values: tuple[Hashable, ...]
    bound: float

    def safe(self, delta: float) -> bool:
        """Whether the set is delta-safe after these answers."""
        return self.largest <= delta


def audit_targets(prior: Pmf, likelihood: Mapping[Hashable, float], targets: Iterable[Holds] | None = None) -> Safety:
    """How far the confidence in any target moved, given the probability of all answers for each value of the row.

    Without targets all 2^|D| - 2 properties are looked at, for a domain of at most 16 values. None
    of them can move by more than ln(max/min) of the likelihood: both sides' likelihoods are averages of it.
    """
    belief = {value: float(p) for value, p in checked(prior).items() if p}
    values = list(belief)
    weights = np.array([belief[value] for value in values])
    told = np.array([float(likelihood[value]) for value in values])
    bound = log_ratio(float(told.max()), float(told.min()))
    if targets is None:
        if not 2 <= len(values) <= LARGEST:
            raise QuestionError("too-large", f"All properties are looked at for 2 to {LARGEST} values.")
        masks = np.arange(1, 2 ** len(values) - 1)
        chosen = (masks[:, None] >> np.arange(len(values)) & 1).astype(np.bool_)
    else:
        chosen = np.array([[bool(holds(value)) for value in values] for holds in targets])
        chosen = chosen[chosen.any(axis=1) & ~chosen.all(axis=1)]  # what is certain does not move
        if not len(chosen):
            return Safety(0.0, (), bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = chosen @ weights, ~chosen @ weights
        moved = np.abs(np.log(chosen @ (weights * told) / yes) - np.log(~chosen @ (weights * told) / no))
    worst = int(np.nanargmax(moved))
    found = tuple(value for value, held in zip(values, chosen[worst], strict=True) if held)
    return Safety(float(moved[worst]), found, bound)
