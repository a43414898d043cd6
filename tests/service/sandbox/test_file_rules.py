"""Which files each process of the server can open: tried in a process started as that part is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import sulq
from sulq.answers import wire
from sulq.curator.ledger.opening import verify
from sulq.service.clerk.registration import declare
from sulq.service.sandbox import file_rules, launcher
from sulq.service.settings import Service
from sulq.service.supervisor import process
from tests.postgres import server
from tests.service.kills import PRICE, question
from tests.service.service import COLUMNS, found_by_children, service, survey

READ, CHANGED, CLOSED = [True, False], [True, True], [False, False]
FILES = (
    "survey.ledger", "survey.ledger-journal", "survey.prepared", "other.csv", "cert.pem", "key.pem",
    "books/survey.ledger", "books/survey.ledger-journal", "far/survey.anchor", "state/access.db",
    "survey.prepared.d/rows",
)  # fmt: skip
NEW = ("survey.prepared.d/new", "books/new", "state/new", "spill/new")


def pried(
    part: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ledger: str | None = None,
    data: str = "survey.parquet",
    **settings: object,
) -> tuple[dict, dict[str, list[bool]]]:
    """What a process started as a part says of itself, and what it could read and change."""
    for name in ("state", "books", "far"):
        (folder / name).mkdir()
    survey(folder / "survey.parquet")
    declared = declare(
        "survey", folder / data, COLUMNS, budget=sulq.Epsilon(9), ledger=ledger,
        prepared=folder / "survey.prepared", anchor=folder / "far" / "survey.anchor",
    )  # fmt: skip
    told = Service(folder / "state", tls_cert=folder / "cert.pem", tls_key=folder / "key.pem", **settings)
    for name in FILES[:-1]:
        (folder / name).touch()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = {
            "service": told.to_json(), "dataset": declared.for_worker().to_json(), "datasets": [declared.to_json()],
            "path": str(declared.tables[0].files[0]), "folders": [str(folder)], "port": listener.getsockname()[1],
            "tries": [str(folder / name) for name in ("survey.parquet", *FILES, *NEW)],
        }  # fmt: skip
        with found_by_children(""):
            monkeypatch.setitem(process.PARTS, part, "tests.service.prying")
            child = process.launched(part, settings, (), folder / "spill", stdout=subprocess.PIPE)
            said = json.loads(child.stdout.read())
            child.wait()
            child.stdin.close()
            child.stdout.close()
    return said, {str(Path(path).relative_to(folder)): found for path, found in said["opens"].items()}


OWN = {
    "web": {"cert.pem": READ, "key.pem": READ},
    "worker": {"survey.parquet": READ, "survey.prepared.d/rows": CHANGED, "survey.prepared.d/new": [False, True]},
    "look": {"survey.parquet": READ},
    "check": {"survey.parquet": READ},
    "clerk": {name: CHANGED for name in FILES if name.startswith(("books/", "far/", "state/"))}
    | {"books/new": [False, True], "state/new": [False, True]},
}


@pytest.mark.parametrize("part", sorted(OWN))
def test_a_part_opens_its_own_files_alone_T69(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web opens neither data, ledgers nor the access store; the clerk ledgers, anchors and the server's state.

    A worker opens its data and its copy, a look its file, and none of them the rest or a way out. The clerk may see
    which files there are to register.

    Control: what one part cannot open another can, and the next test's clerk opens the data.
    """
    if not launcher.landlock():
        pytest.skip("this kernel has no Landlock")
    ledger = str(tmp_path / "books" / "survey.ledger")
    said, found = pried(
        part, tmp_path, monkeypatch, ledger=ledger, data_root=tmp_path, ledgers=tmp_path / "books"
    )  # fmt: skip
    expected = {name: OWN[part].get(name, CLOSED) for name in found} | {"spill/new": [False, True]}
    assert found == expected
    assert (said["files"], said["rights"]) == ("own", "none")
    assert said["lists"] == [part == "clerk"]
    assert said["connects"] is False or launcher.landlock() < 4


def test_a_web_that_sends_traces_connects_to_their_port_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another port stays shut, and so do all files (the control, that it does reach its own: web/test_traces)."""
    if launcher.landlock() < 4:
        pytest.skip("this kernel's Landlock knows no ports")
    said, found = pried("web", tmp_path, monkeypatch, traces="http://127.0.0.1:9/v1/traces")
    assert said["connects"] is False
    assert found == {name: OWN["web"].get(name, CLOSED) for name in found} | {"spill/new": [False, True]}


def test_a_worker_opens_the_parts_of_its_table_alone_T69(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in the folder of a pattern are seen, so that a part that comes is noticed, and no other file is opened."""
    if not launcher.landlock():
        pytest.skip("this kernel has no Landlock")
    ledger = str(tmp_path / "books" / "survey.ledger")
    said, found = pried("worker", tmp_path, monkeypatch, ledger=ledger, data="survey*.parquet")
    assert found == {name: OWN["worker"].get(name, CLOSED) for name in found} | {"spill/new": [False, True]}
    assert (said["files"], said["lists"]) == ("own", [True])


@pytest.mark.parametrize("ledgers", ["beside", "by calls", "postgresql"])
def test_a_clerk_that_could_open_the_data_says_so(
    ledgers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers beside the data, or to be begun there by calls, open the data's folder; what is elsewhere stays shut.

    With a ledger in PostgreSQL the clerk opens no folder of data, and connects.
    """
    if not launcher.landlock():
        pytest.skip("this kernel has no Landlock")
    ledger = {"beside": None, "by calls": str(tmp_path / "books" / "survey.ledger")}.get(
        ledgers, "postgresql://nobody@127.0.0.1/none"
    )
    more = {"data_root": tmp_path} if ledgers == "by calls" else {}
    said, found = pried("clerk", tmp_path, monkeypatch, ledger=ledger, **more)
    shared = ledgers != "postgresql"
    assert said["files"] == ("shared" if shared else "own")
    assert found["survey.parquet"] == (CHANGED if shared else CLOSED)
    assert found["state/access.db"] == CHANGED
    assert said["connects"] is (ledgers == "postgresql" or launcher.landlock() < 4)


def test_health_says_whether_sums_are_certified() -> None:
    """Where rows are read without a copy they are not, and the dataset's facts say so; control: with one they are."""
    for prepared in (None, False):
        with service(prepared=prepared) as running:
            running.ready()
            assert running.line.ask("health")["certified"] is (prepared is None)


def test_health_says_how_processes_are_kept_apart() -> None:
    """Of the clerk, the workers and the web: whose files, which rights; nothing else of them."""
    with service(web=1) as running:
        told = running.line.ask("health")
        assert set(told["workers"]) == {"network", "files", "rights"}
        assert told["workers"]["files"] == (["own"] if launcher.landlock() else ["shared"])
        assert told["files"] == "shared", "its ledger lies beside the data"
        assert told["rights"] in {"none", "some"}


def test_a_confined_clerk_keeps_its_ledger_in_postgresql(tmp_path: Path) -> None:
    """It asks, is killed, and asks again; its anchor is noted, its data stay shut, and it says so."""
    url = server().url()
    with service(ledger=url, anchor=tmp_path / "survey.anchor", workers=1) as running:
        running.ask("alice", "ask", question(10))
        os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
        running.ready()
        running.ask("alice", "ask", question(11))
        assert running.line.ask("health")["files"] == "shared", "data_root is the clerk's, to begin ledgers in"
        spent = wire.from_json(running.ask("owner", "budget")["spent"]).amount
    assert spent == 2 * sulq.Epsilon(PRICE).exact == verify(url).spent.amount
    assert json.loads((tmp_path / "survey.anchor").read_bytes())["whole"]["events"] == 2
    with service(ledger=url, anchor=tmp_path / "survey.anchor", workers=1, ledgers=tmp_path, renew=True) as running:
        assert running.line.ask("health")["files"] == ("own" if launcher.landlock() else "shared")
        running.ask("alice", "ask", question(12))


def test_a_copy_made_elsewhere_is_taken_over(tmp_path: Path) -> None:
    """A prepared copy at the owner's place is linked into the worker's folder once; a later one there is left alone."""
    place = tmp_path / "survey.prepared"
    settings = {"dataset": {"prepared": str(place)}}
    assert file_rules.settled({"dataset": {"prepared": False}}) == {"dataset": {"prepared": False}}
    own = Path(file_rules.settled(settings)["dataset"]["prepared"])
    assert own.parent == tmp_path / "survey.prepared.d"
    assert (own.parent.stat().st_mode & 0o777, own.exists()) == (0o700, False)
    place.write_text("first")
    assert Path(file_rules.settled(settings)["dataset"]["prepared"]).read_text() == "first"
    own.unlink()
    own.write_text("newer")
    file_rules.settled(settings)
    assert (own.read_text(), place.read_text()) == ("newer", "first")


@pytest.mark.parametrize("there", [True, False])
def test_the_clerk_reaches_the_folder_of_anchors(tmp_path: Path, *, there: bool) -> None:
    """It is made, for the server's user alone, before any dataset names one. Control: without the setting it is not."""
    anchors = tmp_path / "far" / "anchors"
    service = Service(tmp_path / "state", anchors=anchors if there else None)
    allowed = file_rules.of("clerk", {"service": service.to_json(), "datasets": []}, None)
    assert (str(anchors) in allowed["write"]) is there
    assert anchors.exists() is there
    assert not there or anchors.stat().st_mode & 0o777 == 0o700
