"""An owner brings data in through calls: looked at by its schema alone, declared, registered, there after a restart."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import sulq
from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, QuestionError, SetupError, SulqError
from sulq.service.clerk.calls import place
from sulq.service.sandbox import launcher
from sulq.service.web.requests import ClerkClient, ClerkOracle
from tests.service.office import Office
from tests.service.office import survey as memory_survey
from tests.service.service import Running, service, survey

COUNT = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": wire.to_json(sulq.Epsilon(1))}
CANARY = "Secret-Person-31"
PATIENT = "tests.service.patient_clerk"
DECLARED = {
    "name": "clinic",
    "file": "clinic/visits.csv",
    "columns": {"age": wire.to_json(sulq.Int(0, 120))},
    "unit": wire.to_json(sulq.Unit("who", rows=2)),
    "budget": wire.to_json(sulq.Epsilon(3)),
    "synthetic": True,
}
ONE = {name: DECLARED[name] for name in ("file", "columns")}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with (
        tempfile.TemporaryDirectory(prefix="sulq-") as away,
        service(workers=1, clerk=PATIENT, anchors=Path(away) / "anchors") as found,
    ):
        folder = found.folder / "clinic"
        folder.mkdir()
        lines = ["who,age,note", *(f"{i},{20 + i % 50},{CANARY}" for i in range(500))]
        (folder / "visits.csv").write_text("\n".join(lines))
        with duckdb.connect(str(folder / "several.duckdb")) as db:
            db.execute(f"CREATE TABLE a AS SELECT 1 AS x, '{CANARY}' AS y")
            db.execute("CREATE TABLE b AS SELECT DATE '2020-01-01' AS day")
        (found.folder / "broken.parquet").write_bytes(b"PAR1" + CANARY.encode())
        (found.folder / "link.parquet").symlink_to("/etc/hostname")
        yield found


def test_a_look_gives_names_and_kinds_and_no_cell_T33(running: Running) -> None:
    """Parquet and DuckDB files name their kinds, CSV files only their columns; no value of any row comes back."""
    assert "clinic/visits.csv" in running.ask("owner", "look", {})["files"]
    seen = [running.ask("owner", "look", {"file": name}) for name in ("survey.parquet", "clinic/visits.csv")]
    assert [column["type"] for column in seen[0]["columns"]] == ["int64", "int64", "int64", "string"]
    suggested = (("who", ""), ("age", "int"), ("note", "text"))
    assert seen[1]["columns"] == [{"name": name, "type": "text", "suggests": kind} for name, kind in suggested]
    several = running.ask("owner", "look", {"file": "clinic/several.duckdb"})
    assert [table["table"] for table in several["tables"]] == ["a", "b"]
    assert several["tables"][1]["columns"] == [{"name": "day", "type": "DATE", "suggests": "date"}]
    assert CANARY not in json.dumps([seen, several])


def test_a_check_counts_for_the_owner_alone_and_keeps_nothing_SR28(
    running: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exact counts in the reply, a note beside the ledger, the act in the access log; no count, value or log else.

    Others are refused it. Bar: what was changed afterwards is in the facts an analyst sees, named and no more.
    """
    body = DECLARED | {"name": "fitted", "file": "clinic/fitted.csv"}
    lines = ["who,age", *(f"{i // 3},{20 + i % 50}" for i in range(300)), ",7", "x,none"]
    (running.folder / "clinic" / "fitted.csv").write_text("\n".join(lines))
    for role in ("alice", "auditor"):
        with pytest.raises(AccessDenied):
            running.ask(role, "check", body)
    assert not (running.folder / "clinic" / "fitted.looked").exists()
    narrow = {"age": wire.to_json(sulq.Int(20, 60))}
    (found,) = running.ask("owner", "check", body | {"columns": narrow})["tables"]
    counts = {name: found[name] for name in ("rows", "persons", "nobody", "kept", "heavy", "dropped")}
    assert counts == {"rows": 302, "persons": 101, "nobody": 1, "kept": 2, "heavy": 100, "dropped": 100}
    (age,) = found["columns"]
    assert (age["below"], age["above"], age["unread"]) == (1, 54, 1)
    assert (running.folder / "clinic" / "fitted.looked").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (running.folder / "clinic").glob("fitted*.ledger")] == []
    assert running.ask("owner", "register", body)["ready"]
    told = running.ask("owner", "facts", dataset="fitted")["facts"]
    assert told["looked"] == [["fitted", "column age"]]
    with pytest.raises(SetupError) as registered:
        running.ask("owner", "check", body | {"name": "again"})
    assert registered.value.code == "covered-source"
    entries = running.ask("owner", "access", {})["entries"]
    acts = [each for each in entries if '"check"' in json.dumps(each) and "fitted" in json.dumps(each)]
    assert len(acts) >= 2, "before it is done, and after"
    for told in ("dropped", "persons", "age", "below"):
        assert told not in json.dumps(acts) + "".join(capfd.readouterr())
    assert all("clinic/fitted.csv" in json.dumps(each) for each in acts), "which files were looked at"
    copy = running.folder / "copy.csv"
    copy.write_bytes((running.folder / "clinic" / "fitted.csv").read_bytes())
    running.ask("owner", "withdraw", dataset="fitted")
    for file in ("copy.csv", "survey.parquet", "clinic/fitted.csv"):
        other = {"file": "few.csv", "columns": {"age": wire.to_json(sulq.Int(0, 120))}}
        (running.folder / "few.csv").write_text("who,age\na,1\n")
        known = {"file": file, "columns": {"age": wire.to_json(sulq.Int(0, 120))}, "public": True}
        tables = {name: body[name] for name in ("unit", "budget")} | {"name": "two"}
        with pytest.raises(SetupError) as covered:
            running.ask("owner", "check", tables | {"tables": {"d": other, "t": known}})
        assert covered.value.code == "covered-source", file
    assert len(running.ask("owner", "check", tables | {"tables": {"d": other}})["tables"]) == 1
    (running.folder / "few.looked").unlink()
    (running.folder / "few.csv").unlink()
    copy.unlink()


def test_a_broken_file_says_nothing_of_its_bytes_T31(running: Running, capfd: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read is one constant refusal, in the reply and in the log."""
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "look", {"file": "broken.parquet"})
    assert refused.value.code == "unreadable-data"
    assert CANARY not in str(refused.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "link.parquet", "none.csv", "clinic", "a\x00b.csv", "x" * 5000 + ".csv"]
)
def test_only_files_below_the_root_are_there_T70(running: Running, name: str) -> None:
    """A path that leads out, by dots, by a root of its own or by a link, is answered as one that is not there."""
    told = []
    for file in (name, "never-there.csv"):
        with pytest.raises(SetupError) as refused:
            place(running.folder, file)
        told.append(refused.value.args)
    assert told[0] == told[1]


def test_a_dataset_is_registered_asked_and_there_after_a_restart(running: Running) -> None:
    """Register, ask, kill the clerk, ask again: the dataset, its ledger and what was spent are still there."""
    assert running.ask("owner", "register", DECLARED) == {"name": "clinic", "ready": True}
    running.ready("clinic")
    answer = wire.from_json(running.ask("owner", "ask", COUNT, dataset="clinic")["answer"])
    assert abs(float(answer.value) - 500) < 60
    os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
    running.ready("clinic")
    running.ready("survey")
    assert wire.from_json(running.ask("owner", "budget", dataset="clinic")["spent"]) == sulq.Epsilon(1)
    assert [d["name"] for d in running.ask("alice", "datasets")["datasets"]] == ["survey"]
    with pytest.raises(QuestionError) as taken:
        running.ask("owner", "register", DECLARED)
    assert taken.value.code == "name-taken"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../x"}, {"name": ""}, {"columns": {}}, {"columns": {"age": {"kind": "Unit"}}}, {"columns": None},
        {"unit": {"kind": "Epsilon", "epsilon": 1}}, {"budget": None}, {"budget": wire.to_json(sulq.Unit())},
        {"file": "../x.csv"}, {"file": None}, {"size": "many"}, {"nonsense": 1},
        {"graph": ["age", "age"]}, {"graph": "uv"}, {"graph": [1, 2]}, {"graph": ["age", "none"]},
        {"estimators": {"f": "math:sqrt"}},  # never over HTTP (SR5)
        {"columns": {"age": {"kind": "Int", "low": 9, "high": 1}}}, {"tables": {}}, {"tables": {"a": {}}},
        {"file": None, "columns": None, "tables": {"other": 1}}, {"file": None, "columns": None, "tables": []},
        {"file": None, "columns": None, "tables": {"other": {**ONE, "nonsense": 1}}},
        {"file": None, "columns": None, "tables": {"other": {**ONE, "references": {"age": 1}}}},
        {"file": None, "columns": None, "tables": {"other": {**ONE, "public": True}}},
        {"file": None, "columns": None, "tables": {"other": {**ONE, "key": "none"}}},
        {"file": None, "columns": None, "tables": {"other": {**ONE, "file": "../x.csv"}}},
    ],
)  # fmt: skip
def test_bad_declarations_are_refused_and_leave_nothing(running: Running, change: dict) -> None:
    """What is wrong is said, with a code, and no ledger and no dataset comes of it."""
    with pytest.raises(SulqError):
        running.ask("owner", "register", {**DECLARED, "name": "other", **change})
    assert "other" not in [d["name"] for d in running.ask("owner", "datasets")["datasets"]]
    assert not list(running.folder.rglob("other*"))


def test_a_graph_is_registered_and_asked_of_a_worker(running: Running) -> None:
    """Its facts name the graph; a statistic of the whole is worked out and hidden in a worker's own process."""
    (running.folder / "clinic" / "ties.csv").write_text("u,v\n" + "\n".join(f"{i},{(i + 1) % 30}" for i in range(30)))
    ends = wire.to_json(sulq.Int(0, 29))
    told = {"name": "ties", "file": "clinic/ties.csv", "columns": {"u": ends, "v": ends}, "graph": ["u", "v"]}
    running.ask("owner", "register", {**told, "budget": wire.to_json(sulq.Epsilon(900)), "synthetic": True})
    running.ready("ties")
    asks = NamedAsks(ClerkOracle(ClerkClient(running.line.call, running.tokens["owner"]), "ties"))
    assert asks.graph.graph == sulq.Graph("u", "v")
    assert asks.graph.min_cut(spend=sulq.Epsilon(100)).value == 2  # a ring; noise of 1/100 is 0 but for e^-100
    assert asks.graph.to_connected(spend=sulq.Epsilon(100)).value == 0
    assert sum(asks.graph.edges(spend=sulq.Epsilon(100)).value.values()) == 30
    running.ask("owner", "withdraw", dataset="ties")


def test_data_that_changed_underneath_stops_its_dataset_SR12(running: Running) -> None:
    """A file that was replaced is noticed within moments: nothing more is charged, and only the owner learns why."""
    path = running.folder / "moved.parquet"
    survey(path, 50)
    columns = {"age": wire.to_json(sulq.Int(0, 120))}
    body = {**DECLARED, "name": "moved", "file": "moved.parquet", "columns": columns, "unit": None}
    running.ask("owner", "register", body)
    running.ready("moved")
    running.ask("owner", "ask", COUNT, dataset="moved")
    survey(path, 51)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        (found,) = [d for d in running.ask("owner", "datasets")["datasets"] if d["name"] == "moved"]
        if found["problem"] is not None:
            break
        time.sleep(0.1)
    assert found["problem"]["code"] == "source-changed"
    spent = running.ask("owner", "budget", dataset="moved")["spent"]
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "ask", COUNT, dataset="moved")
    assert refused.value.code == "not-ready"
    assert running.ask("owner", "budget", dataset="moved")["spent"] == spent
    assert Path(running.folder / "moved.ledger").exists()


def test_a_wrong_registration_is_refused_at_once_and_can_be_put_right(running: Running) -> None:
    """A column the file has not is heard of in the reply; no dataset, ledger or worker is left; the next fits."""
    survey(running.folder / "late.parquet", 60)
    columns = {"age": wire.to_json(sulq.Int(0, 120))}
    body = {**DECLARED, "name": "late", "file": "late.parquet", "columns": columns, "unit": None}
    wrong = {**body, "columns": {"agee": columns["age"]}, "budget": wire.to_json(sulq.Epsilon(9))}
    before = set(running.supervisor.pids())
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", wrong)
    assert refused.value.code == "missing-column"
    assert "late" not in [d["name"] for d in running.ask("owner", "datasets")["datasets"]]
    assert [path.name for path in running.folder.rglob("*late*") if path.is_file()] == ["late.parquet"]
    until = time.monotonic() + 120
    while set(running.supervisor.pids()) != before and time.monotonic() < until:
        time.sleep(0.05)
    assert set(running.supervisor.pids()) == before
    assert running.ask("owner", "register", body) == {"name": "late", "ready": True}
    running.ready("late")
    assert wire.from_json(running.ask("owner", "budget", dataset="late")["budget"]) == sulq.Epsilon(3)
    running.ask("owner", "ask", COUNT, dataset="late")


def test_a_dataset_is_taken_away_and_its_ledger_stays_T56(running: Running) -> None:
    """Gone for all, workers too, after a restart as well; registered again, what was spent is still spent."""
    survey(running.folder / "brief.parquet", 60)
    columns = {"age": wire.to_json(sulq.Int(0, 120))}
    body = {**DECLARED, "name": "brief", "file": "brief.parquet", "columns": columns, "unit": None}
    before = set(running.supervisor.pids())
    running.ask("owner", "register", body)
    running.ready("brief")
    running.ask("owner", "ask", COUNT, dataset="brief")
    with pytest.raises(AccessDenied):
        running.ask("auditor", "withdraw", dataset="brief")
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "withdraw", dataset="survey")
    assert refused.value.code == "bad-config"
    running.ask("owner", "withdraw", dataset="brief")
    os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
    running.ready("survey")
    assert "brief" not in [d["name"] for d in running.ask("owner", "datasets")["datasets"]]
    assert set(running.supervisor.pids()) == before
    assert (running.folder / "brief.ledger").exists()
    other = {**body, "name": "another", "budget": wire.to_json(sulq.Epsilon(300))}
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", other)
    assert refused.value.code == "budget-mismatch"
    assert (running.folder / "brief.ledger").exists(), "a ledger that was there is never unmade"
    running.ask("owner", "register", {**other, "budget": DECLARED["budget"]})
    assert wire.from_json(running.ask("owner", "budget", dataset="another")["spent"]) == sulq.Epsilon(1)


def test_a_file_of_the_configurations_has_no_second_budget_T56(running: Running) -> None:
    """The configuration's file, whose ledger lies elsewhere or not, is not registered under a ledger of its own."""
    columns = {"age": wire.to_json(sulq.Int(0, 120))}
    body = {**DECLARED, "name": "again", "file": "survey.parquet", "columns": columns, "unit": None}
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", body)
    assert refused.value.code in {"unit-mismatch", "budget-mismatch"}, "by default it lies under the same ledger"
    link = running.folder / "linked.parquet"
    link.hardlink_to(running.folder / "survey.parquet")
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", {**body, "file": "linked.parquet"})
    assert refused.value.code in {"unit-mismatch", "budget-mismatch"}, "by another name it is the same file"
    assert not (running.folder / "linked.ledger").exists()


def test_a_copy_of_a_file_has_no_second_budget_T98(running: Running) -> None:
    """The clerk, who may not read it, hears from the worker that its bytes are those of data under another ledger.

    Control: a file of other people is registered under a ledger of its own.
    """
    lines = ["who,age", *(f"{i},{30 + i % 40}" for i in range(200))]
    (running.folder / "first.csv").write_text("\n".join(lines))
    (running.folder / "copied.csv").write_text("\n".join(lines))
    (running.folder / "others.csv").write_text("\n".join([*lines, "999,33"]))
    body = {**DECLARED, "synthetic": False}
    running.ask("owner", "register", {**body, "name": "first", "file": "first.csv"})
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", {**body, "name": "copied", "file": "copied.csv"})
    assert refused.value.code == "covered-source"
    assert not (running.folder / "copied.ledger").exists()
    running.ask("owner", "register", {**body, "name": "others", "file": "others.csv"})


def test_a_copy_has_no_second_budget_when_the_first_was_taken_away_T98(running: Running) -> None:
    """In another folder, its ledger open nowhere, a copy is still known by the ledger that the first was under.

    Control: with the server's note of that ledger gone, nothing tells it, and it is taken on.
    """
    lines = "\n".join(["who,age", *(f"{i},{40 + i % 30}" for i in range(150))])
    for folder in ("there", "here"):
        (running.folder / folder).mkdir()
        (running.folder / folder / "same.csv").write_text(lines)
    body = {**DECLARED, "synthetic": False}
    running.ask("owner", "register", {**body, "name": "gone", "file": "there/same.csv"})
    running.ready("gone")
    running.ask("owner", "ask", COUNT, dataset="gone")
    running.ask("owner", "withdraw", dataset="gone")
    again = {**body, "name": "again", "file": "here/same.csv"}
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", again)
    assert refused.value.code == "covered-source"
    assert not (running.folder / "here" / "same.ledger").exists()
    note = running.folder / "state" / "datasets" / ".ledgers"
    kept = note.read_text()
    note.write_text(json.dumps({place: at for place, at in json.loads(kept).items() if "there" not in place}))
    running.ask("owner", "register", again)
    running.ask("owner", "withdraw", dataset="again")
    note.write_text(kept)


def test_a_dataset_has_an_anchor_by_a_call_T46(running: Running) -> None:
    """It lies in the server's folder, is written at each debit, and still is when the clerk was killed.

    Control: a dataset that names none has none.
    """
    anchors = running.supervisor._service.anchors
    lines = "\n".join(["who,age", *(f"{i},{50 + i % 20}" for i in range(120))])
    (running.folder / "anchored.csv").write_text(lines)
    told = {**DECLARED, "name": "anchored", "file": "anchored.csv", "anchor": "anchored.anchor"}
    running.ask("owner", "register", told)
    running.ready("anchored")
    noted = []
    for kill in (False, True):
        if kill:
            os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
            running.ready("anchored")
        running.ask("owner", "ask", COUNT, dataset="anchored")
        noted.append(json.loads((anchors / "anchored.anchor").read_text())["seq"])
    assert noted[0] < noted[1]
    assert [path.name for path in anchors.glob("[!.]*")] == ["anchored.anchor"]
    with pytest.raises(SetupError) as refused:  # the same rows, and the ledger with its anchor, without it
        running.ask("owner", "register", {**told, "name": "other", "anchor": None})
    assert refused.value.code == "bad-anchor"
    running.ask("owner", "withdraw", dataset="anchored")
    running.ask("owner", "register", told)
    running.ready("anchored")


@pytest.mark.parametrize(
    "name", ["../x.anchor", "/x.anchor", "a/b.anchor", "..", ".hidden", "", "link.anchor", "x\x00", "x" * 300, 7]
)
def test_an_anchor_lies_in_the_servers_folder_alone_T70(running: Running, name: object) -> None:
    """No name leads out of it, by dots, by a root of its own or by a link. Control: the test above."""
    anchors = running.supervisor._service.anchors
    link = anchors / "link.anchor"
    if not link.is_symlink():
        link.symlink_to(running.folder / "outside.anchor")
    before = sorted(path.name for path in anchors.parent.rglob("*"))
    with pytest.raises(SulqError) as refused:
        running.ask("owner", "register", {**DECLARED, "name": "astray", "anchor": name})
    assert refused.value.code in ("bad-anchor", "bad-request")
    assert sorted(path.name for path in anchors.parent.rglob("*")) == before
    assert not (running.folder / "outside.anchor").exists()


def test_a_server_without_a_folder_for_anchors_says_so(tmp_path: Path) -> None:
    """The owner hears what is to be set; nothing is begun."""
    office = Office(tmp_path, survey=memory_survey())
    survey(tmp_path / "a.parquet", 20)
    frame = {"call": "register", "token": office.tokens["owner"]}
    told = office.call({**frame, "body": {**DECLARED, "file": "a.parquet", "anchor": "a.anchor"}})["error"]
    assert told["code"] == "bad-anchor"
    assert "anchors in [server]" in told["remedy"]


@pytest.mark.parametrize(("name", "delta"), [("basic_share", "basic_delta"), ("key_share", "key_delta")])
def test_an_owner_sets_how_delta_is_divided_by_a_call_SR26(running: Running, name: str, delta: str) -> None:
    """The part is fixed with the ledger: registered again with another it is refused, without one it is the same."""
    file = f"{name}.csv"
    (running.folder / file).write_text("\n".join(["who,age", *(f"{i},{30 + i % 40}" for i in range(50))]))
    budget = wire.to_json(sulq.EpsilonDelta(1, 1e-6))
    body = {**DECLARED, "name": "parts", "file": file, "budget": budget}
    for told, refused in (({name: 0.95}, "0 to 0.9"), ({name: "0.1"}, "0 to 0.9")):
        with pytest.raises(SetupError, match=refused):
            running.ask("owner", "register", {**body, **told})
    with pytest.raises(SetupError, match="has none to divide"):
        running.ask("owner", "register", {**body, "budget": DECLARED["budget"], name: 0.1})
    for told, refused in (({name: 0.3}, None), ({name: 0.1}, "budget-mismatch"), ({}, None)):
        if refused is not None:
            with pytest.raises(SetupError, match=refused):
                running.ask("owner", "register", {**body, **told})
            continue
        running.ask("owner", "register", {**body, **told})
        facts = wire.from_json(running.ask("owner", "facts", {}, dataset="parts")["facts"])
        assert getattr(facts.split, delta) == Fraction(3, 10**7)
        running.ask("owner", "withdraw", {}, dataset="parts")


def clinic(folder: Path) -> dict:
    """Files of people, their visits and public regions; how they are registered."""
    folder.mkdir()
    (folder / "people.csv").write_text("\n".join(["pid,region", *(f"{i},{i % 4}" for i in range(300))]))
    (folder / "visits.csv").write_text("\n".join(["who,cost", *(f"{i % 300},{i % 50}" for i in range(600))]))
    (folder / "regions.csv").write_text("code,coast\n0,true\n1,false\n2,true\n3,false")
    code = wire.to_json(sulq.Int(0, 3))
    tables = {
        "people": {"file": f"{folder.name}/people.csv", "columns": {"region": code}, "key": "pid"},
        "visits": {
            "file": f"{folder.name}/visits.csv", "columns": {"cost": wire.to_json(sulq.Int(0, 50))}, "person": "who",
        },
        "regions": {
            "file": f"{folder.name}/regions.csv", "key": "code", "public": True,
            "columns": {"code": code, "coast": wire.to_json(sulq.Bool())},
        },
    }  # fmt: skip
    unit = wire.to_json(sulq.Unit("pid", rows=2))
    return {"name": folder.name, "tables": tables, "unit": unit, "budget": wire.to_json(sulq.Epsilon(9))}


def test_several_tables_are_registered_and_joined(running: Running) -> None:
    """People, their visits and public regions, with keys: a join along them is answered, and a doubled key refused."""
    body = clinic(running.folder / "ward")
    assert running.ask("owner", "register", body) == {"name": "ward", "ready": True}
    running.ready("ward")
    asks = NamedAsks(ClerkOracle(ClerkClient(running.line.call, running.tokens["owner"]), "ward"))
    text = "SELECT coast, COUNT(*) FROM people JOIN regions ON region = code GROUP BY coast"
    found = {row[0]: float(row[1]) for row in asks.sql(text, spend=sulq.Epsilon(4)).value}
    assert all(abs(found[coast] - 150) < 30 for coast in (False, True)), found
    other = clinic(running.folder / "twice")
    (running.folder / "twice" / "regions.csv").write_text("code,coast\n0,true\n0,false")
    with pytest.raises(SetupError) as refused:
        running.ask("owner", "register", other)
    assert refused.value.code == "key-not-unique"
    assert "twice" not in [d["name"] for d in running.ask("owner", "datasets")["datasets"]]
    running.ask("owner", "withdraw", dataset="ward")
    alone = {**body, "name": "alone", "tables": {"visits": body["tables"]["visits"]}}
    running.ask("owner", "register", alone)
    spent = wire.from_json(running.ask("owner", "budget", dataset="alone")["spent"])
    assert spent == sulq.Epsilon(4), "the same people's, whichever of their tables is asked (T56)"


def test_ledgers_have_a_folder_of_their_own_where_the_owner_says_so(tmp_path: Path) -> None:
    """Registered data then has its ledger there, the clerk opens no data, and says so; asked, it answers."""
    books = tmp_path / "books"
    with service(
        workers=1, clerk=PATIENT, ledgers=books, ledger=str(books / "survey.ledger"), prepared=False
    ) as running:
        body = clinic(running.folder / "ward")
        running.ask("owner", "register", body)
        running.ready("ward")
        running.ask("owner", "ask", COUNT, dataset="ward")
        assert sorted(path.name for path in books.glob("*.ledger")) == ["survey.ledger", "ward%2Fpeople.ledger"]
        assert not list(running.folder.rglob("*.ledger"))
        assert running.ask("owner", "look", {})["files"], "the names of what may be registered are seen"
        os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
        running.ready("ward")
        running.ready("survey")
        assert wire.from_json(running.ask("owner", "budget", dataset="ward")["spent"]) == sulq.Epsilon(1)
        assert running.ask("owner", "health")["files"] == ("own" if launcher.landlock() else "shared")


def test_the_number_of_rows_is_chosen_when_it_is_registered_so(running: Running) -> None:
    """The unit says rows "auto": one histogram is charged, and workers keep the number that follows from it."""
    lines = ["who,age", *(f"{i % 700},{20 + i % 50}" for i in range(7000))]
    (running.folder / "clinic" / "many.csv").write_text("\n".join(lines))
    unit = {"kind": "Unit", "column": "who", "rows": "auto", "share": 0.1}
    body = DECLARED | {
        "name": "many",
        "file": "clinic/many.csv",
        "unit": unit,
        "budget": wire.to_json(sulq.Epsilon(50)),
    }
    for wrong in ({"rows": "some"}, {"least": 3}, {"share": 3}, {"most": "all"}, {"kind": "Int"}):
        with pytest.raises(SulqError):
            running.ask("owner", "register", body | {"unit": unit | wrong}, dataset=None)
    reply = running.ask("owner", "register", body, dataset=None)
    running.ready("many")
    facts = wire.from_json(running.ask("owner", "facts", dataset="many")["facts"])
    assert (facts.spent, facts.unit.rows) == (sulq.Epsilon(5), facts.choice.rows)
    assert 9 <= facts.unit.rows <= 13
    if reply["ready"]:
        assert wire.from_json(reply["choice"]) == facts.choice
    answer = wire.from_json(running.ask("owner", "ask", COUNT, dataset="many")["answer"])
    assert abs(float(answer.value) - 7000) < 1000
    assert f"at most {facts.unit.rows} a person" in answer.notes[0]
    os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
    running.ready("many")
    assert wire.from_json(running.ask("owner", "facts", dataset="many")["facts"]).choice == facts.choice
    assert len(running.ask("owner", "transcript", {}, dataset="many")["lines"]) == 2
