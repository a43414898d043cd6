"""What an adversary believes of one row before and after noisy answers, exactly, by Bayes' rule.

Databases are tuples of values from a small domain. The adversary has a prior on them, knows the questions and the
noise, and hears the answers; all is enumerated. Of many properties the one that moved farthest is found [S1.4].

A mechanism is written out over all databases of a small domain: groups, simulation, semantic security, leakage. `laws`
maps each database, a tuple, to the law of its answers. Distances are in rows exchanged. Beside them: what must be told
for anything to be learned, and mechanisms that look private by the wrong measure.
Source: S0.2, S0.3, S0.22, S1.2, S1.7, S2.2, S2.15, S3.3, S4.3, S4.4, S4.21-S4.24; docs/theory/semantics.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.audit.pmf import Noise, Pmf, Probability, checked, exact_epsilon, log_ratio
from sulq.errors import QuestionError

MAX_DATABASES: Final = 10**6  # databases that are looked at one by one
Database = tuple[Hashable, ...]
Holds = Callable[[Hashable], bool]
MAX_VALUES_OF_A_ROW: Final = 16  # values of a row: 65,536 properties, those of four bits
Laws = Mapping[Database, Pmf]
Mechanism = Callable[[Database], Pmf]


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
        if not 2 <= len(values) <= MAX_VALUES_OF_A_ROW:
            raise QuestionError("too-large", f"All properties are looked at for 2 to {MAX_VALUES_OF_A_ROW} values.")
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


def enumerated(mechanism: Mechanism, domain: Sequence[Hashable], rows: int) -> dict[Database, Pmf]:
    """The law of every database of so many rows."""
    if len(domain) ** rows > 4096:
        raise QuestionError("too-large", "At most 4,096 databases are written out.")
    return {database: mechanism(database) for database in itertools.product(domain, repeat=rows)}


def distance(first: Database, second: Database) -> int:
    """In how many rows two databases of one size differ."""
    return sum(a != b for a, b in zip(first, second, strict=True))


def within(laws: Laws, rows: int) -> Iterator[tuple[Database, Database]]:
    """Pairs of databases that differ in at most so many rows."""
    for first, second in itertools.combinations(laws, 2):
        if distance(first, second) <= rows:
            yield first, second


def group_epsilon(laws: Laws, people: int = 1) -> float:
    """The exact loss of a group of so many people: at most so many times that of one [S3.3, S4.22]."""
    return max((exact_epsilon([laws[x], laws[y]]) for x, y in within(laws, people)), default=0.0)


def simulate(mechanism: Mechanism, known: Mapping[int, Hashable], rows: int, default: Hashable) -> Pmf:
    """What someone who sees only some rows would answer in the mechanism's place: the rest is made up [S4.21]."""
    return mechanism(tuple(known.get(i, default) for i in range(rows)))


def simulation_epsilon(laws: Laws, people: int, default: Hashable) -> float:
    """How well that works at worst: the largest |ln P/P'| over databases and rows not seen.

    At most the loss of the group, since the made-up database differs in its rows alone; and the group's
    loss is at most twice this, by way of the simulator [S4.23].
    """
    worst = 0.0
    for database in laws:
        for hidden in itertools.combinations(range(len(database)), people):
            made_up = tuple(default if i in hidden else value for i, value in enumerate(database))
            worst = max(worst, exact_epsilon([laws[database], laws[made_up]]))
    return worst


def semantic_shift(laws: Laws, people: int, weight: float) -> tuple[float, float]:
    """What an informed adversary can learn at worst: |ln(prior/posterior)|, and the move of the log-odds [S4.24].

    Over two-point priors, the property being one of two databases that differ in so many rows and `weight` the
    other's probability; these are the worst, since a mixture's likelihood lies between those of its parts. The
    second figure is the group's loss whatever the weight; the first comes up to it as the weight goes to 1.
    """
    ratio, odds = 0.0, 0.0
    for first, second in within(laws, people):
        for x, y in ((first, second), (second, first)):
            for outcome in {**laws[x], **laws[y]}:
                p, q = laws[x].get(outcome, 0), laws[y].get(outcome, 0)
                if p or q:
                    ratio = max(ratio, abs(_learned(p, q, weight)))
                    odds = max(odds, abs(log_ratio(p, q)))
    return ratio, odds


def _learned(p: Probability, q: Probability, weight: float) -> float:
    """ln(posterior/prior) of the database that gives the outcome with probability p."""
    told = (1.0 - weight) * float(p) + weight * float(q)
    return math.log(float(p) / told) if p else -math.inf


def most_told(steps: int, epsilon: float) -> float:
    """tanh(n epsilon/2): how far apart the answers on two databases n steps from each other can be at most [S4.3].

    Any two databases of n people are n steps apart where one may be exchanged for another, and 2n where
    people come and go or are blanked. With n epsilon far below 1 nothing is of use; just below 1 something is (.46).

    Privacy: a chain of n steps makes the ratio e^(n epsilon), and among laws of
    ratio e^a those of randomised response are the farthest apart: (e^a - 1)/(e^a + 1).
    """
    return math.tanh(steps * epsilon / 2.0)


def random_row(database: Database) -> dict[Hashable, Probability]:
    """The law of publishing one row at random: statistical distance 1/n, and no privacy at all [S4.4]."""
    chance = Fraction(1, len(database))
    return dict.fromkeys(enumerate(database), chance)


def learned_rule(database: Database) -> dict[Hashable, Probability]:
    """The law of a learner without noise: whoever alone has a feature writes the rule about it [S2.15].

    Rows are (feature, label). The rule of each feature is the label of most rows that have it.
    """
    rules: dict[Hashable, list[int]] = {}
    for row in database:
        if not isinstance(row, tuple) or len(row) != 2:
            raise QuestionError("bad-parameter", "A row is a feature and a label.")
        feature, label = row
        rules.setdefault(feature, []).append(1 if label else -1)
    learned = tuple(sorted((str(feature), sum(votes) >= 0) for feature, votes in rules.items()))
    return {learned: Fraction(1)}
