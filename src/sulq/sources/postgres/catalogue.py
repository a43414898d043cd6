"""What PostgreSQL's catalogue says of the table that an address names; no row is read."""

from __future__ import annotations

import psycopg

from sulq.addresses import TableAddress
from sulq.errors import SetupError
from sulq.sources.postgres.copy import offered
from sulq.sources.postgres.session import meaning, opened


def listed(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Its name, and its columns' names and types."""
    address = TableAddress.of(url)
    schema, name = address.inside(None)
    failed: SetupError | None = None
    try:
        with opened(address, limit=address.limit) as db:
            return name, [(column, kind) for column, kind, _ in offered(db, schema, name).columns]
    except psycopg.Error as error:
        failed = meaning(error)
    raise failed  # out here: not even its context leads back to PostgreSQL's text (T31)
