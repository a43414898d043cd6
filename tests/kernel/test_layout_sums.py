"""Results of statements become the exact sums of their cells."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from sulq.kernel import layout
from sulq.kernel.layout import assemble, groups_of
from sulq.kernel.private import Groups
from sulq.kernel.request import Combined, Key, Looked, Part, Scan, Statement


def statement_of(tables: list[np.ndarray]) -> Statement:
    """Counts by one hidden key of four labels, and tables that it reads."""
    looked = tuple(Looked((0, i), (0,), each.shape[1], each.tobytes()) for i, each in enumerate(tables))
    return Statement(Scan("SELECT 1"), 1, (Part((Key(0, 4),), 0, None, looked=looked),))


@pytest.mark.parametrize("dense", [2**20, 1])
def test_counts_times_a_table_past_64_bits_saturate_T5(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows as a join can have, times a table's largest numbers: exact until they saturate, never wrapped."""
    monkeypatch.setattr(layout, "DENSE", dense)
    rng = random.Random(1)
    for most in (2**20, 2**41, 2**60):
        counted = [rng.randrange(most // 4) for _ in range(4)]
        tables = [np.array([[2**22, -(2**22), 1], [3, -1, 0], [2**22, 5, 1], [7, -(2**22), 0]], dtype=np.int64)] * 2
        columns = [(np.arange(4), None), (np.array(counted, dtype=np.int64), None)]
        for some in (tables[:1], tables):
            found = assemble(statement_of(some), columns, [most])
            for i, table in enumerate(some):
                exact = [sum(n * int(row[j]) for n, row in zip(counted, table, strict=True)) for j in range(3)]
                assert found[0, i].tolist() == [[min(max(x, -(2**62)), 2**62) for x in exact]]


def test_rows_of_a_result_that_are_one_cell_are_added() -> None:
    """Whatever keys the statement has beside: a later row does not take an earlier one's place."""
    statement = Statement(Scan(""), 1, (Part((Key(0, 3),), 1, None, (Combined((0, 0), (((0, 1),),)),)),))
    columns = [(np.array(cells), np.zeros(3, dtype=np.bool_)) for cells in ([1, 1, 2], [4, 5, 7])]
    assert assemble(statement, columns, [10])[0, 0].tolist() == [[0], [9], [7]]


def test_tables_of_some_keys_are_read_by_sums_over_the_others() -> None:
    """Several tables of one count, by keys in any order, some of one code, some rows without a key.

    The same as each table by itself.
    """
    rng = np.random.default_rng(4)
    sizes = (2, 1, 3, 2)
    keys = tuple(Key(i, size) for i, size in enumerate(sizes))
    rows = np.array(list(itertools.product(*(range(-1, size) for size in sizes))))
    columns = [(rows[:, i], None) for i in range(4)] + [(rng.integers(0, 9, len(rows)), None)]
    read = [(2,), (3, 2), (2, 3, 1), (1,), ()]
    tables = [rng.integers(-5, 5, (int(np.prod([sizes[i] for i in of])), 2)) for of in read]
    looked = [Looked((0, i), of, 2, table.tobytes()) for i, (of, table) in enumerate(zip(read, tables, strict=True))]
    together = assemble(Statement(Scan(""), 4, (Part(keys, 1, None, (), tuple(looked)),)), columns, [9])
    for each in looked:
        alone = assemble(Statement(Scan(""), 4, (Part(keys, 1, None, (), (each,)),)), columns, [9])
        assert together[each.at].tolist() == alone[each.at].tolist()
        exact = np.zeros((2, 2), dtype=np.int64)
        for row, n in zip(rows, columns[4][0], strict=True):
            if row[0] >= 0 and all(row[i] >= 0 for i in each.keys):
                place = 0
                for i in each.keys:
                    place = place * sizes[i] + row[i]
                exact[row[0]] += n * tables[each.at[1]][place]
        assert together[each.at].tolist() == exact.tolist()


def test_the_sign_of_a_zero_is_no_key() -> None:
    """DuckDB shows it as the first row of the group had it. Control: other numbers keep their signs."""
    columns = [(np.array([-0.0, -1.5, -0.0]), np.array([False, False, True])), (np.array([3, 2, 1]), None)]
    found = groups_of(Statement(Scan(""), 1, (Part((), 0, None),), 0), columns)
    assert [list(map(repr, cells)) for cells in found.keys] == [["0.0", "-1.5", "None"]]
    assert found.persons.tolist() == [3, 2, 1]


def test_groups_that_are_found_saturate_and_keep_the_order_of_their_blocks_T5() -> None:
    """Blocks by their places, whatever order they are written in; a missing sum is 0; no rows, no group."""
    blocks = (Combined((0, 1), (((0, 2**40),), ((1, -1),))), Combined((0, 0), (((1, 1),),)))
    statement = Statement(Scan(""), 1, (Part((), 0, None, blocks),), 1)

    def found(total: int, people: int, *most: int) -> Groups:
        """As a runner gives it: what is missing is filled with 0."""
        rows = slice(None if people else 0)
        return groups_of(statement, [(np.array([n])[rows], None) for n in (1, total, people)], most)

    assert found(2**30, 7).sums.tolist() == found(2**30, 7, 2**30, 7).sums.tolist() == [[7, 2**62, -7]]
    assert found(0, 7).sums.tolist() == [[7, 0, -7]]
    assert found(0, 0).sums.shape == (0, 3)
    assert found(2**30, 7, 1, 7).sums.tolist() != [[7, 2**62, -7]]  # the control: totals past what was certified


@pytest.mark.parametrize(
    ("cells", "missing", "wanted"),
    [
        (np.array(["b", None, "a"], dtype=object), [False, True, False], ["b", None, "a"]),
        (np.array([3, 0, -1], dtype=np.int8), [False, True, False], [3, None, -1]),
        (np.array([True, False, False]), [False, False, True], [True, False, None]),
        (np.array([1.5, 2.0, 0.0]), None, [1.5, 2.0, 0.0]),
    ],
)
def test_keys_of_every_type_are_pythons_own(cells: np.ndarray, missing: list[bool] | None, wanted: list) -> None:
    """A number of NumPy's is written otherwise. Control: the column's own cells are such numbers."""
    columns = [(cells, None if missing is None else np.array(missing)), (np.array([1, 1, 1]), None)]
    found = groups_of(Statement(Scan(""), 1, (Part((), 0, None),), 0), columns)
    assert repr(found.keys) == repr([wanted])
    assert cells.dtype == object or repr(list(cells)) != repr(wanted)


@pytest.mark.parametrize("kind", [np.float64, np.int64, object])
def test_totals_of_every_type_are_weighed_as_whole_numbers_T5(kind: type) -> None:
    """A sum of doubles is whole; weighed as a double it would be rounded, and one row would move it by more.

    Within 64 bits and past them, where the largest totals say so. Control: small weights are exact as doubles, too.
    """
    total = 2**20 + 1
    columns = [(np.array([0]), None), (np.array([total], dtype=kind), None)]
    for weight, most in ((2**40 + 1, 2**22), (2**42 + 1, 2**22), (3, 2**22), (2**40 + 1, 2**53)):
        statement = Statement(Scan(""), 1, (Part((Key(0, 1),), 1, None, (Combined((0, 0), (((0, weight),),)),)),))
        assert assemble(statement, columns, [most])[0, 0].tolist() == [[min(total * weight, 2**62)]]
