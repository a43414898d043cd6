"""The order of an ask: certify, price, compare with the debit; then redeem, run, add noise, release.

What is released of any request satisfies the event that was debited for it, whoever wrote the request.
Source: docs/theory/kernel.md; SR5, SR6, SR17, SR24.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar, final

import numpy as np

from sulq.errors import AccessDenied, CuratorError
from sulq.kernel import layout, price
from sulq.kernel.facts import Draw as Drawn
from sulq.kernel.facts import Event, Facts, Refused, Unit, require
from sulq.kernel.laws import BESIDE, Law, own
from sulq.kernel.ledger.chain import Receipt
from sulq.kernel.mechanisms import Columns, Shown
from sulq.kernel.mechanisms import release as add_noise
from sulq.kernel.mechanisms import reveal as reveal_groups
from sulq.kernel.private import SATURATED, Groups, Integers, Private
from sulq.kernel.programs import Fold
from sulq.kernel.request import WRITTEN, Outside, Proposed, Release
from sulq.kernel.scores import Rank, Weighted, scores
from sulq.kernel.whole.asked import exact as statistic

RECORDS: Final = frozenset((*WRITTEN, Drawn, Event))
MAX_GRID_BITS: Final = 62  # by which a grid may be finer
MAX_NUMBERS: Final = 2**24  # of one release
MAX_LEVEL: Final = 2**60  # of a threshold: sums are clamped beyond it
REQUEST: Final = (int, str, bytes, type(None), Fold, Outside)  # a program is read where it is certified (programs.py)
EVENT: Final = (int, str, type(None), Fraction)  # no NaN: it is not more than any loss, and would cover every one
ENGINE: Final = ("engine-failed", "The rows could not be summed.")
NOISE: Final = ("noise-failed", "No noise could be drawn, so nothing is released.")

T = TypeVar("T")
Draw = Callable[[Law, Private[Integers]], Integers]
Reveal = Callable[[tuple[Columns, ...], Private[Groups]], Shown]

_log = logging.getLogger(__name__)


class Book(Protocol):
    """What is read of a ledger's first entry: whether the data were declared to be made up."""

    @property
    def synthetic(self) -> bool: ...  # noqa: D102


@final
@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A request that `Kernel.check` certified and priced; nothing else is run. `layouts`: by the ids of proposals."""

    releases: tuple[Release, ...]
    event: Event
    by: Kernel
    layouts: Mapping[int, layout.Layout] = field(default_factory=dict)


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
        least: price.Query = None,
    ) -> None:
        self._redeem, self._known, self._least = redeem, known, least
        self._draw: Draw = add_noise
        self._reveal: Reveal = reveal_groups

    def replace_noise(self, ledger: Book, draw: Draw, reveal: Reveal) -> Self:
        """Release by other functions than the mechanisms', for made-up data alone: the one way to do so (SR9)."""
        if ledger.synthetic is not True:
            why = "The first entry of this ledger does not say that the data are synthetic."
            raise AccessDenied("not-synthetic", why, "Begin another ledger, with synthetic=True, for made-up data.")
        self._draw, self._reveal = draw, reveal
        return self

    def check(self, releases: Sequence[Release], event: Event) -> Checked:
        """Certify and price a request, or refuse it; reads no row, and what it says follows from none."""
        try:
            _read_strictly(event, EVENT, set())  # apart from the releases, whose numbers are never fractions
            formed = tuple(map(partial(_formed, read=set()), releases))  # read once: what is run is what was certified
            return Checked(formed, event, self, self._certify(formed, event))
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 - a request that no proposer writes
            _log.error("a request could not be read: %s", type(error).__name__)
            raise Refused("it is not what a request can be") from None

    def _certify(self, releases: Sequence[Release], event: Event) -> dict[int, layout.Layout]:
        known, found = self._known(), dict[int, layout.Layout]()
        if known is None:
            return found
        facts, unit = known
        same = (facts.neighbors, facts.row_is_person) == (unit.neighbors, unit.column is None)
        require(same, "a unit of other facts")
        blocks = []
        for source in (release.source for release in releases):
            if isinstance(source, Outside):
                blocks.append(source.bounds)
                continue
            name = id(source.proposal)
            found[name] = found.get(name) or layout.of_proposal(source.proposal, facts)
            blocks.append(found[name].blocks[source.tally])
        price.check(releases, blocks, event, unit, self._least)
        return found

    def run(self, checked: Checked, receipt: Receipt, digest: str) -> tuple[Integers | Shown, ...]:
        """Exact sums and their noise, for a request that was paid for, and once (SR24)."""
        if checked.by is not self or not self._redeem(receipt, digest, checked.event):
            raise CuratorError("bad-receipt", "This plan's debit could not be verified.")
        return tuple(map(self._released, checked.releases, _attempt(lambda: _exact(checked), *ENGINE)))

    def _released(self, release: Release, exact: Private[Any]) -> Integers | Shown:
        source = release.source
        if source.groups:  # their sums, their people, noise and threshold, in one call (SR14)
            return _attempt(lambda: self._reveal(tuple(map(Columns, release.laws, source.widths)), exact), *NOISE)
        numbers = _attempt(lambda: exact.map(partial(_numbers, source)), *ENGINE)
        drawn = (self._draw(law, numbers.map(given)) for law, given in _inputs(release))
        return _attempt(lambda: np.concatenate(list(drawn), axis=1), *NOISE)


def _attempt(work: Callable[[], T], code: str, message: str) -> T:
    """What is done after the debit, with one outcome for every failure.

    It may fail because of a row. The text of an error can hold a cell and its kind can depend on one, so it is raised
    anew, outside the handler: not even the exception's context leads back to it (T30, T31).
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001
        _log.error("%s after the debit: %s", code, type(error).__name__)
    raise CuratorError(code, message)


def _read_strictly(value: object, plain: tuple[type, ...], read: set[int]) -> None:
    """Refuse numbers that are not Python's own: others wrap round, are not whole, or compare as they like."""
    if type(value) is tuple:
        for item in value:
            _read_strictly(item, plain, read)
    elif type(value) not in RECORDS:
        require(type(value) in plain, "a number or a text of another type")
    elif id(value) not in read:  # what many releases share, as their proposal, once: it is frozen, and alive meanwhile
        read.add(id(value))
        for name in set(value.__slots__) - {"place"}:  # type: ignore[attr-defined]  # where it runs
            _read_strictly(getattr(value, name), plain, read)


def _formed(release: Release, read: set[int]) -> Release:
    """The same release and laws as classes of the kernel; refuses what could not be run as it is written."""
    source, laws, levels, score = release.source, tuple(map(own, release.laws)), release.thresholds, release.score
    require(type(score) in (type(None), Rank, Weighted), "a score of another class")
    score = None if score is None else replace(score)  # its numbers are looked at anew
    release = Release(source, laws, release.refine, release.answered, score, levels)
    _read_strictly((release.refine, release.answered, levels, source), REQUEST, read)
    kinds = [release.score is not None, levels is not None, groups := source.groups, source.whole is not None]
    require({type(kind) for kind in kinds} == {bool} and sum(kinds) <= 1, "a release of several kinds")
    if source.whole is not None:
        return release
    grids = 1 if release.told else len(source.widths)
    fine = len(release.refine) == grids and all(0 <= bits <= MAX_GRID_BITS for bits in release.refine)
    require(fine, "a grid for other than each block")
    beside = BESIDE.get(laws[0].kind)  # a threshold of people, and noise within the same call
    others = all(law.kind == beside if groups else law.kind not in BESIDE for law in laws[1:])
    people = (beside is not None) == groups
    require(people and others, "a threshold of people for sums, or none for people")
    require(groups or 0 < release.numbers <= MAX_NUMBERS, "no numbers, or too many")
    if release.score is not None:
        choices = release.answered >= 1 and source.cells % release.answered == 0
        require(choices, "choices of other cells than there are")
    if levels is not None:
        told = len(levels) in (1, release.numbers) and max(map(abs, levels)) <= MAX_LEVEL and len(source.widths) == 1
        require(told and all(getattr(law, "sums", 0) == release.numbers for law in laws), "thresholds of other sums")
    return release


def _exact(checked: Checked) -> list[Private[Any]]:
    """The exact sums or groups of each release; what several are of is run once."""
    made: dict[object, Sequence[Private[Any]]] = {}
    found: list[Private[Any]] = []
    for source in (release.source for release in checked.releases):
        name = source.read if isinstance(source, Outside) else (id(source.proposal), id(source.place))
        if name not in made:
            made[name] = source.read() if isinstance(source, Outside) else _run(source, checked)
        found.append(made[name][source.tally])
    return found


def _run(source: Proposed, checked: Checked) -> list[Private[Any]]:
    """Have a proposal's text and program run, and assemble what they give."""
    proposal, known = source.proposal, checked.layouts.get(id(source.proposal))
    with source.place() as asking:
        if source.groups:
            (statement,), most = proposal.statements, known.totals[0] if known else ()
            return [Private(layout.groups_of(statement, asking.groups(statement), most))]
        return [*map(Private, layout.joined(proposal, layout.summed(proposal, asking, known.totals if known else ())))]


def _numbers(source: Proposed | Outside, exact: Integers) -> Integers:
    """The statistic of the whole table, or sums of the planned shape: a cell without rows is a zero (T9, T29)."""
    if isinstance(source, Outside) and source.whole is not None:
        return statistic(source.whole, np.atleast_2d(exact), source.functions)
    if exact.shape != (source.cells, sum(source.widths)) or exact.dtype != np.int64:
        raise TypeError
    return exact


def _inputs(release: Release) -> Iterator[tuple[Law, Callable[[Integers], Integers]]]:
    """Each law, and what of the exact numbers it is drawn for."""
    source, score, levels, first = release.source, release.score, release.thresholds, release.laws[0]
    if source.whole is not None:
        yield first, lambda exact: exact
    elif score is not None:
        yield first, lambda exact: scores(score, exact.reshape(release.answered, -1, exact.shape[1]))
    elif levels is not None:
        yield first, partial(_past, np.array(levels, dtype=np.int64))
    else:
        start, blocks = 0, zip(release.laws, release.refine, source.widths, strict=True)
        for (law, bits), alike in itertools.groupby(blocks, key=lambda each: each[:2]):  # a draw a number either way
            stop = start + sum(width for _, _, width in alike)
            yield law, partial(_finer, slice(start, stop), bits)
            start = stop


def _past(levels: Integers, exact: Integers) -> Integers:
    """All sums in one row, less their thresholds; saturated first, a 1-Lipschitz step (T5)."""
    return (np.clip(exact, -SATURATED // 2, SATURATED // 2).ravel() - levels)[None]


def _finer(columns: slice, bits: int, exact: Integers) -> Integers:
    """Some columns of the exact sums on a grid 2^bits finer, saturated: a 1-Lipschitz step (T5)."""
    room = SATURATED >> bits
    return np.clip(exact[:, columns], -room, room) << bits
