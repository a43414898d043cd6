"""Tallies asked of DuckDB: what is proposed is run, and what SQL does not sum is folded over batches in one pass."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

import duckdb
import numpy as np

from sulq.answers import wire
from sulq.compile.statements.column_demand import Needed
from sulq.compile.statements.kept_table import OWNER, PERSON, PLACE, Rows
from sulq.compile.statements.proposal import Fetch, Fetched
from sulq.compile.statements.proposer import Proposer, open_blocks
from sulq.kernel import matrix
from sulq.kernel.layout import Sums, groups_of, joined, summed
from sulq.kernel.private import Stored, Truths
from sulq.kernel.programs import Fold
from sulq.kernel.request import Proposal, Scan, Statement
from sulq.language.domain import Schema
from sulq.language.kinds import Integers
from sulq.language.tally import Groups, Tally
from sulq.sources.duckdb import results
from sulq.sources.duckdb.connection import cores
from sulq.sources.duckdb.resident import Resident
from sulq.sources.folds import blas
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.fold import fold_all
from sulq.sources.folds.open_groups import in_order

BATCH: Final = 32_768  # rows of ten numbers stay near the cores; with fewer, two threads wait for the interpreter
FEW: Final = 512  # so many cells are fetched as plain numbers, which costs less to set up than Arrow
WORKERS: Final = min(4, cores())
_log = logging.getLogger(__name__)


class Question:
    """Tallies over one relation on one cursor."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        schema: Schema,
        rows: Rows,
        *tallies: Tally,
        batch: int = BATCH,
        resident: Resident | None = None,
    ) -> None:
        self.cursor = cursor
        self.schema = schema
        self.rows = rows
        self.tallies = tallies
        self.batch = batch
        self.resident = resident  # where columns are kept in memory, if these rows are stored
        self.statements: list[str] = []

    def sums(self, proposal: Proposal) -> list[Integers]:
        """The exact sums of each tally, saturated, by what was proposed."""
        found = summed(proposal, self)
        return joined(proposal, found | self._fetched(proposal.fetch) if isinstance(proposal, Fetched) else found)

    def labelled(self, asked: Statement) -> Groups:
        """The groups that occur, in the order of their labels."""
        (tally,) = self.tallies
        return in_order([key.fn for key in tally.by], self.schema, groups_of(asked, self.groups(asked)))

    def columns(self, statements: Sequence[Statement]) -> list[list[Stored]]:
        """The result of each statement as columns of whole numbers, Python's own of few cells or of 128 bits."""
        return [self._columns(statement) for statement in statements]

    def _columns(self, statement: Statement) -> list[Stored]:
        scan = statement.scan
        if sum(part.cells for part in statement.parts) > FEW:
            self.statements.append(scan.sql)
            return [results.numpy_column(column) for column in results.table(self.cursor, scan.sql, scan.bound).columns]
        rows = cast("list[tuple[int | None, ...]]", self._rows(scan))
        columns = [[row[i] for row in rows] for i in range(len(self.cursor.description or ()))]
        return [(np.array([int(cell or 0) for cell in each], object), _missing(each)) for each in columns]

    def groups(self, asked: Statement) -> list[tuple[object, ...]]:
        """The rows of a statement whose groups are not listed in advance."""
        return self._rows(asked.scan)

    def _rows(self, scan: Scan) -> list[tuple[object, ...]]:
        self.statements.append(scan.sql)
        return self.cursor.execute(scan.sql, scan.bound).fetchall()

    def fold(self, asked: Fold) -> list[Integers]:
        """The sums of a program over its rows."""
        stored = asked.table == tuple(self.rows.relation.split("."))
        found = self._from_memory(self.resident, asked) if self.resident is not None and stored else None
        return self._streamed(asked) if found is None else found

    def _fetched(self, fetch: Fetch) -> Sums:
        """The sums of blocks that no program sums, folded over batches of just the columns they need."""
        tallies = open_blocks(self.tallies, fetch.blocks)
        tallies = [replace(tally, where=None) for tally in tallies] if fetch.filtered else tallies
        self.statements.append(fetch.scan.sql)
        folded = fold_all(tallies, self.schema, self._stream(fetch), workers=WORKERS)
        parts: list[Integers] = []
        for tally, sums in zip(tallies, folded, strict=True):
            parts += np.split(sums, np.cumsum([block.width for block in tally.blocks])[:-1], axis=1)
        return dict(zip(fetch.blocks, parts, strict=True))

    def _streamed(self, asked: Fold) -> list[Integers]:
        """Run a program over batches of its statement's rows."""
        self.statements.append(asked.sql)
        texts = Scan(asked.sql, asked.texts).bound
        batches = (
            matrix.Batch(size, cells) for cells, size in results.streamed(self.cursor, asked.sql, texts, self.batch)
        )
        return _run(asked, batches)

    def _from_memory(self, resident: Resident, asked: Fold) -> list[Integers] | None:
        """Run a program over columns in memory; None where they are not there, or fail to be: that is no outcome."""
        try:
            with resident.read(self.cursor, self.schema, self.rows, asked, self.batch) as batches:
                return None if batches is None else _run(asked, batches)
        except Exception as error:  # noqa: BLE001 - how much memory is left depends on the rows; streaming does not (T30)
            _log.error("streamed: %s", type(error).__name__)
        resident.clear()
        return None

    def _stream(self, fetch: Fetch) -> Iterator[Batch]:
        names = fetch.columns
        for columns, size in results.streamed(self.cursor, fetch.scan.sql, fetch.scan.bound, self.batch):
            stored: dict[str, Stored] = dict(zip(names, columns, strict=False))
            rest = [values.astype(np.int64) for values, _ in columns[len(names) :]]
            yield Batch(
                self.schema,
                size,
                stored,
                person=rest[0] if fetch.person else None,
                position=rest[-1] if fetch.place else None,
            )


def _missing(cells: Sequence[object]) -> Truths:
    return np.array([cell is None for cell in cells], dtype=np.bool_)


def _run(asked: Fold, batches: Iterable[matrix.Batch]) -> list[Integers]:
    with blas.one_thread() as alone:
        return matrix.fold(asked.program, batches, workers=WORKERS if alone else 1)


def alike(tallies: Sequence[Tally]) -> list[list[int]]:
    """The places of tallies over the same relation."""
    found: dict[str, list[int]] = {}
    for i, tally in enumerate(tallies):
        found.setdefault(wire.encode(tally.over), []).append(i)
    return list(found.values())


def fetched(cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: Rows, wanted: Needed, *, owned: bool) -> Batch:
    """All rows of a relation in memory: what is wanted of them, and whose each row is."""
    proposer = Proposer(schema, rows)
    scan = proposer.emitter().scan(proposer.columns(rows.relation, wanted, owned=owned))
    table = results.table(cursor, scan.sql, scan.bound)
    found = [results.numpy_column(column) for column in table.columns]
    names = [name for name in schema.names if name in wanted.columns]
    beside = [name for name, asked in ((PERSON, wanted.person), (PLACE, wanted.place), (OWNER, owned)) if asked]
    stored: dict[str, Stored] = {name: _whole(column) for name, column in zip(names, found, strict=False)}
    numbers = {name: values for name, (values, _) in zip(beside, found[len(names) :], strict=False)}
    person, place = (numbers[name].astype(np.int64) if name in numbers else None for name in (PERSON, PLACE))
    return Batch(schema, table.num_rows, stored, person=person, position=place, owner=numbers.get(OWNER))


def _whole(column: Stored) -> Stored:
    values, missing = column
    return (values if values.dtype == object else values.astype(np.int64)), missing
