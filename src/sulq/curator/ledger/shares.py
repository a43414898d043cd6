"""What is spent and what is left of a budget, in the owner's and the analysts' own words; the filter alone decides."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple

from sulq.answers.budget import BudgetLeft
from sulq.errors import QuestionError, SetupError
from sulq.kernel.facts import GRAIN, LARGEST, Epsilon, EpsilonDelta, Event, Rho, SubLinear, plain, rho_within
from sulq.kernel.ledger.filter import WHOLE, Filter, Totals, units
from sulq.language.privacy import BASIC_ASKS, Loss, Queries

MAX_TOLD_DELTA: Final = 1 - Fraction(1, GRAIN)  # lost asks may have been charged past what a loss can say


def refuse_kind(rule: Filter, event: Event) -> None:
    """Say that an event is of a kind this budget cannot hold, whatever is left: no totals with it would be admitted."""
    if isinstance(rule.budget, Epsilon) and event.epsilon is None:
        raise QuestionError("spend-kind", "This budget is pure epsilon; the noise asked for has no pure loss.")
    if event.key_delta and not isinstance(rule.budget, EpsilonDelta):
        raise QuestionError("spend-kind", "Open keys need a budget with a delta.")
    if event.key_delta and rule.key_limit == 0:
        raise QuestionError(
            "open-keys",
            "Nothing of this budget's delta was set aside for open keys.",
            "Declare the categories; key_share, which sets that part, is fixed when a ledger is begun.",
        )


def limits_of(rule: Filter) -> tuple[int, ...]:
    """What may be set aside for someone: the limits that hold for every kind of ask this budget takes.

    Of an EpsilonDelta budget that is the room of the blended branch and the delta of open keys.
    """
    return (rule.room, rule.key_limit) if isinstance(rule.budget, EpsilonDelta) else (rule.limit,)


def measure(rule: Filter, totals: Totals) -> tuple[int, ...]:
    """What totals take of each of these limits."""
    match rule.budget:
        case Epsilon():
            return (totals.epsilon,)
        case Rho():
            return (totals.rho,)
        case SubLinear():
            return (totals.queries,)
    return (totals.blended, totals.key_delta)


def refusal(rule: Filter, event: Event, left: tuple[int, ...]) -> str:
    """Why an event does not fit what is left, in one unit: that of the ask itself."""
    if isinstance(rule.budget, SubLinear):
        return f"This would cost {Queries(event.queries)}; {Queries(left[0])} is left."
    if event.key_delta and units(event.key_delta) > left[1]:
        asked = f"delta {plain(event.key_delta)} for open keys"
        return f"This would cost {asked}; delta {plain(Fraction(left[1], GRAIN))} is left for them."
    if event.epsilon is not None and not isinstance(rule.budget, Rho):
        return f"This would cost epsilon {plain(event.epsilon)}; epsilon {plain(Fraction(left[0], GRAIN))} is left."
    return f"This would cost rho {plain(event.rho)}; rho {plain(largest_rho(rule, left, event.delta))} is left."


@functools.lru_cache(maxsize=64)  # looked up several times an ask
def spent_of(rule: Filter, totals: Totals, part: Fraction = WHOLE) -> Loss:
    """What the answers so far took of a part of the budget: what it was less what is left.

    Of an EpsilonDelta budget it is an epsilon: spent and left add up to the budget's, but for parts so small that one
    ask, which takes less of the blended sum than its epsilon, may cost more than they say. It is no guarantee: what is
    proved of the answers is `proved`.
    """
    match rule.budget:
        case Epsilon():
            return Epsilon.total(_amount(totals.epsilon))
        case Rho():
            return Rho.total(_amount(totals.rho))
        case SubLinear():
            return Queries(totals.queries)
    return Epsilon.total(
        _amount(max(rule.limit * part.numerator // part.denominator - left_of(rule, totals, part)[0], 0))
    )


@functools.lru_cache(maxsize=64)
def proved(rule: Filter, totals: Totals) -> Loss:
    """The loss that is proved of the answers so far, in the budget's own kind.

    Of an EpsilonDelta budget it is the epsilon of the branch that says less, with the delta of both where either was
    used: which one it is, is known in hindsight alone (docs/theory/filter.md).
    """
    if not isinstance(rule.budget, EpsilonDelta) or rule.split is None:
        return spent_of(rule, totals)
    keys, added = (Fraction(total, GRAIN) for total in (totals.key_delta, totals.delta))
    converted = rule.limit - rule.room + totals.blended
    basic = totals.pure and totals.delta <= rule.basic_limit
    if basic and not totals.delta and totals.epsilon <= converted:
        return EpsilonDelta.total(_amount(totals.epsilon), min(keys, MAX_TOLD_DELTA))
    epsilon = min(converted, totals.epsilon) if basic else converted
    return EpsilonDelta.total(_amount(epsilon), min(rule.split.delta + added + keys, MAX_TOLD_DELTA))


@functools.lru_cache(maxsize=64)
def remaining(rule: Filter, totals: Totals) -> Loss:
    """What is left: for EpsilonDelta the largest pure epsilon that one ask could still spend."""
    return loss(rule, left_of(rule, totals))


def left_of(rule: Filter, totals: Totals, part: Fraction = WHOLE) -> tuple[int, ...]:
    """What is left of a part of the budget, in its own unit; never below 0.

    Of an EpsilonDelta budget: the largest pure epsilon, the delta of open keys, the room of the blended branch, and
    the epsilon that basic composition still holds for an ask that brings a delta.
    """
    limit = rule.limit * part.numerator // part.denominator
    if not isinstance(rule.budget, EpsilonDelta):
        return (max(limit - measure(rule, totals)[0], 0),)
    room, keys, basic = (
        most * part.numerator // part.denominator for most in (rule.room, rule.key_limit, rule.basic_limit)
    )
    keys -= totals.key_delta
    if keys < 0:  # past that limit nothing is admitted, keys or none
        return 0, 0, 0, 0
    room = max(room - totals.blended, 0)
    added = max(limit - totals.epsilon, 0) if totals.pure and totals.delta <= basic else 0
    more = basic - totals.delta >= units(Fraction(rule.basic_limit, GRAIN * BASIC_ASKS))
    return min(max(within_room(rule, room), added), limit), keys, room, added if basic and more else 0


def within_room(rule: Filter, room: int) -> int:
    """The largest pure epsilon that fits so much of the blended branch.

    A pure ask of epsilon x has rho = x^2/2, so it takes min(x, alpha x^2/2) of the room: this is the inverse.
    """
    room = max(room, 0)
    square = 2 * room * GRAIN / rule.alpha
    return max(room, math.isqrt(square.numerator // square.denominator))


def loss(rule: Filter, left: tuple[int, ...]) -> Loss:
    """What is left, as a loss of the budget's kind; of an EpsilonDelta budget as an epsilon."""
    amount = Fraction(left[0], GRAIN)
    match rule.budget:
        case Rho():
            return Rho.total(amount)
        case SubLinear():
            return Queries(left[0])
    return Epsilon.total(amount)


def rho(rule: Filter, left: tuple[int, ...]) -> Fraction | None:
    """The rho that asks may still share among them, of what is left; None where the budget holds no rho."""
    match rule.budget:
        case Rho():
            return Fraction(left[0], GRAIN)
        case EpsilonDelta():
            return left[2] / (rule.alpha * GRAIN)
    return None


def largest_rho(rule: Filter, left: tuple[int, ...], delta: Fraction) -> Fraction:
    """The largest rho that one ask could still spend: that, or what basic composition holds at the ask's own delta."""
    shared = rho(rule, left) or Fraction(0)
    if isinstance(rule.budget, Rho) or not left[3] or not delta:
        return shared
    return max(shared, rho_within(left[3] / GRAIN, float(delta)))


def _amount(total: int) -> Fraction:
    """A total as a loss says it; lost asks may have been charged past what a loss can say."""
    return min(Fraction(total, GRAIN), Fraction(LARGEST))


MAX_SHARE_DENOMINATOR: Final = 10**9  # the largest bottom of a share's fraction
MAX_NAME_CHARACTERS: Final = 200
NOTHING: Final = Totals()
_PART: Final = re.compile(
    r"[0-9]{1,10}(\.[0-9]{1,20})?(e-?[0-9]{1,2})?|[0-9]{1,10}/[0-9]{0,9}[1-9][0-9]{0,9}", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Share:
    """Parts of the budget: what an analyst may spend at most, and what no other analyst can take away."""

    share: Fraction = WHOLE
    reserve: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name, part in (("share", self.share), ("reserve", self.reserve)):
            if not isinstance(part, Fraction) or not 0 <= part <= 1 or part.denominator > MAX_SHARE_DENOMINATOR:
                raise SetupError("bad-share", f"A {name} is a fraction of the budget, from 0 to 1.")
        if self.reserve > self.share:
            raise SetupError("bad-share", "A reserve is part of the share: it cannot be more.")

    @classmethod
    def of(cls, share: object, reserve: object = 0) -> Share:
        """Read parts as they were written: 0.1 is one tenth."""
        return cls(_part(share, "share"), _part(reserve, "reserve"))


FREE: Final = Share()  # of an analyst the owner has said nothing of


class Standing(NamedTuple):
    """One analyst's account, as the owner sees it."""

    analyst: str
    share: Fraction
    reserve: Fraction
    spent: Loss
    remaining: Loss


class Accounts:
    """Totals of all asks and of each analyst's, and the shares set by the owner; never changed, only followed.

    Privacy: the cap is checked on the sum over all analysts, whoever they are, so
    analysts who work together, or one under many names, stay within it (T54).
    An ask must also leave what is set aside for others, so an analyst whose own
    spending is within its reserve is never refused for what others spent (T55;
    docs/theory/shares.md).
    """

    __slots__ = ("_common", "_kept", "shares", "spent", "whole")

    def __init__(
        self,
        whole: Totals = NOTHING,
        spent: Mapping[str, Totals] = MappingProxyType({}),
        shares: Mapping[str, Share] = MappingProxyType({}),
    ) -> None:
        self.whole = whole
        self.spent = spent
        self.shares = shares
        # Reserves over one common bottom: what is compared below is whole numbers, so nothing is rounded.
        self._common = math.lcm(*(share.reserve.denominator for share in shares.values()))
        self._kept: tuple[Filter, list[int]] | None = None  # what all reserves hold, under one filter

    def charged(self, analyst: str, cost: Totals) -> Accounts:
        """The accounts after a charge, admissible or not."""
        after = Accounts.__new__(Accounts)
        after.whole = self.whole + cost
        after.spent = {**self.spent, analyst: self.spent.get(analyst, NOTHING) + cost}
        after.shares = self.shares
        after._common = self._common  # noqa: SLF001 - the shares are the same
        after._kept = None  # noqa: SLF001
        if self._kept is not None:  # a charge moves one reserve: with many analysts, none of the others is looked at
            rule, kept = self._kept
            before, now = self._reserved(rule, analyst), after._reserved(rule, analyst)  # noqa: SLF001
            moved = [all_of - was + is_now for all_of, was, is_now in zip(kept, before, now, strict=True)]
            after._kept = (rule, moved)  # noqa: SLF001
        return after

    def hold(self, rule: Filter, analyst: str) -> bool:
        """Whether the last charge was admissible: within the cap, within the analyst's share, and leaving the rest."""
        own, share = self.spent.get(analyst, NOTHING), self.shares.get(analyst, FREE)
        return rule.holds(self.whole) and rule.holds(own, share.share) and self._covered(rule, analyst)

    def given(self, rule: Filter, analyst: str, share: Share) -> Accounts:
        """The accounts after the owner set a share; refused where a reserve could not be honoured.

        Raises:
            SetupError: `bad-share`: all reserves together pass the budget, or a larger one passes what is left.
        """
        check_analyst(analyst)
        after = Accounts(self.whole, self.spent, {**self.shares, analyst: share})
        if sum(each.reserve for each in after.shares.values()) > 1:
            raise SetupError("bad-share", "All reserves together are more than the budget.")
        larger = share.reserve > self.shares.get(analyst, FREE).reserve
        if larger and not after._covered(rule, None):
            raise SetupError("bad-share", "What is left of the budget does not cover this reserve beside the others.")
        return after

    def remaining(self, rule: Filter, analyst: str) -> Loss:
        """What one ask of this analyst may still cost: its share, the cap and the others' reserves permitting."""
        return loss(rule, self.left(rule, analyst))

    def left(self, rule: Filter, analyst: str) -> tuple[int, ...]:
        """Likewise, in the filter's own units."""
        own, share = self.spent.get(analyst, NOTHING), self.shares.get(analyst, FREE)
        left = [min(pair) for pair in zip(left_of(rule, own, share.share), left_of(rule, self.whole), strict=True)]
        used = measure(rule, self.whole)
        for i, (limit, aside) in enumerate(zip(limits_of(rule), self._aside(rule, analyst), strict=True)):
            if aside:
                free = limit - used[i] - -(-aside // self._common)
                if free < 0:  # not even a free ask would leave the rest
                    return (0,) * len(left)
                blended = i == 0 and len(left) > 1
                left[i] = min(left[i], within_room(rule, free) if blended else free)
                left[2:] = [min(left[2], free), 0] if blended else left[2:]  # reserves are kept in that branch
        return tuple(left)

    def after(self, rule: Filter, analyst: str | None, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these, charged in order; None: it would be refused, and takes nothing."""
        now, found = self, list[BudgetLeft | None]()
        for event in events:
            rule.check(event)
            refuse_kind(rule, event)
            then = now.charged(analyst or "", rule.cost(event))
            if not then.hold(rule, analyst or ""):
                found.append(None)
                continue
            now = then
            left = left_of(rule, now.whole) if analyst is None else now.left(rule, analyst)
            found.append(BudgetLeft(loss(rule, left), rho(rule, left)))
        return tuple(found)

    def standings(self, rule: Filter) -> list[Standing]:
        """Every analyst who has a share or has asked: what it may spend, has spent, and has left; the owner's view."""
        return [self.standing(rule, name) for name in sorted({*self.shares, *self.spent})]

    def standing(self, rule: Filter, analyst: str) -> Standing:
        """One analyst's account."""
        share = self.shares.get(analyst, FREE)
        spent = spent_of(rule, self.spent.get(analyst, NOTHING), share.share)
        return Standing(analyst, share.share, share.reserve, spent, self.remaining(rule, analyst))

    def _aside(self, rule: Filter, analyst: str | None) -> list[int]:
        """What the others' reserves still hold of each limit, in units of 1/_common of the filter's."""
        if self._kept is None or self._kept[0] is not rule:
            kept = [0] * len(limits_of(rule))
            for name in self.shares:
                kept = [sum(pair) for pair in zip(kept, self._reserved(rule, name), strict=True)]
            self._kept = (rule, kept)
        own = self._reserved(rule, analyst)
        return [all_of - mine for all_of, mine in zip(self._kept[1], own, strict=True)]

    def _reserved(self, rule: Filter, analyst: str | None) -> list[int]:
        """What one reserve still holds of each limit."""
        share = FREE if analyst is None else self.shares.get(analyst, FREE)
        limits = limits_of(rule)
        if analyst is None or not share.reserve:
            return [0] * len(limits)
        top = share.reserve.numerator * (self._common // share.reserve.denominator)
        used = measure(rule, self.spent.get(analyst, NOTHING))
        return [max(top * limit - self._common * use, 0) for limit, use in zip(limits, used, strict=True)]

    def _covered(self, rule: Filter, analyst: str | None) -> bool:
        """Whether what is left covers what is set aside for everyone but one."""
        if not self.shares:  # by far the most frequent
            return True
        aside = self._aside(rule, analyst)
        return all(
            held == 0 or self._common * used + held <= self._common * limit
            for held, used, limit in zip(aside, measure(rule, self.whole), limits_of(rule), strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accounts) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.whole, frozenset(self.spent.items()), frozenset(self.shares.items())))

    def _key(self) -> tuple[Totals, dict[str, Totals], dict[str, Share]]:
        return self.whole, dict(self.spent), dict(self.shares)


def check_analyst(name: object) -> None:
    """Refuse what is no analyst's name."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        why = f"An analyst's name is text of 1 to {MAX_NAME_CHARACTERS} printable characters."
        raise SetupError("bad-share", why, "Give another name.")


def _part(value: object, name: str) -> Fraction:
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        value = repr(value)
    if isinstance(value, str) and _PART.fullmatch(value):  # no long exponent is worked out
        return Fraction(value)
    if isinstance(value, Fraction):
        return value
    raise SetupError("bad-share", f"A {name} is a fraction of the budget, from 0 to 1: 0.25, or 1/4.")
