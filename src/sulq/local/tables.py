"""A question as numbers on the cells of a record: what the reports can answer, or a refusal with its code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Cells, Code, Floats, Grid, Integers, Truths
from sulq.language.question import Question, Sums
from sulq.language.relation import Table
from sulq.language.rowfn import Bucket, Each, Position, RowFn
from sulq.language.rowfn.base import condition, evaluate, numbers, truths
from sulq.language.rowfn.vectors import bounded, scalar_grid, to_grid, vector_cells
from sulq.language.tally import Block, Key, Tally
from sulq.local.record import Record

MAX_NUMBERS: Final = 2**24
_REMEDY: Final = "Ask sums of the reported columns, filtered and partitioned by them."


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
    _local(question.parts())
    domain = DomainRows(record)
    keys = tuple(_key(fn, record) for fn in question.by)
    cells = math.prod(len(key.labels) for key in keys)
    blocks = tuple(_block(fn, record) for fn in question.values)
    if record.cells * cells * sum(block.width for block in blocks) > MAX_NUMBERS:
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


def _local(front: list[RowFn]) -> None:
    while front:
        if any(isinstance(fn, (Bucket, Position)) for fn in front):
            _refuse("A report says neither who sent it nor where it stood.")
        front = [part for fn in front for part in fn.parts()]


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
