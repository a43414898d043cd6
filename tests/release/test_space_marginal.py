"""Cells of a marginal as people read them."""

from __future__ import annotations

from sulq.release.space import named, rows, text


def test_a_cell_is_a_value_or_an_interval() -> None:
    """Whole ends of an interval have no point; others keep theirs."""
    assert [text(label) for label in ("yes", 3, (0.0, 30.0), (0.5, 1.0), (1, 2))] == [
        "yes", "3", "0..30", "0.5..1", "1..2",
    ]  # fmt: skip


def test_columns_of_cells_run_with_the_last_attribute_fastest() -> None:
    """As the values of the marginal do."""
    assert rows([["a", "b"], [(0.0, 1.0), (1.0, 2.0)]]) == [["a", "a", "b", "b"], ["0..1", "1..2"] * 2]


def test_a_column_beside_attributes_gets_a_name_of_its_own() -> None:
    """An attribute may be called count."""
    assert (named(["age"], "count"), named(["count", "count_"], "count")) == ("count", "count__")
