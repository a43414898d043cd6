"""The part that sees rows: only for a receipt, in the planned shape, one outcome for every failure."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from sulq import Above, Epsilon, Int, SubLinear, Sums, Unit, col
from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.compile.plan import draw
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.run import Rows
from sulq.errors import AccessDenied, CuratorError, QuestionError
from sulq.kernel.laws import own
from sulq.kernel.mechanisms import MECHANISMS
from sulq.kernel.private import SATURATED as LIMIT
from sulq.kernel.private import Private
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.rowfn import Bins, Lit

SCHEMA = Schema.of("data", {"x": Int(0, 9)})
RECEIPT = Receipt(1, "entry", "plan", "mac")


class Fixed:
    """An engine that gives what it was told, or raises it."""

    def __init__(self, found: object) -> None:
        self.found = found

    def ready(self) -> None:
        """Nothing to do."""

    def sums(self, tally: object) -> Private:
        if isinstance(self.found, Exception):
            raise self.found
        return Private(self.found)

    def close(self) -> None:
        self.found = None


def plan_of(question: Sums, budget: object = None, size: int | None = None):
    budget = Epsilon(1) if budget is None else budget
    spend = None if isinstance(budget, SubLinear) else Epsilon(1)
    return draw(question, Facts(SCHEMA, Unit(), budget, budget, budget, size), spend)


THREE = Sums((Lit(1), col("x")), None, (Bins(col("x"), (0, 3, 6, 9)),))


class Book:
    """A ledger whose first entry says, or does not say, that the data are made up."""

    def __init__(self, said: object) -> None:
        self.synthetic = said


def made_up(source: object, redeem: object, release: object) -> Rows:
    """Rows of made-up data, with other noise than the mechanisms'."""
    return Rows(source, redeem).replace_noise(Book(True), release)


def plain(_law: object, exact: Private) -> np.ndarray:
    return exact.open()


def test_rows_run_only_for_a_receipt_that_is_redeemed_T43() -> None:
    """Without a verified receipt for this very plan and its own event no row is read (T43, T60)."""
    plan = plan_of(THREE)
    asked = []

    def redeem(receipt: Receipt, digest: str, event: object) -> bool:
        asked.append((receipt, digest, event))
        return len(asked) == 1

    source = Fixed(np.zeros((3, 2), dtype=np.int64))
    rows = made_up(source, redeem, plain)
    assert rows.run(plan, RECEIPT)
    source.found = ValueError("must not be read")
    with pytest.raises(CuratorError) as refused:
        rows.run(plan, RECEIPT)
    assert refused.value.code == "bad-receipt"
    assert asked == [(RECEIPT, wire.digest(plan), plan.event)] * 2


def test_a_plan_from_another_process_is_read_only_if_it_was_paid_for_T43() -> None:
    """The text's own digest is what was paid for: a text of anything else is refused before it is parsed."""
    plan = plan_of(THREE)
    paid = replace(RECEIPT, plan=wire.digest(plan))
    rows = made_up(
        Fixed(np.zeros((3, 2), dtype=np.int64)),
        lambda _, digest, event: (digest, event) == (paid.plan, plan.event),
        plain,
    )
    (released,) = rows.run_text(wire.encode(plan), paid)
    assert released.units.tolist() == [[0, 0]] * 3
    for text in (wire.encode(plan) + " ", wire.encode(plan_of(Sums((Lit(1),)))), "not JSON", "", "\ud83d"):
        with pytest.raises(CuratorError) as refused:
            rows.run_text(text, paid)
        assert refused.value.code == "bad-receipt"


def test_a_receipt_is_for_the_event_that_the_kernel_priced_T43() -> None:
    """A deceiver: the plan's own digest with a smaller event was debited; not run, as a plan or as a text.

    Controls: for its own event each is run, once; and the events differ in their loss alone, or their draws alone.
    """
    plan = plan_of(THREE)
    smaller = [
        replace(plan.event, epsilon=plan.event.epsilon / 1000),
        replace(plan.event, rho=plan.event.rho / 1000),
        replace(plan.event, draws=()),
    ]
    with Ledger.open(None, mechanisms=tuple(MECHANISMS), unit=Unit(), budget=Epsilon(9), synthetic=True) as ledger:
        rows = made_up(Fixed(np.zeros((3, 2), dtype=np.int64)), ledger.redeem, plain)
        rows.check(plan)
        text = wire.encode(plan)
        for known in (text, None):  # sent with the receipt, or known by its digest
            for event in smaller:
                receipt = ledger.debit(event, question="q", plan_digest=wire.digest(plan))
                for run, what in ((rows.run, plan), (rows.run_text, known)):
                    with pytest.raises(CuratorError) as refused:
                        run(what, receipt)
                    assert refused.value.code == "bad-receipt"
            rows.check_text(text)
        for run, what in ((rows.run, plan), (rows.run_text, text), (rows.run_text, None)):
            own = ledger.debit(plan.event, question="q", plan_digest=wire.digest(plan))
            assert run(what, own)
            with pytest.raises(CuratorError):
                run(what, own)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind":"Plan"}', '"\ud83d"', "NaN", "[" * 100_000])
def test_a_text_that_is_no_plan_is_refused_before_the_debit(text: str) -> None:
    """Whatever is wrong with it, there is one refusal, and nothing is known of it. Control: a plan's text is known."""
    rows, plan = Rows(Fixed(None), lambda *_: True), plan_of(THREE)
    with pytest.raises(QuestionError) as refused:
        rows.check_text(text)
    assert refused.value.code == "uncertified"
    assert not rows.knows(wire.digest(plan))
    rows.check_text(wire.encode(plan))
    assert rows.knows(wire.digest(plan))


@pytest.mark.parametrize(
    "found",
    [
        np.zeros((2, 2), dtype=np.int64),
        np.zeros((3, 1), dtype=np.int64),
        np.zeros((3, 2)),
        np.zeros((3, 2), dtype=object),
        np.zeros(6, dtype=np.int64),
        None,
        ValueError("cell 7"),
        CuratorError("engine-failed", "cell 7"),
        MemoryError(),
    ],
    ids=repr,
)
def test_whatever_an_engine_gives_or_raises_there_is_one_error_T30_T31(
    found: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong shape, a wrong type and any exception end in one constant error without a context (T29, T30, T31)."""
    caplog.set_level(logging.DEBUG, "sulq")
    with pytest.raises(CuratorError) as failed:
        made_up(Fixed(found), lambda *_: True, plain).run(plan_of(THREE), RECEIPT)
    assert str(failed.value) == str(CuratorError("engine-failed", "The rows could not be summed."))
    assert failed.value.__context__ is None
    assert failed.value.__cause__ is None
    assert "cell" not in caplog.text
    assert len(caplog.records) == 1


def test_whatever_a_mechanism_raises_there_is_one_error_T68(caplog: pytest.LogCaptureFixture) -> None:
    """A failing sampler's text, which may print the exact sum, goes nowhere (T31, T68)."""

    def failing(_law: object, exact: Private) -> np.ndarray:
        raise ValueError(f"sum {exact.open()} does not fit")

    with pytest.raises(CuratorError) as failed:
        made_up(Fixed(np.full((3, 2), 4711)), lambda *_: True, failing).run(plan_of(THREE), RECEIPT)
    assert failed.value.code == "noise-failed"
    assert failed.value.__context__ is None
    assert "4711" not in caplog.text


def test_blocks_get_their_own_law_and_columns_in_order() -> None:
    """Each value of a question is given to its own law, side by side, a row for each cell."""
    plan = plan_of(THREE)
    given = []

    def listening(law: object, exact: Private) -> np.ndarray:
        given.append((law, exact.open().copy()))
        return exact.open() + 100

    found = np.arange(6).reshape(3, 2)
    (released,) = made_up(Fixed(found), lambda *_: True, listening).run(plan, RECEIPT)
    assert [law for law, _ in given] == list(map(own, plan.parts[0].laws))
    assert [part.tolist() for _, part in given] == [[[0], [2], [4]], [[1], [3], [5]]]
    assert released.units.tolist() == (found + 100).tolist()
    assert [noise.law for noise in released.noise] == list(plan.parts[0].laws)


def test_neighbouring_blocks_of_one_law_are_drawn_for_together() -> None:
    """One call for values whose noise is the same, a draw a number, in their order; one that differs has its own."""
    shares = (1, 1, 2, 1)
    plan = plan_of(Sums((Lit(1),) * 4, None, (Bins(col("x"), (0, 3, 6, 9)),), shares))
    laws = plan.parts[0].laws
    assert laws[0] == laws[1] != laws[2] != laws[3]
    given = []

    def listening(law: object, exact: Private) -> np.ndarray:
        given.append((law, exact.open().tolist()))
        return exact.open() + 100 * len(given)

    found = np.arange(12).reshape(3, 4)
    (released,) = made_up(Fixed(found), lambda *_: True, listening).run(plan, RECEIPT)
    assert [law for law, _ in given] == [own(laws[i]) for i in (0, 2, 3)]
    assert [part[0] for _, part in given] == [[0, 1], [2], [3]]
    assert released.units.tolist() == (found + np.array([100, 100, 200, 300])).tolist()
    assert [noise.law for noise in released.noise] == list(laws)
    alike = plan_of(Sums((Lit(1),) * 2, None, (Bins(col("x"), tuple(range(10))),)))
    (released,) = Rows(Fixed(np.zeros((9, 2), dtype=np.int64)), lambda *_: True).run(alike, RECEIPT)
    assert not np.array_equal(released.units[:, 0], released.units[:, 1])  # but by chance, 1e-8


def test_exact_sums_are_saturated_before_they_meet_noise_T5() -> None:
    """Sums beyond +-2^62, also after they are put on a finer grid, are clamped and do not wrap (T5, SR8).

    Control: shifting without the clamp wraps.
    """
    plan = plan_of(Sums((Lit(1),)), SubLinear(1, 1e-6, 100), size=10)
    bits = plan.parts[0].refine[0]
    assert bits > 0
    for value in (2**62, -(2**62), 2**62 - 1, 5):
        (released,) = made_up(Fixed(np.array([[value]])), lambda *_: True, plain).run(plan, RECEIPT)
        room = LIMIT >> bits
        assert int(released.units[0, 0]) == max(-room, min(room, value)) << bits
    assert (np.array([2**62]) << bits).tolist() != [2**62 << bits]


@pytest.mark.parametrize("level", [4, (4, 5, -6), -(2**53)])
def test_sums_meet_their_thresholds_in_one_call_T5(level: object) -> None:
    """All sums of the question, cell by cell, less their thresholds, saturated, go to one law at once (T5)."""
    plan = plan_of(Above(Sums((col("x"),), None, THREE.by), level))
    given = []

    def listening(law: object, exact: Private) -> np.ndarray:
        given.append((law, exact.open().copy()))
        return np.array([[1]])

    found = np.array([[2**62], [7], [-(2**62)]])
    (released,) = made_up(Fixed(found), lambda *_: True, listening).run(plan, RECEIPT)
    levels = np.broadcast_to(level, 3).tolist()
    assert [law for law, _ in given] == list(map(own, plan.parts[0].laws))
    assert given[0][1].tolist() == [[2**61 - levels[0], 7 - levels[1], -(2**61) - levels[2]]]
    assert released.units.tolist() == [[1]]


@pytest.mark.parametrize("said", [False, None, 1, "yes"])
def test_noise_is_replaced_only_where_the_ledger_says_that_the_data_are_made_up_SR9(said: object) -> None:
    """Refused with a code and a next step, and the noise stays what it was. Control: synthetic data are exact."""
    rows = Rows(Fixed(np.full((9, 2), 4711, dtype=np.int64)), lambda *_: True)
    asked = plan_of(Sums((Lit(1),) * 2, None, (Bins(col("x"), tuple(range(10))),)))
    with pytest.raises(AccessDenied) as refused:
        rows.replace_noise(Book(said), plain)
    assert refused.value.code == "not-synthetic"
    assert "synthetic=True" in refused.value.remedy
    (released,) = rows.run(asked, RECEIPT)
    assert (released.units != 4711).any()  # but by chance, 1e-8
    (released,) = rows.replace_noise(Book(True), plain).run(asked, RECEIPT)
    assert (released.units == 4711).all()


def test_close_lets_go_of_the_engine() -> None:
    """Closing the part that sees rows closes its engine; `ready` asks the engine."""
    source = Fixed(1)
    rows = Rows(source, lambda *_: True)
    rows.ready()
    rows.close()
    assert source.found is None
