"""What a column may hold, by its type and its name alone."""

from __future__ import annotations

import pytest

from sulq.sources.column_guess import UNKNOWN, named, person_of, suggested


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("BIGINT", "int"), ("UTINYINT", "int"), ("int32", "int"), ("DOUBLE", "real"), ("DECIMAL(10,2)", "real"),
        ("float", "real"), ("BOOLEAN", "bool"), ("bool", "bool"), ("VARCHAR", "category"), ("string", "category"),
        ("DATE", "date"), ("date32[day]", "date"), ("TIMESTAMP WITH TIME ZONE", "timestamp"), ("BLOB", "skip"),
    ],
)  # fmt: skip
def test_a_type_suggests_a_kind_whatever_the_name(kind: str, found: str) -> None:
    """A schema that has types decides; a type that is not read is left out."""
    assert suggested(kind) == suggested(kind, "age") == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("age", "int"), ("Age", "int"), ("hours-per-week", "int"), ("education_num", "int"), ("numVisits", "int"),
        ("income", "real"), ("capital_gain", "real"), ("unitPrice", "real"), ("sex", "category"),
        ("native_country", "category"), ("signup_date", "date"), ("created_at", "timestamp"), ("is_member", "bool"),
        ("pid", "skip"), ("customerId", "skip"), ("E-Mail", "skip"), ("notes", "text"),
        ("fnlwgt", UNKNOWN), ("", UNKNOWN), ("姓名", UNKNOWN), ("manage", UNKNOWN), ("usage", UNKNOWN),
    ],
)  # fmt: skip
def test_of_a_csv_file_the_name_alone_suggests_a_kind(name: str, found: str) -> None:
    """An age is a whole number and never one of a list; a name that says nothing leaves the choice open."""
    assert suggested("text", name) == named(name) == found


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["visit_id", "patient_id", "age"], "patient_id"),
        (["id", "age"], "id"),
        (["customer", "amount"], "customer"),
        (["age", "customer_age"], None),
        (["email", "age"], None),
    ],
)
def test_the_person_is_an_id_or_named_as_one(names: list[str], found: str | None) -> None:
    """An id with the word for a person goes before others; what only describes a person is none."""
    assert person_of(names) == found
