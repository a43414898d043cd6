"""How many rows, repetitions and queries a tolerance takes: the papers' formulas, corrected, and which way to ask.

Formulas of public numbers alone [S0.21, S2.11, S2.12, S2.14, S3.27]: they work before there is a database, ask nothing
and spend nothing. Tolerances are deviations, never variances (E19, E20); the logarithm multiplies tau^-2 (trap 4);
sampling error and noise each take half of the tolerance and half of the failures (E50).
Proofs: docs/theory/statistical-queries.md.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho, SubLinear
from sulq.language.sublinear import noise_for

WAYS: Final = ("joint", "split")
Rows = Callable[[Sequence[float], float], float]  # tolerances and failures to rows, of one source of error


def checked_tolerance(tau: object) -> float:
    """A tolerance: above 0, at most 1."""
    if isinstance(tau, bool) or not isinstance(tau, (int, float, np.floating)) or not 0 < tau <= 1:
        raise QuestionError("bad-parameter", "A tolerance tau lies above 0 and is at most 1.")
    return float(tau)


def repetitions(variance: float, tau: float, rows: float, queries: float, beta: float) -> int:
    """T = ceil(2 R ln(q/beta) / (tau^2 n^2)): how often a noisy sum of variance R is asked and averaged [S0.20].

    Accuracy: the average over n has variance R/(t n^2) and a normal passes x deviations with probability
    at most exp(-x^2/2), so all of q answers are within tau but with probability beta. The printed
    R/(tau n^2) makes the *variance* tau (E19).
    Source: BDMN05, section 4.5.
    """
    return max(1, math.ceil(2.0 * variance * math.log(queries / beta) / (tau * rows) ** 2))


def emulation_rows(variance: float, taus: Sequence[float], asks: int, beta: float) -> int:
    """n^2 >= 2 R ln(q/beta)/(T - q) sum 1/tau_j^2: rows at which T noisy sums answer q queries [S0.21].

    Accuracy: sum of ceil(x_j) <= q + sum of x_j, and the right side is at most T; the printed
    chain has the inequality the other way round, 1/tau_j for 1/tau_j^2, and no factor 2 (E20).
    Source: BDMN05, Theorem 3.
    """
    queries = len(taus)
    squares = sum(tau**-2.0 for tau in taus)
    return math.ceil(math.sqrt(2.0 * variance * math.log(queries / beta) / (asks - queries) * squares))


def exact_emulation_rows(variance: float, taus: Sequence[float], asks: int, beta: float) -> int:
    """The least n at which the repetitions of all queries together are at most T; also for T = q."""
    queries = len(taus)
    return least(lambda n: sum(repetitions(variance, tau, n, queries, beta) for tau in taus) <= asks)


def sample_block(queries: float, tau: float, beta: float) -> int:
    """ceil(ln(2M/beta) / (2 tau^2)): fresh rows whose average is a query's mean to within tau [S2.11].

    Accuracy: Hoeffding's bound for one of M blocks.
    Source: SQNotes, Theorem 6.
    """
    return math.ceil(math.log(2.0 * queries / beta) / (2.0 * tau**2))


def sampling_error(rows: float, queries: int, beta: float) -> float:
    """How far q means over independent rows may be from their expectations, but for beta: Hoeffding."""
    log = math.log(2 * queries) - math.log(beta)  # of a whole number of any length
    return math.sqrt(log / (2.0 * rows)) if rows > 0 else math.inf


def least(fits: Callable[[int], bool], most: int = 10**18) -> int:
    """The least whole number that fits, where all above it do; `most` if none is found before."""
    high = 1
    while high < most and not fits(high):
        high *= 2
    between = range(high // 2 + 1, high)
    return min(high // 2 + 1 + bisect.bisect_left(between, True, key=fits), most)


def min_n(
    queries: int,
    tau: float | Sequence[float],
    *,
    spend: Loss | SubLinear | None = None,
    beta: float = 0.05,
    method: str = "joint",
    population: bool = False,
    adaptive: bool = False,
    family: int | None = None,
    eta: float = 0.0,
    paper: bool = False,
) -> int:
    """How many rows are enough for all queries to be within their tolerances, except with probability beta.

    Of a known n, of one row a person, of neighbours by which a sum moves by at most one; a database says
    the same of its own facts when it refuses (`too-few-rows`).

    Accuracy: joint, n = (ln(q/beta)/epsilon) sum 1/tau_j [S3.27]; Gaussian, n^2 = (z^2/2 rho) sum 1/tau_j^2; split, q
    blocks of the dearest query [S2.12]; SubLinear, S0.21 with E20's corrections. For a population, sampling has
    half of beta and, with `paper`, half of each tolerance (E50), else what it needs of it. Of disjoint blocks each has
    noise of scale 1/epsilon, whatever their number (E24, E26). Under label noise the part of a query that flips with
    the label is divided by 1 - 2 eta, and so is its tolerance [S2.14].
    Source: BDMN05, Theorem 3; SQNotes, Theorems 6, 7 and 8; Dwork08, section 5.1.

    Args:
        queries: How many queries.
        tau: Their tolerance, or one for each.
        spend: What all of them may cost, or the SubLinear budget; None for an ordinary sample, without privacy.
        beta: The probability with which any may be farther off.
        method: "joint": all rows are asked every query; "split": each query has a block of its own.
        population: Whether answers hold for the distribution the rows were drawn from.
        adaptive: Whether queries are chosen after earlier answers: then blocks share the spend, as a ledger adds up.
        family: How many queries there might have been, where a joint population is asked adaptively.
        eta: How likely a label was flipped; answers are then about the true labels [S2.14].
        paper: The papers' formulas, corrected but not tightened.
    """
    taus = _tolerances(queries, tau, eta, paper=paper)
    checked(isinstance(beta, (int, float)) and 0 < beta < 1, "beta lies between 0 and 1.")
    checked(method in WAYS, f"method is one of {', '.join(WAYS)}.")
    sampled = population or eta > 0 or spend is None
    split = method == "split"
    checked(
        not (sampled and adaptive) or split or family is not None,
        "Adaptive queries on all rows hold for a population only as a family: name its size.",
    )
    q, possible = len(taus), family or len(taus)
    if spend is None:
        blocks = [sample_block(possible, each, beta) for each in taus]
        return sum(blocks) if split else max(blocks)
    noise = _noise(spend, q, split=split, adaptive=adaptive, paper=paper)
    blocks_of = q if split else 1
    if not sampled and not split:
        return math.ceil(noise(taus, beta))
    if paper:
        halves = [each / 2 for each in taus]
        return blocks_of * max(math.ceil(noise(halves, beta / 2)), sample_block(possible, min(halves), beta / 2))

    def fits(rows: int) -> bool:
        margin = sampling_error(rows, possible, beta / 2)
        return margin < min(taus) and noise([each - margin for each in taus], beta / 2) <= rows

    return blocks_of * least(fits)


def _noise(spend: Loss | SubLinear, queries: int, *, split: bool, adaptive: bool, paper: bool) -> Rows:
    """How many rows make the noise small enough, of a block where there are blocks."""
    if isinstance(spend, SubLinear):
        checked(not split, "Under a SubLinear budget every sum is a query, so blocks save nothing.")
        checked(spend.queries > queries or not paper, "The paper's formula needs more noisy sums than queries.")
        checked(spend.queries >= queries, "A SubLinear budget of fewer sums than queries answers none of them.")
        variance, asks = noise_for(spend).variance, spend.queries
        rows = emulation_rows if paper else exact_emulation_rows
        return lambda taus, beta: rows(variance, taus, asks, beta)
    sharing = queries if split and adaptive else 1
    if isinstance(spend, Epsilon):
        epsilon = float(spend.exact) / sharing

        def pure(taus: Sequence[float], beta: float) -> float:
            inverse = [1.0 / tau for tau in taus]
            return math.log(queries / beta) / epsilon * (max(inverse) if split else sum(inverse))

        return pure
    checked(isinstance(spend, (Rho, EpsilonDelta)), "spend is a loss such as Epsilon(1), or a SubLinear budget.")
    rho = float(spend.rho) / sharing  # type: ignore[union-attr]  # checked above

    def normal(taus: Sequence[float], beta: float) -> float:
        squares = [tau**-2.0 for tau in taus]
        z = 2.0 * math.log(queries / beta) if paper else NormalDist().inv_cdf(beta / (2.0 * queries)) ** 2
        return math.sqrt(z * (max(squares) if split else sum(squares)) / (2.0 * rho))

    return normal


def _tolerances(queries: int, tau: float | Sequence[float], eta: float, *, paper: bool) -> list[float]:
    """The tolerance of every query that is asked: under label noise smaller ones, of twice as many with `paper`."""
    whole(queries, "queries", 1, 10**7)
    given = list(tau) if isinstance(tau, Sequence) else [tau] * queries
    checked(len(given) == queries, "Give one tolerance, or one for each query.")
    checked(isinstance(eta, (int, float)) and 0 <= eta < 0.5, "eta lies from 0 up to, not including, 1/2.")
    taus = [checked_tolerance(each) for each in given]
    if eta and paper:
        return [each / 2 for each in taus] + [each * (1 - 2 * eta) / 2 for each in taus]
    return [each * (1 - 2 * eta) for each in taus]


@dataclass(frozen=True, slots=True)
class Sizing:
    """What a learner's queries would take: the best way to ask them, its rows, and what others would need.

    `asks`: of a SubLinear budget, the number of noisy sums T that needs the fewest rows for the same promise.
    """

    method: str
    rows: int
    others: tuple[tuple[str, int], ...]
    asks: int | None = None

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.rows:,} rows"]
        lines += [f"{name}: {rows:,} rows" for name, rows in self.others]
        if self.asks is not None:
            lines.append(f"fewest rows at a budget of {self.asks:,} noisy sums")
        return "\n".join(lines)


def plan(
    queries: int,
    tau: float | Sequence[float],
    *,
    spend: Loss | SubLinear | None = None,
    beta: float = 0.05,
    population: bool = False,
    adaptive: bool = False,
    family: int | None = None,
    eta: float = 0.0,
) -> Sizing:
    """The way of asking that needs the fewest rows, beside what the others and the papers' formulas need; free.

    The arguments are those of `min_n`.
    """
    settings = {"spend": spend, "beta": beta, "population": population, "adaptive": adaptive, "eta": eta}

    def rows(**more: object) -> int:
        return min_n(queries, tau, family=family, **settings, **more)  # type: ignore[arg-type]

    if isinstance(spend, SubLinear):
        found = [("repeated", rows())]
        if spend.queries > queries * (2 if eta else 1):
            found.append(("repeated (paper)", rows(paper=True)))
        return Sizing(*found[0], tuple(found[1:]), _best_asks(queries, tau, spend, beta, eta))
    alone = (population or eta > 0 or spend is None) and adaptive and family is None
    ways = ["split"] if alone else ["joint", "split"]
    found = sorted(((way, rows(method=way)) for way in ways), key=lambda pair: pair[1])
    found += [(f"{way} (paper)", rows(method=way, paper=True)) for way in ways]
    return Sizing(*found[0], tuple(found[1:]))


def _best_asks(queries: int, tau: float | Sequence[float], budget: SubLinear, beta: float, eta: float) -> int:
    """The number of noisy sums at which a promise needs the fewest rows: more of them are noisier, and average out."""
    found = {}
    for eighths in range(8 * 8 + 1):  # from q to 256 q in small steps: beyond, n hardly changes
        asks = math.ceil(queries * 2 ** (eighths / 8))
        found[asks] = min_n(queries, tau, spend=replace(budget, queries=asks), beta=beta, eta=eta)
    return min(found, key=lambda asks: (found[asks], asks))
