"""The heart: plan, debit, run, answer, in this order and with no way back."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq import Bool, Category, Epsilon, Int, Queries, Rho, Sums, Together, Unit, col, vector
from sulq.answers import wire
from sulq.answers.answer import Answers
from sulq.curator.curator import Curator, keys_of, names_of
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.shares import Share
from sulq.curator.reuse import ReusingOracle
from sulq.curator.run import Rows
from sulq.errors import BudgetExceeded, CuratorError, QuestionError, SetupError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.kernel.private import Private
from sulq.language.domain import Schema
from sulq.language.rowfn import Bins, Each, Lit

SCHEMA = Schema.of("data", {"x": Int(0, 9), "flag": Bool(), "city": Category(("b", "a"))})
COUNT = Sums((Lit(1),))


class Noted:
    """Ledger, engine and mechanism that write down in which order they are called."""

    def __init__(self, budget: object = None) -> None:
        self.steps: list[str] = []
        budget = Epsilon(1) if budget is None else budget
        self.ledger = Ledger.open(None, mechanisms=tuple(MECHANISMS), unit=Unit(), budget=budget, synthetic=True)
        debit = self.ledger.debit
        self.ledger.debit = lambda *args, **named: (self.steps.append("debit"), debit(*args, **named))[1]
        curator = Curator(
            Rows(self, self.ledger.redeem).replace_noise(self.ledger, self.release),
            self.ledger,
            SCHEMA,
            size=7,
            versions=(("numpy", "1"),),
        )
        self.curator = ReusingOracle(curator)

    def ready(self) -> None:
        self.steps.append("ready")

    def sums(self, tally: object) -> Private:
        self.steps.append("sums")
        return Private(np.zeros((tally.cells, tally.width), dtype=np.int64))

    def release(self, law: object, exact: Private) -> np.ndarray:
        self.steps.append("noise")
        return exact.open() + 3

    def close(self) -> None:
        """Nothing to do."""


def test_the_debit_comes_before_the_rows_and_the_noise_after_T43() -> None:
    """An ask prepares, debits, sums and draws noise, in this order (T43, S0.29)."""
    noted = Noted()
    answer = noted.curator.ask(COUNT, spend=Epsilon(0.5))
    assert noted.steps == ["ready", "debit", "sums", "noise"]
    assert answer.value == 3
    assert answer.receipt.plan == wire.digest(noted.curator.foresee(COUNT, spend=Epsilon(0.5)))
    assert noted.ledger.spent == Epsilon(0.5)


def test_a_plan_is_remembered_for_the_analyst_who_asked_T39() -> None:
    """Drawn once for each analyst, spend and question; whoever asks the same later than another pays the same time."""
    noted = Noted()
    noted.ledger.share("a", Share(Fraction(1, 2)))
    noted.ledger.share("b", Share(Fraction(1, 2)))
    curator = noted.curator.curator
    mine, yours = curator.for_analyst("a"), curator.for_analyst("b")
    plan = mine.foresee(COUNT, spend=Epsilon(0.1))
    assert curator.for_analyst("a").foresee(Sums((Lit(1),)), spend=Epsilon(0.1)) is plan
    assert mine.foresee(COUNT, spend=Epsilon(0.2)) is not plan
    assert mine.foresee(Sums((Lit(2),)), spend=Epsilon(0.1)) is not plan
    other = yours.foresee(COUNT, spend=Epsilon(0.1))
    assert other is not plan
    assert other.event == plan.event


def test_foreseeing_touches_neither_ledger_nor_rows_T58() -> None:
    """A plan is drawn without any call of engine, mechanism or debit (T58)."""
    noted = Noted()
    plan = noted.curator.foresee(THREE, spend=Epsilon(0.5))
    assert noted.steps == []
    assert plan.event.epsilon == Fraction(1, 2)
    assert plan.event.versions == (("numpy", "1"),)


THREE = Sums((col("x"), Lit(1)), None, (Bins(col("x"), (0, 3, 6, 9)),))


@pytest.mark.parametrize(
    ("question", "spend", "error"),
    [
        (Sums((col("y"),)), Epsilon(0.1), QuestionError),
        (COUNT, Epsilon(2), BudgetExceeded),
        (COUNT, None, QuestionError),
    ],
)
def test_a_refused_ask_reads_nothing_and_costs_nothing_T45(question: Sums, spend: object, error: type) -> None:
    """A bad question or a spend past the budget ends before the rows, with nothing charged (T12, T45)."""
    noted = Noted()
    with pytest.raises(error):
        noted.curator.ask(question, spend=spend)
    assert "sums" not in noted.steps
    assert noted.ledger.spent.amount == 0


def test_together_is_one_debit_for_all_or_nothing_T45() -> None:
    """Questions asked together have one receipt; one that cannot be planned refuses them all (T45)."""
    noted = Noted()
    answers = noted.curator.ask(Together((COUNT, THREE), (Fraction(1), Fraction(3))), spend=Epsilon(0.8))
    assert isinstance(answers, Answers)
    assert len(answers) == 2
    assert answers[0].receipt == answers[1].receipt == answers.receipt
    assert answers.spent == Epsilon(0.8)
    assert answers[0].event.draws[0].scale == 5
    assert len(noted.ledger.transcript()) == 1
    with pytest.raises(QuestionError):
        noted.curator.ask(Together((COUNT, Sums((col("y"),)))), spend=Epsilon(0.1))
    assert noted.ledger.spent == Epsilon(0.8)


def test_a_stored_answer_is_given_without_rows_or_noise_T44() -> None:
    """A repeated key reads no row, draws no noise, costs nothing, and says so (T44)."""
    noted = Noted()
    first = noted.curator.ask(THREE, spend=Epsilon(0.5), key="k")
    noted.steps.clear()
    again = noted.curator.ask(THREE, spend=Epsilon(0.5), key="k")
    assert noted.steps == ["ready", "debit"]
    assert (again.reused, first.reused) == (True, False)
    assert again.released.units.tobytes() == first.released.units.tobytes()
    assert noted.ledger.spent == Epsilon(0.5)


def test_a_stored_answer_is_given_again_for_nothing_SR12() -> None:
    """Asked with `reuse` the same question reads no row, draws no noise, costs nothing, and says so (SR12, T10)."""
    noted = Noted()
    first = noted.curator.ask(THREE, spend=Epsilon(0.25), reuse=True)
    assert (first.reused, first.spent) == (False, Epsilon(0.25))
    noted.steps.clear()
    for spend in (Epsilon(0.25), Epsilon(0.1)):
        again = noted.curator.ask(THREE, spend=spend, reuse=True)
        assert again.reused
        assert again.released.units.tobytes() == first.released.units.tobytes()
        assert (again.spent.amount, again.remaining, again.total) == (0, Epsilon(0.75), Epsilon(0.25))
        assert (again.event, again.receipt.seq) == (first.event, first.receipt.seq)
        assert any("reused" in note for note in again.notes)
    assert noted.steps == ["ready", "ready"]
    assert not noted.ledger.redeem(replace(again.receipt, stored=None), again.receipt.plan, first.event)
    noted.curator.ask(THREE, spend=Epsilon(0.3), reuse=True)  # more accurate than what is stored
    noted.curator.ask(THREE, spend=Epsilon(0.1))  # the Oracle itself never reuses unless told to
    assert noted.ledger.spent == Epsilon(0.65)
    assert noted.curator.ask(THREE, spend=Epsilon(0.1), reuse=True).receipt.seq > first.receipt.seq  # the strongest


def test_a_bad_question_is_refused_whatever_is_stored_SR12() -> None:
    """A question is planned before anything is looked up: a refusal does not depend on what others asked (T39)."""
    noted = Noted()
    noted.curator.ask(Sums((Lit(1),), col("flag") == True), spend=Epsilon(0.1))  # noqa: E712 - a row function
    for spend in (None, Queries(1), Rho(0.1)):
        with pytest.raises(QuestionError):
            noted.curator.ask(COUNT, spend=spend, reuse=True)


def test_scope_and_declarations_keep_answers_apart_T39_SR12() -> None:
    """What was asked of another table, size or scope of the same person space is not given again (SR12, T39)."""
    noted = Noted()
    noted.curator.ask(COUNT, spend=Epsilon(0.1))
    other = Schema.of("other", {"x": Int(0, 9)})

    def reused(schema: Schema = SCHEMA, size: int = 7, scope: str = "") -> bool:
        rows = Rows(noted, noted.ledger.redeem).replace_noise(noted.ledger, noted.release)
        curator = ReusingOracle(Curator(rows, noted.ledger, schema, size=size, versions=(), scope=scope))
        return curator.ask(COUNT, spend=Epsilon(0.01), reuse=True).reused

    assert reused()
    assert not reused(schema=other)
    assert not reused(size=8)
    assert not reused(scope="ann")
    assert reused(scope="ann")


def test_a_key_belongs_to_one_table_T44() -> None:
    """The same words put to another table of the person space are another question, and the key is taken (T44)."""
    noted = Noted()
    noted.curator.ask(COUNT, spend=Epsilon(0.1), key="k")
    rows = Rows(noted, noted.ledger.redeem).replace_noise(noted.ledger, noted.release)
    other = Curator(rows, noted.ledger, Schema.of("other", {"x": Int(0, 9)}), size=None, versions=())
    with pytest.raises(QuestionError) as refused:
        other.ask(COUNT, spend=Epsilon(0.1), key="k")
    assert refused.value.code == "key-reused"
    assert noted.curator.ask(COUNT, spend=Epsilon(0.1), key="k").reused


def test_a_key_has_its_own_answer_before_any_other_T44() -> None:
    """A retry under a key gets what the key was charged for, though a stronger answer is stored (T44)."""
    noted = Noted()
    first = noted.curator.ask(COUNT, spend=Epsilon(0.1), key="k", reuse=True)
    better = noted.curator.ask(COUNT, spend=Epsilon(0.5), reuse=True)
    assert noted.curator.ask(COUNT, spend=Epsilon(0.1), key="k", reuse=True).receipt.seq == first.receipt.seq
    assert noted.curator.ask(COUNT, spend=Epsilon(0.1), key="new", reuse=True).receipt.seq == better.receipt.seq
    with pytest.raises(QuestionError) as refused:
        noted.curator.ask(THREE, spend=Epsilon(0.1), key="k", reuse=True)
    assert refused.value.code == "key-reused"
    assert noted.ledger.spent == Epsilon(0.6)


def test_questions_asked_together_are_found_in_any_order_SR12() -> None:
    """A stored tuple of answers is put into the order it is asked for now (SR12)."""
    noted = Noted()
    first = noted.curator.ask(Together((COUNT, THREE), (Fraction(1), Fraction(3))), spend=Epsilon(0.8))
    again = noted.curator.ask(Together((THREE, COUNT), (Fraction(3), Fraction(1))), spend=Epsilon(0.8), reuse=True)
    assert [one.released.units.shape for one in again] == [(3, 2), (1, 1)]
    assert all(one.reused and one.spent.amount == 0 for one in again)
    assert again.receipt.seq == first.receipt.seq
    assert noted.ledger.spent == Epsilon(0.8)


def test_no_answer_leaves_before_it_is_kept_T43() -> None:
    """If the answer cannot be written down the analyst does not get it (T43)."""
    noted = Noted()

    def failing(*_: object, **__: object) -> None:
        raise CuratorError("ledger-failed", "The disk is full.")

    noted.ledger.keep = failing
    with pytest.raises(CuratorError):
        noted.curator.ask(COUNT, spend=Epsilon(0.5))
    assert noted.ledger.spent == Epsilon(0.5)


def test_an_analyst_is_charged_by_name_and_sees_its_own_standing_T54() -> None:
    """A view of the curator charges one analyst's share and shows its own spending; the curator sees the whole."""
    noted = Noted()
    noted.ledger.share("ann", Share.of("1/2", "1/4"))
    ann, ben = noted.curator.for_analyst("ann"), noted.curator.for_analyst("ben")
    answer = ann.ask(COUNT, spend=Epsilon(0.1))
    assert (answer.total, answer.remaining) == (Epsilon(0.1), Epsilon(0.4))
    assert (ann.facts.spent, ann.facts.remaining) == (Epsilon(0.1), Epsilon(0.4))
    assert (ben.facts.spent.amount, ben.facts.remaining) == (0, Epsilon(0.75))  # a quarter is kept for ann, 0.1 used
    assert (noted.curator.facts.spent, noted.curator.facts.remaining) == (Epsilon(0.1), Epsilon(0.9))
    assert ann.facts.budget == ben.facts.budget == Epsilon(1)
    with pytest.raises(BudgetExceeded):
        ann.ask(COUNT, spend=Epsilon(0.5))
    with pytest.raises(BudgetExceeded):
        ben.ask(COUNT, spend=Epsilon(0.8))
    ben.ask(COUNT, spend=Epsilon(0.75))
    ann.ask(COUNT, spend=Epsilon(0.15))
    assert [line.analyst for line in noted.ledger.transcript()] == ["ann", "ben", "ann"]
    assert len(ann.facts.public_key) == 64


def test_an_analysts_keys_are_its_own_T44() -> None:
    """Two analysts with one key text never meet: neither is refused, answered or told anything for the other's."""
    noted = Noted()
    for scope in (None, "all"):
        ann, ben = (noted.curator.for_analyst(name, scope=scope) for name in (f"ann {scope}", f"ben {scope}"))
        first = ann.ask(COUNT, spend=Epsilon(0.1), key="k")
        second = ben.ask(THREE, spend=Epsilon(0.1), key="k")
        assert not first.reused
        assert not second.reused
        assert ann.ask(COUNT, spend=Epsilon(0.1), key="k").receipt.seq == first.receipt.seq
        assert ben.ask(THREE, spend=Epsilon(0.1), key="k").receipt.seq == second.receipt.seq
    assert noted.ledger.spent == Epsilon(0.4)


def test_stored_answers_stay_within_their_scope_T39_SR12() -> None:
    """An analyst is given its own stored answers; those of others only where they share a scope (SR12, T39)."""
    noted = Noted()
    noted.curator.ask(COUNT, spend=Epsilon(0.1), reuse=True)
    ann, ben = noted.curator.for_analyst("ann"), noted.curator.for_analyst("ben")
    assert not ann.ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert ann.ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert not ben.ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert noted.curator.for_analyst("ann").ask(COUNT, spend=Epsilon(0.1), reuse=True).reused  # another view of ann
    assert noted.curator.for_analyst("cat", scope="").ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert not noted.curator.for_analyst("cat", scope="team").ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert noted.curator.for_analyst("dan", scope="team").ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert not noted.curator.for_analyst("eve", scope="ann").ask(COUNT, spend=Epsilon(0.1), reuse=True).reused
    assert noted.ledger.spent == Epsilon(0.5)


def test_an_analyst_has_a_name() -> None:
    """Nobody asks under an empty or unprintable name."""
    for name in ("", "a\nb", "x" * 201):
        with pytest.raises(SetupError):
            Noted().curator.for_analyst(name)


def test_answers_are_named_after_what_was_asked() -> None:
    """Keys and columns take a column's own name where they read one, and are made different."""
    noted = Noted()
    question = Sums(
        (col("x") + 1, col("x"), vector([col("x"), col("x")])),
        None,
        (Each(col("flag")), ~col("flag"), col("city")),
    )
    part = noted.curator.foresee(question, spend=Epsilon(1)).parts[0]
    names, labels = zip(*keys_of(part), strict=True)
    assert len(set(names)) == 3
    assert names[0] == "flag"
    assert labels[2] == ("b", "a")
    assert len(set(names_of(part))) == 4
    assert names_of(part)[1] == "x"


def test_facts_are_as_they_stand_now() -> None:
    """What is spent and left follows the ledger; nothing else changes."""
    noted = Noted()
    before = noted.curator.facts
    noted.curator.ask(COUNT, spend=Epsilon(0.25))
    after = noted.curator.facts
    assert (before.spent.amount, after.spent) == (0, Epsilon(0.25))
    assert after.remaining == Epsilon(0.75)
    assert (after.schema, after.unit, after.size, after.durable) == (SCHEMA, Unit(), 7, False)


def test_nothing_after_the_debit_looks_at_the_ledger_file_T45() -> None:
    """A ledger that is busy once the debit stands does not lose the answer, nor say that nothing was spent."""
    noted = Noted()
    standing = noted.ledger.standing

    def busy(*, fresh: bool, analyst: str | None) -> object:
        if fresh and "debit" in noted.steps:
            raise AssertionError("the file was read after the debit")
        return standing(fresh=fresh, analyst=analyst)

    noted.ledger.standing = busy
    answer = noted.curator.ask(COUNT, spend=Epsilon(0.25))
    assert answer.remaining == Epsilon(0.75)
