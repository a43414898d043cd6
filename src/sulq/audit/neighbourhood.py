"""A mechanism written out over all databases of a small domain: groups, simulation, semantic security, leakage.

`laws` maps each database, a tuple, to the law of its answers. Distances are in rows exchanged. Beside them: what must
be told for anything to be learned, and mechanisms that look private by the wrong measure.
Source: S2.15, S3.3, S4.3, S4.4, S4.21-S4.24; docs/theory/semantics.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction

from sulq.audit.beliefs import Database
from sulq.audit.pmf import Pmf, Probability, exact_epsilon, log_ratio
from sulq.errors import QuestionError

Laws = Mapping[Database, Pmf]
Mechanism = Callable[[Database], Pmf]


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
