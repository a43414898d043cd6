"""Where values lie, from one noisy histogram: what `bounds="auto"` buys before a sum or a mean.

The bins are public: powers of two on either side of zero, within the bounds that hold anyway. They are a partition, so
all counts together cost one charge (SR13). Everything else here follows from the released counts and public facts: the
clip is post-processing, and a mistake in it can cost accuracy and never privacy (S0.29).
Source: docs/decisions/0047-bounds-are-searched.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, cast

import numpy as np

from sulq.answers.answer import Answers, Clips
from sulq.answers.oracle import ForecastingOracle, KeepingOracle, Oracle
from sulq.answers.plan import Plan
from sulq.answers.readings.noise_sums import added
from sulq.answers.released import Released
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.domain import INT_LIMIT, Schema
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Floats, Integers, Scalar, Truth
from sulq.language.law import LaplaceLaw
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho, SubLinear
from sulq.language.question import WHOLE, Sums, Together
from sulq.language.relation import Relation
from sulq.language.rowfn import Bins, Each, Lit, RowFn
from sulq.language.rowfn.vectors import bounded

Bounds = Literal["auto"]
Clip = tuple[float | int, float | int]
# Of the spend; chosen, as are the next four, on generated columns that no page shows (decision 0047).
SEARCH_SHARE: Final = Fraction(1, 3)
DECLARED_EVIDENCE: Final = 8.0  # which a first window must pass to be taken instead of the declared bounds
NEAR_EVIDENCE: Final = 2.5  # which the next bins need besides that of how much wider they make the clip
FAR_EVIDENCE: Final = 4.5  # which bins past empty ones need
MAX_RUN_BINS: Final = 4
BIN_PARTS: Final = 4  # of a bin, between which a clip may end
MAX_OCTAVES: Final = 31  # below the farther bound
BETA: Final = 0.05  # with which what is told of a search may be wrong


def edges_of(fn: RowFn, schema: Schema) -> tuple[float | int, ...]:
    """The public bins of a number: its bounds, zero, and powers of two between its grid and the farther bound."""
    lo, hi, kind = bounded(fn, schema)
    if lo == hi:
        return (_edge(lo),)
    top = math.ceil(math.log2(max(abs(lo), abs(hi))))
    bottom = top - MAX_OCTAVES
    if kind.step is not None:
        bottom = max(bottom, math.ceil(math.log2(kind.step)))
    powers = [Fraction(2) ** exponent for exponent in range(bottom, top + 1)]
    inner = [end for end in (*(-power for power in reversed(powers)), Fraction(0), *powers) if lo < end < hi]
    return tuple(dict.fromkeys(map(_edge, (lo, *inner, hi))))


def _edge(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 and abs(value) <= INT_LIMIT else float(value)


@dataclass(frozen=True, slots=True, eq=False)
class SearchedValue:
    """A number whose clip is looked for: over which rows, in which bins, and for how many groups that share it.

    `centred`: its noise grows with the clip's width, as a mean's does; a sum's grows with the farther end.
    """

    fn: RowFn
    edges: tuple[float | int, ...]
    where: RowFn | None = None
    over: Relation = WHOLE
    groups: int = 1
    centred: bool = True

    @property
    def question(self) -> Sums:
        """How many values lie in each bin."""
        return Sums((Lit(1),), self.where, (Bins(self.fn, self.edges),), (), self.over)

    @property
    def ends(self) -> tuple[float | int, ...]:
        """Where a clip may end: at the bins' edges and at quarters between, which stay whole where the edges are."""
        found: list[float | int] = []
        for low, high in itertools.pairwise(self.edges):
            if isinstance(low, int) and isinstance(high, int):
                parts = math.gcd(high - low, BIN_PARTS)
                found += [low + (high - low) // parts * i for i in range(parts)]
            else:
                found += [low + (high - low) * i / BIN_PARTS for i in range(BIN_PARTS)]
        return (*found, self.edges[-1])

    @property
    def narrowest(self) -> Clip:
        """The least wide clip: none has less noise."""
        return min(itertools.pairwise(self.ends), key=lambda ends: ends[1] - ends[0])

    def clipped(self, clip: Clip) -> RowFn:
        """The value, clipped; as it is where the clip is the declared bounds."""
        return self.fn if clip == (self.edges[0], self.edges[-1]) else self.fn.clip(*clip)


def searched(
    fn: RowFn,
    schema: Schema,
    *,
    where: RowFn | None = None,
    by: Sequence[RowFn] = (),
    over: Relation = WHOLE,
    centred: bool = True,
) -> SearchedValue | None:
    """What is searched of a number; None where its bounds leave nothing to search for, and of dates and moments."""
    kind = fn.kind(schema)
    if isinstance(kind, Scalar) and kind.clock is not None:
        return None
    edges = edges_of(fn, schema)
    if len(edges) < 3:
        return None
    return SearchedValue(fn, edges, where, over, math.prod(_groups(key, schema) for key in by), centred)


def _groups(key: RowFn, schema: Schema) -> int:
    """How many groups a key makes; of open keys nobody knows, and all rows count as one."""
    kind = key.kind(schema)
    if isinstance(kind, (Scalar, Truth)):
        kind = Each(key).kind(schema)
    return kind.size if isinstance(kind, Code) else 1


def check_bounds(bounds: object, facts: Facts, within: object = None) -> None:
    """Refuse what `bounds` cannot be, or cannot be beside.

    Raises:
        QuestionError: `bad-question`, or `spend-kind` under a SubLinear budget, whose noise no spend divides.
    """
    if not isinstance(bounds, str) or bounds != "auto":  # an array compares with each of its numbers
        raise QuestionError("bad-question", 'bounds is "auto", or left out: then the declared bounds are taken.')
    if isinstance(facts.budget, SubLinear):
        raise QuestionError(
            "spend-kind",
            "Under SubLinear each sum is a query of fixed noise; there is no spend to search for bounds with.",
            "Clip by a public number: sulq.col(...).clip(0, 100_000).",
        )
    if within is not None:
        raise QuestionError("bad-question", "The accuracy of bounds that are still to be found has no price.", _SPEND)


_SPEND: Final = "Name spend= instead of within=."


def check_most(spend: Loss | None, at_most: object, facts: Facts) -> None:
    """Refuse a spend that is more than the asker would pay.

    Raises:
        QuestionError: `too-costly`, or `spend-kind` where the two cannot be compared.
    """
    if at_most is None:
        return
    if not isinstance(at_most, (Epsilon, Rho, EpsilonDelta)):
        raise QuestionError("spend-kind", "at_most is a loss: Epsilon, Rho or EpsilonDelta.")
    if not isinstance(spend, (Epsilon, Rho, EpsilonDelta)):
        return  # refused for itself
    most, delta = at_most.exact, Fraction(0)
    if isinstance(at_most, EpsilonDelta):
        most, delta = facts.counted(at_most).rho if isinstance(spend, Rho) else most, at_most.exact_delta
    elif type(spend) is not type(at_most):
        raise QuestionError("spend-kind", "at_most must be of the kind the spend is of.")
    if spend.exact > most or (isinstance(spend, EpsilonDelta) and spend.exact_delta > delta):
        raise QuestionError("too-costly", f"The spend is {spend}, more than at_most, {at_most}.")


def divided_spend(spend: Loss | None) -> tuple[Loss, Loss]:
    """What the search costs, and what is left for the answer; both together are within the spend.

    Of an (epsilon, delta) the search needs no delta: pure loss adds to its epsilon alone.
    """
    if isinstance(spend, EpsilonDelta):
        rest = Epsilon(spend.exact).share(1 - SEARCH_SHARE)
        return Epsilon(spend.exact).share(SEARCH_SHARE), EpsilonDelta(rest.exact, spend.exact_delta)
    if not isinstance(spend, (Epsilon, Rho)):
        raise QuestionError("spend-missing", "A search for bounds has a price.", "Name it: spend=Epsilon(1).")
    return spend.share(SEARCH_SHARE), spend.share(1 - SEARCH_SHARE)


def total_spent(first: Loss, rest: Loss) -> Loss:
    """What the search and the answer cost together; a stored one costs nothing."""
    if isinstance(rest, EpsilonDelta):
        return EpsilonDelta.total(_amount(first) + rest.amount, Fraction(rest.delta))
    return type(rest).total(_amount(first) + _amount(rest)) if isinstance(rest, (Epsilon, Rho)) else rest


def _amount(loss: Loss) -> Fraction:
    return loss.amount if isinstance(loss, (Epsilon, Rho, EpsilonDelta)) else Fraction(0)


def admit(oracle: Oracle, *plans: Plan) -> None:
    """Refuse, before the first debit, several asks of which the budget or an analyst's share holds only some.

    Raises:
        BudgetExceeded: `budget-exceeded`: nothing was spent.
    """
    if isinstance(oracle, ForecastingOracle) and None in oracle.afford([plan.event for plan in plans]):
        price = total_spent(plans[0].spend, plans[-1].spend)
        raise BudgetExceeded("budget-exceeded", f"This would cost {price}; {oracle.facts.remaining} is left.")


def question_of(values: Sequence[SearchedValue]) -> Together:
    """One question for the bins of all values, at one debit."""
    return Together(tuple(value.question for value in values))


@dataclass(frozen=True, slots=True, eq=False)
class FoundBounds:
    """What a search has found and cost: a clip for each value."""

    values: tuple[SearchedValue, ...]
    clips: tuple[Clip, ...]
    answers: Answers

    def named(self, names: Sequence[str]) -> Clips:
        """The clips with what their values are called."""
        return tuple((name, *clip) for name, clip in zip(names, self.clips, strict=True))

    def told(self, names: Sequence[str], rest: Loss) -> tuple[str, ...]:
        """Notes for the answer: the clips, what the interval is about, what is cut, and what each part cost."""
        ends = [f"{name} to [{_figure(lo)}, {_figure(hi)}]" for name, (lo, hi) in zip(names, self.clips, strict=True)]
        first = self.answers[0]
        about = "the interval is about the statistic of the clipped values and does not count what is cut"
        return (
            f"values are clipped: {', '.join(ends)}; {about}",
            *self.cuts(names),
            f"the search for bounds cost {first.spent} (receipt {first.receipt.seq}), the answer {rest}",
        )

    def cuts(self, names: Sequence[str]) -> tuple[str, ...]:
        """What the clips leave out, in words, a value each; nothing of one whose declared bounds are kept and seen."""
        texts = map(self._cut, range(len(names)))
        return tuple(f"{name}: {text}" for name, text in zip(names, texts, strict=True) if text)

    def _cut(self, i: int) -> str:
        """What the clip of one value leaves out, in words; empty where it is the declared bounds and they are seen."""
        value, clip, released = self.values[i], self.clips[i], self.answers[i].released
        declared = clip == (value.edges[0], value.edges[-1])
        if not stands_out(released):
            kept = "the declared bounds are kept" if declared else "the clip is a guess"
            return f"no values stood out of the noise: {kept}"
        if declared:
            return ""
        share, most = share_beyond(value, clip, released)
        return (
            f"about {100 * share:.2g}% of the values lie beyond the clip (at most {math.ceil(1000 * most) / 10:g}% "
            "with 95%, by noisy counts)"
        )


def _figure(number: float) -> str:
    """A number exactly: the shortest text that is read as the same one."""
    return f"{int(number) if number == int(number) else number:,}"


def search(
    oracle: Oracle, values: Sequence[SearchedValue], spend: Loss, rest: Plan | None, *, reuse: bool
) -> FoundBounds:
    """Buy the noisy histograms, at one debit, and choose the clips from what is released.

    It is refused, free, where the budget holds the search and not the `rest`. A stored search costs nothing: then the
    answer is all there is to pay.
    """
    question = question_of(values)
    if reuse and isinstance(oracle, KeepingOracle) and (stored := oracle.stored(question, spend=spend)) is not None:
        return found_bounds(values, cast("Answers", stored))
    admit(oracle, *(plan for plan in (oracle.foresee(question, spend=spend), rest) if plan is not None))
    return found_bounds(values, cast("Answers", oracle.ask(question, spend=spend, reuse=reuse)))


def found_bounds(values: Sequence[SearchedValue], answers: Answers) -> FoundBounds:
    """The clips that follow from released histograms."""
    clips = tuple(chosen_clip(value, answer.released) for value, answer in zip(values, answers, strict=True))
    return FoundBounds(tuple(values), clips, answers)


def chosen_clip(value: SearchedValue, released: Released) -> Clip:
    """The clip of least foreseen squared error: of its noise, and of what it takes from the values that were found.

    Accuracy: only values that stand out of the noise count. A run of bins whose noisy counts add up to t has evidence
    r(t), where noise alone passes t with probability e^-r. The first run is the one of most
    evidence less half the logarithm of its width, the declared bounds counting as one of evidence 8; a further run is
    taken if noise would pass for it more rarely than the squared ratio by which it widens the clip, so that the squared
    error of false ones stays below that of the noise itself.
    """
    counts, ends = released.values()[:, 0], np.array(value.edges, dtype=np.float64)
    noise = released.noise[0]
    starts, stops, evidence = _runs(counts, noise.deviation, laplace=isinstance(noise.law, LaplaceLaw))
    widths = ends[stops] - ends[starts]
    score = evidence - np.log(widths) / 2
    first = int(np.argmax(score))
    if score[first] <= DECLARED_EVIDENCE - math.log(ends[-1] - ends[0]) / 2:
        return value.edges[0], value.edges[-1]
    low, high = int(starts[first]), int(stops[first])
    while True:
        wider = np.maximum(ends[stops], ends[high]) - np.minimum(ends[starts], ends[low])
        near = (starts == high) | (stops == low)
        needed = np.where(near, NEAR_EVIDENCE, FAR_EVIDENCE) + 2 * np.log(wider / (ends[high] - ends[low]))
        taken = ((starts >= high) | (stops <= low)) & (evidence > needed)
        if not taken.any():
            break
        nearest = int(np.argmin(np.where(taken, wider, np.inf)))
        low, high = min(low, int(starts[nearest])), max(high, int(stops[nearest]))
    held = np.zeros_like(counts)
    held[low:high] = np.maximum(counts[low:high], 0.0)
    share = float(SEARCH_SHARE / (1 - SEARCH_SHARE))
    ratio = share if isinstance(noise.law, LaplaceLaw) else math.sqrt(share)
    return _least_error(value, ends, held, noise.deviation * ratio)


def stands_out(released: Released) -> bool:
    """Whether any run of bins has more than noise alone gives, except with probability BETA.

    Accuracy: noise passes a run of evidence r with probability e^-r, so one of m runs with m e^-r at most.
    """
    noise = released.noise[0]
    _, _, evidence = _runs(released.values()[:, 0], noise.deviation, laplace=isinstance(noise.law, LaplaceLaw))
    return bool(evidence.max() > math.log(len(evidence) / BETA))


def share_beyond(value: SearchedValue, clip: Clip, released: Released) -> tuple[float, float]:
    """Which part of the values lies beyond a clip, and at most which, except with probability BETA.

    Accuracy: for the most, a bin that the clip divides counts as beyond; the noise of both sums of bins
    is within its own law's quantile, each at half of BETA. That is for a clip named before; as the clip follows from
    the same counts, how often it fails was measured: below BETA. The estimate takes values to lie evenly in a bin.
    """
    counts, ends, noise = released.values()[:, 0], np.array(value.edges, dtype=np.float64), released.noise[0]
    low, high = np.maximum(ends[:-1], clip[0]), np.minimum(ends[1:], clip[1])
    kept = np.maximum(high - low, 0.0) / np.diff(ends)
    cut = kept < 1

    def reach(many: int) -> float:
        return float(added(noise.law, many).accuracy(BETA) * noise.step) if many else 0.0  # one side: half of BETA

    beyond = float(counts @ (1 - kept))
    most = float(counts[cut].sum()) + reach(int(cut.sum()))
    held = float(counts[~cut].sum()) - reach(int((~cut).sum()))
    return _part(beyond, float(counts.sum())), _part(most, most + held) if held > 0 else 1.0


def _part(part: float, whole: float) -> float:
    return min(max(part, 0.0) / max(whole, part, 1.0), 1.0)


def _runs(counts: Floats, deviation: float, *, laplace: bool) -> tuple[Integers, Integers, Floats]:
    """Runs of neighbouring bins, from where to where, and the evidence that not all of a run is noise."""
    pairs = [(i, j) for i in range(len(counts)) for j in range(i + 1, min(i + MAX_RUN_BINS, len(counts)) + 1)]
    starts, stops = np.array(pairs, dtype=np.int64).T
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    past = np.maximum(sums[stops] - sums[starts], 0.0) / deviation
    if not laplace:
        past = past / np.sqrt(stops - starts)
        return starts, stops, past**2 / 2 + np.log((past + np.sqrt(past**2 + 8 / math.pi)) * math.sqrt(math.pi / 2))
    found = np.zeros_like(past)
    for many in range(1, MAX_RUN_BINS + 1):
        ours = stops - starts == many
        found[ours] = laplace_evidence(many, past[ours] * math.sqrt(2))
    return starts, stops, found


def laplace_evidence(many: int, past: Floats) -> Floats:
    """Less the logarithm of the probability that so many Laplace draws of scale 1 add up to more than `past`.

    Their sum is a difference of two Gamma draws G, and E[G^a e^-G] = (m + a - 1)!/((m - 1)! 2^(m + a)).
    """
    total = np.zeros_like(past)
    for i in range(many):
        for k in range(i + 1):
            a = i - k
            moment = math.factorial(many + a - 1) / (math.factorial(many - 1) * 2 ** (many + a))
            total += math.comb(i, k) / math.factorial(i) * moment * past**k
    return past - np.log(total)


def _least_error(value: SearchedValue, edges: Floats, held: Floats, deviation: float) -> Clip:
    """Among all pairs of ends, the one whose noise and bias are least together; values lie evenly in their bins.

    One clip serves all groups: their squared biases are at most that of all together, so each bears an equal part.
    """
    choices = value.ends
    ends = np.array(choices, dtype=np.float64)
    places = np.searchsorted(edges, ends[:-1], side="right") - 1
    held = held[places] * np.diff(ends) / np.diff(edges)[places]
    middles = (ends[:-1] + ends[1:]) / 2
    over = (held * np.maximum(middles - ends[:, None], 0.0)).sum(axis=1)
    under = (held * np.maximum(ends[:, None] - middles, 0.0)).sum(axis=1)
    low, high = ends[:, None], ends[None, :]
    span = high - low if value.centred else np.maximum(np.abs(low), np.abs(high))
    error = (deviation * span) ** 2 + (under[:, None] + over[None, :]) ** 2 / value.groups
    error = np.where(low < high, error, np.inf)
    i, j = np.unravel_index(int(np.argmin(error)), error.shape)
    return choices[int(i)], choices[int(j)]
