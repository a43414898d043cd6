"""A service over rows in PostgreSQL: answers, restarts, passwords, and a database that goes away (T30, T31, T43)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import release
from sulq.answers import wire
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.learn import KMeans
from sulq.service.clerk.registration import declare
from sulq.service.sandbox import isolation, launcher
from sulq.service.supervisor import process
from sulq.service.worker import pg_proxy
from tests.loaded import address
from tests.postgres import server
from tests.service.kills import PRICE, question
from tests.service.service import COLUMNS, ROWS, Running, need_network, networks, service, survey
from tests.service.supervisor.test_main import outcome, spent
from tests.sources.postgres_cases import copies, filled, owner, role

EXACT = sum((i * 7919) % 100_000 < 50_000 for i in range(ROWS))
PATIENCE = 120.0


@pytest.fixture
def table(tmp_path: Path) -> str:
    """The name of a table with the rows of the tests' survey."""
    need_network(there=networks())
    return filled(pq.read_table(survey(tmp_path / "rows.parquet")))


def until(done: Callable[[], bool]) -> None:
    """Wait for what is about to be."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def answers(running: Running, number: int) -> bool:
    """Whether a question gets through; one that is refused for now is asked again by `until`."""
    with contextlib.suppress(SetupError, CuratorError):
        running.ask("alice", "ask", question(number))
        return True
    return False


def value(running: Running) -> float:
    """The answer to a question that is paid well."""
    return float(wire.from_json(running.ask("alice", "ask", question(50_000, 0.5))["answer"]).value)


@contextlib.contextmanager
def locked(table: str) -> Iterator[None]:
    """Keep whoever reads the copy of a table waiting in the database."""
    import psycopg

    (schema,) = copies(table)
    (kept,) = [
        name
        for (name,) in server().do(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
        if name != "facts"
    ]
    db = psycopg.connect(address())
    db.execute(f"LOCK TABLE {schema}.{kept} IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        db.close()


def relays(running: Running) -> list[int]:
    """The processes of the relays: children of the workers."""
    workers = [pid for name, pid in running.supervisor.pids().items() if name.startswith("worker")]
    return [
        int(pid) for worker in workers for pid in Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    ]


def test_rows_in_postgresql_are_served_by_the_same_doors(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Counts, SQL, a learner and a release over HTTP; the ledger lies in the database; what holds is said.

    After a restart of the server what was spent is spent, and the copy that was made is asked.
    """
    url = address(table=table)
    with service(data=url, workers=2, web=1) as running:
        assert abs(value(running) - EXACT) < 60
        told = running.line.ask("health")["workers"]
        assert told["network"] in (["namespace+seccomp+relay"], ["namespace+relay"])
        assert told["files"] == ["shared"], "a worker connects to where the ledger is"
        assert running.line.ask("health")["files"] == "shared", "the clerk connects to where the rows are"
        assert len(relays(running)) == 2
        with sulq.connect(f"{running.url}/survey", token=running.tokens["alice"]) as far:
            grouped = far.sql("SELECT city, COUNT(*), AVG(age) FROM survey GROUP BY city", spend=sulq.Epsilon(5))
            assert [round(float(row[1]), -2) for row in grouped.value] == [700.0, 700.0, 700.0, 0.0]
            model = KMeans(2, max_iter=2).fit(far[["age", "income"]], spend=sulq.Epsilon(5))
            assert model.cluster_centers_.shape == (2, 2)
            made = release.publish(far, ["SELECT COUNT(*) FROM survey"], spend=sulq.Epsilon(5))
            assert "epsilon 5" in str(made.paid)
        before = spent(running)
    with service(data=url, workers=1) as running:
        assert spent(running) == before > 0
        assert abs(value(running) - EXACT) < 60
    assert len(copies(table)) == 1
    assert len(server().do(f"SELECT 1 FROM pg_namespace WHERE nspname = 'sulq_public_{table}'")) == 1
    assert "Traceback" not in "".join(capfd.readouterr())


def test_the_console_and_jobs_have_them_too(table: str) -> None:
    """The page of the dataset, a question by its form, and a learner as a job of the server's."""
    with service(data=address(table=table), workers=1, web=1) as running:
        origin = {"Origin": running.url}
        with httpx.Client(base_url=running.url, timeout=PATIENCE, headers=origin) as browser:
            assert browser.post("/sign-in", data={"token": running.tokens["alice"]}).status_code == 303
            page = browser.get("/datasets/survey/ask").text
            assert "income" in page
            word = re.search(r'name="form" value="([^"]+)"', page)[1]
            sql = "SELECT city, COUNT(*) FROM survey GROUP BY city"
            shown = browser.post("/datasets/survey/ask", data={"form": word, "sql": sql, "amount": "0.5"})
            assert "Haifa" in shown.text
            token = {"Authorization": f"Bearer {running.tokens['alice']}"}
            asked = {"x": ["age", "income"], "spend": {"epsilon": 1}, "n_clusters": 2, "max_iter": 2}
            job = httpx.post(
                f"{running.url}/v1/datasets/survey/jobs", json={"kind": "KMeans", "parameters": asked}, headers=token,
                timeout=PATIENCE,
            )  # fmt: skip
            place = f"{running.url}/v1/jobs/{job.json()['id']}"
            until(lambda: httpx.get(place, headers=token).json()["state"] not in ("waiting", "running"))
            assert httpx.get(place, headers=token).json()["state"] == "done"
        assert spent(running) == sulq.Epsilon(1.5).exact


def test_a_database_that_goes_away_is_one_constant_outcome_T30_T31(
    table: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Noticed when the next question is checked, before its debit: refused, free, and so from then on.

    Back by itself with the database. A question whose rows are in its worker waits for no lock there.
    Nothing of what PostgreSQL or its library said is in a reply or in the log.
    """
    with service(data=address(table=table), ledger=str(tmp_path / "survey.ledger"), workers=1) as running:
        with locked(table):
            running.ask("alice", "ask", question(10))
        before = spent(running)
        server().halt("immediate")
        try:
            told = json.dumps(outcome(running, 13), sort_keys=True)
            until(lambda: running.ask("owner", "datasets")["datasets"][0]["problem"] is not None)
            later = json.dumps(outcome(running, 13), sort_keys=True)
            assert [json.loads(each)["error"]["code"] for each in (told, later)] == ["not-ready"] * 2
            assert spent(running) == before
        finally:
            server().start()
        until(lambda: answers(running, 14))
        assert abs(value(running) - EXACT) < 60
    said = "".join(capfd.readouterr())
    for text in ("terminating", "server closed", "FATAL", "Connection refused", "No such file", "Traceback"):
        assert text not in said + told
    assert "a worker reads its data again" in said
    assert '"part": "relay"' in said, "the control: the log is all of it"


def test_a_database_that_goes_away_with_its_ledger_loses_no_debit_T43(table: str) -> None:
    """A question meanwhile has no answer and no debit; both are back with the database, by themselves."""
    with service(data=address(table=table), workers=1) as running:
        running.ask("alice", "ask", question(10))
        before = spent(running)
        server().halt("immediate")
        try:
            assert "error" in outcome(running, 12)
        finally:
            server().start()
        until(lambda: answers(running, 14))
        assert spent(running) - before == sulq.Epsilon(PRICE).exact


def test_a_restart_of_the_database_between_questions_goes_unnoticed(table: str) -> None:
    """With the ledger in it too: nothing is charged for it, and the next question is answered."""
    with service(data=address(table=table), workers=1) as running:
        running.ask("alice", "ask", question(10))
        before = spent(running)
        server().restart("fast")
        until(lambda: answers(running, 11))
        assert spent(running) - before == sulq.Epsilon(PRICE).exact


def test_a_server_that_starts_before_its_database_opens_the_data_later(table: str) -> None:
    """Neither ledger nor rows can be had at first, which the owner is told; both are there by themselves in the end."""
    server().halt("fast")
    try:
        with service(data=address(table=table), workers=1, wait=False) as running:
            until(lambda: bool(running.ask("owner", "datasets")["datasets"]))
            until(lambda: running.ask("owner", "datasets")["datasets"][0]["problem"] is not None)
            server().start()
            until(lambda: answers(running, 10))
    finally:
        if server()._process.poll() is not None:
            server().start()


def test_rows_taken_anew_stop_a_server_until_it_is_started_again(table: str) -> None:
    """Before the next debit; the new server answers from the new rows, and what was spent stays spent."""
    url = address(table=table)
    declared = {"columns": COLUMNS, "unit": sulq.Unit("person"), "synthetic": True}
    with service(data=url, workers=1) as running:
        assert abs(value(running) - EXACT) < 60
        before = spent(running)
        server().do(f"DELETE FROM {table} WHERE income < 50000")
        sulq.connect(url, table="survey", renew=True, **declared).close()
        until(lambda: running.ask("owner", "datasets")["datasets"][0]["problem"] is not None)
        assert outcome(running, 10)["error"]["code"] == "not-ready"
        assert running.ask("owner", "datasets")["datasets"][0]["problem"]["code"] == "source-changed"
        assert spent(running) == before
    with service(data=url, workers=1) as running:
        found = wire.from_json(running.ask("alice", "ask", question(50_000, 1.0))["answer"])
        assert abs(float(found.value)) < 60
        assert spent(running) > before


def test_a_worker_ends_with_its_relay_and_comes_back(table: str) -> None:
    """A relay that is killed takes its worker along; another of both answers. None is left when the server stops."""
    with service(data=address(table=table), workers=1) as running:
        (first,) = relays(running)
        os.kill(first, signal.SIGKILL)
        until(lambda: running.supervisor._processes["worker-0.0"].generation > 1)
        running.ready()
        until(lambda: answers(running, 10))
        (second,) = relays(running)
    until(lambda: ended(second))


def ended(pid: int) -> bool:
    """Whether a process is gone, or will be when somebody has looked at it."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "zombie" in Path(f"/proc/{pid}/status").read_text()
    return True


def environments(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """What each process of a server is given of the environment, by its module: none lets a plain user look there."""
    given: dict[str, dict[str, str]] = {}
    reach = process.file_rules.of

    def started(command: list[str], **more: object) -> subprocess.Popen[bytes]:
        given[command[-1]] = more["env"]
        return subprocess.Popen(command, **more)

    def allowed(*told: object) -> dict[str, object] | None:
        found = reach(*told)
        if found is not None and "relay" in found:
            given[found["relay"]["command"][-1]] = found["relay"]["environment"]
        return found

    replaced = {**vars(subprocess), "Popen": started}
    monkeypatch.setattr(process, "subprocess", SimpleNamespace(**replaced))
    monkeypatch.setattr(process.file_rules, "of", allowed)
    return given


@pytest.mark.parametrize("how", ["PGPASSWORD", "PGPASSFILE"])
def test_a_password_is_the_workers_alone(
    how: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Given by the environment or a passfile to a server over TCP; nobody else has it, nor has a log.

    Control: with another password the dataset is not opened, and the owner is told.
    """
    handed, name = environments(monkeypatch), owner(table)
    monkeypatch.setenv("PGDATABASE", "ward")  # the address has another
    server().do(f"ALTER ROLE {name} PASSWORD 's3cret-{name}'")
    with asking_for_a_password(name), by_tcp() as port:
        url = f"postgresql://{name}@127.0.0.1:{port}/postgres?table={table}"
        for given, right in (("wrong", False), (f"s3cret-{name}", True)):
            if how == "PGPASSFILE":
                (tmp_path / "pass").write_text(f"127.0.0.1:{port}:*:{name}:{given}\n")
                (tmp_path / "pass").chmod(0o600)
            monkeypatch.setenv(how, given if how == "PGPASSWORD" else str(tmp_path / "pass"))
            with service(data=url, ledger=str(tmp_path / "l.ledger"), workers=1, web=1, wait=right) as running:
                if not right:
                    until(lambda: bool(running.ask("owner", "datasets")["datasets"]))
                    until(lambda: running.ask("owner", "datasets")["datasets"][0]["problem"] is not None)
                    continue
                assert abs(value(running) - EXACT) < 60
                if launcher.landlock():
                    assert running.line.ask("health")["workers"]["files"] == ["own"], "its ledger is a file"
                for part in ("web.main", "clerk.main", "worker.pg_proxy"):
                    assert how not in handed[f"sulq.service.{part}"]
                    assert given not in handed[f"sulq.service.{part}"].values()
                assert handed["sulq.service.worker.main"][how] == os.environ[how]
                assert handed["sulq.service.clerk.main"]["PGDATABASE"] == "ward", "by which rows are told apart (T56)"
                pids = running.supervisor.pids()
                for pid in (pids["web-0"], pids["clerk"], *relays(running)):
                    with contextlib.suppress(PermissionError):  # root may look whether it is so
                        assert given.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    assert f"s3cret-{name}" not in "".join(capfd.readouterr())


@contextlib.contextmanager
def asking_for_a_password(name: str) -> Iterator[None]:
    """Let a role in with its password alone."""
    place = server()._folder / "data" / "pg_hba.conf"
    before = place.read_text()
    place.write_text(f"local all {name} scram-sha-256\n{before}")
    server().do("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        place.write_text(before)
        server().do("SELECT pg_reload_conf()")


@contextlib.contextmanager
def by_tcp() -> Iterator[int]:
    """The tests' PostgreSQL at a port of this machine, as another host would have it."""
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=pg_proxy.serve, args=([listener], [(str(server()._folder), 5432)], theirs))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ours.close()
        thread.join(PATIENCE)
        listener.close()
        theirs.close()


def test_public_tables_have_the_size_of_the_copy(table: str, tmp_path: Path) -> None:
    """Of several tables in one database the public one's rows are counted once, there; questions join them."""
    import pyarrow as pa

    regions = filled(pa.table({"city": ["Haifa", "Lod", "Yafo"], "region": ["north", "center", "center"]}))
    several = declare(
        "clinic", {table: address(), regions: address()},
        {table: COLUMNS, regions: {"city": ["Haifa", "Lod", "Yafo"], "region": ["center", "north"]}},
        budget=sulq.Epsilon(50), unit=sulq.Unit("person"), public=(regions,), keys={regions: "city"},
        ledger=str(tmp_path / "clinic.ledger"), synthetic=True,
    )  # fmt: skip
    with service(workers=1, web=1, more=(several,)) as running:
        running.ready("clinic")
        with sulq.connect(f"{running.url}/clinic", token=running.tokens["owner"]) as far:
            sql = f"SELECT region, COUNT(*) FROM {table} JOIN {regions} USING (city) GROUP BY region"
            found = {str(row[0]): float(row[1]) for row in far.sql(sql, spend=sulq.Epsilon(5)).value}
        assert abs(found["north"] - ROWS / 3) < 50
        assert abs(found["center"] - 2 * ROWS / 3) < 50


def test_a_reader_asks(table: str, tmp_path: Path) -> None:
    """The role that questions are asked as comes through the relay too; one that may write stops the owner."""
    url = address(table=table, reader=role())
    with service(data=url, ledger=str(tmp_path / "a.ledger"), workers=1) as running:
        assert abs(value(running) - EXACT) < 60
    bad = address(table=table, reader=role("LOGIN SUPERUSER"))
    refused = pytest.raises(AssertionError, match="bad-config")
    with service(data=bad, ledger=str(tmp_path / "b.ledger"), workers=1, wait=False) as running, refused:
        running.ready()


def test_the_owner_hears_where_no_network_can_be_had(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network of its own a worker opens no table, and says what to do instead."""
    monkeypatch.setattr(isolation, "network", lambda: 0)
    usual = process.file_rules.of
    monkeypatch.setattr(
        process.file_rules,
        "of",
        lambda part, *more: usual(part, *more) | ({"network": True} if part == "worker" else {}),
    )
    with service(data=address(table=table), ledger=str(tmp_path / "l.ledger"), workers=1, wait=False) as running:
        with pytest.raises(AssertionError, match="engine-not-available"):
            running.ready()
        with pytest.raises(SulqError):
            running.ask("alice", "ask", question(10))
