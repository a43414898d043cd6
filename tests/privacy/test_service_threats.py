"""Threats of the service that no other suite names: counters, grown data, hostile files, what lies about on disk."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.privacy import Event
from sulq.service.clerk.calls import CALLS
from sulq.testing import exact
from tests.service.kills import question
from tests.service.office import COLUMNS, Office
from tests.service.service import Running, service

CANARY = "CANARY-4b1d"
ANEW = frozenset({"public_key", "head", "entry", "time", "created", "expires", "seconds", "stamp", "hash"})


def frame(rows: int) -> pa.Table:
    """So many people."""
    return pa.table(
        {
            "age": [(7 * i) % 90 for i in range(rows)],
            "city": [("Haifa", "Lod", "Yafo")[i % 3] for i in range(rows)],
            "income": [float((13 * i) % 1000) for i in range(rows)],
        }
    )


def plain(tree: object) -> object:
    """A reply without what is drawn or told by a clock, the same or not."""
    if isinstance(tree, dict):
        return {name: plain(item) for name, item in tree.items() if name not in ANEW}
    return [plain(item) for item in tree] if isinstance(tree, list) else tree


def test_what_is_free_is_the_same_for_any_rows_and_counters_are_the_owners_T40(tmp_path: Path) -> None:
    """Facts, prices, accuracy, budgets, lists, health: equal for 30 people and 30,000; metrics are refused (T40).

    Bar: 0 counters, plans of an engine or progress within an analyst's reach. Control: the two datasets do differ.
    """
    asked = {"question": wire.to_json(sulq.Sums((sulq.lit(1),), None, (sulq.col("city"),)))}
    asked["spend"] = wire.to_json(sulq.Epsilon(0.1))
    losses = {"events": wire.to_json((Event(Fraction(1, 10), Fraction(1, 200)),))}
    told, counts = [], []
    for rows in (30, 30_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        database = sulq.connect(
            frame(rows), table="survey", engine="memory", columns=COLUMNS, budget=sulq.Epsilon(5), synthetic=True
        )
        counts.append(float(exact(database).count().value))
        office = Office(folder, survey=database)
        try:
            found = {}
            for call in sorted({"health", "whoami", "datasets", "facts", "foresee", "afford", "budget", "transcript"}):
                body = {"foresee": asked, "afford": losses}.get(call, {})
                token, dataset = office.tokens["analyst"], "survey" if CALLS[call].dataset else None
                found[call] = office.call({"call": call, "token": token, "dataset": dataset, "body": body})
                assert "ok" in found[call], found[call]
            told.append(plain(found))
            for role in ("analyst", "auditor"):
                frame_of = {"call": "metrics", "token": office.tokens[role], "dataset": None, "body": {}}
                assert office.call(frame_of)["error"]["code"] == "forbidden"
        finally:
            office.close()
    assert told[0] == told[1]
    assert counts[0] != counts[1]


def test_a_release_over_grown_data_is_charged_to_the_same_people_T57(tmp_path: Path) -> None:
    """The second version of the data shares the first one's ledger: its answer is new, and both are paid (T57).

    Control: without growth the same question is given again for nothing.
    """
    path = tmp_path / "survey.parquet"
    options = {"columns": COLUMNS, "budget": sulq.Epsilon(1), "ledger": tmp_path / "survey.ledger"}
    pq.write_table(frame(100), path)
    with sulq.connect(path, **options) as db:
        db.count(spend=sulq.Epsilon(0.25))
        db.count(spend=sulq.Epsilon(0.25))
        assert db.spent == sulq.Epsilon(0.25)
        version = db.facts.version
    pq.write_table(frame(101), path)
    with pytest.raises(SulqError):
        sulq.connect(path, **options).count(spend=sulq.Epsilon(0.25))
    with sulq.connect(path, **options, renew=True) as db:
        answer = db.count(spend=sulq.Epsilon(0.25))
        assert not answer.reused
        assert db.facts.version > version
        assert db.spent == sulq.Epsilon(0.5)
        assert len(db.transcript()) == 2


def hostile(folder: Path, draw: random.Random) -> Iterator[str]:
    """Files that are not what their names say, cut short, turned round, or larger than they look."""
    whole = folder / "whole.parquet"
    pq.write_table(pa.table({"who": [CANARY] * 50, "age": list(range(50))}), whole)
    good = whole.read_bytes()
    made: dict[str, bytes] = {
        "empty.parquet": b"", "noise.parquet": draw.randbytes(4096),
        "magic.parquet": b"PAR1" + CANARY.encode() + b"PAR1",
        "tail.parquet": good[-200:], "head.parquet": good[:200], "long.parquet": good[:-8] + b"\xff\xff\xff\x7fPAR1",
        "negative.parquet": good[:-8] + b"\xff\xff\xff\xffPAR1", "noise.duckdb": draw.randbytes(16384),
        "nul.csv": b"who,age\n\x00\x00," + CANARY.encode(), "quote.csv": b'who,age\n"' + b"a" * 10**6,
        "noise.csv.gz": draw.randbytes(2048), "bomb.csv.gz": gzip.compress(b"who,age\n" + b"0" * 50_000_000),
        "code.csv": b"cos\nsystem\n(S'touch " + str(folder / "ran").encode() + b"'\ntR.",
    }  # fmt: skip
    for number in range(6):  # one byte in ten thousand is another
        bent = bytearray(good)
        for _ in range(1 + len(bent) // 10_000):
            bent[draw.randrange(len(bent))] ^= 1 << draw.randrange(8)
        made[f"bent-{number}.parquet"] = bytes(bent)
    for name, data in made.items():
        (folder / name).write_bytes(data)
        yield name


OPENED = frozenset({"noise.parquet", "long.parquet", "bent-0.parquet", "code.csv", "whole.parquet"})  # by a worker too


@pytest.fixture
def running() -> Iterator[Running]:
    with service(workers=1, limit=5.0) as found:
        yield found


def test_no_hostile_file_ends_the_server_or_runs_anything_T77(
    running: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    """Looked at and registered by an owner, in processes that may do nothing else (T77).

    Bar: the server answers on, nothing of the files is run, no byte of them in an error or a log. Control: the whole
    file among them is taken.
    """
    clerk = running.supervisor.pids()["clerk"]
    heard: list[str] = []
    columns = {"age": wire.to_json(sulq.Int(0, 120))}
    declared = {"columns": columns, "unit": wire.to_json(sulq.Unit()), "budget": wire.to_json(sulq.Epsilon(1))}
    taken = []
    for number, name in enumerate([*hostile(running.folder, random.Random("hostile")), "whole.parquet"]):
        calls = [("look", {"file": name})]
        if name in OPENED:
            calls.append(("register", {"name": f"d{number}", "file": name, "synthetic": True, **declared}))
        for call, body in calls:
            try:
                heard.append(json.dumps(running.ask("owner", call, body, dataset=None)))
                taken.append((call, name))
            except SulqError as error:
                heard.append(f"{error} {error.code}")
        running.ask("alice", "ask", question(10 + number))
    assert ("look", "whole.parquet") in taken
    assert running.supervisor.pids()["clerk"] == clerk
    assert not (running.folder / "ran").exists()
    heard.append(json.dumps(running.ask("owner", "datasets", dataset=None)))
    assert CANARY not in "".join([*heard, *capfd.readouterr()])


def test_all_a_service_leaves_on_disk_is_its_owners_alone_T90() -> None:
    """Ledger, prepared copy, access store, sockets, folders: mode 0600 or 0700, whatever the umask (T90).

    Control: the data file itself, which is not the service's, is open to all under this umask.
    """
    before = os.umask(0)
    try:
        with service(workers=1, web=1) as running:
            running.ask("alice", "ask", question(10))
            places = [running.folder, running.supervisor.folder]
            found = {path: path.lstat().st_mode & 0o777 for place in places for path in place.rglob("*")}
            data = found.pop(running.folder / "survey.parquet")
            open_to_others = {str(path): oct(mode) for path, mode in found.items() if mode & 0o077}
            core = Path(f"/proc/{running.supervisor.pids()['worker-0.0']}/limits").read_text()
    finally:
        os.umask(before)
    # A socket in a folder that only its owner may enter is out of others' reach.
    assert {path for path in open_to_others if not path.endswith(".sock")} == set()
    assert running.supervisor.folder.name.startswith("sulq-run-")
    assert data & 0o077
    assert any(line.split()[:5] == ["Max", "core", "file", "size", "0"] for line in core.splitlines())


def test_no_call_edits_or_deletes_what_was_spent_T60() -> None:
    """The whole table of calls: an owner may add and end principals, set shares and register; nothing else writes.

    Whoever has a token begins and ends sessions with it and may have it rotated; neither touches a ledger.

    Bar: no call of another name. Control: an analyst is refused those.
    """
    writes = {"add_principal", "revoke", "share", "register", "withdraw", "ask"}
    own = {"begin_session", "end_session", "rotate"}
    reads = {
        "health", "whoami", "datasets", "facts", "foresee", "terms", "afford", "budget", "transcript", "receipt",
        "verify", "export", "principals", "look", "check", "metrics", "readiness", "access",
    }  # fmt: skip
    assert set(CALLS) == writes | own | reads
    assert all("analyst" not in CALLS[name].roles for name in set(CALLS) & writes - {"ask"})
