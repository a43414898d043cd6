"""What is certified of a request's sources: how far one person moves each block of sums.

How a result is read is checked against the certificate of its statement: which columns are keys, marks and sums, which
codes are cells, which totals fit 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from sulq.kernel.assemble import WORD
from sulq.kernel.facts import Facts, Refused
from sulq.kernel.matrix import text
from sulq.kernel.moves import Certified, Moves, Norms, moves, table
from sulq.kernel.programs import Fold
from sulq.kernel.programs import certify as certify_program
from sulq.kernel.relations import Certificate, Summand, certify, rows
from sulq.kernel.remembered import remembered
from sulq.kernel.request import Combined, Key, Open, Part, Proposal, Statement
from sulq.kernel.values import Value, constant

MAX_TABLE_ENTRY: Final = 2**22  # of a public table: counts times it are added in limbs
ROWS: Final = Summand(constant(1))  # a row adds one to a count of rows


def of_proposal(proposal: Proposal, known: Facts) -> list[tuple[Certified, ...]]:
    """Of each tally its blocks, every one of which a statement or the program sums, once."""
    found: dict[tuple[int, int], Certified] = {}

    def put(tally: int, block: int, cells: int, bound: Certified) -> None:
        size, widths = proposal.tallies[tally]
        if (tally, block) in found or (cells, len(bound.moves.low)) != (size, widths[block]):
            raise Refused("a block that is summed twice, or of another shape")
        found[tally, block] = bound

    for statement in proposal.statements:
        certificate = remembered(certify, statement.scan.sql, known)
        first = _laid_out(statement, certificate)
        for part in statement.parts:
            _marked(statement, part, certificate)
            _coded(part, certificate, statement)
            own = math.prod(key.size for key in part.keys[: part.own])
            # What tells rows and cells: blocks of other cells are moved by other rows, or by the same ones apart.
            present, source = _present(part, certificate), (statement.scan, part.keys, part.mark)
            for block in part.combined:
                moved = moves(certificate, _placed(block, first))
                put(block.tally, block.block, part.cells, Certified(moved, certificate.rows, present, source))
            for looked in part.looked:
                if certificate.outputs[first] != ROWS:  # what is multiplied with the table
                    raise Refused("a table read by other than a count of rows")
                units = np.frombuffer(looked.units, dtype="<i8").reshape(-1, looked.width)
                moved = table(certificate, units.astype(np.int64))
                shown = (statement.scan, part.keys[: part.own], part.mark)
                put(looked.tally, looked.block, own, Certified(moved, certificate.rows, present, shown))
    if proposal.fold is not None:
        bounds, sums = remembered(of_fold, proposal.fold, known), proposal.fold.program.sums
        for (tally, place), each, bound in zip(proposal.fold.blocks, sums, bounds, strict=True):
            put(tally, place, each.cells, bound)
    if len(found) != sum(len(widths) for _, widths in proposal.tallies):
        raise Refused("a block that nothing sums")
    return [tuple(found[i, place] for place in range(len(widths))) for i, (_, widths) in enumerate(proposal.tallies)]


def of_fold(fold: Fold, known: Facts) -> tuple[Certified, ...]:
    """What a person moves the sums of a program by, over the rows of its statement."""
    if fold.table is not None and fold.sql != text(fold.table, fold.program.columns):
        raise Refused("a program over other rows than its table's")
    relation = rows(fold.sql, known)
    return certify_program(
        fold.program, tuple(relation.columns.values()), max(relation.altered, 1), every=relation.every
    )


def of_groups(groups: Open, widths: Sequence[int], known: Facts) -> tuple[Certified, ...]:
    """Of groups that are found in the data: the number of people first, then each block."""
    certificate = remembered(certify, groups.scan.sql, known)
    sums = certificate.outputs[groups.keys :]
    most = [each.most for each in sums if isinstance(each, Summand)]
    if groups.keys < 0 or len(most) != len(groups.bounds) or not 0 <= groups.persons < len(most) == len(sums):
        raise Refused("other columns than a statement has")
    if not all(isinstance(text, str) for text in groups.scan.texts):
        raise Refused("a text that is none")
    _keyed(certificate, range(groups.keys))
    _fits(most, groups.bounds, [each for block in groups.blocks for each in block.weights])
    counted = certificate.outputs[groups.keys + groups.persons]
    people = isinstance(counted, Summand) and (counted.people or (counted == ROWS and certificate.rows == 1))
    if len(certificate.sets) != 1 or not people:
        raise Refused("groups that are shown by other than their number of people")
    if [(block.block, len(block.weights)) for block in groups.blocks] != list(enumerate(widths)):
        raise Refused("other blocks than are summed")
    # A person is one of the people of at most so many groups, and stays so where rows change within a group.
    one = Moves(Norms(certificate.rows, certificate.rows, 1), Norms(0, 0, 0))
    found = [moves(certificate, _placed(block, groups.keys)) for block in groups.blocks]
    return tuple(Certified(each, certificate.rows, present=False) for each in (one, *found))


def _laid_out(statement: Statement, certificate: Certificate) -> int:
    """Where the sums begin; refuses a statement whose columns are not keys, a mark where there are several sets, sums.

    Sums that are combined in 64 bits must fit them, over as many rows as there can be.
    """
    marked = statement.parts[0].mark is not None
    outputs, first = certificate.outputs, statement.keys + marked
    sums = outputs[first:]
    if not 0 <= statement.keys <= first == len(outputs) - len(statement.bounds):
        raise Refused("other columns than a statement has")
    if {part.mark is not None for part in statement.parts} != {marked}:
        raise Refused("other columns than a statement has")
    if marked and outputs[statement.keys] is not None:
        raise Refused("a sum read as a mark")
    _keyed(certificate, range(statement.keys))
    most = [each.most for each in sums if isinstance(each, Summand)]
    if len(most) != len(sums) or not all(isinstance(text, str) for text in statement.scan.texts):
        raise Refused("a sum that is none, or a text that is none")
    _fits(most, statement.bounds, [[(i, 1)] for i in range(len(most))])
    for part in statement.parts:
        _fits(most, statement.bounds, [each for block in part.combined for each in block.weights])
        for looked in part.looked:
            units = np.frombuffer(looked.units, dtype="<i8")
            far = max(int(units.max(initial=0)), -int(units.min(initial=0)))
            if far > MAX_TABLE_ENTRY:
                raise Refused("a table of too large numbers")
            _fits(most, statement.bounds, [[(0, far)]])
    return first


def _fits(most: Sequence[int], bounds: Sequence[int], combined: Iterable[Sequence[tuple[int, int]]]) -> None:
    """Refuse combinations that are said to fit 64 bits, and may not."""
    for weights in combined:
        if len({place for place, _ in weights if 0 <= place < len(most)}) != len(weights):
            raise Refused("a coordinate of what is no sum of rows, or of one sum twice")
        said = sum(abs(weight) * max(bounds[place], 1) for place, weight in weights)
        if said < WORD <= sum(abs(weight) * most[place] for place, weight in weights):
            raise Refused("a sum that is said to fit 64 bits, and may not")


def _coded(part: Part, certificate: Certificate, statement: Statement) -> None:
    """Refuse keys that are not codes of cells: a row would fail, or be counted elsewhere."""
    for key in part.keys:
        if not 0 <= key.column < statement.keys or key.size < 1:
            raise Refused("a sum read as a key")
        value = certificate.outputs[key.column]
        digits = isinstance(value, Value) and value.type == "VARCHAR" and value.low > -math.inf
        whole = isinstance(value, Value) and value.whole and value.within(-WORD // 2, WORD // 2)
        if not (digits or whole or (isinstance(value, Value) and value.type == "BOOLEAN")):
            raise Refused("a key that is no code")
        if not (key.missing is None or 0 <= key.missing < key.size) or abs(key.shift) > WORD // 2:
            raise Refused("a code of no cell")
        if key.places is not None and not (key.places and all(-1 <= place < key.size for place in key.places)):
            raise Refused("a code of no cell")
    for looked in part.looked:
        if not all(0 <= place < len(part.keys) for place in looked.keys):
            raise Refused("a table read by other keys than its own")
        if len(looked.units) != 8 * looked.width * math.prod(part.keys[place].size for place in looked.keys):
            raise Refused("a table of other rows than its keys have")


def _placed(block: Combined, first: int) -> list[dict[int, int]]:
    """A block's weights by the places of the outputs, the first sum of which is at `first`."""
    return [{first + place: weight for place, weight in each} for each in block.weights]


def _keyed(certificate: Certificate, columns: Iterable[int]) -> None:
    """Refuse cells that are told by a sum: with one row more a whole group would change its cell."""
    if not all(isinstance(certificate.outputs[column], Value) for column in columns):
        raise Refused("a sum read as a key")


def _marked(statement: Statement, part: Part, certificate: Certificate) -> None:
    """Refuse a part that reads several grouping sets, or a mark that is none's."""
    if part.mark is None:
        if len(certificate.sets) != 1:
            raise Refused("a part of several grouping sets")
        return
    marks = {
        sum(1 << (statement.keys - 1 - i) for i in range(statement.keys) if i not in each) for each in certificate.sets
    }
    if part.mark not in marks:
        raise Refused("a part of no grouping set")


def _present(part: Part, certificate: Certificate) -> bool:
    """Whether each kept row is in one cell, whatever its cells hold."""
    return certificate.every and all(_in_a_cell(key, certificate) for key in part.keys)


def _in_a_cell(key: Key, certificate: Certificate) -> bool:
    value = certificate.outputs[key.column]
    if not isinstance(value, Value) or not (value.whole or value.type == "VARCHAR"):
        return False
    if value.nan or not (math.isfinite(value.low) and math.isfinite(value.high)):
        return False
    low, high = int(value.low) - key.shift, int(value.high) - key.shift
    last = key.size if key.missing is None else key.missing
    if key.places is None:
        inside = low >= 0 and high < last
    else:
        inside = 0 <= low <= high < len(key.places) and min(key.places[low : high + 1]) >= 0
    return inside and (not value.null or key.missing is not None)
