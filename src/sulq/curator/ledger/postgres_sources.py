"""What PostgreSQL's catalogue tells of tables and of the ledgers beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final, cast

from sulq.curator.ledger.postgres_place import NAME, PostgresPlace
from sulq.curator.ledger.sources import COVERING
from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.store import damaged

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
# The first entry of a ledger, and those that may say what data it covers.
TOLD: Final = """
SELECT seq, body, hash FROM {0}.entries WHERE seq = 1 OR position(%s in body) > 0 OR position(%s in body) > 0
ORDER BY seq
"""
# Whether each entry is there as it was chained: `chain.link` in SQL.
LINKED: Final = """
SELECT coalesce(bool_and(seq = place AND hash = sha256(before || int8send(seq) || convert_to(body, 'UTF8'))), false)
FROM (
    SELECT seq, body, hash, row_number() OVER chain AS place,
        lag(hash, 1, decode(repeat('00', 32), 'hex')) OVER chain AS before
    FROM {0}.entries WINDOW chain AS (ORDER BY seq)
) AS chained
"""
# Settings under which the server writes values of a statement into its log: the first entry holds the ledger's keys.
LOGGED: Final = """
SELECT string_agg(name, ', ') FROM (VALUES
    ('log_statement', current_setting('log_statement') IN ('mod', 'all')),
    ('log_min_duration_statement', current_setting('log_min_duration_statement') <> '-1'),
    ('log_min_duration_sample', current_setting('log_min_duration_sample') <> '-1'),
    ('log_transaction_sample_rate', current_setting('log_transaction_sample_rate')::real > 0)
) AS log (name, written) WHERE written AND current_setting('log_parameter_max_length') <> '0'
UNION ALL SELECT string_agg(name, ', ') FROM (VALUES
    ('log_parameter_max_length_on_error', '0'), ('auto_explain.log_min_duration', '-1'),
    ('pgaudit.log_parameter', 'off'), ('debug_print_plan', 'off')
) AS log (name, off) WHERE coalesce(nullif(current_setting(name, true), ''), off) <> off
"""
BASE: Final = "SELECT oid::bigint FROM pg_database WHERE datname = current_database()"
CLUSTER: Final = "SELECT system_identifier FROM pg_control_system()"


def table_in(store: PostgresPlace, schema: str, name: str) -> tuple[str, tuple[int, ...]]:
    """A database by its oid and its cluster's number, where the role may ask for that; and a table's oids."""
    cluster = ""
    with contextlib.suppress(SulqError):
        cluster = str(store.ask(CLUSTER)[0][0])
    (base,) = store.ask(BASE)[0]
    return f"{base}@{cluster}", tuple(cast("int", oid) for (oid,) in store.ask(UNDER, schema, name))


def ledgers_in(store: PostgresPlace) -> Iterator[tuple[str, list[Row]]]:
    """The ledgers of a database by name, each with what it says of the data it covers."""
    for (name,) in store.ask(LEDGERS):
        if NAME.fullmatch(str(name)):
            yield str(name), told(store, str(name))


def told(store: PostgresPlace, ledger: str) -> list[Row]:
    """The first entry of a ledger of the database, and those that may say what data it covers.

    Raises:
        SetupError: `ledger-damaged`.
    """
    if store.ask(LINKED.replace("{0}", ledger)) != [(True,)]:
        raise damaged(f"an entry of {ledger}", "is missing, or was changed")
    return [Row(*row) for row in store.ask(TOLD.replace("{0}", ledger), *COVERING)]


def refuse_logged(store: PostgresPlace) -> None:
    """Begin no ledger where its keys would stand in the server's log; values are bound, never part of a statement."""
    logged = ", ".join(str(names) for (names,) in store.ask(LOGGED) if names)
    if logged:
        raise SetupError(
            "statements-logged",
            f"The server logs the values of statements ({logged}), and a new ledger's keys would stand in its log.",
            "Begin it as a role with log_statement = none and log_min_duration_statement = -1 (ALTER ROLE ... SET), or "
            "with log_parameter_max_length = 0; the servers that ask afterwards should log no values either.",
        )
