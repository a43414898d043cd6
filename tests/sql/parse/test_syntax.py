"""Tests of sulq.sql.parse.syntax."""

from __future__ import annotations

from sulq.sql.parse.syntax import (
    Aggregate,
    Call,
    ColumnRef,
    Literal,
    Name,
    conjuncts,
    holds,
    parts,
    rebuilt,
)

X, Y = ColumnRef(Name("x")), ColumnRef(Name("y"))


def test_the_place_in_the_text_is_no_part_of_an_expression() -> None:
    """Two expressions are the same if they say the same, wherever they stand and however they are called."""
    assert Call("+", (X, Y), "a", at=3) == Call("+", (X, Y), "b", at=9)
    assert Call("+", (X, Y)) != Call("-", (X, Y))
    assert len({ColumnRef(Name("x", at=1), at=1), ColumnRef(Name("x", at=2), at=2)}) == 1


def test_names_fit_as_postgresql_reads_them() -> None:
    """Unquoted names fit any case, quoted ones only themselves."""
    assert Name("Age").fits("aGE")
    assert not Name("Age", quoted=True).fits("age")


def test_an_expression_is_rebuilt_from_its_parts() -> None:
    """Taking an expression apart and putting it together gives it back."""
    for node in (
        Call("+", (X, Y)),
        Call("case", (X, Y, Y, X, Literal(1, "int"))),
        Call("case", (X, Y)),
        Aggregate("sum", (X,), where=Y),
        Aggregate("rows"),
    ):
        assert rebuilt(node, parts(node)) == node


def test_conditions_joined_by_and_come_apart() -> None:
    """In order, and nested ones too; OR stays whole."""
    both = Call("and", (Call("and", (X, Y)), Call("or", (X, Y))))
    assert conjuncts(both) == [X, Y, Call("or", (X, Y))]
    assert conjuncts(None) == []
    assert holds(Call("+", (X, Aggregate("rows"))), Aggregate)
    assert not holds(both, Aggregate)


def test_names_are_the_same_in_any_case_unless_quoted() -> None:
    """So two expressions that say the same are the same: AVG(age) and avg(Age)."""
    assert ColumnRef(Name("Age", at=3)) == ColumnRef(Name("age"))
    assert len({Name("PID"), Name("pid"), Name("pid", quoted=True), Name("PID", quoted=True)}) == 3
