"""The kernel's certificates for the parts of a plan: what is not paid for is not run.

What no statement sums (folds, statistics of the whole table) and what another engine reads is not certified yet, and
rests on the plan.

Source: docs/theory/kernel.md; SR1, SR3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from sulq.kernel import price
from sulq.kernel.norms import Certified
from sulq.terms.engine import Engine, Tally
from sulq.terms.facts import Tables
from sulq.terms.plan import Part
from sulq.terms.privacy import Budget, Event, SubLinear
from sulq.terms.sublinear import noise_for


@runtime_checkable
class Certifying(Protocol):
    """An engine whose statements are certified before they run."""

    tables: Tables

    def certified(self, tallies: Sequence[Tally]) -> tuple[tuple[Certified | None, ...], ...]:
        """Of each tally what is certified of its blocks."""
        ...

    def certified_groups(self, tally: Tally) -> tuple[Certified | None, ...]:
        """Of groups that are found in the data, the number of people first."""
        ...


def check(parts: Sequence[Part], event: Event, engine: Engine, budget: Budget | None = None) -> None:
    """Refuse a plan whose statements one person moves farther than was paid for; reads no row.

    `budget`: which a SubLinear one says how much noise each query has.

    Raises:
        Refused: the kernel does not certify it.
    """
    if not isinstance(engine, Certifying):
        return
    least = partial(_least, budget) if isinstance(budget, SubLinear) else None
    price.check([_release(part) for part in parts], _certified(parts, engine), event, engine.tables.unit, least)


def _least(budget: SubLinear, move: int) -> price.Least:
    noise = noise_for(budget, sensitivity=move if budget.calibration == "binomial" else 1)
    return price.Least(noise.kind, noise.scale, noise.units)


def _release(part: Part) -> price.Release:
    laws = part.laws if part.people is None else (part.people, *part.laws)
    cells = part.tally.cells if part.people is None else 0
    return price.Release(
        laws, part.refine, cells, part.cells, part.tally.width, part.score,
        above=part.thresholds is not None, people=part.people is not None, whole=part.whole is not None,
    )  # fmt: skip


def _certified(parts: Sequence[Part], engine: Certifying) -> list[tuple[Certified | None, ...]]:
    listed = [part.tally for part in parts if part.people is None and part.whole is None]
    sums = iter(engine.certified(listed))
    found: list[tuple[Certified | None, ...]] = []
    for part in parts:
        if part.whole is not None:
            found.append(())
        else:
            found.append(next(sums) if part.people is None else engine.certified_groups(part.tally))
    return found
