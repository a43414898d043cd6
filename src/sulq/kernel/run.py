"""The order of an ask: certify, price, compare with the debit; then redeem, run, add noise, release.

What is released of any request satisfies the event that was debited for it, whoever wrote the request.

Source: docs/theory/kernel.md; SR5, SR6, SR17, SR24.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, TypeVar, final

import numpy as np

from sulq.errors import AccessDenied, CuratorError
from sulq.kernel import assemble, layout, price
from sulq.kernel.facts import Event, Facts, Refused, Unit
from sulq.kernel.laws import Law, PassedLaw, own
from sulq.kernel.ledger.receipt import Receipt
from sulq.kernel.mechanisms import Columns, Shown
from sulq.kernel.mechanisms import release as add_noise
from sulq.kernel.mechanisms import reveal as reveal_groups
from sulq.kernel.moves import Certified
from sulq.kernel.private import SATURATED, Groups, Integers, Private
from sulq.kernel.programs import Fold
from sulq.kernel.request import WRITTEN, Asked, Found, Listed, Outside, Release
from sulq.kernel.scores import scores
from sulq.kernel.whole.asked import exact as statistic

MAX_GRID_BITS: Final = 62  # by which a grid may be finer
MAX_NUMBERS: Final = 2**24  # of one release
MAX_LEVEL: Final = 2**60  # of a threshold: sums are clamped beyond it

ELSEWHERE: Final = (Fold, Outside)  # a program is read where it is certified (programs.py)

T = TypeVar("T")

_log = logging.getLogger(__name__)


Draw = Callable[[Law, Private[Integers]], Integers]
Reveal = Callable[[tuple[Columns, ...], Private[Groups]], Shown]


class Book(Protocol):
    """What is read of a ledger's first entry."""

    @property
    def synthetic(self) -> bool:
        """Whether the data were declared to be made up."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A request that `Kernel.check` certified and priced; nothing else is run."""

    releases: tuple[Release, ...]
    event: Event
    by: Kernel


@final
class Kernel:
    """Runs requests that were paid for.

    `redeem` says, once for each receipt, whether its debit was for this digest and charged this event. `known`: the
    facts of the kept tables and the unit; None where rows are read by an engine that stands outside the promise: then
    nothing is certified. `least`: under a SubLinear budget, the noise of a query.
    """

    def __init__(
        self,
        redeem: Callable[[Receipt, str, Event], bool],
        known: Callable[[], tuple[Facts, Unit] | None],
        least: Callable[[int], price.Least] | None = None,
    ) -> None:
        self._redeem = redeem
        self._known = known
        self._least = least
        self._draw: Draw = lambda law, exact: add_noise(own(law), exact)
        self._reveal: Reveal = lambda columns, exact: reveal_groups(
            [Columns(own(each.law), each.width) for each in columns], exact
        )

    def replace_noise(self, ledger: Book, draw: Draw, reveal: Reveal) -> Self:
        """Release by other functions than the mechanisms', for made-up data alone: the one way to do so (SR9).

        Raises:
            AccessDenied: the first entry of the data's ledger does not say that they are synthetic.
        """
        if ledger.synthetic is not True:
            raise AccessDenied(
                "not-synthetic",
                "The first entry of this ledger does not say that the data are synthetic.",
                "Use a ledger of its own, begun with synthetic=True, for made-up data; "
                "private data have no exact answers.",
            )
        self._draw, self._reveal = draw, reveal
        return self

    def check(self, releases: Sequence[Release], event: Event) -> Checked:
        """Certify and price a request, and compare it with its debit; reads no row, and its words follow from none.

        Raises:
            Refused: the kernel does not certify it within the event.
        """
        try:
            self._certify(releases, event)
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 - a request that no proposer writes
            _log.error("a request could not be read: %s", type(error).__name__)
            raise Refused("it is not what a request can be") from None
        return Checked(tuple(releases), event, self)

    def _certify(self, releases: Sequence[Release], event: Event) -> None:
        for release in releases:
            _read_strictly((release.refine, release.answered, release.thresholds, release.source))
            _formed(release)
        known = self._known()
        if known is None:
            return
        facts, unit = known
        if (facts.neighbors, facts.row_is_person) != (unit.neighbors, unit.column is None):
            raise Refused("a unit of other facts")
        seen: dict[Asked, list[tuple[Certified, ...]]] = {}
        found = [_certified(release.source, facts, seen) for release in releases]
        price.check([_priced(release) for release in releases], found, event, unit, self._least)

    def run(self, checked: Checked, receipt: Receipt, digest: str) -> tuple[Integers | Shown, ...]:
        """Exact sums and their noise, for a request that was paid for, and once (SR24)."""
        if checked.by is not self or not self._redeem(receipt, digest, checked.event):
            raise CuratorError("bad-receipt", "This plan's debit could not be verified.")
        exact = self._read(lambda: _exact(checked.releases))
        return tuple(map(self._released, checked.releases, exact))

    def _released(self, release: Release, exact: Private[Any]) -> Integers | Shown:
        source = release.source
        if release.people:  # their sums, their people, noise and threshold, in one call (SR14)
            columns = tuple(map(Columns, release.laws, (1, *source.widths)))
            return self._hidden(lambda: self._reveal(columns, exact))
        if isinstance(source, Outside) and source.whole is not None:
            whole, functions = source.whole, source.functions
            value = self._read(lambda: exact.map(lambda cells: statistic(whole, np.atleast_2d(cells), functions)))
            return self._noisy(release.laws[0], value, lambda found: found)
        sums = self._read(lambda: exact.map(_of_shape(source.cells, sum(source.widths))))
        if release.score is not None:
            score, shape = release.score, (release.answered, -1, sum(source.widths))
            return self._noisy(release.laws[0], sums, lambda found: scores(score, found.reshape(shape)))
        if release.thresholds is not None:
            return self._noisy(release.laws[0], sums, _past(release.thresholds))
        parts, start = [], 0
        blocks = zip(release.laws, release.refine, source.widths, strict=True)
        for (law, bits), alike in itertools.groupby(blocks, key=lambda each: each[:2]):  # a draw a number either way
            stop = start + sum(width for _, _, width in alike)
            parts.append(self._noisy(law, sums, _finer(start, stop, bits)))
            start = stop
        return np.concatenate(parts, axis=1)

    # Whatever fails below may fail because of a row. Its text can hold a cell and its kind can depend on one, so the
    # error is raised anew, outside the handler: not even the exception's context leads back to it (T30, T31).

    def _noisy(self, law: Law, exact: Private[Integers], columns: Callable[[Integers], Integers]) -> Integers:
        return self._hidden(lambda: self._draw(law, exact.map(columns)))

    def _read(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one outcome for every failure after the debit (R5)
            _log.error("the engine failed after the debit: %s", type(error).__name__)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _hidden(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - likewise
            _log.error("the noise failed after the debit: %s", type(error).__name__)
        raise CuratorError("noise-failed", "No noise could be drawn, so nothing is released.")


def _read_strictly(value: object) -> None:
    """Refuse a request whose numbers are not Python's own: others wrap round, or are not whole."""
    if type(value) is tuple:
        for item in value:
            _read_strictly(item)
    elif type(value) in WRITTEN:
        for name in value.__slots__:  # type: ignore[attr-defined]
            if name != "place":  # where it runs
                _read_strictly(getattr(value, name))
    elif type(value) not in (int, str, bytes, type(None), *ELSEWHERE):
        raise Refused("a number or a text of another type")


def _formed(release: Release) -> None:
    """Refuse a release that cannot be run as it is written: what would fail after the debit fails before it."""
    if release.whole is not None:
        return
    source, blocks = release.source, len(release.source.widths)
    one = release.score is not None or release.thresholds is not None
    if len(release.refine) != (1 if one else blocks) or not all(0 <= bits <= MAX_GRID_BITS for bits in release.refine):
        raise Refused("a grid for other than each block")
    if release.people != isinstance(release.laws[0], PassedLaw) or any(
        isinstance(law, PassedLaw) for law in release.laws[1:]
    ):
        raise Refused("a threshold of people for sums, or none for people")
    if release.people:
        return
    numbers = source.cells * sum(source.widths)
    if not 0 < numbers <= MAX_NUMBERS:
        raise Refused("no numbers, or too many")
    if release.score is not None and (release.answered < 1 or source.cells % release.answered):
        raise Refused("choices of other cells than there are")
    if release.thresholds is not None:
        told = len(release.thresholds) in (1, numbers) and max(map(abs, release.thresholds)) <= MAX_LEVEL
        if not told or blocks != 1 or not all(getattr(law, "sums", 0) == numbers for law in release.laws):
            raise Refused("thresholds that are not those of the sums")


def _certified(
    source: Listed | Found | Outside, facts: Facts, seen: dict[Asked, list[tuple[Certified, ...]]]
) -> tuple[Certified, ...]:
    """What one person does to each block of a source."""
    if isinstance(source, Outside):
        return source.bounds
    if isinstance(source, Found):
        return layout.of_groups(source.groups, source.widths, facts)
    if source.asked not in seen:
        seen[source.asked] = layout.of_proposal(source.asked.proposal, facts)
    return seen[source.asked][source.tally]


def _priced(release: Release) -> price.Release:
    cells, above = release.source.cells, release.thresholds is not None
    answered = release.answered if release.score is not None else 1 if above else cells
    return price.Release(
        tuple(map(own, release.laws)), release.refine, cells, answered, sum(release.source.widths), release.score,
        above=above, people=release.people, whole=None if release.whole is None else release.whole.cost,
    )  # fmt: skip


def _exact(releases: Sequence[Release]) -> list[Private[Any]]:
    """The exact sums or groups of each release; what several are of is run once."""
    made: dict[object, Sequence[Private[Any]]] = {}
    found: list[Private[Any]] = []
    for source in (release.source for release in releases):
        if isinstance(source, Found):
            with source.place() as asking:
                found.append(Private(assemble.groups_of(source.groups, asking.groups(source.groups), source.widths)))
            continue
        if isinstance(source, Outside):
            made[source.read] = made.get(source.read) or source.read()
            found.append(made[source.read][source.tally])
            continue
        if source.asked not in made:
            with source.asked.place() as asking:
                made[source.asked] = [Private(each) for each in assemble.sums_of(source.asked.proposal, asking)]
        found.append(made[source.asked][source.tally])
    return found


def _of_shape(cells: int, width: int) -> Callable[[Integers], Integers]:
    """Insist on the planned shape: a cell without rows is a zero, never left out (T9, T29)."""

    def check(exact: Integers) -> Integers:
        if exact.shape != (cells, width) or exact.dtype != np.int64:
            raise TypeError
        return exact

    return check


def _past(thresholds: tuple[int, ...]) -> Callable[[Integers], Integers]:
    """All sums in one row, less their thresholds; saturated first, a 1-Lipschitz step (T5)."""
    levels = np.array(thresholds, dtype=np.int64)
    return lambda exact: (np.clip(exact, -SATURATED // 2, SATURATED // 2).ravel() - levels)[None]


def _finer(start: int, stop: int, bits: int) -> Callable[[Integers], Integers]:
    """Some columns of the exact sums on a grid 2^bits finer, saturated: a 1-Lipschitz step (T5)."""
    room = SATURATED >> bits
    return lambda exact: np.clip(exact[:, start:stop], -room, room) << bits
