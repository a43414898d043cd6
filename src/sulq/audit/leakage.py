"""What must be told for anything to be learned, and mechanisms that look private by the wrong measure.

Source: S2.15, S4.3, S4.4; docs/theory/semantics.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

from sulq.audit.beliefs import Database
from sulq.audit.pmf import Probability
from sulq.errors import QuestionError


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
