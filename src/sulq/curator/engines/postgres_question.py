"""Tallies asked of PostgreSQL: what its SQL can sum is summed there, the rest is folded over pages of the copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import psycopg

from sulq.curator.engines.batch import Batch, Stored
from sulq.curator.engines.emit import Emitter
from sulq.curator.engines.fold import fold_all
from sulq.curator.engines.kept import Rows
from sulq.curator.engines.needed import Needed, needed
from sulq.curator.engines.postgres_emit import PostgresEmitter
from sulq.curator.engines.postgres_read import Reader, by_pages
from sulq.curator.engines.proposal import Fetch, Scan, columns_of
from sulq.curator.engines.propose import Proposer
from sulq.curator.engines.question import BATCH, WORKERS, Question
from sulq.terms.domain import Schema
from sulq.terms.engine import Tally
from sulq.terms.kinds import Integers


class PostgresProposer(Proposer):
    """Writes what is asked of one table of the copy."""

    def emitter(self) -> Emitter:
        """Writes row functions over these rows."""
        return PostgresEmitter(self.schema, self.rows)

    def paged(self) -> Emitter:
        """Writes row functions over some pages of them."""
        return PostgresEmitter(self.schema, by_pages(self.rows))

    def columns(self, relation: str, wanted: Needed, condition: str = "", *, owned: bool = False) -> str:
        """A SELECT of what is wanted of the rows of some pages, each column packed."""
        return Reader(self.schema, self.rows, 0, wanted, owned=owned).statement(relation, condition)


class PostgresQuestion(Question):
    """Tallies in one session, over one table of the copy."""

    def __init__(
        self,
        db: psycopg.Connection,
        schema: Schema,
        rows: Rows,
        *tallies: Tally,
        pages: int,
        batch: int = BATCH,
        owned: bool = False,
    ) -> None:
        super().__init__(None, schema, rows, *tallies, batch=batch, owned=owned)
        self._db = db
        self._pages = pages

    def proposer(self) -> Proposer:
        """Writes what is asked of these rows."""
        return PostgresProposer(self.schema, self.rows)

    def few(self, scan: Scan) -> list[tuple[object, ...]]:
        """A statement's few rows."""
        self.statements.append(scan.sql)
        return cast("list[tuple[object, ...]]", self._db.execute(scan.sql, scan.bound).fetchall())

    def many(self, scan: Scan, *, wide: bool) -> list[Stored]:
        """A statement's many rows, all of whole numbers, as columns."""
        self.statements.append(scan.sql)
        cursor = self._db.execute(scan.sql, scan.bound)
        width = len(cursor.description or ())
        return columns_of(cursor.fetchall(), width, object if wide else np.int64)

    def _all(self, wanted: Needed) -> Batch:
        return self._reader(wanted, owned=self.owned).whole(self._db)

    def _reader(self, wanted: Needed, *, owned: bool = False) -> Reader:
        return Reader(self.schema, self.rows, self._pages, wanted, owned=owned)

    def by_hand(self) -> Integers:
        """The exact sums from the stored columns alone: nothing of the tally is asked of the database."""
        statement = self.proposer().columns(by_pages(self.rows).relation, needed(*self.tallies))
        return self._pages_folded(Scan(statement), self.tallies)[0]

    def fold(self, fetch: Fetch, tallies: Sequence[Tally]) -> tuple[Integers, ...]:
        """Fold tallies over batches of just the columns they need, some pages at a time."""
        return self._pages_folded(fetch.scan, tallies)

    def _pages_folded(self, scan: Scan, tallies: Sequence[Tally]) -> tuple[Integers, ...]:
        self.statements.append(scan.sql)
        batches = self._reader(needed(*tallies)).batches(self._db, scan.sql, scan.bound, self.batch)
        return fold_all(tallies, self.schema, batches, workers=WORKERS)
