"""The tests of the ledger's behaviour run on every store: what they keep in a folder lies in PostgreSQL as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.curator.ledger import ledger, opening
from sulq.curator.ledger.postgres_place import Address
from tests.curator.ledger.places import LAID, STORES
from tests.postgres import server

MODULES = {"test_anchor", "test_ledger", "test_shares", "test_transcript"}
FILES = {  # these are about the file itself
    "test_renamed_and_registered_again_data_keep_their_spend_T56",
    "test_a_later_format_is_refused_and_this_one_opens_T91",
    "test_an_anchor_reads_back",
    "test_a_line_that_changed_since_it_was_read_is_not_shown",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a folder once on each store."""
    named = metafunc.module.__name__.rpartition(".")[2]
    if named in MODULES and "folder" in metafunc.fixturenames and metafunc.function.__name__ not in FILES:
        metafunc.parametrize("laid", STORES, indirect=True)


@pytest.fixture(autouse=True)
def laid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lay every ledger of a test into PostgreSQL, a schema for each path, if that is asked for."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield
        return
    LAID.clear()
    given = opening.place_of

    def place_of(path: Path | str) -> Path | Address:
        place = given(path)
        if isinstance(place, Address) or not place.parent.is_dir():
            return place
        if place not in LAID:
            LAID[place] = server().url()
        return Address.of(LAID[place])

    for module in (ledger, opening):
        monkeypatch.setattr(module, "place_of", place_of)
    yield
    for url in LAID.values():
        server().do(f"DROP SCHEMA IF EXISTS {Address.of(url).ledger} CASCADE")
    LAID.clear()
