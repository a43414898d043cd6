"""What a check found, in words and as a tree."""

from __future__ import annotations

import json

from sulq.api.row_check import CheckedColumn, CheckedTable, RowCheck

FOUND = RowCheck(
    (
        CheckedTable(
            "visits", 1204, (CheckedColumn("city", "Category", 3, unmatched=70, nearly=1, unused=("a", "b"), never=9),),
            "pid", 1001, nobody=1, kept=2, heavy=4, dropped=100,
        ),
        CheckedTable("regions", 1, (CheckedColumn("code", "Int", below=1),)),
    )
)  # fmt: skip


def test_a_check_is_read_back_as_it_was_written() -> None:
    """Between processes it is JSON."""
    assert RowCheck.from_json(json.loads(json.dumps(FOUND.to_json()))) == FOUND


def test_a_check_says_in_words_what_does_not_fit() -> None:
    """And first whose it is; a table that fits has its counts alone."""
    told = str(FOUND)
    for line in (
        "Exact counts over the rows: for their owner alone, not to be published.",
        "visits: 1,204 rows of 1,001 persons (pid).", "  Dropped, as they name nobody: 1 row.",
        "  Dropped, of 4 persons with more than the 2 that are kept of each: 100 rows.",
        "  city: 1 cell equal to a declared value but for case or blanks.",
        "  city: declared, but never there: 'a', 'b' and 7 more.", "regions: 1 row.",
    ):  # fmt: skip
        assert line in told.splitlines()
    assert repr(FOUND) == told


def test_whether_all_fits_follows_from_cells_and_rows() -> None:
    """A clamped cell or a dropped row does not; a missing one does."""
    fits = CheckedTable("t", 2, (CheckedColumn("x", "Int", missing=1, never=1),))
    assert RowCheck((fits,)).fits
    assert not FOUND.fits
    for name in ("unread", "unmatched", "below", "above", "cut"):
        assert not CheckedColumn("x", "Int", **{name: 1}).fits
