"""Names, labels, literals and patterns that are more than they seem: all are data, and no part of any SQL (T71)."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

import sulq
from sulq import Int, Text, Unit, col
from sulq.api.named_asks import NamedAsks
from sulq.errors import SetupError, SulqError
from sulq.language.privacy import EpsilonDelta
from sulq.language.rowfn import Choice, Col, Concat, IndexOf, IsIn, Like, Lit, Relabel, StartsWith
from sulq.testing import exact
from tests import counts
from tests.privacy.doors import DOUBLE, quoted
from tests.sources.reread import faults, listen

SPEND = EpsilonDelta(0.5, 1e-7)
BUDGET = EpsilonDelta(1000, 1e-2)
PIECES = (
    "'", '"', "`", "''", '""', "\\", "\\'", "$$", "$text0", "$key", "?", ":a", "%", "_", "%s", "{0}", "{}", "--",
    "/*", "*/", ";", "; COPY kept TO 'x'; --", '"; DROP TABLE kept; --', "') OR 1=1 --",
    "' UNION SELECT c9 FROM kept --", "kept", "c0", "o", "t0", "s0", "k0", "person", "NULL", "null", "TRUE", "1",
    "-0", "1e999", "nan", "a", "B", "ann", " ", "\t", "\n", "\r\n", "\x1b[31m", "\x7f", "\x01", "\x85", "\u00a0",
    "\u200b", "\u200d", "\u202e", "\u2066", "\u2028", "\ufeff", "\ufffd", "\uffff", "e\u0301", "\u00e9", "\u212b",
    "\u0430", "\u05d0", "\u0639", "\u4e2d", "\u0661", "\uff41", "\u0130", "\u0131", "\u00df", "\u1e9e", "\ufb01",
    "\U0001f469\u200d\U0001f4bb", "\U0010ffff", "\U000e0041", "x" * 30,
)  # fmt: skip
UNFIT = ("\x00", "\ud800", "\udc00\ud83d")
ROWS = 9
LONGS = (10_001, 100_000, 1_000_000)


def hostile(rng: random.Random) -> str:
    """A text of a few odd pieces."""
    return "".join(rng.choices(PIECES, k=rng.randrange(1, 6)))


def unfit(rng: random.Random) -> str:
    """A text that none may be: with NUL, with half a character, or past every length."""
    if rng.random() < 0.2:
        return (hostile(rng) * rng.choice(LONGS))[: rng.choice(LONGS)].ljust(LONGS[0], "x")
    text = hostile(rng)
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(UNFIT) + text[at:]


@dataclass(frozen=True, slots=True)
class World:
    """A table whose names, labels and cells are hostile; its last three columns are number, label and text."""

    table: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]
    data: pa.Table

    @classmethod
    def drawn(cls, rng: random.Random) -> World:
        """Names that differ, in whatever letter case SQL may read them."""
        fair: dict[str, str] = {}
        while len(fair) < 12:
            text = hostile(rng)
            fair.setdefault(unicodedata.normalize("NFKC", text).casefold(), text)
        table, who, number, label, note, *labels = fair.values()
        notes = tuple(hostile(rng) for _ in range(6))
        cells = {
            who: [rng.randrange(4) for _ in range(ROWS)],
            number: [rng.randrange(10) for _ in range(ROWS)],
            label: [rng.choice((*labels, *notes, None)) for _ in range(ROWS)],
            note: [rng.choice((*labels, *notes, None)) for _ in range(ROWS)],
        }
        return cls(table, (who, number, label, note), tuple(labels), notes, pa.table(cells))

    def opened(self, engine: str) -> sulq.Database:
        """The table under its owner's declarations."""
        who, number, label, note = self.names
        columns = {number: Int(0, 9), label: list(self.labels), note: Text()}
        return sulq.connect(
            self.data, table=self.table, columns=columns, unit=Unit(who, rows=ROWS), budget=BUDGET, synthetic=True,
            engine=engine,
        )  # fmt: skip


def asks(world: World, text: str, rng: random.Random) -> dict[str, Callable[[NamedAsks], object]]:
    """Questions in which a text stands in every place a text may stand; names are the world's own."""
    _, number, label, note = world.names
    table, n, lab, words = (quoted(name, DOUBLE) for name in (world.table, *world.names[1:]))
    literal, alias = quoted(text), quoted(text, DOUBLE)
    other = rng.choice(world.notes)
    return {
        "literal": lambda db: db.count(col(note) == text, by=[label], spend=SPEND),
        "list": lambda db: db.sum(number, where=IsIn(Col(note), (text, other)), spend=SPEND),
        "pattern": lambda db: db.count(Like(Col(note), text), spend=SPEND),
        "inside": lambda db: db.count(Like(Col(note), f"%{text}%"), spend=SPEND),
        "beginning": lambda db: db.count(StartsWith(Concat((Lit(text), Col(note))), text), spend=SPEND),
        "place": lambda db: db.sum(IndexOf(Col(note), text), spend=SPEND),
        "label": lambda db: db.count(col(label) == text, spend=SPEND),
        "new label": lambda db: db.count(by=[Relabel(Col(label), (text, *world.labels[1:]))], spend=SPEND),
        "choice": lambda db: db.count(by=[Choice(((col(number) > 4, 0),), (text, other), 1)], spend=SPEND),
        "column": lambda db: db.sum(text, spend=SPEND),
        "key": lambda db: db.count(by=[text], spend=SPEND),
        "sql literal": lambda db: db.sql(f"SELECT SUM({n}) FROM {table} WHERE {words} = {literal}", spend=SPEND),
        "sql pattern": lambda db: db.sql(f"SELECT COUNT(*) FROM {table} WHERE {words} LIKE {literal}", spend=SPEND),
        "sql label": lambda db: db.sql(f"SELECT COUNT(*) FROM {table} WHERE {lab} IN ({literal})", spend=SPEND),
        "sql group": lambda db: db.sql(f"SELECT {words} || {literal}, COUNT(*) FROM {table} GROUP BY 1", spend=SPEND),
        "sql key": lambda db: db.sql(f"SELECT {lab}, AVG({n}) FROM {table} GROUP BY {lab}", spend=SPEND),
        "sql alias": lambda db: db.sql(f"SELECT COUNT(*) AS {alias} FROM {table} AS {alias}", spend=SPEND),
        "sql column": lambda db: db.sql(f"SELECT SUM({alias}) FROM {table}", spend=SPEND),
        "sql table": lambda db: db.sql(f"SELECT COUNT(*) FROM {alias}", spend=SPEND),
        "sql case": lambda db: db.sql(
            f"SELECT CASE WHEN {n} > 4 THEN {literal} ELSE 'no' END, COUNT(*) FROM {table} GROUP BY 1", spend=SPEND
        ),
        "sql derived": lambda db: db.sql(
            f"SELECT SUM({alias}) FROM (SELECT {n} AS {alias} FROM {table} WHERE {words} <> {literal}) q", spend=SPEND
        ),
    }  # fmt: skip


def outcome(ask: Callable[[NamedAsks], object], db: NamedAsks) -> tuple[str, object]:
    """An answer's cells, or the code of its refusal."""
    try:
        found = ask(db)
    except SulqError as error:
        return "refused", error.code
    return "answered", repr(found.to_dict())


@pytest.mark.audit
def test_whatever_a_text_holds_it_is_data_T71(monkeypatch: pytest.MonkeyPatch) -> None:
    """On both engines the same exact answer, or the same refusal; and no text of anybody's in the SQL.

    Bar: 0 breaks in 1e5 names and literals. Control: test_a_text_that_became_sql_would_be_noticed_T71.
    """
    planned = counts.count("hostile names and literals", short=400, long=100_000)
    written = listen(monkeypatch)
    done = number = answered = 0
    while done < planned:
        rng = counts.generator(f"hostile {number}")
        number += 1
        world = World.drawn(rng)
        with world.opened("duckdb") as first, world.opened("memory") as second:
            one, other = exact(first), exact(second)
            for _ in range(8):
                text = unfit(rng) if rng.random() < 0.1 else rng.choice((*world.labels, *world.notes, *world.names))
                for role, ask in asks(world, text, rng).items():
                    found = outcome(ask, one)
                    assert found == outcome(ask, other), (role, text, world)
                    answered += found[0] == "answered"
                    done += 1
                    own = frozenset((text, world.table, *world.names, *world.labels, *world.notes))
                    own = frozenset(item for item in own if len(item) > 9)
                    for statement in written:
                        assert faults(statement, own) == [], (role, text)
                    written.clear()
            assert first.spent == second.spent  # an exact answer is not charged, a refusal neither
    assert answered > done / 2


def test_an_equal_cell_is_found_and_no_other_T71() -> None:
    """A literal picks the rows that hold it, by Python's own count."""
    for number in range(counts.count("worlds counted by hand", short=6, long=300)):
        rng = counts.generator(f"counted {number}")
        world = World.drawn(rng)
        note = world.names[3]
        cells = world.data.column(note).to_pylist()
        with world.opened("duckdb") as db:
            for text in (*world.labels, *world.notes):
                assert exact(db).count(col(note) == text, spend=SPEND).value == cells.count(text)


@pytest.mark.parametrize(
    "text", ["a\x00b", "\ud800", "", "x" * 1_001, "x" * 1_000_000], ids=lambda text: ascii(text[:9])
)
def test_what_is_no_name_is_refused_where_it_is_declared_T71(text: str) -> None:
    """A name with NUL, half a character, none or too many: the owner hears of it, as a table, a column and a label."""
    data = pa.table({"a": [1, 2]})
    for columns, table in (({text: Int(0, 1)}, "t"), ({"a": Int(0, 1)}, text)):
        with pytest.raises(SetupError) as caught:
            sulq.connect(data, table=table, columns=columns, budget=BUDGET)
        assert caught.value.code == "bad-declaration"


def test_a_text_that_became_sql_would_be_noticed_T71() -> None:
    """Control: the reading above finds a literal spelled out, and a name."""
    assert faults("SELECT count(*) AS s0 FROM kept WHERE c0 = '; COPY kept TO ''x''; --'")
    assert faults('SELECT "anns" AS s0 FROM kept')
