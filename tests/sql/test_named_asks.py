"""db.quantile, median, min, max and count_distinct: the table's own without noise, at the named price with it."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, Rho
from sulq.language.rowfn import Col
from sulq.sql.named_asks import parts
from sulq.testing import exact
from tests.sql.programs import database, people


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(1)], ids=str)
def test_order_statistics_are_those_of_the_table(spend):
    """Without noise: exact for whole numbers, within one step of the grid for others, by group and filter."""
    db, frame = exact(database()), people()
    age = frame["age"].dropna().astype(float)
    assert db.median("age", spend=spend).value == age.median()
    assert db.min("age", spend=spend).value == age.min()
    assert db.max("age", spend=spend).value == age.max()
    found = db.quantile("income", [0.25, 0.9], spend=spend)
    assert np.abs(found.value - frame["income"].quantile([0.25, 0.9])).max() <= 16
    grouped = db.quantile("age", 0.5, by="city", where=Col("smoker") == True, spend=spend)  # noqa: E712
    smokers = frame[frame["smoker"]]
    medians = {city: smokers[smokers["city"] == city]["age"].median() for city in ("Yafo", "Haifa", "Lod")}
    assert grouped.value == medians | {None: None}  # nobody without a city: unknown
    low, high = found.interval(0.95)
    assert (low <= found.value).all()
    assert (found.value <= high).all()


def test_different_values_and_people_are_counted():
    """COUNT DISTINCT of a column, of an expression and of the person."""
    db, frame = exact(database()), people()
    assert db.count_distinct("age", spend=Epsilon(1)).value == frame["age"].nunique()
    assert db.count_distinct("pid", spend=Epsilon(1)).value == frame["pid"].nunique()
    by_city = db.count_distinct("pid", by="city", spend=Epsilon(1)).value
    assert by_city == frame.groupby("city")["pid"].nunique().to_dict() | {None: 0}
    assert db.count_distinct(Col("age") * 0, spend=Epsilon(1)).value == 1


def test_the_price_is_what_was_named():
    """One ask, one debit, of what was spent; its tree shows the quantiles as columns."""
    db = database()
    before = db.spent
    found = db.quantile("age", [0.25, 0.5, 0.75], spend=Epsilon(0.5), fresh=True)
    assert found.spent == Epsilon(0.5)
    assert found.columns == ("0.25", "0.5", "0.75")
    assert db.spent != before
    assert "0.25" in repr(found)


def test_odd_arguments_are_refused():
    """Quantiles lie between 0 and 1, of numbers; dates are asked in SQL."""
    for q in ([], "x", -0.1, 1.5, float("nan"), True, [0.5, None]):
        with pytest.raises(QuestionError):
            parts(q)
    for ask in (lambda db: db.median("visit", spend=Epsilon(1)), lambda db: db.max("city", spend=Epsilon(1))):
        with pytest.raises(QuestionError):
            ask(database())


def test_an_interval_is_bought_or_not():
    """Only True and False say which, at every ask that takes it; left out, it is."""
    db = database()
    for ask in (
        lambda **more: db.median("income", **more),
        lambda **more: db.max("income", **more),
        lambda **more: db.sql("SELECT MEDIAN(income) FROM people", **more),
        lambda **more: db.explain("SELECT MEDIAN(income) FROM people", **more),
    ):
        with pytest.raises(QuestionError) as refused:
            ask(spend=Epsilon(1), interval="no")
        assert refused.value.code == "bad-question"
    whole = [0, 200_000]
    assert list(db.median("income", spend=Epsilon(1), interval=False).interval()) == whole
    assert list(db.median("income", spend=Epsilon(9)).interval()) != whole
    assert list(db.median("income", spend=Epsilon(9)).interval(0.999)) == whole  # past what was bought


def test_the_same_quantile_at_the_same_price_is_given_again_SR12():
    """With an interval for the same spend, as the shift follows from it; without one for a smaller spend too."""
    db = database()
    first = db.quantile("income", 0.4, spend=Epsilon(2))
    again = db.quantile("income", 0.4, spend=Epsilon(2))
    assert again.reused
    assert again.value == first.value
    db.quantile("income", 0.4, spend=Epsilon(2), interval=False)
    assert db.quantile("income", 0.4, spend=Epsilon(1), interval=False).reused
