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
from sulq.kernel.laws import PassedLaplaceLaw
from sulq.kernel.ledger.chain import Receipt, Seal
from sulq.kernel.mechanisms import Cost
from sulq.kernel.moves import Norms
from sulq.kernel.remembered import asked_by
from sulq.kernel.run import Checked
from sulq.kernel.scores import Span
from tests import counts
from tests.kernel.asked import UNITS, Request, World, excess
from tests.kernel.mutations import Mutators, at, exchanged, put

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


# Open keys by Laplace noise


def hidden_by(world: World, law: str) -> list[Request]:
    """The honest requests for groups whose people have noise of this law."""
    return [request for request in world.requests if request[0][0].laws[0].kind == law]


def deceptions(request: Request) -> dict[str, Request]:
    """Requests for groups that say too little of one thing."""
    ((release,), event), last = request, len(request[1].draws) - 1
    tau, first, less = release.laws[0].threshold, event.draws[0], Fraction(9, 10)
    shown = first.alone * Fraction(release.laws[0].alone())
    law, draw = (0, 0, "laws"), (1, "draws")
    other = exchanged(request)
    said: dict[str, dict[tuple[object, ...], object]] = {
        "a lower threshold": {(*law, 0, "threshold"): tau - 1, (*draw, 0, "threshold"): tau - 1},
        "a lower threshold, unsaid": {(*law, 0, "threshold"): tau - 1},
        "no threshold": {(*draw, 0, "threshold"): None},
        "alone in fewer groups": {(*draw, 0, "alone"): first.alone - 1},
        "alone in fewer groups, paid": {
            (*draw, 0, "alone"): first.alone - 1,
            (1, "key_delta"): shown * (first.alone - 1) / first.alone,
        },
        "alone in one group more": {(*draw, 0, "alone"): first.alone + 1, (1, "key_delta"): shown},
        "less noise on people": {(*where, 0, "scale"): first.scale * less for where in (law, draw)},
        "less noise on sums": {(*where, last, "scale"): event.draws[last].scale * less for where in (law, draw)},
        "less noise, unsaid": {(*law, last, "scale"): event.draws[last].scale * less},
        "people who move less": {(*draw, 0, "sensitivity"): first.sensitivity * less},
        "sums that move less": {(*draw, last, "sensitivity"): event.draws[last].sensitivity * less},
        "a smaller delta": {(1, "key_delta"): shown * Fraction(999, 1000)},
        "no delta": {(1, "key_delta"): Fraction(0)},
        "a smaller epsilon": {(1, "epsilon"): event.epsilon * less},
        "a smaller rho": {(1, "rho"): event.rho * less},
        "people by the other law": {(*where, 0): at(other, (*where, 0)) for where in (law, draw)},
        "the other law's draw": {(*draw, 0): other[1].draws[0]},
        "the other law as a pure one": {law: other[0][0].laws, draw: other[1].draws},
    }
    found = {}
    for name, changes in said.items():
        found[name] = request
        for path, new in changes.items():
            found[name] = put(found[name], path, new)
    return found


def test_open_keys_by_laplace_noise_are_refused_if_too_little_is_said_SR14(worlds: list[World]) -> None:
    """Of each number of the law, its draw and the debit. Control: as it was planned the same request is released.

    By the other law altogether a request may be released, if its rho and its delta are paid: `fate` compares them.
    """
    tried = 0
    for world in worlds:
        for request in hidden_by(world, "passed_laplace"):
            assert fate(world, request) == "released"
            for name, each in deceptions(request).items():
                assert fate(world, each) == "refused", name
                tried += 1
        for law in ("passed_gaussian", "passed_laplace"):
            ends = {fate(world, exchanged(each, Fraction(n))) for each in hidden_by(world, law) for n in (1, 4)}
            assert ends in (set(), {"refused", "released"}, {"released"}), law
    assert tried >= 8 * 18


def test_open_keys_of_which_too_little_is_said_tell_more_SR14(
    worlds: list[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control of the test above: by a kernel that compares nothing they are released, and neighbours told apart."""
    monkeypatch.setattr(price, "require", lambda *_: None)
    told: Counter[str] = Counter()
    for world in worlds:
        for request in hidden_by(world, "passed_laplace"):
            assert fate(world, request, "compares nothing") == "released"
            for name, each in deceptions(request).items():
                told[name] += 0
                try:
                    fate(world, each, "compares nothing")
                except AssertionError:
                    told[name] += 1
    only_recorded = {"no threshold", "alone in fewer groups", "alone in one group more", "the other law's draw"}
    assert {name for name, often in told.items() if not often} <= only_recorded  # what is lost is paid for all the same


def test_mutated_open_keys_by_laplace_noise_are_refused_or_released_within_their_debit(worlds: list[World]) -> None:
    """As above, of requests that are few among all. Control: many are run, and planted faults are noticed (below)."""
    much = counts.count("mutated requests for open keys by Laplace noise", short=400, long=100_000)
    before = sum(world.hidden["passed_laplace"] for world in worlds)
    found = tried(worlds, counts.generator("mutated open keys"), much, "", "PassedLaplaceLaw")
    ran = sum(world.hidden["passed_laplace"] for world in worlds) - before
    print(dict(found), ran)
    assert found["refused"] > much // 2
    assert ran // 4 > much // 20  # each is run on four tables


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


def unhidden(patch: pytest.MonkeyPatch) -> None:
    """People of groups who are taken not to move."""
    real = price._gathered
    patch.setattr(price, "_gathered", lambda *given, people: [Norms(0, 0, 0)] * 2 if people else real(*given, people=0))


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
    "people who are not priced": unhidden,
    "a threshold that costs nothing": lambda patch: patch.setattr(PassedLaplaceLaw, "alone", lambda _: 0.0),
}


SOME = {  # of which requests, and changed in which way, there are few among all mutants
    "a layout that is not looked at": ("Key", "counted"),
    "spans of half": ("score=R",),
    "a guard that is not priced": ("Stack",),
    "people who are not priced": ("PassedLaplaceLaw",),
    "a threshold that costs nothing": ("PassedLaplaceLaw",),
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
