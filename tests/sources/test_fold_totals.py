"""Running sums move to Python's integers before 64 bits could wrap (T5, SR16)."""

from __future__ import annotations

from sulq.sources.fold import SATURATED, RunningTotals


def test_totals_move_to_python_integers_before_they_could_wrap() -> None:
    """Running sums are exact past 2^62 and 2^63."""
    total = RunningTotals(1, 1)
    for _ in range(10):
        total.reserve(2**61)
        total.small += 2**61
    assert int((total.large + total.small)[0, 0]) == 10 * 2**61
    assert total.saturated().tolist() == [[SATURATED]]
