"""Questions of all kinds, planned and proposed, on neighbouring tables: each is certified, and within its debit.

`tools/mutants_proposers.py` plants mistakes in what plans and proposes, and names these tests: the kernel refuses what
such a mistake would release, which fails the assertion. Were anything released beyond its debit, it is no assertion
that fails: a mutant that the kernel does not stop counts as not noticed.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.kernel.asked import UNITS, World, excess


class BeyondDebitError(Exception):
    """Neighbouring tables are told apart by more than was paid for."""


def released(world: World) -> None:
    """Run all requests that are certified on all tables, and compare what their noise hides."""
    for releases, event in world.requests:
        checked = world.kernel.check(releases, event)
        first, *others = [world.run(checked, side) for side in world.sides]
        for other in others:
            more = "another failure" if isinstance(first, str) or isinstance(other, str) else ""
            if more := more or excess(world, event, first, other):
                raise BeyondDebitError(more)


@pytest.mark.parametrize("name", UNITS)
def test_what_is_asked_is_certified_and_within_its_debit(name: str) -> None:
    """Sums, joins, groups of a person, unions, tables, folds, choices, thresholds and statistics of the whole table."""
    world = World(name, *UNITS[name], sides=range(3))
    with ExitStack() as stack:
        world.open(stack)
        released(world)
    assert world.refused == []


def test_what_is_beyond_its_debit_is_told() -> None:
    """Control: the same requests, said to cost a hundredth, are beyond their events."""
    world = World("two rows", *UNITS["two rows"], sides=range(3))
    with ExitStack() as stack:
        world.open(stack)
        found = []
        for releases, event in world.requests:
            checked = world.kernel.check(releases, event)
            first, *others = [world.run(checked, side) for side in world.sides]
            cheap = type(event)(
                event.epsilon and event.epsilon / 100, event.rho / 100, event.key_delta, draws=event.draws
            )
            found.append(any(excess(world, cheap, first, other) for other in others))
    assert sum(found) > len(found) // 2
