"""Tallies over the same rows as one job of a cluster: each partition gives its sums, which are added here."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from sulq.compile.statements.column_demand import Needed
from sulq.kernel.programs import Fold
from sulq.kernel.request import Scan
from sulq.language.facts import Tables
from sulq.language.kinds import Integers
from sulq.language.tally import Tally
from sulq.sources.spark import chunks, statements, work
from sulq.sources.spark.prepared import Prepared

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
        self._facts = facts

    def _rows(self, *, owned: bool, wanted: Needed | None = None) -> DataFrame:
        """The kept rows, no more columns than are looked at, where they lie unless that were too many tasks."""
        schema = self._table.facts.schema
        looked = work.looked_at(self._over, self._tallies) if wanted is None else wanted
        asked = chunks.wanted_columns(schema, looked, owned=owned)
        found = self._table.kept.select(*asked)
        cores = int(self._table.session.sparkContext.defaultParallelism)
        most = tasks(self._table.size, sum(tally.cells * tally.width for tally in self._tallies), cores)
        return found if self._table.parts <= most else found.coalesce(most)

    def stated(self, scans: Sequence[Scan], name: str, *, wanted: Needed, owned: bool) -> list[list[pa.Table]]:
        """The results of statements over the table by its name, of each one for each partition that has rows."""
        stated = work.Stated.of(scans, name, self._table.facts.schema, owned=self._table.owned)
        rows = self._rows(owned=owned, wanted=wanted)
        found: list[list[pa.Table]] = [[] for _ in scans]
        for part in rows.mapInArrow(functools.partial(work.state, stated), work.RESULTS).collect():
            found[part.i].append(statements.received(bytes(part.r)))
        return found

    def folded(self, asked: Fold, name: str, *, wanted: Needed, owned: bool) -> list[list[Integers]]:
        """The sums of a program over the table by its name, of each partition that has rows."""
        schema, width = self._table.facts.schema, len(asked.program.sums)
        told = work.Programmed.of(asked, name, schema, owned=self._table.owned)
        rows = self._rows(owned=owned, wanted=wanted)
        found: list[list[Integers]] = [[] for _ in range(width)]
        for part in rows.mapInArrow(functools.partial(work.fold, told), work.RESULTS).collect():
            cells = asked.program.sums[part.i].cells
            found[part.i].append(np.frombuffer(part.r, "<i8").reshape(cells, -1))
        return [list(each) for each in zip(*found, strict=True)]
