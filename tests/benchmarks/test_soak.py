"""What many asks leave in memory: little once every bounded store is full; a curator that keeps answers is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import soak
from benchmarks.soak import BYTES_AN_ASK, Soak
from tests import counts


def test_what_is_left_is_of_the_second_half() -> None:
    """Stores that fill at first are no growth; a line of 100 bytes an ask is."""
    assert Soak(((500, 10**6), (1000, 2 * 10**6), (1500, 2 * 10**6), (2000, 2 * 10**6))).left == 0
    assert Soak(tuple((asks, 10**6 + 100 * asks) for asks in (500, 1000, 1500, 2000))).left == 100
    row = soak.row("an ask", Soak(tuple((asks, 10**6 + 100 * asks) for asks in (500, 1000))), 500)
    assert (row.ratio, str(row.ours), str(row.baseline)) == (0.2, "100 (100..100)", "500 (500..500)")


@pytest.mark.audit
def test_memory_is_flat_in_asks(tmp_path: Path) -> None:
    """Each of them another question, each debit in a file. Control: every answer kept."""
    asks = counts.count("asks of one process", short=200, long=soak.ASKS)
    if asks >= soak.ASKS // 5:
        assert soak.in_process(tmp_path, asks).left < BYTES_AN_ASK
        assert soak.in_process(tmp_path, asks // 10, keep=True).left > BYTES_AN_ASK
        return
    soak.in_process(tmp_path, asks)  # stores fill, which takes more asks than a part of the audit has
    (again := tmp_path / "again").mkdir()
    assert soak.in_process(again, asks).left < 20 * BYTES_AN_ASK
