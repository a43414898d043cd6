"""What tells two runs on neighbouring data apart: in anything but noise, or by more than was paid for.

Moves of exact inputs are compared with the debits in integers and fractions, never in floating point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from sulq.kernel.laws import (
    AboveLaw,
    BinomialLaw,
    BitLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    MetricLaw,
    PassedLaw,
)
from sulq.language.kinds import Integers
from sulq.language.privacy import Draw
from sulq.testing.replay import CHOICES, GroupsCall, ReleaseCall, Run


def differences(first: Run, second: Run) -> list[str]:
    """What tells two runs on neighbouring data apart, other than through noise; empty if nothing does.

    Also what no single run may do: read rows before a debit, or let a foreign error out.
    """
    found = []
    if len(first.calls) != len(second.calls):
        found.append(f"{len(first.calls)} calls of mechanisms against {len(second.calls)}")
    for i, (a, b) in enumerate(zip(first.calls, second.calls, strict=False)):
        if _face(a) != _face(b):
            found.append(f"call {i}: another debit, law or shape")
    outcomes = enumerate(zip(first.outcomes, second.outcomes, strict=False))
    found += [f"outcome {i}: {x} against {y}" for i, (x, y) in outcomes if x != y]
    if first.entries != second.entries:
        found.append("the ledgers differ")
    if first.log != second.log:
        found.append("the log lines differ")
    if first.reads != second.reads:
        found.append("rows were read more often for one than for the other")
    for run in (first, second):
        found += [f"stray error: {stray}" for stray in run.strays]
        if not all(run.reads):
            found.append("rows were read before the debit")
    return found or overruns(first, second)


def overruns(first: Run, second: Run) -> list[str]:
    """Asks whose exact inputs differ by more than was declared or paid for."""
    found = []
    pairs = list(zip(first.calls, second.calls, strict=True))
    for i, event in enumerate(first.events):
        loss = Fraction(0)
        inputs = [item for pair in pairs if pair[0].debit == i for item in _inputs(*pair)]
        drawn = list(_drawn(event.draws, inputs))
        if sum(a.size for _, _, a, _ in drawn) != sum(a.size for _, a, _ in inputs):
            found.append(f"ask {i}: more was drawn than was paid for")
        for draw, law, a, b in drawn:
            moved = _moved(law, a, b, draw.norm, apart=event.queries > 0)
            declared = draw.sensitivity
            if draw.level is not None and isinstance(law, AboveLaw):
                declared += draw.most * draw.scale / draw.level
                found += [f"ask {i}: another threshold than was paid for"] * (law.threshold_scale != draw.level)
            if moved > declared:
                found.append(f"ask {i}: moved {moved}, declared {declared} ({draw.norm})")
            each = cost(law, moved)
            if event.epsilon is None and isinstance(law, AboveLaw):
                each = each**2 / 2  # a sparse vector is priced in epsilon under every spend: rho = epsilon^2/2
            if event.epsilon is None and isinstance(law, BitLaw):
                each /= 2 * law.scale  # bits that one person moves are flipped independently
            loss += each
            found += [f"ask {i}: {fault}" for fault in _alone(draw, law, a, b)]
        paid = event.rho if event.epsilon is None else event.epsilon
        if not event.queries and loss > paid:
            found.append(f"ask {i}: a loss of {float(loss):.6g}, paid {float(paid):.6g}")
    return found


def _face(call: ReleaseCall | GroupsCall) -> tuple[object, ...]:
    """What must be the same of a call on neighbouring data; which groups there are need not be."""
    if isinstance(call, GroupsCall):
        return call.debit, call.noise
    return call.debit, call.law, call.given.shape


def _inputs(
    first: ReleaseCall | GroupsCall, second: ReleaseCall | GroupsCall
) -> Iterator[tuple[Law, Integers, Integers]]:
    """What went into each draw of a call; of groups, over the union of both sides' keys, absent ones as zeros."""
    if isinstance(first, ReleaseCall) and isinstance(second, ReleaseCall):
        yield first.law, first.given, second.given
    elif isinstance(first, GroupsCall) and isinstance(second, GroupsCall):
        keys = list(dict.fromkeys((*first.given.keys, *second.given.keys)))
        tables = []
        for groups in (first.given, second.given):
            table = np.zeros((len(keys), 1 + groups.sums.shape[1]), dtype=np.int64)
            places = [keys.index(key) for key in groups.keys]
            table[places] = np.column_stack([groups.persons, groups.sums])
            tables.append(table)
        start = 0
        for item in first.noise:
            columns = slice(start, start + item.width)
            yield item.law, tables[0][:, columns], tables[1][:, columns]
            start += item.width


def _drawn(
    draws: Sequence[Draw], inputs: Sequence[tuple[Law, Integers, Integers]]
) -> Iterator[tuple[Draw, Law, Integers, Integers]]:
    """What went into each draw that was paid for: neighbouring sums of one law are drawn in one call.

    Where a mechanism or the engine failed, on both data alike, there are fewer inputs than draws.
    """
    left = iter(draws)
    for law, a, b in inputs:
        start = 0
        while start < a.shape[1] and (draw := next(left, None)) is not None:
            apart = isinstance(law, (LaplaceLaw, GaussianLaw, BinomialLaw)) and draw.cells > 0 and len(a) > 0
            stop = start + draw.cells // len(a) if apart else a.shape[1]
            yield draw, law, a[:, start:stop], b[:, start:stop]
            start = stop


def _alone(draw: Draw, law: Law, a: Integers, b: Integers) -> Iterator[str]:
    """Groups that only one side has: no more than declared, each of one person, and covered by their delta."""
    if not isinstance(law, PassedLaw):
        return
    one_sided = np.concatenate([a[b == 0], b[a == 0]])
    one_sided = one_sided[one_sided > 0]
    if len(one_sided) > draw.alone:
        yield f"{len(one_sided)} groups on one side only, declared {draw.alone}"
    if one_sided.max(initial=0) > 1:
        yield f"a group of {one_sided.max()} people on one side only"
    if law.threshold != draw.threshold:
        yield "another threshold than was paid for"


def _moved(law: Law, a: Integers, b: Integers, norm: str, *, apart: bool) -> Fraction:
    """How far the input of one draw moved: L1, or L2 squared; with `apart` the farthest single sum (SubLinear).

    Of scores, each choice moves by its span: the largest rise plus the largest fall. Sums
    before a noisy threshold by their span and, as the scales weigh it, the largest move. Points of
    a space by the largest move alone where the same distances occur, so that their weights have the same total.
    """
    gap = a.astype(object) - b.astype(object)
    if isinstance(law, MetricLaw) and (np.sort(a) != np.sort(b)).any():
        gap = np.maximum(gap.max(axis=1), 0) - np.minimum(gap.min(axis=1), 0)
    elif isinstance(law, MetricLaw):
        gap = np.abs(gap).max(axis=1)
    if isinstance(law, AboveLaw) and law.threshold_scale:
        rise, fall = int(max(gap.max(), 0)), int(max(-gap.min(), 0))
        return max(rise, fall) * law.scale / law.threshold_scale + rise + fall
    if isinstance(law, CHOICES) and gap.size:
        gap = np.maximum(gap.max(axis=1), 0) - np.minimum(gap.min(axis=1), 0)
    gap = np.abs(gap).ravel()
    if not gap.size:
        return Fraction(0)
    if apart:
        gap = gap[[gap.argmax()]]
    return Fraction(int((gap * gap).sum() if norm == "l2" else gap.sum()))


def cost(law: Law, moved: Fraction) -> Fraction:
    """The loss of one draw whose input moved that far: epsilon of an L1 move, rho of a squared L2 move."""
    if isinstance(law, (LaplaceLaw, FlipLaw, AboveLaw, MetricLaw, BitLaw)):
        return moved / law.scale
    if isinstance(law, ExponentialLaw):
        return moved / (8 * law.scale**2)
    if isinstance(law, (GaussianLaw, PassedLaw)):
        return moved / (2 * law.scale**2)
    if isinstance(law, BinomialLaw):
        return Fraction(0)  # its cost is not a function of one move; the coin count was searched for the budget
    raise TypeError(law)
