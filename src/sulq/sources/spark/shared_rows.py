"""Tables of the same persons on the cluster, kept side by side: a partition holds all rows of its persons.

So what joins them by the person, or adds them up, is worked out beside the rows, one partition as any other, and moves
none of them. A partition is worked on bucket by bucket: none takes more memory than one bucket's rows.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sulq.compile.statements.tally_functions import Needed
from sulq.errors import SetupError
from sulq.sources.spark import chunks
from sulq.sources.spark.prepared import Prepared, level

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_BUCKETS: Final = 64


class SharedRows:
    """The kept rows of several tables of the same persons; in a folder they lie apart and meet for each question."""

    def __init__(self, tables: Sequence[Prepared]) -> None:
        self.tables = tuple(tables)
        self._held: DataFrame | None = None
        session = tables[0].session
        self.parts = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        self.buckets = self.parts * -(-LEAST_BUCKETS // self.parts)

    def prepare(self) -> dict[Prepared, DataFrame]:
        """Keep all tables' rows side by side, once they are read; each table's chunks among them."""
        packed = [table.packed(self.buckets) for table in self.tables]
        columns = [chunks.stored_names(table.facts.schema, owned=True) for table in self.tables]
        self._held = self._beside(packed, columns).persist(level())
        sides = enumerate(zip(self.tables, columns, strict=True))
        return {table: self._apart(self._held, side, names) for side, (table, names) in sides}

    def _beside(self, frames: Sequence[DataFrame], columns: Sequence[Sequence[str]]) -> DataFrame:
        """Chunks of several tables as rows of one frame, those of a bucket in one partition and one after the other."""
        every = [chunks.beside(side, name) for side, names in enumerate(columns) for name in names]
        found = []
        for side, (frame, names) in enumerate(zip(frames, columns, strict=True)):
            own = {chunks.beside(side, name): name for name in names}
            cells = [f"{own.get(name, 'CAST(NULL AS BINARY)')} AS {name}" for name in every]
            numbers = [chunks.BUCKET, f"{side} AS {chunks.SIDE}", chunks.COUNT]
            found.append(frame.selectExpr(*numbers, *cells))
        whole = functools.reduce(lambda one, other: one.unionAll(other), found)
        functions = importlib.import_module("pyspark.sql.functions")
        if hasattr(whole, "repartitionById"):  # from Spark 4.1 on; before, some partitions have two parts and some none
            cut = whole.repartitionById(self.parts, functions.expr(f"{chunks.BUCKET} % {self.parts}"))
        else:
            cut = whole.repartition(self.parts, functions.expr(f"{chunks.BUCKET} % {self.parts}"))
        return cut.sortWithinPartitions(chunks.BUCKET)

    @staticmethod
    def _apart(held: DataFrame, side: int, names: Sequence[str]) -> DataFrame:
        """One table's chunks among those of all."""
        own = held.where(f"{chunks.SIDE} = {side}")
        return own.selectExpr(
            chunks.BUCKET, chunks.COUNT, *(f"{chunks.beside(side, name)} AS {name}" for name in names)
        )

    def check(self) -> None:
        """Stop where a person's rows lie in two buckets, or a bucket's chunks in two partitions."""
        functions = importlib.import_module("pyspark.sql.functions")
        holders = functools.reduce(lambda one, other: one.unionAll(other), [table.holders() for table in self.tables])
        several = holders.groupBy("o").agg(functions.count_distinct(chunks.BUCKET).alias("n")).where("n > 1")
        amiss = not several.isEmpty()
        if not amiss and self._held is not None:
            places = self._held.select(chunks.BUCKET, functions.spark_partition_id().alias("p")).distinct()
            amiss = not places.groupBy(chunks.BUCKET).count().where("count > 1").isEmpty()
        if amiss:
            raise SetupError("prepared-unusable", "Rows of a person were not kept together.", "Report this, please.")

    def rows(self, wanted: Mapping[Prepared, Needed], *, owned: bool) -> DataFrame:
        """Chunks of some tables side by side, no more columns than are looked at."""
        columns = [
            chunks.wanted_columns(table.facts.schema, wanted[table], owned=owned)[1:] if table in wanted else []
            for table in self.tables
        ]
        if self._held is None:
            return self._beside([table.kept for table in self.tables], columns)
        sides = [str(side) for side, table in enumerate(self.tables) if table in wanted]
        names = [chunks.beside(side, name) for side, several in enumerate(columns) for name in several]
        few = (
            self._held if len(sides) == len(self.tables) else self._held.where(f"{chunks.SIDE} IN ({','.join(sides)})")
        )
        return few.select(chunks.BUCKET, chunks.SIDE, chunks.COUNT, *names)

    def forget(self) -> None:
        """Let go of the kept rows."""
        held, self._held = self._held, None
        if held is not None:
            held.unpersist()
