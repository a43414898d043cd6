"""A release as it might turn out, made up from public facts: what accuracy to expect before anything is asked.

The interval of a sum does not depend on what was released; that of a mean or a
variance does. To foretell it, rows are made up, spread evenly over the declared
bounds of every column, as many in each group as one cares to suppose. Nothing
here has seen a row, and nothing that is asked or paid follows from it but a
price named beforehand (SR7).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from sulq.answers.plan import Part, Plan
from sulq.answers.released import Released
from sulq.language.domain import Schema, Text
from sulq.language.facts import Facts
from sulq.language.kinds import Cells, Integers
from sulq.language.rowfn.base import evaluate, numbers
from sulq.language.rowfn.vectors import to_grid
from sulq.language.shape import shape
from sulq.sql.rows.trial_rows import TrialRows

POINTS: Final = 61  # a prime, so that every column is spread over all its values in an order of its own
LIMIT: Final = 2**62
LEANS: Final = ("spread", "low", "high")


def made_up_rows(schema: Schema, lean: str) -> TrialRows:
    """Rows with every column spread evenly over its declared bounds, or all at one end of them."""

    def codes(name: str) -> Cells:
        """A column's cells."""
        column = schema.find(name)
        if column is None or isinstance(column, Text):
            return Cells(np.full(POINTS, "x", dtype=object), None)
        step = 1 + 7 * schema.names.index(name) % (POINTS - 1)
        places = np.arange(POINTS) * step % POINTS
        if lean != "spread":
            places = np.full(POINTS, 0 if lean == "low" else POINTS - 1)
        width = column.high - column.low
        return Cells(np.array([column.low + width * int(place) // (POINTS - 1) for place in places], np.int64), None)

    return TrialRows(schema, POINTS, codes)


def supposed(
    plan: Plan,
    facts: Facts,
    rows: int,
    lean: str = "spread",
    *,
    whole: bool = False,
    folds: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Released, ...]:
    """What the plan's questions would release, but for the noise, if every group had so many made-up rows.

    Args:
        plan: what would be asked.
        facts: the declarations.
        rows: how many rows each group has; with `whole`, all groups together.
        lean: where in their bounds values lie.
        whole: whether `rows` are divided evenly over all groups.
        folds: by the place of a question, how many of its cells make one group (bins of
            a tree, rows with and without a value): there each row falls where it would.
    """
    found = []
    for i, part in enumerate(plan.parts):
        fold = folds.get(i, 1)
        groups = max(part.cells // fold, 1)
        found.append(_part(part, facts, max(rows // groups, 1) if whole else rows, lean, fold))
    return tuple(found)


def _part(part: Part, facts: Facts, rows: int, lean: str, fold: int) -> Released:
    tally = part.tally
    if part.score is not None:
        candidates = len(tally.by[-1].labels)
        place = {"low": 0, "high": candidates - 1}.get(lean, candidates // 2)
        return Released(np.full((part.cells, 1), place, dtype=np.int64), part.noise)
    frame = made_up_rows(shape(tally.over, facts).schema, lean)
    cells = _cells(part, frame, fold)
    columns = [np.zeros((frame.size, 0), dtype=object)]  # of open keys there may be nothing but the people
    for block, bits in zip(tally.blocks, part.refine, strict=True):
        found = evaluate(block.fn, frame)
        units = found.values
        if not block.vector:
            units = to_grid(numbers(block.fn, frame)[0], block.step, block.low[0], block.high[0])[:, None]
        if found.missing is not None:
            units = np.where(found.missing[:, None], 0, units)
        columns.append(units.astype(object) << bits)
    terms = np.concatenate(columns, axis=1)
    sums = np.zeros((fold, terms.shape[1]), dtype=object)
    np.add.at(sums, cells[cells >= 0], terms[cells >= 0])
    sums = np.clip(sums * rows // POINTS, -LIMIT, LIMIT).astype(np.int64)
    if part.people is None:
        return Released(np.tile(sums, (part.cells // fold, 1)), part.noise)
    people = max(rows, part.people.threshold + 1)
    label = tuple(None for _ in tally.by)
    return Released(np.array([[people, *sums[0].tolist()]], dtype=np.int64), part.noise, (label,))


def _cells(part: Part, frame: TrialRows, fold: int) -> Integers:
    """In which of its group's cells each row falls, by the last keys; -1: in none."""
    cells = np.zeros(frame.size, dtype=np.int64)
    keys = []
    for key in reversed(part.tally.by):
        if fold > 1:
            keys.append(key)
            fold //= max(len(key.labels), 1)
    for key in reversed(keys):
        found = evaluate(key.fn, frame)
        codes = cells * len(key.labels) + found.values.astype(np.int64)
        there = cells >= 0 if found.missing is None else (cells >= 0) & ~found.missing
        cells = np.where(there, codes, -1)
    return cells
