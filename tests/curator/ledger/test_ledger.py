"""The ledger as its callers see it: charged once, durably, in order, and never given back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.curator.ledger import history, notes
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import AccessDenied, BudgetExceeded, CuratorError, QuestionError, SetupError, SulqError
from sulq.kernel.ledger import chain, entries
from sulq.kernel.ledger.filter import Totals
from sulq.language import privacy
from sulq.language.privacy import Epsilon, EpsilonDelta, Event, Queries, Rho, SubLinear, Unit, epsilon_of
from tests import counts
from tests.counts import count
from tests.curator.ledger.cases import MECHANISMS, ask, gaussian, memory_folder, opened, pure, queries


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def test_a_debit_is_charged_and_outlives_the_process(folder: Path) -> None:
    """What was charged is there when the ledger is opened again, to the unit (T52, T91)."""
    with opened(folder / "a.ledger", EpsilonDelta(2, 1e-6)) as ledger:
        receipts = [ask(ledger, event) for event in (pure("0.1"), gaussian("0.004"), pure("1e-12"))]
        shown = (ledger.totals, ledger.spent, ledger.remaining)
        assert [receipt.seq for receipt in receipts] == [2, 3, 4]
        assert ledger.durable
    with opened(folder / "a.ledger", EpsilonDelta(2.0, Decimal("1e-6"))) as again:
        assert (again.totals, again.spent, again.remaining) == shown
        assert again.verify().totals == shown[0]
    assert verify(folder / "a.ledger").spent == shown[1]


def test_a_ledger_begun_in_vain_is_removed_and_no_other(folder: Path) -> None:
    """By the opening that began it, while it holds its first entry alone; who opened it meanwhile charges nothing."""
    path = folder / "a.ledger"
    begun, other = opened(path), opened(path)
    begun.give_up()
    for act in (lambda: ask(other, pure("0.1")), lambda: other.register("t", declarations="d")):
        with pytest.raises(SulqError):
            act()
    with contextlib.suppress(SulqError):
        other.close()
    assert list(folder.iterdir()) == []
    refused("missing-file", Ledger.open, path, mechanisms=MECHANISMS, create=False)
    begun, other = opened(path, Epsilon(2)), opened(path, Epsilon(2))  # another budget is no mismatch now
    other.give_up()  # it began nothing
    with opened(path, Epsilon(2)) as other:
        ask(other, pure("0.1"))
    begun.give_up()  # another has charged something meanwhile
    with opened(path, Epsilon(2)) as again:
        assert again.spent == Epsilon(0.1)
        again.give_up()
    assert verify(path).debits == 1


def test_a_ledger_with_an_anchor_is_not_removed(folder: Path) -> None:
    """What is noted outside stays true."""
    opened(folder / "a.ledger", anchor=folder / "anchor").give_up()
    assert verify(folder / "a.ledger").entries == 2
    opened(folder / "a.ledger", anchor=folder / "anchor").close()


def test_T_queries_then_refusal_S0_8(folder: Path) -> None:
    """T queries are answered across openings, a vector costs its length, T + 1 is refused at no cost (S0.8)."""
    policy = SubLinear(1, 1e-6, 10)
    with opened(folder / "a.ledger", policy) as ledger:
        ask(ledger, queries(7))
        refused("budget-exceeded", ask, ledger, queries(4))
    with opened(folder / "a.ledger", policy) as ledger:
        assert ledger.remaining == Queries(3)
        ask(ledger, queries(3))
        error = refused("budget-exceeded", ask, ledger, queries(1))
        assert "1 query" in error.message
        assert "0 queries is left" in error.message
        assert ledger.spent == Queries(10)


def test_repeats_are_charged_S3_7() -> None:
    """A hundred identical questions cost a hundred times as much as one (S3.7)."""
    ledger = opened(None, Epsilon(1))
    for _ in range(100):
        ask(ledger, pure("0.01"), "the same")
    assert ledger.spent == Epsilon(1)
    refused("budget-exceeded", ask, ledger, pure("0.01"), "the same")


def test_a_refusal_says_what_was_asked_and_what_is_left() -> None:
    """A refusal names both amounts, writes nothing, and a smaller ask still fits (S4.8)."""
    ledger = opened(None, Epsilon(1))
    ask(ledger, pure("0.75"))
    before = ledger.verify()
    error = refused("budget-exceeded", ask, ledger, pure("0.5"))
    assert isinstance(error, BudgetExceeded)
    assert "epsilon 0.5" in error.message
    assert "epsilon 0.25 is left" in error.message
    assert ledger.verify() == before
    ask(ledger, pure("0.25"))
    assert ledger.remaining == Epsilon.total(Fraction(0))


def test_threads_share_a_budget_to_the_last_ask_T42() -> None:
    """A hundred threads racing for forty asks get exactly forty, each its own place (S0.8, T42)."""
    ledger = opened(None, Epsilon(4))
    granted: list[int] = []
    start = threading.Barrier(100)

    def work() -> None:
        start.wait()
        with contextlib.suppress(BudgetExceeded):
            granted.append(ask(ledger, pure("0.1")).seq)

    threads = [threading.Thread(target=work) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == list(range(2, 42))
    assert ledger.spent == Epsilon(4)


def test_a_key_is_charged_once_and_gets_the_same_answer_T44(folder: Path) -> None:
    """Repeated with its key a question costs nothing and gets the stored answer, also after a restart (T44)."""
    with opened(folder / "a.ledger") as ledger:
        first = ask(ledger, pure("0.1"), "q", key="k")
        assert first.stored is None
        ledger.keep(first, "41.5")
        again = ask(ledger, pure("0.1"), "q", key="k")
        assert (again, again.stored) == (first, "41.5")
        assert ledger.spent == Epsilon(0.1)
        refused("key-reused", ask, ledger, pure("0.1"), "another", key="k")
    with opened(folder / "a.ledger") as ledger:
        assert ask(ledger, pure("0.9"), "q", key="k").stored == "41.5"
        assert ledger.spent == Epsilon(0.1)


def test_a_lost_answer_stays_charged_T44() -> None:
    """Charged and never answered, a key is not charged again and not answered either (T44, T45)."""
    ledger = opened()
    receipt = ask(ledger, pure("0.1"), "q", key="k")
    ledger.abandon(receipt)
    refused("answer-lost", ask, ledger, pure("0.1"), "q", key="k")
    assert ledger.spent == Epsilon(0.1)


def test_of_two_threads_with_one_key_one_is_charged_T44() -> None:
    """The second thread waits for the first one's answer; if that fails it learns so (T44)."""
    for happy in (True, False):
        ledger = opened(answer_wait=30.0)
        first = ask(ledger, pure("0.1"), "q", key="k")
        outcome: list[object] = []

        def second(ledger: Ledger = ledger, outcome: list[object] = outcome) -> None:
            try:
                outcome.append(ask(ledger, pure("0.1"), "q", key="k").stored)
            except QuestionError as error:
                outcome.append(error.code)

        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        assert not outcome  # it waits
        refused("key-reused", ask, ledger, pure("0.1"), "another", key="k")  # and this one does not
        if happy:
            ledger.keep(first, "7")
        else:
            ledger.abandon(first)
        thread.join()
        assert outcome == ["7" if happy else "answer-lost"]
        assert ledger.spent == Epsilon(0.1)


def test_waiting_for_an_answer_is_bounded_T44() -> None:
    """A thread does not wait for ever for another's answer."""
    ledger = opened(answer_wait=0.05)
    ask(ledger, pure("0.1"), "q", key="k")
    refused("answer-lost", ask, ledger, pure("0.1"), "q", key="k")


def test_a_refused_key_may_be_tried_again_T44() -> None:
    """A key whose debit was refused is not taken."""
    ledger = opened()
    ask(ledger, pure("0.95"))
    refused("budget-exceeded", ask, ledger, pure("0.1"), "q", key="k")
    assert ask(ledger, pure("0.05"), "q", key="k").stored is None


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", 3, b"k"])
def test_a_key_is_short_printable_text_T44(key: object) -> None:
    """Anything else is refused, free of charge."""
    ledger = opened()
    refused("bad-question", ask, ledger, pure("0.1"), "q", key=key)
    assert ledger.totals == Totals()


def test_random_retries_never_charge_twice_T44() -> None:
    """Over random retries, other bodies and lost answers, the spend is one charge a key (T44)."""
    draw = counts.generator(44)
    ledger = opened(None, Epsilon(1000), answer_wait=0.0)
    known: dict[str, tuple[str, str | None]] = {}
    for step in range(count("T44 retries", short=1_500, long=10_000)):
        key, question = f"k{draw.randrange(200)}", f"q{draw.randrange(3)}"
        if key not in known:
            receipt = ask(ledger, pure("0.001"), question, key=key)
            answer = None if draw.random() < 0.2 else str(step)
            known[key] = (question, answer)
            if answer is None:
                ledger.abandon(receipt)
            else:
                ledger.keep(receipt, answer)
        elif known[key][0] != question:
            refused("key-reused", ask, ledger, pure("0.001"), question, key=key)
        elif known[key][1] is None:
            refused("answer-lost", ask, ledger, pure("0.001"), question, key=key)
        else:
            assert ask(ledger, pure("0.001"), question, key=key).stored == known[key][1]
    assert ledger.totals.events == len(known)


def test_the_charge_is_the_same_whatever_comes_after_T45() -> None:
    """Answered, abandoned, lost or failed: each outcome leaves the same charge (T45)."""
    spends = []
    for outcome in ("kept", "abandoned", "nothing", "kept twice"):
        ledger = opened()
        receipt = ask(ledger, pure("0.1"))
        if outcome.startswith("kept"):
            ledger.keep(receipt, "1")
        if outcome == "kept twice":
            refused("bad-receipt", ledger.keep, receipt, "2")
        if outcome == "abandoned":
            ledger.abandon(receipt)
        spends.append(ledger.totals)
    assert spends == [spends[0]] * 4


def test_the_clock_decides_nothing_T50(folder: Path) -> None:
    """With the clock stepped ten years either way nothing refills and nothing is refused (T50)."""
    now = [1.8e9]
    with opened(folder / "a.ledger", clock=lambda: now[0]) as ledger:
        for years in (0, 10, -10, -20, 20):
            now[0] += years * 365.25 * 86400
            ask(ledger, pure("0.2"))
        refused("budget-exceeded", ask, ledger, pure("0.1"))
        stamps = [line.time for line in ledger.transcript()]
        assert stamps != sorted(stamps)
    now[0] += 1e9
    with opened(folder / "a.ledger", clock=lambda: now[0]) as ledger:
        assert ledger.spent == Epsilon(1)
        refused("budget-exceeded", ask, ledger, pure("0.1"))


SMALL = 1e-16  # no epsilon, but a delta
JUNK = [
    float("nan"), float("inf"), -float("inf"), -1, -0.0, 0, 0.0, 1e-400, SMALL, 1e309, 1001, 10**400, True, False,
    None, "1", "١", b"1", [], {}, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal(-1),
    Decimal("1e-999999999"), Decimal("1e999999999"), Decimal(0), Fraction(-1, 3), 1j, object(),
]  # fmt: skip


def test_nonsense_is_refused_before_any_state_changes_T51() -> None:
    """NaN, infinities, truth values, text, digits of other scripts and absurd sizes make no loss (T51)."""
    ledger = opened()
    before = ledger.verify()
    for value in JUNK:
        for make in (Epsilon, Rho, lambda x: EpsilonDelta(x, 1e-6), lambda x: SubLinear(x, 1e-6, 9)):
            refused("bad-loss", make, value)
        if value is not SMALL:
            refused("bad-loss", EpsilonDelta, 1, value)
    for text in ('{"kind":"Epsilon","epsilon":NaN}', '{"kind":"Epsilon","epsilon":1e999}', "{", '{"kind":"Epsilon"}',
                 '{"epsilon":0.1,"epsilon":0.2,"kind":"Epsilon"}', '{"epsilon":"0.1","kind":"Epsilon"}',
                 '{"epsilon":true,"kind":"Epsilon"}'):  # fmt: skip
        refused("wire-format", wire.decode, text)
    assert ledger.verify() == before


def test_fuzzed_losses_are_read_or_refused_T51() -> None:
    """Random numbers and texts make a loss that reads back as written, or a clean refusal, and nothing else (T51)."""
    draw = counts.generator(51)
    kept = 0
    codes: set[str] = set()
    for _ in range(count("T51 fuzzed losses", short=4_000, long=100_000)):
        value: object = draw.choice(
            [
                draw.uniform(-2, 2), draw.lognormvariate(0, 30), 10.0 ** draw.uniform(-330, 300),
                draw.randrange(-5, 2000), Decimal(draw.randrange(10**6)).scaleb(draw.randrange(-600, 600)),
                Fraction(draw.randrange(-9, 10**6), draw.randrange(1, 10**9)), draw.choice(JUNK),
                "".join(draw.choices('0123456789.eE+-"٣', k=4)),
            ]
        )  # fmt: skip
        for make in (Epsilon, Rho, lambda x: EpsilonDelta(x, 1e-6), lambda x: EpsilonDelta(1, x)):
            try:
                loss = make(value)
            except QuestionError as error:
                codes.add(error.code)
                continue
            kept += 1
            assert wire.decode(wire.encode(loss)) == loss
            assert 0 <= loss.amount <= 1000
            if loss.amount == 0:  # a total may be zero, a spend may not
                refused("bad-loss", lambda loss=loss: loss.exact)
    assert kept > 1000
    assert codes == {"bad-loss"}


def test_renamed_and_registered_again_data_keep_their_spend_T56(folder: Path) -> None:
    """New names, sources, sizes and declarations advance the version and leave the spend alone (T56)."""
    path = folder / "a.ledger"
    with opened(path) as ledger:
        assert ledger.version == 0
        assert ledger.register("people", declarations="d1", size=None, source="file 1") == 1
        ask(ledger, pure("0.3"))
        assert ledger.register("people", declarations="d1", size=None, source="file 1") == 1
        assert ledger.verify().entries == 3
        assert ledger.register("people", declarations="d1", size=9, source="file 1") == 2
        assert ledger.register("folk", declarations="d1", size=9, source="file 1") == 3
        assert ledger.register("people", declarations="d2", size=9, source="file 2") == 4
        assert ledger.registered("people").source == "file 2"
        assert ledger.registered("nobody") is None
    (folder / "moved").mkdir()
    path.rename(folder / "moved" / "b.ledger")
    with opened(folder / "moved" / "b.ledger") as ledger:
        assert ledger.version == 4
        assert ledger.spent == Epsilon(0.3)


def test_there_is_no_way_to_edit_remove_or_refund_T60() -> None:
    """The public calls are these, and none takes anything back that was charged (T60)."""
    public = {name for name in dir(Ledger) if not name.startswith("_")}
    assert public == {
        "abandon", "after", "again", "agrees", "anchored", "book", "budget", "choice", "choose_rows", "close",
        "contains", "cover", "debit", "declarations", "declared_estimators", "declared_public", "durable",
        "erase", "erased", "failed",
        "flush", "give_up", "guard", "hash_key", "head", "histogram_share", "keep", "kept", "kept_source",
        "looked", "told_unit",
        "known_book", "lacks", "last_known", "last_noted", "open", "probe", "proved", "public_key", "raise_to",
        "receipt", "redeem", "register", "registered", "remaining", "rho_left", "seal", "share", "space", "spent",
        "split", "standing", "standings", "synthetic", "times", "totals", "transcript", "unit", "usable", "verify",
        "verify_receipt", "version",
    }  # fmt: skip
    kernel, outside = (
        "".join(path.read_text(encoding="utf-8") for path in Path(module.__file__).parent.glob("*.py")).upper()
        for module in (entries, history)
    )
    for word in ("DELETE FROM", "UPDATE ENTRIES", "INSERT OR REPLACE"):
        assert word not in kernel + outside
    for word in ("DROP TABLE", "UNLINK"):
        assert word not in kernel
    assert outside.count("DROP TABLE") == 1  # give_up: of a ledger that holds its first entry and no other


def test_a_receipt_shows_the_history_was_not_rewritten_T60() -> None:
    """An entry's hash covers all before it, so a receipt fits one history only (T60)."""
    ledgers = [opened(), opened()]
    receipts = [[ask(ledger, pure("0.1"), q) for q in ("a", "b")] for ledger in ledgers]
    assert receipts[0][1].entry != receipts[1][1].entry
    assert wire.decode(wire.encode(receipts[0][0])) == receipts[0][0]


def test_a_raise_is_an_entry_and_the_total_is_of_all_time(folder: Path) -> None:
    """A raised budget is opened by its new value; what was spent before still counts (T50, T60)."""
    path = folder / "a.ledger"
    with opened(path) as ledger:
        ask(ledger, pure("0.75"))
        ledger.raise_to(Epsilon(2))
        ledger.raise_to(Epsilon(2.0))  # no change, no entry
        assert ledger.verify().entries == 3
        assert ledger.remaining == Epsilon(1.25)
        refused("budget-mismatch", ledger.raise_to, Epsilon(1.9))
        refused("budget-mismatch", ledger.raise_to, Rho(3))
    refused("budget-mismatch", opened, path)
    with opened(path, Epsilon(2)) as ledger:
        ask(ledger, pure("1.25"))
        refused("budget-exceeded", ask, ledger, pure("0.01"))
        assert ledger.verify().spent == Epsilon(2)


def test_a_raised_epsilon_delta_budget_has_more_room_SR3(folder: Path) -> None:
    """Raising either part widens both branches at the same order; lowering either is refused (SR3)."""
    path = folder / "a.ledger"
    with opened(path, EpsilonDelta(1, 1e-6), open_keys=True) as ledger:
        while True:
            try:
                ask(ledger, gaussian("0.01", key_delta="5e-8"))
            except BudgetExceeded:
                break
        spent = ledger.totals
        ledger.raise_to(EpsilonDelta(1.5, 2e-6))
        ask(ledger, gaussian("0.01", key_delta="5e-8"))
        refused("budget-mismatch", ledger.raise_to, EpsilonDelta(2, 1e-6))
        refused("budget-mismatch", ledger.raise_to, EpsilonDelta(1, 3e-6))
    with opened(path, EpsilonDelta(1.5, 2e-6)) as ledger:
        assert ledger.totals.events == spent.events + 1
        ledger.verify()


@pytest.mark.parametrize(("name", "part_of"), [("basic_share", privacy.basic_part), ("key_share", privacy.key_part)])
def test_a_raised_budget_keeps_the_parts_of_its_delta_SR26(folder: Path, name: str, part_of: Callable) -> None:
    """The part that the owner set is the same after a raise, and is still what the ledger is opened with (SR26)."""
    path, part = folder / "a.ledger", Fraction(3, 10)
    with opened(path, EpsilonDelta(1, 1e-6), open_keys=True, **{name: part}) as ledger:
        ledger.raise_to(EpsilonDelta(1.5, 7e-6))
        assert part_of(ledger.split) == part
    opened(path, EpsilonDelta(1.5, 7e-6), **{name: part}).close()
    refused("budget-mismatch", opened, path, EpsilonDelta(1.5, 7e-6), **{name: Fraction(1, 5)})
    opened(path, EpsilonDelta(1.5, 7e-6)).close()


def test_a_sublinear_budget_is_not_raised_SR8() -> None:
    """Its noise was fixed by the number of queries, so more queries would break the promise on all of them (SR8)."""
    ledger = opened(None, SubLinear(1, 1e-6, 10))
    refused("budget-mismatch", ledger.raise_to, SubLinear(1, 1e-6, 20))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"unit": Unit("id", rows=2)}, "unit-mismatch"),
        ({"unit": Unit(neighbors="replace_one")}, "unit-mismatch"),
        ({"budget": Epsilon(2)}, "budget-mismatch"),
        ({"budget": Rho(1)}, "budget-mismatch"),
        ({"synthetic": True}, "synthetic-mismatch"),
    ],
)
def test_the_ledger_holds_the_truth(folder: Path, changes: dict[str, object], code: str) -> None:
    """Opened with another unit, budget or kind of data, a ledger is refused; nothing is spent (T56, SR9)."""
    declared = {"unit": Unit(), "budget": Epsilon(1), "synthetic": False}
    path = folder / "a.ledger"
    Ledger.open(path, mechanisms=MECHANISMS, **declared).close()
    refused(code, Ledger.open, path, mechanisms=MECHANISMS, **(declared | changes))
    Ledger.open(path, mechanisms=MECHANISMS, **declared).close()


def test_synthetic_is_fixed_by_the_first_entry_SR9(folder: Path) -> None:
    """Data declared private can never be reopened as synthetic, nor the reverse (SR9)."""
    for synthetic in (True, False):
        path = folder / f"{synthetic}.ledger"
        with opened(path, synthetic=synthetic) as ledger:
            assert ledger.synthetic is synthetic
        error = refused("synthetic-mismatch", opened, path, synthetic=not synthetic)
        assert isinstance(error, SetupError)


def test_a_ledger_may_be_opened_by_what_it_says_itself(folder: Path) -> None:
    """Without declarations the ledger's own are taken; where there is no ledger that is refused."""
    path = folder / "a.ledger"
    refused("missing-file", Ledger.open, path, mechanisms=MECHANISMS)
    with opened(path, EpsilonDelta(1, 1e-7), synthetic=True) as ledger:
        space, key = ledger.space, ledger.hash_key
    with Ledger.open(path, mechanisms=MECHANISMS, create=False) as ledger:
        assert ledger.unit == Unit()
        assert ledger.budget == EpsilonDelta(1, 1e-7)
        assert ledger.synthetic
        assert (ledger.space, ledger.hash_key) == (space, key)
        assert len(bytes.fromhex(space)) == 16
        assert len(key) == 32
    refused("missing-file", opened, folder / "none.ledger", create=False)
    refused("missing-file", opened, folder / "no" / "such" / "folder.ledger")


def test_a_budget_is_not_zero(folder: Path) -> None:
    """Nothing is created for a budget that could hold nothing."""
    for budget in (Epsilon.total(Fraction(0)), Rho.total(Fraction(0)), EpsilonDelta.total(Fraction(0), Fraction(1, 9))):
        refused("bad-loss", opened, folder / "a.ledger", budget)
    assert list(folder.iterdir()) == []


def test_every_person_space_has_its_own_names_and_keys() -> None:
    """Space, hash key and receipt key are drawn anew for each ledger (SR2)."""
    ledgers = [opened() for _ in range(20)]
    assert len({ledger.space for ledger in ledgers}) == 20
    assert len({ledger.hash_key for ledger in ledgers}) == 20
    receipt = ask(ledgers[0], pure("0.1"), "q")
    assert ledgers[0].verify_receipt(receipt, "plan of q", pure("0.1"))
    assert not ledgers[1].verify_receipt(receipt, "plan of q", pure("0.1"))


def test_a_later_format_is_refused_and_this_one_opens_T91(folder: Path) -> None:
    """A ledger of format 1 opens with equal totals; one whose number is higher is refused (T91)."""
    path = folder / "a.ledger"
    body = json.loads(notes.genesis(Unit(), Epsilon(1), open_keys=False, synthetic=False, time="then")) | {"format": 1}
    rows = []
    last = chain.ORIGIN
    for seq, text in enumerate([chain.canonical(body), *FORMAT_1], start=1):
        last = chain.link(last, seq, text)
        rows.append(chain.Row(seq, text, last))
    SqliteFile.create(path, rows)
    with opened(path) as ledger:
        assert ledger.spent == Epsilon(0.25)
        assert ledger.totals == Totals(epsilon=25 * 10**16, rho=3125 * 10**13, events=1)
        assert [line.answer for line in ledger.transcript()] == ["12"]
        assert ledger.version == 1
    later = chain.canonical(body | {"format": 3})
    SqliteFile.create(folder / "b.ledger", [chain.Row(1, later, chain.link(chain.ORIGIN, 1, later))])
    refused("ledger-format", opened, folder / "b.ledger")
    refused("ledger-format", verify, folder / "b.ledger")
    kind = chain.canonical({"kind": "invention"})
    first = rows[0]
    SqliteFile.create(folder / "c.ledger", [first, chain.Row(2, kind, chain.link(first.hash, 2, kind))])
    refused("ledger-format", opened, folder / "c.ledger")


def test_pairs_are_kept_read_again_and_raised_SR26(folder: Path) -> None:
    """A ledger whose losses are added as (epsilon, delta) opens with the same totals, verifies, and may be raised."""
    path, delta = folder / "a.ledger", Fraction(1, 10**9)
    event = replace(gaussian("0.001"), basic=epsilon_of(Fraction(1, 1000), delta), delta=delta)
    with opened(path, EpsilonDelta(1, 1e-6)) as ledger:
        ask(ledger, pure("0.25"))
        ask(ledger, event, "another")
        before, left = ledger.totals, ledger.remaining
        refused("bad-loss", ask, ledger, replace(event, basic=event.basic / 2), "a third")
    assert before.delta == 10**9
    with opened(path, EpsilonDelta(1, 1e-6)) as ledger:
        assert (ledger.totals, ledger.remaining) == (before, left)
        assert ledger.verify().proved.exact_delta > 9 * 10**-7
        ledger.raise_to(EpsilonDelta(2, 1e-6))
        assert ledger.totals == before
        assert ledger.remaining.exact == left.exact + 1
        large = replace(event, rho=Fraction(1), basic=epsilon_of(Fraction(1), delta))
        message = refused("budget-exceeded", ask, ledger, large, "x").message
    costs, rest = (float(number) for number in re.findall(r"rho ([0-9.e-]*[0-9])", message))
    assert costs == 1 > rest > 0


# Entries of format 1 as they were first written; they must open for ever.
FORMAT_1 = (
    '{"declarations":"d","kind":"register","name":"people","size":null,"source":"s","time":"2026-11-15T09:00:00.000+00:00"}',
    (
        '{"event":{"draws":[{"cells":1,"kind":"Draw","mechanism":"laplace","neighbors":"add_remove","norm":"l1",'
        '"scale":{"kind":"fraction","value":"4/1"},"sensitivity":{"kind":"fraction","value":"1/1"},'
        '"step":{"kind":"fraction","value":"1/1"}}],"epsilon":{"kind":"fraction","value":"1/4"},'
        '"key_delta":{"kind":"fraction","value":"0/1"},"kind":"Event","queries":0,'
        '"rho":{"kind":"fraction","value":"1/32"},"versions":[["opendp","0.16.0"]]},"key":null,"kind":"debit",'
        '"plan_digest":"p","question":"q","question_digest":"d","time":"2026-11-15T09:00:00.000+00:00","version":1}'
    ),
    '{"answer":"12","kind":"answer","of":3,"time":"2026-11-15T09:00:00.000+00:00"}',
)


def test_in_memory_a_ledger_does_the_same(folder: Path) -> None:
    """Without a path it is forgotten at exit and otherwise no different."""
    ledger = opened(None, EpsilonDelta(2, 1e-6))
    assert not ledger.durable
    assert "forgotten" in repr(ledger)
    ask(ledger, gaussian("0.01"))
    assert ledger.verify().debits == 1
    assert list(folder.iterdir()) == []


def test_a_closed_ledger_refuses(folder: Path) -> None:
    """After close every call is refused, and closing again is harmless."""
    ledger = opened(folder / "a.ledger")
    receipt = ask(ledger, pure("0.1"))
    ledger.close()
    ledger.close()
    for act in (
        lambda: ask(ledger, pure("0.1")),
        lambda: ledger.keep(receipt, "1"),
        lambda: ledger.spent,
        lambda: ledger.remaining,
        lambda: ledger.raise_to(Epsilon(2)),
        lambda: ledger.register("a", declarations="d"),
        ledger.transcript,
        ledger.verify,
        ledger.flush,
    ):
        assert isinstance(refused("closed", act), AccessDenied)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # later Pythons warn of what is tested here
def test_a_child_is_refused_and_does_the_parent_no_harm(folder: Path) -> None:
    """After a fork the child is told to open its own, which works, and the parent goes on (T67)."""
    ledger = opened(folder / "a.ledger")
    receipt = ask(ledger, pure("0.1"))
    child = os.fork()
    if child == 0:  # pragma: no cover - the child reports by its exit code
        seen = 0
        for act in (
            lambda: ask(ledger, pure("0.1")),
            lambda: ledger.keep(receipt, "1"),
            lambda: ledger.remaining,
            lambda: ledger.verify_receipt(receipt, "plan of how many?", pure("0.1")),
            lambda: ledger.redeem(receipt, "plan of how many?", pure("0.1")),
            ledger.transcript,
            ledger.flush,
            ledger.close,
        ):
            try:
                act()
            except AccessDenied as error:
                seen += error.code == "forked"
        with opened(folder / "a.ledger") as own:
            ask(own, pure("0.2"))
        os._exit(seen)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
    assert ledger.spent == Epsilon(0.3)
    ask(ledger, pure("0.7"))
    assert ledger.verify().debits == 3
    ledger.close()


def test_kept_answers_are_found_by_question_and_version_SR12() -> None:
    """A stored answer is offered for its own question and version only (SR12)."""
    ledger = opened()
    ledger.register("people", declarations="d", source="1")
    first = ask(ledger, pure("0.1"), "q")
    digest = hashlib.sha256(b"q").hexdigest()
    assert ledger.kept(digest) == []
    ledger.keep(first, "5")
    assert [(line.seq, line.answer, line.event) for line in ledger.kept(digest)] == [(first.seq, "5", pure("0.1"))]
    ledger.flush()
    assert [line.answer for line in ledger.kept(digest)] == ["5"]
    assert ledger.kept("other") == []
    ledger.register("people", declarations="d", source="2")
    assert ledger.kept(digest) == []


def test_the_strongest_answers_are_found_among_many_SR12() -> None:
    """However often a question was asked, a few of the strongest answers are read: pure and others apart (SR12)."""
    ledger = opened(None, EpsilonDelta(50, 1e-6))
    for i in range(30):
        for event in (pure(f"0.0{i + 10}"), gaussian(f"0.00{i + 10}")):
            receipt = ask(ledger, event, "q")
            if i != 29:  # the very strongest has no answer
                ledger.keep(receipt, str(i))
    found = ledger.kept(hashlib.sha256(b"q").hexdigest())
    assert [line.answer for line in found] == ["28", "27", "26", "25"] * 2
    assert [line.event.epsilon is None for line in found] == [False] * 4 + [True] * 4
    assert ledger.kept(hashlib.sha256(b"q").hexdigest(), key="unused") == found


def test_a_receipt_is_for_one_plan_and_one_use() -> None:
    """The part that sees rows takes a receipt of this ledger, for its plan, once, and never for a stored answer."""
    ledger, event = opened(), pure("0.1")
    receipt = ask(ledger, event, "q", key="k")
    assert not ledger.redeem(receipt, "plan of another", event)
    assert not ledger.redeem(receipt, "plan of q", pure("0.2"))  # what was debited is not what is run
    assert not ledger.redeem(Receipt(receipt.seq + 1, receipt.entry, receipt.plan, receipt.mac), receipt.plan, event)
    assert ledger.redeem(receipt, "plan of q", event)
    assert not ledger.redeem(receipt, "plan of q", event)
    ledger.keep(receipt, "1")
    assert not ledger.redeem(ask(ledger, event, "q", key="k"), "plan of q", event)


def test_an_answer_is_kept_with_a_receipt_only() -> None:
    """A forged or foreign receipt stores nothing."""
    ledger, other = opened(), opened()
    receipt = ask(ledger, pure("0.1"))
    for forged in (Receipt(9, receipt.entry, receipt.plan, receipt.mac), ask(other, pure("0.1"))):
        assert isinstance(refused("bad-receipt", ledger.keep, forged, "1"), CuratorError)
    assert [line.answer for line in ledger.transcript()] == [None]


def test_an_event_too_long_to_read_back_is_refused() -> None:
    """Every entry that is written can be read again: numbers beyond the wire's length are refused (T91)."""
    ledger = opened(None, Rho(1))
    refused("bad-loss", ask, ledger, Event(None, Fraction(1, 7**500)))
    longest = Event(None, Fraction(1, 2**1199))
    ask(ledger, longest)
    assert ledger.transcript()[0].event == longest
    assert ledger.totals.rho == 1
