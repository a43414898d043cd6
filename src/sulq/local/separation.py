"""What people's own reports cannot tell though a database can: parities [S4.17-S4.20].

A parity of d bits is the bit r.x for a public r. A database answers how many people have it set to within
about 1/epsilon. Reports of single people cannot: for most r what is reported of a random x with
r.x = 0 and of one with r.x = 1 is all but the same.

Accuracy: the distances are exact for the methods of this package, and the theorem's bounds hold for any.
Source: DMNS06, section 4, with E44 and E45 corrected (docs/theory/local.md).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.kernel.mechanisms import release
from sulq.kernel.private import Private
from sulq.language.domain import Bool
from sulq.language.kinds import Integers
from sulq.language.law import LaplaceLaw, round_up
from sulq.language.rowfn import Col, Lookup, RowFn, by_row, each
from sulq.local import coins
from sulq.local.collector import Collector
from sulq.local.record import MAX_CELLS
from sulq.local.respondent import Respondent


def krr_distance(bits: int, epsilon: float) -> float:
    """Statistical distance of krr's report of a random x with r.x = 0 from that with r.x = 1, for any r but 0 [S4.19].

    Accuracy: exact, (e^epsilon - 1)/(e^epsilon + 2^d - 1): each half of the cells has p - q more than the other.
    """
    return math.expm1(epsilon) / (math.expm1(epsilon) + 2.0**bits)


def bitwise_distance(bits: int, epsilon: float, weight: int) -> float:
    """The same for bitwise response and an r of `weight` ones: tanh(epsilon/(2d))^weight, exactly [S4.19]."""
    return float(math.tanh(epsilon / (2.0 * bits)) ** weight)


def close_bound(bits: int, epsilon: float, alpha: float) -> float:
    """4 (8 epsilon^2/(alpha 2^d))^(1/3): how much, in L1, any report tells of most parities at most [S4.20].

    For all but the part alpha of r != 0 the report of a random x with r.x = b is within this of that of any random x,
    for epsilon <= 1 and any randomiser at all.

    Accuracy: alpha divides; the printed delta multiplies by it (E44).
    Source: DMNS06, Lemma 2.
    """
    return 4.0 * math.cbrt(8.0 * epsilon**2 / (alpha * 2.0**bits))


def release_bound(people: int, bits: int, epsilon: float) -> float:
    """8 n (48 n epsilon^2 2^-d)^(1/3): how much, in L1, any publication of n rows tells of most parities [S4.17].

    For two thirds of all vectors r an epsilon-private publication is no farther apart between databases in which
    nobody has the parity and in which everybody has it.

    Source: DMNS06, Theorem 3; meaningful where it is below 1 (n = 10, epsilon .1: from d = 22 on).
    """
    return 8.0 * people * math.cbrt(48.0 * people * epsilon**2 / 2.0**bits)


def pair_correlation(bits: int) -> float:
    """The mean over r != 0 of (-1)^(r.x + r.y) for x != y: -1/(2^d - 1), and not +1/2^d as printed (E45) [S4.20]."""
    return -1.0 / (2.0**bits - 1.0)


def variance_bound(bits: int, epsilon: float, chance: float) -> float:
    """2 (e^epsilon - 1)^2 p(z)^2/2^d: how far the chance of a report z varies over r and the parity at most [S4.20]."""
    return 2.0 * math.expm1(epsilon) ** 2 * chance**2 / 2.0**bits


def parities(vectors: npt.ArrayLike, columns: Sequence[str]) -> RowFn:
    """The query of the separation: g_r(i, x) = <r_i, x> mod 2, a vector r_i of bits for each row, all public [S4.17].

    Its sum is asked of a database like any other, with an error of about 1/epsilon; it looks at places, so the relation
    must keep them public: replace_one without a person column, or zero_out.

    Args:
        vectors: An array of 0 and 1, a line a row of the table, a column for each of `columns`; rows past it count 0.
        columns: The names of truth values.
    """
    given = np.asarray(vectors)
    known = given.ndim == 2 and given.shape[1] == len(columns) > 0 and bool(np.isin(given, (0, 1)).all())
    checked(known, "vectors is an array of 0 and 1, a line for each row and a column for each name.")
    terms = [by_row(given[:, i].astype(int)) * Col(name).fill(value=False) for i, name in enumerate(columns)]
    return functools.reduce(operator.add, terms) % 2


@dataclass(frozen=True, slots=True)
class Separation:
    """One parity of d bits asked of n people in two ways, of whom nobody has it, and of whom everybody has."""

    people: int
    bits: int
    epsilon: float
    method: str
    database: tuple[float, float]  # the database's answers: nobody, everybody
    within: float  # how far they may be off, except with probability .05
    histogram: tuple[float, float]  # what a noisy histogram of all records, published once, adds up to
    histogram_deviation: float  # its standard deviation
    reports: tuple[float, float]  # the collector's estimates: nobody, everybody
    deviation: float  # their standard deviation
    distance: float  # statistical distance of one report between the two, exactly
    told_apart: float  # of all n reports, at most

    def __str__(self) -> str:
        database = " and ".join(f"{value:,.0f}" for value in self.database)
        histogram = " and ".join(f"{value:,.0f}" for value in self.histogram)
        reports = " and ".join(f"{value:,.0f}" for value in self.reports)
        return "\n".join(
            [
                f"a parity of {self.bits} bits that nobody, then everybody of {self.people:,} people has",
                f"the database says {database}, within {self.within:,.0f}",
                f"a noisy histogram says {histogram}, with a standard deviation of {self.histogram_deviation:,.0f}",
                f"reports by {self.method} say {reports}, with a standard deviation of {self.deviation:,.0f}",
                f"no test tells the reports apart by more than {self.told_apart:.3f}, whatever it computes",
            ]
        )


def separation(people: int, bits: int, epsilon: float, *, method: str = "krr", weight: int | None = None) -> Separation:
    """Ask one parity of people whose bits are random but for it: a database, a noisy histogram, and their reports.

    Accuracy: the database is within ln(1/beta)/epsilon, the histogram within about 2^(d/2) times that; reports are
    told apart with an advantage of at most n times the exact distance of one [S4.17, S4.19], which no estimator
    passes. The people are made up here, so the database's answer is their exact sum with the noise that
    `Database.ask` would draw, and no ledger is kept.
    Source: DMNS06, Theorem 3 and Proposition 2.

    Args:
        people: How many people there are, n.
        bits: How many bits a record has, d; 2 to 16.
        epsilon: What the database's answer, or each person's report, may lose.
        method: "krr" or "bitwise".
        weight: How many bits the parity is of; left out, half of them, as most parities have. A parity of
            few bits is easy for "bitwise".
    """
    whole(people, "people", 1, 10**7)
    whole(bits, "bits", 2, MAX_CELLS.bit_length() - 1)
    ones = whole((bits + 1) // 2 if weight is None else weight, "weight", 1, bits)
    if method not in ("krr", "bitwise"):
        raise QuestionError("bad-parameter", 'method is "krr" or "bitwise".')
    checked(isinstance(epsilon, (int, float)) and 1e-3 <= epsilon <= 20, "epsilon lies from 0.001 to 20.")
    names = [f"b{i}" for i in range(bits)]
    columns = {name: Bool() for name in names}
    cells = np.arange(2**bits, dtype=np.int64)
    parity = np.bitwise_count(cells & (2**ones - 1)) % 2
    query = Lookup(tuple(each(name) for name in names), tuple((int(bit),) for bit in parity))
    law = LaplaceLaw(round_up(1 / Fraction(str(epsilon))))
    # One person replaced by another moves two cells of the histogram: twice the noise, in every cell (S4.6).
    cell = LaplaceLaw(round_up(2 / Fraction(str(epsilon))))
    database, histogram, reports, deviation = [], [], [], 0.0
    for value in (0, 1):
        rows = _rows(cells[parity == value], people)
        exact = np.array([parity[rows].sum()], dtype=np.int64)
        database.append(float(release(law, Private(exact))[0]))
        published = release(cell, Private(np.bincount(rows, minlength=cells.size)))
        histogram.append(float(published[parity == 1].sum()))
        table = {name: rows >> (bits - 1 - i) & 1 for i, name in enumerate(names)}
        given = Respondent(columns, epsilon=epsilon, method=method).randomise(table)
        estimate = Collector(columns, epsilon=epsilon, method=method).mean(query, given)
        reports.append(float(estimate.released.values()[0, 0]) * people)
        deviation = max(deviation, float(estimate.released.deviations()[0]) * people)
    one = krr_distance(bits, epsilon) if method == "krr" else bitwise_distance(bits, epsilon, ones)
    return Separation(
        people=people,
        bits=bits,
        epsilon=float(epsilon),
        method=method,
        database=(database[0], database[1]),
        within=float(law.accuracy(0.05)),
        histogram=(histogram[0], histogram[1]),
        histogram_deviation=math.sqrt(cell.variance() * cells.size / 2),
        reports=(reports[0], reports[1]),
        deviation=deviation,
        distance=one,
        told_apart=min(1.0, people * one),
    )


def _rows(candidates: Integers, people: int) -> Integers:
    """People drawn uniformly and independently from those with, or without, the parity; made up, and new each time."""
    return candidates[coins.uniform(people, candidates.size)]
