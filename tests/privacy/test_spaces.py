"""No path games: whatever is done to files, tables and their names, spent people get no fresh budget (T98, T56, SR25).

A case is a handful of acts on a folder or a database whose people have spent all they had, then one opening. It is
refused, or nothing is left. Which people a file holds is read off the file itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import sulq
from sulq import Epsilon, Int, Unit
from sulq.addresses import begun, beside
from sulq.cli import app
from sulq.curator.ledger import sources
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.curator.ledger.opening import covers_in, ledger_place, sources_of
from sulq.errors import SetupError, SetupWarning
from sulq.kernel.mechanisms import MECHANISMS
from tests.counts import count, generator
from tests.postgres import server

COLUMNS = {"x": Int(0, 9)}
PUBLIC = pa.table({"code": [0, 1], "coast": [True, False]})
ONE = {"columns": COLUMNS, "unit": Unit("pid"), "budget": Epsilon(1), "engine": "memory", "prepared": False}
REFUSED = {"covered-source", "several-ledgers", "source-changed", "bad-declaration"}
FILES = ("a.csv", "b.csv", "c.csv")


def rows(who: str, shift: int = 0) -> str:
    """Ten people of one kind, whose ids say so; the spent ones are `spent`."""
    return "pid,x\n" + "".join(f"{who}{i},{(i + shift) % 9}\n" for i in range(10))


def spent(path: Path) -> bool:
    """Whether a file holds people who have nothing left."""
    return "spent" in path.read_text()


def fresh(folder: Path) -> Path:
    """Two tables of people who have spent all they had, and one of others."""
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text(rows("spent"))
    (folder / "b.csv").write_text(rows("spent", 3))
    (folder / "c.csv").write_text(rows("other", 5))
    with opened([folder / "a.csv", folder / "b.csv"]) as db:
        db.sql("SELECT COUNT(*) FROM a", spend=Epsilon(1))
    return folder


def opened(paths: list[Path], *, frame: bool = False, **more: object) -> sulq.Database:
    """Files opened together, each under its stem, perhaps with a public frame beside them."""
    tables: dict[str, object] = {path.name.split(".")[0]: path for path in paths}
    columns: dict[str, object] = dict.fromkeys(tables, COLUMNS)
    if frame:
        tables["codes"], columns["codes"] = PUBLIC, {"code": Int(0, 1), "coast": sulq.Bool()}
    if len(tables) == 1:
        return sulq.connect(paths[0], **ONE | more)
    kept = {"public": ["codes"], "keys": {"codes": "code"}} if frame else {}
    return sulq.connect(tables, **ONE | {"columns": columns} | kept | more)


def left(paths: list[Path], **more: object) -> str:
    """What is left for some files: a code where they are refused."""
    try:
        with opened(paths, **more) as db:
            return str(db.remaining)
    except SetupError as error:
        return error.code


def found(private: list[tuple[object, str]], told: Path | None = None) -> str:
    """What the ledger has left that private data is under, as `connect` finds it; the data itself is not opened."""
    private = [(data.resolve() if isinstance(data, Path) else data, name) for data, name in private]
    known = sources_of(private)
    try:
        place = ledger_place(known, told, lambda: begun(private), private)
    except SetupError as error:
        return error.code
    with Ledger.open(
        place, unit=Unit("pid"), budget=Epsilon(1), synthetic=False, mechanisms=tuple(MECHANISMS)
    ) as ledger:
        ledger.cover(known)
        return str(ledger.remaining)


def placed(paths: list[Path], ledger: Path | None = None, **_: object) -> str:
    """The same of files."""
    return found([(path, path.stem) for path in paths], ledger)


Look = Callable[..., str]


def act(folder: Path, rng: random.Random, look: Look) -> None:
    """One thing that happens to a folder of data: a name, a link, a copy, a move, a change that is registered."""
    files = sorted(path for path in folder.iterdir() if path.suffix == ".csv" and not path.is_symlink())
    one, other = rng.choice(files), folder / f"n{rng.randrange(6)}.csv"
    match rng.randrange(9):
        case 0 | 1:
            one.replace(other)
        case 2 if one != other:
            other.unlink(missing_ok=True)
            other.hardlink_to(one)
        case 3 if one != other and not other.exists():
            other.symlink_to(one)
        case 4 if one != other:
            shutil.copy(one, other)
        case 5 if one != other:
            shutil.copy2(one, other)
        case 6:
            os.utime(one, ns=(1, rng.randrange(10**18)))
        case 7:
            ledgers = sorted(folder.glob("*.ledger"))
            if ledgers:
                ledger = rng.choice(ledgers)
                name = folder / f"n{rng.randrange(6)}.ledger"
                if not name.exists():
                    ledger.rename(name)
        case 8 if look([one], renew=True) not in REFUSED:  # a copy that is changed unseen is other data to anyone
            one.write_text(rows("spent" if spent(one) else "other", rng.randrange(9)))
            look([one], renew=True)
        case _:
            pass


def played(folder: Path, rng: random.Random, look: Look) -> tuple[list[Path], str]:
    """A case: some acts, then some of the files opened in some order, perhaps under a ledger named anew."""
    for _ in range(rng.randrange(1, 5)):
        with contextlib.suppress(OSError):
            act(folder, rng, look)
    files = sorted(path for path in folder.iterdir() if path.suffix == ".csv" and path.exists())
    chosen = rng.sample(files, rng.randrange(1, min(3, len(files)) + 1))
    more: dict[str, object] = {"renew": rng.random() < 0.5, "frame": rng.random() < 0.3}
    if rng.random() < 0.2:
        more["ledger"] = folder / f"new{rng.randrange(3)}.ledger"
    return chosen, look(chosen, **more)


def games(folder: Path, rng: random.Random, number: int, look: Look) -> list[str]:
    """Play so many cases, each folder for some of them; returns what was left to people who had nothing left."""
    found: list[str] = []
    for i in range(number):
        place = folder / str(i // 6)
        if not i % 6:
            fresh(place)
        chosen, outcome = played(place, rng, look)
        if any(spent(path) for path in chosen) and outcome not in {"epsilon 0", *REFUSED}:
            found.append(f"{outcome}: {', '.join(path.name for path in chosen)}")
        if i % 6 == 5:
            shutil.rmtree(place)
    return found


def test_no_act_on_files_raises_what_is_left_T98(tmp_path: Path) -> None:
    """Renamed, moved over others, linked, copied, changed and registered, in any order and company (T98)."""
    number = count("path games on files", short=60, long=5_000)
    assert games(tmp_path, generator("path games on files"), number, placed) == []
    assert games(tmp_path / "connected", generator("path games through connect"), 12, left) == []


def test_control_the_rule_that_goes_by_the_path_is_caught_T98(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger beside the first file, or in memory where there is a frame, as version 0.1.0 had it."""

    def by_path(_: object, told: object, __: object, private: list[tuple[object, str]], **___: object) -> object:
        return told if told is not None else beside(private[0][0])

    monkeypatch.setattr("sulq.api.database.ledger_place", by_path)
    assert games(tmp_path, generator("path games through connect"), 12, left)


ACTS: dict[str, Callable[[Path], list[Path]]] = {
    "renamed": lambda f: [(f / "a.csv").rename(f / "z.csv")],
    "hard link": lambda f: [os.link(f / "a.csv", f / "z.csv") or f / "z.csv"],
    "symbolic link": lambda f: [(f / "z.csv").symlink_to(f / "a.csv") or f / "z.csv"],
    "copy": lambda f: [Path(shutil.copy(f / "a.csv", f / "z.csv"))],
    "other order": lambda f: [f / "b.csv", f / "a.csv"],
    "one of several": lambda f: [f / "b.csv"],
    "with others": lambda f: [f / "c.csv", f / "b.csv"],
    "renamed, among others": lambda f: [f / "c.csv", (f / "b.csv").rename(f / "z.csv")],
}


@pytest.mark.parametrize("company", ["alone", "with a public frame"])
@pytest.mark.parametrize("name", ACTS)
def test_the_ledger_is_found_by_what_it_covers_T98(name: str, company: str, tmp_path: Path) -> None:
    """Nothing is left, and no ledger is begun, in memory or elsewhere; others' files have a budget of their own."""
    folder = fresh(tmp_path / "data")
    assert left(ACTS[name](folder), frame=company != "alone") == "epsilon 0"
    assert [path.name for path in folder.glob("*.ledger")] == ["a.ledger"]
    if "others" not in name:
        assert left([folder / "c.csv"]) == "epsilon 1"


def test_a_second_ledger_needs_the_owners_word_T98(tmp_path: Path) -> None:
    """It is refused, named or not; `new_people=True` begins it, and stands in its entries for any auditor to see."""
    folder = fresh(tmp_path / "data")
    new = folder / "new.ledger"
    for path in ("a.csv", "b.csv"):
        assert left([folder / path], ledger=new) == "covered-source"
        assert left([folder / path], ledger=tmp_path / "elsewhere.ledger") == "covered-source"
    assert left([folder / "a.csv"], new_people=True) == "bad-declaration"
    assert not new.exists()
    with pytest.warns(SetupWarning, match="'a.csv' is covered by the ledger a.ledger"):
        assert left([folder / "a.csv"], ledger=new, new_people=True) == "epsilon 1"
    assert left([folder / "a.csv"], ledger=new) == "epsilon 1"  # it covers them now, by its own entry
    assert left([folder / "a.csv"]) == "several-ledgers"
    assert left([folder / "a.csv"], ledger=folder / "a.ledger") == "epsilon 0"
    (book,) = [book for book in covers_in([folder]) if book.opened == new]
    assert [cover.new_people for cover in book.covers] == [True]
    shown = " ".join(CliRunner().invoke(app, ["ledger", "show", str(new)]).output.split())
    assert "covers" in shown
    assert "by the owner's word" in shown


def test_new_people_are_under_a_new_ledger_T98(tmp_path: Path) -> None:
    """One that is there protects others: the owner's word for a new one does not open it. Control: said again."""
    folder = fresh(tmp_path / "data")
    assert left([folder / "c.csv"], ledger=folder / "o.ledger") == "epsilon 1"
    assert left([folder / "a.csv"], ledger=folder / "o.ledger") == "covered-source"
    assert left([folder / "a.csv"], ledger=folder / "o.ledger", new_people=True) == "bad-declaration"
    assert left([folder / "c.csv"], ledger=folder / "o.ledger", new_people=True) == "epsilon 1"
    with pytest.warns(SetupWarning, match="covered by the ledger a.ledger"):
        assert left([folder / "a.csv"], ledger=folder / "n.ledger", new_people=True) == "epsilon 1"
    assert left([folder / "a.csv"], ledger=folder / "n.ledger", new_people=True) == "epsilon 1"
    assert left([folder / "a.csv"], ledger=folder / "a.ledger", new_people=True) == "epsilon 0"


def test_the_owner_hears_of_the_same_bytes_whatever_its_word_T98(tmp_path: Path) -> None:
    """A copy under another name is other people's by its owner's word: it is begun, and the owner is warned.

    Control: with one byte more, or where the ledger there is of synthetic data, nobody knows it and nothing is said.
    """
    folder = fresh(tmp_path / "data")
    (folder / "copy.csv").write_bytes((folder / "a.csv").read_bytes())
    with pytest.warns(SetupWarning, match="'copy.csv' is covered by the ledger a.ledger.* a second budget"):
        assert left([folder / "copy.csv"], ledger=folder / "copy.ledger", new_people=True) == "epsilon 1"
    with (folder / "copy.csv").open("a") as file:
        file.write("another,1\n")
    (folder / "copy.ledger").unlink()
    (folder / "copy.csv").rename(folder / "longer.csv")
    assert left([folder / "longer.csv"], ledger=folder / "longer.ledger", new_people=True) == "epsilon 1"
    made = tmp_path / "made"
    made.mkdir()
    (made / "made.csv").write_bytes((folder / "longer.csv").read_bytes())
    assert left([made / "made.csv"], synthetic=True) == "epsilon 1"
    assert left([made / "made.csv"], ledger=made / "own.ledger", new_people=True) == "epsilon 1"


def test_a_ledger_that_may_cover_data_gives_way_to_one_that_does_T98(tmp_path: Path) -> None:
    """Spent people copied over a file that another ledger covers, then renamed: the place on disk is no note of them.

    Control: where no other ledger covers them, the one that may is the owner's to name.
    """
    folder = fresh(tmp_path / "data")
    assert left([folder / "c.csv"]) == "epsilon 1"
    (folder / "c.csv").write_text((folder / "a.csv").read_text())
    moved = (folder / "c.csv").rename(folder / "z.csv")
    assert left([moved], ledger=folder / "c.ledger") == "covered-source"
    assert left([moved], ledger=folder / "a.ledger") == "epsilon 0"
    moved.write_text(rows("other", 1))
    moved = moved.rename(folder / "y.csv")
    assert left([moved], ledger=folder / "c.ledger") == "epsilon 1"


def test_a_ledger_bears_a_name_by_which_it_is_found_T98(tmp_path: Path) -> None:
    """Another is refused. Control: a ledger that bears one already still opens."""
    folder = fresh(tmp_path / "data")
    other = folder / "mine.db"
    assert left([folder / "c.csv"], ledger=other) == "bad-declaration"
    assert left([folder / "c.csv"], ledger=other, new_people=True) == "bad-declaration"
    assert not other.exists()
    (folder / "a.ledger").rename(other)
    assert left([folder / "a.csv"], ledger=other) == "epsilon 0"


def test_what_nobody_can_tell_is_asked_T98(tmp_path: Path) -> None:
    """A file renamed after its contents changed, or other data where it lay: refused until its owner names a ledger."""
    folder = fresh(tmp_path / "data")
    with (folder / "a.csv").open("a") as file:
        file.write("spent77,1\n")
    moved = (folder / "a.csv").rename(folder / "z.csv")
    assert left([moved]) == "covered-source"
    assert left([moved], ledger=folder / "a.ledger") == "epsilon 0"
    assert left([moved]) == "epsilon 0"


def test_files_of_several_folders_need_a_ledger_that_is_named_T98(tmp_path: Path) -> None:
    """One beside a file would not be found from the other."""
    folder = fresh(tmp_path / "data")
    (tmp_path / "more").mkdir()
    there = (folder / "b.csv").rename(tmp_path / "more" / "b.csv")
    assert left([folder / "a.csv", there]) == "bad-declaration"
    assert left([folder / "a.csv", there], ledger=folder / "a.ledger") == "epsilon 0"


def test_changed_data_keep_their_ledger_and_take_its_next_version_T98(tmp_path: Path) -> None:
    """Also as a copy of what they are now."""
    folder = fresh(tmp_path / "data")
    (folder / "b.csv").write_text(rows("spent", 6))
    assert left([folder / "b.csv"]) == "source-changed"
    with opened([folder / "b.csv"], renew=True) as db:
        assert (str(db.remaining), db.facts.version) == ("epsilon 0", 3)
    assert left([Path(shutil.copy(folder / "b.csv", folder / "z.csv"))]) == "epsilon 0"


def test_a_private_frame_is_under_the_ledger_of_the_private_file_T98(tmp_path: Path) -> None:
    """Beside a file of the same people; alone it has one in memory, since nothing tells a frame from another."""
    folder = fresh(tmp_path / "data")
    frame = pa.table({"pid": ["spent1"], "x": [1]})
    both = {"columns": {"frame": COLUMNS, "b": COLUMNS}}
    for tables in ({"frame": frame, "b": folder / "b.csv"}, {"b": folder / "b.csv", "frame": frame}):
        with sulq.connect(tables, **ONE | both) as db:
            assert str(db.remaining) == "epsilon 0"


def test_a_ledger_that_cannot_be_read_stops_its_folder(tmp_path: Path) -> None:
    """Nobody can say what it covers; a file of another kind that bears such a name is none."""
    folder = fresh(tmp_path / "data")
    (folder / "household.ledger").write_text("2026-01-01 groceries 12.00\n")
    assert left([folder / "b.csv"]) == "epsilon 0"
    damaged = bytearray((folder / "a.ledger").read_bytes())
    damaged[100:3000] = bytes(2900)
    (folder / "old.ledger").write_bytes(damaged)
    assert left([folder / "c.csv"]) == "ledger-damaged"
    (folder / "old.ledger").unlink()
    assert left([folder / "c.csv"]) == "epsilon 1"


def harmed(ledger: Path, statement: str) -> None:
    """Change a ledger's file by other means."""
    with contextlib.closing(apsw.Connection(str(ledger))) as db:
        db.execute(statement)


HARM: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "another header": lambda path: path.write_bytes(b"x" * 16 + path.read_bytes()[16:]),
    "first entry overwritten": lambda path: harmed(path, "UPDATE entries SET body = '{' WHERE seq = 1"),
    "second entry overwritten": lambda path: harmed(path, "UPDATE entries SET body = '{' WHERE seq = 2"),
    "covers renamed": lambda path: harmed(path, "UPDATE entries SET body = replace(body, '\"cover\"', '\"share\"')"),
    "covers removed": lambda path: harmed(path, 'DELETE FROM entries WHERE instr(body, \'"kind":"cover"\')'),
    "last entry removed": lambda path: harmed(path, "DELETE FROM entries WHERE seq = (SELECT seq FROM head)"),
    "tables of another kind": lambda path: harmed(path, "ALTER TABLE entries RENAME TO others"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_ledger_is_no_way_to_a_fresh_budget_T98(harm: str, tmp_path: Path) -> None:
    """Whatever is left of it, nobody can say whom it protects: its data under another name is refused.

    Control: the same data with the ledger whole has nothing left.
    """
    folder = fresh(tmp_path / "data")
    moved = (folder / "a.csv").rename(folder / "z.csv")
    whole = (folder / "a.ledger").read_bytes()
    HARM[harm](folder / "a.ledger")
    with pytest.raises(SetupError, match=r"'a\.ledger' covers this data cannot be seen.* Restore it") as refused:
        opened([moved])
    assert refused.value.code == "ledger-damaged"
    assert left([moved], ledger=folder / "new.ledger") == "ledger-damaged"
    assert [path.name for path in folder.glob("*.ledger")] == ["a.ledger"]
    (folder / "a.ledger").write_bytes(whole)
    assert left([moved]) == "epsilon 0"


def test_size_time_and_bytes_stay_in_the_ledger_as_macs_SR25(tmp_path: Path) -> None:
    """Neither its entries nor what is shown of it hold them; another ledger's MACs of the same file are others.

    Control: version 0.1.0 registered size and time as they are.
    """
    folder = fresh(tmp_path / "data")
    with pytest.warns(SetupWarning):
        assert left([folder / "a.csv"], ledger=folder / "new.ledger", new_people=True) == "epsilon 1"
    stat = (folder / "a.csv").stat()
    source = sources.Source.file(folder / "a.csv")
    assert sources.read_registered(f"a.csv {source.stamp}") is not None  # control
    secret = [str(stat.st_mtime_ns), source.stamp, source.content, f" {stat.st_size} "]
    books = {book.opened.name: book for book in covers_in([folder])}
    macs = [cover.content for book in books.values() for cover in book.covers if cover.place == source.place]
    assert len({*macs}) == len(macs) == 2
    for name in books:
        text = (folder / name).read_bytes().decode("latin-1")
        assert not [word for word in secret if word in text]
        shown = CliRunner().invoke(app, ["ledger", "show", str(folder / name)]).output
        verified = CliRunner().invoke(app, ["ledger", "verify", str(folder / name)]).output
        with opened([folder / "a.csv"], ledger=folder / name) as db:
            told = f"{shown} {verified} {db.transcript()} {db.facts} {db!r} {verify(folder / name)}"
        assert not [word for word in [*secret, *macs] if word in told]


def test_a_known_file_is_not_read_to_find_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is more than a part of a long one, ever."""
    folder = fresh(tmp_path / "data")
    assert left([folder / "c.csv"]) == "epsilon 1"  # another ledger, which does not know the first file
    calls: list[str] = []
    monkeypatch.setattr(sources, "_content", lambda place, _: calls.append(place) or "")
    assert left([folder / "b.csv", folder / "a.csv"]) == "epsilon 0"
    assert calls == []
    assert left([(folder / "b.csv").rename(folder / "z.csv")]) == "epsilon 0"
    assert calls != []  # control: a new name is looked into
    monkeypatch.undo()
    long = tmp_path / "long.csv"
    with long.open("wb") as file:
        file.truncate(sources.WHOLE + 12345)
    first = sources.Source.file(long).content
    with long.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    os.utime(long, ns=(5, 5))
    assert sources.Source.file(long).content != first


# --- PostgreSQL


def table(who: str) -> str:
    """A table of ten people in a schema of its own, and the name of that."""
    name = f"space_{os.urandom(5).hex()}"
    server().do(f"CREATE SCHEMA {name}; CREATE SCHEMA {name}_too; CREATE TABLE {name}.people (pid text, x integer)")
    server().do(f"INSERT INTO {name}.people SELECT '{who}' || i, i % 9 FROM generate_series(1, 10) AS i")
    return name


def address(place: str) -> str:
    return f"{server().url().partition('&ledger=')[0]}&table={place}"


def remaining(place: str, **more: object) -> str:
    options = {"columns": COLUMNS, "unit": Unit("pid"), "budget": Epsilon(1), "table": "people"}
    try:
        with sulq.connect(address(place), **options | more) as db:
            return str(db.remaining)
    except SetupError as error:
        return error.code


def used(schema: str) -> str:
    """A table whose people have nothing left."""
    with sulq.connect(
        address(f"{schema}.people"), columns=COLUMNS, unit=Unit("pid"), budget=Epsilon(1), table="people"
    ) as db:
        db.count(spend=Epsilon(1))
    return f"{schema}.people"


def test_a_table_is_found_by_its_oid_T98(tmp_path: Path) -> None:
    """Renamed, moved to another schema, seen through a view or by another name in questions (T98).

    Control: a table of others has a budget of its own; so has a copy of the rows, which nothing tells.
    """
    schema = table("spent")
    used(schema)
    server().do(f"ALTER TABLE {schema}.people RENAME TO persons")
    assert remaining(f"{schema}.persons") == "source-changed"  # under the name in questions that it had
    assert remaining(f"{schema}.persons", renew=True) == "epsilon 0"
    assert remaining(f"{schema}.persons", table="visits") == "epsilon 0"
    server().do(f"ALTER TABLE {schema}.persons SET SCHEMA {schema}_too")
    assert remaining(f"{schema}_too.persons", renew=True) == "epsilon 0"
    server().do(f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}_too.persons")
    assert remaining(f"{schema}.seen", table="seen") == "epsilon 0"
    assert remaining(f"{schema}_too.persons", ledger=tmp_path / "new.ledger", table="x") == "covered-source"
    new = f"{server().url()}_new"
    assert remaining(f"{schema}_too.persons", ledger=new, table="x") == "covered-source"
    assert remaining(f"{schema}_too.persons", ledger=new, table="x", new_people=True) == "epsilon 1"
    server().do(f"CREATE TABLE {schema}.copied AS SELECT * FROM {schema}_too.persons")
    for other in (f"{table('other')}.people", f"{schema}.copied"):
        assert remaining(other) == "epsilon 1"


@pytest.mark.parametrize(
    "harm", ["UPDATE {}.entries SET body = '{{' WHERE seq = 2", "DELETE FROM {}.entries WHERE seq = 2"]
)
def test_a_damaged_ledger_in_the_database_stops_its_tables_T98(harm: str) -> None:
    """Control: put back as it was, it is found, with nothing left."""
    schema = table("spent")
    place = used(schema)
    ledger = f"sulq_{place.replace('.', '_')}"
    server().do(f"CREATE TABLE {schema}.kept AS SELECT * FROM {ledger}.entries ORDER BY seq DESC")
    server().do(f"ALTER TABLE {place} RENAME TO persons")
    server().do(harm.format(ledger))
    assert remaining(f"{schema}.persons", table="visits") == "ledger-damaged"
    server().do(f"TRUNCATE {ledger}.entries; INSERT INTO {ledger}.entries SELECT * FROM {schema}.kept")
    assert remaining(f"{schema}.persons", table="visits") == "epsilon 0"


def test_no_act_on_a_table_raises_what_is_left_T98() -> None:
    """Names, schemas and views in any order; 0 cases in which anything is left."""
    rng = generator("path games on PostgreSQL")
    number = count("path games on PostgreSQL", short=6, long=500)
    schema, place = "", ""
    for i in range(number):
        if not i % 20:
            schema = table("spent")
            place = used(schema)
        match rng.randrange(3):
            case 0:
                name = f"n{rng.randrange(10**9)}"
                server().do(f"ALTER TABLE {place} RENAME TO {name}")
                place = f"{place.partition('.')[0]}.{name}"
            case 1:
                to = schema if place.startswith(f"{schema}_too.") else f"{schema}_too"
                server().do(f"ALTER TABLE {place} SET SCHEMA {to}")
                place = f"{to}.{place.partition('.')[2]}"
            case _:
                server().do(f"CREATE OR REPLACE VIEW {schema}.seen AS SELECT * FROM {place}")
                assert found([(address(f"{schema}.seen"), "people")]) == "epsilon 0"
        assert found([(address(place), "people")]) == "epsilon 0"
