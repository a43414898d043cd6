"""Losses, units and how a budget is divided; and what one person's loss means for several."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from sulq.errors import QuestionError, SetupError
from sulq.kernel.facts import Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.language.privacy import divided


def group(loss: Epsilon | Rho | EpsilonDelta, persons: int) -> Epsilon | Rho | EpsilonDelta:
    return loss.group(persons)


def laws(epsilon: float, people: int) -> dict[tuple[int, ...], dict[tuple[int, ...], float]]:
    """The exact law of randomised response on each data set of so many bits."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    bits = list(itertools.product((0, 1), repeat=people))
    return {
        data: {out: math.prod(keep if o == x else 1 - keep for o, x in zip(out, data, strict=True)) for out in bits}
        for data in bits
    }


@pytest.mark.parametrize("persons", [1, 2, 3])
def test_a_group_loses_as_many_times_as_much_S3_3_S4_22(persons: int) -> None:
    """Over all data sets at distance c the worst ratio of randomised response is exactly c epsilon (S3.3, S4.22)."""
    epsilon = 0.4
    law = laws(epsilon, 4)
    worst = max(
        math.log(law[a][out] / law[b][out])
        for a, b in itertools.permutations(law, 2)
        if sum(x != y for x, y in zip(a, b, strict=True)) == persons
        for out in law[a]
    )
    assert worst == pytest.approx(float(group(Epsilon(epsilon), persons).exact))


def test_one_person_less_is_not_enough_S3_3() -> None:
    """Control: the loss of a smaller group does not cover a larger one."""
    assert group(Epsilon(0.4), 3).exact > group(Epsilon(0.4), 2).exact
    assert group(Epsilon(0.4), 2) == Epsilon(0.8)


def test_a_group_of_gaussian_answers() -> None:
    """Rho grows with the square: the distance of two normals does (zero-concentrated loss)."""
    assert group(Rho(0.5), 3) == Rho(4.5)


def test_a_group_with_delta_covers_the_exact_chain() -> None:
    """Delta is at least the sum over the chain of neighbours, e^(i epsilon) delta each."""
    found = group(EpsilonDelta(0.5, 1e-6), 4)
    chain = sum(math.exp(0.5 * i) for i in range(4)) * 1e-6
    assert found.exact == 2
    assert chain <= float(found.exact_delta) <= chain * (1 + 1e-9)
    assert group(EpsilonDelta(0.5, 1e-6), 1).exact_delta >= Fraction(1, 10**6)


@pytest.mark.parametrize("persons", [0, -1, 1.5, True])
def test_a_group_has_persons(persons: object) -> None:
    """Anything but a whole number of persons is refused."""
    with pytest.raises(QuestionError):
        group(Epsilon(1), persons)


NONSENSE = [math.nan, -1.0, 0.0, -0.0, math.inf, -math.inf, 1e-400, 1e-300, 1e9, True, "1", "\u0661", None, [1], 1 + 0j]


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize("loss", [Epsilon, Rho, lambda x: EpsilonDelta(x, 1e-6), lambda x: SubLinear(x, 1e-6, 5)])
def test_a_nonsense_loss_cannot_be_made_T51(loss: object, value: object) -> None:
    """NaN, negative, infinite, vanishing, huge, truth values and texts are refused with a code (T51)."""
    with pytest.raises(QuestionError) as refused:
        loss(value).exact  # noqa: B018
    assert refused.value.code == "bad-loss"


@pytest.mark.parametrize("value", [0, 1.0, 2, math.nan, True, "1e-6", 1e-320])
def test_a_nonsense_delta_cannot_be_made_T51(value: object) -> None:
    """A delta lies strictly between 0 and 1."""
    with pytest.raises(QuestionError):
        EpsilonDelta(1, value).exact_delta  # noqa: B018


def test_a_loss_is_the_decimal_it_was_written_as_T52() -> None:
    """Ten tenths are one, however many binary digits a tenth has; the control adds doubles."""
    assert sum(Epsilon(0.1).exact for _ in range(10)) == 1
    assert sum(Fraction(0.1) for _ in range(10)) != 1
    assert Epsilon(0.1) == Epsilon(Fraction(1, 10))
    assert Epsilon(0.1) != Rho(0.1)


def test_shares_compose_back_to_the_whole_S2_6() -> None:
    """Shares never add up to more than the loss, and to all of it but for rounding down."""
    for loss in (Epsilon(1), Rho(0.3)):
        parts = [loss.share(Fraction(1, 3)).exact for _ in range(3)]
        assert loss.exact - Fraction(1, 10**15) < sum(parts) <= loss.exact


def test_the_split_of_a_budget_SR3() -> None:
    """(2, 1e-6): order 12.3, room 1.086; open keys take a tenth of delta."""
    whole = divided(EpsilonDelta(2.0, 1e-6), open_keys=False, basic=Fraction(0))
    assert float(whole.alpha) == pytest.approx(12.3, abs=0.05)
    assert float(whole.room) == pytest.approx(1.086, abs=0.001)
    assert whole.key_delta == 0
    keyed = divided(EpsilonDelta(2.0, 1e-6), open_keys=True)
    assert keyed.key_delta == (keyed.delta + keyed.basic_delta) / 9 == Fraction(1, 10**7)
    assert keyed.room < whole.room


@pytest.mark.parametrize(
    "made",
    [
        lambda: Unit(rows=2),
        lambda: Unit("who", rows=0),
        lambda: Unit("who", rows=True),
        lambda: Unit("who", neighbors="bounded"),
        lambda: Unit(""),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(made: object) -> None:
    """Rows need a column, a number of rows is positive, and the relation is one of three."""
    with pytest.raises(SetupError):
        made()


def test_places_are_public_only_where_no_neighbour_shifts_them_SR11() -> None:
    """zero_out, or replace_one where the row is the person."""
    assert Unit(neighbors="zero_out").positions_are_public
    assert Unit(neighbors="replace_one").positions_are_public
    assert not Unit("who", neighbors="replace_one").positions_are_public
    assert not Unit().positions_are_public
