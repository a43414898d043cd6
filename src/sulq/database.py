"""One dataset, opened: engine, ledger, curator and desk put together."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from sulq.curator.curator import Curator
from sulq.curator.engines import open_engine
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.run import Rows
from sulq.desk import Desk
from sulq.errors import AccessDenied, SetupError, SulqError
from sulq.mechanisms import MECHANISMS, versions
from sulq.terms import wire
from sulq.terms.domain import Schema, Text
from sulq.terms.privacy import Budget, Unit


class Database(Desk):
    """A private table that answers questions with noise, and keeps count of what it told.

    Made by `sulq.connect`. It may be shared between threads; after a fork the
    child must open its own. No attribute, repr or error shows a row (S0.1).
    """

    def __init__(
        self,
        data: object,
        *,
        inside: str | None,
        schema: Schema,
        unit: Unit,
        budget: Budget | None,
        size: int | None,
        synthetic: bool,
        ledger: Path | None,
        prepared: Path | bool | None,
        engine: str,
        renew: bool,
        progress: Callable[[float], None] | None,
    ) -> None:
        open_keys = any(isinstance(column, Text) for _, column in schema.columns)
        self._process = os.getpid()
        self._closed = False
        self._ledger = Ledger.open(
            ledger, unit=unit, budget=budget, synthetic=synthetic, open_keys=open_keys, mechanisms=tuple(MECHANISMS)
        )
        try:
            self._engine = open_engine(
                data, schema=schema, unit=unit, table=inside, key=self._ledger.hash_key, space=self._ledger.space,
                prepared=prepared, renew=renew, engine=engine, progress=progress,
            )  # fmt: skip
            self._register(schema, size, renew=renew)
        except BaseException:
            self._ledger.close()
            raise
        rows = Rows(self._engine, self._ledger.redeem)
        super().__init__(Curator(rows, self._ledger, schema, size=size, versions=versions()))

    def _register(self, schema: Schema, size: int | None, *, renew: bool) -> None:
        """Write down what the ledger protects now; a source that changed underneath stops the owner (SR12)."""
        source = self._engine.fingerprint()
        known = self._ledger.registered(schema.table)
        if known is not None and not renew and "frame" not in (source, known.source) and known.source != source:
            raise SetupError("source-changed", "The data is not the file that was registered.")
        self._ledger.register(schema.table, declarations=wire.digest(schema), size=size, source=source)

    def prepare(self) -> None:
        """Build the prepared copy now rather than at the first ask."""
        self._open()
        self._engine.ready()

    def transcript(self) -> list[dict[str, object]]:
        """All questions and answers of this ledger, in order."""
        self._open()
        return [entry._asdict() for entry in self._ledger.transcript()]

    def verify(self) -> object:
        """Check the whole ledger: chain, totals, budget."""
        self._open()
        return self._ledger.verify()

    def close(self) -> None:
        """Write what is still to be written and let go of the files."""
        if not self._closed and os.getpid() == self._process:
            self._closed = True
            self._engine.close()
            self._ledger.close()

    def _open(self) -> None:
        if os.getpid() != self._process:
            raise AccessDenied("forked", "This database was opened in another process.")
        if self._closed:
            raise AccessDenied("closed", "This database is closed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise AccessDenied("private-value", "A database cannot be pickled.")

    def __repr__(self) -> str:
        try:
            self._open()
        except SulqError as error:
            return f"<sulq database: {error.code}>"
        return f"<sulq database {self.facts}>"
