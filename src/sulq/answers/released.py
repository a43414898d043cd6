"""Released integers with the law of the noise in them, and which rows of a person they are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sulq.language.facts import Facts, Heavy
from sulq.language.kinds import Floats, Integers
from sulq.language.law import Law, PassedLaw
from sulq.language.question import Above, Choose, Holistic, Question, Together
from sulq.language.relation import Relation, Table
from sulq.language.statistic import HeavyPersons


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of `width` neighbouring columns: its law in units of `step`."""

    law: Law
    step: Fraction
    width: int

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in one number."""
        return float(self.law.variance() ** 0.5 * float(self.step))


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Noisy whole units, a row for each cell; every number shown is computed from these alone (T1, T2).

    `labels`: where keys were open, the label of each row's group, ascending. Of a
    choice the one column holds the number of the chosen candidate. `exact`: no noise
    was added, as only made-up data may have it (SR9).
    """

    units: Integers
    noise: tuple[Noise, ...]
    labels: tuple[tuple[object, ...], ...] | None = None
    exact: bool = field(default=False, metadata={"wire": "set"})

    @property
    def cells(self) -> int:
        """Number of cells of the partition."""
        return int(self.units.shape[0])

    @property
    def draws(self) -> int:
        """Number of independent draws of noise."""
        return int(self.units.size)

    def values(self) -> Floats:
        """The released sums: whole units times a public step."""
        steps = np.repeat([float(noise.step) for noise in self.noise], [noise.width for noise in self.noise])
        values: Floats = self.units * steps
        return values

    def radius(self, beta: float) -> Floats:
        """How far each column's cells may be off, except with probability beta a cell; exact for the law."""
        found = [float(noise.law.accuracy(beta) * noise.step) for noise in self.noise for _ in range(noise.width)]
        return np.array(found)

    def interval(self, beta: float) -> tuple[Floats, Floats]:
        """From where to where each number lies except with probability beta; exact for the law.

        A group's number of people is judged given that it passed its threshold (SR14).
        """
        value, radius = self.values(), self.radius(beta)
        low, high = value - radius, value + radius
        column = 0
        for noise in self.noise:
            if isinstance(noise.law, PassedLaw):
                ends = {int(n): noise.law.ends(int(n), beta) for n in np.unique(self.units[:, column])}
                low[:, column] = [ends[int(n)][0] for n in self.units[:, column]]
                high[:, column] = [ends[int(n)][1] for n in self.units[:, column]]
            column += noise.width
        return low, high

    def deviations(self) -> Floats:
        """Standard deviation of the noise in each column."""
        return np.array([noise.deviation for noise in self.noise for _ in range(noise.width)])


def kept_rows(question: Question, facts: Facts) -> tuple[str, ...]:
    """A note for every answer over a table of which so many rows a person are kept; none where all rows are."""
    asked = question.questions if isinstance(question, Together) else (question,)
    names: dict[str, None] = {}
    for item in asked:
        if not (isinstance(item, Holistic) and isinstance(item.statistic, HeavyPersons)):
            over = item.counts.over if isinstance(item, (Choose, Above)) else item.over
            names |= dict.fromkeys(_tables(over, facts))
    bounded = [name for name in names if facts.kept_of(facts.table_of(name)) is not None]
    if not bounded:
        return ()
    note = f"of the kept rows (at most {'one' if facts.unit.rows == 1 else facts.unit.rows} a person)"
    beside = [f"{item}{f' of {item.table}' if facts.tables else ''}" for item in facts.heavy if item.table in bounded]
    return ("; ".join([note, *beside]),)


def _tables(relation: Relation, facts: Facts) -> list[str]:
    """The tables a relation reads."""
    if isinstance(relation, Table):
        return [facts.table_of(relation.name).schema.table]
    return [name for source in relation.sources() for name in _tables(source, facts)]


def heavy_share(table: str, released: Released) -> Heavy:
    """The share from the two noisy counts of persons, each within its interval at 97.5%: both hold at once at 95%."""
    (heavy, others), ends = released.values()[0], [end[0] for end in released.interval(0.025)]
    (least, fewest), (most, many) = ([max(float(n), 0.0) for n in end] for end in ends)
    whole = max(heavy, 0.0) + max(others, 0.0)
    low = least / (least + many) if least + many else 0.0
    high = most / (most + fewest) if most + fewest else 1.0
    return Heavy(table, min(max(max(heavy, 0.0) / whole if whole else 0.0, low), high), low, high)
