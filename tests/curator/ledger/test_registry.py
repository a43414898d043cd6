"""What a ledger is told of its data: noted when it is new, refused when it changed underneath."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from sulq import Epsilon, Int, Text, Unit
from sulq.curator.ledger import checkpoints
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.curator.ledger.registry import MAX_LISTED_VALUES, note_look, open_keys, register
from sulq.errors import SetupError
from sulq.language.domain import Schema
from sulq.language.estimator import Certificate, Estimator
from sulq.language.facts import TableFacts
from sulq.language.statistic import Graph

FACTS = TableFacts(Schema.of("data", {"x": Int(0, 9)}))


def test_a_changed_source_stops_its_owner_unless_it_is_renewed_SR12() -> None:
    """The same source again is no news; another one is refused, or with `renew` a new version."""
    with Ledger.open(None, unit=Unit(), budget=Epsilon(1), mechanisms=()) as ledger:
        register(ledger, FACTS, source="a 1 1", size=None, renew=False)
        first = ledger.version
        register(ledger, FACTS, source="a 1 1", size=None, renew=False)
        assert ledger.version == first
        with pytest.raises(SetupError) as refused:
            register(ledger, FACTS, source="a 2 2", size=None, renew=False)
        assert refused.value.code == "source-changed"
        assert ledger.version == first
        register(ledger, FACTS, source="a 2 2", size=None, renew=True)
        assert ledger.version == first + 1
        register(ledger, TableFacts(FACTS.schema, key="x"), source="a 2 2", size=None, renew=False)
        assert ledger.version == first + 2


def test_the_owners_functions_are_written_down_in_words_SR5(tmp_path: Path) -> None:
    """Name, function and certificate stand in the entry as text, and are read back; control: without any no field."""
    certificate = Certificate(0.125, 0.25, 0.9, 0, 9, ("x",))
    own = (Estimator("smallest", "numpy:min"), Estimator("own", "clinic.robust:share", certificate))
    path = tmp_path / "a.ledger"
    with Ledger.open(path, unit=Unit(), budget=Epsilon(1), mechanisms=()) as ledger:
        register(ledger, FACTS, source="a 1 1", size=None, renew=False)
        register(ledger, TableFacts(FACTS.schema, estimators=own), source="a 1 1", size=None, renew=False)
        version = ledger.version
        register(ledger, TableFacts(FACTS.schema, estimators=own), source="a 1 1", size=None, renew=False)
        assert ledger.version == version
    with sqlite3.connect(path) as file:
        plain, told = [body for (body,) in file.execute("SELECT body FROM entries ORDER BY seq")][1:]
    assert "estimators" not in plain
    for word in ('"numpy:min"', '"clinic.robust:share"', '"reads":0.125', '"within":0.25', '"columns":["x"]'):
        assert word in told
    with Ledger.open(path, mechanisms=(), create=False) as ledger:
        assert ledger.declared_estimators == (("data", own[0]), ("data", own[1]))
    assert verify(path, mechanisms=()).entries == 3


def test_open_keys_are_columns_too_long_to_list_SR14() -> None:
    """Texts, and whole numbers of too many values."""
    assert not open_keys([FACTS.schema])
    assert open_keys([FACTS.schema, Schema.of("t", {"x": Text()})])
    assert open_keys([Schema.of("t", {"x": Int(0, MAX_LISTED_VALUES)})])
    assert not open_keys([Schema.of("t", {"x": Int(1, MAX_LISTED_VALUES)})])


def test_a_look_is_noted_once_and_what_differs_since_is_registered_SR28(tmp_path: Path) -> None:
    """Columns that changed, came or went; it stays when they change back, and through checkpoints of registrations."""
    path = tmp_path / "a.ledger"
    told = TableFacts(Schema.of("t", {"x": Int(0, 9), "y": Int(0, 9)}))
    note_look(path, [told], Unit())
    note_look(path, [TableFacts(Schema.of("t", {"x": Int(0, 1)}))], Unit())  # the first look is what counts
    with Ledger.open(path, unit=Unit(), budget=Epsilon(1), mechanisms=()) as ledger:
        register(ledger, told, source="a", size=None, renew=False)
        assert ledger.looked(["t"]) == ()
        other = TableFacts(Schema.of("t", {"x": Int(0, 8), "z": Int(0, 9)}), key="z")
        register(ledger, other, source="a", size=None, renew=False)
        register(ledger, told, source="a", size=None, renew=False)
        items = ("column x", "column y left out", "column z", "key, person and references")
        assert ledger.looked(["t"]) == tuple(("t", item) for item in items)
    with Ledger.open(path, mechanisms=(), create=False) as ledger:
        assert ledger.looked(["t", "u"]) == tuple(("t", item) for item in items)
        assert ledger.looked(["u"]) == ()
    assert verify(path, mechanisms=()).entries == 4


def test_a_size_or_graph_said_after_a_look_and_a_renamed_table_are_registered_SR28(tmp_path: Path) -> None:
    """A look counts rows, so that a later size may be their number; control: the size that was said at the look."""
    schema = Schema.of("t", {"x": Int(0, 9), "y": Int(0, 9)})
    told, edges = TableFacts(schema), TableFacts(schema, graph=Graph("x", "y"))
    renamed = TableFacts(Schema.of("u", dict(schema.columns)))
    cases = [
        (told, None, None, ()),
        (told, 302, None, ("size",)),
        (told, 302, 302, ()),
        (told, None, 302, ("size left out",)),
        (edges, None, None, ("graph",)),
        (renamed, None, None, ("column x", "column y", "key, person and references")),
    ]
    for i, (facts, size, before, items) in enumerate(cases):
        path = tmp_path / f"{i}.ledger"
        note_look(path, [told], Unit(), {"t": before})
        note_look(path, [facts], Unit(), {"t": size})
        with Ledger.open(path, unit=Unit(), budget=Epsilon(1), mechanisms=()) as ledger:
            register(ledger, facts, source="a", size=size, renew=False)
            name = facts.schema.table
            assert ledger.looked([name]) == tuple((name, item) for item in items)


def test_a_note_that_is_damaged_stops_its_owner(tmp_path: Path) -> None:
    """Nobody can say then what was declared before the look."""
    path = tmp_path / "a.ledger"
    (tmp_path / "a.looked").write_text("{", encoding="utf-8")
    with (
        pytest.raises(SetupError, match="cannot be read"),
        Ledger.open(path, unit=Unit(), budget=Epsilon(1), mechanisms=()) as ledger,
    ):
        register(ledger, FACTS, source="a", size=None, renew=False)


def test_erased_persons_stay_erased_through_registrations_and_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests add up, are kept when a table is declared anew, and are read back from a checkpoint; version moves on."""
    monkeypatch.setattr(checkpoints, "EVERY", 3)
    path = tmp_path / "a.ledger"
    with Ledger.open(path, unit=Unit(), budget=Epsilon(1), mechanisms=()) as ledger:
        with pytest.raises(SetupError, match="No private table"):
            ledger.erase(["d1"])
        register(ledger, FACTS, source="a", size=None, renew=False)
        version = ledger.version
        ledger.erase(["d2", "d1"])
        ledger.erase(["d1"])
        assert (ledger.erased, ledger.version) == (("d1", "d2"), version + 1)
        register(ledger, TableFacts(Schema.of("data", {"x": Int(0, 8)})), source="a", size=None, renew=False)
        for i in range(5):
            register(ledger, TableFacts(Schema.of("data", {"x": Int(0, i + 1)})), source="a", size=None, renew=False)
        ledger.erase(["d3"])
    with Ledger.open(path, mechanisms=(), create=False) as ledger:
        assert ledger.erased == ("d1", "d2", "d3")
    assert verify(path, mechanisms=()).entries >= 9
