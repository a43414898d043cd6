"""Choices and open keys end to end: replayed on neighbours, priced, kept, and shown with their labels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Above, Choose, OpenSums, Rank, Sums, Together, col
from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.run import Release, Rows
from sulq.errors import BudgetExceeded, QuestionError, SulqError
from sulq.kernel.mechanisms import Shown
from sulq.kernel.private import Private
from sulq.language.privacy import Epsilon, EpsilonDelta, EpsilonKeys, Rho, Unit
from sulq.language.rowfn import Each, Lit, Vector
from sulq.language.tally import Engine, Groups
from sulq.testing import exact as without_noise
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from sulq.testing.replay import differences
from tests import counts
from tests.faults import bare
from tests.privacy.cases import ENGINES, asking, engine, noticed, people, replayed, run, seeded
from tests.privacy.test_replay import UNITS

BUDGET = EpsilonDelta(1000, 1e-3)
SPENDS = (EpsilonDelta(0.5, 1e-6), EpsilonDelta(5, 1e-4))
OPEN = (*SPENDS, EpsilonKeys(0.5, 1e-6), EpsilonKeys(5, 1e-4))  # of either law


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("what", ["choose", "open_sums", "above"])
def test_choices_and_groups_are_told_apart_by_noise_alone_T24(kind: str, what: str) -> None:
    """Scores move by no more than was paid for; groups on one side only are few, of one person (RP, SR14, T24).

    Bar: 0 violations on each engine in 2e4 (question, neighbour) pairs of open keys, 4e3 of choices and of thresholds,
    whose spans are also gone through by force (test_calibration_choice.py). Control: the faults below.
    """
    planned = counts.count(f"{what} replayed on {kind}", short=40, long=20_000 if what == "open_sums" else 4_000)
    rng = seeded(f"{what} on {kind}")
    done, number = 0, 0
    while done < planned:
        unit = UNITS[number % len(UNITS)]
        spends = OPEN if what == "open_sums" else (*SPENDS, Epsilon(0.5), Rho(0.02))
        drawer = Drawer(rng)
        programs = [asking(getattr(drawer, what)(), spends[int(rng.integers(len(spends)))]) for _ in range(6)]
        rows = neighbours.table(rng, unit, int(rng.integers(0, 9)))
        with engine(kind, rows, unit) as source:
            first = run(source, programs, unit, BUDGET)
        assert not any(outcome.startswith("CuratorError") for outcome in first.outcomes), first.log
        assert len(first.calls) >= 1
        pairs = list(neighbours.pairs(rng, unit, rows))
        for i in rng.permutation(len(pairs))[:3]:
            with engine(kind, pairs[i].second, unit) as source:
                second = run(source, programs, unit, BUDGET, earlier=first)
            assert differences(first, second) == [], (unit, pairs[i].what)
            done += len(programs)
        number += 1


NOTES = asking(OpenSums((Lit(1),), None, (col("note"),)), EpsilonDelta(1, 1e-6))
CUT = asking(OpenSums((Lit(1),), None, (col("note"),)), EpsilonKeys(1, 1e-6))
MEDIAN = asking(Choose(Sums((Lit(1),), None, (col("city"), Each(col("age")))), Rank(1, 2)), Epsilon(1))


FLAGS = Vector(tuple(col("age") > level for level in range(8)), 1)
RISING = asking(Above(Sums((FLAGS,)), 3), Epsilon(1))


@pytest.mark.parametrize("kind", ENGINES)
def test_catches_thresholds_that_cost_too_little_SR5(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: sums compared without noise of their own, and the price of sums that only rise where they also fall."""
    first, second = people("HLY", age=9), people("HLY", age=9) + people("H", age=50)
    assert replayed(kind, first, second, [RISING], Unit()) == []

    # The same count against falling thresholds: the first it reaches, without noise of its own, tells the count.
    ladder = asking(Above(Sums((Vector((col("age") > 0,) * 99, 1),)), tuple(range(50, -49, -1))), Epsilon(1))
    assert replayed(kind, first, second, [ladder], Unit()) == []
    assert any("outcome" in line for line in replayed(kind, first, second, [ladder], Unit(), noise=bare))
    exchange = Unit(None, 1, "replace_one")
    split = Vector((*(col("age") > level for level in range(8)), *(col("age") <= level for level in range(8))), 1)
    signed = asking(Above(Sums((split,)), 3), Epsilon(1))
    old, young = people("HLY", age=9), people("HL", age=9) + people("Y", age=0)
    assert replayed(kind, old, young, [signed], exchange) == []
    module = sys.modules["sulq.compile.plan.calibration"]
    honest = module._stream_reach
    monkeypatch.setattr(module, "_stream_reach", lambda rows, l1, most, span: honest(rows, l1, most, min(most, span)))
    assert noticed(kind, (old, young), signed, exchange, budget=Epsilon(100))


class Counting:
    """An engine whose groups count rows where people were asked for."""

    def __init__(self, source: Engine) -> None:
        self.source = source
        self.ready, self.sums, self.close = source.ready, source.sums, source.close

    def groups(self, tally: object) -> Private:
        return self.source.groups(tally).map(lambda found: Groups(found.keys, found.sums, found.sums[:, 0]))


def told_apart(
    first: list, second: list, unit: Unit, wrapped: Callable[[Engine], object] = lambda source: source
) -> list[str]:
    with engine("memory", first, unit) as one, engine("memory", second, unit) as other:
        recorded = run(wrapped(one), [NOTES, CUT], unit, BUDGET)
        return differences(recorded, run(wrapped(other), [NOTES, CUT], unit, BUDGET, earlier=recorded))


def test_catches_a_threshold_on_rows_T24(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: three rows of one person alone are one person; an engine or a plan that forgets it is caught."""
    unit = Unit("pid", 3)
    others = people("HLY", note="all")
    alone = (
        people("H", pid="new", note="mine", age=1)
        + people("H", pid="new", note="mine")
        + people("H", pid="new", note="mine", age=3)
    )
    spread = [one | {"note": f"mine {i}"} for i, one in enumerate(alone)]
    assert told_apart(others, others + alone, unit) == []
    assert told_apart(others, others + spread, unit) == []
    assert any("people on one side only" in line for line in told_apart(others, others + alone, unit, Counting))
    monkeypatch.setattr(sys.modules["sulq.compile.plan.calibration"], "alone", lambda _draft: 1)
    assert any("declared 1" in line for line in told_apart(others, others + spread, unit))


OTHERS = (
    "SELECT note, COUNT(*) AS n, AVG(age) AS mean FROM data GROUP BY note",
    "SELECT note, city, SUM(gain) AS s, VAR_POP(age) AS v FROM data GROUP BY ROLLUP (note, city) HAVING COUNT(*) < 99",
    "SELECT note, COUNT(*) FILTER (WHERE flag) AS n FROM data WHERE age > 20 GROUP BY note ORDER BY n DESC LIMIT 3",
)


def others(kind: str, first: list, second: list, unit: Unit, sight: type[Rows] = Rows) -> tuple[list[str], bool]:
    """What tells two data sets apart that were asked for their hidden groups together; whether the same was shown."""
    shown: list[list[str]] = []

    def program(sql: str) -> Callable[[NamedAsks], object]:
        def ask(database_asks: NamedAsks) -> object:
            found = database_asks.sql(sql, spend=EpsilonDelta(3, 1e-6), other="(other)")
            shown[-1].append(repr(found) + str(found.to_dict(0.95)))
            return found.answers

        return ask

    def seen(source: Engine, ledger: Ledger) -> Rows:
        return sight(source, ledger.redeem)

    recorded = None
    for rows in (first, second):
        shown.append([])
        with engine(kind, rows, unit) as source:
            made = run(source, list(map(program, OTHERS)), unit, BUDGET, earlier=recorded, rows=seen)
        assert len(shown[-1]) == len(OTHERS), made.outcomes
        assert all("all" in text and "(other)" in text for text in shown[-1])
        found, recorded = ([] if recorded is None else differences(recorded, made)), made
    return found, shown[0] == shown[1]


class Suppressed(Rows):
    """A curator that adds the groups it hides up and shows that too."""

    def replace_noise(self, ledger: Ledger, release: Release, reveal: Callable[..., Shown]) -> Rows:
        return super().replace_noise(ledger, release, self._with_hidden(reveal))

    @staticmethod
    def _with_hidden(reveal: Callable[..., Shown]) -> Callable[..., Shown]:
        def revealed(noise: tuple[object, ...], exact: Private[Groups]) -> Shown:
            shown, groups = reveal(noise, exact), exact.open()
            keys, known = zip(*groups.keys, strict=True), set(zip(*shown.labels, strict=True))
            hidden = [i for i, key in enumerate(keys) if key not in known]
            rest = np.append(groups.persons[hidden].sum(), groups.sums[hidden].sum(axis=0))
            label = ["(other)" if isinstance(cells[0], str) else None for cells in groups.keys]  # a code has no name
            labels = [[*cells, other] for cells, other in zip(shown.labels, label, strict=True)]
            return Shown(np.vstack([shown.units, rest]), labels)

        return revealed


@pytest.mark.parametrize("kind", ENGINES)
def test_a_person_alone_in_a_group_moves_the_ordinary_total_alone_SR14(kind: str) -> None:
    """The row for hidden groups is made of paid sums: with or without the person the same is shown (RP, SR14).

    Control: a curator that sums over the groups it hides is caught.
    """
    unit = Unit("pid", 3)
    common = [one | {"pid": f"q{i}", "note": "all"} for i, one in enumerate(people("HLY" * 60))]
    alone = [one | {"pid": "new", "note": f"mine {i}"} for i, one in enumerate(people("HLY"))]
    assert others(kind, common, common + alone, unit) == ([], True)
    assert others(kind, common + alone, common, unit) == ([], True)
    told, same = others(kind, common, common + alone, unit, Suppressed)
    assert any(line.startswith("outcome") for line in told)
    assert not same


@pytest.mark.parametrize("kind", ENGINES)
def test_catches_a_choice_priced_for_one_row(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: three rows in three cells, each of which chooses, move the scores three times as far as one row."""
    unit = Unit("pid", 3)
    others = people("HLYHLY", age=50)
    heavy = people("HLY", pid="new", age=99)
    assert replayed(kind, others, others + heavy, [MEDIAN], unit, budget=BUDGET) == []
    module = sys.modules["sulq.compile.plan.calibration"]
    honest = module.span

    def third(*args: object) -> object:
        found = honest(*args)
        return type(found)(Fraction(found.single, 3), found.pair)

    monkeypatch.setattr(module, "span", third)
    assert noticed(kind, (others, others + heavy), MEDIAN, unit, budget=BUDGET)


def table(words: list[str]) -> pa.Table:
    return pa.table(
        {"word": words, "pid": [f"p{i}" for i in range(len(words))], "age": [i % 90 for i in range(len(words))]}
    )


def opened(words: list[str], **more: object) -> sulq.api.database.Database:
    given = {
        "unit": Unit("pid"),
        "columns": {"word": sulq.Text(), "age": sulq.Int(0, 99)},
        "budget": EpsilonDelta(20, 1e-4),
    }
    return sulq.connect(table(words), **(given | more))


@pytest.mark.parametrize("which", ENGINES)
def test_open_keys_end_to_end_SR14(which: str) -> None:
    """Common words come out with their labels and intervals; rare ones leave no trace; delta is charged to the keys."""
    words = ["and"] * 4000 + ["or"] * 2500 + ["xylograph"] + ["zeugma"] * 2
    with opened(words, engine=which) as db:
        answer = db.ask(OpenSums((col("age"),), None, (col("word"),)), spend=EpsilonDelta(2, 2e-12))
        assert list(answer.value) == ["and", "or"]
        assert answer.columns == ("people", "age")
        low, high = answer.interval(1 - 1e-9)
        assert low["and"][0] <= 4000 <= high["and"][0]
        assert low["or"][1] <= sum(i % 90 for i in range(4000, 6500)) <= high["or"][1]
        assert answer.event.key_delta == Fraction(1, 5 * 10**12)  # a tenth of the spend's
        assert "xylograph" not in repr(answer) + wire.encode(answer) + str(db.transcript())
        frame = answer.to_dict()
        assert frame["word"] == ["and", "or"]
        back = wire.decode(wire.encode(answer))
        assert back.value.keys() == answer.value.keys()
        nothing = db.ask(OpenSums((), col("age") > 98, (col("word"),)), spend=EpsilonDelta(1, 1e-6))
        assert nothing.value == {}
        assert nothing.to_dict()["word"] == []
        assert "spent" in repr(nothing)


def test_key_deltas_add_up_to_what_was_set_aside_SR3() -> None:
    """A tenth of delta is for keys; when that is gone, open keys are refused and other asks are not (SR3)."""
    question = OpenSums((), None, (col("word"),))
    with opened(["a"] * 9, budget=EpsilonDelta(20, 1e-6)) as db:
        for _ in range(2):
            db.ask(question, spend=EpsilonDelta(0.1, 5e-7))
        with pytest.raises(BudgetExceeded):
            db.ask(question, spend=EpsilonDelta(0.1, 5e-7))
        db.ask(Sums((Lit(1),)), spend=EpsilonDelta(0.1, 5e-7))
    with opened(["a"], columns={"age": sulq.Int(0, 99)}) as db, pytest.raises(QuestionError) as refused:
        db.ask(OpenSums((), None, (col("age"),)), spend=EpsilonDelta(1, 1e-6))
    assert refused.value.code == "open-keys"


@pytest.mark.parametrize("which", ENGINES)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_median_end_to_end_SR4(which: str, law: str) -> None:
    """The chosen age has a rank near one half, in each cell of another key and under both mechanisms (S3.9, SR4)."""
    with opened(["w"] * 6000, engine=which) as db:
        question = Choose(Sums((Lit(1),), None, (Each(col("age") > 45), Each(col("age")))), Rank(1, 2))
        answer = db.ask(question, spend=EpsilonDelta(2, 1e-6), law=law)
        ages = np.arange(6000) % 90
        reach = answer.released.noise[0].law.accuracy(1e-9) / 2 + 1
        for above, choice in answer.value.items():
            own = ages[(ages > 45) == above]
            assert (own < choice).sum() - reach <= len(own) / 2 <= (own <= choice).sum() + reach
        assert answer.columns == ("choice",)
        assert answer.interval() == ({False: 0.0, True: 0.0}, {False: 99.0, True: 99.0})
        assert answer.event.epsilon == (Fraction(2) if law == "laplace" else None)


def test_without_noise_the_best_and_all_groups_SR9() -> None:
    """On synthetic data: the first of the best candidates, and every group there is, threshold or not (SR9)."""
    with opened(["a", "b", "b"], synthetic=True) as db:
        exact = without_noise(db)
        asked = Together(
            (
                OpenSums((col("age"),), None, (col("word"),)),
                Choose(Sums((Lit(1),), None, (Each(col("age")),)), Rank(1, 2)),
            )
        )
        groups, choice = exact.ask(asked)
        assert {key: value.tolist() for key, value in groups.value.items()} == {"a": [1, 0], "b": [2, 3]}
        assert choice.value == 1


def test_engines_that_fail_to_group_end_in_one_error_T30() -> None:
    """No text of the engine's leaves, the debit stands, and nothing is kept (T30, T45)."""
    with opened(["a"] * 9) as db:
        db._oracle.curator._rows._engine = object()
        for question in (
            OpenSums((), None, (col("word"),)),
            Choose(Sums((Lit(1),), None, (Each(col("age")),)), Rank(1, 2)),
        ):
            db._oracle.curator._rows.ready = lambda: None
            with pytest.raises(SulqError) as refused:
                db.ask(question, spend=EpsilonDelta(1, 1e-6))
            assert refused.value.code == "engine-failed"
