"""Tests of sulq.sql.rows.row_set."""

from __future__ import annotations

from dataclasses import replace

from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Select, Table, Where
from sulq.language.rowfn import Col, Lit
from sulq.sql.rows.row_set import RelationBuilder
from sulq.sql.rows.values import Cell, PersonValue
from tests.sql.asking import facts, same, table


def test_a_table_has_its_columns_and_its_person() -> None:
    """The person's column is there whether it is declared or not; a public table has none."""
    people, bills, regions = table(), table("bills"), table("regions")
    first = people.items[0]
    assert (first.name, first.key_of) == ("pid", "people")
    assert isinstance(first.term, PersonValue)
    assert first.term.cell is None
    declared = next(item for item in bills.items if item.name == "PID")
    assert isinstance(declared.term, PersonValue)
    assert declared.term.cell is not None
    assert all(isinstance(item.term, Cell) for item in regions.items)
    assert regions.shape.public


def test_where_rows_are_people_no_column_is_one() -> None:
    """Without a person's column every column is a value."""
    known = facts(Unit())
    rows = RelationBuilder(known).table(known.table_of("people"), "people", 0)
    assert all(isinstance(item.term, Cell) for item in rows.items)
    assert not rows.shape.owned


def test_columns_get_fresh_names_once() -> None:
    """Two tables laid out share no name; the same expression has one column."""
    builder = RelationBuilder(facts())
    one = builder.columns(table("regions"), [(table("regions").items[0].term, 1)])
    two = builder.columns(table("regions"))
    assert not set(one.rows.schema.names) & set(two.rows.schema.names)
    assert len(one.rows.schema.names) == 3
    assert one.beside[0] in one.rows.schema.names


def test_different_rows_have_the_listed_columns_alone() -> None:
    """Over rows with columns of their own too: a column that is not listed would tell rows apart."""
    builder = RelationBuilder(facts())
    laid = builder.columns(table("visits")).rows
    listed = replace(laid, items=laid.items[2:3])
    assert len(builder.columns(listed).rows.schema.names) > 1  # the relation as it is, where nobody minds
    found = builder.distinct(listed, 0)
    assert len(found.schema.names) == 1
    assert isinstance(found.relation, Distinct)
    assert isinstance(found.relation.source, Select)


def test_optional_rows_carry_a_marker() -> None:
    """On the right of a LEFT JOIN even a person that always is there can be missing."""
    laid = RelationBuilder(facts()).columns(table("visits"), optional=True)
    person = laid.rows.items[0].term
    assert isinstance(person, PersonValue)
    assert person.present is not None
    assert same(person.present, Col(laid.marker))
    assert isinstance(laid.rows.relation, Select)
    assert any(same(fn, Lit(True)) for _, fn in laid.rows.relation.columns)


def test_filters_wait_until_a_relation_needs_them() -> None:
    """A filtered table is the table until its columns are laid out."""
    rows = table()
    assert isinstance(rows.filtered(), Table)
    narrowed = type(rows)(rows.relation, rows.shape, rows.items, (Col("married"),))
    assert isinstance(narrowed.filtered(), Where)
    assert same(narrowed.where(), Col("married"))
