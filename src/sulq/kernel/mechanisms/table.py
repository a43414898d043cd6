"""What may be drawn, at what exact price; the only place where a private box is opened.

Source: the ledger refuses an event whose mechanism has no row here; each row has its exact test (SR22, protocol EX,
T20; tests/kernel/mechanisms/test_table.py). Groups found in the data: docs/theory/open-keys.md.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from sulq.errors import CuratorError, QuestionError
from sulq.kernel import laws
from sulq.kernel.facts import NEIGHBORS, Draw
from sulq.kernel.laws import MECHANISMS, Law
from sulq.kernel.mechanisms import bulk
from sulq.kernel.private import SATURATED, Groups, Integers, Private

S = TypeVar("S")
T = TypeVar("T")

_LOG: Final = logging.getLogger("sulq")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs; None where no such loss holds at any price."""

    epsilon: Fraction | None
    rho: Fraction | None
    key_delta: Fraction = Fraction(0)


def priced(law: Law, sensitivity: Fraction) -> Fraction:
    """The exact price of one call in the law's own currency: epsilon where a pure loss holds, else rho.

    Binomial noise has neither: it is priced in queries.
    Privacy: the price of the scale that is sampled, and of sums clamped to 2^62 on either side: a larger move is
    refused. OpenDP's privacy map, which others wrote, gives the same (tests/cli/audit/test_opendp.py).
    """
    if sensitivity < 0:
        raise ValueError("a sensitivity is never negative")
    if sensitivity > (SATURATED if law.norm == "l1" else SATURATED**2):
        raise QuestionError("too-large", "One person moves these sums by more than 64 bits hold.")
    pure = law.epsilon(sensitivity)
    price = law.rho(sensitivity) if pure is None else pure
    if price is None:
        raise ValueError(f"{law.kind} noise has no price in epsilon or rho")
    return price


def law_of(draw: Draw) -> Law:
    """The law of a recorded call; how many candidates a choice had does not count."""
    coins = draw.scale.numerator if draw.scale.denominator == 1 else None
    told: dict[str, Any] = {"scale": draw.scale, "coins": coins, "candidates": 2, "threshold": draw.threshold}
    told |= {"threshold_scale": draw.level or Fraction(0), "sums": max(1, draw.cells)}
    kind = MECHANISMS[draw.mechanism]
    values = [told[each.name] for each in fields(kind)]
    if None in values:
        raise ValueError("a number of coins, or of people, is whole")
    return kind(*values)


def cost_of(draw: Draw) -> Cost:
    """Recompute the exact price of a recorded call from its mechanism, scale and sensitivity (SR3)."""
    law, moved = law_of(draw), draw.sensitivity
    if draw.norm != law.norm or draw.neighbors not in NEIGHBORS:
        raise ValueError(f"the mechanism {law.kind} is priced in {law.norm}")
    if draw.level is not None:  # noise on the threshold too, which a person moves by `most` beside the sums
        if not isinstance(law, laws.AboveLaw) or draw.level <= 0 or draw.most <= 0:
            raise ValueError("a noisy threshold has a scale, and one person moves a sum")
        moved += draw.most * draw.scale / draw.level
    shown = draw.alone * Fraction(law.alone()) if isinstance(law, laws.Passed) else Fraction(0)
    return Cost(law.epsilon(moved), law.rho(moved), shown)


def release(law: Law, exact: Private[Integers]) -> Integers:
    """Fresh noise of this law on every exact integer, or a choice for each row; the debit must stand already."""
    match law:
        case laws.LaplaceLaw():
            return released(exact, lambda values: values + bulk.laplace(values.size, law.scale))
        case laws.GaussianLaw():
            return released(exact, lambda values: values + bulk.gaussian(values.size, law.scale))
        case laws.BinomialLaw():
            return released(exact, lambda values: values + bulk.heads(values.size, law.coins) - law.coins // 2)
        case laws.PassedLaw() | laws.PassedGaussianLaw() | laws.PassedLaplaceLaw():
            return released(exact, lambda values: _passed(values, law))
        case laws.BitLaw():
            return released(exact, lambda bits: _flipped(bits, law.scale))
        case laws.FlipLaw():
            return chosen(exact, lambda scores: bulk.flipped(scores, law.scale))
        case laws.ExponentialLaw() | laws.MetricLaw():  # of a point the score is minus its distance
            return chosen(exact, lambda scores: bulk.proposed(scores, law.scale))
        case laws.AboveLaw():
            return chosen(exact, lambda above: bulk.first_above(above, law), none=True)


def _passed(people: Integers, law: laws.Passed) -> Integers:
    """Noisy numbers of people; those that do not pass are hidden as zeros."""
    draw = bulk.laplace if isinstance(law, laws.PassedLaplaceLaw) else bulk.gaussian
    noise = draw(people.size, law.scale, SATURATED if isinstance(law, laws.PassedLaw) else law.threshold)
    return np.where(people + noise > law.threshold, people + noise, 0)


def _flipped(bits: Integers, scale: Fraction) -> Integers:
    """The bits, some of them flipped; what is no bit is an error like any other."""
    if not np.isin(bits, (0, 1)).all():
        raise ValueError
    return bits ^ bulk.flips(bits.size, scale)


class Columns(NamedTuple):
    """The law of the noise on so many neighbouring columns."""

    law: Law
    width: int


class Shown(NamedTuple):
    """The groups that passed, their labels ascending: noisy numbers, a row for each, and of each key the labels."""

    units: Integers
    labels: Sequence[list[object]]


def reveal(noise: Sequence[Columns], exact: Private[Groups]) -> Shown:
    """The groups that pass, ascending, with their noisy numbers of people and noisy sums: one call (SR14).

    `noise`: the law of the people first, then those of the sums, column by column.
    Nothing of a group that does not pass leaves: not how many there were, not a sum over them.
    """
    return opened(exact, lambda groups: _revealed(noise, groups))


def _revealed(noise: Sequence[Columns], groups: Groups) -> Shown:
    people, size = noise[0].law, len(groups.persons)
    shaped = groups.sums.shape == (size, sum(item.width for item in noise[1:])) and groups.persons.shape == (size,)
    alike = isinstance(people, laws.Passed) and {laws.BESIDE[people.kind]} >= {item.law.kind for item in noise[1:]}
    if not shaped or not alike or {size} != set(map(len, groups.keys)):
        raise ValueError
    seen = release(people, Private(groups.persons))
    labels = [list(itertools.compress(cells, seen.tolist())) for cells in groups.keys]
    parts = [cells if set(map(type, cells)) in ({str}, {int}) else list(map(_placed, cells)) for cells in labels]
    places: list[Any] = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
    order = sorted(range(len(places)), key=places.__getitem__)  # in which the rows have no part
    if any(places[i] == places[j] for i, j in itertools.pairwise(order)):  # a map has each label once
        raise ValueError
    kept = np.flatnonzero(seen)[order]
    columns, start = [seen[kept, None]], 0
    for item in noise[1:]:
        columns.append(release(item.law, Private(groups.sums[kept, start : start + item.width])))
        start += item.width
    return Shown(np.concatenate(columns, axis=1), [[cells[i] for i in order] for cells in labels])


def _placed(cell: object) -> tuple[int, object]:
    """Where a label stands among others, NaN and None last."""
    return (2, 0) if cell is None else (0, cell) if cell == cell else (1, 0)  # noqa: PLR0124


def released(exact: Private[Integers], add: Callable[[Integers], Integers]) -> Integers:
    """Clamp the exact integers of a box, of any shape, to +-2^62 and add noise.

    Privacy: clamping moves no two values farther apart (T5), so sensitivities hold.
    """

    def noisy(values: Integers) -> Integers:
        if _of(values).size == 0:
            return values.copy()
        return _of(add(np.clip(values.ravel(), -SATURATED, SATURATED)), (values.size,)).reshape(values.shape)

    return opened(exact, noisy)


def chosen(exact: Private[Integers], pick: Callable[[Integers], Integers], *, none: bool = False) -> Integers:
    """Draw a candidate for each row of exact scores; of m candidates, a number from 0 to m - 1, m for none of them."""

    def drawn(scores: Integers) -> Integers:
        choices, candidates = _of(scores).shape
        found = _of(pick(np.clip(scores, -SATURATED // 2, SATURATED // 2)), (choices,))
        if choices and not 0 <= found.min() <= found.max() < candidates + none:
            raise ValueError
        return found[:, None]

    return opened(exact, drawn)


def opened(exact: Private[S], work: Callable[[S], T]) -> T:
    """Open the box for a mechanism.

    Privacy: whatever fails after the debit ends in one constant error: a sampler's own text may print the exact sum
    (T31), a failing source gives no answer (T68).
    """
    try:
        return work(exact.open())
    except Exception as failure:  # noqa: BLE001  whatever it is, its text must not travel
        _LOG.error("noise failed: %s", type(failure).__name__)  # without its text, which could print the sum
    raise CuratorError("noise-failed", "No noise could be drawn.")  # here, where no exact value is in reach of it


def _of(values: Integers, shape: tuple[int, ...] | None = None) -> Integers:
    """Insist on 64-bit integers, of a shape where one is given."""
    if not isinstance(values, np.ndarray) or values.dtype != np.int64:
        raise TypeError
    if shape is not None and values.shape != shape:
        raise ValueError
    return values
