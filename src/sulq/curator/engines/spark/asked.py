"""Tallies over the same rows as one job of a cluster: each partition gives its sums, which are added here."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sulq.curator.engines.batch import Stored
from sulq.curator.engines.group import assembled
from sulq.curator.engines.spark import chunks, work
from sulq.curator.engines.spark.numbers import added
from sulq.curator.engines.spark.prepared import Prepared
from sulq.curator.engines.spark.sent import nameless
from sulq.curator.engines.totals import saturate
from sulq.terms.engine import Groups, Tally
from sulq.terms.facts import Tables
from sulq.terms.kinds import Integers
from sulq.terms.shape import shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS: Final = 2  # for each core: so many there may always be
ROOM: Final = 2**25  # numbers that the tasks of a question may give, before they are added


def tasks(rows: int, sums: int, cores: int) -> int:
    """Into how many tasks a question is cut at most: each with a chunk or more, and their sums have room here.

    Fewer would be slower: partitions put together are worked on by anyone on their
    host, and whoever does not hold one is sent all its columns, asked for or not.
    """
    return max(min(rows // chunks.ROWS, ROOM // max(sums, 1)), TASKS * cores, 1)


class Job:
    """Some tallies over one table, or over rows made of its rows one by one."""

    def __init__(self, table: Prepared, tallies: Sequence[Tally], facts: Tables) -> None:
        self._table = table
        self._tallies = tallies
        self._over = tallies[0].over
        self._asking = work.Asking.of(nameless(tallies), facts)
        self._facts = facts

    def _rows(self, *, owned: bool) -> DataFrame:
        """The kept rows, no more columns than are looked at, where they lie unless that were too many tasks."""
        schema = self._table.facts.schema
        asked = chunks.wanted_columns(schema, work.looked_at(self._over, self._tallies), owned=owned)
        found = self._table.kept.select(*asked)
        cores = int(self._table.session.sparkContext.defaultParallelism)
        most = tasks(self._table.size, sum(tally.cells * tally.width for tally in self._tallies), cores)
        return found if self._table.parts <= most else found.coalesce(most)

    def sums(self) -> list[Integers]:
        """The exact sums of each tally, saturated."""
        rows = self._rows(owned=False)
        parts = rows.mapInArrow(functools.partial(work.fold, self._asking), work.SUMS).collect()
        sizes = [tally.cells * tally.width for tally in self._tallies]
        total = saturate(added(((bytes(part.lo), part.hi and bytes(part.hi)) for part in parts), sum(sizes)))
        ends = np.cumsum(sizes)[:-1]
        return [
            found.reshape(tally.cells, tally.width)
            for found, tally in zip(np.split(total, ends), self._tallies, strict=True)
        ]

    def groups(self, *, owned: bool) -> Groups:
        """The groups that occur, their sums, and how many people are in each."""
        (tally,) = self._tallies
        functions = importlib.import_module("pyspark.sql.functions")
        parts = self._rows(owned=owned).mapInArrow(functools.partial(work.group, self._asking), work.GROUPS)
        found = (
            parts.groupBy("k")
            .agg(
                functions.count_distinct("o").alias("people"),
                functions.sum("n").alias("rows"),
                functions.collect_list(
                    functions.when(functions.col("lo").isNotNull(), functions.struct("lo", "hi"))
                ).alias("sums"),
            )
            .collect()
        )
        sums = np.zeros((len(found), tally.width), dtype=np.int64)
        for i, row in enumerate(found):
            sums[i] = saturate(added(((bytes(part.lo), part.hi and bytes(part.hi)) for part in row.sums), tally.width))
        persons = np.array([row.people if owned else row.rows for row in found], dtype=np.int64)
        keys = [json.loads(row.k) for row in found]
        columns = [_column([key[i] for key in keys]) for i in range(len(tally.by))]
        return assembled([key.fn for key in tally.by], shape(self._over, self._facts).schema, columns, sums, persons)


def _column(cells: list[object]) -> Stored:
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return values, np.array([cell is None for cell in cells], dtype=np.bool_)
