"""What is proposed of several tallies: statements of several where they sum all of a tally, else its own."""

from __future__ import annotations

import itertools

import pyarrow as pa

from sulq.compile.statements.proposer import GROUPED
from sulq.kernel.request import Proposal
from sulq.language.domain import Category, Real, Schema
from sulq.language.rowfn import col, lit, lookup, outer
from sulq.language.tally import Tally
from tests.sources.cases import ask, duck

SCHEMA = Schema.of("data", {"pay": Real(0, 1000), "city": Category(("x", "y", "z"))})


def asked(*values: object) -> Tally:
    return ask(*values, schema=SCHEMA)


def proposed(*tallies: Tally) -> Proposal:
    engine = duck(pa.table({"pay": [1.0], "city": ["x"]}), schema=SCHEMA)
    engine.ready()
    found = engine.propose(*tallies)
    engine.close()
    return found


def summed(proposal: Proposal) -> list[set[int]]:
    """The tallies that each statement sums blocks of."""
    parts = [[*part.combined, *part.looked] for each in proposal.statements for part in each.parts]
    return [{block.at[0] for block in part} for part in parts]


def test_whole_tallies_share_a_statement() -> None:
    """Control: one SELECT for both."""
    assert summed(proposed(asked(lit(1)), asked(col("pay"), lit(1)))) == [{0, 1}]


def test_a_tally_that_a_shared_statement_sums_in_part_has_its_own() -> None:
    """Said by one emitter they are of the same rows, as the plan takes them: else the kernel refuses (replace_one)."""
    table = lookup([col("city")], [[1, 2], [3, 4], [5, 6]])
    found = summed(proposed(asked(lit(1)), asked(table, lit(1)), asked(col("pay"))))
    assert all(len(tallies) == 1 for tallies in found if 1 in tallies)
    assert {0, 2} in found


def test_a_tally_that_sql_does_not_sum_wholly_is_folded_wholly() -> None:
    """Beside others too: none of its sums is a statement's."""
    found = proposed(asked(lit(1)), asked(outer(["pay", "pay"]), lit(1)))
    assert found.fold is not None
    assert {block[0] for block in found.fold.blocks} == {1}
    assert summed(found) == [{0}]


def test_lookup_tables_within_few_keys_are_read_off_one_count() -> None:
    """All pairs of 12 columns of 4 values: a statement counts as many keys as have few combinations, and no more.

    Each table is read once.
    """
    names = [f"c{i}" for i in range(12)]
    schema = Schema.of("data", {name: Category(("p", "q", "r", "s")) for name in names})
    keys = {name: col(name) for name in names}
    rows = [[i, -i] for i in range(16)]
    tables = [lookup([keys[a], keys[b]], rows) for a, b in itertools.combinations(names, 2)]
    engine = duck(pa.table({name: ["p"] for name in names}), schema=schema)
    engine.ready()
    found = engine.propose(ask(*tables, schema=schema))
    engine.close()
    read = [block.at for each in found.statements for part in each.parts for block in part.looked]
    assert sorted(read) == [(0, i) for i in range(66)]
    assert len(found.statements) < 12
    assert max(each.parts[0].cells for each in found.statements) == GROUPED
