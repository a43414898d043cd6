"""Settings cross a pipe as JSON and come back as they were."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import sulq
from sulq.errors import SetupError
from sulq.language.privacy import DELTA_SHARES
from sulq.service.clerk.registration import declare
from sulq.service.settings import DatasetSettings, Service


def test_the_servers_settings_come_back() -> None:
    """Every field, set or left."""
    for service in (
        Service(Path("/s")),
        Service(
            Path("/s"),
            "::1",
            0,
            Path("c"),
            Path("k"),
            Path("d"),
            1,
            2.5,
            100,
            0,
            True,
            5,
            0.5,
            hosts=("a", "b"),
            public_url="https://c",
            jobs=2,
            job_limit=60.0,
            job_memory=1500,
            ledgers=Path("l"),
            anchors=Path("n"),
        ),
    ):
        assert Service.from_json(json.loads(json.dumps(service.to_json()))) == service


def test_a_dataset_comes_back(tmp_path: Path) -> None:
    """One table and several, with shares, anchor and schedule."""
    one = declare(
        "survey", tmp_path / "a.csv.gz", {"x": sulq.Int(0, 9), "y": ["a", "b"]}, budget=sulq.EpsilonDelta(1, 1e-6),
        unit=sulq.Unit("p", rows=3), shares={"alice": (0.5, 0.1)}, anchor=tmp_path / "anchor", schedule=1.5, size=10,
        basic_share=0.3, key_share=0.2,
    )  # fmt: skip
    assert one.ledger == str(tmp_path / "a.ledger")
    assert one.prepared == tmp_path / "a.survey.prepared"
    two = declare(
        "clinic", {"people": tmp_path / "p.parquet", "codes": tmp_path / "c.duckdb"},
        {"people": {"x": sulq.Int(0, 9)}, "codes": {"code": sulq.Int(0, 9)}}, budget=sulq.Rho(1),
        keys={"codes": "code"}, public=("codes",), prepared=False, ledger="postgresql://host/db",
    )  # fmt: skip
    assert two.ledger == "postgresql://host/db"
    assert [table.inside for table in two.tables] == [None, "codes"]
    for declared in (one, two):
        assert DatasetSettings.from_json(json.loads(json.dumps(declared.to_json()))) == declared
    assert (one.basic_share, one.key_share) == (Fraction(3, 10), Fraction(1, 5))
    assert (two.basic_share, two.key_share) == (None, None)
    before = {name: value for name, value in two.to_json().items() if name not in DELTA_SHARES}
    assert DatasetSettings.from_json(before) == two, "a file that was written before there were such settings"


def test_a_worker_is_told_nothing_of_the_ledger(tmp_path: Path) -> None:
    """Its address may hold a password, its shares are analysts' names; control: the clerk is told them."""
    declared = declare(
        "survey", tmp_path / "a.csv", {"x": sulq.Int(0, 9)}, budget=sulq.Rho(1), shares={"alice": (0.5, 0.1)},
        ledger="postgresql://sulq:s3cret@host/db", anchor=tmp_path / "anchor",
    )  # fmt: skip
    for told, there in ((declared.to_json(), True), (declared.for_worker().to_json(), False)):
        assert all((word in json.dumps(told)) is there for word in ("s3cret", "alice", "/anchor"))
    assert DatasetSettings.from_json(declared.for_worker().to_json()).tables == declared.tables


def test_tables_in_a_database_come_back() -> None:
    """Their address stays as it was written; the ledger lies there too, and so does the copy."""
    url = "postgresql://ann@db.example.org:6000/clinic?reader=asker&sslmode=verify-full"
    columns = {"x": sulq.Int(0, 9)}
    one = declare("survey", f"{url}&table=own.visits", columns, table="told", budget=sulq.Rho(1))
    base = url.replace("reader=asker&", "")
    assert one.ledger == f"{base}&ledger=sulq_own_visits"
    assert (one.prepared, one.in_database, one.tables[0].inside) == (None, True, "told")
    two = declare(
        "clinic", {"people": url, "visits": url}, {"people": columns, "visits": columns}, budget=sulq.Rho(1),
        ledger="l.ledger",
    )  # fmt: skip
    assert [table.inside for table in two.tables] == ["people", "visits"]
    for declared in (one, two):
        again = DatasetSettings.from_json(json.loads(json.dumps(declared.to_json())))
        assert again == declared
        assert all(table.data.startswith("postgresql://ann@") for table in again.tables)


@pytest.mark.parametrize(
    ("data", "more", "code"),
    [
        ("postgresql:///clinic", {}, "bad-config"),  # no host: nobody knows where a worker may connect
        ("postgresql://db/clinic?service=s", {}, "bad-config"),
        ("postgresql://db/clinic", {"prepared": Path("p")}, "bad-declaration"),
        ("postgresql://db/clinic", {"prepared": False}, "bad-declaration"),
        ("postgresql://db/clinic", {"table": "Capital"}, "bad-declaration"),  # its ledger needs a name
        ("spark://master:7077/visits", {"ledger": "l"}, "engine-not-available"),
        ("https://curator.example.org/visits", {}, "bad-config"),
    ],
)
def test_what_no_worker_can_reach_is_refused(
    data: str, more: dict[str, object], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is started, with what to do instead."""
    monkeypatch.delenv("PGHOST", raising=False)
    with pytest.raises(SetupError) as refused:
        declare("visits", data, {"x": sulq.Int(0, 9)}, budget=sulq.Rho(1), **more)
    assert refused.value.code == code
    if code == "engine-not-available":
        assert "sulq query" in str(refused.value)
        assert "driver" in str(refused.value)


def test_tables_of_one_dataset_lie_in_one_place(tmp_path: Path) -> None:
    """A file beside a table in a database is refused."""
    columns = {"x": sulq.Int(0, 9)}
    with pytest.raises(SetupError) as refused:
        declare(
            "both", {"a": tmp_path / "a.csv", "b": "postgresql://db/clinic"}, {"a": columns, "b": columns},
            budget=sulq.Rho(1), ledger="l",
        )  # fmt: skip
    assert refused.value.code == "bad-declaration"


def test_only_data_files_are_declared(tmp_path: Path) -> None:
    """A server reads files of the kinds it knows."""
    with pytest.raises(SetupError) as refused:
        declare("x", tmp_path / "x.xlsx", {"a": sulq.Bool()}, budget=sulq.Epsilon(1))
    assert refused.value.code == "unreadable-data"
