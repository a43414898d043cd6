"""An owner registers several files as one table, by a pattern, a folder or a list: all below the root (T70, T98)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sulq
from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.cli.config import read
from sulq.cli.open import declared, opened
from sulq.cli.serve import declaration
from sulq.errors import SetupError, SulqError
from sulq.service.web.requests import ClerkClient, ClerkOracle
from tests.service.service import Running, service

PATIENT = "tests.service.patient_clerk"
COUNT = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": wire.to_json(sulq.Epsilon(1))}
AGE = {"age": wire.to_json(sulq.Int(0, 120))}
BODY = {"columns": AGE, "unit": wire.to_json(sulq.Unit("who", rows=2)), "budget": wire.to_json(sulq.Epsilon(9))}


def part(path: Path, people: range, more: str = "") -> Path:
    """A file of these people, each named after the file's folder too; it stays as it is where it is there."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"who,age{more}", *(f"{path.parent}-{i},{20 + i % 50}{',1' if more else ''}" for i in people)]
    path.write_text("\n".join(lines))
    return path


def years(folder: Path) -> None:
    """Two partitions of 300 and 100 people."""
    part(folder / "year=2021" / "rows.csv", range(300))
    part(folder / "year=2022" / "rows.csv", range(300, 400))


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with service(workers=1, clerk=PATIENT) as found:
        yield found


def registered(running: Running, name: str, file: object, **more: object) -> Running:
    """Register files, and wait until they can be asked."""
    running.ask("owner", "register", {**BODY, "name": name, "file": file, **more})
    running.ready(name)
    return running


def spent(running: Running, name: str) -> object:
    return wire.from_json(running.ask("owner", "budget", dataset=name)["spent"])


def counted(running: Running, name: str) -> float:
    return float(wire.from_json(running.ask("owner", "ask", COUNT, dataset=name)["answer"]).value)


def stopped(running: Running, name: str) -> str:
    """Why a dataset takes no more asks, once it says so."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        found = [each for each in running.ask("owner", "datasets")["datasets"] if each["name"] == name]
        if found[0]["problem"] is not None:
            return str(found[0]["problem"]["code"])
        time.sleep(0.05)
    raise AssertionError("it goes on")


def test_a_folder_of_partitions_is_asked_and_there_after_a_restart(running: Running) -> None:
    """Its partitions are columns; the ledger lies beside it; a part that comes stops it, and nothing is spent."""
    years(running.folder / "visits")
    seen = running.ask("owner", "look", {"file": "visits"})
    assert [column["name"] for column in seen["columns"]] == ["who", "age", "year"]
    columns = {**AGE, "year": wire.to_json(sulq.Int(2020, 2030))}
    registered(running, "visits", "visits", columns=columns)
    assert (running.folder / "visits.ledger").exists()
    asks = NamedAsks(ClerkOracle(ClerkClient(running.line.call, running.tokens["owner"]), "visits"))
    text = "SELECT year, COUNT(*) FROM visits WHERE year IN (2021, 2022) GROUP BY year"
    found = {row[0]: float(row[1]) for row in asks.sql(text, spend=sulq.Epsilon(4)).value}
    assert abs(found[2021] - 300) < 40, found
    assert abs(found[2022] - 100) < 40, found
    os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
    running.ready("survey")
    running.ready("visits")
    assert spent(running, "visits") == sulq.Epsilon(4)
    counted(running, "visits")
    part(running.folder / "visits" / "year=2023" / "rows.csv", range(9))
    assert stopped(running, "visits") == "source-changed"
    with pytest.raises(SulqError):
        counted(running, "visits")
    assert spent(running, "visits") == sulq.Epsilon(5)


@pytest.mark.parametrize("file", ["listed/*.csv", ["listed/a.csv", "listed/b.csv"]], ids=["pattern", "list"])
def test_a_part_alone_is_under_the_ledger_of_the_whole_T98(running: Running, file: object) -> None:
    """Under whatever words: what was spent on all is spent on one, and on a hard link of one; no second ledger."""
    first = part(running.folder / "listed" / "a.csv", range(200))
    part(running.folder / "listed" / "b.csv", range(200, 300))
    registered(running, "whole", file, table="whole")
    assert abs(counted(running, "whole") - 300) < 60
    before = spent(running, "whole")
    alone = {**BODY, "name": "alone", "file": "listed/b.csv", "table": "alone"}
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", {**alone, "budget": wire.to_json(sulq.Epsilon(20))})
    assert refused.value.code == "budget-mismatch"
    running.ask("owner", "register", alone)
    running.ready("alone")
    assert spent(running, "alone") == before
    link = running.folder / "elsewhere" / f"{len(file)}.csv"
    link.parent.mkdir(exist_ok=True)
    link.hardlink_to(first)
    linked = [part(link.with_name("other.csv"), range(9)).name, link.name]
    told = {**alone, "name": "linked", "file": [f"elsewhere/{name}" for name in linked], "table": "linked"}
    with pytest.raises(SetupError, match="second budget"):
        running.ask("owner", "register", told)
    assert not list(link.parent.glob("*.ledger"))
    for name in ("alone", "whole"):
        running.ask("owner", "withdraw", dataset=name)


def test_a_copy_of_a_part_has_no_second_budget_T98(running: Running) -> None:
    """Among other parts, under another name. Control: those others alone are registered under a ledger of their own."""
    first = part(running.folder / "one" / "a.csv", range(200))
    part(running.folder / "one" / "b.csv", range(200, 300))
    registered(running, "one", "one")
    part(running.folder / "one-more" / "x.csv", range(50))
    copied = running.folder / "one-more" / "y.csv"
    copied.write_bytes(first.read_bytes())
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", {**BODY, "name": "more", "file": "one-more"})
    # In another folder nothing of that ledger is seen but by the clerk, who has it open.
    assert refused.value.code == "covered-source"
    part(running.folder / "two" / "x.csv", range(50))
    part(running.folder / "two" / "y.csv", range(60, 90))
    registered(running, "two", "two")


@pytest.mark.parametrize(
    "file",
    [
        "../*.csv", "/etc/*", "/etc", "..", "way-out/*", "way-out", "in/*/../../../*", "*/../*/*.csv",
        ["in/a.csv", "../x.csv"], ["in/a.csv", "/etc/hostname"], ["in/a.csv", "in/way-out.csv"],
        "in-and-out/*.csv", "in-and-out", "in/a\x00*.csv", "**/**/**/*.csv", "never/*.csv", "", " ",
    ],
)  # fmt: skip
def test_no_part_leads_out_of_the_root_T70(running: Running, file: object, tmp_path: Path) -> None:
    """By dots, a root of its own, or a link, of a part or a folder; it is answered as what is not there."""
    outside = part(tmp_path / "out.csv", range(9))
    part(running.folder / "in" / "a.csv", range(9))
    part(running.folder / "in-and-out" / "a.csv", range(9))
    for link, to in (
        ("way-out", tmp_path), ("in/way-out.csv", outside), ("in-and-out/b.csv", outside),
    ):  # fmt: skip
        place = running.folder / link
        place.unlink(missing_ok=True)
        place.symlink_to(to)
    for call, body in (("look", {"file": file}), ("register", {**BODY, "name": "out", "file": file})):
        with pytest.raises(SetupError) as refused:
            running.ask("owner", call, body)
        assert refused.value.code == "missing-file"
        assert str(tmp_path) not in str(refused.value.args)
        assert "out.csv" not in str(refused.value.args)


def test_a_link_that_stays_below_the_root_is_followed_T70(running: Running) -> None:
    """The control: links to files and folders there."""
    part(running.folder / "real" / "a.csv", range(9))
    part(running.folder / "beside" / "b.csv", range(9))
    (running.folder / "beside" / "a.csv").symlink_to(running.folder / "real" / "a.csv")
    (running.folder / "way-in").symlink_to(running.folder / "beside")
    for file in ("way-in/*.csv", "way-in", "w*n/?.csv"):
        with pytest.raises(SetupError, match="several folders"):  # where its ledger lay would not be seen from each
            running.ask("owner", "register", {**BODY, "name": "inside", "file": file})
    registered(running, "inside", ["way-in/b.csv"])


@pytest.mark.parametrize("file", [[], [1], ["a.csv", None], {"a": 1}, 7, ["a.csv", " "]])
def test_what_names_no_files_is_refused(running: Running, file: object) -> None:
    """Nor what is no list of texts. Control: the lists above."""
    with pytest.raises(SulqError, match="bad-request"):
        running.ask("owner", "register", {**BODY, "name": "out", "file": file})


def test_a_part_that_is_unlike_the_others_is_named(running: Running) -> None:
    """It has another column in between; nothing is registered, and no ledger is left."""
    part(running.folder / "mixed" / "a.csv", range(9))
    (running.folder / "mixed" / "b.csv").write_text("who,more,age\nx,1,2")
    with pytest.raises(SetupError, match=r"b\.csv") as refused:
        running.ask("owner", "register", {**BODY, "name": "mixed", "file": "mixed/*.csv"})
    assert refused.value.code == "unreadable-data"
    for file in (["mixed/a.csv", "mixed/a.csv"], ["mixed/a.csv", "mixed/*.csv"]):
        with pytest.raises(SetupError, match="twice"):
            running.ask("owner", "register", {**BODY, "name": "mixed", "file": file})
    assert not list((running.folder / "mixed").glob("*.ledger"))


def test_files_in_several_folders_need_a_folder_of_ledgers(running: Running, tmp_path: Path) -> None:
    """Beside the first a ledger would not be found from the others; in a folder of ledgers it is found from each."""
    for place in ("left/a.csv", "right/a.csv"):
        part(running.folder / place, range(50))
    body = {**BODY, "name": "both", "file": ["left/a.csv", "right/a.csv"]}
    with pytest.raises(SetupError, match="several folders") as refused:
        running.ask("owner", "register", body)
    assert refused.value.code == "bad-declaration"
    books = tmp_path / "books"
    own = {"ledgers": books, "ledger": str(books / "survey.ledger"), "prepared": False}
    with service(workers=1, clerk=PATIENT, **own) as other:
        for place in ("left/a.csv", "right/a.csv"):
            part(other.folder / place, range(50))
        registered(other, "both", body["file"])
        counted(other, "both")
        other.ask("owner", "withdraw", dataset="both")
        registered(other, "right", "right/a.csv", table="right")
        assert spent(other, "right") == sulq.Epsilon(1)
        assert sorted(path.name for path in books.glob("*.ledger")) == ["left%2Fa.ledger", "survey.ledger"]


TOML = """
[dataset.visits]
data = {data}
unit = {{ column = "who", rows = 2 }}
budget = {{ epsilon = 9.0 }}
[dataset.visits.columns]
age = {{ int = [0, 120] }}
"""


@pytest.mark.parametrize(
    "data", ['"visits"', '"visits/year=*/*.csv"', '["visits/year=2021/rows.csv", "visits/year=2022/rows.csv"]']
)
def test_a_configuration_names_several_files(data: str, tmp_path: Path) -> None:
    """As in the library: the same ledger, and the copy that `sulq prepare` made; a part that comes stops it."""
    years(tmp_path / "visits")
    config = tmp_path / "sulq.toml"
    config.write_text(TOML.format(data=data))
    with opened(declared("visits", config)) as db:
        db.prepare()
        db.count(spend=sulq.Epsilon(2))
    made = declaration(read(config).datasets["visits"])
    with service(workers=2, more=(made,)) as running:
        running.ready("visits")
        assert spent(running, "visits") == sulq.Epsilon(2)
        assert abs(counted(running, "visits") - 400) < 60
        assert made.prepared.samefile(made.prepared.with_name(f"{made.prepared.name}.d") / "rows")
        (tmp_path / "visits" / "year=2022" / "rows.csv").write_text("who,age\n1,2")
        assert stopped(running, "visits") == "source-changed"
        assert spent(running, "visits") == sulq.Epsilon(3)
