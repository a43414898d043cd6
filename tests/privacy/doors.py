"""Every door a text comes in by, tried with texts that want out, by a process that can be watched: run as a script.

    python -m tests.privacy.doors FOLDER FILE URL COUNT [escape]

FOLDER is the data mount: data, ledger and prepared copy lie there. FILE and URL are
what must not be touched. COUNT texts are tried as names, labels and literals; all
that are whole queries are asked. Prints one JSON record: how many were tried, what
each door said how often, which outcomes were none a door may have, and what Python
itself opened, connected to or started outside FOLDER. Between the making of
FOLDER/signs/begin and of FOLDER/signs/end nothing but the doors ran. With `escape` the process
then does what it must not, to show that whoever watches would see it.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import sys
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet

import sulq
from sulq import EpsilonDelta, Int, Text, Unit, col
from sulq.errors import SulqError
from sulq.language.rowfn import Choice, Col, Concat, IsIn, Like, Lit, Relabel
from tests.escapes import CANARY, TEXTS, Outside, statements, texts

SINGLE, DOUBLE = "'", '"'
SPEND = EpsilonDelta(0.05, 1e-7)
UNIT = Unit("pid", rows=1)
BUDGET = EpsilonDelta(1000, 1e-2)
WATCHED = ("open", "socket.", "subprocess.", "os.", "ctypes.", "glob.", "shutil.", "urllib.", "http.", "pty.", "exec")
# What a running interpreter does for itself, and file calls by descriptor, whose opening was seen.
QUIET = ("os.putenv", "os.truncate", "os.fwalk", "ctypes.dlsym", "ctypes.call_function", "ctypes.addressof", "exec")
OWN = tuple({os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, *sys.path) if place})


def quoted(text: str, sign: str = SINGLE) -> str:
    """A text as SQL quotes it."""
    return sign + text.replace(sign, sign + sign) + sign


def asked_whole(db: sulq.Database, text: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Doors that take a query."""
    yield "sql", lambda: db.sql(text, spend=SPEND)
    yield "explain", lambda: db.explain(text, spend=SPEND)
    yield "plan", lambda: db.plan([text], spend=SPEND)


def asked_part(db: sulq.Database, text: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Doors that take a name, a label, a literal, a pattern or a key."""
    literal, name = quoted(text), quoted(text, DOUBLE)
    among = f"SELECT COUNT(*) FROM survey WHERE name = {literal} OR name LIKE {literal} OR name IN ({literal}, 'a')"
    yield "sql literal", lambda: db.sql(among, spend=SPEND)
    yield "sql label", lambda: db.explain(f"SELECT COUNT(*) FROM survey WHERE city = {literal}", spend=SPEND)
    yield "sql group", lambda: db.explain(f"SELECT name || {literal}, COUNT(*) FROM survey GROUP BY 1", spend=SPEND)
    yield "sql column", lambda: db.sql(f"SELECT SUM({name}) FROM survey", spend=SPEND)
    yield "sql table", lambda: db.sql(f"SELECT COUNT(*) FROM {name}", spend=SPEND)
    yield "sql alias", lambda: db.explain(f"SELECT COUNT(*) AS {name} FROM survey AS {name}", spend=SPEND)
    name_is = col("name")
    yield "literal", lambda: db.count((name_is == text) | IsIn(name_is, (text, "a")), spend=SPEND)
    yield "pattern", lambda: db.foresee(sulq.Sums((Lit(1),), Like(name_is, text)), spend=SPEND)
    yield "pattern", lambda: db.count(Like(Concat((Lit(text), name_is)), f"{text}%"[-900:]), spend=SPEND)
    yield "label", lambda: db.count(col("city") == text, spend=SPEND)
    yield "labels", lambda: db.count(IsIn(Col("city"), ("x", text)), spend=SPEND)
    yield "column", lambda: db.count(col(text) == 1, spend=SPEND)
    yield "group key", lambda: db.count(by=[text], spend=SPEND)
    yield "summed", lambda: db.sum(text, spend=SPEND)
    yield "handle", lambda: db[[text]]
    over = col("age") > 1
    yield (
        "own label",
        lambda: db.foresee(sulq.Sums((Lit(1),), None, (Choice(((over, 0),), (text, "o"), 1),)), spend=SPEND),
    )
    yield "new label", lambda: db.count(by=[Relabel(Col("city"), (text, "other"))], spend=SPEND)
    yield "idempotency key", lambda: db.ask(sulq.Sums((Lit(1),)), spend=SPEND, key=text)


def owner(folder: Path, found: list[str]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Doors of the owner: names of tables and columns, labels, cells; a path is the owner's to choose."""
    fair = [text for text in found if 0 < len(text) < 1000 and "\x00" not in text and text.isascii()]
    some = found[:: max(len(found) // 40, 1)]
    one = pa.table({"pid": [1, 2], "age": [0, 1]})
    cells = pa.table({"pid": range(len(fair)), "label": fair, "note": fair})
    wide = pa.table({"pid": [1, 2], **{text: [0, 1] for text in fair}})
    names = ["survey", *fair[:: max(len(fair) // 40, 1)]]

    def opened(data: object, columns: dict[str, object], **more: object) -> list[object]:
        with sulq.connect(data, columns=columns, unit=UNIT, budget=BUDGET, **more) as db:
            return [db.sql(f"SELECT COUNT(*) FROM {quoted(db.facts.table, DOUBLE)}", spend=SPEND), repr(db)]

    yield "labels and cells", lambda: opened(cells, {"label": fair, "note": Text()}, table="survey")
    yield "column names", lambda: opened(wide, {text: Int(0, 1) for text in fair}, table="survey")
    yield "table names", lambda: opened(dict.fromkeys(names, one), {name: {"age": Int(0, 1)} for name in names})
    tables, ledger = folder / "tables.duckdb", folder / "inside.ledger"
    for text in some:
        yield "label", partial(opened, one, {"age": Int(0, 1), "city": [text]})
        yield "table name", partial(opened, one, {"age": Int(0, 1)}, table=text)
        yield "column name", partial(opened, one, {text: Int(0, 1)})
        yield "table inside", partial(opened, tables, {"age": Int(0, 1)}, table=text, ledger=ledger)
        yield "person column", partial(sulq.connect, one, columns={"age": Int(0, 1)}, unit=Unit(text), budget=BUDGET)


def opened_survey(folder: Path) -> sulq.Database:
    """The data every door leads to: a file with its ledger and prepared copy, all in one folder."""
    path = folder / "survey.parquet"
    rows = {"pid": [1, 2, 3], "age": [1, 2, 3], "city": ["x", "y", "x"], "name": ["a", "b", None]}
    pyarrow.parquet.write_table(pa.table(rows), path)
    with duckdb.connect(str(folder / "tables.duckdb")) as file:
        file.execute("CREATE TABLE survey AS SELECT 1 AS pid, 1 AS age")
    columns = {"age": Int(0, 9), "city": ["x", "y"], "name": Text()}
    return sulq.connect(path, columns=columns, unit=UNIT, budget=BUDGET)


def spread(found: list[str], count: int) -> list[str]:
    """So many of a list, from all over it."""
    return found[:: max(len(found) // max(count, 1), 1)][:count]


class Tried:
    """What the doors said."""

    def __init__(self, db: sulq.Database) -> None:
        self.db = db
        self.said: collections.Counter[str] = collections.Counter()
        self.faults: list[str] = []

    def through(self, name: str, door: Callable[[], object], *, free: bool) -> None:
        """Try one door: it answers, or refuses with a code and costs nothing; no answer holds what lies outside."""
        before = self.db.spent
        try:
            found = repr(door())
            outcome = "answered"
        except SulqError as error:
            found, outcome = str(error), error.code
            if self.db.spent != before:
                self.faults.append(f"{name}: {error.code} was charged")
        except Exception as error:  # noqa: BLE001 - whatever else comes out is what the test looks for
            found, outcome = "", type(error).__name__
            self.faults.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        if free and self.db.spent != before:
            self.faults.append(f"{name}: was charged")
        if CANARY in found:
            self.faults.append(f"{name}: shows what lies outside")
        self.said[f"{name}: {outcome}"] += 1


FREE = {"explain", "plan", "handle", "sql label", "sql group", "sql alias"}


def listen(folder: str, strays: list[str]) -> None:
    """Note every file, socket, process and library Python is asked for, but for its own and those in `folder`."""

    def hook(event: str, args: tuple[object, ...]) -> None:
        if not event.startswith(WATCHED) or event in QUIET:
            return
        place = args[0] if args else ""
        if isinstance(place, int):
            return
        if isinstance(place, (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(place))  # noqa: PTH100 - resolving would itself look at files
            if f"{path}{os.sep}" == folder or path.startswith((folder, *OWN)):
                return
            if event == "os.scandir" and folder.startswith(f"{path.rstrip(os.sep)}{os.sep}"):
                return  # ledgers that cover the data are looked for in each folder above it (T98)
        strays.append(f"{event} {str(place)[:200]}")

    sys.addaudithook(hook)


def main(folder: Path, outside: Outside, count: int, *, escape: bool) -> dict[str, object]:
    """Try all doors, with ordinary texts first so that every module is loaded."""
    folder = Path(os.path.realpath(folder))
    db = opened_survey(folder)
    warm = Tried(db)
    for text in ("SELECT COUNT(*) FROM survey", "SELECT name, COUNT(*) FROM survey GROUP BY name", "age", "x", "a%"):
        for name, door in (*asked_whole(db, text), *asked_part(db, text), *owner(folder, [text, "b"])):
            warm.through(name, door, free=False)
    strays: list[str] = []
    listen(f"{folder}{os.sep}", strays)
    tried = Tried(db)
    (folder / "signs" / "begin").touch()
    whole, parts = statements(outside), texts(outside)
    parts = [*parts[: len(TEXTS)], *spread(parts[len(TEXTS) :], count - len(TEXTS))][:count]
    for text in whole:
        for name, door in asked_whole(db, text):
            tried.through(name, door, free=name in FREE)
    for text in parts:
        for name, door in asked_part(db, text):
            tried.through(name, door, free=name in FREE)
    for name, door in owner(folder, parts):
        tried.through(name, door, free=True)
    (folder / "signs" / "end").touch()
    db.close()
    seen = list(strays)
    if escape:
        duckdb.execute(f"SELECT content FROM read_text('{outside.file}')").fetchall()
        Path(outside.file).read_text(encoding="utf-8")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(outside.url, timeout=10)  # an address of this test's own
    return {
        "statements": len(whole),
        "texts": len(parts),
        "said": dict(sorted(tried.said.items())),
        "faults": [*warm.faults, *tried.faults],
        "strays": seen,
        "escaped": strays[len(seen) :],
    }


if __name__ == "__main__":
    place = Path(sys.argv[2])
    beyond = Outside(str(place), str(place.parent), sys.argv[3])
    print(json.dumps(main(Path(sys.argv[1]), beyond, int(sys.argv[4]), escape="escape" in sys.argv[5:])))
