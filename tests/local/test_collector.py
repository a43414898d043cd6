"""The collector: estimates with error bars that hold, and an Oracle that learners run on unchanged."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Sums, Together, Unit, col, lit, vector
from sulq.answers.oracle import Oracle
from sulq.errors import QuestionError
from sulq.learn import DecisionList, MonotoneConjunction, StatisticalQueries
from sulq.local import METHODS, Collector, Respondent
from tests.counts import count

COLUMNS = {"x0": sulq.Bool(), "x1": sulq.Bool(), "x2": sulq.Bool(), "y": sulq.Bool()}
NAMES = ["x0", "x1", "x2"]
NOTHING = Epsilon.total(Fraction(0))


def people(number: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Three bits, true for 70%, and whether the first and the last are."""
    rng = np.random.default_rng(seed)
    bits = {name: rng.random(number) < 0.7 for name in NAMES}
    return {**bits, "y": bits["x0"] & bits["x2"]}


def collected(method: str, epsilon: float = 3.0, number: int = 200_000) -> tuple[Collector, dict[str, np.ndarray]]:
    data = people(number)
    collector = Collector(COLUMNS, epsilon=epsilon, method=method)
    collector.collect(Respondent(COLUMNS, epsilon=epsilon, method=method).randomise(data))
    return collector, data


@pytest.mark.parametrize("method", METHODS)
def test_frequencies_by_label(method: str) -> None:
    """An Answer like any other: a mapping, intervals, a frame, and nothing spent."""
    rng = np.random.default_rng(3)
    cities = np.array(["Haifa", "Lod", "Yafo"])
    values = rng.choice(cities, 100_000, p=[0.1, 0.3, 0.6])
    reports = Respondent(["Haifa", "Lod", "Yafo"], epsilon=1, method=method).randomise(values)
    answer = Collector(["Haifa", "Lod", "Yafo"], epsilon=1, method=method).frequencies(reports)
    assert list(answer.value) == cities.tolist()
    wide, (low, high) = answer.accuracy(1e-9), answer.interval(0.95)
    for city in cities:
        assert abs(answer.value[city] - np.mean(values == city)) < wide[city]
        assert low[city] < answer.value[city] < high[city]
    assert answer.spent == NOTHING
    assert "100,000 reports, each of which lost epsilon 1" in repr(answer)
    assert ", left" not in repr(answer)  # a report that was given has no budget to be asked again
    assert answer.remaining is None
    frame = answer.to_pandas(0.95)
    assert list(frame.columns) == ["item", "value", "low", "high"]


def test_frequencies_of_records_are_by_tuples() -> None:
    """All combinations in one order; of what was collected where no reports are given."""
    collector, data = collected("krr")
    found = collector.frequencies().value
    assert list(found)[:2] == [(False, False, False, False), (False, False, False, True)]
    frame = pd.DataFrame(data)
    for label, value in found.items():
        exact = (frame[list(COLUMNS)] == list(label)).all(axis=1).mean()
        assert value == pytest.approx(exact, abs=0.02)


def covered(method: str, runs: int, number: int, beta: float) -> tuple[float, float]:
    """How often intervals miss, and their width beside the standard deviation; for one common and for rare values."""
    rng = np.random.default_rng(8)
    respondent, collector = Respondent(16, epsilon=1, method=method), Collector(16, epsilon=1, method=method)
    missed, wide, off = 0, [], []
    for _ in range(runs):
        values = np.where(rng.random(number) < 0.4, 3, rng.integers(0, 16, number))
        answer = collector.frequencies(respondent.randomise(values))
        exact = np.bincount(values, minlength=16) / number
        found = np.array(list(answer.value.values()))
        radius = np.array(list(answer.accuracy(beta).values()))
        missed += int((np.abs(found - exact) > radius).sum())
        wide.append(radius.mean())
        off.append(np.mean((found - exact) ** 2))
    return missed / (16 * runs), float(np.mean(wide) / np.sqrt(np.mean(off)))


@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_and_are_not_wasteful(method: str) -> None:
    """At beta .2, 150 runs of 16 cells: misses at most .2 and five standard errors of that.

    Wider than the normal quantile 1.28 by at most 60%: bounds that hold for any people cost something.
    """
    runs = count("local: runs for coverage", short=150, long=10_000)
    missed, wide = covered(method, runs, 20_000, 0.2)
    assert missed <= 0.2 + 5.5 * math.sqrt(0.2 * 0.8 / (16 * runs)) * 2  # cells of a run are not independent
    assert missed > 0.005
    assert 1.2 < wide < 2.1


def test_halved_intervals_miss_too_often() -> None:
    """The control of the above: at half the width more than 40% are missed."""
    rng = np.random.default_rng(8)
    respondent, collector = Respondent(16, epsilon=1, method="oue"), Collector(16, epsilon=1, method="oue")
    missed = 0
    for _ in range(100):
        values = rng.integers(0, 16, 20_000)
        answer = collector.frequencies(respondent.randomise(values))
        off = np.abs(np.array(list(answer.value.values())) - np.bincount(values, minlength=16) / 20_000)
        missed += int((off > np.array(list(answer.accuracy(0.2).values())) / 2).sum())
    assert missed / 1600 > 0.4


@pytest.mark.parametrize("method", METHODS)
def test_sums_means_and_statistical_queries(method: str) -> None:
    """Against the exact ones, each within its interval at 1e-9."""
    collector, data = collected(method)
    both = data["x0"] & ~data["x1"]
    mean = collector.mean(col("x0") & ~col("x1"))
    assert abs(mean.value - both.mean()) < mean.accuracy(1e-9)
    answer = collector.ask(Sums((lit(1), vector(["x0", "x1"])), col("y"), (col("x1"),)), spend=Epsilon(1))
    found, wide = answer.value, answer.accuracy(1e-9)
    for label in (False, True):
        here = data["y"] & (data["x1"] == label)
        exact = [here.sum(), (here & data["x0"]).sum(), (here & data["x1"]).sum()]
        assert (np.abs(found[label] - exact) < wide[label]).all()
        assert (wide[label] < 200_000).all()
    assert (answer.spent, answer.event.epsilon) == (NOTHING, 0)


def test_a_constant_is_known() -> None:
    """How many people there are is public: no noise where none is needed."""
    collector, _ = collected("hadamard", number=1000)
    assert collector.ask(Sums((lit(1),))).value == pytest.approx(1000, abs=1e-6)
    assert collector.mean(lit(0.5)).accuracy(0.05) < 1e-5


def test_what_is_foreseen_is_what_is_answered() -> None:
    """The plan's accuracy is the answer's; nothing is charged by either."""
    collector, _ = collected("krr", number=5000)
    question = Sums((col("x0") & col("y"),))
    plan = collector.foresee(question, spend=Epsilon(1))
    assert float(plan.accuracy(0.05)[0][0]) == pytest.approx(collector.ask(question).accuracy(0.05))
    assert "ReportLaw" in str(plan)
    assert plan.event.epsilon == 0


def test_the_facts_are_public() -> None:
    """replace_one, the number of reports, what each of them lost when it was given; and no question adds to it."""
    collector, _ = collected("krr", number=5000)
    for _ in range(3):
        collector.ask(Sums((lit(1),)))
    facts = collector.facts
    assert (facts.unit, facts.size) == (Unit(neighbors="replace_one"), 5000)
    assert (facts.budget, facts.spent, facts.remaining, facts.whose) == (Epsilon(3), Epsilon(3), NOTHING, "reports")
    assert "each report lost epsilon 3; questions cost nothing more" in str(facts)
    empty = Collector(2, epsilon=3).facts
    assert (empty.spent, empty.remaining) == (NOTHING, Epsilon(3))
    oracle: Oracle = collector
    assert oracle.facts.schema.names == [*NAMES, "y"]


@pytest.mark.parametrize("method", METHODS)
def test_statistical_query_learners_run_unchanged_S4_25(method: str) -> None:
    """The conjunction is found from reports alone, as on a database; the fit costs nothing more."""
    collector, data = collected(method, number=400_000)
    near = sulq.connect(pd.DataFrame(data), columns=COLUMNS, budget=Epsilon(1))
    for oracle in (collector, near):
        model = MonotoneConjunction(beta=1e-9).fit(oracle[NAMES], oracle["y"], spend=Epsilon(1))
        assert model.variables_ == ("x0", "x2")
        assert model.score(pd.DataFrame(data)[NAMES], data["y"]) == 1
        assert (model.spent_ == NOTHING) == (oracle is collector)
    assert model.tolerance_ > 0


def test_a_decision_list_from_reports() -> None:
    """Its rounds ask tables chosen by earlier answers, of the same reports."""
    collector, data = collected("krr", number=400_000)
    model = DecisionList(max_length=3).fit(collector[NAMES], collector["y"], spend=Epsilon(1))
    assert model.score(pd.DataFrame(data)[NAMES], data["y"]) == 1
    assert model.spent_ == NOTHING


def test_a_model_learned_from_reports_is_saved_like_any_other(tmp_path: Path) -> None:
    """With a spend of nothing, and the respondents' relation."""
    collector, data = collected("krr", number=50_000)
    model = MonotoneConjunction(beta=1e-9).fit(collector[NAMES], collector["y"], spend=Epsilon(1))
    model.save(tmp_path / "model.json")
    again = sulq.learn.load(tmp_path / "model.json")
    assert (again.spent_, again.unit_) == (NOTHING, Unit(neighbors="replace_one"))
    assert (again.predict(pd.DataFrame(data)[NAMES]) == model.predict(pd.DataFrame(data)[NAMES])).all()


def test_statistical_queries_keep_their_tolerance_or_are_refused() -> None:
    """Each query has the noise of its own table; one past it is refused with the number of people that would do."""
    collector, data = collected("bitwise", number=60_000)
    queries = StatisticalQueries(collector, spend=Epsilon(1), queries=20, beta=1e-6)
    assert queries.stat(col("x0"), 0.06) == pytest.approx(data["x0"].mean(), abs=0.06)
    assert queries.stat(col("x0") & col("y"), 0.1) == pytest.approx((data["x0"] & data["y"]).mean(), abs=0.1)
    assert queries.spent == NOTHING
    with pytest.raises(QuestionError) as refused:
        queries.stat(col("x0") & col("x1") & col("x2") & col("y"), 0.06)
    assert refused.value.code == "too-few-rows"
    needed = int(refused.value.message.partition("about ")[2].partition(" rows")[0].replace(",", ""))
    many, _ = collected("bitwise", number=int(needed * 1.02))
    again = StatisticalQueries(many, spend=Epsilon(1), queries=20, beta=1e-6)
    again.stat(col("x0") & col("x1") & col("x2") & col("y"), 0.06)
    fewer, _ = collected("bitwise", number=int(needed * 0.9))
    with pytest.raises(QuestionError):
        StatisticalQueries(fewer, spend=Epsilon(1), queries=20, beta=1e-6).stat(
            col("x0") & col("x1") & col("x2") & col("y"), 0.06
        )


def test_queries_chosen_by_earlier_answers_pay_for_all_there_might_be_SR19() -> None:
    """The same reports answer them all, so beta is divided over the family: a tolerance that does for ten does not."""
    collector, _ = collected("krr", number=50_000)
    off = collector.mean(col("x0") & col("y"))
    tau = (off.accuracy(0.05 / 10) + off.accuracy(0.05 / 10**6)) / 2
    StatisticalQueries(collector, spend=Epsilon(1), queries=10).stat(col("x0") & col("y"), tau)
    with pytest.raises(QuestionError) as refused:
        StatisticalQueries(collector, spend=Epsilon(1), queries=10, family=10**6).stat(col("x0") & col("y"), tau)
    assert refused.value.code == "too-few-rows"


def test_together_is_answered_by_answers() -> None:
    """One answer a question, in order."""
    collector, _ = collected("krr", number=5000)
    found = collector.ask(Together((Sums((col("x0"),)), Sums((lit(1),), by=(col("y"),)))))
    assert len(found) == 2
    assert found.spent == NOTHING
    assert set(found[1].value) == {False, True}


@pytest.mark.parametrize("spend", [EpsilonDelta(1, 1e-6), "1", 3])
def test_a_spend_that_is_none_is_refused(spend: object) -> None:
    """It is not charged, but it must be one of pure epsilon."""
    collector, _ = collected("krr", number=100)
    with pytest.raises(QuestionError) as refused:
        collector.ask(Sums((lit(1),)), spend=spend)  # type: ignore[arg-type]
    assert refused.value.code == "spend-kind"


def test_learners_are_refused_by_public_facts() -> None:
    """A spend in rho; handles of columns that are not reported. One past what a report cost is not charged either."""
    collector, _ = collected("krr", number=50_000)
    assert MonotoneConjunction(beta=1e-9).fit(collector[NAMES], collector["y"], spend=Epsilon(4)).spent_ == NOTHING
    with pytest.raises(QuestionError) as kind:
        MonotoneConjunction().fit(collector[NAMES], collector["y"], spend=Rho(1))
    assert kind.value.code == "spend-kind"
    with pytest.raises(QuestionError) as unknown:
        collector["income"]
    assert unknown.value.code == "unknown-column"
    with pytest.raises(QuestionError):
        collector[3]


def test_no_reports_no_estimates() -> None:
    """And reports of another domain are not taken in."""
    collector = Collector(4, epsilon=1, method="krr")
    for ask in (collector.frequencies, lambda: collector.ask(Sums((lit(1),))), lambda: collector.frequencies([])):
        with pytest.raises(QuestionError) as refused:
            ask()
        assert refused.value.code == "bad-reports"
    with pytest.raises(QuestionError):
        collector.collect([3, 4])
    assert collector.size == 0
    assert collector.collect(3) == 1
    assert repr(collector) == "Collector(4 values, epsilon 1, method 'krr'; 1 reports)"


def test_reports_come_in_from_many_threads() -> None:
    """None is lost."""
    collector = Collector(4, epsilon=1, method="krr")
    threads = [threading.Thread(target=lambda: [collector.collect([1, 2, 3]) for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collector.size == 8 * 200 * 3


def test_simultaneous_intervals_do_not_take_cells_for_independent() -> None:
    """The union bound, beta over the number of cells, and not the slightly narrower product."""
    answer = Collector(16, epsilon=1, method="krr").frequencies(np.arange(16).repeat(1000))
    assert answer.accuracy(0.1, simultaneous=True) == answer.accuracy(0.1 / 16)


@pytest.mark.filterwarnings("error")
def test_estimates_that_leave_64_bits_are_refused() -> None:
    """Fourteen bits at epsilon 1 tell nothing by 2,000 people: an error that says so, and no wrapped number."""
    domain = {f"b{i}": sulq.Bool() for i in range(14)}
    values = {name: np.zeros(2_000, dtype=bool) for name in domain}
    reports = sulq.local.Respondent(domain, epsilon=1, method="bitwise").randomise(values)
    collector = sulq.local.Collector(domain, epsilon=1, method="bitwise")
    with pytest.raises(QuestionError) as refused:
        collector.frequencies(reports)
    assert refused.value.code == "too-few-rows"
    assert collector.mean("b0", reports).value == pytest.approx(0, abs=10)
