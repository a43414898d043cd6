"""The access store: tokens shown once, kept hashed, ended at once (T80)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.service.clerk.access import MAX_TOKEN_DAYS, TOKEN_DAYS, Access, hashed


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
    tokens = [access.add(f"a{i}") for i in range(20)]
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
    access.revoke("ALICE")
    again = access.add("alice", "auditor")
    found = access.find(hashed(again))
    assert found is not None
    assert found.role == "auditor"


def test_the_first_owner_is_made_once(place: Path) -> None:
    """A fresh store gives one owner's token; a second start none, even after the owner was revoked."""
    access = Access(place)
    token = access.first()
    assert token is not None
    found = access.find(hashed(token))
    assert found is not None
    assert (found.name, found.role) == ("owner", "owner")
    assert access.first() is None
    access.revoke("owner")
    assert access.first() is None


@pytest.mark.parametrize(
    ("name", "role", "datasets", "days"),
    [
        ("", "analyst", None, TOKEN_DAYS),
        ("../x", "analyst", None, TOKEN_DAYS),
        ("a" * 65, "analyst", None, TOKEN_DAYS),
        ("a\nb", "analyst", None, TOKEN_DAYS),
        ("alice", "admin", None, TOKEN_DAYS),
        ("alice", "analyst", "survey", TOKEN_DAYS),
        ("alice", "analyst", [""], TOKEN_DAYS),
        ("alice", "owner", ["survey"], TOKEN_DAYS),
        ("alice", "analyst", None, 0),
        ("alice", "analyst", None, True),
        ("alice", "analyst", None, MAX_TOKEN_DAYS + 1),
        (7, "analyst", None, TOKEN_DAYS),
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
