"""The randomisers of the local model, by name: named, never discovered; and which of them a domain is best served by.

Every draw is made whatever the cells are. Probabilities are whole numbers over 2^64, rounded towards privacy [S4.19].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Integers, Truths
from sulq.language.privacy import Epsilon, exactly
from sulq.local import coins
from sulq.local.record import Record

Reports = Integers | Truths  # whole numbers, or rows of truth values
_BATCH: Final = 2**23  # bits of unary reports that are drawn at a time
_HALF: Final = 2**63
AUTO: Final = "auto"
MAX_AUTO_BITS: Final = 1_024  # bits of a report that nobody asked to be as long
MIN_EPSILON: Final = Fraction(1, 10**6)  # below, a report tells nothing that any number of people would bring out


class _WholeNumber:
    """A randomiser whose report is one whole number below `outcomes`, right with probability kept/2^64."""

    __slots__ = ()
    kept: int

    @property
    def shape(self) -> tuple[int, ...]:
        """A report is one whole number."""
        return ()

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """That the bit, or the parity of the place, is the value's own, and that it is the other one."""
        kept = Fraction(self.kept, coins.WHOLE)
        return kept, 1 - kept


@dataclass(frozen=True, slots=True)
class KaryResponse(_WholeNumber):
    """The cell is kept with probability p = kept/2^64, else one of the other K - 1 is drawn, each equally likely.

    Privacy: an outcome has probability p from its own cell and q = (1 - p)/(K - 1) from any other, so
    the loss is ln(p/q); p is rounded down from e^epsilon/(e^epsilon + K - 1), where it is epsilon. With
    two cells it is the randomised response of the textbooks [S4.19].
    Source: docs/theory/local.md; DMNS06, section 4.1.
    """

    cells: int
    kept: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes, taken as one value."""
        cells = math.prod(sizes)
        return cls(cells, coins.keep(cells - 1, epsilon))

    @property
    def outcomes(self) -> int:
        """How many reports there are."""
        return self.cells

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Of the value itself, and of each other one."""
        kept = Fraction(self.kept, coins.WHOLE)
        return kept, (1 - kept) / (self.cells - 1)

    def randomise(self, cells: Integers) -> Integers:
        """A report for each cell; every draw is made whatever the cells are."""
        other = coins.uniform(cells.size, self.cells - 1)
        other += other >= cells  # the K - 1 cells that are not the value's own
        return np.where(coins.heads(cells.size, self.kept), cells, other)

    def pmf(self, cell: int) -> Iterator[tuple[int, Fraction]]:
        """Every report and its exact probability."""
        kept, other = self.probabilities
        return ((report, kept if report == cell else other) for report in range(self.cells))


@dataclass(frozen=True, slots=True)
class BitwiseResponse(_WholeNumber):
    """The record is written in d bits, each field in binary, and each bit is kept with probability kept/2^64.

    Privacy: two records differ in d bits at most, and a bit loses ln(p/(1 - p)) with p rounded down
    from 1/(1 + e^(-epsilon/d)): so d bits lose epsilon. That is the metric mechanism of the
    Hamming cube [S4.16]; a flip with probability 1/2 - epsilon/(2d), as printed, would lose about 2 epsilon (E43).
    Source: docs/theory/local.md; DMNS06, section 3.3.
    """

    sizes: tuple[int, ...]
    kept: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes: epsilon divided over all bits."""
        return cls(sizes, coins.keep(1, epsilon / sum(map(width, sizes))))

    @property
    def bits(self) -> int:
        """How many bits the record has."""
        return sum(map(width, self.sizes))

    @property
    def outcomes(self) -> int:
        """How many reports there are."""
        return int(2**self.bits)

    def written(self, cells: Integers) -> Integers:
        """Cells, which count the fields' values the last one fastest, as bits."""
        found, place = np.zeros_like(cells), 0
        for size in reversed(self.sizes):
            found |= (cells % size) << place
            cells, place = cells // size, place + width(size)
        return found

    def randomise(self, cells: Integers) -> Integers:
        """A report for each cell; every draw is made whatever the cells are."""
        found = self.written(cells)
        for place in range(self.bits):
            found ^= (~coins.heads(cells.size, self.kept)).astype(np.int64) << place
        return found

    def pmf(self, cell: int) -> Iterator[tuple[int, Fraction]]:
        """Every report and its exact probability."""
        kept, flipped = self.probabilities
        code = int(self.written(np.array([cell]))[0])
        for report in range(self.outcomes):
            changed = (code ^ report).bit_count()
            yield report, kept ** (self.bits - changed) * flipped**changed


def width(size: int) -> int:
    """Bits that a field of so many values is written in."""
    return max(1, math.ceil(math.log2(size)))


@dataclass(frozen=True, slots=True)
class UnaryResponse:
    """A bit for each of K cells: that of the value is set by a fair coin, every other with probability q = lies/2^64.

    Privacy: two values differ in two bits. A report with the first set and the second not is the best
    evidence: ((1/2)/q) ((1 - q)/(1/2)) = (1 - q)/q, with q rounded up from 1/(1 + e^epsilon), where it is e^epsilon.
    Source: docs/theory/local.md; the unary encoding of least variance [WBLJ17].
    """

    cells: int
    lies: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes, taken as one value."""
        return cls(math.prod(sizes), coins.lie(epsilon))

    @property
    def shape(self) -> tuple[int, ...]:
        """A report is a row of K truth values."""
        return (self.cells,)

    @property
    def outcomes(self) -> int:
        """How many reports there are."""
        return int(2**self.cells)

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """That the value's own bit is set, and that another one is."""
        return Fraction(1, 2), Fraction(self.lies, coins.WHOLE)

    def randomise(self, cells: Integers) -> Truths:
        """A report for each cell; every draw is made whatever the cells are."""
        found = np.empty((cells.size, self.cells), dtype=np.bool_)
        at_once = max(1, _BATCH // self.cells)
        for start in range(0, cells.size, at_once):
            part = found[start : start + at_once]
            part[:] = coins.heads(part.size, self.lies).reshape(part.shape)
        found[np.arange(cells.size), cells] = coins.heads(cells.size, _HALF)
        return found

    def pmf(self, cell: int) -> Iterator[tuple[tuple[bool, ...], Fraction]]:
        """Every report and its exact probability."""
        own, other = self.probabilities
        chances = [own if place == cell else other for place in range(self.cells)]
        for report in itertools.product((False, True), repeat=self.cells):
            chance = Fraction(1)
            for bit, heads in zip(report, chances, strict=True):
                chance *= heads if bit else 1 - heads
            yield report, chance


@dataclass(frozen=True, slots=True)
class HadamardResponse(_WholeNumber):
    """One of 2^m places, m the bits of K: with probability p = kept/2^64 one that is even for the value.

    Values are numbered u from 1, since number 0 would have no odd places; a place is even for u if it has an even
    number of bits in common with it. A report is m bits, however large the domain.

    Privacy: half of the places are even for each u, so a place has probability 2p/2^m or 2(1 - p)/2^m: the loss is
    ln(p/(1 - p)), with p rounded down from 1/(1 + e^(-epsilon)), where it is epsilon.
    Source: docs/theory/local.md; [ASZ19].
    """

    cells: int
    kept: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes, taken as one value."""
        return cls(math.prod(sizes), coins.keep(1, epsilon))

    @property
    def outcomes(self) -> int:
        """How many reports there are: the least power of two above K."""
        return int(2 ** self.cells.bit_length())

    def randomise(self, cells: Integers) -> Integers:
        """A report for each cell; every draw is made whatever the cells are."""
        numbers = cells + 1
        places = coins.uniform(cells.size, self.outcomes)
        wrong = odd(places & numbers) == coins.heads(cells.size, self.kept)
        # The lowest bit of the number maps the even places one to one onto the odd ones: the draw stays uniform.
        return places ^ np.where(wrong, numbers & -numbers, 0)

    def pmf(self, cell: int) -> Iterator[tuple[int, Fraction]]:
        """Every report and its exact probability."""
        even, other = self.probabilities
        for place in range(self.outcomes):
            yield place, (other if (place & (cell + 1)).bit_count() % 2 else even) * 2 / self.outcomes


def odd(numbers: Integers) -> Truths:
    """Whether each number has an odd number of bits set."""
    return (np.bitwise_count(numbers) & 1).astype(np.bool_)


Response = KaryResponse | BitwiseResponse | UnaryResponse | HadamardResponse
METHODS: Final[dict[str, type[Response]]] = {
    "krr": KaryResponse,
    "bitwise": BitwiseResponse,
    "oue": UnaryResponse,
    "hadamard": HadamardResponse,
}


def price(epsilon: object) -> Fraction:
    """What one report costs its respondent: a number, or a loss of pure epsilon."""
    exact = epsilon.exact if isinstance(epsilon, Epsilon) else exactly(epsilon, "epsilon")
    if exact < MIN_EPSILON:
        raise QuestionError("bad-loss", f"Nothing is learned from reports of epsilon below {float(MIN_EPSILON):g}.")
    return exact


def response(record: Record, epsilon: Fraction, method: str) -> tuple[str, Response]:
    """The randomiser of a method for a record, and the method's name: `auto` takes the one of least variance."""
    name = best(record.cells, epsilon) if method == AUTO else method
    if not isinstance(name, str) or name not in METHODS:
        raise QuestionError("bad-parameter", f"method is one of {', '.join((*METHODS, AUTO))}.")
    found = METHODS[name].of(record.sizes, epsilon)
    if isinstance(found, BitwiseResponse) and found.outcomes > 2**20:
        raise QuestionError("too-large", f"A record of {found.bits} bits is too long; 20 are the most.")
    return name, found


def best(cells: int, epsilon: Fraction) -> str:
    """The method whose rare values are estimated with the least variance; of nearly equals the shorter report.

    A report of oue has a bit for each value, so beyond a thousand values it is not taken, whatever it would gain.

    Accuracy: by the variances that `Collector.frequencies` tells: krr where K < 3e + 2, e = exp(epsilon) [WBLJ17].
    """
    e = math.exp(min(float(epsilon), 600.0))
    if cells < 3 * e + 2:
        return "krr"
    return "hadamard" if cells > MAX_AUTO_BITS or (e + 1) ** 2 <= 1.5 * 4 * e else "oue"
