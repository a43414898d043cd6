"""A ledger in PostgreSQL, for tests: its store, what it was charged, and a server that stops under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.errors import SulqError
from tests.curator.ledger.cases import opened
from tests.postgres import Server


def refused(code: str, act: Callable[..., object], *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def schema(url: str) -> str:
    return Address.of(url).ledger


def store_of(ledger: Ledger) -> PostgresPlace:
    store = ledger._writer._store
    assert isinstance(store, PostgresPlace)
    return store


def charged(url: str) -> list[str]:
    """The questions that stand in the chain, which is whole."""
    verify(url)
    with opened(url) as ledger:
        return [line.question for line in ledger.transcript()]


@contextmanager
def stopped(running: Server, how: str = "immediate") -> Iterator[None]:
    """PostgreSQL is down for a while."""
    running.halt(how)
    try:
        yield
    finally:
        running.start()


# --- one order
