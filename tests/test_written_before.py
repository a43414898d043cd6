"""What earlier versions wrote opens on this one: ledgers, prepared copies, releases, models, diaries, a server's state.

tests/fixtures/write.py says how the files were made; each version keeps its own folder there.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, learn, release
from sulq.answers import wire
from sulq.cli import app
from sulq.errors import SetupError
from sulq.local import Diary, Respondent
from sulq.service.clerk.access import Access
from sulq.service.clerk.registration import declare
from sulq.service.ipc import SocketPool
from sulq.service.settings import Service
from sulq.service.supervisor.main import Supervisor
from tests.fixtures.write import CITIES, PEOPLE, VISITS

FIXTURES = Path(__file__).with_name("fixtures")
BUDGETS = {
    "epsilon": Epsilon(1),
    "epsilon-delta": EpsilonDelta(2, 1e-6),
    "rho": Rho(0.5),
    "sublinear": SubLinear(1, 1e-6, queries=4),
}
SPENDS = {"epsilon": Epsilon(0.25), "epsilon-delta": Epsilon(0.25), "rho": Rho(0.1), "sublinear": None}


@pytest.fixture(params=sorted(path.name for path in FIXTURES.iterdir() if (path / "told.json").exists()))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """The files, where a version left them, and what was told of them; where they lie is put into a server's notes."""
    told = json.loads((FIXTURES / request.param / "told.json").read_text())
    with tarfile.open(FIXTURES / request.param / "files.tar.gz") as files:
        files.extractall(tmp_path, filter="data")
    for path in tmp_path.rglob("*"):
        if path.suffix == ".csv":
            os.utime(path, (told["moment"], told["moment"]))
        if "state" in path.parts and path.suffix in (".json", "") and path.is_file():
            path.write_text(path.read_text().replace(told["folder"], str(tmp_path)))
    return tmp_path, told


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_ledger_of_an_earlier_version_opens_with_what_was_left(
    kind: str, written: tuple[Path, dict[str, object]]
) -> None:
    """The same spend, the next ask is charged on top of it, and the ledger verifies before and after."""
    folder, told = written
    place = folder / kind
    verified = CliRunner().invoke(app, ["ledger", "verify", str(place / "people.ledger")])
    assert verified.exit_code == 0, verified.output
    for _ in range(2):
        with sulq.connect(
            place / "people.csv", columns=PEOPLE, unit=Unit("pid", rows=2), budget=BUDGETS[kind], size=1000
        ) as db:
            assert db.remaining.exact == wire.from_json(told[kind]["remaining"]).exact
            assert wire.to_json(db.facts.proved) == told[kind]["spent"]
    with sulq.connect(
        place / "people.csv", columns=PEOPLE, unit=Unit("pid", rows=2), budget=BUDGETS[kind], size=1000
    ) as db:
        db.count(spend=SPENDS[kind], fresh=True)
        assert wire.to_json(db.spent) != told[kind]["spent"]
    verified = CliRunner().invoke(app, ["ledger", "verify", str(place / "people.ledger")])
    assert verified.exit_code == 0, verified.output


def test_several_tables_of_an_earlier_version_open(written: tuple[Path, dict[str, object]]) -> None:
    """With their prepared copy, and in either order."""
    folder, told = written
    place = folder / "several"
    for names in (("people", "visits"), ("visits", "people")):
        with sulq.connect(
            {name: place / f"{name}.csv" for name in names},
            columns={"people": PEOPLE, "visits": VISITS}, keys={"people": "pid"}, unit=Unit("pid", rows=5),
            budget=Epsilon(20),
        ) as db:  # fmt: skip
            assert wire.to_json(db.remaining) == told["several"]["remaining"]
            db.prepare()


@pytest.mark.parametrize("way", ["rename", "link", "copy", "copy2", "alone"])
def test_a_ledger_of_an_earlier_version_knows_its_files_by_what_it_registered_T98(
    way: str, written: tuple[Path, dict[str, object]]
) -> None:
    """It noted a name, a size and a time; opened once on this version, it notes what it covers.

    Where a copy has another time and the file it was made of is gone, nobody can tell: its owner names the ledger.
    """
    folder, told = written
    place = folder / "several"
    own, other = place / "visits.csv", place / "other.csv"
    options = {"columns": VISITS, "unit": Unit("pid", rows=5), "budget": Epsilon(20)}
    match way:
        case "rename":
            own.rename(other)
        case "link":
            other.hardlink_to(own)
        case "copy" | "copy2":
            getattr(shutil, way)(own, other)
        case _:
            other = own
    for _ in range(2):
        with sulq.connect(other, **options) as db:
            assert wire.to_json(db.remaining) == told["several"]["remaining"]
    assert not (place / "other.ledger").exists()
    if way == "copy":
        lost = folder / "epsilon" / "lost.csv"
        shutil.copy(folder / "epsilon" / "people.csv", lost)
        (folder / "epsilon" / "people.csv").unlink()
        with pytest.raises(SetupError, match="covered-source"):
            sulq.connect(lost, columns=PEOPLE, unit=Unit("pid", rows=2), budget=Epsilon(1), size=1000)


def test_releases_models_and_diaries_of_an_earlier_version_are_read(written: tuple[Path, dict[str, object]]) -> None:
    """Without data, curator or budget; a diary says again what was told and goes on with what is left."""
    folder, told = written
    made = release.load(folder / "release")
    assert made.paid.spent == Epsilon(1)
    assert len(made.answer("SELECT city, COUNT(*) FROM people GROUP BY city").to_pandas()) >= len(CITIES)
    model = learn.load(folder / "model.json")
    assert np.asarray(model.predict([[20], [55]])).tolist() == told["model"]
    diary = Diary(Epsilon(3), folder / "diary.json")
    me = Respondent(CITIES, epsilon=1, method="krr", diary=diary)
    assert wire.to_json(diary.spent) == told["diary"]["spent"]
    assert me.report("Yafo", round="spring", question="city") == told["diary"]["report"]
    assert wire.to_json(diary.spent) == told["diary"]["spent"]
    me.report("Yafo", round="summer", question="city")
    assert diary.remaining == Epsilon(1)


@pytest.fixture
def served(written: tuple[Path, dict[str, object]]) -> Iterator[tuple[SocketPool, str, dict[str, object]]]:
    folder, told = written
    place = folder / "served"
    service = Service(place / "state", port=0, workers=1, web=0, data_root=place / "data", ledgers=place / "ledgers")
    own = declare(
        "visits", place / "data" / "visits.csv", VISITS, unit=Unit("pid"), budget=Epsilon(3),
        ledger=place / "visits.ledger", prepared=place / "visits.prepared",
    )  # fmt: skip
    with Access(service.access) as access:
        assert {principal.name for principal in access.list()} == {"owner", "ann"}
        token = access.add("other", "owner")
    supervisor = Supervisor(service, [own])
    supervisor.start()
    thread = threading.Thread(target=supervisor.run, daemon=True)
    thread.start()
    line = SocketPool(supervisor.clerk, timeout=60)
    try:
        yield line, token, told
    finally:
        line.close()
        supervisor.stop()
        thread.join(60)


def test_a_server_state_of_an_earlier_version_is_served(served: tuple[SocketPool, str, dict[str, object]]) -> None:
    """Who was let in, the datasets of the configuration and of calls, and what each has left."""
    line, token, told = served
    until = time.monotonic() + 60
    while True:
        found = line.ask("datasets", token=token, dataset=None, body=None)["datasets"]
        assert not any(item["problem"] for item in found)
        if len(found) == 2 and all(item["ready"] for item in found):
            break
        assert time.monotonic() < until
        time.sleep(0.05)
    count = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": wire.to_json(Epsilon(0.5))}
    for name, left in told["served"].items():
        assert line.ask("budget", token=token, dataset=name, body=None)["remaining"] == left
        line.ask("ask", token=token, dataset=name, body=count)
        assert line.ask("budget", token=token, dataset=name, body=None)["remaining"] != left
