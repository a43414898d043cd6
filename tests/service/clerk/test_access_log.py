"""The access log: what it holds and what it never holds, its chain, and what happens where it cannot be written."""

from __future__ import annotations

import re
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sulq.errors import SetupError
from sulq.kernel.ledger import store
from sulq.kernel.ledger.chain import ORIGIN, link
from sulq.service.clerk import access_log
from sulq.service.clerk.access_log import MAX_STRANGERS_WAITING, AccessLog
from sulq.service.clerk.tokens import hashed
from tests.privacy.disks import Disk
from tests.service.matrix import ASKED, MATRIX, SPEND
from tests.service.office import Office, survey


class FullDisk(Disk):
    """Takes no write while it is full."""

    full = False

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        if act == "write" and self.full:
            raise apsw.FullError("no space left on device")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    found = Office(tmp_path, survey=survey(), hidden=survey())
    yield found
    found.close()


def call(office: Office, who: str | None, name: str, body: object = None, dataset: str | None = "survey") -> dict:
    token = None if who is None else office.tokens.get(who, who)
    more = {"request": "r" * 16, "address": "192.0.2.7"}
    return office.call({"call": name, "token": token, "dataset": dataset, "body": body or {}, **more})


def told(office: Office) -> list[dict]:
    office.access.log.flush()
    return [entry.told() for entry in access_log.entries(office.access.log.path)]


def code(reply: dict) -> str:
    return reply.get("error", {}).get("code", "ok")


def test_every_act_stands_there_before_it_is_done_and_with_its_outcome(office: Office, tmp_path: Path) -> None:
    """Who, from where, what, when, the request's id and the outcome; of what is refused the code; nothing else."""
    (tmp_path / "people.csv").write_text("age\n1\n")
    registered = MATRIX["POST", "/v1/datasets"].body
    acts = [
        ("owner", "add_principal", {"name": "dana", "role": "analyst", "datasets": ["survey"], "days": 3}, None, "ok"),
        ("owner", "add_principal", {"name": "dana", "role": "analyst"}, None, "name-taken"),
        ("owner", "rotate", {"name": "dana", "overlap": 60}, None, "ok"),
        ("owner", "share", {"analyst": "dana", "share": 0.5}, "survey", "ok"),
        ("owner", "register", registered, None, "ok"),
        ("owner", "withdraw", {}, "fresh", "ok"),
        ("owner", "revoke", {"name": "dana"}, None, "ok"),
        ("owner", "revoke", {"name": "owner"}, None, "last-owner"),
        ("analyst", "begin_session", {}, None, "ok"),
    ]
    for who, name, body, dataset, outcome in acts:
        assert code(call(office, who, name, body, dataset)) == outcome, name
    entries = told(office)
    assert len(entries) == 2 * len(acts)
    for i, (who, name, body, dataset, outcome) in enumerate(acts):
        begun, ended = entries[2 * i : 2 * i + 2]
        about, said = ("fresh", {}) if name == "register" else (dataset, body)
        assert (begun["outcome"], ended["outcome"], ended["of"]) == ("begun", outcome, begun["seq"])
        for entry in (begun, ended):
            assert (entry["who"], entry["what"], entry["dataset"]) == (who, name, about)
            assert (entry["from"], entry["request"]) == ("192.0.2.7", "r" * 16)
            assert abs(entry["when"] - time.time()) < 600
            assert all(entry[field] == said[field] for field in ("name", "overlap", "share", "days") if field in said)
            assert "columns" not in entry
            assert "file" not in entry


def test_readings_of_the_ledger_the_end_of_sessions_and_refusals_are_entries(office: Office) -> None:
    """One entry each. A role that does not reach a call is written down always, a call that anybody may make never."""
    session = call(office, "auditor", "begin_session", dataset=None)["ok"]["session"]
    calls = [
        ("auditor", "verify", "survey", "ok"),
        ("auditor", "export", "survey", "ok"),
        (session, "end_session", None, "ok"),
        ("analyst", "verify", "survey", "forbidden"),
        ("analyst", "principals", None, "forbidden"),
        ("analyst", "access", None, "forbidden"),
        ("analyst", "register", None, "forbidden"),
        ("sulq_unknown", "revoke", None, "unauthorized"),
        ("auditor", "verify", "hidden", "not-found"),
    ]
    for who, name, dataset, outcome in calls:
        assert code(call(office, who, name, {}, dataset)) == outcome, name
    for who, name in (("analyst", "whoami"), ("sulq_unknown", "whoami"), ("owner", "principals"), ("owner", "access")):
        call(office, who, name, dataset=None)
    names = {session: "auditor", "sulq_unknown": None}
    assert [(e["who"], e["what"], e["dataset"], e["outcome"]) for e in told(office)[2:]] == [
        (names.get(who, who), name, dataset, outcome) for who, name, dataset, outcome in calls
    ]


def test_every_ask_has_its_price_and_its_place_in_the_ledger(office: Office) -> None:
    """Charged, refused and given again; `entry` is the place of the debit, and no word of the question is there."""
    for question in (ASKED, {**ASKED, "spend": {"epsilon": 1000}}, {"question": 7}):
        body = {"question": question["question"], "spend": {"kind": "Epsilon", **question.get("spend", SPEND)}}
        call(office, "analyst", "ask", body)
    call(office, "analyst", "ask", {**ASKED, "spend": {"kind": "Epsilon", **SPEND}, "reuse": True})
    call(office, "auditor", "ask", ASKED)
    found = told(office)
    assert [(e["what"], e["who"], e["dataset"], e["outcome"]) for e in found] == [
        ("ask", "analyst", "survey", "ok"),
        ("ask", "analyst", "survey", "budget-exceeded"),
        ("ask", "analyst", "survey", "wire-format"),
        ("ask", "analyst", "survey", "ok"),
        ("ask", "auditor", "survey", "forbidden"),
    ]
    (line,) = office.databases["survey"].transcript()
    assert (found[0]["entry"], found[0]["price"]) == (line["seq"], {"kind": "Epsilon", "epsilon": 0.01})
    assert "reused" not in found[0]
    assert found[3]["reused"]
    assert found[3]["entry"] == line["seq"]
    assert all(set(entry) <= {*found[0], "reused"} for entry in found)


def test_no_token_no_hash_and_no_literal_is_in_the_file(office: Office) -> None:
    """Not one that was shown, made, rotated, wrong or pasted as a name; the control: names are found."""
    secrets = list(office.tokens.values())
    made = call(office, "owner", "add_principal", {"name": "dana", "role": "analyst", "datasets": []}, None)
    secrets += [made["ok"]["token"], call(office, "owner", "rotate", {"name": "dana"}, None)["ok"]["token"]]
    secrets.append(call(office, "owner", "begin_session", {}, None)["ok"]["session"])
    secrets.append("sulq_" + "pasted" * 8)
    for name, body in (("revoke", {"name": secrets[-1]}), ("add_principal", {"name": secrets[-1], "role": "x"})):
        call(office, "owner", name, body, secrets[-1])
    call(office, secrets[-1], "revoke", {"name": "dana"}, None)
    call(office, "analyst", "verify", {}, "esc\x1b[2J" + "x" * 10_000)
    assert told(office)[-1]["dataset"] == "esc?[2J" + "x" * 73, "what moves a terminal is not kept, nor what is long"
    literal = {"kind": "Sums", "values": [{"kind": "Lit", "value": 8675309}]}
    call(office, "analyst", "ask", {"question": literal, "spend": {"kind": "Epsilon", **SPEND}})
    told(office)
    everything = b"".join(path.read_bytes() for path in office.access.log.path.parent.glob("access.log*"))
    for secret in secrets:
        assert secret.encode() not in everything
        assert secret.split("_", 1)[1][:20].encode() not in everything
        assert hashed(secret).encode() not in everything
    assert b"8675309" not in everything
    assert all(word in everything for word in (b"dana", b"analyst", b"192.0.2.7"))


def test_the_file_is_its_owners_alone_and_chained_as_a_ledger_is(office: Office) -> None:
    """Mode 0600; each hash is the ledger's own link of the body to all before."""
    for i in range(5):
        call(office, "owner", "add_principal", {"name": f"p{i}", "role": "analyst"}, None)
    path = office.access.log.path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    digest = ORIGIN
    for seq, body, kept in sqlite3.connect(path).execute("SELECT seq, body, hash FROM entries ORDER BY seq"):
        digest = link(digest, seq, body)
        assert digest == kept
    assert access_log.verify(path) == (10, digest.hex())
    path.chmod(0o644)
    assert code(call(office, "owner", "revoke", {"name": "p1"}, None)) == "access-failed"
    path.chmod(0o600)
    assert code(call(office, "owner", "revoke", {"name": "p1"}, None)) == "ok"


TAMPERED: dict[str, tuple[str, str]] = {
    "an entry is changed": ("UPDATE entries SET body = replace(body, 'p4', 'p9') WHERE seq = 5", "entry 5"),
    "an entry is taken out": ("DELETE FROM entries WHERE seq = 4", "entry 4"),
    "two change places": ("UPDATE entries SET seq = CASE seq WHEN 3 THEN -4 ELSE -3 END WHERE seq IN (3, 4)", "entry"),
    "the last is cut off": ("DELETE FROM entries WHERE seq = 8", "the end"),
    "the head is set back": (
        "UPDATE head SET seq = 7, hash = (SELECT hash FROM entries WHERE seq = 7)",
        "the end",
    ),
    "a hash is made up": ("UPDATE entries SET hash = zeroblob(32) WHERE seq = 6", "entry 6"),
    "a table is added": ("CREATE TABLE more (x)", "the file"),
    "the head is gone": ("DELETE FROM head", "the end"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_what_was_changed_is_found_and_named(tmp_path: Path, how: str) -> None:
    """By `verify`; the control: before, it is sound."""
    log = AccessLog(tmp_path / "access.log")
    for i in range(8):
        log.write("add_principal", who="owner", name=f"p{i}", outcome="ok")
    log.close()
    assert access_log.verify(log.path)[0] == 8
    statement, where = TAMPERED[how]
    with sqlite3.connect(log.path) as db:
        db.execute(statement)
    with pytest.raises(SetupError) as caught:
        access_log.verify(log.path)
    assert caught.value.code == "access-damaged"
    assert where in caught.value.message


def test_a_log_that_is_cut_off_under_a_running_clerk_takes_no_act(office: Office) -> None:
    """Whole transactions cut off leave a chain that is sound: the clerk, and whoever noted the head, knows better."""
    for i in range(3):
        call(office, "owner", "add_principal", {"name": f"p{i}", "role": "analyst"}, None)
    path = office.access.log.path
    noted = access_log.verify(path)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM entries WHERE seq > 2")
        db.execute("UPDATE head SET seq = 2, hash = (SELECT hash FROM entries WHERE seq = 2)")
    assert access_log.verify(path)[0] == 2
    assert access_log.hash_at(path, noted[0]) is None
    assert code(call(office, "owner", "revoke", {"name": "p1"}, None)) == "access-damaged"
    assert office.access.list()[3].revoked is None
    assert code(call(office, "owner", "whoami", {}, None)) == "ok"


def test_on_a_full_disk_acts_are_refused_and_asks_go_on_and_are_counted(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is done unwritten but the end of a session; with room again all is there, and the gap."""
    disk, bound = FullDisk(), 20
    log = AccessLog(office.access.log.path, vfs=disk.name)
    office.access.log, told_before = log, len(told(office)) if office.access.log.path.exists() else 0
    monkeypatch.setattr(access_log, "MAX_WAITING_ENTRIES", bound)
    session = call(office, "analyst", "begin_session", {}, None)["ok"]["session"]
    disk.full = True
    for name, body, dataset in (
        ("add_principal", {"name": "dana", "role": "analyst"}, None), ("revoke", {"name": "other"}, None),
        ("rotate", {"name": "other"}, None), ("share", {"analyst": "other", "share": 0.1}, "survey"),
        ("begin_session", {}, None), ("verify", {}, "survey"), ("export", {}, "survey"),
    ):  # fmt: skip
        assert code(call(office, "owner", name, body, dataset)) == "access-failed", name
    assert code(call(office, "other", "whoami", {}, None)) == "ok"
    assert "dana" not in [known.name for known in office.access.list()]
    assert len(office.databases["survey"]._ledger.standings()) <= 1
    assert code(call(office, session, "end_session", {}, None)) == "ok"
    assert code(call(office, session, "whoami", {}, None)) == "unauthorized"
    for _ in range(2 * bound):
        assert code(call(office, "analyst", "ask", {**ASKED, "spend": {"kind": "Epsilon", **SPEND}})) == "ok"
    disk.full = False
    assert code(call(office, "owner", "revoke", {"name": "other"}, None)) == "ok"
    found = [entry.told() for entry in access_log.entries(log.path)][told_before:]
    assert [entry["what"] for entry in found[:2]] == ["begin_session"] * 2
    kept = [entry for entry in found if entry["what"] == "ask"]
    (gap,) = [entry for entry in found if entry["what"] == "gap"]
    assert len(kept) + sum(e["what"] in ("verify", "export", "end_session") for e in found) == bound
    assert len(kept) + gap["lost"] == 2 * bound
    assert [entry["what"] for entry in found[-3:]] == ["gap", "revoke", "revoke"]
    access_log.verify(log.path)


def test_attempts_of_nobody_who_is_known_cannot_fill_the_disk(office: Office) -> None:
    """A few a second stand each, the rest are a number."""
    log = office.access.log
    for _ in range(500):
        call(office, "sulq_wrong", "revoke", {"name": "owner"}, None)
    found = told(office)
    attempts = [entry for entry in found if entry["what"] == "revoke"]
    assert 0 < len(attempts) < 500
    assert len(attempts) + sum(entry["lost"] for entry in found if entry["what"] == "gap") == 500
    assert log._strangers <= MAX_STRANGERS_WAITING


def test_what_waits_is_written_soon_and_at_the_end(tmp_path: Path) -> None:
    """By itself, in the order it came, whatever else is written meanwhile; and what is left as the log is closed."""
    log = AccessLog(tmp_path / "access.log")
    log.later("ask", who="ann", number=0)
    until = time.monotonic() + 60
    while not log.path.exists() or access_log.verify(log.path)[0] == 0:
        assert time.monotonic() < until
        time.sleep(0.05)
    for number in range(1, 50):
        (log.later if number % 7 else log.write)("ask", who="ann", number=number)
    log.close()
    assert [entry.body["number"] for entry in access_log.entries(log.path)] == list(range(50))


def test_processes_and_threads_add_to_one_chain(tmp_path: Path) -> None:
    """Each follows what the others wrote; nothing is lost, and no place is given twice."""
    path = tmp_path / "access.log"

    def work(number: int) -> None:
        log = AccessLog(path)
        for turn in range(10):
            log.write("act", who=f"w{number}", turn=turn)
            log.later("ask", who=f"w{number}", turn=turn)
        log.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert access_log.verify(path)[0] == 80
    for number in range(4):
        mine = [e.body for e in access_log.entries(path) if e.body["who"] == f"w{number}"]
        assert sorted((str(e["what"]), e["turn"]) for e in mine) == [(w, t) for w in ("act", "ask") for t in range(10)]


def test_whoever_reads_keeps_nobody_from_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the middle of its entries, or while it verifies: it goes on to what was there when it began.

    Control: a reader that held the file would be in the way.
    """
    monkeypatch.setattr(store, "PIECE", 2)  # so that there are pieces left to read
    monkeypatch.setattr(access_log, "LOCK_SECONDS", 0.2)
    log = AccessLog(tmp_path / "access.log")
    for number in range(7):
        log.write("act", who="owner", number=number)
    reader = access_log.entries(log.path)
    assert next(reader).seq == 1
    log.write("revoke", who="owner")
    assert [entry.seq for entry in reader] == [2, 3, 4, 5, 6, 7]
    usual = access_log.follow

    def slow(*read: object) -> tuple[int, bytes]:
        if len(read) == 4:  # by `verify`
            log.write("revoke", who="owner")
        return usual(*read)

    with monkeypatch.context() as patch:
        patch.setattr(access_log, "follow", slow)
        assert access_log.verify(log.path)[0] == 8
    assert access_log.verify(log.path)[0] == 9
    with access_log.reading(log.path) as held:
        held.reading()
        held.head()
        with pytest.raises(SetupError) as caught:
            log.write("revoke", who="owner")
        assert caught.value.code == "access-failed", "the control"
    assert log.write("revoke", who="owner") == 10
    log.close()


@pytest.mark.parametrize("how", ["the last is cut off", "the head is set back", "the head is gone"])
def test_a_reader_finds_an_end_that_is_not_the_heads(tmp_path: Path, how: str) -> None:
    """All that is there is read, and then it is said. Control: a log that is whole ends well."""
    log = AccessLog(tmp_path / "access.log")
    for _ in range(8):
        log.write("act", who="owner")
    log.close()
    assert len(list(access_log.entries(log.path))) == 8
    with sqlite3.connect(log.path) as db:
        db.execute(TAMPERED[how][0])
    read = []
    with pytest.raises(SetupError) as caught:
        read.extend(entry.seq for entry in access_log.entries(log.path))  # what came before the error is kept
    assert caught.value.code == "access-damaged"
    assert read == list(range(1, 8 if how == "the last is cut off" else 9))


def test_it_is_read_a_page_at_a_time(office: Office) -> None:
    """After an entry, at most so many, and where the end is; an owner's alone."""
    for i in range(4):
        call(office, "owner", "add_principal", {"name": f"p{i}", "role": "analyst"}, None)
    first = call(office, "owner", "access", {"after": 0, "limit": 3}, None)["ok"]
    assert ([e["seq"] for e in first["entries"]], first["last"]) == ([1, 2, 3], 8)
    rest = call(office, "owner", "access", {"after": 3}, None)["ok"]
    assert [e["seq"] for e in rest["entries"]] == [4, 5, 6, 7, 8]
    assert call(office, "owner", "access", {"after": 99}, None)["ok"]["entries"] == []
    for who in ("analyst", "auditor"):
        assert code(call(office, who, "access", {}, None)) == "forbidden"


def test_the_tables_of_calls_and_of_the_page_agree() -> None:
    """What the page on serving lists is what is written down, call by call."""
    from sulq.service.clerk.calls import CALLS

    page = (Path(__file__).parents[3] / "docs" / "operate" / "access.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert set(rows) == {name for name, call in CALLS.items() if call.log} | {"first_owner", "gap"}
