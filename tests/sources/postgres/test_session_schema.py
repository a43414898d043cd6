"""The private schema of a copy: open to its owner and reader, whatever default privileges say, and to nobody else."""

from __future__ import annotations

import psycopg
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Int, Schema
from sulq.language.privacy import Unit
from tests.loaded import address
from tests.postgres import server
from tests.sources.cases import ASKED, sums
from tests.sources.postgres_cases import at, copies, engine, filled, named, owner, role


def reads(user: str, schema: str) -> bool:
    """Whether a role can read any table of a schema."""
    with psycopg.connect(address().replace("//sulq@", f"//{user}@"), autocommit=True) as db:
        names = db.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'", [schema]
        ).fetchall()
        for (name,) in names:
            try:
                db.execute(f"SELECT 1 FROM {schema}.{name} LIMIT 1")
            except psycopg.errors.InsufficientPrivilege:
                continue
            return True
    return False


def test_only_owner_and_reader_reach_the_copy_whatever_the_default_privileges():
    """Default privileges that open every schema and table to others, and to all, are undone; control: they did hold."""
    name, other = filled(), role()
    mine, asker = owner(name), role()
    for to in (other, "PUBLIC"):
        for what in ("USAGE ON SCHEMAS", "ALL ON TABLES"):
            server().do(f"ALTER DEFAULT PRIVILEGES FOR ROLE {mine} GRANT {what} TO {to}")
    control = named("open")
    with psycopg.connect(address().replace("//sulq@", f"//{mine}@"), autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {control}; CREATE TABLE {control}.t (x integer)")
    assert reads(other, control)
    opened = engine(at(name, user=mine, reader=asker))
    opened.ready()
    (schema,) = copies(name)
    assert [reads(user, schema) for user in (mine, asker, other, role())] == [True, True, False, False]
    opened.close()


def test_the_reader_asks_and_cannot_write():
    """Questions run as the reader; it has no right to the rows themselves."""
    name = filled()
    mine, asker = owner(name), role()
    opened = engine(at(name, user=mine, reader=asker), Unit("who", 2))
    with opened._sessions.one() as db:
        assert db.info.user == asker
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"SELECT 1 FROM public.{name}")
    assert sums(opened) == sums(engine(at(name, user=mine), Unit("who", 2), space="alone"))
    second = engine(at(name, user=mine, reader=asker), Unit("who", 2))
    assert sums(second, *ASKED) == sums(engine(at(name, user=mine, reader=asker), Unit("who", 2)), *ASKED)


def test_a_copy_that_was_opened_to_others_stops_the_owner():
    """Until the rows are taken anew, which closes it again."""
    name = filled()
    engine(at(name)).ready()
    (schema,) = copies(name)
    server().do(f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC")
    with pytest.raises(SetupError, match="prepared-unusable"):
        engine(at(name)).ready()
    engine(at(name), renew=True).ready()
    engine(at(name)).ready()


@pytest.mark.parametrize("reads", ["owner", "reader"])
@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        ("GRANT USAGE ON SCHEMA {schema} TO {other}", "REVOKE USAGE ON SCHEMA {schema} FROM {other}"),
        ("GRANT SELECT (value) ON {schema}.facts TO PUBLIC", "REVOKE ALL (value) ON {schema}.facts FROM PUBLIC"),
        ("GRANT SELECT ON {schema}.facts TO PUBLIC", "REVOKE ALL ON {schema}.facts FROM PUBLIC"),
        ("GRANT INSERT ON {schema}.facts TO {asker}", "REVOKE INSERT ON {schema}.facts FROM {asker}"),
        ("GRANT {asker} TO {other}", "REVOKE {asker} FROM {other}"),
        ("CREATE PUBLICATION sent_{other} FOR ALL TABLES", "DROP PUBLICATION sent_{other}"),
    ],
)
def test_a_copy_opened_while_it_is_asked_stops_before_the_next_debit(opens: str, closes: str, reads: str) -> None:
    """Whoever asks, and however it was opened; control: before that and once it is closed it is ready."""
    name, asker, other = filled(), role(), role()
    opened = engine(at(name, user=owner(name), **{} if reads == "owner" else {"reader": asker}))
    opened.ready()
    (schema,) = copies(name)
    told = {"schema": schema, "asker": asker, "other": other}
    opened.ready()
    server().do(opens.format(**told))
    try:
        if "GRANT {asker}" in opens and reads == "owner":
            opened.ready()  # a role that is not the reader
        else:
            with pytest.raises(SetupError, match="prepared-unusable"):
                opened.ready()
    finally:
        server().do(closes.format(**told))
    opened.ready()
    opened.close()


def test_a_copy_that_would_be_replicated_is_refused():
    """Before a row is read where all tables are published; and one that is there, once it is; control: another's."""
    name, publication = filled(), named("sent")
    for what in ("ALL TABLES", "TABLES IN SCHEMA {0}", "TABLE {0}.facts"):
        engine(at(name)).ready()
        (schema,) = copies(name)
        if what == "ALL TABLES":
            server().do(f"DROP SCHEMA {schema} CASCADE")
        server().do(f"CREATE PUBLICATION {publication} FOR {what.format(schema)}")
        try:
            with pytest.raises(SetupError, match="publication"):
                engine(at(name)).ready()
            assert copies(name) == ([] if what == "ALL TABLES" else [schema])
        finally:
            server().do(f"DROP PUBLICATION {publication}")
    server().do(f"CREATE PUBLICATION {publication} FOR TABLE {name}")
    engine(at(name)).ready()
    server().do(f"DROP PUBLICATION {publication}")


def test_what_is_not_ours_is_not_touched():
    """A schema of the same name that is no copy, another role's, or damaged: refused, never dropped."""
    name = filled()
    mine = owner(name)
    engine(at(name, user=mine)).ready()
    (schema,) = copies(name)
    server().do(f"ALTER SCHEMA {schema} OWNER TO sulq")
    for renew in (False, True):
        with pytest.raises(SetupError, match=r"prepared-unusable|unreadable-data"):
            engine(at(name, user=mine), renew=renew).ready()
    server().do(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema} AUTHORIZATION {mine}")
    with pytest.raises(SetupError, match="prepared-unusable"):
        engine(at(name, user=mine)).ready()
    engine(at(name, user=mine), renew=True).ready()  # an empty schema of one's own is room for a copy
    build = server().do(f"SELECT value FROM {schema}.facts WHERE name = 'build'")[0][0]
    server().do(f"DROP TABLE {schema}.kept_{build}")
    with pytest.raises(SetupError, match="prepared-unusable"):
        engine(at(name, user=mine)).ready()
    engine(at(name, user=mine), renew=True).ready()
    server().do(f"UPDATE {schema}.facts SET value = '0' WHERE name = 'format'")
    with pytest.raises(SetupError, match="prepared-unusable"):
        engine(at(name, user=mine)).ready()


def test_each_declaration_person_space_and_key_has_its_own_copy():
    """None rebuilds another's; the same again is used again."""
    name = filled()
    narrow = Schema.of("data", {"age": Int(0, 50)})
    ways = [
        {},
        {"unit": Unit("who", 1)},
        {"schema": narrow},
        {"space": "other"},
        {"key": bytes(32)},
    ]
    builds = {}
    for _ in range(2):
        for i, way in enumerate(ways):
            opened = engine(at(name), **way)
            builds.setdefault(i, set()).add(opened.fingerprint())
            opened.close()
    assert [len(found) for found in builds.values()] == [1] * len(ways)
    assert len(copies(name)) == len(ways)
