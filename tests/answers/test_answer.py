"""Answers: their shapes, their error bars, what they say of privacy, and that they hold nothing else."""

from __future__ import annotations

import builtins
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.readings.estimators import Covariance, FirstAbove, Mean, Placed, Plain, Reading
from sulq.answers.released import Noise, Released
from sulq.errors import QuestionError, SetupError
from sulq.language.law import AboveLaw, LaplaceLaw, MetricLaw
from sulq.language.privacy import Epsilon, Event, Unit
from sulq.language.space import Box, Points
from tests.stub import noise

LAW = LaplaceLaw(Fraction(10))
UNIT = Unit("who", 3, "replace_one")


def answer(
    units: list[list[int]],
    *,
    keys: tuple[tuple[str, tuple[object, ...]], ...] = (),
    columns: tuple[str, ...] = ("count",),
    step: Fraction = Fraction(1),
    reading: Reading | None = None,
    notes: tuple[str, ...] = (),
    square: bool = False,
) -> Answer:
    cells = np.array(units, dtype=np.int64)
    return Answer(
        Released(cells, (Noise(LAW, step, cells.shape[1]),)), reading or Plain(), keys, columns, Epsilon(0.1),
        Epsilon(0.9), UNIT, "dp", Event(Fraction(1, 10), Fraction(1, 200)), Receipt(1, "e", "p", "m"), notes=notes,
        square=square,
    )  # fmt: skip


CITY = ("city", ("Lod", "Yafo"))
FLAG = ("smoker", (False, True))


def test_a_count_is_a_whole_number():
    """Without keys a single column is a number: whole on a whole grid, else a float."""
    assert answer([[42]]).value == 42
    assert isinstance(answer([[42]]).value, int)
    assert answer([[42]], step=Fraction(1, 4)).value == 10.5
    assert answer([[42]], step=Fraction(8)).value == 336


def test_a_vector_is_an_array_and_a_partition_a_mapping():
    """Several columns give an array; keys give a mapping from labels, in the order of the cells."""
    assert answer([[1, 2]], columns=("a", "b")).value.tolist() == [1, 2]
    assert answer([[1], [2]], keys=(CITY,)).value == {"Lod": 1, "Yafo": 2}
    both = answer([[1], [2], [3], [4]], keys=(CITY, FLAG)).value
    assert both == {("Lod", False): 1, ("Lod", True): 2, ("Yafo", False): 3, ("Yafo", True): 4}
    pairs = answer([[1, 2], [3, 4]], keys=(FLAG,), columns=("a", "b")).value
    assert {key: cell.tolist() for key, cell in pairs.items()} == {False: [1, 2], True: [3, 4]}


def test_a_covariance_is_a_symmetric_matrix():
    """The upper triangle is unfolded, entry by entry."""
    reading = Covariance((Fraction(1), Fraction(1)))
    found = answer([[100, 0, 0, 50, 20, 80]], columns=("a*a", "a*b", "b*b"), reading=reading, square=True)
    assert found.value.tolist() == [[0.5, 0.2], [0.2, 0.8]]
    low, high = found.interval()
    assert low.shape == high.shape == found.accuracy().shape == (2, 2)
    assert (low <= found.value).all()
    rows = [line.split() for line in repr(found).splitlines()[:3]]
    assert (rows[0], rows[1][0], rows[2][0]) == (["a", "b"], "a", "b")
    assert rows[1][-4:] == rows[2][1:5]  # the entry of a and b, in both its places
    assert found._repr_html_().count("<tr>") == 3
    assert set(found.to_dict()) == {f"{end}{name}" for end in ("", "low_", "high_") for name in ("a*a", "a*b", "b*b")}


def test_accuracy_is_the_laws_own():
    """accuracy(beta) is the noise law's quantile in the answer's units; the interval is that far on either side."""
    found = answer([[42]], step=Fraction(1, 4))
    alpha = LAW.accuracy(0.05) / 4
    assert found.accuracy(beta=0.05) == alpha
    assert found.interval(0.95) == (10.5 - alpha, 10.5 + alpha)
    grouped = answer([[1], [2]], keys=(CITY,)).accuracy(0.01)
    assert grouped == dict.fromkeys(("Lod", "Yafo"), float(LAW.accuracy(0.01)))


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), True, "0.05", None])
def test_a_probability_lies_between_0_and_1_T51(bad):
    """Anything else is refused with a code, not turned into a strange interval."""
    with pytest.raises(QuestionError) as refusal:
        answer([[1]]).accuracy(bad)
    assert refusal.value.code == "bad-literal"


def test_simultaneous_accuracy_covers_all_cells_at_once():
    """All cells are within the simultaneous width in 1 - beta of the runs, and not all within each one's own."""
    rng = np.random.default_rng(3)
    runs, cells, beta = 20_000, 25, 0.1
    label = ("k", tuple(range(cells)))
    found = answer([[0]] * cells, keys=(label,))
    together = next(iter(found.accuracy(beta, simultaneous=True).values()))
    apart = next(iter(found.accuracy(beta).values()))
    worst = np.abs(noise(LAW, rng, (runs, cells))).max(axis=1)
    most = stats.binom.ppf(1 - 1e-7, runs, beta)
    assert (worst > together).sum() <= most
    assert (worst > apart).sum() > most
    assert (worst > together - 1).sum() > stats.binom.ppf(1e-7, runs, beta)  # no wider than it must be
    mean = answer([[50, 60]] * cells, keys=(label,), columns=("mean",), reading=Mean(Fraction(0), Fraction(1)))
    low, high = mean.interval(0.9, simultaneous=True)
    assert mean.reading.interval(mean.released, 0.1 / cells)[0][0, 0] == low[0]
    assert all(low[k] < mean.value[k] < high[k] for k in range(cells))


def test_tables_have_keys_values_and_ends():
    """to_dict, pandas and Arrow: key columns and `value`; with a level also `low` and `high`."""
    found = answer([[1], [2]], keys=(("age", ((0, 5), (5, 9.5))),))
    assert found.to_dict(0.9)["age"] == ["[0, 5)", "[5, 9.5]"]
    assert list(found.to_dict()) == ["age", "value", "low", "high"]
    assert list(found.to_pandas().columns) == ["age", "value"]
    assert list(found.to_pandas(level=0.9).columns) == ["age", "value", "low", "high"]
    assert found.to_pandas()["value"].tolist() == [1, 2]
    assert found.to_arrow().column_names == ["age", "value"]
    assert found.to_arrow(0.9).column_names == ["age", "value", "low", "high"]
    assert found.to_arrow().num_rows == 2
    wide = answer([[1, 2]], columns=("a", "b"))
    assert list(wide.to_dict()) == ["a", "low_a", "high_a", "b", "low_b", "high_b"]
    assert list(wide.to_pandas().columns) == ["a", "b"]
    low = 1 - LAW.accuracy(0.1)
    assert found.to_dict(0.9)["low"][0] == pytest.approx(low)


@pytest.mark.parametrize("name", ["value", "low", "high", "lowland", "high_school", "count", "low_a", "a", "a_"])
def test_a_key_keeps_its_name_and_its_labels(name):
    """Keys called value, low or highway are all still there beside the numbers."""
    for columns in (("count",), ("a", "b")):
        found = answer([[1] * len(columns), [2] * len(columns)], keys=((name, ("x", "y")),), columns=columns)
        for level in (None, 0.9):
            frame = found.to_pandas(level)
            assert frame[name].tolist() == ["x", "y"]
            assert len(frame.columns) == 1 + len(columns) * (1 if level is None else 3)
        assert "x" in repr(found)
        assert found.to_dict()[name] == ["x", "y"]


def test_an_answer_says_what_it_cost_and_whom_it_protects_T93():
    """The printed answer has value, width, spend, what is left, the unit and relation, and its notes (T93)."""
    text = repr(answer([[1234567]], notes=("forgotten at exit",)))
    for word in ("1,234,567", "+-", "epsilon 0.1", "epsilon 0.9", "who", "3 rows", "replace_one", "forgotten at exit"):
        assert word in text
    html = answer([[7]], notes=("forgotten at exit",))._repr_html_()
    for word in ("epsilon 0.1", "epsilon 0.9", "replace_one", "forgotten"):
        assert word in html
    found = answer([[7]])
    assert (found.spent, found.remaining, found.unit, found.guarantee) == (Epsilon(0.1), Epsilon(0.9), UNIT, "dp")
    posterior = Answer(**{f: getattr(found, f) for f in Answer.__slots__} | {"guarantee": "posterior"})
    assert "posterior" in repr(posterior)


def test_a_long_answer_is_cut_short():
    """Twenty lines, then how many more; every column of a partition is shown."""
    many = answer([[i] for i in range(50)], keys=(("k", tuple(range(50))),))
    assert "... 30 more rows\n" in repr(many)
    assert "... 30 more rows" in many._repr_html_()
    both = repr(answer([[1, 2], [3, 4]], keys=(CITY,), columns=("a", "b")))
    head, first = (line.split() for line in both.splitlines()[:2])
    assert (head, first) == (["city", "a", "b"], ["Lod", "1", "+-", "30", "2", "+-", "30"])
    clipped = answer([[60, 2]], columns=("mean",), reading=Mean(Fraction(0), Fraction(1)))
    assert " in [" in repr(clipped)


def test_html_is_escaped_T83():
    """Labels, names and notes cannot bring markup into a notebook."""
    evil = "<script>alert('x')</script>\"&"
    found = answer([[1], [2]], keys=((evil, (evil, "b")),), notes=(evil,))
    html = found._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 3
    assert "&quot;&amp;" in html


def test_a_plot_has_bars_with_error_bars():
    """A plot has one bar a cell with its interval, and labels that name keys and level."""
    axes = answer([[10], [20]], keys=(CITY,)).plot(0.9)
    assert [bar.get_height() for bar in axes.patches] == [10, 20]
    assert axes.get_xlabel() == "city"
    assert "90%" in axes.get_title()
    assert len(axes.containers) == 2
    many = answer([[i] for i in range(9)], keys=(("k", tuple(range(9))),)).plot()
    assert len(many.patches) == 9


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("plot", "matplotlib")])
def test_a_missing_extra_is_named(method, package, monkeypatch):
    """Without the extra the error says what to install."""
    monkeypatch.setattr(
        "importlib.import_module", lambda name: builtins.__import__("no_such_" + name.partition(".")[0])
    )
    with pytest.raises(SetupError, match="pip install") as refusal:
        getattr(answer([[1]]), method)()
    assert refusal.value.code == "missing-extra"
    assert package.startswith(("pandas", "matplotlib"))


def test_reading_an_answer_anew_is_free_and_changes_nothing_else():
    """The same release read as another statistic keeps its event, receipt and price."""
    found = answer([[50, 60]], columns=("v0", "v1"))
    mean = found.read(Mean(Fraction(0), Fraction(1)), ("mean",))
    assert mean.value == pytest.approx(50 / 110)
    for name in ("released", "spent", "remaining", "event", "receipt", "unit", "guarantee"):
        assert getattr(mean, name) is getattr(found, name)


def test_answers_asked_together_share_a_receipt():
    """A tuple of answers, one price, one receipt."""
    first, second = answer([[1]]), answer([[2]])
    both = Answers((first, second))
    assert list(both) == [first, second]
    assert (len(both), both[1], both.spent, both.receipt) == (2, second, Epsilon(0.1), first.receipt)
    assert repr(both).count("spent") == 2


def test_an_answer_has_the_same_bits_after_the_wire_T2():
    """Value, interval and accuracy are recomputed at the other end from released integers alone (T2)."""
    for found in (
        answer([[3], [5]], keys=(CITY,), step=Fraction(1, 8)),
        answer([[5, 9]], reading=Mean(Fraction(0), Fraction(1))),
    ):
        back = wire.decode(wire.encode(found))
        assert back.value == found.value
        assert back.interval(0.9) == found.interval(0.9)
        assert repr(back) == repr(found)


def test_every_released_number_is_a_whole_number_of_public_steps_T1():
    """Plain values are units times a power of two, exactly (T1)."""
    for unit, step in itertools.product(
        (-(2**40), -3, 0, 7, 2**51), (Fraction(1, 2**22), Fraction(1), Fraction(2**10))
    ):
        value = answer([[unit]], step=step).value
        assert Fraction(value) / step == unit


def test_a_point_of_a_space_says_how_near_it_is_and_no_interval():
    """So much farther than the nearest, in the answer's measure, of one number and of several; the same on the wire."""
    law = MetricLaw(Fraction(2), 4)
    near = law.accuracy(0.05) / 4
    for space, columns, words in (
        (Box(0, 3), ("to_unique",), "2"), (Points(((0, 1), (0, 2), (0, 3)), "l1"), ("a", "b"), "(0, 3)")
    ):  # fmt: skip
        cells = Released(np.array([[2]], dtype=np.int64), (Noise(law, Fraction(1), 1),))
        found = replace(answer([[0]], columns=columns, reading=Placed(space, Fraction(1, 4))), released=cells)
        assert repr(found).startswith(f"{words}, within {float(near):g} of the nearest at 95%\n")
        assert " in [" not in repr(found)
        assert f"within {float(near):g} of the nearest" in found._repr_html_()
        assert "low" not in found._repr_html_()
        assert found.accuracy(0.05) == float(near)
        assert repr(wire.decode(wire.encode(found))) == repr(found)
    with pytest.raises(QuestionError):
        found.accuracy(0)


def test_the_first_above_a_threshold_is_a_place_with_a_reach():
    """The value is a whole number whatever the grid; the accuracy is the law's, in the sums' own units."""
    law = AboveLaw(Fraction(8), Fraction(8), 5)
    for place, words in ((2, "sum 2, from 0, is the first of 5 at or above"), (5, "none of 5 sums is at or above")):
        cells = Released(np.array([[place]], dtype=np.int64), (Noise(law, Fraction(1), 1),))
        found = replace(answer([[0]], columns=("first",), reading=FirstAbove(Fraction(1, 4))), released=cells)
        assert (found.value, type(found.value)) == (place, int)
        assert found.accuracy(0.01) == law.accuracy(0.01) / 4 == found.accuracy(0.01, simultaneous=True)
        assert found.interval() == (0.0, 5.0)
        assert words in repr(found)
        assert f"give or take {law.accuracy(0.05) / 4:g}" in repr(found)
        assert found.to_dict()["value"] == [place]
        back = wire.decode(wire.encode(found))
        assert (back.value, back.accuracy()) == (found.value, found.accuracy())
    with pytest.raises(QuestionError):
        found.accuracy(0)
