"""Private statistics over disjoint blocks: parallel composition, exactly, and what it does not cover."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import Epsilon, Rho, Unit, bucket, col
from sulq.answers.plan import Part
from sulq.errors import SulqError
from sulq.language.domain import Schema
from sulq.language.question import Sums
from sulq.learn import StatisticalQueries
from tests.counts import count
from tests.frames import Frame, sums
from tests.learn.cases import opened
from tests.learn.sq.noisy import Arrays

COLUMNS = {"x": sulq.Bool(), "y": sulq.Bool(), "pid": sulq.Int(0, 100_000)}
UNIT = Unit("pid")
PHIS = [col("x"), col("y"), col("x") & ~col("y")]


def table(rows: int) -> dict[str, object]:
    rng = np.random.default_rng(3)
    return {"x": rng.random(rows) < 0.3, "y": rng.random(rows) < 0.6, "pid": np.arange(rows)}


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def split_part(unit: Unit, spend: object = None) -> tuple[Part, Schema]:
    """The plan of three queries on three blocks, as the backend asks them."""
    database = Arrays(COLUMNS, table(4000), seed=1, unit=unit)
    oracle = StatisticalQueries(database, spend=Epsilon(800), queries=3, method="split")
    oracle.stats(PHIS, 0.2)
    question, _ = database.asked[-1]
    assert isinstance(question, Sums)
    return database.foresee(question, spend=spend or Epsilon(1)).parts[0], database.facts.schema


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_three_blocks_cost_one_alpha_exactly_S2_12(neighbors: str) -> None:
    """Enumerated over all people of a tiny domain: the largest loss of the whole answer is the spend.

    The loss of independent integer Laplace noise is |move|/scale summed over cells, reached by some outcome.
    """
    part, schema = split_part(Unit("pid", neighbors=neighbors))
    scale = part.laws[0].scale
    values = itertools.product(range(40), (0, 1), (0, 1))
    people = [{"x": x, "y": y, "pid": p, "person": p * 7919, "position": 0} for p, x, y in values]
    contributions = {tuple(map(tuple, sums(part.tally, Frame(schema, [one])))) for one in people}
    blocks = {next(i for i, row in enumerate(found) if any(row)) for found in contributions}
    assert blocks == {0, 1, 2}
    vectors = [np.array(found) for found in contributions]
    nobody = np.zeros_like(vectors[0])
    pairs = itertools.product(vectors, [nobody]) if neighbors == "add_remove" else itertools.product(vectors, vectors)
    worst = max(Fraction(int(np.abs(a - b).sum())) / scale for a, b in pairs)
    assert float(worst) == pytest.approx(1.0, rel=1e-9)


def test_under_replace_one_blocks_cost_two_SR11() -> None:
    """A person may move from one block to another: the same spend buys half the accuracy."""
    scales = [split_part(Unit("pid", neighbors=way))[0].laws[0].scale for way in ("add_remove", "replace_one")]
    assert scales[1] == 2 * scales[0]


def test_asked_together_blocks_share_one_price_E26() -> None:
    """Three queries at once cost what one does; the text's alpha/M for each would cost three times as much noise."""
    spent = []
    for phis in (PHIS, PHIS[:1]):
        oracle = StatisticalQueries(
            Arrays(COLUMNS, table(30_000), seed=2, unit=UNIT), spend=Epsilon(10), queries=3, method="split"
        )
        oracle.stats(phis, 0.05)
        spent.append(float(oracle.spent.exact) - 1)  # less the tenth for the blocks' sizes
    assert spent[0] == pytest.approx(spent[1], rel=0.1)
    apart = StatisticalQueries(
        Arrays(COLUMNS, table(30_000), seed=2, unit=UNIT), spend=Epsilon(10), queries=3, method="split"
    )
    for phi in PHIS:
        apart.stat(phi, 0.05)
    assert float(apart.spent.exact) - 1 == pytest.approx(3 * spent[1], rel=0.1)  # a ledger adds up


def test_answers_hold_for_the_population_however_queries_are_chosen() -> None:
    """Each block is fresh: all within tau but for beta; a tenth of the tolerance is passed (control)."""
    rng = np.random.default_rng(9)
    runs, beta, tau = count("split within tau", short=30, long=2000), 0.2, 0.08
    off, tenth = 0, 0
    for seed in range(runs):
        data = {"x": rng.random(6000) < 0.3, "y": rng.random(6000) < 0.6, "pid": np.arange(6000)}
        oracle = StatisticalQueries(
            Arrays(COLUMNS, data, seed=seed, unit=UNIT, budget=Rho(9)),
            spend=Rho(1), queries=3, method="split", beta=beta, salt=seed,
        )  # fmt: skip
        first = oracle.stat(col("x"), tau) - 0.3
        later = oracle.stats([col("y") if first > 0 else ~col("y"), col("x") & col("y")], tau)
        worst = max(abs(first), abs(later[0] - (0.6 if first > 0 else 0.4)), abs(later[1] - 0.18))
        off += worst > tau
        tenth += worst > tau / 10
    assert off <= binom.ppf(1 - 1e-7, runs, beta)
    assert tenth > binom.ppf(1 - 1e-7, runs, beta)


def test_trap_4_a_block_does_not_depend_on_other_people() -> None:
    """Taking one person out leaves everyone else in their block; blocks by place would not."""
    schema = Schema.of("t", COLUMNS)
    people = [{"x": 0, "y": 0, "pid": p, "person": p * 7919, "position": p} for p in range(60)]
    fewer = [{**one, "position": i} for i, one in enumerate(people[1:])]

    def blocks(rows: list[dict[str, object]]) -> dict[object, int]:
        found = bucket(3).cells(Frame(schema, rows)).values
        return {one["pid"]: int(b) for one, b in zip(rows, found, strict=True)}

    before, after = blocks(people), blocks(fewer)
    assert all(before[pid] == after[pid] for pid in after)
    assert any(one["position"] % 3 != other["position"] % 3 for one, other in zip(people[1:], fewer, strict=True))


def test_where_nobody_can_be_bucketed_it_is_refused() -> None:
    """Rows without a person column under add_remove; and few rows are told with the number that would do."""
    settings = {"spend": Epsilon(1), "queries": 3, "method": "split"}
    refused("needs-position", StatisticalQueries, Arrays(COLUMNS, table(100)), **settings)
    oracle = StatisticalQueries(Arrays(COLUMNS, table(100), seed=1, unit=UNIT), **settings)
    assert "3 blocks" in refused("too-few-rows", oracle.stats, PHIS, 0.05).message
    grouped = Arrays(COLUMNS, table(9), unit=Unit("pid", rows=3))
    refused("bad-parameter", StatisticalQueries, grouped, **settings)


def test_a_real_database_is_divided() -> None:
    """On a ledger: one debit for the sizes, one for the three queries, answers near the means."""
    data = table(9000)
    with opened(COLUMNS, data, Epsilon(8), unit=UNIT) as db:
        oracle = StatisticalQueries(db, spend=Epsilon(8), queries=3, method="split")
        found = oracle.stats(PHIS, 0.1)
        truth = [np.mean(data["x"]), np.mean(data["y"]), np.mean(data["x"] & ~np.asarray(data["y"]))]
        assert np.abs(found - truth).max() <= 0.1
        assert db.spent.amount == oracle.spent.exact
        assert len(db.transcript()) == 2
        assert oracle.size is None
