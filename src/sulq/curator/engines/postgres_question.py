"""Tallies asked of PostgreSQL: what its SQL can sum is summed there, the rest is folded over pages of the copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import psycopg

from sulq.curator.engines.batch import Batch, Stored
from sulq.curator.engines.emit import Emitter, NotInSql
from sulq.curator.engines.fold import fold_all
from sulq.curator.engines.kept import Rows
from sulq.curator.engines.needed import Needed, needed
from sulq.curator.engines.postgres_emit import PostgresEmitter
from sulq.curator.engines.postgres_read import Reader, by_pages
from sulq.curator.engines.question import BATCH, WORKERS, Question
from sulq.curator.engines.scan import columns_of
from sulq.terms.domain import Schema
from sulq.terms.engine import Tally
from sulq.terms.kinds import Integers


class PostgresQuestion(Question):
    """One tally in one session, over one table of the copy."""

    def __init__(
        self,
        db: psycopg.Connection,
        schema: Schema,
        rows: Rows,
        tally: Tally,
        *,
        pages: int,
        batch: int = BATCH,
        owned: bool = False,
    ) -> None:
        super().__init__(None, schema, rows, tally, batch=batch, owned=owned)
        self._db = db
        self._pages = pages

    def emitter(self) -> Emitter:
        """Writes row functions over these rows."""
        return PostgresEmitter(self.schema, self.rows)

    def few(self, statement: str, parameters: dict[str, object]) -> list[tuple[object, ...]]:
        """A statement's few rows."""
        return cast("list[tuple[object, ...]]", self._db.execute(statement, parameters).fetchall())

    def many(self, statement: str, parameters: dict[str, object]) -> list[Stored]:
        """A statement's many rows, all of whole numbers, as columns."""
        cursor = self._db.execute(statement, parameters)
        width = len(cursor.description or ())
        return columns_of(cursor.fetchall(), width)

    def _all(self, wanted: Needed) -> Batch:
        return Reader(self.schema, self.rows, self._pages, wanted, owned=self.owned).whole(self._db)

    def by_hand(self) -> Integers:
        """The exact sums from the stored columns alone: nothing of the tally is asked of the database."""
        return self._folded((self.tally,), PostgresEmitter(self.schema, by_pages(self.rows)), "")[0]

    def fold(self, tallies: Sequence[Tally]) -> tuple[Integers, ...]:
        """Fold tallies over batches of just the columns they need."""
        emitter = PostgresEmitter(self.schema, by_pages(self.rows))
        condition, where = "", tallies[0].where
        if len(tallies) == 1 and where is not None:
            try:
                condition = f" WHERE {emitter.truth(where).sql}"
                tallies = (replace(tallies[0], where=None),)
            except NotInSql:
                emitter = PostgresEmitter(self.schema, by_pages(self.rows))
        return self._folded(tallies, emitter, condition)

    def _folded(self, tallies: Sequence[Tally], emitter: PostgresEmitter, condition: str) -> tuple[Integers, ...]:
        reader = Reader(self.schema, self.rows, self._pages, needed(*tallies))
        statement = reader.statement(emitter, condition)
        self.statements.append(statement)
        batches = reader.batches(self._db, statement, emitter.bound(statement), self.batch)
        return fold_all(tallies, self.schema, batches, workers=WORKERS)
