"""Shape of what leaves: the same keys, order, types, intervals and words, whatever the rows are."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sulq import Bool, Category, Date, Epsilon, EpsilonDelta, Int, Real, Rho, Sums, Unit, col
from sulq.answers import wire
from sulq.answers.readings.estimators import CentredMean, Covariance, Mean, Plain, Spread
from sulq.answers.readings.sized import Average, SizedSpread
from sulq.language.rowfn import Bins, Each, Lit
from sulq.testing import exact, neighbours
from tests.privacy.cases import ENGINES, asking, opened, people, replayed, seeded

COLUMNS = {"age": Int(0, 100), "gain": Real(-50, 200), "flag": Bool(), "city": Category(("Yafo", "Haifa", "Lod"))}
EMPTY = pa.table(
    {"age": pa.array([], pa.int64()), "gain": pa.array([], pa.float64()), "flag": pa.array([], pa.bool_()),
     "city": pa.array([], pa.string())}
)  # fmt: skip


def crowd(rng: np.random.Generator, n: int) -> pa.Table:
    """Many ordinary people."""
    return pa.table(
        {
            "age": rng.integers(0, 101, n),
            "gain": rng.uniform(-50, 200, n),
            "flag": rng.random(n) < 0.5,
            "city": rng.choice(["Haifa", "Lod", "Jaffa"], n),
        }
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_all_declared_keys_come_back_in_declared_order_with_fixed_types_T26_T29(kind: str) -> None:
    """Empty, tiny and large tables give the same keys in the same order and the same types, zero cells too (T26, T29).

    Control: the groups a plain query would return differ between the tables.
    """
    rng = seeded("keys")
    shapes, groups = set(), set()
    for table in (EMPTY, crowd(rng, 3).set_column(3, "city", [["Lod"] * 3]), crowd(rng, 2000)):
        groups.add(tuple(sorted(set(table["city"].to_pylist()))))
        with opened(table, columns=COLUMNS, engine=kind) as db:
            answers = [
                db.count(by=["city", "flag"], spend=Epsilon(1)),
                db.sum("gain", by="city", spend=Epsilon(1)),
                db.histogram("age", bins=5, spend=Epsilon(1)),
                db.mean("gain", by=["flag"], spend=Epsilon(1)),
                db.ask(Sums((col("age"), col("gain")), None, (col("city"),)), spend=Epsilon(1)),
            ]
        for answer in answers:
            frame = answer.to_pandas()
            kinds = tuple((name, str(dtype)) for name, dtype in frame.dtypes.items())
            labels = tuple(zip(*(answer.to_dict()[name] for name, _ in answer.keys), strict=True))
            values = tuple(  # an unknown mean is None; in frames it is a missing float
                "float" if value is None else type(value).__name__ for value in answer.value.values()
            )
            shapes.add((answers.index(answer), kinds, labels, values, answer.to_arrow().schema.to_string()))
    assert len(shapes) == 5
    assert len(groups) == 3
    first = next(shape for shape in shapes if shape[0] == 0)
    assert first[2] == tuple(itertools.product(("Yafo", "Haifa", "Lod", None), (False, True, None)))


@pytest.mark.parametrize("kind", ENGINES)
def test_order_and_duplicates_of_rows_do_not_show_T26(kind: str) -> None:
    """The same rows in another order, and NULL where a zero could stand, change no byte beyond the noise (T26)."""
    rows = people("HLYHL")
    asked = [asking(Sums((Lit(1), col("gain")), None, (col("city"), Each(col("flag")))), Epsilon(1))]
    assert replayed(kind, rows, rows[::-1], asked, Unit()) == []
    null = [one | {"gain": None} if i == 2 else one for i, one in enumerate(rows)]
    assert replayed(kind, rows, null, asked, Unit(None, 1, "replace_one")) == []


def test_intervals_are_functions_of_scale_and_released_value_T28() -> None:
    """Equal released integers give equal intervals and accuracies, whatever the true rows were (T28).

    Control: intervals that know the rows differ.
    """
    rng = seeded("intervals")
    found = []
    for table in (crowd(rng, 5), crowd(rng, 5000)):
        with opened(table, columns=COLUMNS, budget=EpsilonDelta(100, 1e-6)) as db:
            answers = [
                db.count(spend=Epsilon(1)), db.mean("gain", spend=Epsilon(1)), db.mean("gain", spend=Rho(0.1)),
                db.variance("gain", by="city", spend=Epsilon(1)), db.covariance(["age", "gain"], spend=Rho(0.1)),
            ]  # fmt: skip
        seen = []
        for answer in answers:
            answer.released.units[:] = np.arange(answer.released.units.size).reshape(answer.released.units.shape) * 1000
            seen.append((str(answer.value), str(answer.interval(0.9)), str(answer.accuracy(0.01)), repr(answer)))
        found.append(seen)
    assert found[0] == found[1]


@pytest.mark.parametrize("reading", [Plain, Average, Mean, CentredMean, Spread, SizedSpread, Covariance])
def test_no_reading_holds_anything_but_public_facts_T28(reading: type) -> None:
    """A way of reading an answer is made of declared bounds and sizes, and is given released integers only (T28)."""
    kinds = {"Fraction", "int", "bool", "int | None", "tuple[Fraction, ...]"}
    assert set(getattr(reading, "__annotations__", {}).values()) <= kinds


def test_public_facts_and_plans_are_the_same_for_any_rows_T17_T21() -> None:
    """Facts, representations and plans over an empty, a small and a large table are equal bytes (T17, T21, SR6).

    Control: statistics of the tables themselves differ.
    """
    rng = seeded("facts")
    shown, lengths = set(), set()
    for table in (EMPTY, crowd(rng, 3), crowd(rng, 4000)):
        lengths.add(table.num_rows)
        with opened(table, columns=COLUMNS) as db:
            plans = [
                db.foresee(Sums((Lit(1),)), spend=Epsilon(1)),
                db.foresee(Sums((col("gain"),), col("age") > 10, (col("city"),)), spend=Epsilon(1)),
            ]
            facts = replace(db.facts, public_key="")  # each ledger draws its own
            shown.add((repr(db), str(facts), wire.encode(facts), *map(str, plans), *map(wire.encode, plans)))
    assert len(shown) == 1
    assert len(lengths) == 3


@pytest.mark.parametrize("kind", ENGINES)
def test_the_number_of_rows_is_a_question_like_any_other_T17(kind: str) -> None:
    """A bare count is charged and noisy, a mean does not divide by the true number of rows (T17).

    Bar: byte-identical replay with |D| != |D'|. Control: a count without noise (test_replay).
    """
    programs = [
        lambda asks: asks.count(spend=Epsilon(1)),
        lambda asks: asks.mean("gain", spend=Epsilon(1)),
        lambda asks: asks.variance("gain", spend=Epsilon(1)),
        lambda asks: asks.histogram("age", 4, spend=Epsilon(1)),
    ]
    assert replayed(kind, people("HLY"), people("HLYH"), programs, Unit()) == []
    assert replayed(kind, people(""), people("H"), programs, Unit()) == []
    with opened(neighbours.arrow(people("HLY")), engine=kind) as db:
        before = db.spent.amount
        answers = {db.count(spend=Epsilon(0.5), fresh=True).value for _ in range(40)}
        assert db.spent.amount == before + 20
    assert len(answers) > 1


def test_declarations_are_asked_for_and_never_read_off_the_rows_T21() -> None:
    """Categories of the data that were not declared stay unknown; declared ones stay, also without a row (T21)."""
    table = pa.table({"city": ["Akko"] * 50, "x": [1e9] * 50})
    with opened(table, columns={"city": ["Haifa", "Lod"], "x": Real(0, 1)}) as db:
        answer = db.count(by="city", spend=Epsilon(1))
        assert set(answer.value) == {"Haifa", "Lod", None}
        assert all(abs(answer.value[name]) < 40 for name in ("Haifa", "Lod"))
        assert db.sum("x", spend=Epsilon(10)).value < 60
        with pytest.raises(Exception, match="unknown-category"):
            db.count(col("city") == "Akko", spend=Epsilon(1))


@pytest.mark.parametrize("kind", ENGINES)
def test_facts_of_the_data_are_answered_SR6(kind: str) -> None:
    """Constant, all-missing, undeclared and absent values give answers at the full charge, not errors (SR6, T29)."""
    full = people("HHHHHH")
    tables = {
        "empty": [],
        "one row": full[:1],
        "constant": full,
        "all missing": [dict.fromkeys(one, None) | {"pid": one["pid"]} for one in full],
        "undeclared": [one | {"city": "Jaffa", "code": 77} for one in full],
        "out of bounds": [one | {"gain": 1e300, "age": -5, "day": None} for one in full],
    }
    for rows in tables.values():
        with opened(neighbours.arrow(rows), engine=kind) as db:
            answers = [
                db.count(spend=Epsilon(1)), db.mean("gain", spend=Epsilon(1)), db.std("gain", ddof=1, spend=Epsilon(1)),
                db.covariance(["gain", "age"], spend=Epsilon(1)), db.count(by=["city", "code"], spend=Epsilon(1)),
                db.mean("debt", by=Bins(col("day"), ("2020-01-01", "2020-12-31")), spend=Epsilon(1)),
            ]  # fmt: skip
            assert db.spent == Epsilon(len(answers))
            for answer in answers:
                assert np.isfinite(answer.reading.value(answer.released)).all()
                assert "nan" not in repr(answer)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_person_is_one_person_however_the_id_is_stored_T16(kind: str) -> None:
    """Ids as text, whole numbers and doubles name the same people; rows without one are nobody's (T16)."""
    unit = Unit("pid", 2)
    ages = [10, 20, 30, 40, 50, 60]
    spellings = {
        "whole": pa.array([7, 7, 7, 8, None, 8], pa.int64()),
        "small": pa.array([7, 7, 7, 8, None, 8], pa.int8()),
        "double": pa.array([7.0, 7.0, 7.0, 8.0, None, 8.0]),
        "text": pa.array(["7", "7", "7", "8", None, "8"]),
    }
    found = {}
    for name, ids in spellings.items():
        table = pa.table({"pid": ids, "age": ages})
        with opened(table, columns={"age": Int(0, 100)}, unit=unit, engine=kind, synthetic=True) as db:
            found[name] = exact(db).count().value
    assert set(found.values()) == {4}


def test_dates_and_bins_are_labelled_by_the_question_T28() -> None:
    """Labels of bins are the edges asked for, not those seen (T26, T28)."""
    table = pa.table({"d": ["2020-05-05", "1999-01-01", "not a date"]})
    with opened(table, columns={"d": Date("2020-01-01", "2020-12-31")}) as db:
        answer = db.histogram("d", bins=["2020-01-01", "2020-06-01", "2020-12-31"], spend=Epsilon(1))
    assert list(answer.value) == [("2020-01-01", "2020-06-01"), ("2020-06-01", "2020-12-31")]
