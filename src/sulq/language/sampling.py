"""The SuLQ policy's noise beside the sampling error that n people have anyway, and the survey's bound on it.

n is public: declared by the owner, or known by the relation; never read off rows for this (SR6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sulq.errors import QuestionError
from sulq.language.privacy import Budget, SubLinear
from sulq.language.sublinear import VARIANCES
from sulq.language.theorems import coins_paper

MAX_QUERIES = 10**9  # of a SubLinear budget


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """Noise by calibration beside the sampling error of n people, and how many queries keep it below sqrt(n) [S0.28].

    `sampling`: sqrt(n)/2, the largest standard deviation of a count of n independent people. `noise`: the standard
    deviation of each of T sums that one person moves by one, by calibration. `capacity`: by calibration, the largest
    T whose noise is below sqrt(n); 0 where not even one query's is.
    """

    size: int
    queries: int
    sampling: float
    noise: tuple[tuple[str, float], ...]
    capacity: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        lines = [f"With {self.size:,} people a count has a sampling error of up to {self.sampling:,.4g}."]
        for (name, noise), (_, most) in zip(self.noise, self.capacity, strict=True):
            word = "below" if noise < self.sampling else "above"
            lines.append(
                f"{name}: noise {noise:,.4g} for {self.queries:,} queries, {word} the sampling error; "
                f"below sqrt(n) for up to {most:,} queries"
            )
        return "\n".join(lines)


def sampling_report(budget: Budget, size: int | None) -> SamplingReport:
    """Compare sqrt(R) with the sampling error of n people, for every calibration of a SubLinear budget's promise.

    Free, and from public numbers alone. Fair coins (`binomial`) have about the noise of `posterior`; the survey's own
    number of them is `binomial-paper`.
    Source: [BDMN05], section 1; [S0.28].

    Args:
        budget: A SubLinear budget.
        size: n, the public number of people.

    Raises:
        QuestionError: `spend-kind`: another budget, which leaves each sum's noise to its spend; `size-secret`: n is
            not declared; `bad-parameter`: no number of people.
    """
    if not isinstance(budget, SubLinear):
        raise QuestionError("spend-kind", "Only a SubLinear budget fixes the noise of every sum beforehand.")
    if size is None:
        raise QuestionError("size-secret", "The number of people is secret here, so nothing is compared with it.")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise QuestionError("bad-parameter", "A number of people is a whole number, one or more.")
    epsilon, delta = float(budget.exact), float(budget.exact_delta)
    people = size

    def survey(_: float, __: float, queries: int) -> float:
        return coins_paper(epsilon, queries, people) / 4.0

    noise, capacity = [], []
    for name, variance in {**VARIANCES, "binomial-paper": survey}.items():
        noise.append((name, math.sqrt(variance(epsilon, delta, budget.queries))))
        capacity.append((name, _most(lambda t, of=variance: of(epsilon, delta, t) < people)))  # type: ignore[misc]
    return SamplingReport(size, budget.queries, math.sqrt(size) / 2.0, tuple(noise), tuple(capacity))


def _most(fits: Callable[[int], bool]) -> int:
    """The largest number of queries that fits, where all below it do; 0 where none does."""
    low, high = 0, 1
    while high <= MAX_QUERIES and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return min(low, MAX_QUERIES)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What the survey's Theorem 1 promises for T = n^c queries at privacy epsilon = n^-c' [S1.6].

    `bound`: sqrt(R) ln^2 n with sqrt(R) = (sqrt(T)/epsilon) ln^3 n; the noise of R coins passes it with probability at
    most `failure` = 2 exp(-2 ln^4 n). `below_sampling`: whether the bound itself is below sqrt(n). `rate_below`: the
    survey's own reading, sqrt(T)/epsilon < sqrt(n), which leaves ln^5 n out: true long before the bound is.
    """

    size: int
    queries: int
    epsilon: float
    coins: int
    bound: float
    failure: float
    below_sampling: bool
    rate_below: bool

    def __str__(self) -> str:
        root, rate = math.sqrt(self.size), math.sqrt(self.queries) / self.epsilon
        words = {True: "below", False: "above"}
        said = f"{self.queries:,} queries at epsilon {self.epsilon:.4g} of {self.size:,} people: {self.coins:,} coins, "
        said += f"noise within {self.bound:,.4g} except with probability {self.failure:.2g}; that is "
        said += f"{words[self.below_sampling]} sqrt(n) = {root:,.4g}. Without its logarithms, sqrt(T)/epsilon = "
        return f"{said}{rate:,.4g} is {words[self.rate_below]} it."


def perturbation(size: int, c: float, c_prime: float = 0.0) -> Perturbation:
    """Check the exponents 0 < c < 1, 0 <= c' < c/2 of the survey's Theorem 1, and say what they give for n people.

    The paper uses one letter for the noise and for its bound, and says Õ(sqrt T) before Õ(sqrt T/delta) (E11).
    Source: the survey of sub-linear queries, Theorem 1 [S1.6].

    Raises:
        QuestionError: `bad-parameter`: fewer than two people, or exponents that the theorem does not cover.
    """
    known = isinstance(size, int) and not isinstance(size, bool) and 2 <= size <= 10**60
    if not known or not 0.0 < c < 1.0 or not 0.0 <= c_prime < c / 2.0:
        raise QuestionError("bad-parameter", "The survey's theorem needs n >= 2, 0 < c < 1 and 0 <= c' < c/2.")
    queries, epsilon, log = math.ceil(size**c), size**-c_prime, math.log(size)
    coins = coins_paper(epsilon, queries, size)
    bound, failure = math.sqrt(coins) * log**2, 2.0 * math.exp(-2.0 * log**4)
    root, rate = math.sqrt(size), math.sqrt(queries) / epsilon
    return Perturbation(size, queries, epsilon, coins, bound, failure, bound < root, rate < root)
