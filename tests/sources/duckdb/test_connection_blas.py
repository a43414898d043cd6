"""BLAS is held to one thread while batches are folded, and let go of afterwards."""

from __future__ import annotations

from sulq.sources.duckdb import connection
from sulq.sources.duckdb.connection import one_thread


def test_one_thread_is_held_until_the_last_lets_go() -> None:
    """Nested holders keep one thread; the last one gives back what was there."""
    switches = connection._switches()
    if switches is None:  # another BLAS: nothing is touched
        with one_thread() as held:
            assert not held
        return
    get, _ = switches
    before = get()
    with one_thread() as held:
        assert held
        with one_thread():
            assert get() == 1
        assert get() == 1
    assert get() == before
