"""The part that sees rows: exact sums, then noise, in one place and nowhere else."""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, Protocol, Self, TypeVar, cast, final

import numpy as np

from sulq.curator import certificates
from sulq.curator.statistics import holistic
from sulq.curator.statistics.owned import Function
from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.kernel.facts import Refused
from sulq.kernel.mechanisms import release as add_noise
from sulq.kernel.mechanisms import reveal
from sulq.kernel.private import Private
from sulq.kernel.remembered import asked_by
from sulq.kernel.score import Score
from sulq.kernel.scoring import scores
from sulq.terms import wire
from sulq.terms.engine import Engine, Groups, Tally, sums_of
from sulq.terms.kinds import Integers
from sulq.terms.law import Law
from sulq.terms.plan import Part, Plan, Whole
from sulq.terms.privacy import Budget, Event
from sulq.terms.receipt import Receipt
from sulq.terms.relation import Table
from sulq.terms.released import Noise, Released
from sulq.terms.statistic import HeavyPersons

LIMIT: Final = 2**62
NEXT: Final = (
    "Use a ledger of its own, begun with synthetic=True, for made-up data; private data have no exact answers."
)
ROOM: Final = 2**22  # characters of texts whose plans are kept between check and run
Release = Callable[[Law, Private[Integers]], Integers]
Reveal = Callable[[tuple[Noise, ...], Private[Groups]], Released]
T = TypeVar("T")

_log = logging.getLogger(__name__)


def reveal_groups(noise: tuple[Noise, ...], exact: Private[Groups]) -> Released:
    """Groups found in the data that pass their threshold."""
    shown = reveal(noise, exact)
    return Released(shown.units, noise, shown.labels)


class Runner(Protocol):
    """What the curator needs of the part that sees rows, in this process or in another."""

    def ready(self) -> None:
        """Make the kept rows available before anything is paid; releases nothing."""
        ...

    def check(self, plan: Plan, text: str | None = None, whose: str = "") -> None:
        """Refuse a plan that the kernel does not certify, before anything is paid; where rows are elsewhere, there.

        `text`: its canonical JSON, if at hand. `whose`: the asker, whose certificates are remembered apart (T39).
        """
        ...

    def run(self, plan: Plan, receipt: Receipt, text: str | None = None) -> tuple[Released, ...]:
        """Exact sums and their noise, for a plan that was paid for and once; `text`: its canonical JSON, if at hand."""
        ...


class Book(Protocol):
    """What the part that sees rows reads of a ledger's first entry."""

    @property
    def synthetic(self) -> bool:
        """Whether the data were declared to be made up."""
        ...


@final
class Rows:
    """Runs plans that were paid for; `redeem` says, once for each receipt, whether one was."""

    def __init__(
        self,
        engine: Engine,
        redeem: Callable[[Receipt, str], bool],
        own: Mapping[str, Function] | None = None,
        *,
        ready: Callable[[], None] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._engine = engine
        self._budget = budget  # of the ledger: a SubLinear one says how much noise a query has
        self._ready = engine.ready if ready is None else ready  # where something is made ready aside, it waits
        self._redeem = redeem
        self._release: Release = add_noise
        self._reveal: Reveal = reveal_groups
        self._certified: tuple[tuple[Part, ...], Event] = ((), Event(None, Fraction(0)))
        self._checked = _Checked()
        self._own = {} if own is None else own  # the owner's functions, by the names analysts choose them by (SR5)

    def replace_noise(self, ledger: Book, release: Release = add_noise, reveal: Reveal = reveal_groups) -> Self:
        """Release by other functions than the mechanisms', for made-up data alone: the one way to do so (SR9).

        Raises:
            AccessDenied: the first entry of the data's ledger does not say that they are synthetic.
        """
        if ledger.synthetic is not True:
            raise AccessDenied(
                "not-synthetic", "The first entry of this ledger does not say that the data are synthetic.", NEXT
            )
        self._release, self._reveal = release, reveal
        return self

    def ready(self) -> None:
        """Make the kept rows available before anything is paid; releases nothing."""
        self._ready()

    def check(self, plan: Plan, text: str | None = None, whose: str = "") -> None:
        """Refuse a plan that the kernel does not certify, before anything is paid; reads no row."""
        self._certify(plan.parts, plan.event, QuestionError, whose)
        self._certified = (plan.parts, plan.event)

    def check_text(self, text: str, whose: str = "") -> None:
        """As `check`, for a plan's canonical JSON as another process sent it; remembered by its digest (`knows`)."""
        parts, event = _parts(text, QuestionError)
        self._certify(parts, event, QuestionError, whose)
        self._checked.put((whose, wire.digest_of(text)), parts, len(text))

    def knows(self, digest: str, whose: str = "") -> bool:
        """Whether the text of this digest was certified here for this asker: it need not be sent again (T39)."""
        return self._checked.get((whose, digest)) is not None

    def run(self, plan: Plan, receipt: Receipt, text: str | None = None) -> tuple[Released, ...]:
        """Exact sums and their noise: one release for each part of the plan.

        The text is not taken on trust: what is run is the plan, so what must have been paid for is the plan.
        """
        if not self._redeem(receipt, wire.digest(plan)):
            raise _unpaid()
        known, paid = self._certified
        if plan.parts is not known or plan.event is not paid:  # else the very same were certified here
            self._certify(plan.parts, plan.event, CuratorError)
        return self._all(plan.parts)

    def run_text(self, text: str | None, receipt: Receipt, whose: str = "") -> tuple[Released, ...]:
        """As `run`, for a plan's canonical JSON as another process sent it: not even read unless it was paid for.

        None: what was certified here and is known by the digest that the receipt is for.
        """
        digest = receipt.plan if text is None else _digest(text)
        known = self._checked.get((whose, digest))  # of this very text, and what was certified cannot change
        if (known is None and text is None) or not self._redeem(receipt, digest):
            raise _unpaid()
        if known is None:
            known, event = _parts(cast("str", text), CuratorError)
            self._certify(known, event, CuratorError, whose)
        return self._all(known)

    def _certify(self, parts: tuple[Part, ...], event: Event, family: type[SulqError], whose: str = "") -> None:
        """Refuse what the kernel does not certify; whatever is raised meanwhile is a refusal too."""
        try:
            with asked_by(whose):
                certificates.check(parts, event, self._engine, self._budget)
        except Refused as refused:
            why = str(refused)
        except SulqError as error:
            why = error.message.rstrip(".")
        except Exception as error:  # noqa: BLE001 - a plan that no planner draws; nothing is read or paid for it
            _log.error("a plan could not be certified: %s", type(error).__name__)
            why = "it is not what a plan can be"
        else:
            return
        raise family("uncertified", f"The kernel does not certify this question: {why}.")

    def _all(self, parts: tuple[Part, ...]) -> tuple[Released, ...]:
        """One release for each part; the sums of all that have listed keys are asked for together (shared scans)."""
        exact = iter(self._sums([part.tally for part in parts if part.people is None and part.whole is None]))
        return tuple(self._one(part, exact) for part in parts)

    def _one(self, part: Part, exact: Iterator[Private[Integers]]) -> Released:
        if part.whole is not None:
            return self._statistic(part, part.whole)
        return self._open(part) if part.people is not None else self._part(part, next(exact))

    def _part(self, part: Part, exact: Private[Integers]) -> Released:
        if part.score is not None:
            return Released(self._noisy(part.laws[0], exact, _scored(part, part.score)), part.noise)
        if part.thresholds is not None:
            return Released(self._noisy(part.laws[0], exact, _past(part.thresholds)), part.noise)
        columns = []
        start = 0
        blocks = zip(part.laws, part.refine, part.tally.blocks, strict=True)
        for (law, bits), alike in itertools.groupby(blocks, key=lambda each: each[:2]):  # a draw a number either way
            stop = start + sum(block.width for _, _, block in alike)
            columns.append(self._noisy(law, exact, _finer(start, stop, bits)))
            start = stop
        return Released(np.concatenate(columns, axis=1), part.noise)

    # Whatever fails below may fail because of a row. Its text can hold a cell and its kind can depend on one, so the
    # error is raised anew, outside the handler: not even the exception's context leads back to it (T30, T31).

    def _sums(self, tallies: Sequence[Tally]) -> list[Private[Integers]]:
        def checked() -> list[Private[Integers]]:
            found = zip(tallies, sums_of(self._engine, tallies), strict=True)
            return [exact.map(_of_shape(tally.cells, tally.width)) for tally, exact in found]

        return self._read(checked)

    def _noisy(self, law: Law, exact: Private[Integers], columns: Callable[[Integers], Integers]) -> Integers:
        return self._hidden(lambda: self._release(law, exact.map(columns)))

    def _open(self, part: Part) -> Released:
        """Groups found in the data: their sums, their people, noise and threshold, in one call (SR14)."""
        exact = self._read(lambda: self._engine.groups(part.tally))
        return self._hidden(lambda: self._reveal(part.noise, exact))

    def _statistic(self, part: Part, whole: Whole) -> Released:
        """A statistic of the whole table, worked out inside the box, and its noise."""
        blocks = part.tally.blocks
        exact = self._read(
            lambda: self._rows_of(part, whole).map(lambda r: holistic.exact(whole, blocks, r, self._own))
        )
        noisy = self._noisy(part.laws[0], exact, lambda found: found)
        return Released(noisy.reshape(part.cells, -1), part.noise)

    def _rows_of(self, part: Part, whole: Whole) -> Private[Integers]:
        """What a statistic of the whole table is worked out from."""
        if isinstance(whole.statistic, HeavyPersons):
            return self._engine.heavy(cast("Table", part.tally.over).name)
        # The rows a certificate is about are all of them, each in its place, whatever they lack (S4.13).
        return self._engine.listed(part.tally, blanks=whole.certificate is not None)

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

    def close(self) -> None:
        """Let go of the rows."""
        self._engine.close()


class _Checked:
    """Plans that were certified, by askers and digests of texts: the last one, and others while there is room."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, str], tuple[tuple[Part, ...], int]] = OrderedDict()
        self._length = 0

    def put(self, key: tuple[str, str], parts: tuple[Part, ...], length: int) -> None:
        self._length += length - self._found.pop(key, ((), 0))[1]
        self._found[key] = (parts, length)
        while self._length > ROOM and len(self._found) > 1:
            self._length -= self._found.popitem(last=False)[1][1]

    def get(self, key: tuple[str, str]) -> tuple[Part, ...] | None:
        found = self._found.get(key)
        return None if found is None else found[0]


def _digest(text: str) -> str:
    try:
        return wire.digest_of(text)
    except UnicodeEncodeError:  # half of a character, which JSON can say
        raise _unpaid() from None


def _unpaid() -> CuratorError:
    return CuratorError("bad-receipt", "This plan's debit could not be verified.")


def _parts(text: str, family: type[SulqError]) -> tuple[tuple[Part, ...], Event]:
    """The parts of a plan in canonical JSON, and the event that was paid; the question was read by whoever paid."""
    try:
        text.encode()  # what has no bytes has no digest
        tree = wire.strict(text)
        if isinstance(tree, dict) and tree.get("kind") == "Plan":
            parts, event = wire.from_json(tree.get("parts")), wire.from_json(tree.get("event"))
            if isinstance(parts, tuple) and all(isinstance(part, Part) for part in parts) and isinstance(event, Event):
                return cast("tuple[Part, ...]", parts), event
    except Exception as error:  # noqa: BLE001 - a text that no planner writes
        _log.error("a text is no plan: %s", type(error).__name__)
    raise family("uncertified", "The kernel does not certify this question: its text is no plan.")


def _of_shape(cells: int, width: int) -> Callable[[Integers], Integers]:
    """Insist on the planned shape: a cell without rows is a zero, never left out (T9, T29)."""

    def check(exact: Integers) -> Integers:
        if exact.shape != (cells, width) or exact.dtype != np.int64:
            raise TypeError
        return exact

    return check


def _scored(part: Part, score: Score) -> Callable[[Integers], Integers]:
    """The candidates' scores for each cell that chooses."""
    return lambda exact: scores(score, exact.reshape(part.cells, -1, part.tally.width))


def _past(thresholds: tuple[int, ...]) -> Callable[[Integers], Integers]:
    """All sums in one row, less their thresholds; saturated first, a 1-Lipschitz step (T5)."""
    levels = np.array(thresholds, dtype=np.int64)
    return lambda exact: (np.clip(exact, -LIMIT // 2, LIMIT // 2).ravel() - levels)[None]


def _finer(start: int, stop: int, bits: int) -> Callable[[Integers], Integers]:
    """Some columns of the exact sums on a grid 2^bits finer, saturated: a 1-Lipschitz step (T5)."""
    room = LIMIT >> bits
    return lambda exact: np.clip(exact[:, start:stop], -room, room) << bits
