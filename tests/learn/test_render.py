"""What a model learned, for people: tables with names on their rows and columns, trees as text."""

from __future__ import annotations

import sulq
from sulq import Epsilon
from sulq.learn.render import TextTable, text, text_tables
from tests.learn.averages import Averages, Majority
from tests.learn.cases import exact, opened

COLUMNS = {"age": sulq.Int(0, 100), "city": ["Haifa", "Lod"], "ill": sulq.Bool()}
DATA = {"age": [0, 50, 100, 50], "city": ["Lod", "Haifa", "Lod", "Lod"], "ill": [True, False, True, True]}


def test_a_model_is_told_in_tables() -> None:
    """Single numbers stand together; lists and tables carry the names of features."""
    with opened(COLUMNS, DATA) as db:
        model = Averages(rounds=1).fit(exact(db)[["age", "city"]], spend=Epsilon(1))
    numbers, mean, spread = text_tables(model)
    assert numbers == TextTable("Summary", ("", "value"), (("count", 4.0),))
    assert mean.rows == (("age", 0.0), ("city=Haifa", -0.5), ("city=Lod", 0.5))
    assert spread.columns == ("", "age", "city=Haifa", "city=Lod")
    assert [row[0] for row in spread.rows] == ["1", "2", "3"]
    shown = text(model)
    assert "city=Haifa" in shown
    assert shown.splitlines()[0] == "Summary"


def test_a_tree_is_told_as_a_tree() -> None:
    """A model that draws itself is shown as it draws; its classes name its counts."""
    with opened(COLUMNS, DATA) as db:
        asks = exact(db)
        model = Majority().fit(asks[["age"]], asks["ill"], spend=Epsilon(1))
    assert text(model) == "always True"
    (counts,) = text_tables(model)
    assert counts.rows == (("False", 1.0), ("True", 3.0))
