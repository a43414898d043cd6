"""Prices of releases from certified moves: against all neighbours, one by one, and a debit that is a little less."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq.kernel.facts import Draw, Event, Refused, Unit
from sulq.kernel.laws import (
    AboveLaw,
    BinomialLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    PassedGaussianLaw,
    PassedLaplaceLaw,
)
from sulq.kernel.moves import Certified, Moves, Norms
from sulq.kernel.price import Least, check
from sulq.kernel.request import Outside, Release
from sulq.kernel.run import Kernel
from sulq.kernel.whole.asked import Asked
from sulq.kernel.whole.rows import ToUnique
from sulq.language.score import Linear

SCALE = Fraction(4)
UNITS = [Unit("who", rows, neighbors) for rows in (1, 2) for neighbors in ("add_remove", "replace_one", "zero_out")]
UNITS.append(Unit(neighbors="replace_one"))
LOW, HIGH = -1, 2  # what a row may add to each of two coordinates
ROWS = [np.array(row) for row in itertools.product((LOW, 0, HIGH), repeat=2)]


def certified(rows: int, *, present: bool = False) -> Certified:
    """Rows that add two numbers from LOW to HIGH: the certificate that a statement of them has."""
    single, pair = Norms(4, 8, 2), Norms(6, 18, 3)
    return Certified(Moves(single.times(rows), pair.times(rows), (LOW,) * 2, (HIGH,) * 2), rows, present)


def moved(unit: Unit, cells: int, *, present: bool) -> list[np.ndarray]:
    """Every change of the sums, cell by cell, that one person can cause."""
    some = [np.zeros((cells, 2), dtype=np.int64)] * (not present)
    for cell, row in itertools.product(range(cells), ROWS):
        one = np.zeros((cells, 2), dtype=np.int64)
        one[cell] = row
        some.append(one)
    held = [sum(several[1:], several[0]) for several in itertools.combinations_with_replacement(some, unit.rows)]
    if unit.neighbors == "replace_one":
        return [after - before for before, after in itertools.product(held, repeat=2)]
    return held


def released(  # noqa: PLR0917 - as many as a release has
    laws: tuple[object, ...],
    refine: tuple[int, ...],
    cells: int,
    answered: int,
    width: int,
    score: object = None,
    **kind: object,
) -> Release:
    """A release of so many cells, whatever its rows: a block for each law on sums, or one for all."""
    widths, refine = (width,) if len(laws) == 1 else (1,) * len(laws), refine or (0,) * len(laws)
    source = Outside(list, 0, cells, widths, groups=kind.get("people", False), whole=kind.get("whole"))
    return Release(source, laws, refine, answered, score, (0,) if kind.get("above") else None)


def fits(release: Release, blocks: list[Certified], event: Event, unit: Unit) -> bool:
    try:
        check([release], [blocks], event, unit)
    except Refused:
        return False
    return True


def drawn(law: object, unit: Unit, norm: str, move: int, **more: object) -> Draw:
    """A draw whose record is large enough for anything."""
    scale = Fraction(law.coins) if isinstance(law, BinomialLaw) else law.scale
    return Draw(law.kind, unit.neighbors, norm, Fraction(move), scale, Fraction(1), 0, **more)


def test_the_rhos_of_pure_draws_add_up_and_their_epsilons_too() -> None:
    """Two numbers, each hidden for its own epsilon: half the sum of squares is paid. Control: less is refused."""
    unit = Unit("who", 1)
    release = released((LaplaceLaw(SCALE), LaplaceLaw(2 * SCALE)), (0, 0), 1, 1, 2)
    draws = tuple(drawn(law, unit, "l1", 1000) for law in release.laws)
    block = certified(1)
    one, other = 4 / SCALE, 2 / SCALE
    paid = Event(one + other, (one**2 + other**2) / 2, draws=draws)
    assert fits(release, [block, block], paid, unit)
    assert not fits(release, [block, block], replace(paid, rho=paid.rho * Fraction(99, 100)), unit)
    assert not fits(release, [block, block], replace(paid, epsilon=paid.epsilon * Fraction(99, 100)), unit)


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_noise_is_priced_as_the_worst_neighbour_SR1(unit: Unit, cells: int) -> None:
    """The exact loss over all neighbours is paid for, and hardly more. Control: for a little less it is refused."""
    present = unit.column is None
    every = moved(unit, cells, present=present)
    block = certified(unit.rows, present=present)
    for law, norm, worst in (
        (LaplaceLaw(SCALE), "l1", max(int(np.abs(move).sum()) for move in every)),
        (GaussianLaw(SCALE), "l2", max(int((move * move).sum()) for move in every)),
    ):
        pure = norm == "l1"
        loss = worst / SCALE if pure else worst / (2 * SCALE**2)
        release = released((law,), (0,), cells, cells, 2)
        draws = (drawn(law, unit, norm, 1000),)
        paid = Event(loss, loss**2 / 2, draws=draws) if pure else Event(None, loss, draws=draws)
        assert fits(release, [block], paid, unit), (law, worst)
        less = loss * Fraction(99, 100)
        assert not fits(
            release, [block], Event(less, less**2 / 2, draws=draws) if pure else replace(paid, rho=less), unit
        )
        few = replace(draws[0], sensitivity=Fraction(worst - 1))
        assert not fits(release, [block], replace(paid, draws=(few,)), unit)  # what the ledger would record is false


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("choices", [1, 2])
def test_choices_are_priced_as_the_worst_neighbour_SR13(unit: Unit, choices: int) -> None:
    """The spans of scores over all neighbours are within the certified ones. Control: a little less is refused."""
    present = unit.column is None
    score = Linear(((1, 0), (0, 1))).form
    block = certified(unit.rows, present=present)
    every = moved(unit, choices, present=present)
    spans = [[max(0, *own) - min(0, *own) for own in move.tolist()] for move in every]
    for law, norm, worst in (
        (FlipLaw(SCALE, 2), "l1", max(sum(each) for each in spans)),
        (ExponentialLaw(SCALE, 2), "l2", max(sum(n * n for n in each) for each in spans)),
    ):
        release = released((law,), (0,), choices, choices, 2, score)
        draws, pure = (drawn(law, unit, norm, 1000),), norm == "l1"
        loss = worst / SCALE if pure else worst / (8 * SCALE**2)
        less = loss * Fraction(99, 100)
        paid = [Event(n, n**2 / 2, draws=draws) if pure else Event(None, n, draws=draws) for n in (less, 2 * loss)]
        assert [fits(release, [block], event, unit) for event in paid] == [False, True]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("level", [Fraction(0), Fraction(8)])
def test_a_threshold_is_priced_as_the_worst_neighbour(unit: Unit, cells: int, level: Fraction) -> None:
    """Over all neighbours: all moves together, or the largest and the span. Control: a little less is refused."""
    present = unit.column is None
    block = certified(unit.rows, present=present)
    law = AboveLaw(SCALE, level, 2 * cells)
    losses = [
        Fraction(int(np.abs(move).max())) / level + Fraction(max(0, int(move.max())) - min(0, int(move.min()))) / SCALE
        if level
        else Fraction(int(np.abs(move).sum())) / SCALE
        for move in moved(unit, cells, present=present)
    ]
    draw = drawn(law, unit, "l1", 1000, level=level or None, most=Fraction(1000 if level else 0))
    release = released((law,), (0,), cells, 1, 2, above=True)
    worst = max(losses)
    less = worst * Fraction(99, 100)
    events = [Event(paid, paid**2 / 2, draws=(draw,)) for paid in (less, 2 * worst)]
    assert [fits(release, [block], event, unit) for event in events] == [False, True]


def test_groups_that_one_person_is_alone_in_are_counted_SR14() -> None:
    """K groups, and 2k where a person is exchanged for another. Control: one fewer is refused."""
    for unit, groups in ((Unit("who", 2), 2), (Unit("who", 2, "replace_one"), 4)):
        law = PassedGaussianLaw(SCALE, 30)
        release = released((law, GaussianLaw(SCALE)), (0, 0), 0, 0, 2, people=True)
        people = Certified(Moves(Norms(2, 2, 1), Norms(0, 0, 0)), 2, False)
        for alone, certain in ((groups, True), (groups - 1, False)):
            draws = (
                drawn(law, unit, "l2", 1000, threshold=30, alone=alone),
                drawn(GaussianLaw(SCALE), unit, "l2", 1000),
            )
            event = Event(None, Fraction(1000), Fraction(1, 10), draws=draws)
            assert fits(release, [people, certified(2)], event, unit) is certain


def of_groups(rows: int, groups: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every change of the people and the sums of some groups that a person with up to so many rows can cause."""
    one = [(group, row) for group in range(groups) for row in ROWS] + [None]
    found = []
    for several in itertools.combinations_with_replacement(one, rows):
        people, sums = np.zeros(groups, dtype=np.int64), np.zeros((groups, 2), dtype=np.int64)
        for group, row in (each for each in several if each is not None):
            people[group], sums[group] = 1, sums[group] + row
        found.append((people, sums))
    return found


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("ratio", [Fraction(1, 9), Fraction(1, 2), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_people_and_sums_of_groups_are_priced_as_the_worst_neighbour_SR14(
    rows: int, ratio: Fraction, *, pure: bool
) -> None:
    """By force: all persons with up to k rows in any groups. Control: a little less is refused.

    Rows that are all of one group move one number of people; rows in k groups add no squares.
    """
    unit, wide = Unit("who", rows), SCALE * ratio
    laws = (
        (PassedLaplaceLaw(SCALE, 30), LaplaceLaw(wide)) if pure else (PassedGaussianLaw(SCALE, 30), GaussianLaw(wide))
    )
    losses = []
    for people, sums in of_groups(rows, rows):
        if pure:
            losses.append(Fraction(int(people.sum())) / SCALE + Fraction(int(np.abs(sums).sum())) / wide)
        else:
            losses.append(int(people.sum()) / (2 * SCALE**2) + int((sums * sums).sum()) / (2 * wide**2))
    worst = max(losses)
    release = released(laws, (0, 0), 0, 0, 2, people=True)
    blocks = [Certified(Moves(Norms(rows, rows, 1), Norms(0, 0, 0), (0,), (1,)), rows, False), certified(rows)]
    norm = "l1" if pure else "l2"
    draws = (drawn(laws[0], unit, norm, 1000, threshold=30, alone=rows), drawn(laws[1], unit, norm, 1000))
    paid = Event(worst if pure else None, worst**2 if pure else worst, Fraction(1, 10), draws=draws)
    assert fits(release, blocks, paid, unit)
    less = worst * Fraction(99, 100)
    short = replace(paid, epsilon=less) if pure else replace(paid, rho=less)
    assert not fits(release, blocks, short, unit)
    assert not fits(release, blocks, replace(paid, key_delta=Fraction(0)), unit)


def test_an_exchanged_person_pays_for_people_and_rows_apart_SR14() -> None:
    """Under replace_one the largest move of people and that of sums are both paid; a person who comes pays for less.

    In units of 1/(2 scale^2), people at an eighth of the scale: 64 for each, and 8 times the square of rows in a group.
    """
    blocks = [Certified(Moves(Norms(2, 2, 1), Norms(0, 0, 0), (0,), (1,)), 2, False), certified(2)]
    laws = (PassedGaussianLaw(SCALE / 8, 30), GaussianLaw(SCALE))
    release = released(laws, (0, 0), 0, 0, 2, people=True)
    for neighbors, units in (("add_remove", 2 * 64 + 2 * 8), ("replace_one", 4 * 64 + 2 * 32)):
        unit, worst = Unit("who", 2, neighbors), units / (2 * SCALE**2)
        draws = (drawn(laws[0], unit, "l2", 1000, threshold=30, alone=4), drawn(laws[1], unit, "l2", 1000))
        assert fits(release, blocks, Event(None, worst, Fraction(1, 10), draws=draws), unit)
        assert not fits(release, blocks, Event(None, worst * Fraction(99, 100), Fraction(1, 10), draws=draws), unit)


def test_under_queries_each_number_is_one_and_moves_as_recorded_SR8() -> None:
    """A grid of finer units moves by as many more. Controls: less noise, a query less, a coarse record."""
    unit, law = Unit("who", 2), GaussianLaw(SCALE)
    release = released((law,), (3,), 5, 5, 2)
    fine = drawn(law, unit, "l2", (2 * 2 << 3) ** 2)
    event = Event(None, Fraction(0), queries=10, draws=(fine,))
    coarse = replace(event, draws=(replace(fine, sensitivity=Fraction(16)),))
    cases = [(event, SCALE / 32, True), (replace(event, queries=9), SCALE / 32, False), (coarse, SCALE / 32, False)]
    cases.append((event, SCALE / 31, False))  # noise for a sum that one person moves by one unit, and 32 are moved
    for asked, scale, certain in cases:
        try:
            check([release], [[certified(2)]], asked, unit, lambda _, scale=scale: Least("gaussian", scale, 4))
        except Refused:
            assert not certain
        else:
            assert certain
    assert not fits(release, [certified(2)], event, unit)  # no budget of queries


WHOLE = Asked(ToUnique(2))


def test_a_statistic_of_the_whole_is_priced_by_the_annex_SR5() -> None:
    """By how many rows a person alters, whatever the debit records: no less than that, and no loss above the debit.

    Control: what moves as far as its draw records, for a debit of exactly its price.
    """
    unit, law = Unit("who", 3), LaplaceLaw(SCALE)
    release = released((law,), (0,), 1, 1, 1, whole=WHOLE)
    paid = Event(Fraction(3, 4), Fraction(9, 32), draws=(drawn(law, unit, "l1", 3),))
    assert fits(release, [certified(3)], paid, unit)
    assert fits(release, [certified(2)], paid, unit)
    assert not fits(release, [certified(4)], paid, unit)  # more rows than the noise is for
    assert not fits(release, [certified(3)], replace(paid, draws=(drawn(law, unit, "l1", 2),)), unit)
    assert not fits(release, [certified(3)], replace(paid, epsilon=Fraction(2, 4)), unit)
    assert not fits(release, [certified(3)], replace(paid, rho=Fraction(8, 32)), unit)


def test_neighbours_of_another_relation_are_refused() -> None:
    """The ledger records whom the noise hides from. Control: the unit's own."""
    unit, law = Unit("who", 2), LaplaceLaw(SCALE)
    release, draw = released((law,), (0,), 1, 1, 2), drawn(law, unit, "l1", 1000)
    event = Event(Fraction(100), Fraction(5000), draws=(draw,))
    assert fits(release, [certified(2)], event, unit)
    assert not fits(release, [certified(2)], replace(event, draws=(replace(draw, neighbors="zero_out"),)), unit)


def test_a_finer_grid_moves_by_as_many_more_units() -> None:
    """Sums are put on the finer grid before noise. Control: on their own grid the same debit is enough."""
    unit, law = Unit("who", 2), LaplaceLaw(SCALE)
    draw = drawn(law, unit, "l1", 1000)
    event = Event(Fraction(8, SCALE), Fraction(2), draws=(draw,))
    for bits, certain in ((0, True), (1, False)):
        assert fits(released((law,), (bits,), 1, 1, 2), [certified(2)], event, unit) is certain


RICH = Event(Fraction(10**6), Fraction(10**12), Fraction(1))
OTHER = {
    "binomial noise on sums": (released((BinomialLaw(64),), (0,), 1, 1, 2), "l1"),
    "flips on sums": (released((FlipLaw(SCALE, 2),), (0,), 1, 1, 2), "l1"),
    "noise for a choice": (released((LaplaceLaw(SCALE),), (0,), 1, 1, 2, Linear(((1, 0),)).form), "l1"),
    "noise at a threshold": (released((LaplaceLaw(SCALE),), (0,), 1, 1, 2, above=True), "l1"),
    "groups without a threshold": (released((GaussianLaw(SCALE),), (), 0, 0, 2, people=True), "l2"),
    "a law for no block": (released((LaplaceLaw(SCALE),) * 2, (0, 0), 1, 1, 2), "l1"),
    "binomial noise on the whole": (released((BinomialLaw(64),), (0,), 1, 1, 1, whole=WHOLE), "l1"),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_law_prices_what_it_is_for_and_nothing_else_SR22(name: str) -> None:
    """However much is paid. Control: Laplace noise on sums."""
    release, norm = OTHER[name]
    unit = Unit("who", 2)
    for asked, kind, certain in ((released((LaplaceLaw(SCALE),), (0,), 1, 1, 2), "l1", True), (release, norm, False)):
        draws = tuple(drawn(law, unit, kind, 1000) for law in asked.laws)
        event = replace(RICH, draws=draws, epsilon=RICH.epsilon if certain else None)
        assert fits(asked, [certified(2)], event, unit) is certain


@pytest.mark.parametrize("draws", [0, 1, 3])
def test_each_law_has_its_draw_and_each_draw_its_law_SR3(draws: int) -> None:
    """A debit that records fewer draws than are made, or more, is none. Control: as many."""
    unit, law = Unit("who", 2), LaplaceLaw(SCALE)
    release, blocks = released((law, law), (0, 0), 1, 1, 2), [certified(2)] * 2
    assert fits(release, blocks, replace(RICH, draws=(drawn(law, unit, "l1", 1000),) * 2), unit)
    assert not fits(release, blocks, replace(RICH, draws=(drawn(law, unit, "l1", 1000),) * draws), unit)
    assert not fits(release, blocks[:1], replace(RICH, draws=(drawn(law, unit, "l1", 1000),) * draws), unit)


def test_a_release_is_of_one_kind() -> None:
    """What is priced as one kind must not be released as another."""
    kernel = Kernel(lambda *_: True, lambda: None)
    for kinds in ({"people": True, "above": True}, {"whole": WHOLE, "people": True}, {"above": True, "whole": WHOLE}):
        with pytest.raises(Refused, match="kinds"):
            kernel.check([released((LaplaceLaw(SCALE),), (0,), 1, 1, 2, **kinds)], RICH)
    with pytest.raises(Refused, match="kinds"):
        kernel.check([released((FlipLaw(SCALE, 2),), (0,), 1, 1, 2, Linear(((1, 0),)).form, people=True)], RICH)


@pytest.mark.parametrize(
    "kind", [{"score": Linear(((1, 0),)).form}, {"above": True}, {"whole": WHOLE}, {"people": True}]
)
def test_queries_are_noisy_sums_alone(kind: dict[str, object]) -> None:
    """A debit in queries has no loss that a choice could be compared with."""
    unit, law = Unit("who", 2), FlipLaw(SCALE, 2)
    event = Event(None, Fraction(0), queries=10, draws=(drawn(law, unit, "l1", 1000),))
    with pytest.raises(Refused, match="queries"):
        check(
            [released((law,), (0,), 1, 1, 2, **kind)], [[certified(2)]], event, unit, lambda _: Least("laplace", 1, 1)
        )


def test_blocks_over_other_rows_are_moved_each_in_its_own_worst_way_SR13() -> None:
    """One row may change in the one sum and come or go in the other. Control: over the same rows it does either."""
    unit, law = Unit("who", 1, "replace_one"), LaplaceLaw(SCALE)
    wide = Certified(Moves(Norms(100, 10_000, 100), Norms(200, 40_000, 200), (-100,), (100,)), 1, False, "these rows")
    count = Certified(Moves(Norms(1, 1, 1), Norms(0, 0, 0), (1,), (1,)), 1, False, "these rows")
    release, draws = released((law, law), (0, 0), 1, 1, 2), (drawn(law, unit, "l1", 1000),) * 2
    for total, other, certain in (
        (200, count, True),
        (200, replace(count, source="others"), False),
        (201, replace(count, source="others"), True),
    ):
        loss = Fraction(total) / SCALE
        assert fits(release, [wide, other], Event(loss, loss**2 / 2, draws=draws), unit) is certain


@pytest.mark.parametrize(("law", "norm"), [(FlipLaw(SCALE, 2), "l1"), (ExponentialLaw(SCALE, 2), "l2")])
def test_a_choice_by_sums_over_other_rows_spans_all_of_them_SR13(law: object, norm: str) -> None:
    """In one cell a row raises the one candidate or the other; in two cells both. Control: over the same rows."""
    unit = Unit("who", 1)
    up, down = (Moves(Norms(1, 1, 1), Norms(2, 2, 2), *ends) for ends in (((0,), (1,)), ((-1,), (0,))))
    score = Linear(((1, 0, 0, 0), (0, 0, 0, 1))).form
    release, draw = released((law,), (0,), 2, 1, 2, score), drawn(law, unit, norm, 1000)
    for others, most in (("these rows", 1), ("others", 2)):
        blocks = [Certified(up, 1, False, "these rows"), Certified(down, 1, False, others)]
        for moved, certain in ((most, True), (most - Fraction(1, 2), False)):
            loss = moved / SCALE if norm == "l1" else moved**2 / (8 * SCALE**2)
            event = Event(loss, loss**2 / 2, draws=(draw,)) if norm == "l1" else Event(None, loss, draws=(draw,))
            assert fits(release, blocks, event, unit) is certain, (others, moved)
