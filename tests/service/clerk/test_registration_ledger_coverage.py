"""What lies under which ledger, as the clerk takes datasets on: no rows with two budgets, no name for two tables."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sulq
from sulq.answers import wire
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import sources_of
from sulq.curator.ledger.shares import Share
from sulq.errors import SetupError
from sulq.language.privacy import basic_part, key_part
from sulq.service import ipc
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.registration import Holdings, declare
from sulq.service.logs import Counts
from sulq.service.settings import DatasetSettings, Service
from sulq.sources.origin import Origin
from tests.service.service import COLUMNS, survey

PERSON = sulq.Unit("person")


@contextlib.contextmanager
def manager(folder: Path) -> Iterator[tuple[DatasetManager, socket.socket]]:
    """The clerk's manager and the supervisor's end of its socket; no worker is ever started."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        found = DatasetManager(Service(folder / "state"), ours, Counts())
        try:
            yield found, theirs
        finally:
            found.close()


def dataset(folder: Path, name: str, file: str = "", **changes: object) -> DatasetSettings:
    path = folder / (file or f"{name}.parquet")
    if not path.exists():
        survey(path, 20)
    told = {"unit": PERSON, "budget": sulq.Epsilon(3), "ledger": folder / "one.ledger"}
    return declare(name, path, COLUMNS, **(told | changes))


def code(found: DatasetManager, declared: DatasetSettings) -> str | None:
    found.take_on(declared)
    fault = found.datasets[declared.name].fault
    return None if fault is None else fault.code


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"unit": sulq.Unit("person", rows=1000)}, "unit-mismatch"),
        ({"unit": sulq.Unit("person", neighbors="replace_one")}, "unit-mismatch"),
        ({"unit": sulq.Unit()}, "unit-mismatch"),
        ({"budget": sulq.Epsilon(300)}, "budget-mismatch"),
        ({"budget": sulq.Rho(3)}, "budget-mismatch"),
        ({"synthetic": True}, "synthetic-mismatch"),
        ({"anchor": Path("b.anchor")}, "bad-anchor"),
        ({}, None),  # the control: one that says the same is taken on
    ],
)
def test_every_dataset_of_a_ledger_says_of_it_what_it_says_T56(
    tmp_path: Path, change: dict[str, object], expected: str | None
) -> None:
    """Unit, budget, kind and anchor are compared for the second dataset of a ledger as for the first."""
    more = {name: tmp_path / value if isinstance(value, Path) else value for name, value in change.items()}
    with manager(tmp_path) as (found, _):
        assert code(found, dataset(tmp_path, "first")) is None
        assert code(found, dataset(tmp_path, "second", **more)) == expected
        assert not (tmp_path / "b.anchor").exists()


@pytest.mark.parametrize(("name", "part_of"), [("basic_share", basic_part), ("key_share", key_part)])
def test_every_dataset_of_a_ledger_divides_delta_alike_SR26(tmp_path: Path, name: str, part_of: Callable) -> None:
    """Another part is refused for the second dataset as for the first; the same, and none, are taken on."""
    with manager(tmp_path) as (found, _):
        told = {"budget": sulq.EpsilonDelta(3, 1e-6)}
        assert code(found, dataset(tmp_path, "first", **{name: 0.3}, **told)) is None
        assert part_of(found.datasets["first"].open_ledger().split) == Fraction(3, 10)
        assert code(found, dataset(tmp_path, "second", **{name: 0.1}, **told)) == "budget-mismatch"
        assert code(found, dataset(tmp_path, "third", **{name: 0.3}, **told)) is None
        assert code(found, dataset(tmp_path, "fourth", **told)) is None
    with pytest.raises(SetupError, match="has none to divide"):
        dataset(tmp_path, "fifth", **{name: 0.3})


def test_an_anchor_is_every_datasets_T56(tmp_path: Path) -> None:
    """A dataset that leaves the ledger's anchor out is refused too; the control names it and is taken on."""
    anchor = tmp_path / "one.anchor"
    with manager(tmp_path) as (found, _):
        assert code(found, dataset(tmp_path, "first", anchor=anchor)) is None
        assert code(found, dataset(tmp_path, "second")) == "bad-anchor"
        assert code(found, dataset(tmp_path, "third", anchor=anchor)) is None


def test_rows_are_kept_by_the_unit_that_answers_are_priced_by_SR2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is handed the ledger's unit, even if the comparison were to let another declaration through."""
    monkeypatch.setattr(Ledger, "agrees", lambda *_, **__: None)
    with manager(tmp_path) as (found, supervisor):
        loose = dataset(tmp_path, "second", unit=sulq.Unit("person", rows=1000))
        for declared in (dataset(tmp_path, "first"), loose):
            assert code(found, declared) is None
            told = ipc.receive(supervisor)["settings"]["dataset"]
            assert wire.from_json(told["unit"]) == found.datasets[declared.name].open_ledger().unit == PERSON
        assert loose.unit != PERSON, "the control: the declaration did say another"


def test_rows_under_another_ledger_have_no_second_budget_T56(tmp_path: Path) -> None:
    """The same file under another name, by another path or by a link, is refused unless the ledger is the same.

    Control: another file, a copy that only its owner can tell, and another table of one DuckDB file are taken on.
    """
    survey(tmp_path / "a.parquet", 20)
    (tmp_path / "by-link.parquet").symlink_to("a.parquet")
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "a.parquet")
    other = tmp_path / "other.ledger"
    with manager(tmp_path) as (found, _):
        assert code(found, dataset(tmp_path, "a")) is None
        for number, file in enumerate(
            ("a.parquet", "by-link.parquet", "hard.parquet", "../" + tmp_path.name + "/a.parquet")
        ):
            assert code(found, dataset(tmp_path, f"again{number}", file, ledger=other)) == "bad-declaration"
            assert not other.exists()
        problem = found.datasets["again0"].problem
        assert problem is not None
        assert "same ledger" in problem.remedy
        assert code(found, dataset(tmp_path, "same", "a.parquet", table="same")) is None
        shutil.copy(tmp_path / "a.parquet", tmp_path / "copy.parquet")
        assert code(found, dataset(tmp_path, "copy", ledger=other)) is None
        (tmp_path / "two.duckdb").touch()
        for name in ("x", "y"):
            several = dataset(tmp_path, name, "two.duckdb", table=name, ledger=tmp_path / f"{name}.ledger")
            assert code(found, several) is None
        third = dataset(tmp_path, "z", "two.duckdb", table="x", ledger=tmp_path / "z.ledger")
        assert code(found, third) == "bad-declaration"


def test_a_public_table_may_lie_under_several_ledgers(tmp_path: Path) -> None:
    """It has no budget that could be doubled."""
    (tmp_path / "regions.csv").write_text("code\n0\n1\n")
    with manager(tmp_path) as (found, _):
        for name in ("a", "b"):
            data = {name: survey(tmp_path / f"{name}.parquet", 20), "regions": tmp_path / "regions.csv"}
            declared = declare(
                name, data, {name: COLUMNS, "regions": {"code": sulq.Int(0, 1)}}, keys={"regions": "code"},
                public=("regions",), unit=PERSON, budget=sulq.Epsilon(1), ledger=tmp_path / f"{name}.ledger",
            )  # fmt: skip
            assert code(found, declared) is None


def test_a_tables_name_stands_for_one_table_of_a_ledger_SR12(tmp_path: Path) -> None:
    """Another file, other columns or another size under a name the ledger has: refused, and the first one goes on."""
    with manager(tmp_path) as (found, _):
        first = dataset(tmp_path, "y2023", table="visits")
        assert code(found, first) is None
        assert code(found, dataset(tmp_path, "y2024", table="visits")) == "bad-declaration"
        assert code(found, dataset(tmp_path, "sized", "y2023.parquet", table="visits", size=9)) == "bad-declaration"
        assert code(found, dataset(tmp_path, "alike", "y2023.parquet", table="visits")) is None
        assert code(found, dataset(tmp_path, "named", "y2024.parquet", table="visits_2024")) is None


def test_datasets_of_one_ledger_have_each_their_prepared_copy(tmp_path: Path) -> None:
    """Or each worker would build it anew over the other's; one named as its ledger has the copy `sulq prepare` made."""
    found = {dataset(tmp_path, name, "a.parquet").prepared for name in ("one", "a", "b", "strange/../name")}
    assert len(found) == 4
    assert tmp_path / "one.prepared" in found
    assert {path.parent for path in found} == {tmp_path}


def test_a_share_the_owner_set_later_holds_after_a_restart_T54(tmp_path: Path) -> None:
    """The configuration gives an analyst its first share and never undoes the owner's next one."""
    told = dataset(tmp_path, "first", shares={"alice": (0.9, 0.1)})
    shares = []
    for later in (Share(Fraction(1, 20)), None):
        with manager(tmp_path) as (found, _):
            assert code(found, told) is None
            ledger = found.datasets["first"].open_ledger()
            shares.append({item.analyst: item.share for item in ledger.standings()})
            if later is not None:
                ledger.share("alice", later)
    with manager(tmp_path) as (found, _):  # the control: one the ledger has no share of is given its own
        assert code(found, replace(told, shares={"alice": (0.9, 0.1), "bob": (0.5, 0.0)})) is None
        shares.append({item.analyst: item.share for item in found.datasets["first"].open_ledger().standings()})
    assert shares == [
        {"alice": Fraction(9, 10)}, {"alice": Fraction(1, 20)}, {"alice": Fraction(1, 20), "bob": Fraction(1, 2)},
    ]  # fmt: skip


def test_rows_in_a_database_have_one_ledger_T56(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same table by another role, reader, spelling or name in questions is refused under another ledger.

    Control: another table, another schema, another database and another host are taken on, and so is the same ledger.
    """

    def at(name: str, url: str, table: str = "visits", ledger: str = "two.ledger") -> DatasetSettings:
        return declare(name, url, COLUMNS, unit=PERSON, budget=sulq.Epsilon(3), table=table, ledger=ledger)

    for name in ("PGDATABASE", "PGUSER", "PGHOST", "PGPORT"):
        monkeypatch.delenv(name, raising=False)
    url = "postgresql://ann@db.example.org/clinic"
    same = [
        at("a", url.replace("ann", "bob")), at("b", f"{url}?reader=asker&sslmode=require"), at("c", f"{url}?port=5432"),
        at("d", f"{url}?table=public.visits", "other"), at("e", url.replace("db.ex", "DB.ex")),
        at("k", url.replace("clinic", "cl%69nic")), at("l", url.replace("clinic", "?dbname=clinic")),
        at("m", "postgresql://clinic@db.example.org"), at("n", url.replace("org/", "org,b.example/")),
        at("o", f"{url}?hostaddr=192.0.2.7"),
    ]  # fmt: skip
    others = [
        at("f", url, "persons"), at("g", f"{url}?table=old.visits"), at("h", url.replace("clinic", "ward")),
        at("i", url.replace("db", "db2")), at("j", url, ledger="one.ledger"),
        at("p", url.replace("/clinic", "")), at("q", url.replace("org/", "org:6000/")),
        at("r", url.replace("db.example.org", "b.example,c.example")),
    ]  # fmt: skip
    for declared, refused in [(item, True) for item in same] + [(item, False) for item in others]:
        found = Holdings()
        found.take(at("first", url, ledger="one.ledger"))
        if not refused:
            found.take(declared)
            continue
        with pytest.raises(SetupError, match="second budget"):
            found.take(declared)
    monkeypatch.setenv("PGDATABASE", "clinic")
    found = Holdings()
    found.take(at("first", url, ledger="one.ledger"))
    with pytest.raises(SetupError, match="second budget"):  # p, where the variable names it
        found.take(at("s", url.replace("/clinic", "")))


def hello(path: Path) -> dict[str, object]:
    """What a worker says that has opened a file's rows."""
    sources = [source.read().to_json() for source in sources_of([(path, "")])]
    return {"sources": {path.stem: Origin.of(path).fingerprint}, "rows": {}, "covers": sources}


def test_a_ledger_nobody_can_read_is_in_the_way_of_new_rows_alone_T98(tmp_path: Path) -> None:
    """Rows that their own ledger covers are taken on again beside it. Control: of new rows nobody could say."""
    known, new = (dataset(tmp_path, name, ledger=tmp_path / f"{name}.ledger") for name in ("known", "new"))
    with manager(tmp_path) as (found, _):
        assert code(found, known) is None
        found.datasets["known"].rows._hello(hello(tmp_path / "known.parquet"))
        assert found.datasets["known"].ready
    (tmp_path / "broken.ledger").write_bytes(bytes(4096))
    with manager(tmp_path) as (found, _):
        assert code(found, known) is None
        found.datasets["known"].rows._hello(hello(tmp_path / "known.parquet"))
        assert found.datasets["known"].ready
        assert code(found, new) is None
        with pytest.raises(SetupError) as refused:
            found.datasets["new"].rows._hello(hello(tmp_path / "new.parquet"))
        assert refused.value.code == "ledger-damaged"
        assert not found.datasets["new"].ready


def test_rows_are_renewed_once_however_often_their_ledger_is_opened_SR12(tmp_path: Path) -> None:
    """An owner's `renew` is for the data as it was then: after a fault, data that changed is refused again.

    Control: without the word nobody is told to renew.
    """
    told = dataset(tmp_path, "people")
    for declared in (told, replace(told, renew=True)):
        with manager(tmp_path) as (found, supervisor):
            assert code(found, declared) is None
            for _ in range(2):
                held = found.datasets["people"]
                held.rows._hello(hello(tmp_path / "people.parquet"))
                held.ledger._writer.fail(SetupError("ledger-failed", "It was not written."))
                until = time.monotonic() + 60
                while found.datasets["people"] is held or found.datasets["people"].rows is None:
                    assert time.monotonic() < until
                    time.sleep(0.01)
            started = [ipc.receive(supervisor)["settings"]["dataset"]["renew"] for _ in range(5)]
            assert started == [declared.renew, False, False, False, False]
