"""What was registered by calls: durable, and one damaged file stops no other dataset."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import sulq
from sulq.errors import AccessDenied, SetupError
from sulq.service.clerk.registration import RegisteredStore, declare
from tests.service.clerk.test_registration_ledger_coverage import dataset, manager


def test_a_dataset_is_there_once_its_folder_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and folder are both synced before `put` returns: a name in a folder that was not is lost with the power."""
    declared = declare("x", tmp_path / "x.csv", {"a": sulq.Bool()}, budget=sulq.Epsilon(1))
    synced: list[bool] = []
    whole = os.fsync

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        whole(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    store = RegisteredStore(tmp_path / "datasets")
    store.put(declared)
    assert synced == [False, True] * 2, "the ledger of its rows, then the dataset"
    assert list(store.read()) == [("x", declared)]
    store.remove("x")
    assert synced[4:] == [True]
    assert (store.names, list(store.read())) == ([], [])
    assert store.ledgers == {str(tmp_path / "x.csv"): str(tmp_path / "x.ledger")}, "what was spent stays known"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', "\xff"])
def test_a_note_of_ledgers_that_cannot_be_read_stops_registering_T56(tmp_path: Path, text: str) -> None:
    """Nobody could say what was spent on any rows, so none is put under a new ledger; datasets go on."""
    folder = tmp_path / "state" / "datasets"
    RegisteredStore(folder).put(dataset(tmp_path, "good"))
    (folder / ".ledgers").write_bytes(text.encode("latin-1"))
    with manager(tmp_path) as (found, _):
        found.take_on_registered()
        assert found.datasets["good"].fault is None
        with pytest.raises(SetupError) as refused:
            found.hold(dataset(tmp_path, "other", "other.parquet"))
        assert refused.value.code == "bad-declaration"
        assert list(found.datasets) == ["good"]
        assert not (tmp_path / "other.ledger").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"name": "bad"}', "\xff", '{"name": "bad", "tables": 3}'])
def test_an_unreadable_dataset_is_its_owners_to_see_and_stops_no_other(tmp_path: Path, text: str) -> None:
    """The clerk starts, the others are opened, this one is not ready and says why, and can be taken away."""
    folder = tmp_path / "state" / "datasets"
    good = dataset(tmp_path, "good")
    RegisteredStore(folder).put(good)
    (folder / "bad.json").write_bytes(text.encode("latin-1"))
    with manager(tmp_path) as (found, _):
        found.take_on_registered()
        assert found.datasets["good"].fault is None
        problem = found.datasets["bad"].problem
        assert problem is not None
        assert problem.code == "bad-declaration"
        assert not found.datasets["bad"].ready
        found.withdraw("bad")
        assert list(found.datasets) == RegisteredStore(folder).names == ["good"]


def test_only_what_was_registered_by_a_call_is_taken_away_by_one(tmp_path: Path) -> None:
    """One of the configuration would be back at the next start, so it is refused; so is one that is not there."""
    with manager(tmp_path) as (found, _):
        found.take_on(dataset(tmp_path, "configured"))
        with pytest.raises(SetupError) as refused:
            found.withdraw("configured")
        assert refused.value.code == "bad-config"
        assert "configured" in found.datasets
        with pytest.raises(AccessDenied):
            found.withdraw("nowhere")
