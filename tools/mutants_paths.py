"""Mistakes on the paths that make things fast, each as a change of one line, and the tests that must notice it."""

from __future__ import annotations

from typing import Final

from tools.mutant import Mutant

CHECKPOINTS: Final = "tests/curator/ledger/test_checkpoints.py"

PATHS: Final = (
    Mutant(
        "sulq paths, long lists",
        "a record whose cell is in no long list is no row: one cell decides whether a person counts at all",
        "sources/duckdb/kept_rows.py",
        '            f"(SELECT * EXCLUDE (t{i}, item{i}) FROM {texts} LEFT JOIN "',
        '            f"(SELECT * EXCLUDE (t{i}, item{i}) FROM {texts} JOIN "',
        ("tests/sources/test_cell_reading.py::test_long_lists_of_categories_are_looked_up_as_short_ones_are",),
    ),
    Mutant(
        "sulq paths, parts",
        "equal rows of several parts are one: whether a person's row counts depends on another person's",
        "sources/source.py",
        "        return f\"({' UNION ALL '.join(selects)})\"",
        "        return f\"({' UNION '.join(selects)})\"",
        ("tests/test_data_files.py::test_parts_are_as_one_table",),
    ),
    Mutant(
        "sulq paths, records before the copy",
        "records are asked as they stand though a person has several: all of them count, and one is paid for",
        "sources/duckdb/early_rows.py",
        "    alone = unit.column is None and registered.unique is None and not registered.references",
        "    alone = registered.unique is None and not registered.references",
        ("tests/sources/duckdb/test_early_rows.py::test_other_sources_and_units_wait_for_the_copy",),
    ),
    Mutant(
        "sulq paths, checkpoints",
        "a checkpoint may say less than the entries before it: a later opening goes on from too little spent",
        "kernel/ledger/entries.py",
        "    if said not in (None, (totals, rule.budget, rule.split)):",
        "    if said not in (None, (said and said[0], rule.budget, rule.split)):",
        (f"{CHECKPOINTS}::test_the_kernel_writes_no_checkpoint_that_is_wrong_T52",),
    ),
    Mutant(
        "sulq paths, one commit",
        "an answer does not go with the next debit: a crash loses all of them, and each is drawn again for a new debit",
        "curator/ledger/ledger.py",
        "        if draft.rows or pending(draft).flush:",
        "        if pending(draft).flush:",
        ("tests/curator/ledger/test_late_answers.py::test_an_ask_is_one_commit",),
    ),
    Mutant(
        "sulq paths, columns of sums",
        "a row of the result whose key has no label counts in the first cell: whoever is in none is in that one",
        "kernel/layout.py",
        "    code = np.where(there, code, -1)",
        "    code = np.where(there, code, 0)",
        ("tests/kernel/test_layout_sums.py",),
    ),
)
