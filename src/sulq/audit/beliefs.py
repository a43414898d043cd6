"""What an adversary believes of one row before and after noisy answers, exactly, by Bayes' rule.

Databases are tuples of values from a small domain. The adversary has a prior on them, knows the questions and the
noise, and hears the answers; all is enumerated. Of many properties the one that moved farthest is found [S1.4].
Source: S0.2, S0.3, S0.22, S1.2, S1.7, S2.2; docs/theory/semantics.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sulq.audit.pmf import Noise, Pmf, checked, log_ratio
from sulq.errors import QuestionError

MAX_DATABASES: Final = 10**6  # databases that are looked at one by one
Database = tuple[Hashable, ...]
Holds = Callable[[Hashable], bool]
LARGEST: Final = 16  # values of a row: 65,536 properties, those of four bits


@dataclass(frozen=True, slots=True)
class Heard:
    """One noisy sum as the adversary has it: what each value of a row counts, the noise, and the answer in units.

    `counts` is one mapping for all rows, or one for each row where the question looks at places (S0.7).
    """

    counts: Mapping[Hashable, int] | Sequence[Mapping[Hashable, int]]
    noise: Noise
    answer: int

    def likelihood(self, database: Database) -> float:
        """Ln P(answer | database)."""
        return _logarithm(self.noise.pmf(self.answer - sum(self.term(i, value) for i, value in enumerate(database))))

    def term(self, row: int, value: Hashable) -> int:
        """What a row with this value adds to the sum."""
        counts = self.counts if isinstance(self.counts, Mapping) else self.counts[row]
        return counts[value]


def independent(priors: Sequence[Pmf]) -> dict[Database, float]:
    """The joint prior of rows that tell nothing of each other: what the guarantee is stated for [S0.3]."""
    size = math.prod(len(prior) for prior in priors)
    if size > MAX_DATABASES:
        raise QuestionError("too-large", f"There are {size} databases; at most {MAX_DATABASES} are enumerated.")
    joint = {}
    for cells in itertools.product(*(checked(prior).items() for prior in priors)):
        joint[tuple(value for value, _ in cells)] = math.prod(float(probability) for _, probability in cells)
    return joint


def posterior(
    joint: Mapping[Database, float], heard: Sequence[Heard], row: int, *, others: Mapping[int, Hashable] | None = None
) -> dict[Hashable, float]:
    """The law of one row after the answers, in log space throughout.

    Args:
        joint: The prior on whole databases; `independent` makes one, a dependent one may be given.
        heard: The answers.
        row: Whose row is looked at.
        others: The rows the adversary knows for certain (informed); none: it averages over all of them.
    """
    known = others or {}
    weights: dict[Hashable, list[float]] = {}
    for database, chance in joint.items():
        if chance > 0 and all(database[i] == value for i, value in known.items()):
            told = math.fsum(item.likelihood(database) for item in heard)
            weights.setdefault(database[row], []).append(math.log(chance) + told)
    if not weights:
        raise QuestionError("bad-parameter", "The prior holds no database with these other rows.")
    logs = {value: _log_sum(terms) for value, terms in weights.items()}
    whole = _log_sum(list(logs.values()))
    return {value: math.exp(log - whole) for value, log in logs.items()}


def confidence(belief: Pmf, holds: Holds) -> float:
    """Ln of the odds of a property under a belief: over the whole line, infinite where it is certain [S0.2]."""
    yes = math.fsum(float(p) for value, p in belief.items() if holds(value))
    no = math.fsum(float(p) for value, p in belief.items() if not holds(value))
    return log_ratio(yes, no)


def shift(before: Pmf, after: Pmf, holds: Holds, *, two_sided: bool = False) -> float:
    """How far the log-odds of a property rose; `two_sided`: moved, either way (E48) [S0.4, S1.2]."""
    moved = confidence(after, holds) - confidence(before, holds)
    return abs(moved) if two_sided else moved


@dataclass(slots=True)
class Tracker:
    """The belief about one row of an adversary who knows all others, answer by answer [S0.22, S1.7].

    `steps` are the increments of the confidence in `holds`; they add up to the shift.
    """

    prior: Pmf
    holds: Holds
    steps: list[float] = field(default_factory=list)
    _logs: dict[Hashable, float] = field(init=False)

    def __post_init__(self) -> None:
        self._logs = {value: math.log(p) for value, p in checked(self.prior).items() if p}

    def hear(self, likelihood: Callable[[Hashable], float]) -> float:
        """Take in one answer by the ln of its probability given the row's value; returns the step."""
        before = self.confidence
        self._logs = {value: log + likelihood(value) for value, log in self._logs.items()}
        self.steps.append(self.confidence - before)
        return self.steps[-1]

    def hear_sum(self, counts: Mapping[Hashable, int], noise: Noise, answer: int) -> float:
        """Take in one noisy sum, the known rows' part of it taken off."""
        return self.hear(lambda value: _logarithm(noise.pmf(answer - counts[value])))

    @property
    def belief(self) -> dict[Hashable, float]:
        """The law of the row as the adversary sees it now."""
        whole = _log_sum(list(self._logs.values()))
        return {value: math.exp(log - whole) for value, log in self._logs.items()}

    @property
    def confidence(self) -> float:
        """Ln of the odds of the property now, from the two sides' own sums: no digits are lost near 0 or 1."""
        sides: tuple[list[float], list[float]] = ([], [])
        for value, log in self._logs.items():
            sides[not self.holds(value)].append(log)
        yes, no = (_log_sum(side) if side else -math.inf for side in sides)
        return 0.0 if yes == no else yes - no


def _logarithm(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf


def _log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(log - top) for log in logs))


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
