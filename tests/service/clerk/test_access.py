"""The access store: tokens shown once, kept hashed, ended at once (T80)."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.service.clerk.access import MAX_IDLE_SECONDS, MAX_SESSION_SECONDS, MAX_SESSIONS, Access
from sulq.service.clerk.access_file import EARLIER
from sulq.service.clerk.tokens import MAX_OVERLAP_SECONDS, MAX_TOKEN_DAYS, TOKEN_DAYS, hashed


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "access.db"


def test_a_token_is_long_shown_once_and_kept_hashed_T80(place: Path) -> None:
    """At least 128 bits, no two alike, and not one file of the store's folder holds it in clear."""
    access = Access(place)
    tokens = [access.add(f"a{i}", datasets="all") for i in range(20)]
    assert len(set(tokens)) == 20
    for i, token in enumerate(tokens):
        assert token.startswith("sulq_")
        assert len(token) - len("sulq_") >= 128 / 6
        found = access.find(hashed(token))
        assert found is not None
        assert (found.name, found.role, found.datasets) == (f"a{i}", "analyst", None)
    everything = b"".join(path.read_bytes() for path in place.parent.iterdir())
    assert not any(token.encode() in everything or token[5:].encode() in everything for token in tokens)
    assert hashed(tokens[0]).encode() in everything, "the control: what is kept would be seen"
    assert access.find(tokens[0]) is None, "the token itself is no key to the store"
    assert access.find(hashed("sulq_wrong")) is None


def test_the_store_is_its_owners_alone(place: Path) -> None:
    """Mode 0600 in a folder of 0700; a store others can reach is not used."""
    access = Access(place)
    token = access.add("alice")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    place.chmod(0o640)
    with pytest.raises(SetupError) as caught:
        access.find(hashed(token))
    assert caught.value.code == "access-damaged"
    place.chmod(0o600)
    assert access.find(hashed(token)) is not None


def test_a_revocation_by_another_process_counts_at_once_T80(place: Path) -> None:
    """What one connection ends, the next look-up of another no longer finds."""
    server, host = Access(place), Access(place)
    token = host.add("alice", "analyst", ["survey"])
    found = server.find(hashed(token))
    assert found is not None
    assert (found.sees("survey"), found.sees("other")) == (True, False)
    host.revoke("alice")
    assert server.find(hashed(token)) is None
    assert [known.revoked is not None for known in server.list()] == [True]
    with pytest.raises(AccessDenied) as caught:
        host.revoke("alice")
    assert caught.value.code == "not-found"


def test_a_store_put_back_from_a_copy_is_seen(place: Path) -> None:
    """Look-ups follow the name, not the file that bore it when the server began."""
    access = Access(place)
    token = access.add("alice")
    other = Access(place.with_name("other.db"))
    fresh = other.add("bob")
    other.close()
    place.with_name("other.db").replace(place)
    assert access.find(hashed(token)) is None
    assert access.find(hashed(fresh)) is not None
    place.unlink()
    with pytest.raises(SetupError):
        access.find(hashed(fresh))


def test_a_token_runs_out_T80(place: Path) -> None:
    """After its days a token opens nothing, and its holder is told why."""
    clock = Clock()
    access = Access(place, clock=clock)
    token = access.add("alice", days=1)
    clock.now += 86399
    assert access.find(hashed(token)) is not None
    clock.now += 1
    with pytest.raises(AccessDenied) as caught:
        access.find(hashed(token))
    assert caught.value.code == "token-expired"


def test_a_name_has_one_token(place: Path) -> None:
    """A name that is taken is refused, in any case of letters; on the host it gets a new token and the old one ends."""
    access = Access(place)
    old = access.add("Alice", "owner")
    with pytest.raises(QuestionError) as caught:
        access.add("alice")
    assert caught.value.code == "name-taken"
    new = access.add("alice", "owner", replace=True)
    assert access.find(hashed(old)) is None
    found = access.find(hashed(new))
    assert found is not None
    assert found.name == "Alice", "a share goes by the name, so it keeps its spelling"


def test_a_revoked_name_is_never_given_again_T80(place: Path) -> None:
    """Neither in another case of letters nor on the host; a name that only ran out is let in again."""
    clock = Clock()
    access = Access(place, clock=clock)
    access.add("owner", "owner", days=MAX_TOKEN_DAYS)
    access.add("Alice")
    access.revoke("ALICE")
    for name in ("Alice", "alice", "ALICE"):
        for replace in (False, True):
            with pytest.raises(QuestionError) as caught:
                access.add(name, replace=replace)
            assert caught.value.code == "name-revoked"
        with pytest.raises(AccessDenied):
            access.rotate(name)
    access.add("bob", days=1)
    clock.now += 2 * 86400
    assert access.find(hashed(access.rotate("bob"))) is not None
    assert access.find(hashed(access.add("bob", replace=True))) is not None


def test_the_last_owner_stays_T80(place: Path) -> None:
    """Not revoked, not made an analyst by a replacement; a second owner whose token is good lets the first go."""
    clock = Clock()
    access = Access(place, clock=clock)
    access.add("owner", "owner", days=MAX_TOKEN_DAYS)

    def refused() -> None:
        for change in (lambda: access.revoke("owner"), lambda: access.add("Owner", "analyst", replace=True)):
            with pytest.raises(AccessDenied) as caught:
                change()
            assert caught.value.code == "last-owner"
        assert [(known.role, known.revoked) for known in access.list() if known.name == "owner"] == [("owner", None)]

    refused()
    access.add("second", "owner", days=1)
    clock.now += 86400
    refused()  # the second one's token has run out
    assert access.find(hashed(access.add("owner", "owner", replace=True))) is not None, "a lost token is replaced"
    access.rotate("second")
    access.revoke("owner")
    assert access.first() is None


def test_of_two_owners_who_end_each_other_one_stays_T80(place: Path) -> None:
    """One transaction decides, whichever process is first: of many at once all but one go."""
    names = [f"owner-{i}" for i in range(6)]
    setup = Access(place)
    for name in names:
        setup.add(name, "owner")
    for turn in range(3):
        start, refused = threading.Barrier(len(names)), []

        def end(name: str, start: threading.Barrier = start, refused: list[str] = refused) -> None:
            with Access(place) as own:
                start.wait()
                try:
                    own.revoke(name)
                except AccessDenied as error:
                    refused.append(error.code)

        threads = [threading.Thread(target=end, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == ["last-owner"]
        assert sum(known.revoked is None for known in setup.list()) == 1
        names = [f"owner-{turn}-{i}" for i in range(3)] + [n.name for n in setup.list() if n.revoked is None]
        for name in names[:3]:
            setup.add(name, "owner")


def test_a_token_is_rotated_with_an_overlap_T80(place: Path) -> None:
    """Both are one principal until the overlap ends; at most two are good; what runs out sooner still does."""
    clock = Clock()
    access = Access(place, clock=clock)
    first = access.add("alice", "analyst", ["survey"], days=2)

    def good(*tokens: str) -> list[bool]:
        found = []
        for token in tokens:
            known = None
            with contextlib.suppress(AccessDenied):
                known = access.find(hashed(token))
            found.append(known is not None)
            assert known is None or (known.name, known.datasets) == ("alice", ("survey",))
        return found

    second = access.rotate("ALICE", 3600)
    assert good(first, second) == [True, True]
    third = access.rotate("alice", 3600)
    assert good(first, second, third) == [False, True, True]
    clock.now += 3599
    assert good(second, third) == [True, True]
    clock.now += 1
    assert good(second, third) == [False, True]
    fourth = access.rotate("alice", 0)
    assert good(third, fourth) == [False, True]
    clock.now += 89 * 86400
    fifth = access.rotate("alice", MAX_OVERLAP_SECONDS)
    clock.now += 86400
    assert good(fourth, fifth) == [False, True], "an overlap makes no token live longer"
    sixth = access.rotate("alice", 0, holder=hashed(fifth))
    clock.now += 89 * 86400
    assert good(sixth) == [False], "one's own rotation makes no token live longer"
    with pytest.raises(AccessDenied):
        access.rotate("alice", holder=hashed(fourth))


def test_a_session_stands_for_its_token_and_ends_with_it_T80(place: Path) -> None:
    """It is found by its hash alone, in any process; it ends by hand, with its token, when idle, and after its time."""
    clock = Clock()
    access, other = Access(place, clock=clock), Access(place, clock=clock)
    token = access.add("alice", "analyst", ["survey"])

    def alive(session: str) -> bool:
        found = other.find(hashed(session))
        assert found is None or found.name == "alice"
        return found is not None

    one, two = (access.begin_session(hashed(token)) for _ in range(2))
    assert (alive(one), alive(two)) == (True, True)
    assert not any(one.encode() in path.read_bytes() for path in place.parent.iterdir())
    assert access.find(one) is None
    with pytest.raises(AccessDenied):
        access.begin_session(hashed(one))
    access.end_session(hashed(one))
    access.end_session(hashed(token))
    assert (alive(one), alive(two), access.find(hashed(token)) is None) == (False, True, False)
    access.end_sessions("Alice")
    assert not alive(two)
    newer = access.rotate("alice", 60)
    old, new = access.begin_session(hashed(token)), access.begin_session(hashed(newer))
    assert (alive(old), alive(new)) == (True, True)
    clock.now += 60
    with pytest.raises(AccessDenied):
        other.find(hashed(old))
    assert alive(new)
    access.add("alice", "analyst", replace=True)
    assert (alive(old), alive(new)) == (False, False)
    token = access.rotate("alice")
    idle, used = access.begin_session(hashed(token)), access.begin_session(hashed(token))
    began = clock.now
    while clock.now + MAX_IDLE_SECONDS // 2 < began + MAX_SESSION_SECONDS:
        clock.now += MAX_IDLE_SECONDS // 2
        assert alive(used)
    assert not alive(idle)
    clock.now = began + MAX_SESSION_SECONDS
    assert not alive(used)
    sessions = []
    for _ in range(MAX_SESSIONS + 3):
        clock.now += 1
        sessions.append(access.begin_session(hashed(token)))
    assert [alive(session) for session in sessions] == [False] * 3 + [True] * MAX_SESSIONS
    access.revoke("alice")
    assert not any(map(alive, sessions))


def test_a_store_of_an_earlier_version_is_brought_to_this_one(place: Path) -> None:
    """In place, whoever is first: every name, role, grant, time and token; nobody sees more or less than before."""
    place.parent.mkdir()
    place.touch(mode=0o600)
    rows = [
        ("Owner", "owner", None, hashed("one"), 1_700_000_000, 1_900_000_000, None),
        ("ann", "analyst", '["survey"]', hashed("two"), 1_700_000_001, 1_900_000_001, None),
        ("all", "auditor", None, hashed("three"), 1_700_000_002, 1_900_000_002, None),
        ("gone", "owner", None, hashed("four"), 1_700_000_003, 1_900_000_003, 1_750_000_000),
        ("late", "analyst", None, hashed("five"), 1_600_000_000, 1_650_000_000, None),
    ]
    db = sqlite3.connect(place)
    db.execute(EARLIER)
    db.executemany("INSERT INTO principals VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    db.commit()
    db.close()
    opened: list[Access] = []
    threads = [threading.Thread(target=lambda: opened.append(Access(place, clock=Clock()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    for access in opened:
        known = {p.name: (p.role, p.datasets, p.created, p.expires, p.revoked) for p in access.list()}
        assert known == {
            name: (role, None if scope is None else ("survey",), created, expires, revoked)
            for name, role, scope, _, created, expires, revoked in rows
        }
        assert [access.find(hashed(token)) is not None for token in ("one", "two", "three", "four")] == [
            True, True, True, False,
        ]  # fmt: skip
        with pytest.raises(AccessDenied):
            access.find(hashed("five"))
    assert opened[0].find(hashed(opened[1].rotate("ann"))) is not None


def test_the_first_owner_is_made_once(place: Path) -> None:
    """A fresh store gives one owner's token; a second start none, even after the owner was revoked."""
    access = Access(place)
    token = access.first()
    assert token is not None
    found = access.find(hashed(token))
    assert found is not None
    assert (found.name, found.role) == ("owner", "owner")
    assert access.first() is None


@pytest.mark.parametrize(
    ("name", "role", "datasets", "days"),
    [
        ("", "analyst", [], TOKEN_DAYS),
        ("../x", "analyst", [], TOKEN_DAYS),
        ("a" * 65, "analyst", [], TOKEN_DAYS),
        ("a\nb", "analyst", [], TOKEN_DAYS),
        ("alice", "admin", [], TOKEN_DAYS),
        ("alice", "analyst", "survey", TOKEN_DAYS),
        ("alice", "analyst", [""], TOKEN_DAYS),
        ("alice", "owner", ["survey"], TOKEN_DAYS),
        ("alice", "analyst", None, TOKEN_DAYS),
        ("alice", "analyst", [], 0),
        ("alice", "analyst", [], True),
        ("alice", "analyst", [], MAX_TOKEN_DAYS + 1),
        (7, "analyst", [], TOKEN_DAYS),
    ],
)
def test_what_is_no_principal_is_refused(place: Path, name: str, role: str, datasets: list[str], days: int) -> None:
    """Names, roles, scopes and days that make no sense get a code, and nobody is added."""
    access = Access(place)
    with pytest.raises(QuestionError) as caught:
        access.add(name, role, datasets, days)
    assert caught.value.code == "bad-principal"
    assert access.list() == []


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """Text, or a database of another shape, stops the server with a code."""
    for name, content in (("text", b"not a database" * 100), ("empty", b"")):
        path = tmp_path / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        with pytest.raises(SetupError) as caught:
            Access(path)
        assert caught.value.code == "access-damaged"
