"""What PostgreSQL's catalogue tells of tables and of the ledgers beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final, cast

from sulq.errors import SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.postgres import NAME, PostgresStore

# A table, the tables that a view or its copy is made of, and those it is a partition or a child of.
UNDER: Final = """
WITH RECURSIVE under (oid) AS (
    SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
    UNION
    SELECT found.oid FROM under, LATERAL (
        SELECT d.refobjid FROM pg_rewrite AS r
        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        WHERE r.ev_class = under.oid AND d.refclassid = 'pg_class'::regclass
        UNION ALL SELECT inhparent FROM pg_inherits WHERE inhrelid = under.oid
    ) AS found (oid)
)
SELECT oid::bigint FROM under ORDER BY oid
"""
# Schemas that hold what a ledger is made of, and that this role may read.
LEDGERS: Final = """
SELECT n.nspname::text FROM pg_namespace AS n JOIN pg_class AS e ON e.relnamespace = n.oid AND e.relname = 'entries'
JOIN pg_class AS h ON h.relnamespace = n.oid AND h.relname = 'head'
WHERE e.relkind = 'r' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(e.oid, 'SELECT')
AND 3 = (SELECT count(*) FROM pg_attribute WHERE attrelid = e.oid AND attname IN ('seq', 'body', 'hash'))
ORDER BY n.nspname
"""
BASE: Final = "SELECT oid::bigint FROM pg_database WHERE datname = current_database()"
CLUSTER: Final = "SELECT system_identifier FROM pg_control_system()"


def table_in(store: PostgresStore, schema: str, name: str) -> tuple[str, tuple[int, ...]]:
    """A database by its oid and its cluster's number, where the role may ask for that; and a table's oids."""
    cluster = ""
    with contextlib.suppress(SulqError):
        cluster = str(store.ask(CLUSTER)[0][0])
    (base,) = store.ask(BASE)[0]
    return f"{base}@{cluster}", tuple(cast("int", oid) for (oid,) in store.ask(UNDER, schema, name))


def ledgers_in(store: PostgresStore) -> Iterator[tuple[str, list[Row]]]:
    """The ledgers of a database by name, each with what it says of the data it covers."""
    for (name,) in store.ask(LEDGERS):
        if NAME.fullmatch(str(name)):
            yield str(name), store.told(str(name))
