"""The part that sees rows: plans become requests to the kernel, which certifies, runs and releases them."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar, cast, final

import numpy as np

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.plan import Part, Plan
from sulq.answers.released import Released
from sulq.curator import certificates
from sulq.errors import CuratorError, QuestionError, SulqError
from sulq.kernel.facts import Facts, Refused, Unit
from sulq.kernel.mechanisms import Shown
from sulq.kernel.mechanisms import release as add_noise
from sulq.kernel.mechanisms import reveal as reveal_groups
from sulq.kernel.price import Least
from sulq.kernel.remembered import asked_by
from sulq.kernel.request import Proposed
from sulq.kernel.request import Release as Requested
from sulq.kernel.run import Book, Checked, Draw, Kernel, Reveal
from sulq.language.kinds import Integers
from sulq.language.privacy import Budget, Event, SubLinear
from sulq.language.sublinear import COINS, noise_for
from sulq.language.tally import Engine

__all__ = ["Release", "Reveal", "Rows", "reveal_groups"]

Release = Draw
MAX_TEXT_CHARACTERS: Final = 2**22  # of texts whose plans are kept between check and run
MAX_FACTS: Final = 3  # that a question meets: of nothing yet, of records as they stand, of kept rows
MAX_PLAN_CHARACTERS: Final = 2**20  # of plans whose certificates are remembered; each takes some forty times its text

_log = logging.getLogger(__name__)


@final
class Rows:
    """Runs plans that were paid for; `redeem` says, once for each receipt, whether one was."""

    def __init__(
        self,
        engine: Engine,
        redeem: Callable[[Receipt, str, Event], bool],
        own: Mapping[str, Any] | None = None,
        *,
        ready: Callable[[], None] | None = None,
        prepared: Callable[[], None] | None = None,
        budget: Budget | None = None,
        unit: Unit | None = None,
    ) -> None:
        self._engine = engine
        self._unit = unit  # by which the engine keeps rows: a plan of another one has other noise (SR2)
        self._ready = engine.ready if ready is None else ready  # where something is made ready aside, it may wait
        self._prepared = engine.ready if prepared is None else prepared  # waits for the kept rows
        self._own = {} if own is None else own  # the owner's functions, by the names analysts choose them by (SR5)
        # A SubLinear budget says how much noise a query has.
        self._kernel = Kernel(redeem, self._known, partial(_least, budget) if isinstance(budget, SubLinear) else None)
        self._plans: _Remembered[int, _Certified] = _Remembered(MAX_PLAN_CHARACTERS)  # by the plans' identities
        self._texts: _Remembered[tuple[str, str], _Known] = _Remembered(MAX_TEXT_CHARACTERS)  # by askers and digests
        self.checked: Checked | None = None  # the request that was certified last, with what the kernel found of it

    def _known(self) -> tuple[Facts, Unit] | None:
        engine = certificates.certifying(self._engine)
        return None if engine is None else (engine.kernel_facts, engine.tables.unit)

    def replace_noise(self, ledger: Book, release: Release = add_noise, reveal: Reveal = reveal_groups) -> Self:
        """Release by other functions than the mechanisms', for made-up data alone (SR9)."""
        self._kernel.replace_noise(ledger, release, reveal)
        return self

    def ready(self) -> None:
        """Make the kept rows available before anything is paid; releases nothing."""
        self._ready()

    def check(self, plan: Plan, whose: str = "") -> wire.Writer:
        """Refuse a plan that the kernel does not certify, before anything is paid; reads no row."""
        found = self._certified(plan)
        if found is None:
            writer = wire.Writer()
            facts, checked = self._certify_admitted(plan.parts, plan.event, whose, unit=plan.unit)
            text = writer.text(plan)
            found = _Certified(plan, facts, checked, wire.digest_of(text), writer)
            self._plans.put(id(plan), found, len(text), facts)
        self.checked = found.checked
        return found.writer

    def _certify_admitted(
        self, parts: tuple[Part, ...], event: Event, whose: str, *, unit: object
    ) -> tuple[object, Checked]:
        """A request that can be run, waiting for the kept rows if it takes those, and the facts it is certified by."""
        facts = self._facts()  # before it is certified: what is remembered holds for no later ones
        checked = self._certify(parts, event, QuestionError, whose, unit=unit)
        admits = getattr(self._engine, "admits", None)
        if admits is None or admits([release.source for release in checked.releases]):
            return facts, checked
        self._prepared()
        return self._facts(), self._certify(parts, event, QuestionError, whose, unit=unit)

    def _certified(self, plan: Plan) -> _Certified | None:
        """What is remembered of this very plan, if it was certified here by the facts that hold now."""
        found = self._plans.get(id(plan))
        return found if found is not None and found.facts is self._facts() else None

    def _facts(self) -> object:
        """The kernel's facts, to be compared by identity; what equals nothing where they cannot be worked out."""
        try:
            known = self._known()
        except Exception:  # noqa: BLE001 - such facts certify nothing: `_certify` says so
            return object()
        return None if known is None else known[0]

    def check_text(self, text: str, whose: str = "") -> None:
        """As `check`, for a plan's canonical JSON as another process sent it; remembered by its digest (`knows`)."""
        parts, event, unit = _parts(text, QuestionError)
        facts, checked = self._certify_admitted(parts, event, whose, unit=unit)
        self._texts.put((whose, wire.digest_of(text)), (parts, checked, facts), len(text), facts)

    def knows(self, digest: str, whose: str = "") -> bool:
        """Whether the text of this digest was certified here for this asker: it need not be sent again (T39)."""
        return self._known_text(whose, digest) is not None

    def _known_text(self, whose: str, digest: str) -> tuple[tuple[Part, ...], Checked] | None:
        """What was certified of a text, by the facts that hold now."""
        parts, checked, facts = self._texts.get((whose, digest)) or ((), None, None)
        return None if checked is None or facts is not self._facts() else (parts, checked)

    def run(self, plan: Plan, receipt: Receipt) -> tuple[Released, ...]:
        """Exact sums and their noise: one release for each part of the plan.

        What is run is the plan, so what must have been paid for is the plan, by the digest that is worked out here,
        and what must have been charged is the event that the kernel prices it with.
        """
        found = self._certified(plan)
        if found is not None:
            return self._run(plan.parts, found.checked, receipt, found.digest)
        checked = self._certify(plan.parts, plan.event, CuratorError, unit=plan.unit)
        return self._run(plan.parts, checked, receipt, wire.digest(plan))

    def run_text(self, text: str | None, receipt: Receipt, whose: str = "") -> tuple[Released, ...]:
        """As `run`, for a plan's canonical JSON as another process sent it: not even read unless the receipt is for it.

        None: what was certified here and is known by the digest that the receipt is for.
        """
        digest = receipt.plan if text is None else _digest(text)
        known = self._known_text(whose, digest)
        if digest != receipt.plan or (known is None and text is None):
            raise CuratorError("bad-receipt", "This plan's debit could not be verified.")
        if known is None:
            parts, event, unit = _parts(cast("str", text), CuratorError)
            known = parts, self._certify(parts, event, CuratorError, whose, unit=unit)
        return self._run(*known, receipt, digest)

    def _certify(
        self, parts: tuple[Part, ...], event: Event, family: type[SulqError], whose: str = "", *, unit: object
    ) -> Checked:
        """The request as the kernel certified it; whatever is raised meanwhile is a refusal too.

        Where other facts hold than before, statements that were written by those are refused, and are written anew.
        """
        for _ in range(MAX_FACTS):
            facts = self._facts()
            try:
                if self._unit not in (None, unit):  # of an engine that certifies nothing, too
                    raise Refused("rows are kept by another unit than it is priced by")
                with asked_by(whose):
                    return self._kernel.check(certificates.releases(parts, self._engine, self._own), event)
            except Refused as refused:
                why = str(refused)
            except SulqError as error:
                why = error.message.rstrip(".")
            except Exception as error:  # noqa: BLE001 - a plan that no planner draws; nothing is read or paid for it
                _log.error("a plan could not be certified: %s", type(error).__name__)
                why = "it is not what a plan can be"
            if facts is self._facts():
                break
        raise family("uncertified", f"The kernel does not certify this question: {why}.")

    def _run(self, parts: tuple[Part, ...], checked: Checked, receipt: Receipt, digest: str) -> tuple[Released, ...]:
        found = self._kernel.run(checked, receipt, digest)
        return tuple(map(self._told, parts, checked.releases, found))

    def _told(self, part: Part, asked: Requested, found: Integers | Shown) -> Released:
        """What the kernel released, in the shape of a part's answer."""
        if isinstance(found, np.ndarray):
            return Released(found if part.whole is None else found.reshape(part.cells, -1), part.noise)
        labels, units = found.labels, found.units
        if isinstance(asked.source, Proposed):  # keys as they are stored: their labels are of what was released alone
            labels, order = cast("certificates.Certifying", self._engine).labelled(part.tally, labels)
            units = units[order]
        return Released(units, part.noise, tuple(map(tuple, labels)))

    def close(self) -> None:
        """Let go of the rows."""
        self._engine.close()


_Known = tuple[tuple[Part, ...], Checked, object]


@dataclass(frozen=True, slots=True)
class _Certified:
    """A plan that was certified, its digest, and the writer of its text; no other plan gets its identity meanwhile."""

    plan: Plan
    facts: object
    checked: Checked
    digest: str
    writer: wire.Writer


K = TypeVar("K")
V = TypeVar("V")


class _Remembered(Generic[K, V]):
    """What was certified by the facts of the last one: that, and others while their texts have room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._length = 0
        self._facts: object = None
        self._lock = threading.Lock()

    def put(self, key: K, value: V, length: int, facts: object) -> None:
        with self._lock:
            if facts is not self._facts:  # the rest certifies nothing any more, and would keep its rows alive
                self._found.clear()
                self._length, self._facts = 0, facts
            self._length += length - self._found.pop(key, (None, 0))[1]
            self._found[key] = (value, length)
            while self._length > self._most and len(self._found) > 1:
                self._length -= self._found.popitem(last=False)[1][1]

    def get(self, key: K) -> V | None:
        found = self._found.get(key)
        return None if found is None else found[0]


def _least(budget: SubLinear, move: int) -> Least:
    coins = budget.calibration in COINS
    # The survey's number of coins follows from a declared size; what the promise needs does not.
    certified = replace(budget, calibration="binomial") if coins else budget
    noise = noise_for(certified, sensitivity=move if coins else 1)
    return Least(noise.kind, noise.scale, noise.units)


def _digest(text: str) -> str:
    try:
        return wire.digest_of(text)
    except UnicodeEncodeError:  # half of a character, which JSON can say
        raise CuratorError("bad-receipt", "This plan's debit could not be verified.") from None


def _parts(text: str, family: type[SulqError]) -> tuple[tuple[Part, ...], Event, object]:
    """The parts of a plan in canonical JSON, the event that was paid, the unit; the question was read by who paid."""
    try:
        text.encode()  # what has no bytes has no digest
        tree = wire.strict(text)
        if isinstance(tree, dict) and tree.get("kind") == "Plan":
            parts, event = wire.from_json(tree.get("parts")), wire.from_json(tree.get("event"))
            if isinstance(parts, tuple) and all(isinstance(part, Part) for part in parts) and isinstance(event, Event):
                return cast("tuple[Part, ...]", parts), event, wire.from_json(tree.get("unit"))
    except Exception as error:  # noqa: BLE001 - a text that no planner writes
        _log.error("a text is no plan: %s", type(error).__name__)
    raise family("uncertified", "The kernel does not certify this question: its text is no plan.")
