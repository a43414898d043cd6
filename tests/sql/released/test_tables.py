"""Released tables by columns: the same cells, intervals, notes and order as row by row, one cell at a time."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence

import numpy as np
import pytest

import sulq
from sulq.answers.released import Released
from sulq.display.moments import moment
from sulq.sql.parse.syntax import Node
from sulq.sql.released import render, tables
from sulq.sql.released.cells import GroupCells, NoisyValue, Unknown, interval
from sulq.sql.released.columns import StatColumn
from sulq.sql.released.grouping_sets import GroupingSet, ascending, ranks
from sulq.sql.released.program import KeyLabel, StatAt, TableProgram
from sulq.sql.released.tables import FigureColumn, GroupColumns, SqlTable
from tests import counts
from tests.sql.queries import Grammar, opened
from tests.sql.queries import tables as drawn_tables

BETAS = (0.3, 0.05, 1e-4)
SPENDS = (sulq.Epsilon(1), sulq.Rho(0.5), sulq.EpsilonDelta(3, 1e-3), sulq.Epsilon(40))


def one_cell(column: StatColumn, answers: Sequence[Released], place: int, groups: int) -> NoisyValue:
    """A statistic of one group, worked out by itself: what a column of them must agree with."""
    nothing = column.unknown(answers) if groups else None
    if nothing is not None and nothing[0][place]:
        return NoisyValue(None, Unknown(nothing[1], nothing[2]), column.clock)
    value = float(column.values(answers)[place])
    number = moment(value, column.clock) if column.clock else round(value) if column.whole else value
    return NoisyValue(number, GroupCells(column, (place,), groups), column.clock)


def by_hand(source: GroupColumns, node: Node, places: np.ndarray) -> list[NoisyValue]:
    """The cells of a label or a statistic, one at a time."""
    if isinstance(node, KeyLabel):
        return [NoisyValue(source.labels[node.index][place]) for place in places.tolist()]
    assert isinstance(node, StatAt)
    groups = source.size if source.asked.keys else 0
    return [one_cell(source.asked.columns[node.index], source.answers, i, groups) for i in places.tolist()]


def order_by_hand(asked: GroupingSet, labels: Sequence[Sequence[object]]) -> np.ndarray:
    """The groups by their labels, sorted one by one."""
    columns = [labels[key] for key in sorted(asked.keys)]
    size = len(columns[0]) if columns else asked.listed
    return np.array(sorted(range(size), key=lambda i: [ascending(column[i]) for column in columns]), dtype=np.int64)


def told(table: SqlTable, answers: Sequence[Released], *, cell_by_cell: bool) -> dict[str, object]:
    """All that a table shows, with intervals at several levels; read by columns or cell by cell."""
    columns = [FigureColumn(column) for column in zip(*table.shown(), strict=True)] if cell_by_cell else table.columns
    found: dict[str, object] = {"names": table.names, "clear": table.clear, "tries": table.tries, "notes": table.notes}
    if cell_by_cell and not columns:
        columns = [FigureColumn(()) for _ in table.names]
    found["values"] = [[(type(value), value) for value in column.values] for column in columns]
    found["noisy"] = [column.noisy for column in columns]
    found["unknown"] = [column.unknown for column in columns]
    found["ends"] = [
        [[interval(cell, answers, beta) for cell in column.figures()] for column in columns]
        if cell_by_cell
        else [paired(column.ends(answers, beta), len(column.values)) for column in columns]
        for beta in BETAS
    ]
    return found


def paired(ends: tables.Ends | None, size: int) -> list[object]:
    low, high = ends or ([None] * size,) * 2
    return [None if a is None else (a, b) for a, b in zip(low, high, strict=True)]


class Both:
    """Reads every released table twice, by columns and row by row, and counts how often they are by columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_columns = self.by_rows = 0
        self.differences: list[object] = []
        read = render.PreparedQuery.read

        def twice(asked: render.PreparedQuery, answers: Sequence[Released]) -> SqlTable:
            found = read(asked, answers)
            with monkeypatch.context() as patch:
                patch.setattr(render.Reader, "_by_columns", lambda _self, _program: None)
                patch.setattr(GroupColumns, "figures", by_hand)
                patch.setattr(GroupingSet, "order", order_by_hand)
                again = read(asked, answers)
            self.by_columns += found.marked is None
            self.by_rows += found.marked is not None
            mine, other = told(found, answers, cell_by_cell=False), told(again, answers, cell_by_cell=True)
            self.differences += [] if mine == other else [(mine, other)]
            return found

        monkeypatch.setattr(render.PreparedQuery, "read", twice)


def ordered(rng: random.Random, text: str) -> str:
    """A query with an order and a limit of its columns, some of the time."""
    names = [name for name in ("k0", "k1", "v0", "v1") if f" AS {name}" in text.partition(" FROM ")[0]]
    by = rng.sample(names, rng.randrange(0, len(names) + 1))
    parts = [f"{name}{rng.choice(('', ' DESC'))}{rng.choice(('', ' NULLS FIRST', ' NULLS LAST'))}" for name in by]
    order = f" ORDER BY {', '.join(parts)}" if by else ""
    limit = rng.choice(("", "", f" LIMIT {rng.randrange(0, 5)}", f" LIMIT 3 OFFSET {rng.randrange(0, 4)}", " OFFSET 1"))
    return f"{text}{order}{limit}"


def test_columns_are_the_rows_of_random_queries_T28(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, types, intervals, notes, order and what is unknown are equal on both paths. Control: below."""
    planned = counts.count("random queries read by columns and by rows", short=60, long=5_000)
    rng = counts.generator("columns and rows")
    both, done = Both(monkeypatch), 0
    with opened(drawn_tables(rng), budget=sulq.EpsilonDelta(1000, 0.5)) as db:
        while done < planned and both.differences == []:
            grammar = Grammar(rng)
            text = ordered(rng, grammar.query()) if done % 3 else grammar.asked().text
            answer = db.sql(text, spend=SPENDS[2] if done % 3 == 0 else rng.choice(SPENDS), fresh=True)
            assert len(answer.to_dict(0.9)[next(iter(answer.to_dict(0.9)))]) == answer.table.size
            done += 1
    assert both.differences == []
    assert both.by_columns > planned / 4
    assert both.by_rows > planned / 8


@pytest.mark.parametrize("broken", ["ends", "places", "unknown"])
def test_a_column_that_is_not_its_cells_is_noticed(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """Control: ends that are exchanged, groups one place off, and unknown cells shown are each found."""
    both = Both(monkeypatch)
    column = tables.GroupedColumn
    if broken == "ends":
        ends = column.ends
        monkeypatch.setattr(column, "ends", lambda self, answers, beta: ends(self, answers, beta)[::-1])
    elif broken == "places":
        table = GroupColumns.table

        def shifted(self: GroupColumns, program: TableProgram) -> SqlTable | None:
            made = table(self, program)
            for one in made.columns if made is not None else ():
                if isinstance(one, column):
                    object.__setattr__(one, "places", np.roll(one.places, 1))
            return made

        monkeypatch.setattr(GroupColumns, "table", shifted)
    else:
        monkeypatch.setattr(column, "unknown", property(lambda _self: False))
    with opened(drawn_tables(random.Random(3)), budget=sulq.Epsilon(100)) as db:
        db.sql("SELECT educ, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY educ", spend=sulq.Epsilon(0.5))
    assert both.differences != []


def test_ranks_are_the_order_of_single_values():
    """Numbers, truths, dates, texts, missing ones and mixtures: equal alike, else as sorted one by one."""
    rng = random.Random(5)
    pools: list[list[object]] = [
        [3, 1, 2, 1], [2.5, 1, True, 0], ["b", "a", "ä", ""], [None, 1, None, 0], ["x", None, 2, 0.5],
        [10**400, -(10**400), 3], [2**53, 2**53 + 1, 2**53 - 1],
        [datetime.date(2020, 1, 1), None, datetime.date(1999, 1, 1)], [],
    ]  # fmt: skip
    for pool in pools:
        values = [rng.choice(pool) for _ in range(50)] if pool else []
        by = np.argsort(ranks(values), kind="stable").tolist()
        assert by == sorted(range(len(values)), key=lambda i: ascending(values[i]))
        keys = [ascending(value) for value in values]
        assert all((ranks(values)[i] == ranks(values)[0]) == (keys[i] == keys[0]) for i in range(len(values)))
