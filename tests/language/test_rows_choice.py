"""The number of rows that is kept, from released bins alone: which is chosen, what is shown, what is declared."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq.errors import QuestionError, SetupError
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, Unit
from sulq.language.rows_choice import (
    GROUPS,
    NEAR_BETA,
    SURE_BETA,
    AutoUnit,
    RowsChoice,
    ask_price,
    bin_ends,
    noise_scale,
)

ENDS = bin_ends(1024)


def choice(counts: np.ndarray, epsilon: float, budget: object) -> RowsChoice:
    """A choice from bins that were released at this epsilon, for asks of a fiftieth of a budget."""
    law = LaplaceLaw(Fraction(1 / epsilon))
    far = [float(law.accuracy(beta)) for beta in (NEAR_BETA, SURE_BETA)]
    ask = ask_price(budget)
    return RowsChoice("t", 4, ENDS, tuple(map(float, counts)), math.sqrt(2) / epsilon, *far, noise_scale(ask), ask)


def bins(rows: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(ENDS, rows.clip(1, 1024)), minlength=len(ENDS))


def errors(rows: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The errors of a count of all rows, and of a tenth, for each number of rows kept, by the rows themselves."""
    tried = np.arange(1, 1025)
    dropped = np.array([np.maximum(rows - k, 0).sum() for k in tried])
    return tried, np.hypot(dropped, scale * tried), np.hypot(dropped / GROUPS, scale * tried)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("kind", ["geometric", "lognormal", "pareto", "uniform", "constant"])
def test_the_chosen_number_is_near_the_best_in_hindsight(kind: str, epsilon: float) -> None:
    """Over draws of the bins' noise the worse of the two errors is within 1.3 of the best, by its mean square.

    Control: a number of rows three times as large is not.
    """
    rng = np.random.default_rng(7)
    rows = {
        "geometric": rng.geometric(0.1, 20_000),
        "lognormal": np.ceil(np.exp(rng.normal(1.5, 1, 20_000))),
        "pareto": np.ceil(rng.pareto(2.0, 20_000) * 4 + 1e-9),
        "uniform": rng.integers(1, 30, 20_000),
        "constant": np.full(20_000, 7),
    }[kind].clip(1, 1024)
    budget = Epsilon(epsilon)
    _, *both = errors(rows, noise_scale(ask_price(budget)))
    regret = np.maximum(*(each / each.min() for each in both))
    regret /= regret.min()
    scale = 1 / (epsilon / 20)
    noise = rng.laplace(0, scale, (40, len(ENDS))).round()
    found = np.array([choice(bins(rows) + one, epsilon / 20, budget).best() for one in noise])
    assert np.sqrt((regret[found - 1] ** 2).mean()) < 1.3
    assert np.sqrt((regret[np.minimum(3 * found, 1024) - 1] ** 2).mean()) > 1.3


def test_bins_of_noise_alone_have_nobody() -> None:
    """Above the last bin that stands out nobody is reckoned with: noise there would count a thousandfold."""
    counts = np.zeros(len(ENDS))
    counts[:3] = 5000.0
    one = choice(counts, 1.0, Epsilon(20))
    counts[3], counts[-2], counts[1] = one.near * 1.1, one.sure * 0.9, -3.0
    found = choice(counts, 1.0, Epsilon(20))
    assert found.persons.tolist() == [5000.0, 0.0, 5000.0, counts[3], *[0.0] * (len(ENDS) - 4)]
    assert found.best() <= 4
    counts[-2] = one.sure * 1.1  # which noise passes once in 300,000 bins: these people are there
    assert choice(counts, 1.0, Epsilon(20)).persons[-2] == counts[-2]
    empty = choice(np.zeros(len(ENDS)), 1.0, Epsilon(20))
    assert empty.best() == 1
    assert str(dataclasses.replace(empty, rows=1))


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(20)), GaussianLaw(Fraction(20))])
def test_how_often_noise_passes_what_stands_out(law: LaplaceLaw | GaussianLaw) -> None:
    """By the law itself: noise alone passes `sure` in at most one bin of 3e5, `near` in at most one of five."""
    for beta, most in ((SURE_BETA, 1 / 3e5), (NEAR_BETA, 0.2)):
        far = float(law.accuracy(beta))
        if isinstance(law, LaplaceLaw):
            chance = math.exp(-(far + 1) / 20) / (1 + math.exp(-1 / 20))
        else:
            chance = math.erfc((far + 0.5) / 20 / math.sqrt(2)) / 2
        assert 0.2 * most < chance <= most * 1.01


def test_the_table_says_what_is_left_out_and_what_noise_there_is() -> None:
    """Each line is worked out from the bins: rows kept, noise, and the errors of two counts."""
    rows = np.repeat([1, 2, 4], 1000)
    found = choice(bins(rows), 1.0, Epsilon(20))
    found = dataclasses.replace(found, rows=found.best())
    lines = {line.rows: line for line in found.lines}
    scale = math.sqrt(2) / 0.4
    assert found.rows == 4
    assert lines[1].kept == pytest.approx(3000 / 7000)
    assert lines[2].whole == pytest.approx(math.hypot(2000, 2 * scale))
    assert lines[2].group == pytest.approx(math.hypot(200, 2 * scale))
    assert lines[4].whole == lines[4].group == lines[4].noise == pytest.approx(4 * scale)
    assert 0 < lines[1].margin < 0.01
    assert lines[4].margin == 0
    assert [row[0] for row in found.cells] == ["1", "2", "4 (chosen)", "8"]
    assert str(found).splitlines()[0].endswith("errors of counts at epsilon 0.4")


def test_bins_are_public_and_cover_every_number() -> None:
    """Ends grow by the root of two up to the maximum, whatever that is."""
    for most in (2, 3, 7, 100, 1024, 10**6):
        ends = bin_ends(most)
        assert ends[0] == 1
        assert ends[-1] == most
        assert all(low < high <= max(1.5 * low + 1, 2) for low, high in itertools.pairwise(ends))
    ends = bin_ends(10**6)
    wide = dataclasses.replace(choice(np.zeros(len(ENDS)), 1.0, Epsilon(1)), ends=ends, counts=(99.0,) * len(ends))
    assert wide.best() >= 1


def test_a_unit_of_rows_to_be_chosen_is_a_unit_of_the_most() -> None:
    """It is what `sulq.Unit` makes of "auto"; whoever knows nothing of it keeps as many rows as there may be."""
    unit = sulq.Unit("pid", rows="auto", fold="case", most=50, share=0.1)
    assert unit == AutoUnit("pid", 50, "add_remove", "case", Fraction(1, 10))
    assert isinstance(unit, Unit)
    assert unit.widest == sulq.Unit("pid", rows=50, fold="case")
    assert type(sulq.Unit("pid", 3)) is Unit
    assert isinstance(Unit(), sulq.Unit)
    assert unit != unit.widest
    assert "chosen" in str(unit)
    assert "at most 50" in str(unit)
    with pytest.raises(TypeError):
        sulq.Unit("pid", rows="auto", least=3)
    with pytest.raises(QuestionError):
        dataclasses.replace(choice(np.zeros(len(ENDS)), 1.0, Epsilon(1)), ends=(3, 2))


@pytest.mark.parametrize("most", [1, 0, -3, 10**7, 10.0, True, "all", None])
def test_a_maximum_that_is_none_is_named(most: object) -> None:
    """What is wrong is said of `most`, not of rows, which say "auto"; None stands for the default."""
    if most is None:
        assert sulq.Unit("pid", rows="auto", most=most).rows == 1024
        return
    with pytest.raises(SetupError, match="most is a whole number from 2 to 1e6") as error:
        sulq.Unit("pid", rows="auto", most=most)
    assert error.value.code == "bad-declaration"


def test_the_ask_that_is_judged_is_a_fiftieth_of_the_budget() -> None:
    """Its noise, for each row kept, follows from its kind."""
    assert noise_scale(ask_price(Epsilon(5))) == pytest.approx(math.sqrt(2) / 0.1)
    assert noise_scale(ask_price(Rho(0.5))) == pytest.approx(1 / math.sqrt(0.02))
    assert isinstance(ask_price(EpsilonDelta(1, 1e-6)), Rho)
    with pytest.raises(SetupError):
        ask_price(sulq.SubLinear(1, 1e-6, 9))
