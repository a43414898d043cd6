"""Settings cross a pipe as JSON and come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sulq
from sulq.errors import SetupError
from sulq.server.declared import declare
from sulq.server.settings import Declared, Service


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
        ),
    ):
        assert Service.from_json(json.loads(json.dumps(service.to_json()))) == service


def test_a_dataset_comes_back(tmp_path: Path) -> None:
    """One table and several, with shares, anchor and schedule."""
    one = declare(
        "survey", tmp_path / "a.csv.gz", {"x": sulq.Int(0, 9), "y": ["a", "b"]}, budget=sulq.EpsilonDelta(1, 1e-6),
        unit=sulq.Unit("p", rows=3), shares={"alice": (0.5, 0.1)}, anchor=tmp_path / "anchor", schedule=1.5, size=10,
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
        assert Declared.from_json(json.loads(json.dumps(declared.to_json()))) == declared


def test_a_worker_is_told_nothing_of_the_ledger(tmp_path: Path) -> None:
    """Its address may hold a password, its shares are analysts' names; control: the clerk is told them."""
    declared = declare(
        "survey", tmp_path / "a.csv", {"x": sulq.Int(0, 9)}, budget=sulq.Rho(1), shares={"alice": (0.5, 0.1)},
        ledger="postgresql://sulq:s3cret@host/db", anchor=tmp_path / "anchor",
    )  # fmt: skip
    for told, there in ((declared.to_json(), True), (declared.for_worker().to_json(), False)):
        assert all((word in json.dumps(told)) is there for word in ("s3cret", "alice", "/anchor"))
    assert Declared.from_json(declared.for_worker().to_json()).tables == declared.tables


def test_only_data_files_are_declared(tmp_path: Path) -> None:
    """A server reads files of the kinds it knows."""
    with pytest.raises(SetupError) as refused:
        declare("x", tmp_path / "x.xlsx", {"a": sulq.Bool()}, budget=sulq.Epsilon(1))
    assert refused.value.code == "unreadable-data"
