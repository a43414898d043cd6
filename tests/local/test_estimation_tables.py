"""Questions as tables over cells: what is asked means the same as on a database, and the rest is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sulq
from sulq import Above, Choose, OpenSums, Sums, Together, bins, bucket, case, col, lit, lookup, position, vector
from sulq.errors import QuestionError
from sulq.language.relation import Table, Where
from sulq.language.score import Linear
from sulq.local.estimation import cell_tables
from sulq.local.record import Record

DOMAIN = {"age": sulq.Int(0, 5), "smoker": sulq.Bool(), "city": ["Lod", "Yafo"]}


def test_a_table_is_the_question_s_value_on_every_record() -> None:
    """Against the same written in Python, for values, conditions, keys and vectors."""
    record = Record.of(DOMAIN)
    rows = list(itertools.product(*(labels for _, labels in record.labels)))
    question = Sums(
        (col("age"), case((col("smoker"), 1), otherwise=0.5), vector(["age", "smoker"])),
        (col("city") == "Lod") | (col("age") > 3),
        (col("city"), bins("age", [0, 2, 4])),
    )
    found = cell_tables(question, record)
    for (age, smoker, city), *sums in zip(rows, *(t.reshape(24, 4, -1) for t in found.tables), strict=True):
        counts = (city == "Lod" or age > 3) and age <= 4
        place = ["Lod", "Yafo"].index(city) * 2 + (age >= 2)
        for values, table in zip(((age,), (1 if smoker else 0.5,), (age, smoker)), sums, strict=True):
            expected = np.zeros_like(table)
            if counts:
                expected[place] = values
            assert table == pytest.approx(expected)


def test_a_quotient_by_zero_adds_nothing() -> None:
    """As on every engine: what has no value is missing."""
    record = Record.of(DOMAIN)
    (table,) = cell_tables(Sums(((lit(1) / col("age")).clip(0, 1),)), record).tables
    assert table[:, 0] == pytest.approx(
        [0 if age == 0 else 1 / age for age, _, _ in list(itertools.product(*(labels for _, labels in record.labels)))],
        abs=1e-6,
    )


@pytest.mark.parametrize(
    "question",
    [
        OpenSums((), by=(col("city"),)),
        Choose(Sums((lit(1),), by=(col("city"),)), Linear(((1, 0), (0, 1)))),
        Above(Sums((lit(1),)), 3),
        Sums((lit(1),), by=(bucket(4),)),
        Sums((lit(1),), position() < 10),
        Sums((lit(1),), over=Table("elsewhere")),
        Sums((lit(1),), over=Where(Table(), col("smoker"))),
    ],
)
def test_what_reports_cannot_tell_is_refused_SR19(question: sulq.Sums) -> None:
    """Choices, thresholds, open keys, places and derived tables, each with one code."""
    with pytest.raises(QuestionError) as refused:
        cell_tables(question, Record.of(DOMAIN))
    assert refused.value.code == "not-estimable"


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (Sums((col("income"),)), "unknown-column"),
        (Sums((col("city"),)), "wrong-kind"),
        (Sums((lit(1),), col("age")), "wrong-kind"),
    ],
)
def test_a_bad_question_has_the_code_it_has_on_a_database(question: sulq.Sums, code: str) -> None:
    """Undeclared columns and wrong kinds."""
    with pytest.raises(QuestionError) as refused:
        cell_tables(question, Record.of(DOMAIN))
    assert refused.value.code == code


def test_too_many_numbers_have_the_code_they_have_on_a_database() -> None:
    """A lookup of two million, which takes seconds to write down."""
    with pytest.raises(QuestionError) as refused:
        cell_tables(Sums((lookup(["city"], np.zeros((2, 2**20))),)), Record.of(DOMAIN))
    assert refused.value.code == "too-large"


def test_questions_together_are_taken_one_by_one() -> None:
    """A Together is no single question."""
    with pytest.raises(QuestionError):
        cell_tables(Together((Sums((lit(1),)),)), Record.of(DOMAIN))
