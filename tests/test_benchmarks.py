"""The arithmetic behind the page of learned models: standard errors, losses, medians, shares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.learning import sets, tasks
from benchmarks.learning.judge import FEWEST, Cell, Scores, judge
from benchmarks.learning.page import Findings, page, single


def flat(score: float, runs: int = FEWEST) -> tuple[float, ...]:
    return (score,) * runs


def cell(ours: tuple[float, ...], *peers: tuple[float, ...], epsilon: float = 1.0) -> Cell:
    return Cell("tree", "wine", epsilon, Scores("sulq", ours), tuple(Scores("peer", runs) for runs in peers), 1.0)


def test_a_mean_and_its_standard_error() -> None:
    """Of 1, 2, 3, 4: 2.5 and sqrt(5/3)/2; a single run is granted no slack."""
    scores = Scores("sulq", (1, 2, 3, 4))
    assert scores.mean == 2.5
    assert scores.slack == pytest.approx(math.sqrt(5 / 3) / 2)
    assert Scores("sulq", (3,)).slack == 0


def test_a_cell_is_lost_past_two_standard_errors_of_the_difference() -> None:
    """Errors of .03 and .04 make .05 of a difference: .09 less is not lost, .11 less is, and .11 more is not."""
    theirs = (0.6 + 0.04, 0.6 - 0.04)  # a standard error of .04
    for gap, lost in ((-0.09, False), (-0.11, True), (0.11, False)):
        found = cell((0.6 + gap + 0.03, 0.6 + gap - 0.03), theirs)
        assert found.errors == pytest.approx(gap / 0.05)
        assert found.lost is lost


def test_the_best_peer_is_the_one_to_beat() -> None:
    """Not the first, nor the mean of both."""
    found = cell((0.7, 0.7), (0.5, 0.5), (0.8, 0.8))
    assert found.best.mean == pytest.approx(0.8)
    assert found.lost
    assert not cell((0.7, 0.7), (0.5, 0.5)).lost


def test_equal_scores_are_neither_better_nor_lost() -> None:
    """Without any spread too."""
    found = cell(flat(0.7), flat(0.7))
    assert (found.gain, found.errors, found.lost) == (0, 0, False)
    assert judge([found]).shares == {1.0: 0.0}


def test_the_verdict_over_cells() -> None:
    """Medians and shares are by epsilon; a cell without a peer's result decides nothing."""
    one = [cell(flat(0.7 + g), flat(0.7)) for g in (0.1, 0.2, 0.3, -0.1, 0.4)]
    small = [cell(flat(0.7 + g), flat(0.7), epsilon=0.1) for g in (-0.1, -0.2, 0.3)]
    silent = [cell(flat(0.1)), cell(flat(0.1), epsilon=0.1)]
    found = judge(one + small + silent)
    assert found.shares == {0.1: pytest.approx(1 / 3), 1.0: 0.8}
    assert found.medians == {0.1: pytest.approx(-0.1), 1.0: pytest.approx(0.2)}
    assert len(found.lost) == 3
    assert (found.sizes, found.idle) == ({0.1: 3, 1.0: 5}, 2)
    assert list(found.met.values()) == [False, False, True, False]
    assert list(judge(one[:3]).met.values()) == [True, True, True, True]
    assert list(judge([*one[:3], one[3]]).met.values()) == [False, True, False, False]


def test_a_cell_of_few_runs_is_never_won_but_can_be_lost() -> None:
    """Four runs on either side: ahead decides nothing, behind counts; with five, ahead is a win."""
    won, few = cell(flat(0.8), flat(0.7)), FEWEST - 1
    for ahead in (cell(flat(0.8), flat(0.7, few)), cell(flat(0.8, few), flat(0.7))):
        assert ahead.few
        assert (judge([won, ahead]).sizes, judge([won, ahead]).idle) == ({1.0: 1}, 1)
        assert not judge([ahead]).met["strictly better in 80% of the cells at epsilon 1"]
    behind = cell(flat(0.6), flat(0.7, few))
    assert judge([won, behind]).lost == (behind,)
    assert judge([won, behind]).shares == {1.0: 0.5}
    assert judge([won]).shares == {1.0: 1.0}


def test_a_cell_with_the_peer_ahead_by_little_is_behind() -> None:
    """Neither lost nor hidden; the worst first, and a win is in neither list."""
    spread = (0.5, 0.6, 0.7, 0.8, 0.9)
    little, less = cell(spread, tuple(s + 0.05 for s in spread)), cell(spread, tuple(s + 0.1 for s in spread))
    found = judge([little, cell(flat(0.9), flat(0.1)), less])
    assert (found.lost, found.behind) == ((), (less, little))


def line(who: str, runs: tuple[float, ...], task: str = "tree", table: str = "wine") -> dict[str, object]:
    return {"task": task, "table": table, "epsilon": 1.0, "who": who, "scores": runs}


def test_the_page_tells_what_is_lost_and_what_has_few_runs() -> None:
    """A lost cell makes a demand missed and is listed with its errors; so is one that is only behind."""
    spread = (0.5, 0.6, 0.7, 0.8, 0.9)
    lines = [
        *(line("sulq", spread, table=table) for table in ("wine", "car", "digits")),
        line("diffprivlib tree", tuple(s + 0.5 for s in spread)),
        line("diffprivlib tree", tuple(s + 0.05 for s in spread), table="car"),
        line("diffprivlib tree", (0.1, 0.2, 0.3), table="digits"),
    ]
    told = page(Findings(5, 1.0, [], lines, []))
    assert "5 in the cell where sulq has fewest, 3 where the peer has" in told
    assert "no cell worse by more than 2 standard errors: **missed**" in told
    assert (
        "- tree, wine, epsilon 1: 0.700 ± 0.071 against 1.200 ± 0.071 (diffprivlib tree), 5.0 standard errors" in told
    )
    assert "(diffprivlib tree), 0.5 standard errors" in told
    assert "better in 0% of 2 cells" in told
    assert "ahead, few runs" in told
    assert "No cell is lost." in page(Findings(5, 1.0, [], lines[-2:] + lines[1:3], []))


def test_without_interpret_its_demand_is_not_run() -> None:
    """No number stands in for it; with it there is a bar."""
    ours = line("sulq", (0.9, 0.9), "additive", "adult-train")
    (alone,) = single(Findings(2, 1.0, [], [ours], []).cells())
    assert (alone.met, alone.bar) == (None, "")
    assert "not run" in page(Findings(2, 1.0, [], [ours], [])).split("## Against")[0]
    both = [ours, line("interpret", (0.95, 0.95), "additive", "adult-train")]
    (beside,) = single(Findings(2, 1.0, [], both, []).cells())
    assert (beside.met, beside.bar) == (False, "0.940")


def test_what_models_are_measured_by() -> None:
    """The best projection holds everything; centres at the rows leave nothing; areas count pairs, ties by half."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(500, 4)) * [3, 2, 1, 0.1]
    turn = np.linalg.eigh(np.cov(points.T))[1][:, ::-1].T
    assert tasks.captured(turn[:2], points) == pytest.approx(1)
    assert tasks.captured(2 * turn[:2], points) == pytest.approx(1)  # directions count, not lengths
    assert tasks.captured(turn[2:], points) < 0.2
    assert tasks.inertia(points, points) == pytest.approx(0, abs=1e-9)
    assert tasks.inertia(np.zeros((1, 4)), points) == pytest.approx((points**2).sum(axis=1).mean())
    truth = np.array([True, False, True, False])
    assert tasks.area(truth, np.array([0.9, 0.1, 0.5, 0.5])) == pytest.approx(7 / 8)
    assert tasks.explained(np.array([0.0, 2.0]), np.array([1.0, 1.0])) == pytest.approx(0)
    assert tasks.explained(np.array([0.0, 2.0]), np.array([9.0, -9.0])) == -1


def test_everybody_has_the_same_rows_within_public_bounds() -> None:
    """A split is fixed by its run; points lie within the bounds that are told; norms are as the peers are told."""
    table = sets.mixture(rows=1000)
    train, test = table.split(3)
    assert np.array_equal(train, table.split(3)[0])
    assert not np.array_equal(train, table.split(4)[0])
    assert sorted([*train, *test]) == list(range(1000))
    points, low, high = table.numbers()
    assert np.all((points >= low) & (points <= high))
    assert np.linalg.norm(table.indicators(), axis=1).max() <= np.sqrt(len(table.domains))
