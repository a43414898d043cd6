"""Where certified text runs in this process: statements and programs over one relation's kept rows, on one cursor."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import duckdb
import numpy as np

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import OWNER, PERSON, PLACE
from sulq.compile.statements.proposer import Proposer
from sulq.compile.statements.tally_functions import Needed
from sulq.kernel import matrix
from sulq.kernel.matrix import Batch, Kept, narrow, order, read, stored, vectors
from sulq.kernel.private import Stored, Truths
from sulq.kernel.programs import Box, Fold, Program, Stack, Step, box_of
from sulq.kernel.request import Scan, Statement
from sulq.language.domain import Schema, Text
from sulq.language.kinds import Integers
from sulq.language.rowfn.writer import KeptRows
from sulq.sources.duckdb.connection import arrow_table, cores, memory, numpy_column, one_thread, streamed
from sulq.sources.fold import RowBatch

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
        self.statements.append(scan.sql)
        rows: list[tuple[int | None, ...]] = self.cursor.execute(scan.sql, scan.bound).fetchall()
        columns = [[row[i] for row in rows] for i in range(len(self.cursor.description or ()))]
        return [(np.array([int(cell or 0) for cell in each], object), _missing(each)) for each in columns]

    def rows(self, scan: Scan) -> tuple[list[Stored], int]:
        """The columns of a statement's rows, and how many rows there are."""
        self.statements.append(scan.sql)
        table = arrow_table(self.cursor, scan.sql, scan.bound)
        return [numpy_column(column) for column in table.columns], table.num_rows

    def groups(self, asked: Statement) -> list[Stored]:
        """The columns of a statement whose groups are not listed in advance, in the order that the kernel sorts by."""
        self.statements.append(asked.scan.sql)
        table = arrow_table(self.cursor, asked.scan.sql, asked.scan.bound, range(asked.keys))
        return [numpy_column(column) for column in table.columns]

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
    return (matrix.Batch(size, cells) for cells, size in streamed(cursor, asked.sql, texts, batch_rows))


def run_program(asked: Fold, batches: Iterable[matrix.Batch], *, workers: int = 1) -> list[Integers]:
    """The sums of a program over batches of its rows; BLAS has one thread meanwhile."""
    with one_thread() as alone:
        return matrix.fold(asked.program, batches, workers=workers if alone else 1)


def fetch(
    cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: KeptRows, wanted: Needed, *, owned: bool
) -> RowBatch:
    """All rows of a relation in memory: what is wanted of them, and whose each row is."""
    proposer = Proposer(schema, rows)
    scan = proposer.emitter().scan(proposer.columns(rows.relation, wanted, owned=owned))
    table = arrow_table(cursor, scan.sql, scan.bound)
    found = [numpy_column(column) for column in table.columns]
    names = [name for name in schema.names if name in wanted.columns]
    beside = [name for name, asked in ((PERSON, wanted.person), (PLACE, wanted.place), (OWNER, owned)) if asked]
    stored: dict[str, Stored] = {name: _whole(column) for name, column in zip(names, found, strict=False)}
    numbers = {name: values for name, (values, _) in zip(beside, found[len(names) :], strict=False)}
    person, place = (numbers[name].astype(np.int64) if name in numbers else None for name in (PERSON, PLACE))
    return RowBatch(schema, table.num_rows, stored, person=person, position=place, owner=numbers.get(OWNER))


def _whole(column: Stored) -> Stored:
    values, missing = column
    return (values if values.dtype == object else values.astype(np.int64)), missing


MAX_RESIDENT_BYTES: Final = 2**30
MEMORY_SHARE: Final = 4  # of an engine's memory one part in so many is for columns kept here
READ_ROWS: Final = 65_536  # rows read at a time
MAX_MET_VECTORS: Final = 256  # names of vectors remembered, to keep in memory those that come again
BYTES: Final = {"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8}


def limit() -> int:
    """How many bytes of columns one engine keeps: a gibibyte, or less where its memory is small."""
    return min(MAX_RESIDENT_BYTES, (memory() << 20) // MEMORY_SHARE)


@dataclass
class _Ask:
    """One ask under way: when it began, what it has room for beside what is held, and what it uses of that."""

    age: int
    taken: int = 0
    used: set[tuple[str, str]] = field(default_factory=set)


class Resident:
    """Columns of an engine's tables and vectors made of them, those not used for longest let go of first.

    What is held, and what asks under way have room for, never pass the limit together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[tuple[str, str], Kept] = {}
        self._numbers: dict[str, int] = {}  # of the rows of each table, which stay as they are
        self._taken = 0  # bytes that asks under way have room for
        self._used: Counter[tuple[str, str]] = Counter()  # what they use of what is held: it is not let go of
        self._age = 0  # how often everything was let go of: whoever began before keeps nothing
        self._met: dict[tuple[str, str], None] = {}  # vectors that were asked for, the last at the end
        self._lock = threading.Lock()  # of the fields above, never while rows are read
        self._reading = threading.Lock()  # of asks that come at once, one reads a column

    def clear(self, *, for_good: bool = False) -> None:
        """Let go of everything, and of what a fold under way is making; for good: and of all that comes after."""
        with self._lock:
            self._held.clear()
            self._numbers.clear()
            self._age += 1
            self._most = -1 if for_good else self._most

    @contextlib.contextmanager
    def read(
        self, cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: KeptRows, fold: Fold, size: int
    ) -> Iterator[Iterator[Batch] | None]:
        """What a program over a stored table looks at, in batches; None where it is to be streamed."""
        ask = _Ask(self._age)
        try:
            whole = self._whole(ask, cursor, schema, rows, fold.program)
            yield None if whole is None else whole.parts(size)
        finally:
            with self._lock:
                self._taken -= ask.taken
                self._used -= Counter(ask.used)

    def _whole(
        self, ask: _Ask, cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: KeptRows, program: Program
    ) -> Batch | None:
        """The columns that are wanted and the vectors, which are kept for those who come after; None: no room."""
        count, names = self._number(cursor, rows.relation), named(program)
        boxes = {i: box_of(step) for i, step in enumerate(program.steps) if isinstance(step, Stack)}
        made = {i: known for i in boxes if (known := self._find(ask, rows, names[i])) is not None}
        wanted = needed(program, made)
        widths = _widths(schema, rows, [name for i, name in enumerate(program.columns) if i in wanted])
        absent = [name for name in widths if self._find(ask, rows, name) is None]
        if not self._take(ask, count * sum(widths[name] for name in absent)):
            return None
        columns = self._columns(ask, cursor, rows, list(widths))
        given = [columns.get(name) for name in program.columns]
        for i in set(boxes) & set(order(program, made)) - set(made):  # what no sum looks at has no columns here
            if _lasting(program, i) and self._again(rows, names[i]) and self._take(ask, size(boxes[i], count)):
                made[i] = vectors(program, i, _path(rows), count, given)
        self._keep(ask, {(rows.relation, names[i]): each for i, each in made.items()})
        return stored(_path(rows), count, given, made)

    def _number(self, cursor: duckdb.DuckDBPyConnection, relation: str) -> int:
        """How many rows a table has: it says how much memory they take, and is written into no question."""
        if relation not in self._numbers:
            self._numbers[relation] = int(cursor.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0])
        return self._numbers[relation]

    def _columns(
        self, ask: _Ask, cursor: duckdb.DuckDBPyConnection, rows: KeptRows, names: list[str]
    ) -> dict[str, Kept]:
        """Columns by name, read if need be."""
        known = {name: self._find(ask, rows, name) for name in names}
        if None in known.values():
            with self._reading:
                known = {name: self._find(ask, rows, name) for name in names}  # another may have read it meanwhile
                absent = [name for name, column in known.items() if column is None]
                if absent:
                    count = self._number(cursor, rows.relation)
                    known |= read(lambda text: streamed(cursor, text, {}, READ_ROWS), _path(rows), absent, count)
                self._keep(ask, {(rows.relation, name): cast("Kept", column) for name, column in known.items()})
        return cast("dict[str, Kept]", known)

    def _find(self, ask: _Ask, rows: KeptRows, name: str) -> Kept | None:
        """What is held already; it stays until this ask is over."""
        key = (rows.relation, name)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._uses(ask, key)
            return found

    def _again(self, rows: KeptRows, name: str) -> bool:
        """Whether a vector was asked for before: one about a noisy mean never comes again."""
        key = (rows.relation, name)
        with self._lock:
            known = key in self._met
            self._met.pop(key, None)
            self._met[key] = None
            if len(self._met) > MAX_MET_VECTORS:
                del self._met[next(iter(self._met))]
        return known

    def _uses(self, ask: _Ask, key: tuple[str, str]) -> None:
        self._used[key] += key not in ask.used
        ask.used.add(key)

    def _take(self, ask: _Ask, size: int) -> bool:
        """Make room for more by letting go of what was not used for longest; whether there is any."""
        with self._lock:
            held = sum(_bytes(item) for item in self._held.values())
            for key in list(self._held):
                if held + self._taken + size > self._most and not self._used[key]:
                    held -= _bytes(self._held.pop(key))
            fits = held + self._taken + size <= self._most
            self._taken += size * fits
            ask.taken += size * fits
        return fits

    def _keep(self, ask: _Ask, used: Mapping[tuple[str, str], Kept]) -> None:
        """Put what was used last; room that was taken for it is then held. Not where all was let go of meanwhile."""
        with self._lock:
            if ask.age != self._age:
                return
            for key, item in used.items():
                size = 0 if self._held.pop(key, None) is item else min(_bytes(item), ask.taken)
                self._held[key] = item
                self._taken -= size
                ask.taken -= size
                self._uses(ask, key)


def _lasting(program: Program, place: int) -> bool:
    """Whether a vector is of columns alone, so that others ask for it too: weights and centres change with each ask."""
    front, stack = list(program.steps[place].of), cast("Stack", program.steps[place])
    while front:
        step = program.steps[front.pop()]
        if isinstance(step, Stack) or step.name == "least":
            return False
        front += step.of
    summed = [
        each.of for each in program.sums if each.kind == "products" or (each.kind == "vectors" and len(stack.units) > 1)
    ]
    return place in summed or any(place in step.of for step in program.steps)


def _bytes(kept: Kept) -> int:
    """How much memory a column or a vector takes."""
    return kept.values.nbytes + (0 if kept.missing is None else kept.missing.nbytes)


def size(box: Box, count: int) -> int:
    """How many bytes the vectors of all rows take."""
    return count * (len(box.low) + 1) * narrow(box).itemsize


def needed(program: Program, ready: Collection[int]) -> set[int]:
    """The places of the columns that are looked at where some vectors are known already."""
    steps = (program.steps[place] for place in order(program, ready))
    return {step.given[0] for step in steps if isinstance(step, Step) and step.name in ("column", "missing")}


def named(program: Program) -> list[str]:
    """What each step is, by the names of columns and by what it is worked out of: equal names, equal values."""
    found: list[str] = []
    for step in program.steps:
        if isinstance(step, Stack):
            units = tuple((unit.low, unit.high, unit.scale) for unit in step.units)
            said = repr((units, step.missing is None, step.l1, step.ball, step.shorten))
        elif step.name in ("column", "missing"):
            said = f"{step.name} {program.columns[step.given[0]]}"
        else:
            said = repr((step.name, step.given))
        digest = hashlib.sha256(repr((said, *(found[place] for place in step.of))).encode()).hexdigest()
        found.append(f"{'vector' if isinstance(step, Stack) else 'step'} {digest}")
    return found


def _path(rows: KeptRows) -> tuple[str, ...]:
    return tuple(rows.relation.split("."))


def _widths(schema: Schema, rows: KeptRows, wanted: Sequence[str]) -> dict[str, int]:
    """How many bytes a cell of each stored column takes at most."""
    known = {rows.names[name]: column for name, column in schema.columns if not isinstance(column, Text)}
    stored = {name: BYTES[kept_table.smallest(known[name])] if name in known else BYTES["BIGINT"] for name in wanted}
    return {name: width + 1 for name, width in stored.items()}
