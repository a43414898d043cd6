"""How a result is read is checked against its statement's certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sulq.kernel import layout as kernel_layout
from sulq.kernel.facts import Refused
from sulq.kernel.programs import Fold, Program, Stack, Step, Sum
from sulq.kernel.programs import Unit as Coordinate
from sulq.kernel.relations import certify
from sulq.kernel.request import Combined, Key, Looked, Part, Proposal, Scan, Statement
from sulq.language.privacy import Unit
from tests.sources.cases import duck, table


def test_a_part_of_no_grouping_set_is_refused() -> None:
    """A mark that no set has, and several sets read as one. Control: each set's own mark."""
    opened = duck(table())
    known = opened.kernel_facts
    sql = (
        "SELECT k0, k1, grouping_id(k0, k1) AS g, count(*) AS s0 FROM (SELECT *, c0 AS k0, c2 AS k1 FROM kept) AS keyed"
        " GROUP BY GROUPING SETS ((k0), (k0, k1))"
    )
    for mark, fits in ((1, True), (0, True), (2, False), (None, False)):
        statement = Statement(Scan(sql), 2, (Part((Key(0, 121),), 1, mark, (BLOCK,)),))
        if fits:
            assert kernel_layout.of_proposal(Proposal(((121, (1,)),), (statement,)), known)
        else:
            with pytest.raises(Refused, match=r"grouping set|a sum that is none"):
                kernel_layout.of_proposal(Proposal(((121, (1,)),), (statement,)), known)
    mixed = Statement(Scan(sql), 2, tuple(Part((Key(0, 121),), 1, mark, (BLOCK,)) for mark in (1, None)))
    with pytest.raises(Refused, match="grouping set"):
        kernel_layout.of_proposal(Proposal(((121, (1,)),), (mixed,)), known)


def test_a_row_is_always_in_a_cell_only_where_no_key_can_miss_it() -> None:
    """Every code has a cell, missing ones too; nothing is filtered."""
    opened = duck(table())
    known = opened.kernel_facts
    found = "SELECT c0 AS k0, count(*) AS s0 FROM kept GROUP BY k0"
    some = "SELECT c0 AS k0, count(*) AS s0 FROM kept WHERE c0 > 1 GROUP BY k0"
    whole = Key(0, 122, missing=121)
    for key, sql, present in (
        (whole, found, True),
        (Key(0, 121), found, False),
        (Key(0, 120, missing=119), found, False),
        (Key(0, 122, shift=1, missing=121), found, False),
        (Key(0, 2, places=(0,) * 121, missing=1), found, True),
        (Key(0, 2, places=(-1,) + (0,) * 120, missing=1), found, False),
        (whole, some, False),
    ):
        statement = Statement(Scan(sql), 1, (Part((key,), 1, None, (BLOCK,)),))
        ((block,),) = kernel_layout.of_proposal(Proposal(((key.size, (1,)),), (statement,)), known).blocks
        assert block.present is present, key


def proposed(sql: str, part: Part) -> object:
    """What is certified of one part of a statement."""
    opened = duck(table())
    statement = Statement(Scan(sql), 1, (part,))
    return kernel_layout.of_proposal(Proposal(((3, (1,)),), (statement,)), opened.kernel_facts)


COUNT = "SELECT c2 AS k0, count(*) AS s0, sum(c0) AS s1 FROM kept GROUP BY k0"
SUM_FIRST = "SELECT c2 AS k0, sum(c0) AS s0, count(*) AS s1 FROM kept GROUP BY k0"
BLOCK = Combined((0, 0), (((0, 1),),))
SECOND = replace(BLOCK, at=(0, 1))  # the number of people comes first
LOOKED = Looked((0, 0), (0,), 1, np.array([1, 2, 3], dtype="<i8").tobytes())


def test_a_sum_is_no_key() -> None:
    """Read as a key, one row more would move a whole group to another cell. Control: the key is one."""
    assert proposed(COUNT, Part((Key(0, 3),), 1, None, (BLOCK,)))
    with pytest.raises(Refused):
        proposed(COUNT, Part((Key(1, 3),), 1, None, (BLOCK,)))


def test_a_public_table_is_read_by_counts_of_rows_alone() -> None:
    """Times another sum, one row would move it by more than a row of the table. Control: a count of rows."""
    assert proposed(COUNT, Part((Key(0, 3),), 1, None, (), (LOOKED,)))
    with pytest.raises(Refused):
        proposed(SUM_FIRST, Part((Key(0, 3),), 1, None, (), (LOOKED,)))


def test_every_block_is_summed_once() -> None:
    """By a statement or by the program, not by both or by none. Control: by the statement alone."""
    known = duck(table()).kernel_facts
    statement = Statement(Scan(COUNT), 1, (Part((Key(0, 3),), 1, None, (BLOCK,)),))
    program = Program(("c0",), (Step("column", given=(0,)), Stack((Coordinate(0, 0, 120),))), (Sum("vectors", 1),))
    fold = Fold(program, "SELECT c0 FROM kept", (), ("kept",), ((0, 0),))
    assert kernel_layout.of_proposal(Proposal(((3, (1,)),), (statement,)), known)
    for widths, statements, program_of in (((1,), (statement,), fold), ((1, 1), (statement,), None), ((1,), (), None)):
        with pytest.raises(Refused):
            kernel_layout.of_proposal(Proposal(((3, widths),), statements, program_of), known)


def test_a_block_has_the_cells_of_its_tally() -> None:
    """Else noise would be drawn for other cells than were priced. Control: as many as the keys have."""
    known = duck(table()).kernel_facts
    statement = Statement(Scan(COUNT), 1, (Part((Key(0, 3),), 1, None, (BLOCK,)),))
    assert kernel_layout.of_proposal(Proposal(((3, (1,)),), (statement,)), known)
    with pytest.raises(Refused):
        kernel_layout.of_proposal(Proposal(((1, (1,)),), (statement,)), known)


def opened_groups(sql: str, keys: int = 1, people: int = 1, **change: object) -> Proposal:
    """Groups that are found in the data, with one sum."""
    part = Part(change.get("cells", ()), 0, change.get("mark"), (SECOND,), change.get("looked", ()))
    statement = Statement(Scan(sql), keys, (part,) * change.get("parts", 1), people)
    return Proposal(change.get("tallies", ((0, (1, 1)),)), (statement, *change.get("more", ())))


def test_groups_are_shown_by_their_people_alone() -> None:
    """By rows, or by a sum, a person alone in a group would pass the threshold. Control: by different persons."""
    opened = duck(table(), Unit("who", rows=2))
    known = opened.kernel_facts
    sql = "SELECT c3 AS k0, sum(c0) AS s0, count(*) AS s1, count(DISTINCT o) AS s2 FROM kept GROUP BY k0"
    for persons, fits in ((2, True), (1, False), (0, False)):
        found = opened_groups(sql, people=persons)
        if fits:
            assert kernel_layout.of_proposal(found, known).blocks[0][0].rows == 2
        else:
            with pytest.raises(Refused, match="people"):
                kernel_layout.of_proposal(found, known)


ONE_ROW = {
    "count(*)": True,
    "count(DISTINCT o)": True,
    "count(c0)": False,  # fewer, where a value is missing
    "count(CASE WHEN c0 > 5 THEN 1 END)": False,
    "sum(c0)": False,
    "sum(CASE WHEN c0 > 5 THEN 1 ELSE 0 END)": False,
    "2 * count(*)": False,
}


@pytest.mark.parametrize("counted", ONE_ROW)
def test_rows_are_people_only_where_each_person_has_one_SR14(counted: str) -> None:
    """One number for both: a plain count of rows, by certificate; not another sum, a filtered one, or of two rows each.

    Controls: the count of different persons always is one; so is the plain count where a person has one row.
    """
    sql = f"SELECT c3 AS k0, {counted} AS s0, sum(c0) AS s1 FROM kept GROUP BY k0"
    doubled = sql.replace("kept", "(SELECT o, c0, c3 FROM kept UNION ALL SELECT o, c0, c3 FROM kept) AS d")
    for rows, text in ((1, sql), (2, sql), (1, doubled)):
        known = duck(table(), Unit("who", rows=rows)).kernel_facts
        people = counted == "count(DISTINCT o)" or (ONE_ROW[counted] and (rows, text) == (1, sql))
        block = replace(SECOND, weights=(((1, 1),),))
        statement = Statement(Scan(text), 1, (Part((), 0, None, (block,)),), 0)
        proposal = Proposal(((0, (1, 1)),), (statement,))
        if people:
            assert kernel_layout.of_proposal(proposal, known).blocks[0][0].rows == (1 if text == sql else 2) * rows
        else:
            with pytest.raises(Refused):
                kernel_layout.of_proposal(proposal, known)


def layout(**change: object) -> object:
    """What is certified of a statement of one key, a count and a sum, after some change."""
    opened = duck(table())
    key, block = Key(0, 3), change.pop("block", BLOCK)
    part = Part(
        (replace(key, **change.pop("key", {})),), 1, change.pop("mark", None), (block,), change.pop("looked", ())
    )
    statement = replace(Statement(Scan(COUNT), 1, (part,)), **change)
    widths = ((3, (len(block.weights),)),)
    return kernel_layout.of_proposal(Proposal(widths, (statement,)), opened.kernel_facts)


LAYOUTS: dict[str, dict[str, object]] = {
    "a sum read as a mark": {"mark": 0},
    "a column before the sums": {"block": Combined((0, 0), (((-1, 1),),))},
    "a column after the sums": {"block": Combined((0, 0), (((2, 1),),))},
    "no keys where the text has one": {"keys": 0, "key": {"column": 0}},
    "more keys than the text has": {"keys": 2},
    "a coordinate of nothing": {"block": Combined((0, 0), ((),))},
    "a table of too large numbers": {"looked": (replace(LOOKED, at=(0, 1), units=np.array([1, 2**23, 1]).tobytes()),)},
    "a code past the cells": {"key": {"places": (0, 5, 1)}},
    "a missing code past the cells": {"key": {"missing": 3}},
    "a text as a key": {"scan": Scan(COUNT.replace("c2 AS", "c3 AS"))},
    "a number bound as a text": {"scan": Scan(COUNT, (7,))},
    "a table of other rows": {"looked": (replace(LOOKED, at=(0, 1), units=bytes(16)),)},
    "a sum twice in one coordinate": {"block": Combined((0, 0), (((0, 1000), (0, 1)),))},
    "no code at all": {"key": {"places": ()}},
    "keys before the first": {"keys": -1},
    "a table of other keys": {"looked": (replace(LOOKED, at=(0, 1), keys=(3,)),)},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_how_a_result_is_read_is_not_believed(name: str) -> None:
    """Each would read another number than is certified, or fail because of a row. Control: without the change."""
    assert layout()
    with pytest.raises(Refused):
        layout(**LAYOUTS[name])


def test_a_block_has_the_width_of_its_place_and_one_sum() -> None:
    """Else one law would fall on another's coordinates. Control: above."""
    opened = duck(table())
    known = opened.kernel_facts
    part = Part((Key(0, 3),), 1, None, (BLOCK,))
    for widths, parts in (((2,), (part,)), ((1,), (part, part))):
        with pytest.raises(Refused):
            kernel_layout.of_proposal(Proposal(((3, widths),), (Statement(Scan(COUNT), 1, parts),)), known)


def test_a_program_reads_the_rows_it_is_certified_over() -> None:
    """Its statement is that of its table. Control: with that statement it is certified."""
    opened = duck(table(), Unit("who", rows=2))
    known = opened.kernel_facts
    program = Program(("c0",), (Step("column", given=(0,)), Stack((Coordinate(0, 0, 120),))), (Sum("vectors", 1),))
    assert kernel_layout.of_fold(Fold(program, "SELECT c0 FROM kept", (), ("kept",), ((0, 0),)), known)
    with pytest.raises(Refused):
        kernel_layout.of_fold(Fold(program, "SELECT a.c0 FROM kept AS a, kept AS b", (), ("kept",), ((0, 0),)), known)


def test_statements_in_which_persons_meet_are_told_by_their_tree_SR15() -> None:
    """Whatever their text looks like: sums over parts of whole persons add up only where no row is of several."""
    opened = duck(table(), Unit("who", rows=2))
    known = opened.kernel_facts
    assert certify("SELECT count(DISTINCT o), sum(n) FROM (SELECT o, count(*) AS n FROM kept GROUP BY o)", known).apart
    for meets in (
        "SELECT count(*) FROM (SELECT DISTINCT c0 FROM kept)",
        "SELECT count(*) FROM (SELECT/**/DISTINCT c0 FROM kept)",
        "SELECT count(*) FROM (SELECT c0 FROM kept UNION ALL SELECT c0 FROM (SELECT DISTINCT c0 FROM kept))",
        "SELECT count(*) FROM (SELECT o, c0 FROM (SELECT DISTINCT o, c0 FROM kept) GROUP BY o, c0)",
    ):
        assert not certify(meets, known).apart, meets


@pytest.mark.parametrize("keys", [-1, 0, 2])
def test_groups_have_the_keys_that_their_statement_shows(keys: int) -> None:
    """Else a sum would be shown as a key, without noise. Control: one key."""
    known = duck(table(), Unit("who", rows=2)).kernel_facts
    sql = "SELECT c3 AS k0, sum(c0) AS s0, count(DISTINCT o) AS s1 FROM kept GROUP BY k0"
    assert kernel_layout.of_proposal(opened_groups(sql), known)
    with pytest.raises(Refused):
        kernel_layout.of_proposal(opened_groups(sql, keys), known)


COUNTED = Statement(Scan(COUNT), 1, (Part((Key(0, 3),), 1, None, (Combined((1, 0), (((0, 1),),)),)),))
STRANGE: dict[str, dict[str, object]] = {
    "cells in a part": {"cells": (Key(0, 3),), "tallies": ((3, (1, 1)),)},
    "cells that are listed": {"tallies": ((1, (1, 1)),)},
    "a mark": {"mark": 0},
    "two parts": {"parts": 2},
    "a table": {"looked": (LOOKED,)},
    "another block": {"tallies": ((0, (1, 1, 1)),)},
    "other sums beside": {"tallies": ((0, (1, 1)), (3, (1,))), "more": (COUNTED,)},
    "another tally": {"tallies": ((0, (1, 1)), (0, ()))},
    "a place past the sums": {"people": 2},
    "a place before the sums": {"people": -1},
}


@pytest.mark.parametrize("name", STRANGE)
def test_groups_are_one_statement_of_no_listed_cells_SR14(name: str) -> None:
    """Else what is shown without noise, or is priced, would be another thing than was certified. Control: one part."""
    known = duck(table(), Unit("who", rows=2)).kernel_facts
    sql = "SELECT c2 AS k0, sum(c0) AS s0, count(DISTINCT o) AS s1 FROM kept GROUP BY k0"
    assert kernel_layout.of_proposal(opened_groups(sql), known)
    with pytest.raises(Refused):
        kernel_layout.of_proposal(opened_groups(sql, **STRANGE[name]), known)


def test_blocks_of_other_cells_are_not_moved_together() -> None:
    """Cells are told by all keys of a part and by its grouping set: else two would be priced as one.

    Control: two blocks of the same cells have one source.
    """
    known = duck(table(), Unit("who", rows=2)).kernel_facts
    blocks = [Combined((0, i), (((i, 1),),)) for i in range(2)]
    apart = tuple(Part((Key(0, 3, shift=i),), 0, None, (block,)) for i, block in enumerate(blocks))
    ((found,), _) = kernel_layout.of_proposal(Proposal(((3, (1, 1)),), (Statement(Scan(COUNT), 1, apart),)), known)
    assert len({each.source for each in found}) == 2
    together = (Part((Key(0, 3),), 0, None, tuple(blocks)),)
    ((found,), _) = kernel_layout.of_proposal(Proposal(((3, (1, 1)),), (Statement(Scan(COUNT), 1, together),)), known)
    assert len({each.source for each in found}) == 1


SAME = "SELECT c0 AS k0, count(*) AS s0 FROM kept WHERE (c0 >= 4) GROUP BY k0"
BESIDE = {  # another statement's words, its texts, and whether its rows and cells are the same
    "the same rows, another sum": ("SELECT c0 AS k0, sum(c0) AS s0 FROM kept WHERE (c0 >= 4) GROUP BY k0", {}, True),
    "another condition": ("SELECT c0 AS k0, count(*) AS s0 FROM kept WHERE (c0 >= 5) GROUP BY k0", {}, False),
    "no condition": ("SELECT c0 AS k0, count(*) AS s0 FROM kept GROUP BY k0", {}, False),
    "another key": ("SELECT c0 // 2 AS k0, count(*) AS s0 FROM kept WHERE (c0 >= 4) GROUP BY k0", {}, False),
    "other rows": (
        "SELECT c0 AS k0, count(*) AS s0 FROM (SELECT * FROM kept WHERE c0 < 9) WHERE (c0 >= 4) GROUP BY k0", {}, False,
    ),
    "another code": (SAME, {"shift": 1}, False),
    "another place for what is missing": (SAME, {"missing": 3}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_statements_of_the_same_words_are_over_the_same_rows_and_cells(name: str) -> None:
    """Two statements have one source only where a row is in the same cell of both, whatever they sum."""
    known = duck(table(), Unit("who", rows=2)).kernel_facts
    sql, code, same = BESIDE[name]
    statements = tuple(
        Statement(Scan(each), 1, (Part((Key(0, 121, **more),), 1, None, (Combined((0, i), (((0, 1),),)),)),))
        for i, (each, more) in enumerate(((SAME, {}), (sql, code)))
    )
    ((found,), _) = kernel_layout.of_proposal(Proposal(((121, (1, 1)),), statements), known)
    assert (len({each.source for each in found}) == 1) is same


def test_texts_that_are_bound_tell_rows_apart() -> None:
    """Of one text two bound words are two conditions. Control: the same word under another number is the same."""
    opened = duck(table(), Unit("who", rows=2))
    sql = "SELECT count(*) AS s0 FROM kept WHERE (c3 = $text{})"

    def sources(*scans: Scan) -> int:
        statements = tuple(
            Statement(scan, 0, (Part((), 0, None, (Combined((0, i), (((0, 1),),)),)),)) for i, scan in enumerate(scans)
        )
        ((found,), _) = kernel_layout.of_proposal(Proposal(((1, (1, 1)),), statements), opened.kernel_facts)
        return len({each.source for each in found})

    assert sources(Scan(sql.format(0), ("a",)), Scan(sql.format(0), ("b",))) == 2
    assert sources(Scan(sql.format(0), ("a",)), Scan(sql.format(1), ("b", "a"))) == 1


@pytest.mark.parametrize("text", [7, 1.5, True, b"x", None])
def test_texts_of_a_program_are_texts_T30(text: object) -> None:
    """A number in their place makes DuckDB cast the column instead, and a row decides whether that fails."""
    known = duck(table(), Unit("who", rows=2)).kernel_facts
    sql = "SELECT CASE WHEN c3 IN ('8', $text0) THEN 1 ELSE 0 END AS a FROM kept"
    program = Program(("a",), (Step("column", (), (0,)), Stack((Coordinate(0, 0, 1),))), (Sum("vectors", 1),))
    assert kernel_layout.of_fold(Fold(program, sql, ("u",), None, ((0, 0),)), known)
    with pytest.raises(Refused, match="a text that is none"):
        kernel_layout.of_fold(Fold(program, sql, (text,), None, ((0, 0),)), known)
