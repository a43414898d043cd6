"""Finding the persons that an owner names, to erase them; and deleting prepared copies that hold their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from sulq.errors import SetupError
from sulq.kernel.facts import Fold
from sulq.sources.decode import person
from sulq.sources.decode.person import Form
from sulq.sources.duckdb import prepare
from sulq.sources.duckdb.connection import Connection
from sulq.sources.engines import ELSEWHERE
from sulq.sources.erasure import digest_of, digest_sql
from sulq.sources.tables import Dataset

_NUMBERS: Final = frozenset({"whole", "number", "figures", *person.EXACT})
_TYPED: Final = {"uuid": "UUID", "date": "DATE", "time": "TIMESTAMP", "truth": "BOOLEAN"}


def find_persons(dataset: Dataset, ids: Sequence[str]) -> tuple[list[set[str]], list[bool]]:
    """Of each id the digests that it has in the tables, and whether any row names it.

    Raises:
        SetupError: no column names persons, or the tables lie where rows cannot be left out.
    """
    if any(given.origin.home in ELSEWHERE for given in dataset.tables):
        raise unreachable()
    tables = [item.examined(item.origin.check()) for item in dataset.registered()]
    named = [(item, item.source.person) for item in tables if item.source.person is not None]
    if not named:
        raise SetupError("bad-declaration", "No column says whose a row is, so no person's rows can be told.")
    digests: list[set[str]] = [set() for _ in ids]
    there = [False for _ in ids]
    connection = Connection()
    try:
        prepare.open_sources(connection, tables)
        for item, who in named:
            with closing(connection.cursor()) as cursor:
                for name, frame in item.frames.items():
                    cursor.register(name, frame)
                texts = _texts(cursor, who.form, item.unit.fold, ids)
                own = [None if text is None else digest_of(dataset.key, text) for text in texts]
                wanted = pa.table({"item": pa.array([each for each in own if each is not None], pa.string())})
                cursor.register("wanted", wanted)
                persons = f"SELECT {who.text} AS u FROM (SELECT {who.cell} AS a FROM {item.source.relation})"
                rows = f"SELECT DISTINCT {digest_sql(dataset.key, 'u')} AS d FROM ({persons}) WHERE u <> ''"
                met = cursor.execute(f"SELECT d FROM ({rows}) SEMI JOIN wanted ON d = item").fetchall()
                found = {digest for (digest,) in met}
            for i, each in enumerate(own):
                digests[i] |= set() if each is None else {each}
                there[i] = there[i] or each in found
    except duckdb.Error:
        raise SetupError("unreadable-data", "The data could not be read to its end.") from None
    finally:
        connection.close()
    return digests, there


def unreachable() -> SetupError:
    """What is told where rows are not read through here."""
    return SetupError(
        "not-available",
        "Persons are erased from files and frames; these tables lie in a database or on Spark.",
        "Delete their rows there, and register the data again: `sulq prepare --renew`.",
    )


def _texts(cursor: duckdb.DuckDBPyConnection, form: Form, fold: Fold | None, ids: Sequence[str]) -> list[str | None]:
    """Ids as persons' texts are, by what the column holds; None where an id can name nobody there."""
    told = f"CAST(TRY_CAST(trim(t) AS {_TYPED[form]}) AS VARCHAR)" if form in _TYPED else "NULL"
    if form in _NUMBERS:
        told = person.figures(person.trimmed("t"))
    elif form == "text":
        told = person.sql("text", "t", fold)
    cursor.register("named", pa.table({"i": pa.array(range(len(ids)), pa.int64()), "t": pa.array(ids, pa.string())}))
    return [text or None for (text,) in cursor.execute(f"SELECT {told} FROM named ORDER BY i").fetchall()]


def drop_copies(folders: Iterable[Path], space: str, *, used: Path | None = None) -> list[Path]:
    """Delete the prepared copies of a person space in these folders, and the one in use whatever it is called.

    Returns those that could not be looked at or deleted.
    """
    found = {path for folder in folders for each in ("*.prepared", "*.prepared.d/rows") for path in folder.glob(each)}
    if used is not None:
        used = used.resolve()
        found |= {path for path in (used, used.with_name(f"{used.name}.d") / "rows") if path.exists()}
    unread = []
    for path in sorted(found):
        connection = Connection(threads=1)
        try:
            facts = prepare.read(connection, path)
        finally:
            connection.close()
        try:
            if facts is None:
                unread.append(path)
            elif facts.get("space") == space:
                path.unlink(missing_ok=True)
        except OSError:
            unread.append(path)
    return unread
