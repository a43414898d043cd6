"""Datasets as the clerk takes them on: several tables, one person space in two datasets, ones that do not open."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet
import pytest

import sulq
from sulq.answers import wire
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.run import Rows
from sulq.errors import BudgetExceeded, CuratorError, SetupError, SetupWarning
from sulq.service import ipc
from sulq.service.clerk import dataset_manager, person_space
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.registration import declare
from sulq.service.clerk.worker_pool import OpenDataset, RemoteRows
from sulq.service.logs import Counts
from sulq.service.settings import DatasetSettings, Service
from sulq.sources.origin import Origin
from tests.service.service import COLUMNS, Running, service, survey

COUNT = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": wire.to_json(sulq.Epsilon(1))}


def declared(folder: Path) -> tuple[DatasetSettings, ...]:
    pa.parquet.write_table(pa.table({"pid": range(300), "region": [i % 4 for i in range(300)]}), folder / "p.parquet")
    (folder / "regions.csv").write_text("code,name\n0,n\n1,s\n2,e\n3,w\n")
    (folder / "damaged.ledger").write_bytes(b"not a ledger" * 100)
    shutil.copy(folder / "p.parquet", folder / "copy.parquet")
    columns = {"region": sulq.Int(0, 3)}
    unit, space = sulq.Unit("pid"), folder / "shared.ledger"
    several = declare(
        "clinic", {"people": folder / "p.parquet", "regions": folder / "regions.csv"},
        {"people": columns, "regions": {"code": sulq.Int(0, 3), "name": ["n", "s", "e", "w"]}},
        keys={"regions": "code"}, public=("regions",), unit=unit, budget=sulq.Epsilon(3), ledger=space,
        prepared=folder / "clinic.prepared",
    )  # fmt: skip
    alone = declare(
        "ward", folder / "p.parquet", columns, unit=unit, budget=sulq.Epsilon(3), ledger=space,
        prepared=folder / "ward.prepared",
    )  # fmt: skip
    damaged = declare(
        "damaged", folder / "copy.parquet", columns, unit=unit, budget=sulq.Epsilon(3), ledger=folder / "damaged.ledger"
    )
    missing = declare(
        "missing", folder / "gone.parquet", columns, unit=unit, budget=sulq.Epsilon(3), ledger=folder / "gone.ledger"
    )
    pa.parquet.write_table(pa.table({"pid": range(9), "region": [1] * 9}), folder / "few.parquet")
    coins = sulq.SubLinear(epsilon=1, delta=1e-6, queries=5, calibration="binomial-paper")  # and no size (SR6)
    sizeless = declare(
        "sizeless", folder / "few.parquet", columns, unit=unit, budget=coins, ledger=folder / "few.ledger"
    )
    shutil.copy(folder / "few.parquet", folder / "nine.parquet")
    missized = declare(
        "missized", folder / "nine.parquet", columns, unit=sulq.Unit(neighbors="replace_one"), budget=sulq.Epsilon(3),
        size=90, ledger=folder / "nine.ledger",
    )  # fmt: skip
    return several, alone, damaged, missing, sizeless, missized


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder, service(more=declared(Path(folder)), workers=1) as found:
        found.ready("clinic")
        found.ready("ward")
        until = time.monotonic() + 60
        while "problem" not in datasets(found)["missized"]:  # its worker is still counting
            assert time.monotonic() < until
            time.sleep(0.05)
        yield found


def datasets(running: Running) -> dict[str, dict]:
    """What the owner sees of each dataset."""
    return {item["name"]: item for item in running.ask("owner", "datasets")["datasets"]}


def test_a_dataset_of_several_tables_is_served(running: Running) -> None:
    """Its facts name the tables, with the rows of the public one, which only a worker could count."""
    facts = wire.from_json(running.ask("owner", "facts", dataset="clinic")["facts"])
    assert [(table.schema.table, table.rows) for table in facts.tables] == [("people", None), ("regions", 4)]
    answer = wire.from_json(running.ask("owner", "ask", COUNT, dataset="clinic")["answer"])
    assert abs(float(answer.value) - 300) < 60


def test_two_datasets_of_one_person_space_share_its_budget_T56(running: Running) -> None:
    """What is asked of one is charged to both, and neither goes past the cap."""
    before = wire.from_json(running.ask("owner", "budget", dataset="clinic")["spent"]).amount
    running.ask("owner", "ask", COUNT, dataset="ward")
    assert wire.from_json(running.ask("owner", "budget", dataset="clinic")["spent"]).amount == before + 1
    codes = []
    for dataset in ("ward", "clinic") * 2:
        try:
            running.ask("owner", "ask", COUNT, dataset=dataset)
        except BudgetExceeded as error:
            codes.append(error.code)
    assert len(codes) >= 3
    assert wire.from_json(running.ask("owner", "budget", dataset="ward")["spent"]).amount <= 3


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("damaged", "ledger-damaged"),
        ("missing", "missing-file"),
        ("sizeless", "bad-declaration"),
        ("missized", "bad-declaration"),  # its worker counts the rows, where their number is public (SR6)
    ],
)
def test_one_that_cannot_be_opened_stops_nobody_else_T33(running: Running, name: str, code: str) -> None:
    """Its owner is told why; who asks hears that it is not ready; the rest of the service goes on."""
    listed = datasets(running)
    assert listed[name]["problem"]["code"] == code
    assert not listed[name]["ready"]
    assert all("problem" not in item for item in running.ask("auditor", "datasets")["datasets"])
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "ask", COUNT, dataset=name)
    assert refused.value.code == "not-ready"
    running.ask("alice", "ask", COUNT)
    until = time.monotonic() + 60
    while problems(running).get(name) != code:
        assert time.monotonic() < until, problems(running)
        time.sleep(0.1)
    assert running.line.ask("health")["status"] == "problem", "however well the others are"


def problems(running: Running) -> dict[str, str]:
    """What readiness said of each dataset when it was last looked at."""
    told = running.ask("owner", "readiness", dataset=None)["problems"]
    return {problem["dataset"]: problem["code"] for problem in told}


def far(folder: Path, name: str) -> DatasetSettings:
    """One whose ledger is far: a file, in these tests, that is opened when its host answers."""
    path = survey(folder / f"{name}.parquet", 20)
    made = declare(
        name, path, COLUMNS, unit=sulq.Unit("person"), budget=sulq.Epsilon(3), ledger=folder / f"{name}.ledger"
    )
    return replace(made, ledger=f"postgresql://{name}/base")


def test_a_ledger_whose_host_does_not_answer_holds_nobody_up_T48(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Others are taken on meanwhile; when it answers, its own are there too.

    One that was taken away meanwhile stays away, and its ledger is closed. Control: one that refuses is tried again.
    """
    monkeypatch.setattr(person_space, "TURN_SECONDS", 0.01)
    usual, answers, tried = person_space.opened, threading.Event(), Counter()
    closed = []

    def opened(declared: DatasetSettings, **more: bool) -> Ledger:
        if "://" not in declared.ledger:
            return usual(declared, **more)
        tried[declared.name] += 1
        if declared.name == "refusing" and tried["refusing"] <= 2:
            raise SetupError("missing-file", "It is away.")
        assert answers.wait(60)
        found = usual(replace(declared, ledger=str(tmp_path / f"{declared.name}.ledger")), **more)
        closed.append(found)
        return found

    monkeypatch.setattr(person_space, "opened", opened)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        manager = DatasetManager(Service(tmp_path / "state"), ours, Counts())
        for name in ("one", "two", "refusing"):
            manager.take_on(far(tmp_path, name), wait=0.0)
        near = replace(far(tmp_path, "near"), ledger=str(tmp_path / "near.ledger"))
        assert manager.take_on(near).rows is not None, "it waited for no other"
        assert ipc.receive(theirs)["start"] == "near"
        monkeypatch.setattr(dataset_manager, "MAX_OPEN_SECONDS", 0.0)  # nobody waits for a host to take its name away
        manager._drop("one")
        until = time.monotonic() + 60
        while tried["refusing"] < 3:
            assert time.monotonic() < until
            time.sleep(0.01)
        answers.set()
        assert {ipc.receive(theirs)["start"] for _ in range(2)} == {"two", "refusing"}
        assert tried["two"] == 1
        assert "one" not in manager.datasets
        manager.close()
        assert not any(ledger.usable for ledger in closed)
        assert len(closed) == 3


def test_a_worker_says_that_a_ledger_is_within_its_reach(tmp_path: Path) -> None:
    """Its rows and a ledger lie in databases: it could come to that, and its files are called shared.

    Control: a worker of a file does not, nor does one where every ledger is a file.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for ledgers, said in (
            (("l", "l"), ["own", "own"]),
            (("postgresql://db/base?ledger=x", "l"), ["own", "shared"]),
        ):
            manager = DatasetManager(Service(tmp_path / "state"), ours, Counts())
            for name, data, ledger in zip("ab", (tmp_path / "a.csv", "postgresql://db/base"), ledgers, strict=True):
                made = declare(
                    name, data, COLUMNS, unit=sulq.Unit("person"), budget=sulq.Epsilon(3), ledger=ledger, table="t"
                )
                worker = SimpleNamespace(name=name, generation=1, isolation={"files": "own"})
                manager._declared[name] = made
                manager.datasets[name] = OpenDataset(name, rows=SimpleNamespace(workers=[worker]))
            assert [told["files"] for told in manager.workers()] == said


AUTO = sulq.Unit("pid", rows="auto")
VISITS = {"columns": {"x": sulq.Int(0, 1)}, "unit": AUTO, "budget": sulq.Epsilon(20)}


def visits(folder: Path) -> tuple[Path, DatasetSettings]:
    """Eight rows a person, and how many are kept is to be chosen."""
    path = folder / "visits.parquet"
    pa.parquet.write_table(pa.table({"pid": [i // 8 for i in range(8000)], "x": [1] * 8000}), path)
    return path, declare("visits", path, ledger=path.with_suffix(".ledger"), **VISITS)


def greeted(manager: DatasetManager, path: Path) -> OpenDataset:
    """The dataset after its first worker said that its rows are open, and after whatever that began."""
    held, before = manager.datasets["visits"], set(threading.enumerate())
    held.rows._hello({"sources": {"visits": Origin.of(path).fingerprint}, "rows": {}})
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    return held


def test_workers_keep_the_number_that_another_process_chose_meanwhile_SR2(tmp_path: Path) -> None:
    """Rows that were opened by the maximum are opened again; then the dataset is ready, and nothing was bought here."""
    path, made = visits(tmp_path)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        manager = DatasetManager(Service(tmp_path / "state"), ours, Counts())
        manager.take_on(made)
        with sulq.connect(path, **VISITS) as other:
            k = other.facts.unit.rows
        assert greeted(manager, path).curator is None
        assert greeted(manager, path).ready
        started = [wire.from_json(ipc.receive(theirs)["settings"]["dataset"]["unit"]).rows for _ in range(3)]
        assert started == [1024, k, k]
        assert manager.datasets["visits"].ledger.verify().debits == 1
        manager.close()


def test_a_server_buys_no_histogram_anew_that_was_charged_and_lost_SR24(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start would be charged with nobody to hear of it: the owner is told. Control: `sulq.connect` buys."""
    path, made = visits(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(Rows, "run", lambda *_: (_ for _ in ()).throw(CuratorError("engine-failed", "No.")))
        with pytest.raises(CuratorError):
            sulq.connect(path, **VISITS)
    monkeypatch.setattr(RemoteRows, "ready", lambda _: None)
    for _ in range(2):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            manager = DatasetManager(Service(tmp_path / "state"), ours, Counts())
            manager.take_on(made)
            held = greeted(manager, path)
            assert held.problem.code == "answer-lost"
            assert "sulq prepare" in held.problem.remedy
            assert held.ledger.verify().debits == 1
            manager.close()
    with pytest.warns(SetupWarning, match="charged before"), sulq.connect(path, **VISITS) as db:
        assert db.verify().debits == 2


@pytest.mark.parametrize("error", [SetupError("ledger-busy", "No."), RuntimeError("a row: 17")])
def test_a_choice_that_fails_for_any_reason_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It is not called "being opened" for ever, and what nobody foresaw is told in no words of its own."""

    def failing(*_: object, **__: object) -> None:
        raise error

    path, made = visits(tmp_path)
    monkeypatch.setattr(dataset_manager, "choose_rows", failing)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        manager = DatasetManager(Service(tmp_path / "state"), ours, Counts())
        manager.take_on(made)
        problem = greeted(manager, path).problem
        assert problem.code == (error.code if isinstance(error, SetupError) else "engine-failed")
        assert "17" not in str(problem)
        manager.close()


def test_rows_in_a_database_are_not_prepared_before_their_number_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before any worker is started. Control: with a number that was chosen one is."""
    made = declare("t", "postgresql://db/base", ledger=tmp_path / "t.ledger", table="t", **VISITS)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        manager = DatasetManager(Service(tmp_path / "state"), ours, Counts())
        manager.take_on(made)
        assert manager.datasets["t"].fault.code == "bad-declaration"
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        theirs.setblocking(True)
        manager._drop("t")
        monkeypatch.setattr(Ledger, "histogram_share", None)
        manager.take_on(made)
        assert ipc.receive(theirs)["start"] == "t"
        manager.close()
