"""Whatever the kernel certifies holds: random statements, and mutated ones, run by DuckDB with and without a person."""

from __future__ import annotations

import math
import random

import duckdb
import pytest

from sulq.kernel.facts import Facts, Refused
from sulq.kernel.moves import moves
from sulq.kernel.relations import Certificate, Summand, certify
from tests import counts
from tests.kernel import worlds
from tests.kernel.statements import Writer, mutated

PARTS = 4
WORLDS = 4
STATEMENTS = 25  # asked of the same worlds


def neighbours(facts: Facts, draw: random.Random) -> worlds.Database:
    """Worlds, each followed by itself without one person, and with other rows of that person."""
    found = []
    for _ in range(WORLDS):
        world = worlds.random_world(facts, draw)
        found += [world, world.without(0), world.without(0, worlds.rows_of(facts, draw, 0, 150))]
    return worlds.Database(found)


def priced(certificate: Certificate, weights: dict[int, int]) -> tuple[float, float]:
    """What is certified of a combination, in L1 and squared in L2; of one that is refused nothing is ever released."""
    try:
        single = moves(certificate, [weights]).single
    except Refused:
        return math.inf, math.inf
    return single.l1, single.l2_squared


def violations(sql: str, certificate: Certificate, held: worlds.Database, times: int = 1) -> list[str]:
    """Where a person who leaves, or whose rows become others, moves a sum farther than certified; `times`: control."""
    found = []
    bounds: dict[int, tuple[float, float]] = {}
    for place, output in enumerate(certificate.outputs):
        if isinstance(output, Summand) and output.people:
            bounds[place] = (certificate.rows, certificate.rows**2)
        elif isinstance(output, Summand):
            bounds[place] = priced(certificate, {place: 1})
    places = [i for i, output in enumerate(certificate.outputs) if isinstance(output, Summand) and not output.people]
    signs = {place: -1 if i % 2 else 1 for i, place in enumerate(places)}  # what one sum takes from another
    together = priced(certificate, signs)[0] if signs else 0
    for world in range(0, 3 * WORLDS, 3):
        before = held.sums(world, sql, certificate)
        for other in (1, 2):
            after = held.sums(world + other, sql, certificate)
            groups = {key for key, _ in (*before, *after)}
            gaps = [sum(w * (before[key, i] - after[key, i]) for i, w in signs.items()) for key in groups]
            if sum(map(abs, gaps)) * times > together * other:
                found.append(f"{sql}\n{signs}: moved {gaps}, certified {together} for {other}")
            for place, (l1, l2) in bounds.items():
                moved = worlds.move(before, after, place)
                if moved[0] * times > l1 * other or moved[1] * times > l2 * other**2:
                    found.append(f"{sql}\n{place}: moved {moved}, certified {(l1, l2)} for {other}")
    return found


def attempts(draw: random.Random, many: int, *, mutate: bool = False, times: int = 1) -> tuple[int, list[str]]:
    """Of so many statements: how many were certified, and what was violated."""
    certified = 0
    found: list[str] = []
    for i in range(many):
        if i % STATEMENTS == 0:
            facts = worlds.random_facts(draw)
            held = neighbours(facts, draw)
        sql = Writer(facts, draw).statement()
        if mutate:
            sql = mutated(sql, [column for table in facts.tables for column in table.columns], draw)
        try:
            certificate = certify(sql, facts)
        except Refused:
            continue
        certified += 1
        found += violations(sql, certificate, held, times)
    return certified, found


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_certified_holds(part: int) -> None:
    """0 violations; and a statement that is certified never fails on rows that its facts allow."""
    many = counts.count(f"random statements, part {part + 1}", short=75, long=10_000)
    certified, found = attempts(counts.generator(f"kernel {part}"), many)
    assert found == []
    assert certified > many / 8
    counts.record(f"brute-force comparisons, part {part + 1}", 2 * WORLDS * certified, 12_500)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_certified_of_mutated_statements_holds(part: int) -> None:
    """Statements that were changed at random are refused, or certified and true."""
    many = counts.count(f"mutated statements, part {part + 1}", short=75, long=20_000)
    certified, found = attempts(counts.generator(f"kernel mutants {part}"), many, mutate=True)
    assert found == []
    assert certified > many / 20


def test_a_certificate_that_is_too_small_is_noticed() -> None:
    """Control: were every bound half of what it is, the same comparisons would show violations."""
    _, found = attempts(counts.generator("kernel control"), 75, times=2)
    assert len(found) > 5


def test_a_statement_that_fails_is_an_error() -> None:
    """Control: an exception of DuckDB is not swallowed by the comparison."""
    draw = counts.generator("kernel failure")
    facts = worlds.random_facts(draw)
    certificate = certify("SELECT count(*) AS s0 FROM kept0", facts)
    with pytest.raises(duckdb.Error):
        neighbours(facts, draw).sums(0, "SELECT sum(CAST('x' AS BIGINT)) AS s0 FROM kept0", certificate)
