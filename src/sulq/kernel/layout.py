"""What is certified of a proposal: how far one person moves each block of sums.

How a result is read is checked against the certificate of its statement: which columns are keys, marks and sums, and
which codes are cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from sulq.kernel.assemble import MAX_TABLE, WORD
from sulq.kernel.facts import Facts, require
from sulq.kernel.matrix import text
from sulq.kernel.moves import Certified, Moves, Norms, moves, table
from sulq.kernel.programs import Fold
from sulq.kernel.programs import certify as certify_program
from sulq.kernel.relations import Certificate, Summand, certify, rows
from sulq.kernel.remembered import remembered
from sulq.kernel.request import Key, Part, Proposal, Statement
from sulq.kernel.values import Value, constant

ROWS: Final = Summand(constant(1))  # a row adds one to a count of rows


class Layout(NamedTuple):
    """Of each tally its blocks, and the number of people before them; of each statement the largest of each sum."""

    blocks: list[tuple[Certified, ...]]
    totals: list[list[int]]


def of_proposal(proposal: Proposal, known: Facts) -> Layout:
    """What a person moves; every block is summed by a statement or the program, once."""
    found: dict[tuple[int, int], Certified] = {}
    summed: list[tuple[int, int, int, Certified]] = []
    certificates = [remembered(certify, each.scan.sql, known) for each in proposal.statements]
    for statement, certificate in zip(proposal.statements, certificates, strict=True):
        _check_columns(statement, certificate)
        for part in statement.parts:
            _check_part(part, statement, certificate)
            summed += _blocks(part, statement, certificate)
    if proposal.fold is not None:
        bounds, sums = remembered(of_fold, proposal.fold, known), proposal.fold.program.sums
        summed += [(*at, each.cells, bound) for at, each, bound in zip(proposal.fold.blocks, sums, bounds, strict=True)]
    for tally, block, cells, bound in summed:
        size, widths = proposal.tallies[tally]
        once = (tally, block) not in found and (cells, len(bound.moves.low)) == (size, widths[block])
        require(once, "a block that is summed twice, or of another shape")
        found[tally, block] = bound
    require(len(found) == sum(len(widths) for _, widths in proposal.tallies), "a block that nothing sums")
    tallies = [tuple(found[i, at] for at in range(len(widths))) for i, (_, widths) in enumerate(proposal.tallies)]
    if proposal.groups is not None:
        alone = len(certificates) == len(tallies) == 1 and proposal.tallies[0][0] == 0 and proposal.fold is None
        require(alone, "groups beside other sums")
        tallies = [(_people(proposal.groups, certificates[0]), *tallies[0])]
    return Layout(tallies, [[each.most for each in one.outputs if isinstance(each, Summand)] for one in certificates])


def of_fold(fold: Fold, known: Facts) -> tuple[Certified, ...]:
    """What a person moves the sums of a program by, over the rows of its statement."""
    own = fold.table is None or fold.sql == text(fold.table, fold.program.columns)
    require(own, "a program over other rows than its table's")
    relation = rows(fold.sql, known)
    return certify_program(
        fold.program, tuple(relation.columns.values()), max(relation.altered, 1), every=relation.every
    )


def _check_columns(statement: Statement, certificate: Certificate) -> None:
    """Refuse a statement whose columns are not keys, a mark where there are several sets, and sums.

    Cells that are told by a sum would change for a whole group with one row more.
    """
    outputs, first, keys = certificate.outputs, statement.first, range(statement.keys)
    require(statement.keys >= 0 and first < len(outputs), "other columns than a statement has")
    require(all(isinstance(each, Value) for each in outputs[: statement.keys]), "a sum read as a key")
    require(all(isinstance(each, Summand) for each in outputs[first:]), "a sum that is none")
    require(all(isinstance(each, str) for each in statement.scan.texts), "a text that is none")
    marks: set[int | None] = {None}
    if first > statement.keys:
        require(outputs[statement.keys] is None, "a sum read as a mark")
        marks = {sum(1 << (statement.keys - 1 - i) for i in keys if i not in each) for each in certificate.sets}
    told = len(certificate.sets) == 1 or None not in marks
    require(told and all(part.mark in marks for part in statement.parts), "a part of no grouping set, or of several")


def _check_part(part: Part, statement: Statement, certificate: Certificate) -> None:
    """Refuse keys that are not codes of cells, and blocks of other than the statement's sums and the part's keys."""
    for key in part.keys:
        require(0 <= key.column < statement.keys and key.size >= 1, "a sum read as a key")
        value = certificate.outputs[key.column]
        coded = isinstance(value, Value) and (
            (value.type == "VARCHAR" and value.low > -math.inf)  # digits
            or (value.whole and value.within(-WORD // 2, WORD // 2))
            or value.type == "BOOLEAN"
        )
        require(coded, "a key that is no code")
        require(key.missing is None or 0 <= key.missing < key.size, "a code of no cell")
        require(abs(key.shift) <= WORD // 2, "a code of no cell")
        places = key.places is None or (key.places and all(-1 <= place < key.size for place in key.places))
        require(places, "a code of no cell")
    require(0 <= part.own <= len(part.keys), "other keys than a part has")
    sums = range(len(certificate.outputs) - statement.first)
    for weights in (weights for block in part.combined for weights in block.weights):
        once = weights and len({place for place, _ in weights if place in sums}) == len(weights)
        require(once, "a coordinate of what is no sum of rows, or of one sum twice")
    for looked in part.looked:
        require(certificate.outputs[statement.first] == ROWS, "a table read by other than a count of rows")
        require(all(0 <= place < len(part.keys) for place in looked.keys), "a table read by other keys than its own")
        size = math.prod(part.keys[place].size for place in looked.keys)
        require(len(looked.units) == 8 * looked.width * size, "a table of other rows than its keys have")
        within = size <= MAX_TABLE and looked.table.min() >= -MAX_TABLE and looked.table.max() <= MAX_TABLE
        require(within, "a table of too many rows, or too large numbers")
    if statement.people is not None:
        require(not part.keys and not part.looked, "cells of groups that are found in the data")


def _blocks(part: Part, statement: Statement, certificate: Certificate) -> Iterator[tuple[int, int, int, Certified]]:
    """The blocks of a part: tally, place, cells, and what a person moves.

    What tells rows and cells is their source: blocks of other cells are moved by other rows, or by the same ones apart.
    """
    shown, cells = part.keys[: part.own], part.cells if statement.people is None else 0
    present = statement.people is None and certificate.every
    present = present and all(_in_a_cell(key, certificate.outputs[key.column]) for key in part.keys)
    for block in part.combined:
        weights = [{statement.first + place: weight for place, weight in each} for each in block.weights]
        source = (statement.scan, part.keys, part.mark)
        yield (
            block.tally, block.block, cells,
            Certified(moves(certificate, weights), certificate.rows, present, source),
        )  # fmt: skip
    for looked in part.looked:
        moved, source = table(certificate, looked.table), (statement.scan, shown, part.mark)
        own = math.prod(key.size for key in shown)
        yield looked.tally, looked.block, own, Certified(moved, certificate.rows, present, source)


def _people(statement: Statement, certificate: Certificate) -> Certified:
    """How many people a group has: what shows it.

    A person is one of the people of at most so many groups, and stays so where rows change within a group.
    """
    place, outputs = statement.people, certificate.outputs[statement.first :]
    counted = outputs[place] if place is not None and 0 <= place < len(outputs) else None
    people = isinstance(counted, Summand) and (counted.people or (counted == ROWS and certificate.rows == 1))
    require(people, "groups that are shown by other than their number of people")
    require(statement.first == statement.keys and len(statement.parts) == 1, "groups of several grouping sets")
    one = Moves(Norms(certificate.rows, certificate.rows, 1), Norms(0, 0, 0))
    return Certified(one, certificate.rows, present=False, source=(statement.scan, (), None))


def _in_a_cell(key: Key, value: object) -> bool:
    """Whether every value of a key is a code of a cell."""
    if not isinstance(value, Value) or not (value.whole or value.type == "VARCHAR"):
        return False
    if not (math.isfinite(value.low) and math.isfinite(value.high)) or (value.null and key.missing is None):
        return False
    low, high = int(value.low) - key.shift, int(value.high) - key.shift
    if key.places is not None:
        return 0 <= low <= high < len(key.places) and min(key.places[low : high + 1]) >= 0
    return low >= 0 and high < (key.size if key.missing is None else key.missing)
