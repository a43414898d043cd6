"""The histogram of rows per person that a number of rows is chosen from: its question, and what its answer says."""

from __future__ import annotations

from typing import cast

from sulq.answers import wire
from sulq.answers.released import Released
from sulq.language.question import Sums
from sulq.language.relation import PerPerson, Table
from sulq.language.rowfn import bins, col, lit
from sulq.language.rows_choice import RowsChoice, bin_ends


def histogram(table: str, most: int) -> Sums:
    """How many persons have each number of rows, by bins; those with more rows than the maximum are in the last."""
    each = PerPerson(Table(table), (), (("rows", "count", None),))
    edges = (1, *(end + 1 for end in bin_ends(most)))
    return Sums((lit(1),), by=(bins(col("rows"), edges),), over=each)


def counts_of(released: Released) -> tuple[float, ...]:
    """The noisy numbers of persons in the bins."""
    return tuple(float(number) for number in released.values()[:, 0])


def follows(choice: RowsChoice, most: int, question: str, answer: str) -> bool:
    """Whether a choice is of the bins that a ledger's entries asked for and were answered."""
    if question != wire.encode(histogram(choice.table, most)) or choice.ends != bin_ends(most):
        return False
    (released,) = cast("tuple[Released, ...]", wire.decode(answer))
    return choice.counts == counts_of(released)
