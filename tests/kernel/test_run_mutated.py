"""Mutated requests at the kernel's own door: refused before a row is read, or released within their debit.

Requests are made by the planner and the proposers of real questions, and then changed in any place: a proposer may have
any mistake. What is certified counts as paid for and is run on neighbouring tables; what is lost is worked out in exact
fractions from the exact inputs of the noise, and compared with the event (`tests/kernel/asked.py`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from sulq.errors import CuratorError
from sulq.kernel import layout, price, programs
from sulq.kernel.facts import Event, Refused
from sulq.kernel.ledger.chain import Receipt, Seal
from sulq.kernel.mechanisms import Cost
from sulq.kernel.moves import Norms
from sulq.kernel.remembered import asked_by
from sulq.kernel.run import Checked
from sulq.kernel.scores import Span
from tests import counts
from tests.kernel.asked import UNITS, Request, World, excess
from tests.kernel.mutations import Mutators

PARTS = 4
SEALED = 37  # of so many mutants one is paid for with a real receipt and real noise


@pytest.fixture(scope="module")
def worlds() -> Iterator[list[World]]:
    """Each unit's tables, open."""
    logging.disable(logging.CRITICAL)  # each refusal of what cannot be read is a line
    with ExitStack() as stack:
        found = [World(name, *given) for name, given in UNITS.items()]
        for world in found:
            world.open(stack)
        yield found
    logging.disable(logging.NOTSET)


def fate(world: World, request: Request, kernel: str = "") -> str:
    """How a request ended: "refused", "released" within its debit, or "failed" alike on all tables.

    `kernel`: whose certificates are not remembered with the others'.
    """
    reads = world.turn.reads
    try:
        with asked_by(world.name + kernel):
            checked = world.kernel.check(*request)
    except Refused:
        assert world.turn.reads == reads, "rows were read for what is refused"
        return "refused"
    assert world.turn.reads == reads, "rows were read before the debit"
    first, *others = [world.run(checked, side) for side in world.sides]
    if isinstance(first, str):
        assert {first} == set(others), f"the rows decide how it fails: {first}, {others}"
        return "failed"
    for other in others:
        assert not isinstance(other, str), f"the rows decide whether it fails: {other}"
        assert (more := excess(world, checked.event, first, other)) == "", more
    return "released"


def tried(worlds: list[World], random: Random, much: int, kernel: str = "", *some: str) -> Counter[str]:
    """How many mutants, or some kinds of them, ended in which way."""
    found: Counter[str] = Counter()
    made = [Mutators(world, [other for other in worlds if other is not world], random, *some) for world in worlds]
    mutators = [(world, each) for world, each in zip(worlds, made, strict=True) if each.subjects]
    for done in range(much):
        world, mine = mutators[done % len(mutators)]
        world.whole = done % SEALED == 0
        request, how = mine.mutant()
        try:
            found[fate(world, request, kernel)] += 1
        except BaseException:
            print(world.name, how, request)
            raise
    return found


def test_what_is_planned_is_released_within_its_debit(worlds: list[World]) -> None:
    """Control of what follows: without a mutation every request is certified and run, under every relation."""
    for world in worlds:
        world.whole = True
        assert world.refused == []
        assert [fate(world, request) for request in world.requests] == ["released"] * len(world.requests)
    assert sum(len(world.requests) for world in worlds) > 300


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_requests_are_refused_or_released_within_their_debit(worlds: list[World], part: int) -> None:
    """Whatever is asked: `Refused` before any row is read, or noise that its event pays for; nothing else.

    What fails after the debit fails alike on neighbouring tables. Control: all three happen, and faults that are
    planted in the kernel are noticed (below).
    """
    much = counts.count(f"mutated requests to the kernel, part {part + 1}", short=600, long=250_000)
    found = tried(worlds, counts.generator(f"mutated requests to the kernel {part}"), much)
    print(dict(found))
    assert found["refused"] > much // 2
    assert found["released"] > much // 10
    assert found["failed"] < much // 25


# Receipts


def swindles(world: World, event: Event, random: Random) -> dict[str, Callable[[], tuple[Receipt, str]]]:
    """Receipts that are not for this request and event, each with the digest it is shown with."""
    other = random.choice(
        [other for _, other in world.requests if other != event] or [replace(event, rho=event.rho + 1)]
    )
    paid = world.pay
    less = replace(event, rho=event.rho / 2, draws=event.draws[1:])
    return {
        "another plan": lambda: (paid(event, "another"), "digest"),
        "another plan, said": lambda: (replace(paid(event, "another"), plan="digest"), "digest"),
        "another digest": lambda: (paid(event), "another"),
        "another event": lambda: (paid(other), "digest"),
        "a cheaper event": lambda: (paid(less), "digest"),
        "another place": lambda: (replace(paid(event), seq=random.randrange(10**6, 10**9)), "digest"),
        "another entry": lambda: (replace(paid(event), entry="other"), "digest"),
        "a number of another type": lambda: ((r := paid(event)) and replace(r, seq=np.int64(r.seq)), "digest"),
        "no whole number": lambda: ((r := paid(event)) and replace(r, seq=float(r.seq)), "digest"),
        "a MAC that is none": lambda: (replace(paid(event), mac=random.choice(["", "0" * 64, "é"])), "digest"),
        "a stored answer": lambda: (replace(paid(event), stored="{}"), "digest"),
        "another ledger": lambda: (Seal(b"other").stamp(1, "entry", "digest", event), "digest"),
    }


def presented(world: World, checked: Checked, receipt: Receipt, digest: str) -> str:
    """What the kernel says to a receipt: a refusal reads no row."""
    reads = world.turn.reads
    try:
        world.kernel.run(checked, receipt, digest)
    except CuratorError as refused:
        said = refused.code
    else:
        said = "released"
    assert said != "bad-receipt" or world.turn.reads == reads, "rows were read without a debit"
    return said


def receipts(worlds: list[World], random: Random, much: int) -> None:
    """Show receipts that are not for a request, then its own, then that once more."""
    mutators = [Mutators(world, [], random) for world in worlds]
    done = 0
    while done < much:
        i = random.randrange(len(worlds))
        world = worlds[i]
        world.whole = True
        request = mutators[i].mutant()[0] if random.random() < 0.3 else random.choice(world.requests)
        try:
            with asked_by(world.name):
                checked = world.kernel.check(*request)
        except Refused:
            continue
        for name, swindle in swindles(world, checked.event, random).items():
            assert presented(world, checked, *swindle()) == "bad-receipt", name
            done += 1
        right = world.pay(checked.event)
        assert presented(world, checked, right, "digest") in ("released", "engine-failed", "noise-failed")
        assert presented(world, checked, right, "digest") == "bad-receipt", "a receipt bought two releases"
        done += 1


def test_mutated_receipts_buy_nothing_T43(worlds: list[World]) -> None:
    """Another plan's, another event's, used ones, or of another type: no row is read. Control: its own is good."""
    much = counts.count("mutated receipts", short=400, long=50_000)
    receipts(worlds, counts.generator("mutated receipts"), much)


# Controls: faults planted in the kernel, each of which the same mutants, or receipts, notice.


def halved(norms: Norms, rows: int) -> Norms:
    """Norms of so many equal vectors together, but for a factor."""
    return Norms(norms.l1 * rows // 2, norms.l2_squared * rows**2 // 4, norms.coordinate * rows // 2)


def forgets(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A certifier that takes a person to have one row."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = getattr(layout, name)
        patch.setattr(layout, name, lambda *given: replace(real(*given), rows=1))

    return plant


def narrow(patch: pytest.MonkeyPatch) -> None:
    """Scores that are taken to move half as far."""
    real = price.span
    patch.setattr(price, "span", lambda *given: Span(real(*given).single // 2, real(*given).pair // 2))


def unguarded(patch: pytest.MonkeyPatch) -> None:
    """Programs whose vectors are taken to be half as long."""
    real = programs.Box.moves

    def moves(self: programs.Box, rows: int) -> object:
        found = real(self, rows)
        return replace(found, single=halved(found.single, 1), pair=halved(found.pair, 1))

    patch.setattr(programs.Box, "moves", moves)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a price of half a move": lambda patch: patch.setattr(Norms, "times", halved),
    "a certifier that forgets a person's rows": forgets("certify"),
    "a layout that is not looked at": lambda patch: [
        patch.setattr(layout, name, lambda *_: False) for name in ("require", "_in_a_cell")
    ],
    "a loss that is not compared": lambda patch: patch.setattr(
        price, "_cost", lambda *_, **__: Cost(Fraction(0), Fraction(0))
    ),
    "spans of half": narrow,
    "a guard that is not priced": unguarded,
}


SOME = {  # of which requests, and changed in which way, there are few among all mutants
    "a layout that is not looked at": ("Key", "counted"),
    "spans of half": ("score=R",),
    "a guard that is not priced": ("Stack",),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_kernel_is_noticed(worlds: list[World], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: with a check left out, or a factor, some of the same mutants are told from their neighbours by more."""
    FAULTS[name](monkeypatch)
    with pytest.raises(AssertionError):
        tried(worlds, Random(f"faults {name}"), 6000, name, *SOME.get(name, ()))


def test_a_receipt_that_always_counts_is_noticed(worlds: list[World], monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a seal that says yes to whatever is shown."""
    monkeypatch.setattr(Seal, "redeem", lambda *_: True)
    with pytest.raises(AssertionError):
        receipts(worlds, Random("receipts"), 100)
