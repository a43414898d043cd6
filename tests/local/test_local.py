"""Exact epsilon of every randomiser by enumeration, that draws follow the enumerated law, and the traps on the way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sulq.errors import BudgetExceeded
from sulq.language.privacy import Epsilon
from sulq.local import Collector, Diary, Respondent, coins
from sulq.local.methods import METHODS, BitwiseResponse, HadamardResponse, KaryResponse, Response, UnaryResponse
from tests.counts import count

EPSILONS = [Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(12)]
SIZES = [(2,), (3,), (5,), (2, 3), (4, 2)]
LAWS: list[Callable[[tuple[int, ...], Fraction], Response]] = [kind.of for kind in METHODS.values()]
mpmath.mp.dps = 120


def cells(sizes: tuple[int, ...]) -> range:
    return range(math.prod(sizes))


def worst(response: Response, sizes: tuple[int, ...]) -> Fraction:
    """The largest ratio of two records' probabilities of one report, as an exact fraction."""
    tables = [dict(response.pmf(cell)) for cell in cells(sizes)]
    assert all(sum(table.values()) == 1 for table in tables)
    return max(a[report] / b[report] for a, b in itertools.permutations(tables, 2) for report in a)


def holds(ratio: Fraction, epsilon: Fraction) -> bool:
    log = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
    return bool(log * epsilon.denominator <= epsilon.numerator)


def leakier(response: Response) -> Response:
    """The same randomiser with its bias rounded the other way."""
    if isinstance(response, UnaryResponse):
        return replace(response, lies=response.lies - 1)
    return replace(response, kept=response.kept + 1)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("of", LAWS)
def test_the_exact_epsilon_is_the_promise_S4_19(
    of: Callable[[tuple[int, ...], Fraction], Response], sizes: tuple[int, ...], epsilon: Fraction
) -> None:
    """Enumerated in fractions: never above epsilon, and below it by less than 1e-9 of it."""
    response = of(sizes, epsilon)
    ratio = worst(response, sizes)
    assert holds(ratio, epsilon)
    if isinstance(response, BitwiseResponse) and any(size & (size - 1) for size in sizes):
        return  # words that are no record leave some of the loss unused
    assert math.log(ratio) == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize("of", LAWS)
def test_trap_9_a_bias_rounded_the_other_way_is_not_private(
    of: Callable[[tuple[int, ...], Fraction], Response],
) -> None:
    """Proofs need the exact object: one unit of 2^-64 more and the exact loss passes epsilon."""
    for epsilon in EPSILONS:
        response = of((4,), epsilon)
        assert holds(worst(response, (4,)), epsilon)
        assert not holds(worst(leakier(response), (4,)), epsilon)


def test_the_printed_flip_of_a_bit_leaks_E43() -> None:
    """With d = S = 4, epsilon 1, flips at .375 lose 2.04, at .4378 they lose 1.000 [S4.16]."""
    response = BitwiseResponse.of((2, 2, 2, 2), Fraction(1))
    assert float(response.probabilities[1]) == pytest.approx(0.4378, abs=1e-4)
    assert math.log(worst(response, (2, 2, 2, 2))) == pytest.approx(1.000, abs=1e-9)
    printed = replace(response, kept=int((1 - 0.375) * 2**64))
    assert math.log(worst(printed, (2, 2, 2, 2))) == pytest.approx(2.04, abs=5e-3)
    single = BitwiseResponse.of((2,), Fraction(1, 2))
    assert float(single.probabilities[1]) == pytest.approx(1 / (1 + math.exp(0.5)), rel=1e-12)
    assert math.log(worst(replace(single, kept=3 * 2**62), (2,))) == pytest.approx(1.10, abs=2e-3)  # epsilon .5, S 1


def draws(response: Response, cell: int, number: int) -> np.ndarray:
    """How often each report was drawn, in the order of the enumeration."""
    found = response.randomise(np.full(number, cell, dtype=np.int64))
    if found.ndim > 1:
        found = found @ (1 << np.arange(found.shape[1])[::-1])
    return np.bincount(found, minlength=response.outcomes)


def far(counts: np.ndarray, chances: Iterator[Fraction]) -> float:
    """The largest standardised difference."""
    p = np.array([float(chance) for chance in chances])
    n = counts.sum()
    return float(np.abs((counts - n * p) / np.sqrt(n * p * (1 - p))).max())


@pytest.mark.parametrize("of", LAWS)
def test_draws_follow_the_enumerated_law(of: Callable[[tuple[int, ...], Fraction], Response]) -> None:
    """Every report of every record within 6.5 standard errors (together below 1e-7); that of epsilon 1.2 is not."""
    number = count("local: draws of a randomiser", short=300_000, long=3_000_000)
    other = of((2, 3), Fraction(6, 5))
    seen = 0.0
    for cell in range(6):
        counts = draws(of((2, 3), Fraction(1)), cell, number)
        assert far(counts, (chance for _, chance in of((2, 3), Fraction(1)).pmf(cell))) < 6.5
        seen = max(seen, far(counts, (chance for _, chance in other.pmf(cell))))
    assert seen > 6.5


def test_draws_do_not_depend_on_each_other() -> None:
    """Neighbouring reports of one call agree as often as independent ones do: within 5.5 standard errors."""
    for method in METHODS:
        reports = Respondent(4, epsilon=1, method=method).randomise(np.zeros(400_001, dtype=int))
        flat = reports.reshape(len(reports), -1)
        same = (flat[1:] == flat[:-1]).all(axis=1).mean()
        law = [float(chance) for _, chance in METHODS[method].of((4,), Fraction(1)).pmf(0)]
        expected = sum(chance**2 for chance in law)
        assert abs(same - expected) < 5.5 * math.sqrt(2 * expected / 400_000), method


def test_trap_5_the_sign_is_right_too() -> None:
    """A lie as likely as the truth should be is as private, and useless: its estimates point the other way."""
    rng = np.random.default_rng(3)
    values = np.where(rng.random(200_000) < 0.8, 0, 1)
    respondent = Respondent(2, epsilon=1, method="krr")
    collector = Collector(2, epsilon=1, method="krr")
    response = KaryResponse.of((2,), Fraction(1))
    swapped = replace(response, kept=2**64 - response.kept)
    assert worst(swapped, (2,)) == worst(response, (2,))  # every privacy test passes
    right = collector.frequencies(respondent.randomise(values)).value[0]
    wrong = collector.frequencies(swapped.randomise(values)).value[0]
    assert right == pytest.approx(0.8, abs=0.02)
    assert wrong == pytest.approx(0.2, abs=0.02)


def test_trap_10_what_is_repeated_adds_up_unless_it_is_remembered() -> None:
    """K fresh reports of one person lose k epsilon, exactly; a remembered one tells no more than the first."""
    response = KaryResponse.of((3,), Fraction(1))
    tables = [dict(response.pmf(cell)) for cell in range(3)]
    ratio = max(
        math.prod(tables[0][r] / tables[1][r] for r in reports) for reports in itertools.product(range(3), repeat=3)
    )
    assert math.log(ratio) == pytest.approx(3.0, rel=1e-9)
    diary = Diary(Epsilon(2))
    respondent = Respondent(3, epsilon=1, method="krr", diary=diary)
    assert len({int(respondent.report(1, question="q")) for _ in range(200)}) == 1
    assert diary.spent == Epsilon(1)


def test_trap_3_the_promise_has_no_delta_and_holds_however_rounds_are_chosen() -> None:
    """Rounds that go on until a report pleases: every transcript's exact ratio is within e^(rounds x epsilon).

    None is infinite, and the diary stops before its budget is passed.
    """
    response = KaryResponse.of((2,), Fraction(1, 2))
    tables = [dict(response.pmf(cell)) for cell in range(2)]

    def ratio(reports: tuple[int, ...]) -> Fraction:
        found = Fraction(1)
        for report in reports:  # the next round is asked only after a 0: adaptive stopping
            found *= tables[0][report] / tables[1][report]
            if report == 1:
                break
        return found

    worst_of_all = max(ratio(reports) for reports in itertools.product((0, 1), repeat=4))
    assert math.log(worst_of_all) == pytest.approx(2.0, rel=1e-9)
    diary = Diary(Epsilon(2))
    respondent = Respondent(2, epsilon=0.5, method="krr", diary=diary)
    for number in range(4):
        respondent.report(0, round=number, question="q")
    with pytest.raises(BudgetExceeded) as refused:
        respondent.report(0, round=4, question="q")
    assert refused.value.code == "budget-exceeded"
    assert diary.spent == Epsilon(2)


def test_a_missing_value_is_a_mixture_of_reports() -> None:
    """What is not declared is answered by a random value: the law is the mean of the values' laws, so epsilon holds."""
    for method, kind in METHODS.items():
        response = kind.of((3,), Fraction(1))
        tables = [dict(response.pmf(cell)) for cell in range(3)]
        mixture = {report: sum(table[report] for table in tables) / 3 for report in tables[0]}
        assert all(
            holds(max(mixture[r] / table[r], table[r] / mixture[r]), Fraction(1)) for table in tables for r in table
        )
        respondent = Respondent(["a", "b", "c"], epsilon=1, method=method)
        found = np.asarray(respondent.randomise(np.array(["nobody said"] * 300_000)))
        if found.ndim > 1:
            found = found @ (1 << np.arange(found.shape[1])[::-1])
        counts = np.bincount(found, minlength=response.outcomes)
        assert far(counts, iter(mixture.values())) < 6.5
        assert far(counts, iter(tables[0].values())) > 6.5


def test_a_hadamard_report_is_short_whatever_the_domain() -> None:
    """The least power of two above the number of values; every place is possible."""
    for size, outcomes in ((2, 4), (3, 4), (4, 8), (64, 128), (2**16, 2**17)):
        assert HadamardResponse.of((size,), Fraction(1)).outcomes == outcomes
    assert min(chance for _, chance in HadamardResponse.of((5,), Fraction(12)).pmf(3)) > 0


def test_a_draw_takes_the_same_bits_whatever_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits asked of the operating system, but for the few that settle ties, do not depend on the values (T7)."""
    asked: list[int] = []
    real = coins.entropy.random_bytes
    monkeypatch.setattr(coins.entropy, "random_bytes", lambda size: asked.append(size) or real(size))
    for method in METHODS:
        respondent = Respondent(["a", "b", "c", "d"], epsilon=1, method=method)
        sizes = []
        for values in (["a"] * 1000, ["d"] * 1000, ["nobody said"] * 1000, [None] * 1000):
            asked.clear()
            respondent.randomise(values)
            sizes.append([size for size in asked if size >= 1000])
        assert all(each == sizes[0] for each in sizes), method
