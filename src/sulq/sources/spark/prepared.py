"""One table on the cluster: read to integers, bounded by person, packed, and kept for the questions to come."""

from __future__ import annotations

import contextlib
import functools
import importlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from sulq.answers import wire
from sulq.compile.statements.kept_table import names
from sulq.compile.statements.tally_functions import Needed
from sulq.errors import SetupError
from sulq.language.domain import Schema
from sulq.language.facts import TableFacts
from sulq.language.kinds import Integers
from sulq.language.privacy import Unit
from sulq.sources import cell_reading
from sulq.sources.cell_reading import Cell
from sulq.sources.decode import frames
from sulq.sources.decode.person import BLANKS, EXACT, FIGURES, WHO, Form, Person
from sulq.sources.duckdb.kept_rows import ORDER, TEXT
from sulq.sources.source import plain, whom
from sulq.sources.spark import chunks, work
from sulq.sources.tables import UNSURE, inexact, not_own, not_unique

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession

RANK: Final = "rank"
MAX_SELECTIONS: Final = 64  # of columns, that are remembered
MAX_SENT_BYTES: Final = 2**26  # of a public table, beside a question
_PROBED: Final[set[tuple[str, str]]] = set()  # applications whose executors have these versions


class Prepared:
    """A table's kept rows; before `prepare` only how they are read."""

    def __init__(self, rows: DataFrame, facts: TableFacts, unit: Unit, key: bytes) -> None:
        self.frame = rows
        self.facts = facts
        self.unit = unit
        self.owned = unit.column is not None
        self._cells, person = _cells(rows, facts.schema, unit)
        self.form: Form = "nothing" if person is None else person.form
        self._reading = work.CellReading.of(facts.schema, unit, key, self._cells, person)
        self._held: DataFrame | None = None
        self._kept: DataFrame | None = None
        self._folder: Path | None = None
        self._shared = False  # whether its chunks are kept beside other tables', by whoever holds those
        self._selected: dict[tuple[str, ...], DataFrame] = {}
        self._public: dict[tuple[str, ...], bytes | None] = {}
        self.size = 0  # of the kept rows, when they were prepared
        self.parts = 0  # the partitions they lie in

    @property
    def session(self) -> SparkSession:
        """The session its rows are in."""
        return self.frame.sparkSession

    @property
    def kept(self) -> DataFrame:
        """The kept rows in chunks."""
        if self._kept is None:
            raise LookupError("not prepared")
        return self._kept

    def check_executors(self) -> None:
        """Refuse executors that lack sulq, or have another version of it: they would read cells by other rules."""
        context = self.session.sparkContext
        known = (str(context.applicationId), work.VERSIONS)
        if known in _PROBED:
            return
        wide = max(int(context.defaultParallelism), 1)
        found, missing = set(), False
        try:
            probed = self.session.range(0, wide, 1, wide).mapInArrow(work.versions, "v string").collect()
            found = {str(row.v) for row in probed}
        except Exception as error:  # the text is looked at, and goes nowhere
            missing = "No module named" in str(error)
            if not missing:
                raise
        if missing or found != {work.VERSIONS}:
            theirs = "no sulq" if missing else ", ".join(sorted(found - {work.VERSIONS}))
            raise SetupError(
                "engine-not-available",
                f"The executors have {theirs[:200]}; here is {work.VERSIONS}.",
                "Install the same version of sulq with its packages on every node (docs/operate/spark.md).",
            )
        _PROBED.add(known)

    def _source(self) -> DataFrame:
        """The needed columns under names of our own, so that no name of the owner's is part of a plan (T71)."""
        offered = list(self.frame.columns)
        found = self.frame.toDF(*(f"s{i}" for i in range(len(offered))))
        person = [] if self.unit.column is None else [found[f"s{offered.index(self.unit.column)}"].alias(WHO)]
        return found.select(*(f"s{offered.index(name)}" for name in self._cells), *person)

    def _rows(self) -> DataFrame:
        """All rows as codes, with their persons: read once, where they are held."""
        if self._held is not None:
            return self._held
        layout, _ = chunks.rows_layout(self.facts.schema, owned=self.owned)
        return self._source().mapInArrow(functools.partial(work.read_rows, self._reading), layout)

    def hold(self) -> None:
        """Keep all rows as they are read now, so that what is checked is what is bounded and kept."""
        self._held = self._rows().persist(level())

    def let_go(self) -> None:
        """Keep them no longer."""
        rows, self._held = self._held, None
        with contextlib.suppress(Exception):  # a session that is gone holds nothing
            if rows is not None:
                rows.unpersist()

    def _named(self, column: str) -> DataFrame:
        """The codes `k` of a column, or the persons' texts, beside the persons' texts `u`, over all rows."""
        rows = self._rows()
        own = TEXT if column == self.unit.column else names(self.facts.schema)[column]
        return rows.select(rows[own].alias("k"), *([rows[TEXT]] if self.owned else [])).where("k IS NOT NULL")

    def check(self, tables: Mapping[str, Prepared]) -> None:
        """Refuse ids that are not exact, keys that are not unique and references to others' rows (SR15, SR25)."""
        table, key = self.facts.schema.table, self.facts.key
        if self.form in UNSURE and not self._source().where(_unfit(self.form)).isEmpty():
            raise inexact(table, self.unit.column or "", self.form)
        if key is not None and not self._named(key).groupBy("k").count().where("count > 1").isEmpty():
            not_unique(table, key)
        for column, name in self.facts.references:
            other = tables[name]
            theirs = other._named(other.facts.key or "").toDF("k", "w")  # noqa: SLF001 - another of its own kind
            if not self._named(column).join(theirs, "k").where(f"{TEXT} <> w").isEmpty():
                not_own(table, column, name)

    def heavy(self) -> Integers:
        """How many persons have more rows than are kept, and how many have not."""
        most = f"count > {self.unit.rows}"
        counts = (f"count_if({most})", f"count_if(NOT {most})")
        (row,) = self._rows().groupBy(TEXT).count().selectExpr(*counts).collect()
        return np.array([int(n) for n in row], dtype=np.int64)

    def packed(self, buckets: int = 0) -> DataFrame:
        """The rows in chunks, read and bounded when they are asked for; by buckets of persons, if any are named."""
        schema = self.facts.schema
        layout = chunks.layout(schema, owned=self.owned, bucketed=bool(buckets))
        pack = functools.partial(work.pack, wire.encode(schema))
        if self.owned:
            functions = importlib.import_module("pyspark.sql.functions")
            window = importlib.import_module("pyspark.sql.window").Window
            rows, whose = self._rows(), [TEXT]
            if buckets:
                rows = rows.withColumn(chunks.BUCKET, functions.expr(f"CAST(pmod(xxhash64({TEXT}), {buckets}) AS INT)"))
                rows, whose = rows.repartition(_parts(rows), chunks.BUCKET), [chunks.BUCKET, TEXT]
            ranked = functions.row_number().over(window.partitionBy(*whose).orderBy(ORDER))
            rows = rows.withColumn(RANK, ranked).where(f"{RANK} <= {self.unit.rows}")
            return rows.drop(TEXT, ORDER, RANK).mapInArrow(pack, layout)
        if self._held is not None:
            return self._held.mapInArrow(pack, layout)
        return self._source().mapInArrow(functools.partial(work.read_chunks, self._reading), layout)

    def prepare(self, *, where: Path | None, kept: DataFrame | None = None, buckets: int = 0) -> None:
        """Read, bound and pack the rows, every one of them now: what cannot be read stops the owner (T30).

        `kept`: its chunks, where they are kept beside those of other tables.
        """
        self._shared = kept is not None
        if kept is not None:
            self._kept = kept
        else:
            packed = self.packed(buckets)
            self._kept = packed.persist(level()) if where is None else self._written(packed, where)
        self._whole()
        self.size = int(self._kept.selectExpr(f"sum({chunks.COUNT})").collect()[0][0] or 0)
        self.parts = int(self._kept._jdf.rdd().getNumPartitions())  # noqa: SLF001 - Python's own door is a slow one

    def _whole(self) -> None:
        """Stop where kept rows are not as the kernel's facts say: cells, rows of a person, whole persons in a chunk."""
        functions = importlib.import_module("pyspark.sql.functions")
        counts = functions.sum("n").alias("rows"), functions.count("n").alias("chunks")
        more = self.holders().groupBy("o").agg(*counts)
        if not more.where(f"rows > {self.unit.rows} OR chunks > 1").isEmpty():
            raise SetupError("prepared-unusable", "Rows of a person were not kept together.", "Report this, please.")

    def holders(self) -> DataFrame:
        """Of each chunk its persons, how many rows each has, and the chunk's bucket; cells are looked at on the way."""
        asked = chunks.wanted_columns(self.facts.schema, Needed(self.facts.schema.names), owned=self.owned)
        bucket = [chunks.BUCKET] if chunks.BUCKET in self.kept.columns else []
        holders = functools.partial(work.holders, wire.encode(self.facts.schema))
        return self.kept.select(*bucket, *asked).mapInArrow(holders, work.HOLDERS)

    def _written(self, packed: DataFrame, where: Path) -> DataFrame:
        """Chunks as Parquet in a private folder; nodes that do not see one and the same folder are found out."""
        functions = importlib.import_module("pyspark.sql.functions")
        seen = importlib.import_module("pyspark.sql").Observation()
        where.mkdir(0o700, parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(suffix=".spark", dir=where))
        place = str(self._folder / "rows")
        packed.observe(seen, functions.sum(chunks.COUNT).alias(chunks.COUNT)).write.parquet(place)
        found = self.session.read.parquet(place)
        if found.selectExpr(f"sum({chunks.COUNT})").collect()[0][0] != seen.get[chunks.COUNT]:
            raise SetupError(
                "prepared-unusable", "The prepared rows could not be read back.", "Name a folder that all nodes see."
            )
        return found

    def forget(self) -> None:
        """Let go of the kept rows."""
        self.let_go()
        self._selected.clear()
        rows, self._kept = self._kept, None
        with contextlib.suppress(Exception):  # a session that is gone holds nothing
            if rows is not None and self._folder is None and not self._shared:
                rows.unpersist()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def whole(self, wanted: Needed | None = None) -> Iterator[pa.RecordBatch]:
        """All chunks; with all columns, unless some are named."""
        return self._counted(self.streamed(wanted or Needed(self.facts.schema.names)))

    def _counted(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        for chunk in found:
            rows += sum(chunk.column(chunks.COUNT).to_pylist())
            if self.facts.public and rows > self.size:  # read again after a loss: joins were bounded by fewer (SR15)
                raise LookupError("other rows")
            yield chunk

    def streamed(self, wanted: Needed, *, owned: bool | None = None) -> Iterator[pa.RecordBatch]:
        """Chunks one partition after the other."""
        yield from streamed(self.columns(wanted, owned=owned))

    def columns(self, wanted: Needed, *, owned: bool | None = None) -> DataFrame:
        """The chunks' columns that are looked at; Spark works out once what that is."""
        asked = tuple(chunks.wanted_columns(self.facts.schema, wanted, owned=self.owned if owned is None else owned))
        if asked not in self._selected:
            if len(self._selected) >= MAX_SELECTIONS:
                self._selected.clear()
            self._selected[asked] = self.kept.select(*asked)
        return self._selected[asked]

    def public(self, wanted: Needed) -> bytes | None:
        """All chunks of a public table, to be sent beside a question; None where they are too many."""
        asked = tuple(chunks.wanted_columns(self.facts.schema, wanted, owned=False))
        if asked not in self._public:
            batches, size = [], 0
            for chunk in self._counted(self.streamed(wanted)):
                batches.append(chunk)
                size += chunk.nbytes
                if size > MAX_SENT_BYTES:
                    break
            found = chunks.sent(pa.Table.from_batches(batches)) if batches and size <= MAX_SENT_BYTES else None
            self._public = {asked: found}  # the last alone: what it takes is bounded
        return self._public[asked]


def streamed(rows: DataFrame) -> Iterator[pa.RecordBatch]:
    """Chunks one partition after the other: what the driver's Java holds does not grow with the rows."""
    names = [str(name) for name in rows.columns]
    numbers = [name in (chunks.BUCKET, chunks.SIDE, chunks.COUNT) for name in names]
    for row in rows.toLocalIterator(prefetchPartitions=True):
        cells = [
            pa.array([cell], pa.int32()) if number else pa.array([None if cell is None else bytes(cell)], pa.binary())
            for number, cell in zip(numbers, row, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(cells, names=names)


def _parts(rows: DataFrame) -> int:
    """Into how many partitions this session cuts what it moves."""
    return int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _unfit(form: Form) -> str:
    """Whether a person cannot be told exactly, in Spark's words; NaN is the greatest of all numbers there."""
    if form == "figures":
        return f"NOT {WHO} RLIKE r'\\A[{BLANKS}]*(?:{FIGURES})?[{BLANKS}]*\\z'"
    return f"abs({WHO}) < double('inf') AND (abs({WHO}) >= {EXACT[form]} OR {WHO} <> floor({WHO}))"


def level() -> StorageLevel:
    """Where rows are kept: in memory, and on encrypted disk what has no place there."""
    return importlib.import_module("pyspark").StorageLevel.MEMORY_AND_DISK_DESER


def _cells(frame: DataFrame, schema: Schema, unit: Unit) -> tuple[dict[str, tuple[Cell, str]], Person | None]:
    """How each declared column of a frame is read, and the person; what is missing or of no known kind is refused."""
    offered = [str(name) for name in frame.columns]
    places = cell_reading.places(offered, schema, unit)
    fields = [frame.schema.fields[place] for place in places.values()]
    types = importlib.import_module("pyspark.sql.pandas.types")
    kinds = []
    for field in fields:
        kind, failed = None, False
        try:
            kind = types.to_arrow_type(field.dataType, timezone="UTC")
        except Exception:  # noqa: BLE001 - a type that Arrow does not know
            failed = True
        if failed or kind is None:
            raise SetupError(
                "bad-declaration",
                f"Column {field.name!r} of the data is of type {field.dataType.simpleString()[:80]}, "
                "which sulq does not read.",
            )
        kinds.append(kind)
    empty = pa.table([pa.array([], kind) for kind in kinds], names=[f"s{i}" for i in range(len(kinds))])
    known = list(places)
    who = None if unit.column is None else (unit.column, known.index(unit.column))
    _, read, named = frames.records(empty, {name: known.index(name) for name in schema.names}, who, unit.fold)
    return plain(read, schema), whom(named, schema, unit)
