"""Estimates from reports: a question as numbers on the cells of a record, and for each method the way back to counts.

This half sees reports alone: a mistake here can cost accuracy and never privacy (S0.29). Every method's estimate of a
sum of f over the people is a sum over reports of a number A(report) whose mean is f(x) for a person of cell x; `spread`
has the variance of A for each x. What reports cannot answer is refused with its code.

Accuracy: unbiased, with exactly these variances [S4.19]; in closed form for one value in docs/theory/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.language.kinds import Cells, Code, Floats, Grid, Integers, Truths
from sulq.language.question import Question, Sums
from sulq.language.relation import Table
from sulq.language.rowfn import Bucket, Each, Position, RowFn
from sulq.language.rowfn.base import condition, evaluate, numbers, truths, walk
from sulq.language.rowfn.vectors import bounded, scalar_grid, to_grid, vector_cells
from sulq.language.tally import Block, Key, Tally
from sulq.local.methods import BitwiseResponse, HadamardResponse, KaryResponse, Response, UnaryResponse
from sulq.local.record import Record

MAX_TABLE_NUMBERS: Final = 2**24
_REMEDY: Final = "Ask sums of the reported columns, filtered and partitioned by them."


class Inversion:
    """What a collector does with the reports of one method: p and q are those of `response.probabilities`."""

    def __init__(self, response: Response) -> None:
        p, q = response.probabilities
        self._outcomes = response.outcomes
        self._p, self._q, self._gap = float(p), float(q), float(p - q)

    def tally(self, reports: npt.NDArray[Any]) -> Integers:
        """All that estimates need of reports, how often each was given; tallies of different people add up."""
        return np.bincount(reports, minlength=self._outcomes)

    def counts(self, tally: Integers, reports: int) -> Floats:
        """Unbiased estimates of how many people are in each cell: (c - q n)/(p - q) for one reported c times."""
        return (tally.astype(np.float64) - self._q * reports) / self._gap

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """Of a function a column: the variance of A for each cell, and how far a summand may be from its mean."""
        raise NotImplementedError


class KaryInversion(Inversion):
    """A(y) = (f(y) - q sum f)/(p - q)."""

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """From the first two moments of f(y), y the reported cell."""
        first = self._q * table.sum(axis=0) + self._gap * table
        second = self._q * (table**2).sum(axis=0) + self._gap * table**2
        values = (table - self._q * table.sum(axis=0)) / self._gap
        return np.maximum(second - first**2, 0.0) / self._gap**2, _apart(values, table)


class UnaryInversion(Inversion):
    """A(b) = sum over cells v of f(v) (b_v - q)/(1/2 - q): bits are independent, and each is a summand."""

    def tally(self, reports: npt.NDArray[Any]) -> Integers:
        """How often each bit was set."""
        return np.asarray(reports.astype(np.bool_, copy=False).sum(axis=0, dtype=np.int64))

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """The own bit has variance 1/4, every other q(1 - q)."""
        squares = table**2
        lies = self._q * (1 - self._q)
        variances = (lies * (squares.sum(axis=0) - squares) + squares / 4) / self._gap**2
        return np.maximum(variances, 0.0), np.abs(table).max(axis=0) * (1 - self._q) / self._gap


class HadamardInversion(Inversion):
    """A(y) = W(y)/(2p - 1), W the Walsh-Hadamard transform of f, whose cells are numbered from 1."""

    def __init__(self, response: HadamardResponse) -> None:
        super().__init__(response)
        self._cells = response.cells

    def counts(self, tally: Integers, reports: int) -> Floats:
        """One transform for all cells: the sum of signs of a cell's row, over 2p - 1."""
        signs = transformed(tally.astype(np.float64)[:, None])[:, 0]
        return signs[1 : self._cells + 1] / self._gap

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """A place has probability (1 + (2p - 1) sign)/2^m, so the mean square is two terms of a transform."""
        rows = np.zeros((self._outcomes, table.shape[1]))
        rows[1 : self._cells + 1] = table
        values = transformed(rows)
        squares = transformed(values**2) / self._outcomes
        second = squares[0] + self._gap * squares[1 : self._cells + 1]
        return np.maximum(second / self._gap**2 - table**2, 0.0), _apart(values / self._gap, table)


class BitwiseInversion(Inversion):
    """A = f with every bit's flip undone: (1/(p - q)) ((p, -q), (-q, p)) along each bit."""

    def __init__(self, response: BitwiseResponse) -> None:
        super().__init__(response)
        self._bits = response.bits
        self._written = response.written(np.arange(math.prod(response.sizes), dtype=np.int64))

    def counts(self, tally: Integers, reports: int) -> Floats:
        """The flips undone, at the words that are records."""
        return np.asarray(self._undone(tally.astype(np.float64)[:, None])[self._written, 0])

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """The mean square for a cell is the square as the flips would mix it."""
        rows = np.zeros((self._outcomes, table.shape[1]))
        rows[self._written] = table
        values = self._undone(rows)
        second = _along(values**2, self._bits, self._p, self._q)[self._written]
        return np.maximum(second - table**2, 0.0), _apart(values, table)

    def _undone(self, rows: Floats) -> Floats:
        return _along(rows, self._bits, self._p / self._gap, -self._q / self._gap)


def inversion(response: Response) -> Inversion:
    """The inversion of a randomiser."""
    match response:
        case KaryResponse():
            return KaryInversion(response)
        case BitwiseResponse():
            return BitwiseInversion(response)
        case UnaryResponse():
            return UnaryInversion(response)
        case HadamardResponse():
            return HadamardInversion(response)


def transformed(rows: Floats) -> Floats:
    """The Walsh-Hadamard transform of each column: signs (-1)^(bits in common), added up."""
    return _along(rows, rows.shape[0].bit_length() - 1, 1.0, 1.0, -1.0)


def _along(rows: Floats, bits: int, same: float, other: float, last: float | None = None) -> Floats:
    """The matrix ((same, other), (other, last or same)) applied along every bit of the rows' numbers."""
    last = same if last is None else last
    found, width = rows, rows.shape[1]
    for place in range(bits):
        pairs = found.reshape(-1, 2, 2**place * width)
        mixed = np.empty_like(pairs)
        mixed[:, 0] = same * pairs[:, 0] + other * pairs[:, 1]
        mixed[:, 1] = other * pairs[:, 0] + last * pairs[:, 1]
        found = mixed.reshape(rows.shape)
    return found


def _apart(values: Floats, table: Floats) -> Floats:
    """The farthest that A of any report lies from f of any cell."""
    return np.asarray(np.maximum(values.max(axis=0) - table.min(axis=0), table.max(axis=0) - values.min(axis=0)))


def shaped(reports: object, randomiser: Response) -> npt.NDArray[Any]:
    """Reports as a collector takes them: whole numbers below `outcomes`, or rows of truth values; else refused."""
    found = np.asarray(reports)
    wide = randomiser.shape
    if found.shape == wide:
        found = found[None]
    good = found.dtype.kind in "biu" and found.shape[1:] == wide and found.ndim == 1 + len(wide)
    limit = 2 if wide else randomiser.outcomes
    if not good or (found.size and not (int(found.min()) >= 0 and int(found.max()) < limit)):
        kind = f"rows of {wide[0]} truth values" if wide else f"whole numbers below {limit:,}"
        raise QuestionError("bad-reports", f"These are no reports of this method: they are {kind}.")
    return found


class DomainRows:
    """All cells of a record as a batch of rows: a row function's meaning on them is all there is to know of it."""

    def __init__(self, record: Record) -> None:
        self.schema = record.schema
        self.size = record.cells
        self.seen: dict[int, Cells] = {}
        grid = np.indices(record.sizes).reshape(len(record.sizes), -1)
        self._codes = {
            name: codes.astype(np.int64) + column.low  # type: ignore[union-attr]  # no record holds free text
            for (name, column), codes in zip(record.schema.columns, grid, strict=True)
        }

    def codes(self, name: str) -> Cells:
        """A column's values in grid units; none is missing."""
        return Cells(self._codes[name], None)

    def person(self) -> Integers:
        """Nobody: a report does not say whose it is."""
        _refuse("A report does not say who sent it.")

    def position(self) -> Integers:
        """Nowhere: reports have no order."""
        _refuse("Reports have no places.")


@dataclass(frozen=True, slots=True, eq=False)
class CellTables:
    """One question: its exact sums, were they known, and for each value the numbers a cell adds to them."""

    tally: Tally
    tables: tuple[Floats, ...]  # a block each: (record's cells, answer's cells x width), in the block's own measure


def cell_tables(question: Question, record: Record) -> CellTables:
    """Work out a question's tables, or refuse it: only sums over the records themselves can be estimated (SR19)."""
    if not isinstance(question, Sums):
        _refuse("Reports answer sums and nothing else.")
    if not isinstance(question.over, Table) or question.over.name not in ("", record.schema.table):
        _refuse("Reports are one table, without joins and derived rows.")
    if any(isinstance(fn, (Bucket, Position)) for fn in walk(*question.parts())):
        _refuse("A report says neither who sent it nor where it stood.")
    domain = DomainRows(record)
    keys = tuple(_key(fn, record) for fn in question.by)
    cells = math.prod(len(key.labels) for key in keys)
    blocks = tuple(_block(fn, record) for fn in question.values)
    if record.cells * cells * sum(block.width for block in blocks) > MAX_TABLE_NUMBERS:
        raise QuestionError("too-large", "The answer would hold too many numbers for so many kinds of records.")
    place, here = _placed(question, keys, domain)
    spot = np.arange(record.cells)
    tables = []
    for block in blocks:
        units, missing = _units(block, domain)
        table = np.zeros((record.cells, cells, block.width))
        counted = here if missing is None else here & ~missing
        table[spot[counted], place[counted]] = units[counted] * float(block.step)
        tables.append(table.reshape(record.cells, -1))
    return CellTables(Tally(question.over, blocks, question.where, keys, cells), tuple(tables))


def _key(fn: RowFn, record: Record) -> Key:
    kind = fn.kind(record.schema)
    if isinstance(kind, Code):
        return Key(fn, kind.labels)
    each = Each(fn)
    return Key(each, each.kind(record.schema).labels)


def _block(fn: RowFn, record: Record) -> Block:
    kind = fn.kind(record.schema)
    if isinstance(kind, Grid):
        return Block(fn, kind.step, kind.low, kind.high, vector=True)
    lo, hi, number = bounded(fn, record.schema)
    step, low, high = scalar_grid(lo, hi, number.step)
    return Block(fn, step, (low,), (high,), vector=False)


def _placed(question: Sums, keys: tuple[Key, ...], domain: DomainRows) -> tuple[Integers, Truths]:
    """The cell of the answer each record counts in, and whether it counts at all."""
    place = np.zeros(domain.size, dtype=np.int64)
    here = np.ones(domain.size, dtype=np.bool_)
    if question.where is not None:
        condition(question.where, domain.schema)
        value, missing = truths(question.where, domain)
        here &= value if missing is None else value & ~missing
    for key in keys:
        found = evaluate(key.fn, domain)
        here &= True if found.missing is None else ~found.missing
        codes = np.where(here, found.values.astype(np.int64), 0)
        place = place * len(key.labels) + codes
    return place, here


def _units(block: Block, domain: DomainRows) -> tuple[Integers, Truths | None]:
    if block.vector:
        return vector_cells(block.fn, domain)
    values, missing = numbers(block.fn, domain)
    return to_grid(values, block.step, block.low[0], block.high[0])[:, None], missing


def _refuse(why: str) -> NoReturn:
    raise QuestionError("not-estimable", why, _REMEDY)
