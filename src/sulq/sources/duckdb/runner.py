"""Where certified text runs in this process: statements and programs over one relation's kept rows, on one cursor."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, cast

import duckdb
import numpy as np

from sulq.compile.statements.column_demand import Needed
from sulq.compile.statements.kept_table import OWNER, PERSON, PLACE, KeptRows
from sulq.compile.statements.proposer import Proposer
from sulq.kernel import matrix
from sulq.kernel.private import Stored, Truths
from sulq.kernel.programs import Fold
from sulq.kernel.request import Scan, Statement
from sulq.language.domain import Schema
from sulq.language.kinds import Integers
from sulq.sources.duckdb import blas, results
from sulq.sources.duckdb.connection import cores
from sulq.sources.duckdb.resident import Resident
from sulq.sources.folds.batch import RowBatch

MAX_BATCH_ROWS: Final = 32_768  # ten numbers each stay near the cores; with fewer, two threads wait for the interpreter
MAX_PLAIN_CELLS: Final = 512  # so many cells are fetched as plain numbers, which costs less to set up than Arrow
WORKERS: Final = min(4, cores())
_log = logging.getLogger(__name__)


class CursorRunner:
    """Runs what is asked of one relation on one cursor."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        schema: Schema,
        rows: KeptRows,
        *,
        batch: int = MAX_BATCH_ROWS,
        resident: Resident | None = None,
    ) -> None:
        self.cursor = cursor
        self.schema = schema
        self.relation = rows
        self.batch = batch
        self.resident = resident  # where columns are kept in memory, if these rows are stored
        self.statements: list[str] = []

    def columns(self, statements: Sequence[Statement]) -> list[list[Stored]]:
        """The result of each statement as columns of whole numbers, Python's own of few cells or of 128 bits."""
        return [self._columns(statement) for statement in statements]

    def _columns(self, statement: Statement) -> list[Stored]:
        scan = statement.scan
        if sum(part.cells for part in statement.parts) > MAX_PLAIN_CELLS:
            return self.rows(scan)[0]
        rows = cast("list[tuple[int | None, ...]]", self._tuples(scan))
        columns = [[row[i] for row in rows] for i in range(len(self.cursor.description or ()))]
        return [(np.array([int(cell or 0) for cell in each], object), _missing(each)) for each in columns]

    def rows(self, scan: Scan) -> tuple[list[Stored], int]:
        """The columns of a statement's rows, and how many rows there are."""
        self.statements.append(scan.sql)
        table = results.table(self.cursor, scan.sql, scan.bound)
        return [results.numpy_column(column) for column in table.columns], table.num_rows

    def groups(self, asked: Statement) -> list[tuple[object, ...]]:
        """The rows of a statement whose groups are not listed in advance."""
        return self._tuples(asked.scan)

    def _tuples(self, scan: Scan) -> list[tuple[object, ...]]:
        self.statements.append(scan.sql)
        return self.cursor.execute(scan.sql, scan.bound).fetchall()

    def fold(self, asked: Fold) -> list[Integers]:
        """The sums of a program over its rows."""
        stored = asked.table == tuple(self.relation.relation.split("."))
        found = self._from_memory(self.resident, asked) if self.resident is not None and stored else None
        return self._streamed(asked) if found is None else found

    def _streamed(self, asked: Fold) -> list[Integers]:
        """Run a program over batches of its statement's rows."""
        self.statements.append(asked.sql)
        return run_program(asked, stream(self.cursor, asked, self.batch), workers=WORKERS)

    def _from_memory(self, resident: Resident, asked: Fold) -> list[Integers] | None:
        """Run a program over columns in memory; None where they are not there, or fail to be: that is no outcome."""
        try:
            with resident.read(self.cursor, self.schema, self.relation, asked, self.batch) as batches:
                return None if batches is None else run_program(asked, batches, workers=WORKERS)
        except Exception as error:  # noqa: BLE001 - how much memory is left depends on the rows; streaming does not (T30)
            _log.error("streamed: %s", type(error).__name__)
        resident.clear()
        return None


def _missing(cells: Sequence[object]) -> Truths:
    return np.array([cell is None for cell in cells], dtype=np.bool_)


def stream(cursor: duckdb.DuckDBPyConnection, asked: Fold, batch_rows: int) -> Iterable[matrix.Batch]:
    """The rows of a program's statement in batches, never whole in memory."""
    texts = Scan(asked.sql, asked.texts).bound
    return (matrix.Batch(size, cells) for cells, size in results.streamed(cursor, asked.sql, texts, batch_rows))


def run_program(asked: Fold, batches: Iterable[matrix.Batch], *, workers: int = 1) -> list[Integers]:
    """The sums of a program over batches of its rows; BLAS has one thread meanwhile."""
    with blas.one_thread() as alone:
        return matrix.fold(asked.program, batches, workers=workers if alone else 1)


def fetch(
    cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: KeptRows, wanted: Needed, *, owned: bool
) -> RowBatch:
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
    return RowBatch(schema, table.num_rows, stored, person=person, position=place, owner=numbers.get(OWNER))


def _whole(column: Stored) -> Stored:
    values, missing = column
    return (values if values.dtype == object else values.astype(np.int64)), missing
