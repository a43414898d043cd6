"""The kernel's own door: whatever a request says, it is refused before a row is read or released within its event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from sulq.errors import AccessDenied, CuratorError
from sulq.kernel import run
from sulq.kernel.facts import Draw, Event, Refused
from sulq.kernel.laws import AboveLaw, FlipLaw, LaplaceLaw, PassedLaw
from sulq.kernel.ledger.chain import Receipt
from sulq.kernel.private import Private
from sulq.kernel.request import Release
from sulq.kernel.run import Checked, Kernel
from sulq.kernel.scores import Rank
from sulq.language.domain import Category, Int, Schema
from sulq.language.privacy import Unit
from sulq.language.rowfn import col, lit
from sulq.language.score import Linear
from tests.sources.cases import ask, duck

SCHEMA = Schema.of("data", {"x": Int(0, 6), "g": Category(("a", "b"))})
ROWS = pa.table({"who": [1, 1, 2], "x": [6, 5, 1], "g": ["a", "b", "a"]})
RECEIPT = Receipt(1, "entry", "digest", "mac")
LAW = LaplaceLaw(Fraction(12))


class Book:
    """A ledger whose first entry says something of the data."""

    def __init__(self, said: object) -> None:
        self.synthetic = said


def plain(_law: object, exact: Private) -> np.ndarray:
    return exact.open()


def event(sensitivity: int = 12, *, neighbors: str = "add_remove", epsilon: int = 1) -> Event:
    """A debit for Laplace noise of scale 12."""
    draw = Draw("laplace", neighbors, "l1", Fraction(sensitivity), LAW.scale, Fraction(1), 2)
    return Event(Fraction(epsilon), Fraction(epsilon**2, 2), draws=(draw,))


class World:
    """Rows, and a kernel before them; `reads` counts how often they were asked."""

    def __init__(self, unit: Unit | None = None, redeem: Callable[..., bool] = lambda *_: True) -> None:
        self.engine = duck(ROWS, unit or Unit("who", rows=2), SCHEMA)
        self.reads = 0
        real = self.engine._cursor

        def cursor(connection: object) -> object:
            self.reads += 1
            return real(connection)

        self.engine._cursor = cursor
        self.kernel = Kernel(redeem, lambda: (self.engine.kernel_facts, self.engine.tables.unit))
        self.kernel.replace_noise(Book(True), plain, lambda *_: pytest.fail("no groups were asked for"))

    def release(self, **change: object) -> Release:
        """The sum of x by g, at most 12 of a person."""
        (source,) = self.engine.sources([ask(col("x"), by=(col("g"),), schema=SCHEMA)])
        assert source is not None
        return replace(Release(source, (LAW,), (0,), 2), **change)


def test_what_is_certified_within_its_event_is_released_once_it_is_paid() -> None:
    """Control of all below; before the debit no row is read."""
    world = World()
    checked = world.kernel.check([world.release()], event())
    assert world.reads == 0
    (found,) = world.kernel.run(checked, RECEIPT, "digest")
    assert found.tolist() == [[7], [5]]
    assert world.reads == 1


WRONG = [event(11), event(12, epsilon=0), event(neighbors="replace_one"), replace(event(), draws=())]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_event_that_does_not_cover_the_certificate_is_refused(wrong: Event) -> None:
    """A smaller sensitivity, a smaller loss, other neighbours, no draw."""
    world = World()
    with pytest.raises(Refused):
        world.kernel.check([world.release()], wrong)
    assert world.reads == 0


def test_cells_that_are_told_apart_are_no_ones_to_state() -> None:
    """Under replace_one rows may leave one cell for another: said to be one cell, they would cost half.

    Control: for what they move they are certified.
    """
    unit = Unit("who", rows=2, neighbors="replace_one")
    world = World(unit)
    for said in (1, 2):
        release = world.release(answered=said, laws=(LaplaceLaw(Fraction(24)),))
        draw = Draw("laplace", "replace_one", "l1", Fraction(12), Fraction(24), Fraction(1), 2)
        with pytest.raises(Refused):
            world.kernel.check([release], Event(Fraction(1, 2), Fraction(1, 8), draws=(draw,)))
        full = replace(draw, sensitivity=Fraction(24))
        assert world.kernel.check([release], Event(Fraction(1), Fraction(1, 2), draws=(full,)))


FORMS: dict[str, dict[str, object]] = {
    "a grid less": {"refine": ()},
    "a grid too fine": {"refine": (63,)},
    "a threshold of people on sums": {"laws": (PassedLaw(Fraction(1), 9),)},
    "thresholds for other sums": {"thresholds": (1, 2, 3), "laws": (AboveLaw(Fraction(1), Fraction(1), 2),)},
    "a threshold out of reach": {"thresholds": (2**61,), "laws": (AboveLaw(Fraction(1), Fraction(1), 2),)},
}


@pytest.mark.parametrize("name", FORMS)
def test_a_release_that_cannot_run_is_refused(name: str) -> None:
    """What would fail after the debit fails before it."""
    world = World()
    with pytest.raises(Refused):
        world.kernel.check([world.release(**FORMS[name])], event())


def test_nothing_runs_without_its_receipt_T43() -> None:
    """A receipt that is not redeemed, or a request that another kernel checked: no row is read. Control: above."""
    world, other = World(redeem=lambda *_: False), World()
    for checked in (
        world.kernel.check([world.release()], event()),
        other.kernel.check([other.release()], event()),
        Checked((world.release(),), event(), other.kernel),
    ):
        with pytest.raises(CuratorError) as refused:
            world.kernel.run(checked, RECEIPT, "digest")
        assert refused.value.code == "bad-receipt"
    assert world.reads == other.reads == 0


def test_one_proposal_is_run_once_for_all_its_releases() -> None:
    """Shared scans: two tallies of one relation. Control: two proposals are two."""
    world = World()
    tallies = [ask(col("x"), by=(col("g"),), schema=SCHEMA), ask(lit(1), schema=SCHEMA)]
    releases = [Release(source, (LAW,), (0,), source.cells) for source in world.engine.sources(tallies)]
    draws = tuple(replace(event().draws[0], sensitivity=Fraction(s)) for s in (12, 2))
    both = Event(Fraction(14, 12), Fraction(14, 12) ** 2 / 2, draws=draws)
    found = world.kernel.run(world.kernel.check(releases, both), RECEIPT, "digest")
    assert [each.tolist() for each in found] == [[[7], [5]], [[3]]]
    assert world.reads == 1
    apart = [replace(each, source=replace(each.source, place=partial(each.source.place))) for each in releases]
    world.kernel.run(world.kernel.check(apart, both), RECEIPT, "digest")
    assert world.reads == 3


@pytest.mark.parametrize("said", [False, None, 1, "yes"])
def test_noise_is_replaced_for_synthetic_data_alone_SR9(said: object) -> None:
    """Whatever else the first entry says. Control: the worlds above."""
    with pytest.raises(AccessDenied) as refused:
        World().kernel.replace_noise(Book(said), plain, lambda *_: pytest.fail("unused"))
    assert refused.value.code == "not-synthetic"


def test_without_replacement_noise_is_drawn() -> None:
    """The mechanisms' own: of scale 10^12 on a sum of 12, the exact one comes out with a chance of 10^-12."""
    world = World()
    kernel = Kernel(lambda *_: True, lambda: (world.engine.kernel_facts, world.engine.tables.unit))
    law = LaplaceLaw(Fraction(10**12))
    draws = (replace(event().draws[0], scale=law.scale),)
    (found,) = kernel.run(kernel.check([world.release(laws=(law,))], replace(event(), draws=draws)), RECEIPT, "digest")
    assert found.tolist() != [[7], [5]]


class Cheap(LaplaceLaw):
    """A law that says it costs a thirty-sixth."""

    def epsilon(self, sensitivity: Fraction) -> Fraction:
        return sensitivity / self.scale / 36


def test_what_a_law_of_another_class_says_of_its_price_is_not_believed_SR3() -> None:
    """The price is the kernel's own. Control: for what the law costs it is certified."""
    world = World()
    release = world.release(laws=(Cheap(LAW.scale),))
    assert world.kernel.check([release], event())
    with pytest.raises(Refused):
        world.kernel.check([release], replace(event(), epsilon=Fraction(1, 36), rho=Fraction(1)))


PRICES = [float("nan"), float("inf"), np.float64("nan"), True, Decimal("NaN")]


@pytest.mark.parametrize("price", PRICES, ids=repr)
@pytest.mark.parametrize("name", ["rho", "epsilon", "key_delta"])
def test_an_event_is_read_strictly_SR3(name: str, price: object) -> None:
    """Nothing is more than NaN: a loss would be within it. Control: as it is the event is compared, and certified."""
    world = World()
    with pytest.raises(Refused):
        world.kernel.check([world.release()], replace(event(), **{name: price}))
    draw = replace(event().draws[0], sensitivity=float("nan"))
    with pytest.raises(Refused):
        world.kernel.check([world.release()], replace(event(), draws=(draw,)))
    assert world.reads == 0
    assert world.kernel.check([world.release()], event())


class Late(LaplaceLaw):
    """A law that has another scale the second time it is looked at."""

    __slots__ = ()
    looks = 0

    def __getattribute__(self, name: str) -> object:
        if name != "scale":
            return super().__getattribute__(name)
        Late.looks += 1
        return Fraction(12) if Late.looks <= 2 else Fraction(1, 1024)


def test_the_noise_is_of_the_law_that_was_priced_SR3() -> None:
    """A law is read once, before it is priced, and it is that one which is drawn."""
    world, drawn = World(), []
    law = Late(Fraction(12))
    Late.looks = 0

    def noting(law: LaplaceLaw, exact: Private) -> np.ndarray:
        drawn.append(law)
        return exact.open()

    world.kernel.replace_noise(Book(True), noting, lambda *_: pytest.fail("no groups were asked for"))
    world.kernel.run(world.kernel.check([world.release(laws=(law,))], event()), RECEIPT, "digest")
    assert [(type(law), law.scale) for law in drawn] == [(LaplaceLaw, Fraction(12))]


def test_releases_that_are_others_the_second_time_are_read_once() -> None:
    """A sequence that hides what it holds until it is certified."""

    class Changing(list):
        def __iter__(self) -> Iterator[Release]:
            self.times = getattr(self, "times", 0) + 1
            return iter(self[:1] if self.times == 1 else self[1:])

    world = World()
    free = world.release(laws=(LaplaceLaw(Fraction(1, 1024)),))
    checked = world.kernel.check(Changing([world.release(), free]), event())
    assert [release.laws for release in checked.releases] == [(LAW,)]


def test_a_score_is_looked_at_anew() -> None:
    """One that was built past its own checks, or of another class. Control: one that was not is certified."""
    world = World(Unit("who", rows=1))
    draw = Draw("permute_and_flip", "add_remove", "l1", Fraction(1), Fraction(1), Fraction(1), 1)
    paid = Event(Fraction(1), Fraction(1, 2), draws=(draw,))
    (source,) = world.engine.sources([ask(lit(1), by=(col("g"),), schema=SCHEMA)])
    release = Release(source, (FlipLaw(Fraction(1), 2),), (0,), 1, Linear(((1, 0), (0, 1))).form)
    assert world.kernel.check([release], paid)
    built, other = Linear(((1, 0), (0, 1))).form, Linear(((1, 0), (0, 1)))
    object.__setattr__(built, "weights", np.array([0.5]))
    for score in (built, other):
        with pytest.raises(Refused):
            world.kernel.check([replace(release, score=score)], paid)


def weighted(weight: object) -> Callable[[World], Release]:
    """The release, with another weight on its sum."""

    def made(world: World) -> Release:
        release = world.release()
        proposal = release.source.proposal
        statement = proposal.statements[0]
        part = statement.parts[0]
        blocks = (replace(part.combined[0], weights=(((part.combined[0].weights[0][0][0], weight),),)),)
        statement = replace(statement, parts=(replace(part, combined=blocks),))
        return replace(release, source=replace(release.source, proposal=replace(proposal, statements=(statement,))))

    return made


STRANGE: dict[str, Callable[[World], Release]] = {
    "a number that wraps round": weighted(np.int64(2**62)),
    "a number that is not whole": weighted(1.0),
    "no number": weighted("1"),
    "a truth as a number": weighted(True),
    "nothing as a number": weighted(None),
    "a class as a number": weighted(int),
    "another source": lambda world: world.release(source=7),
    "another tally": lambda world: world.release(source=replace(world.release().source, tally=5)),
    "no laws": lambda world: world.release(laws=()),
    "a law that is none": lambda world: world.release(laws=("laplace",)),
    "cells of a NumPy number": lambda world: world.release(answered=np.int64(2)),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_request_is_read_strictly(name: str) -> None:
    """Whatever is in it, it is refused, and by nothing but `Refused`. Control: a weight of one is certified."""
    world = World()
    assert world.kernel.check([weighted(1)(world)], event())
    with pytest.raises(Refused):
        world.kernel.check([STRANGE[name](world)], event())
    assert world.reads == 0


@pytest.mark.parametrize("name", ["no number", "a truth as a number", "nothing as a number"])
def test_what_stands_behind_a_request_that_can_be_is_read_too(name: str) -> None:
    """What was read once is not read again, and nothing else is passed over. Control: two that can be."""
    world, paid = World(), event(24, epsilon=2)
    paid = replace(paid, draws=(event().draws[0],) * 2)
    first = weighted(1)(world)
    assert world.kernel.check([first, weighted(1)(world)], paid)
    with pytest.raises(Refused):
        world.kernel.check([first, first, STRANGE[name](world)], paid)


def test_what_an_event_may_hold_a_request_may_not_SR3() -> None:
    """A record of fractions that stands in the event too is read again as the request's: half a row at half the price.

    Control: the same event lets the request through where its weight is whole.
    """
    for weight in (1, Fraction(1, 2)):
        world = World()
        release = weighted(weight)(world)
        part = release.source.proposal.statements[0].parts[0]
        paid = replace(event(), versions=(part.combined[0],))
        if weight == 1:
            assert world.kernel.check([release], paid)
            continue
        with pytest.raises(Refused):
            world.kernel.check([release], paid)


def test_a_proposal_is_read_once_for_all_its_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """In proportion to its statements. Control: read for each release, it takes their square."""
    world, read = World(), run._read_strictly

    def calls(statements: int, *, shared: bool) -> int:
        tallies = [ask(lit(1), where=col("x") > i / 8, by=(col("g"),), schema=SCHEMA) for i in range(statements)]
        releases = [Release(source, (LAW,), (0,), 2) for source in world.engine.sources(tallies)]
        seen, found = set[int](), []

        def counted(value: object, plain: tuple[type, ...], known: set[int]) -> None:
            found.append(value)
            read(value, plain, known if shared else set())

        monkeypatch.setattr(run, "_read_strictly", counted)
        for release in releases:
            run._formed(release, seen)
        return len(found)

    assert calls(16, shared=True) < 2.2 * calls(8, shared=True)
    assert calls(16, shared=False) > 3 * calls(8, shared=False)


def test_the_unit_is_that_of_the_facts() -> None:
    """Priced for other neighbours than the rows were certified for. Control: above."""
    world = World()
    kernel = Kernel(lambda *_: True, lambda: (world.engine.kernel_facts, Unit("who", 2, "replace_one")))
    with pytest.raises(Refused, match="unit"):
        kernel.check([world.release()], event())


@pytest.mark.parametrize("weight", [2**58, 2**61, 2**70])
def test_how_large_a_sum_can_be_is_not_the_requests_to_say_T5(weight: int) -> None:
    """It follows from the certificate: sums are exact, or what moves them past 64 bits is refused before the debit."""
    world = World()
    moved = Fraction(12 * weight)
    paid = replace(event(), epsilon=moved, rho=moved**2, draws=(replace(event().draws[0], sensitivity=moved),))
    if moved > 2**62:
        with pytest.raises(Refused):
            world.kernel.check([weighted(weight)(world)], paid)
        return
    (found,) = world.kernel.run(world.kernel.check([weighted(weight)(world)], paid), RECEIPT, "digest")
    assert found.tolist() == [[7 * weight], [5 * weight]]


SEVERAL: dict[str, dict[str, object]] = {
    "a score and thresholds": {"score": Rank(1, 2), "thresholds": (1,)},
    "a score of another class": {"score": type("Score", (Rank,), {})(1, 2)},
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_release_is_of_one_kind_that_the_kernel_knows(name: str) -> None:
    """What is priced as one kind must not be released as another."""
    world = World()
    with pytest.raises(Refused, match=r"kinds|class"):
        world.kernel.check([world.release(**SEVERAL[name])], event())
