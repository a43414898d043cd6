"""The facts that certificates follow from are those of the tables that lie in DuckDB."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sulq.curator.engines import certified
from sulq.curator.engines.duckdb import DuckEngine
from sulq.curator.engines.proposal import Combined, Fetch, Key, Looked, Open, Part, Proposal, Scan, Statement
from sulq.kernel.facts import OWNER, Refused
from sulq.kernel.programs import Column, Fold, Program, Stack, Sum
from sulq.kernel.programs import Unit as Step
from sulq.kernel.relations import certify
from sulq.terms.domain import Bool, Category, Date, Int, Real, Schema, Text
from sulq.terms.privacy import Unit
from sulq.terms.rowfn import col, lit
from tests.curator.engines.cases import ask, duck, parquet, table

SCHEMA = Schema.of(
    "data",
    {
        "age": Int(0, 120), "pay": Real(0, 1000), "city": Category(("x", "y")), "note": Text(),
        "far": Int(-(2**40), 2**40, missing=False, default=0), "day": Date("2020-01-01", "2020-12-31"), "flag": Bool(),
    },
)  # fmt: skip


def engine(folder: Path, prepared: str, unit: Unit) -> DuckEngine:
    """A table of every kind of column, in a file or in memory."""
    data = table().append_column("far", [[2**50, -5, None]]).append_column("day", [["2020-02-02", "1999-01-01", None]])
    path = parquet(folder, data.append_column("flag", [[True, None, False]]))
    columns = dict(SCHEMA.columns) | ({"far": Int(-(2**40), 2**40)} if unit.neighbors == "zero_out" else {})
    return duck(
        path, unit, Schema.of("data", columns), prepared=path.with_suffix(".prepared") if prepared == "file" else None
    )


@pytest.mark.parametrize("prepared", ["file", "memory"])
@pytest.mark.parametrize(
    "unit", [Unit(), Unit("who", rows=2), Unit(None, 1, "replace_one"), Unit("who", 2, "zero_out")], ids=str
)
def test_names_types_and_intervals_are_the_stored_ones(unit: Unit, prepared: str, tmp_path: Path) -> None:
    """Each column of the facts is there with that type; its cells lie within its interval, missing only where said."""
    opened = engine(tmp_path, prepared, unit)
    opened.ready()
    (known,) = certified.facts(opened.tables, opened._kept).tables
    connection = opened._connection
    assert connection is not None
    name = ".".join(known.name)
    stored = {row[0]: row[1] for row in connection.root.execute(f"DESCRIBE {name}").fetchall()}
    assert {column: kind.type for column, kind in known.columns} == {k: v for k, v in stored.items() if k != OWNER}
    assert known.owned == (OWNER in stored)
    for column, kind in known.columns:
        asked = f"SELECT min({column}), max({column}), count(*) FILTER (WHERE {column} IS NULL) FROM {name}"
        low, high, missing = connection.root.execute(asked).fetchone() or (None, None, 0)
        assert kind.missing or missing == 0
        if kind.low is not None and kind.high is not None and low is not None:
            assert kind.low <= int(low) <= int(high) <= kind.high
    opened.close()


def test_what_is_folded_has_no_certificate_and_what_is_summed_has(tmp_path: Path) -> None:
    """Of one tally, by block; of rows that are read anew, none: their types are the source's."""
    tally = ask(lit(1), col("pay"), schema=SCHEMA)
    opened = engine(tmp_path, "memory", Unit("who", rows=2))
    (blocks,) = opened.certified([tally])
    assert [block is not None and block.rows for block in blocks] == [2, 2]
    assert duck(parquet(tmp_path), prepared=False).certified([ask()]) == ((None,),)


def test_a_part_of_no_grouping_set_is_refused() -> None:
    """A mark that no set has, and several sets read as one. Control: each set's own mark."""
    opened = duck(table())
    known = certified.facts(opened.tables, opened._kept)
    sql = (
        "SELECT k0, k1, grouping_id(k0, k1) AS g, count(*) AS s0 FROM (SELECT *, c0 AS k0, c2 AS k1 FROM kept) AS keyed"
        " GROUP BY GROUPING SETS ((k0), (k0, k1))"
    )
    found = certify(sql, known)
    statement = type("Statement", (), {"keys": 2})()
    for mark, fits in ((1, True), (0, True), (2, False), (None, False)):
        part = Part((Key(0, 3),), 1, mark)
        if fits:
            certified._marked(statement, part, found)
        else:
            with pytest.raises(Refused):
                certified._marked(statement, part, found)


def test_a_row_is_always_in_a_cell_only_where_no_key_can_miss_it() -> None:
    """Every code has a cell, missing ones too; nothing is filtered."""
    opened = duck(table())
    known = certified.facts(opened.tables, opened._kept)
    found = certify("SELECT c0 AS k0, count(*) AS s0 FROM kept GROUP BY k0", known)
    some = certify("SELECT c0 AS k0, count(*) AS s0 FROM kept WHERE c0 > 1 GROUP BY k0", known)
    whole = Key(0, 122, missing=121)
    for key, certificate, present in (
        (whole, found, True),
        (Key(0, 121), found, False),
        (Key(0, 120, missing=119), found, False),
        (Key(0, 122, shift=1, missing=121), found, False),
        (Key(0, 2, places=(0,) * 121, missing=1), found, True),
        (Key(0, 2, places=(-1,) + (0,) * 120, missing=1), found, False),
        (whole, some, False),
    ):
        assert certified._present(Part((key,), 1, None), certificate) is present, key


def proposed(sql: str, part: Part, aggregates: int) -> dict[tuple[int, int], object]:
    """What is certified of one part of a statement."""
    opened = duck(table())
    statement = Statement(Scan(sql), 1, (1,) * aggregates, (part,))
    return certified.of_proposal(Proposal(((3, (1,)),), (statement,)), certified.facts(opened.tables, opened._kept))


COUNT = "SELECT c2 AS k0, count(*) AS s0, sum(c0) AS s1 FROM kept GROUP BY k0"
SUM_FIRST = "SELECT c2 AS k0, sum(c0) AS s0, count(*) AS s1 FROM kept GROUP BY k0"
BLOCK = Combined(0, 0, (((0, 1),),))
LOOKED = Looked(0, 0, (0,), 1, np.array([1, 2, 3], dtype="<i8").tobytes())


def test_a_sum_is_no_key() -> None:
    """Read as a key, one row more would move a whole group to another cell. Control: the key is one."""
    assert proposed(COUNT, Part((Key(0, 3),), 1, None, (BLOCK,)), 2)
    with pytest.raises(Refused):
        proposed(COUNT, Part((Key(1, 3),), 1, None, (BLOCK,)), 2)


def test_a_public_table_is_read_by_counts_of_rows_alone() -> None:
    """Times another sum, one row would move it by more than a row of the table. Control: a count of rows."""
    assert proposed(COUNT, Part((Key(0, 3),), 1, None, (), (LOOKED,)), 2)
    with pytest.raises(Refused):
        proposed(SUM_FIRST, Part((Key(0, 3),), 1, None, (), (LOOKED,)), 2)


def test_a_block_that_is_folded_too_is_not_certified() -> None:
    """What is folded takes its place, and that no statement says. Control: without a fold it is certified."""
    opened = duck(table())
    known = certified.facts(opened.tables, opened._kept)
    statement = Statement(Scan(COUNT), 1, (1, 1), (Part((Key(0, 3),), 1, None, (BLOCK,)),))
    fetch = Fetch(Scan("SELECT c0 FROM kept"), ("age",), False, False, False, ((0, 0),))
    assert certified.of_proposal(Proposal(((3, (1,)),), (statement,)), known)
    assert not certified.of_proposal(Proposal(((3, (1,)),), (statement,), fetch), known)


def test_groups_are_shown_by_their_people_alone() -> None:
    """By rows, or by a sum, a person alone in a group would pass the threshold. Control: by different persons."""
    opened = duck(table(), Unit("who", rows=2))
    known = certified.facts(opened.tables, opened._kept)
    sql = "SELECT c3 AS k0, sum(c0) AS s0, count(*) AS s1, count(DISTINCT o) AS s2 FROM kept GROUP BY k0"
    for persons, fits in ((2, True), (1, False), (0, False)):
        groups = Open(Scan(sql), 1, (1, 1, 1), persons, (BLOCK,))
        if fits:
            assert certified.of_groups(groups, known)[-1].rows == 2
        else:
            with pytest.raises(Refused):
                certified.of_groups(groups, known)


def layout(**change: object) -> dict[tuple[int, int], object]:
    """What is certified of a statement of one key, a count and a sum, after some change."""
    opened = duck(table())
    key, block = Key(0, 3), change.pop("block", BLOCK)
    part = Part(
        (replace(key, **change.pop("key", {})),), 1, change.pop("mark", None), (block,), change.pop("looked", ())
    )
    statement = replace(Statement(Scan(COUNT), 1, (2**60, 2**60), (part,)), **change)
    widths = ((3, (len(block.weights),)),)
    return certified.of_proposal(Proposal(widths, (statement,)), certified.facts(opened.tables, opened._kept))


LAYOUTS: dict[str, dict[str, object]] = {
    "a sum read as a mark": {"mark": 0},
    "a column before the sums": {"block": Combined(0, 0, (((-1, 1),),))},
    "a column after the sums": {"block": Combined(0, 0, (((2, 1),),))},
    "fewer sums than the text has": {"bounds": (2**60,)},
    "more keys than the text has": {"keys": 2},
    "totals said to fit 64 bits": {"bounds": (1, 1), "block": Combined(0, 0, (((0, 2**40),),))},
    "a code past the cells": {"key": {"places": (0, 5, 1)}},
    "a missing code past the cells": {"key": {"missing": 3}},
    "a text as a key": {"scan": Scan(COUNT.replace("c2 AS", "c3 AS"))},
    "a number bound as a text": {"scan": Scan(COUNT, (7,))},
    "a table of other rows": {"looked": (replace(LOOKED, block=1, units=bytes(16)),)},
    "a table of other keys": {"looked": (replace(LOOKED, block=1, keys=(3,)),)},
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
    known = certified.facts(opened.tables, opened._kept)
    part = Part((Key(0, 3),), 1, None, (BLOCK,))
    for widths, parts in (((2,), (part,)), ((1,), (part, part))):
        with pytest.raises(Refused):
            certified.of_proposal(Proposal(((3, widths),), (Statement(Scan(COUNT), 1, (1, 1), parts),)), known)


def test_a_program_reads_the_rows_it_is_certified_over() -> None:
    """Its statement is that of its table. Control: with that statement it is certified."""
    opened = duck(table(), Unit("who", rows=2))
    known = certified.facts(opened.tables, opened._kept)
    program = Program(("c0",), (Column(0), Stack((Step(0, 0, 120),))), (Sum("vectors", 1),))
    assert certified.of_fold(Fold(program, "SELECT c0 FROM kept", (), ("kept",), ((0, 0),)), known)
    with pytest.raises(Refused):
        certified.of_fold(Fold(program, "SELECT a.c0 FROM kept AS a, kept AS b", (), ("kept",), ((0, 0),)), known)


def test_SR15_statements_in_which_persons_meet_are_told_by_their_tree() -> None:
    """Whatever their text looks like: sums over parts of whole persons add up only where no row is of several."""
    opened = duck(table(), Unit("who", rows=2))
    known = certified.facts(opened.tables, opened._kept)
    assert certify("SELECT count(DISTINCT o), sum(n) FROM (SELECT o, count(*) AS n FROM kept GROUP BY o)", known).apart
    for meets in (
        "SELECT count(*) FROM (SELECT DISTINCT c0 FROM kept)",
        "SELECT count(*) FROM (SELECT/**/DISTINCT c0 FROM kept)",
        "SELECT count(*) FROM (SELECT c0 FROM kept UNION ALL SELECT c0 FROM kept)",
        "SELECT count(*) FROM (SELECT * FROM kept) AS l JOIN (SELECT * FROM kept) AS r ON l.o = r.o",
        "SELECT count(*) FROM (SELECT o, c0 FROM (SELECT DISTINCT o, c0 FROM kept) GROUP BY o, c0)",
    ):
        assert not certify(meets, known).apart, meets
