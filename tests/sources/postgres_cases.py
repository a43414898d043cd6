"""What the tests of the PostgreSQL engine share: a table in the tests' database, roles, and engines over them."""

from __future__ import annotations

import itertools
import os

import pyarrow as pa

from sulq.language.domain import Schema
from sulq.language.privacy import Unit
from sulq.sources.origin import Origin
from sulq.sources.postgres.engine import PostgresEngine
from sulq.sources.tables import Dataset
from tests.loaded import address, loaded
from tests.postgres import server
from tests.sources.cases import KEY, SCHEMA, table

_names = itertools.count(1)


def named(what: str) -> str:
    """A name that nothing else in the tests' database has."""
    return f"{what}_{os.getpid()}_{next(_names)}"


def role(words: str = "LOGIN") -> str:
    """A new role."""
    name = named("role")
    server().do(f"CREATE ROLE {name} {words}")
    return name


def owner(of: str) -> str:
    """A role that may read one table and make schemas: all that an owner's needs."""
    name = role()
    server().do(f"GRANT CREATE ON DATABASE postgres TO {name}; GRANT SELECT ON {of} TO {name}")
    return name


def filled(data: pa.Table | None = None) -> str:
    """The name of a new table."""
    name = named("visits")
    loaded(table() if data is None else data, name)
    return name


def at(name: str, *, user: str = "sulq", **words: str) -> str:
    """The address of a table, for one of the roles."""
    return address(table=name, **words).replace("//sulq@", f"//{user}@")


def engine(
    url: str, unit: Unit | None = None, schema: Schema = SCHEMA, *, key: bytes = KEY, space: str = "", **more: object
) -> PostgresEngine:
    """An engine over one table."""
    return PostgresEngine(Dataset.one(Origin.of(url), schema, unit or Unit(), key, space=space), **more)


def copies(name: str) -> list[str]:
    """The schemas of the copies of a table."""
    found = server().do("SELECT nspname FROM pg_namespace WHERE nspname ~ '^sulq_[0-9a-f]{32}$' ORDER BY 1")
    return [
        schema
        for (schema,) in found
        if f"{name}\\" in str(server().do(f"SELECT value FROM {schema}.facts WHERE name = 'sources'"))
    ]
